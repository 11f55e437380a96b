package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spilehq/spile/fault"
)

type inner struct {
	X int `spile:"x"`
	Y int
}

type sample struct {
	Name    string `spile:"name" json:"other"`
	Age     uint8  `json:"age,omitempty"`
	Skipped int    `spile:"-"`
	hidden  int
	Ratio   float32
	inner
	*Deep
	List  []int          `spile:",omitempty"`
	Table map[string]int `spile:"table,omitempty"`
	Ptr   *inner
	Any   any
	When  time.Time `spile:"when,omitempty"`
}

type Deep struct {
	Z string `json:"z"`
	X string // hidden by that of inner only if the names are the same: this one is X, that one x
}

type named string

func TestAppendGoValues(t *testing.T) {
	three := 3
	deep := any(&three)
	for _, tt := range []struct {
		name string
		v    any
		want any // what Decode gives
	}{
		{"int8", int8(-5), int64(-5)},
		{"uint16", uint16(500), int64(500)},
		{"uint", uint(7), int64(7)},
		{"float32", float32(0.1), float64(float32(0.1))},
		{"named string", named("a"), "a"},
		{"pointer", &three, int64(3)},
		{"pointer to an interface", &deep, int64(3)},
		{"nil pointer", (*int)(nil), nil},
		{"nil slice", []int(nil), nil},
		{"nil bytes", []byte(nil), nil},
		{"nil map", map[string]any(nil), nil},
		{"nil ordered map", OrderedMap(nil), nil},
		{"nil big", (*big.Int)(nil), nil},
		{"big", big.NewInt(5), int64(5)},
		{"big by value", *big.NewInt(5), int64(5)},
		{"bytes in an array", [3]byte{1, 2, 3}, []byte{1, 2, 3}},
		{"array", [2]string{"a", "b"}, []any{"a", "b"}},
		{"slices", []any{[]string{"a"}, []int{1}, []int64{2}, []float64{3}, []uint16{4}, [][]int{{5}}},
			[]any{[]any{"a"}, []any{int64(1)}, []any{int64(2)}, []any{3.0}, []any{int64(4)}, []any{[]any{int64(5)}}}},
		{"maps", []map[string]any{{"a": 1}}, []any{map[string]any{"a": int64(1)}}},
		{"map of ints", map[int8]bool{1: true, -1: false}, map[any]any{int64(1): true, int64(-1): false}},
		{"map of floats", map[float64]int{1.5: 1}, map[any]any{1.5: int64(1)}},
		{"map of strings", map[named]*int{"k": &three}, map[string]any{"k": int64(3)}},
		{"ordered map", OrderedMap{{"b", 1}, {"a", 2}}, map[string]any{"b": int64(1), "a": int64(2)}},
		{"number", Number("12"), int64(12)},
		{"number, long", Number("18446744073709551615"), uint64(math.MaxUint64)},
		{"number, float", Number("-1.5e3"), -1500.0},
		{"number, zeros in front", Number("-007"), int64(-7)},
		{"number, zeros", Number("000"), int64(0)},
		{"number, integral float", Number("1.0"), 1.0},
		{"raw", Raw{Msgpack, []byte{0x92, 1, 2}}, []any{int64(1), int64(2)}},
		{"raw of the other codec", Raw{CBOR, []byte{0x9f, 1, 0x20, 0xff}}, []any{int64(1), int64(-1)}},
		{"key of the other codec", map[any]any{EncodedKey{CBOR, "\x81\x20"}: 1}, map[any]any{EncodedKey{Msgpack, "\x91\xff"}: int64(1)}},
		{"ordered map, many names", OrderedMap{{"k", 1}, {"j", 1}, {"i", 1}, {"h", 1}, {"g", 1}, {"f", 1}, {"e", 1}, {"d", 1}, {"", 1}},
			map[string]any{"k": int64(1), "j": int64(1), "i": int64(1), "h": int64(1), "g": int64(1), "f": int64(1), "e": int64(1), "d": int64(1), "": int64(1)}},
		{"seq", Seq{2, slices.Values([]any{1, "x"})}, []any{int64(1), "x"}},
		{"seq that is counted", Seq{-1, slices.Values([]any{1, "x"})}, []any{int64(1), "x"}},
		{"empty seq", Seq{}, []any{}},
		{"map seq", MapSeq{-1, pairsOf("b", 1, "a", 2)}, map[string]any{"b": int64(1), "a": int64(2)}},
		{"struct", sample{Name: "n", Skipped: 1, hidden: 2, Ratio: 0.5, inner: inner{X: 1, Y: 2}, Ptr: &inner{}},
			map[string]any{"name": "n", "Ratio": 0.5, "x": int64(1), "Y": int64(2), "Any": nil, "when": time.Time{},
				"Ptr": map[string]any{"x": int64(0), "Y": int64(0)}}},
		{"struct, all fields", sample{Age: 1, Deep: &Deep{"z", "X"}, List: []int{1}, Table: map[string]int{"a": 1}, Any: 1},
			map[string]any{"name": "", "age": int64(1), "Ratio": 0.0, "x": int64(0), "Y": int64(0), "z": "z", "X": "X",
				"List": []any{int64(1)}, "table": map[string]any{"a": int64(1)}, "Ptr": nil, "Any": int64(1), "when": time.Time{}}},
	} {
		b, err := Append(nil, Msgpack, tt.v)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := Decode(Msgpack, b, Limits{})
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %x\n%s", tt.name, err, b, diff)
		}
		var w bytes.Buffer
		if err := Write(&w, Msgpack, tt.v); err != nil || !bytes.Equal(w.Bytes(), b) {
			t.Errorf("%s: written %x, %v, appended %x", tt.name, w.Bytes(), err, b)
		}
	}
}

