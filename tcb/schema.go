package tcb

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
)

// Logical says what the 64-bit integers of a column stand for. It is not in the file.
type Logical uint8

// The logical types.
const (
	Number   Logical = iota // themselves
	DateTime                // ticks of 100 ns since 0001-01-01, without a zone
	TimeSpan                // ticks of 100 ns, signed
)

// logicalNames are the types of 64-bit integers as schemas write them.
var logicalNames = [...]string{"i64", "datetime", "timespan"}

// Field is a column of a schema.
type Field struct {
	Tag     int32
	Name    string // "" where there is none
	Type    Type
	Logical Logical          // of an I64 column
	Labels  map[string]int32 // of an Enum column: the labels and their numbers, nil when they are not known
}

// label is the name by which rows and messages call the column: the name, or the decimal tag.
func (f *Field) label() string {
	if f.Name != "" {
		return f.Name
	}
	return strconv.Itoa(int(f.Tag))
}

// Schema says what the columns of a table are. A file carries the types and the tags; names, logical types and labels
// stand in the schema alone (docs/format/tcb.md, "Schema").
type Schema struct {
	Table    string  // the name of the table, "" where there is none
	Columns  []Field // in the order of the file
	Reserved []Field // columns that were deleted, whose tags nothing else may have; only Tag and Name are used
}

// fieldJSON and schemaJSON are the JSON form.
type fieldJSON struct {
	Tag             int32      `json:"tag"`
	Name            string     `json:"name,omitempty"`
	Type            string     `json:"type,omitempty"`
	Optional        bool       `json:"optional,omitempty"`
	ElementOptional bool       `json:"elementOptional,omitempty"`
	Enum            labelsJSON `json:"enum,omitempty"`
}

type schemaJSON struct {
	Table    string      `json:"table,omitempty"`
	Columns  []fieldJSON `json:"columns"`
	Reserved []fieldJSON `json:"reserved,omitempty"`
}

// labelsJSON are the labels of an enumeration, which come in the order of their numbers.
type labelsJSON map[string]int32

func (l labelsJSON) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, label := range labelsByNumber(l) {
		if i > 0 {
			out = append(out, ',')
		}
		text, err := json.Marshal(label)
		if err != nil {
			return nil, err
		}
		out = strconv.AppendInt(append(append(out, text...), ':'), int64(l[label]), 10)
	}
	return append(out, '}'), nil
}

// TypeName is the type of the column as a schema writes it: "i32", "datetime[]".
func (f *Field) TypeName() string {
	name := f.Type.Element.String()
	switch f.Logical {
	case DateTime:
		name = "datetime"
	case TimeSpan:
		name = "timespan"
	}
	if f.Type.Kind == Array {
		name += "[]"
	}
	return name
}

// setType reads a type as a schema writes it.
func (f *Field) setType(name string) error {
	element, isArray := strings.CutSuffix(name, "[]")
	f.Type.Kind = Scalar
	if isArray {
		f.Type.Kind = Array
	}
	f.Logical = Number
	switch element {
	case "datetime":
		f.Type.Element, f.Logical = I64, DateTime
		return nil
	case "timespan":
		f.Type.Element, f.Logical = I64, TimeSpan
		return nil
	}
	i := slices.Index(elementNames[:], element)
	if i < 0 {
		return fault.New(fault.Invalid, "tcb", "the type %q, want bool, i32, i64, f32, f64, string, uuid, enum, datetime or timespan, with [] behind it for an array", name)
	}
	f.Type.Element = Element(i)
	return nil
}

func place(i int, f *Field) string {
	if f.Tag > 0 {
		return label(f.Tag, f.Name)
	}
	return "column " + strconv.Itoa(i+1) + " of the schema"
}

