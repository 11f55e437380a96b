package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// reportForm is how findings are printed.
type reportForm uint8

const (
	textForm reportForm = iota
	jsonForm
	sarifForm
)

// direction is whose readers matter.
type direction uint8

const (
	bothWays direction = iota
	oldReadsNew
	newReadsOld
)

func (d direction) has(one direction) bool { return d == bothWays || d == one }

// compatFlags are the flags of table compat.
type compatFlags struct {
	baseline  string
	accept    []string
	update    bool
	direction direction
	form      reportForm
	out       tableFlags
	keyFlags
}

func (f *compatFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.baseline, "baseline", "", "check schemas against the baseline in this `FILE`")
	flags.StringArrayVar(&f.accept, "accept", nil, "acknowledge the change of a column, `Table.Column`, for this run; once for each")
	flags.BoolVar(&f.update, "update", false, "replace the baseline by the new state, where there is no problem")
	flags.Var(&choice[direction]{
		&f.direction, []string{"both", "old-reads-new", "new-reads-old"}, []direction{bothWays, oldReadsNew, newReadsOld},
	}, "direction", "whose readers matter, of OLD and NEW")
	flags.Var(&choice[reportForm]{
		&f.form, []string{"text", "json", "sarif"}, []reportForm{textForm, jsonForm, sarifForm},
	}, "output-format", "how findings are printed")
	f.out.add(flags)
	f.keyFlags.add(flags)
}

