package csvtable

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spilehq/spile/adapters/internal/csvtext"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Options say how a file is read or written. Nil and the zero value mean the defaults.
type Options struct {
	tabular.Options
	// Delimiter stands between fields; 0: found in the header when reading, a comma when writing.
	Delimiter byte
	// Header is the line of the header when reading, from 1; the lines above it are left out. 0: the first that is not blank.
	Header int
}

func checked(o *Options) (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Delimiter != 0 && !csvtext.IsDelimiter(c.Delimiter) {
		return c, fault.New(fault.Invalid, "csvtable", "the delimiter %q, want a character that stands in no number or word", c.Delimiter)
	}
	if c.Header < 0 {
		return c, fault.New(fault.Invalid, "csvtable", "the header in line %d, want 1 or more", c.Header)
	}
	return c, c.Options.Check("csvtable")
}

// table is a file whose header was read.
type table struct {
	*csvtext.Records
	opts   Options
	faults *tabular.Faults
	header *tabular.Header // nil: the input is empty
	done   *counter

	strings []string // the fields of the record

	hinted     bool // what to do about text that is no UTF-8 was said
	blanks     int  // lines that were passed, and where the first was
	firstBlank int
	between    int // of them, those that a record follows
}

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func line(n int) string { return "line " + strconv.Itoa(n) }

func open(r io.Reader, o *Options) (*table, error) {
	opts, err := checked(o)
	if err != nil {
		return nil, err
	}
	t := &table{opts: opts, done: &counter{r: r}, faults: tabular.NewFaults("csvtable", &opts.Options)}
	text, err := csvtext.Decoded("csvtable", t.done)
	if err == nil {
		text, err = csvtext.BehindLines("csvtable", text, opts.Header-1)
	}
	if err == nil {
		t.Records, err = csvtext.NewRecords("csvtable", text, opts.Delimiter, max(opts.Header, 1))
	}
	if err != nil {
		return nil, fault.Locate(err, opts.Name, "", 0)
	}
	fields, err := t.record()
	switch {
	case (err == io.EOF || err == nil && t.Start > opts.Header) && opts.Header > 0:
		return nil, fault.New(fault.NotFound, "csvtable", "there is no header in line %d", opts.Header).In(opts.Name)
	case err == io.EOF:
		return t, nil
	case err != nil:
		return nil, err
	case fields == nil:
		return nil, t.faults.Err()
	}
	start := t.Start
	t.header = tabular.ParseHeader(fields, func(i int) string { return line(start) + ", field " + strconv.Itoa(i+1) }, t.faults)
	return t, t.faults.Err()
}

// record returns the fields of the next record that is no blank line, nil when something is wrong with it, which is noted. They
// are good until the next call.
func (t *table) record() ([]string, error) {
	for {
		err := t.Next()
		switch {
		case err == io.EOF:
			return nil, err
		case errors.Is(err, fault.Invalid) && t.Readable():
			t.faults.Add(err, line(t.Start))
			return nil, nil
		case err != nil:
			return nil, fault.Locate(err, t.opts.Name, line(t.Start), 0)
		case t.Blank():
			if t.blanks == 0 {
				t.firstBlank = t.Start
			}
			t.blanks++
			continue
		}
		t.between = t.blanks
		if !t.Valid() {
			t.noText()
			return nil, nil
		}
		text := string(t.Text)
		fields := slices.Grow(t.strings[:0], len(t.Fields))[:len(t.Fields)]
		t.strings = fields
		for i, f := range t.Fields {
			fields[i] = text[f.Start:f.End]
		}
		return fields, nil
	}
}

// noText notes the fields of a record that are no UTF-8. What that means for a file as a whole is said once.
func (t *table) noText() {
	hint := "; of a spreadsheet, save it as CSV UTF-8"
	for i, f := range t.Fields {
		text := t.Text[f.Start:f.End]
		if utf8.Valid(text) {
			continue
		}
		where := line(f.Line) + ", field " + strconv.Itoa(i+1)
		if t.header != nil && i < len(t.header.Fields) && t.header.Fields[i].Name != "" {
			where += " (" + t.header.Fields[i].Name + ")"
		}
		if t.hinted {
			hint = ""
		}
		t.hinted = true
		t.faults.Add(fault.New(fault.Invalid, "", "the text %.60q is no UTF-8%s", text, hint), where)
	}
}

