package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spilehq/spile/fault"
)

// jsonReadCase is a JSON text and its encodings.
type jsonReadCase struct {
	text    string
	msgpack string // in hexadecimal; "" stands for fault.Invalid
	cbor    string
	loss    string
}

var jsonReadCases = []jsonReadCase{
	{"null", "c0", "f6", ""},
	{" \t\r\n true\n", "c3", "f5", ""},
	{"false", "c2", "f4", ""},
	{"\ufeff[]", "90", "80", ""},
	{"0", "00", "00", ""},
	{"-0", "00", "00", "sign 1"},
	{"-1", "ff", "20", ""},
	{"23", "17", "17", ""},
	{"24", "18", "18 18", ""},
	{"127", "7f", "18 7f", ""},
	{"128", "cc80", "18 80", ""},
	{"-32", "e0", "38 1f", ""},
	{"-33", "d0df", "38 20", ""},
	{"-128", "d080", "38 7f", ""},
	{"-129", "d1ff7f", "38 80", ""},
	{"65536", "ce00010000", "1a 00010000", ""},
	{"-2147483649", "d3ffffffff7fffffff", "3a 80000000", ""},
	{"4294967296", "cf0000000100000000", "1b 0000000100000000", ""},
	{"9223372036854775808", "cf8000000000000000", "1b 8000000000000000", ""},
	{"9999999999999999999", "cf8ac7230489e7ffff", "1b 8ac7230489e7ffff", ""},
	{"10000000000000000000", "cf8ac7230489e80000", "1b 8ac7230489e80000", ""},
	{"18446744073709551615", "cfffffffffffffffff", "1b ffffffffffffffff", ""},
	{"-9223372036854775808", "d38000000000000000", "3b 7fffffffffffffff", ""},
	{"-9223372036854775809", "", "3b 8000000000000000", ""},
	{"-18446744073709551615", "", "3b fffffffffffffffe", ""},
	{"-18446744073709551616", "", "3b ffffffffffffffff", ""},
	{"18446744073709551616", "", "c2 49 010000000000000000", ""},
	{"19999999999999999999", "", "c2 49 01158e460913cfffff", ""},
	{"20000000000000000000", "", "c2 49 01158e460913d00000", ""},
	{"-18446744073709551617", "", "c3 49 010000000000000000", ""},
	{"1.0", "cb3ff0000000000000", "fb 3ff0000000000000", ""},
	{"-0.0", "cb8000000000000000", "fb 8000000000000000", ""},
	{"0e5", "cb0000000000000000", "fb 0000000000000000", ""},
	{"1e30", "cb46293e5939a08cea", "fb 46293e5939a08cea", ""},
	{"1E+2", "cb4059000000000000", "fb 4059000000000000", ""},
	{"0.1", "cb3fb999999999999a", "fb 3fb999999999999a", ""},
	{"0.30000000000000004", "cb3fd3333333333334", "fb 3fd3333333333334", ""},
	{"0.10000000000000001", "cb3fb999999999999a", "fb 3fb999999999999a", "digits 1"},
	{"0.1000000000000000000000000000", "cb3fb999999999999a", "fb 3fb999999999999a", ""},
	{"100000000000000000000.000e-21", "cb3fb999999999999a", "fb 3fb999999999999a", ""},
	{"0.1000000000000000055511151231257827", "cb3fb999999999999a", "fb 3fb999999999999a", "digits 1"},
	{"9007199254740993.0", "cb4340000000000000", "fb 4340000000000000", "digits 1"},
	{"9007199254740992.0", "cb4340000000000000", "fb 4340000000000000", ""},
	{"1e-400", "cb0000000000000000", "fb 0000000000000000", "digits 1"},
	{"-1e-400", "cb8000000000000000", "fb 8000000000000000", "digits 1"},
	{"0e-400", "cb0000000000000000", "fb 0000000000000000", ""},
	{"5e-324", "cb0000000000000001", "fb 0000000000000001", ""},
	{"4.9406564584124654e-324", "cb0000000000000001", "fb 0000000000000001", "digits 1"},
	{"7e-324", "cb0000000000000001", "fb 0000000000000001", "digits 1"},
	{"1.7976931348623157e308", "cb7fefffffffffffff", "fb 7fefffffffffffff", ""},
	{"123456789012345678901234567890e-10", "cb43e56a95319d63e1", "fb 43e56a95319d63e1", "digits 1"},
	{`""`, "a0", "60", ""},
	{`"abc"`, "a3616263", "63 616263", ""},
	{`"\"\\\/\b\f\n\r\tA"`, "a9225c2f080c0a0d0941", "69 225c2f080c0a0d0941", ""},
	{`"\u0000\u00e9\u20AC\uD83D\uDE42"`, "aa00c3a9e282acf09f9982", "6a 00c3a9e282acf09f9982", ""},
	{`"é🙂\n€"`, "aac3a9f09f99820ae282ac", "6a c3a9f09f99820ae282ac", ""},
	{"\"\u2028\x7f\"", "a4e280a87f", "64 e280a87f", ""},
	{`"` + strings.Repeat("x", 31) + `"`, "bf" + strings.Repeat("78", 31), "78 1f" + strings.Repeat("78", 31), ""},
	{`"` + strings.Repeat("x", 32) + `"`, "d920" + strings.Repeat("78", 32), "78 20" + strings.Repeat("78", 32), ""},
	{`"` + strings.Repeat(`\n`, 300) + `"`, "da012c" + strings.Repeat("0a", 300), "79 012c" + strings.Repeat("0a", 300), ""},
	{"[]", "90", "80", ""},
	{"{ }", "80", "a0", ""},
	{"[[],{}]", "929080", "82 80 a0", ""},
	{`{"a":1,"b":[2,{"c":null}]}`, "82a16101a162920281a163c0", "a2 6161 01 6162 82 02 a1 6163 f6", ""},
	{"{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", "82a161920102a16280", "a2 6161 82 01 02 6162 a0", ""},
	{"[" + strings.Repeat("1,", 14) + "1]", "9f" + strings.Repeat("01", 15), "8f" + strings.Repeat("01", 15), ""},
	{"[" + strings.Repeat("1,", 15) + "1]", "dc0010" + strings.Repeat("01", 16), "90" + strings.Repeat("01", 16), ""},
	{"[" + strings.Repeat("1,", 22) + "1]", "dc0017" + strings.Repeat("01", 23), "97" + strings.Repeat("01", 23), ""},
	{"[" + strings.Repeat("1,", 23) + "1]", "dc0018" + strings.Repeat("01", 24), "9818" + strings.Repeat("01", 24), ""},
	{"[[" + strings.Repeat("1,", 30) + "1],[" + strings.Repeat("2,", 299) + "2]]", "92dc001f" + strings.Repeat("01", 31) + "dc012c" + strings.Repeat("02", 300),
		"82981f" + strings.Repeat("01", 31) + "99012c" + strings.Repeat("02", 300), ""},
	{strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat("91", 999) + "90", strings.Repeat("81", 999) + "80", ""},
	{`{"a":{"a":1},"b":{"a":2}}`, "82a16181a16101a16281a16102", "a2 6161 a1 6161 01 6162 a1 6161 02", ""},
	{`{"\u0061":1,"":2}`, "82a16101a002", "a2 6161 01 60 02", ""},
	{strings.Repeat(" ", 300) + "1" + strings.Repeat(" ", 300), "01", "01", ""},
}

