package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/arrowipc"
	"github.com/spilehq/spile/adapters/csvtable"
	"github.com/spilehq/spile/adapters/jsonrows"
	"github.com/spilehq/spile/adapters/parquet"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/adapters/xlsx"
)

func newTableExport(e *env) *cobra.Command {
	x := &tableExport{env: e}
	cmd := &cobra.Command{
		Use:   "export FILE -o OUT [flags]",
		Short: "Write a table as JSON Lines, CSV, XLSX, Parquet or Arrow",
		Long: `Export writes a table in the format that the name of OUT ends with: .jsonl, .csv, .xlsx, .parquet or .arrow. --schema
gives the names and says which numbers are dates; without it columns are named by their tags. Nothing is lost: a value
that the format cannot hold is an error.

JSON Lines, CSV and XLSX are read back by table build. A date outside what Parquet or Arrow hold exactly is an error;
--times=ticks writes dates and spans as numbers of 100 ns.`,
		Example: exampleTable + `
  spile table export --schema item.schema item.tcb -o item.csv`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return x.run(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	x.set = flags
	x.in.addBytes(flags)
	x.in.addTables(flags)
	x.in.tables.addLabels(flags)
	flags.StringVarP(&x.output, "output", "o", "", "the file to write, `OUT`, - for standard output (with --to)")
	x.addNoOverwrite(flags)
	flags.Var(&choice[textFormat]{&x.to, textNames, []textFormat{textJSON, textCSV, textXLSX, textParquet, textArrow}}, "to", "the format, that of the name of OUT otherwise")
	flags.Var(&choice[bool]{&x.ticks, []string{"auto", "ticks"}, []bool{false, true}}, "times", "dates and spans in Parquet and Arrow: as such, or as numbers of 100 ns")
	flags.BoolVar(&x.tags, "tags", false, "write the tags into the header of CSV and XLSX, as name@7")
	flags.StringVar(&x.delimiter, "delimiter", "", "the `CHARACTER` between fields of CSV (,)")
	flags.StringVar(&x.separator, "separator", "", "the `CHARACTER` between the elements of an array in a cell (;)")
	flags.StringVar(&x.null, "null", "", "the `TEXT` of a cell that stands for an absent value (\\N)")
	flags.BoolVar(&x.emptyText, "empty-text", false, "an empty cell of an optional column of text is empty text, not absent")
	flags.BoolVar(&x.decimalComma, "decimal-comma", false, "write numbers with a decimal comma")
	return cmd
}

// tableExport is a run of table export.
type tableExport struct {
	*env
	textFlags
	in     sourceFlags
	output string
	to     textFormat
	ticks  bool
	tags   bool
}

func (x *tableExport) run(ctx context.Context, file string) error {
	if x.output == "" {
		return usagef("-o OUT is missing")
	}
	if x.to == anyText {
		i := slices.Index(textNames, strings.TrimPrefix(strings.ToLower(filepath.Ext(x.output)), "."))
		if i < 0 {
			return usagef("%s ends with none of .jsonl, .csv, .xlsx, .parquet and .arrow; --to names the format", x.output)
		}
		x.to = textFormat(i + 1)
	}
	if err := x.unused(x.to); err != nil {
		return err
	}
	x.maxErrors = 100
	o, delimiter, err := x.options("")
	if err != nil {
		return err
	}
	o.Tags, o.Labels = x.tags, x.in.tables.labels
	return x.withTable(ctx, file, &x.in, func(t *table) error {
		o.Name = t.Name()
		err := x.write(ctx, "table export", x.output, func(out output) error {
			return x.each(x.export(ctx, out, t, o, delimiter))
		})
		if err == nil {
			x.leftOut(t)
		}
		return err
	})
}

func (x *tableExport) export(ctx context.Context, out output, t *table, o tabular.Options, delimiter byte) error {
	columns, err := t.Read(ctx)
	if err != nil {
		return err
	}
	switch x.to {
	case textJSON:
		return jsonrows.Write(ctx, out, t.Rows(), columns, t.schema, &jsonrows.Options{Options: o})
	case textCSV:
		return csvtable.Write(ctx, out, t.Rows(), columns, t.schema, &csvtable.Options{Options: o, Delimiter: delimiter})
	case textXLSX:
		return xlsx.Write(ctx, out, t.Rows(), columns, t.schema, &xlsx.Options{Options: o})
	case textParquet:
		p := &parquet.Options{}
		if x.ticks {
			p.DateTimes = parquet.TimesTicks
		}
		return parquet.Write(ctx, out, t.Rows(), columns, t.schema, p)
	}
	a := &arrowipc.Options{}
	if x.ticks {
		a.DateTimes, a.TimeSpans = arrowipc.TimesTicks, arrowipc.TimesTicks
	}
	return arrowipc.Write(ctx, out, t.Rows(), columns, t.schema, a)
}
