package tcb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sort"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/box"
)

// Load reads a table into structs. The fields of T that have a struct tag are members; each holds the column with its
// tag. Columns that no member has are not fetched. A member whose column is not in the file keeps its empty value.
//
//	type Hero struct {
//		ID    int32           `tcb:"1"`
//		Name  string          `tcb:"2"`
//		Class Class           `tcb:"3,enum"`
//		Guild tcb.Opt[string] `tcb:"4"`
//		Loot  []int32         `tcb:"5"`
//		Born  time.Time       `tcb:"6"`
//		Stats struct {
//			HP int32 `tcb:"7"`
//		}
//	}
//
// The struct tag is the number of the column, and options behind commas:
//
//	enum             an int32 is the number of a label
//	datetime         an int64 is the ticks of a datetime; a time.Time always is a datetime
//	timespan         an int64 is the ticks of a timespan; a time.Duration always is a timespan
//	optional         rows can be absent, and then hold the empty value like any other
//	elementoptional  elements can be absent, and then hold the empty value like any other
//	name=NAME        the name of the column, for [SchemaOf] and messages; else it is that of the field
//	group            instead of a number: the struct, or slice of structs, holds members
//
// Members are int32, int64, float32, float64, bool, string and the types made of them, [GUID] for uuid, [time.Time], in
// UTC, and [time.Duration]. A slice of these holds arrays. Around a value, a slice or an element, [Opt] or a pointer says
// that it can be absent: []Opt[int32], Opt[[]int32]. A struct holds members of its own; a slice of structs is an array of
// records, whose members each are a column of arrays with as many elements. A struct is a group also without a struct
// tag. `tcb:"-"` leaves a field alone.
//
// A column must be of the kind that the member says, and optional where it says so; a mismatch is [fault.Conflict], with
// the numbers C1, C2 and C3 of [Check]. An int64 takes columns of i32 and enum too, an int32 those of enum, a float64
// those of f32 and i32; anything else is C5.
//
// A datetime outside the years 1 to 9999 is [fault.Invalid], a timespan beyond the 292 years of a time.Duration
// [fault.Limit]. What the structs and their arrays take in memory is counted against [Limits] like the columns are.
//
// The strings of a column share memory, and so do its arrays, and the values that pointers lead to.
func Load[T any](ctx context.Context, t *Table) ([]T, error) {
	l, err := newLoader(ctx, reflect.TypeFor[T](), t)
	if err != nil {
		return nil, err
	}
	if err := l.take(t.Rows(), l.plan.typ); err != nil {
		return nil, err
	}
	rows := make([]T, t.Rows())
	if err := l.fill(box.RowsOf(reflect.ValueOf(rows)), 0); err != nil {
		return nil, err
	}
	return rows, nil
}

// iterRows is how many rows Iter makes at once.
const iterRows = 256

// Iter is [Load] row by row: the columns are decoded, the structs made a few at a time. A row that is kept stays as it is.
// An error is the last pair, with a nil row.
func Iter[T any](ctx context.Context, t *Table) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		l, err := newLoader(ctx, reflect.TypeFor[T](), t)
		if err != nil {
			yield(nil, err)
			return
		}
		for from := 0; from < t.Rows(); from += iterRows {
			rows := make([]T, min(iterRows, t.Rows()-from))
			if err := l.fill(box.RowsOf(reflect.ValueOf(rows)), from); err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				if !yield(&rows[i], nil) {
					return
				}
			}
			if err := ctx.Err(); err != nil {
				yield(nil, fault.New(nil, "tcb", "").Because(err).In(t.Name()))
				return
			}
		}
	}
}

// store sets a place of rows to the values of a column from from on. Calls go forward: the next starts where the last
// has ended.
type store func(dst box.Rows, p box.Place, from int) error

// step is a store and its place in the row.
type step struct {
	store store
	place box.Place
}

// loader fills rows from columns.
type loader struct {
	table  *Table
	plan   *plan
	budget *budget
	steps  []step
}

