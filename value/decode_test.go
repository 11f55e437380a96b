package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/big"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

// sameValue compares decoded values: all NaN are one.
var sameValue = cmp.Options{
	cmpopts.EquateNaNs(),
	cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 }),
}

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodings holds encodings that no writer of ours makes, with what Decode gives.
var decodings = []struct {
	name string
	c    Codec
	in   string
	want any
}{
	{"long integer", Msgpack, "cf0000000000000001", int64(1)},
	{"signed positive", Msgpack, "d37fffffffffffffff", int64(math.MaxInt64)},
	{"float32", Msgpack, "ca3fc00000", 1.5},
	{"float32", CBOR, "fa3fc00000", 1.5},
	{"float16", CBOR, "f93e00", 1.5},
	{"float16, least", CBOR, "f90001", math.Ldexp(1, -24)},
	{"float16, -0", CBOR, "f98000", math.Copysign(0, -1)},
	{"float16, inf", CBOR, "f97c00", math.Inf(1)},
	{"float16, nan", CBOR, "f97e01", math.NaN()},
	{"text in chunks", CBOR, "7f 6161 60 626263 ff", "abc"},
	{"bytes in chunks", CBOR, "5f 4161 40 426263 ff", []byte("abc")},
	{"list of no length", CBOR, "9f 01 9f ff a0 ff", []any{int64(1), []any{}, map[string]any{}}},
	{"map of no length", CBOR, "bf 6161 01 6162 9f02ff ff", map[string]any{"a": int64(1), "b": []any{int64(2)}}},
	{"double keys", Msgpack, "83 a161 01 a162 02 a161 03", map[string]any{"a": int64(3), "b": int64(2)}},
	{"keys of two types", Msgpack, "84 a161 01 02 03 c0 04 a161 05",
		map[any]any{"a": int64(5), int64(2): int64(3), nil: int64(4)}},
	{"number keys", Msgpack, "83 01 01 cb3ff0000000000000 02 c3 03", map[any]any{int64(1): int64(1), 1.0: int64(2), true: int64(3)}},
	{"list as a key", Msgpack, "81 92cc01a161 01", map[any]any{EncodedKey{Msgpack, "\x92\x01\xa1a"}: int64(1)}},
	{"lists as keys, the same in two forms", Msgpack, "82 920102 01 dc000201cc02 02", map[any]any{EncodedKey{Msgpack, "\x92\x01\x02"}: int64(2)}},
	{"list of no length as a key", CBOR, "a1 9f01bfff8002ff 01", map[any]any{EncodedKey{CBOR, "\x9f\x01\xbf\xff\x80\x02\xff"}: int64(1)}},
	{"bytes as a key", CBOR, "a1 5f41ffff 01", map[any]any{EncodedKey{CBOR, "\x41\xff"}: int64(1)}},
	{"nan as a key", CBOR, "a2 f97e00 01 fb7ff8000000000001 02", map[any]any{EncodedKey{CBOR, "\xf9\x7e\x00"}: int64(2)}},
	{"time as a key", Msgpack, "81 d6ff00000001 01", map[any]any{time.Unix(1, 0).UTC(): int64(1)}},
	{"time as a key", CBOR, "a1 c101 01", map[any]any{time.Unix(1, 0).UTC(): int64(1)}},
	{"tag as a key", CBOR, "a1 d8206161 01", map[any]any{EncodedKey{CBOR, "\xd8\x20\x61a"}: int64(1)}},
	{"simple values as keys", CBOR, "a2 f7 01 f0 02", map[any]any{UndefinedValue{}: int64(1), SimpleValue(16): int64(2)}},
	{"epoch", CBOR, "c1 1a514b67b0", time.Date(2013, 3, 21, 20, 4, 0, 0, time.UTC)},
	{"epoch, float", CBOR, "c1 fb41d452d9ec200000", time.Date(2013, 3, 21, 20, 4, 0, 5e8, time.UTC)},
	{"epoch before 1970", CBOR, "c1 fbbff8000000000000", time.Unix(-2, 5e8).UTC()},
	{"epoch, nan", CBOR, "c1 f97e00", TagValue{1, math.NaN()}},
	{"epoch, text", CBOR, "c1 6161", TagValue{1, "a"}},
	{"epoch in the year 292277026596", CBOR, "c1 1b7fffffffffffffff", TagValue{1, int64(math.MaxInt64)}},
	{"time with a zone", CBOR, "c0 7819 323031332d30332d32315432303a30343a30302b30313a3030", time.Date(2013, 3, 21, 19, 4, 0, 0, time.UTC)},
	{"time, no text", CBOR, "c0 01", TagValue{0, int64(1)}},
	{"time, no time", CBOR, "c0 6161", TagValue{0, "a"}},
	{"time, 12 bytes", Msgpack, "c70cff 00000005 ffffffffffffffff", time.Unix(-1, 5).UTC()},
	{"time, too many nanoseconds", Msgpack, "d7ff ffffffff00000000", ExtValue{-1, []byte{255, 255, 255, 255, 0, 0, 0, 0}}},
	{"time of 3 bytes", Msgpack, "c703ff 010203", ExtValue{-1, []byte{1, 2, 3}}},
	{"time, last second", Msgpack, "c70cff 00000000 7fffffffffffffff", ExtValue{-1, []byte{0, 0, 0, 0, 127, 255, 255, 255, 255, 255, 255, 255}}},
	{"small bignum", CBOR, "c2 4102", int64(2)},
	{"small bignum", CBOR, "c3 40", int64(-1)},
	{"bignum with zeros", CBOR, "c2 4a 0000 ffffffffffffffff", uint64(math.MaxUint64)},
	{"bignum, no bytes", CBOR, "c2 6102", TagValue{2, "\x02"}},
	{"bignum, long", CBOR, "c2 592001" + strings.Repeat("01", 8193), TagValue{2, bytes.Repeat([]byte{1}, 8193)}},
	{"tags in tags", CBOR, "d9d9f7 c2 c1 81 d820 01", TagValue{55799, TagValue{2, TagValue{1, []any{TagValue{32, int64(1)}}}}}},
}

