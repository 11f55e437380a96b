package main

import (
	"bytes"
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
	w.addOutput(e, cmd.Flags())
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
		if d.format == formatJSON {
			if obj, err = local(ctx, obj); err != nil {
				return nil, nil, err
			}
		}
		obj, err = from(obj, in.offset)
	default:
		err = notDocument(d.format)
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
	data := source.AsReaderAt(ctx, obj)
	if d.format == formatMsglc {
		p := packer{ctx: ctx, w: w, bytes: data, o: o, left: d.size}
		err = p.archive(d.Reader)
	} else {
		err = value.TranscodeAt(w, o.Codec, d.format.codec(), data, obj.Size(), o.Limits)
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
	left  int64      // bytes of the file that were not packed yet
	path  msglc.Path // of what is being packed
}

// archive writes the value of an archive: the payload, or what is made of the values of its parts.
func (p *packer) archive(r *msglc.Reader) error {
	in, root := r.Info(), r.Root()
	if err := p.take(msglc.PrefixSize+in.TOCSize, in.Start); err != nil {
		return err
	}
	if isOneValue(root) {
		return p.section(in.Codec, in.PayloadStart, in.PayloadSize)
	}
	return p.children(root, r)
}

// isOneValue reports whether the payload below a root is one value, and not documents, alone or with values among them.
func isOneValue(root msglc.Node) bool {
	_, whole := root.Range()
	return whole || root.Form() == msglc.Blocks
}

// node writes the value of a node of an archive.
func (p *packer) node(n msglc.Node, r *msglc.Reader) error {
	if at, whole := n.Range(); whole {
		return p.section(r.Info().Codec, at.Start, at.Len())
	}
	if n.Form() != msglc.Blocks {
		return p.children(n, r)
	}
	raw, err := n.Raw(p.ctx)
	if err != nil {
		return err
	}
	size, err := n.Size(p.ctx)
	if err == nil {
		err = p.take(size, r.Info().PayloadStart)
	}
	if err != nil {
		return err
	}
	return value.TranscodeAt(p.w, p.o.Codec, raw.Codec, bytes.NewReader(raw.Data), int64(len(raw.Data)), p.o.Limits)
}

// section writes a value that is encoded in the file.
func (p *packer) section(c value.Codec, at, size int64) error {
	if err := p.take(size, at); err != nil {
		return err
	}
	err := value.TranscodeAt(p.w, p.o.Codec, c, io.NewSectionReader(p.bytes, at, size), size, p.o.Limits)
	return fault.Shift(err, at)
}

// children writes a list or map of the values of the children, which are archives or nodes of the same archive.
func (p *packer) children(n msglc.Node, r *msglc.Reader) error {
	ctx, w, o := p.ctx, p.w, p.o
	kind, err := n.Kind(ctx)
	if err != nil {
		return err
	}
	count, err := n.Len(ctx)
	if err != nil {
		return err
	}
	head := value.AppendArrayHeader(nil, o.Codec, int(count))
	if kind == value.Map {
		head = value.AppendMapHeader(nil, o.Codec, int(count))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for child, err := range n.Children(ctx) {
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
		p.path = append(p.path, child.Step())
		if part == r {
			err = p.node(child.Node, r)
		} else {
			err = p.archive(part)
		}
		if err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
	}
	return nil
}

// take takes bytes from those of the file that are left. In an honest file no byte belongs to two values, so that children
// that overlap are found before they multiply.
func (p *packer) take(size, at int64) error { return takeBytes(&p.left, size, at, p.path) }

func takeBytes(left *int64, size, at int64, path msglc.Path) error {
	if *left -= size; *left < 0 {
		return fault.New(fault.Corrupt, "", "children overlap: what is in it has more bytes than the file").At(at).On(pathText(path))
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
