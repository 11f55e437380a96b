package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/value"
)

func newToc(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	cmd := &cobra.Command{
		Use:   "toc FILE [PATH] [flags]",
		Short: "Print the table of contents as JSON",
		Long: `Toc prints the table of contents from a node down, as it is stored: {"p":[start,end]} is a value that is read as a
whole, {"p":[[count,start,end],…]} a list in blocks, and {"p":…,"t":…} a list or map with an entry for every child.
The children of a combined file are offsets. Positions count from the start of the payload.

` + manyHelp,
		Example:           `  echo '{"runs":[1,2,3]}' | spile pack --threshold 1 --trivial 1 - -o run.msg && spile toc run.msg`,
		Args:              arguments(1, 2),
		ValidArgsFunction: completePath(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.forEach(cmd.Context(), args[0], &in, out.printed(), func(e *env, file string) error {
				return e.toc(cmd.Context(), with(file, args), &in, &out)
			})
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags())
	cmd.Flags().Bool("json", true, "print JSON, as always") // for scripts that give it to every verb
	_ = cmd.Flags().MarkHidden("json")
	return cmd
}

func (e *env) toc(ctx context.Context, args []string, in *sourceFlags, out *jsonFlags) error {
	_, d, n, err := e.node(ctx, args, in)
	if err != nil {
		return err
	}
	defer d.Close()
	var losses value.Losses
	if err := n.WriteTOC(ctx, e.out, &out.JSONOptions, &losses); err != nil {
		return named(err, d.name)
	}
	e.losses(d.name, &losses)
	return e.out.WriteByte('\n')
}