func TestDecode(t *testing.T) {
	for _, tt := range decodings {
		in := fromHex(t, tt.in)
		got, err := Decode(tt.c, in, Limits{})
		if diff := cmp.Diff(tt.want, got, sameValue); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
	for _, tt := range encodings {
		for c, in := range map[Codec]string{Msgpack: tt.msgpack, CBOR: tt.cbor} {
			if in == "" {
				continue
			}
			got, err := Decode(c, fromHex(t, in), Limits{})
			if diff := cmp.Diff(tt.v, got, sameValue); err != nil || diff != "" {
				t.Errorf("%s in %s: %v\n%s", tt.name, c, err, diff)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		c     Codec
		in    string
		class error
		text  string
	}{
		{"empty", Msgpack, "", fault.Corrupt, "value: input ends within a value"},
		{"two values", Msgpack, "c0c0c0", fault.Corrupt, "value: 2 bytes follow the value (offset 0x1)"},
		{"bad text", Msgpack, "82 a161 92 01 81 a162 a1ff a163 c0", fault.Corrupt, "value: a/1/b: string of 1 bytes is not UTF-8 (offset 0x8)"},
		{"bad text of no length", CBOR, "a1 6161 7f61c361a9ff", fault.Corrupt, "value: a: "},
		{"bad key", Msgpack, "81 a2c328 01", fault.Corrupt, "string of 2 bytes is not UTF-8 (offset 0x1)"},
		{"bad long key", Msgpack, "81 b4" + strings.Repeat("ff", 20) + "01", fault.Corrupt, "is not UTF-8 (offset 0x1)"},
		{"bad text in a key", Msgpack, "81 91a1ff 01", fault.Corrupt, "is not UTF-8 (offset 0x2)"},
		{"truncated", Msgpack, "82 a161 93 01", fault.Corrupt, "value: a: "},
		{"truncated in a mixed map", Msgpack, "81 05 a3 62", fault.Corrupt, "value: 5: "},
		{"opcode", Msgpack, "91 c1", fault.Corrupt, "value: 0: byte 0xc1 starts no msgpack value"},
		{"deep", CBOR, strings.Repeat("81", 1001), fault.Limit, "nested deeper than 1000"},
		{"deep tags", CBOR, strings.Repeat("d820", 1001), fault.Limit, "nested deeper than 1000"},
		{"deep tags and lists", CBOR, strings.Repeat("81d820", 600), fault.Limit, "nested deeper than 1000"},
		{"codec", 7, "c0", fault.Invalid, "value: codec(7), known are msgpack and cbor"},
	} {
		_, err := Decode(tt.c, fromHex(t, tt.in), Limits{})
		if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	_, err := Decode(Msgpack, fromHex(t, "919191"), Limits{Depth: 2})
	if !errors.Is(err, fault.Limit) {
		t.Errorf("depth 3 of 2: %v", err)
	}
	deep := append(bytes.Repeat([]byte{0x91}, MaxDepth), 1)
	if _, err := Decode(Msgpack, deep, Limits{Depth: math.MaxInt}); err != nil {
		t.Errorf("the highest depth: %v", err)
	}
	if _, err := Decode(Msgpack, append([]byte{0x91}, deep...), Limits{Depth: math.MaxInt}); !errors.Is(err, fault.Limit) {
		t.Errorf("one level above the highest depth: %v", err)
	}
}

func TestDecodeNext(t *testing.T) {
	in := fromHex(t, "01 a161 92 02 03 c3")
	for _, s := range []*Scanner{NewScanner(Msgpack, in, Limits{}), NewStream(Msgpack, iotest.OneByteReader(bytes.NewReader(in)), -1, Limits{})} {
		var got []any
		for {
			v, err := DecodeNext(s)
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		if diff := cmp.Diff([]any{int64(1), "a", []any{int64(2), int64(3)}, true}, got); diff != "" {
			t.Error(diff)
		}
	}
	s := NewScanner(CBOR, fromHex(t, "9f 01 6161 ff 05"), Limits{})
	if err := s.Next(); err != nil || s.Kind != Array {
		t.Fatal(err, s.Kind)
	}
	var got []any
	for range 4 {
		v, err := DecodeNext(s)
		if err != nil {
			v = err
		}
		got = append(got, v)
	}
	if got[0] != int64(1) || got[1] != "a" || got[2] != io.EOF || got[3] != int64(5) {
		t.Errorf("%v", got)
	}
}

func TestDecodeOwnsItsMemory(t *testing.T) {
	in := fromHex(t, "82 a161 c403010203 a162 93 a3616263 d40001 81 c40101 c0")
	v, err := Decode(Msgpack, in, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	clear(in)
	want := map[string]any{"a": []byte{1, 2, 3}, "b": []any{"abc", ExtValue{0, []byte{1}},
		map[any]any{EncodedKey{Msgpack, "\xc4\x01\x01"}: nil}}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
}

// drawGo draws a value as Decode gives it.
func drawGo(t *rapid.T, c Codec, depth int) any {
	kinds := []string{"null", "bool", "int", "uint", "float", "string", "bytes", "time"}
	if depth > 0 {
		kinds = append(kinds, "list", "map", "mixed", "list", "map")
	}
	if c == CBOR {
		kinds = append(kinds, "big", "undefined", "simple")
		if depth > 0 {
			kinds = append(kinds, "tag")
		}
	} else {
		kinds = append(kinds, "ext")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "int":
		return rapid.Int64().Draw(t, "int")
	case "uint":
		return rapid.Uint64Range(1<<63, math.MaxUint64).Draw(t, "uint")
	case "float":
		return math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
	case "string":
		return rapid.String().Draw(t, "string")
	case "bytes":
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case "time":
		sec := rapid.Int64Range(-62167219200, 253402300799).Draw(t, "second") // the years 0 to 9999
		return time.Unix(sec, rapid.SampledFrom([]int64{0, 1, 5000, 999999999}).Draw(t, "nanosecond")).UTC()
	case "ext":
		return ExtValue{rapid.Int8Range(-128, -2).Draw(t, "type"), rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
	case "big":
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 9, 20).Draw(t, "big"))
		n.SetBit(n, 70, 1)
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		return n
	case "undefined":
		return UndefinedValue{}
	case "simple":
		return SimpleValue(rapid.SampledFrom([]int{0, 19, 32, 255}).Draw(t, "simple"))
	case "tag":
		return TagValue{rapid.Uint64Min(4).Draw(t, "tag"), drawGo(t, c, depth-1)}
	case "list":
		return drawList(t, c, depth)
	case "map":
		m := map[string]any{}
		for range rapid.IntRange(0, 20).Draw(t, "pairs") {
			m[rapid.String().Draw(t, "key")] = drawGo(t, c, depth-1)
		}
		return m
	case "mixed":
		m := map[any]any{int64(1): nil} // one key at least that is no string
		for range rapid.IntRange(0, 20).Draw(t, "pairs") {
			switch k := drawGo(t, c, 1).(type) {
			case nil, bool, int64, uint64, string, time.Time, UndefinedValue, SimpleValue:
				m[k] = drawGo(t, c, depth-1)
			case float64:
				if k == k {
					m[k] = drawGo(t, c, depth-1)
				}
			case []any, map[string]any, []byte:
				b, err := Append(nil, c, k)
				if err != nil {
					t.Fatal(err)
				}
				m[EncodedKey{c, string(b)}] = drawGo(t, c, depth-1)
			}
		}
		return m
	}
	return nil
}

func drawList(t *rapid.T, c Codec, depth int) any {
	list := []any{}
	for range rapid.IntRange(0, 20).Draw(t, "items") {
		list = append(list, drawGo(t, c, depth-1))
	}
	return list
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "codec")
		v := drawGo(t, c, 3)
		b, err := Append(nil, c, v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(c, b, Limits{})
		if diff := cmp.Diff(v, got, sameValue); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
		again, err := Append(nil, c, got)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("%v\n%x\n%x", err, b, again)
		}
		streamed, err := DecodeNext(NewStream(c, iotest.HalfReader(bytes.NewReader(b)), -1, Limits{}))
		if diff := cmp.Diff(v, streamed, sameValue); err != nil || diff != "" {
			t.Fatalf("from a stream: %v\n%s", err, diff)
		}
		var into any
		if err := Unmarshal(c, b, Limits{}, &into); err != nil || !cmp.Equal(v, into, sameValue) {
			t.Fatalf("unmarshalled: %v\n%s", err, cmp.Diff(v, into, sameValue))
		}
		var raw Raw
		if err := Unmarshal(c, b, Limits{}, &raw); err != nil || !bytes.Equal(raw.Data, b) {
			t.Fatalf("raw: %v, %x", err, raw.Data)
		}
	})
}

// plainGo draws a value that every codec and library has.
func plainGo(t *rapid.T, depth int) any {
	kinds := []string{"null", "bool", "int", "uint", "float", "string", "bytes"}
	if depth > 0 {
		kinds = append(kinds, "list", "map")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "int":
		return rapid.Int64().Draw(t, "int")
	case "uint":
		return rapid.Uint64Range(1<<63, math.MaxUint64).Draw(t, "uint")
	case "float":
		return rapid.Float64().Draw(t, "float")
	case "string":
		return rapid.String().Draw(t, "string")
	case "bytes":
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case "list":
		list := []any{}
		for range rapid.IntRange(0, 40).Draw(t, "items") {
			list = append(list, plainGo(t, depth-1))
		}
		return list
	case "map":
		m := map[string]any{}
		for range rapid.IntRange(0, 20).Draw(t, "pairs") {
			m[rapid.String().Draw(t, "key")] = plainGo(t, depth-1)
		}
		return m
	}
	return nil
}

// widened gives a value of another library with the integer types of Decode.
func widened(v any) any {
	switch v := v.(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = widened(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = widened(v[k])
		}
	case float32:
		return float64(v)
	case []byte:
		if v == nil {
			return []byte{}
		}
	}
	return v
}

func TestAgainstMsgp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := plainGo(t, 3)
		ours, err := Append(nil, Msgpack, v)
		if err != nil {
			t.Fatal(err)
		}
		read, rest, err := msgp.ReadIntfBytes(ours)
		if diff := cmp.Diff(v, widened(read), sameValue); err != nil || len(rest) > 0 || diff != "" {
			t.Fatalf("msgp reads ours: %v, %d left\n%s", err, len(rest), diff)
		}
		theirs, err := msgp.AppendIntf(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(Msgpack, theirs, Limits{})
		if diff := cmp.Diff(v, got, sameValue); err != nil || diff != "" {
			t.Fatalf("we read msgp's: %v\n%s", err, diff)
		}
	})
}

func TestAgainstFxamacker(t *testing.T) {
	dec, err := cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any](), MaxNestedLevels: 100, IntDec: cbor.IntDecConvertNone}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	enc, err := cbor.EncOptions{ShortestFloat: cbor.ShortestFloat16}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := plainGo(t, 3)
		ours, err := Append(nil, CBOR, v)
		if err != nil {
			t.Fatal(err)
		}
		var read any
		if err := dec.Unmarshal(ours, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, widened(read), sameValue); diff != "" {
			t.Fatalf("fxamacker reads ours:\n%s", diff)
		}
		theirs, err := enc.Marshal(v) // floats in two to nine bytes
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(CBOR, theirs, Limits{})
		if diff := cmp.Diff(v, got, sameValue); err != nil || diff != "" {
			t.Fatalf("we read fxamacker's: %v\n%s", err, diff)
		}
	})
}

// cost runs f and gives the bytes that it allocated and its time.
func cost(f func()) (uint64, time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	d := time.Since(start)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, d
}

type wide struct {
	Big  [1 << 16]int64
	More *wide
}

// A few bytes that claim much are refused, or cost little. (They take microseconds; the bound on the time is there for
// a busy machine.)
func TestHostileBytesCostLittle(t *testing.T) {
	for _, in := range []string{
		"dd7fffffff", "df7fffffff", "c6ffffffff", "dbffffffff", "c9ffffffff01", "ddffffffffc0c0c0", "94 9090 9090", "dc0005",
		"9b7fffffffffffffff", "bb7fffffffffffffff", "7b7fffffffffffffff", "5b7fffffffffffffff", "9f9f9f9f9f", "bf bf bf",
		"9a ffffffff", "9b 0fffffffffffffff", "82a161dd00", "c2 5b7fffffffffffffff", "c4 01",
	} {
		p := fromHex(t, in)
		for _, c := range []Codec{Msgpack, CBOR} {
			for name, f := range map[string]func(){
				"Decode":         func() { Decode(c, p, Limits{}) },
				"DecodeNext":     func() { DecodeNext(NewStream(c, bytes.NewReader(p), -1, Limits{})) },
				"[]any":          func() { Unmarshal(c, p, Limits{}, new([]any)) },
				"[]wide":         func() { Unmarshal(c, p, Limits{}, new([]wide)) },
				"map":            func() { Unmarshal(c, p, Limits{}, new(map[string]wide)) },
				"[]struct{}":     func() { Unmarshal(c, p, Limits{}, new([]struct{})) },
				"[]*wide":        func() { Unmarshal(c, p, Limits{}, new([]*wide)) },
				"[100]wide":      func() { Unmarshal(c, p, Limits{}, new([2]wide)) },
				"[][]map[]array": func() { Unmarshal(c, p, Limits{}, new([][]map[string][4]string)) },
			} {
				if b, d := cost(f); b > 16<<20 || d > 2*time.Second {
					t.Errorf("%s %x into %s: %d bytes, %v", c, p, name, b, d)
				}
			}
		}
	}
}

// Documents that are legal and built to be expensive stay linear: seconds would mean that one does not.
func TestExpensiveDocuments(t *testing.T) {
	const n = 200_000
	sameKeys := AppendMapHeader(nil, Msgpack, n)
	listKeys := AppendMapHeader(nil, Msgpack, n)
	empties := AppendArrayHeader(nil, Msgpack, n)
	for i := range n {
		sameKeys = append(sameKeys, 0xa0, 0xc0)
		listKeys = append(AppendInt(append(listKeys, 0x91), Msgpack, int64(i)), 0xc0)
		empties = append(empties, 0x80)
	}
	nested := []byte{}
	for range 990 {
		nested = append(nested, 0x82, 0xa0, 0xc0, 0xa1, 'a')
	}
	nested = append(nested, 0xc0)
	keys := []byte{}
	for range 490 {
		keys = append(keys, 0x81, 0x81, 0x01)
	}
	for name, p := range map[string][]byte{"same keys": sameKeys, "list keys": listKeys, "empty maps": empties, "nested": nested, "keys": keys} {
		b, d := cost(func() { Decode(Msgpack, p, Limits{}) })
		if b > 400*uint64(len(p))+1<<20 || d > 20*time.Second {
			t.Errorf("%s: %d bytes of memory for %d of input, %v", name, b, len(p), d)
		}
	}
}