// Check refuses a schema that no table can have: tags below 1, tags and names that occur twice, optional elements of
// scalars, labels of columns that are no enumerations, and labels that read as numbers.
func (s *Schema) Check() error {
	tags := make(map[int32]string)
	names := make(map[string]string)
	for i := range s.Columns {
		f := &s.Columns[i]
		bad := func(format string, args ...any) error {
			return fault.New(fault.Invalid, "tcb", format, args...).On(place(i, f))
		}
		switch {
		case f.Tag == 0:
			return bad("the tag 0, or none; tags start at 1")
		case f.Tag < 0:
			return bad("the tag %d, tags start at 1", f.Tag)
		case f.Type.ElementOptional && f.Type.Kind == Scalar:
			return bad("a column of scalars has no optional elements")
		case f.Labels != nil && f.Type.Element != Enum:
			return bad("labels of an enumeration in a column of %s", f.TypeName())
		case f.Logical > TimeSpan:
			return bad("the logical type %d, which is not defined", f.Logical)
		case f.Logical != Number && f.Type.Element != I64:
			return bad("a %s is stored in i64, not in %s", f.TypeName(), f.Type.Element)
		}
		if other, ok := tags[f.Tag]; ok {
			return bad("the tag is that of %s too", other)
		}
		tags[f.Tag] = place(i, f)
		if other, ok := names[f.label()]; ok {
			return bad("the name is that of %s too", other)
		}
		names[f.label()] = place(i, f)
		numbers := make(map[int32]string)
		for _, l := range slices.Sorted(maps.Keys(f.Labels)) {
			if _, ok := ParseInteger(l); ok { // a cell of text would be the label to one reader, and the number to another
				return bad("the label %q reads as a number, and text that holds it would be either", l)
			}
			if other, ok := numbers[f.Labels[l]]; ok {
				return bad("the labels %q and %q are both %d", other, l, f.Labels[l])
			}
			numbers[f.Labels[l]] = l
		}
	}
	for i := range s.Reserved {
		f := &s.Reserved[i]
		if f.Tag < 1 {
			return fault.New(fault.Invalid, "tcb", "the reserved tag %d, tags start at 1", f.Tag)
		}
		if other, ok := tags[f.Tag]; ok {
			return fault.New(fault.Invalid, "tcb", "the reserved tag %d is that of %s", f.Tag, other)
		}
		tags[f.Tag] = "a reserved column"
	}
	return nil
}

// MarshalJSON gives the JSON form.
func (s *Schema) MarshalJSON() ([]byte, error) {
	out := schemaJSON{Table: s.Table, Columns: make([]fieldJSON, len(s.Columns))}
	for i := range s.Columns {
		f := &s.Columns[i]
		out.Columns[i] = fieldJSON{f.Tag, f.Name, f.TypeName(), f.Type.Optional, f.Type.ElementOptional, labelsJSON(f.Labels)}
	}
	for _, f := range s.Reserved {
		out.Reserved = append(out.Reserved, fieldJSON{Tag: f.Tag, Name: f.Name})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the JSON form and checks it.
func (s *Schema) UnmarshalJSON(text []byte) error {
	in, err := ParseSchema(text)
	if err == nil {
		*s = *in
	}
	return err
}

// Schema is what the file itself says: tags and types.
func (t *Table) Schema() (*Schema, error) { return t.fields(t.dir.columns) }

// fields are columns of the file as a schema.
func (t *Table) fields(columns []Descriptor) (*Schema, error) {
	s := &Schema{Columns: make([]Field, len(columns))}
	for i, d := range columns {
		if !d.Type.Element.known() || d.Type.Kind > Array {
			return nil, fault.Locate(failed("C4", "is of the type %s, which this version does not define", d.Type), t.Name(), label(d.Tag, ""), d.Offset)
		}
		s.Columns[i] = Field{Tag: d.Tag, Type: d.Type}
	}
	return s, nil
}

// Named returns the schema of the file with the names, logical types and labels of another, matched by tag. The types stay
// those of the file; a column whose type the other does not take is [fault.Conflict], all of them in one error. Columns
// that the other does not have keep their tag as their name; those of them that this version cannot decode are left out.
func (t *Table) Named(names *Schema) (*Schema, error) {
	if names == nil {
		return t.Schema()
	}
	byTag := fieldsByTag(names.Columns)
	columns := make([]Descriptor, 0, len(t.dir.columns))
	for _, d := range t.dir.columns {
		if byTag[d.Tag] != nil || checkType(d) == nil {
			columns = append(columns, d)
		}
	}
	s, err := t.fields(columns)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range s.Columns {
		f := &s.Columns[i]
		n := byTag[f.Tag]
		switch {
		case n == nil:
		case n.Type == f.Type:
			*f = *n
		case n.takes(f.Type):
			f.Name = n.Name
		default:
			errs = append(errs, n.refuses(f.Type).In(t.Name()))
		}
	}
	s.Table, s.Reserved = names.Table, names.Reserved
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, s.Check()
}

// takes reports whether the column holds every value of a column of a file: it is of its type, or of a wider one.
func (f *Field) takes(file Type) bool {
	t := f.Type
	return t.Kind == file.Kind && t.Optional == file.Optional && t.ElementOptional == file.ElementOptional && promotes(file.Element, t.Element, f.Logical)
}

func (f *Field) refuses(file Type) *fault.Error {
	return fault.New(fault.Conflict, "tcb", "the file has %s, the schema %s", file, f.TypeText()).On(label(f.Tag, f.Name))
}
