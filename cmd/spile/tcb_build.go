package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/tcb"
)

func newTableBuild(e *env) *cobra.Command {
	b := &tableBuild{env: e}
	cmd := &cobra.Command{
		Use:   "build --schema SCHEMA INPUT -o OUT [flags]",
		Short: "Make a table of JSON Lines, CSV or XLSX",
		Long: `Build makes a table of the rows of INPUT: JSON Lines, CSV with a header, or a sheet of an XLSX workbook. The format is
found from the content. Every value is taken exactly, or is an error with its place, what it is and what the column
takes. All errors of a run are printed, and then there is no output.

The schema says what the columns are; "name@7" in a header gives a column its tag, and "#name@7" reserves one. With
--infer a schema is proposed and printed instead, for you to review and keep.

An array in a cell of CSV or XLSX has its elements between semicolons; \; is a semicolon in an element, \0 an element
that is absent, \e an empty text. An empty cell of an optional column is absent. A number of an enumeration that has no
label in the schema is taken, with a warning.

With keys the table is sealed. --explain prints, for each column, the size that every encoding would have had.`,
		Example: `  printf 'id@1,label@2\n1,sword\n2,shield\n' > item.csv
  spile table build --infer item.csv > item.schema
  spile table build --schema item.schema item.csv -o item.tcb`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.run(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&b.schema, "schema", "", "the `FILE` with the schema, JSON")
	flags.BoolVar(&b.infer, "infer", false, "print a schema that INPUT fits, instead of a table; -o writes it to a file")
	flags.StringVarP(&b.output, "output", "o", "", "the file to write, `OUT`, - for standard output")
	b.addNoOverwrite(flags)
	flags.BoolVar(&b.explain, "explain", false, "print the size of every encoding that was tried, on standard error")
	b.text.add(flags)
	flags.Var(&b.text.maxDecoded, "max-decoded", "take up to N bytes for the shared strings of a workbook (64M and 64 times its size)")
	b.keyFlags.add(flags)
	return cmd
}

// tableBuild is a run of table build.
type tableBuild struct {
	*env
	keyFlags
	text    textFlags
	schema  string
	infer   bool
	output  string
	explain bool
}

func (b *tableBuild) run(ctx context.Context, input string) error {
	switch {
	case b.infer && b.schema != "":
		return usagef("--infer and --schema: a schema is there already")
	case b.infer && b.explain:
		return usagef("--infer makes no table that --explain could tell of")
	case b.infer && b.keyFile+b.macKeyFile != "":
		return usagef("--infer makes no table, and a schema is not sealed")
	case !b.infer && b.schema == "":
		return usagef("--schema SCHEMA is missing; --infer proposes one")
	case !b.infer && b.output == "":
		return usagef("-o OUT is missing")
	}
	if _, _, err := b.text.options(""); err != nil {
		return err
	}
	keys, err := b.keys()
	if err != nil {
		return err
	}
	schema, err := readSchema(b.schema)
	if err != nil {
		return err
	}
	obj, err := b.object(ctx, input, &sourceFlags{})
	if err == nil {
		obj, err = local(ctx, obj)
	}
	if err != nil {
		return err
	}
	defer obj.Close()
	t, err := openText(ctx, obj, &b.text)
	if err != nil {
		return named(err, obj.Name())
	}
	if err := b.text.unused(t.format); err != nil {
		return err
	}
	if b.text.maxDecoded != 0 && t.format != textXLSX {
		return usagef("--max-decoded is for xlsx, and does nothing for %s", textNames[t.format-1])
	}
	if b.infer {
		propose := func() error {
			if schema, err = t.infer(ctx, b.env); err != nil {
				return b.each(named(err, obj.Name()))
			}
			return nil
		}
		if b.output != "" {
			return b.write(ctx, "table build", b.output, func(out output) error {
				if err := propose(); err != nil {
					return err
				}
				return printSchema(out, schema)
			})
		}
		defer b.progress(ctx, "table build")()
		if err := propose(); err != nil {
			return err
		}
		return printSchema(b.out, schema)
	}
	return b.write(ctx, "table build", b.output, func(out output) error {
		columns, rows, err := t.read(ctx, b.env, schema)
		if err != nil {
			return b.each(named(err, obj.Name()))
		}
		for i := range schema.Columns {
			if f := &schema.Columns[i]; f.Labels != nil {
				if text := unlabelled(columns[i], f); text != "" {
					b.say("%s: warning: %s: %s", obj.Name(), tabular.Label(f), text)
				}
			}
		}
		o := &tcb.WriteOptions{Keys: keys}
		if b.explain {
			fields := byTag(schema)
			o.Explain = func(c *tcb.Column, tried []tcb.Candidate, taken tcb.Encoding) {
				b.explained(fields[c.Tag], c, tried, taken)
			}
		}
		counted := &counted{w: out}
		if err := tcb.Write(counted, rows, columns, o); err != nil {
			return named(err, obj.Name())
		}
		if text := beyondLimits(rows, columns, counted.n); text != "" {
			b.say("%s: warning: %s", b.output, text)
		}
		return nil
	})
}

// counted counts what is written.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// beyondLimits says why readers with the default limits refuse a table of a size, "" when they do not. The text of strings
// counts for no more than the list of them, since what is repeated is there once.
func beyondLimits(rows int, columns []*tcb.Column, size int64) string {
	if rows > tcb.DefaultMaxRows {
		return fmt.Sprintf("readers take %d rows by default, and the table has %d; --max-rows of other verbs takes it", tcb.DefaultMaxRows, rows)
	}
	var decoded int64
	for _, c := range columns {
		width := int64(4)
		switch c.Type.Element {
		case tcb.Bool:
			width = 1
		case tcb.I64, tcb.F64:
			width = 8
		case tcb.String, tcb.UUID:
			width = 16
		}
		decoded += int64(c.Len()) * width
		if c.Type.Kind == tcb.Array {
			decoded += 4 * (int64(rows) + 1)
		}
	}
	if most := tcb.DefaultMaxBytes + size*tcb.DefaultExpansion; decoded > most {
		return fmt.Sprintf("readers decode %d bytes of a table of this size by default, and all columns are %d; --max-decoded of other verbs takes them", most, decoded)
	}
	return ""
}

// explained prints what was tried for a column.
func (b *tableBuild) explained(f *tcb.Field, c *tcb.Column, tried []tcb.Candidate, taken tcb.Encoding) {
	name := c.Name
	if name == "" {
		name = "-"
	}
	what := c.Type.String()
	if f != nil {
		what = f.TypeText()
	}
	fmt.Fprintf(b.stderr, "column %d %s: %s\n", c.Tag, quotedName(name), what)
	for _, t := range tried {
		mark := " "
		if t.Encoding == taken {
			mark = "*"
		}
		var inside []string
		for _, p := range t.Inside {
			inside = append(inside, fmt.Sprintf("%s %s %d", p.Name, p.Encoding, p.Size))
		}
		line := fmt.Sprintf("  %s %12d  %-14s %s", mark, t.Size, t.Encoding, strings.Join(inside, ", "))
		fmt.Fprintln(b.stderr, strings.TrimRight(line, " "))
	}
}
