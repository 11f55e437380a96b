package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
)

func newUnpack(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "unpack FILE -o OUT [flags]",
		Short: "Write the payload of a document alone",
		Long: `Unpack writes the payload of a document, byte for byte: a plain MessagePack or CBOR file, which any library reads. A
combined file has whole documents as its payload, so it is refused; extract takes one of them out.`,
		Example:           `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg && spile unpack run.msg -o run.msgpack`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.unpack(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(e, cmd.Flags())
	return cmd
}

func (e *env) unpack(ctx context.Context, file string, in *sourceFlags, w *writeFlags) error {
	if err := w.check(); err != nil {
		return err
	}
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.format != formatMsglc {
		return fault.New(fault.Invalid, "", "is a plain %s file: there is nothing to unpack", d.format).In(d.name)
	}
	if d.Info().Form == msglc.Combined {
		return fault.New(fault.Invalid, "", "is a combined file, whose payload is documents; extract takes one out").In(d.name)
	}
	if !isOneValue(d.Root()) {
		return fault.New(fault.Invalid, "", "has documents among its values, so its payload is not one value; pack makes a plain document of it").In(d.name)
	}
	return e.write(ctx, "unpack", w.output, func(out output) error {
		_, err := io.Copy(out, d.ProtocolRawData(ctx))
		return named(err, d.name)
	})
}
