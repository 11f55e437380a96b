// Package columnar holds what the exports to columnar formats have in common: which columns of a table can be exported,
// under which names, in which unit of time, and in which batches of rows.
package columnar

import (
	"errors"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Column is a column that is exported.
type Column struct {
	*tcb.Column
	Field tcb.Field // of the schema; it has a name
	Unit  Unit      // of the datetimes or timespans that the column holds
}

// Columns puts the columns and the schema together, by tag. A column that the schema does not have keeps its own name; one
// without a name is called by its tag. It refuses what is no table: columns whose parts or lengths do not fit together,
// that are not what the schema says, or that share a name; and text that is no UTF-8.
//
// The schema that it returns is that of the columns, in their order.
func Columns(pkg string, rows int, columns []*tcb.Column, s *tcb.Schema) ([]Column, *tcb.Schema, error) {
	if len(columns) == 0 {
		return nil, nil, fault.New(fault.Invalid, pkg, "a table without columns has no form there")
	}
	out, schema := make([]Column, len(columns)), &tcb.Schema{Columns: make([]tcb.Field, len(columns))}
	if s != nil {
		schema.Table, schema.Reserved = s.Table, s.Reserved
	}
	names := make(map[string]int32, len(columns))
	for i, c := range columns {
		f := tcb.Field{Tag: c.Tag, Name: c.Name, Type: c.Type}
		if s != nil {
			for _, g := range s.Columns {
				if g.Tag == c.Tag {
					f = g
				}
			}
		}
		schema.Columns[i] = f
		if f.Name == "" {
			f.Name = strconv.Itoa(int(f.Tag))
		}
		out[i] = Column{Column: c, Field: f}
		bad := func(class error, format string, args ...any) error {
			return fault.New(class, pkg, format, args...).On(out[i].Label())
		}
		if f.Type != c.Type {
			return nil, nil, bad(fault.Conflict, "the table has %s, the schema %s", c.Type, f.Type)
		}
		if c.Rows != rows {
			return nil, nil, bad(fault.Invalid, "%d rows, the table has %d", c.Rows, rows)
		}
		if tag, ok := names[f.Name]; ok {
			return nil, nil, bad(fault.Invalid, "the name is that of column %d too", tag)
		}
		names[f.Name] = c.Tag
		if !utf8.ValidString(f.Name) {
			return nil, nil, bad(fault.Invalid, "the name is no UTF-8: %q", f.Name)
		}
		if err := c.Check(); err != nil {
			f, _ := errors.AsType[*fault.Error](err)
			return nil, nil, bad(fault.Invalid, "%s", f.Msg)
		}
		for j, text := range c.Strings {
			if !utf8.ValidString(text) {
				return nil, nil, fault.New(fault.Invalid, pkg, "the text is no UTF-8: %q", text[:min(len(text), 40)]).On(out[i].Place(out[i].rowOf(j), j))
			}
		}
	}
	return out, schema, nil
}

// Label names the column in messages.
func (c *Column) Label() string {
	if c.Field.Name == strconv.Itoa(int(c.Tag)) {
		return "column " + c.Field.Name
	}
	return "column " + strconv.Itoa(int(c.Tag)) + " (" + c.Field.Name + ")"
}

// Place names value j, of a row, in messages.
func (c *Column) Place(row, j int) string {
	p := "row " + strconv.Itoa(row) + ", " + c.Label()
	if c.Type.Kind == tcb.Array {
		start, _ := c.Span(row)
		p += ", element " + strconv.Itoa(j-start)
	}
	return p
}

// rowOf is the row of value j.
func (c *Column) rowOf(j int) int {
	if c.Type.Kind == tcb.Scalar {
		return j
	}
	row := 0
	for int(c.Offsets[row+1]) <= j {
		row++
	}
	return row
}

// present iterates over the values that are there, as row and index.
func (c *Column) present() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := range c.Rows {
			if !c.Has(i) {
				continue
			}
			start, end := c.Span(i)
			for j := start; j < end; j++ {
				if c.HasElement(j) && !yield(i, j) {
					return
				}
			}
		}
	}
}

// TextSize is the length of all strings in the rows [start, end).
func (c *Column) TextSize(start, end int) int64 {
	if c.Type.Kind == tcb.Array {
		start, end = int(c.Offsets[start]), int(c.Offsets[end])
	}
	var n int64
	for _, s := range c.Strings[start:end] {
		n += int64(len(s))
	}
	return n
}

// size is about what rows [start, end) take, in bytes.
func (c *Column) size(start, end int) int64 {
	n, offsets := int64(end-start), int64(0)
	if c.Type.Kind == tcb.Array {
		n, offsets = int64(c.Offsets[end]-c.Offsets[start]), 4*n
	}
	switch c.Type.Element {
	case tcb.String:
		return offsets + 4*n + c.TextSize(start, end)
	case tcb.UUID:
		return offsets + 16*n
	case tcb.Bool:
		return offsets + n
	}
	return offsets + 8*n
}

// Batches cuts the rows into ranges, each of at most rows rows and of about maxBytes bytes; one row is never cut.
func Batches(columns []Column, rows int, maxBytes int64) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		total := columns[0].Rows
		for start := 0; start < total; {
			end := min(start+rows, total)
			for end-start > 1 {
				var size int64
				for i := range columns {
					size += columns[i].size(start, end)
				}
				if size <= maxBytes {
					break
				}
				end = start + (end-start)/2
			}
			if !yield(start, end) {
				return
			}
			start = end
		}
	}
}
