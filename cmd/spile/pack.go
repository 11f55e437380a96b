package main

import (
	"context"
	"errors"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
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
anew, with the flags that are given, and a combined one becomes a plain one; --from-magic and --magic give it another
magic. What the codec of the document has no form
for, such as most CBOR tags in MessagePack, is an error.`,
		Example:           `  echo '{"runs":[{"energy":-1.5},{"energy":-2.5}]}' | spile pack - -o run.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.pack(cmd.Context(), args[0], &in, &w)
		},
	}
	in.add(cmd.Flags())
	in.addFrom(cmd.Flags())
	w.addOutput(cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of the document (that of INPUT, msgpack for JSON)")
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
	d, obj, err := e.packInput(ctx, file, in)
	if err != nil {
		return err
	}
	defer obj.Close()
	o := w.options(in)
	if o.Codec == 0 {
		o.Codec = d.codec()
	}
	return e.write(ctx, "pack", w.output, func(out output) error {
		if d.format == formatJSON {
			return e.packJSON(ctx, out, obj, in, o)
		}
		return named(packBinary(ctx, out, obj, d, o), obj.Name())
	})
}

// packInput opens what pack reads. JSON is not opened as a document, which would pack it twice.
func (e *env) packInput(ctx context.Context, file string, in *sourceFlags) (*document, source.Object, error) {
	obj, err := e.object(ctx, file, in)
	if err != nil {
		return nil, nil, err
	}
	d := &document{name: obj.Name(), size: obj.Size(), format: in.format}
	if d.format == anyFormat {
		d.format, err = detect(ctx, obj, int64(in.offset), in.reads())
	}
	switch {
	case err != nil:
	case d.format == formatMsglc:
		d.Reader, err = msglc.Open(ctx, obj, in.options())
	case d.format == formatJSON || d.format.codec() != 0:
		obj, err = from(obj, in.offset)
	default:
		err = fault.New(fault.Invalid, "", "is a %s file, and pack takes documents", d.format)
	}
	if err != nil {
		obj.Close()
		return nil, nil, named(err, d.name)
	}
	return d, obj, nil
}

// codec is the codec that packing keeps.
func (d *document) codec() value.Codec {
	switch {
	case d.format == formatMsglc:
		return d.Info().Codec
	case d.format == formatCBOR:
		return value.CBOR
	}
	return value.Msgpack
}

// packBinary writes the document of what is encoded already, in the plain form of the codec.
func packBinary(ctx context.Context, dst msglc.Target, obj source.Object, d *document, o *msglc.WriteOptions) error {
	w, err := msglc.NewWriter(ctx, dst, o)
	if err != nil {
		return err
	}
	defer w.Close()
	bytes := source.AsReaderAt(ctx, obj)
	if d.format == formatMsglc {
		p := packer{ctx, w, bytes, o, d.size}
		err = p.archive(d.Reader)
	} else {
		err = value.TranscodeAt(w, o.Codec, d.format.codec(), bytes, obj.Size(), o.Limits)
	}
	if err != nil {
		return err
	}
	return w.Close()
}

// packer writes the values of archives.
type packer struct {
	ctx   context.Context
	w     io.Writer
	bytes io.ReaderAt
	o     *msglc.WriteOptions
	left  int64 // bytes of the file that were not packed yet
}

// archive writes the value of an archive: that of a combined one is made of the values of its parts.
func (p *packer) archive(r *msglc.Reader) error {
	ctx, w, o, in := p.ctx, p.w, p.o, r.Info()
	if err := enter(&p.left, in); err != nil {
		return err
	}
	if in.Form != msglc.Combined {
		payload := io.NewSectionReader(p.bytes, in.PayloadStart, in.PayloadSize)
		err := value.TranscodeAt(w, o.Codec, in.Codec, payload, in.PayloadSize, o.Limits)
		return fault.Shift(err, in.PayloadStart)
	}
	root := r.Root()
	kind, err := root.Kind(ctx)
	if err != nil {
		return err
	}
	n, err := root.Len(ctx)
	if err != nil {
		return err
	}
	head := value.AppendArrayHeader(nil, o.Codec, int(n))
	if kind == value.Map {
		head = value.AppendMapHeader(nil, o.Codec, int(n))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for child, err := range root.Children(ctx) {
		if err != nil {
			return err
		}
		if child.Key.Data != nil {
			key, err := value.Transcode(nil, o.Codec, child.Key.Codec, child.Key.Data, o.Limits)
			if err != nil {
				return err
			}
			if _, err := w.Write(key); err != nil {
				return err
			}
		}
		part, err := child.Node.Archive(ctx)
		if err != nil {
			return err
		}
		if part == r {
			return fault.New(fault.Invalid, "", "combined file with a part that is no document").On(pathText(msglc.Path{child.Step()}))
		}
		if err := p.archive(part); err != nil {
			return err
		}
	}
	return nil
}

// enter takes what belongs to an archive, and to no archive in it, from the bytes of the file that are left. In an honest
// file no byte belongs to two, so that archives that overlap are found before they multiply.
func enter(left *int64, in msglc.Info) error {
	*left -= msglc.PrefixSize + in.TOCSize
	if in.Form != msglc.Combined {
		*left -= in.PayloadSize
	}
	if *left < 0 {
		return fault.New(fault.Corrupt, "", "children overlap: the documents in it have more bytes than the file")
	}
	return nil
}

// packJSON writes the document of a JSON text.
func (e *env) packJSON(ctx context.Context, dst msglc.Target, obj source.Object, f *sourceFlags, o *msglc.WriteOptions) error {
	w, err := msglc.NewWriter(ctx, dst, o)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := e.readJSON(ctx, w, obj, f, o.Codec); err != nil {
		return err
	}
	return named(w.Close(), obj.Name())
}

// readJSON writes the encoding of a JSON file.
func (e *env) readJSON(ctx context.Context, dst io.Writer, obj source.Object, f *sourceFlags, c value.Codec) error {
	e.passes.Store(2) // the first one counts
	var losses value.Losses
	o := &value.JSONReadOptions{Limits: f.limits(), Lossless: f.lossless, KeepDup: f.keepDup, InvalidUTF8: f.invalidUTF8}
	if err := value.ReadJSON(dst, source.AsReaderAt(ctx, obj), obj.Size(), c, o, &losses); err != nil {
		return e.jsonAdvice(named(err, obj.Name()))
	}
	e.losses(obj.Name(), &losses)
	return nil
}

// moreJSON is what the reader of JSON says of a second text behind the first.
var moreJSON = regexp.MustCompile(`'[{["0-9tfn-]' where the end is expected`)

// jsonAdvice says what to do about some JSON texts that are no document.
func (e *env) jsonAdvice(err error) error {
	switch p, ok := errors.AsType[value.Permit](err); {
	case ok && p == value.PermitKeepDup && e.flags != nil && e.flags.Lookup("output") != nil:
		return advised{err, "spile cat --dup=first or last makes JSON with one of them"}
	case !ok && moreJSON.MatchString(err.Error()):
		return advised{err, "of several JSON values, as in JSON Lines, make one with jq -s . or a document of each"}
	}
	return err
}
