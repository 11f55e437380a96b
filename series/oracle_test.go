package series

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// oracleMatch is a matcher as Prometheus and SQL know it, on a label of a record, by the text of the matcher alone.
func oracleMatch(m *Matcher, value string, has bool, mode Mode) bool {
	switch {
	case m.Op == IsNull:
		return !has
	case m.Op == IsNotNull:
		return has
	case mode == Native && !has:
		return false
	}
	switch m.Op {
	case Equal:
		return value == m.Value
	case NotEqual:
		return value != m.Value
	}
	return oraclePattern(m.Value).MatchString(value) == (m.Op == Regexp)
}

var oraclePatterns sync.Map

func oraclePattern(text string) *regexp.Regexp {
	if p, ok := oraclePatterns.Load(text); ok {
		return p.(*regexp.Regexp)
	}
	p := regexp.MustCompile("^(?s:" + text + ")$")
	oraclePatterns.Store(text, p)
	return p
}

// oracleSelects are the records that a query selects, with their labels in the mode of the query.
func oracleSelects(q *Query, tags []Tag, records []Record) (out []Record) {
	for _, r := range records {
		if q.Tables != nil && !slices.Contains(q.Tables, r.Table) {
			continue
		}
		if q.Range != nil && (r.Table < q.Range.First.Table || r.Table == q.Range.First.Table && r.TSID < q.Range.First.TSID ||
			r.Table > q.Range.Last.Table || r.Table == q.Range.Last.Table && r.TSID > q.Range.Last.TSID) {
			continue
		}
		labels := make(map[string]string)
		for _, l := range r.Labels {
			labels[l.Name] = l.Value
		}
		all := true
		for _, m := range q.Matchers {
			if q.IgnoreUnknown && !slices.ContainsFunc(tags, func(t Tag) bool { return t.Name == m.Name }) {
				continue
			}
			v, has := labels[m.Name]
			all = all && oracleMatch(m, v, has, q.Mode)
		}
		if !all {
			continue
		}
		shown := Record{ID: r.ID, RowCount: r.RowCount}
		for _, t := range tags {
			if v, has := labels[t.Name]; has && (q.Mode == Native || v != "") && (q.Columns == nil || slices.Contains(q.Columns, t.Name)) {
				shown.Labels = append(shown.Labels, Label{t.Name, v})
			}
		}
		out = append(out, shown)
	}
	return out
}

type oracleCase struct {
	r       *rand.Rand
	tags    []Tag
	values  [][]string // of the tags
	records []Record
}

func newOracleCase(r *rand.Rand) *oracleCase {
	c := &oracleCase{r: r}
	names := []string{"host", "zone", "a.b", "é", "job", "x y", "__name__", "le", "\"q\"", "0", "\\", "{", "long" + strings.Repeat("g", 300)}
	n := 1 + r.IntN(5)
	if r.IntN(12) == 0 {
		n = 0
	}
	if r.IntN(15) == 0 {
		n = 40
	}
	for i := range n {
		name := names[(i+r.IntN(2)*7)%len(names)]
		if slices.ContainsFunc(c.tags, func(t Tag) bool { return t.Name == name }) {
			name += strconv.Itoa(i)
		}
		c.tags = append(c.tags, Tag{uint32(i * 3), name})
		var values []string
		for range 1 + r.IntN(12) {
			values = append(values, c.value())
		}
		if r.IntN(6) == 0 {
			values = values[:1]
		}
		if r.IntN(6) == 0 { // many values
			for k := range 600 {
				values = append(values, fmt.Sprint("m", k))
			}
		}
		c.values = append(c.values, values)
	}
	rows := r.IntN(200)
	switch r.IntN(10) {
	case 0:
		rows = r.IntN(3)
	case 1:
		rows = 1500
	}
	id := ID{}
	switch r.IntN(4) {
	case 0:
		id = ID{math.MaxUint32 - uint32(r.IntN(4)), math.MaxUint64 - uint64(r.IntN(200))}
	case 1:
		id.Table = 1000
	}
	nullShare := r.IntN(5) // of 4
	for range rows {
		rec := Record{ID: id, RowCount: 1 + uint64(r.IntN(300))}
		if r.IntN(20) == 0 {
			rec.RowCount = math.MaxUint64 >> r.IntN(64)
		}
		for i, t := range c.tags {
			if r.IntN(4) < nullShare && r.IntN(3) > 0 || nullShare == 4 && i == 0 {
				continue
			}
			rec.Labels = append(rec.Labels, Label{t.Name, c.values[i][r.IntN(len(c.values[i]))]})
		}
		c.records = append(c.records, rec)
		step := 1 + r.Uint64N(4)
		if r.IntN(30) == 0 {
			step = r.Uint64()
		}
		if r.IntN(60) == 0 || id.TSID+step < id.TSID {
			if id.Table == math.MaxUint32 {
				break
			}
			id = ID{id.Table + 1, []uint64{0, r.Uint64(), math.MaxUint64, 5}[r.IntN(4)]}
			continue
		}
		id.TSID += step
	}
	return c
}

