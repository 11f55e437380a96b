//go:build purego || !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package box

// Numbers gives the little-endian numbers of p, whose length is a multiple of theirs, in memory of their own.
func Numbers[T Fixed](p []byte) []T { return numbers[T](p) }

// InPlace is Numbers in the memory of p, which it cannot be here.
func InPlace[T Fixed]([]byte) ([]T, bool) { return nil, false }
