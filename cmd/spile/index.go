package main

import (
	"context"
	"path/filepath"
	"strings"

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

With --sidecar the file is left alone: the table of contents alone is written, to INPUT.toc, the name that every reading
verb looks for. It holds for this version of the file: reading verbs refuse it when the size, or the first or last
64 KiB, are others. With -o it goes to another folder, for a copy of INPUT there; the name stays, as under another one
no verb would find it.`,
		Example:           `  printf '\203\001\002\003' > list.cbor && spile index --sidecar list.cbor && spile get list.cbor 1`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.index(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	cmd.Flags().Lookup("magic").Usage = "the magic of the document OUT, 1 to 30 bytes (msglc-2024)"
	w.addOutput(e, cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of INPUT, found from its content otherwise")
	w.addTOC(cmd.Flags())
	cmd.Flags().BoolVar(&w.sidecar, "sidecar", false, "write the table of contents alone, beside INPUT")
	return cmd
}

func (e *env) index(ctx context.Context, file string, in *sourceFlags, w *writeFlags) error {
	if err := in.check(); err != nil {
		return err
	}
	switch {
	case w.sidecar:
		if err := w.besides(file); err != nil {
			return err
		}
	case w.output == "":
		return usagef("-o OUT or --sidecar is missing")
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

// besides makes the sidecar of a file the output, or checks that the output has the name of a sidecar of it.
func (w *writeFlags) besides(file string) error {
	if file == "-" {
		switch {
		case w.output == "":
			return usagef("standard input has no place beside it: --sidecar wants -o OUT here")
		case w.output != "-" && !strings.HasSuffix(w.output, msglc.SidecarName("")):
			return usagef("a sidecar is found by its name alone, that of its file with %s behind it: %s does not end so", msglc.SidecarName(""), w.output)
		}
		return nil
	}
	path, err := pathOf(file), error(nil)
	if !isURL(file) {
		path, err = localPath(file)
	} else if w.output == "" && !isHTTP(file) {
		w.output = behind(pathOf(file), msglc.SidecarName(""))
	} else if w.output == "" {
		err = usagef("nothing is written over HTTP: --sidecar wants -o OUT here")
	}
	if err != nil {
		return err
	}
	switch name := filepath.Base(msglc.SidecarName(path)); {
	case w.output == "":
		w.output = msglc.SidecarName(path)
	case w.output != "-" && filepath.Base(w.output) != name:
		return usagef("a sidecar is found by its name alone: -o can name another folder, but the name must be %s", name)
	}
	return nil
}

// plainInput settles the codec of a MessagePack or CBOR input, and goes to where its value starts.
func (e *env) plainInput(ctx context.Context, obj source.Object, in *sourceFlags, w *writeFlags) (source.Object, error) {
	f := in.format
	if f == anyFormat && w.codec != 0 {
		f = formatOf(w.codec)
	}
	if f == anyFormat {
		var err error
		if f, err = detect(ctx, obj, int64(in.offset), in.reads()); err != nil {
			return nil, named(err, obj.Name())
		}
	}
	switch c := f.codec(); {
	case f == formatTCB || f == formatSeries:
		return nil, named(notDocument(f), obj.Name())
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
