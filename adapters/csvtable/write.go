package csvtable

import (
	"bytes"
	"context"
	"io"

	"github.com/spilehq/spile/adapters/internal/csvtext"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// flushAt is how many bytes are gathered for a write.
const flushAt = 1 << 16

// Write writes a header and a record for each row. The schema, when there is one, gives names and logical types by tag.
// A table without columns and rows is an empty file. Text is written as it is, whatever a spreadsheet makes of a leading
// "=".
func Write(ctx context.Context, w io.Writer, rows int, columns []*tcb.Column, s *tcb.Schema, o *Options) error {
	opts, err := checked(o)
	if err != nil {
		return err
	}
	if opts.Delimiter == 0 {
		opts.Delimiter = ','
	}
	if bytes.IndexByte([]byte(opts.Null), opts.Delimiter) >= 0 {
		return fault.New(fault.Invalid, "csvtable", "the delimiter %q stands in the text for absent values, %q", opts.Delimiter, opts.Null)
	}
	cells, err := tabular.NewCells(rows, columns, s, &opts.Options, "csvtable")
	if err != nil || len(columns) == 0 {
		return err
	}
	names, err := tabular.AppendHeader(cells.Fields, &opts.Options, "csvtable")
	if err != nil {
		return err
	}
	var out []byte
	for k, name := range names {
		if k > 0 {
			out = append(out, opts.Delimiter)
		}
		out = csvtext.AppendName(out, []byte(name), opts.Delimiter)
	}
	out = append(out, '\n')
	var cell []byte
	var done int64
	flush := func() error {
		n, err := w.Write(out)
		done += int64(n)
		out = out[:0]
		if err != nil {
			return fault.New(nil, "csvtable", "").In(opts.Name).Because(err)
		}
		return nil
	}
	for i := range rows {
		if tabular.Every(i + 1) {
			if err := ctx.Err(); err != nil {
				return fault.New(nil, "csvtable", "").In(opts.Name).Because(err)
			}
			if opts.Progress != nil {
				opts.Progress(i, done)
			}
		}
		start := len(out)
		for k := range columns {
			if k > 0 {
				out = append(out, opts.Delimiter)
			}
			var kind tcb.CellKind
			if cell, kind, err = cells.Append(cell[:0], k, i); err != nil {
				return err
			}
			out = opts.cell(out, cell, kind, columns[k].Type)
		}
		if len(out) == start { // a line without a byte is no record
			if columns[0].Has(i) {
				out = append(out, `""`...)
			} else {
				out = csvtext.AppendField(out, []byte(opts.Null), opts.Delimiter)
			}
		}
		out = append(out, '\n')
		if len(out) >= flushAt {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if opts.Progress != nil {
		opts.Progress(rows, done)
	}
	return nil
}

// cell appends a field that reads as the cell.
func (o *Options) cell(out, text []byte, kind tcb.CellKind, t tcb.Type) []byte {
	empty := t.Optional && (t.Kind == tcb.Array || t.Element == tcb.String)
	switch {
	case kind == tcb.CellNull && o.EmptyText && empty:
		return append(out, o.Null...)
	case kind == tcb.CellNull:
		return out
	case t.Optional && string(text) == o.Null, empty && len(text) == 0 && !o.EmptyText:
		return csvtext.AppendQuoted(out, text)
	}
	return csvtext.AppendField(out, text, o.Delimiter)
}
