//go:build purego

package box

// Slab boxes values. Its zero value is ready.
type Slab[T Scalar] struct{}

// Box gives v as an any.
func (*Slab[T]) Box(v T) any { return v }
