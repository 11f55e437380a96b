package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// The document that is opened looks like an archive of simulations: a list of runs, each a map with a few words about
// it, time steps with arrays of numbers, a spectrum and a log. It is written with the default sizes of the format, so
// that the table of contents has a node for each run, each step and each array, about 1 % of the document.
const (
	stepsOfRun     = 10
	positionsBytes = 1800 * 9 // of a step: 600 atoms with three coordinates
	spectrumBytes  = 4096 * 9
	logLines       = 400
	// runBytes is about the length of a run.
	runBytes = stepsOfRun*(positionsBytes+9*9+60) + spectrumBytes + logLines*62 + 400
)

// archiveName has a number that changes with the content, so that a file of an older form is not taken for this one.
const archiveName = "archive-1-%d.msg"

// runsOf is the number of runs of a document of a size.
func runsOf(size int64) int { return max(2, int(size/runBytes)) }

// documentFile returns the file of the document, which it makes when it is not there: making it is no part of any
// measurement, and the same size gives the same bytes.
func (s *setup) documentFile(size int64) (string, error) {
	path := filepath.Join(s.dir, fmt.Sprintf(archiveName, size))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	progress("making %s", path)
	return path, writeArchive(path, runsOf(size))
}

func writeArchive(path string, runs int) error {
	f, err := source.CreateAtomic(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	w, err := msglc.NewWriter(context.Background(), f, nil)
	if err != nil {
		return err
	}
	if err := w.WriteValue(archiveDocument(runs)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Commit()
}

// archiveDocument is the document as a value whose runs are made while they are written.
func archiveDocument(runs int) value.OrderedMap {
	return value.OrderedMap{
		{Key: "format", Value: "simulation-archive/2"},
		{Key: "created", Value: "2026-11-30T09:00:00Z"},
		{Key: "config", Value: value.OrderedMap{
			{Key: "code", Value: "relax 7.2.1"},
			{Key: "nodes", Value: 64},
			{Key: "options", Value: []any{"spin", "forces", "stress"}},
		}},
		{Key: "runs", Value: value.Seq{Len: runs, Items: archiveRuns(runs)}},
	}
}

func archiveRuns(runs int) iter.Seq[any] {
	return func(yield func(any) bool) {
		r := rand.New(rand.NewPCG(3, 4))
		for i := range runs {
			if !yield(archiveRun(r, i)) {
				return
			}
		}
	}
}

func archiveRun(r *rand.Rand, i int) value.OrderedMap {
	steps := make([]any, stepsOfRun)
	for k := range steps {
		steps[k] = value.OrderedMap{
			{Key: "time", Value: float64(k) / 2},
			{Key: "energy", Value: -1000 - r.Float64()},
			{Key: "cell", Value: floats(r, 9, 20)},
			{Key: "positions", Value: floats(r, positionsBytes/9, 20)},
		}
	}
	return value.OrderedMap{
		{Key: "id", Value: fmt.Sprintf("run-%06d", i)},
		{Key: "host", Value: fmt.Sprintf("node%03d.cluster.example.org", r.IntN(64))},
		{Key: "converged", Value: r.IntN(8) != 0},
		{Key: "parameters", Value: value.OrderedMap{
			{Key: "functional", Value: "PBE"},
			{Key: "cutoff", Value: 400.5},
			{Key: "k_points", Value: []any{4, 4, 4}},
			{Key: "seed", Value: r.IntN(1 << 31)},
			{Key: "species", Value: []any{"Si", "O", "Al", "H"}},
		}},
		{Key: "steps", Value: steps},
		{Key: "spectrum", Value: floats(r, spectrumBytes/9, 1)},
		{Key: "log", Value: archiveLog(r)},
	}
}

func floats(r *rand.Rand, n int, scale float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = r.Float64() * scale
	}
	return list
}

func archiveLog(r *rand.Rand) string {
	var b strings.Builder
	for line := range logLines {
		fmt.Fprintf(&b, "%06d  scf %2d  energy %+.10f  residual %.4e  ok\n", line, line%20, -1000-r.Float64(), r.Float64())
	}
	return b.String()
}

// deepPath is a value five steps below the root, in a run at a share of the document.
func deepPath(runs int, at float64) string {
	return fmt.Sprintf("runs/%d/steps/7/energy", min(runs-1, int(at*float64(runs))))
}

// warm reads a file once, so that its pages are in memory.
func warm(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = bufio.NewReaderSize(f, 1<<20).WriteTo(discard{})
	return err
}

// discard is io.Discard without its ReadFrom, which would read in small pieces.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// readDeep opens a document and reads one value, the job of section open.
func readDeep(ctx context.Context, path, at string, meter *source.Meter) (any, error) {
	obj, err := source.OpenFile(path)
	if err != nil {
		return nil, err
	}
	r, err := msglc.Open(ctx, meter.Object(obj), nil)
	if err != nil {
		obj.Close()
		return nil, err
	}
	defer r.Close()
	n, err := r.Find(ctx, msglc.SplitPath(at))
	if err != nil {
		return nil, err
	}
	return n.Value(ctx)
}
