package value

import (
	"fmt"
	"math/big"
	"reflect"
	"strconv"

	"github.com/spilehq/spile/fault"
)

// Unmarshal decodes data, which must hold exactly one value and nothing behind it, into what v points to. It fills the
// types that [Append] takes, except [Seq] and [MapSeq], with these rules:
//
//   - Numbers go into every type of number that holds them exactly: 3.0 fits an int, 3.5 does not; an integer of more
//     than 53 bits may not fit a float64, nor most float64 a float32. A NaN fits every float.
//   - A string goes into a string, binary into []byte and into [N]byte of that length, a list into a slice and into an
//     array of that length. A [Number] takes the digits of a number, a [Raw] the bytes of any value.
//   - A map goes into a map, to which it adds, or into a struct. Fields are found by their exact name, see [Append];
//     pairs without a field are passed over, and fields without a pair stay as they are. Of double keys the last one
//     counts.
//   - An interface without methods takes what [Decode] gives; an [OrderedMap] too, in the order of the pairs.
//   - null makes a pointer, interface, map or slice nil and leaves everything else as it is.
//   - A tag is passed over, unless the type is a time, an integer, a [TagValue], a Raw or an interface.
//
// A slice is filled from its start and keeps its capacity. Memory follows the bytes that are there, not the lengths
// that they claim. After an error v may be filled in part.
func Unmarshal(c Codec, data []byte, lim Limits, v any) error {
	if err := c.check(); err != nil {
		return err
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return invalid("unmarshal into %T, which is no pointer to a value", v)
	}
	d := decoders.Get().(*decoder)
	defer d.release()
	s := &d.scanner
	s.Reset(c, data, lim)
	if err := s.Next(); err != nil {
		return notEmpty(err)
	}
	if err := d.into(s, planOf(rv.Type().Elem()), rv.Elem()); err != nil {
		return d.place(err)
	}
	return d.atEnd(s)
}

// typedFrame is a container that is being filled.
type typedFrame struct {
	plan  *plan
	dst   reflect.Value
	n     int           // items that were begun; in a struct, the place behind the last field
	name  string        // in a struct, the field whose value comes next
	key   reflect.Value // in a map, the key and the value that are being read; made once
	elem  reflect.Value
	keyed bool // in a map, the key was read
}

// step adds the place of the value that is being read.
func (f *typedFrame) step(p *pathText) {
	switch {
	case f.plan.class == mapClass && f.keyed && f.key.IsValid():
		p.key(plainKey(f.key))
	case f.plan.class == structClass:
		p.name(f.name)
	case f.plan.class == mapClass:
	case f.n > 0:
		p.index(f.n - 1)
	}
}

// into decodes the value whose first token s holds into dst.
func (d *decoder) into(s *Scanner, p *plan, dst reflect.Value) error {
	opened, err := d.fill(s, p, dst)
	if err != nil || !opened {
		return err
	}
	for {
		if err := s.Next(); err != nil {
			return err
		}
		top := &d.typed[len(d.typed)-1]
		if s.Kind == End {
			d.typed = d.typed[:len(d.typed)-1]
			if err := top.finish(s); err != nil {
				return err
			}
			if len(d.typed) == 0 {
				return nil
			}
			if err := d.typed[len(d.typed)-1].store(s); err != nil {
				return err
			}
			continue
		}
		p, dst, err := d.slot(s, top)
		if err != nil {
			return err
		}
		if p == nil {
			if err := s.Skip(); err != nil {
				return err
			}
			continue
		}
		opened, err := d.fill(s, p, dst)
		if err != nil {
			return err
		}
		if !opened {
			if err := top.store(s); err != nil {
				return err
			}
		}
	}
}

// firstRoom is the memory that the items of a list get before the first of them is read.
const firstRoom = 64 << 10

// slot gives the place of the value whose first token s holds, in the container that is being filled. In a struct that
// token is a key: slot then reads on to the value, or gives no plan where the value is to be passed over.
func (d *decoder) slot(s *Scanner, top *typedFrame) (*plan, reflect.Value, error) {
	switch top.plan.class {
	case sliceClass, bytesClass:
		if top.n == top.dst.Cap() {
			top.dst.Grow(1)
		}
		top.n++
		top.dst.SetLen(top.n)
		elem := top.dst.Index(top.n - 1)
		elem.SetZero()
		return top.plan.elem, elem, nil
	case arrayClass, byteArrayClass:
		if top.n >= top.dst.Len() {
			return nil, reflect.Value{}, d.misfit(s, "more than "+strconv.Itoa(top.n)+" items", top.plan)
		}
		top.n++
		elem := top.dst.Index(top.n - 1)
		elem.SetZero()
		return top.plan.elem, elem, nil
	case structClass:
		return d.fieldSlot(s, top)
	}
	if !top.keyed {
		if !top.key.IsValid() {
			top.key, top.elem = reflect.New(top.plan.key.typ).Elem(), reflect.New(top.plan.elem.typ).Elem()
		}
		top.key.SetZero()
		return top.plan.key, top.key, nil
	}
	top.elem.SetZero()
	return top.plan.elem, top.elem, nil
}

