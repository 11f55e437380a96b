package msglc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// sameValue compares decoded values: floats by their bits, any NaN like any other. (go-cmp takes exponential time in
// the depth of nested slices.)
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && (math.Float64bits(a) == math.Float64bits(b) || a != a && b != b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case map[any]any:
		b, ok := b.(map[any]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case value.TagValue:
		b, ok := b.(value.TagValue)
		return ok && a.Number == b.Number && sameValue(a.Content, b.Content)
	}
	return reflect.DeepEqual(a, b)
}

func open(t testing.TB, file []byte, o *Options) *Reader {
	t.Helper()
	r, err := Open(t.Context(), source.Memory("test.msg", file), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func dumps(t testing.TB, v any, o *WriteOptions) []byte {
	t.Helper()
	file, err := Dumps(v, o)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// drawValue makes a value whose containers are of all sizes around small thresholds.
func drawValue(t *rapid.T, depth int) any {
	kinds := 7
	if depth > 0 {
		kinds = 11
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return rapid.Int64().Draw(t, "int")
	case 4:
		return rapid.Float64().Draw(t, "float")
	case 5:
		return rapid.StringN(0, 30, 60).Draw(t, "string")
	case 6:
		return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
	case 7, 8:
		n := rapid.IntRange(0, 40).Draw(t, "numbers")
		list := make([]any, n)
		for i := range list {
			list[i] = rapid.Int64Range(-300, 70000).Draw(t, "number")
		}
		return list
	case 9, 10:
		list := []any{}
		for range rapid.IntRange(0, 6).Draw(t, "items") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	m := value.OrderedMap{}
	for i := range rapid.IntRange(0, 6).Draw(t, "pairs") {
		var key any = fmt.Sprintf("%s%d", rapid.StringN(0, 5, 12).Draw(t, "key"), i)
		if rapid.IntRange(0, 9).Draw(t, "key kind") == 0 {
			key = int64(i)
		}
		m = append(m, value.Pair{Key: key, Value: drawValue(t, depth-1)})
	}
	return m
}

func drawWriteOptions(t *rapid.T) *WriteOptions {
	threshold := rapid.Int64Range(1, 200).Draw(t, "threshold")
	return &WriteOptions{
		Codec:         rapid.SampledFrom([]value.Codec{value.Msgpack, value.CBOR}).Draw(t, "codec"),
		Threshold:     threshold,
		Trivial:       rapid.Int64Range(1, threshold).Draw(t, "trivial"),
		NumericArrays: rapid.SampledFrom([]NumericRule{PlainBlocks, FloatBlocks, FloatAndIntBlocks}).Draw(t, "numeric"),
	}
}

// TestEveryPathEqualsPlainDecode writes random documents at random thresholds and reads every node of them by its path,
// cached and not, in a random order, and compares with the payload decoded as a whole.
func TestEveryPathEqualsPlainDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 4)
		o := drawWriteOptions(t)
		file, err := Dumps(v, o)
		if err != nil {
			t.Fatal(err)
		}
		reader := &Options{CacheBytes: rapid.SampledFrom([]int64{-1, 0, 4096}).Draw(t, "cache")}
		reader.NoFastLoading = rapid.Bool().Draw(t, "no fast loading")
		r, err := Open(context.Background(), source.Memory("test.msg", file), reader)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := io.ReadAll(r.ProtocolRawData(context.Background()))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := OpenRaw(context.Background(), source.Memory("raw", payload), o.Codec, reader)
		if err != nil {
			t.Fatal(err)
		}
		compareNodes(t, r.Root(), raw.Root(), nil, r, raw)
		r.Verify(context.Background(), &VerifyOptions{Deep: true}, func(f Finding) { t.Errorf("verify: %v", f.Err) })
		whole, err := io.ReadAll(r.RawData(context.Background()))
		if err != nil || !bytes.Equal(whole, file) {
			t.Fatalf("raw data differs from the file, error %v", err)
		}
	})
}

