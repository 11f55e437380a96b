package tcb

import (
	"encoding/binary"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/internal/wire"
)

// Candidate is an encoding that the writer tried for a column, or for a part of one.
type Candidate struct {
	Encoding Encoding
	Size     int // in bytes, of the values; the bitmaps are not in it
	// Inside says what the parts of the candidate are stored in: the elements and the lengths in ARRAY, the bytes in
	// BITPACK, the numbers in WHOLE.
	Inside []Part
}

// Part is what a part of a candidate is stored in.
type Part struct {
	Name     string // "elements", "lengths", "bytes", "numbers"
	Encoding Encoding
	Size     int
}

// choice is what the writer tried, how to write each, and which it takes.
type choice struct {
	tried   []Candidate
	writers []func(dst []byte) []byte
	best    int
}

// try adds a candidate; a later one is taken only when it is shorter.
func (c *choice) try(cand Candidate, write func(dst []byte) []byte) {
	c.tried, c.writers = append(c.tried, cand), append(c.writers, write)
	if cand.Size < c.tried[c.best].Size {
		c.best = len(c.tried) - 1
	}
}

func (c *choice) taken() Candidate { return c.tried[c.best] }

// append appends the candidate that was taken.
func (c *choice) append(dst []byte) []byte { return c.writers[c.best](dst) }

// chooseColumn tries every encoding that the type allows, in the order of docs/format/tcb.md, "The writer's choice".
func chooseColumn(c *Column) choice {
	if c.Type.Kind == Scalar {
		return chooseValues(c)
	}
	var out choice
	size := c.rawSize()
	for i := range c.Rows {
		size += wire.Varint32Size(c.Offsets[i+1] - c.Offsets[i])
	}
	out.try(Candidate{Encoding: Raw, Size: size}, c.appendRawArray)
	if c.Type.Element == UUID {
		return out
	}
	elements := chooseValues(c)
	lengths := c.lengths()
	sizes := sizesOf(lengths)
	lengthEnc, lengthSize := Raw, sizes.varint
	if sizes.rle < lengthSize {
		lengthEnc, lengthSize = RLE, sizes.rle
	}
	e := elements.taken()
	out.try(Candidate{
		Encoding: ArrayOf, Size: 2 + lengthSize + e.Size,
		Inside: append([]Part{{"elements", e.Encoding, e.Size}, {"lengths", lengthEnc, lengthSize}}, e.Inside...),
	}, func(dst []byte) []byte {
		dst = append(dst, byte(e.Encoding), byte(lengthEnc))
		dst = appendInts(dst, lengthEnc, lengths)
		return elements.append(dst)
	})
	return out
}

// chooseValues tries the encodings of a scalar column over all values of c.
func chooseValues(c *Column) choice {
	var out choice
	out.try(Candidate{Encoding: Raw, Size: c.rawSize()}, func(dst []byte) []byte { return c.appendRaw(dst, 0, c.Len()) })
	switch c.Type.Element {
	case Enum, I32:
		sizes := sizesOf(c.Int32s)
		encs := []Encoding{RLE}
		if c.Type.Element == I32 {
			encs = []Encoding{Varint, Delta, RLE, DeltaRLE}
		}
		for _, enc := range encs {
			out.try(Candidate{Encoding: enc, Size: sizes.of(enc)}, func(dst []byte) []byte { return appendInts(dst, enc, c.Int32s) })
		}
		tryPacked(&out, c.Int32s)
	case Bool:
		v := make([]byte, len(c.Bools))
		for i, x := range c.Bools {
			if x {
				v[i] = 1
			}
		}
		out.try(Candidate{Encoding: RLE, Size: sizesOf(v).rle}, func(dst []byte) []byte { return appendInts(dst, RLE, v) })
		tryPacked(&out, v)
	case I64:
		tryFixedDict(&out, c, c.Int64s, func(x int64) uint64 { return uint64(x) })
		tryPacked(&out, c.Int64s)
	case F32:
		tryFixedDict(&out, c, c.Float32s, func(x float32) uint64 { return uint64(math.Float32bits(x)) })
		tryWhole(&out, c.Float32s)
	case F64:
		tryFixedDict(&out, c, c.Float64s, math.Float64bits)
		tryWhole(&out, c.Float64s)
	case String:
		tryStringDicts(&out, c)
	}
	return out
}