var oracleWords = []string{"", "a", "b", "ab", "abc", "web-1", "web-10", "web-2", "WEB-1", "é", "e\u0301", "日本", "\n", "a\nb", "a.b", "\x00", "\ufffd", "zone-5", "😀", "a|b", "1",
	"\x01\x01\x00\x00\x00\x00\x00\x00\x00a", "\x01\x03\x00\x00\x00\x00\x00\x00\x00abc", "K", "k", "\u212a", "ſ", "s"}

func (c *oracleCase) value() string {
	switch c.r.IntN(8) {
	case 0:
		return strings.Repeat(oracleWords[c.r.IntN(len(oracleWords))], c.r.IntN(300))
	case 1:
		return oracleWords[c.r.IntN(len(oracleWords))] + oracleWords[c.r.IntN(len(oracleWords))]
	}
	return oracleWords[c.r.IntN(len(oracleWords))]
}

func (c *oracleCase) pattern(depth int) string {
	if depth == 0 || c.r.IntN(4) == 0 {
		atoms := []string{"", "a", "b", "web", "-", "1", ".", ".*", ".+", "é", "[ab]", "[^a]", "\\d", "k", "s", "\\n", "a.b", "\\.", "日", "(?i:web)", "(?i:k)", "(?i)a", "^", "$", "\\b", "\\x{fffd}", "[a-é]",
			"(?-s:.)", "(?-s:.*)", "\\Qa|b\\E", "\\pL", "[[:alpha:]]", "\\z", "\\A", ".*?", ".+?", "[\\s\\S]*", "(?:)", "[a-a]", ".{0,}", ".{1,}", "(?U:.*)", "(?m:^)", "(?m:$)", "\\C", "\x01"}
		if c.r.IntN(3) == 0 {
			return regexp.QuoteMeta(c.value())
		}
		a := atoms[c.r.IntN(len(atoms))]
		if a == "\\C" {
			a = "x?"
		}
		return a
	}
	switch c.r.IntN(8) {
	case 0, 1:
		return c.pattern(depth-1) + "|" + c.pattern(depth-1)
	case 2:
		return "(" + c.pattern(depth-1) + ")"
	case 3:
		return "(?:" + c.pattern(depth-1) + ")" + []string{"*", "+", "?", "{2}", "{0}", "{0,2}", "{1,}", "??"}[c.r.IntN(8)]
	}
	return c.pattern(depth-1) + c.pattern(depth-1)
}

func (c *oracleCase) query(t *testing.T) *Query {
	r := c.r
	q := &Query{Mode: Mode(r.IntN(2)), IgnoreUnknown: r.IntN(6) == 0}
	for range r.IntN(4) {
		name, value := "none", c.value()
		if len(c.tags) > 0 && r.IntN(12) > 0 {
			i := r.IntN(len(c.tags))
			name = c.tags[i].Name
			if r.IntN(3) > 0 {
				value = c.values[i][r.IntN(len(c.values[i]))]
			}
		}
		if r.IntN(25) == 0 {
			value += "\xff"
		}
		op := Op(r.IntN(4))
		if q.Mode == Native && r.IntN(4) == 0 {
			op = IsNull + Op(r.IntN(2))
		}
		if op == Regexp || op == NotRegexp {
			switch r.IntN(4) {
			case 0:
				value = regexp.QuoteMeta(value)
			case 1:
				value = regexp.QuoteMeta(value) + []string{".*", ".+", "|a", ""}[r.IntN(4)]
			default:
				value = c.pattern(r.IntN(4))
			}
			if _, err := regexp.Compile(value); err != nil {
				continue
			}
			if _, err := regexp.Compile("^(?s:" + value + ")$"); err != nil {
				continue
			}
		}
		m, err := NewMatcher(op, name, value)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		q.Matchers = append(q.Matchers, m)
		if r.IntN(8) == 0 {
			q.Matchers = append(q.Matchers, m)
		}
	}
	id := func() ID {
		if len(c.records) == 0 || r.IntN(6) == 0 {
			return ID{r.Uint32(), r.Uint64()}
		}
		x := c.records[r.IntN(len(c.records))].ID
		x.TSID += uint64(r.IntN(3)) - 1
		return x
	}
	if r.IntN(4) == 0 {
		q.Tables = []uint32{}
		for range r.IntN(5) {
			q.Tables = append(q.Tables, id().Table)
		}
	}
	if r.IntN(3) == 0 {
		q.Range = &Range{id(), id()}
		if q.Range.Last.Less(q.Range.First) && r.IntN(4) > 0 {
			q.Range.First, q.Range.Last = q.Range.Last, q.Range.First
		}
	}
	if r.IntN(3) == 0 {
		q.Columns = []string{}
		for range r.IntN(4) {
			if len(c.tags) > 0 {
				q.Columns = append(q.Columns, c.tags[r.IntN(len(c.tags))].Name)
			}
		}
		if r.IntN(5) == 0 {
			q.Columns = append(q.Columns, "none")
		}
	}
	return q
}

