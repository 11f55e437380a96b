package tcb

import (
	"context"
	"errors"

	"github.com/spilehq/spile/fault"
)

// As returns the schema by which [Table.ReadAs] gives all there is: the columns of the file in their order, as another
// schema has them, then those that only that one has. Columns that it does not have are as the file has them. What the
// other does not take is [fault.Conflict], all of it in one error.
func (t *Table) As(other *Schema) (*Schema, error) {
	s, err := t.Named(other)
	if err != nil || other == nil {
		return s, err
	}
	byTag := fieldsByTag(other.Columns)
	for i := range s.Columns {
		if f := byTag[s.Columns[i].Tag]; f != nil {
			s.Columns[i] = *f
		}
	}
	for _, f := range other.Columns {
		if _, ok := t.Lookup(f.Tag); !ok {
			s.Columns = append(s.Columns, f)
		}
	}
	return s, s.Check()
}

// ReadAs reads the columns of a schema, or those of them with the tags, in the types that the schema gives them. A column
// of the file that is of a narrower type is widened, as docs/format/tcb.md, "Evolution", has it. One that the file does not
// have is absent in every row if it is optional, else it holds the empty value: 0, false, "", an array without elements.
func (t *Table) ReadAs(ctx context.Context, s *Schema, tags ...int32) ([]*Column, error) {
	fields := make([]*Field, 0, len(s.Columns))
	for i := range s.Columns {
		if len(tags) == 0 {
			fields = append(fields, &s.Columns[i])
		}
	}
	byTag := fieldsByTag(s.Columns)
	for _, tag := range tags {
		f := byTag[tag]
		if f == nil {
			return nil, fault.New(fault.NotFound, "tcb", "there is no column with the tag %d", tag).In(t.Name())
		}
		fields = append(fields, f)
	}
	var stored []int32
	var errs []error
	for _, f := range fields {
		d, ok := t.Lookup(f.Tag)
		switch {
		case !ok:
		case !f.takes(d.Type):
			errs = append(errs, f.refuses(d.Type).In(t.Name()))
		default:
			stored = append(stored, f.Tag)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var read []*Column
	var err error
	if len(stored) > 0 {
		if read, err = t.Read(ctx, stored...); err != nil {
			return nil, err
		}
	} else if int64(t.Rows()) > t.limits.Rows {
		return nil, t.tooManyRows()
	}
	columns := make([]*Column, len(fields))
	made := newBudget(t.limits.Bytes)
	for i, f := range fields {
		if _, ok := t.Lookup(f.Tag); ok {
			columns[i], read = read[0], read[1:]
			if columns[i].Type.Element == f.Type.Element {
				continue
			}
		}
		size := f.Type.Element.size()
		n := int64(t.Rows())
		if columns[i] != nil {
			n = int64(columns[i].Len())
		} else if f.Type.Kind == Array {
			size = 4
		}
		if err := made.take(n, size); err != nil {
			return nil, fault.Locate(err, t.Name(), label(f.Tag, f.Name), 0)
		}
		if columns[i] != nil {
			columns[i] = columns[i].widened(f.Type.Element)
		} else {
			columns[i] = emptyColumn(f, t.Rows())
		}
	}
	return columns, nil
}

// emptyColumn is a column that the file does not have.
func emptyColumn(f *Field, rows int) *Column {
	c := &Column{Tag: f.Tag, Type: f.Type, Rows: rows}
	if f.Type.Kind == Array {
		c.Offsets = make([]int32, rows+1)
	} else {
		c.setLen(rows)
	}
	if f.Type.Optional {
		c.Present = NewBitmap(rows)
	}
	if f.Type.ElementOptional {
		c.ElementPresent = NewBitmap(0)
	}
	return c
}

// widened is the column with values of another element, which takes all of its own.
func (c *Column) widened(e Element) *Column {
	w := *c
	w.Type.Element = e
	switch {
	case e == I32: // of an enumeration
	case e == I64:
		w.Int32s, w.Int64s = nil, converted[int64](c.Int32s)
	case c.Type.Element == F32:
		w.Float32s, w.Float64s = nil, converted[float64](c.Float32s)
	default:
		w.Int32s, w.Float64s = nil, converted[float64](c.Int32s)
	}
	return &w
}

func converted[W, N int32 | int64 | float32 | float64](in []N) []W {
	out := make([]W, len(in))
	for i, v := range in {
		out[i] = W(v)
	}
	return out
}
