package seriesparquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

const (
	// readRows is how many rows are taken out of the columns at once.
	readRows = 1024
	// rowsPerByte bounds the rows of a file: a page of one value repeated has millions in some bytes, and a file of nothing
	// else is no file of series, each of which has a TSID of its own.
	rowsPerByte = 4096
)

// Options are the options of a reader. Nil and the zero value mean the defaults.
type Options struct {
	// Note is told what is left out of the file, or read into it.
	Note func(text string)
}

// Records gives the series of a file of some size, which messages call name, as they come. The labels of a record are good
// until the next one. Every column of a label must be one of the tags. An error ends it, and names the row group and the row,
// both from 0.
func Records(ctx context.Context, r io.ReaderAt, size int64, name string, tags []series.Tag, o *Options) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		f, err := open(r, size, name)
		if err == nil {
			err = f.bind(tags, o)
		}
		if err != nil {
			yield(series.Record{}, fault.Locate(err, name, "", 0))
			return
		}
		for i := range f.groups {
			more, err := f.group(ctx, i, yield)
			if err != nil {
				yield(series.Record{}, fault.Locate(within(err, i), name, "", 0))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// Labels reads the metadata of a file, and returns the columns that can be labels, in their order.
func Labels(r io.ReaderAt, size int64, name string) ([]string, error) {
	f, err := open(r, size, name)
	if err != nil {
		return nil, fault.Locate(err, name, "", 0)
	}
	var labels []string
	for _, c := range f.columns {
		if c.text && c.known == "" {
			labels = append(labels, c.name)
		}
	}
	return labels, nil
}

// file is a file whose metadata were read.
type file struct {
	name    string
	src     io.ReaderAt
	size    int64
	pq      *parquet.File
	groups  []*parquet.FileRowGroup
	columns []column
	// The columns that are read.
	table, tsid, count *column // count may be nil
	labels             []*column
}

// open reads the metadata.
func open(r io.ReaderAt, size int64, name string) (*file, error) {
	if err := checkFooter(r, size); err != nil {
		return nil, err
	}
	f := &file{name: name, src: r, size: size}
	err := guard(func() (err error) {
		f.pq, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.FileReadMode(parquet.ReadModeSync))
		if err != nil {
			return corrupt("the metadata").Because(err)
		}
		for _, g := range f.pq.RowGroups() {
			f.groups = append(f.groups, g.(*parquet.FileRowGroup))
		}
		for _, c := range f.pq.Root().Columns() {
			f.columns = append(f.columns, newColumn(c))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for i := range f.columns {
		c := &f.columns[i]
		if seen[c.name] {
			return nil, invalid("two columns with the name %q", c.name)
		}
		seen[c.name] = true
		switch c.name {
		case tableColumn:
			f.table = c
		case tsidColumn:
			f.tsid = c
		case rowCountColumn:
			f.count = c
		}
	}
	for _, c := range [...]struct {
		c    *column
		name string
	}{{f.table, tableColumn}, {f.tsid, tsidColumn}} {
		if c.c == nil {
			return nil, invalid("the file has no column %s", c.name)
		}
	}
	for _, c := range []*column{f.table, f.tsid, f.count} {
		if c != nil && !c.integer {
			return nil, invalid("the column %s is %s, not of integers", c.name, c.what)
		}
	}
	return f, f.checkGroups()
}

// checkFooter reads the metadata, and checks that they claim no more than there is.
func checkFooter(r io.ReaderAt, size int64) error {
	if size < 12 {
		return corrupt("a Parquet file has 12 bytes at least, not %d", size)
	}
	var tail [8]byte
	if _, err := r.ReadAt(tail[:], size-8); err != nil && err != io.EOF {
		return err
	}
	if magic := string(tail[4:]); magic != "PAR1" {
		if magic == "PARE" {
			return fault.New(fault.UnsupportedCodec, "seriesparquet", "the file is encrypted")
		}
		return corrupt("the file does not end with PAR1: it is cut off, or no Parquet file").At(size - 4)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 {
		return corrupt("metadata of %d bytes in a file of %d", n, size).At(size - 8)
	}
	if n > maxFooter {
		return fault.New(fault.Limit, "seriesparquet", "metadata of %d bytes, at most %d", n, maxFooter)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil && err != io.EOF {
		return err
	}
	if _, err := thriftBounds(footer); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return corrupt("the metadata claim more than their %d bytes", n).At(size - 8 - n)
		}
		return err
	}
	return nil
}

// checkGroups checks the places of the columns, and the number of rows.
func (f *file) checkGroups() error {
	meta := f.pq.Metadata()
	rows := uint64(0)
	for i := range meta.RowGroups {
		g := &meta.RowGroups[i]
		bad := func(format string, args ...any) error {
			return corrupt(format, args...).On("row group " + strconv.Itoa(i))
		}
		if g.NumRows < 0 {
			return bad("%d rows", g.NumRows)
		}
		if rows += uint64(g.NumRows); rows > uint64(f.size)*rowsPerByte {
			return fault.New(fault.Limit, "seriesparquet", "%d rows in a file of %d bytes, at most %d a byte", rows, f.size, rowsPerByte).On("row group " + strconv.Itoa(i))
		}
		for k := range g.Columns {
			m := &g.Columns[k].MetaData
			start := m.DataPageOffset
			if m.DictionaryPageOffset != 0 {
				start = m.DictionaryPageOffset
			}
			if start < 0 || m.TotalCompressedSize < 0 || start > f.size || m.TotalCompressedSize > f.size-start {
				return bad("a column of %d bytes from %d on, in a file of %d bytes", m.TotalCompressedSize, start, f.size)
			}
		}
	}
	return nil
}

// group gives the series of a row group. It reports whether more are wanted.
func (f *file) group(ctx context.Context, i int, yield func(series.Record, error) bool) (more bool, err error) {
	rows := f.groups[i].NumRows()
	var open int64
	columns := append([]*column{f.table, f.tsid}, f.labels...)
	if f.count != nil {
		columns = append(columns, f.count)
	}
	defer func() {
		for _, c := range columns {
			c.end()
		}
	}()
	if err := guard(func() error {
		for _, c := range columns {
			if err := c.begin(f, i, &open); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return false, err
	}
	var labels []series.Label
	for from := int64(0); from < rows; from += readRows {
		if err := ctx.Err(); err != nil {
			return false, fault.New(nil, "seriesparquet", "").Because(err)
		}
		n := int(min(readRows, rows-from))
		for _, c := range columns {
			if err := guard(func() error { return c.read(n) }); err != nil {
				return false, place(err, c, from)
			}
			if k, err := c.convert(); err != nil {
				return false, place(err, c, from+int64(k))
			}
		}
		for k := range n {
			r := series.Record{ID: series.ID{Table: uint32(f.table.numbers[k]), TSID: f.tsid.numbers[k]}, RowCount: 1}
			if f.count != nil {
				r.RowCount = f.count.numbers[k]
			}
			labels = labels[:0]
			for _, c := range f.labels {
				if t := c.texts[k]; t.there {
					labels = append(labels, series.Label{Name: c.name, Value: c.all[t.start:t.end]})
				}
			}
			r.Labels = labels
			if !yield(r, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

// within puts the row group in front of the place of an error.
func within(err error, group int) error {
	where := "row group " + strconv.Itoa(group)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return fault.New(nil, "seriesparquet", "").On(where).Because(err)
	}
	if f.Where != "" {
		where += ", " + f.Where
	}
	return f.On(where)
}

// place gives an error the column and the row.
func place(err error, c *column, row int64) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(nil, "seriesparquet", "").Because(err)
	}
	return f.On(fmt.Sprintf("row %d, column %s", row, fault.OneLine(c.name)))
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "seriesparquet", format, args...)
}

// convert makes numbers or texts of the values that were read; k is the one that is wrong.
func (c *column) convert() (k int, err error) {
	if c.known != "" {
		return c.toNumbers()
	}
	c.texts, c.bytes = c.texts[:0], c.bytes[:0]
	for k := range c.values {
		v := &c.values[k]
		if v.IsNull() {
			c.texts = append(c.texts, text{})
			continue
		}
		from := len(c.bytes)
		c.bytes = append(c.bytes, v.ByteArray()...)
		if !utf8.Valid(c.bytes[from:]) {
			return k, invalid("the label is no UTF-8: %.40q", c.bytes[from:])
		}
		c.texts = append(c.texts, text{from, len(c.bytes), true})
	}
	c.all = string(c.bytes)
	return 0, nil
}

func (c *column) toNumbers() (k int, err error) {
	most, least := uint64(math.MaxUint64), uint64(0)
	switch c.name {
	case tableColumn:
		most = math.MaxUint32
	case rowCountColumn:
		least = 1 // a series has a row at least
	}
	c.numbers = c.numbers[:0]
	for k := range c.values {
		v := &c.values[k]
		if v.IsNull() {
			return k, invalid("the value is null")
		}
		var n int64
		if c.wide {
			n = v.Int64()
		} else if n = int64(v.Int32()); c.unsigned {
			n = int64(uint32(n))
		}
		if n < 0 && !c.unsigned {
			return k, invalid("%d, and must be an integer of %d to %d", n, least, most)
		}
		if uint64(n) > most || uint64(n) < least {
			return k, invalid("%d, and must be an integer of %d to %d", uint64(n), least, most)
		}
		c.numbers = append(c.numbers, uint64(n))
	}
	return 0, nil
}
