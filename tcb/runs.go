package tcb

import (
	"encoding/binary"

	"github.com/spilehq/spile/internal/wire"
)

// small is what integer streams are made of: the values of columns, and the bytes of bitmaps and packed values.
type small interface{ ~int32 | ~byte }

// intStream decodes a stream of integers in VARINT, DELTA, RLE or DELTA_RLE, a stretch at a time. Its values wrap in 32
// bits (docs/format/tcb.md, "DELTA").
type intStream struct {
	b       *block
	enc     Encoding
	left    int // values that are still to come
	started bool
	prev    int32 // the value before, in the two walking forms
	run     int   // what is left of the run
	value   int32 // of the run: the value, or in DELTA_RLE the step
}

func (b *block) ints(enc Encoding, n int) intStream { return intStream{b: b, enc: enc, left: n} }

// fill decodes the next len(dst) values.
func (s *intStream) fill(dst []int32) error {
	s.left -= len(dst)
	switch s.enc {
	case Varint, Raw:
		return s.varints(dst)
	case Delta:
		return s.deltas(dst)
	case RLE:
		return s.runs(dst)
	}
	return s.deltaRuns(dst)
}

// longer are the bits of eight bytes which say that a number goes on.
const longer = 0x8080808080808080

func (s *intStream) varints(dst []int32) error {
	p, pos := s.b.p, s.b.pos
	for i := 0; i < len(dst); i++ {
		// Eight numbers of a byte each, which is what short numbers are most often, without looking at each.
		for i&7 == 0 && len(dst)-i >= 8 && len(p)-pos >= 8 {
			w := binary.LittleEndian.Uint64(p[pos:])
			if w&longer != 0 {
				break
			}
			v := (*[8]int32)(dst[i:])
			for k := range v {
				v[k] = wire.UnZigZag32(uint32(w) & 0x7f)
				w >>= 8
			}
			pos += 8
			i += 8
		}
		if i == len(dst) {
			break
		}
		// Numbers of one to three bytes, which most are, without a loop.
		if pos < len(p) && p[pos] < 0x80 {
			dst[i] = wire.UnZigZag32(uint32(p[pos]))
			pos++
			continue
		}
		if pos+1 < len(p) && p[pos+1] < 0x80 {
			dst[i] = wire.UnZigZag32(uint32(p[pos]&0x7f) | uint32(p[pos+1])<<7)
			pos += 2
			continue
		}
		if pos+2 < len(p) && p[pos+2] < 0x80 {
			dst[i] = wire.UnZigZag32(uint32(p[pos]&0x7f) | uint32(p[pos+1]&0x7f)<<7 | uint32(p[pos+2])<<14)
			pos += 3
			continue
		}
		v, n := wire.Varint32(p[pos:])
		if n <= 0 {
			return badVarint(pos, n)
		}
		dst[i] = v
		pos += n
	}
	s.b.pos = pos
	return nil
}

// deltas sums steps up; the first value is a step from 0.
func (s *intStream) deltas(dst []int32) error {
	p, pos, prev := s.b.p, s.b.pos, s.prev
	for i := 0; i < len(dst); i++ {
		for i&7 == 0 && len(dst)-i >= 8 && len(p)-pos >= 8 {
			w := binary.LittleEndian.Uint64(p[pos:])
			if w&longer != 0 {
				break
			}
			v := (*[8]int32)(dst[i:])
			for k := range v {
				prev += wire.UnZigZag32(uint32(w) & 0x7f)
				v[k] = prev
				w >>= 8
			}
			pos += 8
			i += 8
		}
		if i == len(dst) {
			break
		}
		if pos < len(p) && p[pos] < 0x80 {
			prev += wire.UnZigZag32(uint32(p[pos]))
			pos++
			dst[i] = prev
			continue
		}
		if pos+1 < len(p) && p[pos+1] < 0x80 {
			prev += wire.UnZigZag32(uint32(p[pos]&0x7f) | uint32(p[pos+1])<<7)
			pos += 2
			dst[i] = prev
			continue
		}
		if pos+2 < len(p) && p[pos+2] < 0x80 {
			prev += wire.UnZigZag32(uint32(p[pos]&0x7f) | uint32(p[pos+1]&0x7f)<<7 | uint32(p[pos+2])<<14)
			pos += 3
			dst[i] = prev
			continue
		}
		v, n := wire.Varint32(p[pos:])
		if n <= 0 {
			return badVarint(pos, n)
		}
		prev += v
		dst[i] = prev
		pos += n
	}
	s.b.pos, s.prev = pos, prev
	return nil
}

// next reads a run, which may be as long as left at most.
func (s *intStream) next(left int) error {
	at := s.b.pos
	n, err := s.b.counter()
	switch {
	case err != nil:
		return err
	case n < 1:
		return failed("D2", "a run of %d, runs start at 1", n).At(int64(at))
	case int(n) > left:
		return failed("D2", "a run of %d, and %d values are left", n, left).At(int64(at))
	}
	s.run = int(n)
	s.value, err = s.b.counter()
	return err
}