func pairsOf(kv ...any) iter.Seq2[any, any] {
	return func(yield func(k, v any) bool) {
		for i := 0; i < len(kv); i += 2 {
			if !yield(kv[i], kv[i+1]) {
				return
			}
		}
	}
}

func TestAppendOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"names", map[string]any{"b": 1, "a": 2, "aa": 3, "": 4, "abcdefgh2": 5, "abcdefgh1": 6},
			"86a004a16102a2616103a961626364656667683106a961626364656667683205a16201"},
		{"typed names", map[named]int{"b": 1, "aa": 2}, "82a2616102a16201"},
		{"integers", map[int]int{300: 1, -1: 2, 5: 3}, "83ff020503cd012c01"},
		{"unsigned", map[uint]int{300: 1, 5: 3}, "820503cd012c01"},
		{"others", map[any]any{"a": 1, int64(300): 2, true: 3, nil: 4}, "84a16101c004c303cd012c02"},
		{"booleans", map[bool]int{true: 1, false: 0}, "82c200c301"},
		{"ordered", OrderedMap{{"b", 1}, {3, 2}, {"a", 3}}, "83a162010302a16103"},
		{"fields", struct {
			B, A int
		}{1, 2}, "82a14201a14102"},
	} {
		b, err := Append(nil, Msgpack, tt.v)
		if err != nil || hex.EncodeToString(b) != tt.want {
			t.Errorf("%s: %x, %v, want %s", tt.name, b, err, tt.want)
		}
	}
}

// Maps whose keys are remembered are written like those that are sorted anew.
func TestAppendShapes(t *testing.T) {
	wide := map[string]any{}
	for i := range 100 {
		wide[strings.Repeat("k", i%7)+strconv.Itoa(i)] = i
	}
	documents := []map[string]any{
		{"b": 1, "a": 2}, {"b": 3, "a": 4}, {"b": 5, "c": 6}, {"a": 7, "b": map[string]any{"b": 8, "a": 9}}, {},
		{strings.Repeat("long", 300): 1, "a": 2}, {"c": 1, "a": 2}, {"a": 1, "d": 2}, {"a": 1, "e": 2}, wide, wide,
	}
	for range 5 {
		for _, m := range documents {
			pairs := OrderedMap{}
			for _, k := range slices.Sorted(maps.Keys(m)) {
				pairs = append(pairs, Pair{k, m[k]})
			}
			for _, c := range []Codec{Msgpack, CBOR} {
				got, err := Append(nil, c, []any{m, m})
				want, err2 := Append(nil, c, []any{pairs, pairs})
				if err != nil || err2 != nil || !bytes.Equal(got, want) {
					t.Fatalf("%v: %v, %v\n%x\n%x", m, err, err2, got, want)
				}
			}
		}
	}
}

type loop struct{ Next *loop }

type loopPointer *loopPointer