// fieldSlot finds the field of the key that s holds.
func (d *decoder) fieldSlot(s *Scanner, top *typedFrame) (*plan, reflect.Value, error) {
	if s.Kind != String {
		if err := d.pass(s); err != nil {
			return nil, reflect.Value{}, err
		}
		return nil, reflect.Value{}, nil
	}
	fields := top.plan.fields
	i := top.n // most often the pairs come in the order of the fields
	if i >= len(fields) || fields[i].name != string(s.Data) {
		var ok bool
		if i, ok = top.plan.byName[string(s.Data)]; !ok {
			return nil, reflect.Value{}, nil
		}
	}
	f := &fields[i]
	top.n, top.name = i+1, f.name
	if err := s.Next(); err != nil {
		return nil, reflect.Value{}, err
	}
	dst := top.dst
	for j, x := range f.index {
		if j > 0 && dst.Kind() == reflect.Pointer {
			if dst.IsNil() {
				dst.Set(reflect.New(dst.Type().Elem()))
			}
			dst = dst.Elem()
		}
		dst = dst.Field(x)
	}
	return f.plan, dst, nil
}

// store puts the value that was read where it belongs, when it is not there yet: into a map.
func (f *typedFrame) store(s *Scanner) error {
	if f.plan.class != mapClass {
		return nil
	}
	if f.keyed = !f.keyed; f.keyed {
		if !f.key.Comparable() {
			return fault.New(fault.Invalid, "value", "key of type %s, which Go cannot compare", f.plan.key.typ).At(s.start)
		}
		return nil
	}
	f.dst.SetMapIndex(f.key, f.elem)
	return nil
}

// finish checks a container at its end.
func (f *typedFrame) finish(s *Scanner) error {
	if f.plan.class == arrayClass || f.plan.class == byteArrayClass {
		if f.n < f.dst.Len() {
			return fault.New(fault.Invalid, "value", "list of %d items into %s", f.n, f.plan.typ).At(s.start)
		}
	}
	return nil
}

// misfit is the fault of a value that does not fit a Go type.
func (d *decoder) misfit(s *Scanner, what string, p *plan) error {
	return fault.New(fault.Invalid, "value", "%s into %s", what, p.typ).At(s.start)
}

func (d *decoder) mismatch(s *Scanner, p *plan) error { return d.misfit(s, d.describe(s), p) }

// describe names the value whose first token s holds.
func (d *decoder) describe(s *Scanner) string {
	switch s.Kind {
	case Uint:
		return "integer " + strconv.FormatUint(s.Bits, 10)
	case Nint:
		return "integer " + bigNint(s.Bits).String()
	case Float16, Float32, Float64:
		return "float " + strconv.FormatFloat(s.Float(), 'g', -1, 64)
	case Bool:
		return strconv.FormatBool(s.Bits != 0)
	case String:
		return fmt.Sprintf("string %q", cutText(string(s.Data[:min(len(s.Data), 2*maxStep)])))
	case Bytes:
		return fmt.Sprintf("%d bytes", len(s.Data))
	case Ext:
		return fmt.Sprintf("ext of type %d", s.Ext)
	case Tag:
		return fmt.Sprintf("tag %d", s.Bits)
	}
	return s.Kind.String()
}

// fill decodes the value whose first token s holds into dst when it is a scalar or goes there as a whole; else it opens
// a frame for it.
func (d *decoder) fill(s *Scanner, p *plan, dst reflect.Value) (opened bool, err error) {
	for hops := 0; p.class == pointerClass; hops++ {
		if s.Kind == Null {
			dst.SetZero()
			return false, nil
		}
		if hops > DefaultDepth { // type P *P
			return false, invalid("unmarshal into %s, pointers without an end", p.typ)
		}
		if dst.IsNil() {
			dst.Set(reflect.New(p.elem.typ))
		}
		p, dst = p.elem, dst.Elem()
	}
	switch p.class {
	case anyClass, rawClass, ownClass:
		return false, d.fillWhole(s, p, dst)
	}
	if s.Kind == Null {
		switch p.class {
		case sliceClass, bytesClass, mapClass:
			dst.SetZero()
		}
		return false, nil
	}
	if s.Kind == Tag {
		done, err := d.fillTagged(s, p, dst)
		if done || err != nil {
			return false, err
		}
	}
	switch s.Kind {
	case Array:
		switch p.class {
		case sliceClass, bytesClass:
			if dst.IsNil() || dst.Cap() == 0 {
				// Room for a few items only: the length is a claim, and a byte of input can be an item of any size.
				room := 1 + firstRoom/(1+int(p.elem.typ.Size()))
				dst.Set(reflect.MakeSlice(p.typ, 0, max(0, min(s.Len, room))))
			}
			dst.SetLen(0)
		case arrayClass, byteArrayClass:
		default:
			return false, d.mismatch(s, p)
		}
	case Map:
		switch p.class {
		case mapClass:
			if dst.IsNil() {
				dst.Set(reflect.MakeMap(p.typ))
			}
		case structClass:
		default:
			return false, d.mismatch(s, p)
		}
	default:
		return false, d.fillScalar(s, p, dst)
	}
	d.typed = append(d.typed, typedFrame{plan: p, dst: dst})
	return true, nil
}