// newLoader checks that the file has what the struct can hold, and reads it.
func newLoader(ctx context.Context, typ reflect.Type, t *Table) (*loader, error) {
	p, err := planOf(typ)
	if err != nil {
		return nil, err
	}
	l := &loader{table: t, plan: p, budget: newBudget(t.limits.Bytes)}
	var tags []int32
	var refused []error
	for _, m := range p.columns {
		d, ok := t.Lookup(m.Tag)
		if !ok {
			continue
		}
		if err := m.accepts(d); err != nil {
			refused = append(refused, fault.Locate(err, t.Name(), label(m.Tag, m.Name), 0))
		}
		tags = append(tags, m.Tag)
	}
	switch len(refused) {
	case 0:
	case 1:
		return nil, refused[0]
	default:
		return nil, errors.Join(refused...)
	}
	columns := make(map[int32]*Column, len(tags))
	if len(tags) > 0 { // without tags Read reads all
		list, err := t.Read(ctx, tags...)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			columns[c.Tag] = c
		}
	} else if err := t.tooManyRows(); err != nil {
		return nil, err.In(t.Name())
	}
	for _, m := range p.members {
		s, err := l.member(m, columns[m.Tag])
		if err != nil {
			return nil, fault.Locate(err, t.Name(), label(m.Tag, m.Name), 0)
		}
		if s != nil {
			l.steps = append(l.steps, step{s, m.place})
		}
	}
	for _, r := range p.records {
		s, err := l.records(r, columns)
		if err != nil {
			return nil, fault.Locate(err, t.Name(), r.path, 0)
		}
		l.steps = append(l.steps, step{s, r.place})
	}
	return l, nil
}

// take counts n values of a type against the limits.
func (l *loader) take(n int, t reflect.Type) error {
	size := min(int64(t.Size()), 1<<32) // so that the product fits, n being of 31 bits
	return fault.Locate(l.budget.take(int64(n), size), l.table.Name(), "", 0)
}

// slab makes n values of a type.
func (l *loader) slab(n int, t reflect.Type) (box.Rows, error) {
	if err := l.take(n, t); err != nil {
		return box.Rows{}, err
	}
	return box.RowsOf(reflect.MakeSlice(reflect.SliceOf(t), n, n)), nil
}

// chunkBytes is what rows take that are filled at once, column after column, while they stay in the cache.
const chunkBytes = 64 << 10

// fill fills rows from the columns, starting with row from of the table.
func (l *loader) fill(rows box.Rows, from int) error {
	return l.run(l.steps, rows, l.plan.typ, from)
}

// run takes the steps for rows of a type, a few rows at a time.
func (l *loader) run(steps []step, rows box.Rows, typ reflect.Type, from int) error {
	chunk := max(chunkBytes/max(int(typ.Size()), 1), 32)
	for at := 0; at < rows.Len(); at += chunk {
		part := rows.Slice(at, min(at+chunk, rows.Len()))
		for _, s := range steps {
			if err := s.store(part, s.place, from+at); err != nil {
				return fault.Locate(err, l.table.Name(), "", 0)
			}
		}
	}
	return nil
}

// member is how a member gets its values. c is nil when the file does not have the column; then it can be that there is
// nothing to do.
func (l *loader) member(m *member, c *Column) (store, error) {
	if c == nil {
		if m.Type.Kind == Scalar || m.row.wrap == pointer {
			return nil, nil
		}
		s := emptyStore(m.elem.outer)
		if m.row.wrap == opt {
			return func(dst box.Rows, p box.Place, from int) error { return s(dst, p.In(m.row.value), from) }, nil
		}
		return s, nil
	}
	if m.Type.Kind == Scalar {
		return l.wrapped(m.row, c.Present, c.Rows, func(rows []int32) (store, error) {
			row := func(i int) int { return i }
			if rows != nil {
				row = func(i int) int { return int(rows[i]) }
			}
			return m.values(c.pick(rows), row), nil
		})
	}
	slab, err := l.elements(m, c)
	if err != nil {
		return nil, err
	}
	return l.wrapped(m.row, c.Present, c.Rows, func(rows []int32) (store, error) {
		offsets := c.Offsets
		if rows != nil {
			// Rows that are absent have no elements, so what is present lies side by side.
			offsets = make([]int32, 0, len(rows)+1)
			for _, i := range rows {
				offsets = append(offsets, c.Offsets[i])
			}
			offsets = append(offsets, c.Offsets[c.Rows])
		}
		return sliceStore(offsets, slab), nil
	})
}