func TestAppendErrors(t *testing.T) {
	cycle := &loop{}
	cycle.Next = cycle
	var self any
	self = &self
	var pointer loopPointer
	pointer = &pointer
	list := []any{nil}
	list[0] = list
	dict := map[string]any{}
	dict["again"] = dict
	many := make(OrderedMap, 100)
	for i := range many {
		many[i] = Pair{i, nil}
	}
	many[99].Key = int8(7)
	for _, tt := range []struct {
		name  string
		v     any
		class error
		text  string
	}{
		{"bad text", map[string]any{"runs": []any{1, map[string]any{"x": "\xff"}}}, fault.Invalid,
			"value: runs/1/x: string of 1 bytes is not UTF-8"},
		{"bad text in a key", map[string]any{"a": map[string]any{"\xff": 1}}, fault.Invalid,
			"value: a/\ufffd: string of 1 bytes is not UTF-8"},
		{"function", struct{ F func() }{}, fault.Invalid, "value: F: Go type func(), which has no encoding"},
		{"complex", []complex128{1}, fault.Invalid, "value: 0: Go type complex128, which has no encoding"},
		{"cycle of structs", cycle, fault.Limit, "nested deeper than 1000"},
		{"pointer to itself", self, fault.Limit, "nested deeper than 1000"},
		{"pointer type of itself", pointer, fault.Limit, "nested deeper than 1000"},
		{"list in itself", list, fault.Limit, "nested deeper than 1000"},
		{"map in itself", dict, fault.Limit, "again/again/again"},
		{"double key", OrderedMap{{"a", 1}, {"b", 1}, {"a", 1}}, fault.Conflict, `value: key "a" comes twice`},
		{"double key among names", OrderedMap{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}, {"g", 1}, {"h", 1}, {"i", 1}, {"a", 1}},
			fault.Conflict, `value: key "a" comes twice`},
		{"double empty key", OrderedMap{{"", 1}, {"b", 1}, {"", 1}}, fault.Conflict, `value: key "" comes twice`},
		{"raw that the codec has not", Raw{CBOR, []byte{0xf7}}, fault.Invalid, "value: encoded value: undefined has no form in msgpack"},
		{"double key among many", []any{many}, fault.Conflict, `value: 0: key "7" comes twice`},
		{"double key of two types", map[any]any{int8(1): 1, int64(1): 2}, fault.Conflict, `value: key "1" comes twice`},
		{"double key in a stream", MapSeq{2, pairsOf("a", 1, "a", 2)}, fault.Conflict, `value: key "a" comes twice`},
		{"few items", Seq{3, slices.Values([]any{1})}, fault.Invalid, "value: sequence says 3 items, 1 come"},
		{"many items", Seq{0, slices.Values([]any{1})}, fault.Invalid, "value: sequence says 0 items, more come"},
		{"few pairs", MapSeq{2, pairsOf("a", 1)}, fault.Invalid, "value: sequence says 2 pairs, 1 come"},
		{"many pairs", MapSeq{1, pairsOf("a", 1, "b", 2)}, fault.Invalid, "value: sequence says 1 pairs, more come"},
		{"no number", Number("0x1"), fault.Invalid, `value: number "0x1" is none`},
		{"no number, sign", Number("+5"), fault.Invalid, `value: number "+5" is none`},
		{"no number, nothing", Number("-"), fault.Invalid, `value: number "-" is none`},
		{"no number, no digit", Number("1."), fault.Invalid, `value: number "1." is none`},
		{"no number, text behind", Number("1.5 "), fault.Invalid, `value: number "1.5 " is none`},
		{"number beyond", Number("1e400"), fault.Invalid, `value: number "1e400" is beyond a float64`},
		{"integer beyond", Number("-9223372036854775809"), fault.Invalid,
			"value: integer -9223372036854775809, msgpack holds -2^63 to 2^64-1"},
		{"digits without end", Number(strings.Repeat("9", 1<<20)), fault.Invalid, "value: number of 1048576 digits"},
		{"raw of two values", Raw{Msgpack, []byte{1, 2}}, fault.Invalid, "value: encoded value of 1 bytes, given are 2"},
		{"raw without an end", Raw{Msgpack, []byte{0x92, 2}}, fault.Invalid, "value: encoded value"},
		{"tag", TagValue{1, 2}, fault.Invalid, "value: a tag, which msgpack has not"},
	} {
		b, err := Append([]byte("x"), Msgpack, tt.v)
		if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.text) || string(b) != "x" {
			t.Errorf("%s: %v, %q", tt.name, err, b)
		}
		if err := Write(io.Discard, Msgpack, tt.v); !errors.Is(err, tt.class) {
			t.Errorf("%s: written: %v", tt.name, err)
		}
	}
	if _, err := Append(nil, 0, 1); !errors.Is(err, fault.Invalid) {
		t.Errorf("no codec: %v", err)
	}
}

// slow counts the writes and how long they are.
type slow struct {
	longest, total int
	fail           error
}

func (s *slow) Write(p []byte) (int, error) {
	s.longest = max(s.longest, len(p))
	s.total += len(p)
	return len(p), s.fail
}

func TestWriteInPieces(t *testing.T) {
	const n = 200_000
	numbers := func(yield func(any) bool) {
		for range n {
			if !yield(map[string]any{"a": 1, "b": "text"}) {
				return
			}
		}
	}
	keys := func(yield func(k, v any) bool) {
		for i := range n {
			if !yield(i, Seq{1, slices.Values([]any{nil})}) {
				return
			}
		}
	}
	v := []any{Seq{n, numbers}, MapSeq{n, keys}, strings.Repeat("é", 1<<20), make([]byte, 1<<20)}
	var s slow
	if err := Write(&s, CBOR, v); err != nil {
		t.Fatal(err)
	}
	b, err := Append(nil, CBOR, v)
	if err != nil || len(b) != s.total {
		t.Fatalf("appended %d bytes, %v, written %d", len(b), err, s.total)
	}
	if s.longest > 1<<20 {
		t.Errorf("a write of %d bytes", s.longest)
	}
	var w bytes.Buffer
	if err := Write(&w, CBOR, v); err != nil || !bytes.Equal(w.Bytes(), b) {
		t.Errorf("written and appended differ, %v", err)
	}
	s.fail = io.ErrClosedPipe
	if err := Write(&s, CBOR, v); err != io.ErrClosedPipe {
		t.Errorf("%v, want the writer's error", err)
	}
}
