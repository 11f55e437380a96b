package tcb

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/box"
)

// Marshal appends a file that holds the rows, a column for each member of T, in the order of the struct. It is the way
// back from [Load], which says what a member is; an option optional or elementoptional makes every value one that is
// present, as the struct does not say which are not.
//
// A time keeps what its clock shows, whatever its zone, since a datetime has none. One with parts of a tick, 100 ns, or
// outside the years 1 to 9999, and a duration with parts of a tick, are [fault.Invalid].
func Marshal[T any](dst []byte, rows []T, o *WriteOptions) ([]byte, error) {
	columns, err := ColumnsOf(rows)
	if err != nil {
		return dst, err
	}
	return Append(dst, len(rows), columns, o)
}

// ColumnsOf returns the columns that [Marshal] writes.
func ColumnsOf[T any](rows []T) ([]*Column, error) {
	return columnsOf(reflect.ValueOf(rows))
}

func columnsOf(rows reflect.Value) ([]*Column, error) {
	p, err := planOf(rows.Type().Elem())
	if err != nil {
		return nil, err
	}
	if rows.Len() > math.MaxInt32 {
		return nil, fault.New(fault.Limit, "tcb", "%d rows, at most %d", rows.Len(), math.MaxInt32)
	}
	u := unloader{rows}
	made := make(map[int32]*Column, len(p.columns))
	for _, m := range p.members {
		if made[m.Tag], err = u.member(m); err != nil {
			return nil, err
		}
	}
	for _, r := range p.records {
		slab, offsets, err := u.elements(u.rows, r.place, label(r.members[0].Tag, r.members[0].Name))
		if err != nil {
			return nil, err
		}
		for _, m := range r.members {
			c := u.column(m)
			c.Offsets = offsets
			if err := m.element(c, slab, m.place); err != nil {
				return nil, err
			}
			made[m.Tag] = c
		}
	}
	columns := make([]*Column, len(p.columns))
	for i, m := range p.columns {
		columns[i] = made[m.Tag]
	}
	return columns, nil
}

// SchemaOf returns the schema of the table that [Marshal] makes of values of T. Its name is that of the type, those of
// its columns are those of the fields, with the name of the struct and a point in front in a group.
func SchemaOf[T any]() (*Schema, error) {
	p, err := planOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return p.schema(), nil
}

// unloader makes columns of rows.
type unloader struct{ rows reflect.Value }

// column is a column without values in which every row is present.
func (u *unloader) column(m *member) *Column {
	c := &Column{Tag: m.Tag, Name: m.Name, Type: m.Type, Rows: u.rows.Len()}
	if m.Type.Optional {
		c.Present = allPresent(c.Rows)
	}
	return c
}

func allPresent(n int) Bitmap {
	b := NewBitmap(n)
	for i := range b {
		b[i] = 0xff
	}
	if n > 0 {
		clearTail(b, n)
	}
	return b
}

// member makes the column of a member that is not in an array of records.
func (u *unloader) member(m *member) (*Column, error) {
	c := u.column(m)
	if m.Type.Kind == Scalar {
		return c, m.fetch(c, &c.Present, m.row, u.rows, m.place, func(i int) int { return i })
	}
	rows, place := m.inside(u.rows, m.place, m.row, &c.Present)
	slab, offsets, err := u.elements(rows, place, label(m.Tag, m.Name))
	if err != nil {
		return nil, err
	}
	c.Offsets = offsets
	return c, m.element(c, slab, box.Place{})
}

// element gets the elements of an array column.
func (m *member) element(c *Column, slab reflect.Value, p box.Place) error {
	if m.Type.ElementOptional {
		c.ElementPresent = allPresent(slab.Len())
	}
	return m.fetch(c, &c.ElementPresent, m.elem, slab, p, c.rowOf)
}

