package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/adapters/csvtable"
	"github.com/spilehq/spile/adapters/jsonrows"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/adapters/xlsx"
	"github.com/spilehq/spile/fault"
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
	maxDecoded    size // of the verb, which has the flag for tables as well or for workbooks alone

	set *pflag.FlagSet
}

// textFlagFormats are the formats for which a flag does something.
var textFlagFormats = map[string][]textFormat{
	"delimiter": {textCSV}, "separator": {textCSV, textXLSX}, "null": {textCSV, textXLSX}, "empty-text": {textCSV, textXLSX},
	"decimal-comma": {textCSV, textXLSX}, "sheet": {textXLSX}, "header-row": {textCSV, textXLSX}, "long-numbers": {textXLSX},
	"merged": {textXLSX}, "tags": {textCSV, textXLSX}, "labels": {textCSV, textXLSX, textJSON}, "times": {textParquet, textArrow},
	"from": {textJSON, textCSV, textXLSX}, "ignore-unknown": {textJSON, textCSV, textXLSX}, "max-errors": {textJSON, textCSV, textXLSX},
}

// unused refuses flags that do nothing for any of the formats.
func (f *textFlags) unused(formats ...textFormat) (err error) {
	f.set.Visit(func(flag *pflag.Flag) {
		of, ok := textFlagFormats[flag.Name]
		// Of tables alone, labels are for those.
		if !ok || err != nil || flag.Name == "labels" && len(formats) == 0 || slices.ContainsFunc(formats, func(t textFormat) bool { return slices.Contains(of, t) }) {
			return
		}
		var names []string
		for _, t := range of {
			names = append(names, textNames[t-1])
		}
		what := "a table (tcb)"
		if len(formats) > 0 {
			what = textNames[formats[0]-1]
		}
		err = usagef("--%s is for %s, and does nothing for %s", flag.Name, strings.Join(names, ", "), what)
	})
	return err
}

func (f *textFlags) add(flags *pflag.FlagSet) {
	f.set = flags
	flags.Var(&choice[textFormat]{&f.from, textNames[:3], []textFormat{textJSON, textCSV, textXLSX}}, "from", "the format of INPUT, found from its content otherwise")
	flags.StringVar(&f.delimiter, "delimiter", "", "the `CHARACTER` between fields of CSV, found in the header otherwise: , ; or a tab (\\t)")
	flags.StringVar(&f.separator, "separator", "", "the `CHARACTER` between the elements of an array in a cell (;)")
	flags.StringVar(&f.null, "null", "", "the `TEXT` of a cell that stands for an absent value (\\N)")
	flags.BoolVar(&f.emptyText, "empty-text", false, "an empty cell of an optional column of text is empty text, not absent")
	flags.BoolVar(&f.decimalComma, "decimal-comma", false, "numbers have a decimal comma")
	flags.StringVar(&f.sheet, "sheet", "", "the `NAME` of the sheet of a workbook (the first)")
	flags.IntVar(&f.header, "header-row", 0, "the `ROW` of a sheet, or the line of CSV, with the names of the columns (the first with a value)")
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
	case len(text) == 1 && strings.Contains("\"\\-.\r\n", text), len(text) == 1 && unicode.IsOneOf([]*unicode.RangeTable{unicode.Letter, unicode.Digit}, rune(text[0])):
		return 0, usagef("--%s %q, want a character that stands in no number and no word", flag, text)
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
	if delimiter, err = character("delimiter", f.delimiter); err != nil {
		return o, 0, err
	}
	switch {
	case o.Separator == ',' && f.decimalComma:
		return o, 0, usagef("--separator , and --decimal-comma: is a comma between elements, or in numbers?")
	case delimiter != 0 && strings.IndexByte(f.null, delimiter) >= 0:
		return o, 0, usagef("--null %q has the character of --delimiter in it", f.null)
	}
	if checked := o; checked.Check("") != nil {
		return o, 0, usage(errors.New(message(checked.Check(""))))
	}
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
	if err := wrongInput(head); err != nil {
		return nil, err
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		t.format = textXLSX
	case bytes.HasPrefix(text, []byte("{")):
		t.format = textJSON
	case isArray(text):
		return nil, fault.New(fault.Invalid, "", "is a JSON array, and rows are JSON Lines, an object on each line: jq -c '.[]' makes these; --from csv reads it as CSV")
	default:
		t.format = textCSV
	}
	return t, nil
}

