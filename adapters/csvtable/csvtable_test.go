package csvtable

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/spilehq/spile/adapters/internal/csvtext"
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

// rowsOf are the rows of columns, as JSON.
func rowsOf(t testing.TB, rows int, columns []*tcb.Column, s *tcb.Schema) string {
	t.Helper()
	o := &tcb.RowOptions{}
	o.JSON.NonFinite = value.NonFiniteString
	p := tcb.NewRows(columns, s, o)
	var out []byte
	var err error
	for i := range rows {
		if out, err = p.Append(out, i); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	return string(out)
}

func utf16Text(s string, big bool) string {
	var out []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
		if big {
			out = append(out, byte(u>>8), byte(u))
		} else {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return string(out)
}

const (
	two  = `{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"s","type":"string"}`
	twoO = `{"tag":1,"name":"id","type":"i32","optional":true},{"tag":2,"name":"s","type":"string","optional":true}`
	oneF = `{"tag":1,"name":"f","type":"f64"}`
	list = `{"tag":1,"name":"a","type":"i32[]"},{"tag":2,"name":"s","type":"string[]","optional":true,"elementOptional":true}`
)

var reads = []struct {
	name, columns, text string
	o                   Options
	rows                string // as JSON
	err                 string // the whole error
	warning             string
}{
	{name: "empty", columns: two, text: ""},
	{name: "a mark alone", columns: two, text: "\ufeff"},
	{name: "header alone", columns: two, text: "id,s"},
	{name: "plain", columns: two, text: "id,s\n1,a\n2,b", rows: `{"id":1,"s":"a"}` + "\n" + `{"id":2,"s":"b"}`},
	{name: "other order", columns: two, text: "s,id\r\na,1\r\n", rows: `{"id":1,"s":"a"}`},
	{name: "byte order mark", columns: two, text: "\ufeffid,s\n1,\ufeffa\n", rows: `{"id":1,"s":"` + "\ufeff" + `a"}`},
	{name: "UTF-16LE", columns: two, text: utf16Text("id;s\r\n1;ä😀\r\n", false), rows: `{"id":1,"s":"ä😀"}`},
	{name: "UTF-16BE", columns: two, text: utf16Text("id\ts\n1\tä😀\n", true), rows: `{"id":1,"s":"ä😀"}`},
	{name: "UTF-16, half a pair", columns: two, text: utf16Text("id,s\n1,", false) + "\x00\xd8x\x00", err: "csvtable: x.csv: line 2: half a surrogate pair, 0xd800, in UTF-16 (offset 0x10)"},
	{name: "UTF-16, half a character", columns: two, text: utf16Text("id,s\n1,a", false) + "x", err: "csvtable: x.csv: line 2: half a character at the end of UTF-16 (offset 0x12)"},
	{name: "UTF-32", columns: two, text: "\xff\xfe\x00\x00i\x00\x00\x00", err: "csvtable: x.csv: the text is UTF-32, want UTF-8 or UTF-16"},
	{name: "Latin-1", columns: two, text: "id,s\n1,\xe4\n2,b\xe4\n", err: `csvtable: x.csv: line 2, field 2 (s): the text "\xe4" is no UTF-8; of a spreadsheet, save it as CSV UTF-8
csvtable: x.csv: line 3, field 2 (s): the text "b\xe4" is no UTF-8`},
	{name: "tags as names", columns: two, text: "2,1\na,7", rows: `{"id":7,"s":"a"}`},
	{name: "tags as names and tags", columns: two, text: "2@2,1@1\na,7", rows: `{"id":7,"s":"a"}`},
	{name: "name and tag of a column", columns: two, text: "id,1,s\n7,7,a", err: `csvtable: x.csv: line 1, field 2: "1" is column 1 (id), which the header has already`},
	{name: "header below other lines", columns: two, o: Options{Header: 3}, text: "a \"note\n;;\nid,s\n7,a\nx,b", err: `csvtable: x.csv: line 5, column 1 (id): text "x", want a whole number of 32 bits`},
	{name: "no header there", columns: two, o: Options{Header: 2}, text: "id,s\n", err: `csvtable: x.csv: there is no header in line 2`},
	{name: "decimal comma, not declared", columns: `{"tag":1,"name":"f","type":"f64"}`, text: "f\n\"1,5\"", err: `csvtable: x.csv: line 2, column 1 (f): text "1,5" has a comma, and numbers have a point; a decimal comma must be declared`},
	{name: "nameless", columns: `{"tag":1,"name":"f","type":"f64"}`, text: "f,\n1,x\n2,y\n3,\n4,z", err: `csvtable: x.csv: line 2, field 2: the value "x", and the header has no name for the column; so in 2 more`},
	{name: "semicolon", columns: two, text: "id;s\n1;a,b\n", rows: `{"id":1,"s":"a,b"}`},
	{name: "delimiter in quotes", columns: `{"tag":1,"name":"a;b","type":"i32"},{"tag":2,"name":"s","type":"string"}`, text: "\"a;b\",s\n1,x\n", rows: `{"a;b":1,"s":"x"}`},
	{name: "two delimiters", columns: two, text: "id;s,t\n", err: `csvtable: x.csv: the header has ';' and ',' outside quotes: which is the delimiter must be declared`},
	{name: "declared", columns: two, o: Options{Delimiter: '|'}, text: "id|s\n1|a,;b\n", rows: `{"id":1,"s":"a,;b"}`},
	{name: "sep line", columns: two, text: "sep=|\r\nid|s\r\n1|a\r\n", rows: `{"id":1,"s":"a"}`},
	{name: "quotes", columns: two, text: "id,s\n\"1\",\"a,\"\"b\"\"\"\n", rows: `{"id":1,"s":"a,\"b\""}`},
	{name: "line breaks", columns: two, text: "id,s\r\n1,\"a\r\nb\nc\rd\"\r\n2,x\r\n", rows: `{"id":1,"s":"a\r\nb\nc\rd"}` + "\n" + `{"id":2,"s":"x"}`},
	{name: "physical lines", columns: two, text: "id,s\n1,\"a\nb\n\"\n\nx,y\n2\n3,\"\n\",\n", err: `csvtable: x.csv: line 6, column 1 (id): text "x", want a whole number of 32 bits
csvtable: x.csv: line 7: 1 fields, the header has 2
csvtable: x.csv: line 8: 3 fields, the header has 2`},
	{name: "quote inside", columns: two, text: "id,s\n1,a\"b\n2,\"a\"b\nx,c\n", err: `csvtable: x.csv: line 2: a quote inside a field that does not start with one: quotes in a field are doubled, and the field stands in quotes
csvtable: x.csv: line 3: text behind the closing quote of a field
csvtable: x.csv: line 4, column 1 (id): text "x", want a whole number of 32 bits`},
	{name: "open quote", columns: two, text: "id,s\n1,\"a\nb\n", err: "csvtable: x.csv: line 2: the quote that opens a field is never closed"},
	{name: "CR alone", columns: two, text: "id,s\n1,a\r2,b\n", err: "csvtable: x.csv: line 2: a CR without LF outside quotes"},
	{name: "blank lines", columns: two, text: "\n\nid,s\n\n1,a\n\r\n\n2,b\n\n", rows: `{"id":1,"s":"a"}` + "\n" + `{"id":2,"s":"b"}`, warning: "line 4: 3 blank lines between records are left out"},
	{name: "empty fields", columns: twoO, text: "id,s\n,\n\"\",\"\"\n\\N,\\N\n\"1\",\"\\N\"\n", rows: `{"id":null,"s":null}` + "\n" + `{"id":null,"s":""}` + "\n" + `{"id":null,"s":null}` + "\n" + `{"id":1,"s":"\\N"}`},
	{name: "empty text", columns: twoO, o: Options{Options: tabular.Options{EmptyText: true, Null: "NULL"}}, text: "id,s\n,\nNULL,NULL\n1,\"NULL\"\n", rows: `{"id":null,"s":""}` + "\n" + `{"id":null,"s":null}` + "\n" + `{"id":1,"s":"NULL"}`},
	{name: "empty and required", columns: two, text: "id,s\n1,\n,a\n", err: "csvtable: x.csv: line 3, column 1 (id): no value, and the column is not optional"},
	{name: "arrays", columns: list, text: "a,s\n1;2,x\\;y;\\\\;\\e;\\0;;z\n,\n\"\",\"\"\n3,\\0\n", rows: `{"a":[1,2],"s":["x;y","\\","",null,null,"z"]}` + "\n" + `{"a":[],"s":null}` + "\n" + `{"a":[],"s":[]}` + "\n" + `{"a":[3],"s":[null]}`},
	{name: "arrays between semicolons", columns: list, text: "a;s\n\"1;2\";x\n", rows: `{"a":[1,2],"s":["x"]}`},
	{name: "wrong arrays", columns: list, text: "a,s\n1;x;3,\\n\n1;;2,\n\\0,a\\\n", err: `csvtable: x.csv: line 2, column 1 (a), element 1: text "x", want a whole number of 32 bits
csvtable: x.csv: line 2, column 2 (s), element 0: "\\n" has a backslash that stands for nothing; \\ is a backslash, \; the separator
csvtable: x.csv: line 3, column 1 (a), element 1: no value, and elements are not optional
csvtable: x.csv: line 4, column 1 (a), element 0: no value, and elements are not optional
csvtable: x.csv: line 4, column 2 (s), element 0: "a\\" has a backslash that stands for nothing; \\ is a backslash, \; the separator`},
	{name: "decimal comma", columns: oneF, text: "f\n\"3,5\"\n", err: `csvtable: x.csv: line 2, column 1 (f): text "3,5" has a comma, and numbers have a point; a decimal comma must be declared`},
	{name: "decimal comma, declared", columns: oneF, o: Options{Options: tabular.Options{DecimalComma: true}}, text: "f\n\"3,5\"\n4\n", rows: `{"f":3.5}` + "\n" + `{"f":4.0}`},
	{name: "decimal comma, declared, and a point", columns: oneF, o: Options{Options: tabular.Options{DecimalComma: true}}, text: "f\n1.000\n", err: `csvtable: x.csv: line 2, column 1 (f): text "1.000" has a point, and numbers have a comma`},
	{name: "blanks are text", columns: two, text: "id,s\n 1,a\n", err: `csvtable: x.csv: line 2, column 1 (id): text " 1", want a whole number of 32 bits`},
	{name: "tags", columns: two, text: "id@1,gone#,#old@7,s@2\n1,?,?,a\n", err: `csvtable: x.csv: line 1, field 2: "gone#" carries no tag, and "s@2" does: all names carry one, or none`},
	{name: "reserved", columns: two, text: "id@1,#old@7,s@2\n1,?,a\n", rows: `{"id":1,"s":"a"}`},
	{name: "left out", columns: two, text: "id,#note,s\n1,?,a\n", rows: `{"id":1,"s":"a"}`, warning: `line 1, field 2: 1 column is left out: its name begins with # ("#note")`},
	{name: "two left out", columns: two, text: "id,#c,s,#d\n1,?,a,\n", rows: `{"id":1,"s":"a"}`, warning: `line 1, field 2: 2 columns are left out: their names begin with # ("#c", "#d")`},
	{name: "wrong tags", columns: two, text: "id@1,s@1,x@0,y@-1,z@99999999999\n", err: `csvtable: x.csv: line 1, field 2: the tag in "s@1" is that of line 1, field 1 too
csvtable: x.csv: line 1, field 3: the tag in "x@0", want 1 to 2147483647
csvtable: x.csv: line 1, field 4: the tag in "y@-1", want 1 to 2147483647
csvtable: x.csv: line 1, field 5: the tag in "z@99999999999", want 1 to 2147483647`},
	{name: "other names", columns: two, text: "ID@1,s@2\n", err: `csvtable: x.csv: line 1, field 1: the header calls the tag 1 "ID", the schema "id"
csvtable: x.csv: the header has no column 1 (id), which is not optional`},
	{name: "reserved in the header", columns: two, text: "#id@1,s@2\n", err: `csvtable: x.csv: line 1, field 1: the header reserves the tag 1, which is that of column 1 (id) in the schema
csvtable: x.csv: the header has no column 1 (id), which is not optional`},
	{name: "name twice", columns: two, text: "id,s,id\n", err: `csvtable: x.csv: line 1, field 3: the name "id" is that of line 1, field 1 too`},
	{name: "missing and unknown", columns: twoO, text: "x\n1\n", err: `csvtable: x.csv: line 1, field 1: the schema has no column "x"`},
	{name: "missing and ignored", columns: twoO, o: Options{Options: tabular.Options{IgnoreUnknown: true}}, text: "x,id\n1,2\n", rows: `{"id":2,"s":null}`},
	{name: "no name", columns: two, text: "id,s,,\n1,a,,\n2,b,c,\n3,d,e,\n", err: `csvtable: x.csv: line 3, field 3: the value "c", and the header has no name for the column; so in 1 more`},
	{name: "the tag as a name", columns: `{"tag":7,"type":"i32"}`, text: "7\n5\n", rows: `{"7":5}`},
	{name: "floats", columns: oneF, text: "f\nNaN\n-Infinity\n-0\n1e300\n", rows: "{\"f\":\"NaN\"}\n{\"f\":\"-Infinity\"}\n{\"f\":-0.0}\n{\"f\":1e+300}"},
	{name: "bounded list", columns: two, o: Options{Options: tabular.Options{MaxErrors: 1}}, text: "id,s\nx,\ny,\nz,\n", err: `csvtable: x.csv: line 2, column 1 (id): text "x", want a whole number of 32 bits
and 2 more`},
	{name: "options", columns: two, o: Options{Delimiter: 'a'}, err: `csvtable: the delimiter 'a', want a character that stands in no number or word`},
	{name: "separator", columns: two, o: Options{Options: tabular.Options{Separator: '1'}}, err: `csvtable: the separator of elements is '1', want a character that stands in no number, date or uuid`},
}

func TestRead(t *testing.T) {
	for _, c := range reads {
		t.Run(c.name, func(t *testing.T) {
			s := schema(t, c.columns)
			c.o.Name = "x.csv"
			for _, r := range []io.Reader{strings.NewReader(c.text), &slow{strings.NewReader(c.text)}} {
				columns, rows, warnings, err := Read(t.Context(), r, s, &c.o)
				if c.err != "" {
					if err == nil || err.Error() != c.err || columns != nil {
						t.Fatalf("error:\n%v\nwant:\n%s", err, c.err)
					}
					if !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Conflict) && !errors.Is(err, fault.NotFound) {
						t.Error("no class")
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := rowsOf(t, rows, columns, s); got != c.rows && got != c.rows+"\n" {
					t.Errorf("rows:\n%s\nwant:\n%s", got, c.rows)
				}
				if got := fmt.Sprint(warnings); got != "["+c.warning+"]" {
					t.Errorf("warnings %s, want %s", got, c.warning)
				}
			}
		})
	}
}

// slow gives a byte at a time.
type slow struct{ r io.Reader }

func (s *slow) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 1)]) }

