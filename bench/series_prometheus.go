package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/fileutil"
	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/spilehq/spile/series"
)

// metricName is the label that the name of a metric is in.
const metricName = "__name__"

// writeIndex writes the index of a block of Prometheus: the table is the name of the metric, and each series has one chunk, whose
// end stands for the number of rows.
func (s *seriesSet) writeIndex(path string) error {
	w, err := index.NewWriter(context.Background(), path)
	if err != nil {
		return err
	}
	defer w.Close()
	symbols := append([]string{metricName}, s.labels...)
	for k := range s.labels {
		used := make([]bool, len(s.values[k]))
		for i := range s.rows {
			used[s.rows[i].codes[k]] = true
		}
		for code, is := range used {
			if is && code > 0 {
				symbols = append(symbols, s.values[k][code])
			}
		}
	}
	for i := range s.rows {
		if i == 0 || s.rows[i].Table != s.rows[i-1].Table {
			symbols = append(symbols, metric(s.rows[i].Table))
		}
	}
	slices.Sort(symbols)
	for _, text := range slices.Compact(symbols) {
		if err := w.AddSymbol(text); err != nil {
			return err
		}
	}
	// In the order of Prometheus: the labels of a set are sorted by name, their values by number; a label that is not there has
	// the name of the next one compared.
	order := make([]int, len(s.rows))
	for i := range order {
		order[i] = i
	}
	columns := make([]int, len(s.labels)) // sorted by name
	for i := range columns {
		columns[i] = i
	}
	slices.SortFunc(columns, func(a, b int) int { return strings.Compare(s.labels[a], s.labels[b]) })
	set := make([]labels.Label, 0, len(s.labels)+1)
	slices.SortFunc(order, func(a, b int) int {
		ra, rb := &s.rows[a], &s.rows[b]
		if ra.Table != rb.Table {
			return cmp.Compare(ra.Table, rb.Table)
		}
		for _, k := range columns { // those of one table have the same labels
			if ra.codes[k] != rb.codes[k] {
				return strings.Compare(s.values[k][ra.codes[k]], s.values[k][rb.codes[k]])
			}
		}
		return 0
	})
	for n, i := range order {
		r := &s.rows[i]
		set = append(set[:0], labels.Label{Name: metricName, Value: metric(r.Table)})
		for _, k := range columns {
			if c := r.codes[k]; c != 0 {
				set = append(set, labels.Label{Name: s.labels[k], Value: s.values[k][c]})
			}
		}
		if err := w.AddSeries(storage.SeriesRef(n), labels.New(set...), chunks.Meta{Ref: chunks.ChunkRef(n), MaxTime: int64(r.count)}); err != nil {
			return err
		}
	}
	return w.Close()
}

// promIndex is an index that counts the bytes that are looked at, but for the symbols.
type promIndex struct {
	*index.Reader
	file *fileutil.MmapFile
	read atomic.Int64
}

// countedBytes is the file to the index.
type countedBytes struct {
	p     []byte
	count *atomic.Int64
}

func (b countedBytes) Len() int { return len(b.p) }
func (b countedBytes) Range(start, end int) []byte {
	if start > 0 { // the symbols are looked up in the whole file, from its start on
		b.count.Add(int64(end - start))
	}
	return b.p[start:end]
}

func openIndex(path string) (*promIndex, error) {
	f, err := fileutil.OpenMmapFile(path)
	if err != nil {
		return nil, err
	}
	x := &promIndex{file: f}
	if x.Reader, err = index.NewReader(countedBytes{f.Bytes(), &x.read}, index.DecodePostingsRaw); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

func (x *promIndex) Close() error { return errors.Join(x.Reader.Close(), x.file.Close()) }

func promMatchers(list []*series.Matcher) ([]*labels.Matcher, error) {
	types := map[series.Op]labels.MatchType{series.Equal: labels.MatchEqual, series.NotEqual: labels.MatchNotEqual, series.Regexp: labels.MatchRegexp, series.NotRegexp: labels.MatchNotRegexp}
	var out []*labels.Matcher
	for _, m := range list {
		p, err := labels.NewMatcher(types[m.Op], m.Name, m.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// each gives the labels and the numbers of rows of the series that match. The labels are good until the next ones.
func (x *promIndex) each(matchers []*labels.Matcher, use func(_ labels.Labels, rows int64)) error {
	p, err := tsdb.PostingsForMatchers(context.Background(), x, matchers...)
	if err != nil {
		return err
	}
	var builder labels.ScratchBuilder
	var set labels.Labels
	var metas []chunks.Meta
	for p.Next() {
		if err := x.Series(p.At(), &builder, &metas); err != nil {
			return err
		}
		builder.Overwrite(&set)
		use(set, metas[0].MaxTime)
	}
	return p.Err()
}

// total is the answer of the index to a query. The hash of the labels is the TSID.
func (x *promIndex) total(s *seriesSet, matchers []*labels.Matcher) (selected, error) {
	codes := make(map[labels.Label]int)
	columns := make(map[string]int)
	for k, name := range s.labels {
		columns[name] = k
		for c, v := range s.values[k] {
			codes[labels.Label{Name: name, Value: v}] = c
		}
	}
	var total selected
	var failed error
	err := x.each(matchers, func(set labels.Labels, rows int64) {
		var r seriesRow
		set.Range(func(l labels.Label) {
			if l.Name == metricName {
				n, err := strconv.ParseUint(strings.TrimPrefix(l.Value, "metric_"), 10, 32)
				r.Table, failed = uint32(n), errors.Join(failed, err)
				return
			}
			r.codes[columns[l.Name]] = uint32(codes[l])
			total.Text += int64(len(l.Value))
		})
		total.Series++
		total.TSIDs ^= r.hash()
		total.Rows += uint64(rows)
	})
	return total, errors.Join(err, failed)
}
