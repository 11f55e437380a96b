package series

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
	"github.com/spilehq/spile/source"
)

// plainDict decodes the chunk of a tag as the format says it, one entry and one row after the other: the value of each code, the
// codes, and the number of the check that fails.
func plainDict(p []byte, n int, nulls uint32) (values []string, codes []uint32, check int) {
	number := func() (u uint64, ok bool) {
		for i := range 10 {
			if i == len(p) || i == 9 && p[i] > 1 {
				return 0, false
			}
			if u |= uint64(p[i]&0x7f) << (7 * i); p[i] < 0x80 {
				p = p[i+1:]
				return u, true
			}
		}
		return 0, false
	}
	size, ok := number()
	if !ok {
		return nil, nil, 70
	}
	if size < 9 || size > uint64(len(p)) {
		return nil, nil, 73
	}
	text := p[:size]
	p = p[size:]
	fixed := func(b []byte) (u uint64) {
		for i := range 8 {
			u |= uint64(b[i]) << (8 * i)
		}
		return u
	}
	count := fixed(text)
	if count < 1 || count > 1+(size-9)/9 {
		return nil, nil, 73
	}
	if text[8] != 0 {
		return nil, nil, 74
	}
	text = text[9:]
	values = []string{""}
	seen := make(map[string]bool)
	for range count - 1 {
		if len(text) < 9 || text[0] != 1 || fixed(text[1:]) > uint64(len(text)-9) {
			return nil, nil, 74
		}
		end := 9 + fixed(text[1:])
		v := string(text[9:end])
		if !utf8.ValidString(v) {
			return nil, nil, 74
		}
		if seen[v] {
			return nil, nil, 75
		}
		seen[v] = true
		values = append(values, v)
		text = text[end:]
	}
	if len(text) > 0 {
		return nil, nil, 74
	}
	zero := uint32(0)
	for range n {
		u, ok := number()
		if !ok {
			return nil, nil, 70
		}
		if u >= count {
			return nil, nil, 76
		}
		if u == 0 {
			zero++
		}
		codes = append(codes, uint32(u))
	}
	if len(p) > 0 {
		return nil, nil, 76
	}
	if zero != nulls {
		return nil, nil, 77
	}
	return values, codes, 0
}

// looseDict is a chunk some of whose numbers are longer than they need be.
func looseDict(r *rand.Rand, values []string, codes []uint32, loose int) []byte {
	p := appendDict(nil, values, nil)
	for _, c := range codes {
		at := len(p)
		p = wire.AppendUvarint64(p, uint64(c))
		if loose > 0 && r.IntN(loose) == 0 {
			for range r.IntN(11 - (len(p) - at)) {
				p[len(p)-1] |= 0x80
				p = append(p, 0)
			}
		}
	}
	return p
}

