package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// selected is the answer to a query: how many series there are, their TSIDs by exclusive or, their rows, and how long the values
// of their labels are together. It makes a contender look at all that it gives.
type selected struct {
	Series int64
	TSIDs  uint64
	Rows   uint64
	Text   int64
}

// seriesQueries are the queries of the comparison.
var seriesQueries = [][]matcherText{
	{{series.Equal, "job", "job-17"}},
	{{series.Equal, "instance", "host-34017"}},
	{{series.Regexp, "instance", "host-340.*"}},
	{{series.Regexp, "instance", ".*401.*"}},
	{{series.Equal, "region", "region-03"}, {series.NotRegexp, "status", "status-00|status-01"}},
}

type matcherText struct {
	op          series.Op
	name, value string
}

func measureSeriesQuery(s *setup) ([]row, error) {
	return s.seriesQueries(s.series, []bool{false, true})
}

// longSection is the section of artifacts of ten times as many series. It takes five minutes and 8 GB of memory.
const longSection = "series-long"

func measureSeriesLong(s *setup) ([]row, error) {
	short := *s
	short.rounds = min(s.rounds, 3)
	rows, err := short.seriesQueries(10*s.series, []bool{true})
	s.notes = short.notes
	for i := range rows {
		rows[i].Section = longSection
	}
	return rows, err
}

// seriesQueries measures sets of n series, of the shapes of newSeriesSet.
func (s *setup) seriesQueries(n int, shapes []bool) ([]row, error) {
	program, err := s.duckProgram()
	if errors.Is(err, errNoDuckDB) {
		s.notes = append(s.notes, err.Error())
	} else if err != nil {
		return nil, err
	}
	return s.seriesInput(n, shapes, func(set *seriesSet, files *seriesFiles) ([]row, error) {
		var rows []row
		err := set.queries(files, program, func(jobs []job) error {
			of, err := s.measureJobs(jobs)
			rows = append(rows, of...)
			return err
		})
		return rows, err
	})
}

// cacheOfSeries is how many bytes of a cache hold the columns of a series.
const cacheOfSeries = 96

// queries hands out the jobs of lookups and queries. duck is the program of DuckDB, "" without it.
func (s *seriesSet) queries(f *seriesFiles, duck string, use func([]job) error) error {
	var meter source.Meter
	cold := &series.Options{CacheBytes: -1}
	warm, err := openArtifact(f.artifact, &series.Options{CacheBytes: max(series.DefaultCacheBytes, cacheOfSeries*int64(len(s.rows)))}, nil)
	if err != nil {
		return err
	}
	defer warm.Close()
	none, err := openArtifact(f.artifact, cold, &meter)
	if err != nil {
		return err
	}
	defer none.Close()
	var plainMeter source.Meter
	plain, err := openMapped(f.plain, cold, &plainMeter)
	if err != nil {
		return err
	}
	defer plain.Close()
	index, err := openIndex(f.index)
	if err != nil {
		return err
	}
	defer index.Close()
	pq, err := openParquetLookup(f.parquet, s.labels)
	if err != nil {
		return err
	}
	defer pq.Close()
	// Each is referenced as long as the jobs are.
	forms := []form{{"in the cache", warm, nil}, {"nothing cached", none, &meter}, {"nothing cached, no compression, mapped", plain, &plainMeter}}
	lookups := slices.Clone(forms)
	var shortMeter source.Meter
	short, err := openMapped(f.lookups, cold, &shortMeter)
	if err != nil {
		return err
	}
	defer short.Close()
	lookups = append(lookups, form{"nothing cached, no compression, mapped, " + forLookupsText, short, &shortMeter})
	if err := use(s.lookupJobs(lookups, pq)); err != nil {
		return err
	}
	var db *duckDB
	if duck != "" {
		if db, err = openDuckDB(duck, f.parquet); err != nil {
			return err
		}
		defer db.Close()
	}
	var jobs []job
	for _, q := range seriesQueries {
		of, err := s.queryJobs(q, forms, index, db)
		if err != nil {
			return err
		}
		jobs = append(jobs, of...)
	}
	for _, name := range []string{"job", "instance"} {
		jobs = append(jobs, s.valueJobs(name, forms, index, db)...)
	}
	return use(jobs)
}

// form is an opened artifact.
type form struct {
	name  string
	a     *series.Artifact
	meter *source.Meter // nil: not counted
}

func (f *form) counted(c contender) contender {
	if f.meter == nil {
		return c
	}
	return c.counting(f.meter)
}

func (s *seriesSet) jobName(text string) string {
	return fmt.Sprintf("%s series of %s: %s", count(float64(len(s.rows))), s.name, text)
}

