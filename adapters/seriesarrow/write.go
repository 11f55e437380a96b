package seriesarrow

import (
	"context"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

const (
	// MaxValues is how many values of a label a dictionary has at most.
	MaxValues = 1 << 20
	// MaxText is how long the values of a dictionary are together at most, in bytes.
	MaxText = 64 << 20
	// DefaultBatchRows is how many rows a record batch has at most, as for tables.
	DefaultBatchRows = 1 << 16

	// batchText bounds the text of a batch, for columns without a dictionary: Utf8 has offsets of 32 bits.
	batchText = 64 << 20
)

// Options are the options of Write. Nil and the zero value mean the defaults.
type Options struct {
	BatchRows int // at most so many rows in a record batch, 0: DefaultBatchRows
}

// Write writes a file with a column for each of the labels, and a row for each series. records is gone through twice, and must
// give the same each time. The labels of a series stand in the order of the columns. What w has got after an error is no
// file.
func Write(ctx context.Context, w io.Writer, labels []string, records iter.Seq2[series.Record, error], o *Options) error {
	return write(ctx, w, labels, records, o, MaxValues)
}

// write is Write with the number of values that a dictionary has at most.
func write(ctx context.Context, w io.Writer, labels []string, records iter.Seq2[series.Record, error], o *Options, maxValues int) error {
	most := DefaultBatchRows
	if o != nil && o.BatchRows > 0 {
		most = o.BatchRows
	}
	out := &writer{columns: make([]column, len(labels))}
	for i, name := range labels {
		out.columns[i] = column{name: name, codes: make(map[string]uint32)}
	}
	err := out.each(ctx, records, func(r series.Record, values []*string) error {
		for i, v := range values {
			if v != nil {
				out.columns[i].learn(*v, maxValues)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fields := []arrow.Field{
		{Name: "__table_id", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "__tsid", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "__series_row_count", Type: arrow.PrimitiveTypes.Uint64},
	}
	for i := range out.columns {
		fields = append(fields, out.columns[i].finish())
	}
	out.schema = arrow.NewSchema(fields, nil)
	if out.ipc, err = ipc.NewFileWriter(w, ipc.WithSchema(out.schema)); err != nil {
		return failed(err)
	}
	err = out.each(ctx, records, func(r series.Record, values []*string) error {
		if len(out.tsids) == most || out.text >= batchText {
			if err := out.flush(); err != nil {
				return err
			}
		}
		return out.add(r, values)
	})
	if err == nil && (len(out.tsids) > 0 || !out.written) { // dictionaries come with a batch
		err = out.flush()
	}
	if err != nil {
		return err
	}
	return failed(out.ipc.Close())
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(nil, "seriesarrow", "").Because(err)
}

// writer is a file that is being written.
type writer struct {
	schema  *arrow.Schema
	ipc     *ipc.FileWriter
	written bool

	// The batch.
	tables  []uint32
	tsids   []uint64
	counts  []uint64
	columns []column
	text    int
}

// column is a label.
type column struct {
	name       string
	codes      map[string]uint32 // nil: there are too many values for a dictionary
	size       int
	kind       *arrow.DictionaryType
	dictionary arrow.Array

	indexes []uint32 // codes, or where the values begin in the text
	text    []byte
	bits    []byte
	nulls   int
}

// each goes through the records, with the value of each column, nil where it is null.
func (w *writer) each(ctx context.Context, records iter.Seq2[series.Record, error], use func(series.Record, []*string) error) error {
	values := make([]*string, len(w.columns))
	n := 0
	for r, err := range records {
		if err != nil {
			return err
		}
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return failed(ctx.Err())
		}
		k := 0
		for i := range w.columns {
			values[i] = nil
			if k < len(r.Labels) && r.Labels[k].Name == w.columns[i].name {
				values[i] = &r.Labels[k].Value
				k++
			}
		}
		if k < len(r.Labels) {
			return fault.New(fault.Invalid, "seriesarrow", "the label %.60q has no column, or stands out of their order", r.Labels[k].Name).On(r.ID.String())
		}
		if err := use(r, values); err != nil {
			return err
		}
	}
	return failed(ctx.Err())
}

// learn adds a value to the dictionary.
func (c *column) learn(v string, maxValues int) {
	if c.codes == nil {
		return
	}
	if _, ok := c.codes[v]; ok {
		return
	}
	c.codes[v] = 0
	if c.size += len(v); len(c.codes) > maxValues || c.size > MaxText {
		c.codes = nil
	}
}

// finish makes the dictionary, and returns the type of the column.
func (c *column) finish() arrow.Field {
	f := arrow.Field{Name: c.name, Type: arrow.BinaryTypes.String, Nullable: true}
	if c.codes == nil {
		return f
	}
	offsets, text := make([]int32, 1, len(c.codes)+1), make([]byte, 0, c.size)
	for code, v := range slices.Sorted(maps.Keys(c.codes)) {
		c.codes[v] = uint32(code)
		text = append(text, v...)
		offsets = append(offsets, int32(len(text)))
	}
	c.dictionary = array.MakeFromData(array.NewData(arrow.BinaryTypes.String, len(c.codes),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(text)}, nil, 0, 0))
	c.kind = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.BinaryTypes.String}
	f.Type = c.kind
	return f
}

// add adds a series to the batch.
func (w *writer) add(r series.Record, values []*string) error {
	row := len(w.tsids)
	w.tables, w.tsids, w.counts = append(w.tables, r.Table), append(w.tsids, r.TSID), append(w.counts, r.RowCount)
	for i, v := range values {
		c := &w.columns[i]
		if row&7 == 0 {
			c.bits = append(c.bits, 0)
		}
		if v != nil {
			c.bits[row>>3] |= 1 << (row & 7)
		} else {
			c.nulls++
		}
		if c.codes == nil {
			c.indexes = append(c.indexes, uint32(len(c.text)))
			if v != nil {
				c.text = append(c.text, *v...)
				w.text += len(*v)
			}
			continue
		}
		code := uint32(0)
		if v != nil {
			var ok bool
			if code, ok = c.codes[*v]; !ok {
				return fault.New(fault.Changed, "seriesarrow", "the label %.60q has a value that it had not when the records were gone through first", c.name).On(r.ID.String())
			}
		}
		c.indexes = append(c.indexes, code)
	}
	return nil
}

// flush writes the batch.
func (w *writer) flush() error {
	n := len(w.tsids)
	number := func(t arrow.DataType, b []byte) arrow.Array {
		return array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0))
	}
	arrays := []arrow.Array{
		number(arrow.PrimitiveTypes.Uint32, arrow.Uint32Traits.CastToBytes(w.tables)),
		number(arrow.PrimitiveTypes.Uint64, arrow.Uint64Traits.CastToBytes(w.tsids)),
		number(arrow.PrimitiveTypes.Uint64, arrow.Uint64Traits.CastToBytes(w.counts)),
	}
	for i := range w.columns {
		c := &w.columns[i]
		bits := memory.NewBufferBytes(c.bits)
		if c.codes != nil {
			data := array.NewData(arrow.PrimitiveTypes.Uint32, n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(c.indexes))}, nil, c.nulls, 0)
			arrays = append(arrays, array.NewDictionaryArray(c.kind, array.MakeFromData(data), c.dictionary))
			continue
		}
		offsets := append(c.indexes, uint32(len(c.text)))
		data := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(offsets)), memory.NewBufferBytes(c.text)}, nil, c.nulls, 0)
		arrays = append(arrays, array.MakeFromData(data))
	}
	if err := w.ipc.Write(array.NewRecordBatch(w.schema, arrays, int64(n))); err != nil {
		return failed(err)
	}
	w.written = true
	w.tables, w.tsids, w.counts, w.text = w.tables[:0], w.tsids[:0], w.counts[:0], 0
	for i := range w.columns {
		c := &w.columns[i]
		c.indexes, c.text, c.bits, c.nulls = c.indexes[:0], c.text[:0], c.bits[:0], 0
	}
	return nil
}
