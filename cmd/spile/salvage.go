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
maps around it, which end there. Behind the break it keeps the values that an intact table of contents leads to. Standard
error says where the break is and what is lost, a line for each, 20 at most, and the exit status is 3; it is 0 when
nothing is lost.`,
		Example: `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg
  spile salvage run.msg -o saved.msg && spile cat saved.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.salvage(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(e, cmd.Flags())
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
	var lines []string
	more := report.Unlisted
	for _, b := range report.Breaks {
		e.partial = true
		lines = append(lines, lost(b)...)
	}
	if len(lines) > maxLossLines {
		more += int64(len(lines) - maxLossLines)
		lines = lines[:maxLossLines]
	}
	for _, line := range lines {
		e.say("%s: %s", name, line)
	}
	if more > 0 {
		e.say("%s: and %d more", name, more)
	}
	return nil
}

// maxLossLines is how many lines about losses are printed.
const maxLossLines = 20

// lost says what is lost at a break: a line for the break, and one for each container that lost something.
func lost(b msglc.Break) []string {
	text := place(b.Path) + ": " + message(b.Err)
	if f, ok := errors.AsType[*fault.Error](b.Err); ok {
		text = place(b.Path) + ": " + newFinding(f).Msg
	}
	lines := []string{fmt.Sprintf("%s (offset %#x)", text, b.Offset)}
	for _, c := range b.Cut {
		switch {
		case c.Claimed < 0:
			lines = append(lines, fmt.Sprintf("%s: %d kept of a %s whose length is not known", place(c.Path), c.Kept, c.Kind))
		case c.Kept < c.Claimed:
			lines = append(lines, fmt.Sprintf("%s: %d of %d lost of the %s", place(c.Path), c.Claimed-c.Kept, c.Claimed, c.Kind))
		}
	}
	return lines
}

func place(p msglc.Path) string {
	if len(p) == 0 {
		return "(root)"
	}
	return pathText(p)
}
