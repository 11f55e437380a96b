package seriesparquet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/spilehq/spile/adapters/seriesparquet"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/seriestest"
	"github.com/spilehq/spile/series"
)

func Example() {
	records := seriestest.Seq([]series.Record{
		{ID: series.ID{Table: 1025, TSID: 18446744073709551615}, RowCount: 3, Labels: []series.Label{{Name: "zone", Value: "us"}}},
	})
	var out bytes.Buffer
	if err := seriesparquet.Write(context.Background(), &out, []string{"host", "zone"}, records, &seriesparquet.WriteOptions{RowGroupRows: seriesparquet.DefaultRowGroupRows}); err != nil {
		fmt.Println(err)
		return
	}
	in := bytes.NewReader(out.Bytes())
	labels, err := seriesparquet.Labels(in, in.Size(), "in.parquet")
	fmt.Println(labels, err)
	tags := []series.Tag{{ColumnID: 5, Name: "host"}, {ColumnID: 6, Name: "zone"}}
	for r, err := range seriesparquet.Records(context.Background(), in, in.Size(), "in.parquet", tags, nil) {
		fmt.Println(r.ID, r.RowCount, r.Labels, err)
	}
	// Output:
	// [host zone] <nil>
	// 1025/18446744073709551615 3 [{zone us}] <nil>
}

func export(t testing.TB, a *seriestest.Artifact, o *seriesparquet.WriteOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := seriesparquet.Write(context.Background(), &out, a.Labels(), a.Records(t), o); err != nil {
		t.Fatal(a.Name, ": ", err)
	}
	return out.Bytes()
}

// An artifact that is exported and built again has the same bytes.
func TestRoundTrip(t *testing.T) {
	for i, a := range seriestest.All(t, "../../testdata/series") {
		if testing.Short() && i%12 != 0 { // all take minutes under the race detector
			continue
		}
		for _, o := range []*seriesparquet.WriteOptions{nil, {RowGroupRows: 7}} {
			if o != nil && a.Name[0] != 'r' {
				continue
			}
			b := export(t, a, o)
			a.Same(t, seriesparquet.Records(t.Context(), bytes.NewReader(b), int64(len(b)), "parquet", a.Meta.Tags, nil))
			if again := export(t, a, o); !bytes.Equal(b, again) {
				t.Errorf("%s: written twice, the file has other bytes", a.Name)
			}
		}
	}
}

// A row group whose text passes its bounds is cut, and labels longer than a page are whole.
func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("180 MB of text, which take minutes under the race detector")
	}
	long := strings.Repeat("x", 3<<20)
	var records []series.Record
	for i := range 60 {
		records = append(records, series.Record{ID: series.ID{TSID: uint64(i)}, RowCount: 1, Labels: []series.Label{{Name: "host", Value: fmt.Sprint(i, long)}}})
	}
	a, err := seriestest.Build(seriestest.Meta("host"), seriestest.Seq(records), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := export(t, a, nil)
	f, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(f.RowGroups()) < 2 {
		t.Fatal(err, len(f.RowGroups()))
	}
	a.Same(t, seriesparquet.Records(t.Context(), bytes.NewReader(b), int64(len(b)), "parquet", a.Meta.Tags, nil))
}

