package series

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/internal/wire"
)

// columnOfTag is a column of values of which some are null, and its chunk.
type columnOfTag struct {
	values []string // of each row
	has    []bool
	p      []byte
	nulls  uint32
}

func drawColumn(t *rapid.T) *columnOfTag {
	words := []string{"", "a", "ab", "host-1", "host-12", "xhost-1", "ü", "日本", "\x01\x06\x00\x00\x00\x00\x00\x00\x00host-1", "\x00", strings.Repeat("long", 70)}
	b := newBlockBuilder([]Tag{{1, "x"}})
	c := &columnOfTag{}
	many := rapid.Bool().Draw(t, "many")
	for i := range rapid.IntRange(1, 400).Draw(t, "rows") {
		v, has := rapid.SampledFrom(words).Draw(t, "value"), rapid.IntRange(0, 5).Draw(t, "null") > 0
		if many {
			v += rapid.StringMatching(`[a-c0-2]{0,4}`).Draw(t, "more")
		}
		if !has {
			v = ""
			c.nulls++
		}
		c.values, c.has = append(c.values, v), append(c.has, has)
		b.add(&record{ID: ID{1, uint64(i)}, count: 1, values: []string{v}, has: []bool{has}})
	}
	c.p = appendDict(nil, b.cols[0].values, b.cols[0].codes)
	return c
}

// What a matcher finds in a dictionary is what it says of each row.
func TestMatchRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t)
		n := len(c.values)
		op := Op(rapid.IntRange(int(Equal), int(IsNotNull)).Draw(t, "op"))
		value := rapid.SampledFrom([]string{"", "a", "host-1", "host-.*", ".*1.*", ".*b", ".+", ".*", "a|b|host-1", "(?i)HOST-1", "host-1[0-2]*", "x?host-1", "日.*", "\x00", strings.Repeat("long", 70)}).Draw(t, "text")
		m, err := NewMatcher(op, "x", value)
		if err != nil {
			t.Fatal(err)
		}
		null := rapid.Bool().Draw(t, "null matches")
		var before []uint64
		if rapid.Bool().Draw(t, "some are out") {
			before = make([]uint64, (n+63)/64)
			for k := range n {
				if rapid.Bool().Draw(t, "in") {
					before[k>>6] |= 1 << (k & 63)
				}
			}
		}
		want := make([]uint64, (n+63)/64)
		for k := range n {
			selects := null
			if c.has[k] {
				selects = m.Matches(c.values[k])
			}
			if selects && (before == nil || before[k>>6]>>(k&63)&1 == 1) {
				want[k>>6] |= 1 << (k & 63)
			}
		}
		d, err := decodeDict(c.p, n, c.nulls)
		if err != nil {
			t.Fatal(err)
		}
		got, ran, err := d.match(context.Background(), m, null, slices.Clone(before))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: %x, want %x, %v", m, got, want, err)
		}
		if most := int64(d.len() - 1); ran > most {
			t.Fatalf("%s: ran on %d of %d values", m, ran, most)
		}
	})
}

func TestPick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t)
		var of []int
		for k := range c.values {
			if rapid.IntRange(0, 3).Draw(t, "pick") == 0 {
				of = append(of, k)
			}
		}
		d, err := decodeDict(c.p, len(c.values), c.nulls)
		if err != nil {
			t.Fatal(err)
		}
		same := func(values []string, codes []uint32, of []int) {
			if len(codes) != len(of) {
				t.Fatalf("%d codes of %d rows", len(codes), len(of))
			}
			for i, k := range of {
				if has := codes[i] != 0; has != c.has[k] || values[codes[i]] != c.values[k] || has != (d.codes.at(k) != 0) || d.value(d.codes.at(k)) != c.values[k] {
					t.Fatalf("row %d is %q, %v, want %q, %v", k, values[codes[i]], has, c.values[k], c.has[k])
				}
			}
		}
		values, codes := d.pick(of)
		same(values, codes, of)
		from := rapid.IntRange(0, len(c.values)).Draw(t, "from")
		to := rapid.IntRange(from, len(c.values)).Draw(t, "to")
		var span []int
		for k := from; k < to; k++ {
			span = append(span, k)
		}
		values, codes = d.span(from, to)
		same(values, codes, span)
	})
}

