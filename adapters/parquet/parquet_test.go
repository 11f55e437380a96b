package parquet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/spilehq/spile/adapters/parquet"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/tabletest"
	"github.com/spilehq/spile/tcb"
)

func write(t testing.TB, table tabletest.Table, o *parquet.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, p []byte) *pq.File {
	t.Helper()
	f, err := pq.OpenFile(bytes.NewReader(p), int64(len(p)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// readColumn returns the values of the k-th column, in the form of tabletest.Cell, from the levels that are stored.
func readColumn(t testing.TB, f *pq.File, k int, field tcb.Field) []any {
	t.Helper()
	column := f.Root().Columns()[k]
	optional := column.Optional()
	leaf := column
	if field.Type.Kind == tcb.Array {
		if lt := column.Type().LogicalType(); lt == nil || !strings.Contains(lt.String(), "LIST") {
			t.Fatalf("%s is no LIST: %v", field.Name, lt)
		}
		leaf = column.Column("list").Column("element")
	}
	// The level of a row that is there, and of a value that is.
	row := 0
	if optional {
		row = 1
	}
	unit := int64(0)
	if lt := leaf.Type().LogicalType(); lt != nil {
		switch text := lt.String(); {
		case strings.Contains(text, "isAdjustedToUTC=true"):
			t.Fatalf("%s has a zone: %s", field.Name, text)
		case strings.Contains(text, "MICROS"):
			unit = 1
		case strings.Contains(text, "NANOS"):
			unit = 2
		}
	}
	var out []any
	pages := leaf.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		values := make([]pq.Value, page.NumValues())
		if n, err := page.Values().ReadValues(values); n < len(values) {
			t.Fatal(n, err)
		}
		for _, v := range values {
			x := value(v, field, unit)
			if field.Type.Kind == tcb.Scalar {
				out = append(out, x)
				continue
			}
			if v.RepetitionLevel() == 0 {
				switch d := v.DefinitionLevel(); {
				case d < row:
					out = append(out, nil)
					continue
				case d == row:
					out = append(out, []any{})
					continue
				}
				out = append(out, []any{x})
				continue
			}
			out[len(out)-1] = append(out[len(out)-1].([]any), x)
		}
		pq.Release(page)
	}
}

func value(v pq.Value, f tcb.Field, unit int64) any {
	if v.IsNull() {
		return nil
	}
	switch v.Kind() {
	case pq.Boolean:
		return v.Boolean()
	case pq.Int32:
		return int64(v.Int32())
	case pq.Int64:
		n := v.Int64()
		switch unit {
		case 1:
			return n*10 + 621355968000000000
		case 2:
			return n/100 + 621355968000000000
		}
		return n
	case pq.Float:
		return tabletest.F32(math.Float32bits(v.Float()))
	case pq.Double:
		return tabletest.F64(math.Float64bits(v.Double()))
	case pq.ByteArray:
		return string(v.ByteArray())
	}
	h := fmt.Sprintf("%x", v.ByteArray())
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func check(t *testing.T, table tabletest.Table, p []byte) {
	t.Helper()
	f := open(t, p)
	if n := int(f.NumRows()); n != table.Columns[0].Rows {
		t.Fatalf("%d rows, want %d", n, table.Columns[0].Rows)
	}
	for k, c := range table.Columns {
		field := table.Schema.Columns[k]
		column := f.Root().Columns()[k]
		name := field.Name
		if name == "" {
			name = fmt.Sprint(field.Tag)
		}
		if column.Name() != name || column.Optional() != c.Type.Optional {
			t.Errorf("column %d is %s, want %s", k, column, name)
		}
		got := readColumn(t, f, k, field)
		if len(got) != c.Rows {
			t.Fatalf("%s: %d rows", name, len(got))
		}
		for i, x := range got {
			if want := tabletest.Cell(c, i); !reflect.DeepEqual(x, want) {
				t.Fatalf("%s, row %d: %#v, want %#v", name, i, x, want)
			}
		}
	}
	text, ok := f.Lookup(parquet.SchemaKey)
	want, _ := json.Marshal(table.Schema)
	if !ok || text != string(want) {
		t.Errorf("the schema is %s\nwant %s", text, want)
	}
}

func TestFiles(t *testing.T) {
	for _, table := range tabletest.Files(t, "../../testdata/tcb") {
		t.Run(table.Name, func(t *testing.T) {
			var b bytes.Buffer
			o := &parquet.Options{}
			err := parquet.Write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, o)
			if table.InvalidUTF8 {
				if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "is no UTF-8") {
					t.Fatalf("text that is no UTF-8: %v", err)
				}
				return
			}
			if table.Name == "times" { // has the year 9999 to the tick
				if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "TimesTicks") {
					t.Fatalf("no unit holds these times: %v", err)
				}
				o.DateTimes = parquet.TimesTicks
				b.Reset()
				err = parquet.Write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, table, b.Bytes())
		})
	}
}

