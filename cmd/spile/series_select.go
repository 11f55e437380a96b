package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/adapters/promql"
	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// selectFlags say which series a verb selects.
type selectFlags struct {
	mode          series.Mode
	tables        []uint
	tableNames    string
	limit         int64
	explain       bool
	ignoreUnknown bool
	keepFirst     bool     // of a verb that merges
	labels        []string // that are asked for by name
}

func (f *selectFlags) add(flags *pflag.FlagSet) {
	flags.Var(&choice[series.Mode]{&f.mode, []string{"prom", "native"}, []series.Mode{series.Prom, series.Native}}, "mode", "what a label that is missing is to a matcher: the empty string, or nothing")
	flags.UintSliceVar(&f.tables, "table", nil, "the series of table `N` alone; once for each")
	flags.Lookup("table").DefValue = "" // all
	flags.StringVar(&f.tableNames, "tables", "", "the `FILE` with the names of tables for __name__, CSV: table id, name")
	flags.Int64Var(&f.limit, "limit", 0, "give `N` at most, and say when there are more")
	flags.BoolVar(&f.explain, "explain", false, "say on standard error what statistics have decided, and what was read")
	flags.BoolVar(&f.ignoreUnknown, "ignore-unknown", false, "leave out matchers whose label the artifact does not have, for candidates")
}

// queryOf is query of a selector that was given, which is not empty: a variable of a script that is not set would select all.
func (f *selectFlags) queryOf(what, selector string) (*series.Query, error) {
	if strings.TrimSpace(selector) == "" {
		return nil, usagef("%s is empty; '{}' is all", what)
	}
	return f.query(selector)
}

// matching is the query of --match, all series without it.
func (f *selectFlags) matching(flags *pflag.FlagSet, match string) (*series.Query, error) {
	if flags.Changed("match") {
		return f.queryOf("--match", match)
	}
	return f.query("")
}

// query makes the query of a selector, "" for all.
func (f *selectFlags) query(selector string) (*series.Query, error) {
	if f.limit < 0 {
		return nil, usagef("--limit %d, want 0 or more", f.limit)
	}
	q := &series.Query{Mode: f.mode, Limit: f.limit, IgnoreUnknown: f.ignoreUnknown, Explain: &series.Explain{}}
	for _, t := range f.tables {
		if t > math.MaxUint32 {
			return nil, usagef("--table %d, want a number of 32 bits", t)
		}
		q.Tables = append(q.Tables, uint32(t))
	}
	var byName map[uint32]string
	if f.tableNames != "" { // whether or not there is a matcher for it, so that a mistake is seen
		var err error
		if byName, err = readTableNames(f.tableNames); err != nil {
			return nil, err
		}
	}
	if selector == "" {
		return q, nil
	}
	matchers, err := promql.ParseSelector(selector)
	switch {
	case err == nil:
	case !strings.Contains(selector, "{"):
		return nil, usagef("%s; matchers stand in braces, as in {host=\"web-1\"}", message(err))
	case strings.Contains(message(err), "unexpected character inside braces"):
		return nil, usagef("%s; a name with other characters than letters, digits and _ is quoted, as in {\"http.status\"=\"200\"}", message(err))
	default:
		return nil, usagef("%s", message(err))
	}
	names := slices.DeleteFunc(slices.Clone(matchers), func(m *series.Matcher) bool { return m.Name != promql.MetricName })
	q.Matchers = slices.DeleteFunc(matchers, func(m *series.Matcher) bool { return m.Name == promql.MetricName })
	if !f.ignoreUnknown {
		for _, m := range q.Matchers {
			f.labels = append(f.labels, m.Name)
		}
	}
	if len(names) == 0 {
		return q, nil
	}
	if f.tableNames == "" {
		return nil, usagef("%s: metrics are tables, whose names stand in no artifact; --tables FILE gives them", names[0])
	}
	given := q.Tables
	q.Tables = []uint32{}
	for id, name := range byName {
		if given != nil && !slices.Contains(given, id) {
			continue
		}
		if !slices.ContainsFunc(names, func(m *series.Matcher) bool { return !m.Matches(name) }) {
			q.Tables = append(q.Tables, id)
		}
	}
	return q, nil
}

