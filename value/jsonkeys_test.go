package value

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
)

// smallKeyLimits makes every way through the tracker short: 40 keys are kept, further ones go to the filter.
var smallKeyLimits = keyLimits{exact: 40 * (entrySize + 8), filtered: 40 * (entrySize + 8), filter: 1 << 10, suspects: 100}

// keyMap is a msgpack map of n keys, k0 to kn-1, with values that hold maps of their own; again is a key at its end.
func keyMap(n int, again string) []byte {
	count := n
	if again != "" {
		count++
	}
	b := AppendArrayHeader(nil, Msgpack, 2)
	b = AppendMapHeader(b, Msgpack, count)
	for i := range n {
		b = AppendString(b, Msgpack, fmt.Sprint("k", i))
		b = AppendMapHeader(b, Msgpack, 2)
		b = AppendUint(AppendString(b, Msgpack, "k0"), Msgpack, uint64(i))
		b = AppendUint(AppendString(b, Msgpack, "k1"), Msgpack, 1)
	}
	if again != "" {
		b = AppendNull(AppendString(b, Msgpack, again), Msgpack)
	}
	return AppendNull(b, Msgpack)
}

func TestManyKeys(t *testing.T) {
	for _, n := range []int{1, 32, 33, 64, 65, 1000, 18000} {
		for _, again := range []string{"", "k0", "k31", "k63", "k64", "k999", "k17998", "k18000"} {
			if n > 10000 && again != "" && len(again) < 5 { // those take time
				continue
			}
			data := keyMap(n, again)
			var i int
			double := false
			if again != "" {
				fmt.Sscanf(again, "k%d", &i)
				double = i < n
			}
			for _, limits := range []keyLimits{defaultKeyLimits, smallKeyLimits} {
				check := func(how string, err error) {
					t.Helper()
					switch {
					case !double && err != nil:
						t.Errorf("%s: %d keys, %q again: %v", how, n, again, err)
					case double && (!errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), `key "`+again+`" `)):
						t.Errorf("%s: %d keys, %q again: %v", how, n, again, err)
					case double:
						var e *fault.Error
						if errors.As(err, &e); e.Offset != int64(len(data)-2-len(again)-1) {
							t.Errorf("%s: %d keys, %q again: %v, want offset %#x", how, n, again, err, len(data)-2-len(again)-1)
						}
					}
				}
				w := NewJSONWriter(io.Discard, Limits{}, nil, nil)
				w.keys.limits = limits
				check("memory", w.WriteValue(NewScanner(Msgpack, data, Limits{})))
				w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
				w.keys.limits = limits
				check("section", w.WriteSection(Msgpack, bytes.NewReader(data), 0, int64(len(data))))
				if n > 10000 && len(data) <= smallSection {
					t.Fatal("that section is read in one piece")
				}
				w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
				w.keys.limits = limits
				s := NewScanner(Msgpack, data, Limits{})
				s.Next()
				w.BeginArray()
				check("inside a container", w.WriteValue(s))
			}
			for _, mode := range []DupMode{DupFirst, DupLast} {
				var loss Losses
				got, err := AppendJSON(nil, Msgpack, data, Limits{}, &JSONOptions{Dup: mode}, &loss)
				if want := len(keyMapText(n, again, mode)); err != nil || len(got) != want || (loss.Count() == 1) != double {
					t.Errorf("mode %d: %d keys, %q again: %v, %d bytes, want %d, %d losses", mode, n, again, err, len(got), want, loss.Count())
				}
			}
		}
	}
}

// keyMapText is the JSON text of keyMap.
func keyMapText(n int, again string, mode DupMode) string {
	var b strings.Builder
	b.WriteString("[{")
	known := false
	comma := ""
	for i := range n {
		key := fmt.Sprint("k", i)
		if key == again {
			known = true
			if mode == DupLast {
				continue
			}
		}
		fmt.Fprintf(&b, `%s"%s":{"k0":%d,"k1":1}`, comma, key, i)
		comma = ","
	}
	if again != "" && !(known && mode == DupFirst) {
		fmt.Fprintf(&b, `%s"%s":null`, comma, again)
	}
	b.WriteString("},null]")
	return b.String()
}

func TestKeyLimit(t *testing.T) {
	data := keyMap(5000, "")
	w := NewJSONWriter(io.Discard, Limits{}, nil, nil)
	w.keys.limits = smallKeyLimits
	if err := w.WriteValue(NewStream(Msgpack, bytes.NewReader(data), -1, Limits{})); !errors.Is(err, fault.Limit) {
		t.Errorf("a stream with too many keys: %v", err)
	}
	w = NewJSONWriter(io.Discard, Limits{}, &JSONOptions{Dup: DupFirst}, nil)
	w.keys.limits = smallKeyLimits
	if err := w.WriteValue(NewScanner(Msgpack, data, Limits{})); !errors.Is(err, fault.Limit) {
		t.Errorf("first with too many keys: %v", err)
	}
}

