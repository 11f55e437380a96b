package arrowipc

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

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/tabletest"
	"github.com/spilehq/spile/tcb"
)

func file(t testing.TB, table tabletest.Table, o *Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, p []byte) *ipc.FileReader {
	t.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cell is the value i of an array, in the form of tabletest.Cell.
func cell(t testing.TB, a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	scale := func(unit arrow.TimeUnit, n int64) int64 {
		switch unit {
		case arrow.Microsecond:
			return n * 10
		case arrow.Nanosecond:
			return n / 100
		}
		t.Fatal("unit ", unit)
		return 0
	}
	switch a := a.(type) {
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Boolean:
		return a.Value(i)
	case *array.Float32:
		return tabletest.F32(math.Float32bits(a.Value(i)))
	case *array.Float64:
		return tabletest.F64(math.Float64bits(a.Value(i)))
	case *array.String:
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.FixedSizeBinary:
		h := fmt.Sprintf("%x", a.Value(i))
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType)
		if unit.TimeZone != "" {
			t.Fatal("a zone: ", unit)
		}
		return scale(unit.Unit, int64(a.Value(i))) + 621355968000000000
	case *array.Duration:
		return scale(a.DataType().(*arrow.DurationType).Unit, int64(a.Value(i)))
	case *array.List:
		out := []any{}
		start, end := a.ValueOffsets(i)
		for j := start; j < end; j++ {
			out = append(out, cell(t, a.ListValues(), int(j)))
		}
		return out
	}
	t.Fatalf("%T", a)
	return nil
}

func check(t *testing.T, table tabletest.Table, p []byte) {
	t.Helper()
	r := open(t, p)
	defer r.Close()
	for k, c := range table.Columns {
		field, f := table.Schema.Columns[k], r.Schema().Field(k)
		name := field.Name
		if name == "" {
			name = fmt.Sprint(field.Tag)
		}
		if f.Name != name || f.Nullable != c.Type.Optional {
			t.Errorf("column %d is %s, want %s of %s", k, f, name, c.Type)
		}
		if c.Type.Kind == tcb.Array {
			if f = f.Type.(*arrow.ListType).ElemField(); f.Nullable != c.Type.ElementOptional || f.Name != "item" {
				t.Errorf("column %s has elements of %s", name, f)
			}
		}
		extension, ok := f.Metadata.GetValue("ARROW:extension:name")
		if ok != (c.Type.Element == tcb.UUID) || ok && extension != "arrow.uuid" {
			t.Errorf("column %s has the extension %q", name, extension)
		}
	}
	row := 0
	for n := range r.NumRecords() {
		batch, err := r.RecordBatchAt(n)
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range table.Columns {
			a := batch.Column(k)
			for i := range int(batch.NumRows()) {
				if got, want := cell(t, a, i), tabletest.Cell(c, row+i); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, row %d: %#v, want %#v", batch.ColumnName(k), row+i, got, want)
				}
			}
		}
		row += int(batch.NumRows())
		batch.Release()
	}
	if row != table.Columns[0].Rows {
		t.Errorf("%d rows, want %d", row, table.Columns[0].Rows)
	}
	metadata := r.Schema().Metadata()
	text, _ := metadata.GetValue(SchemaKey)
	if want, _ := json.Marshal(table.Schema); text != string(want) {
		t.Errorf("the schema is %s\nwant %s", text, want)
	}
}

func TestFiles(t *testing.T) {
	for _, table := range tabletest.Files(t, "../../testdata/tcb") {
		t.Run(table.Name, func(t *testing.T) {
			var b bytes.Buffer
			o := &Options{}
			err := Write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, o)
			if table.InvalidUTF8 {
				if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "is no UTF-8") {
					t.Fatalf("text that is no UTF-8: %v", err)
				}
				return
			}
			// times has the year 9999 to the tick; both have very short timespans beside very long ones.
			options := map[string][]*Times{"times": {&o.DateTimes, &o.TimeSpans}, "Conformance": {&o.TimeSpans}}
			if list, ok := options[table.Name]; ok {
				for _, option := range list {
					if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "TimesTicks") {
						t.Fatalf("no unit holds these times: %v", err)
					}
					*option = TimesTicks
					b.Reset()
					err = Write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, o)
				}
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
		for _, batch := range []int{0, 1, 13, 1000} {
			if batch == 1 && rows > 100 {
				continue
			}
			table := tabletest.Random(uint64(rows+batch), rows)
			o := &Options{BatchRows: batch}
			p := file(t, table, o)
			check(t, table, p)
			if again := file(t, table, o); !bytes.Equal(p, again) {
				t.Errorf("%s: other bytes the second time", table.Name)
			}
		}
	}
}

