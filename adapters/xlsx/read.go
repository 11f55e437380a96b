package xlsx

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// table is a sheet whose header was read.
type table struct {
	*sheet
	opts   Options
	faults *tabular.Faults
	ref    *sheetRef
	size   int64
	merged *merged
	header *tabular.Header // nil: the sheet is empty
	bound  []int           // the column of the schema for each column of the sheet
	places []string        // of the columns of the sheet, in messages

	cellsOf []cell // the cells of the row, by the column of the sheet, once merged ranges are applied
}

// open opens a workbook and reads the header of a sheet.
func open(ctx context.Context, r io.ReaderAt, size int64, o *Options) (t *table, err error) {
	opts, err := checked(o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && t != nil && t.sheet != nil {
			t.close()
		}
		err = fault.Locate(err, opts.Name, "", 0)
	}()
	book, err := openWorkbook(ctx, r, size, &opts)
	if err != nil {
		return nil, err
	}
	t = &table{opts: opts, size: size, faults: tabular.NewFaults("xlsx", &opts.Options)}
	if t.ref, err = book.sheet(opts.Sheet); err != nil {
		return t, err
	}
	if opts.Sheet == "" && len(book.sheets) > 1 {
		t.faults.Warn("", len(book.sheets)-1, "the workbook has %d sheets, and %s is read", len(book.sheets), quotedSheet(t.ref.name))
	}
	if t.merged, err = book.merges(t.ref); err != nil {
		return t, err
	}
	if t.sheet, err = book.openSheet(t.ref); err != nil {
		return t, err
	}
	for {
		if err := t.next(); err == io.EOF {
			if opts.Header > 0 {
				return t, fault.New(fault.NotFound, "xlsx", "the sheet has no header in row %d", opts.Header).On(quotedSheet(t.ref.name))
			}
			return t, t.end()
		} else if err != nil {
			return t, err
		}
		if opts.Header > t.row {
			continue
		}
		if opts.Header > 0 && t.row > opts.Header {
			return t, fault.New(fault.NotFound, "xlsx", "the sheet has no header in row %d", opts.Header).On(quotedSheet(t.ref.name))
		}
		return t, t.readHeader()
	}
}

// end checks that all merged ranges were found before the rows were read.
func (t *table) end() error {
	if t.merges != len(t.merged.spans) {
		return t.bad("%d merged ranges, where %d were found before", t.merges, len(t.merged.spans))
	}
	return nil
}

func (t *table) readHeader() error {
	n := t.cells[len(t.cells)-1].column + 1
	row := t.row
	if err := t.merged.enter(row, n, t.cells); err != nil {
		return err
	}
	t.arrange(n)
	names := make([]string, n)
	for i := range t.cellsOf {
		switch c := &t.cellsOf[i]; {
		case c.column < 0:
		case c.kind == text, c.kind == number && c.style == plain:
			names[i] = c.text
		default:
			t.faults.Add(fault.New(fault.Invalid, "", "%s, want the name of a column", c.what()), place(t.ref.name, row, i))
		}
	}
	t.header = tabular.ParseHeader(names, func(i int) string { return place(t.ref.name, row, i) }, t.faults)
	return t.faults.Err()
}

// bind sets the columns of the sheet that are read, each with what messages call it.
func (t *table) bind(bound []int, label func(k int) string) {
	t.bound = bound
	t.places = make([]string, len(bound))
	for i, k := range bound {
		if k >= 0 {
			t.places[i] = ", " + label(k)
		}
	}
	if t.opts.Merged != MergedError {
		return
	}
	for i := range t.merged.spans {
		s := &t.merged.spans[i]
		if s.bottom < t.row || s.left >= len(bound) {
			continue
		}
		if slices.ContainsFunc(bound[s.left:min(s.right+1, len(bound))], func(k int) bool { return k >= 0 }) {
			t.faults.Add(fault.New(fault.Invalid, "", "merged with the cells to %s: what merged cells mean must be said, the first cell or all", cellName(s.bottom, s.right)), place(t.ref.name, s.top, s.left))
		}
	}
}