func (s *intStream) runs(dst []int32) error {
	for len(dst) > 0 {
		if s.run == 0 {
			if err := s.next(s.left + len(dst)); err != nil {
				return err
			}
		}
		n := min(s.run, len(dst))
		for i := range dst[:n] {
			dst[i] = s.value
		}
		s.run -= n
		dst = dst[n:]
	}
	return nil
}

func (s *intStream) deltaRuns(dst []int32) error {
	if !s.started && len(dst) > 0 {
		first, err := s.b.counter()
		if err != nil {
			return err
		}
		s.started, s.prev, dst[0] = true, first, first
		dst = dst[1:]
	}
	for len(dst) > 0 {
		if s.run == 0 {
			if err := s.next(s.left + len(dst)); err != nil {
				return err
			}
		}
		n := min(s.run, len(dst))
		prev, step := s.prev, s.value
		for i := range dst[:n] {
			prev += step
			dst[i] = prev
		}
		s.prev = prev
		s.run -= n
		dst = dst[n:]
	}
	return nil
}

// chunk is how many values of a stream are decoded at once on their way elsewhere: 1 KiB, on the stack. With a buffer on
// the heap instead, a set of many small tables allocates more for its buffers than for its columns.
const chunk = 256

// byteStream decodes the n bytes of a bitmap or of packed values (docs/format/tcb.md, "Byte streams"). RAW bytes are not
// copied.
func (b *block) byteStream(enc byte, n int64) ([]byte, error) {
	e := Encoding(enc)
	if e > DeltaRLE {
		return nil, b.fail("D5", "%s (%d) inside, where 0 to 4 can be", e, enc)
	}
	if e == Raw {
		return b.bytes(n, "a stream")
	}
	if e != RLE && e != DeltaRLE {
		if err := b.enough(int(n), 1); err != nil {
			return nil, err
		}
	}
	if err := b.budget.take(n, 1); err != nil {
		return nil, err
	}
	out := make([]byte, n)
	s := b.ints(e, int(n))
	var buf [chunk]int32
	for dst := out; len(dst) > 0; {
		v := buf[:min(chunk, len(dst))]
		if err := s.fill(v); err != nil {
			return nil, err
		}
		for i, x := range v {
			if uint32(x) > 0xff {
				return nil, b.fail("D6", "the value %d in a stream of bytes", x)
			}
			dst[i] = byte(x)
		}
		dst = dst[len(v):]
	}
	return out, nil
}

// bitmap decodes a bitmap of n bits.
func (b *block) bitmap(n int, of string) (Bitmap, error) {
	enc, err := b.byte("encoding of the bitmap of " + of)
	if err != nil {
		return nil, err
	}
	if Encoding(enc) > DeltaRLE {
		b.pos--
		return nil, b.fail("D5", "the bitmap of %s is stored in %s (%d), where 0 to 4 can be", of, Encoding(enc), enc)
	}
	p, err := b.byteStream(enc, int64(bitmapSize(n)))
	if err != nil {
		return nil, err
	}
	// A bitmap is written to when the bits behind its end are cleared, and must not keep the block.
	return append(make(Bitmap, 0, len(p)), p...), nil
}

// The sizes of the four forms of an integer stream.
type streamSizes struct{ varint, delta, rle, deltaRLE int }

// least returns the smallest form among VARINT, DELTA, RLE and DELTA_RLE, the lower number on a tie.
func (s streamSizes) least() (Encoding, int) {
	enc, size := Varint, s.varint
	for _, c := range []struct {
		enc  Encoding
		size int
	}{{Delta, s.delta}, {RLE, s.rle}, {DeltaRLE, s.deltaRLE}} {
		if c.size < size {
			enc, size = c.enc, c.size
		}
	}
	return enc, size
}

func (s streamSizes) of(e Encoding) int {
	switch e {
	case Varint:
		return s.varint
	case Delta:
		return s.delta
	case RLE:
		return s.rle
	}
	return s.deltaRLE
}

