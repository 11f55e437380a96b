package xlsx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
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

// of is a schema of columns a, b, … of these types; "?" behind one makes it optional.
func of(t testing.TB, types ...string) *tcb.Schema {
	t.Helper()
	var columns []string
	for i, typ := range types {
		name, optional := strings.CutSuffix(typ, "?")
		columns = append(columns, fmt.Sprintf(`{"tag":%d,"name":"%c","type":"%s","optional":%t}`, i+1, 'a'+i, name, optional))
	}
	return schema(t, strings.Join(columns, ","))
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

func row(n int, cells string) string { return fmt.Sprintf(`<row r="%d">%s</row>`, n, cells) }

var reads = []struct {
	name    string
	types   string
	book    book
	o       Options
	rows    string
	err     string
	warning string
}{
	{name: "no rows", types: "i32", book: book{sheet: data(1, "")}},
	{name: "empty sheet", types: "i32", book: book{sheet: "<sheetData/>"}},
	{name: "whole numbers", types: "i32", book: book{sheet: data(1, row(2, number1("A2", "3"))+row(3, number1("A3", "3.0"))+row(4, number1("A4", "1E3"))+row(5, text1("A5", "7")))},
		rows: "{\"a\":3}\n{\"a\":3}\n{\"a\":1000}\n{\"a\":7}"},
	{name: "no whole number", types: "i32 string", book: book{sheet: data(2, row(2, number1("A2", "3.5")+number1("B2", "3"))+row(3, text1("B3", "x")))},
		err: `xlsx: x.xlsx: Items!A2, column 1 (a): a number "3.5", want a whole number of 32 bits
xlsx: x.xlsx: Items!B2, column 2 (b): a number "3", want text
xlsx: x.xlsx: Items!A3, column 1 (a): no value, and the column is not optional`},
	{name: "long numbers", types: "i64 i64[]", book: book{sheet: data(2, row(2, number1("A2", "999999999999999")+number1("B2", "5"))+row(3, number1("A3", "1234567890123450000")+number1("B3", "-1E15"))+row(4, number1("A4", "1.2345678901234501E+18")))},
		err: `xlsx: x.xlsx: Items!A3, column 1 (a): the number "1234567890123450000" of 16 digits or more, of which a spreadsheet keeps 15: want the digits as text
xlsx: x.xlsx: Items!B3, column 2 (b): the number "-1E15" of 16 digits or more, of which a spreadsheet keeps 15: want the digits as text
xlsx: x.xlsx: Items!A4, column 1 (a): the number "1.2345678901234501E+18" of 16 digits or more, of which a spreadsheet keeps 15: want the digits as text`},
	{name: "long numbers as text", types: "i64", book: book{sheet: data(1, row(2, text1("A2", "9007199254740993")))}, rows: `{"a":9007199254740993}`},
	{name: "long numbers of a program", types: "i64", o: Options{LongNumbers: true}, book: book{sheet: data(1, row(2, number1("A2", "9007199254740993")))}, rows: `{"a":9007199254740993}`},
	{name: "raw floats", types: "f64 f32", book: book{sheet: data(2, row(2, `<c r="A2" s="4"><v>0.30000000000000004</v></c>`+number1("B2", "9.9999999999999995E-2")))}, rows: `{"a":0.30000000000000004,"b":0.1}`},
	{name: "dates of 1900", types: "datetime", book: book{sheet: data(1, row(2, `<c r="A2" s="1"><v>1</v></c>`)+row(3, `<c r="A3" s="1"><v>59</v></c>`)+row(4, `<c r="A4" s="2"><v>61</v></c>`)+row(5, `<c r="A5" s="2"><v>46024.127835648149</v></c>`)+row(6, `<c r="A6" s="2"><v>2958465.9999999884</v></c>`)+row(7, `<c r="A7" s="5"><v>46024.5</v></c>`))},
		rows: `{"a":"1900-01-01T00:00:00"}
{"a":"1900-02-28T00:00:00"}
{"a":"1900-03-01T00:00:00"}
{"a":"2026-01-02T03:04:05"}
{"a":"9999-12-31T23:59:59.999"}
{"a":"2026-01-02T12:00:00"}`},
	{name: "dates of 1904", types: "datetime", book: book{workbook: `<workbookPr date1904="1"/>`, sheet: data(1, row(2, `<c r="A2" s="1"><v>0</v></c>`)+row(3, `<c r="A3" s="1"><v>60</v></c>`)+row(4, `<c r="A4" s="1"><v>44562.127835648149</v></c>`))},
		rows: "{\"a\":\"1904-01-01T00:00:00\"}\n{\"a\":\"1904-03-01T00:00:00\"}\n{\"a\":\"2026-01-02T03:04:05\"}"},
	{name: "no dates", types: "datetime", book: book{sheet: data(1, row(2, `<c r="A2" s="1"><v>60</v></c>`)+row(3, `<c r="A3" s="2"><v>60.5</v></c>`)+row(4, `<c r="A4" s="1"><v>0.5</v></c>`)+row(5, `<c r="A5" s="1"><v>-1</v></c>`)+row(6, `<c r="A6" s="1"><v>2958466</v></c>`)+row(7, number1("A7", "46024"))+row(8, `<c r="A8" s="1"><v>x</v></c>`)+row(9, `<c r="A9" s="1"><v>1e300</v></c>`))},
		err: `xlsx: x.xlsx: Items!A2, column 1 (a): the serial number "60" is the 29 February 1900, which never was
xlsx: x.xlsx: Items!A3, column 1 (a): the serial number "60.5" is the 29 February 1900, which never was
xlsx: x.xlsx: Items!A4, column 1 (a): the serial number "0.5" is a time of day without a date
xlsx: x.xlsx: Items!A5, column 1 (a): the serial number "-1" is before the first day of the date system
xlsx: x.xlsx: Items!A6, column 1 (a): the serial number "2958466" is behind the year 9999
xlsx: x.xlsx: Items!A7, column 1 (a): a number "46024", want a datetime as 2026-01-02T03:04:05
xlsx: x.xlsx: Items!A8, column 1 (a): "x" in a cell of numbers
xlsx: x.xlsx: Items!A9, column 1 (a): the serial number "1e300" is outside the years of dates`},
	{name: "dates elsewhere", types: "i32 f64 string timespan", book: book{sheet: data(4, row(2, `<c r="A2" s="1"><v>46024</v></c><c r="B2" s="2"><v>46024</v></c><c r="C2" s="1"><v>46024</v></c><c r="D2" s="1"><v>46024</v></c>`))},
		err: `xlsx: x.xlsx: Items!A2, column 1 (a): a date "2026-01-02T00:00:00", want a whole number of 32 bits
xlsx: x.xlsx: Items!B2, column 2 (b): a date "2026-01-02T00:00:00", want a number in the range of 64-bit floats
xlsx: x.xlsx: Items!C2, column 3 (c): a date "2026-01-02T00:00:00", want text
xlsx: x.xlsx: Items!D2, column 4 (d): a date "2026-01-02T00:00:00", want a timespan as [-][d.]hh:mm:ss[.fffffff]`},
	{name: "spans", types: "timespan timespan?", book: book{sheet: data(2, row(2, `<c r="A2" s="3"><v>1.5</v></c><c r="B2" s="5"><v>4.2372685185185187E-2</v></c>`)+row(3, `<c r="A3" s="3"><v>-60</v></c>`)+row(4, text1("A4", "00:00:00.0000001")))},
		rows: "{\"a\":\"1.12:00:00\",\"b\":\"01:01:01\"}\n{\"a\":\"-60.00:00:00\",\"b\":null}\n{\"a\":\"00:00:00.0000001\",\"b\":null}"},
	{name: "ISO dates", types: "datetime", book: book{sheet: data(1, row(2, `<c r="A2" t="d"><v>2026-01-02T03:04:05.5</v></c>`))}, rows: `{"a":"2026-01-02T03:04:05.5"}`},
	{name: "errors", types: "i32? string? i32?", book: book{sheet: data(3, row(2, `<c r="A2" t="e"><v>#N/A</v></c><c r="B2" t="e"><f>1/0</f><v>#DIV/0!</v></c><c r="C2" t="s"><v>9</v></c>`))},
		err: `xlsx: x.xlsx: Items!A2, column 1 (a): the error "#N/A", want a value
xlsx: x.xlsx: Items!B2, column 2 (b): the error "#DIV/0!", want a value
xlsx: x.xlsx: Items!C2, column 3 (c): the shared string "9", which the workbook does not have, want a value`},
	{name: "formulas", types: "i32? string? bool?", book: book{sheet: data(3, row(2, `<c r="A2"><f t="shared" ref="A2:A3" si="0">1+1</f><v>2</v></c><c r="B2" t="str"><f>"x"</f><v>x</v></c><c r="C2" t="b"><f>TRUE()</f><v>1</v></c>`)+row(3, `<c r="A3"><f t="shared" si="0"/><v>3</v></c><c r="B3" t="str"><f>""</f><v></v></c>`))},
		rows: "{\"a\":2,\"b\":\"x\",\"c\":true}\n{\"a\":3,\"b\":\"\",\"c\":null}"},
	{name: "formulas without a result", types: "i32? string?", book: book{sheet: data(2, row(2, `<c r="A2"><f>1+1</f></c><c r="B2" t="str"><f>"x"</f></c>`)+row(3, `<c r="A3"><f t="shared" si="0"/><v/></c>`))},
		err: `xlsx: x.xlsx: Items!A2, column 1 (a): a formula without a stored result, want a value
xlsx: x.xlsx: Items!B2, column 2 (b): a formula without a stored result, want a value
xlsx: x.xlsx: Items!A3, column 1 (a): a formula without a stored result, want a value`},
	{name: "shared strings", types: "string", book: book{strings: `<si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/></si><si><r><t>bold</t></r><r><rPr><b/></rPr><t xml:space="preserve"> and </t></r><r><t>not</t></r><rPh><t>x</t></rPh></si><si><t>a_x000D_&#10;b_x005F_x0041__xd83d__xDE00_</t></si><si/>`,
		sheet: data(1, row(2, `<c r="A2" t="s"><v>0</v></c>`)+row(3, `<c r="A3" t="s"><v>1</v></c>`)+row(4, `<c r="A4" t="s"><v>2</v></c>`)+row(5, `<c r="A5" t="s"><v>3</v></c>`))},
		rows: "{\"a\":\"東京\"}\n{\"a\":\"bold and not\"}\n{\"a\":\"a\\r\\nb_x0041_😀\"}\n{\"a\":\"\"}"},
	{name: "inline strings", types: "string?", book: book{sheet: data(1, row(2, `<c r="A2" t="inlineStr"><is><r><t>a</t></r><r><t> _x0001_</t></r><rPh><t>x</t></rPh></is></c>`)+row(3, `<c r="A3" t="inlineStr"><is><t/></is></c>`)+row(4, text1("A4", `\N`)))}, rows: "{\"a\":\"a \\u0001\"}\n{\"a\":\"\"}\n{\"a\":null}"},
	{name: "half a pair", types: "string", book: book{sheet: data(1, row(2, text1("A2", "_xD83D_x")))}, err: `xlsx: x.xlsx: Items!A2, column 1 (a): text "_xD83D_x" with half a surrogate pair, want a value`},
	{name: "truth", types: "bool i32", book: book{sheet: data(2, row(2, `<c r="A2" t="b"><v>1</v></c><c r="B2" t="b"><v>0</v></c>`))}, err: `xlsx: x.xlsx: Items!B2, column 2 (b): a truth value "false", want a whole number of 32 bits`},
	{name: "arrays", types: "i32[] string[]? bool[]", book: book{sheet: data(3, row(2, text1("A2", "1;2")+text1("B2", `x\;y;z`)+`<c r="C2" t="b"><v>1</v></c>`)+row(3, number1("A3", "7")+`<c r="B3" t="str"><v></v></c>`))},
		rows: "{\"a\":[1,2],\"b\":[\"x;y\",\"z\"],\"c\":[true]}\n{\"a\":[7],\"b\":[],\"c\":[]}"},
	{name: "no names of cells", types: "i32 i32", book: book{sheet: `<sheetData><row><c t="inlineStr"><is><t>a</t></is></c><c t="inlineStr"><is><t>b</t></is></c></row><row><c><v>1</v></c><c><v>2</v></c></row></sheetData>`}, rows: `{"a":1,"b":2}`},
	{name: "prefixes", types: "i32", book: book{part: map[string]string{"xl/worksheets/sheet1.xml": `<x:worksheet xmlns:x="u"><x:sheetData><x:row r="1"><x:c r="A1" t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c></x:row><x:row r="2"><x:c r="A2"><x:v>5</x:v></x:c></x:row></x:sheetData><x:mergeCells><x:mergeCell ref="C1:D2"/></x:mergeCells></x:worksheet>`}}, rows: `{"a":5}`},
	{name: "blank rows", types: "i32", book: book{sheet: data(1, row(2, number1("A2", "1"))+row(3, `<c r="A3" s="1"/>`)+row(5, number1("A5", "2"))+row(9, number1("A9", "3"))+row(12, `<c r="A12" s="1"/>`))},
		rows: "{\"a\":1}\n{\"a\":2}\n{\"a\":3}", warning: "Items, row 3: 5 rows without a value between rows are left out"},
	{name: "a stray cell in the last row", types: "i32", book: book{sheet: data(1, row(2, number1("A2", "1"))+row(1048576, number1("A1048576", "2")))}, rows: "{\"a\":1}\n{\"a\":2}", warning: "Items, row 3: 1048573 rows without a value between rows are left out"},
	{name: "a stray cell without a name", types: "i32", book: book{sheet: data(1, row(2, number1("A2", "1"))+row(1048576, number1("XFD1048576", "2")))}, err: `xlsx: x.xlsx: Items!XFD1048576: a number "2", and the header has no name for the column`},
	{name: "a header further down", types: "i32", o: Options{Header: 3}, book: book{sheet: `<sheetData>` + row(1, text1("A1", "Title")) + row(3, text1("B3", "a")) + row(4, number1("B4", "1")) + `</sheetData>`}, rows: `{"a":1}`},
	{name: "no header there", types: "i32", o: Options{Header: 2}, book: book{sheet: `<sheetData>` + row(1, text1("A1", "Title")) + row(3, text1("B3", "a")) + `</sheetData>`}, err: "xlsx: x.xlsx: Items: the sheet has no header in row 2"},
	{name: "a header of numbers", types: "i32", book: book{sheet: `<sheetData>` + row(1, `<c r="A1" t="b"><v>1</v></c><c r="B1" s="1"><v>1</v></c><c r="C1" t="e"><v>#REF!</v></c>`) + `</sheetData>`},
		err: `xlsx: x.xlsx: Items!A1: a truth value "true", want the name of a column
xlsx: x.xlsx: Items!B1: a number "1", want the name of a column
xlsx: x.xlsx: Items!C1: the error "#REF!", want the name of a column`},
	{name: "merged", types: "i32 string", book: book{sheet: data(2, row(2, number1("A2", "1")+text1("B2", "x"))+row(3, number1("A3", "2"))) + `<mergeCells count="2"><mergeCell ref="B2:B3"/><mergeCell ref="D1:E9"/></mergeCells>`},
		err: "xlsx: x.xlsx: Items!B2: merged with the cells to B3: what merged cells mean must be said, the first cell or all"},
	{name: "merged, first", types: "i32 string?", o: Options{Merged: MergedFirst}, book: book{sheet: data(2, row(2, number1("A2", "1")+text1("B2", "x"))+row(3, number1("A3", "2")+text1("B3", "hidden"))) + `<mergeCells count="1"><mergeCell ref="B2:B3"/></mergeCells>`},
		rows: "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":null}"},
	{name: "merged, fill", types: "i32 string? string?", o: Options{Merged: MergedFill}, book: book{sheet: data(3, row(2, number1("A2", "1")+text1("B2", "x"))+row(3, number1("A3", "2"))+row(6, number1("A6", "3"))+row(8, number1("A8", "4"))) + `<mergeCells count="1"><mergeCell ref="B2:C7"/></mergeCells>`},
		rows: "{\"a\":1,\"b\":\"x\",\"c\":\"x\"}\n{\"a\":2,\"b\":\"x\",\"c\":\"x\"}\n{\"a\":3,\"b\":\"x\",\"c\":\"x\"}\n{\"a\":4,\"b\":null,\"c\":null}", warning: "Items, row 4: 3 rows without a value between rows are left out"},
	{name: "merged twice", types: "i32", o: Options{Merged: MergedFill}, book: book{sheet: data(1, row(2, number1("A2", "1"))) + `<mergeCells count="1"><mergeCell ref="A2:A3"/><mergeCell ref="A2:B2"/></mergeCells>`}, err: "xlsx: x.xlsx: two merged ranges have the cell A2"},
	{name: "merged, no range", types: "i32", book: book{sheet: data(1, "") + `<mergeCells><mergeCell ref="A2:B"/></mergeCells>`}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: the merged range "A2:B"`},
	{name: "merged, where it is not looked for", types: "i32", book: book{sheet: `<sheetData><!-- </sheetData><mergeCell ref="B1:C1"/> --></sheetData>`}, err: "xlsx: x.xlsx: xl/worksheets/sheet1.xml: 0 merged ranges, where 1 were found before"},
	{name: "rows in disorder", types: "i32", book: book{sheet: data(1, row(3, number1("A3", "1"))+row(2, number1("A2", "1")))}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: row "2" behind row 3`},
	{name: "cells in disorder", types: "i32", book: book{sheet: data(1, row(2, number1("B2", "1")+number1("A2", "1")))}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: the cell "A2" behind column 2 of row 2`},
	{name: "a cell of another row", types: "i32", book: book{sheet: data(1, row(2, number1("A3", "1")))}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: the cell "A3" behind column 0 of row 2`},
	{name: "a row too far", types: "i32", book: book{sheet: data(1, row(1048577, ""))}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: row 1048577, a sheet has 1048576`},
	{name: "cut", types: "i32", book: book{part: map[string]string{"xl/worksheets/sheet1.xml": `<worksheet><sheetData><row>`}}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: the part is not complete`},
	{name: "tags in disorder", types: "i32", book: book{sheet: `<sheetData><row></sheetData></row>`}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: the end tag of "sheetData", which is not open`},
	{name: "a sheet that is not there", types: "i32", o: Options{Sheet: "Drops"}, book: book{sheet: data(1, "")}, err: `xlsx: x.xlsx: no sheet "Drops"; there are "Items"`},
	{name: "several sheets", types: "i32", book: book{sheets: `<sheet name="Chart" r:id="c"/><sheet name="It's" r:id="s1"/><sheet name="Other" r:id="s2"/>`, sheet: data(1, "")}, warning: "the workbook has 2 sheets, and 'It''s' is read"},
	{name: "too much", types: "i32", o: Options{MaxUnzipped: 1000}, book: book{sheet: data(1, strings.Repeat(" ", 10000))}, err: `xlsx: x.xlsx: xl/sharedStrings.xml: the workbook unpacks to more than the limit`},
	{name: "too many number formats", types: "i32", book: book{styles: numFmts(1 << 14), sheet: data(1, "")}},
	{name: "too many number formats, one more", types: "i32", book: book{styles: numFmts(1<<14 + 1), sheet: data(1, "")}, err: `xlsx: x.xlsx: xl/styles.xml: more than 16384 number formats`},
	{name: "too many styles", types: "i32", book: book{styles: "<cellXfs>" + strings.Repeat("<xf/>", 1<<20+1) + "</cellXfs>", sheet: data(1, "")}, err: `xlsx: x.xlsx: xl/styles.xml: more than 1048576 styles of cells`},
	{name: "too many sheets", types: "i32", book: book{sheets: strings.Repeat(`<sheet name="x" r:id="s1"/>`, 1<<14+1), sheet: data(1, "")}, err: `xlsx: x.xlsx: xl/workbook.xml: more than 16384 sheets`},
	{name: "too many relations", types: "i32", book: book{part: map[string]string{"_rels/.rels": "<Relationships>" + strings.Repeat("<Relationship/>", 1<<14+1) + "</Relationships>"}, sheet: data(1, "")}, err: `xlsx: x.xlsx: _rels/.rels: more than 16384 relations`},
	{name: "two values", types: "i32", book: book{sheet: data(1, row(2, `<c r="A2"><v>1</v><v>2</v></c>`))}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: the cell A2 has two values`},
	{name: "too many shared strings", types: "i32", o: Options{MaxShared: 1000}, book: book{strings: strings.Repeat("<si/>", 100), sheet: data(1, "")}, err: `xlsx: x.xlsx: xl/sharedStrings.xml: the shared strings take more than 1000 bytes of memory; Options.MaxShared allows more`},
	{name: "a long number format", types: "i32", book: book{styles: `<numFmts><numFmt numFmtId="164" formatCode="` + strings.Repeat("0", 5000) + `"/></numFmts>`, sheet: data(1, "")}, err: `xlsx: x.xlsx: xl/styles.xml: a number format of 5000 bytes, at most 1024`},
	{name: "deep", types: "i32", book: book{sheet: strings.Repeat("<x>", 300)}, err: `xlsx: x.xlsx: xl/worksheets/sheet1.xml: more than 200 elements inside one another`},
}

func TestRead(t *testing.T) {
	for _, c := range reads {
		t.Run(c.name, func(t *testing.T) {
			s := of(t, strings.Fields(c.types)...)
			c.o.Name = "x.xlsx"
			p := c.book.bytes(t)
			columns, rows, warnings, err := Read(t.Context(), bytes.NewReader(p), int64(len(p)), s, &c.o)
			if c.err != "" {
				if err == nil || err.Error() != c.err || columns != nil {
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
			if got := fmt.Sprint(warnings); got != "["+c.warning+"]" {
				t.Errorf("warnings %s, want %s", got, c.warning)
			}
		})
	}
}

// What unpacks to much more than it can mean is refused before it takes memory.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 90 MB")
	}
	for _, c := range []struct {
		book book
		want string
	}{
		{book{styles: strings.Repeat("<x/>", 17<<20), sheet: data(1, "")}, "xlsx: xl/styles.xml: the part unpacks to more than 67108864 bytes"},
		{book{sheet: data(1, strings.Repeat(" ", 20<<20))}, "xlsx: xl/worksheets/sheet1.xml: more than 16777216 bytes without a tag"},
	} {
		p := c.book.bytes(t)
		_, _, _, err := Read(t.Context(), bytes.NewReader(p), int64(len(p)), of(t, "i32"), nil)
		if err == nil || err.Error() != c.want || !errors.Is(err, fault.Limit) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]style{
		"General": plain, "0": plain, "0.00": plain, "#,##0": plain, "@": plain, `"day" 0`: plain, `0" h"`: plain, "[Red]0;[Blue]-0": plain, `0\d`: plain,
		"[$€-407] #,##0.00": plain, "0%": plain, "0.00E+00": plain, "# ?/?": plain, "_-* #,##0_-": plain, "": plain, "[>100]0;0.0": plain,
		"yyyy-mm-dd": day, "m/d/yy h:mm": day, "mmm": day, "dddd": day, "[$-409]d-mmm-yy;@": day, "yyyy": day, "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy": day, `dd\.mm\.yyyy`: day, "0;yyyy": day,
		"h:mm": clock, "[h]:mm:ss": clock, "mm:ss.0": clock, "h:mm AM/PM": clock, "[mm]:ss": clock, "[ss]": clock, "hh:mm:ss.000": clock, "[$-F400]h:mm:ss\\ AM/PM": clock,
	} {
		if got := formatStyle(format); got != want {
			t.Errorf("%q is %d, want %d", format, got, want)
		}
	}
}

// FuzzFormat: no number format breaks the parser, or takes it long.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"General", "[$-409]d-mmm-yy;@", "[h]:mm:ss", "#,##0.00_);[Red](#,##0.00)", `[>=100]"x"0;h AM/PM`, "# ??/??"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		if len(format) <= maxFormat {
			formatStyle(format)
		}
	})
}