func nastyValues(r *rand.Rand, count int) []string {
	seen := make(map[string]bool)
	var values []string
	for len(values) < count {
		var v string
		switch r.IntN(8) {
		case 0:
			n := r.IntN(5)
			v = "\x01" + string(rune(n)) + strings.Repeat("\x00", 7-r.IntN(2)) + strings.Repeat("a", n)
		case 1:
			v = strings.Repeat([]string{"\x00", "\x01", "a", "ü"}[r.IntN(4)], r.IntN(41))
		case 2:
			v = strings.Repeat("abcdefgh", 5)[:r.IntN(41)]
		default:
			v = fmt.Sprintf("v%d", r.IntN(4*count))
			if r.IntN(4) == 0 {
				v += strings.Repeat("\x00", r.IntN(12))
			}
		}
		if !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values
}

var dictSizes = []int{1, 2, 3, 9, 127, 128, 129, 130, 255, 256, 257, 258, 300}

// Dictionaries of each kind of codes, whose numbers are written in any length, are what the format says of them, whatever is
// asked: also in memory that another one was decoded into. So is what is wrong with them when they are damaged.
func TestKindsOfDictionaries(t *testing.T) {
	var room dict
	ctx := context.Background()
	seeds := 400
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		count := dictSizes[r.IntN(len(dictSizes))]
		if seed%40 == 0 {
			count = 65534 + r.IntN(6)
		}
		values := nastyValues(r, count-1)
		n := max(1, count-1) + r.IntN(200)
		codes := make([]uint32, n)
		nulls := uint32(0)
		for k := range codes {
			codes[k] = uint32(r.IntN(count))
			if k < count-1 && r.IntN(9) > 0 {
				codes[k] = uint32(k + 1)
			}
			if codes[k] == 0 {
				nulls++
			}
		}
		p := looseDict(r, values, codes, []int{0, 1, 5, 100}[r.IntN(4)])
		if err := room.decode(p, n, nulls); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d := &room
		if d.len() != count || !slices.Equal(d.values()[1:], values) {
			t.Fatalf("seed %d: %d entries", seed, d.len())
		}
		for k, c := range codes {
			if d.codes.at(k) != c {
				t.Fatalf("seed %d: row %d has code %d, want %d", seed, k, d.codes.at(k), c)
			}
		}
		all := append([]string{""}, values...)
		for range 6 {
			ask := all[r.IntN(len(all))]
			switch r.IntN(5) {
			case 0:
				ask = ask[r.IntN(len(ask)+1):]
			case 1:
				ask = []string{"\x01", "\x00", "\x01\x02", "\x00\x00\x00\x00\x00\x00\x00", "a\x01", "\xff", "a|a|v1", "v1|v1"}[r.IntN(8)]
			}
			op := Op(r.IntN(6))
			text := ask
			if op == Regexp || op == NotRegexp {
				if !utf8.ValidString(ask) {
					continue
				}
				if !strings.Contains(ask, "|") {
					text = quote(ask)
				}
				text = []string{"", ".*", ""}[r.IntN(3)] + text + []string{"", ".*", ".+", "[0-9]*"}[r.IntN(4)]
			}
			m, err := NewMatcher(op, "x", text)
			if err != nil {
				t.Fatal(err)
			}
			null := r.IntN(2) == 0
			var before []uint64
			if r.IntN(2) == 0 {
				before = make([]uint64, (n+63)/64)
				for k := range n {
					if r.IntN(2) == 0 {
						before[k>>6] |= 1 << (k & 63)
					}
				}
			}
			want := make([]uint64, (n+63)/64)
			verdict := make([]bool, count)
			for c := range verdict {
				if c == 0 {
					verdict[0] = null
				} else {
					verdict[c] = oracleMatch(m, all[c], true, Native)
				}
			}
			for k, c := range codes {
				if verdict[c] && (before == nil || before[k>>6]>>(k&63)&1 == 1) {
					want[k>>6] |= 1 << (k & 63)
				}
			}
			got, _, err := d.match(ctx, m, null, slices.Clone(before))
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d: %q null %t: %v", seed, m, null, err)
			}
			var rows []int
			for k := range n {
				if want[k>>6]>>(k&63)&1 == 1 {
					rows = append(rows, k)
				}
			}
			pv, pc := d.pick(rows)
			for i, k := range rows {
				if pv[pc[i]] != all[codes[k]] || (pc[i] == 0) != (codes[k] == 0) {
					t.Fatalf("seed %d: picked row %d", seed, k)
				}
			}
			if count > 1000 {
				break
			}
		}
		// Damaged.
		for range 60 {
			q := slices.Clone(p)
			rows, null := n, nulls
			for range 1 + r.IntN(2) {
				at := r.IntN(len(q))
				if r.IntN(2) == 0 {
					at = r.IntN(min(len(q), 40))
				}
				switch r.IntN(7) {
				case 0:
					q = slices.Delete(q, at, at+1)
				case 1:
					q = slices.Insert(q, at, byte(r.IntN(256)))
				case 2:
					q = q[:max(1, at)]
				case 3:
					q[at] ^= 1 << r.IntN(8)
				case 4:
					q[at] = byte(r.IntN(3))
				case 5:
					null++
				case 6:
					q[len(q)-1-r.IntN(min(len(q), n))] = byte(r.IntN(256))
				}
			}
			wantValues, wantCodes, check := plainDict(q, rows, null)
			d := &room
			if r.IntN(2) == 0 {
				d = &dict{}
			}
			err := d.decode(q, rows, null)
			if Check(err) != check || (err == nil) != (check == 0) || err != nil && !errors.Is(err, fault.Corrupt) {
				t.Fatalf("seed %d: %v, want check %d", seed, err, check)
			}
			if err == nil {
				if !slices.Equal(d.values(), wantValues) {
					t.Fatalf("seed %d: other values", seed)
				}
				for k, c := range wantCodes {
					if d.codes.at(k) != c {
						t.Fatalf("seed %d: row %d", seed, k)
					}
				}
			}
			if count > 1000 {
				break
			}
		}
	}
}

