package xlsx

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/tcb"
	"github.com/xuri/excelize/v2"
)

// What excelize writes is read.
func TestReadExcelize(t *testing.T) {
	f := excelize.NewFile()
	defer f.Close()
	for cell, v := range map[string]any{
		"A1": "a", "B1": "b", "C1": "c", "D1": "d", "E1": "e", "F1": "f",
		"A2": 7, "B2": "x & y\n", "C2": 0.1, "D2": true, "E2": time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), "F2": 90 * time.Minute,
		"A4": 8, "B4": "", "C4": -1e300, "D4": false, "E4": time.Date(1900, 2, 28, 0, 0, 0, 0, time.UTC), "F4": time.Second,
	} {
		if err := f.SetCellValue("Sheet1", cell, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetCellRichText("Sheet1", "B4", []excelize.RichTextRun{{Text: "rich "}, {Text: "text", Font: &excelize.Font{Bold: true}}}); err != nil {
		t.Fatal(err)
	}
	if err := f.MergeCell("Sheet1", "A2", "A3"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	s := of(t, "i32", "string", "f64", "bool", "datetime", "timespan")
	columns, rows, warnings, err := Read(t.Context(), bytes.NewReader(out.Bytes()), int64(out.Len()), s, &Options{Merged: MergedFirst})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a":7,"b":"x & y\n","c":0.1,"d":true,"e":"2026-01-02T03:04:05.678","f":"01:30:00"}
{"a":8,"b":"rich text","c":-1e+300,"d":false,"e":"1900-02-28T00:00:00","f":"00:00:01"}`
	if got := rowsOf(t, rows, columns, s); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0].String(), "Sheet1, row 3: 1 rows") {
		t.Error(warnings)
	}
}

// What is written, excelize reads.
func TestWriteExcelize(t *testing.T) {
	s := of(t, "i64", "string", "f32", "bool", "datetime", "i32[]?")
	s.Table = `R&D "x"`
	b := tcb.NewBuilder(s)
	for k, v := range []tcb.Cell{
		{Kind: tcb.CellNumber, Text: "9007199254740993"}, {Kind: tcb.CellText, Text: " <a>\t_x0041_\r"}, {Kind: tcb.CellNumber, Text: "0.1"},
		{Kind: tcb.CellBool, Text: "true"}, {Kind: tcb.CellText, Text: "2026-01-02T03:04:05"},
	} {
		if err := b.Scalar(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Array(5, []tcb.Cell{{Kind: tcb.CellNumber, Text: "1"}, {Kind: tcb.CellNumber, Text: "2"}}); err != nil {
		t.Fatal(err)
	}
	b.EndRow()
	var out bytes.Buffer
	if err := Write(t.Context(), &out, 1, b.Columns(), s, nil); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := f.GetRows(`R&D "x"`, excelize.Options{RawCellValue: true})
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	for i, want := range []string{"9007199254740993", " <a>\t_x0041_\r", "0.1", "1", "2026-01-02T03:04:05", "1;2"} {
		if got := rows[1][i]; got != want && !(i == 3 && got == "TRUE") {
			t.Errorf("column %d is %q, want %q", i, got, want)
		}
	}
}
