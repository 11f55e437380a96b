package main

import (
	"context"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/seriesarrow"
	"github.com/spilehq/spile/adapters/seriescsv"
	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/adapters/seriesparquet"
	"github.com/spilehq/spile/series"
)

// exportNames are the formats that series are exported to: the ends of the names of files.
var exportNames = []string{"parquet", "arrow", "csv", "jsonl"}

func newSeriesExport(e *env) *cobra.Command {
	x := &seriesExport{env: e, query: selectFlags{mode: series.Native}}
	cmd := &cobra.Command{
		Use:   "export DIR -o OUT [flags]",
		Short: "Write the series as Parquet, Arrow, CSV or JSON Lines",
		Long: `Export writes the series of an artifact in the format that the name of OUT ends with: .parquet, .arrow, .csv or .jsonl.
There is a column for each label, and __table_id, __tsid and __series_row_count; JSON Lines are those of cat. Nothing is
lost: series build makes the same artifact of a Parquet, CSV or JSON Lines file.

Memory is that of some blocks, and of a row group of Parquet. In Parquet, labels have dictionaries and pages are compressed
by Zstandard. In Arrow, labels have dictionaries of up to a million values, for which the artifact is read twice.

--table and --match choose series. In mode native, which is the default here, no matcher selects a label that is missing; in
mode prom, as in Prometheus, it is the empty string, and labels that are empty are left out.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series export out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f -o hosts.parquet`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return x.run(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	x.in.add(flags)
	x.in.addArtifacts()
	x.in.artifacts.once = true
	flags.StringVarP(&x.output, "output", "o", "", "the file to write, `OUT`, - for standard output (with --to)")
	x.addNoOverwrite(flags)
	flags.Var(&choice[string]{&x.to, exportNames, exportNames}, "to", "the format, that of the name of OUT otherwise")
	flags.StringVar(&x.match, "match", "", "the `SELECTOR` of the series (all)")
	flags.Var(&choice[series.Mode]{&x.query.mode, []string{"prom", "native"}, []series.Mode{series.Prom, series.Native}}, "mode", "what a label that is missing is to a matcher: the empty string, or nothing")
	flags.UintSliceVar(&x.query.tables, "table", nil, "the series of table `N` alone; once for each")
	flags.Lookup("table").DefValue = "" // all
	flags.StringVar(&x.query.tableNames, "tables", "", "the `FILE` with the names of tables for __name__, CSV: table id, name")
	flags.StringSliceVar(&x.columns, "columns", nil, "the `LABELS` that are written, separated by commas (all)")
	return cmd
}

// seriesExport is a run of series export.
type seriesExport struct {
	*env
	in      sourceFlags
	output  string
	to      string
	match   string
	query   selectFlags
	columns []string
}

func (x *seriesExport) run(ctx context.Context, dir string) error {
	if x.output == "" {
		return usagef("-o OUT is missing")
	}
	if x.to == "" {
		x.to = strings.TrimPrefix(strings.ToLower(filepath.Ext(x.output)), ".")
		if !slices.Contains(exportNames, x.to) {
			return usagef("%s ends with none of .parquet, .arrow, .csv and .jsonl; --to names the format", x.output)
		}
	}
	q, err := x.query.matching(x.flags, x.match)
	if err != nil {
		return err
	}
	return x.withArtifact(ctx, dir, &x.in, func(a *artifact) error {
		labels, err := x.labels(a)
		if err != nil {
			return err
		}
		if x.flags.Changed("columns") {
			q.Columns = labels
		}
		err = x.write(ctx, "series export", x.output, func(out output) error {
			return x.export(ctx, out, labels, a.Select(ctx, q))
		})
		if err == nil {
			x.unknownLabels(a.Name(), x.query.labels, a.Tags())
		}
		return err
	})
}

// labels are the columns that are labels, in the order of the tags.
func (x *seriesExport) labels(a *artifact) ([]string, error) {
	labels := []string{}
	for _, t := range a.Tags() {
		if !x.flags.Changed("columns") || slices.Contains(x.columns, t.Name) {
			labels = append(labels, t.Name)
		}
	}
	for _, name := range x.columns {
		if !slices.Contains(labels, name) {
			return nil, usagef("--columns: the artifact has no label %q; spile info lists them", name)
		}
	}
	return labels, nil
}

func (x *seriesExport) export(ctx context.Context, out io.Writer, labels []string, records iter.Seq2[series.Record, error]) error {
	switch x.to {
	case "parquet":
		return seriesparquet.Write(ctx, out, labels, records, nil)
	case "arrow":
		x.passes.Store(2)
		return seriesarrow.Write(ctx, out, labels, records, nil)
	case "csv":
		return seriescsv.Write(ctx, out, labels, records)
	}
	var text []byte
	for r, err := range records {
		if err != nil {
			return err
		}
		if text, err = seriesjson.Append(text, r); err != nil {
			return err
		}
		if text = append(text, '\n'); len(text) >= 1<<16 {
			if _, err := out.Write(text); err != nil {
				return err
			}
			text = text[:0]
		}
	}
	_, err := out.Write(text)
	return err
}
