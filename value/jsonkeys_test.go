package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// smallKeyLimits makes every way through the tracker short: 40 keys are kept, further ones go to the filter.
var smallKeyLimits = keyset.Limits{Exact: 40 * (keyset.EntrySize + 8), Reread: 40 * (keyset.EntrySize + 8), Filter: 1 << 10, Suspects: 100}

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
			for _, limits := range []keyset.Limits{keyset.DefaultLimits(), smallKeyLimits} {
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
				w.keys.SetLimits(limits)
				check("memory", w.WriteValue(NewScanner(Msgpack, data, Limits{})))
				w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
				w.keys.SetLimits(limits)
				check("section", w.WriteSection(Msgpack, bytes.NewReader(data), 0, int64(len(data))))
				if n > 10000 && len(data) <= smallSection {
					t.Fatal("that section is read in one piece")
				}
				w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
				w.keys.SetLimits(limits)
				s := NewScanner(Msgpack, data, Limits{})
				s.Next()
				w.BeginArray()
				check("inside a container", w.WriteValue(s))
				w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
				w.keys.SetLimits(limits)
				check("stream", w.WriteValue(NewStream(Msgpack, bytes.NewReader(data), -1, Limits{})))
				for _, to := range []Codec{Msgpack, CBOR} {
					x := transcoder{to: to, from: Msgpack, w: io.Discard, open: func() *Scanner { return NewScanner(Msgpack, data, Limits{}) }}
					x.keys.SetLimits(limits)
					check("transcode", x.run())
				}
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
	w := NewJSONWriter(io.Discard, Limits{}, &JSONOptions{Dup: DupFirst}, nil)
	w.keys.SetLimits(smallKeyLimits)
	if err := w.WriteValue(NewScanner(Msgpack, keyMap(5000, ""), Limits{})); !errors.Is(err, fault.Limit) {
		t.Errorf("first with too many keys: %v", err)
	}
}

// TestManyKeysOfACaller: a map of the caller with values that are read in other ways meanwhile.
func TestManyKeysOfACaller(t *testing.T) {
	inner := keyMap(100, "")
	for _, again := range []int{-1, 0, 70, 2998} {
		w := NewJSONWriter(io.Discard, Limits{}, nil, nil)
		w.keys.SetLimits(smallKeyLimits)
		w.At("", 0)
		if err := w.BeginMap(); err != nil {
			t.Fatal(err)
		}
		var err error
		for i := range 3000 {
			n := i
			if i == 2999 && again >= 0 {
				n = again
			}
			w.At("", int64(10*i))
			if _, err = w.Key(Msgpack, AppendString(nil, Msgpack, fmt.Sprint("k", n))); err != nil {
				break
			}
			if i%2 == 0 {
				err = w.WriteValue(NewScanner(Msgpack, inner, Limits{}))
			} else {
				err = w.WriteValue(NewStream(Msgpack, bytes.NewReader(inner), -1, Limits{}))
			}
			if err != nil { // it may be found now
				break
			}
		}
		if err == nil {
			err = w.EndMap()
		}
		switch want := fmt.Sprintf(`key "k%d" occurs twice in one map (offset %#x)`, again, 29990); {
		case again < 0 && err != nil:
			t.Error(err)
		case again >= 0 && (!errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestManyKeysTranscoded: keys that are containers of indefinite length, whose counts a second look needs too.
func TestManyKeysTranscoded(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := []byte{0x9f, 0xbf}
		for i := range 3000 {
			n := i
			if i == 2999 && again {
				n = 123
			}
			b = append(b, 0x9f)
			b = append(AppendInt(b, CBOR, int64(n)), breakByte)
			b = append(b, 0xbf, breakByte)
		}
		at := len(b) - 6 // of the last key
		b = append(b, breakByte, breakByte)
		x := transcoder{to: Msgpack, from: CBOR, w: io.Discard, memory: 1 << 20, open: func() *Scanner { return NewScanner(CBOR, b, Limits{}) }}
		x.keys.SetLimits(smallKeyLimits)
		err := x.run()
		var e *fault.Error
		if again != errors.Is(err, fault.Conflict) || again && (!errors.As(err, &e) || e.Offset != int64(at)) || !again && err != nil {
			t.Errorf("again %v: %v, want offset %#x", again, err, at)
		}
	}
}

// TestManyKeysEncoded: a sequence that is run once.
func TestManyKeysEncoded(t *testing.T) {
	for _, again := range []int{-1, 0, 39, 40, 1998} {
		runs := 0
		pairs := func(yield func(k, v any) bool) {
			runs++
			for i := range 2000 {
				n := i
				if i == 1999 && again >= 0 {
					n = again
				}
				if !yield(fmt.Sprint("k", n), MapSeq{1, func(yield func(k, v any) bool) { yield(n, nil) }}) {
					return
				}
			}
		}
		for c := Msgpack; c <= CBOR; c++ {
			for _, w := range []io.Writer{nil, io.Discard} {
				e := &encoder{c: c, w: w, flushAt: flushSize}
				e.seen.SetMode(keyset.Log)
				e.seen.SetLimits(smallKeyLimits)
				err := e.value(MapSeq{2000, pairs})
				if again < 0 && err != nil || again >= 0 && (!errors.Is(err, fault.Conflict) || err.Error() != fmt.Sprintf(`value: key "k%d" comes twice`, again)) {
					t.Errorf("%d again: %v", again, err)
				}
			}
		}
		if runs != 4 {
			t.Errorf("run %d times", runs)
		}
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
