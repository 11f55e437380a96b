package tabular

import (
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Cell is a cell of a row. The kind is CellNull for a cell that is not there.
type Cell struct {
	tcb.Cell
	Quoted bool // of text: it is there even if it is empty, and it is not the Null text
}

// Rows puts cells into a builder by the rule of this package. It is not safe for concurrent use.
type Rows struct {
	// Copy: the text of a cell is part of a longer text, so that strings are copied out of it.
	Copy bool

	b       *tcb.Builder
	columns []tcb.Field
	o       *Options
	list    []tcb.Cell
	text    Text
}

// NewRows returns rows without any, of a schema and options that were checked.
func NewRows(s *tcb.Schema, o *Options) *Rows {
	return &Rows{b: tcb.NewBuilder(s), columns: s.Columns, o: o}
}

// Put sets the value of the next row in the k-th column of the schema.
func (r *Rows) Put(k int, v Cell) error {
	f := &r.columns[k]
	t := f.Type
	holdsText := t.Kind == tcb.Array || t.Element == tcb.String
	if v.Kind == tcb.CellText && !v.Quoted {
		switch {
		case v.Text == "":
			v.Kind = tcb.CellNull
		case t.Optional && v.Text == r.o.Null:
			return r.none(k)
		}
	}
	if v.Kind == tcb.CellNull && holdsText && (!t.Optional || r.o.EmptyText) {
		v = Cell{Cell: tcb.Cell{Kind: tcb.CellText}}
	}
	switch {
	case v.Kind == tcb.CellNull, v.Text == "" && !holdsText:
		return r.none(k)
	case t.Kind == tcb.Scalar:
		if err := r.prepare(f, &v.Cell); err != nil {
			return err
		}
		return r.b.Scalar(k, v.Cell)
	case v.Kind != tcb.CellText:
		return r.b.Array(k, append(r.list[:0], v.Cell))
	case v.Text == "":
		return r.b.Array(k, []tcb.Cell{})
	}
	list, err := r.split(f, v.Text)
	if err != nil {
		return err
	}
	return r.b.Array(k, list)
}

// None sets the next row of a column that has no cell.
func (r *Rows) None(k int) error { return r.none(k) }

func (r *Rows) none(k int) error {
	if r.columns[k].Type.Kind == tcb.Array {
		return r.b.Array(k, nil)
	}
	return r.b.Scalar(k, tcb.Cell{})
}

// EndRow ends a row in which every column got its value.
func (r *Rows) EndRow() { r.b.EndRow() }

// Count is the number of rows that are whole.
func (r *Rows) Count() int { return r.b.Rows() }

// Columns returns the columns of the rows so far. The rows are spent.
func (r *Rows) Columns() []*tcb.Column { return r.b.Columns() }

// prepare makes the text of a value what the builder takes and keeps.
func (r *Rows) prepare(f *tcb.Field, v *tcb.Cell) error {
	switch {
	case v.Kind != tcb.CellText:
	case f.Type.Element == tcb.String:
		if r.Copy {
			v.Text = r.text.Keep(v.Text)
		}
	case r.o.DecimalComma && isNumber(f):
		if strings.IndexByte(v.Text, '.') >= 0 {
			return fault.New(fault.Invalid, "", "text %.60q has a point, and numbers have a comma", v.Text)
		}
		v.Text = swapPoint(v.Text)
	case isNumber(f) && strings.Trim(v.Text, "0123456789-,") == "" && strings.IndexByte(v.Text, ',') >= 0:
		return fault.New(fault.Invalid, "", "text %.60q has a comma, and numbers have a point; a decimal comma must be declared", v.Text)
	}
	return nil
}

// swapPoint gives the comma the meaning of the point, and the point none: what is left for a number to refuse.
func swapPoint(text string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case ',':
			return '.'
		case '.':
			return ','
		}
		return c
	}, text)
}

func isNumber(f *tcb.Field) bool {
	switch f.Type.Element {
	case tcb.Enum, tcb.I32, tcb.F32, tcb.F64:
		return f.Labels == nil
	case tcb.I64:
		return f.Logical == tcb.Number
	}
	return false
}

// split takes the text of an array apart.
func (r *Rows) split(f *tcb.Field, text string) ([]tcb.Cell, error) {
	list := r.list[:0]
	if list == nil {
		list = make([]tcb.Cell, 0, 8)
	}
	for more := true; more; {
		end := elementEnd(text, r.o.Separator)
		raw := text[:end]
		if more = end < len(text); more {
			text = text[end+1:]
		}
		v, err := r.element(f, raw)
		if err != nil {
			return nil, fault.Locate(err, "", "element "+strconv.Itoa(len(list)), 0)
		}
		list = append(list, v)
	}
	r.list = list
	return list, nil
}

// elementEnd is where the first element ends.
func elementEnd(text string, separator byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case separator:
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

func (r *Rows) element(f *tcb.Field, raw string) (tcb.Cell, error) {
	v := tcb.Cell{Kind: tcb.CellText, Text: raw}
	switch {
	case raw == `\0`:
		return tcb.Cell{}, nil
	case raw == `\e`:
		v.Text = ""
		return v, nil
	case raw == "" && (f.Type.ElementOptional || f.Type.Element != tcb.String):
		return tcb.Cell{}, nil
	case strings.IndexByte(raw, '\\') >= 0:
		text := make([]byte, 0, len(raw))
		for i := 0; i < len(raw); i++ {
			if raw[i] == '\\' {
				i++
				if i == len(raw) || raw[i] != '\\' && raw[i] != r.o.Separator {
					return v, fault.New(fault.Invalid, "", "%q has a backslash that stands for nothing; %s is a backslash, %s the separator", raw, `\\`, `\`+string(rune(r.o.Separator)))
				}
			}
			text = append(text, raw[i])
		}
		v.Text = string(text)
		if f.Type.Element == tcb.String {
			return v, nil
		}
	}
	err := r.prepare(f, &v)
	return v, err
}

// Text keeps strings in few large pieces of memory.
type Text struct{ piece *strings.Builder }

// piece is the size of a piece of memory: far above the length of a cell, far below that of a table.
const piece = 1 << 16

// Keep returns a copy.
func (t *Text) Keep(s string) string {
	if len(s) == 0 {
		return ""
	}
	if len(s) > piece/8 {
		return strings.Clone(s)
	}
	if t.piece == nil || t.piece.Cap()-t.piece.Len() < len(s) {
		t.piece = new(strings.Builder)
		t.piece.Grow(piece)
	}
	at := t.piece.Len()
	t.piece.WriteString(s)
	return t.piece.String()[at:]
}
