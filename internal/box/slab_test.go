package box

import (
	"fmt"
	"runtime"
	"testing"
)

// boxed checks n values against what Go makes of them, behind a collection.
func boxed[T Scalar](t *testing.T, n int, value func(i int) T) {
	t.Helper()
	var s Slab[T]
	var got []any
	for i := range n {
		got = append(got, s.Box(value(i)))
		if i%Size == 3 {
			runtime.GC()
		}
	}
	s = Slab[T]{}
	runtime.GC()
	for i, v := range got {
		if want := any(value(i)); v != want {
			t.Fatalf("value %d is %#v, want %#v", i, v, want)
		}
		if x, ok := v.(T); !ok || x != value(i) {
			t.Fatalf("value %d asserts to %v, %v", i, x, ok)
		}
	}
	m := map[any]int{}
	for i, v := range got {
		m[v] = i
	}
	for i := range n {
		if m[value(i)] != i {
			t.Fatalf("value %d is not found as a key", i)
		}
	}
}

func TestBox(t *testing.T) {
	const n = 5*Size + 1
	boxed(t, n, func(i int) int64 { return int64(i) - 3 })
	boxed(t, n, func(i int) uint64 { return uint64(i) << 40 })
	boxed(t, n, func(i int) float64 { return float64(i) / 3 })
	boxed(t, n, func(i int) string { return fmt.Sprint(i) })
}

func BenchmarkBox(b *testing.B) {
	var s Slab[float64]
	var sink any
	b.Run("slab", func(b *testing.B) {
		b.ReportAllocs()
		f := 1.5
		for b.Loop() {
			f++
			sink = s.Box(f)
		}
	})
	b.Run("go", func(b *testing.B) {
		b.ReportAllocs()
		f := 1.5
		for b.Loop() {
			f++
			sink = f
		}
	})
	_ = sink
}
