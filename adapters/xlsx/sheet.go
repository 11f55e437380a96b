package xlsx

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
)

const (
	maxRows    = 1048576
	maxColumns = 16384
)

// kind is what a cell says of its value.
type kind uint8

const (
	number kind = iota
	text        // shared, inline, or the result of a formula
	truth
	broken // an error such as #N/A
	date   // in the text form of ISO 8601
	noResult
	noString // a shared string that is not there
	noText   // text with half a surrogate pair
)

// cell is a cell with a value.
type cell struct {
	column int // from 0
	kind   kind
	style  style
	shared bool // the text is shared with other cells
	text   string
}

// sheet gives the rows of a sheet.
type sheet struct {
	*part
	book   *workbook
	row    int // from 1, the last that was given
	cells  []cell
	buf    []byte
	merges int // how many ranges stand behind the rows
	inData bool
}

func (b *workbook) openSheet(ref *sheetRef) (*sheet, error) {
	p, err := b.open(ref.file, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return &sheet{part: p, book: b}, nil
}

// next reads the next row that has a cell with a value. After the last it reads the rest of the part, and returns io.EOF.
// The cells are good until the next call.
func (s *sheet) next() error {
	for {
		t, err := s.token()
		if err != nil {
			return err // io.EOF too: the decoder has seen all elements end
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "worksheet":
			case "sheetData":
				s.inData = true
			case "row":
				if !s.inData {
					if err := s.skip(); err != nil {
						return err
					}
					continue
				}
				if err := s.readRow(&t); err != nil {
					return err
				}
				if len(s.cells) > 0 {
					return nil
				}
			case "mergeCells":
			case "mergeCell":
				s.merges++
			default:
				if err := s.skip(); err != nil {
					return err
				}
			}
		case xml.EndElement:
			if t.Name.Local == "sheetData" {
				s.inData = false
			}
		}
	}
}

func (s *sheet) readRow(e *xml.StartElement) error {
	row := s.row + 1
	if r := attr(e, "r"); r != "" {
		n, err := strconv.Atoi(r)
		if err != nil || n < row {
			return s.bad("row %.20q behind row %d", r, s.row)
		}
		row = n
	}
	if row > maxRows {
		return s.bad("row %d, a sheet has %d", row, maxRows)
	}
	s.row = row
	s.cells = s.cells[:0]
	next := 0
	for depth := s.depth - 1; ; {
		t, err := s.token()
		if err != nil {
			return s.ended(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if t.Name.Local != "c" {
				err = s.skip()
			} else {
				err = s.readCell(&t, &next)
			}
			if err != nil {
				return err
			}
		case xml.EndElement:
			if s.depth == depth {
				return nil
			}
		}
	}
}

func (s *sheet) bad(format string, args ...any) error {
	return fault.New(fault.Corrupt, "xlsx", format, args...).On(s.name)
}

// readCell reads a cell and keeps it if it has a value. next is the column it is in if it does not say so.
func (s *sheet) readCell(e *xml.StartElement, next *int) error {
	c := cell{column: *next}
	kindName := ""
	for i := range e.Attr {
		a := &e.Attr[i]
		if a.Name.Space != "" {
			continue
		}
		switch a.Name.Local {
		case "r":
			row, column, ok := position(a.Value)
			if !ok || row != s.row || column < *next {
				return s.bad("the cell %.20q behind column %d of row %d", a.Value, *next, s.row)
			}
			c.column = column
		case "s":
			if n, err := strconv.Atoi(a.Value); err == nil && n >= 0 && n < len(s.book.styles) {
				c.style = s.book.styles[n]
			}
		case "t":
			kindName = a.Value
		}
	}
	if c.column >= maxColumns {
		return s.bad("column %d of row %d, a sheet has %d", c.column+1, s.row, maxColumns)
	}
	*next = c.column + 1
	formula, value, inline := false, false, false
	s.buf = s.buf[:0]
	for depth := s.depth - 1; ; {
		t, err := s.token()
		if err != nil {
			return s.ended(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "v":
				if value {
					return s.bad("the cell %s has two values", cellName(s.row, c.column))
				}
				value = true
				s.buf, err = s.part.text(s.buf[:0])
			case "is":
				inline = true
				s.buf, err = s.richText(s.buf[:0])
			case "f":
				formula = true
				err = s.skip()
			default:
				err = s.skip()
			}
			if err != nil {
				return err
			}
		case xml.EndElement:
			if s.depth == depth {
				return s.keep(c, kindName, formula, value, inline)
			}
		}
	}
}

// keep adds a cell to the row if it has a value.
func (s *sheet) keep(c cell, kindName string, formula, value, inline bool) error {
	c.text = string(s.buf)
	switch kindName {
	case "", "n":
		c.text = strings.TrimSpace(c.text)
		value = value && c.text != ""
	case "b":
		c.kind = truth
		switch c.text {
		case "0":
			c.text = "false"
		case "1":
			c.text = "true"
		}
		value = value && c.text != ""
	case "e":
		c.kind = broken
	case "d":
		c.kind = date
		value = value && c.text != ""
	case "s":
		c.kind, c.shared = text, true
		if !value {
			break
		}
		n, err := strconv.Atoi(strings.TrimSpace(c.text))
		if err != nil || n < 0 || n >= s.book.strings.count {
			c.kind = noString
			break
		}
		c.text = s.book.strings.at(n)
	case "str", "inlineStr":
		c.kind = text
		if value = value || inline; !value {
			break
		}
		p, ok := unescape(s.buf)
		if !ok {
			c.kind = noText
			break
		}
		c.text = string(p)
	default:
		return s.bad("the cell %s is of the type %.20q", cellName(s.row, c.column), kindName)
	}
	switch {
	case value:
		s.cells = append(s.cells, c)
	case formula:
		c.kind = noResult
		s.cells = append(s.cells, c)
	}
	return nil
}

// position reads the name of a cell, "C7".
func position(name string) (row, column int, ok bool) {
	i := 0
	for ; i < len(name) && i < 4; i++ {
		c := name[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c < 'A' || c > 'Z' {
			break
		}
		column = column*26 + int(c-'A') + 1
	}
	for _, c := range []byte(name[i:]) {
		if c < '0' || c > '9' || row > maxRows {
			return 0, 0, false
		}
		row = row*10 + int(c-'0')
	}
	return row, column - 1, column > 0 && column <= maxColumns && row > 0 && row <= maxRows
}

// appendColumn appends the letters of a column, counted from 0.
func appendColumn(dst []byte, column int) []byte {
	var letters [3]byte
	i := len(letters)
	for n := column + 1; n > 0 && i > 0; n = (n - 1) / 26 {
		i--
		letters[i] = byte('A' + (n-1)%26)
	}
	return append(dst, letters[i:]...)
}

// cellName is the name of a cell.
func cellName(row, column int) string {
	return string(strconv.AppendInt(appendColumn(nil, column), int64(row), 10))
}

// place names a cell of a sheet, as formulas do.
func place(sheet string, row, column int) string {
	return quotedSheet(sheet) + "!" + cellName(row, column)
}

func quotedSheet(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", "''") + "'"
}
