package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/spilehq/spile/fault"
	"pgregory.net/rapid"
)

// jsonParts writes a document of which each part comes from elsewhere.
func jsonParts(t *testing.T, w *JSONWriter) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := func(c Codec, raw []byte) {
		t.Helper()
		if ok, err := w.Key(c, raw); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	must(w.BeginMap())
	key(Msgpack, AppendString(nil, Msgpack, "a"))
	must(w.WriteValue(NewScanner(Msgpack, jsonHex("92 01 a1 62"), Limits{})))
	key(CBOR, AppendString(nil, CBOR, "b\n"))
	must(w.BeginArray())
	s := NewScanner(CBOR, jsonHex("01 62 c3a9 f97c00 a0"), Limits{})
	err := w.WriteValue(s)
	for ; err == nil; err = w.WriteValue(s) {
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	must(w.BeginArray())
	must(w.EndArray())
	must(w.EndArray())
	key(Msgpack, AppendString(nil, Msgpack, "c"))
	must(w.BeginPairs())
	key(CBOR, []byte{7})
	must(w.WriteSection(Msgpack, bytes.NewReader([]byte{0xc0, 0x91, 0x05}), 1, 2))
	key(Msgpack, AppendString(nil, Msgpack, "7"))
	must(w.BeginMap())
	must(w.EndMap())
	must(w.EndMap())
	key(Msgpack, []byte{0xa0})
	must(w.WriteValue(NewScanner(CBOR, []byte{0xf6}, Limits{})))
	must(w.EndMap())
	must(w.WriteValue(NewScanner(CBOR, []byte{0xf6}, Limits{})))
	must(w.Flush())
}

func TestJSONWriterParts(t *testing.T) {
	compact := `{"a":[1,"b"],"b\n":[1,"é",null,{},[]],"c":[[7,[5]],["7",{}]],"":null}`
	pretty := jsontext.Value(compact)
	if err := pretty.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pretty bool
		want   string
	}{{false, compact}, {true, string(pretty)}} {
		var out bytes.Buffer
		jsonParts(t, NewJSONWriter(&out, Limits{}, &JSONOptions{NonFinite: NonFiniteNull, Keys: KeysPairs, Pretty: c.pretty}, nil))
		if diff := cmp.Diff(c.want+"\nnull", out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestJSONWriterKeys(t *testing.T) {
	write := func(mode DupMode) (string, Losses, error) {
		var out bytes.Buffer
		var loss Losses
		w := NewJSONWriter(&out, Limits{}, &JSONOptions{Keys: KeysString, Dup: mode}, &loss)
		w.BeginMap()
		for i, k := range []string{"a1 61", "07", "a1 62", "a1 37", "92 01 a1 63", "d9 01 61"} {
			w.At("key", int64(0x10*i))
			ok, err := w.Key(Msgpack, jsonHex(k))
			if err != nil {
				return "", loss, err
			}
			if ok {
				if err := w.WriteValue(NewScanner(Msgpack, []byte{byte(i)}, Limits{})); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.EndMap()
		w.Flush()
		return out.String(), loss, nil
	}
	for mode, want := range map[DupMode]string{
		DupFirst: `{"a":0,"7":1,"b":2,"[1,\"c\"]":4} key 2 pair 2`,
		DupAll:   `{"a":0,"7":1,"b":2,"7":3,"[1,\"c\"]":4,"a":5} key 2`,
	} {
		got, loss, err := write(mode)
		if got += " " + lossWords(&loss); got != want || err != nil {
			t.Errorf("%v: %s %v\nwant %s", mode, got, err, want)
		}
	}
	for _, mode := range []DupMode{DupError, DupLast} {
		_, _, err := write(mode)
		if !errors.Is(err, fault.Conflict) || err.Error() != `value: key: key "7" occurs twice in one map (offset 0x30)` {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

func TestNeedsPairs(t *testing.T) {
	pairs := NewJSONWriter(io.Discard, Limits{}, &JSONOptions{Keys: KeysPairs}, nil)
	text := NewJSONWriter(io.Discard, Limits{}, &JSONOptions{Keys: KeysString}, nil)
	for key, want := range map[string]bool{"61 61": false, "c1 61 61": false, "07": true, "f6": true, "c1 07": true, "": false} {
		if got := pairs.NeedsPairs(CBOR, jsonHex(key)); got != want {
			t.Errorf("%s: %v", key, got)
		}
		if text.NeedsPairs(CBOR, jsonHex(key)) {
			t.Errorf("%s: with KeysString", key)
		}
	}
}

func TestJSONWriterMisuse(t *testing.T) {
	value := func(w *JSONWriter) error { return w.WriteValue(NewScanner(Msgpack, []byte{1}, Limits{})) }
	key := func(w *JSONWriter) error { _, err := w.Key(Msgpack, []byte{0xa0}); return err }
	array := (*JSONWriter).BeginArray
	object := (*JSONWriter).BeginMap
	endArray, endMap := (*JSONWriter).EndArray, (*JSONWriter).EndMap
	for i, steps := range [][]func(*JSONWriter) error{
		{key}, {endArray}, {endMap}, {object, value}, {object, array}, {object, object}, {object, key, key}, {object, key, endMap}, {object, endArray},
		{array, endMap}, {array, key}, {array, endArray, endArray},
	} {
		w := NewJSONWriter(io.Discard, Limits{}, nil, nil)
		for n, step := range steps {
			err := step(w)
			if last := n == len(steps)-1; last != errors.Is(err, fault.Invalid) {
				t.Errorf("case %d, step %d: %v", i, n, err)
			} else if last && value(w) != err {
				t.Errorf("case %d: the error does not stay", i)
			}
		}
	}
	w := NewJSONWriter(io.Discard, Limits{}, &JSONOptions{Keys: KeysPairs}, nil)
	w.BeginMap()
	if _, err := w.Key(Msgpack, []byte{7}); !errors.Is(err, fault.Invalid) {
		t.Errorf("7 in a map without pairs: %v", err)
	}
	w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
	w.BeginMap()
	for _, raw := range []string{"", "a1", "a0 a0"} {
		w.err = nil
		if _, err := w.Key(Msgpack, jsonHex(raw)); !errors.Is(err, fault.Corrupt) {
			t.Errorf("key %q: %v", raw, err)
		}
	}
}

func TestJSONWriterDepth(t *testing.T) {
	w := NewJSONWriter(io.Discard, Limits{Depth: 3}, nil, nil)
	w.BeginArray()
	w.BeginArray()
	if err := w.WriteValue(NewScanner(Msgpack, []byte{0x90}, Limits{})); err != nil {
		t.Error(err)
	}
	if err := w.WriteValue(NewScanner(Msgpack, []byte{0x91, 0x90}, Limits{})); !errors.Is(err, fault.Limit) {
		t.Errorf("four levels: %v", err)
	}
}

func TestJSONWriterInContainer(t *testing.T) {
	// The scanner is inside of containers that the caller reads itself.
	for _, data := range []string{"82 01 82 02 80 03", "9f 01 9f 02 a0 ff ff"} {
		c := Msgpack
		if data[0] == '9' {
			c = CBOR
		}
		for _, o := range []JSONOptions{{}, {Keys: KeysPairs}} {
			var out bytes.Buffer
			w := NewJSONWriter(&out, Limits{}, &o, nil)
			s := NewScanner(c, jsonHex(strings.Replace(data, "82 01 82 02 80 03", "92 01 92 02 80", 1)), Limits{})
			s.Next()
			for i := range 2 {
				if err := w.WriteValue(s); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
			}
			if err := w.WriteValue(s); err != io.EOF {
				t.Errorf("at the end of the container: %v", err)
			}
			if err := w.WriteValue(s); err != io.EOF {
				t.Errorf("at the end of the input: %v", err)
			}
			w.Flush()
			if out.String() != "1\n[2,{}]" {
				t.Errorf("%s: %s", data, out.String())
			}
		}
	}
}

func TestJSONWriterLong(t *testing.T) {
	// Strings, binary and keys that are longer than the buffer; with what needs an escape at every place.
	long := strings.Repeat("0123456789é\"\n", 20000)
	var data []byte
	data = AppendArrayHeader(data, CBOR, 4)
	data = AppendString(data, CBOR, long)
	data = AppendBytes(data, CBOR, []byte(long))
	data = AppendBytes(AppendTag(data, CBOR, tagHex), CBOR, []byte(long))
	data = AppendMapHeader(data, CBOR, 1)
	data = AppendNull(AppendString(data, CBOR, long), CBOR)
	quoted := strings.ReplaceAll(strings.ReplaceAll(long, `"`, `\"`), "\n", `\n`)
	want := fmt.Sprintf(`["%s","%s","%X",{"%s":null}]`, quoted, appendBytesText(nil, []byte(long), formBase64URL), long, quoted)
	got, err := AppendJSON(nil, CBOR, data, Limits{}, nil, nil)
	if err != nil || string(got) != want {
		t.Errorf("memory: %v", err)
	}
	var out bytes.Buffer
	most := &mostWriter{w: &out}
	w := NewJSONWriter(most, Limits{}, nil, nil)
	if err := w.WriteSection(CBOR, bytes.NewReader(data), 0, int64(len(data))); err != nil || w.Flush() != nil || out.String() != want {
		t.Errorf("stream: %v", err)
	}
	if limit := len(quoted) + 2*jsonBuffer; most.n > limit { // the key is kept whole
		t.Errorf("%d bytes in one write, want %d at most", most.n, limit)
	}
}

type mostWriter struct {
	w io.Writer
	n int
}

func (m *mostWriter) Write(p []byte) (int, error) {
	m.n = max(m.n, len(p))
	return m.w.Write(p)
}

func TestJSONWriterFlushes(t *testing.T) {
	// The buffer is empty at every place at which it can be.
	var out bytes.Buffer
	w := NewJSONWriter(&out, Limits{}, nil, nil)
	data := AppendMapHeader(nil, Msgpack, 2)
	big := strings.Repeat("x", jsonBuffer)
	data = AppendArrayHeader(AppendString(data, Msgpack, "a"), Msgpack, 1)
	data = AppendString(data, Msgpack, big)
	data = AppendArrayHeader(AppendString(data, Msgpack, "b"), Msgpack, 2)
	data = AppendArrayHeader(AppendString(data, Msgpack, big), Msgpack, 0)
	w.BeginArray()
	for range 2 {
		w.Flush()
		if err := w.WriteValue(NewScanner(Msgpack, []byte{5}, Limits{})); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		if err := w.WriteValue(NewScanner(Msgpack, data, Limits{})); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	w.EndArray()
	w.Flush()
	one := fmt.Sprintf(`5,{"a":["%s"],"b":["%s",[]]}`, big, big)
	if out.String() != "["+one+","+one+"]" {
		t.Error("text is wrong")
	}
}

func TestJSONWriterErrors(t *testing.T) {
	fails := errors.New("pipe broken")
	data := AppendBytes(nil, Msgpack, make([]byte, 1<<20))
	w := NewJSONWriter(failingWriter{fails}, Limits{}, nil, nil)
	if err := w.WriteValue(NewScanner(Msgpack, data, Limits{})); err != fails {
		t.Errorf("%v", err)
	}
	w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
	if err := w.WriteSection(Msgpack, bytes.NewReader(data), 0, int64(len(data))+1); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a section beyond the source: %v", err)
	}
	w = NewJSONWriter(io.Discard, Limits{}, &JSONOptions{Dup: DupLast}, nil)
	big := AppendBytes(nil, Msgpack, make([]byte, maxAhead+1))
	if err := w.WriteValue(NewStream(Msgpack, bytes.NewReader(big), -1, Limits{})); !errors.Is(err, fault.Limit) {
		t.Errorf("look-ahead over a long stream: %v", err)
	}
	var out bytes.Buffer
	w = NewJSONWriter(&out, Limits{}, &JSONOptions{Dup: DupLast}, nil)
	section := AppendArrayHeader(nil, Msgpack, 1)
	section = append(section, big...)
	if err := w.WriteSection(Msgpack, bytes.NewReader(section), 0, int64(len(section))); err != nil {
		t.Errorf("look-ahead over a long section: %v", err)
	}
	w = NewJSONWriter(io.Discard, Limits{}, nil, nil)
	w.At("a/b", 100)
	if err := w.WriteValue(NewScanner(Msgpack, []byte{0x91, 0xc1}, Limits{})); err == nil || err.Error() != "value: a/b: byte 0xc1 starts no msgpack value (offset 0x65)" {
		t.Errorf("%v", err)
	}
}

// jsonTree draws a value that both codecs and JSON hold, as its encoding and its JSON text.
func jsonTree(t *rapid.T, c Codec, depth int) (enc, text []byte) {
	switch k := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case k == 0 && depth > 0:
		n := rapid.IntRange(0, 20).Draw(t, "items")
		enc, text = AppendArrayHeader(nil, c, n), []byte("[")
		for i := range n {
			if i > 0 {
				text = append(text, ',')
			}
			e, x := jsonTree(t, c, depth-1)
			enc, text = append(enc, e...), append(text, x...)
		}
		return enc, append(text, ']')
	case k == 1 && depth > 0:
		keys := rapid.SliceOfNDistinct(rapid.String(), 0, 20, rapid.ID[string]).Draw(t, "keys")
		enc, text = AppendMapHeader(nil, c, len(keys)), []byte("{")
		for i, key := range keys {
			if i > 0 {
				text = append(text, ',')
			}
			e, x := jsonTree(t, c, depth-1)
			enc = append(AppendString(enc, c, key), e...)
			text = append(append(append(text, quoteJSON(key)...), ':'), x...)
		}
		return enc, append(text, '}')
	case k == 2:
		return AppendNull(nil, c), []byte("null")
	case k == 3:
		b := rapid.Bool().Draw(t, "bool")
		return AppendBool(nil, c, b), fmt.Append(nil, b)
	case k <= 5:
		i := rapid.Int64().Draw(t, "int")
		return AppendInt(nil, c, i), fmt.Append(nil, i)
	case k == 6:
		f := rapid.Float64().Filter(func(f float64) bool { return f-f == 0 }).Draw(t, "float")
		return AppendFloat64(nil, c, f), appendFloat(nil, f, 64)
	case k == 7 && c == CBOR:
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "digits"))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		enc, err := AppendBigInt(nil, c, n)
		if err != nil {
			t.Fatal(err)
		}
		return enc, fmt.Append(nil, n)
	}
	s := rapid.String().Draw(t, "string")
	return AppendString(nil, c, s), quoteJSON(s)
}

// quoteJSON is the plainest way to write a JSON string.
func quoteJSON(s string) []byte {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case strings.ContainsRune("\b\f\n\r\t", r):
			b = append(b, '\\', "btn_fr"[r-'\b'])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "codec")
		enc, text := jsonTree(t, c, 4)
		var loss Losses
		got, err := AppendJSON(nil, c, enc, Limits{}, nil, &loss)
		if err != nil || string(got) != string(text) {
			t.Fatalf("%x: %s %v\nwant %s", enc, got, err, text)
		}
		back, err := AppendFromJSON(nil, c, got, nil, &loss)
		if err != nil || !bytes.Equal(back, enc) {
			t.Fatalf("%s: %x %v\nwant %x", text, back, err, enc)
		}
		if loss.Count() != 0 {
			t.Fatalf("losses %v", lossWords(&loss))
		}
		pretty, err := AppendJSON(nil, c, enc, Limits{}, &JSONOptions{Pretty: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := jsontext.Value(bytes.Clone(text))
		if err := want.Indent(jsontext.WithIndent("  ")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(pretty)); diff != "" {
			t.Fatalf("pretty (-want +got):\n%s", diff)
		}
		if back, err := AppendFromJSON(nil, c, pretty, nil, nil); err != nil || !bytes.Equal(back, enc) {
			t.Fatalf("pretty text reads back as %x %v\nwant %x", back, err, enc)
		}
	})
}

// TestJSONFloatsRoundTrip writes floats, and reads them back to the same bits without a loss.
func TestJSONFloatsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 0))
	for range 100000 {
		f := math.Float64frombits(r.Uint64())
		if f-f != 0 {
			continue
		}
		enc := AppendFloat64(nil, Msgpack, f)
		text, err := AppendJSON(nil, Msgpack, enc, Limits{}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := AppendFromJSON(nil, Msgpack, text, &JSONReadOptions{Lossless: true}, nil)
		if err != nil || !bytes.Equal(back, enc) {
			t.Fatalf("%s: %x %v, want %x", text, back, err, enc)
		}
	}
}

// TestPlansKeepNothing: many small values that each need a look ahead take the memory of one.
func TestPlansKeepNothing(t *testing.T) {
	const n = 10_000
	data := AppendArrayHeader(nil, Msgpack, n)
	for range n {
		data = append(data, 0x91, 0x81, 0x07, 0x01) // [{7:1}]
	}
	for _, o := range []JSONOptions{{Keys: KeysPairs}, {Keys: KeysString, Dup: DupLast}} {
		grown := allocated(func() {
			w := NewJSONWriter(io.Discard, Limits{}, &o, nil)
			s := NewScanner(Msgpack, data, Limits{})
			s.Next()
			w.BeginArray()
			for range n {
				if err := w.WriteValue(s); err != nil {
					t.Fatal(err)
				}
			}
		})
		if grown > 1<<20 {
			t.Errorf("%v: %d bytes allocated for %d values", o, grown, n)
		}
	}
}
