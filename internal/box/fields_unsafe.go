//go:build !purego

package box

import (
	"reflect"
	"unsafe"
)

// Rows are values of one type that lie side by side: the elements of a slice.
type Rows struct {
	base unsafe.Pointer
	size uintptr
	n    int
}

// RowsOf gives the elements of a slice.
func RowsOf(slice reflect.Value) Rows {
	return Rows{slice.UnsafePointer(), slice.Type().Elem().Size(), slice.Len()}
}

// View gives values as rows of a type of their kind. The rows can be the values themselves.
func View[V any](_ reflect.Type, v []V) Rows {
	return Rows{unsafe.Pointer(unsafe.SliceData(v)), unsafe.Sizeof(*new(V)), len(v)}
}

// Len is the number of rows.
func (r Rows) Len() int { return r.n }

// Slice gives the rows [start, end).
func (r Rows) Slice(start, end int) Rows {
	if uint(start) > uint(end) || uint(end) > uint(r.n) {
		panic("box: rows out of range")
	}
	if start < end { // else base can be behind the rows
		r.base = unsafe.Add(r.base, uintptr(start)*r.size)
	}
	r.n = end - start
	return r
}

// Store sets the field at p, whose kind is that of V, of each row; v has a value for each.
func Store[V any](r Rows, p Place, v []V) {
	for i, x := range v[:r.n] {
		*(*V)(unsafe.Add(r.base, uintptr(i)*r.size+p.Offset)) = x
	}
}

// Widen is Store into a field of another kind, that of D.
func Widen[D, S Number](r Rows, p Place, v []S) {
	for i, x := range v[:r.n] {
		*(*D)(unsafe.Add(r.base, uintptr(i)*r.size+p.Offset)) = D(x)
	}
}

// Fetch is the reverse of Store.
func Fetch[V any](r Rows, p Place, v []V) {
	v = v[:r.n]
	for i := range v {
		v[i] = *(*V)(unsafe.Add(r.base, uintptr(i)*r.size+p.Offset))
	}
}

// StorePointers sets the pointers at p of the rows that are set to one row of the slab after another, and returns how
// many.
func StorePointers(r Rows, p Place, set []bool, slab Rows) int {
	k := 0
	for i, ok := range set[:r.n] {
		if ok {
			*(*unsafe.Pointer)(unsafe.Add(r.base, uintptr(i)*r.size+p.Offset)) = slab.Slice(k, k+1).base
			k++
		}
	}
	return k
}

// slice is how Go lays out a slice.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

// StoreSlices sets the slice at p of row i to the rows [offsets[i], offsets[i+1]) of the slab, with no capacity more.
func StoreSlices(r Rows, p Place, offsets []int32, slab Rows) {
	offsets = offsets[:r.n+1]
	for i := range r.n {
		s := slab.Slice(int(offsets[i]), int(offsets[i+1]))
		*(*slice)(unsafe.Add(r.base, uintptr(i)*r.size+p.Offset)) = slice{s.base, s.n, s.n}
	}
}
