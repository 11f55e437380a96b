package tcb

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
)

// packed is what a BITPACK block holds (docs/format/tcb.md, "BITPACK"): value i is base + slot i, a number of width bits.
type packed struct {
	width int
	base  int64
	bits  []byte // of the slots, the lowest first
}

// packedSize is the length in bytes of n slots.
func packedSize(n, width int) int64 { return (int64(n)*int64(width) + 7) / 8 }

// bitpack decodes the header and the slots of n values.
func (b *block) bitpack(n int) (p packed, err error) {
	width, err := b.byte("width")
	if err != nil {
		return p, err
	}
	if width < 1 || width > 64 {
		b.pos--
		return p, b.fail("D7", "bitpack width %d, 1 to 64", width)
	}
	base, k := wire.Varint64(b.p[b.pos:])
	if k <= 0 {
		return p, badVarint(b.pos, k)
	}
	b.pos += k
	inner, err := b.byte("encoding of the packed bytes")
	if err != nil {
		return p, err
	}
	if Encoding(inner) > DeltaRLE {
		b.pos--
		return p, b.fail("D5", "packed bytes are stored in %s (%d), where 0 to 4 can be", Encoding(inner), inner)
	}
	size := packedSize(n, int(width))
	if size > math.MaxInt32 {
		return p, b.fail("D7", "%d packed bytes, at most %d", size, math.MaxInt32)
	}
	if size > math.MaxInt/8 {
		return p, fault.New(fault.Limit, "tcb", "%d packed bytes, more than a program of %d bits tells the bits of", size, bits.UintSize).At(int64(b.pos))
	}
	p.width, p.base = int(width), base
	p.bits, err = b.byteStream(inner, size)
	return p, err
}

// word is the eight bytes from at on.
func word(p []byte, at int) uint64 { return binary.LittleEndian.Uint64(p[at:]) }

// mask has the bits of a slot.
func (p packed) mask() uint64 { return math.MaxUint64 >> (64 - p.width) }

// slot is slot i, in whatever way the bits lie.
func (p packed) slot(i int) uint64 {
	bit := i * p.width
	at, shift := bit>>3, bit&7
	var w [16]byte
	copy(w[:], p.bits[at:min(len(p.bits), at+9)])
	v := word(w[:], 0) >> shift
	if shift > 0 {
		v |= uint64(w[8]) << (64 - shift)
	}
	return v & p.mask()
}

// inWords is how many of n slots can be read by their first ones as words of eight bytes each, which hold a slot of up to
// 57 bits whole wherever in the first byte it starts.
func (p packed) inWords(n int) int {
	if p.width > 57 || len(p.bits) < 8 {
		return 0
	}
	return min(n, ((len(p.bits)-8)*8+7)/p.width+1)
}

// unpack decodes the slots. Narrow ones are taken from a word four or two at a time.
func unpack[T int32 | int64](p packed, out []T, base T) {
	width, mask, bits := p.width, p.mask(), p.bits
	n := p.inWords(len(out))
	i, bit := 0, 0
	switch {
	case width <= 14:
		step := uint(width)
		for ; i+4 <= n; i += 4 {
			w := word(bits, bit>>3) >> (bit & 7)
			v := (*[4]T)(out[i:])
			v[0] = base + T(w&mask)
			v[1] = base + T(w>>(step&63)&mask)
			v[2] = base + T(w>>(2*step&63)&mask)
			v[3] = base + T(w>>(3*step&63)&mask)
			bit += 4 * width
		}
	case width <= 28:
		step := uint(width)
		for ; i+2 <= n; i += 2 {
			w := word(bits, bit>>3) >> (bit & 7)
			v := (*[2]T)(out[i:])
			v[0] = base + T(w&mask)
			v[1] = base + T(w>>(step&63)&mask)
			bit += 2 * width
		}
	}
	for ; i < n; i++ {
		out[i] = base + T(word(bits, bit>>3)>>(bit&7)&mask)
		bit += width
	}
	for ; i < len(out); i++ {
		out[i] = base + T(p.slot(i))
	}
}

// int32s decodes the slots as 32-bit integers.
func (p packed) int32s(out []int32) error {
	base := p.base
	top := base + int64(p.mask())
	if p.width <= 32 && base >= math.MinInt32 && base <= math.MaxInt32 && top <= math.MaxInt32 {
		unpack(p, out, int32(base))
		return nil
	}
	var buf [chunk]int64
	for at := 0; at < len(out); at += chunk {
		v := buf[:min(chunk, len(out)-at)]
		p.stretch(v, at)
		for i, x := range v {
			if x != int64(int32(x)) {
				return failed("D7", "the value %d, which has more than 32 bits", x)
			}
			out[at+i] = int32(x)
		}
	}
	return nil
}

func (p packed) int64s(out []int64) { unpack(p, out, p.base) }

// stretch decodes the slots from at on, which is a multiple of 8.
func (p packed) stretch(out []int64, at int) {
	p.bits = p.bits[at/8*p.width:]
	unpack(p, out, p.base)
}

func (p packed) bools(out []bool) {
	if p.width == 1 && p.base == 0 {
		i := 0
		for ; i+8 <= len(out); i += 8 {
			v, b := (*[8]bool)(out[i:]), p.bits[i/8]
			for k := range v {
				v[k] = b&1 != 0
				b >>= 1
			}
		}
		for ; i < len(out); i++ {
			out[i] = p.slot(i) != 0
		}
		return
	}
	var buf [chunk]int64
	for at := 0; at < len(out); at += chunk {
		v := buf[:min(chunk, len(out)-at)]
		p.stretch(v, at)
		for i, x := range v {
			out[at+i] = x != 0
		}
	}
}

// pack makes the slots of the values, of which there is one at least.
func pack[T byte | int32 | int64](v []T) packed {
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	p := packed{base: int64(lo), width: max(1, bits.Len64(uint64(int64(hi))-uint64(int64(lo))))}
	size := packedSize(len(v), p.width)
	p.bits = make([]byte, size+16) // so that each word can be written whole
	var word uint64
	have, at := 0, 0
	for _, x := range v {
		slot := uint64(int64(x)) - uint64(p.base)
		word |= slot << have
		if have += p.width; have >= 64 {
			binary.LittleEndian.PutUint64(p.bits[at:], word)
			at += 8
			have -= 64
			word = slot >> (p.width - have)
		}
	}
	binary.LittleEndian.PutUint64(p.bits[at:], word)
	p.bits = p.bits[:size]
	return p
}

// append appends the block, its bytes in the encoding inner.
func (p packed) append(dst []byte, inner Encoding) []byte {
	dst = append(dst, byte(p.width))
	dst = wire.AppendVarint64(dst, p.base)
	dst = append(dst, byte(inner))
	return appendBytes(dst, inner, p.bits)
}

// choose returns the shortest encoding of the packed bytes, and the size of the whole block.
func (p packed) choose() (inner Encoding, size int) {
	inner, size = chooseBytes(p.bits)
	return inner, p.headSize() + size
}

// headSize is the length of what stands in front of the packed bytes.
func (p packed) headSize() int { return 2 + wire.Varint64Size(p.base) }
