package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// run1 runs a program and returns the lines it prints.
func run1(t *testing.T, n msglc.Node, program string, o *Options, loss *value.Losses) (string, error) {
	t.Helper()
	q, err := Compile(program, o)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for result, err := range q.Run(t.Context(), n, loss) {
		if err == nil {
			err = result.WriteJSON(&out)
		}
		if err != nil {
			return out.String(), err
		}
		out.WriteByte('\n')
	}
	return out.String(), nil
}

func raw(t *testing.T, c value.Codec, data []byte) msglc.Node {
	t.Helper()
	r, err := msglc.OpenRaw(t.Context(), source.Memory("run", data), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r.Root()
}

// TestExactText pins the text of results: that of the document where a value passes, and what a computed one gets.
func TestExactText(t *testing.T) {
	const c = value.Msgpack
	p := value.AppendMapHeader(nil, c, 9)
	p = value.AppendFloat64(value.AppendString(p, c, "one"), c, 1)
	p = value.AppendFloat32(value.AppendString(p, c, "tenth"), c, 0.1)
	p = value.AppendUint(value.AppendString(p, c, "max"), c, math.MaxUint64)
	p = value.AppendFloat64(value.AppendString(p, c, "zero"), c, math.Copysign(0, -1))
	p = value.AppendFloat64(value.AppendString(p, c, "huge"), c, 1e300)
	p = value.AppendBytes(value.AppendString(p, c, "bytes"), c, []byte{0xff, 0xfe})
	p, _ = value.AppendTimestamp(value.AppendString(p, c, "at"), c, time.Unix(1700000000, 5))
	p = value.AppendExt(value.AppendString(p, c, "ext"), c, 7, []byte{1})
	p = value.AppendString(value.AppendString(p, c, "text"), c, "é\n<")
	n := raw(t, c, p)
	for program, want := range map[string]string{
		".one, .tenth, .max, .zero, .huge": "1.0\n0.1\n18446744073709551615\n-0.0\n1e+300\n",
		".bytes, .at, .ext, .text":         "\"__4\"\n\"2023-11-14T22:13:20.000000005Z\"\n{\"$ext\":7,\"$data\":\"AQ\"}\n\"é\\n<\"\n",
		// The same when gojq has had them in its hands.
		"[.one, .tenth, .max, .zero, .huge]": "[1.0,0.1,18446744073709551615,-0.0,1e+300]\n",
		"[.bytes, .at, .ext, .text]":         "[\"__4\",\"2023-11-14T22:13:20.000000005Z\",{\"$data\":\"AQ\",\"$ext\":7},\"é\\n<\"]\n",
		`"\(.one) \(.tenth) \(.max)"`:        "\"1.0 0.1 18446744073709551615\"\n",
		".max + 1, .max * 10":                "18446744073709551616\n184467440737095516150\n",
		".one + 2, .tenth + 0, .one * 1.5":   "3.0\n0.1\n1.5\n",
		".one == 1, .tenth == 0.1":           "true\ntrue\n",
		".ext[\"$data\"], (.bytes | length)": "\"AQ\"\n3\n",
		"keys | length":                      "9\n",
		"1, 1.0, 1e3, 100000000000000000000": "1\n1.0\n1000.0\n100000000000000000000\n",
		"{b: 1, a: .one} | tojson":           "\"{\\\"a\\\":1.0,\\\"b\\\":1}\"\n",
	} {
		if got, err := run1(t, n, program, nil, nil); err != nil || got != want {
			t.Errorf("%s\ngot  %s (%v)\nwant %s", program, got, err, want)
		}
	}
	// A value of the document keeps its order and is indented like any.
	n = raw(t, c, fromJSON(t, c, `{"b":{"z":1,"a":[2]}}`))
	pretty := &Options{JSON: &value.JSONOptions{Pretty: true}}
	for program, want := range map[string]string{
		".b":   "{\n  \"a\": [\n    2\n  ],\n  \"z\": 1\n}\n",
		"[.b]": "[\n  {\n    \"a\": [\n      2\n    ],\n    \"z\": 1\n  }\n]\n",
	} {
		if got, err := run1(t, n, program, pretty, nil); err != nil || got != want {
			t.Errorf("%s\ngot  %s (%v)\nwant %s", program, got, err, want)
		}
	}
}

func TestStoredOrder(t *testing.T) {
	const c = value.Msgpack
	p := value.AppendMapHeader(nil, c, 2)
	p = value.AppendInt(value.AppendString(p, c, "z"), c, 1)
	p = value.AppendInt(value.AppendString(p, c, "a"), c, 2)
	n := raw(t, c, p)
	for program, want := range map[string]string{
		".": "{\"z\":1,\"a\":2}\n", "select(.a == 2)": "{\"z\":1,\"a\":2}\n", "if .a then . else 0 end": "{\"z\":1,\"a\":2}\n",
		". as $x | $x": "{\"a\":2,\"z\":1}\n", ".[]": "2\n1\n", ".. | numbers": "2\n1\n",
	} {
		if got, err := run1(t, n, program, nil, nil); err != nil || got != want {
			t.Errorf("%s\ngot  %s (%v)\nwant %s", program, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	const c = value.Msgpack
	bad := append(value.AppendString(value.AppendMapHeader(nil, c, 3), c, "a"), 0xa1, 0xff) // text that is not UTF-8
	bad = value.AppendFloat64(value.AppendString(bad, c, "nan"), c, math.NaN())
	bad = value.AppendInt(value.AppendString(bad, c, "n"), c, 1)
	n := raw(t, c, bad)
	for _, test := range []struct {
		program, want string // of the output
		class         error
		text          string
	}{
		{`.n, .a`, "1\n", fault.Corrupt, "UTF-8"},
		{`.n, (.a | length)`, "1\n", fault.Corrupt, "UTF-8"},
		{`try (.a | length) catch 7`, "", fault.Corrupt, "UTF-8"}, // the document's errors are not the program's
		{`(.a | tojson)?`, "", fault.Corrupt, "UTF-8"},
		{`.nan | tojson`, "", fault.Invalid, "NaN"},
		{`[.n, nan]`, "", fault.Invalid, "NaN"},
		{`.n, infinite`, "1\n", fault.Invalid, "nfinity"},
		{`.n[`, "", fault.Invalid, "unexpected"},
		{`nope`, "", fault.Invalid, "function not defined: nope/0"},
		{`$nope`, "", fault.Invalid, "variable not defined: $nope"},
		{`input`, "", fault.Invalid, "not allowed"},
		{`import "x" as x; .`, "", fault.Invalid, "cannot load module"},
		{`.n, (.n | .x), .n`, "1\n", fault.Invalid, "expected an object but got: number (1)"},
		{`.n, error("no"), .n`, "1\n", fault.Invalid, "no"},
		{`.n, halt, .n`, "1\n", nil, ""},
		{`.n | halt_error`, "", fault.Invalid, "1"},
		{`$ENV, env`, "{}\n{}\n", nil, ""},
		{`reduce range(2000) as $i (0; [.])`, "", fault.Limit, "too deep"},
	} {
		got, err := run1(t, n, test.program, nil, nil)
		if got != test.want {
			t.Errorf("%s: printed %q, want %q", test.program, got, test.want)
		}
		switch {
		case test.class == nil && err != nil:
			t.Errorf("%s: %v", test.program, err)
		case test.class != nil && (!errors.Is(err, test.class) || !strings.Contains(err.Error(), test.text)):
			t.Errorf("%s: error %v, want a %v with %q", test.program, err, test.class, test.text)
		}
	}
	_, err := run1(t, n, `.n | halt_error`, nil, nil)
	var halt *gojq.HaltError
	if !errors.As(err, &halt) || halt.Value() != 1 {
		t.Errorf("halt_error gives %v", err)
	}
}

// TestLargePreview is the error about a value that is too long to decode for it.
func TestLargePreview(t *testing.T) {
	r := open(t, costDocument(t), nil)
	for program, want := range map[string]string{
		`.runs.id`:            `expected an object but got: array ([{"id":0,"energy":[0.0,0. ...])`,
		`.[0]`:                `expected an array but got: object ({"runs":[{"id":0,"energy" ...})`,
		`.runs | .[1:3] | .a`: `expected an object but got: array ([{"id":1,"energy":[1.0,1. ...])`,
	} {
		_, err := run1(t, r.Root(), program, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", program, err, want)
		}
	}
	if got, err := run1(t, r.Root(), `(.runs.id)?, .runs.id?, (try .runs.id catch "caught"), .runs[0].id`, nil, nil); err != nil || got != "\"caught\"\n0\n" {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestLosses(t *testing.T) {
	const c = value.CBOR
	p := value.AppendArrayHeader(nil, c, 2)
	p = value.AppendUndefined(p, c)
	p = value.AppendInt(value.AppendTag(p, c, 100), c, 3)
	var loss value.Losses
	if got, err := run1(t, raw(t, c, p), `.[]`, nil, &loss); err != nil || got != "null\n3\n" || loss.Count() != 2 {
		t.Errorf("got %s (%v), %d losses", got, err, loss.Count())
	}
	_, err := run1(t, raw(t, c, p), `.[1] + 1`, &Options{JSON: &value.JSONOptions{Lossless: true}}, nil)
	if !errors.Is(err, fault.Invalid) {
		t.Errorf("a loss gives %v", err)
	}
}

func TestCancel(t *testing.T) {
	n := raw(t, value.Msgpack, fromJSON(t, value.Msgpack, `[1]`))
	q, err := Compile(`.[0], repeat(1)`, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := 0
	for _, err = range q.Run(ctx, n, nil) {
		if results++; results == 10 {
			cancel()
		}
		if err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v after %d results", err, results)
	}
}

// TestAbandoned lets programs lose interest in walks over children: none is left when the run is over.
func TestAbandoned(t *testing.T) {
	r := open(t, costDocument(t), nil)
	before := runtime.NumGoroutine()
	q, err := Compile(`range(100) as $i | first(.runs[]).id, (label $out | .runs[] | ., break $out | .id)`, nil)
	if err != nil {
		t.Fatal(err)
	}
	most, results := 0, 0
	for _, err := range q.Run(t.Context(), r.Root(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if results++; results == 150 { // one run of the collector finds most of them
			runtime.GC()
			time.Sleep(50 * time.Millisecond)
			most = runtime.NumGoroutine() - before
		}
	}
	if most > 100 {
		t.Errorf("%d walks are open after the collector has run", most)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d walks are left behind", n-before)
	}
}

func TestText(t *testing.T) {
	n := raw(t, value.Msgpack, fromJSON(t, value.Msgpack, `{"s":"a b","n":1,"l":["x"]}`))
	q, err := Compile(`.s, .n, .l, (.l[0] + "y"), .nope`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for result, err := range q.Run(t.Context(), n, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if text, ok, err := result.Text(); err != nil {
			t.Fatal(err)
		} else if ok {
			got = append(got, text)
		} else {
			got = append(got, "-")
		}
	}
	if want := "a b|-|-|xy|-"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestParseValue(t *testing.T) {
	for text, want := range map[string]string{
		"1": "int", "1.0": "json.Number", "123456789012345678901234567890": "*big.Int", `"a"`: "string", "null": "<nil>",
	} {
		v, err := ParseValue(text)
		if got := typeOf(v); err != nil || got != want {
			t.Errorf("%s is a %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1 2", "{", "nope", "[1,]"} {
		if _, err := ParseValue(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("%q gives %v", text, err)
		}
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "<nil>"
	case int:
		return "int"
	case json.Number:
		return "json.Number"
	case string:
		return "string"
	}
	return "*big.Int"
}

// TestSharedQuery runs one query many times at once.
func TestSharedQuery(t *testing.T) {
	r := open(t, costDocument(t), nil)
	q, err := Compile(`.runs[] | select(.id == 7 or .nope.x == 1) | .energy[0], (.id | .x)?`, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	for range 16 {
		go func() {
			var out bytes.Buffer
			for result, err := range q.Run(context.Background(), r.Root(), nil) {
				if err == nil {
					err = result.WriteJSON(&out)
				}
				if err != nil {
					out.WriteString(err.Error())
				}
			}
			done <- out.String()
		}()
	}
	for range 16 {
		if got := <-done; got != "7.0" {
			t.Errorf("got %s", got)
		}
	}
}
