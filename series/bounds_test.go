package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// priced is a source with other costs.
type priced struct {
	source.Object
	cost source.Cost
}

func (p priced) Cost() source.Cost { return p.cost }

// noting is a source that notes what is read of it.
type noting struct {
	source.Object
	mu    sync.Mutex
	reads []source.Range
}

func (n *noting) ReadAt(ctx context.Context, p []byte, off int64) error {
	n.mu.Lock()
	n.reads = append(n.reads, source.Range{Start: off, End: off + int64(len(p))})
	n.mu.Unlock()
	return n.Object.ReadAt(ctx, p, off)
}

// twice is the first byte that was read twice, -1 when there is none.
func (n *noting) twice() int64 {
	slices.SortFunc(n.reads, func(a, b source.Range) int { return cmp.Compare(a.Start, b.Start) })
	for i := 1; i < len(n.reads); i++ {
		if n.reads[i].Start < n.reads[i-1].End {
			return n.reads[i].Start
		}
	}
	return -1
}

// wide writes an artifact of n series with four labels, in three tables, and returns its folder.
func wide(t testing.TB, n int, o *WriteOptions) string {
	t.Helper()
	meta := &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}, {2, "zone"}, {3, "job"}, {4, "path"}}}
	target := NewFolderTarget(t.TempDir(), 1, UUID{})
	w, err := NewWriter(context.Background(), target, meta, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := Record{ID: ID{Table: uint32(1 + 3*i/n), TSID: uint64(i)}, RowCount: 1, Labels: []Label{
			{"host", fmt.Sprintf("host-%d", i*7919%1000)}, {"zone", fmt.Sprintf("zone-%d", i%7)},
			{"job", "job-" + strings.Repeat("x", i%50)}, {"path", fmt.Sprintf("/%d/%d", i, i*i)},
		}}
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return target.Dir()
}

