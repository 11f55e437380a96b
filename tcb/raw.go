package tcb

import (
	"encoding/binary"
	"math"

	"github.com/spilehq/spile/internal/box"
	"github.com/spilehq/spile/internal/wire"
)

// int32s decodes the values of an I32 or Enum column.
func (b *block) int32s(c *Column, enc Encoding, n int) error {
	if enc == Raw && c.Type.Element == I32 {
		p, err := b.bytes(4*int64(n), "values")
		if err == nil {
			c.Int32s = numbersOf[int32](b, p)
		}
		return err
	}
	c.Int32s = make([]int32, n)
	if enc == BitPack {
		p, err := b.bitpack(n)
		if err != nil {
			return err
		}
		return p.int32s(c.Int32s)
	}
	s := b.ints(enc, n)
	return s.fill(c.Int32s)
}

// bools decodes the values of a Bool column: any number but 0 is true.
func (b *block) bools(c *Column, enc Encoding, n int) error {
	c.Bools = make([]bool, n)
	switch enc {
	case Raw:
		p, err := b.bytes(int64(n), "values")
		for i := range p {
			c.Bools[i] = p[i] != 0
		}
		return err
	case BitPack:
		p, err := b.bitpack(n)
		if err == nil {
			p.bools(c.Bools)
		}
		return err
	}
	s := b.ints(enc, n)
	var buf [chunk]int32
	for dst := c.Bools; len(dst) > 0; {
		v := buf[:min(chunk, len(dst))]
		if err := s.fill(v); err != nil {
			return err
		}
		for i, x := range v {
			dst[i] = x != 0
		}
		dst = dst[len(v):]
	}
	return nil
}

func (b *block) int64s(c *Column, enc Encoding, n int) (err error) {
	if enc == BitPack {
		c.Int64s = make([]int64, n)
		p, err := b.bitpack(n)
		if err == nil {
			p.int64s(c.Int64s)
		}
		return err
	}
	c.Int64s, err = fixedValues[int64](b, enc, n, 8)
	return err
}

func (b *block) float32s(c *Column, enc Encoding, n int) (err error) {
	if enc == Whole {
		c.Float32s = make([]float32, n)
		return wholes(b, c.Float32s)
	}
	c.Float32s, err = fixedValues[float32](b, enc, n, 4)
	return err
}

func (b *block) float64s(c *Column, enc Encoding, n int) (err error) {
	if enc == Whole {
		c.Float64s = make([]float64, n)
		return wholes(b, c.Float64s)
	}
	c.Float64s, err = fixedValues[float64](b, enc, n, 8)
	return err
}

func (b *block) guids(c *Column, n int) error {
	p, err := b.bytes(16*int64(n), "values")
	if err != nil {
		return err
	}
	c.UUIDs = make([]GUID, n)
	for i := range c.UUIDs {
		c.UUIDs[i] = GUID(p[16*i:])
	}
	return nil
}

// fixedValues decodes n values of a fixed width: RAW, or through a dictionary.
func fixedValues[T box.Fixed](b *block, enc Encoding, n int, width int64) ([]T, error) {
	if enc == Raw {
		p, err := b.bytes(width*int64(n), "values")
		if err != nil {
			return nil, err
		}
		return numbersOf[T](b, p), nil
	}
	count, err := b.count("entry count")
	if err != nil {
		return nil, err
	}
	p, err := b.bytes(width*int64(count), "a dictionary")
	if err != nil {
		return nil, err
	}
	out := make([]T, n)
	return out, gather(b, enc == DictRLE, out, box.Numbers[T](p))
}

// numbersOf gives the numbers in bytes of the block, where they are if they can stay there.
func numbersOf[T box.Fixed](b *block, p []byte) []T {
	if b.own {
		if v, ok := box.InPlace[T](p); ok {
			return v
		}
	}
	return box.Numbers[T](p)
}

// gather decodes an index stream and looks each value up.
func gather[T any](b *block, rle bool, out, entries []T) error {
	enc := Varint
	if rle {
		enc = RLE
	} else if err := b.enough(len(out), 1); err != nil {
		return err
	}
	s := b.ints(enc, len(out))
	var buf [chunk]int32
	for len(out) > 0 {
		v := buf[:min(chunk, len(out))]
		if err := s.fill(v); err != nil {
			return err
		}
		dst := out[:len(v)]
		for i, x := range v {
			if uint(x) >= uint(len(entries)) {
				return b.fail("D3", "index %d into a dictionary of %d", x, len(entries))
			}
			dst[i] = entries[x]
		}
		out = out[len(v):]
	}
	return nil
}

// wholes decodes floats that are stored as integers (docs/format/tcb.md, "WHOLE").
func wholes[T float32 | float64](b *block, out []T) error {
	inner, err := b.byte("encoding of the whole numbers")
	if err != nil {
		return err
	}
	enc := Encoding(inner)
	if enc < Varint || enc > DeltaRLE {
		b.pos--
		return b.fail("D5", "whole numbers are stored in %s (%d), where 1 to 4 can be", enc, inner)
	}
	s := b.ints(enc, len(out))
	var buf [chunk]int32
	for len(out) > 0 {
		v := buf[:min(chunk, len(out))]
		if err := s.fill(v); err != nil {
			return err
		}
		dst := out[:len(v)]
		for i, x := range v {
			dst[i] = T(x)
		}
		out = out[len(v):]
	}
	return nil
}

// asWholes returns the values as integers when each is one, with the very bits that the integer converts to.
func asWholes[T float32 | float64](v []T) ([]int32, bool) {
	for _, x := range v[:min(len(v), 100)] { // most columns are found out before anything is allocated
		if _, ok := asWhole(x); !ok {
			return nil, false
		}
	}
	out := make([]int32, len(v))
	for i, x := range v {
		n, ok := asWhole(x)
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

func asWhole[T float32 | float64](x T) (int32, bool) {
	f := float64(x)
	if !(f >= math.MinInt32 && f <= math.MaxInt32) {
		return 0, false
	}
	n := int32(f)
	// T(n) == x holds for -0.0, which is not +0.0.
	return n, T(n) == x && !(n == 0 && math.Signbit(f))
}

// appendRaw appends values [start, end) in the RAW form.
func (c *Column) appendRaw(dst []byte, start, end int) []byte {
	switch c.Type.Element {
	case Enum:
		return appendInts(dst, Raw, c.Int32s[start:end])
	case Bool:
		for _, x := range c.Bools[start:end] {
			if x {
				dst = append(dst, 1)
			} else {
				dst = append(dst, 0)
			}
		}
	case I32:
		for _, x := range c.Int32s[start:end] {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
		}
	case I64:
		for _, x := range c.Int64s[start:end] {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
		}
	case F32:
		for _, x := range c.Float32s[start:end] {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	case F64:
		for _, x := range c.Float64s[start:end] {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
		}
	case String:
		for _, x := range c.Strings[start:end] {
			dst = wire.AppendVarint32(dst, int32(len(x)))
			dst = append(dst, x...)
		}
	case UUID:
		for i := range c.UUIDs[start:end] {
			dst = append(dst, c.UUIDs[start+i][:]...)
		}
	}
	return dst
}

// rawSize is the length of appendRaw of all values.
func (c *Column) rawSize() int {
	if size, fixed := c.Type.Element.rawSize(); fixed {
		return int(size) * c.Len()
	}
	n := 0
	for _, x := range c.Int32s {
		n += wire.Varint32Size(x)
	}
	for _, x := range c.Strings {
		n += wire.Varint32Size(int32(len(x))) + len(x)
	}
	return n
}
