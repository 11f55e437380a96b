//go:build !purego && (386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package box

import "unsafe"

// Numbers gives the little-endian numbers of p, whose length is a multiple of theirs, in memory of their own. It is a
// copy, into memory that append does not clear before: a loop over a million numbers takes three times as long.
func Numbers[T Fixed](p []byte) []T {
	if len(p) == 0 {
		return []T{}
	}
	q := append([]byte(nil), p...) // an allocation of a multiple of 8 bytes is aligned to 8, one of 4 to 4
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(q))), len(p)/int(unsafe.Sizeof(*new(T))))
}

// InPlace is Numbers in the memory of p, when that is aligned for them. The bytes are then the numbers.
func InPlace[T Fixed](p []byte) ([]T, bool) {
	data := unsafe.Pointer(unsafe.SliceData(p))
	if size := unsafe.Sizeof(*new(T)); len(p) > 0 && uintptr(data)%size == 0 {
		return unsafe.Slice((*T)(data), len(p)/int(size)), true
	}
	return nil, false
}