func quote(text string) string {
	var b strings.Builder
	for _, c := range text {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// What is wrong with one chunk is told alike by everything that reads it, at the first reading, with the check and the place that a
// verifier gives.
func TestDamagedChunkEverywhere(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(5, 5))
	m := &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}, {2, "zone"}}}
	var records []Record
	for i := range uint64(240) {
		rec := Record{ID: ID{1, 3 + 300*i}, RowCount: 1 + i*i}
		if i%9 != 4 {
			rec.Labels = append(rec.Labels, Label{"host", fmt.Sprintf("host-%d", i%40)})
		}
		if i%3 > 0 {
			rec.Labels = append(rec.Labels, Label{"zone", strings.Repeat("z", int(i%5))})
		}
		records = append(records, rec)
	}
	target := buildIn(t, m, records, &WriteOptions{BlockSeries: 80})
	part := target[PartName(0)]
	f, err := parseFrame(part[:headerSize], part[len(part)-trailerSize:], uint64(len(part)), nil)
	if err != nil || f.depth != 1 || f.root.Compression != compressionNone {
		t.Fatal(err)
	}
	blocks, err := parseLeaf(part[f.root.Offset:f.root.end()], f, f.root, nil)
	if err != nil || len(blocks) != 3 {
		t.Fatal(err, len(blocks))
	}
	pattern := func(name string) *Matcher {
		m, err := NewMatcher(Regexp, name, ".*[zh]?.*[0-9z].*")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	sound := openIn(t, target)
	first := func(seq func(func(Record, error) bool)) error {
		var err error
		for _, err = range seq {
		}
		return err
	}
	ways := map[string]func(a *Artifact, b *block, c *column) error{
		"select":  func(a *Artifact, b *block, c *column) error { return first(a.Select(ctx, &Query{})) },
		"limited": func(a *Artifact, b *block, c *column) error { return first(a.Select(ctx, &Query{Limit: 1000})) },
		"little": func(a *Artifact, b *block, c *column) error {
			return first(a.Select(ctx, &Query{Memory: 60000, Range: &Range{ID{1, 4}, ID{1, 1 << 40}}}))
		},
		"records": func(a *Artifact, b *block, c *column) error { return first(a.Records(ctx, everything)) },
		"lookup":  func(a *Artifact, b *block, c *column) error { _, err := a.Lookup(ctx, b.First); return err },
		"lookups": func(a *Artifact, b *block, c *column) error {
			return first(a.LookupAll(ctx, []ID{blocks[0].First, blocks[1].First, blocks[2].Last, blocks[2].First}))
		},
		"compare": func(a *Artifact, b *block, c *column) error {
			_, err := Compare(ctx, a, sound, func(Difference) error { return nil })
			return err
		},
		"merge": func(a *Artifact, b *block, c *column) error {
			m, err := NewMerger([]*Artifact{sound, a}, false)
			if err != nil {
				t.Fatal(err)
			}
			return first(m.Select(ctx, &Query{}))
		},
		"gather": func(a *Artifact, b *block, c *column) error {
			g := NewGatherer(ctx, &Query{}, nil)
			defer g.Close()
			return g.Add(ctx, a, 0, nil)
		},
	}
	numbers := map[string]func(a *Artifact, b *block, c *column) error{
		"sum": func(a *Artifact, b *block, c *column) error { _, err := a.SumRows(ctx, &Query{}); return err },
	}
	identifiers := map[string]func(a *Artifact, b *block, c *column) error{
		"cut": func(a *Artifact, b *block, c *column) error {
			q := &Query{Range: &Range{ID{1, b.First.TSID + 1}, b.Last}}
			_, err := a.Count(ctx, q)
			return err
		},
	}
	texts := map[string]func(a *Artifact, b *block, c *column) error{
		"count": func(a *Artifact, b *block, c *column) error {
			_, err := a.Count(ctx, &Query{Matchers: []*Matcher{pattern(c.name)}})
			return err
		},
		"values": func(a *Artifact, b *block, c *column) error {
			_, err := a.LabelValues(ctx, c.name, &Query{})
			return err
		},
		"values that match": func(a *Artifact, b *block, c *column) error {
			_, err := a.LabelValues(ctx, c.name, &Query{Matchers: []*Matcher{pattern(c.name)}})
			return err
		},
		"names": func(a *Artifact, b *block, c *column) error {
			_, err := a.LabelNames(ctx, &Query{Matchers: []*Matcher{pattern(c.name)}})
			return err
		},
		"tables": func(a *Artifact, b *block, c *column) error {
			_, err := a.Tables(ctx, &Query{Matchers: []*Matcher{pattern(c.name)}})
			return err
		},
		"analyze": func(a *Artifact, b *block, c *column) error { _, err := Analyze(ctx, a, nil); return err },
	}
	seen := make(map[int]int)
	for n := range 150 {
		bi := r.IntN(len(blocks))
		b := &blocks[bi]
		c := &b.columns[r.IntN(len(b.columns))]
		p := slices.Clone(part)
		at := int(c.Offset) + r.IntN(int(c.Stored))
		if r.IntN(3) == 0 {
			at = int(c.Offset) + r.IntN(12)
		}
		p[at] = []byte{p[at] ^ 1<<r.IntN(8), byte(r.IntN(4)), byte(r.IntN(256))}[r.IntN(3)]
		if n%5 == 1 && c == &b.columns[2] { // "host-1" twice
			at = int(c.Offset) + bytes.Index(part[c.Offset:c.end()], []byte("host-2")) + 5
			p = slices.Clone(part)
			p[at] = '3'
		}
		if n%10 > 0 { // else check 42
			resignChunk(p, f, c)
		}
		objects := map[string][]byte{ManifestName: target[ManifestName], PartName(0): p}
		var want *fault.Error
		if err := Verify(ctx, memoryArtifact(objects), &VerifyOptions{Full: true}, func(f Finding) {
			if want == nil && !f.Warning && f.Check < 78 {
				want = f.Err
			}
		}); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			continue
		}
		seen[Check(want)]++
		for _, cost := range []source.Cost{{}, {Gap: 1 << 20, Parallel: 4}, {Gap: 100, Parallel: 2}} {
			for _, cache := range []int64{-1, 0, 3000} {
				open := func(ctx context.Context, name string) (source.Object, error) {
					obj, err := memoryArtifact(objects)(ctx, name)
					return priced{obj, cost}, err
				}
				use := func(of map[string]func(*Artifact, *block, *column) error) {
					for name, way := range of {
						a, err := Open(ctx, open, &Options{CacheBytes: cache})
						if err != nil {
							t.Fatal(err)
						}
						for range 2 {
							err = way(a, b, c)
							got, ok := errors.AsType[*fault.Error](err)
							if !ok || Check(got) != Check(want) || got.Class != want.Class || got.Object != want.Object || got.Where != want.Where || got.Offset != want.Offset || got.Msg != want.Msg {
								t.Errorf("damage %d, %s, cache %d, %+v:\n%v, want\n%v", n, name, cache, cost, err, want)
							}
						}
						a.Close()
					}
				}
				use(ways)
				switch {
				case c == &b.columns[0]:
					use(identifiers)
				case c == &b.columns[1]:
					use(numbers)
				default:
					use(texts)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, check := range []int{42, 70, 71, 72, 73, 74, 75, 76, 77} {
		if seen[check] == 0 {
			t.Errorf("check %d was not met: %v", check, seen)
		}
	}
}

// Blocks with dictionaries of each kind of codes give what a plain look at all records does.
func TestOracleOfLargeDictionaries(t *testing.T) {
	for i, count := range []int{127, 128, 129, 255, 256, 257, 65537} {
		r := rand.New(rand.NewPCG(uint64(i), 9))
		c := &oracleCase{r: r, tags: []Tag{{1, "host"}, {2, "zone"}}}
		c.values = [][]string{nastyValues(r, count), nastyValues(r, 3)}
		for k := range count + 100 {
			rec := Record{ID: ID{7, uint64(5 * k)}, RowCount: 1 + uint64(k)}
			if k < count {
				rec.Labels = append(rec.Labels, Label{"host", c.values[0][k]})
			} else if r.IntN(2) == 0 {
				rec.Labels = append(rec.Labels, Label{"host", c.values[0][r.IntN(count)]})
			}
			if r.IntN(4) > 0 {
				rec.Labels = append(rec.Labels, Label{"zone", c.values[1][r.IntN(3)]})
			}
			c.records = append(c.records, rec)
		}
		queries := 6
		if count > 1000 {
			queries = 1
		}
		target := buildIn(t, &Manifest{RegionID: 1, Tags: c.tags}, c.records, &WriteOptions{BlockSeries: 70000, Zstd: i%2 == 0})
		for _, o := range []*Options{nil, {CacheBytes: -1}} {
			a, err := Open(context.Background(), target.opener(), o)
			if err != nil {
				t.Fatal(err)
			}
			for range queries {
				q := c.query(t)
				if err := c.check(a, q); err != nil {
					t.Fatalf("%d values: %q %v: %.2000s", count, q.Matchers, q.Range, err.Error())
				}
			}
			if err := c.lookups(a); err != nil {
				t.Fatalf("%d values: %.2000s", count, err.Error())
			}
			a.Close()
		}
	}
}
