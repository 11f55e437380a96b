package tcb

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/box"
)

// leaf is the Go type of a value.
type leaf uint8

const (
	leafInt32 leaf = iota // also enumerations
	leafInt64             // also ticks
	leafFloat32
	leafFloat64
	leafBool
	leafString
	leafGUID
	leafTime
	leafDuration
)

// The types that are more than their kind.
var (
	guidType     = reflect.TypeFor[GUID]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

// wrap is how a field says that its value can be absent.
type wrap uint8

const (
	plain   wrap = iota // it does not
	opt                 // an Opt
	pointer             // a pointer, nil when absent
)

// layer is a wrap around a type.
type layer struct {
	wrap           wrap
	outer, inner   reflect.Type
	value, present box.Place // of an Opt
}

// unwrap takes the layer off a type.
func unwrap(t reflect.Type) layer {
	if value, present, ok := optOf(t); ok {
		return layer{opt, t, value.Type, box.Place{}.Field(value), box.Place{}.Field(present)}
	}
	if t.Kind() == reflect.Pointer {
		return layer{wrap: pointer, outer: t, inner: t.Elem()}
	}
	return layer{wrap: plain, outer: t, inner: t}
}

// member is a field of a struct that holds the values of a column.
type member struct {
	Field
	path  string // of the field in the struct, for messages
	leaf  leaf
	place box.Place // in the row, or in the record of an array of records
	row   layer     // around the value or the slice; unused in an array of records
	elem  layer     // around an element, when the column is one of arrays
}

// records is a field that is a slice of structs. Each member of the struct is a column of arrays.
type records struct {
	path    string
	place   box.Place
	typ     reflect.Type // of a record
	members []*member
}

// plan is what there is to know of a struct type.
type plan struct {
	typ     reflect.Type
	members []*member // outside of arrays of records
	records []*records
	columns []*member // all of them, in the order of the struct
	err     error
}

var plans sync.Map // reflect.Type -> *plan

// planOf returns the plan of a type, which is made once.
func planOf(t reflect.Type) (*plan, error) {
	if p, ok := plans.Load(t); ok {
		return p.(*plan), p.(*plan).err
	}
	p := &plan{typ: t}
	p.err = p.make()
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*plan), kept.(*plan).err
}

func (p *plan) make() error {
	if p.typ.Kind() != reflect.Struct {
		return fault.New(fault.Invalid, "tcb", "rows are structs, %s is none", p.typ)
	}
	if err := p.add(walk{typ: p.typ}); err != nil {
		return err
	}
	if len(p.columns) == 0 {
		return fault.New(fault.Invalid, "tcb", "no field of %s has a tag as `tcb:\"1\"`", p.typ)
	}
	return p.schema().Check()
}

// schema is the table that the struct stands for.
func (p *plan) schema() *Schema {
	s := &Schema{Table: p.typ.Name(), Columns: make([]Field, len(p.columns))}
	for i, m := range p.columns {
		s.Columns[i] = m.Field
	}
	return s
}

// options are what a struct tag says.
type options struct {
	tag                       int32
	name                      string
	group                     bool
	enum, datetime, timespan  bool
	optional, elementOptional bool
}

func parseTag(text string) (options, error) {
	var o options
	number, rest, _ := strings.Cut(text, ",")
	if number != "" {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 1 {
			return o, fmt.Errorf("the tag %q, want a number from 1 on", number)
		}
		o.tag = int32(n)
	}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, ",")
		name, named := strings.CutPrefix(word, "name=")
		switch {
		case named && name != "":
			o.name = name
		case word == "group":
			o.group = true
		case word == "enum":
			o.enum = true
		case word == "datetime":
			o.datetime = true
		case word == "timespan":
			o.timespan = true
		case word == "optional":
			o.optional = true
		case word == "elementoptional":
			o.elementOptional = true
		default:
			return o, fmt.Errorf("the option %q, want enum, datetime, timespan, optional, elementoptional, group or name=", word)
		}
	}
	switch {
	case o.group && (o.tag != 0 || o.enum || o.datetime || o.timespan || o.optional || o.elementOptional):
		return o, fmt.Errorf("a group has no tag and no options but a name; its fields have")
	case !o.group && o.tag == 0:
		return o, fmt.Errorf("no number in front of the options")
	}
	return o, nil
}