// The result is that of the bytes, not of the place where they are read.
func TestZones(t *testing.T) {
	s := schema(t, `{"tag":1,"name":"t","type":"datetime"}`)
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []string{"UTC", "America/St_Johns", "Asia/Kolkata"} {
		t.Setenv("TZ", zone)
		t.Setenv("LANG", "de_DE.UTF-8")
		time.Local = time.FixedZone(zone, len(zone)*1000)
		columns, _, _, err := Read(t.Context(), strings.NewReader("t\n2026-03-29T02:30:00.1234567\n"), s, nil)
		if err != nil || columns[0].Int64s[0] != 639103482001234567 {
			t.Error(zone, columns, err)
		}
	}
}

func TestInfer(t *testing.T) {
	text := "i@1,l@2,f@3,b@4,u@5,t@6,d@7,s@8,#x@9,zip@10,e@11,n@12\n" +
		"1,3000000000,1,true,00112233-4455-6677-8899-aabbccddeeff,2026-01-02T03:04:05,01:02:03,a,?,01234,,99999999999999999999\n" +
		",2,0.5,FALSE,00112233-4455-6677-8899-aabbccddeeff,2026-01-02,-1.00:00:00,\"\",?,1,,1\n"
	s, err := Infer(t.Context(), strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(s)
	want := `{"columns":[{"tag":1,"name":"i","type":"i32","optional":true},{"tag":2,"name":"l","type":"i64"},{"tag":3,"name":"f","type":"f64"},{"tag":4,"name":"b","type":"bool"},{"tag":5,"name":"u","type":"uuid"},{"tag":6,"name":"t","type":"datetime"},{"tag":7,"name":"d","type":"timespan"},{"tag":8,"name":"s","type":"string"},{"tag":10,"name":"zip","type":"string"},{"tag":11,"name":"e","type":"string","optional":true},{"tag":12,"name":"n","type":"string"}],"reserved":[{"tag":9,"name":"x"}]}`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, _, _, err := Read(t.Context(), strings.NewReader(text), s, nil); err != nil {
		t.Error("what was proposed does not read the file: ", err)
	}
	s, err = Infer(t.Context(), strings.NewReader("a;b\n1,5;1.5\n"), &Options{Options: tabular.Options{DecimalComma: true}})
	if got, _ := json.Marshal(s); string(got) != `{"columns":[{"tag":1,"name":"a","type":"f64"},{"tag":2,"name":"b","type":"string"}]}` {
		t.Errorf("%s %v", got, err)
	}
	if _, err := Infer(t.Context(), strings.NewReader(""), nil); !errors.Is(err, fault.Invalid) {
		t.Error("no header: ", err)
	}
}

func TestWrite(t *testing.T) {
	s := schema(t, `{"tag":1,"name":"a,b","type":"string","optional":true},{"tag":2,"name":"x@5","type":"i64"}`)
	b := tcb.NewBuilder(s)
	for _, text := range []string{"", `\N`, "q\"", "l\r\n", "=1+1"} {
		b.Scalar(0, tcb.Cell{Kind: tcb.CellText, Text: text})
		b.Scalar(1, tcb.Cell{Kind: tcb.CellNumber, Text: "9007199254740993"})
		b.EndRow()
	}
	var out bytes.Buffer
	if err := Write(t.Context(), &out, 5, b.Columns(), s, nil); err != nil {
		t.Fatal(err)
	}
	want := "\"a,b@1\",x@5@2\n\"\",9007199254740993\n\"\\N\",9007199254740993\n\"q\"\"\",9007199254740993\n\"l\r\n\",9007199254740993\n=1+1,9007199254740993\n"
	if out.String() != want {
		t.Errorf("%q\nwant %q", out.String(), want)
	}
	columns, rows, _, err := Read(t.Context(), &out, s, nil)
	if err != nil || rows != 5 || columns[0].Strings[3] != "l\r\n" || !columns[0].Has(0) {
		t.Error(columns, err)
	}
	for _, bad := range []struct {
		columns string
		o       Options
		want    string
	}{
		{`{"tag":1,"name":"#a","type":"i32"}`, Options{}, "csvtable: y.csv: column 1 (#a): the name starts with #, which in a header leaves a column out"},
		{`{"tag":1,"name":"a","type":"i32"}`, Options{Options: tabular.Options{Null: "a;b"}, Delimiter: ';'}, `csvtable: the delimiter ';' stands in the text for absent values, "a;b"`},
		{`{"tag":1,"name":"t","type":"datetime"}`, Options{}, "csvtable: y.csv: row 0, column 1 (t): -1 ticks are no datetime, 0 to 3155378975999999999 are"},
	} {
		s := schema(t, bad.columns)
		c := &tcb.Column{Tag: 1, Type: s.Columns[0].Type, Rows: 1, Int32s: []int32{1}, Int64s: []int64{-1}}
		bad.o.Name = "y.csv"
		if err := Write(t.Context(), io.Discard, 1, []*tcb.Column{c}, s, &bad.o); err == nil || !strings.HasSuffix(err.Error(), strings.TrimPrefix(bad.want, "csvtable: ")) {
			t.Errorf("%v, want %s", err, bad.want)
		}
	}
	if err := Write(t.Context(), io.Discard, 3, nil, nil, nil); !errors.Is(err, fault.Invalid) {
		t.Error("rows without columns: ", err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	text := big(20000)
	n := 0
	o := &Options{Options: tabular.Options{Progress: func(rows int, bytes int64) {
		if n++; n == 2 {
			cancel()
		}
	}}}
	if _, _, _, err := Read(ctx, strings.NewReader(text), schema(t, bigColumns), o); !errors.Is(err, context.Canceled) {
		t.Error("read: ", err)
	}
	columns, rows, _, err := Read(context.Background(), strings.NewReader(text), schema(t, bigColumns), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(ctx, io.Discard, rows, columns, nil, nil); !errors.Is(err, context.Canceled) {
		t.Error("write: ", err)
	}
	broken := errors.New("broken")
	if _, _, _, err := Read(context.Background(), io.MultiReader(strings.NewReader("id,s\n1,a"), &failing{broken}), schema(t, two), nil); !errors.Is(err, broken) {
		t.Error("a source that fails: ", err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

const bigColumns = `{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"name","type":"string"},{"tag":3,"name":"hp","type":"i64"},` +
	`{"tag":4,"name":"rate","type":"f32"},{"tag":5,"name":"x","type":"f64"},{"tag":6,"name":"on","type":"bool"},` +
	`{"tag":7,"name":"note","type":"string","optional":true},{"tag":8,"name":"drops","type":"i32[]"}`

func big(rows int) string {
	var b strings.Builder
	b.WriteString("id,name,hp,rate,x,on,note,drops\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d,item %d,%d,0.%d,%d.25,true,\"a, b\",%d;%d\n", i, i%1000, i*1000003, i%997, i, i%7, i%11)
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
	if n > 20000*1.1 {
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

// FuzzCSV compares the records with those of encoding/csv, where that reads the text and keeps it as it is; and writes what
// was read and reads it back.
func FuzzCSV(f *testing.F) {
	for _, c := range reads {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := csvtext.NewRecords("csvtable", bytes.NewReader(text), ',', 1)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for {
			err := s.Next()
			if err != nil {
				if err != io.EOF {
					got = nil
				}
				break
			}
			if s.Blank() {
				continue
			}
			var r []string
			for _, f := range s.Fields {
				r = append(r, string(s.Text[f.Start:f.End]))
			}
			got = append(got, r)
		}
		oracle := csv.NewReader(bytes.NewReader(text))
		oracle.FieldsPerRecord = -1
		want, err := oracle.ReadAll()
		if err == nil && !bytes.Contains(text, []byte("\r")) && !bytes.HasPrefix(text, []byte("sep=")) && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("records %q\nwant    %q", got, want)
		}
		ctx := context.Background()
		schema, err := Infer(ctx, bytes.NewReader(text), nil)
		if err != nil {
			return
		}
		columns, rows, _, err := Read(ctx, bytes.NewReader(text), schema, nil)
		if err != nil {
			t.Fatalf("what was proposed does not read the file: %v", err)
		}
		var out bytes.Buffer
		if err := Write(ctx, &out, rows, columns, schema, nil); err != nil {
			return
		}
		back, backRows, _, err := Read(ctx, &out, schema, nil)
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