// readStreamed reads a text through small windows, with a pre-scan for containers of more than a few bytes.
func readStreamed(c Codec, text []byte, o *JSONReadOptions, loss *Losses, lim readLimits) ([]byte, error) {
	r := new(jsonReader)
	r.reset(c, o, loss)
	r.size, r.limits = int64(len(text)), lim
	r.keys.limits = smallKeyLimits
	var out bytes.Buffer
	err := r.located(r.stream(&out, bytes.NewReader(text)))
	return out.Bytes(), err
}

var smallWindows = []readLimits{{window: 1, ahead: 1, long: 1}, {window: 16, ahead: 4, long: 10}, {window: 64, ahead: 20, long: 100}, {window: 200, ahead: 200, long: 0}}

func TestReadJSON(t *testing.T) {
	for _, c := range jsonReadCases {
		for codec, want := range map[Codec]string{Msgpack: c.msgpack, CBOR: c.cbor} {
			check := func(how string, got []byte, loss *Losses, err error) {
				t.Helper()
				if want == "" {
					if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "(offset 0x0)") {
						t.Errorf("%s: %s: %.60s: %v", how, codec, c.text, err)
					}
					return
				}
				if diff := cmp.Diff(strings.ReplaceAll(want, " ", ""), hex.EncodeToString(got)); err != nil || diff != "" {
					t.Errorf("%s: %s: %.60s: %v (-want +got):\n%s", how, codec, c.text, err, diff)
				}
				if got := lossWords(loss); got != c.loss {
					t.Errorf("%s: %s: %.60s: losses %q, want %q", how, codec, c.text, got, c.loss)
				}
			}
			for range 2 {
				var loss Losses
				got, err := AppendFromJSON([]byte{0xc1}, codec, []byte(c.text), nil, &loss)
				check("memory", got[1:], &loss, err)
			}
			var loss Losses
			var out bytes.Buffer
			err := ReadJSON(&out, strings.NewReader(c.text), int64(len(c.text)), codec, nil, &loss)
			check("short", out.Bytes(), &loss, err)
			for _, lim := range smallWindows {
				var loss Losses
				got, err := readStreamed(codec, []byte(c.text), nil, &loss, lim)
				check(fmt.Sprint("streamed ", lim), got, &loss, err)
			}
		}
	}
}

