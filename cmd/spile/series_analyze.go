package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

func newSeriesAnalyze(e *env) *cobra.Command {
	z := &seriesAnalyze{env: e, memory: series.DefaultAnalyzeBytes}
	cmd := &cobra.Command{
		Use:   "analyze FILE... [flags]",
		Short: "Count series and values: the cardinality of labels",
		Long: `Analyze tells how many series tables have, how many distinct values labels have, how many bytes these and their columns take,
how many series have no value, which values most series have, and how large parts are. It makes no series: pages tell what
a block has one value of, and dictionaries and codes the rest.

The table shows the --top tables and values; --json and --csv give all tables. A line of CSV has a kind, which is table, label, value
or part, and a name; what a kind does not have is empty. Several artifacts are counted together: a series that
two have counts twice, a value once. Distinct values beyond --memory go to temporary files.

` + folderHelp + `Of a
column that no known codec reads nulls and bytes are told, and no values; the exit status is then 3.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series analyze out`,
		Args:              arguments(1, -1),
		ValidArgsFunction: completeFiles(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case z.top < 0:
				return usagef("--top %d, want 0 or more", z.top)
			case z.csv && z.form.asJSON():
				return usagef("--csv and --json: which one?")
			}
			return z.run(cmd.Context(), args)
		},
	}
	z.in.add(cmd.Flags())
	z.in.addArtifacts()
	z.in.artifacts.once = true
	z.in.addStrict(cmd.Flags())
	z.form.add(cmd.Flags())
	cmd.Flags().BoolVar(&z.csv, "csv", false, "print CSV instead of a table")
	cmd.Flags().IntVar(&z.top, "top", series.DefaultTop, "list the `N` values of each label that most series have")
	cmd.Flags().Var(&z.memory, "memory", "how many bytes of values are held in memory")
	return cmd
}

// seriesAnalyze is a run of series analyze.
type seriesAnalyze struct {
	*env
	in     sourceFlags
	form   tableFlags
	csv    bool
	top    int
	memory size

	good int // artifacts that were counted
}

// analysisReport is what analyze prints as JSON.
type analysisReport struct {
	Artifacts int           `json:"artifacts"`
	Series    uint64        `json:"series"`
	Tables    []tableCount  `json:"tables"`
	Labels    []labelCounts `json:"labels"`
	Parts     []partSizes   `json:"parts"`
}

