package main

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// table is a FILE argument that is a table.
type table struct {
	*tcb.Table             // nil: it is encrypted, and there is no key
	own        *tcb.Schema // of the file, with the names of --schema
	schema     *tcb.Schema // as --schema has it: wider types, and columns that the file lacks
	named      bool        // there is a --schema
	labels     bool        // --labels
	obj        source.Object
	protection tcb.Protection

	owns   map[int32]*tcb.Field  // the columns of own
	byTag  map[int32]*tcb.Field  // those of schema
	byName map[string]*tcb.Field // those of schema that have a name
}

// tableInFlags say how tables are read. Verbs that read no tables do not have them.
type tableInFlags struct {
	keyFlags
	schema     string
	maxRows    int64
	maxDecoded size
	labels     bool

	keyless bool // set by verbs that say something of a table they have no key for
}

func (f *tableInFlags) add(flags *pflag.FlagSet) {
	f.keyFlags.add(flags)
	flags.StringVar(&f.schema, "schema", "", "the `FILE` with the names and types of the columns of a table")
	flags.Int64Var(&f.maxRows, "max-rows", 0, "read tables of up to `N` rows (67108864)")
	flags.Var(&f.maxDecoded, "max-decoded", "decode up to N bytes of the columns of a table (64M and 256 times the size of the file)")
}

// addLabels adds the flag of verbs that print values.
func (f *tableInFlags) addLabels(flags *pflag.FlagSet) {
	flags.BoolVar(&f.labels, "labels", false, "print enumerations as the labels of --schema, where a number has one")
}

func (f *tableInFlags) check() error {
	if f.labels && f.schema == "" {
		return usagef("--labels prints the labels of --schema, which is missing")
	}
	return nil
}

// unused refuses flags of tables that do nothing for a document.
func (f *tableInFlags) unused(d *document) error {
	flag := ""
	switch {
	case f == nil:
	case f.schema != "":
		flag = "schema"
	case f.labels:
		flag = "labels"
	case f.maxRows != 0:
		flag = "max-rows"
	case f.maxDecoded != 0:
		flag = "max-decoded"
	case f.keyFile != "":
		flag = "key-file"
	case f.macKeyFile != "":
		flag = "mac-key-file"
	}
	if flag == "" {
		return nil
	}
	return usagef("--%s is for tables (tcb), and %s is a %s file", flag, d.name, d.format)
}

// openTable opens an object that is a table.
func (e *env) openTable(ctx context.Context, obj source.Object, f *tableInFlags) (*table, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	names, err := readSchema(f.schema)
	if err != nil {
		return nil, err
	}
	t := &table{obj: obj, named: names != nil, labels: f.labels}
	t.Table, err = tcb.Open(ctx, obj, &tcb.Options{Keys: keys, Limits: tcb.Limits{Rows: f.maxRows, Bytes: int64(f.maxDecoded)}})
	if f.keyless && len(keys.Encryption) == 0 && tcb.Check(err) == "O7" {
		t.protection, err = tcb.ReadProtection(ctx, obj)
		t.protection.Verified = len(keys.MAC) > 0 // which comes before the encryption
		return t, err
	}
	if err != nil {
		return nil, err
	}
	t.protection = t.Protection()
	// A column of an unknown type is no reason against the others; it has no schema.
	if t.own, err = t.Named(names); err == nil {
		t.schema, err = t.As(names)
	}
	if err != nil && names != nil {
		return nil, err
	}
	if t.schema == nil {
		t.own, t.schema = &tcb.Schema{}, &tcb.Schema{}
	}
	t.owns, t.byTag = byTag(t.own), byTag(t.schema)
	t.byName = make(map[string]*tcb.Field, len(t.byTag))
	for _, f := range t.byTag {
		if f.Name != "" {
			t.byName[f.Name] = f
		}
	}
	return t, nil
}

// byTag are the columns of a schema by their tags.
func byTag(s *tcb.Schema) map[int32]*tcb.Field {
	m := make(map[int32]*tcb.Field, len(s.Columns))
	for i := range s.Columns {
		m[s.Columns[i].Tag] = &s.Columns[i]
	}
	return m
}

// Read reads columns as --schema has them. All of them are not those that [env.leftOut] names.
func (t *table) Read(ctx context.Context, tags ...int32) ([]*tcb.Column, error) {
	if !t.named {
		return t.Table.Read(ctx, tags...)
	}
	s := t.schema
	if len(tags) > 0 { // a few of many, perhaps
		s = &tcb.Schema{}
		for _, tag := range tags {
			f := t.byTag[tag]
			if f == nil { // it cannot be decoded, and the error says why
				return t.Table.Read(ctx, tags...)
			}
			s.Columns = append(s.Columns, *f)
		}
	}
	return t.ReadAs(ctx, s, tags...)
}

// leftOut names the columns that --schema does not have and nothing here decodes: a reader that knows the schema passes
// over them.
func (e *env) leftOut(t *table) {
	if !t.named {
		return
	}
	for _, d := range t.Columns() {
		if t.byTag[d.Tag] == nil {
			e.say("%s: column %d: left out: the schema does not have it, and it cannot be decoded; spile verify says why", t.Name(), d.Tag)
			e.partial = true
		}
	}
}

// readSchema reads the schema in a file, nil when none is named.
func readSchema(path string) (*tcb.Schema, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readNamed(path)
	if err != nil {
		return nil, err
	}
	s, err := tcb.ParseSchema(text)
	return s, named(err, path)
}

