package main

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/adapters/csvtable"
	"github.com/spilehq/spile/adapters/jsonrows"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/adapters/xlsx"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// textFormat is the format of a table that is no TCB file.
type textFormat uint8

const (
	anyText textFormat = iota
	textJSON
	textCSV
	textXLSX
	// What follows is written only.
	textParquet
	textArrow
)

var textNames = []string{"jsonl", "csv", "xlsx", "parquet", "arrow"}

// textFlags say how a table of text is read.
type textFlags struct {
	from          textFormat
	delimiter     string
	separator     string
	null          string
	emptyText     bool
	decimalComma  bool
	sheet         string
	header        int
	longNumbers   bool
	merged        xlsx.Merged
	ignoreUnknown bool
	maxErrors     int
}

func (f *textFlags) add(flags *pflag.FlagSet) {
	flags.Var(&choice[textFormat]{&f.from, textNames[:3], []textFormat{textJSON, textCSV, textXLSX}}, "from", "the format of INPUT, found from its content otherwise")
	flags.StringVar(&f.delimiter, "delimiter", "", "the `CHARACTER` between fields of CSV, found in the header otherwise: , ; or a tab (\\t)")
	flags.StringVar(&f.separator, "separator", "", "the `CHARACTER` between the elements of an array in a cell (;)")
	flags.StringVar(&f.null, "null", "", "the `TEXT` of a cell that stands for an absent value (\\N)")
	flags.BoolVar(&f.emptyText, "empty-text", false, "an empty cell of an optional column of text is empty text, not absent")
	flags.BoolVar(&f.decimalComma, "decimal-comma", false, "numbers have a decimal comma")
	flags.StringVar(&f.sheet, "sheet", "", "the `NAME` of the sheet of a workbook (the first)")
	flags.IntVar(&f.header, "header-row", 0, "the `ROW` of a sheet with the names of the columns (the first with a value)")
	flags.BoolVar(&f.longNumbers, "long-numbers", false, "take numbers of 16 digits and more in a sheet, which a spreadsheet has rounded")
	flags.Var(&choice[xlsx.Merged]{&f.merged, []string{"error", "first", "fill"}, []xlsx.Merged{xlsx.MergedError, xlsx.MergedFirst, xlsx.MergedFill}},
		"merged", "what merged cells of a sheet mean: a value in the first, or in each")
	flags.BoolVar(&f.ignoreUnknown, "ignore-unknown", false, "leave columns out that the schema does not have")
	flags.IntVar(&f.maxErrors, "max-errors", 100, "print `N` errors, and count the others")
}

// character is the value of a flag that takes one.
func character(flag, text string) (byte, error) {
	switch {
	case text == "":
		return 0, nil
	case text == `\t` || text == "tab":
		return '\t', nil
	case len(text) == 1:
		return text[0], nil
	}
	return 0, usagef("--%s %q, want one character", flag, text)
}

func (f *textFlags) options(name string) (o tabular.Options, delimiter byte, err error) {
	if f.maxErrors < 1 {
		return o, 0, usagef("--max-errors %d, want 1 or more", f.maxErrors)
	}
	if f.header < 0 {
		return o, 0, usagef("--header-row %d, want 1 or more", f.header)
	}
	o = tabular.Options{
		Name: name, MaxErrors: f.maxErrors, Null: f.null, EmptyText: f.emptyText, DecimalComma: f.decimalComma,
		IgnoreUnknown: f.ignoreUnknown,
	}
	if o.Separator, err = character("separator", f.separator); err != nil {
		return o, 0, err
	}
	delimiter, err = character("delimiter", f.delimiter)
	return o, delimiter, err
}

// textTable is a table of text that was opened.
type textTable struct {
	obj    source.Object
	format textFormat
	flags  *textFlags
}

// openText finds the format of a table of text: a workbook by its magic, JSON Lines by the brace they begin with, CSV else.
func openText(ctx context.Context, obj source.Object, f *textFlags) (*textTable, error) {
	t := &textTable{obj, f.from, f}
	if t.format != anyText {
		return t, nil
	}
	head, err := headOf(ctx, obj, 0, 4<<10)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		t.format = textXLSX
	case bytes.HasPrefix(text, []byte("{")):
		t.format = textJSON
	default:
		t.format = textCSV
	}
	return t, nil
}

// read reads the rows into the columns of a schema, and says what is odd about them.
func (t *textTable) read(ctx context.Context, e *env, s *tcb.Schema) ([]*tcb.Column, int, error) {
	o, delimiter, err := t.flags.options(t.obj.Name())
	if err != nil {
		return nil, 0, err
	}
	if t.obj.Size() == 0 { // no header, and no row that misses one
		return tcb.NewBuilder(s).Columns(), 0, nil
	}
	var columns []*tcb.Column
	var rows int
	var warnings []tabular.Warning
	switch t.format {
	case textJSON:
		columns, rows, warnings, err = jsonrows.Read(ctx, t.reader(ctx), s, &jsonrows.Options{Options: o})
	case textCSV:
		columns, rows, warnings, err = csvtable.Read(ctx, t.reader(ctx), s, &csvtable.Options{Options: o, Delimiter: delimiter})
	default:
		columns, rows, warnings, err = xlsx.Read(ctx, source.AsReaderAt(ctx, t.obj), t.obj.Size(), s, t.workbook(o))
	}
	for _, w := range warnings {
		e.say("%s: warning: %s", t.obj.Name(), w)
	}
	return columns, rows, err
}

// infer proposes a schema.
func (t *textTable) infer(ctx context.Context) (*tcb.Schema, error) {
	o, delimiter, err := t.flags.options(t.obj.Name())
	if err != nil {
		return nil, err
	}
	switch t.format {
	case textJSON:
		return jsonrows.Infer(ctx, t.reader(ctx), &jsonrows.Options{Options: o})
	case textCSV:
		return csvtable.Infer(ctx, t.reader(ctx), &csvtable.Options{Options: o, Delimiter: delimiter})
	}
	return xlsx.Infer(ctx, source.AsReaderAt(ctx, t.obj), t.obj.Size(), t.workbook(o))
}

func (t *textTable) workbook(o tabular.Options) *xlsx.Options {
	return &xlsx.Options{Options: o, Sheet: t.flags.sheet, Header: t.flags.header, LongNumbers: t.flags.longNumbers, Merged: t.flags.merged}
}

func (t *textTable) reader(ctx context.Context) io.Reader {
	return source.NewReader(ctx, t.obj, 0, t.obj.Size(), 1<<20)
}

// each says every error of an input on a line of its own, and returns what is left to say.
func (e *env) each(err error) error {
	all, ok := errors.AsType[*tabular.Errors](err)
	if !ok {
		return err
	}
	for _, one := range all.List {
		e.say("%s", message(one))
	}
	if more := all.Count - len(all.List); more > 0 {
		e.say("and %d more errors; --max-errors prints more", more)
	}
	return silent{err}
}