func same(a, b []Record) bool {
	return slices.EqualFunc(a, b, func(a, b Record) bool {
		return a.ID == b.ID && a.RowCount == b.RowCount && slices.Equal(a.Labels, b.Labels)
	})
}

// check asks an artifact everything about a query.
func (c *oracleCase) check(a *Artifact, q *Query) error {
	ctx := context.Background()
	want := oracleSelects(q, c.tags, c.records)
	got, err := collect(a.Select(ctx, q))
	if err != nil || !same(got, want) {
		return fmt.Errorf("select: %w\n got %q\nwant %q", err, got, want)
	}
	if n, err := a.Count(ctx, q); err != nil || n != uint64(len(want)) {
		return fmt.Errorf("count %d, %w, want %d", n, err, len(want))
	}
	sum, over := uint64(0), false
	tables := []uint32{}
	all := *q
	all.Columns = nil
	names, values := make(map[string]bool), make(map[string]map[string]bool)
	for _, r := range oracleSelects(&all, c.tags, c.records) {
		over = over || sum+r.RowCount < sum
		sum += r.RowCount
		tables = append(tables, r.Table)
		for _, l := range r.Labels {
			names[l.Name] = true
			if values[l.Name] == nil {
				values[l.Name] = make(map[string]bool)
			}
			values[l.Name][l.Value] = true
		}
	}
	if n, err := a.SumRows(ctx, q); over && !errors.Is(err, fault.Limit) || !over && (err != nil || n != sum) {
		return fmt.Errorf("sum %d, %w, want %d %t", n, err, sum, over)
	}
	if got, err := a.Tables(ctx, q); err != nil || !slices.Equal(got, slices.Compact(tables)) {
		return fmt.Errorf("tables %d, %w, want %d", got, err, slices.Compact(tables))
	}
	var wantNames []string
	for _, t := range c.tags {
		if names[t.Name] {
			wantNames = append(wantNames, t.Name)
		}
	}
	if got, err := a.LabelNames(ctx, q); err != nil || !slices.Equal(got, wantNames) {
		return fmt.Errorf("names %q, %w, want %q", got, err, wantNames)
	}
	for _, t := range append(slices.Clone(c.tags), Tag{0, "none"}) {
		wantValues := slices.Sorted(maps.Keys(values[t.Name]))
		if got, err := a.LabelValues(ctx, t.Name, q); err != nil || !slices.Equal(got, wantValues) {
			return fmt.Errorf("values of %q: %q, %w, want %q", t.Name, got, err, wantValues)
		}
		limited := *q
		limited.Limit = 1 + int64(c.r.IntN(5))
		limited.Explain = &Explain{}
		cut := wantValues[:min(len(wantValues), int(limited.Limit))]
		if got, err := a.LabelValues(ctx, t.Name, &limited); err != nil || !slices.Equal(got, cut) || limited.Explain.Truncated != (len(cut) < len(wantValues)) {
			return fmt.Errorf("values of %q, limit %d: %q, %w, want %q, %t", t.Name, limited.Limit, got, err, cut, limited.Explain.Truncated)
		}
	}
	limited := *q
	limited.Limit = 1 + int64(c.r.IntN(8))
	limited.Explain = &Explain{}
	cut := want[:min(len(want), int(limited.Limit))]
	if got, err := collect(a.Select(ctx, &limited)); err != nil || !same(got, cut) || limited.Explain.Truncated != (len(cut) < len(want)) || limited.Explain.Selected != int64(len(cut)) {
		return fmt.Errorf("limit %d: %d, %w, want %d; %+v", limited.Limit, len(got), err, len(cut), limited.Explain)
	}
	for k := range a.Select(ctx, q) { // who leaves early
		if c.r.IntN(3) == 0 || k.Table == 0 {
			break
		}
	}
	if r := q.Range; r != nil {
		plain := oracleSelects(&Query{Mode: Native, Range: r}, c.tags, c.records)
		if got, err := collect(a.Records(ctx, *r)); err != nil || !same(got, plain) {
			return fmt.Errorf("records: %w\n got %q\nwant %q", err, got, plain)
		}
	}
	// With little memory there is an error or the same.
	small := *q
	small.Memory = 1 + c.r.Int64N(20000)
	if got, err := collect(a.Select(ctx, &small)); err == nil && !same(got, want) || err != nil && !errors.Is(err, fault.Limit) {
		return fmt.Errorf("memory %d: %w", small.Memory, err)
	}
	return nil
}