// name is the name of a column: that of the schema, or the decimal tag.
func (t *table) name(tag int32) string {
	if f := t.byTag[tag]; f != nil && f.Name != "" {
		return f.Name
	}
	return strconv.Itoa(int(tag))
}

// field is what is known of a column.
func (t *table) field(d tcb.Descriptor) tcb.Field {
	if f := t.owns[d.Tag]; f != nil {
		return *f
	}
	return tcb.Field{Tag: d.Tag, Type: d.Type}
}

// columnPath is the path of a column.
func (t *table) columnPath(tag int32) string {
	return pathText(msglc.Path{msglc.TextStep("*"), msglc.TextStep(t.name(tag))})
}

// cells is what a path into a table names: rows of all columns or of one, or a single cell or element.
type cells struct {
	rows    []int // nil: all of them
	one     bool  // a row is meant, not a list of rows
	column  int32 // the tag of one column, 0: all of them
	element string
}

// find reads a path: ROW, ROW/COLUMN, ROW/COLUMN/ELEMENT, */COLUMN, or a slice from:to or from:step:to in place of the
// row. ” is all rows.
func (t *table) find(path string) (c cells, err error) {
	p, err := msglc.ParsePath(path)
	if err != nil {
		return c, usagef("path %q: %s", path, message(err))
	}
	missing := func(format string, args ...any) (cells, error) {
		return c, fault.New(fault.NotFound, "", format, args...).On(path).In(t.Name())
	}
	if len(p) > 3 {
		return missing("a path of %d steps, and a table has rows, columns and elements", len(p))
	}
	if len(p) > 0 {
		step := p[0].String()
		if step != "*" {
			var ok bool
			if c.rows, c.one, ok = rowsOf(step, t.Rows()); !ok {
				return missing("%q is no row and no slice of rows; 17 is one, 17/NAME a cell of it, and */NAME a column", step)
			}
			if c.one && len(c.rows) == 0 {
				return missing("row %s of %d", step, t.Rows())
			}
		}
	}
	if len(p) > 1 {
		if c.column, err = t.column(p[1].String()); err != nil {
			return c, named(err, t.Name())
		}
	}
	if len(p) > 2 {
		c.element = p[2].String()
		if t.kind(c.column) != tcb.Array {
			return missing("%q: the column %s is no array, and has no elements", c.element, t.name(c.column))
		}
		if _, one, ok := rowsOf(c.element, 0); ok && !one {
			return missing("%q is a slice, and elements are taken one by one, or all with their row", c.element)
		}
		if at, one, ok := rowsOf(c.element, math.MaxInt32); !ok || !one || at == nil && !strings.HasPrefix(c.element, "-") {
			return missing("%q is no number of an element; 0 is the first, -1 the last", c.element)
		}
	}
	return c, nil
}

// rowsOf reads an index or a slice of n items; one says that it is an index. An index that is out of range gives no item.
func rowsOf(step string, n int) (rows []int, one, ok bool) {
	parts := strings.Split(step, ":")
	bounds := make([]int, len(parts))
	for i, part := range parts {
		v, err := strconv.ParseInt(part, 10, 64)
		if err != nil && (part != "" || len(parts) == 1) && !errors.Is(err, strconv.ErrRange) {
			return nil, false, false
		}
		// Beyond the table is beyond it by as much as anybody likes.
		bounds[i] = int(max(-math.MaxInt32, min(v, math.MaxInt32)))
		if bounds[i] < 0 {
			bounds[i] += n
		}
	}
	from, to, by := 0, n, 1
	switch len(parts) {
	case 1:
		if i := bounds[0]; i >= 0 && i < n {
			rows = []int{i}
		}
		return rows, true, true
	case 3:
		if parts[1] != "" {
			var err error
			if by, err = strconv.Atoi(parts[1]); err != nil && !errors.Is(err, strconv.ErrRange) || by < 1 {
				return nil, false, false
			}
			by = min(by, max(n, 1)) // and no row is behind the first one
		}
	case 2:
	default:
		return nil, false, false
	}
	if parts[0] != "" {
		from = max(0, bounds[0])
	}
	if last := len(parts) - 1; parts[last] != "" {
		to = min(n, bounds[last])
	}
	rows = []int{}
	for i := from; i < to; i += by {
		rows = append(rows, i)
		if to-i <= by { // the sum may be more than an int holds
			break
		}
	}
	return rows, false, true
}

// column finds a column by its name, or by its tag.
func (t *table) column(name string) (int32, error) {
	if f := t.byName[name]; f != nil {
		return f.Tag, nil
	}
	if n, err := strconv.ParseInt(name, 10, 32); err == nil && n > 0 {
		if _, ok := t.Lookup(int32(n)); ok {
			return int32(n), nil
		}
		if t.byTag[int32(n)] != nil {
			return int32(n), nil
		}
	} else if !t.named {
		return 0, fault.New(fault.NotFound, "", "there is no column %q: names need --schema, without it columns go by their tags", name)
	}
	return 0, fault.New(fault.NotFound, "", "there is no column %q; spile ls lists them", name)
}

// kind is that of a column.
func (t *table) kind(tag int32) tcb.Kind {
	if f := t.byTag[tag]; f != nil {
		return f.Type.Kind
	}
	d, _ := t.Lookup(tag)
	return d.Type.Kind
}

// stored refuses a column of --schema that the file does not have.
func (t *table) stored(tag int32, path string) error {
	if _, ok := t.Lookup(tag); tag == 0 || ok {
		return nil
	}
	return fault.New(fault.NotFound, "", "the column is in the schema, and not in the file").On(path).In(t.Name())
}

// Close closes the file.
func (t *table) Close() error { return t.obj.Close() }
