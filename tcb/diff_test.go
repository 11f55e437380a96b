package tcb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/tabletest"
	"github.com/spilehq/spile/tcb"
)

var updateDiff = flag.Bool("update-diff", false, "rewrite the files in testdata/diff")

// snapshot makes a table of a schema and rows of JSON, values in the order of the columns: "null", "1", `"a"`, "[1,null]".
func snapshot(t testing.TB, schema string, rows ...[]string) tcb.Snapshot {
	t.Helper()
	s, err := tcb.ParseSchema([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	b := tcb.NewBuilder(s)
	for _, row := range rows {
		for k, text := range row {
			if err := put(b, s, k, text); err != nil {
				t.Fatal(text, ": ", err)
			}
		}
		b.EndRow()
	}
	return tcb.Snapshot{Columns: b.Columns(), Schema: s}
}

func put(b *tcb.Builder, s *tcb.Schema, k int, text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	cell := func(v any) tcb.Cell {
		switch v := v.(type) {
		case string:
			return tcb.Cell{Kind: tcb.CellText, Text: v}
		case json.Number:
			return tcb.Cell{Kind: tcb.CellNumber, Text: v.String()}
		case bool:
			return tcb.Cell{Kind: tcb.CellBool, Text: fmt.Sprint(v)}
		}
		return tcb.Cell{}
	}
	if s.Columns[k].Type.Kind == tcb.Scalar {
		return b.Scalar(k, cell(v))
	}
	var cells []tcb.Cell
	if list, ok := v.([]any); ok {
		cells = []tcb.Cell{}
		for _, e := range list {
			cells = append(cells, cell(e))
		}
	}
	return b.Array(k, cells)
}

func diff(t testing.TB, from, to tcb.Snapshot, o *tcb.DiffOptions) *tcb.TableDiff {
	t.Helper()
	d, err := tcb.Diff(from, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// lines are the changes of rows, one a line.
func lines(d *tcb.TableDiff) []string {
	var out []string
	for r := range d.Rows() {
		text := fmt.Sprintf("%s %s %d %d", r.Kind, r.Key, r.Old, r.New)
		for _, c := range r.Cells {
			text += fmt.Sprintf(" %s:%s>%s", c.Column, c.Old, c.New)
			if c.Hidden {
				text += "!"
			}
		}
		out = append(out, text)
	}
	return out
}

func TestDiff(t *testing.T) {
	one := func(typ string) string { return fmt.Sprintf(`{"columns":[{"tag":1,"name":"v","type":%s}]}`, typ) }
	two := func(typ string) string {
		return fmt.Sprintf(`{"columns":[{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"v","type":%s}]}`, typ)
	}
	cells := func(v ...string) [][]string {
		var rows [][]string
		for _, x := range v {
			rows = append(rows, []string{x})
		}
		return rows
	}
	rows := func(v ...string) [][]string {
		var rows [][]string
		for i := 0; i < len(v); i += 2 {
			rows = append(rows, v[i:i+2])
		}
		return rows
	}
	optional := `"i32","optional":true`
	tests := []struct {
		name    string
		o       tcb.DiffOptions
		old     string
		oldRows [][]string
		new     string
		newRows [][]string
		columns []tcb.ColumnDiff
		want    []string
	}{
		{name: "same", old: one(`"i32"`), oldRows: cells("1", "2"), new: one(`"i32"`), newRows: cells("1", "2")},
		{name: "no rows", old: one(`"i32"`), new: one(`"i32"`)},
		{name: "by number", old: one(`"i32"`), oldRows: cells("1", "2"), new: one(`"i32"`), newRows: cells("1", "3", "2"),
			want: []string{"changed  1 1 v:2>3", "added  -1 2 v:>2"}},
		{name: "fewer", old: one(`"string"`), oldRows: cells(`"a"`, `"b"`), new: one(`"string"`), newRows: cells(`"a"`),
			want: []string{`removed  1 -1 v:"b">`}},
		{name: "null and 0", old: one(optional), oldRows: cells("null", "0", "null"), new: one(optional), newRows: cells("0", "null", "null"),
			want: []string{"changed  0 0 v:null>0", "changed  1 1 v:0>null"}},
		{name: "required", old: one(optional), oldRows: cells("null", "0"), new: one(`"i32"`), newRows: cells("0", "0"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32?", New: "i32", Compared: true}},
			want:    []string{"changed  0 0 v:null>0"}},
		{name: "promoted", old: one(`"i32"`), oldRows: cells("3", "4"), new: one(`"i64"`), newRows: cells("3", "5"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32", New: "i64", Compared: true}},
			want:    []string{"changed  1 1 v:4>5"}},
		{name: "demoted", old: one(`"i64"`), oldRows: cells("3", "4294967299"), new: one(`"enum"`), newRows: cells("3", "3"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i64", New: "enum", Compared: true}},
			want:    []string{"changed  1 1 v:4294967299>3"}},
		{name: "to f64", old: one(`"i32"`), oldRows: cells("3", "0"), new: one(`"f64"`), newRows: cells("3", "-0.0"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32", New: "f64", Compared: true}},
			want:    []string{"changed  1 1 v:0>-0.0"}},
		{name: "floats", old: one(`"f32"`), oldRows: cells("0.1", "0.5", `"NaN"`, `"Infinity"`), new: one(`"f64"`), newRows: cells("0.1", "0.5", `"NaN"`, `"Infinity"`),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "f32", New: "f64", Compared: true}},
			want:    []string{"changed  0 0 v:0.1>0.1!"}},
		{name: "not i32 to f32", old: one(`"i32"`), oldRows: cells("3"), new: one(`"f32"`), newRows: cells("4"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32", New: "f32"}}},
		{name: "not enum to f64", old: one(`"enum"`), oldRows: cells("3"), new: one(`"f64"`), newRows: cells("4"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "enum", New: "f64"}}},
		{name: "not i32 to datetime", old: one(`"i32"`), oldRows: cells("3"), new: one(`"datetime"`), newRows: cells(`"0001-01-01"`),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32", New: "datetime"}}},
		{name: "ticks", old: one(`"i64"`), oldRows: cells("0", "1"), new: one(`"datetime"`), newRows: cells(`"0001-01-01"`, `"0001-01-02"`),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i64", New: "datetime", Compared: true}},
			want:    []string{`changed  1 1 v:1>"0001-01-02T00:00:00"`}},
		{name: "scalar to array", old: one(`"i32"`), oldRows: cells("3"), new: one(`"i32[]"`), newRows: cells("[3]"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32", New: "i32[]"}}},
		{name: "arrays", old: one(`"i32[]","optional":true,"elementOptional":true`), oldRows: cells("[1,2]", "null", "[null]", "[1,2]", "[3]"),
			new: one(`"i64[]","optional":true`), newRows: cells("[1,2]", "[]", "[0]", "[1,3]", "[3,0]"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "v", Old: "i32?[]?", New: "i64[]?", Compared: true}},
			want:    []string{"changed  1 1 v:null>[]", "changed  2 2 v:[null]>[0]", "changed  3 3 v:[1,2]>[1,3]", "changed  4 4 v:[3]>[3,0]"}},
		{name: "by key", o: tcb.DiffOptions{Key: "id"}, old: two(`"bool"`), oldRows: rows("1", "true", "2", "true", "3", "false"),
			new: two(`"bool"`), newRows: rows("4", "true", "3", "true", "1", "true"),
			want: []string{"removed 2 1 -1 id:2> v:true>", "changed 3 2 1 v:false>true", "added 4 -1 0 id:>4 v:>true"}},
		{name: "by the tag of the key", o: tcb.DiffOptions{Key: "2"}, old: two(`"uuid"`), oldRows: rows("1", `"00112233-4455-6677-8899-aabbccddeeff"`),
			new: two(`"uuid"`), newRows: rows("2", `"00112233-4455-6677-8899-aabbccddeeff"`),
			want: []string{`changed "00112233-4455-6677-8899-aabbccddeeff" 0 0 id:1>2`}},
		{name: "key promoted", o: tcb.DiffOptions{Key: "id"}, old: two(`"i32"`), oldRows: rows("1", "5"),
			new:     `{"columns":[{"tag":1,"name":"id","type":"i64"},{"tag":2,"name":"v","type":"i32"}]}`,
			newRows: rows("8589934593", "5", "1", "6"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "id", Old: "i32", New: "i64", Compared: true}},
			want:    []string{"changed 1 0 1 v:5>6", "added 8589934593 -1 0 id:>8589934593 v:>5"}},
		{name: "key renamed", o: tcb.DiffOptions{Key: "id"}, old: two(`"i32"`), oldRows: rows("1", "5", "2", "6"),
			new:     `{"columns":[{"tag":1,"name":"number","type":"i32"},{"tag":2,"name":"v","type":"i32"}]}`,
			newRows: rows("2", "6", "1", "6"),
			columns: []tcb.ColumnDiff{{Tag: 1, Name: "number", OldName: "id", Old: "i32", New: "i32", Compared: true}},
			want:    []string{"changed 1 0 1 v:5>6"}},
		{name: "key of floats", o: tcb.DiffOptions{Key: "v"}, old: two(`"f64"`), oldRows: rows("1", "0.0", "2", "-0.0"),
			new: two(`"f64"`), newRows: rows("2", "-0.0", "3", "0.0"),
			want: []string{"changed 0.0 0 1 id:1>3"}},
		{name: "key of texts", o: tcb.DiffOptions{Key: "v"}, old: two(`"string"`), oldRows: rows("1", `"a"`), new: two(`"string"`), newRows: rows("1", `"b"`),
			want: []string{`removed "a" 0 -1 id:1> v:"a">`, `added "b" -1 0 id:>1 v:>"b"`}},
		{name: "columns", old: `{"columns":[{"tag":1,"name":"a","type":"i32"},{"tag":2,"name":"b","type":"i32"},{"tag":3,"name":"c","type":"i32"}]}`,
			oldRows: [][]string{{"1", "2", "3"}},
			new:     `{"columns":[{"tag":4,"name":"b","type":"string"},{"tag":3,"name":"d","type":"i32"},{"tag":1,"name":"a","type":"i32"}]}`,
			newRows: [][]string{{`"x"`, "4", "1"}},
			columns: []tcb.ColumnDiff{{Tag: 4, Name: "b", New: "string"}, {Tag: 3, Name: "d", OldName: "c", Old: "i32", New: "i32", Compared: true}, {Tag: 2, Name: "b", Old: "i32"}},
			want:    []string{"changed  0 0 d:3>4"}},
		{name: "by name", o: tcb.DiffOptions{ByName: true},
			old: `{"columns":[{"tag":1,"name":"a","type":"i32"},{"tag":2,"name":"b","type":"i32"}]}`, oldRows: rows("1", "2"),
			new: `{"columns":[{"tag":1,"name":"b","type":"i32"},{"tag":2,"name":"a","type":"i32"}]}`, newRows: rows("3", "1"),
			want: []string{"changed  0 0 b:2>3"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from, to := snapshot(t, test.old, test.oldRows...), snapshot(t, test.new, test.newRows...)
			d := diff(t, from, to, &test.o)
			if text := cmp.Diff(test.columns, d.Columns); text != "" {
				t.Error(text)
			}
			if text := cmp.Diff(test.want, lines(d)); text != "" {
				t.Error(text)
			}
			if d.OldRows != len(test.oldRows) || d.NewRows != len(test.newRows) {
				t.Errorf("%d and %d rows", d.OldRows, d.NewRows)
			}
			if d.None() != (len(test.columns)+len(test.want) == 0) {
				t.Errorf("None is %t", d.None())
			}
			counted(t, d)
			if !diff(t, from, from, &test.o).None() {
				t.Error("the old table differs from itself")
			}
			test.o.Key = d.Key
			if !diff(t, to, to, &test.o).None() {
				t.Error("the new table differs from itself")
			}
		})
	}
}

// counted compares Count with what Rows gives, and JSON with both.
func counted(t testing.TB, d *tcb.TableDiff) {
	t.Helper()
	var n tcb.DiffCount
	for r := range d.Rows() {
		switch r.Kind {
		case tcb.RowAdded:
			n.Added++
		case tcb.RowRemoved:
			n.Removed++
		default:
			n.Changed++
			n.Cells += len(r.Cells)
		}
	}
	if d.Count() != n {
		t.Errorf("counted %+v, want %+v", d.Count(), n)
	}
	var b bytes.Buffer
	if err := d.WriteJSON(&b, 0); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Added, Removed, Changed, Cells int
		Columns, Rows                  []json.RawMessage
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, b.Bytes())
	}
	if (tcb.DiffCount{Added: doc.Added, Removed: doc.Removed, Changed: doc.Changed, Cells: doc.Cells}) != n || len(doc.Rows) != n.Added+n.Removed+n.Changed || len(doc.Columns) != len(d.Columns) {
		t.Errorf("%+v is %s", n, b.Bytes())
	}
}

func TestDiffRefused(t *testing.T) {
	schema := `{"columns":[{"tag":1,"name":"id","type":"i32","optional":true},{"tag":2,"name":"list","type":"i32[]"}]}`
	other := `{"columns":[{"tag":1,"name":"id","type":"string"}]}`
	table := func(rows ...[]string) tcb.Snapshot { return snapshot(t, schema, rows...) }
	called := func(name string, s tcb.Snapshot) tcb.Snapshot {
		s.Name = name
		return s
	}
	short := table([]string{"1", "[]"})
	short.Columns[0].Rows = 2
	uneven := table([]string{"1", "[]"})
	uneven.Columns[1] = table().Columns[1]
	same := table()
	same.Columns[1].Tag = 1
	tests := []struct {
		old, new tcb.Snapshot
		o        tcb.DiffOptions
		class    error
		want     string
	}{
		{table(), table(), tcb.DiffOptions{Key: "nope"}, fault.NotFound, `tcb: the old table: there is no column "nope", for the key`},
		{table(), table(), tcb.DiffOptions{Key: "list"}, fault.Invalid, "tcb: the old table: column 2 (list): an array is no key"},
		{table(), snapshot(t, other), tcb.DiffOptions{Key: "id"}, fault.Conflict, "tcb: the new table: column 1 (id): a key of string, and of i32? in the old table"},
		{table([]string{"null", "[]"}), table(), tcb.DiffOptions{Key: "id"}, fault.Invalid, "tcb: the old table: column 1 (id): row 0 has no key"},
		{table(), table([]string{"1", "[]"}, []string{"null", "[]"}), tcb.DiffOptions{Key: "id"}, fault.Invalid, "tcb: the new table: column 1 (id): row 1 has no key"},
		{table(), table([]string{"1", "[]"}, []string{"2", "[]"}, []string{"1", "[]"}), tcb.DiffOptions{Key: "id"}, fault.Invalid, "tcb: the new table: column 1 (id): rows 0 and 2 have the key 1 both"},
		{table([]string{"1", "[]"}, []string{"1", "[]"}), table(), tcb.DiffOptions{Key: "id"}, fault.Invalid, "tcb: the old table: column 1 (id): rows 0 and 1 have the key 1 both"},
		{table([]string{"2", "[]"}, []string{"1", "[]"}, []string{"1", "[]"}), table([]string{"1", "[]"}), tcb.DiffOptions{Key: "id"}, fault.Invalid, "tcb: the old table: column 1 (id): rows 1 and 2 have the key 1 both"},
		{short, table(), tcb.DiffOptions{}, fault.Invalid, "tcb: the old table: column 1 (id): 1 values for 2 rows"},
		{table(), uneven, tcb.DiffOptions{}, fault.Invalid, "tcb: the new table: column 2 (list): 0 rows, other columns have 1"},
		{table(), same, tcb.DiffOptions{}, fault.Invalid, "tcb: the new table: the columns 1 and 2 have the tag 1 both"},
		{table(), snapshot(t, `{"columns":[{"tag":5,"name":"id","type":"i32"}]}`), tcb.DiffOptions{Key: "id"}, fault.NotFound, `tcb: the new table: the column "id", for the key, has another tag in the old table`},
		{table(), called("new.csv", snapshot(t, other)), tcb.DiffOptions{Key: "list"}, fault.NotFound, `tcb: new.csv: there is no column "list", for the key`},
		{called("old.csv", table()), called("new.csv", snapshot(t, other)), tcb.DiffOptions{Key: "id"}, fault.Conflict, "tcb: new.csv: column 1 (id): a key of string, and of i32? in old.csv"},
		{table(), called("new.csv", table([]string{"1", "[]"}, []string{"1", "[]"})), tcb.DiffOptions{Key: "id"}, fault.Invalid, "tcb: new.csv: column 1 (id): rows 0 and 1 have the key 1 both"},
		{called("old.csv", short), table(), tcb.DiffOptions{}, fault.Invalid, "tcb: old.csv: column 1 (id): 1 values for 2 rows"},
	}
	for _, test := range tests {
		_, err := tcb.Diff(test.old, test.new, &test.o)
		if !errors.Is(err, test.class) || err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// Columns without tags, as other sources than files have them, go by name.
func TestDiffNoTags(t *testing.T) {
	column := func(name string, v ...int32) *tcb.Column {
		return &tcb.Column{Name: name, Rows: len(v), Type: tcb.Type{Element: tcb.I32}, Int32s: v}
	}
	from := tcb.Snapshot{Columns: []*tcb.Column{column("id", 1, 2), column("v", 5, 6)}}
	to := snapshot(t, `{"columns":[{"tag":7,"name":"v","type":"i32"},{"tag":3,"name":"id","type":"i32"}]}`, []string{"9", "2"}, []string{"5", "1"})
	d := diff(t, from, to, &tcb.DiffOptions{Key: "id"})
	if text := cmp.Diff([]string{"changed 2 1 0 v:6>9"}, lines(d)); text != "" || len(d.Columns) > 0 {
		t.Error(text, d.Columns)
	}
}

// A comparison is safe for concurrent use (with -race).
func TestDiffConcurrent(t *testing.T) {
	schema := `{"columns":[{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"text","type":"string"}]}`
	from := snapshot(t, schema, []string{"1", `"a"`}, []string{"2", `"b"`}, []string{"3", `"c"`})
	to := snapshot(t, schema, []string{"3", `"c"`}, []string{"2", `"B"`}, []string{"4", `"d"`})
	d := diff(t, from, to, &tcb.DiffOptions{Key: "id"})
	want := lines(d)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			if got := lines(d); !slices.Equal(got, want) || d.Count() != (tcb.DiffCount{Added: 1, Removed: 1, Changed: 1, Cells: 1}) {
				t.Errorf("%q and %v, want %q", got, d.Count(), want)
			}
		})
	}
	work.Wait()
}

// What the text does not show is a difference all the same.
func TestDiffHidden(t *testing.T) {
	table := func(bits uint64, text string, ticks int64) tcb.Snapshot {
		return tcb.Snapshot{
			Columns: []*tcb.Column{
				{Tag: 1, Rows: 1, Type: tcb.Type{Element: tcb.F64}, Float64s: []float64{math.Float64frombits(bits)}},
				{Tag: 2, Rows: 1, Type: tcb.Type{Element: tcb.String}, Strings: []string{text}},
				{Tag: 3, Rows: 1, Type: tcb.Type{Element: tcb.I64}, Int64s: []int64{ticks}},
			},
			Schema: &tcb.Schema{Columns: []tcb.Field{{Tag: 3, Name: "at", Type: tcb.Type{Element: tcb.I64}, Logical: tcb.DateTime}}},
		}
	}
	a := table(0x7ff8000000000001, "\xff", 0)
	if !diff(t, a, table(0x7ff8000000000001, "\xff", 0), nil).None() {
		t.Error("the same bits differ")
	}
	d := diff(t, a, table(0x7ff8000000000002, "\xfe", -1), nil)
	want := []string{`changed  0 0 1:"NaN">"NaN"! 2:"�">"�"! at:"0001-01-01T00:00:00">-1`}
	if text := cmp.Diff(want, lines(d)); text != "" {
		t.Error(text)
	}
}

// diffPool has values of a type, no two of them the same.
var diffPool = map[string][]string{
	`"i32","optional":true`:    {"null", "0", "1", "-2147483648", "7"},
	`"i64"`:                    {"0", "1", "9223372036854775807", "-1"},
	`"enum"`:                   {"0", "1", "2"},
	`"bool","optional":true`:   {"null", "true", "false"},
	`"f32"`:                    {"0.0", "-0.0", "0.1", `"NaN"`, `"-Infinity"`},
	`"f64","optional":true`:    {"null", "0.0", "-0.0", "0.1", `"NaN"`},
	`"string","optional":true`: {"null", `""`, `"a"`, `"a|b"`, `"é"`},
	`"uuid"`:                   {`"00112233-4455-6677-8899-aabbccddeeff"`, `"00000000-0000-0000-0000-000000000000"`},
	`"datetime"`:               {`"0001-01-01T00:00:00"`, `"9999-12-31T23:59:59.9999999"`},
	`"timespan"`:               {`"00:00:00"`, `"-00:00:00.0000001"`},
	`"i32[]","optional":true,"elementOptional":true`: {"null", "[]", "[null]", "[0]", "[0,null]", "[0,1]", "[1,0]"},
	`"string[]","elementOptional":true`:              {"[]", `[""]`, "[null]", `["",null]`, `["a"]`, `["a","b"]`},
	`"f64[]","optional":true`:                        {"null", "[]", "[0.0]", "[-0.0]", `["NaN"]`},
	`"datetime[]","optional":true`:                   {"null", "[]", `["0001-01-01T00:00:00"]`},
}

// The diff of a table and an edited copy is the edits, no more and no less.
func TestDiffProperty(t *testing.T) {
	var types []string
	for name := range diffPool {
		types = append(types, name)
	}
	slices.Sort(types)
	rapid.Check(t, func(r *rapid.T) {
		keys := rapid.SampledFrom([]string{"i32", "i64", "string", "enum", "f64", "none"}).Draw(r, "key")
		keyText := func(i int) string {
			switch keys {
			case "string":
				return fmt.Sprintf(`"k%d"`, i)
			case "f64":
				return fmt.Sprintf("%d.5", i)
			}
			return fmt.Sprint(i)
		}
		keyType := keys
		if keys == "none" {
			keyType = "i32"
		}
		schema := fmt.Sprintf(`{"columns":[{"tag":1,"name":"id","type":"%s"}`, keyType)
		columns := rapid.SliceOfN(rapid.SampledFrom(types), 1, 6).Draw(r, "columns")
		for k, c := range columns {
			schema += fmt.Sprintf(`,{"tag":%d,"name":"c%d","type":%s}`, k+2, k, c)
		}
		schema += "]}"
		pick := func(k int) string { return rapid.SampledFrom(diffPool[columns[k]]).Draw(r, "value") }
		row := func(i int) []string {
			out := []string{keyText(i)}
			for k := range columns {
				out = append(out, pick(k))
			}
			return out
		}
		n := rapid.IntRange(0, 20).Draw(r, "rows")
		var old, edited [][]string
		want := make(map[string]string) // by key
		all := func(row []string, format string) string {
			text := fmt.Sprintf(" id:"+format, row[0])
			for k, v := range row[1:] {
				text += fmt.Sprintf(" c%d:"+format, k, v)
			}
			return text
		}
		for i := range n {
			before := row(i)
			old = append(old, before)
			what := rapid.IntRange(0, 3).Draw(r, "edit")
			if keys == "none" && what == 1 {
				what = 0
			}
			switch what {
			case 1:
				want[before[0]] = "removed" + all(before, "%s>")
				continue
			case 2:
				after := slices.Clone(before)
				text := ""
				for k := range columns {
					if after[k+1] = pick(k); after[k+1] != before[k+1] {
						text += fmt.Sprintf(" c%d:%s>%s", k, before[k+1], after[k+1])
					}
				}
				if text != "" {
					want[before[0]] = "changed" + text
				}
				edited = append(edited, after)
			default:
				edited = append(edited, before)
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(r, "added") {
			added := row(n + i)
			want[added[0]] = "added" + all(added, ">%s")
			edited = append(edited, added)
		}
		o := &tcb.DiffOptions{Key: "id"}
		if keys == "none" {
			o.Key = ""
		} else {
			edited = rapid.Permutation(edited).Draw(r, "order")
		}
		from, to := snapshot(t, schema, old...), snapshot(t, schema, edited...)
		d, err := tcb.Diff(from, to, o)
		if err != nil {
			r.Fatal(err)
		}
		got := make(map[string]string)
		for x := range d.Rows() {
			key := x.Key
			if keys == "none" {
				key = fmt.Sprint(max(x.Old, x.New))
			}
			if x.Old >= 0 && old[x.Old][0] != key || x.New >= 0 && edited[x.New][0] != key {
				r.Fatalf("%s is row %d and %d", key, x.Old, x.New)
			}
			text := x.Kind.String()
			for _, c := range x.Cells {
				text += fmt.Sprintf(" %s:%s>%s", c.Column, c.Old, c.New)
			}
			got[key] = text
		}
		if text := cmp.Diff(want, got); text != "" || len(d.Columns) > 0 {
			r.Fatal(text, d.Columns)
		}
		for _, write := range []func(io.Writer, int) error{d.WriteText, d.WriteJSON, d.WriteMarkdown} {
			if err := write(io.Discard, 2); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// The forms of a diff, in testdata/diff; go test ./tcb -run DiffGolden -update-diff rewrites them.
func TestDiffGolden(t *testing.T) {
	from := snapshot(t, `{"table":"Item","columns":[
		{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"label","type":"string","optional":true},
		{"tag":3,"name":"hp","type":"i32"},{"tag":4,"name":"drops","type":"i32[]","elementOptional":true},
		{"tag":5,"name":"old|name","type":"bool"},{"tag":6,"name":"kind","type":"enum"}]}`,
		[]string{"1", `"sword"`, "10", "[1,null]", "true", "0"},
		[]string{"2", "null", "20", "[]", "true", "0"},
		[]string{"3", `"a|b ` + "`c`" + ` <i>\u001b[31m\u00ad"`, "30", "[3]", "false", "0"},
		[]string{"4", `"same"`, "40", "[]", "false", "0"},
	)
	to := snapshot(t, `{"table":"Item","columns":[
		{"tag":1,"name":"id","type":"i64"},{"tag":2,"name":"title","type":"string","optional":true},
		{"tag":3,"name":"hp","type":"i32"},{"tag":4,"name":"drops","type":"i32[]","elementOptional":true},
		{"tag":6,"name":"kind","type":"string"},{"tag":7,"name":"made","type":"datetime","optional":true}]}`,
		[]string{"4", `"same"`, "40", "[]", `"x"`, "null"},
		[]string{"1", `""`, "11", "[1,0]", `"x"`, `"2026-11-30"`},
		[]string{"3", `"a"`, "30", "[3]", `"x"`, "null"},
		[]string{"5", `"` + "`new`" + `"`, "50", "[]", `"x"`, `"2026-11-30T08:00:00.5"`},
	)
	empty := snapshot(t, `{"columns":[{"tag":9,"type":"i32"}]}`)
	forms := func(d *tcb.TableDiff, max int) string {
		var b bytes.Buffer
		for _, write := range []func(io.Writer, int) error{d.WriteText, d.WriteJSON, d.WriteMarkdown} {
			if err := write(&b, max); err != nil {
				t.Fatal(err)
			}
			b.WriteString("=====\n")
		}
		return b.String()
	}
	for name, got := range map[string]string{
		"key":     forms(diff(t, from, to, &tcb.DiffOptions{Key: "id"}), 0),
		"bounded": forms(diff(t, from, to, &tcb.DiffOptions{Key: "id"}), 2),
		"number":  forms(diff(t, from, to, nil), 0),
		"same":    forms(diff(t, from, from, nil), 0),
		"columns": forms(diff(t, empty, snapshot(t, `{"columns":[{"tag":9,"type":"i64"}]}`), nil), 0),
	} {
		file := "testdata/diff/" + name + ".golden"
		if *updateDiff {
			if err := os.MkdirAll("testdata/diff", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := cmp.Diff(string(want), got); text != "" {
			t.Errorf("%s: %s", file, text)
		}
	}
}

type noSpace struct{}

var errNoSpace = errors.New("no space")

func (noSpace) Write([]byte) (int, error) { return 0, errNoSpace }

func TestDiffWriteError(t *testing.T) {
	d := diff(t, snapshot(t, `{"columns":[]}`), snapshot(t, `{"columns":[]}`), nil)
	for _, write := range []func(io.Writer, int) error{d.WriteText, d.WriteJSON, d.WriteMarkdown} {
		if err := write(noSpace{}, 0); !errors.Is(err, errNoSpace) {
			t.Error(err)
		}
	}
}

// The tables of testdata against themselves: no type but is compared.
func TestDiffFiles(t *testing.T) {
	for _, table := range tabletest.Files(t, "../testdata/tcb") {
		s := tcb.Snapshot{Columns: table.Columns, Schema: table.Schema}
		if d := diff(t, s, s, nil); !d.None() {
			t.Errorf("%s differs from itself: %v", table.Name, d.Count())
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	table, other := tabletest.Wide(1_000_000), tabletest.Wide(1_000_000)
	for _, c := range []*tcb.Column{table.Columns[0], other.Columns[0]} {
		for i := range c.Int32s {
			c.Int32s[i] = int32(i) // a key
		}
	}
	for i := 0; i < 1_000_000; i += 1000 {
		other.Columns[4].Float64s[i]++
	}
	from, to := tcb.Snapshot{Columns: table.Columns, Schema: table.Schema}, tcb.Snapshot{Columns: other.Columns, Schema: other.Schema}
	for _, key := range []string{"", "c1", "c2"} {
		b.Run("key="+key, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := diff(b, from, to, &tcb.DiffOptions{Key: key})
				if n := d.Count(); n.Cells != 1000 || n.Changed != 1000 {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
