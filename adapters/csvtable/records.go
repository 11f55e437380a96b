package csvtable

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// maxRecord is the most bytes of a record: an opening quote that nothing closes must not take the whole file in.
const maxRecord = 64 << 20

// maxFields is the most fields of a record, for the same reason.
const maxFields = 1 << 20

// field is a field of a record: text[start:end].
type field struct {
	start, end int
	line       int // where it starts, from 1
	quoted     bool
}

// records takes a file apart. It reads ahead no more than its buffer.
type records struct {
	r     io.Reader
	buf   []byte
	at    int // the next byte of buf
	err   error
	line  int // of the next byte, from 1
	comma byte

	text   []byte // of the record, without quotes
	fields []field
	start  int // the line where the record starts
}

// newRecords reads until the header is whole, if it is not too long, and finds the delimiter.
func newRecords(r io.Reader, delimiter byte, line int) (*records, error) {
	s := &records{r: r, buf: make([]byte, 0, 1<<17), line: line, comma: delimiter}
	for s.err == nil && len(s.buf) < cap(s.buf) {
		s.read()
	}
	declared := s.sepLine()
	if s.comma == 0 {
		s.comma = declared
	}
	if s.comma != 0 {
		return s, nil
	}
	var found []byte
	quoted := false
header:
	for _, c := range bytes.TrimLeft(s.buf[s.at:], "\r\n") {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			break header
		case (c == ',' || c == ';' || c == '\t') && bytes.IndexByte(found, c) < 0:
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		s.comma = ','
	case 1:
		s.comma = found[0]
	default:
		return nil, fault.New(fault.Invalid, "csvtable", "the header has %q and %q outside quotes: which is the delimiter must be declared", found[0], found[1])
	}
	return s, nil
}

// behindLines passes n lines, whatever is in them.
func behindLines(r io.Reader, n int) (io.Reader, error) {
	if n < 1 {
		return r, nil
	}
	br := bufio.NewReaderSize(r, 1<<16)
	for n > 0 {
		_, err := br.ReadSlice('\n')
		switch {
		case err == nil:
			n--
		case err == io.EOF:
			return br, nil
		case err != bufio.ErrBufferFull:
			return nil, fault.New(nil, "csvtable", "").Because(err)
		}
	}
	return br, nil
}

// sepLine passes a first line "sep=;", which spreadsheets write and read.
func (s *records) sepLine() byte {
	line, _, ok := bytes.Cut(s.buf, []byte("\n"))
	if text := bytes.TrimSuffix(line, []byte("\r")); ok && len(text) == 5 && string(text[:4]) == "sep=" && isDelimiter(text[4]) {
		s.at = len(line) + 1
		s.line++
		return text[4]
	}
	return 0
}

func isDelimiter(c byte) bool {
	return c == '\t' || c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '-' && c != '.' &&
		(c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// read fills the buffer up.
func (s *records) read() {
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// more reports whether there is a next byte.
func (s *records) more() bool {
	for s.at == len(s.buf) {
		if s.err != nil {
			return false
		}
		s.buf, s.at = s.buf[:0], 0
		s.read()
	}
	return true
}

// next reads a record. After an error of class [fault.Invalid] the next record can be read; io.EOF is the end.
func (s *records) next() error {
	s.text, s.fields, s.start = s.text[:0], s.fields[:0], s.line
	if !s.more() {
		return s.end()
	}
	for {
		f := field{start: len(s.text), line: s.line}
		var last bool
		var err error
		if s.more() && s.buf[s.at] == '"' {
			f.quoted = true
			last, err = s.quotedField()
		} else {
			last, err = s.plainField()
		}
		if err != nil {
			return err
		}
		f.end = len(s.text)
		if len(s.fields) == maxFields {
			return fault.New(fault.Limit, "csvtable", "a record of more than %d fields", maxFields)
		}
		s.fields = append(s.fields, f)
		if last {
			if s.err != nil && s.err != io.EOF && s.at == len(s.buf) {
				return s.end()
			}
			return nil
		}
	}
}

// end is why there is no more.
func (s *records) end() error {
	if _, ok := s.err.(*fault.Error); ok || s.err == io.EOF {
		return s.err
	}
	return fault.New(nil, "csvtable", "").Because(s.err)
}

// plainField reads a field up to its end, and reports whether it is the last of the record.
func (s *records) plainField() (last bool, err error) {
	for s.more() {
		p := s.buf[s.at:]
		i := 0
		for i < len(p) && p[i] != s.comma && p[i] != '\n' && p[i] != '\r' && p[i] != '"' {
			i++
		}
		s.text = append(s.text, p[:i]...)
		s.at += i
		if len(s.text) > maxRecord {
			return false, s.tooLong()
		}
		if i == len(p) {
			continue
		}
		switch p[i] {
		case '"':
			return false, s.skip("a quote inside a field that does not start with one: quotes in a field are doubled, and the field stands in quotes")
		case s.comma:
			s.at++
			return false, nil
		}
		return true, s.lineEnd("a CR without LF outside quotes")
	}
	return true, nil
}

// lineEnd passes LF or CRLF.
func (s *records) lineEnd(otherwise string) error {
	if s.buf[s.at] == '\r' {
		s.at++
		if !s.more() || s.buf[s.at] != '\n' {
			if s.at == len(s.buf) && s.err == io.EOF { // the last line, whose end is cut
				return nil
			}
			return s.skip(otherwise)
		}
	}
	s.at++
	s.line++
	return nil
}

// quotedField reads a field that starts with a quote.
func (s *records) quotedField() (last bool, err error) {
	open := s.line
	s.at++
	for s.more() {
		p := s.buf[s.at:]
		i := bytes.IndexByte(p, '"')
		if i < 0 {
			i = len(p)
		}
		s.line += bytes.Count(p[:i], []byte("\n"))
		s.text = append(s.text, p[:i]...)
		s.at += i
		if len(s.text) > maxRecord {
			return false, s.tooLong()
		}
		if i == len(p) {
			continue
		}
		s.at++ // the quote
		if !s.more() {
			return true, nil
		}
		switch s.buf[s.at] {
		case '"':
			s.text = append(s.text, '"')
			s.at++
		case s.comma:
			s.at++
			return false, nil
		case '\n', '\r':
			return true, s.lineEnd("text behind the closing quote of a field")
		default:
			return false, s.skip("text behind the closing quote of a field")
		}
	}
	if s.err != io.EOF {
		return false, s.end()
	}
	s.start = open
	return false, fault.New(fault.Invalid, "csvtable", "the quote that opens a field is never closed")
}

func (s *records) tooLong() error {
	return fault.New(fault.Limit, "csvtable", "a record of more than %d bytes", maxRecord)
}

// skip passes the rest of the line and returns an error about it.
func (s *records) skip(format string) error {
	s.start = s.line
	for s.more() {
		if i := bytes.IndexByte(s.buf[s.at:], '\n'); i >= 0 {
			s.at += i + 1
			s.line++
			break
		}
		s.at = len(s.buf)
	}
	return fault.New(fault.Invalid, "csvtable", "%s", format)
}

// blank reports whether the record is a line without a byte.
func (s *records) blank() bool {
	return len(s.fields) == 1 && !s.fields[0].quoted && len(s.text) == 0
}

// valid reports whether all fields are UTF-8.
func (s *records) valid() bool {
	for _, f := range s.fields { // whose texts stand side by side, and could make a character together
		if f.start < len(s.text) && !utf8.RuneStart(s.text[f.start]) {
			return false
		}
	}
	return utf8.Valid(s.text)
}
