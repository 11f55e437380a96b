package value

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"reflect"
	"testing"
)

// addSeeds gives a fuzzer the tables of the tests.
func addSeeds(f *testing.F) {
	for _, tt := range encodings {
		for c, in := range map[Codec]string{Msgpack: tt.msgpack, CBOR: tt.cbor} {
			if b, err := hex.DecodeString(in); err == nil && len(b) > 0 {
				f.Add(c == CBOR, b)
			}
		}
	}
	for _, tt := range decodings {
		f.Add(tt.c == CBOR, fromHex(f, tt.in))
	}
	if b, err := Append(nil, Msgpack, everything{S: "s", L: []string{"a"}, Us: []everything{{}}}); err == nil {
		f.Add(false, b)
	}
}

// same compares decoded values. (cmp takes exponential time on nested lists.)
func same(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameMap(a, b)
	case map[any]any:
		b, ok := b.(map[any]any)
		return ok && sameMap(a, b)
	case TagValue:
		b, ok := b.(TagValue)
		return ok && a.Number == b.Number && same(a.Content, b.Content)
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || a != a && b != b)
	case *big.Int:
		b, ok := b.(*big.Int)
		return ok && a.Cmp(b) == 0
	}
	return reflect.DeepEqual(a, b)
}

func sameMap[K comparable](a, b map[K]any) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || !same(v, w) {
			return false
		}
	}
	return len(a) == len(b)
}

func codecOf(isCBOR bool) Codec {
	if isCBOR {
		return CBOR
	}
	return Msgpack
}

// memoryOf bounds what decoding may allocate for an input of n bytes: a map of one pair, of three bytes, takes some 400
// bytes; the rest is the decoder itself.
func memoryOf(n int) uint64 { return 1<<20 + 1000*uint64(n) }

// What Decode accepts can be written, and reads back the same.
func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, isCBOR bool, in []byte) {
		c := codecOf(isCBOR)
		var v any
		var err error
		if used, _ := cost(func() { v, err = Decode(c, in, Limits{}) }); used > memoryOf(len(in)) {
			t.Fatalf("%d bytes of memory for %d of input", used, len(in))
		}
		var streamed any
		var err2 error
		used, _ := cost(func() { streamed, err2 = DecodeNext(NewStream(c, bytes.NewReader(in), -1, Limits{})) })
		if used > memoryOf(len(in)) {
			t.Fatalf("from a stream: %d bytes of memory for %d of input", used, len(in))
		}
		if err != nil {
			return
		}
		if err2 != nil || !same(v, streamed) {
			t.Fatalf("from a stream: %v\n%#v\n%#v", err2, v, streamed)
		}
		b, err := Append(nil, c, v)
		if err != nil {
			t.Fatalf("cannot be written: %v", err)
		}
		again, err := Decode(c, b, Limits{})
		if err != nil || !same(v, again) {
			t.Fatalf("%v\n%#v\n%#v", err, v, again)
		}
		var w bytes.Buffer
		if err := Write(&w, c, v); err != nil || !bytes.Equal(w.Bytes(), b) {
			t.Fatalf("written: %v, %x, appended %x", err, w.Bytes(), b)
		}
	})
}

// What Unmarshal puts into a struct can be written, and reads back the same.
func FuzzUnmarshal(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, isCBOR bool, in []byte) {
		c := codecOf(isCBOR)
		for _, fresh := range []func() any{
			func() any { return new(everything) },
			func() any { return new(map[any][]everything) },
			func() any { return new([]map[string]Number) },
			func() any { return new([]*inner) },
			func() any { return new(map[[2]int8]Raw) },
			func() any { return new(OrderedMap) },
			func() any { return new([]any) },
		} {
			v := fresh()
			var err error
			if used, _ := cost(func() { err = Unmarshal(c, in, Limits{}, v) }); used > memoryOf(len(in)) {
				t.Fatalf("%T: %d bytes of memory for %d of input", v, used, len(in))
			}
			if err != nil {
				continue
			}
			if _, ok := v.(*OrderedMap); ok {
				continue // it may hold double keys
			}
			b, err := Append(nil, c, v)
			if err != nil {
				t.Fatalf("%T cannot be written: %v", v, err)
			}
			again := fresh()
			if err := Unmarshal(c, b, Limits{}, again); err != nil {
				t.Fatalf("%T: %v", v, err)
			}
			if b2, err := Append(nil, c, again); err != nil || !bytes.Equal(b, b2) {
				t.Fatalf("%T: %v\n%x\n%x", v, err, b, b2)
			}
		}
	})
}
