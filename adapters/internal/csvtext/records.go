package csvtext

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

// Field is a field of a record: Text[Start:End].
type Field struct {
	Start, End int
	Line       int // where it starts, from 1
	Quoted     bool
}

// Records takes a file apart. It reads ahead no more than its buffer.
type Records struct {
	pkg   string // that errors name
	r     io.Reader
	buf   []byte
	at    int // the next byte of buf
	err   error
	line  int // of the next byte, from 1
	comma byte

	// The record that Next has read.
	Text   []byte // of all fields, without quotes
	Fields []Field
	Start  int // the line where it starts
}

// NewRecords reads until the header is whole, if it is not too long, and finds the delimiter, unless it is given. line is the
// number of the first line.
func NewRecords(pkg string, r io.Reader, delimiter byte, line int) (*Records, error) {
	s := &Records{pkg: pkg, r: r, buf: make([]byte, 0, 1<<17), line: line, comma: delimiter}
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
		return nil, fault.New(fault.Invalid, pkg, "the header has %q and %q outside quotes: which is the delimiter must be declared", found[0], found[1])
	}
	return s, nil
}

// BehindLines passes n lines, whatever is in them.
func BehindLines(pkg string, r io.Reader, n int) (io.Reader, error) {
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
			return nil, fault.New(nil, pkg, "").Because(err)
		}
	}
	return br, nil
}

// sepLine passes a first line "sep=;", which spreadsheets write and read.
func (s *Records) sepLine() byte {
	line, _, ok := bytes.Cut(s.buf, []byte("\n"))
	if text := bytes.TrimSuffix(line, []byte("\r")); ok && len(text) == 5 && string(text[:4]) == "sep=" && IsDelimiter(text[4]) {
		s.at = len(line) + 1
		s.line++
		return text[4]
	}
	return 0
}

// IsDelimiter reports whether a character can stand between fields: it stands in no number or word.
func IsDelimiter(c byte) bool {
	return c == '\t' || c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '-' && c != '.' &&
		(c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// read fills the buffer up.
func (s *Records) read() {
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
func (s *Records) more() bool {
	for s.at == len(s.buf) {
		if s.err != nil {
			return false
		}
		s.buf, s.at = s.buf[:0], 0
		s.read()
	}
	return true
}

// Next reads a record. After an error of class [fault.Invalid] the next record can be read; io.EOF is the end.
func (s *Records) Next() error {
	s.Text, s.Fields, s.Start = s.Text[:0], s.Fields[:0], s.line
	if !s.more() {
		return s.end()
	}
	for {
		f := Field{Start: len(s.Text), Line: s.line}
		var last bool
		var err error
		if s.more() && s.buf[s.at] == '"' {
			f.Quoted = true
			last, err = s.quotedField()
		} else {
			last, err = s.plainField()
		}
		if err != nil {
			return err
		}
		f.End = len(s.Text)
		if len(s.Fields) == maxFields {
			return fault.New(fault.Limit, s.pkg, "a record of more than %d fields", maxFields)
		}
		s.Fields = append(s.Fields, f)
		if last {
			if s.err != nil && s.err != io.EOF && s.at == len(s.buf) {
				return s.end()
			}
			return nil
		}
	}
}

// end is why there is no more.
func (s *Records) end() error {
	if _, ok := s.err.(*fault.Error); ok || s.err == io.EOF {
		return s.err
	}
	return fault.New(nil, s.pkg, "").Because(s.err)
}

// plainField reads a field up to its end, and reports whether it is the last of the record.
func (s *Records) plainField() (last bool, err error) {
	for s.more() {
		p := s.buf[s.at:]
		i := 0
		for i < len(p) && p[i] != s.comma && p[i] != '\n' && p[i] != '\r' && p[i] != '"' {
			i++
		}
		s.Text = append(s.Text, p[:i]...)
		s.at += i
		if len(s.Text) > maxRecord {
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
func (s *Records) lineEnd(otherwise string) error {
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
func (s *Records) quotedField() (last bool, err error) {
	open := s.line
	s.at++
	for s.more() {
		p := s.buf[s.at:]
		i := bytes.IndexByte(p, '"')
		if i < 0 {
			i = len(p)
		}
		s.line += bytes.Count(p[:i], []byte("\n"))
		s.Text = append(s.Text, p[:i]...)
		s.at += i
		if len(s.Text) > maxRecord {
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
			s.Text = append(s.Text, '"')
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
	s.Start = open
	return false, fault.New(fault.Invalid, s.pkg, "the quote that opens a field is never closed")
}

func (s *Records) tooLong() error {
	return fault.New(fault.Limit, s.pkg, "a record of more than %d bytes", maxRecord)
}

// skip passes the rest of the line and returns an error about it.
func (s *Records) skip(format string) error {
	s.Start = s.line
	for s.more() {
		if i := bytes.IndexByte(s.buf[s.at:], '\n'); i >= 0 {
			s.at += i + 1
			s.line++
			break
		}
		s.at = len(s.buf)
	}
	return fault.New(fault.Invalid, s.pkg, "%s", format)
}

// Blank reports whether the record is a line without a byte.
func (s *Records) Blank() bool {
	return len(s.Fields) == 1 && !s.Fields[0].Quoted && len(s.Text) == 0
}

// Valid reports whether all fields are UTF-8.
func (s *Records) Valid() bool {
	for _, f := range s.Fields { // whose texts stand side by side, and could make a character together
		if f.Start < len(s.Text) && !utf8.RuneStart(s.Text[f.Start]) {
			return false
		}
	}
	return utf8.Valid(s.Text)
}

// Readable reports whether an error was one of the text, after which there is more, and not one of the source.
func (s *Records) Readable() bool { return s.err == nil || s.err == io.EOF }

// AppendField appends text, in quotes where it needs them.
func AppendField(out, text []byte, delimiter byte) []byte {
	for _, c := range text {
		if c == delimiter || c == '"' || c == '\n' || c == '\r' {
			return AppendQuoted(out, text)
		}
	}
	return append(out, text...)
}

// AppendName appends a name of a header, quoted where a reader would see another delimiter, a byte order mark or a line
// "sep=;" in it.
func AppendName(out, name []byte, delimiter byte) []byte {
	if len(name) == 0 || bytes.ContainsAny(name, ",;\t\ufeff=\\") {
		return AppendQuoted(out, name)
	}
	return AppendField(out, name, delimiter)
}

// AppendQuoted appends text in quotes.
func AppendQuoted(out, text []byte) []byte {
	out = append(out, '"')
	for _, c := range text {
		if c == '"' {
			out = append(out, '"')
		}
		out = append(out, c)
	}
	return append(out, '"')
}
