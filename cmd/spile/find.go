package main

import (
	"context"
	"iter"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
)

func newFind(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	f := newQueryFlags()
	cmd := &cobra.Command{
		Use:   "find PREFIX EXPR [flags]",
		Short: "Run a jq program over many documents",
		Long: `Find runs the jq program EXPR, as query does, over every document below PREFIX: a folder, the beginning of the URLs of a
store (s3://bucket/2026/), or a pattern. It prints each result as a line {"file":NAME,"value":RESULT}. Of each document it
reads what the program uses, and some are read at a time.

A file that is no document, or in which the program fails, is named on standard error; the others are read, and the exit
status is 3. Files that begin with a dot, and sidecars, are left out.

` + strings.Replace(manyHelp, "FILE", "PREFIX", 1),
		Example: `  mkdir -p runs && echo '{"id":7,"energy":-1.5}' | spile pack - -o runs/a.msg
  spile find runs 'select(.energy < 0) | .id'`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.find(cmd.Context(), args[0], args[1], &in, &out, &f)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags())
	f.add(cmd.Flags())
	for _, other := range []string{"pretty", "raw-output"} { // a result is a line of JSON
		cmd.Flags().Lookup(other).Hidden = true
	}
	return cmd
}

func (e *env) find(ctx context.Context, prefix, program string, in *sourceFlags, out *jsonFlags, f *queryFlags) error {
	if out.Pretty || f.raw {
		return usagef("find prints a JSON line for each result; --pretty and -r are of query")
	}
	if _, err := f.compile(program, in, out); err != nil { // once, instead of once for each document
		return err
	}
	names, err := e.documents(ctx, prefix)
	if err != nil {
		return err
	}
	return e.eachOf(ctx, names, asLines, false, func(e *env, file string) error {
		return e.query(ctx, file, program, in, out, f)
	})
}

// documents gives the files that the argument PREFIX stands for.
func (e *env) documents(ctx context.Context, prefix string) (iter.Seq2[string, error], error) {
	switch {
	case isPattern(prefix):
		return e.matches(ctx, prefix), nil
	case isHTTP(prefix):
		return nil, usagef("servers of files over HTTP do not list them: %s is one file; spile query reads it", shown(prefix))
	case isURL(prefix):
		return e.below(ctx, prefix), nil
	}
	path, err := localPath(prefix)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.NotFound, "", "").In(path).Because(bare(err))
	}
	if !info.IsDir() {
		return func(yield func(string, error) bool) { yield(path, nil) }, nil
	}
	return e.below(ctx, path), nil
}