// isArray reports whether a text is a JSON array of rows, as far as its beginning tells.
func isArray(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("["))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return ok && len(rest) > 0 && (rest[0] == '{' || rest[0] == '[' || rest[0] == ']')
}

// wrongInput refuses what begins like a file of another format.
func wrongInput(head []byte) error {
	const takes = "JSON Lines, CSV and XLSX are taken"
	for _, known := range []struct{ magic, what string }{
		{"TCB\x00", "a table (tcb) already"},
		{"PAR1", "a Parquet file"}, {"ARROW1", "an Arrow file"}, {"\x1f\x8b", "compressed by gzip: gunzip it first"},
		{"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"}, {"BZh", "compressed by bzip2: unpack it first"},
		{"\xd0\xcf\x11\xe0", "a workbook of an old form (xls), or one with a password: save it as XLSX"},
		{"SQLite format 3\x00", "an SQLite database"}, {"%PDF", "a PDF"}, {"GTSERIES", "a series artifact"},
		{"PK\x03\x04", ""},
	} {
		if !bytes.HasPrefix(head, []byte(known.magic)) {
			continue
		}
		if known.what == "" {
			return nil
		}
		return fault.New(fault.Invalid, "", "is %s; %s", known.what, takes)
	}
	if bytes.IndexByte(head, 0) >= 0 && !bytes.HasPrefix(head, []byte("\xff\xfe")) && !bytes.HasPrefix(head, []byte("\xfe\xff")) && !bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")) {
		return fault.New(fault.Invalid, "", "is no text; %s, in UTF-8 or, with its mark, UTF-16", takes)
	}
	return nil
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
		columns, rows, warnings, err = csvtable.Read(ctx, t.reader(ctx), s, &csvtable.Options{Options: o, Delimiter: delimiter, Header: t.flags.header})
	default:
		columns, rows, warnings, err = xlsx.Read(ctx, source.AsReaderAt(ctx, t.obj), t.obj.Size(), s, t.workbook(o))
	}
	for _, w := range warnings {
		e.say("%s: warning: %s", t.obj.Name(), w)
	}
	return columns, rows, err
}

// infer proposes a schema. Notes are said when there is an env to say them.
func (t *textTable) infer(ctx context.Context, e *env) (*tcb.Schema, error) {
	o, delimiter, err := t.flags.options(t.obj.Name())
	if err != nil {
		return nil, err
	}
	if e != nil {
		o.Note = func(w tabular.Warning) {
			e.say("%s", e.hinted(fmt.Errorf("%s: note: %s", t.obj.Name(), w)))
		}
	}
	switch t.format {
	case textJSON:
		return jsonrows.Infer(ctx, t.reader(ctx), &jsonrows.Options{Options: o})
	case textCSV:
		return csvtable.Infer(ctx, t.reader(ctx), &csvtable.Options{Options: o, Delimiter: delimiter, Header: t.flags.header})
	}
	return xlsx.Infer(ctx, source.AsReaderAt(ctx, t.obj), t.obj.Size(), t.workbook(o))
}

func (t *textTable) workbook(o tabular.Options) *xlsx.Options {
	return &xlsx.Options{Options: o, Sheet: t.flags.sheet, Header: t.flags.header, LongNumbers: t.flags.longNumbers, Merged: t.flags.merged, MaxShared: int64(t.flags.maxDecoded)}
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
		e.say("%s", e.hinted(one))
	}
	if more := all.Count - len(all.List); more > 0 {
		e.say("and %d more errors; --max-errors prints more", more)
	}
	return silent{err}
}
