package xlsx

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// flushAt is how many bytes are gathered for the compressor.
const flushAt = 1 << 16

const xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"

// parts are those of a workbook with one sheet, but for that sheet. The second has the name of the sheet.
var parts = [...][2]string{
	{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>` +
		`<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>` +
		`</Types>`},
	{"xl/workbook.xml", `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"` +
		` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">` +
		`<sheets><sheet name="NAME" sheetId="1" r:id="rId1"/></sheets></workbook>`},
	{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/>` +
		`</Relationships>`},
	{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/>` +
		`</Relationships>`},
}

// sheetName is the name that the sheet gets.
func (o *Options) sheetName(s *tcb.Schema) (string, error) {
	ok := func(name string) bool {
		return name != "" && utf8.RuneCountInString(name) <= 31 && !strings.ContainsAny(name, `[]:*?/\`) &&
			strings.Trim(name, "'") == name && strings.IndexFunc(name, func(c rune) bool { return c < ' ' }) < 0
	}
	switch {
	case o.Sheet != "" && !ok(o.Sheet):
		return "", fault.New(fault.Invalid, "xlsx", `%q is no name of a sheet: 1 to 31 characters without []:*?/\`, o.Sheet).In(o.Name)
	case o.Sheet != "":
		return o.Sheet, nil
	case s != nil && ok(s.Table):
		return s.Table, nil
	}
	return "Sheet1", nil
}

// Write writes a workbook with one sheet: a header and a row for each row. The schema, when there is one, gives names and
// logical types by tag. Numbers are cells of numbers, except that integers of 16 digits and more, NaN, the infinities,
// dates and spans are text, exactly. Texts of more than 32,767 characters, more than 1,048,575 rows and more than 16,384
// columns are errors, and so is a text that is that of an absent value.
func Write(ctx context.Context, w io.Writer, rows int, columns []*tcb.Column, s *tcb.Schema, o *Options) error {
	opts, err := checked(o)
	if err != nil {
		return err
	}
	name, err := opts.sheetName(s)
	if err != nil {
		return err
	}
	if rows > maxRows-1 || len(columns) > maxColumns {
		return fault.New(fault.Limit, "xlsx", "%d rows and %d columns, a sheet has %d below the header, and %d", rows, len(columns), maxRows-1, maxColumns).In(opts.Name)
	}
	cells, err := tabular.NewCells(rows, columns, s, &opts.Options, "xlsx")
	if err != nil {
		return err
	}
	cells.Sheet = true
	names, err := tabular.AppendHeader(cells.Fields, &opts.Options, "xlsx")
	if err != nil {
		return err
	}
	out := &output{opts: &opts, zip: zip.NewWriter(w), cells: cells, sheet: name}
	var escaped bytes.Buffer
	xml.EscapeText(&escaped, []byte(name))
	for _, p := range parts {
		part, err := out.zip.Create(p[0])
		if err == nil {
			_, err = io.WriteString(part, xmlHead+strings.Replace(p[1], "NAME", escaped.String(), 1))
		}
		if err != nil {
			return out.failed(err)
		}
	}
	if out.part, err = out.zip.Create("xl/worksheets/sheet1.xml"); err != nil {
		return out.failed(err)
	}
	if err := out.rows(ctx, rows, names); err != nil {
		return err
	}
	if err := out.zip.Close(); err != nil {
		return out.failed(err)
	}
	if opts.Progress != nil {
		opts.Progress(rows, out.done)
	}
	return nil
}

// output writes a sheet.
type output struct {
	opts  *Options
	zip   *zip.Writer
	part  io.Writer
	cells *tabular.Cells
	sheet string
	buf   []byte
	text  []byte
	done  int64
	names [][]byte // the letters of the columns
}

func (w *output) failed(err error) error {
	return fault.New(nil, "xlsx", "").In(w.opts.Name).Because(err)
}

func (w *output) flush() error {
	n, err := w.part.Write(w.buf)
	w.done += int64(n)
	w.buf = w.buf[:0]
	if err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *output) rows(ctx context.Context, rows int, names []string) error {
	w.buf = append(w.buf, xmlHead+`<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`...)
	w.names = make([][]byte, len(names))
	if len(names) > 0 {
		w.buf = append(w.buf, `<row r="1">`...)
		for k, name := range names {
			w.names[k] = appendColumn(nil, k)
			w.text = append(w.text[:0], name...)
			if err := w.textCell(k, 1); err != nil {
				return err
			}
		}
		w.buf = append(w.buf, `</row>`...)
	}
	for i := range rows {
		if tabular.Every(i + 1) {
			if err := ctx.Err(); err != nil {
				return w.failed(err)
			}
			if w.opts.Progress != nil {
				w.opts.Progress(i, w.done)
			}
		}
		if err := w.row(i); err != nil {
			return err
		}
		if len(w.buf) >= flushAt {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.buf = append(w.buf, `</sheetData></worksheet>`...)
	return w.flush()
}

func (w *output) row(i int) error {
	w.buf = append(w.buf, `<row r="`...)
	w.buf = append(strconv.AppendInt(w.buf, int64(i+2), 10), `">`...)
	start := len(w.buf)
	for k, c := range w.cells.Columns {
		var kind tcb.CellKind
		var err error
		if w.text, kind, err = w.cells.Append(w.text[:0], k, i); err != nil {
			return err
		}
		t := c.Type
		switch kind {
		case tcb.CellNull:
			if w.opts.EmptyText && (t.Kind == tcb.Array || t.Element == tcb.String) {
				w.none(k, i+2)
			}
		case tcb.CellNumber:
			w.start(k, i+2)
			w.buf = append(w.buf, `><v>`...)
			w.buf = append(append(w.buf, w.text...), `</v></c>`...)
		case tcb.CellBool:
			w.start(k, i+2)
			w.buf = append(w.buf, ` t="b"><v>`...)
			digit := byte('0')
			if string(w.text) == "true" {
				digit = '1'
			}
			w.buf = append(append(w.buf, digit), `</v></c>`...)
		default:
			if t.Optional && string(w.text) == w.opts.Null {
				return fault.New(fault.Invalid, "xlsx", "the text %q, which stands for an absent value: another must be chosen", w.text).In(w.opts.Name).On(place(w.sheet, i+2, k) + ", " + tabular.Label(&w.cells.Fields[k]))
			}
			if err := w.textCell(k, i+2); err != nil {
				return err
			}
		}
	}
	if len(w.buf) == start { // a row without a value is no row
		w.none(0, i+2)
	}
	w.buf = append(w.buf, `</row>`...)
	return nil
}

func (w *output) start(k, row int) {
	w.buf = append(w.buf, `<c r="`...)
	w.buf = append(w.buf, w.names[k]...)
	w.buf = append(strconv.AppendInt(w.buf, int64(row), 10), '"')
}

// none writes the text that stands for an absent value.
func (w *output) none(k, row int) {
	w.text = append(w.text[:0], w.opts.Null...)
	w.textCell(k, row)
}

func (w *output) textCell(k, row int) error {
	if n := units(w.text); n > maxCell {
		return fault.New(fault.Limit, "xlsx", "a text of %d characters, a cell holds %d", n, maxCell).In(w.opts.Name).On(place(w.sheet, row, k) + ", " + tabular.Label(&w.cells.Fields[k]))
	}
	w.start(k, row)
	w.buf = append(w.buf, ` t="inlineStr"><is><t xml:space="preserve">`...)
	w.buf = append(appendText(w.buf, w.text), `</t></is></c>`...)
	return nil
}
