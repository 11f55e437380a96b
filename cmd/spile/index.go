package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
)

func newIndex(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "index INPUT {-o OUT | --sidecar} [flags]",
		Short: "Give a MessagePack or CBOR file a table of contents",
		Long: `Index makes a document of an existing MessagePack or CBOR file in one pass. The bytes of the file become the payload as
they are.

With --sidecar the file is left alone: the table of contents alone is written, to a file beside it whose name every
reading verb looks for, or to OUT. It holds for this version of the file: reading verbs refuse it when the size, or
the first or last 64 KiB, are others.`,
		Example:           `  printf '\203\001\002\003' > list.cbor && spile index --sidecar list.cbor && spile get list.cbor 1`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.index(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of INPUT, found from its content otherwise")
	w.addTOC(cmd.Flags())
	cmd.Flags().BoolVar(&w.sidecar, "sidecar", false, "write the table of contents alone, beside INPUT")
	return cmd
}

func (e *env) index(ctx context.Context, file string, in *sourceFlags, w *writeFlags) error {
	if err := in.check(); err != nil {
		return err
	}
	if w.sidecar && w.output == "" {
		if file == "-" {
			return usagef("standard input has no place beside it: --sidecar wants -o OUT here")
		}
		path, err := localPath(file)
		if err != nil {
			return err
		}
		w.output = msglc.SidecarName(path)
	}
	if err := w.check(); err != nil {
		return err
	}
	obj, err := e.object(ctx, file, in)
	if err != nil {
		return err
	}
	defer obj.Close()
	if obj, err = e.plainInput(ctx, obj, in, w); err != nil {
		return err
	}
	return e.write(ctx, "index", w.output, func(out output) error {
		if w.sidecar {
			return named(msglc.WriteSidecar(ctx, out, obj, w.options(in)), obj.Name())
		}
		return named(msglc.Index(ctx, out, obj, w.options(in)), obj.Name())
	})
}

// plainInput settles the codec of a MessagePack or CBOR input, and goes to where its value starts.
func (e *env) plainInput(ctx context.Context, obj source.Object, in *sourceFlags, w *writeFlags) (source.Object, error) {
	f := in.format
	if f == anyFormat && w.codec != 0 {
		f = formatOf(w.codec)
	}
	if f == anyFormat {
		var err error
		if f, err = detect(ctx, obj, int64(in.offset), in.magic); err != nil {
			return nil, named(err, obj.Name())
		}
	}
	switch c := f.codec(); {
	case c == 0 && f == formatMsglc:
		return nil, fault.New(fault.Invalid, "", "has a table of contents already; pack or repair makes a new one").In(obj.Name())
	case c == 0:
		return nil, fault.New(fault.Invalid, "", "is a %s file, not msgpack or cbor; pack converts JSON", f).In(obj.Name())
	case w.codec != 0 && w.codec != c:
		return nil, fault.New(fault.Invalid, "", "is a %s file, and index keeps its bytes; pack converts it to %s", c, w.codec).In(obj.Name())
	default:
		w.codec = c
	}
	return from(obj, in.offset)
}
