package seriesparquet

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// The columns that are no labels.
const (
	tableColumn    = "__table_id"
	tsidColumn     = "__tsid"
	rowCountColumn = "__series_row_count"
)

// column is a column of the file.
type column struct {
	name     string
	known    string // its name, when it is one of the three
	index    int    // among the leaves
	what     string // its type, for messages
	flat     bool   // a value a row
	bytes    []byte // scratch of convert
	text     bool
	integer  bool
	wide     bool // 64 bits
	unsigned bool
	time     bool

	// Of the row group that is read.
	source  *pageReader
	pages   parquet.Pages
	page    parquet.ValueReader
	used    []parquet.Page  // that values point into
	values  []parquet.Value // of the rows that are read
	numbers []uint64
	texts   []text
	all     string // that texts are in
}

// text is a label: its place in a text of all, and whether it is there.
type text struct {
	start, end int
	there      bool
}

// newColumn finds what a column is.
func newColumn(c *parquet.Column) column {
	out := column{name: c.Name(), index: c.Index(), flat: c.Leaf() && !c.Repeated()}
	if slices.Contains([]string{tableColumn, tsidColumn, rowCountColumn}, out.name) {
		out.known = out.name
	}
	if !out.flat {
		out.what = "nested"
		return out
	}
	t := c.Type()
	kind := t.Kind()
	out.what = t.String()
	converted := deprecated.ConvertedType(-1)
	if p := t.ConvertedType(); p != nil {
		converted = *p
	}
	var logical format.LogicalTypeValue
	if p := t.LogicalType(); p != nil {
		logical = p.Value
	}
	switch l := logical.(type) {
	case *format.TimestampType, *format.DateType, *format.TimeType:
		out.time = true
	case *format.IntType:
		out.integer, out.unsigned = true, !l.IsSigned
	case *format.StringType, *format.EnumType, *format.JsonType:
		out.text = kind == parquet.ByteArray
	case nil:
		switch converted {
		case deprecated.TimestampMillis, deprecated.TimestampMicros, deprecated.Date, deprecated.TimeMillis, deprecated.TimeMicros:
			out.time = true
		case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
			out.integer, out.unsigned = true, true
		case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64, -1:
			out.integer = true
			// Bytes without a name are text to some writers. Those of the index of series that are none have names of
			// their own.
			out.text = kind == parquet.ByteArray && !strings.HasPrefix(out.name, "__")
		case deprecated.UTF8, deprecated.Enum, deprecated.Json:
			out.text = kind == parquet.ByteArray
		}
	}
	out.time = out.time || kind == parquet.Int96
	out.wide = kind == parquet.Int64
	out.integer = out.integer && (kind == parquet.Int32 || kind == parquet.Int64)
	return out
}

// left reports whether a column that is no label is left out: times, and what the older index has beside the labels.
func (c *column) left() bool {
	return c.time || !c.text && strings.HasPrefix(c.name, "__")
}

// bind finds the columns of the labels.
func (f *file) bind(tags []series.Tag, o *Options) error {
	note := func(string) {}
	if o != nil && o.Note != nil {
		note = o.Note
	}
	at := make(map[string]int, len(f.columns))
	for i, c := range f.columns {
		at[c.name] = i + 1
	}
	known := make(map[string]bool)
	for _, t := range tags {
		known[t.Name] = true
		i := at[t.Name]
		if i == 0 {
			continue
		}
		c := &f.columns[i-1]
		if !c.text {
			return invalid("the column %q is %s, and labels are text", c.name, c.what)
		}
		f.labels = append(f.labels, c)
	}
	var left, unknown []string
	for i := range f.columns {
		switch c := &f.columns[i]; {
		case c.known != "" || known[c.name]:
		case c.left():
			left = append(left, strconv.Quote(c.name))
		default:
			unknown = append(unknown, strconv.Quote(c.name))
		}
	}
	switch len(unknown) {
	case 0:
	case 1:
		return invalid("the column %s is no tag of the artifact", unknown[0])
	default:
		return invalid("the columns %s are no tags of the artifact", strings.Join(unknown, ", "))
	}
	switch len(left) {
	case 0:
	case 1:
		note("the column " + left[0] + " is no label, and is left out")
	default:
		note("the columns " + strings.Join(left, ", ") + " are no labels, and are left out")
	}
	if f.count == nil {
		note("there is no column " + rowCountColumn + ": each row counts one")
	}
	return nil
}

// begin begins to read the column in a row group.
func (c *column) begin(f *file, group int, open *int64) error {
	chunks := f.groups[group].ColumnChunks()
	if c.index >= len(chunks) {
		return corrupt("the row group has no column %d", c.index)
	}
	chunk := chunks[c.index].(*parquet.FileColumnChunk)
	m := &f.pq.Metadata().RowGroups[group].Columns[c.index].MetaData
	start := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		start = m.DictionaryPageOffset
	}
	c.source = &pageReader{src: f.src, end: start + m.TotalCompressedSize, codec: m.Codec, open: open}
	c.pages, c.page = chunk.PagesFrom(c.source), nil
	return nil
}

// end gives back what reading a row group holds.
func (c *column) end() {
	if c.source == nil {
		return
	}
	c.source.close()
	c.source, c.pages, c.page = nil, nil, nil
	c.used, c.values = nil, nil
}

// read reads the values of the next n rows.
func (c *column) read(n int) error {
	for i, p := range c.used[:max(0, len(c.used)-1)] { // the values of the last one may go on
		parquet.Release(p)
		c.used[i] = nil
	}
	if k := len(c.used); k > 1 {
		c.used = append(c.used[:0], c.used[k-1])
	}
	c.values = slices.Grow(c.values[:0], n)
	for len(c.values) < n {
		if c.page == nil {
			page, err := c.pages.ReadPage()
			if c.source.err != nil {
				return c.source.err
			}
			if errors.Is(err, io.EOF) {
				return corrupt("the column has fewer values than the row group has rows")
			}
			if err != nil {
				return corrupt("a page").Because(err)
			}
			c.used = append(c.used, page)
			c.page = page.Values()
		}
		k := len(c.values)
		got, err := c.page.ReadValues(c.values[k:n])
		c.values = c.values[:k+got]
		switch {
		case err == io.EOF:
			c.page = nil
		case err != nil:
			return corrupt("a page").Because(err)
		case got == 0:
			return corrupt("a page that gives no values")
		}
	}
	for i := range c.values {
		if k := c.values[i].Kind(); !c.values[i].IsNull() && c.known == "" && k != parquet.ByteArray {
			return fault.New(fault.Corrupt, "seriesparquet", "a value of the kind %s in a column of text", k)
		}
	}
	return nil
}