// Text that Utf8 does not hold in one batch makes the column one of LargeUtf8.
func TestLargeText(t *testing.T) {
	table := tabletest.Random(3, 50)
	var b bytes.Buffer
	if err := write(context.Background(), &b, table.Rows(), table.Columns, table.Schema, nil, 100); err != nil {
		t.Fatal(err)
	}
	check(t, table, b.Bytes())
	large := 0
	r := open(t, b.Bytes())
	for _, f := range r.Schema().Fields() {
		if strings.Contains(f.Type.String(), "large_utf8") {
			large++
		}
	}
	if large != 6 {
		t.Errorf("%d columns of large text: %s", large, r.Schema())
	}
}

func TestTimeSpans(t *testing.T) {
	tests := []struct {
		values []int64
		option Times
		want   string
	}{
		{nil, 0, "duration[ns]"},
		{[]int64{1, 92233720368547758, -92233720368547758}, 0, "duration[ns]"},
		{[]int64{10, math.MaxInt64 / 10 * 10, math.MinInt64 / 10 * 10}, 0, "duration[us]"},
		{[]int64{1, math.MaxInt64 / 10 * 10}, 0, "row 1, column 1 (took): 10675199.02:48:05.47758 is beyond 292 years, which nanoseconds reach, and row 0, column 1 (took), 00:00:00.0000001, has parts of a microsecond: no unit holds both, TimeSpans: TimesTicks exports ticks"},
		{[]int64{math.MinInt64}, 0, "-10675199.02:48:05.4775808 is beyond"},
		{[]int64{math.MinInt64, 1}, TimesTicks, "int64"},
		{nil, 7, "TimeSpans 7"},
	}
	for _, test := range tests {
		c := &tcb.Column{Tag: 1, Rows: len(test.values), Type: tcb.Type{Element: tcb.I64}, Int64s: test.values}
		s := &tcb.Schema{Columns: []tcb.Field{{Tag: 1, Name: "took", Type: c.Type, Logical: tcb.TimeSpan}}}
		table := tabletest.Table{Columns: []*tcb.Column{c}, Schema: s}
		var b bytes.Buffer
		err := Write(context.Background(), &b, table.Rows(), table.Columns, s, &Options{TimeSpans: test.option})
		if err != nil {
			if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d: %v\nwant %s", test.values, err, test.want)
			}
			continue
		}
		if text := open(t, b.Bytes()).Schema().Field(0).Type.String(); text != test.want {
			t.Errorf("%d became %s, want %s", test.values, text, test.want)
		}
		check(t, table, b.Bytes())
	}
}

// Without a schema, columns keep their names and 64-bit numbers are numbers.
func TestNoSchema(t *testing.T) {
	table := tabletest.Random(5, 10)
	var b bytes.Buffer
	if err := Write(context.Background(), &b, table.Rows(), table.Columns, nil, nil); err != nil {
		t.Fatal(err)
	}
	table.Schema.Table = ""
	for i := range table.Schema.Columns {
		table.Schema.Columns[i].Logical = tcb.Number
	}
	check(t, table, b.Bytes())
}

type fullDisk struct{}

var errFull = errors.New("no space")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestErrors(t *testing.T) {
	table := tabletest.Random(1, 100)
	if err := Write(context.Background(), fullDisk{}, table.Rows(), table.Columns, table.Schema, nil); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Write(ctx, io.Discard, table.Rows(), table.Columns, table.Schema, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := Write(context.Background(), io.Discard, 0, nil, nil, nil); !errors.Is(err, fault.Invalid) {
		t.Errorf("no columns: %v", err)
	}
	err := Write(context.Background(), io.Discard, 99, table.Columns, table.Schema, nil)
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "100 rows, the table has 99") {
		t.Errorf("another number of rows: %v", err)
	}
}

// Nothing is allocated for a value or a row, only for batches and pages.
func TestAllocations(t *testing.T) {
	table := tabletest.Wide(50_000)
	n := testing.AllocsPerRun(2, func() {
		if err := Write(context.Background(), io.Discard, table.Rows(), table.Columns, table.Schema, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n > 10_000 {
		t.Errorf("%.0f allocations for 50,000 rows of 10 columns", n)
	}
}

func BenchmarkWrite(b *testing.B) {
	table := tabletest.Wide(1_000_000)
	b.ReportAllocs()
	var size counter
	for b.Loop() {
		size = 0
		if err := Write(context.Background(), &size, table.Rows(), table.Columns, table.Schema, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "file-bytes")
	b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "rows/s")
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
