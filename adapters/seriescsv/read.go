package seriescsv

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/adapters/internal/csvtext"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// The columns that are no labels.
const (
	tableColumn    = "__table_id"
	tsidColumn     = "__tsid"
	rowCountColumn = "__series_row_count"
)

// fixed are the columns that every file has, in the order in which they are written.
var fixed = [3]string{tableColumn, tsidColumn, rowCountColumn}

// Records gives the series of a text, which messages call name, as they come. The labels of a record are good until the next
// one. Every column but the three of numbers must be one of the tags. An error ends it, and names the line.
func Records(ctx context.Context, in io.Reader, name string, tags []series.Tag) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		t, err := open(in, name)
		if err == nil {
			err = t.bind(tags)
		}
		if err != nil {
			yield(series.Record{}, err)
			return
		}
		for n := 1; ; n++ {
			if n&0xfff == 0 && ctx.Err() != nil {
				yield(series.Record{}, fault.New(nil, "seriescsv", "").In(name).Because(ctx.Err()))
				return
			}
			r, err := t.record()
			if err == io.EOF {
				return
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Labels reads the header of a text, and returns the columns that are labels, in their order.
func Labels(in io.Reader, name string) ([]string, error) {
	t, err := open(in, name)
	if err != nil {
		return nil, err
	}
	var labels []string
	for _, column := range t.header {
		if !slices.Contains(fixed[:], column) {
			labels = append(labels, column)
		}
	}
	return labels, nil
}

// table is a text whose header was read.
type table struct {
	*csvtext.Records
	name   string
	header []string
	fixed  [3]int // where the columns of numbers stand
	line   int    // of the header
	labels []series.Label
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "seriescsv", format, args...)
}

func line(n int) string { return "line " + strconv.Itoa(n) }

// place names a field of the record.
func (t *table) place(i int) string {
	return fmt.Sprintf("%s, field %d (%s)", line(t.Fields[i].Line), i+1, clip(t.header[i]))
}

// clip is a name as messages show it.
func clip(name string) string {
	if len(name) > 60 {
		name = strings.ToValidUTF8(name[:60], "") + "…"
	}
	return fault.OneLine(name)
}

func open(in io.Reader, name string) (*table, error) {
	text, err := csvtext.Decoded("seriescsv", in)
	if err != nil {
		return nil, fault.Locate(err, name, "", 0)
	}
	t := &table{name: name}
	if t.Records, err = csvtext.NewRecords("seriescsv", text, 0, 1); err != nil {
		return nil, fault.Locate(err, name, line(1), 0)
	}
	if err := t.next(); err != nil {
		if err == io.EOF {
			return nil, invalid("there is no header").In(name)
		}
		return nil, err
	}
	t.line = t.Start
	seen := make(map[string]int, len(t.Fields))
	for i, f := range t.Fields {
		column := string(t.Text[f.Start:f.End])
		t.header = append(t.header, column)
		if first, twice := seen[column]; twice {
			return nil, invalid("the column %q is that of field %d too", clip(column), first+1).In(name).On(fmt.Sprintf("%s, field %d", line(t.line), i+1))
		}
		seen[column] = i
	}
	var missing []string
	for k, column := range fixed {
		i, ok := seen[column]
		if !ok {
			missing = append(missing, column)
		}
		t.fixed[k] = i
	}
	if missing != nil {
		return nil, invalid("the header has no %s; it names %s, and the labels", strings.Join(missing, ", "), strings.Join(fixed[:], ", ")).In(name).On(line(t.line))
	}
	return t, nil
}

// bind checks that every column of a label is one of the tags.
func (t *table) bind(tags []series.Tag) error {
	known := make(map[string]bool, len(tags))
	for _, tag := range tags {
		known[tag.Name] = true
	}
	var unknown []string
	for _, column := range t.header {
		if !known[column] && !slices.Contains(fixed[:], column) {
			unknown = append(unknown, strconv.Quote(clip(column)))
		}
	}
	switch len(unknown) {
	case 0:
		return nil
	case 1:
		return invalid("the column %s is no tag of the artifact", unknown[0]).In(t.name).On(line(t.line))
	}
	return invalid("the columns %s are no tags of the artifact", strings.Join(unknown, ", ")).In(t.name).On(line(t.line))
}

// next reads the next record that is no blank line.
func (t *table) next() error {
	for {
		err := t.Next()
		switch {
		case err == io.EOF:
			return err
		case err != nil:
			return fault.Locate(err, t.name, line(t.Start), 0)
		case !t.Blank():
			return nil
		}
	}
}

func (t *table) record() (r series.Record, err error) {
	if err := t.next(); err != nil {
		return r, err
	}
	if len(t.Fields) != len(t.header) {
		return r, invalid("%d fields, the header has %d", len(t.Fields), len(t.header)).In(t.name).On(line(t.Start))
	}
	if !t.Valid() {
		return r, invalid("the text is no UTF-8").In(t.name).On(line(t.Start))
	}
	text := string(t.Text)
	var numbers [3]uint64
	for k, most := range [3]uint64{math.MaxUint32, math.MaxUint64, math.MaxUint64} {
		i := t.fixed[k]
		f := t.Fields[i]
		numbers[k], err = strconv.ParseUint(text[f.Start:f.End], 10, 64)
		if err != nil || numbers[k] > most {
			return r, invalid("%.40q, and must be an integer of 0 to %d", text[f.Start:f.End], most).In(t.name).On(t.place(i))
		}
	}
	if numbers[2] == 0 {
		return r, invalid("0, and a series has a row at least").In(t.name).On(t.place(t.fixed[2]))
	}
	t.labels = t.labels[:0]
	for i, f := range t.Fields {
		if i == t.fixed[0] || i == t.fixed[1] || i == t.fixed[2] || f.Start == f.End && !f.Quoted {
			continue
		}
		t.labels = append(t.labels, series.Label{Name: t.header[i], Value: text[f.Start:f.End]})
	}
	return series.Record{ID: series.ID{Table: uint32(numbers[0]), TSID: numbers[1]}, RowCount: numbers[2], Labels: t.labels}, nil
}
