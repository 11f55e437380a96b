package series

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Queries that run beside one another, whose chunks go through the same memory, give what one alone does with all in the cache,
// and it stays as it is.
func TestQueriesSideBySide(t *testing.T) {
	m, records := many(30_000)
	for i, block := range []int{20, 400, 400, 5000} {
		zstd := i%2 == 0
		files := build(t, m, records, &WriteOptions{Zstd: zstd, BlockSeries: block})
		kept, cold := files.open(t, nil), files.open(t, &Options{CacheBytes: -1})
		var queries []*Query
		for _, text := range []string{".*77.*", "host-0001.*", "host-00.*", ".*"} {
			pattern, err := NewMatcher(Regexp, "instance", text)
			if err != nil {
				t.Fatal(err)
			}
			queries = append(queries, &Query{Matchers: []*Matcher{pattern}})
		}
		type answer struct {
			records []Record
			values  []string
			rows    uint64
		}
		ask := func(a *Artifact, q *Query) (got answer, err error) {
			for r, err := range a.Select(context.Background(), q) {
				if err != nil {
					return got, err
				}
				got.records = append(got.records, r)
			}
			if got.values, err = a.LabelValues(context.Background(), "instance", q); err != nil {
				return got, err
			}
			got.rows, err = a.SumRows(context.Background(), q)
			return got, err
		}
		all := make([]answer, 3*len(queries))
		if err := parallel(len(all), func(i int) (err error) {
			all[i], err = ask(cold, queries[i%len(queries)])
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for i, got := range all {
			q := queries[i%len(queries)]
			want, err := ask(kept, q)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("blocks of %d: %s: %d series and %d values, not those %d and %d", block, q.Matchers[0], len(got.records), len(got.values), len(want.records), len(want.values))
			}
		}
	}
}

// A set of values is what a map and sorting make of them: short and long ones, with zeros, that begin with one another, by
// themselves and out of dictionaries of which some entries are used.
func TestValueSet(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		set, want := &valueSets{}, make(map[string]bool)
		draw := func() string {
			v := strings.Repeat("host-\x00", 4)[:r.IntN(20)]
			for len(v) < 30 && r.IntN(3) > 0 {
				v += []string{"\x00", "\x01", "a", "b", "\x7f", "ü"}[r.IntN(6)]
			}
			return v
		}
		set.use(func(*valueSet) { set.add("") }) // two sets
		want[""] = true
		for range 1 + r.IntN(300)*(1+int(seed%4/3)*100) {
			v := draw()
			set.add(v)
			want[v] = true
		}
		for range 10 {
			entries := make(map[string]bool)
			for range 1 + r.IntN(300) {
				entries[draw()] = true
			}
			values := slices.Sorted(maps.Keys(entries))
			n := 64 * (1 + r.IntN(10))
			codes := make([]uint32, n)
			nulls := uint32(0)
			for k := range codes {
				if codes[k] = uint32(r.IntN(len(values) + 1)); codes[k] == 0 {
					nulls++
				}
			}
			d, err := decodeDict(appendDict(nil, values, codes), n, nulls)
			if err != nil {
				t.Fatal(err)
			}
			s := &selection{rows: rows{blockAt: blockAt{block: &block{series: uint32(n)}}}, to: n, count: n}
			some := r.IntN(2) == 0
			if some {
				s.alive, s.count = make([]uint64, n/64), 0
			}
			for k := range codes {
				if some && r.IntN(3) > 0 {
					continue
				}
				if some {
					s.alive[k>>6] |= 1 << (k & 63)
					s.count++
				}
				if codes[k] > 0 {
					want[values[codes[k]-1]] = true
				}
			}
			set.addRows(s, d, 1<<40)
		}
		held := int64(0)
		for v := range want {
			held += int64(len(v)) + valueSize
		}
		if set.settle(held); set.over.Load() != 0 {
			t.Fatalf("seed %d: %d values of %d bytes are more than as many", seed, len(want), held)
		}
		if set.settle(held - 1); set.over.Load() != int64(len(want)) {
			t.Fatalf("seed %d: %d values of more than %d bytes, want %d", seed, set.over.Load(), held-1, len(want))
		}
		got, size := set.sorted()
		if !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("seed %d: %q", seed, got)
		}
		if size != held {
			t.Fatalf("seed %d: %d values of %d bytes, not %d", seed, len(got), size, held)
		}
	}
}

// Sorting digit by digit is sorting.
func TestSortShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		mask := shortValue{r.Uint64() & r.Uint64(), r.Uint64() & r.Uint64() & r.Uint64()}
		v := make([]shortValue, rapid.IntRange(0, 2000).Draw(t, "values"))
		for i := range v {
			v[i] = shortValue{r.Uint64() & mask.hi, r.Uint64() & mask.lo}
		}
		want := slices.Clone(v)
		slices.SortFunc(want, shortValue.compare)
		got, free := sortShort(v, make([]shortValue, len(v)))
		if !slices.Equal(got, want) {
			t.Fatalf("%x, want %x", got, want)
		}
		if len(got) > 0 && &got[0] == &free[0] {
			t.Fatal("the room is where the values are")
		}
	})
}

// A value that stands in a dictionary and that no series has is none of the values of a label, although only a verifier minds.
func TestValuesOfNobody(t *testing.T) {
	var records []Record
	for i, v := range []string{"a", "b", "c", "c"} {
		records = append(records, Record{ID{1, uint64(i)}, 1, []Label{{"host", v}}})
	}
	target := buildIn(t, &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}}}, records, nil)
	p := target[PartName(0)]
	f, err := parseFrame(p[:headerSize], p[len(p)-trailerSize:], uint64(len(p)), nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := parseLeaf(p[f.root.Offset:f.root.end()], f, f.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &blocks[0].columns[2]
	p[c.end()-3] = 1 // the code of the series that has "b"
	resignChunk(p, f, c)
	var found []int
	err = Verify(t.Context(), target.opener(), &VerifyOptions{Full: true}, func(f Finding) {
		if !f.Warning {
			found = append(found, f.Check)
		}
	})
	if err != nil || !slices.Equal(found, []int{78}) {
		t.Fatalf("a verifier finds %v, %v", found, err)
	}
	a := openIn(t, target)
	for range 2 { // found, remembered
		got, err := a.LabelValues(t.Context(), "host", &Query{})
		if err != nil || !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("%q, %v", got, err)
		}
	}
}
