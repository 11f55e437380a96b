package parquet

import (
	"context"
	"encoding/json"
	"io"
	"runtime"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/adapters/internal/columnar"
	"github.com/spilehq/spile/adapters/internal/parquetfile"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// SchemaKey is the key of the metadata under which the schema of the table stands, as JSON.
const SchemaKey = "spile.schema"

// DefaultRowGroupRows is how many rows a row group has at most: what DuckDB writes, near enough; readers work on row
// groups in parallel.
const DefaultRowGroupRows = 1 << 17

// Times says how datetimes are written.
type Times uint8

const (
	// TimesAuto writes a column of datetimes as timestamps of microseconds when each is a whole number of those, else
	// of nanoseconds when all are in the years 1678 to 2261, and else not at all.
	TimesAuto Times = iota
	// TimesTicks writes ticks: 100 ns since 0001-01-01, as INT64.
	TimesTicks
)

// Compression is the compression of pages.
type Compression uint8

// The compressions.
const (
	Zstd Compression = iota
	Snappy
	Uncompressed
)

// Options are the options of Write. Nil and the zero value mean the defaults.
type Options struct {
	DateTimes    Times
	Compression  Compression
	RowGroupRows int // at most so many rows in a row group, 0: DefaultRowGroupRows
}

// Write writes the columns, each with the given number of rows, as a Parquet file. The schema, when there is one, gives names and
// logical types by tag. What w has got after an error is no file.
//
// An error about the table is [fault.Invalid] or [fault.Conflict], and names the column and the row.
func Write(ctx context.Context, w io.Writer, rows int, columns []*tcb.Column, s *tcb.Schema, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	codec, err := o.codec()
	if err != nil {
		return err
	}
	exported, schema, err := columnar.Columns("parquet", rows, columns, s)
	if err != nil {
		return err
	}
	leaves := make([]leaf, len(exported))
	for i := range exported {
		if leaves[i], err = newLeaf(&exported[i], i, o); err != nil {
			return err
		}
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return fault.New(fault.Invalid, "parquet", "the schema").Because(err)
	}
	fields := make([]parquetfile.Column, len(leaves))
	for i, l := range leaves {
		fields[i] = parquetfile.Column{Name: l.column.Field.Name, Node: l.node}
	}
	out := parquetfile.NewWriter(w, fields, codec, SchemaKey, string(text))
	most := o.RowGroupRows
	if most <= 0 {
		most = DefaultRowGroupRows
	}
	for start, end := range columnar.Batches(exported, most, parquetfile.RowGroupBytes) {
		if err := writeGroup(ctx, out, leaves, start, end); err != nil {
			return failed(err)
		}
	}
	return failed(out.Close())
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(nil, "parquet", "").Because(err)
}

func (o *Options) codec() (compress.Codec, error) {
	if o.DateTimes > TimesTicks {
		return nil, fault.New(fault.Invalid, "parquet", "DateTimes is %d", o.DateTimes)
	}
	switch o.Compression {
	case Zstd:
		return &parquet.Zstd, nil
	case Snappy:
		return &parquet.Snappy, nil
	case Uncompressed:
		return &parquet.Uncompressed, nil
	}
	return nil, fault.New(fault.Invalid, "parquet", "Compression is %d", o.Compression)
}

// writeGroup writes the rows [start, end) as a row group, columns in parallel.
func writeGroup(ctx context.Context, out *parquet.GenericWriter[any], leaves []leaf, start, end int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	writers := out.ColumnWriters()
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range leaves {
		work.Go(func() error { return leaves[i].write(ctx, writers[i], start, end) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	return out.Flush()
}