var jsonBadTexts = []struct {
	text  string
	class error
	says  string
}{
	{"", fault.Corrupt, "not JSON: text ends where a value is expected"},
	{"  ", fault.Corrupt, "line 1, column 3: not JSON: text ends where a value is expected"},
	{"nul", fault.Corrupt, "text ends where null is expected (offset 0x3)"},
	{"nulx", fault.Corrupt, "'x' where null is expected (offset 0x3)"},
	{"True", fault.Corrupt, "'T' where a value is expected"},
	{"nullx", fault.Corrupt, "'x' where the end is expected (offset 0x4)"},
	{"1 2", fault.Corrupt, "'2' where the end is expected (offset 0x2)"},
	{"null\x00", fault.Corrupt, "byte 0x00 where the end is expected (offset 0x4)"},
	{"\xff\xfe[", fault.Corrupt, "byte 0xff"},
	{"\ufeff\ufeff1", fault.Corrupt, "offset 0x3"},
	{"'a'", fault.Corrupt, "'''"},
	{"// c\n1", fault.Corrupt, "'/'"},
	{"NaN", fault.Corrupt, "'N'"},
	{"-", fault.Corrupt, "text ends where a digit is expected"},
	{"-a", fault.Corrupt, "offset 0x1"},
	{"+1", fault.Corrupt, "'+'"},
	{".5", fault.Corrupt, "'.'"},
	{"01", fault.Corrupt, "'1' where a digit is expected (offset 0x1)"},
	{"-012", fault.Corrupt, "offset 0x2"},
	{"1.", fault.Corrupt, "text ends where a digit is expected (offset 0x2)"},
	{"1.e5", fault.Corrupt, "'e' where a digit is expected (offset 0x2)"},
	{"1e", fault.Corrupt, "offset 0x2"},
	{"1e+ ", fault.Corrupt, "offset 0x3"},
	{"1e400", fault.Invalid, "number 1e400 is beyond what a float64 holds (offset 0x0)"},
	{"[-1e400]", fault.Invalid, "offset 0x1"},
	{"[", fault.Corrupt, "text ends where a value is expected"},
	{"[1", fault.Corrupt, "text ends where ',' or ']' is expected"},
	{"[1,]", fault.Corrupt, "']' where a value is expected (offset 0x3)"},
	{"[1 2]", fault.Corrupt, "'2' where ',' or ']' is expected"},
	{"[1}", fault.Corrupt, "'}' where"},
	{"[,1]", fault.Corrupt, "offset 0x1"},
	{"]", fault.Corrupt, "offset 0x0"},
	{"{", fault.Corrupt, "text ends where a key"},
	{"{1:2}", fault.Corrupt, "'1' where a key is expected"},
	{`{"a"}`, fault.Corrupt, "'}' where ':' is expected"},
	{`{"a":}`, fault.Corrupt, "'}' where a value is expected"},
	{`{"a":1,}`, fault.Corrupt, "'}' where a key is expected"},
	{`{"a":1 "b":2}`, fault.Corrupt, "'\"' where ',' or '}' is expected"},
	{`{"a" 1}`, fault.Corrupt, "'1' where ':'"},
	{`{"a":1]`, fault.Corrupt, "']' where"},
	{`"abc`, fault.Corrupt, "text ends within a string (offset 0x4)"},
	{`"abc\`, fault.Corrupt, "text ends within a string"},
	{`"\u12`, fault.Corrupt, "text ends within a string"},
	{"\"a\nb\"", fault.Corrupt, "control character in a string, which needs an escape (offset 0x2)"},
	{"\"a\x00b\"", fault.Corrupt, "control"},
	{`"\x"`, fault.Corrupt, "invalid escape in a string (offset 0x1)"},
	{`"\u12g4"`, fault.Corrupt, "invalid escape"},
	{`"ab\ud800"`, fault.Corrupt, "surrogate without its other half (offset 0x3)"},
	{`"\udc00"`, fault.Corrupt, "surrogate"},
	{`"\ud800\ud800"`, fault.Corrupt, "surrogate"},
	{`"\ud800\u0041"`, fault.Corrupt, "surrogate"},
	{`"\ud800A"`, fault.Corrupt, "surrogate"},
	{`"\ud800\n"`, fault.Corrupt, "surrogate"},
	{"\"ab\xff\"", fault.Corrupt, "string is not valid UTF-8 (offset 0x3)"},
	{"\"\xc3\"", fault.Corrupt, "UTF-8 (offset 0x1)"},
	{"\"\xed\xa0\x80\"", fault.Corrupt, "UTF-8"},
	{"\"\xc0\x80\"", fault.Corrupt, "UTF-8"},
	{"{\"\xff\":1}", fault.Corrupt, "UTF-8 (offset 0x2)"},
	{`{"a":1,"a":2}`, fault.Conflict, `line 1, column 8: key "a" occurs twice in one object (offset 0x7)`},
	{"[\n {\"a\":1,\n  \"\\u0061\":2}]", fault.Conflict, `line 3, column 3: key "\u0061" occurs twice`},
	{`[{"a":{"a":1},"b":2,"a":3}]`, fault.Conflict, "offset 0x14"},
	{`[{"a":1},{"a":1,"b":2,"a":3}]`, fault.Conflict, "offset 0x16"},
	{strings.Repeat("[", 1001), fault.Limit, "nested deeper than 1000 (offset 0x3e8)"},
	{strings.Repeat(`{"a":`, 1001), fault.Limit, "nested deeper than 1000"},
	{strings.Repeat("9", maxJSONNumber+1), fault.Limit, "number"},
	{"0." + strings.Repeat("9", maxJSONNumber), fault.Limit, "number"},
	{"\n\n  [1,\n\n@", fault.Corrupt, "line 5, column 1: not JSON: '@'"},
}

func TestReadJSONErrors(t *testing.T) {
	for _, c := range jsonBadTexts {
		check := func(how string, err error) {
			t.Helper()
			if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%s: %.40q: %v, want %v with %q", how, c.text, err, c.class, c.says)
			}
		}
		got, err := AppendFromJSON([]byte("x"), CBOR, []byte(c.text), nil, nil)
		if check("memory", err); string(got) != "x" {
			t.Errorf("%q: dst is %q after an error", c.text, got)
		}
		check("short", ReadJSON(io.Discard, strings.NewReader(c.text), int64(len(c.text)), Msgpack, nil, nil))
		for _, lim := range smallWindows {
			_, err := readStreamed(CBOR, []byte(c.text), nil, nil, lim)
			check(fmt.Sprint("streamed ", lim), err)
		}
	}
}