func TestRandom(t *testing.T) {
	for _, rows := range []int{0, 1, 7, 64, 3000} {
		for _, group := range []int{0, 1000} {
			for _, codec := range []parquet.Compression{parquet.Zstd, parquet.Snappy, parquet.Uncompressed} {
				table := tabletest.Random(uint64(rows+group), rows)
				o := &parquet.Options{RowGroupRows: group, Compression: codec}
				p := write(t, table, o)
				check(t, table, p)
				if again := write(t, table, o); !bytes.Equal(p, again) {
					t.Errorf("%s: other bytes the second time", table.Name)
				}
				if n, want := len(open(t, p).RowGroups()), (rows+999)/1000; group == 1000 && n != want {
					t.Errorf("%d row groups, want %d", n, want)
				}
			}
		}
	}
}

// A dictionary that grows beyond its bound is given up within a row group.
func TestLargeDictionary(t *testing.T) {
	table := tabletest.Wide(150_000)
	for i := range table.Columns[1].Strings {
		table.Columns[1].Strings[i] = fmt.Sprintf("%d of a text that fills dictionaries", i*7919%150_000)
	}
	check(t, table, write(t, table, nil))
}

func TestNames(t *testing.T) {
	table := tabletest.Table{Schema: &tcb.Schema{Table: "names"}}
	for i, name := range []string{"z", "Z", "a.b", "", "é", "한", "a b", `"`, "list", "0", "_", "type", "A,omitempty"} {
		c := &tcb.Column{Tag: int32(i + 1), Name: name, Rows: 2, Type: tcb.Type{Element: tcb.I32}, Int32s: []int32{int32(i), -1}}
		table.Columns = append(table.Columns, c)
		table.Schema.Columns = append(table.Schema.Columns, tcb.Field{Tag: c.Tag, Name: name, Type: c.Type})
	}
	check(t, table, write(t, table, nil))
}

