package rangetest_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spilehq/spile/internal/rangetest"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
	"github.com/spilehq/spile/tcb"
)

// costs opens objects of a server, and holds what was asked against what may be.
type costs struct {
	t      *testing.T
	server *rangetest.Server
	meter  source.Meter
}

func newCosts(t *testing.T) *costs { return &costs{t: t, server: rangetest.New(t)} }

func (c *costs) open(ctx context.Context, path string) (source.Object, error) {
	return httprange.OpenURL(ctx, c.server.URL+path, &httprange.Options{Options: remote.Options{Meter: &c.meter}})
}

// atMost demands that no more requests were made since the last time, and that the receipt is right.
func (c *costs) atMost(what string, requests int) {
	c.t.Helper()
	got := c.server.Requests()
	if len(got) > requests {
		c.t.Errorf("%s: %q, %d requests, at most %d", what, got, len(got), requests)
	}
	if r := c.meter.Receipt(); r.Requests != int64(len(got)) || r.Bytes != c.server.Bytes() {
		c.t.Errorf("%s: receipt %+v, the server has seen %d requests and sent %d bytes", what, r, len(got), c.server.Bytes())
	}
	c.server.Reset()
	c.meter = source.Meter{}
}

// document is a list of n maps with a table of contents of some 36 bytes for each.
func document(t *testing.T, n int) []byte {
	t.Helper()
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprintf("run %d", i), "energy": float64(i) + 0.5, "tail": make([]byte, 60)}
	}
	doc, err := msglc.Dumps(map[string]any{"runs": list}, &msglc.WriteOptions{Threshold: 64})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentCosts(t *testing.T) {
	for _, tt := range []struct {
		n       int
		deep    int // requests for opening and one deep value
		listing int
	}{
		{100, 1, 1},
		{1000, 2, 2},
		{14_000, 3, 5}, // a table of contents of 1 MiB
	} {
		c := newCosts(t)
		doc := document(t, tt.n)
		c.server.Put("/doc", doc)
		ctx := t.Context()
		read := func(what string, most int, use func(r *msglc.Reader)) {
			t.Helper()
			obj, err := c.open(ctx, "/doc")
			if err != nil {
				t.Fatal(err)
			}
			r, err := msglc.Open(ctx, obj, nil)
			if err != nil {
				t.Fatal(err)
			}
			if toc := r.Info().TOCSize; tt.n == 14_000 && (toc < 1000<<10 || toc > 1100<<10) {
				t.Fatalf("a table of contents of %d bytes", toc)
			}
			use(r)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			c.atMost(fmt.Sprintf("%s of %d", what, tt.n), most)
		}
		find := func(r *msglc.Reader, path string) msglc.Node {
			t.Helper()
			p, err := msglc.ParsePath(path)
			if err != nil {
				t.Fatal(err)
			}
			n, err := r.Find(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, i := range []int{0, tt.n / 2, tt.n - 1} {
			read(fmt.Sprintf("value %d", i), tt.deep, func(r *msglc.Reader) {
				if v, err := find(r, fmt.Sprintf("runs/%d/energy", i)).Value(ctx); err != nil || v != float64(i)+0.5 {
					t.Errorf("%v, %v", v, err)
				}
			})
		}
		read("a slice of neighbours", tt.listing, func(r *msglc.Reader) {
			var out bytes.Buffer
			if err := find(r, fmt.Sprintf("runs/%d:%d", tt.n/2-50, tt.n/2+50)).WriteJSON(ctx, &out, nil, nil); err != nil || bytes.Count(out.Bytes(), []byte("energy")) != min(tt.n, 100) {
				t.Errorf("%d bytes, %v", out.Len(), err)
			}
		})
		read("neighbours found together", tt.deep, func(r *msglc.Reader) {
			var paths []msglc.Path
			for i := tt.n/2 - 50; i < tt.n/2+50; i++ {
				paths = append(paths, msglc.SplitPath(fmt.Sprintf("runs/%d/energy", i)))
			}
			i := tt.n/2 - 50
			for n, err := range r.FindAll(ctx, paths) {
				if err != nil {
					t.Fatal(err)
				}
				if v, err := n.Value(ctx); err != nil || v != float64(i)+0.5 {
					t.Fatalf("%v, %v", v, err)
				}
				i++
			}
		})
		read("a loop over children", tt.listing, func(r *msglc.Reader) {
			for c, err := range find(r, "runs").Children(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if v, err := c.Node.Value(ctx); err != nil || v.(map[string]any)["energy"] != float64(c.Index)+0.5 {
					t.Fatalf("%v, %v", v, err)
				}
				if c.Index == 99 {
					break
				}
			}
		})
		read("neighbours one by one", tt.listing, func(r *msglc.Reader) {
			for i := tt.n/2 - 50; i < tt.n/2+50; i++ {
				if v, err := find(r, fmt.Sprintf("runs/%d/energy", i)).Value(ctx); err != nil || v != float64(i)+0.5 {
					t.Fatalf("%v, %v", v, err)
				}
			}
		})
	}
}

func TestTableCosts(t *testing.T) {
	ctx := t.Context()
	type row struct {
		ID    int64  `tcb:"1"`
		Label string `tcb:"2"`
		Rest  string `tcb:"3"`
	}
	for _, n := range []int{100, 20_000} {
		rows := make([]row, n)
		for i := range rows {
			rows[i] = row{int64(i * i), fmt.Sprintf("label %d", i), fmt.Sprintf("rest %d of the row", i*7)}
		}
		file, err := tcb.Marshal(nil, rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := newCosts(t)
		c.server.Put("/table", file)
		obj, err := c.open(ctx, "/table")
		if err != nil {
			t.Fatal(err)
		}
		table, err := tcb.Open(ctx, obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cols, err := table.Read(ctx, 3); err != nil || cols[0].Len() != n {
			t.Errorf("%v", err)
		}
		table.Close()
		c.atMost(fmt.Sprintf("a column of %d rows", n), 2)
	}
}

// artifact writes an artifact of n series below a folder, and returns its own folder.
func artifact(t *testing.T, dir string, n int) string {
	t.Helper()
	vectors, err := filepath.Glob("../../testdata/series/example-b1/*/series/*/manifest.json")
	if err != nil || len(vectors) != 1 {
		t.Fatalf("%q, %v", vectors, err)
	}
	like, err := source.OpenFile(vectors[0])
	if err != nil {
		t.Fatal(err)
	}
	defer like.Close()
	m, err := series.ReadManifest(t.Context(), like, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Files = nil
	target := series.NewFolderTarget(dir, m.RegionID, m.Generation)
	w, err := series.NewWriter(t.Context(), target, m, &series.WriteOptions{BlockSeries: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for i := range n {
		labels := []series.Label{{Name: m.Tags[0].Name, Value: fmt.Sprintf("host-%d", i*7919)}, {Name: m.Tags[1].Name, Value: fmt.Sprintf("zone-%d", i%100)}}
		if err := w.Add(series.Record{ID: series.ID{Table: 1, TSID: uint64(3 * i)}, RowCount: uint64(i + 1), Labels: labels}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return target.Dir()
}

func TestSeriesCosts(t *testing.T) {
	ctx := t.Context()
	const n = 300_000
	c := newCosts(t)
	c.server.Serve(artifact(t, t.TempDir(), n))
	for _, i := range []int{0, n / 2, n - 1} {
		a, err := series.Open(ctx, func(ctx context.Context, name string) (source.Object, error) { return c.open(ctx, "/"+name) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if size := a.Manifest().Files[0].FileSize; size < 2<<20 {
			t.Fatalf("a part of %d bytes is read at once", size)
		}
		if r, err := a.Lookup(ctx, series.ID{Table: 1, TSID: uint64(3 * i)}); err != nil || r.RowCount != uint64(i+1) {
			t.Errorf("%+v, %v", r, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		c.atMost(fmt.Sprintf("series %d", i), 1+4)
	}
}

// TestSelectCosts holds what queries ask of a store: the manifest, both ends of the part at once, the pages that are not in
// its end, and columns of many blocks together.
func TestSelectCosts(t *testing.T) {
	ctx := t.Context()
	const n = 300_000
	c := newCosts(t)
	c.server.Serve(artifact(t, t.TempDir(), n))
	equal := func(name, value string) *series.Matcher {
		m, err := series.NewMatcher(series.Equal, name, value)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct {
		what     string
		q        series.Query
		selected int
		requests int
		bytes    int64
	}{
		{"few series of all blocks", series.Query{Matchers: []*series.Matcher{equal("zone", "zone-7")}}, n / 100, 5, 10_700_000},
		{"one series, by the range of its value", series.Query{Matchers: []*series.Matcher{equal("host", "host-7919")}}, 1, 6, 1_710_000},
		{"two matchers", series.Query{Matchers: []*series.Matcher{equal("zone", "zone-1"), equal("host", "host-7919")}}, 1, 6, 1_710_000},
		{"a range", series.Query{Range: &series.Range{First: series.ID{Table: 1, TSID: 300}, Last: series.ID{Table: 1, TSID: 3000}}}, 901, 5, 231_000},
		{"the first of all", series.Query{Limit: 10}, 10, 5, 4_800_000},
		{"the last blocks", series.Query{Range: &series.Range{First: series.ID{Table: 1, TSID: 3*n - 1500}, Last: series.ID{Table: 1, TSID: 3 * n}}}, 500, 4, 159_000},
	} {
		a, err := series.Open(ctx, func(ctx context.Context, name string) (source.Object, error) { return c.open(ctx, "/"+name) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, err := range a.Select(ctx, &tt.q) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}
		if got != tt.selected {
			t.Errorf("%s: %d series, not %d", tt.what, got, tt.selected)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if bytes := c.server.Bytes(); bytes > tt.bytes {
			t.Errorf("%s: %d bytes, at most %d", tt.what, bytes, tt.bytes)
		}
		c.atMost(tt.what, tt.requests)
	}
}

// TestThresholdCosts measures what the threshold of a document means over a network, for docs/guides/remote.md: one value of
// a document of 27 MB, and a thousand of them.
func TestThresholdCosts(t *testing.T) {
	ctx := t.Context()
	const groups, runs, numbers = 100, 50, 600
	var all []any
	for g := range groups {
		var group []any
		for i := range runs {
			energy := make([]float64, numbers)
			for k := range energy {
				energy[k] = float64(g*i*k) / 7
			}
			group = append(group, map[string]any{"id": g*runs + i, "energy": energy})
		}
		all = append(all, group)
	}
	for _, tt := range []struct {
		threshold, toc int64 // the table of contents has so many bytes, about
		one            int   // requests for one value,
		oneBytes       int64 // and bytes
		many           int   // requests for a thousand
	}{
		{512, 900_000, 3, 1_000_000, 12},
		{8 << 10, 75_000, 3, 150_000, 12},
		{1 << 20, 2_500, 3, 350_000, 30},
	} {
		doc, err := msglc.Dumps(map[string]any{"groups": all}, &msglc.WriteOptions{Threshold: tt.threshold})
		if err != nil {
			t.Fatal(err)
		}
		c := newCosts(t)
		c.server.Put("/doc", doc)
		for _, n := range []int{1, 1000} {
			obj, err := c.open(ctx, "/doc")
			if err != nil {
				t.Fatal(err)
			}
			r, err := msglc.Open(ctx, obj, nil)
			if err != nil {
				t.Fatal(err)
			}
			paths := make([]msglc.Path, n)
			for i := range paths {
				at := (i*7919 + 2501) % (groups * runs)
				paths[i] = msglc.SplitPath(fmt.Sprintf("groups/%d/%d/energy/300", at/runs, at%runs))
			}
			for n, err := range r.FindAll(ctx, paths) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := n.Value(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if toc := r.Info().TOCSize; toc > tt.toc || toc < tt.toc/2 {
				t.Errorf("threshold %d: a table of contents of %d bytes, expected %d", tt.threshold, toc, tt.toc)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if n == 1 {
				if got := c.server.Bytes(); got > tt.oneBytes {
					t.Errorf("threshold %d: %d bytes for a value, at most %d", tt.threshold, got, tt.oneBytes)
				}
				c.atMost(fmt.Sprintf("a value at threshold %d", tt.threshold), tt.one)
			} else {
				c.atMost(fmt.Sprintf("many values at threshold %d", tt.threshold), tt.many)
			}
		}
	}
}
