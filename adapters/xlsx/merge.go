package xlsx

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spilehq/spile/fault"
)

// maxMerged is the most merged ranges of a sheet; they are kept, at about a hundred bytes each.
const maxMerged = 1 << 20

// span is a range of merged cells, rows from 1 and columns from 0, both ends in it.
type span struct {
	top, left, bottom, right int
	value                    cell // of the first cell
	has                      bool
}

// merged are the merged ranges of a sheet, and which of them cover the row that is being read.
type merged struct {
	spans []span
	next  int   // the first that starts below the row
	at    []int // for each column the span that covers it, from 1; 0: none
}

// merges reads the merged ranges, which stand behind the rows: the rows are unpacked, and their XML is not looked at.
// That the end of the rows was found where it is, [sheet.next] shows: it counts the same ranges.
func (b *workbook) merges(ref *sheetRef) (*merged, error) {
	p, err := b.open(ref.file, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer p.close()
	rest, err := p.behindRows()
	if err != nil || rest == nil {
		return &merged{}, err
	}
	m := &merged{}
	d := xml.NewDecoder(rest)
	for {
		p.since = p.done
		t, err := d.RawToken()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, p.fault(err)
		}
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "mergeCell" {
			continue
		}
		ref := attr(&e, "ref")
		first, last, ok := strings.Cut(ref, ":")
		if !ok {
			last = first
		}
		s := span{}
		var ok1, ok2 bool
		s.top, s.left, ok1 = position(first)
		s.bottom, s.right, ok2 = position(last)
		if !ok1 || !ok2 || s.top > s.bottom || s.left > s.right {
			return nil, fault.New(fault.Corrupt, "xlsx", "the merged range %.40q", ref).On(p.name)
		}
		if len(m.spans) == maxMerged {
			return nil, fault.New(fault.Limit, "xlsx", "more than %d merged ranges", maxMerged).On(p.name)
		}
		m.spans = append(m.spans, s)
	}
	slices.SortStableFunc(m.spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.top, b.top), cmp.Compare(a.left, b.left)) })
	return m, nil
}

// behindRows returns what stands behind the end tag of sheetData, nil without one.
func (p *part) behindRows() (io.Reader, error) {
	const tag = "sheetData"
	buf := make([]byte, 0, 1<<16)
	for {
		p.since = p.done
		n, err := p.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		for at := 0; ; {
			i := bytes.Index(buf[at:], []byte(tag))
			if i < 0 {
				break
			}
			at += i + len(tag)
			before := bytes.TrimRight(buf[max(0, at-len(tag)-64):at-len(tag)], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:")
			if bytes.HasSuffix(before, []byte("</")) {
				rest := bytes.NewReader(slices.Clone(buf[at:]))
				return io.MultiReader(strings.NewReader("<x"), rest, p), nil // the end tag becomes a start tag: <x>
			}
		}
		if err == io.EOF {
			return nil, nil
		} else if err != nil {
			return nil, p.fault(err)
		}
		if keep := min(len(buf), 128); len(buf) > keep {
			buf = append(buf[:0], buf[len(buf)-keep:]...)
		}
	}
}

// enter finds the ranges that cover a row, in the first n columns. Rows come in order.
func (m *merged) enter(row, n int, cells []cell) error {
	for len(m.at) < n {
		m.at = append(m.at, 0)
	}
	for ; m.next < len(m.spans) && m.spans[m.next].top <= row; m.next++ {
		s := &m.spans[m.next]
		if s.bottom < row {
			continue
		}
		if s.top == row {
			for _, c := range cells {
				if c.column == s.left {
					s.value, s.has = c, true
				}
			}
		}
		for c := s.left; c <= s.right && c < len(m.at); c++ {
			if m.covers(row, c) != nil {
				return fault.New(fault.Corrupt, "xlsx", "two merged ranges have the cell %s", cellName(row, c))
			}
			m.at[c] = m.next + 1
		}
	}
	return nil
}

// covers returns the range that has a cell of the row that was entered.
func (m *merged) covers(row, column int) *span {
	if column >= len(m.at) || m.at[column] == 0 {
		return nil
	}
	if s := &m.spans[m.at[column]-1]; s.bottom >= row {
		return s
	}
	return nil
}
