// Package wire reads and appends the numbers of binary formats: pure functions on bytes, no state, no error values.
//
// A read returns the value and the bytes it took; 0 bytes mean that the input ends inside the number, and a negative
// count says that it is wider than its type (see [Wide]).
package wire

import "math/bits"

// Wide is the count of a variable-length number that has more groups than its type, or set bits beyond it.
const Wide = -1

// ZigZag32 maps 0, -1, 1, -2 … to 0, 1, 2, 3 …
func ZigZag32(v int32) uint32 { return uint32(v)<<1 ^ uint32(v>>31) }

// ZigZag64 is ZigZag32 for 64 bits.
func ZigZag64(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// UnZigZag32 is the inverse of ZigZag32.
func UnZigZag32(u uint32) int32 { return int32(u>>1) ^ -int32(u&1) }

// UnZigZag64 is the inverse of ZigZag64.
func UnZigZag64(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// Uvarint32 reads an unsigned number of 7 bits a byte, least significant group first, of at most 5 bytes.
func Uvarint32(p []byte) (uint32, int) {
	var v uint32
	for i, b := range p {
		switch {
		case i == 4 && b > 0x0f:
			return 0, Wide
		case b < 0x80:
			return v | uint32(b)<<(7*i), i + 1
		}
		v |= uint32(b&0x7f) << (7 * i)
	}
	return 0, 0
}

// Uvarint64 is Uvarint32 for 64 bits, at most 10 bytes.
func Uvarint64(p []byte) (uint64, int) {
	var v uint64
	for i, b := range p {
		switch {
		case i == 9 && b > 1:
			return 0, Wide
		case b < 0x80:
			return v | uint64(b)<<(7*i), i + 1
		}
		v |= uint64(b&0x7f) << (7 * i)
	}
	return 0, 0
}

// Varint32 reads a zigzag number of at most 5 bytes.
func Varint32(p []byte) (int32, int) {
	u, n := Uvarint32(p)
	return UnZigZag32(u), n
}

// Varint64 reads a zigzag number of at most 10 bytes.
func Varint64(p []byte) (int64, int) {
	u, n := Uvarint64(p)
	return UnZigZag64(u), n
}

// AppendUvarint64 appends the shortest form of v. It is also that of a 32-bit number.
func AppendUvarint64(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// AppendVarint32 appends the shortest zigzag form of v.
func AppendVarint32(dst []byte, v int32) []byte { return AppendUvarint64(dst, uint64(ZigZag32(v))) }

// AppendVarint64 appends the shortest zigzag form of v.
func AppendVarint64(dst []byte, v int64) []byte { return AppendUvarint64(dst, ZigZag64(v)) }

// Varint32Size is the length of AppendVarint32(nil, v). For the number of bits n, (9n+64)/64 is n/7 rounded up, without a
// division.
func Varint32Size(v int32) int { return (9*bits.Len32(ZigZag32(v)|1) + 64) >> 6 }

// Varint64Size is the length of AppendVarint64(nil, v).
func Varint64Size(v int64) int { return (9*bits.Len64(ZigZag64(v)|1) + 64) >> 6 }

// Uvarint64Size is the length of AppendUvarint64(nil, v).
func Uvarint64Size(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
