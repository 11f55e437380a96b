package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/value"
)

func newCat(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	cmd := &cobra.Command{
		Use:   "cat FILE [flags]",
		Short: "Print all of a file as JSON",
		Long: `Cat prints a document as one line of JSON, or indented with --pretty, in stored order. It streams: a document of any
length takes the same memory.

Integers keep every digit, floats read back to the same bits, bytes are base64url without padding. Where JSON has no
form for a value, --non-finite, --invalid-utf8, --keys and --dup say what becomes of it; without them it is an error.`,
		Example:           `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg && spile cat --pretty run.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.cat(cmd.Context(), args[0], &in, &out)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags())
	return cmd
}

func (e *env) cat(ctx context.Context, file string, in *sourceFlags, out *jsonFlags) error {
	in.lossless, in.keepDup, in.invalidUTF8 = out.Lossless, out.Dup != value.DupError, out.InvalidUTF8
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	var losses value.Losses
	if err := e.printValue(ctx, d, nil, out, &losses); err != nil {
		return err
	}
	e.losses(d.name, &losses)
	return nil
}
