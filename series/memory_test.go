package series

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// hosts is an artifact of n series with a label of their own, in two tables, 64 in a block.
func hosts(t testing.TB, n int, o *Options) *Artifact {
	t.Helper()
	ctx := context.Background()
	meta := &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}, {2, "zone"}}}
	target := NewFolderTarget(t.TempDir(), 1, meta.Generation)
	w, err := NewWriter(ctx, target, meta, &WriteOptions{BlockSeries: 64})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id := ID{Table: uint32(1 + 2*i/n), TSID: uint64(i)}
		if err := w.Add(Record{ID: id, RowCount: 1, Labels: []Label{{"host", fmt.Sprintf("host-%06d", i)}, {"zone", "a"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Open(ctx, func(_ context.Context, name string) (source.Object, error) {
		return source.OpenFile(filepath.Join(target.Dir(), name))
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// A query with little memory gives what one with much gives, or says that it cannot.
func TestQueryMemory(t *testing.T) {
	ctx := context.Background()
	a := hosts(t, 1000, nil)
	matcher, err := NewMatcher(Regexp, "host", ".*[02468]")
	if err != nil {
		t.Fatal(err)
	}
	list := func(memory int64) (ids []ID, failed error) {
		for r, err := range a.Select(ctx, &Query{Matchers: []*Matcher{matcher}, Memory: memory}) {
			if err != nil {
				return ids, err
			}
			ids = append(ids, r.ID)
		}
		return ids, nil
	}
	want, err := list(0)
	if err != nil || len(want) != 500 {
		t.Fatal(len(want), err)
	}
	refused, given := 0, 0
	for memory := int64(1); memory < 1<<20; memory *= 2 {
		got, err := list(memory)
		switch {
		case errors.Is(err, fault.Limit) && len(got) == 0:
			refused++
		case err != nil || !slices.Equal(got, want):
			t.Errorf("memory %d: %d series, %v", memory, len(got), err)
		default:
			given++
		}
	}
	if refused == 0 || given < 3 {
		t.Errorf("%d refused, %d given", refused, given)
	}
	values := func(memory int64) ([]string, error) {
		return a.LabelValues(ctx, "host", &Query{Memory: memory})
	}
	if got, err := values(100 << 10); err != nil || len(got) != 1000 {
		t.Errorf("%d values, %v", len(got), err)
	}
	if _, err := values(20 << 10); !errors.Is(err, fault.Limit) {
		t.Errorf("the values in little memory: %v", err)
	}
	m, err := NewMerger([]*Artifact{a, a}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.Select(ctx, &Query{Memory: 4}) {
		if !errors.Is(err, fault.Limit) {
			t.Errorf("merged: %v", err)
		}
	}
}

func TestTables(t *testing.T) {
	ctx := context.Background()
	a := hosts(t, 1000, nil)
	for value, want := range map[string][]uint32{"host-000001": {1}, "host-000999": {2}, "host-.*": {1, 2}, "other": nil} {
		m, err := NewMatcher(Regexp, "host", value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.Tables(ctx, &Query{Matchers: []*Matcher{m}}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", value, got, err, want)
		}
	}
	if got, err := a.Tables(ctx, &Query{Tables: []uint32{3, 2}}); err != nil || !slices.Equal(got, []uint32{2}) {
		t.Errorf("table 2 or 3: %v %v", got, err)
	}
}

// Artifacts that share a cache do not get each other's values, and together stay within its bound.
func TestSharedCache(t *testing.T) {
	ctx := context.Background()
	cache := NewCache(64 << 10)
	a, b := hosts(t, 1000, &Options{Cache: cache}), hosts(t, 10, &Options{Cache: cache})
	for range 2 {
		for _, in := range []struct {
			a *Artifact
			n int
		}{{a, 1000}, {b, 10}} {
			n := 0
			for r, err := range in.a.Select(ctx, &Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("host-%06d", r.TSID); r.Labels[0].Value != want {
					t.Fatalf("%v, want %s", r, want)
				}
				n++
			}
			if n != in.n {
				t.Fatalf("%d series, want %d", n, in.n)
			}
			if held := cache.Bytes(); held <= 0 || held > 64<<10 {
				t.Fatalf("the cache holds %d bytes", held)
			}
		}
	}
}

// What is remembered is not given to a query that was cancelled.
func TestCancelledInMemory(t *testing.T) {
	a := hosts(t, 10_000, nil)
	if n, err := a.Count(context.Background(), &Query{}); err != nil || n != 10_000 {
		t.Fatal(n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range a.Select(ctx, &Query{}) {
		if n++; n == 1 {
			cancel()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) || n > 2*64*64 {
				t.Errorf("after %d series: %v", n, err)
			}
			return
		}
	}
	t.Errorf("all %d series", n)
}

// Instants compare by what they denote, whatever their units are. The values of today take most of the bits in nanoseconds.
func TestBefore(t *testing.T) {
	const s, ms, us, ns = "Second", "Millisecond", "Microsecond", "Nanosecond"
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	for _, tt := range []struct {
		a, b Timestamp
		want int
	}{
		{Timestamp{1, s}, Timestamp{1_000_000_001, ns}, -1},
		{Timestamp{1, s}, Timestamp{1000, ms}, 0},
		{Timestamp{1767225600, s}, Timestamp{1767312000_000_000_000, ns}, -1},
		{Timestamp{1767225600, s}, Timestamp{1767225600_000_000_000, ns}, 0},
		{Timestamp{1767225600, s}, Timestamp{1767225600_000_000_001, ns}, -1},
		{Timestamp{1767225600, s}, Timestamp{1767225599_999_999_999, ns}, 1},
		{Timestamp{1767225600_000_000, us}, Timestamp{1767312000_000_000_000, ns}, -1},
		{Timestamp{1767225600_000, ms}, Timestamp{1767225600_000_001, us}, -1},
		{Timestamp{-1, s}, Timestamp{-1_000_000_001, ns}, 1},
		{Timestamp{-1, s}, Timestamp{-999_999_999, ns}, -1},
		{Timestamp{-1, ms}, Timestamp{-1_000_000, ns}, 0},
		{Timestamp{most, s}, Timestamp{most, ns}, 1},
		{Timestamp{least, s}, Timestamp{least, ns}, -1},
		{Timestamp{9223372036, s}, Timestamp{most, ns}, -1},
		{Timestamp{9223372037, s}, Timestamp{most, ns}, 1},
		{Timestamp{-9223372037, s}, Timestamp{least, ns}, -1},
		{Timestamp{-9223372036, s}, Timestamp{least, ns}, 1},
		{Timestamp{least, ns}, Timestamp{most, ns}, -1},
	} {
		if tt.a.Before(tt.b) != (tt.want < 0) || tt.b.Before(tt.a) != (tt.want > 0) {
			t.Errorf("%v and %v: before %v, behind %v, want %d", tt.a, tt.b, tt.a.Before(tt.b), tt.b.Before(tt.a), tt.want)
		}
	}
}