// walk is a struct whose fields are taken up.
type walk struct {
	typ   reflect.Type
	place box.Place
	path  string // of fields, with a point behind
	name  string // of columns, with a point behind
	in    *records
	above []reflect.Type
}

// add takes up the fields of a struct. What is wrong with them is in one error.
func (p *plan) add(w walk) error {
	var errs []error
	for i := range w.typ.NumField() {
		f := w.typ.Field(i)
		text, has := f.Tag.Lookup("tcb")
		if text == "-" {
			continue
		}
		if err := p.field(w, f, text, has); err != nil {
			if !errors.Is(err, fault.Invalid) { // else it is of a field below
				err = fault.New(fault.Invalid, "tcb", "%v", err).On(fmt.Sprintf("field %s%s of %s", w.path, f.Name, p.typ))
			}
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// field takes up a field.
func (p *plan) field(w walk, f reflect.StructField, text string, has bool) error {
	var o options
	if has {
		var err error
		if o, err = parseTag(text); err != nil {
			return err
		}
		if !f.IsExported() && (!f.Anonymous || o.tag != 0) {
			return fmt.Errorf("it is not exported")
		}
	} else if !f.IsExported() && !f.Anonymous {
		return nil
	}
	if o.tag == 0 {
		return p.group(w, f, o)
	}
	m := &member{Field: Field{Tag: o.tag, Name: w.name + f.Name}, path: w.path + f.Name, place: w.place.Field(f)}
	if o.name != "" {
		m.Name = w.name + o.name
	}
	t := f.Type
	if w.in != nil {
		m.Type.Kind, m.Type.Optional = Array, o.optional
	} else {
		m.row = unwrap(t)
		m.Type.Optional = m.row.wrap != plain || o.optional
		t = m.row.inner
		if t.Kind() == reflect.Slice {
			m.Type.Kind = Array
			t = t.Elem()
		}
	}
	if m.Type.Kind == Array {
		m.elem = unwrap(t)
		m.Type.ElementOptional = m.elem.wrap != plain || o.elementOptional
		t = m.elem.inner
	} else if o.elementOptional {
		return fmt.Errorf("optional elements, and %s is no slice", f.Type)
	}
	if err := m.setLeaf(t, o); err != nil {
		return err
	}
	p.columns = append(p.columns, m)
	if w.in != nil {
		w.in.members = append(w.in.members, m)
	} else {
		p.members = append(p.members, m)
	}
	return nil
}

// setLeaf takes up the type of the value.
func (m *member) setLeaf(t reflect.Type, o options) error {
	switch {
	case t == guidType:
		m.leaf, m.Type.Element = leafGUID, UUID
	case t == timeType:
		m.leaf, m.Type.Element, m.Logical = leafTime, I64, DateTime
	case t == durationType:
		m.leaf, m.Type.Element, m.Logical = leafDuration, I64, TimeSpan
	default:
		switch t.Kind() {
		case reflect.Int32:
			m.leaf, m.Type.Element = leafInt32, I32
			if o.enum {
				m.Type.Element = Enum
			}
		case reflect.Int64:
			m.leaf, m.Type.Element = leafInt64, I64
			switch {
			case o.datetime && !o.timespan:
				m.Logical = DateTime
			case o.timespan && !o.datetime:
				m.Logical = TimeSpan
			}
		case reflect.Float32:
			m.leaf, m.Type.Element = leafFloat32, F32
		case reflect.Float64:
			m.leaf, m.Type.Element = leafFloat64, F64
		case reflect.Bool:
			m.leaf, m.Type.Element = leafBool, Bool
		case reflect.String:
			m.leaf, m.Type.Element = leafString, String
		default:
			return fmt.Errorf("no column holds %s; int32, int64, float32, float64, bool, string, tcb.GUID, time.Time and time.Duration are held, slices of them, and Opt and pointers around each", t)
		}
	}
	switch {
	case o.enum && m.Type.Element != Enum:
		return fmt.Errorf("an enumeration is held by int32, not by %s", t)
	case o.datetime && m.Logical != DateTime:
		return fmt.Errorf("a datetime is held by time.Time, or by int64 as ticks, not by %s", t)
	case o.timespan && m.Logical != TimeSpan:
		return fmt.Errorf("a timespan is held by time.Duration, or by int64 as ticks, not by %s", t)
	}
	return nil
}

// group takes up a struct or a slice of structs whose fields are members. A field without a struct tag that is no such
// thing is left alone.
func (p *plan) group(w walk, f reflect.StructField, o options) error {
	t, isSlice := f.Type, f.Type.Kind() == reflect.Slice
	if isSlice {
		t = t.Elem()
	}
	if !tagged(t, nil) {
		if inner := unwrap(t).inner; tagged(inner, nil) || inner.Kind() == reflect.Slice && tagged(inner.Elem(), nil) {
			return fmt.Errorf("%s holds columns; a struct does, or a slice of structs, without pointer and Opt", f.Type)
		}
		if o.group {
			return fmt.Errorf("a group, and %s is no struct with fields that have a tag", f.Type)
		}
		return nil
	}
	switch {
	case isSlice && w.in != nil:
		return fmt.Errorf("an array of records in %s, which is one", w.in.path)
	case isSlice && !f.IsExported():
		return fmt.Errorf("it is not exported")
	case slices.Contains(w.above, t) || t == p.typ:
		return fmt.Errorf("%s lies in itself", t)
	}
	in := walk{
		typ: t, place: w.place.Field(f), path: w.path + f.Name + ".", name: w.name, in: w.in,
		above: append(slices.Clip(w.above), t),
	}
	switch {
	case o.name != "":
		in.name += o.name + "."
	case !f.Anonymous:
		in.name += f.Name + "."
	}
	if isSlice {
		in.in = &records{path: w.path + f.Name, place: in.place, typ: t}
		in.place = box.Place{}
		p.records = append(p.records, in.in)
	}
	return p.add(in)
}

// tagged reports whether t is a struct that has members.
func tagged(t reflect.Type, above []reflect.Type) bool {
	if t.Kind() != reflect.Struct || slices.Contains(above, t) {
		return false
	}
	if _, _, ok := optOf(t); ok {
		return false
	}
	above = append(slices.Clip(above), t)
	for i := range t.NumField() {
		f := t.Field(i)
		text, has := f.Tag.Lookup("tcb")
		if text == "-" {
			continue
		}
		if has {
			return true
		}
		in := f.Type
		if in.Kind() == reflect.Slice {
			in = in.Elem()
		}
		if (f.IsExported() || f.Anonymous) && tagged(in, above) {
			return true
		}
	}
	return false
}

// accepts refuses a column that the member cannot hold.
func (m *member) accepts(d Descriptor) error {
	may := func(optional bool) string {
		if optional {
			return "can be absent"
		}
		return "cannot be absent"
	}
	got, want := d.Type, m.Type
	switch {
	case got.ElementOptional != want.ElementOptional:
		return failed("C1", "elements of the file %s, those of field %s %s", may(got.ElementOptional), m.path, may(want.ElementOptional))
	case got.Optional != want.Optional:
		return failed("C2", "rows of the file %s, those of field %s %s", may(got.Optional), m.path, may(want.Optional))
	case got.Kind != want.Kind:
		return failed("C3", "the file has a column of the kind %s, field %s is of the kind %s", got.Kind, m.path, want.Kind)
	case !got.allows(d.Encoding):
		return nil // C4, found when the column is decoded, comes first
	case !promotes(got.Element, want.Element, m.Logical):
		return failed("C5", "the file has %s, which field %s of %s cannot take", got.Element, m.path, strings.TrimSuffix(m.TypeName(), "[]"))
	}
	return nil
}
