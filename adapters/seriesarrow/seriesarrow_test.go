package seriesarrow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/seriestest"
	"github.com/spilehq/spile/series"
)

func ExampleWrite() {
	records := seriestest.Seq([]series.Record{
		{ID: series.ID{Table: 1025, TSID: 18446744073709551615}, RowCount: 3, Labels: []series.Label{{Name: "zone", Value: "us"}}},
	})
	var out bytes.Buffer
	if err := Write(context.Background(), &out, []string{"host", "zone"}, records, &Options{BatchRows: DefaultBatchRows}); err != nil {
		fmt.Println(err)
		return
	}
	f, err := ipc.NewFileReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	fmt.Println(f.Schema())
	fmt.Println(MaxValues, MaxText)
	// Output:
	// schema:
	//   fields: 5
	//     - __table_id: type=uint32
	//     - __tsid: type=uint64
	//     - __series_row_count: type=uint64
	//     - host: type=dictionary<values=utf8, indices=uint32, ordered=false>, nullable
	//     - zone: type=dictionary<values=utf8, indices=uint32, ordered=false>, nullable
	// 1048576 67108864
}

// read reads a file with the reader of the library.
func read(t testing.TB, b []byte) (records iter.Seq2[series.Record, error], plain int) {
	t.Helper()
	f, err := ipc.NewFileReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for _, field := range f.Schema().Fields()[3:] {
		if field.Type.ID() == arrow.STRING {
			plain++
		}
	}
	return func(yield func(series.Record, error) bool) {
		for i := range f.NumRecords() {
			batch, err := f.RecordBatchAt(i)
			if err != nil {
				t.Fatal(err)
			}
			for k := range int(batch.NumRows()) {
				r := series.Record{
					ID:       series.ID{Table: batch.Column(0).(*array.Uint32).Value(k), TSID: batch.Column(1).(*array.Uint64).Value(k)},
					RowCount: batch.Column(2).(*array.Uint64).Value(k),
				}
				for c := 3; c < int(batch.NumCols()); c++ {
					l := series.Label{Name: batch.ColumnName(c)}
					switch a := batch.Column(c).(type) {
					case *array.Dictionary:
						if a.IsNull(k) {
							continue
						}
						l.Value = strings.Clone(a.Dictionary().(*array.String).Value(a.GetValueIndex(k)))
					case *array.String:
						if a.IsNull(k) {
							continue
						}
						l.Value = strings.Clone(a.Value(k))
					}
					r.Labels = append(r.Labels, l)
				}
				if !yield(r, nil) {
					return
				}
			}
		}
	}, plain
}

// An artifact that is exported, read by the library's reader and built again has the same bytes.
func TestRoundTrip(t *testing.T) {
	for _, a := range seriestest.All(t, "../../testdata/series") {
		for _, test := range []struct {
			rows, values int
		}{{0, MaxValues}, {7, MaxValues}, {100, 5}} {
			if test.rows > 0 && a.Name[0] != 'r' {
				continue
			}
			var out bytes.Buffer
			if err := write(t.Context(), &out, a.Labels(), a.Records(t), &Options{BatchRows: test.rows}, test.values); err != nil {
				t.Fatal(a.Name, ": ", err)
			}
			records, plain := read(t, out.Bytes())
			if test.values == MaxValues && plain > 0 {
				t.Errorf("%s: %d columns without a dictionary", a.Name, plain)
			}
			a.Same(t, records)
		}
	}
}

// A column with more values than a dictionary takes has none.
func TestPlain(t *testing.T) {
	a := seriestest.Random(t, 9, 3000)
	var out bytes.Buffer
	if err := write(t.Context(), &out, a.Labels(), a.Records(t), nil, 5); err != nil {
		t.Fatal(err)
	}
	records, plain := read(t, out.Bytes())
	if plain == 0 {
		t.Error("every column has a dictionary")
	}
	a.Same(t, records)
}

type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestRefused(t *testing.T) {
	records := seriestest.Seq([]series.Record{{ID: series.ID{Table: 1, TSID: 7}, RowCount: 2, Labels: []series.Label{{Name: "zone"}, {Name: "host"}}}})
	err := Write(t.Context(), &bytes.Buffer{}, []string{"host", "zone"}, records, nil)
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `1/7: the label "host" has no column`) {
		t.Error(err)
	}
	a := seriestest.Random(t, 1, 10)
	if err := Write(t.Context(), full{}, a.Labels(), a.Records(t), nil); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, &bytes.Buffer{}, a.Labels(), a.Records(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// Records that are others the second time.
	n := 0
	changing := func(yield func(series.Record, error) bool) {
		n++
		yield(series.Record{ID: series.ID{TSID: 1}, RowCount: 1, Labels: []series.Label{{Name: "host", Value: fmt.Sprint(n)}}}, nil)
	}
	if err := Write(t.Context(), &bytes.Buffer{}, []string{"host"}, changing, nil); !errors.Is(err, fault.Changed) {
		t.Errorf("other records: %v", err)
	}
}
