// Package box makes interfaces whose values lie in slabs. Go allocates a box for each number and each string that
// becomes an any. Decoding records of ten pairs makes 500,000 allocations with slabs, 880,000 without; what remains is
// maps and lists.
//
// A slab is small, since one value that is kept keeps all of its slab, and what the strings in it point to. A Slab is
// not safe for concurrent use; the values that it has boxed are.
//
// It also sets a field of many structs at once from the values of a column ([Store]). To read a table of ten columns
// into structs takes 300 ns a row this way, of which 230 make the columns, and 1,570 ns by reflection. The caller
// vouches for the types.
//
// And it makes numbers of their little-endian bytes by one copy ([Numbers]), or by none ([InPlace]), and a string of
// bytes by none ([Text]).
//
// It is the one package of this module that uses unsafe. The build tag purego takes the twin without: the same values,
// each in a box of its own, and fields set by reflection.
package box

// Size is the number of values in a slab: 256 bytes of numbers, 512 of strings. Of the allocations of boxes it leaves
// 3 in a hundred; more would win little and keep more.
const Size = 32

// Scalar is what can be boxed: types whose interface holds a pointer to the value.
type Scalar interface {
	int64 | uint64 | float64 | string
}