// tryPacked tries BITPACK, which needs a value.
func tryPacked[T byte | int32 | int64](out *choice, v []T) {
	if len(v) == 0 {
		return
	}
	p := pack(v)
	inner, size := p.choose()
	out.try(Candidate{Encoding: BitPack, Size: size, Inside: []Part{{"bytes", inner, size - p.headSize()}}},
		func(dst []byte) []byte { return p.append(dst, inner) })
}

// tryWhole tries WHOLE, which needs every value to be a whole number.
func tryWhole[T float32 | float64](out *choice, v []T) {
	ints, ok := asWholes(v)
	if !ok {
		return
	}
	inner, size := sizesOf(ints).least()
	out.try(Candidate{Encoding: Whole, Size: 1 + size, Inside: []Part{{"numbers", inner, size}}}, func(dst []byte) []byte {
		return appendInts(append(dst, byte(inner)), inner, ints)
	})
}

// tryFixedDict tries the dictionaries of values of a fixed width.
func tryFixedDict[T any](out *choice, c *Column, v []T, bitsOf func(T) uint64) {
	indexes, keys := indexBits(v, bitsOf)
	width, _ := c.Type.Element.rawSize()
	size := wire.Varint32Size(int32(len(keys))) + int(width)*len(keys)
	sizes := indexSizes(indexes)
	for _, enc := range []Encoding{Dict, DictRLE} {
		stream := indexStream(enc)
		out.try(Candidate{Encoding: enc, Size: size + sizes.of(stream)}, func(dst []byte) []byte {
			dst = wire.AppendVarint32(dst, int32(len(keys)))
			for _, key := range keys {
				if width == 4 {
					dst = binary.LittleEndian.AppendUint32(dst, uint32(key))
				} else {
					dst = binary.LittleEndian.AppendUint64(dst, key)
				}
			}
			return appendInts(dst, stream, indexes)
		})
	}
}

// indexStream is the form of the indexes of a dictionary encoding.
func indexStream(enc Encoding) Encoding {
	switch enc {
	case DictRLE, DictFrontRLE, DictSegRLE:
		return RLE
	}
	return Varint
}

// manyValues is from how many values on the three kinds of dictionaries are made at once.
const manyValues = 1 << 14

// tryStringDicts tries the three kinds of dictionaries of strings.
func tryStringDicts(out *choice, c *Column) {
	d := newDictionary(c.Strings)
	var front, segments []byte
	var frontIndexes []int32
	var work errgroup.Group
	if len(c.Strings) < manyValues {
		work.SetLimit(1)
	}
	work.Go(func() error {
		table, rank := sorted(d.entries)
		front, frontIndexes = appendFront(nil, table), d.remap(rank)
		return nil
	})
	work.Go(func() error {
		segments = appendSegments(nil, d.entries)
		return nil
	})
	plain := wire.Varint32Size(int32(len(d.entries)))
	for _, s := range d.entries {
		plain += wire.Varint32Size(int32(len(s))) + len(s)
	}
	sizes := indexSizes(d.indexes)
	work.Wait() // no error
	frontSizes := indexSizes(frontIndexes)
	for _, cand := range []struct {
		enc     Encoding
		size    int
		sizes   streamSizes
		table   []byte
		indexes []int32
	}{
		{Dict, plain, sizes, nil, d.indexes},
		{DictRLE, plain, sizes, nil, d.indexes},
		{DictFront, len(front), frontSizes, front, frontIndexes},
		{DictFrontRLE, len(front), frontSizes, front, frontIndexes},
		{DictSeg, len(segments), sizes, segments, d.indexes},
		{DictSegRLE, len(segments), sizes, segments, d.indexes},
	} {
		stream := indexStream(cand.enc)
		out.try(Candidate{Encoding: cand.enc, Size: cand.size + cand.sizes.of(stream)}, func(dst []byte) []byte {
			if cand.table != nil {
				dst = append(dst, cand.table...)
			} else {
				dst = wire.AppendVarint32(dst, int32(len(d.entries)))
				for _, s := range d.entries {
					dst = wire.AppendVarint32(dst, int32(len(s)))
					dst = append(dst, s...)
				}
			}
			return appendInts(dst, stream, cand.indexes)
		})
	}
}
