package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spilehq/spile/adapters/seriesparquet"
	"github.com/spilehq/spile/series"
)

// seriesInputs are the sets that are built, with their files: with seven labels each, with seven to ten.
func (s *setup) seriesInputs(n int, use func(*seriesSet, *seriesFiles) ([]row, error)) ([]row, error) {
	return s.seriesInput(n, []bool{false, true}, use)
}

func (s *setup) seriesInput(n int, shapes []bool, use func(*seriesSet, *seriesFiles) ([]row, error)) ([]row, error) {
	var rows []row
	for _, optional := range shapes {
		set := newSeriesSet(n, optional)
		dir := filepath.Join(s.dir, fmt.Sprintf("series-%d-%t", n, optional))
		progress("  %s series of %s: writing the files", count(float64(n)), set.name)
		files, err := set.files(dir)
		if err == nil {
			var of []row
			of, err = use(set, files)
			rows = append(rows, of...)
		}
		os.RemoveAll(dir)
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func measureSeriesBuild(s *setup) ([]row, error) {
	return s.seriesInputs(s.series, func(set *seriesSet, files *seriesFiles) ([]row, error) {
		rows, err := s.buildRates(set)
		if err != nil {
			return nil, err
		}
		sizes, err := set.sizes(files)
		if err != nil {
			return nil, err
		}
		floors, err := set.floorRows(files)
		return append(append(rows, sizes...), floors...), err
	})
}

// buildRates measures how many series a second are written from memory to nowhere.
func (s *setup) buildRates(set *seriesSet) ([]row, error) {
	n := float64(len(set.rows))
	var rows []row
	for _, cores := range []int{1, runtime.GOMAXPROCS(0)} {
		jobs := []job{set.building(false), set.building(true)}
		for i := range jobs {
			j := &jobs[i]
			j.oneCore = cores == 1
			j.name = fmt.Sprintf("build %s series of %s, %s, %s", count(n), set.name, j.name, coresText(cores))
			if s.jobs != nil && !s.jobs.MatchString(j.name) {
				continue
			}
			progress("  %s", j.name)
			m, err := j.measure(s.effort)
			if err != nil {
				return nil, err
			}
			for _, r := range j.rows(m) { // series a second, in place of seconds
				r.Ours.Value, r.Ours.Unit = n/r.Ours.Value, perSecond
				if r.Theirs != nil {
					r.Theirs.Value, r.Theirs.Unit = n/r.Theirs.Value, perSecond
				}
				if cores == 1 {
					least := []float64{1e6, 600e3}[i]
					r.atLeast(r.Ours.Value, least, count(least)+"/s")
				}
				rows = append(rows, r)
			}
		}
		if cores == runtime.GOMAXPROCS(0) {
			break
		}
	}
	return rows, nil
}

func coresText(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}

// building is the job of building an artifact.
func (s *seriesSet) building(zstd bool) job {
	j := job{section: "series-build", name: "no compression", rounds: 3, ours: contender{
		name:   "Spile",
		run:    func() error { return s.build(&nowhere{}, &series.WriteOptions{Zstd: zstd}) },
		answer: func() (any, error) { return len(s.rows), s.build(&nowhere{}, &series.WriteOptions{Zstd: zstd}) },
	}}
	if !zstd {
		return j
	}
	j.name = "zstd"
	parquet := func() error {
		return seriesparquet.Write(context.Background(), io.Discard, s.labels, s.records(), nil)
	}
	j.peers = []contender{{name: "Parquet, zstd", run: parquet, answer: func() (any, error) { return len(s.rows), parquet() }}}
	return j
}

// sizes are those of the files.
func (s *seriesSet) sizes(f *seriesFiles) ([]row, error) {
	n := float64(len(s.rows))
	of := make(map[string]float64)
	for _, path := range []string{f.artifact, f.plain, f.lookups, f.parquet, f.index} {
		size, err := sizeOf(path)
		if err != nil {
			return nil, err
		}
		of[path] = float64(size) / n
	}
	var rows []row
	for _, form := range []struct{ name, folder string }{
		{"zstd", f.artifact}, {"no compression", f.plain},
		{"no compression, " + forLookupsText, f.lookups},
	} {
		for _, peer := range []struct{ name, path string }{{"Parquet, zstd", f.parquet}, {"index of Prometheus", f.index}} {
			r := row{
				Section: "series-build", Job: fmt.Sprintf("size of %s series of %s, %s", count(n), s.name, form.name),
				Ours: figure{Value: of[form.folder], Unit: bytesEach}, Peer: peer.name, Theirs: &figure{Value: of[peer.path], Unit: bytesEach},
				Ratio: of[peer.path] / of[form.folder],
			}
			if form.folder == f.artifact && len(s.labels) == optionalFirst {
				r.atMost(r.Ours.Value, 10.5, "10.5 B a series")
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}