// The unit follows the values that are there.
func TestDateTimes(t *testing.T) {
	const epoch = 621355968000000000
	at := func(s string) int64 {
		n, err := tcb.ParseDateTime(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tests := []struct {
		values []int64
		option parquet.Times
		want   string // the logical type, or the error
	}{
		{nil, 0, "MICROS"},
		{[]int64{at("0001-01-01"), at("9999-12-31T23:59:59.999999")}, 0, "MICROS"},
		{[]int64{at("2026-01-01T00:00:00.0000001")}, 0, "NANOS"},
		{[]int64{epoch + 92233720368547758, epoch - 92233720368547758}, 0, "NANOS"},
		{[]int64{epoch + 92233720368547759}, 0, "row 0, column 1 (at): 2262-04-11T23:47:16.8547759 is beyond the years 1678 to 2261"},
		{[]int64{epoch + 1, at("1600-01-01")}, 0, "row 1, column 1 (at): 1600-01-01T00:00:00 is beyond"},
		{[]int64{epoch + 1, at("1600-01-01")}, parquet.TimesTicks, "INT(64,true)"},
		{[]int64{epoch, -1}, 0, "row 1, column 1 (at): -1 ticks are no datetime"},
		{[]int64{epoch, -1}, parquet.TimesTicks, "INT(64,true)"},
		{[]int64{epoch}, 9, "DateTimes is 9"},
	}
	for _, test := range tests {
		c := &tcb.Column{Tag: 1, Rows: len(test.values) + 1, Type: tcb.Type{Element: tcb.I64, Optional: true}, Int64s: append(test.values, 0)}
		c.Present = tcb.NewBitmap(c.Rows)
		for i := range test.values {
			c.Present.Set(i)
		}
		s := &tcb.Schema{Columns: []tcb.Field{{Tag: 1, Name: "at", Type: c.Type, Logical: tcb.DateTime}}}
		table := tabletest.Table{Columns: []*tcb.Column{c}, Schema: s}
		var b bytes.Buffer
		err := parquet.Write(context.Background(), &b, table.Rows(), table.Columns, s, &parquet.Options{DateTimes: test.option})
		if err != nil {
			if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d: %v, want %s", test.values, err, test.want)
			}
			continue
		}
		if text := open(t, b.Bytes()).Root().Columns()[0].Type().String(); !strings.Contains(text, test.want) {
			t.Errorf("%d became %s, want %s", test.values, text, test.want)
		}
		check(t, table, b.Bytes())
	}
}

func TestRefused(t *testing.T) {
	i32 := func(tag int32, name string, values ...int32) *tcb.Column {
		return &tcb.Column{Tag: tag, Name: name, Rows: len(values), Type: tcb.Type{Element: tcb.I32}, Int32s: values}
	}
	text := &tcb.Column{Tag: 2, Name: "t", Rows: 2, Type: tcb.Type{Element: tcb.String, Kind: tcb.Array}, Offsets: []int32{0, 1, 3}, Strings: []string{"a", "b", "\xff"}}
	odd := *i32(1, "a", 1, 2)
	odd.Type.Kind = tcb.Array
	back := &tcb.Column{Tag: 1, Rows: 2, Type: tcb.Type{Element: tcb.I32, Kind: tcb.Array}, Offsets: []int32{0, 3, 2}, Int32s: []int32{1, 2}}
	bits := *i32(1, "a", 1, 2)
	bits.Type.Optional = true
	short := *i32(1, "a", 1, 2)
	short.Rows = 3
	tests := []struct {
		columns []*tcb.Column
		schema  *tcb.Schema
		class   error
		want    string
	}{
		{nil, nil, fault.Invalid, "parquet: a table without columns"},
		{[]*tcb.Column{i32(1, "a", 1), i32(2, "b")}, nil, fault.Invalid, "parquet: column 2 (b): 0 rows, the table has 1"},
		{[]*tcb.Column{i32(1, "a", 1), i32(2, "a", 1)}, nil, fault.Invalid, "column 2 (a): the name is that of column 1 too"},
		{[]*tcb.Column{i32(1, "2", 1), i32(2, "", 1)}, nil, fault.Invalid, "column 2: the name is that of column 1 too"},
		{[]*tcb.Column{i32(1, "\xff", 1)}, nil, fault.Invalid, "the name is no UTF-8"},
		{[]*tcb.Column{i32(1, "a", 1, 2), text}, nil, fault.Invalid, `row 1, column 2 (t), element 1: the text is no UTF-8: "\xff"`},
		{[]*tcb.Column{&odd}, nil, fault.Invalid, "offsets "},
		{[]*tcb.Column{back}, nil, fault.Invalid, "is behind the next"},
		{[]*tcb.Column{&bits}, nil, fault.Invalid, "a bitmap of "},
		{[]*tcb.Column{&short}, nil, fault.Invalid, "2 values for 3 rows"},
		{[]*tcb.Column{i32(1, "a", 1)}, &tcb.Schema{Columns: []tcb.Field{{Tag: 1, Name: "a", Type: tcb.Type{Element: tcb.I64}}}}, fault.Conflict, "the table has i32, the schema i64"},
	}
	for _, test := range tests {
		rows := 0
		if len(test.columns) > 0 {
			rows = test.columns[0].Rows
		}
		err := parquet.Write(context.Background(), io.Discard, rows, test.columns, test.schema, nil)
		if err == nil || !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	if err := parquet.Write(context.Background(), io.Discard, 1, []*tcb.Column{i32(1, "a", 1)}, nil, &parquet.Options{Compression: 9}); !errors.Is(err, fault.Invalid) {
		t.Errorf("compression 9: %v", err)
	}
}

type fullDisk struct{}

var errFull = errors.New("no space")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestErrors(t *testing.T) {
	table := tabletest.Random(1, 100)
	if err := parquet.Write(context.Background(), fullDisk{}, table.Rows(), table.Columns, table.Schema, nil); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	table = tabletest.Wide(3000)
	if err := parquet.Write(ctx, io.Discard, table.Rows(), table.Columns, table.Schema, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Nothing is allocated for a value or a row, only for batches and pages.
func TestAllocations(t *testing.T) {
	table := tabletest.Wide(50_000)
	n := testing.AllocsPerRun(2, func() {
		if err := parquet.Write(context.Background(), io.Discard, table.Rows(), table.Columns, table.Schema, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n > 10_000 {
		t.Errorf("%.0f allocations for 50,000 rows of 10 columns", n)
	}
}

func BenchmarkWrite(b *testing.B) {
	table := tabletest.Wide(1_000_000)
	for _, codec := range []struct {
		name string
		c    parquet.Compression
	}{{"zstd", parquet.Zstd}, {"snappy", parquet.Snappy}, {"none", parquet.Uncompressed}} {
		b.Run(codec.name, func(b *testing.B) {
			b.ReportAllocs()
			var size counter
			for b.Loop() {
				size = 0
				if err := parquet.Write(context.Background(), &size, table.Rows(), table.Columns, table.Schema, &parquet.Options{Compression: codec.c}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "file-bytes")
			b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
