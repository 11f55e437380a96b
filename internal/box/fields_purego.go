//go:build purego

package box

import "reflect"

// Rows are values of one type that lie side by side: the elements of a slice.
type Rows struct{ v reflect.Value }

// RowsOf gives the elements of a slice.
func RowsOf(slice reflect.Value) Rows { return Rows{slice} }

// View gives values as rows of a type of their kind. The rows can be the values themselves.
func View[V any](t reflect.Type, v []V) Rows {
	r := Rows{reflect.MakeSlice(reflect.SliceOf(t), len(v), len(v))}
	Store(r, Place{}, v)
	return r
}

// Len is the number of rows.
func (r Rows) Len() int { return r.v.Len() }

// Slice gives the rows [start, end).
func (r Rows) Slice(start, end int) Rows { return Rows{r.v.Slice3(start, end, end)} }

func (r Rows) field(i int, p Place) reflect.Value {
	v := r.v.Index(i)
	if len(p.Index) > 0 {
		v = v.FieldByIndex(p.Index)
	}
	return v
}

// Store sets the field at p, whose kind is that of V, of each row; v has a value for each.
func Store[V any](r Rows, p Place, v []V) {
	for i, x := range v[:r.Len()] {
		f := r.field(i, p)
		f.Set(reflect.ValueOf(x).Convert(f.Type()))
	}
}

// Widen is Store into a field of another kind, that of D.
func Widen[D, S Number](r Rows, p Place, v []S) { Store(r, p, v) }

// Fetch is the reverse of Store.
func Fetch[V any](r Rows, p Place, v []V) {
	for i := range v[:r.Len()] {
		v[i] = r.field(i, p).Convert(reflect.TypeFor[V]()).Interface().(V)
	}
}

// StorePointers sets the pointers at p of the rows that are set to one row of the slab after another, and returns how
// many.
func StorePointers(r Rows, p Place, set []bool, slab Rows) int {
	k := 0
	for i, ok := range set[:r.Len()] {
		if ok {
			f := r.field(i, p)
			f.Set(slab.v.Index(k).Addr().Convert(f.Type()))
			k++
		}
	}
	return k
}

// StoreSlices sets the slice at p of row i to the rows [offsets[i], offsets[i+1]) of the slab, with no capacity more.
func StoreSlices(r Rows, p Place, offsets []int32, slab Rows) {
	for i := range r.Len() {
		f := r.field(i, p)
		f.Set(slab.Slice(int(offsets[i]), int(offsets[i+1])).v.Convert(f.Type()))
	}
}
