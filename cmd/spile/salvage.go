package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
)

func newSalvage(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "salvage FILE -o OUT [flags]",
		Short: "Take every complete value out of a broken document",
		Long: `Salvage writes a document of what comes before the break in a payload: every value that is complete, in the lists and
maps around it, which end there. Standard error says where the break is and what is lost, and the exit status is 3; it
is 0 when nothing is lost.`,
		Example: `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg
  spile salvage run.msg -o saved.msg && spile cat saved.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.salvage(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of the payload, where the header does not tell")
	w.addTOC(cmd.Flags())
	w.addAnyMagic(cmd.Flags())
	return cmd
}

func (e *env) salvage(ctx context.Context, file string, in *sourceFlags, w *writeFlags) error {
	var report msglc.SalvageReport
	name := ""
	err := e.mend(ctx, file, "salvage", in, w, func(out output, obj source.Object) (err error) {
		e.passes.Store(2) // the first one finds the break
		name = obj.Name()
		report, err = msglc.Salvage(ctx, out, obj, w.damaged(in))
		return err
	})
	if err != nil {
		return err
	}
	for _, b := range report.Breaks {
		e.partial = true
		e.say("%s: %s (offset %#x)", name, lost(b), b.Offset)
	}
	return nil
}

// lost says what is lost at a break.
func lost(b msglc.Break) string {
	text := place(b.Path) + ": " + message(b.Err)
	if f, ok := errors.AsType[*fault.Error](b.Err); ok {
		text = place(b.Path) + ": " + newFinding(f).Msg
	}
	for _, c := range b.Cut {
		switch {
		case c.Claimed < 0:
			text += fmt.Sprintf("; %d kept of the %s %s, whose length is not known", c.Kept, c.Kind, place(c.Path))
		case c.Kept < c.Claimed:
			text += fmt.Sprintf("; %d of %d lost of the %s %s", c.Claimed-c.Kept, c.Claimed, c.Kind, place(c.Path))
		}
	}
	return text
}

func place(p msglc.Path) string {
	if len(p) == 0 {
		return "(root)"
	}
	return pathText(p)
}
