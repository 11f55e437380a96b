package jsonrows

import (
	"context"
	"io"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
	"github.com/spilehq/spile/value"
)

// flushAt is how many bytes are gathered for a write.
const flushAt = 1 << 16

// Write writes a line for each row. The schema, when there is one, gives names and logical types by tag. NaN and the
// infinities are strings; the payload of a NaN is not written.
func Write(ctx context.Context, w io.Writer, rows int, columns []*tcb.Column, s *tcb.Schema, o *Options) error {
	opts := checked(o)
	fields := tabular.Fields(columns, s)
	for i, c := range columns {
		if c.Rows != rows {
			return fault.New(fault.Invalid, "jsonrows", "%d rows, the table has %d", c.Rows, rows).In(opts.Name).On(tabular.Label(&fields[i]))
		}
	}
	p := tcb.NewRows(columns, s, &tcb.RowOptions{JSON: value.JSONOptions{NonFinite: value.NonFiniteString}, Labels: opts.Labels})
	var out []byte
	var done int64
	var err error
	for i := range rows {
		if out, err = p.Append(out, i); err != nil {
			return fault.Locate(err, opts.Name, "", 0)
		}
		out = append(out, '\n')
		if len(out) < flushAt && i < rows-1 && !tabular.Every(i+1) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fault.New(nil, "jsonrows", "").In(opts.Name).Because(err)
		}
		n, err := w.Write(out)
		if err != nil {
			return fault.New(nil, "jsonrows", "").In(opts.Name).Because(err)
		}
		done += int64(n)
		out = out[:0]
		if opts.Progress != nil {
			opts.Progress(i+1, done)
		}
	}
	return nil
}
