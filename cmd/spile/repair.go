package main

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func newRepair(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "repair FILE -o OUT [flags]",
		Short: "Make a right table of contents for a whole payload",
		Long: `Repair writes a document with the payload of FILE and a table of contents that is made from it anew. It helps where the
table of contents or the header is damaged, or was never written. A payload that is damaged itself is refused; salvage
takes what is whole out of it.`,
		Example: `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg
  spile verify --deep run.msg && spile repair run.msg -o repaired.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.repair(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	w.addOutput(e, cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of the payload, where the header does not tell")
	w.addTOC(cmd.Flags())
	w.addAnyMagic(cmd.Flags())
	return cmd
}

func (e *env) repair(ctx context.Context, file string, in *sourceFlags, w *writeFlags) error {
	return e.mend(ctx, file, "repair", in, w, func(out output, obj source.Object) error {
		return msglc.Repair(ctx, out, obj, w.damaged(in))
	})
}

// mend makes the output of a damaged document.
func (e *env) mend(ctx context.Context, file, verb string, in *sourceFlags, w *writeFlags, fill func(output, source.Object) error) error {
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
	if obj, err = e.wreck(ctx, obj, in, w); err != nil {
		return err
	}
	return e.write(ctx, verb, w.output, func(out output) error {
		err := named(fill(out, obj), obj.Name())
		if hinted := hintMagic(ctx, err, obj, in.reads()); !w.anyMagic && hinted != err {
			return hinted
		}
		if errors.Is(err, fault.Corrupt) && verb == "repair" {
			return advised{err, "repair is for a whole payload, and spile salvage takes what is whole of a broken one"}
		}
		return err
	})
}

// hintMagic adds to the error about a file that may be a document with another magic, or with a damaged one, which flag
// takes it.
func hintMagic(ctx context.Context, err error, obj source.Object, magic []byte) error {
	f, ok := err.(*fault.Error)
	if !ok || !errors.Is(err, fault.Corrupt) {
		return err
	}
	prefix, err2 := headOf(ctx, obj, 0, msglc.PrefixSize)
	if err2 != nil || len(prefix) < msglc.MagicSize || bytes.HasPrefix(prefix, paddedMagic(magic)) || !hasHeader(prefix, obj.Size()) && prefix[0] != 0 {
		return err
	}
	hinted := *f
	hinted.Msg += "; --any-magic takes a document with any magic or a damaged one, --magic one with another"
	return &hinted
}

// wreck is where the damaged document in obj starts. A file that is a good one of another format is none, and so is what
// shows no sign of a document, unless a flag says that it is one.
func (e *env) wreck(ctx context.Context, obj source.Object, in *sourceFlags, w *writeFlags) (source.Object, error) {
	f := in.format
	if f == anyFormat && !w.anyMagic {
		var err error
		f, err = detect(ctx, obj, int64(in.offset), in.reads())
		if errors.Is(err, fault.Invalid) { // other errors are what this is about
			return nil, err
		}
		if err != nil && w.codec == 0 && errors.Is(err, fault.Corrupt) {
			prefix, err2 := headOf(ctx, obj, int64(in.offset), sniffSize)
			if err2 != nil {
				return nil, err2
			}
			if foreign(prefix) != "" || len(prefix) == 0 {
				return nil, err
			}
			if !mayBeDocument(prefix, obj.Size()-int64(in.offset)) {
				return nil, advised{err, "--any-magic or --format take it as a document all the same"}
			}
		}
	}
	switch f {
	case formatJSON, formatTCB, formatSeries:
		return nil, fault.New(fault.Invalid, "", "is a %s file, not a document, msgpack or cbor", f).In(obj.Name())
	}
	return from(obj, in.offset)
}

// mayBeDocument reports whether the head of a file of that size may be one of a damaged document, or of a plain value
// that breaks off: it has padding or numbers where a document has them, or begins a list, a map or a tag, and is no text.
// A lone number or text that something stands behind is worth no salvage.
func mayBeDocument(head []byte, size int64) bool {
	switch {
	case head[0] == 0 || hasHeader(head, size):
		return true
	case isText(head):
		return false
	}
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		if h, err := value.ReadHead(c, head); err == nil && (h.Kind == value.Array || h.Kind == value.Map || h.Kind == value.Tag) {
			return true
		}
	}
	return false
}

// damaged are the options for a document whose header may not tell its codec.
func (f *writeFlags) damaged(in *sourceFlags) *msglc.WriteOptions {
	o := f.options(in)
	o.AnyMagic = f.anyMagic
	if o.Codec == 0 {
		o.Codec = in.format.codec()
	}
	return o
}
