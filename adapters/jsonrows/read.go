package jsonrows

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Options say how rows are read or written. Nil and the zero value mean the defaults. Of those of tabular, Name,
// MaxErrors, IgnoreUnknown and Progress count.
type Options struct {
	tabular.Options
}

func checked(o *Options) Options {
	var c Options
	if o != nil {
		c = *o
	}
	return c
}

// maxLine is the most bytes of a line: a file that is no JSON Lines must not be taken in as a whole.
const maxLine = 256 << 20

// lines gives the rows of a file.
type lines struct {
	opts   Options
	faults *tabular.Faults
	r      *bufio.Reader
	line   int   // of the row, from 1
	offset int64 // of its first byte
	done   int64 // bytes up to the end of the line
	long   []byte
	one    bytes.Buffer
	dec    jsontext.Decoder
}

func newLines(r io.Reader, o *Options) *lines {
	l := &lines{opts: checked(o), r: bufio.NewReaderSize(r, 1<<16)}
	l.faults = tabular.NewFaults("jsonrows", &l.opts.Options)
	return l
}

// next returns the next line that is not blank, without its end; it is good until the call after.
func (l *lines) next() ([]byte, error) {
	for {
		l.offset = l.done
		l.long = l.long[:0]
		p, err := l.r.ReadSlice('\n')
		for err == bufio.ErrBufferFull {
			if l.long = append(l.long, p...); len(l.long) > maxLine {
				return nil, fault.New(fault.Limit, "jsonrows", "a line of more than %d bytes", maxLine).In(l.opts.Name).On("line " + strconv.Itoa(l.line+1))
			}
			p, err = l.r.ReadSlice('\n')
		}
		if len(l.long) > 0 {
			l.long = append(l.long, p...)
			p = l.long
		}
		if err != nil && err != io.EOF {
			return nil, fault.New(nil, "jsonrows", "").In(l.opts.Name).Because(err)
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

// rows calls row for each line, with the decoder before the first token of it.
func (l *lines) rows(ctx context.Context, row func(text []byte) error) error {
	for i := 1; ; i++ {
		if tabular.Every(i) {
			if err := ctx.Err(); err != nil {
				return fault.New(nil, "jsonrows", "").In(l.opts.Name).Because(err)
			}
			if l.opts.Progress != nil {
				l.opts.Progress(i, l.done)
			}
		}
		text, err := l.next()
		if err == io.EOF {
			return l.faults.Err()
		} else if err != nil {
			return err
		}
		l.one.Reset()
		l.one.Write(text)
		l.dec.Reset(&l.one)
		if err := row(text); err != nil {
			l.faults.Add(l.syntax(err), l.place(nil))
		}
	}
}

// syntax makes a fault of an error of the decoder.
func (l *lines) syntax(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		what := fault.New(fault.Invalid, "", "").Because(s.Err).At(l.offset + s.ByteOffset)
		switch {
		case errors.Is(s.Err, io.ErrUnexpectedEOF):
			what.Msg, what.Err = "the line ends inside the row: a row is an object on one line", nil
		case errors.Is(s.Err, jsontext.ErrDuplicateName):
			what.Msg, what.Err = "the member "+strconv.Quote(s.JSONPointer.LastToken())+" is there twice", nil
		}
		return what
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fault.New(fault.Invalid, "", "the line ends inside the row: a row is an object on one line").At(l.done)
	}
	return fault.New(fault.Invalid, "", "").Because(err)
}

func (l *lines) place(f *tcb.Field) string {
	if f == nil {
		return "line " + strconv.Itoa(l.line)
	}
	return "line " + strconv.Itoa(l.line) + ", " + tabular.Label(f)
}

// object passes the members of the row, which it hands to member with the key in quotes.
func (l *lines) object(member func(key jsontext.Value) error) error {
	if k := l.dec.PeekKind(); k != '{' {
		if _, err := l.dec.ReadValue(); err != nil {
			return err
		}
		return fault.New(fault.Invalid, "", "%s, want an object", kindName(k))
	}
	if _, err := l.dec.ReadToken(); err != nil {
		return err
	}
	for {
		switch l.dec.PeekKind() {
		case '}':
			if _, err := l.dec.ReadToken(); err != nil {
				return err
			}
			if _, err := l.dec.ReadToken(); err == nil {
				return fault.New(fault.Invalid, "", "there is more behind the row").At(l.offset + l.dec.InputOffset())
			} else if err != io.EOF {
				return err
			}
			return nil
		}
		key, err := l.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
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

// reader puts rows into a builder.
type reader struct {
	*lines
	b      *tcb.Builder
	fields []tcb.Field
	keys   []string // of the columns, in quotes
	byKey  map[string]int
	byTag  map[int32]int
	got    []int // the row in which a column last had a member, from 1
	order  []int // the columns in the order of the row before, -1 for a member that is none
	row    int
	text   string // of the row
	keep   tabular.Text
	list   []tcb.Cell
	buf    []byte
}

// Read reads rows into the columns of a schema. All that is wrong with them is in one error, a [tabular.Errors], and then
// there are no columns.
func Read(ctx context.Context, in io.Reader, s *tcb.Schema, o *Options) (columns []*tcb.Column, rows int, warnings []tabular.Warning, err error) {
	if err := s.Check(); err != nil {
		return nil, 0, nil, err
	}
	r := &reader{
		lines: newLines(in, o), b: tcb.NewBuilder(s), fields: s.Columns,
		keys: make([]string, len(s.Columns)), byKey: make(map[string]int, len(s.Columns)), byTag: make(map[int32]int, len(s.Columns)), got: make([]int, len(s.Columns)),
	}
	for k := range s.Columns {
		r.keys[k] = tabular.Name(&s.Columns[k])
		r.byKey[r.keys[k]] = k
		r.byTag[s.Columns[k].Tag] = k
	}
	if err := r.rows(ctx, r.read); err != nil {
		return nil, 0, nil, err
	}
	if r.opts.Progress != nil {
		r.opts.Progress(r.b.Rows(), r.done)
	}
	return r.b.Columns(), r.b.Rows(), r.faults.Warnings(), nil
}

func (r *reader) read(text []byte) error {
	r.row++
	r.text = string(text)
	at := 0
	err := r.object(func(key jsontext.Value) error {
		k := r.column(key, at)
		at++
		if k < 0 {
			return r.unknown(key)
		}
		if r.got[k] == r.row {
			r.add(fault.New(fault.Invalid, "", "the member %s is the column, which the row has already", key), k)
			return r.dec.SkipValue()
		}
		r.got[k] = r.row
		return r.member(k)
	})
	if err != nil {
		return err
	}
	for k := range r.fields {
		if r.got[k] == r.row {
			continue
		}
		if r.fields[k].Type.Optional {
			r.put(k, tcb.Cell{}, nil)
		} else if once := "no member " + r.keys[k]; !r.faults.Again(once) {
			r.faults.Once(once, fault.New(fault.Invalid, "", "the row has no member %q, and the column is not optional", r.keys[k]), r.place(&r.fields[k]))
		}
	}
	r.b.EndRow()
	return nil
}

// column finds the column of a key, first where it was in the row before.
func (r *reader) column(key jsontext.Value, at int) int {
	if at < len(r.order) {
		if k := r.order[at]; k >= 0 && string(key[1:len(key)-1]) == r.keys[k] {
			return k
		}
	} else {
		r.order = append(r.order, -1)
	}
	name, err := jsontext.AppendUnquote(r.buf[:0], key)
	r.buf = name[:0]
	k, ok := r.byKey[string(name)]
	if tag, isTag := tabular.Tag(string(name)); !ok && isTag {
		k, ok = r.byTag[tag]
	}
	if !ok || err != nil {
		k = -1
	}
	r.order[at] = k
	return k
}

// unknown passes a member that is no column.
func (r *reader) unknown(key jsontext.Value) error {
	name := string(key)
	if once := "unknown " + name; !r.opts.IgnoreUnknown && !r.faults.Again(once) {
		r.faults.Once(once, fault.New(fault.Invalid, "", "the schema has no column %.60s", name), r.place(nil))
	}
	return r.dec.SkipValue()
}

// add notes what is wrong with the value of a column.
func (r *reader) add(err error, k int) {
	if r.faults.Full() {
		r.faults.Count()
		return
	}
	r.faults.Add(err, r.place(&r.fields[k]))
}

// member reads the value of the k-th column. An error is one of the text; others are noted.
func (r *reader) member(k int) error {
	if r.dec.PeekKind() != '[' {
		v, err := r.value(r.fields[k].Type.Element == tcb.String)
		if err == nil {
			r.put(k, v, nil)
		} else if _, ok := errors.AsType[*fault.Error](err); ok {
			r.add(err, k)
			return nil
		}
		return err
	}
	if r.fields[k].Type.Kind != tcb.Array {
		r.add(fault.New(fault.Invalid, "", "an array, want %s", r.fields[k].TypeName()), k)
		return r.dec.SkipValue()
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if r.list == nil {
		r.list = make([]tcb.Cell, 0, 8)
	}
	list := r.list[:0]
	wrong := false
	for r.dec.PeekKind() != ']' {
		v, err := r.value(r.fields[k].Type.Element == tcb.String)
		if _, ok := errors.AsType[*fault.Error](err); ok {
			r.add(fault.Locate(err, "", "element "+strconv.Itoa(len(list)), 0), k)
			wrong = true
		} else if err != nil {
			return err
		}
		list = append(list, v)
	}
	r.list = list
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if !wrong {
		r.put(k, tcb.Cell{}, list)
	}
	return nil
}

// put sets the value of a column: the list, unless it is nil.
func (r *reader) put(k int, v tcb.Cell, list []tcb.Cell) {
	var err error
	switch {
	case list != nil || v.Kind == tcb.CellNull && r.fields[k].Type.Kind == tcb.Array:
		err = r.b.Array(k, list)
	default:
		err = r.b.Scalar(k, v)
	}
	if err != nil {
		r.add(err, k)
	}
}

// value reads a value that is no container. Text is part of the line; keep copies it out.
func (r *reader) value(keep bool) (tcb.Cell, error) {
	p, err := r.dec.ReadValue()
	if err != nil {
		return tcb.Cell{}, err
	}
	end := int(r.dec.InputOffset())
	text := r.text[end-len(p) : end]
	switch k := p.Kind(); k {
	case 'n':
		return tcb.Cell{}, nil
	case 't', 'f':
		return tcb.Cell{Kind: tcb.CellBool, Text: text}, nil
	case '0':
		return tcb.Cell{Kind: tcb.CellNumber, Text: text}, nil
	case '"':
		if bytes.IndexByte(p, '\\') >= 0 {
			if r.buf, err = jsontext.AppendUnquote(r.buf[:0], p); err != nil {
				return tcb.Cell{}, err
			}
			return tcb.Cell{Kind: tcb.CellText, Text: string(r.buf)}, nil
		}
		if text = text[1 : len(text)-1]; keep {
			text = r.keep.Keep(text)
		}
		return tcb.Cell{Kind: tcb.CellText, Text: text}, nil
	default:
		return tcb.Cell{}, fault.New(fault.Invalid, "", "%s, want a single value", kindName(k))
	}
}