type tableCount struct {
	Table  uint32 `json:"table_id"`
	Series uint64 `json:"series"`
	Blocks uint64 `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
}

type labelCounts struct {
	Name       string       `json:"name"`
	Distinct   uint64       `json:"distinct"`
	Series     uint64       `json:"series"` // with a value
	Nulls      uint64       `json:"nulls"`
	NullShare  float64      `json:"null_share"`
	Empty      uint64       `json:"empty"`
	ValueBytes uint64       `json:"value_bytes"` // of the distinct values
	Bytes      uint64       `json:"bytes"`       // stored
	Decoded    uint64       `json:"decoded"`
	Unknown    uint64       `json:"unknown,omitempty"` // series whose value no known codec reads
	Top        []valueCount `json:"top"`
}

type valueCount struct {
	Value  string `json:"value"`
	Series uint64 `json:"series"`
}

type partSizes struct {
	File   string `json:"file"`
	Bytes  uint64 `json:"bytes"`
	Series uint64 `json:"series"`
	Blocks uint64 `json:"blocks"`
	Leaves uint64 `json:"leaves"`
	Chunks uint64 `json:"chunk_bytes"`
	Pages  uint64 `json:"page_bytes"`
}

func (z *seriesAnalyze) run(ctx context.Context, files []string) error {
	all, err := z.artifacts(ctx, files)
	if err != nil {
		return err
	}
	top := z.top
	if top == 0 {
		top = -1
	}
	a := series.NewAnalyzer(ctx, &series.AnalyzeOptions{Top: top, Memory: int64(z.memory), Parallel: min(len(all), z.parallel())})
	defer a.Close()
	result, err := z.analyze(ctx, a, all)
	if err != nil {
		return err
	}
	for _, l := range result.Labels {
		if l.Unknown > 0 {
			z.say("label %s: %d series have a value that is not decodable", quotedName(l.Name), l.Unknown)
			z.partial = true
		}
	}
	switch {
	case z.form.asJSON():
		return z.printJSON(newAnalysisReport(result, z.good), &z.form)
	case z.csv:
		return z.printCSV(result)
	}
	return z.printTable(result)
}

// artifacts are those that the arguments stand for.
func (z *seriesAnalyze) artifacts(ctx context.Context, files []string) (all []string, err error) {
	if err := z.in.check(); err != nil {
		return nil, err
	}
	for _, file := range files {
		names, many, err := z.manyOf(ctx, file, &z.in)
		if err == nil && !many {
			names, err = z.expanded(ctx, []string{file})
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if slices.Contains(all, name) {
				return nil, usagef("%s is named twice", shown(name))
			}
			all = append(all, name)
		}
	}
	return all, nil
}

// analyze counts what is in the artifacts.
func (z *seriesAnalyze) analyze(ctx context.Context, a *series.Analyzer, all []string) (*series.Analysis, error) {
	defer z.progress(ctx, "series analyze")()
	if len(all) == 1 {
		err := z.withArtifact(ctx, all[0], &z.in, func(one *artifact) error { return a.Add(ctx, one.Artifact, 0) })
		if err != nil {
			return nil, err
		}
		z.good = 1
		return a.Result()
	}
	err := eachArtifact(ctx, z.newSet(&z.in, all), func(ctx context.Context, _ *env, i int, one *artifact) (struct{}, error) {
		return struct{}{}, a.Add(ctx, one.Artifact, i)
	}, func(*env, struct{}) error {
		z.good++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.Result()
}

func newAnalysisReport(a *series.Analysis, artifacts int) *analysisReport {
	r := &analysisReport{Artifacts: artifacts, Series: a.Series, Tables: []tableCount{}, Labels: []labelCounts{}, Parts: []partSizes{}}
	for _, t := range a.Tables {
		r.Tables = append(r.Tables, tableCount{t.Table, t.Series, t.Blocks, t.Stored})
	}
	for _, l := range a.Labels {
		row := labelCounts{
			Name: l.Name, Distinct: l.Distinct, Series: l.Series, Nulls: l.Nulls, NullShare: nullShare(l.Nulls, a.Series), Empty: l.Empty,
			ValueBytes: l.ValueBytes, Bytes: l.Stored, Decoded: l.Decoded, Unknown: l.Unknown, Top: []valueCount{},
		}
		for _, v := range l.Top {
			row.Top = append(row.Top, valueCount{v.Value, v.Series})
		}
		r.Labels = append(r.Labels, row)
	}
	for _, p := range a.Parts {
		r.Parts = append(r.Parts, partSizes{p.Name, p.Size, p.Series, p.Blocks, p.Leaves, p.Chunks, p.Pages})
	}
	return r
}

func nullShare(nulls, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(nulls) / float64(all)
}

// printTable prints what a reader wants to see first.
func (z *seriesAnalyze) printTable(a *series.Analysis) error {
	fmt.Fprintf(z.out, "%d series, %s, %s, %s\n", a.Series, count(len(a.Tables), "table"), count(len(a.Labels), "label"), count(len(a.Parts), "part"))
	largest := slices.Clone(a.Tables)
	slices.SortStableFunc(largest, func(a, b series.TableAnalysis) int { return cmp.Compare(b.Series, a.Series) })
	if largest = largest[:min(z.top, len(largest))]; len(largest) > 0 {
		fmt.Fprintf(z.out, "\n%12s %7s %10s %14s  %s\n", "SERIES", "", "BLOCKS", "BYTES", "TABLE")
		for _, t := range largest {
			fmt.Fprintf(z.out, "%12d %7s %10d %14d  %d\n", t.Series, share(int64(t.Series), int64(a.Series)), t.Blocks, t.Stored, t.Table)
		}
		if n := len(a.Tables) - len(largest); n > 0 {
			fmt.Fprintf(z.out, "%45s  %d more\n", "", n)
		}
	}
	if len(a.Labels) > 0 {
		fmt.Fprintf(z.out, "\n%12s %12s %7s %14s %14s  %s\n", "DISTINCT", "NULLS", "", "VALUE BYTES", "BYTES", "LABEL")
		for _, l := range a.Labels {
			fmt.Fprintf(z.out, "%12d %12d %7s %14d %14d  %s\n", l.Distinct, l.Nulls, share(int64(l.Nulls), int64(a.Series)), l.ValueBytes, l.Stored, quotedName(l.Name))
		}
	}
	head := "\n%12s %7s  %s\n"
	for _, l := range a.Labels {
		for _, v := range l.Top {
			if head != "" {
				fmt.Fprintf(z.out, head, "SERIES", "", "VALUE")
				head = ""
			}
			fmt.Fprintf(z.out, "%12d %7s  %s=%s\n", v.Series, share(int64(v.Series), int64(a.Series)), fault.OneLine(l.Name), quoted(beginning([]byte(v.Value))))
		}
	}
	if len(a.Parts) > 0 {
		fmt.Fprintf(z.out, "\n%12s %10s %14s %14s %14s  %s\n", "SERIES", "BLOCKS", "COLUMNS", "PAGES", "BYTES", "PART")
		for _, p := range a.Parts {
			fmt.Fprintf(z.out, "%12d %10d %14d %14d %14d  %s\n", p.Series, p.Blocks, p.Chunks, p.Pages, p.Size, fault.OneLine(p.Name))
		}
	}
	return nil
}

// printCSV prints all of it, one row for each table, label, value and part.
func (z *seriesAnalyze) printCSV(a *series.Analysis) error {
	w := csv.NewWriter(z.out)
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	w.Write([]string{"kind", "name", "value", "series", "nulls", "distinct", "value_bytes", "blocks", "bytes"})
	for _, t := range a.Tables {
		w.Write([]string{"table", number(uint64(t.Table)), "", number(t.Series), "", "", "", number(t.Blocks), number(t.Stored)})
	}
	for _, l := range a.Labels {
		w.Write([]string{"label", l.Name, "", number(l.Series), number(l.Nulls), number(l.Distinct), number(l.ValueBytes), "", number(l.Stored)})
	}
	for _, l := range a.Labels {
		for _, v := range l.Top {
			w.Write([]string{"value", l.Name, v.Value, number(v.Series), "", "", number(uint64(len(v.Value))), "", ""})
		}
	}
	for _, p := range a.Parts {
		w.Write([]string{"part", p.Name, "", number(p.Series), "", "", "", number(p.Blocks), number(p.Size)})
	}
	w.Flush()
	return w.Error()
}
