package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func newPack(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "pack INPUT -o OUT [flags]",
		Short: "Make a document of JSON, MessagePack or CBOR",
		Long: `Pack encodes JSON, MessagePack or CBOR as a document. Integers and lengths take their shortest form, floats keep their
width, pairs their order. It streams: an input of any length takes the same memory. A document as input is packed
anew, with the flags that are given.`,
		Example:           `  echo '{"runs":[{"energy":-1.5},{"energy":-2.5}]}' | spile pack - -o run.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.pack(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of the document (msgpack)")
	w.addTOC(cmd.Flags())
	cmd.Flags().BoolVar(&in.lossless, "lossless", false, "fail where something cannot be kept, instead of saying so")
	return cmd
}

func (e *env) pack(ctx context.Context, file string, in *sourceFlags, w *writeFlags) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	obj, err := e.object(ctx, file, in)
	if err != nil {
		return err
	}
	defer obj.Close()
	f := in.format
	if f == anyFormat {
		if f, err = detect(ctx, obj, int64(in.offset), in.magic); err != nil {
			return named(err, obj.Name())
		}
	}
	_ = f
	return e.write(ctx, "pack", w.output, func(out output) error {
		o := w.options(in)
		if o.Codec == 0 {
			o.Codec = value.Msgpack
		}
		return e.packJSON(ctx, out, obj, in, o)
	})
}

// packJSON writes the document of a JSON text.
func (e *env) packJSON(ctx context.Context, dst msglc.Target, obj source.Object, f *sourceFlags, o *msglc.WriteOptions) error {
	w, err := msglc.NewWriter(dst, o)
	if err != nil {
		return err
	}
	defer w.Close()
	var losses value.Losses
	text := source.AsReaderAt(ctx, obj)
	if err := value.ReadJSON(w, text, obj.Size(), o.Codec, &value.JSONReadOptions{Limits: f.limits(), Lossless: f.lossless}, &losses); err != nil {
		return named(err, obj.Name())
	}
	e.losses(obj.Name(), &losses)
	return named(w.Close(), obj.Name())
}