// elements makes the elements of all arrays of a column.
func (l *loader) elements(m *member, c *Column) (box.Rows, error) {
	if view, ok := m.view(c); ok {
		return view, nil
	}
	slab, err := l.slab(c.Len(), m.elem.outer)
	if err != nil {
		return slab, err
	}
	s, err := l.element(m, c)
	if err != nil {
		return slab, err
	}
	return slab, l.run([]step{{s, box.Place{}}}, slab, m.elem.outer, 0)
}

// element is how the elements of a column are stored.
func (l *loader) element(m *member, c *Column) (store, error) {
	return l.wrapped(m.elem, c.ElementPresent, c.Len(), func(elements []int32) (store, error) {
		if elements == nil {
			return m.values(c, c.rowOf), nil
		}
		return m.values(c.pick(elements), func(i int) int { return c.rowOf(int(elements[i])) }), nil
	})
}

// rowOf is the row that an element of an array column is in.
func (c *Column) rowOf(element int) int {
	return sort.Search(c.Rows, func(i int) bool { return int(c.Offsets[i+1]) > element })
}

// records is how an array of records gets its values.
func (l *loader) records(r *records, columns map[int32]*Column) (store, error) {
	var first *Column
	var firstName string
	var steps []step
	for _, m := range r.members {
		c := columns[m.Tag]
		if c == nil {
			continue
		}
		if first == nil {
			first, firstName = c, label(m.Tag, m.Name)
		}
		for i := range c.Rows {
			if got, want := c.Offsets[i+1]-c.Offsets[i], first.Offsets[i+1]-first.Offsets[i]; got != want {
				return nil, fault.New(fault.Conflict, "tcb", "row %d has %d elements, and %d in %s; both belong to the records of field %s", i, got, want, firstName, r.path).On(label(m.Tag, m.Name))
			}
		}
		s, err := l.element(m, c)
		if err != nil {
			return nil, fault.Locate(err, l.table.Name(), label(m.Tag, m.Name), 0)
		}
		steps = append(steps, step{s, m.place})
	}
	if first == nil {
		return emptyStore(r.typ), nil
	}
	slab, err := l.slab(first.Len(), r.typ)
	if err != nil {
		return nil, err
	}
	return sliceStore(first.Offsets, slab), l.run(steps, slab, r.typ, 0)
}

// wrapped is how n values are stored that have a layer around them. inner gives the store of the values; with a list,
// that of those values alone.
func (l *loader) wrapped(w layer, present Bitmap, n int, inner func(list []int32) (store, error)) (store, error) {
	if w.wrap == plain {
		return inner(nil)
	}
	flags := func(buf []bool, from, n int) []bool {
		buf = buf[:0]
		for i := from; i < from+n; i++ {
			buf = append(buf, present.Get(i))
		}
		return buf
	}
	var buf []bool
	if w.wrap == opt {
		s, err := inner(nil)
		return func(dst box.Rows, p box.Place, from int) error {
			buf = flags(buf, from, dst.Len())
			box.Store(dst, p.In(w.present), buf)
			return s(dst, p.In(w.value), from)
		}, err
	}
	list := make([]int32, 0, n)
	for i := range n {
		if present.Get(i) {
			list = append(list, int32(i))
		}
	}
	s, err := inner(list)
	if err != nil {
		return nil, err
	}
	slab, err := l.slab(len(list), w.inner)
	if err != nil {
		return nil, err
	}
	if err := l.run([]step{{s, box.Place{}}}, slab, w.inner, 0); err != nil {
		return nil, err
	}
	return func(dst box.Rows, p box.Place, from int) error {
		buf = flags(buf, from, dst.Len())
		k := box.StorePointers(dst, p, buf, slab)
		slab = slab.Slice(k, slab.Len())
		return nil
	}, nil
}

func sliceStore(offsets []int32, slab box.Rows) store {
	return func(dst box.Rows, p box.Place, from int) error {
		box.StoreSlices(dst, p, offsets[from:], slab)
		return nil
	}
}

// emptyStore stores slices without elements, which are not nil. It takes no memory for each row, since nothing that was
// decoded says that there are so many.
func emptyStore(elem reflect.Type) store {
	empty := box.RowsOf(reflect.MakeSlice(reflect.SliceOf(elem), 0, 0))
	var offsets []int32
	return func(dst box.Rows, p box.Place, _ int) error {
		if len(offsets) <= dst.Len() {
			offsets = make([]int32, dst.Len()+1)
		}
		box.StoreSlices(dst, p, offsets, empty)
		return nil
	}
}

