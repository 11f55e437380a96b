package seriescsv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/spilehq/spile/adapters/seriescsv"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/seriestest"
	"github.com/spilehq/spile/series"
)

var tags = []series.Tag{{ColumnID: 5, Name: "host"}, {ColumnID: 6, Name: "a,b"}}

func Example() {
	text := "__table_id,__tsid,__series_row_count,host,zone\n" +
		"1025,18446744073709551615,3,,us\n" +
		"1025,10,1,\"\",\n"
	labels, _ := seriescsv.Labels(strings.NewReader(text), "in.csv")
	var tags []series.Tag
	for i, name := range labels {
		tags = append(tags, series.Tag{ColumnID: uint32(i + 1), Name: name})
	}
	for r, err := range seriescsv.Records(context.Background(), strings.NewReader(text), "in.csv", tags) {
		fmt.Println(r.ID, r.RowCount, r.Labels, err)
	}
	// Output:
	// 1025/18446744073709551615 3 [{zone us}] <nil>
	// 1025/10 1 [{host }] <nil>
}

func ExampleWrite() {
	records := seriestest.Seq([]series.Record{{ID: series.ID{Table: 1, TSID: 7}, RowCount: 2, Labels: []series.Label{{Name: "zone", Value: "a,b"}}}})
	if err := seriescsv.Write(context.Background(), os.Stdout, []string{"host", "zone"}, records); err != nil {
		fmt.Println(err)
	}
	// Output:
	// __table_id,__tsid,__series_row_count,host,zone
	// 1,7,2,,"a,b"
}

// An artifact that is exported and built again has the same bytes.
func TestRoundTrip(t *testing.T) {
	for _, a := range seriestest.All(t, "../../testdata/series") {
		var out bytes.Buffer
		if err := seriescsv.Write(t.Context(), &out, a.Labels(), a.Records(t)); err != nil {
			t.Fatal(a.Name, ": ", err)
		}
		a.Same(t, seriescsv.Records(t.Context(), &out, "csv", a.Meta.Tags))
	}
}

func wide(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

func TestRead(t *testing.T) {
	const head = "__table_id,__tsid,__series_row_count,host"
	for text, want := range map[string]string{
		head + "\n1,2,3,x\n":                                         `[1/2 3 [{host x}]]`,
		"\ufeff" + head + "\r\n\r\n1,2,3,x":                          `[1/2 3 [{host x}]]`,
		wide("host;__tsid;__table_id;__series_row_count\nü;2;1;3\n"): `[1/2 3 [{host ü}]]`,
		"\"__table_id\"\t\"__tsid\"\t\"__series_row_count\"\t\"a,b\"\n\"1\"\t2\t3\t\"\"\n1\t3\t3\t": `[1/2 3 [{a,b }] 1/3 3 []]`,
		"__table_id,__tsid,__series_row_count\n1,2,3\n":                                             `[1/2 3 []]`,
		head: `[]`,
	} {
		var got []string
		for r, err := range seriescsv.Records(t.Context(), strings.NewReader(text), "in", tags) {
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			got = append(got, fmt.Sprint(r.ID, " ", r.RowCount, " ", r.Labels))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	const head = "__table_id,__tsid,__series_row_count,host\n"
	for text, want := range map[string]string{
		"":                             `in: there is no header`,
		"a,b\n":                        `in: line 1: the header has no __table_id, __tsid, __series_row_count; it names `,
		"__table_id,__tsid\n":          `the header has no __series_row_count`,
		head[:len(head)-1] + ",host\n": `line 1, field 5: the column "host" is that of field 4 too`,
		"__table_id,__tsid,__series_row_count,hots\n":     `in: line 1: the column "hots" is no tag of the artifact`,
		"__table_id,__tsid,__series_row_count,hots,zon\n": `in: line 1: the columns "hots", "zon" are no tags of the artifact`,
		head + "1,2,3\n":                      `in: line 2: 3 fields, the header has 4`,
		head + "1,2,3,a\n\n1,2,3,a,b\n":       `in: line 4: 5 fields, the header has 4`,
		head + "1,2,3,\"a\n\"\n1,,3,a\n":      `in: line 4, field 2 (__tsid): "", and must be an integer of 0 to 18446744073709551615`,
		head + "4294967296,2,3,a\n":           `line 2, field 1 (__table_id): "4294967296", and must be an integer of 0 to 4294967295`,
		head + "1,18446744073709551616,3,a\n": `an integer of 0 to 18446744073709551615`,
		head + "1,-2,3,a\n":                   `"-2", and must be`,
		head + "1,2.0,3,a\n":                  `"2.0", and must be`,
		head + "1,2,0,a\n":                    `line 2, field 3 (__series_row_count): 0, and a series has a row at least`,
		head + "1,2,3,\xff\n":                 `line 2: the text is no UTF-8`,
		head + "1,2,3,\"a\n":                  `line 2: the quote that opens a field is never closed`,
		head + "1,2,3,a\"b\n":                 `line 2: a quote inside a field`,
	} {
		var failed error
		for _, err := range seriescsv.Records(t.Context(), strings.NewReader(text), "in", tags) {
			failed = err
		}
		if !errors.Is(failed, fault.Invalid) || !strings.Contains(failed.Error(), want) || !strings.HasPrefix(failed.Error(), "seriescsv: in: ") {
			t.Errorf("%q: %v, want %s", text, failed, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed error
	for _, err := range seriescsv.Records(ctx, strings.NewReader(head+strings.Repeat("1,2,3,x\n", 5000)), "in", tags) {
		failed = err
	}
	if !errors.Is(failed, context.Canceled) {
		t.Errorf("cancelled: %v", failed)
	}
}

// A record whose labels are not those of the columns is no file.
func TestWriteRefused(t *testing.T) {
	records := seriestest.Seq([]series.Record{{ID: series.ID{Table: 1, TSID: 7}, RowCount: 2, Labels: []series.Label{{Name: "zone"}, {Name: "host"}}}})
	err := seriescsv.Write(t.Context(), &bytes.Buffer{}, []string{"host", "zone"}, records)
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `1/7: the label "host" has no column`) {
		t.Error(err)
	}
}

// FuzzRecords writes what was read, and reads it back.
func FuzzRecords(f *testing.F) {
	f.Add("__table_id,__tsid,__series_row_count,host,\"a,b\"\n1,2,3,,\"\"\n1,3,3,x,\"y\r\nz\"\n")
	f.Add("host;__tsid;__table_id;__series_row_count\nü;2;1;3\n")
	f.Add(wide("__table_id,__tsid,__series_row_count\n1,2,3\n"))
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) (string, []series.Record, error) {
			var all []series.Record
			for r, err := range seriescsv.Records(t.Context(), strings.NewReader(text), "in", tags) {
				if err != nil {
					return "", nil, err
				}
				// The labels in the order of the tags.
				var labels []series.Label
				for _, tag := range tags {
					for _, l := range r.Labels {
						if l.Name == tag.Name {
							labels = append(labels, l)
						}
					}
				}
				r.Labels = labels
				all = append(all, r)
			}
			return fmt.Sprintf("%q", all), all, nil
		}
		first, records, err := read(text)
		if err != nil {
			if !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Limit) {
				t.Fatalf("%v has no class", err)
			}
			return
		}
		var out bytes.Buffer
		if err := seriescsv.Write(t.Context(), &out, []string{"host", "a,b"}, seriestest.Seq(records)); err != nil {
			t.Fatal(err)
		}
		if second, _, err := read(out.String()); err != nil || first != second {
			t.Fatalf("%s, then %s, %v", first, second, err)
		}
	})
}
