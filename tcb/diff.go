package tcb

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// Snapshot is one side of a comparison.
type Snapshot struct {
	Name    string // of the file, for messages; "": "the old table", "the new table"
	Columns []*Column
	Schema  *Schema // names and logical types, by tag; nil: columns have their own names
}

// DiffOptions are the options of Diff. Nil and the zero value mean the defaults.
type DiffOptions struct {
	// Key is the column whose value says which rows are the same: its name, in either table, or its tag in decimal. It is a column of
	// scalars, in which each row has a value that no other row has. Without it, rows are the same that have the same number.
	Key string
	// ByName matches columns by name, not by tag. It is always so where a column has no tag: 0.
	ByName bool
	// Labels: enumerations are printed as labels, where the schema of their side has one for the number.
	Labels bool
}

// TableDiff is how one table differs from another. It refers to the columns of both, and is safe for concurrent use.
type TableDiff struct {
	Key              string // the label of the key column, "" when rows are told apart by number
	OldRows, NewRows int
	Columns          []ColumnDiff // in the order of the new table, then those that only the old one has

	old, new *diffSide
	pairs    []columnPair
	key      int     // of pairs, -1: rows have the same number
	match    []int32 // with a key: the new row of an old one, -1 where there is none
	matched  Bitmap  // and which new rows there are in match
}

// ColumnDiff is a column that not both tables have, or not with the same type and name.
type ColumnDiff struct {
	Tag      int32  // 0 where there is none
	Name     string // the label: the name, or the tag, in the new table if it has the column
	OldName  string // the label in the old table, where it is another
	Old, New string // the types as Type.String writes them, with datetime and timespan; "" where the column is not there
	// Compared: the values of the column are compared all the same, since the types hold values of one kind, as i32 and
	// i64 do.
	Compared bool
}

// DiffKind says what happened to a row.
type DiffKind uint8

// The kinds.
const (
	RowChanged DiffKind = iota
	RowAdded
	RowRemoved
)

// String is "changed", "added" or "removed".
func (k DiffKind) String() string { return [...]string{"changed", "added", "removed"}[k] }

// RowDiff is a row that differs.
type RowDiff struct {
	Kind     DiffKind
	Key      string     // the value of the key as JSON, "" when rows are told apart by number
	Old, New int        // the numbers of the row, -1 where it is not there
	Cells    []CellDiff // those that differ; all of a row that was added or removed
}

// CellDiff is a cell that differs.
type CellDiff struct {
	Column   string // the label
	Old, New string // JSON as Rows prints it, "" where the row is not there
	// Hidden: Old and New are the same text, for values that differ in what it does not show: the bits of NaN, bytes that
	// are no UTF-8.
	Hidden bool
}

// DiffCount is how much differs.
type DiffCount struct {
	Added, Removed, Changed int // rows
	Cells                   int // of changed rows
}

// diffSide is a snapshot with what was looked up about it.
type diffSide struct {
	name    string
	columns []*Column
	fields  []Field
	rows    *Rows // without Losses, which are what keeps Rows to one goroutine
	numbers *Rows // the same, without logical types, for ticks that are no datetime
	count   int
}

// columnPair is a column that both sides have.
type columnPair struct {
	old, new int                 // the columns of the sides
	a, b     *Column             // the same
	equal    func(i, j int) bool // of values; nil: they are not compared
}

