package xlsx

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"testing"
)

// book is a workbook of parts as they are. Parts that are "" get what most tests need.
type book struct {
	sheet    string // what is in the worksheet
	strings  string // in sst
	styles   string // in styleSheet
	workbook string // in front of the sheets
	sheets   string // in place of the one sheet
	part     map[string]string
}

// styles are: 0 General, 1 14 (a date), 2 yyyy-mm-dd hh:mm, 3 [h]:mm:ss, 4 0.00 "d", 5 21 (a time).
const styles = `<numFmts count="3"><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd\ hh:mm"/><numFmt numFmtId="165" formatCode="[h]:mm:ss"/>` +
	`<numFmt numFmtId="166" formatCode="[Red]0.00&quot; d&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>` +
	`<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/><xf numFmtId="21"/></cellXfs>` +
	`<dxfs><dxf><numFmt numFmtId="0" formatCode="yyyy"/></dxf></dxfs>`

const mainNS = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`

func (b book) bytes(t testing.TB) []byte {
	t.Helper()
	rel := func(id, kind, target string) string {
		return `<Relationship Id="` + id + `" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/` + kind + `" Target="` + target + `"/>`
	}
	sheets := b.sheets
	if sheets == "" {
		sheets = `<sheet name="Items" sheetId="1" r:id="s1"/>`
	}
	if b.styles == "" {
		b.styles = styles
	}
	parts := map[string]string{
		"_rels/.rels":     `<Relationships>` + rel("a", "officeDocument", "xl/workbook.xml") + `</Relationships>`,
		"xl/workbook.xml": `<workbook ` + mainNS + `>` + b.workbook + `<sheets>` + sheets + `</sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships>` + rel("s1", "worksheet", "worksheets/sheet1.xml") + rel("s2", "worksheet", "/xl/worksheets/sheet2.xml") +
			rel("c", "chartsheet", "x.xml") + rel("t", "sharedStrings", "sharedStrings.xml") + rel("y", "styles", "styles.xml") + `</Relationships>`,
		"xl/worksheets/sheet1.xml": `<worksheet ` + mainNS + `>` + b.sheet + `</worksheet>`,
		"xl/worksheets/sheet2.xml": `<worksheet ` + mainNS + `><sheetData/></worksheet>`,
		"xl/sharedStrings.xml":     `<sst ` + mainNS + `>` + b.strings + `</sst>`,
		"xl/styles.xml":            `<styleSheet ` + mainNS + `>` + b.styles + `</styleSheet>`,
	}
	for name, text := range b.part {
		parts[name] = text
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for name, text := range parts {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// data is a sheet with a header of the columns a, b, … and these rows below it.
func data(columns int, rows string) string {
	var b strings.Builder
	b.WriteString(`<dimension ref="A1"/><sheetData><row r="1">`)
	for i := range columns {
		b.WriteString(`<c r="` + cellName(1, i) + `" t="inlineStr"><is><t>` + string(rune('a'+i)) + `</t></is></c>`)
	}
	return b.String() + `</row>` + rows + `</sheetData>`
}

func text1(ref, s string) string {
	return `<c r="` + ref + `" t="inlineStr"><is><t>` + s + `</t></is></c>`
}

func number1(ref, s string) string { return `<c r="` + ref + `"><v>` + s + `</v></c>` }