// elements lays the elements of a slice in each row side by side.
func (u *unloader) elements(rows reflect.Value, p box.Place, name string) (reflect.Value, []int32, error) {
	offsets := make([]int32, rows.Len()+1)
	n := 0
	for i := range rows.Len() {
		if n += field(rows, i, p).Len(); n > math.MaxInt32 {
			return rows, nil, fault.New(fault.Limit, "tcb", "more than %d elements", math.MaxInt32).On(name)
		}
		offsets[i+1] = int32(n)
	}
	t := rows.Type().Elem()
	if len(p.Index) > 0 {
		t = t.FieldByIndex(p.Index).Type
	}
	slab := reflect.MakeSlice(reflect.SliceOf(t.Elem()), n, n)
	for i := range rows.Len() {
		reflect.Copy(slab.Slice(int(offsets[i]), int(offsets[i+1])), field(rows, i, p))
	}
	return slab, offsets, nil
}

func field(rows reflect.Value, i int, p box.Place) reflect.Value {
	v := rows.Index(i)
	if len(p.Index) > 0 {
		v = v.FieldByIndex(p.Index)
	}
	return v
}

// inside takes a layer off the values at a place: it notes which are present, and returns where the values are.
func (m *member) inside(rows reflect.Value, p box.Place, w layer, present *Bitmap) (reflect.Value, box.Place) {
	switch w.wrap {
	case opt:
		flags := make([]bool, rows.Len())
		box.Fetch(box.RowsOf(rows), p.In(w.present), flags)
		*present = bitmapOf(flags)
		return rows, p.In(w.value)
	case pointer:
		flags := make([]bool, rows.Len())
		values := reflect.MakeSlice(reflect.SliceOf(w.inner), rows.Len(), rows.Len())
		for i := range flags {
			if v := field(rows, i, p); !v.IsNil() {
				flags[i] = true
				values.Index(i).Set(v.Elem())
			}
		}
		*present = bitmapOf(flags)
		return values, box.Place{}
	}
	return rows, p
}

// fetch gets the values of a column. row tells the row of one.
func (m *member) fetch(c *Column, present *Bitmap, w layer, rows reflect.Value, p box.Place, row func(i int) int) error {
	rows, p = m.inside(rows, p, w, present)
	from := box.RowsOf(rows)
	c.setLen(from.Len())
	bad := func(i int, what any) error {
		return fault.New(fault.Invalid, "tcb", "%v is not a whole number of ticks of 100 ns in the years 1 to 9999", what).
			On(fmt.Sprintf("row %d, %s", row(i), label(m.Tag, m.Name)))
	}
	// What is absent need not be a time that can be written.
	absent := func(i int) bool { return w.wrap != plain && !present.Get(i) }
	switch m.leaf {
	case leafInt32:
		box.Fetch(from, p, c.Int32s)
	case leafInt64:
		box.Fetch(from, p, c.Int64s)
	case leafFloat32:
		box.Fetch(from, p, c.Float32s)
	case leafFloat64:
		box.Fetch(from, p, c.Float64s)
	case leafBool:
		box.Fetch(from, p, c.Bools)
	case leafString:
		box.Fetch(from, p, c.Strings)
	case leafGUID:
		box.Fetch(from, p, c.UUIDs)
	case leafTime:
		return fetchTicks(from, p, c.Int64s, TicksOf, absent, bad)
	case leafDuration:
		return fetchTicks(from, p, c.Int64s, ticksOfSpan, absent, bad)
	}
	return nil
}

func fetchTicks[V any](from box.Rows, p box.Place, out []int64, of func(V) (int64, bool), absent func(int) bool, bad func(int, any) error) error {
	v := make([]V, len(out))
	box.Fetch(from, p, v)
	for i, x := range v {
		if absent(i) {
			continue
		}
		var ok bool
		if out[i], ok = of(x); !ok {
			return bad(i, x)
		}
	}
	return nil
}

// ticksOfSpan returns a duration as a timespan; ok is false when it has parts of a tick.
func ticksOfSpan(d time.Duration) (ticks int64, ok bool) { return int64(d / 100), d%100 == 0 }