func (c *oracleCase) lookups(a *Artifact) error {
	ctx := context.Background()
	ids := []ID{{}, {math.MaxUint32, math.MaxUint64}, {c.r.Uint32(), c.r.Uint64()}}
	for _, r := range c.records {
		ids = append(ids, r.ID)
		ids = append(ids, ID{r.Table, r.TSID + 1}, ID{r.Table, r.TSID - 1}, ID{r.Table + 1, r.TSID})
	}
	c.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var all []ID
	var found []Record
	for _, id := range ids[:min(len(ids), 80)] {
		want := oracleSelects(&Query{Mode: Native, Range: &Range{id, id}}, c.tags, c.records)
		got, err := a.Lookup(ctx, id)
		if len(want) > 0 {
			all, found = append(all, id), append(found, want[0])
		}
		if len(want) == 0 {
			if !errors.Is(err, fault.NotFound) {
				return fmt.Errorf("lookup %s: %v, %w, want none", id, got, err)
			}
			continue
		}
		if err != nil || !same([]Record{got}, want) {
			return fmt.Errorf("lookup %s: %v, %w, want %v", id, got, err, want)
		}
	}
	// All together, and each twice; and up to the first that is not there.
	all, found = append(all, all...), append(found, found...)
	if got, err := collect(a.LookupAll(ctx, all)); err != nil || !same(got, found) {
		return fmt.Errorf("lookup of %v: %v, %w, want %v", all, got, err, found)
	}
	for _, id := range ids[:min(len(ids), 80)] {
		if _, err := a.Lookup(ctx, id); err != nil {
			at := c.r.IntN(len(all) + 1)
			if got, err := collect(a.LookupAll(ctx, slices.Insert(slices.Clone(all), at, id))); !errors.Is(err, fault.NotFound) || !same(got, found[:at]) {
				return fmt.Errorf("lookup of %v with %s at %d: %v, %w", all, id, at, got, err)
			}
		}
	}
	return nil
}

