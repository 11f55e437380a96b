package value

import (
	"cmp"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
)

// reflected encodes a value of a type that is found by reflection.
func (e *encoder) reflected(v reflect.Value) error { return e.planned(planOf(v.Type()), v) }

// planned encodes a value by the plan of its type.
func (e *encoder) planned(p *plan, v reflect.Value) error {
	switch p.class {
	case boolClass:
		e.dst = AppendBool(e.dst, e.c, v.Bool())
	case intClass:
		e.dst = AppendInt(e.dst, e.c, v.Int())
	case uintClass:
		e.dst = AppendUint(e.dst, e.c, v.Uint())
	case floatClass:
		e.dst = AppendFloat64(e.dst, e.c, v.Float())
	case stringClass:
		return e.string(v.String())
	case bytesClass:
		if v.IsNil() {
			e.dst = AppendNull(e.dst, e.c)
			return nil
		}
		return e.bytes(v.Bytes())
	case byteArrayClass:
		if v.CanAddr() {
			return e.bytes(v.Bytes())
		}
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return e.bytes(b)
	case sliceClass:
		if v.IsNil() {
			e.dst = AppendNull(e.dst, e.c)
			return nil
		}
		return e.items(p, v)
	case arrayClass:
		return e.items(p, v)
	case mapClass:
		return e.typedMap(p, v)
	case structClass:
		return e.fields(p, v)
	case pointerClass:
		return e.pointer(p, v)
	case anyClass:
		if v.IsNil() {
			e.dst = AppendNull(e.dst, e.c)
			return nil
		}
		return e.inside(v.Elem())
	case timeClass:
		if v.CanAddr() {
			return e.time(*v.Addr().Interface().(*time.Time))
		}
		return e.time(v.Interface().(time.Time))
	case bigClass:
		if v.CanAddr() {
			return e.bigInt(v.Addr().Interface().(*big.Int))
		}
		n := v.Interface().(big.Int)
		return e.bigInt(&n)
	case numberClass:
		return e.number(Number(v.String()))
	case rawClass, ownClass:
		return e.value(v.Interface())
	default:
		return invalid("Go type %s, which has no encoding", p.typ)
	}
	return nil
}

// inside encodes what an interface holds.
func (e *encoder) inside(v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		return e.planned(planOf(v.Type()), v)
	}
	return e.value(v.Interface())
}

// pointer encodes what v points to. A pointer counts as a level of nesting: it may point to itself.
func (e *encoder) pointer(p *plan, v reflect.Value) error {
	if v.IsNil() {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	if p.elem.class != pointerClass && p.elem.class != anyClass {
		return e.planned(p.elem, v.Elem()) // what it points to counts by itself
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.planned(p.elem, v.Elem()); err != nil {
		return err
	}
	e.leave()
	return nil
}

func (e *encoder) items(p *plan, v reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	n := v.Len()
	if err := e.listHead(n); err != nil {
		return err
	}
	for i := range n {
		if err := e.item(); err != nil {
			return err
		}
		if err := e.planned(p.elem, v.Index(i)); err != nil {
			return e.underIndex(err, i)
		}
	}
	e.leave()
	return nil
}

func (e *encoder) fields(p *plan, v reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	n := 0
	for i := range p.fields {
		if _, ok := p.fields[i].written(v); ok {
			n++
		}
	}
	e.dst = AppendMapHeader(e.dst, e.c, n)
	for i := range p.fields {
		f := &p.fields[i]
		fv, ok := f.written(v)
		if !ok {
			continue
		}
		if err := e.item(); err != nil {
			return err
		}
		e.dst = append(e.dst, f.heads[e.c]...)
		if err := e.planned(f.plan, fv); err != nil {
			return e.under(err, f.name)
		}
	}
	e.leave()
	return nil
}

// written gives the field of v when it is to be written.
func (f *field) written(v reflect.Value) (reflect.Value, bool) {
	fv, ok := f.of(v)
	return fv, ok && !(f.omitEmpty && isEmpty(fv))
}

// typedMap encodes a map of any type.
func (e *encoder) typedMap(p *plan, v reflect.Value) error {
	if v.IsNil() {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	switch p.key.class {
	case stringClass, intClass, uintClass:
	default:
		return e.keyedMap(p, v)
	}
	pairs := make([]typedPair, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		pairs = append(pairs, typedPair{it.Key(), it.Value()})
	}
	slices.SortFunc(pairs, func(a, b typedPair) int {
		switch p.key.class {
		case stringClass:
			return strings.Compare(a.key.String(), b.key.String())
		case intClass:
			return cmp.Compare(a.key.Int(), b.key.Int())
		}
		return cmp.Compare(a.key.Uint(), b.key.Uint())
	})
	if err := e.mapHead(len(pairs)); err != nil {
		return err
	}
	for _, pair := range pairs {
		if err := e.item(); err != nil {
			return err
		}
		err := e.planned(p.key, pair.key)
		if err == nil {
			err = e.planned(p.elem, pair.value)
		}
		if err != nil {
			return e.underKey(err, plainKey(pair.key))
		}
	}
	e.leave()
	return nil
}

type typedPair struct{ key, value reflect.Value }

// keyedMap encodes a map whose keys are sorted by their encodings.
func (e *encoder) keyedMap(p *plan, v reflect.Value) error {
	base := len(e.keys)
	pairs := make([]encodedPair[reflect.Value], 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		start, end, err := e.key(func() error { return e.planned(p.key, it.Key()) })
		if err != nil {
			return e.underKey(err, plainKey(it.Key()))
		}
		pairs = append(pairs, encodedPair[reflect.Value]{start, end, it.Value()})
	}
	err := writePairs(e, base, pairs, func(e *encoder, v reflect.Value) error { return e.planned(p.elem, v) })
	if err != nil {
		return err
	}
	e.leave()
	return nil
}

// plainKey gives a key for a message.
func plainKey(k reflect.Value) any {
	if k.Kind() == reflect.String {
		return k.String()
	}
	return k.Interface()
}