// check looks at the flags and the arguments together.
func (f *compatFlags) check(flags *pflag.FlagSet, args []string) error {
	switch {
	case f.out.json && flags.Changed("output-format") && f.form != jsonForm:
		return usagef("--json and --output-format %s do not go together", flags.Lookup("output-format").Value)
	case f.baseline == "-":
		return usagef("--baseline names a file, which --update replaces; it cannot be standard input")
	case flags.Changed("baseline") && f.baseline == "":
		return usagef("--baseline \"\" names no file")
	case f.baseline != "" && flags.Changed("direction"):
		return usagef("--direction goes with OLD and NEW, not with --baseline: that one is about deployed readers")
	case f.baseline == "" && (len(f.accept) > 0 || f.update):
		return usagef("--accept and --update go with --baseline")
	case f.baseline == "" && len(args) != 2:
		return usagef("compat takes OLD and NEW, got %s; or --baseline FILE with the schemas of all tables", count(len(args), "argument"))
	}
	for _, a := range f.accept {
		if table, column, ok := strings.Cut(a, "."); !ok || table == "" || column == "" {
			return usagef("--accept %q, want Table.Column", a)
		}
	}
	if f.out.json || f.out.pretty && f.form == textForm {
		f.form = jsonForm
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func newTableCompat(e *env) *cobra.Command {
	var f compatFlags
	cmd := &cobra.Command{
		Use:   "compat {OLD NEW | --baseline FILE SCHEMA...} [flags]",
		Short: "Find what deployed readers do not survive",
		Long: `Compat compares schemas, before data is written that a deployed reader refuses, or misreads.

With OLD and NEW, each a schema or a table, it prints for each tag what a reader of the old schema makes of new data,
and a reader of the new one of old data: it reads the column, widens its values, skips it, finds it empty, refuses it,
or misreads it, which is the worst, as nothing says so: labels of an enumeration that have other numbers, a date that
became a span. --direction looks at one of the two alone. What may be wrong, such as a tag that has another name, or
schemas that name two tables, is a warning on standard error.

With --baseline it checks the schemas of all tables against the record of the last state that was released. A tag that
was ever used stays what it was; a column is deleted by moving it to the "reserved" of its schema. --accept lets one
change pass. A tag that has another name passes with a warning: the column is renamed, or two have exchanged their tags. --update replaces the record, where there is no problem; without it nothing is written. A table that is not
among the schemas has vanished, and can come back with new tags only. The table is the one that the schema names, or
else the name of its file, without the extension.

The exit status is 0 when there is no problem, and 1 when there is one; all of them are printed.`,
		Example: `  echo '{"table":"Item","columns":[{"tag":1,"name":"id","type":"i32"}]}' > item.json
  spile table compat --baseline baseline.json --update item.json`,
		Args:              arguments(1, -1),
		ValidArgsFunction: completeFiles(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags(), args); err != nil {
				return err
			}
			if f.baseline != "" {
				return e.checkBaseline(cmd.Context(), args, &f)
			}
			return e.compareSchemas(cmd.Context(), args[0], args[1], &f)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// fileSchema is the schema that a file is or carries.
type fileSchema struct {
	*tcb.Schema
	stated bool          // it names its table itself, not by the name of the file
	lines  map[int32]int // of the tags, where it is a text
}

// schemaOf reads a FILE argument that is a schema, or a table that carries one; its content tells which.
func (e *env) schemaOf(ctx context.Context, file string, keys tcb.Keys) (*fileSchema, error) {
	obj, err := e.object(ctx, file, &sourceFlags{})
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	head, err := headOf(ctx, obj, 0, 4)
	if err != nil {
		return nil, err
	}
	s := &fileSchema{}
	if string(head) == "TCB\x00" {
		t, err := tcb.Open(ctx, obj, &tcb.Options{Keys: keys})
		if err != nil {
			return nil, err
		}
		if s.Schema, err = t.Schema(); err != nil {
			return nil, err
		}
	} else {
		text, err := readAll(ctx, obj)
		if err == nil {
			s.Schema, err = tcb.ParseSchema(text)
		}
		if err != nil {
			return nil, named(err, obj.Name())
		}
		s.lines = tagLines(text)
	}
	s.stated = s.Table != ""
	if !s.stated && file != "-" {
		s.Table = tableName(obj.Name())
	}
	return s, nil
}

// tableName is the table that a file is named after: Item of data/Item.json.
func tableName(path string) string {
	base := filepath.Base(path)
	if stem := strings.TrimSuffix(base, filepath.Ext(base)); stem != "" {
		return stem
	}
	return base
}

// tagLines are the lines, from 1, on which the columns of a schema begin. The text has been parsed.
func tagLines(text []byte) map[int32]int {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	lines := make(map[int32]int)
	d := json.NewDecoder(bytes.NewReader(text))
	line, counted := 1, 0
	d.Token() // {
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return lines
		}
		if !strings.EqualFold(name, "columns") {
			var other json.RawMessage
			if d.Decode(&other) != nil {
				return lines
			}
			continue
		}
		if start, _ := d.Token(); start != json.Delim('[') {
			return lines
		}
		for d.More() {
			start := int(d.InputOffset())
			start += bytes.IndexByte(text[start:], '{') // blanks and a comma are between
			var column struct{ Tag int32 }
			if d.Decode(&column) != nil || start < counted {
				return lines
			}
			line += bytes.Count(text[counted:start], []byte("\n"))
			counted = start
			lines[column.Tag] = line
		}
		d.Token() // ]
	}
	return lines
}

// schemas reads all of files, and says of each that cannot be read why.
func (e *env) schemas(ctx context.Context, f *compatFlags, files ...string) ([]*fileSchema, error) {
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	out := make([]*fileSchema, len(files))
	var failed error
	for i, file := range files {
		var err error
		out[i], err = e.schemaOf(ctx, file, keys)
		var wrong usageError
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.As(err, &wrong):
			return nil, err
		default:
			e.say("%s", message(err))
			failed = silent{err}
		}
	}
	return out, failed
}

// comparison is what compat prints of two schemas.
type comparison struct {
	Old        string       `json:"old"`
	New        string       `json:"new"`
	Compatible bool         `json:"compatible"`
	Columns    []comparedTo `json:"columns"`
	Warnings   []string     `json:"warnings,omitempty"` // of the tables
}

type comparedTo struct {
	Tag         int32    `json:"tag"`
	Name        string   `json:"name,omitempty"`
	Old         string   `json:"old,omitempty"` // types
	New         string   `json:"new,omitempty"`
	OldReadsNew *outcome `json:"oldReadsNew,omitempty"`
	NewReadsOld *outcome `json:"newReadsOld,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

type outcome struct {
	Verdict string   `json:"verdict"`
	Why     []string `json:"why,omitempty"`
}

func (e *env) compareSchemas(ctx context.Context, old, cur string, f *compatFlags) error {
	schemas, err := e.schemas(ctx, f, old, cur)
	if err != nil {
		return err
	}
	columns := tcb.Compare(schemas[0].Schema, schemas[1].Schema)
	var warnings []string
	if a, b := schemas[0], schemas[1]; a.stated && b.stated && a.Table != b.Table {
		warnings = append(warnings, fmt.Sprintf("%s is of the table %s, %s of the table %s: no reader of one is given a file of the other", old, a.Table, cur, b.Table))
	}
	ok := true
	for i := range columns {
		c := &columns[i]
		ok = ok && (c.OldReadsNew.OK() || !f.direction.has(oldReadsNew)) && (c.NewReadsOld.OK() || !f.direction.has(newReadsOld))
	}
	switch f.form {
	case jsonForm:
		r := compared(old, cur, columns, ok, f.direction)
		r.Warnings = warnings
		err = e.printJSON(r, &f.out)
	case sarifForm:
		err = e.printJSON(comparedSARIF(cur, schemas[1], columns, warnings, f.direction), &f.out)
	default:
		err = e.printCompared(columns, warnings, f.direction)
	}
	if err != nil {
		return err
	}
	if !ok {
		return silentAfter(e, fault.Conflict)
	}
	return nil
}

// silentAfter ends with an error of which the result tells.
func silentAfter(e *env, err error) error {
	if flushed := e.out.Flush(); flushed != nil {
		return flushed
	}
	return silent{err}
}

func compared(old, cur string, columns []tcb.ColumnCompat, ok bool, d direction) *comparison {
	r := &comparison{Old: old, New: cur, Compatible: ok, Columns: []comparedTo{}}
	for i := range columns {
		c := &columns[i]
		row := comparedTo{Tag: c.Tag, Name: nameOf(c), Old: typeOf(c.Old), New: typeOf(c.New), Warnings: c.Warnings}
		if d.has(oldReadsNew) {
			row.OldReadsNew = &outcome{c.OldReadsNew.Verdict.String(), c.OldReadsNew.Why}
		}
		if d.has(newReadsOld) {
			row.NewReadsOld = &outcome{c.NewReadsOld.Verdict.String(), c.NewReadsOld.Why}
		}
		r.Columns = append(r.Columns, row)
	}
	return r
}

// nameOf is the name of the column, the new one where it has two.
func nameOf(c *tcb.ColumnCompat) string {
	if c.New != nil && c.New.Name != "" {
		return c.New.Name
	}
	if c.Old != nil {
		return c.Old.Name
	}
	return ""
}

// typeOf is the type of a column with ? for what can be absent: "datetime?[]".
func typeOf(f *tcb.Field) string {
	if f == nil {
		return ""
	}
	return f.TypeText()
}

func (e *env) printCompared(columns []tcb.ColumnCompat, warnings []string, d direction) error {
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	line := func(tag, name, old, cur, forth, back string) {
		cells := []string{tag, name, old, cur}
		if d.has(oldReadsNew) {
			cells = append(cells, forth)
		}
		if d.has(newReadsOld) {
			cells = append(cells, back)
		}
		for i, c := range cells[:len(cells)-1] {
			if c == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	line("TAG", "COLUMN", "OLD", "NEW", "OLD READS NEW", "NEW READS OLD")
	for i := range columns {
		c := &columns[i]
		line(strconv.Itoa(int(c.Tag)), fault.OneLine(nameOf(c)), typeOf(c.Old), typeOf(c.New), fault.OneLine(c.OldReadsNew.String()), fault.OneLine(c.NewReadsOld.String()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := e.out.Flush(); err != nil { // the table comes before the warnings
		return err
	}
	for _, text := range warnings {
		e.say("warning: %s", text)
	}
	for i := range columns {
		for _, text := range columns[i].Warnings {
			e.say("warning: %s: %s", columnText(columns[i].Tag, nameOf(&columns[i])), text)
		}
	}
	return nil
}

func columnText(tag int32, name string) string {
	if name == "" {
		return fmt.Sprintf("column %d", tag)
	}
	return fmt.Sprintf("column %d (%s)", tag, name)
}

// compareRules are the rules of two schemas in a SARIF log.
var compareRules = []sarifRule{
	{"old-reader-refuses", sarifText{"A reader of the old schema refuses the column of new data"}},
	{"old-reader-misreads", sarifText{"A reader of the old schema takes values of new data for others"}},
	{"new-reader-refuses", sarifText{"A reader of the new schema refuses the column of old data"}},
	{"new-reader-misreads", sarifText{"A reader of the new schema takes values of old data for others"}},
	{"meaning", sarifText{"The column may mean something else than before"}},
	{"other-table", sarifText{"The two schemas are of different tables"}},
}

func comparedSARIF(file string, cur *fileSchema, columns []tcb.ColumnCompat, warnings []string, d direction) *sarifLog {
	log := newSARIF(compareRules)
	for _, text := range warnings {
		log.add("other-table", "warning", text, sarifPlace{file: file, table: cur.Table})
	}
	for i := range columns {
		c := &columns[i]
		name := nameOf(c)
		if name == "" {
			name = strconv.Itoa(int(c.Tag))
		}
		add := func(rule, level, text string) {
			log.add(rule, level, columnText(c.Tag, nameOf(c))+": "+text, sarifPlace{file, cur.Table, name, cur.lines[c.Tag]})
		}
		types := ": was " + typeOf(c.Old) + ", is " + typeOf(c.New)
		if out := c.OldReadsNew; !out.OK() && d.has(oldReadsNew) {
			add("old-reader-"+out.Verdict.String(), "error", "a reader of the old schema "+out.String()+types)
		}
		if out := c.NewReadsOld; !out.OK() && d.has(newReadsOld) {
			add("new-reader-"+out.Verdict.String(), "error", "a reader of the new schema "+out.String()+types)
		}
		for _, text := range c.Warnings {
			add("meaning", "warning", text)
		}
	}
	return log
}

// baselineReport is what compat prints of a check against a baseline.
type baselineReport struct {
	Baseline string            `json:"baseline"`
	Problems []baselineProblem `json:"problems"`
	Warnings []baselineProblem `json:"warnings,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
	Written  bool              `json:"written"`
}

type baselineProblem struct {
	File   string   `json:"file"`
	Table  string   `json:"table"`
	Column string   `json:"column"`
	Tag    int32    `json:"tag"`
	Rule   tcb.Rule `json:"rule"`
	Msg    string   `json:"msg"`
	Accept string   `json:"accept,omitempty"`

	line int    // of the schema, 0 where it has none
	text string // the place in the table and the message
}

func baselineProblems(found []tcb.Problem, files map[string]schemaFile) []baselineProblem {
	out := []baselineProblem{}
	for i := range found {
		p := &found[i]
		f := files[p.Table]
		out = append(out, baselineProblem{f.name, p.Table, p.Column, p.Tag, p.Rule, p.Msg, p.Accept, f.lines[p.Tag], p.String()})
	}
	return out
}

// schemaFile is where the schema of a table stands.
type schemaFile struct {
	name  string
	lines map[int32]int
}

// baselineRules are the rules of a baseline in a SARIF log.
var baselineRules = []sarifRule{
	{string(tcb.TagReused), sarifText{"The tag of a deleted column is used again"}},
	{string(tcb.ColumnsShifted), sarifText{"A column stands where another stood, in a table without tags of its own"}},
	{string(tcb.TypeChanged), sarifText{"The type of a column is another"}},
	{string(tcb.EnumRenumbered), sarifText{"Labels of an enumeration have other numbers, or numbers other labels"}},
	{string(tcb.ColumnDeleted), sarifText{"A column was deleted without a tombstone"}},
	{string(tcb.ColumnMoved), sarifText{"Columns have exchanged their tags, or only their names"}},
	{string(tcb.ColumnRenamed), sarifText{"The name of a column is another"}},
}

func (e *env) checkBaseline(ctx context.Context, files []string, f *compatFlags) error {
	path, err := localPath(f.baseline)
	if err != nil {
		return err
	}
	before, b, err := e.readBaseline(ctx, path)
	if err != nil {
		return err
	}
	schemas, err := e.schemas(ctx, f, files...)
	if err != nil {
		return err
	}
	fileOf := make(map[string]schemaFile)
	all := make([]*tcb.Schema, len(schemas))
	for i, s := range schemas {
		if s.Table == "" {
			return usagef("a schema on standard input has to name its table")
		}
		switch other, ok := fileOf[s.Table]; {
		case ok && sameFile(other.name, files[i]):
			return fault.New(fault.Conflict, "", "is given twice").In(shown(files[i]))
		case ok:
			return fault.New(fault.Conflict, "", "is of the table %s, and so is %s", s.Table, other.name).In(shown(files[i]))
		}
		fileOf[s.Table] = schemaFile{files[i], s.lines}
		all[i] = s.Schema
	}
	found, err := b.Check(all, &tcb.BaselineOptions{Accepted: f.accept})
	if err != nil {
		return err
	}
	r := &baselineReport{Baseline: f.baseline, Problems: baselineProblems(found.Problems, fileOf), Warnings: baselineProblems(found.Warnings, fileOf)}
	r.Notes = baselineNotes(before, b, found, f.update)
	if found.Next != nil && f.update {
		if r.Written, err = e.writeBaseline(ctx, path, before, found.Next); err != nil {
			return err
		}
	}
	if err := e.printBaseline(r, f); err != nil {
		return err
	}
	for _, w := range r.Warnings { // in all forms: a run that passes is not looked at
		e.say("warning: %s: %s", w.File, w.text)
	}
	for _, n := range r.Notes {
		e.say("%s: %s", f.baseline, n)
	}
	if len(r.Problems) > 0 {
		return silent{fault.Conflict}
	}
	return nil
}

// sameFile reports whether two FILE arguments are the same path.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	one, err := localPath(a)
	other, err2 := localPath(b)
	return err == nil && err2 == nil && filepath.Clean(one) == filepath.Clean(other)
}

