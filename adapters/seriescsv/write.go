package seriescsv

import (
	"context"
	"io"
	"iter"
	"strconv"

	"github.com/spilehq/spile/adapters/internal/csvtext"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// flushAt is how many bytes are gathered for a write.
const flushAt = 1 << 16

// Write writes a header with the labels, and a record for each series. The labels of a series stand in the order of the
// columns. What w has got after an error is no file.
func Write(ctx context.Context, w io.Writer, labels []string, records iter.Seq2[series.Record, error]) error {
	var out []byte
	for _, column := range fixed {
		out = append(append(out, column...), ',')
	}
	out = out[:len(out)-1]
	for _, column := range labels {
		out = csvtext.AppendName(append(out, ','), []byte(column), ',')
	}
	out = append(out, '\n')
	n := 0
	for r, err := range records {
		if err != nil {
			return err
		}
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return fault.New(nil, "seriescsv", "").Because(ctx.Err())
		}
		if out, err = appendRecord(out, r, labels); err != nil {
			return err
		}
		if len(out) >= flushAt {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	_, err := w.Write(out)
	return err
}

func appendRecord(out []byte, r series.Record, labels []string) ([]byte, error) {
	out = append(strconv.AppendUint(out, uint64(r.Table), 10), ',')
	out = append(strconv.AppendUint(out, r.TSID, 10), ',')
	out = strconv.AppendUint(out, r.RowCount, 10)
	k := 0
	for _, column := range labels {
		out = append(out, ',')
		if k == len(r.Labels) || r.Labels[k].Name != column {
			continue
		}
		if value := r.Labels[k].Value; value == "" {
			out = append(out, `""`...)
		} else {
			out = csvtext.AppendField(out, []byte(value), ',')
		}
		k++
	}
	if k < len(r.Labels) {
		return nil, fault.New(fault.Invalid, "seriescsv", "the label %q has no column, or stands out of their order", clip(r.Labels[k].Name)).On(r.ID.String())
	}
	return append(out, '\n'), nil
}
