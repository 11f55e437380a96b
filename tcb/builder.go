package tcb

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// CellKind is what a cell of a text table holds.
type CellKind uint8

// The kinds of cells.
const (
	CellNull   CellKind = iota // nothing: the row, or the element, is absent
	CellText                   // text: of a string, or the text form of any other type
	CellNumber                 // a number in decimal digits
	CellBool                   // a truth value, "true" or "false"
	CellDate                   // a point in time, or a span, of a table that tells them from text; in the text form
)

var cellKinds = [...]string{"nothing", "text", "a number", "a truth value", "a date"}

// Cell is one value on its way into a column. Text is as it was written, every digit of it. A column of strings keeps it.
type Cell struct {
	Kind CellKind
	Text string
}

// Builder makes columns of cells, row by row, each exactly or not at all. It is not safe for concurrent use.
type Builder struct {
	schema  *Schema
	columns []*Column
	present [][]bool // of the rows, for each column
	element [][]bool // of the elements
	rows    int
}

// NewBuilder returns a builder of a table with the columns of a schema that was checked.
func NewBuilder(s *Schema) *Builder {
	b := &Builder{schema: s, columns: make([]*Column, len(s.Columns)), present: make([][]bool, len(s.Columns)), element: make([][]bool, len(s.Columns))}
	for i, f := range s.Columns {
		b.columns[i] = &Column{Tag: f.Tag, Name: f.Name, Type: f.Type}
		if f.Type.Kind == Array {
			b.columns[i].Offsets = []int32{0}
		}
	}
	return b
}

// Rows is the number of rows that are whole.
func (b *Builder) Rows() int { return b.rows }

// Scalar sets the value of the next row in the k-th column, which is one of scalars.
func (b *Builder) Scalar(k int, v Cell) error {
	f := &b.schema.Columns[k]
	if f.Type.Kind != Scalar {
		return fault.New(fault.Invalid, "tcb", "%s, want an array, %s", v.what(), f.TypeName())
	}
	if err := b.presence(k, v.Kind != CellNull); err != nil {
		return err
	}
	return b.add(k, v)
}

// presence notes whether the next row of a column is there.
func (b *Builder) presence(k int, present bool) error {
	if b.schema.Columns[k].Type.Optional {
		b.present[k] = append(b.present[k], present)
	} else if !present {
		return fault.New(fault.Invalid, "tcb", "no value, and the column is not optional")
	}
	return nil
}

// Array sets the value of the next row in the k-th column, which is one of arrays. A nil slice is an absent row, an empty
// one an array without elements.
func (b *Builder) Array(k int, v []Cell) error {
	f, c := &b.schema.Columns[k], b.columns[k]
	if f.Type.Kind != Array {
		return fault.New(fault.Invalid, "tcb", "an array, want %s", f.TypeName())
	}
	if err := b.presence(k, v != nil); err != nil {
		return err
	}
	for i, e := range v {
		if f.Type.ElementOptional {
			b.element[k] = append(b.element[k], e.Kind != CellNull)
		} else if e.Kind == CellNull {
			return fault.New(fault.Invalid, "tcb", "no value, and elements are not optional").On("element " + strconv.Itoa(i))
		}
		if err := b.add(k, e); err != nil {
			return fault.Locate(err, "", "element "+strconv.Itoa(i), 0)
		}
	}
	if c.Len() > math.MaxInt32 {
		return fault.New(fault.Limit, "tcb", "more than %d elements", math.MaxInt32)
	}
	c.Offsets = append(c.Offsets, int32(c.Len()))
	return nil
}

// EndRow ends a row in which every column got its value.
func (b *Builder) EndRow() { b.rows++ }

// Columns returns the columns of the rows so far. The builder is spent.
func (b *Builder) Columns() []*Column {
	for k, c := range b.columns {
		c.Rows = b.rows
		if c.Type.Optional {
			c.Present = bitmapOf(b.present[k])
		}
		if c.Type.ElementOptional {
			c.ElementPresent = bitmapOf(b.element[k])
		}
	}
	return b.columns
}

func bitmapOf(v []bool) Bitmap {
	b := NewBitmap(len(v))
	for i, x := range v {
		if x {
			b.Set(i)
		}
	}
	return b
}