// readBaseline reads the baseline; the text is nil when there is no file. The file is no input that the output must
// not replace.
func (e *env) readBaseline(ctx context.Context, path string) ([]byte, *tcb.Baseline, error) {
	obj, err := source.OpenFile(path)
	if errors.Is(err, fault.NotFound) {
		return nil, &tcb.Baseline{}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	obj = e.counted(obj)
	defer obj.Close()
	text, err := readAll(ctx, obj)
	if err != nil {
		return nil, nil, err
	}
	b, err := tcb.ParseBaseline(text)
	return text, b, named(err, path)
}

// maxSchema is far above what schemas and baselines take: a table of 1,000 columns has one of 100 KB.
const maxSchema = 64 << 20

// readAll returns all bytes of a schema or a baseline, not nil.
func readAll(ctx context.Context, obj source.Object) ([]byte, error) {
	if size := obj.Size(); size > maxSchema {
		return nil, fault.New(fault.Limit, "", "has %d bytes, a schema or a baseline at most %d", size, maxSchema).In(obj.Name())
	}
	text := make([]byte, obj.Size())
	return text, obj.ReadAt(ctx, text, 0)
}

// baselineNotes is what is no problem, and yet worth a line.
func baselineNotes(before []byte, b *tcb.Baseline, found *tcb.BaselineReport, update bool) (notes []string) {
	switch {
	case before == nil && !update:
		notes = append(notes, "there is no baseline yet, so nothing was compared; --update writes it")
	case before != nil && b.Version != tcb.BaselineVersion:
		version := "of version " + strconv.Itoa(b.Version)
		if b.Version == 0 {
			version = "without a BaselineVersion"
		}
		text := fmt.Sprintf("warning: a baseline %s, %d is compared; nothing was", version, tcb.BaselineVersion)
		if update {
			text += ", and it is replaced"
		} else {
			text += "; --update replaces it"
		}
		notes = append(notes, text)
	}
	for _, name := range found.Vanished {
		text := "the table " + name + " is not among the schemas: "
		switch {
		case len(found.Problems) > 0 || !update:
			text += "--update will retire its tags, and it can come back with new ones only"
		default:
			text += "its tags are retired, and it can come back with new ones only"
		}
		notes = append(notes, text)
	}
	for _, name := range found.Unused {
		notes = append(notes, "--accept "+name+" let nothing pass")
	}
	return notes
}

// writeBaseline replaces the baseline, unless it has those bytes already.
func (e *env) writeBaseline(ctx context.Context, path string, before []byte, next *tcb.Baseline) (bool, error) {
	text := next.AppendJSON(nil)
	if before != nil && slices.Equal(before, text) {
		return false, nil
	}
	return true, e.write(ctx, "compat", path, func(out output) error {
		_, err := out.Write(text)
		return err
	})
}

func (e *env) printBaseline(r *baselineReport, f *compatFlags) error {
	var err error
	switch f.form {
	case jsonForm:
		err = e.printJSON(r, &f.out)
	case sarifForm:
		log := newSARIF(baselineRules)
		for _, p := range r.Problems {
			log.add(string(p.Rule), "error", columnText(p.Tag, p.Column)+": "+p.Msg+acceptText(p.Accept), sarifPlace{p.File, p.Table, p.Column, p.line})
		}
		for _, p := range r.Warnings {
			log.add(string(p.Rule), "warning", columnText(p.Tag, p.Column)+": "+p.Msg, sarifPlace{p.File, p.Table, p.Column, p.line})
		}
		err = e.printJSON(log, &f.out)
	default:
		for _, p := range r.Problems {
			fmt.Fprintf(e.out, "%s: %s%s\n", fault.OneLine(p.File), fault.OneLine(p.text), acceptText(p.Accept))
		}
	}
	if err != nil {
		return err
	}
	return e.out.Flush()
}

func acceptText(name string) string {
	if name == "" {
		return ""
	}
	return "; --accept " + fault.OneLine(name) + " lets it pass"
}