// arrange puts the cells of the row that was read into the first n columns, and applies merged ranges.
func (t *table) arrange(n int) {
	t.cellsOf = slices.Grow(t.cellsOf[:0], n)[:n]
	for i := range t.cellsOf {
		t.cellsOf[i] = cell{column: -1}
	}
	for _, c := range t.cells {
		if c.column < n {
			t.cellsOf[c.column] = c
		}
	}
	if len(t.merged.spans) == 0 {
		return
	}
	for i := range t.cellsOf {
		s := t.merged.covers(t.row, i)
		switch {
		case s == nil || s.top == t.row && s.left == i:
		case t.opts.Merged == MergedFirst || !s.has:
			t.cellsOf[i] = cell{column: -1}
		default: // also where it is an error, which was noted
			t.cellsOf[i] = s.value
		}
	}
}

// rows calls row for each row below the header that has a value in a column that is read.
func (t *table) rows(row func()) error {
	last, blanks, firstBlank := t.row, 0, 0
	for i := 1; ; i++ {
		if tabular.Every(i) {
			t.progress(i)
		}
		err := t.next()
		if err == io.EOF {
			if blanks > 0 {
				t.faults.Warn(quotedSheet(t.ref.name)+", row "+strconv.Itoa(firstBlank), blanks, "%d rows without a value between rows are left out", blanks)
			}
			return t.end()
		} else if err != nil {
			return err
		}
		if err := t.merged.enter(t.row, len(t.bound), t.cells); err != nil {
			return err
		}
		own := false
		for _, c := range t.cells {
			k := tabular.Unnamed
			if c.column < len(t.bound) {
				k = t.bound[c.column]
			} else if t.opts.IgnoreUnknown {
				k = tabular.Left
			}
			own = own || k >= 0
			if k != tabular.Unnamed {
				continue
			}
			if once := "nameless " + strconv.Itoa(c.column); !t.faults.Again(once) {
				t.faults.Once(once, fault.New(fault.Invalid, "", "%s, and the header has no name for the column", c.what()), place(t.ref.name, t.row, c.column))
			}
		}
		if !own {
			continue
		}
		if gap := t.row - last - 1; gap > 0 {
			if blanks == 0 {
				firstBlank = last + 1
			}
			blanks += gap
		}
		last = t.row
		t.arrange(len(t.bound))
		row()
	}
}

func (t *table) progress(rows int) {
	if t.opts.Progress == nil {
		return
	}
	// The part of the sheet that is done, of the bytes of the file.
	done := t.size
	if all := int64(t.ref.file.UncompressedSize64); all > t.done {
		done = int64(float64(t.size) * float64(t.done) / float64(all))
	}
	t.opts.Progress(rows, done)
}