// Whatever is asked of whatever artifact, the answer is that of a plain look at all records: with caches cold and warm, shared
// and none, of parts without their manifest, by many at a time.
func TestOracle(t *testing.T) {
	seeds, from := 12, uint64(1)
	if s := os.Getenv("ORACLE"); s != "" {
		seeds, _ = strconv.Atoi(s)
		t.Log("seeds from", os.Getpid())
		from = uint64(os.Getpid()) * 1000000
	}
	ctx := context.Background()
	shared := NewCache(40000)
	for seed := from; seed < from+uint64(seeds); seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		c := newOracleCase(r)
		o := &WriteOptions{BlockSeries: 1 + r.IntN(80), PageBytes: 1 + r.IntN(4000), PartBytes: 1 + r.Int64N(30000), Zstd: r.IntN(2) == 0}
		if r.IntN(4) == 0 {
			o = &WriteOptions{Zstd: r.IntN(2) == 0}
		}
		target := buildIn(t, &Manifest{RegionID: 1, Tags: c.tags}, c.records, o)
		options := []*Options{nil, {CacheBytes: -1}, {CacheBytes: 3000}, {Cache: shared}, {CacheBytes: -1, MaxDecoded: -1}}
		var artifacts []*Artifact
		for _, o := range options {
			a, err := Open(ctx, target.opener(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			artifacts = append(artifacts, a)
		}
		for range 6 {
			q := c.query(t)
			for i, a := range artifacts {
				if err := c.check(a, q); err != nil {
					t.Fatalf("seed %d, options %d: %q mode %d, tables %d, range %v, columns %q, ignore %t:\n%v", seed, i, q.Matchers, q.Mode, q.Tables, q.Range, q.Columns, q.IgnoreUnknown, err)
				}
			}
		}
		for i, a := range artifacts {
			if err := c.lookups(a); err != nil {
				t.Fatalf("seed %d, options %d: %v", seed, i, err)
			}
		}
		// Without a manifest, the tags are those that are stored.
		for i := range artifacts[0].NumParts() {
			for _, o := range options[:3] {
				name := PartName(uint32(i))
				a, err := OpenPart(ctx, source.Memory(name, target[name]), o)
				if err != nil {
					t.Fatal(err)
				}
				f := artifacts[0].Manifest().Files[i]
				p := &oracleCase{r: r, tags: a.Tags(), records: oracleSelects(&Query{Mode: Native, Range: &Range{f.First, f.Last}}, c.tags, c.records)}
				for _, tag := range p.tags {
					k := slices.IndexFunc(c.tags, func(t Tag) bool { return t.Name == tag.Name })
					p.values = append(p.values, c.values[k])
				}
				if err := p.lookups(a); err != nil {
					t.Fatalf("seed %d, part %d: %v", seed, i, err)
				}
				q := p.query(t)
				if err := p.check(a, q); err != nil {
					t.Fatalf("seed %d, part %d: %q mode %d, tables %d, range %v, columns %q, ignore %t:\n%v", seed, i, q.Matchers, q.Mode, q.Tables, q.Range, q.Columns, q.IgnoreUnknown, err)
				}
				a.Close()
			}
		}
		if seed%8 == 0 {
			queries := []*Query{c.query(t), c.query(t)}
			var work sync.WaitGroup
			for k := range 4 {
				mine := *c
				mine.r = rand.New(rand.NewPCG(seed, uint64(k)))
				work.Go(func() {
					for _, q := range queries {
						for _, a := range artifacts[:4] {
							own := *q
							if err := mine.check(a, &own); err != nil {
								t.Errorf("seed %d: %v", seed, err)
							}
						}
						if err := mine.lookups(artifacts[k]); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
					}
				})
			}
			work.Wait()
		}
	}
}

// A part without its manifest, whose blocks store tags in another order than that in which they are first seen, is looked up as
// it is scanned.
func TestLookupOrderOfTags(t *testing.T) {
	tags := []Tag{{1, "a"}, {2, "b"}, {3, "c"}}
	records := []Record{
		{ID{1, 1}, 1, []Label{{"c", "1"}}},
		{ID{1, 2}, 1, []Label{{"a", "2"}, {"b", "2"}, {"c", "2"}}},
		{ID{1, 3}, 1, []Label{{"c", "3"}}},
		{ID{1, 4}, 1, []Label{{"b", "4"}}},
		{ID{1, 5}, 1, nil},
	}
	target := buildIn(t, &Manifest{RegionID: 1, Tags: tags}, records, &WriteOptions{BlockSeries: 1})
	for _, cache := range []int64{-1, 0} {
		a, err := OpenPart(context.Background(), source.Memory(PartName(0), target[PartName(0)]), &Options{CacheBytes: cache})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for _, want := range oracleSelects(&Query{Mode: Native}, a.Tags(), records) {
			if got, err := a.Lookup(context.Background(), want.ID); err != nil || !same([]Record{got}, []Record{want}) {
				t.Errorf("cache %d: %v, %v, want %v", cache, got, err, want)
			}
		}
	}
}

// A range that ends in front of where it begins has no series, whatever is asked.
func TestEmptyRange(t *testing.T) {
	ctx := context.Background()
	tags := []Tag{{1, "a"}}
	var records []Record
	for i := range uint64(100) {
		records = append(records, Record{ID{1 + uint32(i/40), i}, 1, []Label{{"a", strconv.Itoa(int(i % 7))}}})
	}
	a := openIn(t, buildIn(t, &Manifest{RegionID: 1, Tags: tags}, records, &WriteOptions{BlockSeries: 30}))
	m, err := NewMatcher(NotEqual, "a", "3")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Range{{ID{1, 25}, ID{1, 5}}, {ID{2, 60}, ID{1, 2}}, {ID{1, 29}, ID{1, 28}}, {ID{3, 0}, ID{0, 0}}} {
		for _, q := range []*Query{{Range: &r}, {Range: &r, Matchers: []*Matcher{m}}, {Range: &r, Tables: []uint32{1, 2}}} {
			got, err := collect(a.Select(ctx, q))
			n, err2 := a.Count(ctx, q)
			sum, err3 := a.SumRows(ctx, q)
			names, err4 := a.LabelNames(ctx, q)
			values, err5 := a.LabelValues(ctx, "a", q)
			tables, err6 := a.Tables(ctx, q)
			if err := errors.Join(err, err2, err3, err4, err5, err6); err != nil || len(got)+int(n)+int(sum)+len(names)+len(values)+len(tables) > 0 {
				t.Errorf("%s: %v %d %d %q %q %d, %v", r, got, n, sum, names, values, tables, err)
			}
		}
		if got, err := collect(a.Records(ctx, r)); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", r, got, err)
		}
	}
}

