package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/value"
)

// runOnce makes sure that the contenders of jobs give equal answers and that what is timed runs. Nothing is timed: a
// test is no place for that.
func runOnce(t *testing.T, jobs []job) {
	for _, j := range jobs {
		t.Run(j.section+"/"+j.name, func(t *testing.T) {
			if err := j.check(); err != nil {
				t.Fatal(err)
			}
			for _, c := range j.contenders() {
				if err := c.run(); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
}

func TestJobs(t *testing.T) {
	d := testDocument(t, 50_000)
	runOnce(t, decodings(d))
	runOnce(t, passings(d))
	runOnce(t, writings(d))
	runOnce(t, []job{indexing(d)})
	const runs = 5
	runOnce(t, openings(testArchive(t, runs), runs))
	jobs, rows, err := costs(t.TempDir(), d)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Error("no share of a table of contents")
	}
	runOnce(t, jobs)
}

func TestLeaves(t *testing.T) {
	const runs = 5
	for _, o := range []*msglc.Options{nil, {CacheBytes: -1}} {
		l, err := newLeafReader(testArchive(t, runs), runs, o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.reader.Close()
		v, err := l.leaf(runs-1, stepsOfRun-1)
		if e, ok := v.(float64); err != nil || !ok || e > -1000 || e < -1001 {
			t.Errorf("a leaf is %v, %v", v, err)
		}
		if _, err := l.rate(4, time.Millisecond, effort{}); err != nil {
			t.Error(err)
		}
	}
}

func TestMeasure(t *testing.T) {
	j := decodings(testDocument(t, 5_000))[0]
	m, err := j.measure(effort{rounds: 2, batch: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	rows := j.rows(m)
	if len(rows) != len(j.peers) {
		t.Fatalf("%d rows for %d peers", len(rows), len(j.peers))
	}
	for _, r := range rows {
		if r.Ratio <= 0 || r.Ours.Value <= 0 || r.Target == "" || r.Met == nil {
			t.Errorf("a row without a figure: %+v", r)
		}
	}
}

// TestDifferentAnswers makes sure that a contender that does something else is found out.
func TestDifferentAnswers(t *testing.T) {
	answer := func(v any) contender {
		return contender{name: "one", answer: func() (any, error) { return v, nil }}
	}
	j := job{name: "job", ours: answer([]any{int64(1), map[string]any{"a": "b"}}), peers: []contender{answer([]any{int64(1), map[string]any{"a": "c"}})}}
	if err := j.check(); err == nil || !strings.Contains(err.Error(), "/1/a") {
		t.Errorf("check gives %v", err)
	}
}

func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	before := "a\n<!-- bench:machine -->\nold\n<!-- /bench:machine -->\nb\n<!-- bench:decode -->\nold\n<!-- /bench:decode -->\nc\n"
	if err := os.WriteFile(path, []byte(before), 0o666); err != nil {
		t.Fatal(err)
	}
	r := row{Section: "decode", Job: "x", Ours: figure{Value: 1e-3, Unit: seconds, Throughput: 2e9}, Peer: "y", Theirs: &figure{Value: 2e-3, Unit: seconds}, Ratio: 2}
	r.atLeast(r.Ratio, 3, "3 x")
	if err := update(path, []row{r}); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	after := string(text)
	for _, want := range []string{"| x | 1 ms, 2.00 GB/s | y | 2 ms | 2.00 x | ≥ 3 x | missed |", "\nb\n", "\nc\n", machine()} {
		if !strings.Contains(after, want) {
			t.Errorf("no %q in\n%s", want, after)
		}
	}
	if strings.Contains(after, "old") {
		t.Errorf("old text is left in\n%s", after)
	}
}

func TestJSONShapes(t *testing.T) {
	for _, shape := range jsonShapes {
		path := filepath.Join(t.TempDir(), "x.json")
		items, err := shape.make(path, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "x.msg")
		if err := pack(path, out); err != nil {
			t.Fatal(err)
		}
		if err := holds(out, items); err != nil {
			t.Error(err)
		}
	}
}

// pack is what the command does, without building it.
func pack(in, out string) error {
	src, err := os.Open(in)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := source.CreateAtomic(out)
	if err != nil {
		return err
	}
	defer dst.Abort()
	w, err := msglc.NewWriter(context.Background(), dst, nil)
	if err != nil {
		return err
	}
	if err := value.ReadJSON(w, src, info.Size(), value.Msgpack, nil, nil); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return dst.Commit()
}

func TestPeakMemory(t *testing.T) {
	echo, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := peakMemory(echo, "-test.run=^$")
	if err != nil || peak < 1<<20 || peak > 1<<30 {
		t.Errorf("a peak of %d bytes, %v", peak, err)
	}
}

// TestRemote runs the jobs over a network once. Reading a value takes few requests, and many values take fewer together than
// one after the other.
func TestRemote(t *testing.T) {
	const runs = 400
	dir := t.TempDir()
	file := filepath.Join(dir, "archive.msg")
	if err := writeArchive(file, runs); err != nil {
		t.Fatal(err)
	}
	far, err := startFar(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer far.close()
	client := httprange.NewClient()
	defer client.CloseIdleConnections()
	d := &farDocument{far, client, file, runs}
	requests := func(run func() error) int64 {
		t.Helper()
		before := far.requests.Load()
		if err := run(); err != nil {
			t.Fatal(err)
		}
		return far.requests.Load() - before
	}
	for _, j := range d.values(nil, "") {
		if err := j.check(); err != nil {
			t.Error(err)
		}
		if n := requests(j.ours.run); n > 5 {
			t.Errorf("%s: %d requests", j.name, n)
		}
	}
	j := d.leaves(30)
	if err := j.check(); err != nil {
		t.Error(err)
	}
	if together, alone := requests(j.ours.run), requests(j.peers[0].run); together > alone {
		t.Errorf("%d requests together, %d one after the other", together, alone)
	}
	set := newSeriesSet(2000, false)
	files, err := set.files(filepath.Join(dir, "series"))
	if err != nil {
		t.Fatal(err)
	}
	queries, err := set.farQueries(far.at(files.parquet))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		j := set.farJob(q, far, files, client, nil)
		if err := j.check(); err != nil {
			t.Error(err)
		}
		if n := requests(j.ours.run); n > 2 {
			t.Errorf("%s: %d requests", j.name, n)
		}
	}
}