// readTableNames reads the names of tables.
func readTableNames(path string) (map[uint32]string, error) {
	f, err := openNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = 2
	names := make(map[uint32]string)
	for first := true; ; first = false {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "", "").In(path).Because(err)
		}
		id, err := strconv.ParseUint(strings.TrimSpace(record[0]), 10, 32)
		if err != nil {
			if first { // a header
				continue
			}
			line, _ := r.FieldPos(0)
			return nil, fault.New(fault.Invalid, "", "%q is no table id", record[0]).In(path).On(fmt.Sprintf("line %d", line))
		}
		if other, twice := names[uint32(id)]; twice {
			line, _ := r.FieldPos(0)
			return nil, fault.New(fault.Invalid, "", "table %d is %q and %q", id, other, record[1]).In(path).On(fmt.Sprintf("line %d", line))
		}
		names[uint32(id)] = record[1]
	}
}

// explained says what a query did, where that was asked for.
func (e *env) explained(name string, f *selectFlags, q *series.Query) {
	if f.explain {
		e.say("%s: %s", name, q.Explain)
		for _, m := range q.Explain.Matchers {
			e.say("%s: %s: %d blocks none, %d all, %d read; %d bytes, %d values", name, m.Matcher, m.None, m.All, m.Read, m.Bytes, m.Evaluations)
		}
	}
	e.truncated(name, f, q)
}

// truncated says that there is more than what was asked for.
func (e *env) truncated(name string, f *selectFlags, q *series.Query) {
	if q.Explain.Truncated {
		e.partial = true
		e.say("%s: truncated: there is more than --limit %d", name, f.limit)
	}
}

// withArtifact opens a FILE argument that must be an artifact.
func (e *env) withArtifact(ctx context.Context, file string, in *sourceFlags, use func(*artifact) error) error {
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.artifact == nil {
		return fault.New(fault.Invalid, "", "is no series artifact, and this verb takes those").In(d.name)
	}
	return named(use(d.artifact), d.name)
}

// forEachArtifact runs a query over the artifacts that a FILE argument names. Each has a copy of the query, whose explanation
// is its own.
func (e *env) forEachArtifact(ctx context.Context, file string, as printedAs, in *sourceFlags, q *series.Query, use func(*env, *artifact, *series.Query) error) error {
	return e.forEach(ctx, file, in, as, func(e *env, file string) error {
		return e.withArtifact(ctx, file, in, func(a *artifact) error {
			own := *q
			own.Explain = &series.Explain{}
			return use(e, a, &own)
		})
	})
}

func newSeriesSelect(e *env) *cobra.Command {
	var in sourceFlags
	var f selectFlags
	var columns []string
	count := false
	cmd := &cobra.Command{
		Use:   "select DIR SELECTOR [flags]",
		Short: "Print the series whose labels match",
		Long: `Select prints the series of an artifact that a selector of Prometheus matches, as JSON Lines in the order of their
identifiers: {host="web-1",zone!="",job=~"api|db.*"}. Names that are no identifiers are quoted: {"http.status"="200"}.
'{}' is all.

In mode prom, as in Prometheus, a label that is missing is the empty string, and labels that are empty are not printed. In
mode native no matcher selects a label that is missing.

What the statistics of a block decide is not read, and of the rest the labels of the matchers first. --count prints the
number of series, and reads no labels that it does not need.

` + folderHelp + allHelp + ` A
series that several artifacts of a region have is printed once, as series merge makes it: its rows add up, and its labels must be equal.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series select out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f '{host=~"web.*"}'`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.queryOf("SELECTOR", args[1])
			if err != nil {
				return err
			}
			for _, other := range []string{"columns", "limit"} {
				if count && cmd.Flags().Changed(other) {
					return usagef("--count prints one number, and --%s is of a list", other)
				}
			}
			if cmd.Flags().Changed("columns") {
				q.Columns = columns
				f.labels = append(f.labels, columns...)
			}
			many, err := e.notPattern(cmd.Context(), args[0], &in)
			if err != nil {
				return err
			}
			if many != nil {
				return many.selectMany(cmd.Context(), args[0], q, &f, count)
			}
			return e.forEachArtifact(cmd.Context(), args[0], asLines, &in, q, func(e *env, a *artifact, q *series.Query) error {
				return e.selectSeries(cmd.Context(), a, q, &f, count)
			})
		},
	}
	in.add(cmd.Flags())
	in.addArtifacts()
	in.artifacts.once = true
	in.addStrict(cmd.Flags())
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.keepFirst, "keep-first", false, "of many artifacts, where labels differ, keep those of the earliest bucket")
	cmd.Flags().StringSliceVar(&columns, "columns", nil, "the `LABELS` that are printed, separated by commas (all)")
	cmd.Flags().BoolVar(&count, "count", false, "print how many there are")
	return cmd
}

