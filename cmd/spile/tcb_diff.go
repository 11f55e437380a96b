package main

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

func newTableDiff(e *env) *cobra.Command {
	d := &tableDiff{env: e}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW [--key COLUMN] [flags]",
		Short: "Compare two tables, cell by cell",
		Long: `Diff prints which rows were added, removed and changed between two tables, and in changed rows each cell. OLD and NEW
are tables (tcb), CSV, XLSX or JSON Lines, in any mix. With --key, rows are the same that have the same value in that
column; without, those with the same number.

Names and types come from --schema. Without it those of text are guessed, and a table has its tags alone: then a header
with tags, as "hp@7", tells which columns are the same.

The exit status is 0 also when the two differ; --exit-code makes that 1. To let git show changes of tables, see the guide
to tables.`,
		Example: `  printf 'id,hp\n1,10\n2,20\n' > old.csv
  printf 'id,hp\n2,25\n3,30\n' > new.csv
  spile table diff old.csv new.csv --key id`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeFiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format := cmd.Flags().Lookup("output-format"); d.json && format.Changed && d.form != diffJSON {
				return usagef("--json and --output-format %s: which one?", format.Value)
			}
			return d.run(cmd.Context(), args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&d.key, "key", "", "the `COLUMN` whose value says which rows are the same")
	flags.Var(&choice[diffForm]{&d.form, []string{"text", "json", "markdown"}, []diffForm{diffText, diffJSON, diffMarkdown}}, "output-format", "how differences are printed")
	flags.BoolVar(&d.json, "json", false, "print one JSON document")
	flags.IntVar(&d.maxRows, "max-changes", 0, "print `N` rows that differ, and count the others (all)")
	flags.BoolVar(&d.exitCode, "exit-code", false, "end with status 1 when the tables differ")
	d.in.addTables(flags)
	d.in.tables.addLabels(flags)
	d.text.add(flags)
	// The error is of a flag that does not exist, or has a completion.
	_ = cmd.RegisterFlagCompletionFunc("key", func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		return d.keys(ctx, args), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

type diffForm uint8

const (
	diffText diffForm = iota
	diffJSON
	diffMarkdown
)

// tableDiff is a run of table diff.
type tableDiff struct {
	*env
	in       sourceFlags
	text     textFlags
	key      string
	form     diffForm
	json     bool
	maxRows  int
	exitCode bool
}

// side is OLD or NEW.
type side struct {
	name   string
	obj    source.Object
	table  *table     // of a TCB file
	text   *textTable // of any other
	schema *tcb.Schema
}

func (d *tableDiff) run(ctx context.Context, oldFile, newFile string) error {
	if d.maxRows < 0 {
		return usagef("--max-changes %d, want 0 or more", d.maxRows)
	}
	if _, _, err := d.text.options(""); err != nil {
		return err
	}
	if err := d.in.tables.check(); err != nil {
		return err
	}
	d.text.maxDecoded = d.in.tables.maxDecoded
	names, err := readSchema(d.in.tables.schema)
	if err != nil {
		return err
	}
	var sides [2]*side
	for i, file := range []string{oldFile, newFile} {
		if sides[i], err = d.open(ctx, file); err != nil {
			return err
		}
		defer sides[i].obj.Close()
	}
	var formats []textFormat
	for _, s := range sides {
		if s.text != nil {
			formats = append(formats, s.text.format)
		}
	}
	if err := d.text.unused(formats...); err != nil {
		return err
	}
	defer d.progress(ctx, "table diff")()
	if err := d.schemas(ctx, names, sides[0], sides[1]); err != nil {
		return err
	}
	var snapshots [2]tcb.Snapshot
	for i, s := range sides {
		if snapshots[i], err = d.read(ctx, s); err != nil {
			return err
		}
	}
	// Columns of two texts go by their names when neither has tags of its own: then tags are numbers in order.
	byName := names == nil && sides[0].text != nil && sides[1].text != nil
	diff, err := tcb.Diff(snapshots[0], snapshots[1], &tcb.DiffOptions{Key: d.key, ByName: byName, Labels: d.in.tables.labels})
	if err != nil {
		if errors.Is(err, fault.NotFound) && names == nil && (sides[0].table != nil || sides[1].table != nil) {
			return advised{err, "names need --schema, without it columns go by their tags"}
		}
		return err
	}
	switch {
	case d.json || d.form == diffJSON:
		err = diff.WriteJSON(d.out, d.maxRows)
	case d.form == diffMarkdown:
		err = diff.WriteMarkdown(d.out, d.maxRows)
	default:
		err = diff.WriteText(d.out, d.maxRows)
	}
	if err == nil && d.exitCode && !diff.None() {
		if err = d.out.Flush(); err == nil {
			err = silent{errors.New("the tables differ")}
		}
	}
	return err
}

// open opens a side by its content.
func (d *tableDiff) open(ctx context.Context, file string) (*side, error) {
	obj, err := d.object(ctx, file, &d.in)
	if err != nil {
		return nil, err
	}
	s := &side{name: obj.Name(), obj: obj}
	head, err := headOf(ctx, obj, 0, 4)
	switch {
	case err != nil:
	case string(head) == "TCB\x00":
		s.table, err = d.openTable(ctx, obj, d.in.tables)
	default:
		if obj, err = local(ctx, obj); err != nil {
			return nil, err
		}
		s.obj = obj
		s.text, err = openText(ctx, obj, &d.text)
	}
	if err != nil {
		obj.Close()
		err = named(err, obj.Name())
		if tcb.Check(err) == "O4" {
			err = advised{err, "where one side is not signed, sign it by spile table seal, or diff without the MAC key what spile table open has checked"}
		}
		return nil, err
	}
	return s, nil
}

// keys are the names of the columns of the first file that can be a key.
func (d *tableDiff) keys(ctx context.Context, args []string) (out []cobra.Completion) {
	if len(args) == 0 || isURL(args[0]) {
		return nil
	}
	s, err := d.open(ctx, args[0])
	if err != nil {
		return nil
	}
	defer s.obj.Close()
	schema, err := readSchema(d.in.tables.schema)
	switch {
	case err != nil:
		return nil
	case s.table != nil:
		schema = s.table.schema
	case schema == nil && s.obj.Size() > completeSize:
		return nil
	case schema == nil:
		if schema, err = s.text.infer(ctx, nil); err != nil {
			return nil
		}
	}
	for _, f := range schema.Columns {
		if f.Type.Kind == tcb.Scalar && !f.Type.Optional {
			out = append(out, tabular.Name(&f))
		}
	}
	return out
}

// schemas gives each side its schema.
func (d *tableDiff) schemas(ctx context.Context, names *tcb.Schema, a, b *side) error {
	for _, s := range []*side{a, b} {
		switch {
		case a.table != nil && b.table != nil:
			s.schema = s.table.own
		case s.table != nil:
			s.schema = s.table.schema
		case names != nil:
			s.schema = names
		case s.obj.Size() == 0:
			s.schema = &tcb.Schema{}
		default:
			var err error
			if s.schema, err = s.text.infer(ctx, d.env); err != nil {
				return d.each(named(err, s.name))
			}
		}
	}
	if names != nil || a.text == nil && b.text == nil {
		return nil
	}
	// A guess is made of values, and what holds those of one side may not hold those of the other.
	others := byTag(b.schema)
	byName := make(map[string]*tcb.Field, len(others))
	for i := range b.schema.Columns {
		byName[b.schema.Columns[i].Name] = &b.schema.Columns[i]
	}
	for i := range a.schema.Columns {
		f := &a.schema.Columns[i]
		g := others[f.Tag]
		if a.table == nil && b.table == nil {
			g = byName[f.Name]
		}
		if g == nil {
			continue
		}
		switch {
		case a.table != nil:
			f.Name, f.Logical = g.Name, g.Logical
			setKind(g, f)
		case b.table != nil:
			g.Name, g.Logical = f.Name, f.Logical
			setKind(f, g)
		default:
			joinTypes(f, g)
		}
	}
	return nil
}

// setKind gives a guessed column the type of the one in a table, except that a number of ticks stays the date that it was
// guessed from.
func setKind(guess, known *tcb.Field) {
	if known.Type.Element == tcb.I64 && guess.Logical != tcb.Number {
		known.Logical = guess.Logical
	}
	guess.Type = known.Type
	if known.Type.Element != tcb.I64 {
		guess.Logical, known.Logical = tcb.Number, tcb.Number
	}
}

// joinTypes gives two guessed columns the type that holds the values of both.
func joinTypes(f, g *tcb.Field) {
	optional := f.Type.Optional || g.Type.Optional
	t, logical := tcb.Type{Element: tcb.String}, tcb.Number
	rank := []tcb.Element{tcb.I32, tcb.I64}
	switch i, k := slices.Index(rank, f.Type.Element), slices.Index(rank, g.Type.Element); {
	case f.Type.Kind != g.Type.Kind:
		return
	case f.Type.Element == g.Type.Element && f.Logical == g.Logical:
		t, logical = f.Type, f.Logical
	case f.Logical != tcb.Number || g.Logical != tcb.Number:
	case i >= 0 && k >= 0:
		t.Element = rank[max(i, k)]
	case f.Type.Element == tcb.F64 && k == 0 || g.Type.Element == tcb.F64 && i == 0:
		t.Element = tcb.F64
	}
	t.Kind, t.ElementOptional = f.Type.Kind, f.Type.ElementOptional || g.Type.ElementOptional
	t.Optional = optional
	f.Type, f.Logical = t, logical
	g.Type, g.Logical = t, logical
}

// read reads a side.
func (d *tableDiff) read(ctx context.Context, s *side) (tcb.Snapshot, error) {
	if s.table != nil {
		// Of two tables the types are compared as well, so that they stay those of the files.
		read := s.table.Table.Read
		var tags []int32
		if s.schema != s.table.own {
			read = s.table.Read
			for _, c := range s.table.Columns() {
				tags = append(tags, c.Tag)
			}
		}
		columns, err := read(ctx, tags...)
		return tcb.Snapshot{Name: s.name, Columns: columns, Schema: s.schema}, named(err, s.name)
	}
	columns, _, err := s.text.read(ctx, d.env, s.schema)
	if err != nil {
		return tcb.Snapshot{}, d.each(named(err, s.name))
	}
	return tcb.Snapshot{Name: s.name, Columns: columns, Schema: s.schema}, nil
}

// quotedName is the name of a column in a message.
func quotedName(name string) string {
	if name == "-" {
		return name
	}
	return strconv.Quote(fault.OneLine(name))
}
