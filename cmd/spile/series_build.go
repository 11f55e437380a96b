package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/promtsdb"
	"github.com/spilehq/spile/series"
)

// exampleMeta begins the examples of verbs that make artifacts.
const exampleMeta = `  echo '{"format":"columnar-series","version":1,"region_id":1,"generation":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f",
   "tags":[{"column_id":5,"name":"host"}],
   "coverage":{"file_size":0,"index_uuid":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f",
    "bucket_start":{"value":1767225600,"unit":"Second"},"bucket_end":{"value":1767312000,"unit":"Second"}}}' > meta.json`

func newSeriesBuild(e *env) *cobra.Command {
	b := &seriesBuild{env: e, memory: unlimited, pageBytes: unlimited, partBytes: unlimited}
	cmd := &cobra.Command{
		Use:   "build --meta META INPUT -o DIR [flags]",
		Short: "Make an artifact of JSON Lines, CSV, Parquet or a Prometheus block",
		Long: `Build makes an artifact of the series in INPUT, sorted or not. The format is found from the content; --from says it.

jsonl    {"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1","zone":null}}
csv      a header, __table_id,__tsid,__series_row_count,host,zone in any order; an empty field is null, "" the empty string
parquet  columns of the same names; times, and other columns of the older index whose names begin with __, are left out
tsdb     the folder of a block of Prometheus: its metrics are tables, see below

META is a manifest without its files: region, generation, tags, coverage; --infer prints a proposal instead of building. The
artifact is the folder DIR/<region>/series/<generation>, and it is there when its manifest is: a build that fails or is
interrupted leaves nothing. A generation is used once: one that is there is not replaced, and while a build or a merge writes
it, another one of it is refused. What a build that was killed has left, the next one of the same generation removes.

DIR can be the URL of a place in a store, s3://bucket/prefix, gs://… or azblob://…: parts are sent in constant memory while they
are built, and the manifest comes last. A build that is killed, and so cannot clean up, leaves parts that nothing refers to;
another one with the same generation refuses to go on beside them.

Records with one table and TSID become one series, whose rows add up. Their labels must be equal; --keep-first takes those
of the first record where they are not, and says how often. A label that is missing is null, one that is no tag of META is
an error.

Of a block, the TSID of a series is the hash of its labels (XXH64 over name, 0xff, value, 0xff, sorted, __name__ among them),
its rows are the samples of its chunks, and its table is what --tables gives its metric: CSV, table id and name. With
--assign-tables the metrics that have none get numbers, in the order of their names, and all are written to
DIR/<region>/series/<generation>.tables.csv. Two series with one hash are an error.

Series are put in order within --memory and temporary files, which are gone at the end whatever it is. The same input and
flags give the same bytes.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile verify --deep out`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.run(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&b.meta, "meta", "", "the `FILE` with region, generation, tags and coverage, JSON")
	flags.StringVarP(&b.output, "output", "o", "", "the folder `DIR` below which the artifact is written")
	b.addNoOverwrite(flags)
	flags.Var(&choice[inputFormat]{&b.from, inputNames, []inputFormat{inputJSON, inputCSV, inputParquet, inputTSDB}}, "from", "the format of INPUT (found from the content)")
	flags.BoolVar(&b.infer, "infer", false, "print a meta.json for INPUT, for review; -o names a file for it")
	flags.StringVar(&b.tables, "tables", "", "the `FILE` with the tables of the metrics of a block, CSV: table id, name")
	flags.BoolVar(&b.assignTables, "assign-tables", false, "give the metrics without a table numbers, and write all beside the artifact")
	flags.IntVar(&b.blockSeries, "block-series", series.DefaultBlockSeries, "series of a block at most, `N`, up to 8388608")
	flags.Var(&choice[bool]{&b.zstd, []string{"none", "zstd"}, []bool{false, true}}, "compression", "how chunks and pages are stored that become smaller by it")
	flags.IntVar(&b.level, "level", 0, "the level `N` of the compression, 1 to 22 (3)")
	flags.Var(&b.pageBytes, "page-bytes", "what a page of metadata is to have, 65536 at most (65536)")
	flags.Var(&b.partBytes, "part-bytes", "what a part is to have (512MiB)")
	flags.BoolVar(&b.keepFirst, "keep-first", false, "of two records with one identifier and other labels, keep the labels of the first")
	flags.Var(&b.memory, "memory", "what sorting may take before it goes to temporary files (256MiB)")
	return cmd
}

// seriesBuild is a run of series build.
type seriesBuild struct {
	*env
	meta        string
	output      string
	blockSeries int
	zstd        bool
	level       int
	pageBytes   size
	partBytes   size
	keepFirst   bool
	memory      size

	from         inputFormat
	infer        bool
	tables       string
	assignTables bool
}

func (b *seriesBuild) check() error {
	switch {
	case b.infer && b.meta != "":
		return usagef("--infer and --meta: a meta.json is there already")
	case b.infer && (b.tables != "" || b.assignTables):
		return usagef("--infer builds nothing, and a meta.json has no tables")
	case b.infer:
		return nil
	case b.meta == "":
		return usagef("--meta META is missing: a manifest without its files; --infer proposes one")
	case b.output == "":
		return usagef("-o DIR is missing")
	case b.output == "-":
		return usagef("-o - : an artifact is a folder of files")
	case b.blockSeries < 1 || b.blockSeries > series.MaxBlockSeries:
		return usagef("--block-series %d, want 1 to %d", b.blockSeries, series.MaxBlockSeries)
	case b.flags.Changed("level") && !b.zstd:
		return usagef("--level goes with --compression zstd")
	case b.flags.Changed("level") && (b.level < 1 || b.level > 22):
		return usagef("--level %d, want 1 to 22", b.level)
	case b.pageBytes == 0 || b.pageBytes > series.DefaultPageBytes:
		return usagef("--page-bytes %d, want 1 to %d", b.pageBytes, series.DefaultPageBytes)
	case b.partBytes == 0:
		return usagef("--part-bytes 0, want 1 or more")
	case b.memory >= 0 && b.memory < 1<<20:
		return usagef("--memory %d, want 1MiB or more", b.memory)
	}
	return nil
}

func (b *seriesBuild) options() *series.WriteOptions {
	return &series.WriteOptions{
		BlockSeries: b.blockSeries, PageBytes: max(0, int(b.pageBytes)), PartBytes: max(0, int64(b.partBytes)),
		Zstd: b.zstd, Level: b.level, KeepFirst: b.keepFirst,
	}
}

func (b *seriesBuild) run(ctx context.Context, input string) error {
	if err := b.check(); err != nil {
		return err
	}
	var meta *series.Manifest
	if !b.infer {
		var err error
		if meta, err = readMeta(b.meta); err != nil {
			return err
		}
	}
	in, err := b.openSeriesInput(ctx, input, b.from)
	if err != nil {
		return err
	}
	defer in.Close()
	if b.infer {
		return b.proposeMeta(ctx, in)
	}
	if err := b.checkTables(in); err != nil {
		return err
	}
	o := b.options()
	target, err := b.artifactTarget(ctx, b.output, meta.RegionID, meta.Generation, o.PartBytes)
	if err != nil {
		return err
	}
	w, err := series.NewWriter(ctx, target, meta, o)
	if err != nil {
		target.Discard()
		return named(err, b.meta)
	}
	defer w.Abort()
	defer b.progress(ctx, "series build")()
	if in.block != nil {
		if err := in.readTables(ctx, b.tables, b.assignTables); err != nil {
			return err
		}
	}
	if err := b.fill(ctx, w, in, meta); err != nil {
		return named(err, in.name)
	}
	if b.assignTables { // first: without the names of its tables the artifact is of no use
		if err := b.beside(ctx, target, ".tables.csv", in.writeTables); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return named(err, target.Dir())
	}
	switch n := w.Conflicts(); n {
	case 0:
	case 1:
		b.say("%s: 1 %s has other labels than the first %[2]s of its series, whose labels were kept", in.name, in.unit())
	default:
		b.say("%s: %d %ss have other labels than the first %[3]ss of their series, whose labels were kept", in.name, n, in.unit())
	}
	return nil
}

// checkTables checks the flags that are of blocks.
func (b *seriesBuild) checkTables(in *seriesInput) error {
	switch {
	case in.block == nil && (b.tables != "" || b.assignTables):
		return usagef("--tables and --assign-tables are of a block of Prometheus; %s names its tables itself", in.name)
	case in.block != nil && b.tables == "" && !b.assignTables:
		return usagef("%s: metrics are tables, whose numbers stand in no block: --tables FILE gives them, or --assign-tables", in.name)
	case in.block != nil && b.keepFirst:
		return usagef("--keep-first: two series of a block with one TSID are two series")
	}
	return nil
}

// proposeMeta prints a meta.json.
func (b *seriesBuild) proposeMeta(ctx context.Context, in *seriesInput) error {
	propose := func() ([]byte, error) {
		m, err := in.propose(ctx)
		if err != nil {
			return nil, named(err, in.name)
		}
		return m.AppendJSON(nil)
	}
	if b.output != "" {
		return b.write(ctx, "series build", b.output, func(out output) error {
			text, err := propose()
			if err == nil {
				_, err = out.Write(text)
			}
			return err
		})
	}
	defer b.progress(ctx, "series build")()
	text, err := propose()
	if err == nil {
		_, err = b.out.Write(text)
	}
	return err
}

// readMeta reads what an artifact is to be built of.
func readMeta(path string) (*series.Manifest, error) {
	text, err := readNamed(path)
	if err != nil {
		return nil, err
	}
	m, err := series.ParseMeta(text)
	return m, named(err, path)
}

// fill writes the series of the input, in order.
func (b *seriesBuild) fill(ctx context.Context, w *series.Writer, in *seriesInput, meta *series.Manifest) error {
	s := series.NewSorter(ctx, max(0, int64(b.memory)))
	defer s.Close()
	for r, err := range in.records(ctx, meta.Tags) {
		if err == nil {
			err = s.Add(r)
		}
		if err != nil {
			return err
		}
	}
	sorted := s.Sorted()
	if in.block != nil {
		sorted = promtsdb.Distinct(sorted)
	}
	for r, err := range sorted {
		if err == nil {
			err = w.Add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
