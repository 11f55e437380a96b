package tabular

import (
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// types is a set of types that a column can have.
type types uint16

const (
	canBool types = 1 << iota
	canI32
	canI64
	canF64
	canUUID
	canDateTime
	canTimeSpan
	canString
	canAll = canString<<1 - 1
)

// Guess is what the cells of a column so far can be. The zero value has seen none.
type Guess struct {
	not     types // that a cell has ruled out
	seen    bool  // a value
	absent  bool
	list    bool // the values are arrays
	element bool // an element is absent
	first   string
	mixed   bool // an error was returned: one for a column is enough
	// Of texts: one has a decimal comma, and one is no number with a decimal comma.
	comma, noComma bool
}

// Absent notes a cell that is not there.
func (g *Guess) Absent() { g.absent = true }

// List notes that the value is an array, whose elements are noted one by one.
func (g *Guess) List() error { return g.kind(true) }

// AbsentElement notes an element that is not there.
func (g *Guess) AbsentElement() { g.element = true }

func (g *Guess) kind(list bool) error {
	if g.mixed {
		return nil
	}
	if g.seen && g.list != list {
		g.mixed = true
		return fault.New(fault.Invalid, "", "arrays and single values in one column")
	}
	g.seen, g.list = true, list
	return nil
}

// Value notes a value. Text can be a number where the table does not tell them apart.
func (g *Guess) Value(v tcb.Cell, textIsNumber, isElement bool) error {
	if !isElement {
		if err := g.kind(false); err != nil {
			return err
		}
	}
	if g.mixed {
		return nil
	}
	can := typesOf(v, canAll&^g.not, textIsNumber)
	if can == 0 {
		if v.Kind == tcb.CellNumber {
			if _, err := strconv.ParseFloat(v.Text, 64); err == nil {
				return fault.New(fault.Invalid, "", "the number %.60q, which no column of numbers holds: want it as text", v.Text)
			}
		}
		return fault.New(fault.Invalid, "", "%.60q is neither a number nor a date", v.Text)
	}
	g.not |= canAll &^ can
	if g.not == canAll {
		g.mixed = true
		return fault.New(fault.Invalid, "", "%q is of another type than %q above it", v.Text, g.first)
	}
	if g.first == "" {
		g.first = strings.Clone(v.Text[:min(len(v.Text), 60)])
	}
	return nil
}

// typesOf are those of the types in question that hold the value exactly, floats to the nearest.
func typesOf(v tcb.Cell, in types, textIsNumber bool) types {
	switch v.Kind {
	case tcb.CellBool:
		return canBool
	case tcb.CellNumber:
		if n := numberTypes(v.Text, in); n != 0 {
			return n
		}
		// An integer beyond 64 bits that a float holds, and forms that only a program writes.
		if _, ok := tcb.ParseFloat(v.Text, 64); ok {
			return canF64
		}
		return 0
	case tcb.CellDate:
		if _, err := tcb.ParseDateTime(v.Text); err == nil {
			return canDateTime
		}
		if _, err := tcb.ParseTimeSpan(v.Text); err == nil {
			return canTimeSpan
		}
		return 0
	}
	out := canString
	if s := v.Text; s != "" && in&^canString != 0 {
		switch s {
		case "true", "false", "TRUE", "FALSE", "True", "False":
			return out | canBool
		case "NaN", "Infinity", "-Infinity":
			return out | canF64
		}
		if textIsNumber && in&(canI32|canI64|canF64) != 0 {
			out |= numberTypes(s, in)
		}
		if in&canUUID != 0 && len(s) >= 36 {
			if _, err := tcb.ParseGUID(s); err == nil {
				out |= canUUID
			}
		}
		if in&canDateTime != 0 && len(s) >= 10 && s[4] == '-' {
			if _, err := tcb.ParseDateTime(s); err == nil {
				out |= canDateTime
			}
		}
		if in&canTimeSpan != 0 && strings.IndexByte(s, ':') > 0 {
			if _, err := tcb.ParseTimeSpan(s); err == nil {
				out |= canTimeSpan
			}
		}
	}
	return out
}

// numberTypes are the types for the text of a number. 007 and +7 are none: the number would not give the text back.
func numberTypes(s string, in types) types {
	digits := strings.TrimPrefix(s, "-")
	whole := len(digits) - len(strings.TrimLeft(digits, "0123456789"))
	if whole == 0 || whole > 1 && digits[0] == '0' {
		return 0
	}
	if whole == len(digits) {
		n, err := strconv.ParseInt(s, 10, 64)
		switch {
		case err != nil:
			return 0
		case n == int64(int32(n)):
			return canI32 | canI64 | canF64
		}
		if _, ok := tcb.ParseFloat(s, 64); ok {
			return canI64 | canF64
		}
		return canI64
	}
	if in&canF64 == 0 || strings.Trim(digits, "0123456789.eE+-") != "" {
		return 0
	}
	if _, ok := tcb.ParseFloat(s, 64); !ok {
		return 0
	}
	return canF64
}

// Field is the column that holds all the cells: the narrowest type, a string where there was no value.
func (g *Guess) Field(name string, tag int32) tcb.Field {
	f := tcb.Field{Name: name, Tag: tag, Type: tcb.Type{Element: tcb.String, Optional: g.absent || !g.seen}}
	if g.list {
		f.Type.Kind, f.Type.ElementOptional = tcb.Array, g.element
	}
	if g.first == "" && g.not == 0 {
		return f
	}
	for _, c := range []struct {
		can types
		e   tcb.Element
		l   tcb.Logical
	}{
		{canBool, tcb.Bool, 0}, {canI32, tcb.I32, 0}, {canI64, tcb.I64, 0}, {canF64, tcb.F64, 0}, {canUUID, tcb.UUID, 0},
		{canDateTime, tcb.I64, tcb.DateTime}, {canTimeSpan, tcb.I64, tcb.TimeSpan},
	} {
		if g.not&c.can == 0 {
			f.Type.Element, f.Logical = c.e, c.l
			break
		}
	}
	return f
}

// Cell notes a cell of a table whose text cells follow the rule of this package. Where the table tells numbers from text,
// integers of 16 digits and more are text.
func (g *Guess) Cell(v Cell, o *Options, textIsNumber bool) error {
	if v.Kind == tcb.CellNull || v.Kind == tcb.CellText && !v.Quoted && (v.Text == "" || v.Text == o.Null) {
		g.Absent()
		return nil
	}
	if v.Kind == tcb.CellText && !o.DecimalComma && !g.noComma {
		g.noComma = strings.Trim(v.Text, "0123456789-,") != "" || numberTypes(swapPoint(v.Text), canAll) == 0
		g.comma = g.comma || strings.IndexByte(v.Text, ',') >= 0
	}
	if o.DecimalComma && v.Kind == tcb.CellText {
		if s := swapPoint(v.Text); numberTypes(s, canAll) != 0 {
			v.Text = s
		} else if numberTypes(v.Text, canAll) != 0 {
			textIsNumber = false
		}
	}
	if v.Kind == tcb.CellText && len(v.Text) >= 16 && !textIsNumber {
		n, err := strconv.ParseInt(v.Text, 10, 64)
		textIsNumber = err == nil && (n >= LongNumber || n <= -LongNumber)
	}
	return g.Value(v.Cell, textIsNumber, false)
}

// Propose makes a schema of a header and a guess for each cell of it. Without tags columns are numbered from 1; but where
// all names are decimal tags, as in what was written without a schema, they are the tags.
func Propose(h *Header, guesses []Guess, o *Options) (*tcb.Schema, error) {
	s := &tcb.Schema{}
	if w, ok := h.left(); ok && o.Note != nil {
		o.Note(w)
	}
	byTag := !h.Tagged
	for _, f := range h.Fields {
		if f.Name != "" && !f.Reserved {
			_, ok := Tag(f.Name)
			byTag = byTag && ok
		}
	}
	for i, f := range h.Fields {
		switch {
		case f.Reserved && f.Tag != 0:
			s.Reserved = append(s.Reserved, tcb.Field{Tag: f.Tag, Name: f.Name})
		case f.Reserved || f.Name == "" && f.Tag == 0:
		default:
			tag := f.Tag
			if byTag {
				tag, _ = Tag(f.Name)
				f.Name = ""
			} else if tag == 0 {
				tag = int32(len(s.Columns) + 1)
			}
			c := guesses[i].Field(f.Name, tag)
			s.Columns = append(s.Columns, c)
			if g := &guesses[i]; o.Note != nil && g.comma && !g.noComma && c.Type.Element == tcb.String {
				o.Note(Warning{Where: h.place(i) + ", " + Label(&c), Count: 1, Msg: "the texts look like numbers; a decimal comma must be declared"})
			}
		}
	}
	return s, s.Check()
}