func TestReadJSONLossless(t *testing.T) {
	for _, text := range []string{"-0", "[1,0.10000000000000001]", "1e-400"} {
		_, err := AppendFromJSON(nil, Msgpack, []byte(text), &JSONReadOptions{Lossless: true}, nil)
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReadJSONKeys reads objects of many keys, one of them twice, with little room for them.
func TestReadJSONKeys(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 66, 500, 3000} {
		for _, again := range []int{-1, 0, 30, 62, 63, 64, 65, 499, 2998, 2999} {
			text := []byte(`[1,{"k0":1,"k1":2},{`)
			for i := range n {
				text = fmt.Appendf(text, `"k%d": {"k0":%d,"k1":[]},`, i, i)
			}
			at := len(text)
			if again >= 0 {
				text = fmt.Appendf(text, `"k%d": 1,`, again)
			}
			text = append(text[:len(text)-1], "}]"...)
			double := again >= 0 && again < n
			check := func(err error) {
				t.Helper()
				if !double && err != nil || double && (!errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), fmt.Sprintf(`key "k%d" occurs twice in one object (offset %#x)`, again, at))) {
					t.Errorf("%d keys, %d again: %v", n, again, err)
				}
			}
			_, err := AppendFromJSON(nil, CBOR, text, nil, nil)
			check(err)
			_, err = readStreamed(Msgpack, text, nil, nil, readLimits{window: 1000, ahead: 100, long: 2000})
			check(err)
			r := new(jsonReader)
			r.reset(CBOR, nil, nil)
			r.buf, r.size = text, int64(len(text))
			r.keys.limits = smallKeyLimits
			check(r.located(r.read()))
		}
	}
}

