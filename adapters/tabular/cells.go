package tabular

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Cells gives the values of columns as cells that [Rows] reads as they were. It is not safe for concurrent use.
type Cells struct {
	Columns []*tcb.Column
	Fields  []tcb.Field // of the columns
	// Sheet: the table tells numbers from text, and rounds those of more than 15 digits.
	Sheet bool

	o   *Options
	pkg string
	buf []byte

	labels []map[int32]string // of columns that are written as labels
}

// NewCells returns the cells of columns. The schema, when there is one, gives names and logical types by tag.
func NewCells(rows int, columns []*tcb.Column, s *tcb.Schema, o *Options, pkg string) (*Cells, error) {
	c := &Cells{Columns: columns, Fields: Fields(columns, s), o: o, pkg: pkg}
	for i, col := range columns {
		if col.Rows != rows {
			return nil, fault.New(fault.Invalid, pkg, "%d rows, the table has %d", col.Rows, rows).In(o.Name).On(Label(&c.Fields[i]))
		}
	}
	if len(columns) == 0 && rows > 0 {
		return nil, fault.New(fault.Invalid, pkg, "%d rows without a column have no form here", rows).In(o.Name)
	}
	if !o.Labels {
		return c, nil
	}
	c.labels = make([]map[int32]string, len(columns))
	for i := range c.Fields {
		c.labels[i] = make(map[int32]string)
		for l, n := range c.Fields[i].Labels {
			if l != "" { // which would be an empty cell
				c.labels[i][n] = l
			}
		}
	}
	return c, nil
}

// Fields are the columns as a schema has them, or as they say themselves where it does not.
func Fields(columns []*tcb.Column, s *tcb.Schema) []tcb.Field {
	byTag := make(map[int32]*tcb.Field)
	if s != nil {
		for i := range s.Columns {
			byTag[s.Columns[i].Tag] = &s.Columns[i]
		}
	}
	fields := make([]tcb.Field, len(columns))
	for i, c := range columns {
		fields[i] = tcb.Field{Tag: c.Tag, Name: c.Name, Type: c.Type}
		if f := byTag[c.Tag]; f != nil {
			fields[i] = *f
			fields[i].Type = c.Type
		}
	}
	return fields
}

// Append appends the text of the cell of row i in the k-th column and says what it is: CellNull, CellText, CellNumber
// (finite) or CellBool.
func (c *Cells) Append(dst []byte, k, i int) ([]byte, tcb.CellKind, error) {
	col := c.Columns[k]
	if !col.Has(i) {
		return dst, tcb.CellNull, nil
	}
	if col.Type.Kind == tcb.Scalar {
		return c.value(dst, k, i, i)
	}
	start, end := col.Span(i)
	for j := start; j < end; j++ {
		if j > start {
			dst = append(dst, c.o.Separator)
		}
		if !col.HasElement(j) {
			dst = append(dst, `\0`...)
			continue
		}
		text, _, err := c.value(c.buf[:0], k, i, j)
		if err != nil {
			return dst, 0, err
		}
		c.buf = text
		if len(text) == 0 {
			dst = append(dst, `\e`...)
		}
		for _, b := range text {
			if b == '\\' || b == c.o.Separator {
				dst = append(dst, '\\')
			}
			dst = append(dst, b)
		}
	}
	return dst, tcb.CellText, nil
}

// value appends value j of row i.
func (c *Cells) value(dst []byte, k, i, j int) ([]byte, tcb.CellKind, error) {
	col := c.Columns[k]
	switch col.Type.Element {
	case tcb.Enum, tcb.I32:
		if c.labels != nil {
			if l, ok := c.labels[k][col.Int32s[j]]; ok {
				return append(dst, l...), tcb.CellText, nil
			}
		}
		return strconv.AppendInt(dst, int64(col.Int32s[j]), 10), tcb.CellNumber, nil
	case tcb.Bool:
		return strconv.AppendBool(dst, col.Bools[j]), tcb.CellBool, nil
	case tcb.I64:
		switch v := col.Int64s[j]; c.Fields[k].Logical {
		case tcb.DateTime:
			dst, err := tcb.AppendDateTime(dst, v)
			return dst, tcb.CellText, fault.Locate(err, c.o.Name, c.place(k, i), 0)
		case tcb.TimeSpan:
			return tcb.AppendTimeSpan(dst, v), tcb.CellText, nil
		default:
			kind := tcb.CellNumber
			if c.Sheet && (v >= LongNumber || v <= -LongNumber) {
				kind = tcb.CellText
			}
			return strconv.AppendInt(dst, v, 10), kind, nil
		}
	case tcb.F32:
		return c.float(dst, col, float64(col.Float32s[j]), 32)
	case tcb.F64:
		return c.float(dst, col, col.Float64s[j], 64)
	case tcb.String:
		s := col.Strings[j]
		if !utf8.ValidString(s) {
			return dst, 0, fault.New(fault.Corrupt, c.pkg, "the string %q is no UTF-8", s[:min(len(s), 40)]).In(c.o.Name).On(c.place(k, i))
		}
		return append(dst, s...), tcb.CellText, nil
	case tcb.UUID:
		return append(dst, col.UUIDs[j].String()...), tcb.CellText, nil
	}
	return dst, 0, fault.New(fault.Invalid, c.pkg, "values of %s cannot be written", col.Type.Element).In(c.o.Name).On(c.place(k, i))
}

// LongNumber is the least number of 16 digits: spreadsheets keep 15.
const LongNumber = 1_000_000_000_000_000

func (c *Cells) float(dst []byte, col *tcb.Column, x float64, size int) ([]byte, tcb.CellKind, error) {
	switch {
	case math.IsNaN(x):
		return append(dst, "NaN"...), tcb.CellText, nil
	case x > math.MaxFloat64:
		return append(dst, "Infinity"...), tcb.CellText, nil
	case x < -math.MaxFloat64:
		return append(dst, "-Infinity"...), tcb.CellText, nil
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, x, 'g', -1, size)
	if c.o.DecimalComma && !(c.Sheet && col.Type.Kind == tcb.Scalar) {
		for i := at; i < len(dst); i++ {
			if dst[i] == '.' {
				dst[i] = ','
			}
		}
	}
	return dst, tcb.CellNumber, nil
}

// place names a cell in messages, the rows counted as everywhere in tables, from 0.
func (c *Cells) place(k, i int) string { return "row " + strconv.Itoa(i) + ", " + Label(&c.Fields[k]) }
