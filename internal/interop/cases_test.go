package interop

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spilehq/spile/value"
)

// testCase is a document that both sides write and read.
type testCase struct {
	name  string
	doc   any
	codec string // the only one that can hold it; "" for both
	// onlyPython: the second writer of the original does not take it.
	onlyPython bool
	// lostInBlocks: the original reads it wrong or not at all inside blocks, as it decodes blocks in another way than
	// leaves. Such a document is read back by it only where no list became blocks.
	lostInBlocks bool
	large        bool // tried with a few sizes only
}

func m(keysAndValues ...any) value.OrderedMap {
	out := value.OrderedMap{}
	for i := 0; i < len(keysAndValues); i += 2 {
		out = append(out, value.Pair{Key: keysAndValues[i], Value: keysAndValues[i+1]})
	}
	return out
}

func list(n int, item func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

func nested(levels int, inner any, wrap func(any) any) any {
	for range levels {
		inner = wrap(inner)
	}
	return inner
}

// nan is the one NaN that both sides write; that of Go's math package has another bit set.
var nan = math.Float64frombits(0x7ff8000000000000)

func cases() []testCase {
	ints := func(n int) []any { return list(n, func(i int) any { return i }) }
	floats := func(n int) []any { return list(n, func(i int) any { return float64(i) / 8 }) }
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return []testCase{
		{name: "null"},
		{name: "false", doc: false},
		{name: "int", doc: 2154848},
		{name: "string", doc: "a string"},
		{name: "empty list", doc: []any{}},
		{name: "empty map", doc: m()},
		{name: "empties", doc: []any{[]any{}, m(), "", []byte{}, nil, []any{[]any{m()}}}},
		{name: "integer edges", doc: []any{
			0, 1, 23, 24, 31, 32, 127, 128, 255, 256, 65535, 65536, int64(1<<32 - 1), int64(1 << 32), int64(1<<53 - 1), int64(1 << 53), int64(math.MaxInt64),
			uint64(1 << 63), uint64(math.MaxUint64), -1, -24, -25, -32, -33, -128, -129, -256, -257, -32768, -32769, -65536,
			-1 << 31, int64(-1<<31 - 1), int64(math.MinInt64),
		}},
		{name: "big integers", codec: "cbor", onlyPython: true, doc: []any{
			big.NewInt(0).Lsh(big.NewInt(1), 64), big.NewInt(0).Lsh(big.NewInt(-1), 64), // the second is a plain integer
			big.NewInt(0).Sub(big.NewInt(math.MinInt64), big.NewInt(1)), big.NewInt(0).Lsh(big.NewInt(-3), 100),
		}},
		{name: "float edges", doc: []any{
			0.0, math.Copysign(0, -1), 1.0, -1.5, 0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e15, 1e16,
		}},
		{name: "not finite", doc: m("nan", nan, "inf", math.Inf(1), "list", []any{math.Inf(-1), 1.0, nan})},
		{name: "string lengths", large: true, doc: list(12, func(i int) any {
			return strings.Repeat("x", []int{0, 1, 23, 24, 31, 32, 255, 256, 300, 1000, 65535, 65536}[i])
		})},
		{name: "unicode", doc: m("häß", "Ω≈ç√", "日本", []any{"語", "\U0001f600", "e\u0301", "\u0000", "\u2028", "\"\\/"}, "\U0001f9ea", 1)},
		{name: "binary", doc: m("b", []byte{0, 1, 2, 255}, "long", []byte(strings.Repeat("\x80\x00", 300)),
			"list", list(40, func(i int) any { return []byte{byte(i), byte(i * 7)} }))},
		{name: "list sizes", doc: []any{ints(15), ints(16), ints(23), ints(24), ints(255), ints(256), ints(300)}},
		{name: "map sizes", doc: []any{wide(15), wide(16), wide(23), wide(24), wide(300)}},
		{name: "500 integers", doc: ints(500)},
		{name: "1000 floats", doc: floats(1000)},
		{name: "5000 floats in a map", large: true, doc: m("x", floats(5000), "y", m("z", floats(33)), "n", 7)},
		{name: "20000 small integers", large: true, doc: list(20000, func(i int) any { return i % 100 })},
		{name: "mixed small items", doc: list(700, func(i int) any {
			return []any{i, float64(i), fmt.Sprint(i), i%2 == 0, nil, []any{i, i + 1}, m("i", i)}[i%7]
		})},
		{name: "records", doc: list(300, func(i int) any {
			return m("id", i, "name", fmt.Sprintf("run %d", i), "energy", float64(i)/3, "tags", []any{"a", i % 5}, "ok", i%3 == 0)
		})},
		{name: "one long item among small ones", doc: append(ints(200), any(strings.Repeat("y", 9000)), 1, 2, 3)},
		{name: "map of small values", large: true, doc: wide(2000)},
		{name: "map of lists", doc: m("a", ints(100), "b", m("c", 4, "a/b", 6, "d", floats(20)), "", "empty key", "l", ints(200))},
		{name: "keys of integers", lostInBlocks: true, doc: m(1, "one", -7, m(2, 3), int64(1<<40), ints(50))},
		{name: "keys of many types", lostInBlocks: true, doc: m(5, 1, "5", 2, nil, 3, 2.5, ints(30), []byte("k"), 5, true, m(false, ints(30)))},
		{name: "deep lists", large: true, doc: nested(150, 1, func(v any) any { return []any{v} })},
		{name: "deep maps", large: true, doc: nested(150, ints(40), func(v any) any { return m("next", v, "n", 1) })},
		{name: "deep, with long leaves", doc: nested(60, 1, func(v any) any { return []any{strings.Repeat("z", 40), v} })},
		{name: "table of lists", large: true, doc: list(60, func(i int) any { return floats(i) })},
		{name: "times", codec: "msgpack", onlyPython: true, lostInBlocks: true, doc: m(
			"now", noon, "fraction", noon.Add(123456*time.Microsecond), "before 1970", time.Date(1950, 2, 3, 4, 5, 6, 7000, time.UTC),
			"after 2106", time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), "list", list(20, func(i int) any { return noon.Add(time.Duration(i) * time.Hour) }),
		)},
	}
}

