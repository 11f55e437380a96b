package main

import (
	"errors"
	"reflect"
	"testing"
)

func TestSeriesSet(t *testing.T) {
	s := newSeriesSet(5000, true)
	if len(s.rows) != 5000 || !reflect.DeepEqual(s, newSeriesSet(5000, true)) {
		t.Fatalf("%d series, or others each time", len(s.rows))
	}
	counts := make(map[int]int)
	for i := range s.rows {
		if i > 0 && !s.rows[i-1].ID.Less(s.rows[i].ID) {
			t.Fatalf("series %d is not above the one before", i)
		}
		n := 0
		for _, c := range s.rows[i].codes {
			if c > 0 {
				n++
			}
		}
		counts[n]++
	}
	for n := range counts {
		if n < 7 || n > 10 {
			t.Errorf("%d series of %d labels", counts[n], n)
		}
	}
	if len(counts) < 2 {
		t.Errorf("numbers of labels: %v", counts)
	}
}

func TestSeriesJobs(t *testing.T) {
	s := &setup{dir: t.TempDir()}
	program, err := s.duckProgram()
	if err != nil && !errors.Is(err, errNoDuckDB) {
		t.Fatal(err)
	}
	_, err = s.seriesInputs(3000, func(set *seriesSet, files *seriesFiles) ([]row, error) {
		runOnce(t, []job{set.building(false), set.building(true)})
		rows, err := set.sizes(files)
		if err != nil || len(rows) != 6 {
			t.Errorf("%d rows of sizes, %v", len(rows), err)
		}
		if err := set.queries(files, program, func(jobs []job) error { runOnce(t, jobs); return nil }); err != nil {
			t.Error(err)
		}
		rows, err = s.memoryOfOpen(set, files, 20)
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows of memory, %v", len(rows), err)
		}
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
