package main

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/spilehq/spile/series"
)

// A set of series as an ingester of metrics has it: tables whose sizes follow Zipf's law, TSIDs that are hashes, labels of
// few and of many values. An instance runs one job, in one region and one environment; a table has instances of one to three
// jobs.
const (
	instances     = 100_000
	seriesJobs    = 50
	jobInstances  = instances / seriesJobs
	optionalFirst = 7 // of seriesLabels, those which not all tables have
)

// seriesLabels are the labels with their numbers of values. The first seven are there always.
var seriesLabels = []struct {
	name   string
	values int
}{{"env", 3}, {"instance", instances}, {"job", seriesJobs}, {"method", 6}, {"path", 24}, {"region", 8}, {"status", 12}, {"cluster", 10}, {"shard", 16}, {"version", 5}}

// seriesRow is a series: of each label the number of its value, from 1 on; 0 where it has none.
type seriesRow struct {
	series.ID
	count uint64
	codes [10]uint32
}

// seriesSet is the input of all contenders, in the order of the identifiers.
type seriesSet struct {
	name   string // of its shape
	labels []string
	values [][]string // of each label, by number; that of 0 is not used
	rows   []seriesRow
}

// newSeriesSet makes n series, with seven labels each, or with seven to ten by the table. The same arguments give the same set.
func newSeriesSet(n int, optional bool) *seriesSet {
	s := &seriesSet{name: "7 labels"}
	count := optionalFirst
	if optional {
		s.name, count = "7 to 10 labels", len(seriesLabels)
	}
	for _, l := range seriesLabels[:count] {
		s.labels = append(s.labels, l.name)
		values := make([]string, l.values+1)
		for v := range l.values {
			values[v+1] = fmt.Sprintf("%s-%02d", l.name, v)
			if l.values == instances {
				values[v+1] = fmt.Sprintf("host-%05d", v)
			}
		}
		s.values = append(s.values, values)
	}
	s.rows = make([]seriesRow, 0, n)
	random := rand.New(rand.NewPCG(8, uint64(n)))
	tables := max(8, n/2000)
	weight := 0.0
	for t := range tables {
		weight += 1 / float64(t+1)
	}
	for t := range tables {
		size := max(1, int(float64(n)/(weight*float64(t+1))))
		if t == tables-1 {
			size = n
		}
		s.addTable(random, uint32(1024+t*3), min(size, n-len(s.rows)), optional)
	}
	slices.SortFunc(s.rows, func(a, b seriesRow) int { return a.ID.Compare(b.ID) })
	return s
}

// addTable adds the series of a table. The TSID is a hash of the labels, so that no two are equal.
func (s *seriesSet) addTable(random *rand.Rand, table uint32, size int, optional bool) {
	firstJob, jobs := random.IntN(seriesJobs), 1+random.IntN(3)
	has := random.IntN(8) // which of the optional labels
	seen := make(map[uint64]bool, size)
	for len(seen) < size {
		r := seriesRow{ID: series.ID{Table: table}, count: 240}
		if random.IntN(5) == 0 {
			r.count = 1 + random.Uint64N(240)
		}
		job := (firstJob + random.IntN(jobs)) % seriesJobs
		instance := uint32(job*jobInstances + random.IntN(jobInstances))
		skewed := random.Float64()
		r.codes = [10]uint32{1 + instance/7%10/4, 1 + instance, 1 + uint32(job), 1 + random.Uint32N(6), 1 + random.Uint32N(24), 1 + instance%8, 1 + uint32(12*skewed*skewed)}
		for i := optionalFirst; optional && i < len(seriesLabels); i++ {
			if has>>(i-optionalFirst)&1 == 1 {
				r.codes[i] = 1 + random.Uint32N(uint32(seriesLabels[i].values))
			}
		}
		r.TSID = r.hash()
		if !seen[r.TSID] {
			seen[r.TSID] = true
			s.rows = append(s.rows, r)
		}
	}
}

func (r *seriesRow) hash() uint64 {
	var b [44]byte
	binary.LittleEndian.PutUint32(b[:], r.Table)
	for i, c := range r.codes {
		binary.LittleEndian.PutUint32(b[4+4*i:], c)
	}
	return xxhash.Sum64(b[:])
}

// records gives the series. The labels of a record are good until the next one.
func (s *seriesSet) records() iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		labels := make([]series.Label, 0, len(s.labels))
		for i := range s.rows {
			r := &s.rows[i]
			labels = labels[:0]
			for k, name := range s.labels {
				if c := r.codes[k]; c != 0 {
					labels = append(labels, series.Label{Name: name, Value: s.values[k][c]})
				}
			}
			if !yield(series.Record{ID: r.ID, RowCount: r.count, Labels: labels}, nil) {
				return
			}
		}
	}
}

// meta is what an artifact of the set is built of.
func (s *seriesSet) meta() *series.Manifest {
	m := &series.Manifest{RegionID: 1 << 32}
	for i, name := range s.labels {
		m.Tags = append(m.Tags, series.Tag{ColumnID: uint32(i + 10), Name: name})
	}
	return m
}

// metric is the name of a table where tables have names.
func metric(table uint32) string { return fmt.Sprintf("metric_%06d", table) }