// The numbers that deltas reads from eight bytes at once are those that are read byte by byte.
func TestDeltas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 1, 12), rapid.Just(make([]byte, 8)),
			rapid.Map(rapid.SliceOfN(rapid.ByteRange(0x80, 0xff), 0, 9), func(p []byte) []byte { return append(slices.Clone(p), 1) }))
		p := slices.Concat(rapid.SliceOfN(number, 0, 8).Draw(t, "numbers")...)
		got := make([]uint64, rapid.IntRange(1, 24).Draw(t, "count"))
		size, err := deltas(p, 7, got)
		prev, pos := uint64(7), 0
		for i := range got {
			u, n := wire.Uvarint64(p[pos:])
			if n <= 0 {
				if err == nil || size != pos {
					t.Fatalf("% x: error %v at %d, want one at %d", p, err, size, pos)
				}
				return
			}
			prev, pos = prev+uint64(wire.UnZigZag64(u)), pos+n
			if got[i] != prev {
				t.Fatalf("% x: number %d is %d, want %d", p, i, got[i], prev)
			}
		}
		if err != nil || size != pos {
			t.Fatalf("% x: error %v, %d bytes, want %d", p, err, size, pos)
		}
	})
}

// A long text that many rows share is held once, however few of all rows are picked.
func TestPickSharedText(t *testing.T) {
	const rows = 1000
	long := strings.Repeat("x", 1<<20)
	values, codes := []string{long}, make([]uint32, 2*rows)
	for k := range codes {
		codes[k] = 1
		if k >= rows {
			values = append(values, strconv.Itoa(k))
			codes[k] = uint32(len(values))
		}
	}
	d, err := decodeDict(appendDict(nil, values, codes), len(codes), 0)
	if err != nil {
		t.Fatal(err)
	}
	picked := make([]int, rows)
	for k := range picked {
		picked[k] = k
	}
	texts, numbers := d.pick(picked)
	held := 0
	for _, v := range texts {
		held += len(v)
	}
	if held > len(d.text) {
		t.Errorf("%d bytes of text for rows of a dictionary of %d", held, len(d.text))
	}
	for _, code := range numbers {
		if texts[code] != long {
			t.Fatal("another text")
		}
	}
}

// Two entries that are equal are found wherever they stand, in dictionaries of any size.
func TestEntryTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{2, 3, 15, 16, 17, 255, 300, 8000, 65_535, 65_536, 100_000} {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprint(r.Uint64N(1e9), "-", i)
		}
		codes := make([]uint32, n)
		for i := range codes {
			codes[i] = uint32(i + 1)
		}
		if _, err := decodeDict(appendDict(nil, values, codes), n, 0); err != nil {
			t.Fatalf("%d entries: %v", n, err)
		}
		one := 1 + r.IntN(n-1)
		values[one] = values[r.IntN(one)]
		_, err := decodeDict(appendDict(nil, values, codes), n, 0)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("entry %d, %q, is there twice", one+1, values[one])) {
			t.Fatalf("%d entries, the one at %d is there twice: %v", n, one, err)
		}
	}
}

// The memory of a room is that of all kinds of codes that were decoded into it, each once.
func TestRoomBytes(t *testing.T) {
	room := &columnRoom{}
	for _, n := range []int{100_000, 3, 1000, 3, 100_000} {
		values, codes := make([]string, n), make([]uint32, n)
		for i := range values {
			values[i], codes[i] = strconv.Itoa(i), uint32(i+1)
		}
		if err := room.dict.decode(appendDict(nil, values, codes), n, 0); err != nil {
			t.Fatal(err)
		}
	}
	d := &room.dict
	if got, want := room.bytes(), 4*cap(d.at)+4*cap(d.codes.wide)+2*1000+3; got != want || d.codes.len() != 100_000 {
		t.Errorf("%d bytes, want %d", got, want)
	}
}
