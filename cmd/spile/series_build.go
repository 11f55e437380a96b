package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
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
		Short: "Make an artifact of JSON Lines",
		Long: `Build makes an artifact of the series in INPUT, JSON Lines, sorted or not:

  {"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1","zone":null}}

META is a manifest without its files: region, generation, tags, coverage. The artifact is the folder
DIR/<region>/series/<generation>, and it is there when its manifest is: a build that fails or is interrupted leaves
nothing. A generation is used once: one that is there is not replaced.

Lines with one table and TSID become one series, whose rows add up. Their labels must be equal; --keep-first takes those
of the first line where they are not, and says how often. A label that is missing is null, one that is no tag of META is
an error.

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
	flags.IntVar(&b.blockSeries, "block-series", series.DefaultBlockSeries, "series of a block at most, `N`, up to 8388608")
	flags.Var(&choice[bool]{&b.zstd, []string{"none", "zstd"}, []bool{false, true}}, "compression", "how chunks and pages are stored that become smaller by it")
	flags.IntVar(&b.level, "level", 0, "of the compression, `N`, 1 to 22 (3)")
	flags.Var(&b.pageBytes, "page-bytes", "what a page of metadata is to have, 65536 at most (65536)")
	flags.Var(&b.partBytes, "part-bytes", "what a part is to have (512MiB)")
	flags.BoolVar(&b.keepFirst, "keep-first", false, "of two lines with one identifier and other labels, keep the labels of the first")
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
}

func (b *seriesBuild) check() error {
	switch {
	case b.meta == "":
		return usagef("--meta META is missing: a manifest without its files")
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
	meta, err := readMeta(b.meta)
	if err != nil {
		return err
	}
	obj, err := b.object(ctx, input, &sourceFlags{})
	if err != nil {
		return err
	}
	defer obj.Close()
	head, err := headOf(ctx, obj, 0, 8)
	if err != nil {
		return named(err, obj.Name())
	}
	if packed := foreign(head); packed != "" {
		return fault.New(fault.Invalid, "", "is no JSON Lines: %s", packed).In(obj.Name())
	}
	if bytes.HasPrefix(head, []byte("GTSERIES")) {
		return fault.New(fault.Invalid, "", "is a part of an artifact; spile cat prints its series").In(obj.Name())
	}
	target := series.NewFolderTarget(b.output, meta.RegionID, meta.Generation)
	w, err := series.NewWriter(ctx, target, meta, b.options())
	if err != nil {
		return named(err, b.meta)
	}
	defer w.Abort()
	// What is there already is worth knowing before the work.
	if _, err := os.Stat(filepath.Join(target.Dir(), series.ManifestName)); err == nil {
		return fault.New(fault.Conflict, "", "holds an artifact already, and a generation is used once").In(target.Dir())
	}
	defer b.progress(ctx, "series build")()
	if err := b.fill(ctx, w, obj, meta); err != nil {
		return named(err, obj.Name())
	}
	if err := w.Close(); err != nil {
		return named(err, target.Dir())
	}
	switch n := w.Conflicts(); n {
	case 0:
	case 1:
		b.say("%s: 1 line has other labels than the first line of its series, whose labels were kept", obj.Name())
	default:
		b.say("%s: %d lines have other labels than the first lines of their series, whose labels were kept", obj.Name(), n)
	}
	return nil
}

// readMeta reads what an artifact is to be built of.
func readMeta(path string) (*series.Manifest, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(nil, "", "").In(path).Because(bare(err))
	}
	m, err := series.ParseMeta(text)
	return m, named(err, path)
}

// fill writes the series of the input, in order.
func (b *seriesBuild) fill(ctx context.Context, w *series.Writer, obj source.Object, meta *series.Manifest) error {
	s := series.NewSorter(ctx, max(0, int64(b.memory)))
	defer s.Close()
	for r, err := range seriesjson.Records(ctx, source.NewReader(ctx, obj, 0, obj.Size(), 0), obj.Name(), meta.Tags) {
		if err == nil {
			err = s.Add(r)
		}
		if err != nil {
			return err
		}
	}
	for r, err := range s.Sorted() {
		if err == nil {
			err = w.Add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
