package xlsx

import (
	"archive/zip"
	"context"
	"encoding/xml"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
)

// Merged says what a range of merged cells means.
type Merged uint8

// The ways to read merged cells.
const (
	MergedError Merged = iota // an error
	MergedFirst               // the value is that of the first cell, the others are empty
	MergedFill                // each cell has the value; a row that has no other value stays without one
)

// Options say how a workbook is read or written. Nil and the zero value mean the defaults.
type Options struct {
	tabular.Options
	// Sheet is the name of the sheet. "": when reading, the first one, with a warning when there are others; when writing,
	// the name of the table in the schema if it can be the name of a sheet, else "Sheet1".
	Sheet string
	// Header is the row of the header, from 1; the rows above it are left out. 0: the first row with a value.
	Header int
	// LongNumbers: numbers of 16 digits and more are what they say, and not what a spreadsheet made of them.
	LongNumbers bool
	// Merged says what merged cells mean.
	Merged Merged
	// MaxUnzipped bounds the bytes that are unpacked in one run; 0: 8 GiB.
	MaxUnzipped int64
	// MaxShared bounds the memory of the shared strings, which are all kept: their text, and 32 bytes for each. 0: 64 MiB
	// and 64 times the size of the workbook.
	MaxShared int64
}

func checked(o *Options) (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxUnzipped <= 0 {
		c.MaxUnzipped = 8 << 30
	}
	if c.Merged > MergedFill {
		return c, fault.New(fault.Invalid, "xlsx", "merged cells %d, want 0 to 2", c.Merged)
	}
	if c.Header < 0 || c.Header > maxRows {
		return c, fault.New(fault.Invalid, "xlsx", "the header in row %d, want 1 to %d", c.Header, maxRows)
	}
	return c, c.Options.Check("xlsx")
}

// workbook is an open file.
type workbook struct {
	ctx      context.Context // of the run
	files    map[string]*zip.File
	left     int64 // what may be unpacked yet
	shared   int64 // what shared strings may take yet
	most     int64 // what they may take
	from1904 bool
	sheets   []sheetRef
	styles   []style // by the s of a cell
	strings  sharedStrings
}

type sheetRef struct {
	name string
	file *zip.File
}

