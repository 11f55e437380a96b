package value

import (
	"cmp"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// plan is what encoding and decoding know of a Go type. It is made once for each type.
type plan struct {
	typ    reflect.Type
	class  class
	elem   *plan // of a pointer, slice, array, map
	key    *plan // of a map
	fields []field
	byName map[string]int // the place of a field in fields
}

// class is how values of a type are written and read.
type class uint8

const (
	noClass class = iota // a type without an encoding
	boolClass
	intClass
	uintClass
	floatClass
	stringClass
	bytesClass     // []byte
	byteArrayClass // [N]byte
	sliceClass
	arrayClass
	mapClass
	structClass
	pointerClass
	anyClass // an interface
	timeClass
	bigClass // big.Int
	numberClass
	rawClass
	ownClass // another type of this package, which is written and read as an interface holds it
)

// field is a field of a struct.
type field struct {
	name      string
	index     []int // the way through embedded structs
	plan      *plan
	omitEmpty bool
	tagged    bool
	heads     [CBOR + 1][]byte // the encoded name
}

var ownTypes = map[reflect.Type]class{
	reflect.TypeFor[time.Time]():      timeClass,
	reflect.TypeFor[big.Int]():        bigClass,
	reflect.TypeFor[Number]():         numberClass,
	reflect.TypeFor[Raw]():            rawClass,
	reflect.TypeFor[ExtValue]():       ownClass,
	reflect.TypeFor[TagValue]():       ownClass,
	reflect.TypeFor[UndefinedValue](): ownClass,
	reflect.TypeFor[SimpleValue]():    ownClass,
	reflect.TypeFor[OrderedMap]():     ownClass,
	reflect.TypeFor[EncodedKey]():     ownClass,
	reflect.TypeFor[Seq]():            ownClass,
	reflect.TypeFor[MapSeq]():         ownClass,
}

var plans sync.Map // reflect.Type to *plan

// planOf gives the plan of a type.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	// A type can hold itself, so its plan is found under its name before it is complete; others see only complete ones.
	made := make(map[reflect.Type]*plan)
	p := makePlan(t, made)
	for t, p := range made {
		plans.LoadOrStore(t, p)
	}
	return p
}

func makePlan(t reflect.Type, made map[reflect.Type]*plan) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := made[t]; ok {
		return p
	}
	p := &plan{typ: t, class: ownTypes[t]}
	made[t] = p
	if p.class != noClass {
		return p
	}
	switch t.Kind() {
	case reflect.Bool:
		p.class = boolClass
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.class = intClass
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.class = uintClass
	case reflect.Float32, reflect.Float64:
		p.class = floatClass
	case reflect.String:
		p.class = stringClass
	case reflect.Interface:
		p.class = anyClass
	case reflect.Pointer:
		p.class, p.elem = pointerClass, makePlan(t.Elem(), made)
	case reflect.Slice:
		p.class, p.elem = sliceClass, makePlan(t.Elem(), made)
		if t.Elem().Kind() == reflect.Uint8 && p.elem.class == uintClass {
			p.class = bytesClass
		}
	case reflect.Array:
		p.class, p.elem = arrayClass, makePlan(t.Elem(), made)
		if t.Elem().Kind() == reflect.Uint8 && p.elem.class == uintClass {
			p.class = byteArrayClass
		}
	case reflect.Map:
		p.class, p.key, p.elem = mapClass, makePlan(t.Key(), made), makePlan(t.Elem(), made)
	case reflect.Struct:
		p.class = structClass
		p.fields = structFields(t, made)
		p.byName = make(map[string]int, len(p.fields))
		for i, f := range p.fields {
			p.byName[f.name] = i
		}
	}
	return p
}

// structFields gives the fields of a struct and of those embedded in it, in their order. Of fields with the same name
// the one with the shortest way counts, among several of these the one with a name in its tag, and else none.
func structFields(t reflect.Type, made map[reflect.Type]*plan) []field {
	type level struct {
		typ   reflect.Type
		index []int
	}
	var all []field
	next := []level{{typ: t}}
	visited := make(map[reflect.Type]bool)
	for len(next) > 0 {
		now := next
		next = nil
		times := make(map[reflect.Type]int) // a struct embedded twice at one level hides its own fields
		for _, l := range now {
			times[l.typ]++
		}
		for _, l := range now {
			if visited[l.typ] {
				continue
			}
			visited[l.typ] = true
			for i := range l.typ.NumField() {
				sf := l.typ.Field(i)
				name, omitEmpty, skip := fieldTag(sf)
				if skip {
					continue
				}
				index := append(slices.Clone(l.index), i)
				inner := sf.Type
				if inner.Kind() == reflect.Pointer && inner.Name() == "" {
					inner = inner.Elem()
				}
				embedded := sf.Anonymous && name == "" && inner.Kind() == reflect.Struct && ownTypes[inner] == noClass
				switch {
				case embedded && (sf.IsExported() || sf.Type.Kind() == reflect.Struct):
					next = append(next, level{inner, index})
					continue
				case !sf.IsExported():
					continue
				}
				f := field{name: name, index: index, plan: makePlan(sf.Type, made), omitEmpty: omitEmpty, tagged: name != ""}
				if !f.tagged {
					f.name = sf.Name
				}
				all = append(all, f)
				if times[l.typ] > 1 {
					all = append(all, f)
				}
			}
		}
	}
	return dominant(all)
}

// dominant leaves one field of each name.
func dominant(all []field) []field {
	slices.SortStableFunc(all, func(a, b field) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), cmp.Compare(rank(a), rank(b)))
	})
	var out []field
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n].name == all[i].name {
			n++
		}
		if n == 1 || len(all[i].index) != len(all[i+1].index) || all[i].tagged != all[i+1].tagged {
			f := all[i]
			for c := Msgpack; c <= CBOR; c++ {
				f.heads[c] = AppendString(nil, c, f.name)
			}
			out = append(out, f)
		}
		i += n
	}
	slices.SortFunc(out, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return out
}

func rank(f field) int {
	if f.tagged {
		return 0
	}
	return 1
}

// fieldTag reads the tag of a field.
func fieldTag(sf reflect.StructField) (name string, omitEmpty, skip bool) {
	tag, ok := sf.Tag.Lookup("spile")
	if !ok {
		tag = sf.Tag.Get("json")
	}
	if tag == "-" {
		return "", false, true
	}
	name, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		omitEmpty = omitEmpty || option == "omitempty"
	}
	return name, omitEmpty, false
}

// of gives a field of v for reading; the second result is false where a pointer on the way is nil.
func (f *field) of(v reflect.Value) (reflect.Value, bool) {
	if len(f.index) == 1 {
		return v.Field(f.index[0]), true
	}
	for i, x := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v, true
}

// isEmpty is the rule of omitempty, that of encoding/json.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