// want is the error for a cell that is not what the column takes.
func want(f *Field, v Cell) error {
	if bits := floatBits(f.Type.Element); bits > 0 && (v.Kind == CellText || v.Kind == CellNumber) {
		if _, err := strconv.ParseFloat(v.Text, bits); err == nil && strings.Trim(v.Text, "0123456789+-.eE") == "" {
			if strings.ContainsAny(v.Text, ".eE") {
				return fault.New(fault.Invalid, "tcb", "%s, want a number that is not too small for %d-bit floats, which make it 0", v.what(), bits)
			}
			return fault.New(fault.Invalid, "tcb", "%s, want a whole number that %d-bit floats hold", v.what(), bits)
		}
	}
	return fault.New(fault.Invalid, "tcb", "%s, want %s", v.what(), expected(f))
}

// what is the kind and the start of the text.
func (v Cell) what() string {
	text := v.Text
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	what := cellKinds[v.Kind]
	if v.Kind != CellNull {
		what += " " + strconv.Quote(text)
	}
	return what
}

// expected says what a column takes.
func expected(f *Field) string {
	switch f.Type.Element {
	case Enum:
		if f.Labels != nil {
			return "a label of the enumeration (" + someLabels(f.Labels) + ") or a number of 32 bits"
		}
		return "a number of 32 bits, for an enumeration"
	case Bool:
		return "true or false"
	case I32:
		return "a whole number of 32 bits"
	case I64:
		switch f.Logical {
		case DateTime:
			return "a datetime as 2026-01-02T03:04:05"
		case TimeSpan:
			return "a timespan as [-][d.]hh:mm:ss[.fffffff]"
		}
		return "a whole number of 64 bits"
	case F32:
		return "a number in the range of 32-bit floats"
	case F64:
		return "a number in the range of 64-bit floats"
	case String:
		return "text"
	}
	return "a uuid as 00112233-4455-6677-8899-aabbccddeeff"
}

// floatBits is the size of floats, 0 of what are none.
func floatBits(e Element) int {
	switch e {
	case F32:
		return 32
	case F64:
		return 64
	}
	return 0
}

// someLabels are the labels of an enumeration by their numbers, the first of them where there are many.
func someLabels(labels map[string]int32) string {
	const most = 10
	all := labelsByNumber(labels)
	text := strings.Join(all[:min(len(all), most)], ", ")
	if n := len(all) - most; n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	return text
}

// add appends a value to a column; one that is not there adds the empty value.
func (b *Builder) add(k int, v Cell) error {
	f, c := &b.schema.Columns[k], b.columns[k]
	if v.Kind == CellNull {
		c.addEmpty()
		return nil
	}
	ok := false
	switch f.Type.Element {
	case Enum:
		var n int32
		if v.Kind == CellText {
			n, ok = f.Labels[v.Text]
		}
		if !ok && v.Kind != CellBool && v.Kind != CellDate {
			n, ok = parseInt32(v.Text)
		}
		c.Int32s = append(c.Int32s, n)
	case Bool:
		var x bool
		if v.Kind == CellText || v.Kind == CellBool || v.Kind == CellNumber && len(v.Text) == 1 {
			x, ok = parseBool(v.Text)
		}
		c.Bools = append(c.Bools, x)
	case I32:
		var n int32
		if v.Kind != CellBool && v.Kind != CellDate {
			n, ok = parseInt32(v.Text)
		}
		c.Int32s = append(c.Int32s, n)
	case I64:
		var n int64
		var err error
		switch {
		case v.Kind == CellBool:
		case f.Logical == Number && v.Kind == CellDate:
		case f.Logical == Number:
			n, ok = ParseInteger(v.Text)
		case v.Kind == CellNumber:
		case f.Logical == DateTime:
			n, err = ParseDateTime(v.Text)
			ok = err == nil
		default:
			n, err = ParseTimeSpan(v.Text)
			ok = err == nil
		}
		c.Int64s = append(c.Int64s, n)
	case F32:
		x, fine := parseFloat(v, 32)
		ok = fine
		c.Float32s = append(c.Float32s, float32(x))
	case F64:
		x, fine := parseFloat(v, 64)
		ok = fine
		c.Float64s = append(c.Float64s, x)
	case String:
		ok = v.Kind == CellText && utf8.ValidString(v.Text)
		c.Strings = append(c.Strings, v.Text)
	case UUID:
		g, err := ParseGUID(v.Text)
		ok = err == nil && v.Kind == CellText
		c.UUIDs = append(c.UUIDs, g)
	}
	if !ok {
		return want(f, v)
	}
	return nil
}

