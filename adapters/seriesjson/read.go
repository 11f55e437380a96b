package seriesjson

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// maxLine is the most bytes of a line: a file that is no JSON Lines must not be taken in as a whole. A label has 64 MiB at
// most.
const maxLine = 256 << 20

// Records gives the series of a text, which messages call name, as they come. The labels of a record are good until the
// next one. Every label must be one of the tags. An error ends it, and names the line.
func Records(ctx context.Context, in io.Reader, name string, tags []series.Tag) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		l := &lines{r: bufio.NewReaderSize(in, 1<<16), name: name, tags: make(map[string]string, len(tags))}
		for _, t := range tags {
			l.tags[t.Name] = t.Name
		}
		for n := 0; ; n++ {
			if n&0xfff == 0xfff && ctx.Err() != nil {
				yield(series.Record{}, fault.New(nil, "seriesjson", "").In(name).Because(ctx.Err()))
				return
			}
			r, err := l.record()
			if err == io.EOF {
				return
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Labels goes through a text, and returns the names of its labels in the order in which they are first seen.
func Labels(ctx context.Context, in io.Reader, name string) ([]string, error) {
	l := &lines{r: bufio.NewReaderSize(in, 1<<16), name: name, tags: make(map[string]string), learn: true}
	for n := 1; ; n++ {
		if n&0xfff == 0 && ctx.Err() != nil {
			return nil, fault.New(nil, "seriesjson", "").In(name).Because(ctx.Err())
		}
		if _, err := l.record(); err == io.EOF {
			return l.learnt, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// lines reads the records of a text.
type lines struct {
	r    *bufio.Reader
	name string
	tags map[string]string // the same text: a name that many records have is kept once

	learn  bool // a label that is no tag becomes one
	learnt []string

	line   int   // of the record, from 1
	offset int64 // of its first byte
	done   int64 // bytes up to the end of the line
	long   []byte
	one    bytes.Reader
	dec    jsontext.Decoder
	labels []series.Label
	buf    []byte
}

// record reads the next record, io.EOF when there is none.
func (l *lines) record() (series.Record, error) {
	text, err := l.next()
	if err != nil {
		return series.Record{}, err
	}
	l.one.Reset(text)
	l.dec.Reset(&l.one)
	r, err := l.parse()
	if err != nil {
		return r, fault.Locate(l.syntax(err), l.name, l.place(), 0)
	}
	return r, nil
}

func (l *lines) place() string { return "line " + strconv.Itoa(l.line) }

// next returns the next line that is not blank, without its end; it is good until the call after.
func (l *lines) next() ([]byte, error) {
	for {
		l.offset = l.done
		l.long = l.long[:0]
		p, err := l.r.ReadSlice('\n')
		for err == bufio.ErrBufferFull {
			if l.long = append(l.long, p...); len(l.long) > maxLine {
				l.line++
				return nil, fault.New(fault.Limit, "seriesjson", "a line of more than %d bytes", maxLine).In(l.name).On(l.place())
			}
			p, err = l.r.ReadSlice('\n')
		}
		if len(l.long) > 0 {
			l.long = append(l.long, p...)
			p = l.long
		}
		if err != nil && err != io.EOF {
			return nil, fault.Locate(err, l.name, "", 0)
		}
		if len(p) == 0 {
			return nil, io.EOF
		}
		l.line++
		l.done += int64(len(p))
		if l.offset == 0 && bytes.HasPrefix(p, []byte("\xef\xbb\xbf")) {
			p = p[3:]
			l.offset = 3
		}
		if p = bytes.TrimRight(p, " \t\r\n"); len(bytes.TrimLeft(p, " \t")) > 0 {
			return p, nil
		}
	}
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "seriesjson", format, args...)
}

// syntax makes a fault of an error of the decoder.
func (l *lines) syntax(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		f := invalid("").Because(s.Err).At(l.offset + s.ByteOffset)
		switch {
		case errors.Is(s.Err, io.ErrUnexpectedEOF):
			f.Msg, f.Err = "the line ends inside the series: a series is an object on one line", nil
		case errors.Is(s.Err, jsontext.ErrDuplicateName):
			f.Msg, f.Err = "the member "+strconv.Quote(s.JSONPointer.LastToken())+" is there twice", nil
		}
		return f
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return invalid("the line ends inside the series: a series is an object on one line").At(l.done)
	}
	return invalid("").Because(err)
}

// parse reads the object of a line.
func (l *lines) parse() (r series.Record, err error) {
	if err := l.begin("the line", "an object"); err != nil {
		return r, err
	}
	var has struct{ table, tsid, count bool }
	l.labels = l.labels[:0]
	for l.dec.PeekKind() != '}' {
		name, err := l.text()
		if err != nil {
			return r, err
		}
		switch string(name) {
		case "table_id":
			var n uint64
			n, err = l.number("table_id", math.MaxUint32)
			r.Table, has.table = uint32(n), true
		case "tsid":
			r.TSID, err = l.number("tsid", math.MaxUint64)
			has.tsid = true
		case "row_count":
			r.RowCount, err = l.number("row_count", math.MaxUint64)
			has.count = true
			if err == nil && r.RowCount == 0 {
				err = invalid("row_count is 0, and a series has a row at least")
			}
		case "labels":
			err = l.readLabels()
		default:
			return r, invalid("the member %s is none of a series: table_id, tsid, row_count, labels", clip(name))
		}
		if err != nil {
			return r, err
		}
	}
	if _, err := l.dec.ReadToken(); err != nil {
		return r, err
	}
	if _, err := l.dec.ReadToken(); err == nil {
		return r, invalid("there is more behind the series").At(l.offset + l.dec.InputOffset())
	} else if err != io.EOF {
		return r, err
	}
	for _, m := range []struct {
		name string
		has  bool
	}{{"table_id", has.table}, {"tsid", has.tsid}, {"row_count", has.count}} {
		if !m.has {
			return r, invalid("the member %s is missing", m.name)
		}
	}
	r.Labels = l.labels
	return r, nil
}

// begin reads the start of an object.
func (l *lines) begin(what, want string) error {
	if k := l.dec.PeekKind(); k != '{' {
		if _, err := l.dec.ReadValue(); err != nil {
			return err
		}
		return invalid("%s is %s, not %s", what, kindName(k), want)
	}
	_, err := l.dec.ReadToken()
	return err
}

func (l *lines) readLabels() error {
	if err := l.begin("labels", "an object"); err != nil {
		return err
	}
	for l.dec.PeekKind() != '}' {
		key, err := l.text()
		if err != nil {
			return err
		}
		name, ok := l.tags[string(key)]
		if !ok && l.learn {
			name = string(key)
			l.tags[name], l.learnt = name, append(l.learnt, name)
		} else if !ok {
			return invalid("the label %s is no tag of the artifact", clip(key))
		}
		switch k := l.dec.PeekKind(); k {
		case 'n':
			if _, err := l.dec.ReadToken(); err != nil {
				return err
			}
		case '"':
			v, err := l.text()
			if err != nil {
				return err
			}
			l.labels = append(l.labels, series.Label{Name: name, Value: string(v)})
		default:
			if _, err := l.dec.ReadValue(); err != nil {
				return err
			}
			return invalid("the label %s is %s, not text", clip([]byte(name)), kindName(k))
		}
	}
	_, err := l.dec.ReadToken()
	return err
}

// text reads a string; it is good until the next call.
func (l *lines) text() ([]byte, error) {
	v, err := l.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	if v.Kind() != '"' { // a key that is none is an error of the decoder
		return nil, invalid("%s where text belongs", kindName(v.Kind()))
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], nil
	}
	l.buf, err = jsontext.AppendUnquote(l.buf[:0], v)
	return l.buf, err
}

// number reads an integer that is written in digits alone.
func (l *lines) number(name string, most uint64) (uint64, error) {
	v, err := l.dec.ReadValue()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	switch {
	case err == nil && n <= most:
		return n, nil
	case v.Kind() != '0':
		return 0, invalid("%s is %s, not a number", name, kindName(v.Kind()))
	}
	return 0, invalid("%s is %.40s, and must be an integer of 0 to %d", name, v, most)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a truth value"
	case '"':
		return "text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "no JSON"
}

// clip is a name as messages show it.
func clip(name []byte) string { return fmt.Sprintf("%.60q", name) }
