// Package seriestest has artifacts for the tests of exports and imports: those of testdata/series, and random ones.
package seriestest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// Artifact is an artifact in memory.
type Artifact struct {
	Name  string
	Meta  *series.Manifest
	Files map[string][]byte
	o     *series.WriteOptions
}

// target takes an artifact.
type target struct {
	files map[string][]byte
}

type output struct {
	bytes.Buffer
	t    *target
	name string
}

func (o *output) Commit() error {
	o.t.files[o.name] = o.Bytes()
	return nil
}

func (o *output) Abort() {}

// Create begins an object.
func (t *target) Create(_ context.Context, name string) (series.Output, error) {
	return &output{t: t, name: name}, nil
}

// Discard forgets all objects.
func (t *target) Discard() error {
	clear(t.files)
	return nil
}

// Build makes an artifact of records in any order.
func Build(meta *series.Manifest, records iter.Seq2[series.Record, error], o *series.WriteOptions) (*Artifact, error) {
	ctx := context.Background()
	t := &target{make(map[string][]byte)}
	w, err := series.NewWriter(ctx, t, meta, o)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	s := series.NewSorter(ctx, 0)
	defer s.Close()
	for r, err := range records {
		if err == nil {
			err = s.Add(r)
		}
		if err != nil {
			return nil, err
		}
	}
	for r, err := range s.Sorted() {
		if err == nil {
			err = w.Add(r)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &Artifact{Meta: meta, Files: t.files, o: o}, nil
}

// Open opens an artifact.
func (a *Artifact) Open(t testing.TB) *series.Artifact {
	t.Helper()
	opened, err := series.Open(context.Background(), func(_ context.Context, name string) (source.Object, error) {
		b, ok := a.Files[name]
		if !ok {
			return nil, fault.New(fault.NotFound, "seriestest", "").In(name)
		}
		return source.Memory(name, b), nil
	}, nil)
	if err != nil {
		t.Fatal(a.Name, ": ", err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened
}

// Labels are the names of the tags.
func (a *Artifact) Labels() []string {
	names := []string{}
	for _, t := range a.Meta.Tags {
		names = append(names, t.Name)
	}
	return names
}

// Records gives all series.
func (a *Artifact) Records(t testing.TB) iter.Seq2[series.Record, error] {
	t.Helper()
	return a.Open(t).Select(context.Background(), &series.Query{Mode: series.Native})
}

// Same demands that an artifact which is built of the records, in another order, has the same bytes.
func (a *Artifact) Same(t testing.TB, records iter.Seq2[series.Record, error]) {
	t.Helper()
	back, err := Build(a.Meta, records, a.o)
	if err != nil {
		t.Fatal(a.Name, ": ", err)
	}
	if !maps.EqualFunc(a.Files, back.Files, bytes.Equal) {
		t.Fatalf("%s: built of what was exported, the artifact has other bytes", a.Name)
	}
}

// Vectors reads the artifacts of dir, which is testdata/series, whose values can all be read, and builds each anew, so that
// it is what a writer makes. Those with a series of no rows are left out: no writer takes them.
func Vectors(t testing.TB, dir string) []*Artifact {
	t.Helper()
	var out []*Artifact
	manifests, err := filepath.Glob(filepath.Join(dir, "*", "*", "series", "*", series.ManifestName))
	if err != nil || len(manifests) < 40 {
		t.Fatal(err, len(manifests))
	}
	ctx := context.Background()
	for _, path := range manifests {
		opened, err := series.Open(ctx, series.Folder(filepath.Dir(path)), nil)
		if err != nil {
			t.Fatal(path, ": ", err)
		}
		zero := false
		for r, err := range opened.Select(ctx, &series.Query{}) {
			if zero = err != nil || r.RowCount == 0; zero {
				break
			}
		}
		if !zero {
			a, err := Build(opened.Manifest(), opened.Select(ctx, &series.Query{Mode: series.Native}), nil)
			if err != nil {
				t.Fatal(path, ": ", err)
			}
			a.Name, _ = filepath.Rel(dir, path)
			out = append(out, a)
		}
		opened.Close()
	}
	if len(out) < 35 {
		t.Fatalf("%d artifacts", len(out))
	}
	return out
}

// Meta is what an artifact with some tags is to be built of.
func Meta(tags ...string) *series.Manifest {
	id, err := series.ParseUUID("6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f")
	if err != nil {
		panic(err)
	}
	m := &series.Manifest{RegionID: 1, Generation: id}
	m.Coverage.IndexUUID = id
	for i, name := range tags {
		m.Tags = append(m.Tags, series.Tag{ColumnID: uint32(i + 5), Name: name})
	}
	return m
}

var names = []string{"host", "a b", "über", "http.status", "x,y", "a;b", "q\"uote", "tab\tname", "=sum", "\ufeffmark", "line\nbreak", "__name__", "Host", "job", "日本", `back\slash`}

var words = []string{"", "a", "web-1", "ü", "日本語", "\x00", "\"", "\"\"", ",", ";", "\n", "\r\n", "\r", " ", "\ufeff", "😀", "null", "\\N", "-1", "\u2028"}

// Random makes an artifact of about n series. Equal seeds give equal artifacts.
func Random(t testing.TB, seed uint64, n int) *Artifact {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	tags := slices.Clone(names)
	r.Shuffle(len(tags), func(i, k int) { tags[i], tags[k] = tags[k], tags[i] })
	tags = tags[:r.IntN(min(len(tags), 9))]
	if n == 0 {
		n = r.IntN(3)
	}
	meta := Meta(tags...)
	records := make([]series.Record, n)
	for i := range records {
		rec := &records[i]
		rec.ID = series.ID{Table: uint32(r.IntN(3)) * 2147483647, TSID: r.Uint64()}
		if r.IntN(10) == 0 {
			rec.TSID = ^uint64(0) - uint64(i)
		}
		rec.RowCount = 1 + uint64(r.IntN(1000))
		if r.IntN(20) == 0 {
			rec.RowCount = 1 << 63
		}
		for k, name := range tags {
			if r.IntN(3) == 0 || k == 2 && r.IntN(50) > 0 {
				continue
			}
			value := words[r.IntN(len(words))]
			switch r.IntN(6) {
			case 0:
				value += words[r.IntN(len(words))]
			case 1:
				value = fmt.Sprint(value, r.IntN(n*10))
			}
			rec.Labels = append(rec.Labels, series.Label{Name: name, Value: value})
		}
	}
	a, err := Build(meta, Seq(records), &series.WriteOptions{BlockSeries: 1 + r.IntN(500), Zstd: seed%2 == 0})
	if err != nil {
		t.Fatal(err)
	}
	a.Name = fmt.Sprint("random ", seed)
	return a
}

// Seq gives records.
func Seq(records []series.Record) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// All is Random and Vectors together, for a round trip.
func All(t testing.TB, dir string) []*Artifact {
	t.Helper()
	all := Vectors(t, dir)
	for seed := range uint64(60) {
		all = append(all, Random(t, seed, []int{0, 1, 10, 300, 3000}[seed%5]))
	}
	return all
}