// Every serial of a day, and of a millisecond, is the date that was meant.
func TestSerials(t *testing.T) {
	for i, want := range map[float64]string{1: "1900-01-01T00:00:00", 61: "1900-03-01T00:00:00", 25569: "1970-01-01T00:00:00", 2958465: "9999-12-31T00:00:00"} {
		ticks, why := dateTicks(i, false)
		got, _ := tcb.AppendDateTime(nil, ticks)
		if why != "" || string(got) != want {
			t.Errorf("%g is %s, %s, want %s", i, got, why, want)
		}
	}
	for ms := int64(61) * msPerDay; ms < maxSerial*msPerDay; ms += 86399987654 / 7 {
		text := strconv.FormatFloat(float64(ms)/msPerDay, 'g', 17, 64)
		x, _ := strconv.ParseFloat(text, 64)
		ticks, why := dateTicks(x, false)
		if want := (ms + 693593*msPerDay) * 10000; why != "" || ticks != want {
			t.Fatalf("%s is %d, %s, want %d", text, ticks, why, want)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.5} {
		if _, why := dateTicks(x, true); why == "" {
			t.Errorf("%g is a date", x)
		}
	}
}

// peak reads and returns the most memory that was in use.
func peak(t *testing.T, p []byte, s *tcb.Schema) (rows int, bytesUsed uint64) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := &watched{r: bytes.NewReader(p), before: m.HeapInuse}
	_, rows, _, err := Read(t.Context(), r, int64(len(p)), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rows, r.most
}

// watched looks at the memory in use whenever it is read, every few kilobytes.
type watched struct {
	r            io.ReaderAt
	before, most uint64
}

func (w *watched) ReadAt(p []byte, off int64) (int, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.most = max(w.most, m.HeapInuse-min(w.before, m.HeapInuse))
	return w.r.ReadAt(p, off)
}

// Two million empty cells with a style, in 200,000 rows, cost nothing to hold.
func TestEmptyCells(t *testing.T) {
	n := 2_000_000
	if testing.Short() {
		n = 200_000
	}
	var b strings.Builder
	for i := range n / 10 {
		fmt.Fprintf(&b, `<row r="%d" s="1" customFormat="1">`, i+2)
		for k := range 10 {
			b.WriteString(`<c r="` + cellName(i+2, k) + `" s="1"/>`)
		}
		b.WriteString(`</row>`)
	}
	b.WriteString(row(1048576, number1("A1048576", "5")))
	p := book{sheet: data(1, b.String())}.bytes(t)
	b.Reset()
	rows, used := peak(t, p, of(t, "i32"))
	if rows != 1 || used > 64<<20 {
		t.Errorf("%d rows, %d MiB", rows, used>>20)
	}
	t.Logf("%d KiB", used>>10)
}

func TestNoWorkbook(t *testing.T) {
	for _, c := range []struct {
		name, text string
		class      error
	}{
		{"nothing", "", fault.Corrupt},
		{"old", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and more", fault.UnsupportedCodec},
		{"no sheet", string(book{sheets: `<sheet name="Chart" r:id="c"/>`}.bytes(t)), fault.Corrupt},
		{"no part", string(book{sheets: `<sheet name="x" r:id="c9"/>`}.bytes(t)), fault.Corrupt},
		{"no XML", string(book{part: map[string]string{"xl/workbook.xml": "x<"}}.bytes(t)), fault.Corrupt},
		{"no styles", string(book{styles: "<"}.bytes(t)), fault.Corrupt},
	} {
		_, _, _, err := Read(t.Context(), strings.NewReader(c.text), int64(len(c.text)), of(t, "i32"), nil)
		if !errors.Is(err, c.class) {
			t.Errorf("%s: %v, want %v", c.name, err, c.class)
		}
	}
}

func TestInfer(t *testing.T) {
	sheet := `<sheetData>` + row(1, text1("A1", "i@1")+text1("B1", "l@2")+text1("C1", "f@3")+text1("D1", "t@4")+text1("E1", "d@5")+text1("F1", "s@6")+text1("G1", "b@7")+text1("H1", "#x@8")+text1("I1", "e@9")) +
		row(2, number1("A2", "1")+number1("B2", "3000000000")+number1("C2", "1")+`<c r="D2" s="1"><v>46024</v></c><c r="E2" s="3"><v>0.5</v></c>`+text1("F2", "7")+`<c r="G2" t="b"><v>1</v></c>`+`<c r="H2" t="e"><v>#N/A</v></c>`) +
		row(3, number1("B3", "1")+number1("C3", "0.5")+text1("D3", "2026-01-02T03:04:05")+text1("E3", "00:00:01")+text1("F3", "")+`<c r="G3" t="b"><v>0</v></c>`) + `</sheetData>`
	p := book{sheet: sheet}.bytes(t)
	s, err := Infer(t.Context(), bytes.NewReader(p), int64(len(p)), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(s)
	want := `{"columns":[{"tag":1,"name":"i","type":"i32","optional":true},{"tag":2,"name":"l","type":"i64"},{"tag":3,"name":"f","type":"f64"},{"tag":4,"name":"t","type":"datetime"},{"tag":5,"name":"d","type":"timespan"},{"tag":6,"name":"s","type":"string"},{"tag":7,"name":"b","type":"bool"},{"tag":9,"name":"e","type":"string","optional":true}],"reserved":[{"tag":8,"name":"x"}]}`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, _, _, err := Read(t.Context(), bytes.NewReader(p), int64(len(p)), s, nil); err != nil {
		t.Error("what was proposed does not read the sheet: ", err)
	}
	p = book{sheet: data(1, row(2, number1("A2", "1"))+row(3, text1("A3", "x")))}.bytes(t)
	if _, err := Infer(t.Context(), bytes.NewReader(p), int64(len(p)), &Options{Options: tabular.Options{Name: "x"}}); err == nil || err.Error() != `xlsx: x: Items!A3, "a": "x" is of another type than "1" above it` {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	text := func(s string) *tcb.Column {
		return &tcb.Column{Tag: 1, Rows: 1, Type: tcb.Type{Element: tcb.String, Optional: true}, Present: tcb.Bitmap{1}, Strings: []string{s}}
	}
	many := &tcb.Column{Tag: 1, Rows: 1048576, Type: tcb.Type{Element: tcb.Bool}, Bools: make([]bool, 1048576)}
	for _, c := range []struct {
		column *tcb.Column
		o      Options
		want   string
	}{
		{text(strings.Repeat("x", 32768)), Options{}, "xlsx: Sheet1!A2, column 1: a text of 32768 characters, a cell holds 32767"},
		{text(strings.Repeat("😀", 16384)), Options{}, "xlsx: Sheet1!A2, column 1: a text of 32768 characters, a cell holds 32767"},
		{text(`\N`), Options{}, `xlsx: Sheet1!A2, column 1: the text "\\N", which stands for an absent value: another must be chosen`},
		{text("\xff"), Options{}, `xlsx: row 0, column 1: the string "\xff" is no UTF-8`},
		{text("x"), Options{Sheet: "a/b"}, `xlsx: "a/b" is no name of a sheet: 1 to 31 characters without []:*?/\`},
		{many, Options{}, "xlsx: 1048576 rows and 1 columns, a sheet has 1048575 below the header, and 16384"},
	} {
		err := Write(t.Context(), io.Discard, c.column.Rows, []*tcb.Column{c.column}, nil, &c.o)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	if err := Write(t.Context(), io.Discard, 1, []*tcb.Column{text(strings.Repeat("ä", 32767))}, nil, nil); err != nil {
		t.Error(err)
	}
}

// All text comes back, whatever escapes it looks like.
func TestEscapes(t *testing.T) {
	parts := []string{"_", "x", "_x0041_", "_x0041", "\x01", "\r", "\n", "\t", " ", "\ufffe", "&<>\"'", "_x005F_", "😀", "\u0085", "]]>", "0", "00A"}
	s := of(t, "string")
	b := tcb.NewBuilder(s)
	var want []string
	for i := range len(parts) * len(parts) * len(parts) {
		text := parts[i%len(parts)] + parts[i/len(parts)%len(parts)] + parts[i/len(parts)/len(parts)]
		want = append(want, text)
		if err := b.Scalar(0, tcb.Cell{Kind: tcb.CellText, Text: text}); err != nil {
			t.Fatal(err)
		}
		b.EndRow()
	}
	var out bytes.Buffer
	if err := Write(t.Context(), &out, len(want), b.Columns(), s, nil); err != nil {
		t.Fatal(err)
	}
	columns, _, _, err := Read(t.Context(), bytes.NewReader(out.Bytes()), int64(out.Len()), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range want {
		if got := columns[0].Strings[i]; got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := book{sheet: data(1, "")}.bytes(t)
	if _, _, _, err := Read(ctx, bytes.NewReader(p), int64(len(p)), of(t, "i32"), nil); !errors.Is(err, context.Canceled) {
		t.Error("read: ", err)
	}
	c := &tcb.Column{Tag: 1, Rows: 10000, Type: tcb.Type{Element: tcb.Bool}, Bools: make([]bool, 10000)}
	if err := Write(ctx, io.Discard, 10000, []*tcb.Column{c}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Error("write: ", err)
	}
}

func BenchmarkRead(b *testing.B) {
	p, s := bigBook(b)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if _, _, _, err := Read(context.Background(), bytes.NewReader(p), int64(len(p)), s, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	p, s := bigBook(b)
	columns, rows, _, err := Read(context.Background(), bytes.NewReader(p), int64(len(p)), s, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Write(context.Background(), io.Discard, rows, columns, s, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// bigBook has 20,000 rows of 6 cells.
func bigBook(t testing.TB) ([]byte, *tcb.Schema) {
	s := of(t, "i32", "string", "i64", "f64", "bool", "i32[]")
	b := tcb.NewBuilder(s)
	for i := range 20000 {
		n := strconv.Itoa(i)
		b.Scalar(0, tcb.Cell{Kind: tcb.CellNumber, Text: n})
		b.Scalar(1, tcb.Cell{Kind: tcb.CellText, Text: "item " + n})
		b.Scalar(2, tcb.Cell{Kind: tcb.CellNumber, Text: n + "000000"})
		b.Scalar(3, tcb.Cell{Kind: tcb.CellNumber, Text: n + ".25"})
		b.Scalar(4, tcb.Cell{Kind: tcb.CellBool, Text: "true"})
		b.Array(5, []tcb.Cell{{Kind: tcb.CellNumber, Text: n}, {Kind: tcb.CellNumber, Text: "7"}})
		b.EndRow()
	}
	var out bytes.Buffer
	if err := Write(context.Background(), &out, 20000, b.Columns(), s, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), s
}

// FuzzXLSX reads a sheet of any XML, and writes what it holds and reads that back.
func FuzzXLSX(f *testing.F) {
	for _, c := range reads {
		if len(c.book.sheet) < 4000 {
			f.Add(c.book.sheet, c.book.strings, byte(c.o.Merged))
		}
	}
	f.Fuzz(func(t *testing.T, sheet, shared string, merged byte) {
		p := book{sheet: sheet, strings: shared}.bytes(t)
		ctx := context.Background()
		o := &Options{Merged: Merged(merged % 3), LongNumbers: true}
		s, err := Infer(ctx, bytes.NewReader(p), int64(len(p)), o)
		if err != nil {
			return
		}
		columns, rows, _, err := Read(ctx, bytes.NewReader(p), int64(len(p)), s, o)
		if err != nil {
			t.Fatalf("what was proposed does not read the sheet: %v", err)
		}
		var out bytes.Buffer
		if err := Write(ctx, &out, rows, columns, s, nil); err != nil {
			return
		}
		back, backRows, _, err := Read(ctx, bytes.NewReader(out.Bytes()), int64(out.Len()), s, nil)
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

// A small workbook of very many shared strings is refused before it takes the memory.
func TestSharedStringsAreBounded(t *testing.T) {
	p := book{strings: strings.Repeat("<si/>", 6_000_000), sheet: data(1, "")}.bytes(t)
	before := heap()
	_, _, _, err := Read(t.Context(), bytes.NewReader(p), int64(len(p)), of(t, "i32"), &Options{Options: tabular.Options{Name: "x.xlsx"}})
	if !errors.Is(err, fault.Limit) || !strings.Contains(err.Error(), "xlsx: x.xlsx: xl/sharedStrings.xml: the shared strings take more than ") || !strings.Contains(err.Error(), "Options.MaxShared") {
		t.Error(err)
	}
	if grown := heap() - before; grown > 256<<20 {
		t.Errorf("%d bytes, a workbook of %d", grown, len(p))
	}
}

// heap is how much memory the runtime has asked for.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

func numFmts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<numFmt numFmtId="%d" formatCode="0"/>`, 1000+i)
	}
	return b.String()
}