// wide is a map of n pairs with small values.
func wide(n int) value.OrderedMap {
	out := make(value.OrderedMap, n)
	for i := range out {
		out[i] = value.Pair{Key: fmt.Sprintf("key%d", i), Value: i}
	}
	return out
}

// sizes are pairs of threshold and trivial size.
var sizes = [][2]int64{{8192, 20}, {1, 1}, {2, 2}, {10, 9}, {20, 20}, {64, 10}, {256, 20}, {1000, 100}}

// randomDoc makes a document of both codecs whose maps have string keys.
func randomDoc(r *rand.Rand, depth int) any {
	if depth > 0 {
		switch r.IntN(8) {
		case 0, 1:
			return list(r.IntN(12), func(int) any { return randomDoc(r, depth-1) })
		case 2, 3, 4:
			out := value.OrderedMap{}
			for i := range r.IntN(12) {
				out = append(out, value.Pair{Key: fmt.Sprintf("%s%d", randomText(r), i), Value: randomDoc(r, depth-1)})
			}
			return out
		case 5:
			return list(r.IntN(400), func(int) any { return randomScalar(r, 6) })
		}
	}
	return randomScalar(r, 60)
}

func randomScalar(r *rand.Rand, length int) any {
	switch r.IntN(7) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		return r.Uint64() >> r.IntN(64)
	case 4:
		return r.NormFloat64()
	case 5:
		return strings.Repeat(randomText(r), r.IntN(length))
	}
	return []byte(strings.Repeat("\x93", r.IntN(length)))
}

func randomText(r *rand.Rand) string {
	return []string{"a", "key", "ü", "x/y", "~0", "{7}", "日", "7", ":"}[r.IntN(9)]
}
