package jsonrows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
	"github.com/spilehq/spile/value"
)

func schema(t testing.TB, columns string) *tcb.Schema {
	t.Helper()
	s, err := tcb.ParseSchema([]byte(`{"columns":[` + columns + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rowsOf(t testing.TB, rows int, columns []*tcb.Column, s *tcb.Schema) string {
	t.Helper()
	p := tcb.NewRows(columns, s, &tcb.RowOptions{JSON: value.JSONOptions{NonFinite: value.NonFiniteString}})
	var out []byte
	var err error
	for i := range rows {
		if out, err = p.Append(out, i); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	return strings.TrimSuffix(string(out), "\n")
}

const (
	two   = `{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"s","type":"string","optional":true}`
	lists = `{"tag":1,"name":"a","type":"i32[]","optional":true},{"tag":2,"name":"e","type":"string[]","elementOptional":true}`
)

var reads = []struct {
	name, columns, text string
	o                   Options
	rows, err           string
}{
	{name: "empty", columns: two},
	{name: "a mark alone", columns: two, text: "\ufeff"},
	{name: "blank lines", columns: two, text: "\n  \r\n{\"id\":1,\"s\":\"a\"}\r\n\n\t{\"s\":null,\"id\":2} \n\n{\"id\":3}", rows: "{\"id\":1,\"s\":\"a\"}\n{\"id\":2,\"s\":null}\n{\"id\":3,\"s\":null}"},
	{name: "byte order mark", columns: two, text: "\ufeff{\"id\":1}\n", rows: `{"id":1,"s":null}`},
	{name: "escapes", columns: two, text: `{"\u0069d":1,"s":"a\u00e4\n\ud83d\ude00"}`, rows: `{"id":1,"s":"aä\n😀"}`},
	{name: "exact numbers", columns: `{"tag":1,"name":"n","type":"i64"}`, text: "{\"n\":9223372036854775807}\n{\"n\":-9223372036854775808}\n{\"n\":9007199254740993}\n{\"n\":1e3}\n{\"n\":3.0}", rows: "{\"n\":9223372036854775807}\n{\"n\":-9223372036854775808}\n{\"n\":9007199254740993}\n{\"n\":1000}\n{\"n\":3}"},
	{name: "wrong values", columns: two, text: "{\"id\":3.5,\"s\":1}\n{\"id\":null}\n{}\n{\"id\":[1]}\n{\"id\":{\"x\":1},\"s\":true}\n{\"id\":2147483648}", err: `jsonrows: x.jsonl: line 1, column 1 (id): a number "3.5", want a whole number of 32 bits
jsonrows: x.jsonl: line 1, column 2 (s): a number "1", want text
jsonrows: x.jsonl: line 2, column 1 (id): no value, and the column is not optional
jsonrows: x.jsonl: line 3, column 1 (id): the row has no member "id", and the column is not optional
jsonrows: x.jsonl: line 4, column 1 (id): an array, want i32
jsonrows: x.jsonl: line 5, column 1 (id): an object, want a single value
jsonrows: x.jsonl: line 5, column 2 (s): a truth value "true", want text
jsonrows: x.jsonl: line 6, column 1 (id): a number "2147483648", want a whole number of 32 bits`},
	{name: "no JSON", columns: two, text: "{\"id\":1}\n{\"id\":1,\"id\":2}\n{\"id\":01}\n{\"id\":1\n[1]\n{\"id\":1} {}\n{\"id\":1,\"s\":\"\xff\"}\n7\nnull\n{\"id\":1,}\n}\n", err: `jsonrows: x.jsonl: line 2: the member "id" is there twice (offset 0x11)
jsonrows: x.jsonl: line 3: invalid character '1' after object value (expecting ',' or '}') (offset 0x20)
jsonrows: x.jsonl: line 4: the line ends inside the row: a row is an object on one line (offset 0x2a)
jsonrows: x.jsonl: line 5: an array, want an object
jsonrows: x.jsonl: line 6: there is more behind the row (offset 0x39)
jsonrows: x.jsonl: line 7: invalid UTF-8 (offset 0x48)
jsonrows: x.jsonl: line 8: a number, want an object
jsonrows: x.jsonl: line 9: null, want an object
jsonrows: x.jsonl: line 10: invalid character ',' at start of value (offset 0x5a)
jsonrows: x.jsonl: line 11: invalid character '}' at start of value (offset 0x5d)`},
	{name: "unknown", columns: two, text: "{\"id\":1,\"x\":{\"y\":[]}}\n{\"id\":2,\"x\":7,\"3\":8}", err: `jsonrows: x.jsonl: line 1: the schema has no column "x"; so in 1 more
jsonrows: x.jsonl: line 2: the schema has no column "3"`},
	{name: "tags as names", columns: two, text: `{"2":"a","1":7}`, rows: `{"id":7,"s":"a"}`},
	{name: "name and tag of a column", columns: two, text: `{"id":7,"1":7}`, err: `jsonrows: x.jsonl: line 1, column 1 (id): the member "1" is the column, which the row has already`},
	{name: "unknown, ignored", columns: two, o: Options{tabular.Options{IgnoreUnknown: true}}, text: "{\"x\":{\"y\":[]},\"id\":1}\n{\"id\":2,\"x\":1}", rows: "{\"id\":1,\"s\":null}\n{\"id\":2,\"s\":null}"},
	{name: "unknown, ignored, no JSON", columns: two, o: Options{tabular.Options{IgnoreUnknown: true}}, text: `{"id":1,"x":{"y":1,"y":2}}`, err: `jsonrows: x.jsonl: line 1: the member "y" is there twice (offset 0x13)`},
	{name: "the tag as a name", columns: `{"tag":7,"type":"i32"}`, text: `{"7":5}`, rows: `{"7":5}`},
	{name: "arrays", columns: lists, text: "{\"a\":[1,2],\"e\":[null,\"\",\"x\"]}\n{\"e\":[]}\n{\"a\":[],\"e\":[null]}", rows: "{\"a\":[1,2],\"e\":[null,\"\",\"x\"]}\n{\"a\":null,\"e\":[]}\n{\"a\":[],\"e\":[null]}"},
	{name: "wrong arrays", columns: lists, text: "{\"a\":1,\"e\":null}\n{\"a\":[1,null,\"x\"],\"e\":[[1]]}\n{\"a\":[1", err: `jsonrows: x.jsonl: line 1, column 1 (a): a number "1", want an array, i32[]
jsonrows: x.jsonl: line 1, column 2 (e): no value, and the column is not optional
jsonrows: x.jsonl: line 2, column 1 (a), element 1: no value, and elements are not optional
jsonrows: x.jsonl: line 2, column 2 (e), element 0: an array, want a single value
jsonrows: x.jsonl: line 3: the line ends inside the row: a row is an object on one line (offset 0x35)`},
	{name: "logical types", columns: `{"tag":1,"name":"t","type":"datetime"},{"tag":2,"name":"d","type":"timespan"},{"tag":3,"name":"e","type":"enum","enum":{"low":1,"high":2}},{"tag":4,"name":"u","type":"uuid"},{"tag":5,"name":"f","type":"f32"},{"tag":6,"name":"b","type":"bool"}`,
		text: "{\"t\":\"2026-01-02T03:04:05.1234567\",\"d\":\"-1.02:03:04.5\",\"e\":\"high\",\"u\":\"00112233-4455-6677-8899-AABBCCDDEEFF\",\"f\":\"NaN\",\"b\":true}\n{\"t\":\"0001-01-01T00:00:00\",\"d\":\"00:00:00\",\"e\":7,\"u\":\"00112233-4455-6677-8899-aabbccddeeff\",\"f\":-0,\"b\":false}",
		rows: "{\"t\":\"2026-01-02T03:04:05.1234567\",\"d\":\"-1.02:03:04.5\",\"e\":2,\"u\":\"00112233-4455-6677-8899-aabbccddeeff\",\"f\":\"NaN\",\"b\":true}\n{\"t\":\"0001-01-01T00:00:00\",\"d\":\"00:00:00\",\"e\":7,\"u\":\"00112233-4455-6677-8899-aabbccddeeff\",\"f\":-0.0,\"b\":false}"},
	{name: "bounded list", columns: two, o: Options{tabular.Options{MaxErrors: 2}}, text: "{}\n[]\n{}\n{\"x\":1}", err: `jsonrows: x.jsonl: line 1, column 1 (id): the row has no member "id", and the column is not optional; so in 2 more
jsonrows: x.jsonl: line 2: an array, want an object
and 1 more`},
}

func TestRead(t *testing.T) {
	for _, c := range reads {
		t.Run(c.name, func(t *testing.T) {
			s := schema(t, c.columns)
			c.o.Name = "x.jsonl"
			columns, rows, _, err := Read(t.Context(), strings.NewReader(c.text), s, &c.o)
			if c.err != "" {
				if err == nil || err.Error() != c.err || columns != nil || !errors.Is(err, fault.Invalid) {
					t.Fatalf("error:\n%v\nwant:\n%s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(t, rows, columns, s); got != c.rows {
				t.Errorf("rows:\n%s\nwant:\n%s", got, c.rows)
			}
		})
	}
}

func TestInfer(t *testing.T) {
	text := `{"i":1,"l":3000000000,"f":0.5,"s":"7","t":"2026-01-02T03:04:05","a":[1,2],"e":[],"n":null,"b":true}
{"i":2,"f":1,"s":"x","t":"2026-01-02","a":[null],"e":["x"],"b":false,"late":"00:00:01","l":1}`
	s, err := Infer(t.Context(), strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(s)
	want := `{"columns":[{"tag":1,"name":"i","type":"i32"},{"tag":2,"name":"l","type":"i64"},{"tag":3,"name":"f","type":"f64"},{"tag":4,"name":"s","type":"string"},{"tag":5,"name":"t","type":"datetime"},{"tag":6,"name":"a","type":"i32[]","elementOptional":true},{"tag":7,"name":"e","type":"string[]"},{"tag":8,"name":"n","type":"string","optional":true},{"tag":9,"name":"b","type":"bool"},{"tag":10,"name":"late","type":"timespan","optional":true}]}`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, _, _, err := Read(t.Context(), strings.NewReader(text), s, nil); err != nil {
		t.Error("what was proposed does not read the rows: ", err)
	}
	_, err = Infer(t.Context(), strings.NewReader("{\"a\":1,\"b\":[1],\"c\":{}}\n{\"a\":\"x\",\"b\":1}"), &Options{tabular.Options{Name: "y"}})
	if want := `jsonrows: y: line 1, c: an object, want a single value or an array of them
jsonrows: y: line 2, a: "x" is of another type than "1" above it
jsonrows: y: line 2, b: arrays and single values in one column`; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s, text := schema(t, bigColumns), big(20000)
	n := 0
	o := &Options{tabular.Options{Progress: func(int, int64) {
		if n++; n == 2 {
			cancel()
		}
	}}}
	if _, _, _, err := Read(ctx, strings.NewReader(text), s, o); !errors.Is(err, context.Canceled) {
		t.Error("read: ", err)
	}
	columns, rows, _, err := Read(context.Background(), strings.NewReader(text), s, nil)
	if err != nil || rows != 20000 {
		t.Fatal(rows, err)
	}
	if err := Write(ctx, io.Discard, rows, columns, s, nil); !errors.Is(err, context.Canceled) {
		t.Error("write: ", err)
	}
	if err := Write(context.Background(), io.Discard, 3, columns, s, nil); !errors.Is(err, fault.Invalid) {
		t.Error("another number of rows: ", err)
	}
}

const bigColumns = `{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"name","type":"string"},{"tag":3,"name":"hp","type":"i64"},` +
	`{"tag":4,"name":"rate","type":"f32"},{"tag":5,"name":"on","type":"bool"},{"tag":6,"name":"drops","type":"i32[]"}`

func big(rows int) string {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "{\"id\":%d,\"name\":\"item %d\",\"hp\":%d,\"rate\":0.%d,\"on\":true,\"drops\":[%d,%d]}\n", i, i%1000, i*1000003, i%997, i%7, i%11)
	}
	return b.String()
}

func TestAllocations(t *testing.T) {
	text, s := big(20000), schema(t, bigColumns)
	n := testing.AllocsPerRun(1, func() {
		if _, _, _, err := Read(context.Background(), strings.NewReader(text), s, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n > 20000*2.5 {
		t.Errorf("%.2f allocations a row", n/20000)
	}
}

func BenchmarkRead(b *testing.B) {
	text, s := big(100000), schema(b, bigColumns)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, _, err := Read(context.Background(), strings.NewReader(text), s, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzJSONRows reads what is proposed for a text, writes it and reads it back.
func FuzzJSONRows(f *testing.F) {
	for _, c := range reads {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ctx := context.Background()
		s, err := Infer(ctx, bytes.NewReader(text), nil)
		if err != nil {
			return
		}
		for _, line := range bytes.Split(text, []byte("\n")) {
			line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\ufeff"))
			if len(line) > 0 && !json.Valid(line) {
				t.Errorf("no JSON was taken: %q", line)
			}
		}
		columns, rows, _, err := Read(ctx, bytes.NewReader(text), s, nil)
		if err != nil {
			t.Fatalf("what was proposed does not read the rows: %v", err)
		}
		var out bytes.Buffer
		if err := Write(ctx, &out, rows, columns, s, nil); err != nil {
			t.Fatal(err)
		}
		back, backRows, _, err := Read(ctx, &out, s, nil)
		if err != nil || backRows != rows {
			t.Fatalf("%d rows, %v, want %d", backRows, err, rows)
		}
		a, _ := tcb.Append(nil, rows, columns, nil)
		b, _ := tcb.Append(nil, rows, back, nil)
		if !bytes.Equal(a, b) {
			t.Errorf("written and read back as another table")
		}
	})
}

// A number that a float would change is refused, and one that a float holds is a float.
func TestInferWholeNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":18446744073709551615}`:                 `jsonrows: y: line 1, a: the number "18446744073709551615", which no column of numbers holds: want it as text`,
		`{"a":1e-400}`:                               `jsonrows: y: line 1, a: the number "1e-400", which no column of numbers holds: want it as text`,
		"{\"a\":1.5}\n{\"a\":9007199254740993}":      `jsonrows: y: line 2, a: "9007199254740993" is of another type than "1.5" above it`,
		"{\"a\":1.5}\n{\"a\":9007199254740992}":      "f64",
		"{\"a\":1.5}\n{\"a\":1152921504606847000.0}": "f64",
		"{\"a\":1.5}\n{\"a\":100000000000000000000}": "f64",
		`{"a":9007199254740993}`:                     "i64",
		`{"a":0e-400}`:                               "f64",
	} {
		s, err := Infer(t.Context(), strings.NewReader(text), &Options{tabular.Options{Name: "y"}})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = s.Columns[0].TypeName()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
