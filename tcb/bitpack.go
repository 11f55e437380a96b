package tcb

import (
	"encoding/binary"
	"math"
	"math/bits"

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
	p.width, p.base = int(width), base
	p.bits, err = b.byteStream(inner, size)
	return p, err
}

// slots calls use with stretches of the slots.
func unpack[T int32 | int64 | bool](p packed, out []T, of func(slot uint64) T) {
	mask := uint64(math.MaxUint64) >> (64 - p.width)
	i, bit, step := 0, 0, p.width
	// Eight bytes from where a slot starts hold it whole when it has up to 57 bits.
	if step <= 57 {
		for ; i < len(out); i++ {
			at := bit >> 3
			if at+8 > len(p.bits) {
				break
			}
			out[i] = of(binary.LittleEndian.Uint64(p.bits[at:]) >> (bit & 7) & mask)
			bit += step
		}
	}
	for ; i < len(out); i++ {
		at, shift := bit>>3, bit&7
		var w [16]byte
		copy(w[:], p.bits[at:min(len(p.bits), at+9)])
		v := binary.LittleEndian.Uint64(w[:]) >> shift
		if shift > 0 {
			v |= uint64(w[8]) << (64 - shift)
		}
		out[i] = of(v & mask)
		bit += step
	}
}

// int32s decodes the slots as 32-bit integers.
func (p packed) int32s(out []int32) error {
	base := p.base
	top := base + int64(uint64(math.MaxUint64)>>(64-p.width))
	if p.width <= 32 && base >= math.MinInt32 && base <= math.MaxInt32 && top <= math.MaxInt32 {
		base := int32(base)
		unpack(p, out, func(slot uint64) int32 { return base + int32(slot) })
		return nil
	}
	var wide int64
	found := false
	unpack(p, out, func(slot uint64) int32 {
		v := base + int64(slot)
		if v != int64(int32(v)) && !found {
			wide, found = v, true
		}
		return int32(v)
	})
	if found {
		return failed("D7", "the value %d, which has more than 32 bits", wide)
	}
	return nil
}

func (p packed) int64s(out []int64) {
	base := p.base
	unpack(p, out, func(slot uint64) int64 { return base + int64(slot) })
}

func (p packed) bools(out []bool) {
	base := p.base
	unpack(p, out, func(slot uint64) bool { return base+int64(slot) != 0 })
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
