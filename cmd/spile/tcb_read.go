package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/tcb"
	"github.com/spilehq/spile/value"
)

// tableReport is what info prints of a table. Rows and columns of an encrypted file are not known without its key.
type tableReport struct {
	File      string `json:"file"`
	Format    string `json:"format"`
	Version   int    `json:"version"`
	Size      int64  `json:"size"`
	Rows      *int   `json:"rows,omitempty"`
	Columns   *int   `json:"columns,omitempty"`
	Encrypted bool   `json:"encrypted"`
	Signed    bool   `json:"signed"`
	Verified  bool   `json:"verified"`
	Counts    bool   `json:"counts,omitempty"` // the descriptors have the obsolete count
}

// tableInfo prints what a table is.
func (e *env) tableInfo(t *table, out *tableFlags) error {
	p := t.protection
	r := tableReport{
		File: t.obj.Name(), Format: "tcb", Version: tcb.Version, Size: t.obj.Size(),
		Encrypted: p.Encrypted, Signed: p.Signed, Verified: p.Verified,
	}
	if t.Table != nil {
		rows, columns := t.Rows(), len(t.Columns())
		r.Rows, r.Columns, r.Counts = &rows, &columns, t.HasCounts()
	}
	if out.asJSON() {
		return e.printJSON(r, out)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(e.out, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	count := func(n *int) string {
		if n == nil {
			return "not known without the key"
		}
		return strconv.Itoa(*n)
	}
	row("file", "%s", fault.OneLine(r.File))
	row("format", "tcb")
	row("version", "%d", tcb.Version)
	row("size", "%d", r.Size)
	row("rows", "%s", count(r.Rows))
	row("columns", "%s", count(r.Columns))
	switch {
	case !p.Encrypted:
		row("encrypted", "no")
	case t.Table == nil:
		row("encrypted", "yes, and there is no key to read it")
	default:
		row("encrypted", "yes")
	}
	switch {
	case !p.Signed:
		row("signed", "no")
	case p.Verified:
		row("signed", "yes, verified")
	default:
		row("signed", "yes, not verified")
	}
	if r.Counts {
		row("counts", "each descriptor has one, as in an old description of the format")
	}
	return nil
}

// columnRow is a line of ls.
type columnRow struct {
	Path     string `json:"path"`
	Key      string `json:"key"`
	Kind     string `json:"kind"` // the type
	Length   int    `json:"length"`
	Bytes    int64  `json:"bytes"`
	Tag      int32  `json:"tag"`
	Encoding string `json:"encoding"`
}

// tableLs lists the columns of a table, or one of them.
func (e *env) tableLs(ctx context.Context, t *table, path string, out *tableFlags) error {
	c, err := t.find(path)
	if err != nil {
		return err
	}
	if c.rows != nil {
		return fault.New(fault.Invalid, "", "ls lists the columns of a table; get prints rows").On(path).In(t.Name())
	}
	if err := t.stored(c.column, path); err != nil {
		return err
	}
	list := &jsonArray{e: e, pretty: out.pretty}
	if !out.asJSON() {
		fmt.Fprintf(e.out, "%-11s %10s %14s %-14s %s\n", "TYPE", "ROWS", "BYTES", "ENCODING", "PATH")
	}
	for _, d := range t.Columns() {
		if err := ctx.Err(); err != nil {
			return named(err, t.Name())
		}
		if c.column != 0 && d.Tag != c.column {
			continue
		}
		f := t.field(d)
		r := columnRow{t.columnPath(d.Tag), t.name(d.Tag), f.TypeText(), t.Rows(), d.Size, d.Tag, d.Encoding.String()}
		if !out.asJSON() {
			if _, err := fmt.Fprintf(e.out, "%-11s %10d %14d %-14s %s\n", r.Kind, r.Length, r.Bytes, r.Encoding, r.Path); err != nil {
				return err
			}
		} else if err := list.add(r); err != nil {
			return err
		}
	}
	if out.asJSON() {
		return list.end("\n")
	}
	return nil
}

// tableDu shows what the columns take.
func (e *env) tableDu(ctx context.Context, t *table, path string, out *tableFlags) error {
	c, err := t.find(path)
	if err != nil {
		return err
	}
	if c.rows != nil {
		return fault.New(fault.Invalid, "", "the bytes of a table are those of its columns, rows have none of their own").On(path).In(t.Name())
	}
	if err := t.stored(c.column, path); err != nil {
		return err
	}
	size := t.obj.Size()
	r := &duReport{Path: path, Total: size, Other: size, Children: []duRow{}}
	for _, d := range t.Columns() {
		if err := ctx.Err(); err != nil {
			return named(err, t.Name())
		}
		if c.column == 0 || d.Tag == c.column {
			r.Children = append(r.Children, duRow{t.columnPath(d.Tag), d.Size})
			r.Other -= d.Size
		}
	}
	if c.column != 0 {
		r.Total, r.Other = r.Children[0].Bytes, 0
	}
	slices.SortStableFunc(r.Children, func(a, b duRow) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if out.asJSON() {
		return e.printJSON(r, out)
	}
	for _, c := range r.Children {
		if _, err := fmt.Fprintf(e.out, "%14d %6s  %s\n", c.Bytes, share(c.Bytes, r.Total), c.Path); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return named(err, t.Name())
		}
	}
	fmt.Fprintf(e.out, "%14d %6s  %s\n", r.Other, share(r.Other, r.Total), "(header and descriptors)")
	fmt.Fprintf(e.out, "%14d %6s  %s\n", r.Total, share(r.Total, r.Total), "total")
	return nil
}

// printer prints parts of a table as JSON.
type printer struct {
	e       *env
	ctx     context.Context
	rows    *tcb.Rows
	columns []*tcb.Column
	pretty  bool
	buf     []byte
}

// printer reads the columns, one when it has a tag, and prepares to print them.
func (e *env) printer(ctx context.Context, t *table, tag int32, out *jsonFlags, losses *value.Losses) (*printer, error) {
	var tags []int32
	if tag != 0 {
		tags = []int32{tag}
	}
	columns, err := t.Read(ctx, tags...)
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		if _, err := t.Read(ctx); err != nil { // the limit of rows
			return nil, err
		}
	}
	return e.printerOf(ctx, t, columns, out, losses), nil
}

// printerOf prepares to print columns.
func (e *env) printerOf(ctx context.Context, t *table, columns []*tcb.Column, out *jsonFlags, losses *value.Losses) *printer {
	return &printer{
		e: e, ctx: ctx, columns: columns, pretty: out.Pretty,
		rows: tcb.NewRows(columns, t.schema, &tcb.RowOptions{JSON: out.JSONOptions, Losses: losses, Labels: t.labels}),
	}
}

// tableCat prints the rows of a table, a line each.
func (e *env) tableCat(ctx context.Context, t *table, out *jsonFlags) error {
	var losses value.Losses
	p, err := e.printer(ctx, t, 0, out, &losses)
	if err != nil {
		return err
	}
	for i := range t.Rows() {
		if err := p.row(i); err != nil {
			return named(err, t.Name())
		}
		if err := p.line(); err != nil {
			return err
		}
	}
	e.losses(t.Name(), &losses)
	e.leftOut(t)
	return nil
}

// tableGet prints what the paths name, each as a line of JSON.
func (e *env) tableGet(ctx context.Context, t *table, paths []string, out *jsonFlags) error {
	var losses value.Losses
	printers := e.printersOf(ctx, t, paths, out, &losses)
	all := false
	for _, path := range paths {
		c, err := t.find(path)
		if err != nil {
			return err
		}
		p := printers[c.column]
		if p == nil {
			if p, err = e.printer(ctx, t, c.column, out, &losses); err != nil {
				return err
			}
			if c.column == 0 { // all columns are not read again
				printers[0] = p
			}
		}
		all = all || c.column == 0
		if err := p.cells(t, c); err != nil {
			return named(fault.Locate(err, t.Name(), path, 0), t.Name())
		}
		if err := p.line(); err != nil {
			return err
		}
		if err := e.out.Flush(); err != nil {
			return err
		}
	}
	e.losses(t.Name(), &losses)
	if all {
		e.leftOut(t)
	}
	return nil
}

// printersOf reads the columns of several paths together, each once, and prepares to print each of them, by their tags, and
// all as 0 where a path wants that. What cannot be read together, because one of them is bad or they are too much at once, is
// not among them: each path then has what it would have by itself.
func (e *env) printersOf(ctx context.Context, t *table, paths []string, out *jsonFlags, losses *value.Losses) map[int32]*printer {
	printers := make(map[int32]*printer)
	if len(paths) < 2 {
		return printers
	}
	wanted := make(map[int32]bool)
	for _, path := range paths {
		if c, err := t.find(path); err == nil {
			wanted[c.column] = true
		}
	}
	all := wanted[0]
	var tags []int32 // none: all
	if !all {
		tags = slices.Sorted(maps.Keys(wanted))
	}
	if len(wanted) == 0 {
		return printers
	}
	columns, err := t.Read(ctx, tags...)
	if err != nil || len(columns) == 0 {
		return printers
	}
	for _, c := range columns {
		if wanted[c.Tag] {
			printers[c.Tag] = e.printerOf(ctx, t, []*tcb.Column{c}, out, losses)
		}
	}
	if all {
		printers[0] = e.printerOf(ctx, t, columns, out, losses)
	}
	return printers
}

// cells appends what a path names.
func (p *printer) cells(t *table, c cells) error {
	one := func(i int) (err error) {
		switch {
		case c.column == 0:
			return p.row(i)
		case c.element != "":
			_, err := p.element(c.element, i)
			return err
		}
		p.buf, err = p.rows.AppendCell(p.buf, 0, i)
		return err
	}
	switch {
	case c.element != "" && c.one:
		n, err := p.element(c.element, c.rows[0])
		if err == nil && n >= 0 {
			err = fault.New(fault.NotFound, "", "element %s of %d", c.element, n)
		}
		return err
	case c.one:
		return one(c.rows[0])
	}
	n := len(c.rows)
	if c.rows == nil {
		n = t.Rows()
	}
	p.buf = append(p.buf, '[')
	for k := range n {
		if k > 0 {
			p.buf = append(p.buf, ',')
		}
		i := k
		if c.rows != nil {
			i = c.rows[k]
		}
		if err := one(i); err != nil {
			return err
		}
		if !p.pretty {
			if err := p.spill(); err != nil {
				return err
			}
		}
	}
	p.buf = append(p.buf, ']')
	return nil
}

// element appends an element of row i, or null and how many there are where it has no such.
func (p *printer) element(element string, i int) (missing int, err error) {
	start, end := p.columns[0].Span(i)
	at, _, _ := rowsOf(element, end-start)
	if len(at) != 1 {
		p.buf = append(p.buf, "null"...)
		return end - start, nil
	}
	p.buf, err = p.rows.AppendElement(p.buf, 0, i, start+at[0])
	return -1, err
}

func (p *printer) row(i int) (err error) {
	p.buf, err = p.rows.Append(p.buf, i)
	return err
}

// spill gives what is there to the output when it is much.
func (p *printer) spill() error {
	if len(p.buf) < 32<<10 {
		return nil
	}
	_, err := p.e.out.Write(p.buf)
	p.buf = p.buf[:0]
	if err == nil {
		err = p.ctx.Err()
	}
	return err
}

// line ends a line.
func (p *printer) line() error {
	if p.pretty {
		text, err := json.MarshalIndent(json.RawMessage(p.buf), "", "  ")
		if err != nil {
			return err
		}
		p.buf = append(p.buf[:0], text...)
	}
	p.buf = append(p.buf, '\n')
	_, err := p.e.out.Write(p.buf)
	p.buf = p.buf[:0]
	if err == nil {
		err = p.ctx.Err()
	}
	return err
}

// tableVerify reports what is wrong with a table.
func (e *env) tableVerify(ctx context.Context, t *table, deep bool, found func(*fault.Error)) error {
	if t.named {
		e.schemaNotes(ctx, t)
	}
	var limit error // what the limits keep from being looked at is no fault of the file
	err := t.Verify(ctx, &tcb.VerifyOptions{Deep: deep}, func(f tcb.Finding) {
		line := strings.TrimPrefix(newFinding(f.Err).line(t.Name()), fault.OneLine(t.Name())+": ")
		switch {
		case f.Note:
			e.say("%s: note: %s", t.Name(), line)
		case !errors.Is(f.Err, fault.Limit):
			found(f.Err)
		case limit == nil:
			limit = f.Err
		default:
			e.say("%s: not looked at: %s", t.Name(), line)
		}
	})
	return cmp.Or(err, limit)
}

// schemaNotes says what a reader with the schema makes of the file that the file does not say.
func (e *env) schemaNotes(ctx context.Context, t *table) {
	note := func(f *tcb.Field, format string, args ...any) {
		e.say("%s: note: %s: %s", t.Name(), tabular.Label(f), fmt.Sprintf(format, args...))
	}
	for i := range t.schema.Columns {
		if ctx.Err() != nil { // the verification says so
			return
		}
		f := &t.schema.Columns[i]
		d, ok := t.Lookup(f.Tag)
		switch {
		case !ok && f.Type.Optional:
			note(f, "the file does not have it, and it reads as absent")
		case !ok:
			note(f, "the file does not have it, and it reads as empty")
		case d.Type != f.Type:
			note(f, "the file has %s, which reads as %s", d.Type, f.TypeText())
		case f.Labels != nil:
			if columns, err := t.Read(ctx, f.Tag); err == nil { // else --deep says what is wrong with it
				if text := unlabelled(columns[0], f); text != "" {
					note(f, "%s", text)
				}
			}
		}
	}
}

// unlabelled says how many numbers of an enumeration have no label, "" when all have one.
func unlabelled(c *tcb.Column, f *tcb.Field) string {
	known := make(map[int32]bool, len(f.Labels))
	for _, n := range f.Labels {
		known[n] = true
	}
	count, first := 0, ""
	for i := range c.Rows {
		if !c.Has(i) {
			continue
		}
		start, end := c.Span(i)
		for j := start; j < end; j++ {
			if n := c.Int32s[j]; c.HasElement(j) && !known[n] {
				if count++; count == 1 {
					first = fmt.Sprintf("%d in row %d", n, i)
				}
			}
		}
	}
	switch count {
	case 0:
		return ""
	case 1:
		return "a number has no label in the schema, " + first
	}
	return fmt.Sprintf("%d numbers have no label in the schema, the first is %s", count, first)
}

// paths are the paths of the columns that begin with word.
func (t *table) paths(word string) (out []string) {
	row, _, ok := strings.Cut(word, "/")
	if !ok {
		row = "*"
	}
	for _, d := range t.Columns() {
		path := pathText(msglc.Path{msglc.TextStep(row), msglc.TextStep(t.name(d.Tag))})
		if strings.HasPrefix(path, word) {
			out = append(out, path)
		}
	}
	return out
}
