package parquet

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"runtime"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/adapters/internal/columnar"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// SchemaKey is the key of the metadata under which the schema of the table stands, as JSON.
const SchemaKey = "spile.schema"

// DefaultRowGroupRows is how many rows a row group has at most: what DuckDB writes, near enough; readers work on row
// groups in parallel.
const DefaultRowGroupRows = 1 << 17

const (
	// rowGroupBytes bounds a row group, before encoding and compression: a writer holds one of them, encoded.
	rowGroupBytes = 128 << 20
	// batchRows and batchBytes bound what is handed to the encoder at once, so that pages keep near their size of 256 KiB.
	batchRows  = 1024
	batchBytes = 64 << 10
	// dictionaryBytes is the size from which on a dictionary of strings is given up, and strings are written one by one:
	// the limit of other writers.
	dictionaryBytes = 1 << 20
)

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
	out := parquet.NewGenericWriter[any](w,
		parquet.NewSchema("spile", newRoot(leaves)),
		parquet.Compression(codec),
		// Pages of version 1 are what other writers make unless they are told not to.
		parquet.DataPageVersion(1),
		parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.KeyValueMetadata(SchemaKey, string(text)),
		// The library would write its version, as far as the program knows it.
		parquet.CreatedBy("spile", "1", "parquet-go"),
	)
	most := o.RowGroupRows
	if most <= 0 {
		most = DefaultRowGroupRows
	}
	for start, end := range columnar.Batches(exported, most, rowGroupBytes) {
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

// root is the schema as parquet-go wants it: a group whose fields keep their order, which those of [parquet.Group] do not.
type root struct {
	parquet.Group
	fields []parquet.Field
}

func newRoot(leaves []leaf) *root {
	r := &root{Group: make(parquet.Group, len(leaves)), fields: make([]parquet.Field, len(leaves))}
	at := make(map[string]int, len(leaves))
	for i, l := range leaves {
		r.Group[l.column.Field.Name] = l.node
		at[l.column.Field.Name] = i
	}
	for _, f := range r.Group.Fields() {
		r.fields[at[f.Name()]] = f
	}
	return r
}

func (r *root) Fields() []parquet.Field { return r.fields }

// GoType would make a struct of the names, of which not all are names of Go; nothing asks for the rows as Go values.
func (r *root) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }
