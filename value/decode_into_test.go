package value

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

func TestUnmarshal(t *testing.T) {
	seven := 7
	pseven := &seven
	for _, tt := range []struct {
		name string
		in   any // encoded by Append, in CBOR when it cannot be msgpack
		want any // a value of the type to decode into
	}{
		{"bool", true, true},
		{"int8", -128, int8(-128)},
		{"uint8", 255, uint8(255)},
		{"uint64", uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{"int of a float", 3.0, 3},
		{"uint of a float", 1e18, uint64(1e18)},
		{"float of an int", int64(1 << 53), float64(1 << 53)},
		{"float of a big", bigOf("36893488147419103232"), 36893488147419103232.0},
		{"float32", 0.5, float32(0.5)},
		{"float32 of an int", -3, float32(-3)},
		{"inf in a float32", math.Inf(-1), float32(math.Inf(-1))},
		{"string", "a", "a"},
		{"named string", "a", named("a")},
		{"bytes", []byte{1}, []byte{1}},
		{"bytes of a list", []int{1, 255}, []byte{1, 255}},
		{"byte array", []byte{1, 2}, [2]byte{1, 2}},
		{"byte array of a list", []int{1, 2}, [2]byte{1, 2}},
		{"array", []string{"a", "b"}, [2]string{"a", "b"}},
		{"slices", [][]int{{1}, {}, nil}, [][]int{{1}, {}, nil}},
		{"pointers", []any{7, nil}, []*int{&seven, nil}},
		{"pointer to a pointer", 7, &pseven},
		{"map", map[string]int{"a": 1}, map[string]int{"a": 1}},
		{"map of lists", map[string][]int{"a": {1}, "b": {2, 3}}, map[string][]int{"a": {1}, "b": {2, 3}}},
		{"map of pointers", map[int]*inner{1: {1, 2}, 2: {3, 4}}, map[int]*inner{1: {1, 2}, 2: {3, 4}}},
		{"map of any", map[any]any{1: "a", "b": []any{2}}, map[any]any{int64(1): "a", "b": []any{int64(2)}}},
		{"map of any, bytes as a key", map[any]any{EncodedKey{Msgpack, "\xc4\x00"}: 1}, map[any]int{EncodedKey{Msgpack, "\xc4\x00"}: 1}},
		{"map of arrays", map[[2]int]bool{{1, 2}: true}, map[[2]int]bool{{1, 2}: true}},
		{"map of structs", map[inner]bool{{1, 2}: true}, map[inner]bool{{1, 2}: true}},
		{"map of times", map[time.Time]int{time.Unix(5, 0).UTC(): 1}, map[time.Time]int{time.Unix(5, 0).UTC(): 1}},
		{"any", map[string]any{"a": []any{1}}, any(map[string]any{"a": []any{int64(1)}})},
		{"time", time.Unix(5, 6), time.Unix(5, 6).UTC()},
		{"big", bigOf("36893488147419103232"), *bigOf("36893488147419103232")},
		{"big of a float", 1e30, *bigOf("1000000000000000019884624838656")},
		{"small big", -5, *big.NewInt(-5)},
		{"number", -12, Number("-12")},
		{"number, unsigned", uint64(math.MaxUint64), Number("18446744073709551615")},
		{"number, big", bigOf("-36893488147419103232"), Number("-36893488147419103232")},
		{"number, float", 0.1, Number("0.1")},
		{"number, integral float", 1.0, Number("1.0")},
		{"number, -0.0", math.Copysign(0, -1), Number("-0.0")},
		{"number, large float", 1e100, Number("1e+100")},
		{"number, shortest float", 1152921504606846976.0, Number("1152921504606847000.0")},
		{"raw", []any{1, "a"}, Raw{Msgpack, []byte{0x92, 1, 0xa1, 'a'}}},
		{"raw fields", map[string]any{"a": []any{1}}, map[string]Raw{"a": {Msgpack, []byte{0x91, 1}}}},
		{"ext", ExtValue{3, []byte{1}}, ExtValue{3, []byte{1}}},
		{"tag", TagValue{32, "a"}, TagValue{32, "a"}},
		{"tag passed over", TagValue{258, []any{1, 2}}, []int{1, 2}},
		{"tags passed over", TagValue{55799, TagValue{32, "a"}}, "a"},
		{"null under a tag", []any{TagValue{32, nil}}, [][]int{nil}},
		{"undefined", UndefinedValue{}, UndefinedValue{}},
		{"simple", SimpleValue(16), SimpleValue(16)},
		{"ordered map", OrderedMap{{"b", 1}, {"a", []any{2}}, {3, nil}}, OrderedMap{{"b", int64(1)}, {"a", []any{int64(2)}}, {int64(3), nil}}},
		{"ordered maps", []any{OrderedMap{}, map[string]any{}}, []OrderedMap{{}, {}}},
		{"struct", sample{Name: "n", Age: 3, Ratio: 0.5, inner: inner{1, 2}, Deep: &Deep{"z", "x"}, List: []int{1, 2},
			Table: map[string]int{"a": 1}, Ptr: &inner{3, 4}, Any: "any", When: time.Unix(9, 0)},
			sample{Name: "n", Age: 3, Ratio: 0.5, inner: inner{1, 2}, Deep: &Deep{"z", "x"}, List: []int{1, 2},
				Table: map[string]int{"a": 1}, Ptr: &inner{3, 4}, Any: "any", When: time.Unix(9, 0).UTC()}},
		{"unknown fields", map[string]any{"name": "n", "unknown": []any{map[string]any{"x": 1}}, "NAME": "no"}, sample{Name: "n"}},
		{"keys of other types", map[any]any{1: 2, "name": "n", EncodedKey{Msgpack, "\x92\x01\x02"}: []any{}}, sample{Name: "n"}},
		{"recursive", loop{&loop{&loop{}}}, loop{&loop{&loop{}}}},
	} {
		c := Msgpack
		b, err := Append(nil, c, tt.in)
		if err != nil {
			c = CBOR
			if b, err = Append(nil, c, tt.in); err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
		}
		typ := reflect.TypeOf(tt.want)
		got := reflect.New(typ)
		if tt.name == "any" {
			got = reflect.ValueOf(new(any))
		}
		if err := Unmarshal(c, b, Limits{}, got.Interface()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		opts := cmp.Options{sameValue, cmp.AllowUnexported(sample{}), cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 })}
		if diff := cmp.Diff(tt.want, got.Elem().Interface(), opts); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		in    any
		dst   any
		class error
		text  string
	}{
		{"range", 300, new(uint8), fault.Invalid, "value: integer 300 into uint8 (offset 0x0)"},
		{"range, negative", -1, new(uint), fault.Invalid, "value: integer -1 into uint"},
		{"range, int64", uint64(1 << 63), new(int64), fault.Invalid, "value: integer 9223372036854775808 into int64"},
		{"fraction", map[string]any{"runs": []any{map[string]any{"x": 3.5}}}, new(struct {
			Runs []inner `spile:"runs"`
		}), fault.Invalid, "value: runs/0/x: float 3.5 into int (offset 0xa)"},
		{"inexact", int64(1<<53 + 1), new(float64), fault.Invalid, "value: integer 9007199254740993 into float64"},
		{"inexact", 0.1, new(float32), fault.Invalid, "value: float 0.1 into float32"},
		{"2^63 as a float", 0x1p63, new(int64), fault.Invalid, "value: float 9.223372036854776e+18 into int64"},
		{"inf", math.Inf(1), new(int), fault.Invalid, "value: float +Inf into int"},
		{"nan", math.NaN(), new(Number), fault.Invalid, "value: float NaN into value.Number"},
		{"string", []any{1, "text"}, new([]int), fault.Invalid, `value: 1: string "text" into int`},
		{"string into bytes", "text", new([]byte), fault.Invalid, `value: string "text" into []uint8`},
		{"bytes into a string", []byte{1}, new(string), fault.Invalid, "value: 1 bytes into string"},
		{"bytes into an array", []byte{1}, new([2]byte), fault.Invalid, "value: 1 bytes into [2]uint8"},
		{"list", []any{1}, new(inner), fault.Invalid, "value: list into value.inner"},
		{"map", map[string]any{"a": map[string]any{}}, new(map[string]int), fault.Invalid, "value: a: map into int"},
		{"few items", []any{1}, new([2]int), fault.Invalid, "value: list of 1 items into [2]int"},
		{"many items", []any{[]any{1, 2, 3}}, new([][2]int), fault.Invalid, "value: 0/1: more than 2 items into [2]int"},
		{"time", 5, new(time.Time), fault.Invalid, "value: integer 5 into time.Time"},
		{"ext", ExtValue{5, []byte{1}}, new(time.Time), fault.Invalid, "value: ext of type 5 into time.Time"},
		{"method", 5, new(error), fault.Invalid, "value: integer 5 into error"},
		{"function", map[string]any{"F": 1}, new(struct{ F func() }), fault.Invalid, "value: F: integer 1 into func()"},
		{"key", map[string]any{"a": 1}, new(map[int]int), fault.Invalid, `value: string "a" into int`},
		{"key that cannot be compared", map[any]any{EncodedKey{Msgpack, "\x91\x90"}: 1}, new(map[[1]any]int), fault.Invalid, "key of type [1]interface {}, which Go cannot compare"},
		{"no pointer", 5, 5, fault.Invalid, "value: unmarshal into int, which is no pointer"},
		{"nil pointer", 5, (*int)(nil), fault.Invalid, "value: unmarshal into *int, which is no pointer to a value"},
		{"nil", 5, nil, fault.Invalid, "value: unmarshal into <nil>"},
		{"pointer type of itself", 5, new(loopPointer), fault.Invalid, "pointers without an end"},
		{"seq", []any{}, new(Seq), fault.Invalid, "value: list into value.Seq"},
	} {
		b, err := Append(nil, Msgpack, tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		err = Unmarshal(Msgpack, b, Limits{}, tt.dst)
		if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.text)
		}
	}
	for in, text := range map[string]string{
		"":               "value: input ends within a value",
		"91":             "value: input ends within a list",
		"81a178":         "input ends",
		"81a178 01 02":   "value: 1 bytes follow the value",
		"81a178 a1ff":    `value: x: string "\xff" into int`,
		"81a15a d900 00": "follow",
	} {
		if err := Unmarshal(Msgpack, fromHex(t, in), Limits{}, new(inner)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %s", in, err, text)
		}
	}
	if err := Unmarshal(Msgpack, fromHex(t, "91a1ff"), Limits{}, new([]string)); !errors.Is(err, fault.Corrupt) {
		t.Errorf("bad text: %v", err)
	}
}

func TestUnmarshalKeeps(t *testing.T) {
	v := sample{Name: "old", Age: 7, List: make([]int, 5, 10), Table: map[string]int{"old": 1}, Ptr: &inner{X: 9}, Any: 1}
	list := v.List
	b, err := Append(nil, CBOR, map[string]any{"List": []any{1, 2}, "table": map[string]any{"new": 2}, "Ptr": map[string]any{"Y": 5}, "name": nil, "Any": nil})
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(CBOR, b, Limits{}, &v); err != nil {
		t.Fatal(err)
	}
	want := sample{Name: "old", Age: 7, List: []int{1, 2}, Table: map[string]int{"old": 1, "new": 2}, Ptr: &inner{X: 9, Y: 5}}
	if diff := cmp.Diff(want, v, cmp.AllowUnexported(sample{})); diff != "" {
		t.Error(diff)
	}
	if list[1] != 2 {
		t.Error("the memory of the slice is not used again")
	}
	null, _ := Append(nil, CBOR, map[string]any{"List": nil, "table": nil, "Ptr": nil, "age": nil})
	if err := Unmarshal(CBOR, null, Limits{}, &v); err != nil || v.List != nil || v.Table != nil || v.Ptr != nil || v.Age != 7 {
		t.Errorf("%v, %+v", err, v)
	}
}

type Left struct {
	Same, Only int
	Both       int `spile:"both"`
}

type Right struct {
	Same int
	Both int
}

type cross struct {
	Left
	*Right
	Up *cross `json:"up,omitempty"`
}

func TestEmbedded(t *testing.T) {
	v := cross{Left: Left{Same: 1, Only: 2, Both: 3}, Right: &Right{Same: 4, Both: 5}}
	b, err := Append(nil, Msgpack, v)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := Decode(Msgpack, b, Limits{})
	if diff := cmp.Diff(map[string]any{"Only": int64(2), "both": int64(3), "Both": int64(5)}, got); diff != "" {
		t.Error(diff)
	}
	var back cross
	if err := Unmarshal(Msgpack, b, Limits{}, &back); err != nil || back.Only != 2 || back.Right == nil || back.Right.Both != 5 {
		t.Errorf("%v, %+v", err, back)
	}
}

// everything has a field of each class.
type everything struct {
	B   bool
	I   int64
	I8  int8
	U   uint64
	F   float64
	S   string
	Bin []byte
	Arr [3]byte
	L   []string
	M   map[string]uint16
	MI  map[int32]string
	P   *float64
	T   time.Time
	Any any
	In  struct{ A, B []int }
	Us  []everything
}

func TestStructRoundTrip(t *testing.T) {
	var draw func(t *rapid.T, depth int) everything
	draw = func(t *rapid.T, depth int) everything {
		v := everything{
			B:   rapid.Bool().Draw(t, "B"),
			I:   rapid.Int64().Draw(t, "I"),
			I8:  rapid.Int8().Draw(t, "I8"),
			U:   rapid.Uint64().Draw(t, "U"),
			F:   rapid.Float64().Draw(t, "F"),
			S:   rapid.String().Draw(t, "S"),
			Bin: rapid.SliceOf(rapid.Byte()).Draw(t, "Bin"),
			L:   rapid.SliceOf(rapid.String()).Draw(t, "L"),
			M:   rapid.MapOf(rapid.String(), rapid.Uint16()).Draw(t, "M"),
			MI:  rapid.MapOf(rapid.Int32(), rapid.String()).Draw(t, "MI"),
			P:   rapid.Ptr(rapid.Float64(), true).Draw(t, "P"),
			T:   time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "T"), 7).UTC(),
			Any: plainGo(t, 1),
		}
		v.In.A = rapid.SliceOf(rapid.Int()).Draw(t, "A")
		copy(v.Arr[:], v.Bin)
		for depth > 0 && rapid.Bool().Draw(t, "more") {
			v.Us = append(v.Us, draw(t, depth-1))
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "codec")
		v := draw(t, 2)
		b, err := Append(nil, c, v)
		if err != nil {
			t.Fatal(err)
		}
		var got everything
		if err := Unmarshal(c, b, Limits{}, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, got, sameValue); diff != "" {
			t.Fatal(diff)
		}
	})
}