// No query reads a byte twice, whatever a request costs: what a matcher needs and what is printed, pages, the ends of parts.
func TestNothingReadTwice(t *testing.T) {
	ctx := context.Background()
	matcher := func(op Op, name, value string) *Matcher {
		m, err := NewMatcher(op, name, value)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	host, zone := matcher(Regexp, "host", ".*[05]"), matcher(Regexp, "zone", "zone-[135]")
	path := matcher(NotEqual, "path", "/0/0")
	inside := &Range{ID{1, 500}, ID{3, 2333}}
	drain := func(a *Artifact, q *Query) (n int, err error) {
		for _, err := range a.Select(ctx, q) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	queries := []struct {
		name string
		run  func(a *Artifact) (int, error)
	}{
		{"all", func(a *Artifact) (int, error) { return drain(a, &Query{}) }},
		{"select what is matched", func(a *Artifact) (int, error) { return drain(a, &Query{Matchers: []*Matcher{host, zone}}) }},
		{"select another column", func(a *Artifact) (int, error) {
			return drain(a, &Query{Matchers: []*Matcher{zone, host, zone}, Columns: []string{"path", "zone"}})
		}},
		{"select in a range", func(a *Artifact) (int, error) { return drain(a, &Query{Matchers: []*Matcher{path}, Range: inside}) }},
		{"select in tables", func(a *Artifact) (int, error) {
			return drain(a, &Query{Matchers: []*Matcher{host}, Tables: []uint32{3, 1, 2, 1, 77}})
		}},
		{"count", func(a *Artifact) (int, error) {
			n, err := a.Count(ctx, &Query{Matchers: []*Matcher{host, path}, Range: inside})
			return int(n), err
		}},
		{"sum", func(a *Artifact) (int, error) {
			n, err := a.SumRows(ctx, &Query{Matchers: []*Matcher{zone}})
			return int(n), err
		}},
		{"tables", func(a *Artifact) (int, error) {
			n, err := a.Tables(ctx, &Query{Matchers: []*Matcher{host}, Tables: []uint32{1, 2, 3}})
			return len(n), err
		}},
		{"labels", func(a *Artifact) (int, error) {
			n, err := a.LabelNames(ctx, &Query{Matchers: []*Matcher{host, zone}})
			return len(n), err
		}},
		{"values of a label that is matched", func(a *Artifact) (int, error) {
			n, err := a.LabelValues(ctx, "host", &Query{Matchers: []*Matcher{zone, host}})
			return len(n), err
		}},
		{"values of another label", func(a *Artifact) (int, error) {
			n, err := a.LabelValues(ctx, "path", &Query{Matchers: []*Matcher{host}, Range: inside})
			return len(n), err
		}},
		{"values", func(a *Artifact) (int, error) {
			n, err := a.LabelValues(ctx, "path", &Query{})
			return len(n), err
		}},
		{"lookup", func(a *Artifact) (int, error) {
			r, err := a.Lookup(ctx, ID{2, 1500})
			return len(r.Labels), err
		}},
		{"scan", func(a *Artifact) (n int, err error) {
			for _, err := range a.Records(ctx, *inside) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}},
	}
	for _, o := range []*WriteOptions{
		{BlockSeries: 200},
		{BlockSeries: 200, PageBytes: 2000, Zstd: true},
		{BlockSeries: 64, PageBytes: 4000, PartBytes: 100 << 10},
		{BlockSeries: 3, PageBytes: 64 << 10}, // pages of which the end of the part has a piece
	} {
		dir := wide(t, 3000, o)
		want := make(map[string]int)
		for _, cost := range []source.Cost{{}, {Gap: 16 << 10, Parallel: 4}, {Gap: 1 << 20, Parallel: 16, MaxRequest: 8 << 20}, {Gap: 100, Parallel: 2, MaxRequest: 5000}} {
			for _, q := range queries {
				var meter source.Meter
				var opened []*noting
				a, err := Open(ctx, func(ctx context.Context, name string) (source.Object, error) {
					obj, err := Folder(dir)(ctx, name)
					if err != nil {
						return nil, err
					}
					c := &noting{Object: meter.Object(priced{obj, cost})}
					opened = append(opened, c)
					return c, nil
				}, &Options{CacheBytes: -1})
				if err != nil {
					t.Fatal(err)
				}
				n, err := q.run(a)
				a.Close()
				if err != nil || n == 0 {
					t.Fatalf("%s: %d, %v", q.name, n, err)
				}
				if before, ok := want[q.name]; ok && before != n {
					t.Errorf("%s: %d with the cost %v, %d with another", q.name, n, cost, before)
				}
				want[q.name] = n
				bytes := int64(0)
				for _, c := range opened {
					if at := c.twice(); at >= 0 {
						t.Errorf("%+v, cost %v: %s reads byte %d of %s twice", *o, cost, q.name, at, filepath.Base(c.Name()))
					}
					for _, r := range c.reads {
						bytes += r.Len()
					}
				}
				if got := meter.Receipt(); got.Bytes != bytes || got.Bytes > got.Size {
					t.Errorf("%s: the receipt says %d bytes of %d, %d are read", q.name, got.Bytes, got.Size, bytes)
				}
			}
		}
	}
}

// hugeValues builds an artifact of blocks with four series each, of which two have values of 4 MiB that compress a thousandfold.
func hugeValues(t *testing.T, blocks int) (dir string) {
	t.Helper()
	meta := &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}, {2, "zone"}}}
	target := NewFolderTarget(t.TempDir(), 1, UUID{})
	w, err := NewWriter(context.Background(), target, meta, &WriteOptions{BlockSeries: 4, Zstd: true})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 4<<20)
	for i := range 4 * blocks {
		host := strconv.Itoa(i % 4)
		if i%4 == 1 || i%4 == 2 {
			host += long
		}
		if err := w.Add(Record{ID: ID{1, uint64(i)}, RowCount: 1, Labels: []Label{{"host", host}, {"zone", "z"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return target.Dir()
}

// What is decoded at a time is bounded by its size, not by the number of blocks; a block that is more than the bound is
// refused before it is read.
func TestMaxDecoded(t *testing.T) {
	const blocks = 12 // of 8 MiB each
	ctx := context.Background()
	dir := hugeValues(t, blocks)
	if info, err := os.Stat(filepath.Join(dir, PartName(0))); err != nil || info.Size() > blocks*8<<20/100 {
		t.Fatal("it is not compressed well", info, err)
	}
	m, err := NewMatcher(Regexp, "host", "0.*b?")
	if err != nil {
		t.Fatal(err)
	}
	open := func(most int64) *Artifact {
		a, err := Open(ctx, Folder(dir), &Options{CacheBytes: -1, MaxDecoded: most})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	// How many blocks are decoded while the first series is given: its own, and the next one where there is room for it.
	for _, tt := range []struct{ most, memory, ahead int64 }{{0, 0, 2}, {-1, 0, 2}, {100 << 20, 0, 1}, {0, 100 << 20, 1}} {
		a := open(tt.most)
		var e Explain
		q := &Query{Matchers: []*Matcher{m}, Memory: tt.memory, Explain: &e}
		for _, err := range a.Select(ctx, q) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // in which nothing more is to happen
			break
		}
		if e.Evaluated > tt.ahead {
			t.Errorf("%+v: %d blocks are decoded at once", tt, e.Evaluated)
		}
		n := 0
		for _, err := range a.Select(ctx, q) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != blocks {
			t.Errorf("%+v: %d series", tt, n)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Class != fault.Limit || f.Object == "" || f.Where == "" {
			t.Errorf("%s: %v, want a limit that names the block", what, err)
		}
	}
	q := &Query{Matchers: []*Matcher{m}}
	for _, limits := range []struct{ most, memory int64 }{{20 << 20, 0}, {20 << 20, 1 << 40}, {0, 20 << 20}, {-1, 20 << 20}} {
		a := open(limits.most)
		q := *q
		q.Memory = limits.memory
		for _, err := range a.Select(ctx, &q) {
			refused("select", err)
			break
		}
		_, err := a.Count(ctx, &q)
		refused("count", err)
		_, err = a.LabelNames(ctx, &q)
		refused("labels", err)
		_, err = a.LabelValues(ctx, "host", &Query{Memory: limits.memory})
		refused("values", err)
		if names, err := a.LabelValues(ctx, "zone", &Query{Memory: limits.memory}); err != nil || !slices.Equal(names, []string{"z"}) {
			t.Errorf("what statistics tell: %v, %v", names, err)
		}
		if n, err := a.Count(ctx, &Query{Memory: limits.memory}); err != nil || n != 4*blocks {
			t.Errorf("a count of all: %d, %v", n, err)
		}
	}
	a := open(20 << 20)
	_, err = a.Lookup(ctx, ID{1, 3})
	refused("lookup", err)
	for _, err := range a.Records(ctx, everything) {
		refused("scan", err)
	}
	// Pages have the bound as well.
	a = open(4000)
	if _, err := a.Count(ctx, &Query{}); !errors.Is(err, fault.Limit) {
		t.Errorf("a page: %v", err)
	}
}
