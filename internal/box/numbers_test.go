package box

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

// sameNumbers compares Numbers with its plain twin, at every alignment of the bytes, and behind a collection.
func sameNumbers[T Fixed](t *testing.T) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	size := int(unsafe.Sizeof(*new(T)))
	for n := range 70 {
		p := make([]byte, n*size+8)
		for i := range p {
			p[i] = byte(random.Uint32())
		}
		for shift := range 8 {
			q := p[shift:][:n*size]
			got, want := Numbers[T](q), numbers[T](q)
			if got == nil || len(got) != n || cap(got) != n {
				t.Fatalf("%d numbers of %d bytes: %d, capacity %d", n, size, len(got), cap(got))
			}
			if inPlace, ok := InPlace[T](q); ok && !bytes.Equal(bytesOf(inPlace), q) {
				t.Fatalf("%v in place of % x", inPlace, q)
			}
			// NaN is not itself: compare the bytes.
			if n > 0 && !bytes.Equal(bytesOf(got), bytesOf(want)) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	}
	runtime.GC()
	p := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	v := Numbers[T](p)
	want := v[0]
	clear(p)
	if v[0] != want {
		t.Error("the numbers share the memory of the bytes")
	}
}

func bytesOf[T Fixed](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

func TestNumbers(t *testing.T) {
	t.Run("int32", sameNumbers[int32])
	t.Run("int64", sameNumbers[int64])
	t.Run("float32", sameNumbers[float32])
	t.Run("float64", sameNumbers[float64])
}
