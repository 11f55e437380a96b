package tcb

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// RowOptions say how rows become JSON text. Nil and the zero value mean the defaults.
type RowOptions struct {
	JSON   value.JSONOptions // NonFinite, InvalidUTF8 and Lossless count
	Losses *value.Losses     // where losses are noted, nil: nowhere
	Labels bool              // enumerations are their labels, where the schema has one for the number
}

// Rows prints rows of a table as JSON objects, in the form of docs/format/tcb.md, "Rows". It is not safe for
// concurrent use.
type Rows struct {
	columns []*Column
	fields  []Field
	keys    []string           // `"name":`
	labels  []map[int32]string // of enumerations that are printed as labels, in quotes
	opts    RowOptions
}

// NewRows returns a printer of the columns. The schema, when there is one, gives names and logical types by tag.
func NewRows(columns []*Column, s *Schema, o *RowOptions) *Rows {
	r := &Rows{columns: columns, fields: make([]Field, len(columns)), keys: make([]string, len(columns)), labels: make([]map[int32]string, len(columns))}
	if o != nil {
		r.opts = *o
	}
	var byTag map[int32]*Field
	if s != nil {
		byTag = fieldsByTag(s.Columns)
	}
	for i, c := range columns {
		r.fields[i] = Field{Tag: c.Tag, Name: c.Name, Type: c.Type}
		if f := byTag[c.Tag]; f != nil {
			r.fields[i] = *f
		}
		key, _, _ := value.AppendJSONString(nil, r.fields[i].label(), &value.JSONOptions{InvalidUTF8: value.UTF8Replace})
		r.keys[i] = string(key) + ":"
		r.label(i)
	}
	return r
}

// label prepares the labels of a column.
func (r *Rows) label(k int) {
	labels := r.fields[k].Labels
	if !r.opts.Labels || labels == nil {
		return
	}
	r.labels[k] = make(map[int32]string, len(labels))
	for l, n := range labels {
		text, _, _ := value.AppendJSONString(nil, l, &value.JSONOptions{InvalidUTF8: value.UTF8Replace})
		r.labels[k][n] = string(text)
	}
}

// Append appends row i as a JSON object on one line, without a line break.
func (r *Rows) Append(dst []byte, i int) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for k, c := range r.columns {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.keys[k]...)
		if dst, err = r.cell(dst, c, k, i); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// AppendCell appends the value of row i in the k-th column.
func (r *Rows) AppendCell(dst []byte, k, i int) ([]byte, error) {
	return r.cell(dst, r.columns[k], k, i)
}

// AppendElement appends value j, one of those of row i, in the k-th column.
func (r *Rows) AppendElement(dst []byte, k, i, j int) ([]byte, error) {
	if c := r.columns[k]; c.HasElement(j) {
		return r.value(dst, c, k, i, j)
	}
	return append(dst, "null"...), nil
}

func (r *Rows) cell(dst []byte, c *Column, k, i int) ([]byte, error) {
	if !c.Has(i) {
		return append(dst, "null"...), nil
	}
	if c.Type.Kind == Scalar {
		return r.value(dst, c, k, i, i)
	}
	dst = append(dst, '[')
	start, end := c.Span(i)
	var err error
	for j := start; j < end; j++ {
		if j > start {
			dst = append(dst, ',')
		}
		if !c.HasElement(j) {
			dst = append(dst, "null"...)
		} else if dst, err = r.value(dst, c, k, i, j); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// value appends value j of row i.
func (r *Rows) value(dst []byte, c *Column, k, i, j int) ([]byte, error) {
	var lost bool
	var kind value.LossKind
	var err error
	switch c.Type.Element {
	case Enum, I32:
		if l, ok := r.labels[k][c.Int32s[j]]; ok {
			return append(dst, l...), nil
		}
		return strconv.AppendInt(dst, int64(c.Int32s[j]), 10), nil
	case Bool:
		return strconv.AppendBool(dst, c.Bools[j]), nil
	case I64:
		switch v := c.Int64s[j]; r.fields[k].Logical {
		case DateTime:
			dst, err = AppendDateTime(append(dst, '"'), v)
			dst = append(dst, '"')
		case TimeSpan:
			return append(AppendTimeSpan(append(dst, '"'), v), '"'), nil
		default:
			return strconv.AppendInt(dst, v, 10), nil
		}
	case F32:
		dst, lost, err = value.AppendJSONFloat(dst, float64(c.Float32s[j]), 32, &r.opts.JSON)
		kind = r.nonFinite()
	case F64:
		dst, lost, err = value.AppendJSONFloat(dst, c.Float64s[j], 64, &r.opts.JSON)
		kind = r.nonFinite()
	case String:
		dst, lost, err = value.AppendJSONString(dst, c.Strings[j], &r.opts.JSON)
		kind = value.LossUTF8
	case UUID:
		return append(c.UUIDs[j].append(append(dst, '"')), '"'), nil
	}
	if err != nil {
		f, _ := errors.AsType[*fault.Error](err)
		at := *f
		return dst, at.On(r.place(k, i)).At(fault.NoOffset) // an offset in the value is of no use
	}
	if lost && r.opts.JSON.Lossless {
		return dst, fault.New(fault.Invalid, "tcb", "%s, and nothing may be lost", kind).On(r.place(k, i))
	}
	if lost && r.opts.Losses != nil {
		r.opts.Losses.Add(kind, r.place(k, i), fault.NoOffset)
	}
	return dst, nil
}

// nonFinite is the loss of a float that has no JSON form.
func (r *Rows) nonFinite() value.LossKind {
	if r.opts.JSON.NonFinite == value.NonFiniteNull {
		return value.LossNonFinite
	}
	return value.LossNonFiniteText
}

// place names a cell in messages.
func (r *Rows) place(k, i int) string {
	return fmt.Sprintf("row %d, %s", i, label(r.columns[k].Tag, r.fields[k].Name))
}