// pick returns the column of some values of a scalar column, or of some elements; c itself when list is nil.
func (c *Column) pick(list []int32) *Column {
	if list == nil || len(list) == c.Len() {
		return c
	}
	return &Column{
		Tag: c.Tag, Name: c.Name, Type: Type{Element: c.Type.Element}, Rows: len(list),
		Bools: pick(c.Bools, list), Int32s: pick(c.Int32s, list), Int64s: pick(c.Int64s, list), Float32s: pick(c.Float32s, list),
		Float64s: pick(c.Float64s, list), Strings: pick(c.Strings, list), UUIDs: pick(c.UUIDs, list),
	}
}

func pick[V any](v []V, list []int32) []V {
	if v == nil {
		return nil
	}
	out := make([]V, len(list))
	for i, k := range list {
		out[i] = v[k]
	}
	return out
}

// view gives the values of a column as the elements of slices, when they are what the slices hold.
func (m *member) view(c *Column) (box.Rows, bool) {
	if m.elem.wrap != plain || c.Len() == 0 || c.Type.Element != m.Type.Element && m.leaf != leafInt32 {
		return box.Rows{}, false
	}
	t := m.elem.inner
	switch m.leaf {
	case leafInt32:
		return box.View(t, c.Int32s), true
	case leafInt64:
		return box.View(t, c.Int64s), true
	case leafFloat32:
		return box.View(t, c.Float32s), true
	case leafFloat64:
		return box.View(t, c.Float64s), true
	case leafBool:
		return box.View(t, c.Bools), true
	case leafString:
		return box.View(t, c.Strings), true
	case leafGUID:
		return box.View(t, c.UUIDs), true
	}
	return box.Rows{}, false
}

// values is how the values of a column are stored in places of the member's type, widened where they have to be. row
// tells the row of a value.
func (m *member) values(c *Column, row func(i int) int) store {
	bad := func(class error, i int, format string, args ...any) error {
		return fault.New(class, "tcb", format, args...).On(fmt.Sprintf("row %d, %s", row(i), label(m.Tag, m.Name)))
	}
	switch m.leaf {
	case leafInt32:
		return columnStore(c.Int32s)
	case leafInt64:
		if c.Type.Element != I64 {
			return widenStore[int64](c.Int32s)
		}
		return columnStore(c.Int64s)
	case leafFloat32:
		return columnStore(c.Float32s)
	case leafFloat64:
		switch c.Type.Element {
		case I32:
			return widenStore[float64](c.Int32s)
		case F32:
			return widenStore[float64](c.Float32s)
		}
		return columnStore(c.Float64s)
	case leafBool:
		return columnStore(c.Bools)
	case leafString:
		return columnStore(c.Strings)
	case leafTime:
		return ticksStore(c.Int64s, TimeOf, func(i int, ticks int64) error {
			return bad(fault.Invalid, i, "%d ticks are no datetime, 0 to %d are", ticks, int64(MaxDateTime))
		})
	case leafDuration:
		return ticksStore(c.Int64s, SpanOf, func(i int, ticks int64) error {
			return bad(fault.Limit, i, "the timespan %s, and a time.Duration ends at 292 years; an int64 with the option timespan holds it", AppendTimeSpan(nil, ticks))
		})
	}
	return columnStore(c.UUIDs)
}

func columnStore[V any](v []V) store {
	return func(dst box.Rows, p box.Place, from int) error {
		box.Store(dst, p, v[from:])
		return nil
	}
}

func widenStore[D, S box.Number](v []S) store {
	return func(dst box.Rows, p box.Place, from int) error {
		box.Widen[D](dst, p, v[from:])
		return nil
	}
}

// ticksStore stores times, which are made of ticks. Tables repeat the same time more often than not.
func ticksStore[V time.Time | time.Duration](v []int64, of func(int64) (V, bool), bad func(i int, ticks int64) error) store {
	var buf []V
	last, _ := of(0)
	var lastTicks int64
	return func(dst box.Rows, p box.Place, from int) error {
		n := dst.Len()
		buf = slices.Grow(buf[:0], n)[:n]
		for i, ticks := range v[from : from+n] {
			if ticks != lastTicks {
				value, ok := of(ticks)
				if !ok {
					return bad(from+i, ticks)
				}
				last, lastTicks = value, ticks
			}
			buf[i] = last
		}
		box.Store(dst, p, buf)
		return nil
	}
}
