package box

import "reflect"

// Place is where a field lies in the struct that it is in, at whatever depth. The zero value is the whole value.
type Place struct {
	Offset uintptr
	Index  []int // as of reflect.Value.FieldByIndex
}

// Field is the place of a field of the struct that lies at p.
func (p Place) Field(f reflect.StructField) Place {
	return p.In(Place{f.Offset, f.Index})
}

// In is the place of q in what lies at p.
func (p Place) In(q Place) Place {
	return Place{p.Offset + q.Offset, append(p.Index[:len(p.Index):len(p.Index)], q.Index...)}
}

// Number is what Widen takes.
type Number interface {
	~int32 | ~int64 | ~float32 | ~float64
}