// Read reads a sheet into the columns of a schema. All that is wrong with it is in one error, a [tabular.Errors], and then
// there are no columns.
func Read(ctx context.Context, r io.ReaderAt, size int64, s *tcb.Schema, o *Options) (columns []*tcb.Column, rows int, warnings []tabular.Warning, err error) {
	if err := s.Check(); err != nil {
		return nil, 0, nil, err
	}
	t, err := open(ctx, r, size, o)
	if err != nil {
		return nil, 0, nil, err
	}
	defer t.close()
	out := tabular.NewRows(s, &t.opts.Options)
	if t.header == nil {
		return out.Columns(), 0, t.faults.Warnings(), nil
	}
	bound, missing := t.header.Bind(s, t.opts.IgnoreUnknown, t.faults)
	if err := t.faults.Err(); err != nil {
		return nil, 0, nil, err
	}
	t.bind(bound, func(k int) string { return tabular.Label(&s.Columns[k]) })
	err = t.rows(func() {
		for i := range t.cellsOf {
			k := bound[i]
			if k < 0 {
				continue
			}
			c := &t.cellsOf[i]
			v, err := t.value(c, &s.Columns[k])
			if err == nil {
				err = out.Put(k, v)
			}
			if err != nil {
				if t.faults.Full() {
					t.faults.Count()
					continue
				}
				t.faults.Add(err, place(t.ref.name, t.row, i)+t.places[i])
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
		return nil, 0, t.faults.Warnings(), fault.Locate(err, t.opts.Name, "", 0)
	}
	if t.opts.Progress != nil {
		t.opts.Progress(out.Count(), size)
	}
	return out.Columns(), out.Count(), t.faults.Warnings(), nil
}

// value makes the cell of a table of a cell of a sheet. A column of the sheet where the row has none is -1.
func (t *table) value(c *cell, f *tcb.Field) (tabular.Cell, error) {
	out := tabular.Cell{Cell: tcb.Cell{Text: c.text}}
	if c.column < 0 {
		return out, nil
	}
	switch c.kind {
	case text:
		out.Kind, out.Quoted = tcb.CellText, c.text == ""
		return out, nil
	case truth:
		out.Kind = tcb.CellBool
		return out, nil
	case date:
		out.Kind = tcb.CellDate
		return out, nil
	case number:
		if c.style != plain {
			return t.dateValue(c, f)
		}
		out.Kind = tcb.CellNumber
		if f.Type.Element == tcb.I64 && !t.opts.LongNumbers {
			if n, ok := tcb.ParseInteger(c.text); ok && (n >= tabular.LongNumber || n <= -tabular.LongNumber) {
				return out, fault.New(fault.Invalid, "", "the number %q of 16 digits or more, of which a spreadsheet keeps 15: want the digits as text", c.text)
			}
		}
		return out, nil
	}
	return out, fault.New(fault.Invalid, "", "%s, want a value", c.what())
}

// dateValue makes a date or a span of a number that is styled as one.
func (t *table) dateValue(c *cell, f *tcb.Field) (tabular.Cell, error) {
	out := tabular.Cell{Cell: tcb.Cell{Kind: tcb.CellDate}}
	serial, err := strconv.ParseFloat(c.text, 64)
	if err != nil {
		return out, fault.New(fault.Invalid, "", "%q in a cell of numbers", c.text)
	}
	if c.style == clock && (f == nil || f.Logical != tcb.DateTime) {
		ms, ok := milliseconds(serial)
		if !ok {
			return out, fault.New(fault.Invalid, "", "the serial number %q is no span of time", c.text)
		}
		out.Text = string(tcb.AppendTimeSpan(nil, ms*(tcb.TicksPerSecond/1000)))
		return out, nil
	}
	ticks, why := dateTicks(serial, t.book.from1904)
	if why != "" {
		return out, fault.New(fault.Invalid, "", "the serial number %q %s", c.text, why)
	}
	p, err := tcb.AppendDateTime(nil, ticks)
	out.Text = string(p)
	return out, err
}

// what names the value of a cell in messages.
func (c *cell) what() string {
	short := c.text
	if len(short) > 60 {
		short = short[:60] + "…"
	}
	short = strconv.Quote(short)
	switch c.kind {
	case broken:
		return "the error " + short
	case noResult:
		return "a formula without a stored result"
	case noString:
		return "the shared string " + short + ", which the workbook does not have"
	case noText:
		return "text " + short + " with half a surrogate pair"
	case truth:
		return "a truth value " + short
	case text:
		return "text " + short
	}
	return "a number " + short
}

// Infer proposes a schema for a sheet: the narrowest type that holds every cell of a column exactly, floats to the nearest. A
// column with an empty cell is optional. Arrays are not seen: their text is a string.
func Infer(ctx context.Context, r io.ReaderAt, size int64, o *Options) (*tcb.Schema, error) {
	t, err := open(ctx, r, size, o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if t.header == nil {
		return nil, fault.New(fault.Invalid, "xlsx", "the sheet has no header").In(t.opts.Name).On(quotedSheet(t.ref.name))
	}
	bound := make([]int, len(t.header.Fields))
	for i, f := range t.header.Fields {
		switch {
		case f.Reserved:
			bound[i] = tabular.Left
		case f.Name == "" && f.Tag == 0:
			bound[i] = tabular.Unnamed
			if t.opts.IgnoreUnknown {
				bound[i] = tabular.Left
			}
		default:
			bound[i] = i
		}
	}
	t.bind(bound, func(k int) string { return strconv.Quote(t.header.Fields[k].Name) })
	guesses := make([]tabular.Guess, len(bound))
	err = t.rows(func() {
		for i := range t.cellsOf {
			if bound[i] < 0 {
				continue
			}
			v, err := t.value(&t.cellsOf[i], &tcb.Field{})
			if err == nil {
				err = guesses[i].Cell(v, &t.opts.Options, false)
			}
			if err != nil {
				t.faults.Add(err, place(t.ref.name, t.row, i)+t.places[i])
			}
		}
	})
	if err == nil {
		err = t.faults.Err()
	}
	var s *tcb.Schema
	if err == nil {
		s, err = tabular.Propose(t.header, guesses, &t.opts.Options)
	}
	return s, fault.Locate(err, t.opts.Name, "", 0)
}