func (e *env) selectSeries(ctx context.Context, a *artifact, q *series.Query, f *selectFlags, count bool) error {
	if count {
		n, err := a.Count(ctx, q)
		if err != nil {
			return err
		}
		fmt.Fprintln(e.out, n)
		e.unknownLabels(a.Name(), f.labels, a.Tags())
		e.explained(a.Name(), f, q)
		return nil
	}
	if err := e.printRecords(a.Select(ctx, q)); err != nil {
		return err
	}
	e.unknownLabels(a.Name(), f.labels, a.Tags())
	e.explained(a.Name(), f, q)
	return nil
}

// unknownLabels says which of the labels that were asked for by name are none of the tags: as in Prometheus, a label that
// is not there is no error.
func (e *env) unknownLabels(name string, labels []string, tags []series.Tag) {
	for i, label := range labels {
		if !slices.Contains(labels[:i], label) && !slices.ContainsFunc(tags, func(t series.Tag) bool { return t.Name == label }) {
			e.say("note: %s: there is no label %q; spile info lists them", name, label)
		}
	}
}

// printRecords prints series, a line each.
func (e *env) printRecords(records iter.Seq2[series.Record, error]) error {
	var line []byte
	for r, err := range records {
		if err != nil {
			return err
		}
		if line, err = seriesjson.Append(line[:0], r); err != nil {
			return err
		}
		line = append(line, '\n')
		if _, err := e.out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func newSeriesLabels(e *env) *cobra.Command {
	var in sourceFlags
	var f selectFlags
	var out tableFlags
	match := ""
	cmd := &cobra.Command{
		Use:   "labels DIR [flags]",
		Short: "Print the names of the labels",
		Long: `Labels prints the names of the labels that series of an artifact have, in the order of its manifest: all of them, or
those of the series that --match selects. Without --match no value is read.

` + folderHelp + allHelp,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series labels out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.matching(cmd.Flags(), match)
			if err != nil {
				return err
			}
			q.Limit = 0
			return e.printNames(cmd.Context(), args[0], &in, &f, q, &out, func(ctx context.Context, a *artifact, q *series.Query) ([]string, error) {
				return a.LabelNames(ctx, q)
			}, func(ctx context.Context, m *artifactSet) ([]string, error) {
				return m.labelNames(ctx, args[0], q, &f)
			})
		},
	}
	in.add(cmd.Flags())
	in.addArtifacts()
	in.addStrict(cmd.Flags())
	f.add(cmd.Flags())
	out.add(cmd.Flags())
	cmd.Flags().StringVar(&match, "match", "", "the `SELECTOR` of the series that count (all)")
	return cmd
}

func newSeriesValues(e *env) *cobra.Command {
	var in sourceFlags
	var f selectFlags
	var out tableFlags
	match := ""
	cmd := &cobra.Command{
		Use:   "values DIR LABEL [flags]",
		Short: "Print the values of a label",
		Long: `Values prints the distinct values of a label, sorted: of all series of an artifact, or of those that --match selects.
They come from the dictionaries of blocks; where a block has one value, from its description. A value with a line break is
printed with an escape; --json prints values exactly.

` + folderHelp + allHelp,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series values out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f host`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeLabel(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[1] {
			case "":
				return usagef("LABEL is empty")
			case promql.MetricName:
				return usagef("%s: metrics are tables, whose names stand in no artifact", args[1])
			}
			f.labels = []string{args[1]}
			q, err := f.matching(cmd.Flags(), match)
			if err != nil {
				return err
			}
			return e.printNames(cmd.Context(), args[0], &in, &f, q, &out, func(ctx context.Context, a *artifact, q *series.Query) ([]string, error) {
				return a.LabelValues(ctx, args[1], q)
			}, func(ctx context.Context, m *artifactSet) ([]string, error) {
				return m.labelValues(ctx, args[0], args[1], q, &f)
			})
		},
	}
	in.add(cmd.Flags())
	in.addArtifacts()
	in.addStrict(cmd.Flags())
	f.add(cmd.Flags())
	out.add(cmd.Flags())
	cmd.Flags().StringVar(&match, "match", "", "the `SELECTOR` of the series that count (all)")
	return cmd
}

// printNames prints the list that one artifact gives, or many, a line each.
func (e *env) printNames(ctx context.Context, file string, in *sourceFlags, f *selectFlags, q *series.Query, out *tableFlags,
	ofOne func(context.Context, *artifact, *series.Query) ([]string, error), ofMany func(context.Context, *artifactSet) ([]string, error)) error {
	print := func(e *env, list []string, q *series.Query) error {
		if f.limit > 0 && int64(len(list)) > f.limit {
			list, q.Explain.Truncated = list[:f.limit], true
		}
		if out.asJSON() {
			return e.printJSON(append([]string{}, list...), out)
		}
		for _, n := range list {
			fmt.Fprintln(e.out, fault.OneLine(n))
		}
		return nil
	}
	many, err := e.notPattern(ctx, file, in)
	if err != nil {
		return err
	}
	if many != nil {
		list, err := ofMany(ctx, many)
		if err == nil {
			err = print(e, list, q)
		}
		if err == nil {
			e.truncated(shown(file), f, q)
		}
		return err
	}
	return e.forEachArtifact(ctx, file, out.printed(), in, q, func(e *env, a *artifact, q *series.Query) error {
		list, err := ofOne(ctx, a, q)
		if err == nil {
			err = print(e, list, q)
		}
		if err == nil {
			e.unknownLabels(a.Name(), f.labels, a.Tags())
			e.explained(a.Name(), f, q)
		}
		return err
	})
}

func newSeriesMerge(e *env) *cobra.Command {
	var in sourceFlags
	output, generation := "", ""
	keepFirst, zip := false, false
	cmd := &cobra.Command{
		Use:   "merge DIR... -o DIR [flags]",
		Short: "Make one artifact of several",
		Long: `Merge makes one artifact of artifacts of one region, such as those of several buckets of time. Tags are matched by their
columns. A series that several have becomes one, whose rows add up; its labels must be equal wherever an artifact lists the
tag. --keep-first takes those of the earliest bucket where they are not, and says how often.

DIR behind -o can be the URL of a place in a store, as of series build.

The artifact gets the generation of --generation, or one that follows from those of its inputs, so that the same inputs
give the same bytes.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series merge out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f -o merged`,
		Args:              arguments(1, -1),
		ValidArgsFunction: completeFiles(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" || output == "-" {
				return usagef("-o DIR is missing")
			}
			return e.mergeSeries(cmd.Context(), args, &in, output, generation, keepFirst, &series.WriteOptions{Zstd: zip})
		},
	}
	in.add(cmd.Flags())
	in.addArtifacts()
	in.artifacts.once = true
	cmd.Flags().StringVarP(&output, "output", "o", "", "the folder `DIR` below which the artifact is written")
	e.addNoOverwrite(cmd.Flags())
	cmd.Flags().StringVar(&generation, "generation", "", "the `UUID` of the artifact")
	cmd.Flags().BoolVar(&keepFirst, "keep-first", false, "where labels differ, keep those of the earliest bucket")
	cmd.Flags().Var(&choice[bool]{&zip, []string{"none", "zstd"}, []bool{false, true}}, "compression", "how chunks and pages are stored that become smaller by it")
	return cmd
}

func (e *env) mergeSeries(ctx context.Context, dirs []string, in *sourceFlags, output, generation string, keepFirst bool, o *series.WriteOptions) error {
	dirs, err := e.expanded(ctx, dirs)
	if err != nil {
		return err
	}
	var inputs []*series.Artifact
	for _, dir := range dirs {
		d, err := e.open(ctx, dir, in)
		if err != nil {
			return err
		}
		defer d.Close()
		if d.artifact == nil {
			return fault.New(fault.Invalid, "", "is no series artifact, and this verb takes those").In(d.name)
		}
		inputs = append(inputs, d.artifact.Artifact)
	}
	m, err := series.NewMerger(inputs, keepFirst)
	if err != nil {
		return err
	}
	id := m.Generation()
	if generation != "" {
		if id, err = series.ParseUUID(generation); err != nil {
			return usagef("--generation: %s", message(err))
		}
	}
	meta := m.Manifest(id)
	target, err := e.artifactTarget(ctx, output, meta.RegionID, id, o.PartBytes)
	if err != nil {
		return err
	}
	w, err := series.NewWriter(ctx, target, meta, o)
	if err != nil {
		target.Discard()
		return err
	}
	defer w.Abort()
	defer e.progress(ctx, "series merge")()
	for r, err := range m.Select(ctx, &series.Query{Mode: series.Native}) {
		if err != nil {
			return err
		}
		if err := w.Add(r); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if n := m.Conflicts(); n > 0 {
		e.say("%d series had other labels in a later artifact; those of the earliest were kept", n)
	}
	if m.Overlaps() {
		e.say("the buckets overlap in time: rows may have been counted twice, and their numbers are upper bounds")
	}
	return nil
}
