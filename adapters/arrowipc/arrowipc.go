package arrowipc

import (
	"context"
	"encoding/json"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/spilehq/spile/adapters/internal/columnar"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// SchemaKey is the key of the metadata under which the schema of the table stands, as JSON.
const SchemaKey = "spile.schema"

// DefaultBatchRows is how many rows a record batch has at most: what readers take at once from a mapped file, and few
// enough to share out among processors.
const DefaultBatchRows = 1 << 16

// batchBytes bounds a record batch, of which what is copied is held.
const batchBytes = 64 << 20

// Times says how datetimes or timespans are written.
type Times uint8

const (
	// TimesAuto writes a column in microseconds or nanoseconds, whichever holds each value that is there: datetimes in
	// microseconds if they can, timespans in nanoseconds if they can. It is an error when neither does.
	TimesAuto Times = iota
	// TimesTicks writes ticks of 100 ns, of a datetime those since 0001-01-01, as Int64.
	TimesTicks
)

// Options are the options of Write. Nil and the zero value mean the defaults.
type Options struct {
	DateTimes Times
	TimeSpans Times
	BatchRows int // at most so many rows in a record batch, 0: DefaultBatchRows
}

// Write writes the columns, each with the given number of rows, as an Arrow IPC file. The schema, when there is one, gives names
// and logical types by tag. What w has got after an error is no file.
//
// An error about the table is [fault.Invalid] or [fault.Conflict], and names the column and the row.
func Write(ctx context.Context, w io.Writer, rows int, columns []*tcb.Column, s *tcb.Schema, o *Options) error {
	return write(ctx, w, rows, columns, s, o, math.MaxInt32)
}

// write is Write. Utf8 holds maxText bytes a batch.
func write(ctx context.Context, w io.Writer, rows int, columns []*tcb.Column, s *tcb.Schema, o *Options, maxText int) error {
	if o == nil {
		o = &Options{}
	}
	if o.DateTimes > TimesTicks || o.TimeSpans > TimesTicks {
		return fault.New(fault.Invalid, "arrowipc", "DateTimes is %d and TimeSpans %d", o.DateTimes, o.TimeSpans)
	}
	exported, schema, err := columnar.Columns("arrowipc", rows, columns, s)
	if err != nil {
		return err
	}
	most := o.BatchRows
	if most <= 0 {
		most = DefaultBatchRows
	}
	var batches [][2]int
	for start, end := range columnar.Batches(exported, most, batchBytes) {
		batches = append(batches, [2]int{start, end})
	}
	vectors, fields := make([]vector, len(exported)), make([]arrow.Field, len(exported))
	for i := range exported {
		c := &exported[i]
		switch {
		case c.Field.Logical == tcb.DateTime && o.DateTimes == TimesAuto:
			err = c.ChooseDateTimeUnit("arrowipc", "DateTimes: TimesTicks")
		case c.Field.Logical == tcb.TimeSpan && o.TimeSpans == TimesAuto:
			err = c.ChooseTimeSpanUnit("arrowipc", "TimeSpans: TimesTicks")
		}
		if err != nil {
			return err
		}
		vectors[i].Column = c
		if c.Type.Element == tcb.String {
			for _, b := range batches {
				vectors[i].large = vectors[i].large || c.TextSize(b[0], b[1]) > int64(maxText)
			}
		}
		fields[i] = vectors[i].field()
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return fault.New(fault.Invalid, "arrowipc", "the schema").Because(err)
	}
	metadata := arrow.NewMetadata([]string{SchemaKey}, []string{string(text)})
	arrowSchema := arrow.NewSchema(fields, &metadata)
	out, err := ipc.NewFileWriter(w, ipc.WithSchema(arrowSchema))
	if err != nil {
		return failed(err)
	}
	for _, b := range batches {
		if err := ctx.Err(); err != nil {
			return failed(err)
		}
		arrays := make([]arrow.Array, len(vectors))
		for i := range vectors {
			arrays[i] = array.MakeFromData(vectors[i].data(fields[i].Type, b[0], b[1]))
		}
		if err := out.Write(array.NewRecordBatch(arrowSchema, arrays, int64(b[1]-b[0]))); err != nil {
			return failed(err)
		}
	}
	return failed(out.Close())
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(nil, "arrowipc", "").Because(err)
}