// lookupJobs are the jobs of finding one series.
func (s *seriesSet) lookupJobs(forms []form, pq *parquetLookup) []job {
	random := rand.New(rand.NewPCG(3, 4))
	ids := make([]series.ID, 1000)
	for i := range ids {
		ids[i] = s.rows[random.IntN(len(s.rows))].ID
	}
	near := ids[:1] // whose blocks are all in the cache
	var jobs []job
	for i, f := range forms {
		of := ids
		if i == 0 {
			of = near
			at, _ := slices.BinarySearchFunc(s.rows, ids[0], func(r seriesRow, id series.ID) int { return r.ID.Compare(id) })
			for d := 1; d < 100; d++ {
				if k := at - d; k >= 0 && s.rows[k].Table == ids[0].Table {
					of = append(of[:len(of):len(of)], s.rows[k].ID)
				}
			}
		}
		ours, theirs := &lookups{ids: of}, &lookups{ids: of}
		j := job{section: "series-query", name: s.jobName("lookup, " + f.name), oneCore: true, ours: f.counted(ours.contender("Spile", lookupIn(f.a)))}
		j.peers = []contender{theirs.contender("parquet-go, page index", pq.find)}
		j.peers[0].target = 50
		if j.seconds = 60e-6; i == 0 {
			j.seconds = 5e-6
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// queryJobs are the jobs of one query.
func (s *seriesSet) queryJobs(texts []matcherText, forms []form, index *promIndex, db *duckDB) ([]job, error) {
	matchers, name, err := matchersOf(texts)
	if err != nil {
		return nil, err
	}
	prom, err := promMatchers(matchers)
	if err != nil {
		return nil, err
	}
	peers := []contender{{
		name: "Prometheus",
		run: func() error {
			n := 0
			return index.each(prom, func(set labels.Labels, _ int64) { set.Range(func(l labels.Label) { n += len(l.Value) }) })
		},
		answer:    func() (any, error) { return index.total(s, prom) },
		bytesRead: index.read.Load,
	}}
	if db != nil {
		sql := duckTotal(s.labels, matchers, "series")
		peers = append(peers, contender{
			name:   "DuckDB",
			run:    func() error { _, err := db.query(sql); return err },
			answer: func() (any, error) { return db.total(sql) },
			target: 1,
		})
	}
	var jobs []job
	for _, f := range forms {
		total := func() (any, error) { return totalOf(f.a, matchers) }
		ours := contender{name: "Spile", run: func() error { _, err := total(); return err }, answer: total}
		jobs = append(jobs, job{section: "series-query", name: s.jobName("{" + name + "}, " + f.name), ours: f.counted(ours), peers: peers})
	}
	return jobs, nil
}

// matchersOf makes matchers, and the text of all.
func matchersOf(texts []matcherText) (matchers []*series.Matcher, name string, err error) {
	for _, t := range texts {
		m, err := series.NewMatcher(t.op, t.name, t.value)
		if err != nil {
			return nil, "", err
		}
		matchers = append(matchers, m)
		if name != "" {
			name += ","
		}
		name += m.String()
	}
	return matchers, name, nil
}

// totalOf selects series, and looks at all that there is of them.
func totalOf(a *series.Artifact, matchers []*series.Matcher) (any, error) {
	var t selected
	for r, err := range a.Select(context.Background(), &series.Query{Matchers: matchers}) {
		if err != nil {
			return nil, err
		}
		t.Series++
		t.TSIDs ^= r.TSID
		t.Rows += r.RowCount
		for _, l := range r.Labels {
			t.Text += int64(len(l.Value))
		}
	}
	return t, nil
}

// valueJobs are the jobs of the values of a label, without a matcher.
func (s *seriesSet) valueJobs(label string, forms []form, index *promIndex, db *duckDB) []job {
	ctx := context.Background()
	peers := []contender{{
		name:      "Prometheus",
		run:       func() error { _, err := index.SortedLabelValues(ctx, label, nil); return err },
		answer:    func() (any, error) { return index.SortedLabelValues(ctx, label, nil) },
		bytesRead: index.read.Load,
		target:    10,
	}}
	if db != nil {
		// One row, so that what comes over the pipe is not what is measured; its answer has to be the number of values.
		sql := `SELECT count(DISTINCT "` + label + `") FROM series`
		peers = append(peers, contender{
			name: "DuckDB",
			run:  func() error { _, err := db.query(sql); return err },
			answer: func() (any, error) {
				values, err := index.SortedLabelValues(ctx, label, nil)
				if err != nil {
					return nil, err
				}
				n, err := db.query(sql)
				if err == nil && n[0] != fmt.Sprint(len(values)) {
					err = fmt.Errorf("%s values, not %d", n[0], len(values))
				}
				return values, err
			},
			target: 1,
		})
	}
	var jobs []job
	for _, f := range forms {
		q := &series.Query{}
		ours := contender{
			name:   "Spile",
			run:    func() error { _, err := f.a.LabelValues(ctx, label, q); return err },
			answer: func() (any, error) { return f.a.LabelValues(ctx, label, q) },
		}
		jobs = append(jobs, job{section: "series-query", name: s.jobName("values of " + label + ", " + f.name), ours: f.counted(ours), peers: peers})
	}
	return jobs
}
