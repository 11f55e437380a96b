package seriesparquet

import (
	"context"
	"io"
	"iter"
	"runtime"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/adapters/internal/parquetfile"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// DefaultRowGroupRows is how many rows a row group has at most, as for tables.
const DefaultRowGroupRows = 1 << 17

// WriteOptions are the options of Write. Nil and the zero value mean the defaults.
type WriteOptions struct {
	RowGroupRows int // at most so many rows in a row group, 0: DefaultRowGroupRows
}

// batchRows is how many series are handed to the encoder at once, columns in parallel.
const batchRows = 8 * parquetfile.BatchRows

// Write writes a file with a column for each of the labels, and a row for each series. The labels of a series stand in the
// order of the columns. What w has got after an error is no file.
func Write(ctx context.Context, w io.Writer, labels []string, records iter.Seq2[series.Record, error], o *WriteOptions) error {
	most := DefaultRowGroupRows
	if o != nil && o.RowGroupRows > 0 {
		most = o.RowGroupRows
	}
	columns := []parquetfile.Column{
		{Name: tableColumn, Node: parquet.Encoded(parquet.Uint(32), &parquet.RLEDictionary)},
		// Sorted within a table, so that differences are shorter than the numbers.
		{Name: tsidColumn, Node: parquet.Encoded(parquet.Uint(64), &parquet.DeltaBinaryPacked)},
		{Name: rowCountColumn, Node: parquet.Encoded(parquet.Uint(64), &parquet.DeltaBinaryPacked)},
	}
	for _, name := range labels {
		columns = append(columns, parquetfile.Column{Name: name, Node: parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))})
	}
	out := &writer{ctx: ctx, pq: parquetfile.NewWriter(w, columns, &parquet.Zstd), columns: make([]writeColumn, len(columns))}
	out.begin()
	rows, size := 0, 0
	for r, err := range records {
		if err != nil {
			return err
		}
		n, err := out.add(r, labels)
		if err != nil {
			return err
		}
		rows++
		size += n
		if full := rows >= most || size >= parquetfile.RowGroupBytes; full || out.rows >= batchRows || out.size >= len(columns)*parquetfile.BatchBytes {
			if err := out.flush(); err != nil {
				return err
			}
			if full {
				if err := out.pq.Flush(); err != nil {
					return failed(err)
				}
				rows, size = 0, 0
				out.begin()
			}
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	return failed(out.pq.Close())
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(nil, "seriesparquet", "").Because(err)
}

// writer holds series for the encoder.
type writer struct {
	ctx     context.Context
	pq      *parquet.GenericWriter[any]
	columns []writeColumn
	rows    int
	size    int // of the labels
}

type writeColumn struct {
	out    *parquet.ColumnWriter
	values []parquet.Value
	bytes  []byte // that values point into: the encoder copies them
}

// begin begins a row group.
func (w *writer) begin() {
	for i, c := range w.pq.ColumnWriters() {
		w.columns[i].out = c
	}
}

// add adds a series, and returns about what it takes.
func (w *writer) add(r series.Record, labels []string) (int, error) {
	w.columns[0].values = append(w.columns[0].values, parquet.Int32Value(int32(r.Table)).Level(0, 0, 0))
	w.columns[1].values = append(w.columns[1].values, parquet.Int64Value(int64(r.TSID)).Level(0, 0, 1))
	w.columns[2].values = append(w.columns[2].values, parquet.Int64Value(int64(r.RowCount)).Level(0, 0, 2))
	k, size := 0, 0
	for i, name := range labels {
		c := &w.columns[3+i]
		if k == len(r.Labels) || r.Labels[k].Name != name {
			c.values = append(c.values, parquet.Value{}.Level(0, 0, 3+i))
			continue
		}
		text := r.Labels[k].Value
		k++
		c.bytes = append(c.bytes, text...)
		c.values = append(c.values, parquet.ByteArrayValue(c.bytes[len(c.bytes)-len(text):]).Level(0, 1, 3+i))
		size += len(text)
	}
	if k < len(r.Labels) {
		return 0, fault.New(fault.Invalid, "seriesparquet", "the label %.60q has no column, or stands out of their order", r.Labels[k].Name).On(r.ID.String())
	}
	w.rows++
	w.size += size
	return size + 20 + 4*len(labels), nil
}

// flush hands what was added to the encoder.
func (w *writer) flush() error {
	if err := w.ctx.Err(); err != nil {
		return failed(err)
	}
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range w.columns {
		work.Go(func() error {
			c := &w.columns[i]
			for from := 0; from < len(c.values); from += parquetfile.BatchRows {
				if _, err := c.out.WriteRowValues(c.values[from:min(len(c.values), from+parquetfile.BatchRows)]); err != nil {
					return err
				}
			}
			c.values, c.bytes = c.values[:0], c.bytes[:0]
			return nil
		})
	}
	w.rows, w.size = 0, 0
	return failed(work.Wait())
}
