package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spilehq/spile/series"
)

// openArtifacts is how many artifacts are open at a time.
const openArtifacts = 1000

// openVariable makes this program one that opens the artifact in a folder many times, and looks a series up in each: it is the
// number of times. The arguments are the folder, the series and the file to report to.
const openVariable = "SPILE_BENCH_OPEN_ARTIFACTS"

// openedMemory is the report of that process: what it has resident.
type openedMemory struct{ Before, Opened, Used int64 }

func openedArtifacts() bool {
	text := os.Getenv(openVariable)
	if text == "" {
		return false
	}
	n, err := strconv.Atoi(text)
	if err == nil {
		err = openMany(n, os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func openMany(n int, folder, id, report string) error {
	var want series.ID
	if _, err := fmt.Sscanf(id, "%d/%d", &want.Table, &want.TSID); err != nil {
		return err
	}
	var m openedMemory
	cache := series.NewCache(1 << 20)
	ctx := context.Background()
	list := make([]*series.Artifact, 0, n)
	// One before all, for what every program needs once.
	first, err := openArtifact(folder, &series.Options{Cache: cache}, nil)
	if err != nil {
		return err
	}
	defer first.Close()
	if _, err := first.Lookup(ctx, want); err != nil {
		return err
	}
	if m.Before, err = resident(); err != nil {
		return err
	}
	for range n {
		a, err := openArtifact(folder, &series.Options{Cache: cache}, nil)
		if err != nil {
			return err
		}
		defer a.Close()
		list = append(list, a)
	}
	if m.Opened, err = resident(); err != nil {
		return err
	}
	for _, a := range list {
		if _, err := a.Lookup(ctx, want); err != nil {
			return err
		}
	}
	if m.Used, err = resident(); err != nil {
		return err
	}
	p, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(report, p, 0o666)
}

// resident is the resident memory of this process, behind a collection.
func resident() (int64, error) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

func measureSeriesMemory(s *setup) ([]row, error) {
	return s.seriesInputs(s.series/10, func(set *seriesSet, files *seriesFiles) ([]row, error) {
		progress("  opening %d artifacts", openArtifacts)
		return s.memoryOfOpen(set, files, openArtifacts)
	})
}

// memoryOfOpen opens an artifact n times in a process of its own.
func (s *setup) memoryOfOpen(set *seriesSet, f *seriesFiles, n int) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	report := filepath.Join(s.dir, "opened.json")
	defer remove(report)
	if err := os.Setenv(openVariable, strconv.Itoa(n)); err != nil {
		return nil, err
	}
	defer os.Unsetenv(openVariable)
	id := set.rows[len(set.rows)/2].ID
	if _, err := peakMemory(self, f.artifact, fmt.Sprintf("%d/%d", id.Table, id.TSID), report); err != nil {
		return nil, err
	}
	p, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var m openedMemory
	if err := json.Unmarshal(p, &m); err != nil {
		return nil, err
	}
	var rows []row
	for _, of := range []struct {
		name  string
		bytes int64
	}{{"opened", m.Opened - m.Before}, {"opened and used, one cache of 1 MiB for all", m.Used - m.Before}} {
		each := float64(of.bytes) / float64(n)
		r := row{
			Section: "series-memory", Job: fmt.Sprintf("an artifact of %s series of %s, one of %d, %s", count(float64(len(set.rows))), set.name, n, of.name),
			Ours: figure{Value: each / 1024, Unit: kibibytes},
		}
		r.atMost(each, 64<<10, "64 KiB")
		rows = append(rows, r)
	}
	return rows, nil
}
