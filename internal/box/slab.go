//go:build !purego

package box

import (
	"unsafe"
)

// Slab boxes values. Its zero value is ready.
type Slab[T Scalar] struct {
	chunk *[Size]T
	left  uint // places of chunk that are free, the first ones
	typ   unsafe.Pointer
}

// words is how Go lays out an any: the type, and a pointer to a value that nobody writes to again.
type words struct {
	typ, data unsafe.Pointer
}

// Box gives v as an any.
func (s *Slab[T]) Box(v T) any {
	if s.left == 0 {
		s.grow()
	}
	s.left--
	p := &s.chunk[s.left%Size]
	*p = v
	w := words{s.typ, unsafe.Pointer(p)}
	return *(*any)(unsafe.Pointer(&w))
}

//go:noinline
func (s *Slab[T]) grow() {
	var model any = *new(T)
	s.chunk, s.left, s.typ = new([Size]T), Size, (*words)(unsafe.Pointer(&model)).typ
}