func (c *Column) addEmpty() {
	switch c.Type.Element {
	case Enum, I32:
		c.Int32s = append(c.Int32s, 0)
	case Bool:
		c.Bools = append(c.Bools, false)
	case I64:
		c.Int64s = append(c.Int64s, 0)
	case F32:
		c.Float32s = append(c.Float32s, 0)
	case F64:
		c.Float64s = append(c.Float64s, 0)
	case String:
		c.Strings = append(c.Strings, "")
	case UUID:
		c.UUIDs = append(c.UUIDs, GUID{})
	}
}

func parseBool(s string) (v, ok bool) {
	switch s {
	case "true", "TRUE", "True", "1":
		return true, true
	case "false", "FALSE", "False", "0":
		return false, true
	}
	return false, false
}

// quietNaN is the NaN without a payload; [math.NaN] has one.
const quietNaN = 0x7ff8 << 48

// parseFloat reads a number, or the name of one that JSON and spreadsheets have no number for.
func parseFloat(v Cell, bits int) (float64, bool) {
	switch {
	case v.Kind == CellBool, v.Kind == CellDate:
		return 0, false
	case v.Kind == CellText:
		switch v.Text {
		case "NaN":
			return math.Float64frombits(quietNaN), true
		case "Infinity":
			return math.Inf(1), true
		case "-Infinity":
			return math.Inf(-1), true
		}
	}
	return ParseFloat(v.Text, bits)
}

// ParseFloat reads a number in decimal digits as a float of 32 or 64 bits. A number with a point or an exponent is taken
// to the nearest float; but not what is too large, and not one that is too small to be anything but 0. A whole number,
// digits alone, is taken if a float holds it exactly, or as floats are written: 1152921504606847000 for 2^60.
func ParseFloat(s string, bits int) (float64, bool) {
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, bits)
	if err != nil {
		return 0, false
	}
	if x == 0 {
		mantissa := s
		if i := strings.IndexAny(s, "eE"); i >= 0 {
			mantissa = s[:i]
		}
		return x, !strings.ContainsAny(mantissa, "123456789")
	}
	return x, strings.ContainsAny(s, ".eE") || isWhole(s, x, bits)
}

// isWhole reports whether digits are the float that is the nearest, or how it is written.
func isWhole(s string, x float64, bits int) bool {
	digits := strings.TrimLeft(strings.TrimLeft(s, "+-"), "0")
	exact := 15
	if bits == 32 {
		exact = 7
	}
	if len(digits) <= exact {
		return true
	}
	var buf [400]byte
	x = math.Abs(x)
	return string(strconv.AppendFloat(buf[:0], x, 'f', 0, 64)) == digits || string(strconv.AppendFloat(buf[:0], x, 'f', -1, bits)) == digits
}

func parseInt32(s string) (int32, bool) {
	n, ok := ParseInteger(s)
	return int32(n), ok && n == int64(int32(n))
}

// ParseInteger reads a whole number of 64 bits exactly: 3, 3.0 and 1e3, not 3.5.
func ParseInteger(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
		if exponent == "" {
			return 0, false
		}
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") || strings.HasPrefix(whole, "+") {
		sign, whole = whole[:1], whole[1:]
	}
	if whole == "" || point && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	shift := 0
	if exponent != "" {
		n, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return 0, false
		}
		shift = int(n)
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	shift -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	shift += len(digits) - len(trimmed)
	switch {
	case trimmed == "":
		return 0, true
	case shift < 0 || shift > 19 || len(trimmed) > 19:
		return 0, false
	}
	n, err := strconv.ParseInt(sign+trimmed+strings.Repeat("0", shift), 10, 64)
	return n, err == nil
}