// sizesOf returns what each form of the stream would take.
func sizesOf[T small](v []T) streamSizes {
	var s streamSizes
	if len(v) == 0 {
		return s
	}
	first := int32(v[0])
	size := wire.Varint32Size(first)
	s.varint, s.delta, s.deltaRLE = size, size, size
	prev, valueSize := first, size
	run := 1                                   // of prev, whose size is valueSize
	var step, stepSize, steps = int32(0), 0, 0 // the run of steps
	for _, x := range v[1:] {
		x := int32(x)
		d := x - prev
		if d == 0 {
			run++
		} else {
			s.rle += wire.Varint32Size(int32(run)) + valueSize
			run, prev, valueSize = 1, x, wire.Varint32Size(x)
		}
		s.varint += valueSize
		if steps > 0 && d == step {
			steps++
		} else {
			if steps > 0 {
				s.deltaRLE += wire.Varint32Size(int32(steps)) + stepSize
			}
			step, stepSize, steps = d, wire.Varint32Size(d), 1
		}
		s.delta += stepSize
	}
	s.rle += wire.Varint32Size(int32(run)) + valueSize
	if steps > 0 {
		s.deltaRLE += wire.Varint32Size(int32(steps)) + stepSize
	}
	return s
}

// indexSizes is sizesOf for the indexes of a dictionary, which are stored in VARINT or RLE.
func indexSizes(v []int32) (s streamSizes) {
	if len(v) == 0 {
		return s
	}
	prev, size := v[0], wire.Varint32Size(v[0])
	start := 0 // of the run of prev
	for i, x := range v {
		if x != prev {
			s.varint += size * (i - start)
			s.rle += wire.Varint32Size(int32(i-start)) + size
			start, prev, size = i, x, wire.Varint32Size(x)
		}
	}
	s.varint += size * (len(v) - start)
	s.rle += wire.Varint32Size(int32(len(v)-start)) + size
	return s
}

// appendInts appends the stream in VARINT (or RAW, which is the same for what counters hold), DELTA, RLE or DELTA_RLE.
func appendInts[T small](dst []byte, enc Encoding, v []T) []byte {
	if len(v) == 0 {
		return dst
	}
	switch enc {
	case Varint, Raw:
		for _, x := range v {
			dst = wire.AppendVarint32(dst, int32(x))
		}
	case Delta:
		prev := int32(0)
		for _, x := range v {
			dst = wire.AppendVarint32(dst, int32(x)-prev)
			prev = int32(x)
		}
	case RLE:
		run := 0
		for i, x := range v {
			if run++; i+1 == len(v) || v[i+1] != x {
				dst = wire.AppendVarint32(dst, int32(run))
				dst = wire.AppendVarint32(dst, int32(x))
				run = 0
			}
		}
	case DeltaRLE:
		dst = wire.AppendVarint32(dst, int32(v[0]))
		run := 0
		for i := 1; i < len(v); i++ {
			step := int32(v[i]) - int32(v[i-1])
			if run++; i+1 == len(v) || int32(v[i+1])-int32(v[i]) != step {
				dst = wire.AppendVarint32(dst, int32(run))
				dst = wire.AppendVarint32(dst, step)
				run = 0
			}
		}
	}
	return dst
}

// chooseBytes returns the shortest of the five forms of a byte stream, and its size. VARINT and DELTA take a byte a value
// at least, so that RAW, which comes first, is never longer than they are: what can be shorter is runs.
func chooseBytes(p []byte) (Encoding, int) {
	rle, deltaRLE := runSizes(p)
	switch {
	case len(p) <= min(rle, deltaRLE):
		return Raw, len(p)
	case deltaRLE < rle:
		return DeltaRLE, deltaRLE
	}
	return RLE, rle
}

// runSizes returns what RLE and DELTA_RLE take. It ends early, with less, when both are as long as the bytes are.
func runSizes(p []byte) (rle, deltaRLE int) {
	if len(p) == 0 {
		return 0, 0
	}
	prev := p[0]
	deltaRLE = byteSize(prev)
	run := int32(1)                            // of prev
	var step, stepSize, steps = 0, 0, int32(0) // the run of steps
	for rest := p[1:]; len(rest) > 0; {
		if rle >= len(p) && deltaRLE >= len(p) {
			return rle, deltaRLE
		}
		part := rest[:min(len(rest), 1024)]
		rest = rest[len(part):]
		for _, x := range part {
			d := int(x) - int(prev)
			if d == 0 {
				run++
			} else {
				rle += wire.Varint32Size(run) + byteSize(prev)
				run, prev = 1, x
			}
			if steps > 0 && d == step {
				steps++
				continue
			}
			if steps > 0 {
				deltaRLE += wire.Varint32Size(steps) + stepSize
			}
			step, stepSize, steps = d, 1, 1
			if d < -64 || d > 63 {
				stepSize = 2
			}
		}
	}
	rle += wire.Varint32Size(run) + byteSize(prev)
	if steps > 0 {
		deltaRLE += wire.Varint32Size(steps) + stepSize
	}
	return rle, deltaRLE
}

// byteSize is the length of a byte as a number.
func byteSize(x byte) int {
	if x < 64 {
		return 1
	}
	return 2
}

// appendBytes appends a byte stream.
func appendBytes(dst []byte, enc Encoding, p []byte) []byte {
	if enc == Raw {
		return append(dst, p...)
	}
	return appendInts(dst, enc, p)
}