// openWorkbook reads all but the sheets.
func openWorkbook(ctx context.Context, r io.ReaderAt, size int64, o *Options) (*workbook, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		head := make([]byte, 8)
		if n, _ := r.ReadAt(head, 0); n == 8 && string(head) == "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" {
			return nil, fault.New(fault.UnsupportedCodec, "xlsx", "a workbook of the old format (.xls), or an encrypted one; want .xlsx")
		}
		return nil, fault.New(fault.Corrupt, "xlsx", "no XLSX workbook").Because(err)
	}
	b := &workbook{ctx: ctx, files: make(map[string]*zip.File, len(z.File)), left: o.MaxUnzipped, most: o.MaxShared}
	if b.most <= 0 {
		b.most = 64<<20 + 64*size
	}
	b.shared = b.most
	for _, f := range z.File {
		b.files[strings.ToLower(strings.TrimPrefix(f.Name, "/"))] = f
	}
	root, err := b.relations("")
	if err != nil {
		return nil, err
	}
	main := "xl/workbook.xml"
	for _, r := range root {
		if r.is("officeDocument") {
			main = r.target
		}
	}
	rels, err := b.relations(main)
	if err != nil {
		return nil, err
	}
	if err := b.main(main, rels); err != nil {
		return nil, err
	}
	for _, r := range rels {
		switch {
		case r.is("sharedStrings"):
			err = b.each(r.target, "si", math.MaxInt64, b.sharedString)
		case r.is("styles"):
			err = b.readStyles(r.target)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func tooMany(what string, most int) error {
	return fault.New(fault.Limit, "xlsx", "more than %d %s", most, what)
}

// related is a relation of a part.
type related struct{ id, kind, target string }

func (r *related) is(kind string) bool { return path.Base(r.kind) == kind }

// relations are those of a part; a part without any has none.
func (b *workbook) relations(name string) ([]related, error) {
	dir, base := path.Split(name)
	var out []related
	rels := path.Join(dir, "_rels", base+".rels")
	if b.files[strings.ToLower(rels)] == nil {
		return nil, nil
	}
	err := b.each(rels, "Relationship", maxSmall, func(p *part, e *xml.StartElement) error {
		if attr(e, "TargetMode") == "External" {
			return p.skip()
		}
		target := attr(e, "Target")
		if !strings.HasPrefix(target, "/") {
			target = path.Join(dir, target)
		}
		if len(out) == maxItems {
			return tooMany("relations", maxItems)
		}
		out = append(out, related{attr(e, "Id"), attr(e, "Type"), strings.TrimPrefix(path.Clean(target), "/")})
		return p.skip()
	})
	return out, err
}

// each calls f for each element of a name in a part, after its start; f reads it to the end.
func (b *workbook) each(name, element string, max int64, f func(p *part, e *xml.StartElement) error) error {
	file := b.files[strings.ToLower(name)]
	if file == nil {
		return fault.New(fault.Corrupt, "xlsx", "the workbook has no part %q", name)
	}
	p, err := b.open(file, max)
	if err != nil {
		return err
	}
	defer p.close()
	for {
		t, err := p.token()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if e, ok := t.(xml.StartElement); ok && (e.Name.Local == element || element == "") {
			if err := f(p, &e); err != nil {
				return fault.Locate(err, "", file.Name, 0)
			}
		}
	}
}

// main reads the part that lists the sheets.
func (b *workbook) main(name string, rels []related) error {
	return b.each(name, "", maxSmall, func(p *part, e *xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			b.from1904 = isTrue(attr(e, "date1904"))
		case "sheet":
			id := relation(e)
			i := slices.IndexFunc(rels, func(r related) bool { return r.id == id })
			if i < 0 || !rels[i].is("worksheet") { // a sheet of charts
				return nil
			}
			file := b.files[strings.ToLower(rels[i].target)]
			if file == nil {
				return fault.New(fault.Corrupt, "xlsx", "the sheet %q has no part %q", attr(e, "name"), rels[i].target)
			}
			if len(b.sheets) == maxItems {
				return tooMany("sheets", maxItems)
			}
			b.sheets = append(b.sheets, sheetRef{attr(e, "name"), file})
		}
		return nil
	})
}

// sharedString keeps a shared string.
func (b *workbook) sharedString(p *part, _ *xml.StartElement) error {
	raw, err := p.richText(nil)
	if err != nil {
		return err
	}
	text, ok := unescape(raw)
	if !ok {
		return fault.New(fault.Invalid, "xlsx", "the shared string %d has half a surrogate pair", b.strings.count)
	}
	if b.shared -= int64(len(text)) + 32; b.shared < 0 {
		return fault.New(fault.Limit, "xlsx", "the shared strings take more than %d bytes of memory; Options.MaxShared allows more", b.most)
	}
	b.strings.add(text)
	return nil
}

// sharedStrings are the shared strings, in pieces: a list that grows would be there twice.
type sharedStrings struct {
	pieces [][]string
	count  int
	text   tabular.Text
}

// sharedPiece is how many strings are in a piece.
const sharedPiece = 1 << 12

func (s *sharedStrings) add(text []byte) {
	if s.count%sharedPiece == 0 {
		s.pieces = append(s.pieces, make([]string, 0, sharedPiece))
	}
	last := len(s.pieces) - 1
	s.pieces[last] = append(s.pieces[last], s.text.Keep(string(text)))
	s.count++
}

func (s *sharedStrings) at(i int) string { return s.pieces[i/sharedPiece][i%sharedPiece] }

// readStyles keeps what the styles of cells make of numbers.
func (b *workbook) readStyles(name string) error {
	formats := make(map[string]style)
	inCells := false
	var ids []string
	err := b.each(name, "", maxSmall, func(p *part, e *xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			if !inCells { // also in dxfs, behind the styles of cells
				code := attr(e, "formatCode")
				if len(code) > maxFormat {
					return fault.New(fault.Limit, "xlsx", "a number format of %d bytes, at most %d", len(code), maxFormat)
				}
				if len(formats) == maxItems {
					return tooMany("number formats", maxItems)
				}
				formats[attr(e, "numFmtId")] = formatStyle(code)
			}
		case "cellXfs":
			inCells = true
		case "cellStyles", "dxfs":
			return p.skip()
		case "xf":
			if inCells {
				if len(ids) == maxStyles {
					return tooMany("styles of cells", maxStyles)
				}
				ids = append(ids, attr(e, "numFmtId"))
			}
		}
		return nil
	})
	for _, id := range ids {
		s, ok := formats[id]
		if !ok {
			n, _ := strconv.Atoi(id)
			s = builtin(n)
		}
		b.styles = append(b.styles, s)
	}
	return err
}

// sheet finds a sheet by its name; "" is the first.
func (b *workbook) sheet(name string) (*sheetRef, error) {
	if len(b.sheets) == 0 {
		return nil, fault.New(fault.Corrupt, "xlsx", "the workbook has no sheet of cells")
	}
	if name == "" {
		return &b.sheets[0], nil
	}
	var names []string
	for i := range b.sheets {
		if b.sheets[i].name == name {
			return &b.sheets[i], nil
		}
		names = append(names, strconv.Quote(b.sheets[i].name))
	}
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return nil, fault.New(fault.NotFound, "xlsx", "no sheet %q; there are %s", name, strings.Join(names, ", "))
}