// randomJSON writes a random text, with white space, in which lengths are often those around which encodings change.
func randomJSON(r *rand.Rand, b []byte, depth int) []byte {
	lengths := []int{0, 1, 2, 3, 14, 15, 16, 17, 23, 24, 25, 40, 300}
	blank := func() { b = append(b, "   \n\t\r "[:max(0, r.IntN(14)-7)]...) }
	blank()
	n := lengths[min(r.IntN(len(lengths)), 3+r.IntN(10))]
	switch k := r.IntN(12); {
	case k < 3 && depth > 0:
		b = append(b, '[')
		for i := range n {
			if i > 0 {
				b = append(b, ',')
			}
			b = randomJSON(r, b, depth-1-i/4)
		}
		b = append(b, ']')
	case k < 6 && depth > 0:
		b = append(b, '{')
		for i := range n {
			if i > 0 {
				b = append(b, ',')
			}
			blank()
			b = fmt.Appendf(b, `"k%d%s"`, i, strings.Repeat("y", r.IntN(3)*r.IntN(40)))
			blank()
			b = append(b, ':')
			b = randomJSON(r, b, depth-1-i/4)
		}
		blank()
		b = append(b, '}')
	case k < 8:
		b = append(b, '"')
		for range n * r.IntN(4) {
			b = append(b, []string{"a", "b", "é", "🙂", `\n`, `\u00e9`, `\ud83d\ude42`, `\"`, "xyzxyzxyz"}[r.IntN(9)]...)
		}
		b = append(b, '"')
	case k < 9:
		b = append(b, []string{"true", "false", "null", "-0.0", "1e-7", "1.5"}[r.IntN(6)]...)
	default:
		b = fmt.Append(b, r.Int64()>>r.IntN(64))
	}
	blank()
	return b
}

func TestReadJSONStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	for range 300 {
		text := randomJSON(r, nil, 4)
		for _, c := range []Codec{Msgpack, CBOR} {
			want, err := AppendFromJSON(nil, c, text, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if n, err := Skip(c, want, 1, Limits{}); n != len(want) || err != nil {
				t.Fatalf("%s: %x is no value: %v", text, want, err)
			}
			for _, lim := range smallWindows {
				if got, err := readStreamed(c, text, nil, nil, lim); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%v: %s: %v\n got %x\nwant %x", lim, text, err, got, want)
				}
			}
		}
		// A text that is cut or has a wrong byte gives one error, however it is read.
		bad := bytes.Clone(text[:r.IntN(len(text)+1)])
		if len(bad) > 0 && r.IntN(2) == 0 {
			bad[r.IntN(len(bad))] = "\x00\x80\"\\,:{}[]1e"[r.IntN(12)]
		}
		_, want := AppendFromJSON(nil, CBOR, bad, nil, nil)
		for _, lim := range smallWindows {
			if _, got := readStreamed(CBOR, bad, nil, nil, lim); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%v: %s:\n got %v\nwant %v", lim, bad, got, want)
			}
		}
	}
}

// changingSource gives another text from the second pass on.
type changingSource struct {
	first, then string
	start       int // reads of offset 0
}

func (s *changingSource) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 {
		s.start++
	}
	text := s.first
	if s.start > 1 {
		text = s.then
	}
	return strings.NewReader(text).ReadAt(p, off)
}

func TestReadJSONChanged(t *testing.T) {
	long := strings.Repeat("1,", 1<<20)
	src := &changingSource{first: "[" + long + "1]", then: "[" + long + " ]"}
	src.then = "[1" + strings.Repeat(" ", len(src.first)-3) + "]"
	err := ReadJSON(io.Discard, src, int64(len(src.first)), CBOR, nil, nil)
	if !errors.Is(err, fault.Changed) {
		t.Errorf("another number of items: %v", err)
	}
	src = &changingSource{first: "[1" + strings.Repeat(" ", 64<<20) + "]"}
	src.first = "[" + strings.Repeat("[],", 10<<20) + "[]]"
	src.then = "[" + "[" + strings.Repeat("1.,"[:2], 1)
	src.then = "[[" + strings.Repeat("1,", (len(src.first)-5)/2) + "1"
	src.then += strings.Repeat(" ", len(src.first)-len(src.then)-2) + "]]"
	err = ReadJSON(io.Discard, src, int64(len(src.first)), CBOR, nil, nil)
	if !errors.Is(err, fault.Changed) {
		t.Errorf("a longer container: %v", err)
	}
}

func TestReadJSONSourceErrors(t *testing.T) {
	err := ReadJSON(io.Discard, strings.NewReader("[1]"), 5, CBOR, nil, nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that is too short: %v", err)
	}
	err = ReadJSON(io.Discard, strings.NewReader("[1]"), 5<<20, CBOR, nil, nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a long source that is too short: %v", err)
	}
	fails := errors.New("disk full")
	for _, text := range []string{"[1]", "[" + strings.Repeat(`"abc",`, 1<<20) + "1]"} {
		if err := ReadJSON(failingWriter{fails}, strings.NewReader(text), int64(len(text)), CBOR, nil, nil); err != fails {
			t.Errorf("a writer that fails: %v", err)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write(p []byte) (int, error) { return 0, w.err }