// compareNodes walks two documents that must be equal, one by its table of contents and one by scanning.
func compareNodes(t *rapid.T, a, b Node, path Path, ra, rb *Reader) {
	ctx := context.Background()
	found, err := ra.Find(ctx, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	again, err := ParsePath(path.String())
	if err != nil {
		t.Fatal(err)
	}
	if same, err := ra.Find(ctx, again); err != nil || same.e.start != found.e.start || same.e.end != found.e.end {
		t.Fatalf("%q leads elsewhere than %v: %v", path.String(), path, err)
	}
	want, err := b.Value(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []Node{a, found} {
		got, err := n.Value(ctx)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !sameValue(want, got) {
			t.Fatalf("%s: %v, want %v", path, got, want)
		}
		rawA, errA := n.Raw(ctx)
		rawB, errB := b.Raw(ctx)
		if errA != nil || errB != nil || !bytes.Equal(rawA.Data, rawB.Data) {
			t.Fatalf("%s: raw % x (%v), plain % x (%v)", path, rawA.Data, errA, rawB.Data, errB)
		}
		var jsonA, jsonB bytes.Buffer
		o := &value.JSONOptions{NonFinite: value.NonFiniteString, Keys: value.KeysPairs}
		if err := n.WriteJSON(ctx, &jsonA, o, nil); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := b.WriteJSON(ctx, &jsonB, o, nil); err != nil {
			t.Fatal(err)
		}
		if jsonA.String() != jsonB.String() {
			t.Fatalf("%s: JSON %s, plain %s", path, &jsonA, &jsonB)
		}
	}
	kind, err := b.Kind(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Kind(ctx); err != nil || got != kind {
		t.Fatalf("%s: kind %v, want %v, error %v", path, got, kind, err)
	}
	if kind != value.Array && kind != value.Map {
		return
	}
	length, _ := b.Len(ctx)
	if got, err := a.Len(ctx); err != nil || got != length {
		t.Fatalf("%s: length %d, want %d, error %v", path, got, length, err)
	}
	var as, bs []Child
	for c, err := range a.Children(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		as = append(as, c)
	}
	for c, err := range b.Children(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		bs = append(bs, c)
	}
	if int64(len(as)) != length || int64(len(bs)) != length {
		t.Fatalf("%s: %d and %d children, want %d", path, len(as), len(bs), length)
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(as)) {
		if !bytes.Equal(as[i].Key.Data, bs[i].Key.Data) {
			t.Fatalf("%s: key % x, want % x", path, as[i].Key.Data, bs[i].Key.Data)
		}
		compareNodes(t, as[i].Node, bs[i].Node, append(path[:len(path):len(path)], bs[i].Step()), ra, rb)
	}
}

// TestManyGoroutines reads random leaves of one reader from 64 goroutines, with the cache on, tiny and off.
func TestManyGoroutines(t *testing.T) {
	rows := make([]any, 300)
	for i := range rows {
		xs := make([]any, 40)
		for k := range xs {
			xs[k] = int64(i * k)
		}
		rows[i] = value.OrderedMap{{Key: "id", Value: int64(i)}, {Key: "name", Value: strings.Repeat("n", i%50)}, {Key: "xs", Value: xs}}
	}
	file := dumps(t, value.OrderedMap{{Key: "rows", Value: rows}}, &WriteOptions{Threshold: 64, Trivial: 8})
	for _, cache := range []int64{0, 1 << 14, -1} {
		r := open(t, file, &Options{CacheBytes: cache})
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(g), 7))
				for range 100 {
					i, k := rnd.IntN(300), rnd.IntN(40)
					n, err := r.Find(t.Context(), SplitPath(fmt.Sprintf("rows/%d/xs/%d", i, k)))
					if err != nil {
						t.Error(err)
						return
					}
					if v, err := n.Value(t.Context()); err != nil || v != int64(i*k) {
						t.Errorf("rows/%d/xs/%d is %v, want %d, error %v", i, k, v, i*k, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestLazy pins what is read: one value out of a large document takes the prefix, a page of the table and the value.
func TestLazy(t *testing.T) {
	rows := make([]any, 20000)
	for i := range rows {
		rows[i] = value.OrderedMap{{Key: "id", Value: int64(i)}, {Key: "text", Value: strings.Repeat("x", 200)}}
	}
	file := dumps(t, value.OrderedMap{{Key: "rows", Value: rows}, {Key: "last", Value: "here"}}, nil)
	meter := &source.Meter{}
	r, err := Open(t.Context(), meter.Object(source.Memory("big.msg", file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.eager {
		t.Fatalf("a table of %d bytes was read whole", r.h.tocSize)
	}
	n, err := r.Find(t.Context(), SplitPath("rows/7/id"))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := n.Value(t.Context()); err != nil || v != int64(7) {
		t.Fatalf("%v, %v", v, err)
	}
	if got := meter.Receipt(); got.Requests > 3 || got.Bytes > 4<<10+tocPageSize+300 {
		t.Errorf("one early value took %d requests and %d bytes", got.Requests, got.Bytes)
	}
	before := meter.Receipt()
	if n, err = r.Find(t.Context(), SplitPath("last")); err != nil {
		t.Fatal(err)
	}
	if v, err := n.Value(t.Context()); err != nil || v != "here" {
		t.Fatalf("%v, %v", v, err)
	}
	if got := meter.Receipt(); got.Bytes-before.Bytes > r.h.tocSize+10 {
		t.Errorf("the last key took %d bytes, the table has %d", got.Bytes-before.Bytes, r.h.tocSize)
	}
	// Now the places are known: another value of the same list costs the value alone.
	before = meter.Receipt()
	if _, err := r.Find(t.Context(), SplitPath("rows/19999/id")); err != nil {
		t.Fatal(err)
	}
	between := meter.Receipt()
	if _, err := r.Find(t.Context(), SplitPath("rows/18000/id")); err != nil {
		t.Fatal(err)
	}
	if got := meter.Receipt(); got.Requests-between.Requests > 1 {
		t.Errorf("the second row took %d requests", got.Requests-between.Requests)
	}
	_ = before
}

// TestFastLoading pins the heuristic: with few children read the whole comes in one read, with many child by child.
func TestFastLoading(t *testing.T) {
	rows := make([]any, 10)
	for i := range rows {
		rows[i] = strings.Repeat("y", 1000)
	}
	file := dumps(t, rows, &WriteOptions{Threshold: 100})
	for _, test := range []struct {
		name  string
		o     Options
		read  int // children read before
		reads int64
	}{
		{"none read", Options{}, 0, 1},
		{"two of ten", Options{}, 2, 1},
		{"three of ten", Options{}, 3, 7},
		{"three of ten, a higher share", Options{FastLoadingThreshold: 0.5}, 3, 1},
		{"off", Options{NoFastLoading: true}, 0, 10},
		{"off, some read", Options{NoFastLoading: true}, 4, 6},
		{"not cached", Options{CacheBytes: -1}, 9, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := open(t, file, &test.o)
			r.head = nil // the file is so small that it came with the first read
			for i := range test.read {
				n, err := r.Root().Index(t.Context(), int64(i))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := n.Value(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			before := r.Stats()
			v, err := r.Root().Value(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(rows), v); diff != "" {
				t.Error(diff)
			}
			if got := r.Stats().Reads - before.Reads; got != test.reads {
				t.Errorf("%d reads, want %d", got, test.reads)
			}
		})
	}
}

func TestSlices(t *testing.T) {
	list := make([]any, 200)
	for i := range list {
		list[i] = int64(i)
	}
	for _, threshold := range []int64{16, 100000} {
		file := dumps(t, value.OrderedMap{{Key: "l", Value: list}, {Key: "e", Value: []any{}}}, &WriteOptions{Threshold: threshold})
		r := open(t, file, nil)
		for path, want := range map[string][]int64{
			"l/1:3": {1, 2}, "l/0:2:10": {0, 2, 4, 6, 8}, "l/198:": {198, 199}, "l/:2": {0, 1}, "l/300:": nil,
			"l/:-198": {0, 1}, "l/-2:": {198, 199}, "l/5:-1:2": {5, 4, 3}, "l/99999999999999999999:": nil,
			"l/24:2:": nil, "e/:": nil, "e/1:": nil, "l/:50:": {0, 50, 100, 150},
		} {
			if path == "l/24:2:" {
				for i := int64(24); i < 200; i += 2 {
					want = append(want, i)
				}
			}
			n, err := r.Find(t.Context(), SplitPath(path))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			v, err := n.Value(t.Context())
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			got := []int64(nil)
			for _, x := range v.([]any) {
				got = append(got, x.(int64))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
		if n, err := r.Find(t.Context(), SplitPath("l/10:20/3")); err != nil || n.e.end-n.e.start != 1 {
			t.Errorf("item of a slice: %v", err)
		}
		for path, class := range map[string]error{
			"l/200": fault.NotFound, "l/-201": fault.NotFound, "e/0": fault.NotFound, "e/-1": fault.NotFound, "x": fault.NotFound,
			"l/x": fault.Invalid, "l/1:0:5": fault.Invalid, "l/1:2:3:4": fault.Invalid, "l/0/1": fault.Invalid, "l/1_0": fault.Invalid, "l/ 1": fault.Invalid,
		} {
			if _, err := r.Find(t.Context(), SplitPath(path)); !errors.Is(err, class) {
				t.Errorf("%s: error %v, want class %v", path, err, class)
			} else if !strings.Contains(err.Error(), "test.msg: "+path+": ") {
				t.Errorf("error %q does not name the file and the path", err)
			}
		}
	}
}

// TestSliceForms takes slices of lists in all forms, forwards and backwards, and slices of slices, and compares them
// with Go's.
func TestSliceForms(t *testing.T) {
	long, numbers := make([]any, 150), make([]any, 150)
	for i := range long {
		long[i], numbers[i] = strings.Repeat("z", 30)+fmt.Sprint(i), int64(i*1000)
	}
	for name, list := range map[string][]any{"table": long, "blocks": numbers} {
		for _, threshold := range []int64{32, 1 << 20} { // the second makes the list a leaf
			r := open(t, dumps(t, list, &WriteOptions{Threshold: threshold, Trivial: 8}), nil)
			for _, s := range [][3]int64{{0, 150, 1}, {10, 20, 1}, {149, 150, 1}, {3, 140, 7}, {140, 3, -1}, {149, -200, -13}, {5, 5, 1}, {100, 101, 50}} {
				want := []any{}
				for i := s[0]; s[2] > 0 && i < s[1] || s[2] < 0 && i > s[1] && i >= 0; i += s[2] {
					want = append(want, list[i])
				}
				n, err := r.Root().Slice(t.Context(), s[0], s[1], s[2])
				if err != nil {
					t.Fatal(err)
				}
				if v, err := n.Value(t.Context()); err != nil || !sameValue(v, want) {
					t.Errorf("%s %v: %v, want %v, error %v", name, s, v, want, err)
				}
				if len(want) < 3 {
					continue
				}
				for _, step := range []int64{1, 2, -1} {
					again := []any{}
					for i := int64(1); step > 0 && i < int64(len(want)); i += step {
						again = append(again, want[i])
					}
					for i := int64(len(want) - 1); step < 0 && i >= 1; i-- {
						again = append(again, want[i])
					}
					from, to := int64(1), int64(len(want))
					if step < 0 {
						from, to = to-1, 0
					}
					m, err := n.Slice(t.Context(), from, to, step)
					if err != nil {
						t.Fatal(err)
					}
					if v, err := m.Value(t.Context()); err != nil || !sameValue(v, again) {
						t.Errorf("%s %v, then step %d: %v, want %v, error %v", name, s, step, v, again, err)
					}
				}
			}
		}
	}
}
