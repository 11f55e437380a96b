package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
)

func newExtract(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "extract FILE PATH -o OUT [flags]",
		Short: "Make a document of a part of one, by copying",
		Long: `Extract writes the value at PATH as a document of its own. Its bytes are copied, not decoded, and the part of the table
of contents below it comes along. The items of a slice must be values of one codec: combined documents among them come out
one by one.

` + pathHelp,
		Example: `  echo '{"runs":[{"energy":-1.5},{"energy":-2.5}]}' | spile pack - -o run.msg
  spile extract run.msg runs/1 -o run1.msg && spile cat run1.msg`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completePath(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.extract(cmd.Context(), args, &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(e, cmd.Flags())
	w.addTOC(cmd.Flags())
	return cmd
}

func (e *env) extract(ctx context.Context, args []string, in *sourceFlags, w *writeFlags) error {
	if err := w.check(); err != nil {
		return err
	}
	path, d, n, err := e.node(ctx, args, in)
	if err != nil {
		return err
	}
	defer d.Close()
	return e.write(ctx, "extract", w.output, func(out output) error {
		err := named(msglc.Extract(ctx, out, n, w.options(in)), d.name)
		if n.Form() == msglc.Slice {
			return ofItem(err, path[:len(path)-1])
		}
		return err
	})
}

// ofItem is the error about an item of a slice of the list at a path, with the path of the item, which can be extracted
// alone.
func ofItem(err error, list msglc.Path) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Where == "" {
		return err
	}
	item, parseErr := msglc.ParsePath(f.Where)
	if parseErr != nil {
		return err
	}
	f.Where = pathText(slices.Concat(list, item))
	if errors.Is(err, fault.Invalid) {
		return advised{err, "extract " + shellWord(f.Where) + " takes it alone"}
	}
	return err
}
