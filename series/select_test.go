package series

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

var ops = map[string]Op{"=": Equal, "!=": NotEqual, "=~": Regexp, "!~": NotRegexp, "is null": IsNull, "is not null": IsNotNull}

// selectJSON is a query of a vector.
type selectJSON struct {
	Selector string
	Matchers [][3]string
	Mode     string
	Table    *uint32
	Columns  []string
	Count    uint64
	IDs      [][2]uint64
	Error    string
}

func (s *selectJSON) query(t testing.TB) *Query {
	t.Helper()
	q := &Query{Columns: s.Columns}
	if s.Mode == "native" {
		q.Mode = Native
	}
	if s.Table != nil {
		q.Tables = []uint32{*s.Table}
	}
	for _, m := range s.Matchers {
		matcher, err := NewMatcher(ops[m[1]], m[0], m[2])
		if err != nil {
			t.Fatal(err)
		}
		q.Matchers = append(q.Matchers, matcher)
	}
	return q
}

func TestSelectVectors(t *testing.T) {
	ctx := context.Background()
	n := 0
	for _, v := range vectors(t, "*.json", 40) {
		a, err := Open(ctx, Folder(v.folder), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range v.Selects {
			n++
			name := fmt.Sprintf("%s: %s in mode %s", v.Name, s.Selector, s.Mode)
			var ids [][2]uint64
			var failed error
			for r, err := range a.Select(ctx, s.query(t)) {
				if err != nil {
					failed = err
					break
				}
				ids = append(ids, [2]uint64{uint64(r.Table), r.TSID})
			}
			if s.Error != "" {
				if !errors.Is(failed, classes[s.Error]) {
					t.Errorf("%s: %v, want %s", name, failed, s.Error)
				}
				continue
			}
			if failed != nil || uint64(len(ids)) != s.Count || s.IDs != nil && !slices.Equal(ids, s.IDs) {
				t.Errorf("%s: %d series, %v, want %d\n%v\n%v", name, len(ids), failed, s.Count, ids, s.IDs)
			}
			if count, err := a.Count(ctx, s.query(t)); err != nil || count != s.Count {
				t.Errorf("%s: count %d, %v, want %d", name, count, err, s.Count)
			}
		}
		a.Close()
	}
	if n < 100 {
		t.Errorf("%d queries", n)
	}
}

// counting is a source that notes every byte it gives.
type counting struct {
	source.Object
	cost  source.Cost
	mu    sync.Mutex
	twice bool
	seen  map[int64]bool
}

func (c *counting) Cost() source.Cost { return c.cost }

func (c *counting) ReadAt(ctx context.Context, p []byte, off int64) error {
	c.mu.Lock()
	for i := range p {
		c.twice = c.twice || c.seen[off+int64(i)]
		c.seen[off+int64(i)] = true
	}
	c.mu.Unlock()
	return c.Object.ReadAt(ctx, p, off)
}

// wantsRow is the plain engine: a matcher on the labels of a record.
func wantsRow(q *Query, tags []Tag, r Record) bool {
	if q.Tables != nil && !slices.Contains(q.Tables, r.Table) || q.Range != nil && !q.Range.contains(r.ID) {
		return false
	}
	for _, m := range q.Matchers {
		value, has := "", false
		known := slices.ContainsFunc(tags, func(t Tag) bool { return t.Name == m.Name })
		for _, l := range r.Labels {
			if l.Name == m.Name {
				value, has = l.Value, true
			}
		}
		if !known && q.IgnoreUnknown {
			continue
		}
		ok := false
		switch {
		case m.Op == IsNull:
			ok = !has
		case m.Op == IsNotNull:
			ok = has
		case q.Mode == Prom:
			ok = plainMatch(m, value)
		default:
			ok = has && plainMatch(m, value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func plainMatch(m *Matcher, value string) bool {
	switch m.Op {
	case Equal:
		return value == m.Value
	case NotEqual:
		return value != m.Value
	case Regexp:
		return m.pattern.plain(value)
	}
	return !m.pattern.plain(value)
}

// drawRecords draws series in order.
func drawRecords(t *rapid.T, tags []Tag) []Record {
	value := rapid.SampledFrom([]string{"", "a", "b", "web-1", "web-2", "web-10", "db", "é", "zone-5"})
	var out []Record
	id := ID{}
	constant := rapid.Bool().Draw(t, "constant")
	for range rapid.IntRange(0, 120).Draw(t, "series") {
		if rapid.IntRange(0, 20).Draw(t, "table") == 0 {
			id.Table += uint32(rapid.IntRange(1, 2).Draw(t, "step"))
			id.TSID = 0
		}
		id.TSID += uint64(rapid.IntRange(1, 5).Draw(t, "tsid"))
		r := Record{ID: id, RowCount: uint64(rapid.IntRange(1, 9).Draw(t, "rows"))}
		for i, tag := range tags {
			if i == 2 && constant {
				r.Labels = append(r.Labels, Label{tag.Name, "same"})
			} else if rapid.IntRange(0, 3).Draw(t, "null") > 0 {
				r.Labels = append(r.Labels, Label{tag.Name, value.Draw(t, "value")})
			}
		}
		out = append(out, r)
	}
	return out
}

func drawQuery(t *rapid.T, tags []Tag) *Query {
	q := &Query{Mode: Mode(rapid.IntRange(0, 1).Draw(t, "mode")), IgnoreUnknown: rapid.Bool().Draw(t, "ignoreUnknown")}
	q.Memory = rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "memory")
	most := int(NotRegexp)
	if q.Mode == Native {
		most = int(IsNotNull)
	}
	for range rapid.IntRange(0, 3).Draw(t, "matchers") {
		op := Op(rapid.IntRange(0, most).Draw(t, "op"))
		value := rapid.SampledFrom([]string{"", "a", "web-1", "zone-5", "same", "nothing"}).Draw(t, "value")
		if op == Regexp || op == NotRegexp {
			value = rapid.SampledFrom([]string{"", ".*", ".+", "a|b", "web.*", ".*-1", ".*e.*", "w.b-\\d+", "(?i:WEB-1)", "same", "|a"}).Draw(t, "pattern")
		}
		name := rapid.SampledFrom([]string{tags[0].Name, tags[1].Name, tags[2].Name, "none"}).Draw(t, "name")
		m, err := NewMatcher(op, name, value)
		if err != nil {
			t.Fatal(err)
		}
		q.Matchers = append(q.Matchers, m)
	}
	if rapid.IntRange(0, 3).Draw(t, "tables") == 0 {
		q.Tables = rapid.SliceOfN(rapid.Uint32Range(0, 6), 0, 3).Draw(t, "table")
		if q.Tables == nil {
			q.Tables = []uint32{}
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "range") == 0 {
		id := func() ID {
			return ID{rapid.Uint32Range(0, 5).Draw(t, "t"), rapid.Uint64Range(0, 80).Draw(t, "s")}
		}
		a, b := id(), id()
		if b.Less(a) {
			a, b = b, a
		}
		q.Range = &Range{a, b}
	}
	return q
}

// A query gives what the plain engine gives of all records, in both modes, with any cache, over blocks, leaves and parts of
// any size, compressed or not, and however dear a request is; it reads no byte of a part twice; its count and its sum are right.
func TestSelectAgrees(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		tags := []Tag{{1, "host"}, {2, "zone"}, {3, "job"}}
		records := drawRecords(t, tags)
		m := &Manifest{RegionID: 1, Generation: UUID{byte(run), byte(run >> 8), byte(run >> 16)}, Tags: tags}
		target := NewFolderTarget(dir, 1, m.Generation)
		w, err := NewWriter(context.Background(), target, m, &WriteOptions{
			BlockSeries: rapid.IntRange(1, 40).Draw(t, "block"), PageBytes: rapid.IntRange(1, 3000).Draw(t, "page"),
			PartBytes: rapid.Int64Range(1, 20000).Draw(t, "part"), Zstd: rapid.Bool().Draw(t, "zstd"),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		for _, r := range records {
			if err := w.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		counted := make(map[string]*counting)
		cost := rapid.SampledFrom([]source.Cost{{}, {Gap: 100, Parallel: 2, MaxRequest: 300}, {Gap: 16 << 10, Parallel: 4}, {Gap: 1 << 20, Parallel: 16, MaxRequest: 16 << 20}}).Draw(t, "cost")
		open := func(ctx context.Context, name string) (source.Object, error) {
			obj, err := Folder(target.Dir())(ctx, name)
			if err != nil {
				return nil, err
			}
			counted[name] = &counting{Object: obj, cost: cost, seen: make(map[int64]bool)}
			return counted[name], nil
		}
		a, err := Open(context.Background(), open, &Options{CacheBytes: rapid.SampledFrom([]int64{-1, 0, 2000}).Draw(t, "cache")})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		q := drawQuery(t, tags)
		q.Explain = &Explain{}
		var got []Record
		for r, err := range a.Select(context.Background(), q) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		for name, c := range counted {
			if c.twice && name != ManifestName {
				t.Fatalf("bytes of %s were read twice", name)
			}
		}
		var want []Record
		var rows uint64
		for _, r := range records {
			if !wantsRow(q, tags, r) {
				continue
			}
			rows += r.RowCount
			r.Labels = slices.Clone(r.Labels)
			if q.Mode == Prom {
				r.Labels = slices.DeleteFunc(r.Labels, func(l Label) bool { return l.Value == "" })
			}
			want = append(want, r)
		}
		if !slices.EqualFunc(got, want, sameRecord) {
			t.Fatalf("%v in mode %d gives\n%v\nwant\n%v", q.Matchers, q.Mode, got, want)
		}
		if e := q.Explain; e.Selected != int64(len(want)) || e.Blocks != e.Skipped+e.Whole+e.Evaluated && !(len(q.Matchers) > 0 && e.Blocks == 0) {
			t.Fatalf("explained as %s", e)
		}
		if n, err := a.Count(context.Background(), q); err != nil || n != uint64(len(want)) {
			t.Fatalf("count %d, %v, want %d", n, err, len(want))
		}
		if n, err := a.SumRows(context.Background(), q); err != nil || n != rows {
			t.Fatalf("%d rows, %v, want %d", n, err, rows)
		}
		names := make(map[string]bool)
		values := make(map[string]bool)
		for _, r := range want {
			for _, l := range r.Labels { // in mode Prom the empty ones are gone
				names[l.Name] = true
				if l.Name == "zone" {
					values[l.Value] = true
				}
			}
		}
		if got, err := a.LabelNames(context.Background(), q); err != nil || len(got) != len(names) || slices.ContainsFunc(got, func(n string) bool { return !names[n] }) {
			t.Fatalf("%v has the labels %q, %v, want %v", q.Matchers, got, err, names)
		}
		if got, err := a.LabelValues(context.Background(), "zone", q); err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(values))) {
			t.Fatalf("%v has the values %q, %v, want %v", q.Matchers, got, err, values)
		}
		if limit := int64(len(want)) - 1; limit > 0 {
			q.Limit = limit
			n := int64(0)
			for _, err := range a.Select(context.Background(), q) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != limit || !q.Explain.Truncated {
				t.Fatalf("%d series with the limit %d, truncated: %t", n, limit, q.Explain.Truncated)
			}
		}
	})
}

func TestNullNeedsNative(t *testing.T) {
	v := readVector(t, vectorFolder+"/nulls.json")
	a, err := Open(context.Background(), Folder(v.folder), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	m, err := NewMatcher(IsNull, "env", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Count(context.Background(), &Query{Matchers: []*Matcher{m}}); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
