package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

func newSeriesRedact(e *env) *cobra.Command {
	x := &seriesRedact{env: e, memory: series.DefaultRedactBytes}
	cmd := &cobra.Command{
		Use:   "redact IN -o DIR [flags]",
		Short: "Replace the values of labels, to show an artifact to others",
		Long: `Redact writes an artifact whose labels have other values, so that it can go with a report of a fault. What stays: the order
of the values of a label, which of them are equal, null or empty, the class of their lengths (1 to 8 bytes, 9 to 16, 17 to 32 and so
on), tables, TSIDs, rows, blocks, and what the manifest says. A value is replaced by its rank and characters that a keyed hash
chooses (HMAC-SHA-256). No value of 4 to 16 bytes that was replaced stands in a replacement.

So others learn how many values there are, how often and in which order, and about how long they are. Whoever guesses all labels of
a series may confirm the guess by its TSID, where that is a hash of them. The names of labels stay, unless --names replaces them;
--keep leaves a label as it is. --tables replaces the names of metrics in a mapping of tables, too, and writes it beside the
artifact, as <generation>.tables.csv.

The key is random and is kept nowhere, so that nobody can compare a guess with a hash. With a key of --key-file or $` + keyVariable + ` the
same artifact becomes the same bytes. Values and replacements are held in memory, up to --memory.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series redact out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f -o redacted`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if x.output == "" || x.output == "-" {
				return usagef("-o DIR is missing")
			}
			return x.run(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	x.in.add(flags)
	x.in.addArtifacts()
	x.in.artifacts.once = true
	flags.StringVarP(&x.output, "output", "o", "", "the folder `DIR` below which the artifact is written, or its URL")
	e.addNoOverwrite(flags)
	flags.StringVar(&x.keyFile, "key-file", "", "the `FILE` with the key of the hash, 64 hexadecimal digits (or $"+keyVariable+"; a random one)")
	flags.StringArrayVar(&x.keep, "keep", nil, "keep the values of the `LABEL`; once for each")
	flags.BoolVar(&x.names, "names", false, "replace the names of labels, too")
	flags.StringVar(&x.tables, "tables", "", "the `FILE` with the names of tables, CSV: table id, name")
	flags.StringVar(&x.generation, "generation", "", "the `UUID` of the artifact; one that follows from the key otherwise")
	flags.Var(&x.memory, "memory", "how many bytes of values and replacements are held in memory")
	return cmd
}

// seriesRedact is a run of series redact.
type seriesRedact struct {
	*env
	in         sourceFlags
	output     string
	keyFile    string
	keep       []string
	names      bool
	tables     string
	generation string
	memory     size
}

func (x *seriesRedact) run(ctx context.Context, file string) error {
	o := &series.RedactOptions{Keep: x.keep, Names: x.names, Memory: int64(x.memory)}
	if x.generation != "" {
		id, err := series.ParseUUID(x.generation)
		if err != nil {
			return usagef("--generation: %s", message(err))
		}
		o.Generation = &id
	}
	var err error
	if o.Key, err = readKey(x.keyFile, "--key-file", keyVariable); err != nil {
		return err
	}
	if o.Key == nil {
		o.Key = make([]byte, series.RedactKeySize)
		rand.Read(o.Key) // which does not fail
	}
	var metrics map[uint32]string
	if x.tables != "" {
		if metrics, err = readTableNames(x.tables); err != nil {
			return err
		}
	}
	return x.withArtifact(ctx, file, &x.in, func(a *artifact) error {
		defer x.progress(ctx, "series redact")()
		r, err := series.NewRedactor(ctx, a.Artifact, o)
		if errors.Is(err, fault.NotFound) {
			return advised{err, "spile info lists them"}
		}
		if err != nil {
			return err
		}
		if metrics != nil {
			if metrics, err = r.Metrics(metrics); err != nil {
				return err
			}
		}
		return x.write(ctx, r, metrics)
	})
}

// write writes the artifact, and the mapping of tables beside it.
func (x *seriesRedact) write(ctx context.Context, r *series.Redactor, metrics map[uint32]string) error {
	meta, layout := r.Manifest(), r.Layout()
	target, err := x.artifactTarget(ctx, x.output, meta.RegionID, meta.Generation, layout.PartBytes)
	if err != nil {
		return err
	}
	w, err := series.NewWriter(ctx, target, meta, layout)
	if err != nil {
		target.Discard()
		return err
	}
	defer w.Abort()
	for rec, err := range r.Records(ctx) {
		if err == nil {
			err = w.Add(rec)
		}
		if err != nil {
			return err
		}
	}
	if metrics != nil { // first: without the names of its tables the artifact is half of what was asked for
		err := x.beside(ctx, target, ".tables.csv", func(out io.Writer) error { return writeTableNames(out, metrics) })
		if err != nil {
			return err
		}
	}
	return named(w.Close(), target.Dir())
}