// A column of a codec that is not known is needed by nobody who finds no series in its block: an identifier between two, and a
// range that goes between two.
func TestUnknownCodecOfNobody(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"unknown-encoding", "unknown-compression"} {
		v := readVector(t, filepath.Join(vectorFolder, name+".json"))
		for _, cost := range []source.Cost{{}, {Gap: 1 << 20, Parallel: 4}} {
			for _, cache := range []int64{-1, 0} {
				open := func(ctx context.Context, name string) (source.Object, error) {
					obj, err := Folder(v.folder)(ctx, name)
					return priced{obj, cost}, err
				}
				a, err := Open(ctx, open, &Options{CacheBytes: cache})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				ids := make(map[ID]bool)
				for r, err := range a.Select(ctx, &Query{Columns: []string{}}) {
					if err != nil {
						t.Fatal(err)
					}
					ids[r.ID] = true
				}
				n := 0
				for id := range ids {
					id.TSID++
					if ids[id] {
						continue
					}
					n++
					if got, err := a.Lookup(ctx, id); !errors.Is(err, fault.NotFound) {
						t.Errorf("%s, %+v, cache %d: %s: %v, %v", name, cost, cache, id, got, err)
					}
					if got, err := collect(a.Select(ctx, &Query{Range: &Range{id, id}})); err != nil || len(got) > 0 {
						t.Errorf("%s, %+v, cache %d: select %s: %v, %v", name, cost, cache, id, got, err)
					}
					if got, err := collect(a.Records(ctx, Range{id, id})); err != nil || len(got) > 0 {
						t.Errorf("%s, %+v, cache %d: records %s: %v, %v", name, cost, cache, id, got, err)
					}
				}
				if n == 0 {
					t.Fatal(name)
				}
			}
		}
	}
}

// A pattern that is none by itself stays none between the brackets that it is put into.
func TestPatternAlone(t *testing.T) {
	for _, text := range []string{"a)(b", "a)|(b", ")(?:", "a)", "(a", "a)(?i:b", "x\\", "[a", "a\\Qb"} {
		for _, op := range []Op{Regexp, NotRegexp} {
			if m, err := NewMatcher(op, "a", text); !errors.Is(err, fault.Invalid) {
				t.Errorf("%q: %v, %v", text, m, err)
			}
		}
	}
}

// A merger reads no column that is not asked for, whatever the inputs call it.
func TestMergerSkipsUnknownCodec(t *testing.T) {
	ctx := context.Background()
	v := readVector(t, filepath.Join(vectorFolder, "unknown-encoding.json"))
	var inputs []*Artifact
	for range 2 {
		a, err := Open(ctx, Folder(v.folder), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		inputs = append(inputs, a)
	}
	want, err := collect(inputs[0].Select(ctx, &Query{Columns: []string{"host"}}))
	if err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	for i := range want {
		want[i].RowCount *= 2
	}
	m, err := NewMerger(inputs, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := collect(m.Select(ctx, &Query{Columns: []string{"host"}})); err != nil || !same(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := collect(m.Select(ctx, &Query{})); !errors.Is(err, fault.UnsupportedCodec) {
		t.Errorf("%v, %v", got, err)
	}
}