// fillTagged handles a Tag token: a number or a time is filled, of another tag s is moved to the content.
func (d *decoder) fillTagged(s *Scanner, p *plan, dst reflect.Value) (done bool, err error) {
	for s.Kind == Tag {
		number := s.Bits
		if err := s.Next(); err != nil {
			return false, err
		}
		switch {
		case (number == tagPosBig || number == tagNegBig) && s.Kind == Bytes:
			if len(s.Data) > maxBigBytes {
				return false, d.misfit(s, fmt.Sprintf("integer of %d bytes", len(s.Data)), p)
			}
			n := new(big.Int).SetBytes(s.Data)
			if number == tagNegBig {
				n.Not(n)
			}
			return true, d.fillBig(s, p, dst, n)
		case p.class == timeClass && (number == tagTimeText || number == tagTimeEpoch):
			content := scalar(&s.Token)
			if s.Kind == String {
				content = string(s.Data)
			}
			t, ok := cborTime(number, content)
			if !ok {
				return false, d.mismatch(s, p)
			}
			dst.Set(reflect.ValueOf(t))
			return true, nil
		}
	}
	if s.Kind == Null {
		_, err := d.fill(s, p, dst) // not a tag any more: this is one step, not a recursion
		return true, err
	}
	return false, nil
}

// pass reads to the end of the value whose first token s holds.
func (d *decoder) pass(s *Scanner) error {
	outside := s.Depth()
	if s.Kind == Array || s.Kind == Map {
		outside--
	}
	for s.Kind == Tag || s.Depth() > outside {
		if err := s.Next(); err != nil {
			return err
		}
	}
	return nil
}

// fillWhole decodes into the types that take a value as a whole.
func (d *decoder) fillWhole(s *Scanner, p *plan, dst reflect.Value) error {
	if p.class == rawClass {
		start := s.Start()
		if err := d.pass(s); err != nil {
			return err
		}
		data := append([]byte(nil), s.buf[start-s.base:s.pos]...) // data is a slice: the window is all of it
		dst.Set(reflect.ValueOf(Raw{Codec: s.codec, Data: data}))
		return nil
	}
	switch p.typ {
	case reflect.TypeFor[OrderedMap]():
		if s.Kind == Map {
			return d.fillOrdered(s, dst)
		}
	case reflect.TypeFor[EncodedKey]():
		key, err := d.encodedKey(s)
		if err != nil {
			return err
		}
		if key, ok := key.(EncodedKey); ok {
			dst.Set(reflect.ValueOf(key))
			return nil
		}
		return d.mismatch(s, p)
	case reflect.TypeFor[TagValue]():
		if s.Kind == Tag {
			number := s.Bits
			if err := s.Next(); err != nil {
				return err
			}
			content, err := d.value(s)
			if err != nil {
				return err
			}
			dst.Set(reflect.ValueOf(TagValue{Number: number, Content: content}))
			return nil
		}
	case reflect.TypeFor[ExtValue]():
		if s.Kind == Ext {
			dst.Set(reflect.ValueOf(ExtValue{Type: s.Ext, Data: append([]byte{}, s.Data...)}))
			return nil
		}
	}
	if p.class == ownClass {
		if s.Kind == Null {
			if p.typ.Kind() == reflect.Slice {
				dst.SetZero()
			}
			return nil
		}
		if v := reflect.ValueOf(scalar(&s.Token)); v.IsValid() && v.Type() == p.typ {
			dst.Set(v)
			return nil
		}
		return d.mismatch(s, p)
	}
	if p.typ.NumMethod() > 0 {
		return d.mismatch(s, p)
	}
	isKey := len(d.typed) > 0 && d.typed[len(d.typed)-1].key.IsValid() && !d.typed[len(d.typed)-1].keyed
	v, err := any(nil), error(nil)
	if isKey {
		v, err = d.key(s)
	} else {
		v, err = d.value(s)
	}
	if err != nil {
		return err
	}
	if v == nil {
		dst.SetZero()
		return nil
	}
	dst.Set(reflect.ValueOf(v))
	return nil
}

// fillOrdered reads a map with the order of its pairs. The values in it are as Decode gives them.
func (d *decoder) fillOrdered(s *Scanner, dst reflect.Value) error {
	m := OrderedMap{}
	outside := s.Depth() - 1
	for {
		if err := s.Next(); err != nil {
			return err
		}
		if s.Kind == End && s.Depth() == outside {
			break
		}
		k, err := d.key(s)
		if err != nil {
			return err
		}
		if err := s.Next(); err != nil {
			return err
		}
		v, err := d.value(s)
		if err != nil {
			return err
		}
		m = append(m, Pair{k, v})
	}
	dst.Set(reflect.ValueOf(m))
	return nil
}
