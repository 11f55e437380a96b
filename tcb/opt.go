package tcb

import "reflect"

// Opt is a value that can be absent. Its zero value is absent. It is what a field of a struct has for a column, or for
// the elements of one, that is optional; a pointer can stand for it, and costs an indirection.
type Opt[V any] struct {
	Value   V // the empty value when absent
	Present bool
}

// Some returns a value that is present.
func Some[V any](v V) Opt[V] { return Opt[V]{v, true} }

// Get returns the value, and whether it is present.
func (o Opt[V]) Get() (V, bool) { return o.Value, o.Present }

// Or returns the value, or def when it is absent.
func (o Opt[V]) Or(def V) V {
	if o.Present {
		return o.Value
	}
	return def
}

// optType tells an Opt from a struct that embeds one.
func (o Opt[V]) optType() reflect.Type { return reflect.TypeOf(o) }

// optOf returns the types of the fields of an Opt.
func optOf(t reflect.Type) (value, present reflect.StructField, ok bool) {
	if t.Kind() != reflect.Struct {
		return value, present, false
	}
	o, ok := reflect.Zero(t).Interface().(interface{ optType() reflect.Type })
	if !ok || o.optType() != t {
		return value, present, false
	}
	return t.Field(0), t.Field(1), true
}