// TestKeyTracker compares the tracker with a Go map, over maps that are nested at random.
func TestKeyTracker(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	var tr keyTracker
	tr.reset()
	for range 50 {
		type frame struct {
			m    mapKeys
			have map[string]bool
		}
		open := []*frame{{have: map[string]bool{}}}
		tr.begin(&open[0].m, 0)
		for i := range 2000 {
			top := open[len(open)-1]
			switch n := r.IntN(100); {
			case n < 5 && len(open) < 20:
				f := &frame{have: map[string]bool{}}
				tr.begin(&f.m, int64(i))
				open = append(open, f)
			case n < 8 && len(open) > 1:
				tr.end(&top.m)
				open = open[:len(open)-1]
			default:
				key := fmt.Sprint(r.IntN(1 << r.IntN(12)))
				twin, err := tr.add(&top.m, []byte(key), int64(i))
				if err != nil || (twin != nil) != top.have[key] {
					t.Fatalf("key %s: %v, %v, want %v", key, twin, err, top.have[key])
				}
				top.have[key] = true
			}
		}
		for len(open) > 0 {
			tr.end(&open[len(open)-1].m)
			open = open[:len(open)-1]
		}
		if len(tr.entries) != 0 || len(tr.text) != 0 || tr.inTables != 0 {
			t.Fatalf("left over: %d entries, %d bytes, %d of tables", len(tr.entries), len(tr.text), tr.inTables)
		}
	}
}

func TestSuspects(t *testing.T) {
	var s suspectSet
	hashes := []uint64{1, 2, 2, 77, 1 << 40}
	s.set(hashes)
	for _, c := range []struct {
		hash uint64
		key  string
		want bool
	}{
		{5, "a", false}, {5, "a", false}, // none
		{1, "a", false}, {1, "b", false}, {1, "c", false}, {1, "b", true}, {1, "a", true}, // one hash, three keys
		{2, "a", false}, {2, "a", true}, {77, "", false}, {77, "", true}, {1 << 40, "x", false},
	} {
		if got := s.twice(c.hash, []byte(c.key)); got != c.want {
			t.Errorf("%d %q: %v, want %v", c.hash, c.key, got, c.want)
		}
	}
	if s.over {
		t.Error("over")
	}
	s.set(hashes)
	big := make([]byte, maxSuspectBytes)
	if s.twice(1, big); s.over {
		t.Error("one key of any size has room")
	}
	if s.twice(2, big); !s.over {
		t.Error("two have not")
	}
}

// TestFilter checks that the filter never forgets, and how often it is wrong.
func TestFilter(t *testing.T) {
	var tr keyTracker
	tr.reset()
	const n = 1 << 20
	seed := maphash.MakeSeed()
	var b [8]byte
	hash := func(i int) uint64 {
		for j := range b {
			b[j] = byte(i >> (8 * j))
		}
		return mixKey(maphash.Bytes(seed, b[:]), 5)
	}
	for i := range n {
		tr.addFilter(hash(i))
	}
	if len(tr.suspects) > 10 {
		t.Errorf("%d of %d keys are suspects", len(tr.suspects), n)
	}
	tr.suspects = tr.suspects[:0]
	for i := range 1000 {
		tr.addFilter(hash(i * 1000))
	}
	if len(tr.suspects) != 1000 {
		t.Errorf("%d of 1000 keys are found", len(tr.suspects))
	}
}

func TestShapes(t *testing.T) {
	// Maps at one place that change: in order, in part, with keys of several kinds, more of them than a shape holds.
	r := rand.New(rand.NewPCG(11, 0))
	var doc []any
	for i := range 3000 {
		m := map[string]any{}
		for range r.IntN(10) {
			m[fmt.Sprint("key", r.IntN(1+i/10))] = map[string]any{"a": 1, fmt.Sprint("b", r.IntN(3)): []any{1, map[string]any{"x": i}}}
		}
		m[strings.Repeat("long", r.IntN(30))] = nil
		m["é\n"] = 1.5
		doc = append(doc, m)
	}
	data := encodeJSONTree(nil, Msgpack, doc)
	fast, err := AppendJSON(nil, Msgpack, data, Limits{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var slow bytes.Buffer
	w := NewJSONWriter(&slow, Limits{}, nil, nil)
	w.slow = true
	if err := w.WriteValue(NewScanner(Msgpack, data, Limits{})); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	if !bytes.Equal(fast, slow.Bytes()) {
		t.Error("rush and step differ")
	}
	for _, window := range []int{1, 1000, 70000} { // with a buffer that is spilled at other places each time
		var out bytes.Buffer
		out.Write(make([]byte, window))
		w := NewJSONWriter(&out, Limits{}, nil, nil)
		w.buf = append(w.buf, make([]byte, window)...)
		if err := w.WriteValue(NewStream(Msgpack, bytes.NewReader(data), -1, Limits{})); err != nil {
			t.Fatal(err)
		}
		if w.Flush(); !bytes.Equal(out.Bytes()[2*window:], fast) {
			t.Error("stream differs")
		}
	}
	back, err := AppendFromJSON(nil, Msgpack, fast, nil, nil)
	if err != nil || !bytes.Equal(back, data) {
		t.Errorf("reads back as something else: %v", err)
	}
}

// encodeJSONTree encodes what JSON can hold.
func encodeJSONTree(b []byte, c Codec, v any) []byte {
	switch v := v.(type) {
	case nil:
		return AppendNull(b, c)
	case bool:
		return AppendBool(b, c, v)
	case int:
		return AppendInt(b, c, int64(v))
	case float64:
		return AppendFloat64(b, c, v)
	case string:
		return AppendString(b, c, v)
	case []any:
		b = AppendArrayHeader(b, c, len(v))
		for _, e := range v {
			b = encodeJSONTree(b, c, e)
		}
	case map[string]any:
		b = AppendMapHeader(b, c, len(v))
		for k, e := range v {
			b = encodeJSONTree(AppendString(b, c, k), c, e)
		}
	default:
		panic(fmt.Sprintf("%T", v))
	}
	return b
}
