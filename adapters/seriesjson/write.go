package seriesjson

import (
	"strconv"

	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/value"
)

// Append appends a record as one line of JSON, without the end of the line.
func Append(dst []byte, r series.Record) ([]byte, error) {
	dst = append(dst, `{"table_id":`...)
	dst = strconv.AppendUint(dst, uint64(r.Table), 10)
	dst = append(dst, `,"tsid":`...)
	dst = strconv.AppendUint(dst, r.TSID, 10)
	dst = append(dst, `,"row_count":`...)
	dst = strconv.AppendUint(dst, r.RowCount, 10)
	dst = append(dst, `,"labels":{`...)
	var o value.JSONOptions
	var err error
	for i, l := range r.Labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, _, err = value.AppendJSONString(dst, l.Name, &o); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, _, err = value.AppendJSONString(dst, l.Value, &o); err != nil {
			return dst, err
		}
	}
	return append(dst, "}}"...), nil
}