// Diff compares two tables. A value that is absent is another than an empty one, floats are the same when their bits are,
// and numbers of different types when their values are.
//
// A key that is not in both tables is [fault.NotFound]; rows without a key, and two rows with one, are [fault.Invalid].
// The message names the table, the column and the rows.
func Diff(old, new Snapshot, o *DiffOptions) (*TableDiff, error) {
	if o == nil {
		o = &DiffOptions{}
	}
	c := &TableDiff{key: -1}
	var err error
	if c.old, err = newSide(old, "the old table", o.Labels); err != nil {
		return nil, err
	}
	if c.new, err = newSide(new, "the new table", o.Labels); err != nil {
		return nil, err
	}
	c.OldRows, c.NewRows = c.old.count, c.new.count
	noTag := func(x *Column) bool { return x.Tag == 0 }
	byName := o.ByName || slices.ContainsFunc(old.Columns, noTag) || slices.ContainsFunc(new.Columns, noTag)
	if err := c.matchColumns(byName); err != nil {
		return nil, err
	}
	if o.Key != "" {
		if err := c.matchRows(o.Key, byName); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func newSide(s Snapshot, name string, labels bool) (*diffSide, error) {
	d := &diffSide{name: cmp.Or(s.Name, name), columns: s.Columns, fields: make([]Field, len(s.Columns))}
	var byTag map[int32]*Field
	byName := make(map[string]*Field) // for columns without a tag
	if s.Schema != nil {
		byTag = fieldsByTag(s.Schema.Columns)
		for i := range s.Schema.Columns {
			byName[s.Schema.Columns[i].Name] = &s.Schema.Columns[i]
		}
	}
	for i, c := range s.Columns {
		if err := c.Check(); err != nil {
			return nil, fault.Locate(err, d.name, "", 0)
		}
		if c.Rows != s.Columns[0].Rows {
			return nil, fault.New(fault.Invalid, "tcb", "%d rows, other columns have %d", c.Rows, s.Columns[0].Rows).On(c.label()).In(d.name)
		}
		d.count = c.Rows
		f := Field{Tag: c.Tag, Name: c.Name, Type: c.Type}
		g := byTag[c.Tag]
		if c.Tag == 0 {
			g = byName[c.Name]
		}
		if g != nil {
			f.Name, f.Logical, f.Labels = g.Name, g.Logical, g.Labels
		}
		if f.Type.Element != I64 {
			f.Logical = Number
		}
		d.fields[i] = f
	}
	o := &RowOptions{JSON: value.JSONOptions{NonFinite: value.NonFiniteString, InvalidUTF8: value.UTF8Replace}, Labels: labels}
	d.numbers, d.rows = NewRows(s.Columns, nil, o), NewRows(s.Columns, nil, o)
	copy(d.rows.fields, d.fields)
	for k := range d.fields {
		if d.fields[k].Type.Element == Enum {
			d.rows.label(k)
		}
	}
	return d, nil
}

// matchColumns finds the columns that both sides have, and what became of the others.
func (c *TableDiff) matchColumns(byName bool) error {
	at, err := c.old.index(byName)
	if err != nil {
		return err
	}
	if _, err := c.new.index(byName); err != nil {
		return err
	}
	used := make([]bool, len(c.old.columns))
	for k := range c.new.fields {
		f := &c.new.fields[k]
		i, ok := at[f.identity(byName)]
		if !ok {
			c.Columns = append(c.Columns, ColumnDiff{Tag: f.Tag, Name: f.label(), New: f.TypeText()})
			continue
		}
		used[i] = true
		g := &c.old.fields[i]
		p := columnPair{old: i, new: k, a: c.old.columns[i], b: c.new.columns[k]}
		p.equal = equalValues(p.a, p.b, g.Logical, f.Logical)
		c.pairs = append(c.pairs, p)
		if f.label() != g.label() || f.TypeText() != g.TypeText() {
			change := ColumnDiff{Tag: f.Tag, Name: f.label(), Old: g.TypeText(), New: f.TypeText(), Compared: p.equal != nil}
			if f.label() != g.label() {
				change.OldName = g.label()
			}
			c.Columns = append(c.Columns, change)
		}
	}
	for i, u := range used {
		if g := &c.old.fields[i]; !u {
			c.Columns = append(c.Columns, ColumnDiff{Tag: g.Tag, Name: g.label(), Old: g.TypeText()})
		}
	}
	return nil
}

// identity is what columns are matched by.
func (f *Field) identity(byName bool) string {
	if byName {
		return f.label()
	}
	return strconv.Itoa(int(f.Tag))
}

// index says where the columns are.
func (d *diffSide) index(byName bool) (map[string]int, error) {
	at := make(map[string]int, len(d.columns))
	for i := range d.fields {
		f := &d.fields[i]
		id := f.identity(byName)
		if j, ok := at[id]; ok {
			what := "tag"
			if byName {
				what = "name"
			}
			return nil, fault.New(fault.Invalid, "tcb", "the columns %d and %d have the %s %s both", j+1, i+1, what, id).In(d.name)
		}
		at[id] = i
	}
	return at, nil
}

// matchRows finds the rows that both sides have, by key.
func (c *TableDiff) matchRows(key string, byName bool) error {
	for _, is := range []func(p columnPair) bool{
		func(p columnPair) bool { return c.new.fields[p.new].Name == key },
		func(p columnPair) bool { return c.old.fields[p.old].Name == key },
		func(p columnPair) bool { return strconv.Itoa(int(c.new.fields[p.new].Tag)) == key },
	} {
		if c.key < 0 {
			c.key = slices.IndexFunc(c.pairs, is)
		}
	}
	if c.key < 0 {
		return c.noKey(key, byName)
	}
	p := &c.pairs[c.key]
	c.Key = c.new.fields[p.new].label()
	for i, s := range []*diffSide{c.old, c.new} {
		k := []int{p.old, p.new}[i]
		x := s.columns[k]
		if x.Type.Kind == Array {
			return s.bad(k, fault.Invalid, "an array is no key")
		}
		for row := range x.Rows {
			if !x.Has(row) {
				return s.bad(k, fault.Invalid, "row %d has no key", row)
			}
		}
	}
	if p.equal == nil {
		return c.new.bad(p.new, fault.Conflict, "a key of %s, and of %s in %s", c.new.fields[p.new].TypeText(), c.old.fields[p.old].TypeText(), c.old.name)
	}
	switch e, g := p.a.Type.Element, p.b.Type.Element; {
	case holdsInteger(e) && holdsInteger(g):
		return matchKeys(c, integers(p.a), integers(p.b))
	case e == String:
		return matchKeys(c, valuesOf(p.a.Strings), valuesOf(p.b.Strings))
	case e == UUID:
		return matchKeys(c, valuesOf(p.a.UUIDs), valuesOf(p.b.UUIDs))
	case e == Bool:
		return matchKeys(c, valuesOf(p.a.Bools), valuesOf(p.b.Bools))
	case e == F32 && g == F32:
		return matchKeys(c, bits32(p.a), bits32(p.b))
	}
	return matchKeys(c, bits64(p.a), bits64(p.b))
}

// noKey is the error for a key that is not a column of both tables.
func (c *TableDiff) noKey(key string, byName bool) error {
	for _, s := range []*diffSide{c.old, c.new} {
		if !slices.ContainsFunc(s.fields, func(f Field) bool { return f.Name == key || strconv.Itoa(int(f.Tag)) == key }) {
			return fault.New(fault.NotFound, "tcb", "there is no column %q, for the key", key).In(s.name)
		}
	}
	what := "tag"
	if byName {
		what = "name"
	}
	return fault.New(fault.NotFound, "tcb", "the column %q, for the key, has another %s in %s", key, what, c.old.name).In(c.new.name)
}

// bad is an error about a column.
func (d *diffSide) bad(k int, class error, format string, args ...any) error {
	return fault.New(class, "tcb", format, args...).On(label(d.fields[k].Tag, d.fields[k].Name)).In(d.name)
}

// matchKeys fills match and matched.
func matchKeys[K comparable](c *TableDiff, oldKey, newKey func(int) K) error {
	twice := func(s *diffSide, k, first, second int) error {
		return s.bad(k, fault.Invalid, "rows %d and %d have the key %s both", first, second, s.cell(k, first))
	}
	p := &c.pairs[c.key]
	at := make(map[K]int32, c.NewRows)
	for j := range c.NewRows {
		k := newKey(j)
		if first, ok := at[k]; ok {
			return twice(c.new, p.new, int(first), j)
		}
		at[k] = int32(j)
	}
	c.match, c.matched = make([]int32, c.OldRows), NewBitmap(c.NewRows)
	from := make([]int32, c.NewRows) // the old row of a new one
	gone := make(map[K]int32)
	for i := range c.OldRows {
		k := oldKey(i)
		j, ok := at[k]
		if !ok {
			if first, ok := gone[k]; ok {
				return twice(c.old, p.old, int(first), i)
			}
			gone[k] = int32(i)
			c.match[i] = -1
			continue
		}
		if c.matched.Get(int(j)) {
			return twice(c.old, p.old, int(from[j]), i)
		}
		c.match[i], from[j] = j, int32(i)
		c.matched.Set(int(j))
	}
	return nil
}

// each calls changed for rows that both sides have, and for others with -1, until it returns false: old rows first.
func (c *TableDiff) each(yield func(i, j int) bool) {
	if c.key < 0 {
		for i := range max(c.OldRows, c.NewRows) {
			from, to := i, i
			if i >= c.OldRows {
				from = -1
			}
			if i >= c.NewRows {
				to = -1
			}
			if !yield(from, to) {
				return
			}
		}
		return
	}
	for i, j := range c.match {
		if !yield(i, int(j)) {
			return
		}
	}
	for j := range c.NewRows {
		if !c.matched.Get(j) && !yield(-1, j) {
			return
		}
	}
}

// Count counts the rows and cells that differ.
func (c *TableDiff) Count() DiffCount {
	var n DiffCount
	for i, j := range c.each {
		switch {
		case i < 0:
			n.Added++
		case j < 0:
			n.Removed++
		default:
			cells := 0
			for k := range c.pairs {
				if !c.pairs[k].same(i, j) {
					cells++
				}
			}
			n.Cells += cells
			n.Changed += min(cells, 1)
		}
	}
	return n
}

// None reports whether the tables are the same: columns, their types and names, and rows.
func (c *TableDiff) None() bool {
	for range c.Rows() {
		return false
	}
	return len(c.Columns) == 0
}

// Rows iterates over the rows that differ: those of the old table in their order, then those that were added.
func (c *TableDiff) Rows() iter.Seq[RowDiff] {
	return func(yield func(RowDiff) bool) {
		for i, j := range c.each {
			if r, ok := c.row(i, j); ok && !yield(r) {
				return
			}
		}
	}
}

// row returns the change of a row, and whether it is one.
func (c *TableDiff) row(i, j int) (RowDiff, bool) {
	r := RowDiff{Old: i, New: j}
	switch {
	case i < 0:
		r.Kind = RowAdded
		for k := range c.new.columns {
			r.Cells = append(r.Cells, CellDiff{Column: c.new.fields[k].label(), New: c.new.cell(k, j)})
		}
	case j < 0:
		r.Kind = RowRemoved
		for k := range c.old.columns {
			r.Cells = append(r.Cells, CellDiff{Column: c.old.fields[k].label(), Old: c.old.cell(k, i)})
		}
	default:
		for k := range c.pairs {
			p := &c.pairs[k]
			if p.same(i, j) {
				continue
			}
			x := CellDiff{Column: c.new.fields[p.new].label(), Old: c.old.cell(p.old, i), New: c.new.cell(p.new, j)}
			x.Hidden = x.Old == x.New
			r.Cells = append(r.Cells, x)
		}
		if len(r.Cells) == 0 {
			return r, false
		}
	}
	if c.key >= 0 {
		if j >= 0 {
			r.Key = c.new.cell(c.pairs[c.key].new, j)
		} else {
			r.Key = c.old.cell(c.pairs[c.key].old, i)
		}
	}
	return r, true
}

// cell prints a cell. Ticks that are no datetime are numbers.
func (d *diffSide) cell(k, i int) string {
	text, err := d.rows.AppendCell(nil, k, i)
	if err != nil {
		text, _ = d.numbers.AppendCell(nil, k, i) // floats and text have a form for everything
	}
	return string(text)
}

// same compares row i of the old table with row j of the new one.
func (p *columnPair) same(i, j int) bool {
	if p.equal == nil {
		return true
	}
	if has := p.a.Has(i); !has || !p.b.Has(j) {
		return has == p.b.Has(j)
	}
	from, end := p.a.Span(i)
	to, newEnd := p.b.Span(j)
	if end-from != newEnd-to {
		return false
	}
	for ; from < end; from, to = from+1, to+1 {
		if has := p.a.HasElement(from); !has || !p.b.HasElement(to) {
			if has != p.b.HasElement(to) {
				return false
			}
		} else if !p.equal(from, to) {
			return false
		}
	}
	return true
}

// equalValues returns a function that compares values of two columns, nil when their types hold different things. Values of
// types that can be promoted to one another are compared (docs/format/tcb.md, "Evolution"), whichever is the wider one.
func equalValues(a, b *Column, la, lb Logical) func(i, j int) bool {
	e, g := a.Type.Element, b.Type.Element
	switch {
	case a.Type.Kind != b.Type.Kind:
		return nil
	case e == String && g == String:
		return func(i, j int) bool { return a.Strings[i] == b.Strings[j] }
	case e == Bool && g == Bool:
		return func(i, j int) bool { return a.Bools[i] == b.Bools[j] }
	case e == UUID && g == UUID:
		return func(i, j int) bool { return a.UUIDs[i] == b.UUIDs[j] }
	case e == I64 && g == I64:
		return func(i, j int) bool { return a.Int64s[i] == b.Int64s[j] }
	case holdsInteger(e) && holdsInteger(g):
		if la != Number || lb != Number { // ticks are i64 alone
			return nil
		}
		return sameBy(integers(a), integers(b))
	case e == F32 && g == F32:
		return sameBy(bits32(a), bits32(b))
	case fitsDouble(e) && fitsDouble(g) && (e == F64 || g == F64):
		return sameBy(bits64(a), bits64(b))
	}
	return nil
}

func sameBy[T comparable](a, b func(int) T) func(i, j int) bool {
	return func(i, j int) bool { return a(i) == b(j) }
}

func holdsInteger(e Element) bool { return e == Enum || e == I32 || e == I64 }

// fitsDouble reports whether f64 holds every value of the element.
func fitsDouble(e Element) bool { return e == F64 || e == F32 || e == I32 }

func valuesOf[T any](v []T) func(int) T { return func(i int) T { return v[i] } }

func integers(c *Column) func(int) int64 {
	if c.Type.Element == I64 {
		return valuesOf(c.Int64s)
	}
	return func(i int) int64 { return int64(c.Int32s[i]) }
}

func bits32(c *Column) func(int) uint32 {
	return func(i int) uint32 { return math.Float32bits(c.Float32s[i]) }
}

func bits64(c *Column) func(int) uint64 {
	switch c.Type.Element {
	case I32:
		return func(i int) uint64 { return math.Float64bits(float64(c.Int32s[i])) }
	case F32:
		return func(i int) uint64 { return math.Float64bits(float64(c.Float32s[i])) }
	}
	return func(i int) uint64 { return math.Float64bits(c.Float64s[i]) }
}