// file writes rows of a struct as another program would.
func file[T any](t testing.TB, rows []T, o ...pq.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pq.NewGenericWriter[T](&out, o...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// older is the layout of the older index: times, a key of bytes, no row counts.
type older struct {
	Zone  *string `parquet:"zone,optional,dict"`
	First int64   `parquet:"__first_ts,timestamp(millisecond)"`
	Last  int64   `parquet:"ts,timestamp(nanosecond)"`
	Key   []byte  `parquet:"__primary_key"`
	TSID  uint64  `parquet:"__tsid"`
	Host  string  `parquet:"host,dict"`
	Table uint32  `parquet:"__table_id"`
}

var tags = []series.Tag{{ColumnID: 5, Name: "host"}, {ColumnID: 6, Name: "zone"}, {ColumnID: 7, Name: "gone"}}

func read(b []byte, tags []series.Tag, note func(string)) (out string, err error) {
	for r, err := range seriesparquet.Records(context.Background(), bytes.NewReader(b), int64(len(b)), "in", tags, &seriesparquet.Options{Note: note}) {
		if err != nil {
			return out, err
		}
		out += fmt.Sprintln(r.ID, r.RowCount, r.Labels)
	}
	return out, nil
}

func TestOlderLayout(t *testing.T) {
	eu := "eu"
	rows := []older{{&eu, 1, 2, []byte{0xff}, 1 << 63, "a", 4294967295}, {nil, 3, 4, nil, 7, "", 1}}
	for _, codec := range []pq.WriterOption{
		pq.Compression(&pq.Uncompressed), pq.Compression(&pq.Snappy), pq.Compression(&pq.Gzip), pq.Compression(&pq.Zstd), pq.Compression(&pq.Brotli),
	} {
		for version := 1; version <= 2; version++ {
			b := file(t, rows, codec, pq.DataPageVersion(version))
			var notes []string
			got, err := read(b, tags, func(s string) { notes = append(notes, s) })
			if want := "4294967295/9223372036854775808 1 [{host a} {zone eu}]\n1/7 1 [{host }]\n"; err != nil || got != want {
				t.Errorf("%v: %s, %v, want %s", codec, got, err, want)
			}
			want := []string{`the columns "__first_ts", "ts", "__primary_key" are no labels, and are left out`, "there is no column __series_row_count: each row counts one"}
			if !reflect.DeepEqual(notes, want) {
				t.Errorf("notes %q, want %q", notes, want)
			}
			if labels, err := seriesparquet.Labels(bytes.NewReader(b), int64(len(b)), "in"); err != nil || fmt.Sprint(labels) != "[zone host]" {
				t.Error(labels, err)
			}
		}
	}
}

// LZ4, which the library reads wrong, is refused.
func TestLZ4(t *testing.T) {
	b := file(t, []older{{nil, 3, 4, nil, 7, "", 1}}, pq.Compression(&pq.Lz4Raw))
	if got, err := read(b, tags, nil); !errors.Is(err, fault.UnsupportedCodec) || !strings.Contains(err.Error(), "in: row group 0, row 0, column __table_id: the compression LZ4_RAW is not read") {
		t.Error(got, err)
	}
}

// Signed columns of other widths do as long as no number is negative, and nulls nowhere but in labels.
func TestColumns(t *testing.T) {
	type signed struct {
		Table int64  `parquet:"__table_id"`
		TSID  *int64 `parquet:"__tsid,optional"`
		Count int32  `parquet:"__series_row_count"`
		Host  []byte `parquet:"host"`
	}
	n := func(v int64) *int64 { return &v }
	good := signed{1, n(2), 3, []byte("x")}
	got, err := read(file(t, []signed{good}), tags, nil)
	if err != nil || got != "1/2 3 [{host x}]\n" {
		t.Error(got, err)
	}
	for _, test := range []struct {
		bytes []byte
		want  string
	}{
		{file(t, []signed{good, {1, n(-2), 3, nil}}), "in: row group 0, row 1, column __tsid: -2, and must be an integer of 0 to 18446744073709551615"},
		{file(t, []signed{good, {1, nil, 3, nil}}), "row 1, column __tsid: the value is null"},
		{file(t, []signed{{1 << 32, n(2), 3, nil}}), "row 0, column __table_id: 4294967296, and must be an integer of 0 to 4294967295"},
		{file(t, []signed{{1, n(2), 0, nil}}), "row 0, column __series_row_count: 0, and must be an integer of 1 to 18446744073709551615"},
		{file(t, []signed{good, {1, n(2), 1, []byte("\xff")}}), `row 1, column host: the label is no UTF-8: "\xff"`},
		{file(t, []struct {
			T uint32 `parquet:"__table_id"`
		}{{1}}), "in: the file has no column __tsid"},
		{file(t, []struct {
			T uint32 `parquet:"__table_id"`
			S string `parquet:"__tsid"`
		}{{1, "2"}}), "the column __tsid is STRING, not of integers"},
		{file(t, []struct {
			T    uint32 `parquet:"__table_id"`
			S    uint64 `parquet:"__tsid"`
			Hots string `parquet:"hots"`
			Zon  string `parquet:"zon"`
		}{{1, 2, "a", "b"}}), `the columns "hots", "zon" are no tags of the artifact`},
		{file(t, []struct {
			T uint32   `parquet:"__table_id"`
			S uint64   `parquet:"__tsid"`
			H []string `parquet:"host,list"`
		}{{1, 2, []string{"a"}}}), `the column "host" is nested, and labels are text`},
		{file(t, []struct {
			T uint32 `parquet:"__table_id"`
			S uint64 `parquet:"__tsid"`
			H int32  `parquet:"host"`
		}{{1, 2, 3}}), `the column "host" is INT(32,true), and labels are text`},
	} {
		if _, err := read(test.bytes, tags, nil); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// A file that is cut off anywhere, or whose bytes are changed, is an error with a class, or gives records; no panic.
func TestHostile(t *testing.T) {
	whole := export(t, seriestest.Random(t, 3, 300), &seriesparquet.WriteOptions{RowGroupRows: 100})
	eu := "eu"
	rows := []older{{&eu, 1, 2, []byte{0xff}, 1 << 63, "a", 4294967295}, {nil, 3, 4, nil, 7, "", 1}}
	files := [][]byte{whole, file(t, rows), file(t, rows, pq.Compression(&pq.Gzip), pq.DataPageVersion(2)), file(t, rows, pq.Compression(&pq.Snappy)), file(t, rows, pq.Compression(&pq.Lz4Raw), pq.DataPageVersion(1))}
	known := append(slices.Clone(tags), seriestest.Random(t, 3, 1).Meta.Tags...)
	check := func(b []byte) {
		t.Helper()
		_, err := read(b, known, nil)
		if f, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || f.Class == nil) {
			t.Fatalf("%v has no class", err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for _, f := range files {
		for i := range len(f) {
			if i < 200 || i > len(f)-200 || i%97 == 0 {
				check(f[:i])
			}
		}
		for range rounds {
			b := bytes.Clone(f)
			for range 1 + r.IntN(3) {
				i := r.IntN(len(b))
				if r.IntN(2) == 0 { // the metadata, which are at the end
					i = len(b) - 1 - r.IntN(min(len(b), 600))
				}
				switch r.IntN(3) {
				case 0:
					b[i] ^= 1 << r.IntN(8)
				case 1:
					b[i] = byte(r.Uint32())
				case 2:
					b[i] = 0xff
				}
			}
			check(b)
		}
	}
}

func FuzzRecords(f *testing.F) {
	eu := "eu"
	rows := []older{{&eu, 1, 2, []byte{0xff}, 1 << 63, "a", 4294967295}, {nil, 3, 4, nil, 7, "", 1}}
	f.Add(file(f, rows))
	f.Add(file(f, rows, pq.Compression(&pq.Zstd), pq.DataPageVersion(2)))
	f.Add(export(f, seriestest.Random(f, 3, 20), nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := read(b, tags, nil)
		if e, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || e.Class == nil) {
			t.Fatalf("%v has no class", err)
		}
	})
}

func TestWriteRefused(t *testing.T) {
	records := seriestest.Seq([]series.Record{{ID: series.ID{Table: 1, TSID: 7}, RowCount: 2, Labels: []series.Label{{Name: "zone"}, {Name: "host"}}}})
	err := seriesparquet.Write(t.Context(), &bytes.Buffer{}, []string{"host", "zone"}, records, nil)
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `1/7: the label "host" has no column`) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := seriestest.Random(t, 1, 10)
	if err := seriesparquet.Write(ctx, &bytes.Buffer{}, a.Labels(), a.Records(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