// rows calls row for each record that has as many fields as the header.
func (t *table) rows(ctx context.Context, row func(fields []string)) error {
	n := len(t.header.Fields)
	t.blanks, t.between = 0, 0
	for i := 1; ; i++ {
		if tabular.Every(i) {
			if err := ctx.Err(); err != nil {
				return fault.New(nil, "csvtable", "").In(t.opts.Name).Because(err)
			}
			if t.opts.Progress != nil {
				t.opts.Progress(i, t.done.n)
			}
		}
		fields, err := t.record()
		switch {
		case err == io.EOF:
			if t.between > 0 {
				t.faults.Warn(line(t.firstBlank), t.between, "%d blank lines between records are left out", t.between)
			}
			return nil
		case err != nil:
			return err
		case fields == nil:
		case len(fields) != n:
			t.faults.Add(fault.New(fault.Invalid, "", "%d fields, the header has %d", len(fields), n), line(t.Start))
		default:
			row(fields)
		}
	}
}

// Read reads a file into the columns of a schema. All that is wrong with it is in one error, a [tabular.Errors], and then
// there are no columns.
func Read(ctx context.Context, r io.Reader, s *tcb.Schema, o *Options) (columns []*tcb.Column, rows int, warnings []tabular.Warning, err error) {
	if err := s.Check(); err != nil {
		return nil, 0, nil, err
	}
	t, err := open(r, o)
	if err != nil {
		return nil, 0, nil, err
	}
	out := tabular.NewRows(s, &t.opts.Options)
	if t.header == nil {
		return out.Columns(), 0, nil, nil
	}
	out.Copy = true
	bound, missing := t.header.Bind(s, t.opts.IgnoreUnknown, t.faults)
	if err := t.faults.Err(); err != nil {
		return nil, 0, nil, err
	}
	err = t.rows(ctx, func(fields []string) {
		for i, text := range fields {
			k := bound[i]
			if k < 0 {
				if k == tabular.Unnamed {
					t.nameless(i, text)
				}
				continue
			}
			if err := out.Put(k, t.cell(i, text)); err != nil {
				if t.faults.Full() {
					t.faults.Count()
					continue
				}
				t.faults.Add(err, t.place(i, &s.Columns[k]))
			}
		}
		for _, k := range missing {
			out.None(k)
		}
		out.EndRow()
	})
	if err == nil {
		err = t.faults.Err()
	}
	if err != nil {
		return nil, 0, t.faults.Warnings(), err
	}
	if t.opts.Progress != nil {
		t.opts.Progress(out.Count(), t.done.n)
	}
	return out.Columns(), out.Count(), t.faults.Warnings(), nil
}

// nameless notes a value in a column that the header has no name for, once for a column.
func (t *table) nameless(i int, text string) {
	if key := "nameless " + strconv.Itoa(i); text != "" && !t.faults.Again(key) {
		t.faults.Once(key, fault.New(fault.Invalid, "", "the value %.60q, and the header has no name for the column", text), t.place(i, nil))
	}
}

func (t *table) cell(i int, text string) tabular.Cell {
	return tabular.Cell{Cell: tcb.Cell{Kind: tcb.CellText, Text: text}, Quoted: t.Fields[i].Quoted}
}

func (t *table) place(i int, f *tcb.Field) string {
	if f == nil {
		return line(t.Fields[i].Line) + ", field " + strconv.Itoa(i+1)
	}
	return line(t.Fields[i].Line) + ", " + tabular.Label(f)
}

// Infer proposes a schema for a file: the narrowest type that holds every field of a column exactly, floats to the nearest.
// A column with an empty field is optional. Arrays are not seen: their text is a string.
func Infer(ctx context.Context, r io.Reader, o *Options) (*tcb.Schema, error) {
	t, err := open(r, o)
	if err != nil {
		return nil, err
	}
	if t.header == nil {
		return nil, fault.New(fault.Invalid, "csvtable", "there is no header").In(t.opts.Name)
	}
	guesses := make([]tabular.Guess, len(t.header.Fields))
	err = t.rows(ctx, func(fields []string) {
		for i, text := range fields {
			switch f := &t.header.Fields[i]; {
			case f.Reserved:
				continue
			case f.Name == "" && f.Tag == 0:
				if !t.opts.IgnoreUnknown {
					t.nameless(i, text)
				}
				continue
			}
			if err := guesses[i].Cell(t.cell(i, text), &t.opts.Options, true); err != nil {
				t.faults.Add(err, t.place(i, nil))
			}
		}
	})
	if err == nil {
		err = t.faults.Err()
	}
	if err != nil {
		return nil, err
	}
	s, err := tabular.Propose(t.header, guesses, &t.opts.Options)
	return s, fault.Locate(err, t.opts.Name, "", 0)
}
