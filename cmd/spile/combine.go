package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
)

func newCombine(e *env) *cobra.Command {
	var in sourceFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "combine [--append] -o OUT [NAME=]FILE... [flags]",
		Short: "Join documents into one, without decoding them",
		Long: `Combine joins documents into one by copying them: a map of the names to the documents when every FILE has a name, a
list when none has. The documents keep their codecs; --codec is that of the table of contents around them.

The first = of an argument ends the name, and =FILE is the empty name. A path that holds a = is written so that it
begins with ./, ../ or /.

With --append the documents are added to the combined file OUT, which keeps its codec.`,
		Example: `  echo 1 | spile pack - -o mon.msg && echo 2 | spile pack - -o tue.msg
  spile combine -o days.msg mon=mon.msg tue=tue.msg && spile cat days.msg`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("combine takes one FILE or more, got none; spile combine -h shows an example")
			}
			return nil
		},
		ValidArgsFunction: completeFiles(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.combine(cmd.Context(), args, &in, &w)
		},
	}
	in.add(cmd.Flags())
	cmd.Flags().Lookup("format").Usage = "the format of each FILE, which must be msglc; found from its content otherwise"
	cmd.Flags().Lookup("magic").Usage = "the magic of every FILE and of OUT, 1 to 30 bytes (msglc-2024); pack gives a document another"
	cmd.Flags().Lookup("offset").Usage = "where the document starts in each FILE, in bytes"
	w.addOutput(e, cmd.Flags())
	w.addCodec(cmd.Flags(), "the codec of the table of contents (msgpack)")
	cmd.Flags().BoolVar(&w.appends, "append", false, "add to the combined file OUT")
	return cmd
}

// part is an argument of combine.
type part struct {
	name  string
	named bool
	file  string
}

// parsePart splits NAME=FILE at the first =. What begins as a path or a URL has no name.
func parsePart(arg string) part {
	for _, prefix := range []string{"./", "../", "/", "file://", "http://", "https://", "s3://", "gs://", "azblob://"} {
		if strings.HasPrefix(arg, prefix) {
			return part{file: arg}
		}
	}
	name, file, ok := strings.Cut(arg, "=")
	if !ok {
		return part{file: arg}
	}
	return part{name, true, file}
}

// String is the argument as messages show it.
func (p part) String() string {
	if p.named {
		return p.name + "=" + shown(p.file)
	}
	return shown(p.file)
}

// missing is the error of a file that was not opened, with the rule that may have made its name one of no file.
func (p part) missing(err error) error {
	if p.named && errors.Is(err, fs.ErrNotExist) {
		return advised{err, fmt.Sprintf("the first = of %q ended a name: ./ in front of a path with = keeps it whole", p)}
	}
	return err
}

func parseParts(args []string) ([]part, error) {
	parts := make([]part, len(args))
	seen := make(map[string]bool)
	for i, arg := range args {
		p := parsePart(arg)
		switch {
		case p.named != (i > 0 && parts[0].named) && i > 0:
			return nil, usagef("%q and %q: either every FILE has a name or none", parts[0], p)
		case p.named && seen[p.name]:
			return nil, usagef("the name %q occurs twice", p.name)
		case !utf8.ValidString(p.name):
			return nil, usagef("the name %q is not UTF-8", p.name)
		case p.file == "":
			return nil, usagef("%q names no file", arg)
		}
		seen[p.name] = true
		parts[i] = p
	}
	return parts, nil
}

func (e *env) combine(ctx context.Context, args []string, in *sourceFlags, w *writeFlags) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	given, err := parseParts(args)
	if err != nil {
		return err
	}
	switch {
	case w.appends && w.output == "-":
		return usagef("--append wants a file behind -o, not standard output")
	case w.appends && isURL(w.output):
		return usagef("--append adds to a file of this machine, and %s is in a store", shown(w.output))
	case w.appends && e.keep:
		return usagef("--append adds to OUT, and --no-overwrite leaves it as it is")
	case w.appends && w.codec != 0:
		return usagef("--append keeps the codec of OUT: --codec does not go with it")
	}
	parts := make([]msglc.Part, len(given))
	var one turns
	for i, p := range given {
		obj, err := e.bytes(ctx, p.file, in)
		if err != nil {
			return p.missing(err)
		}
		if _, ok := obj.(*atStore); !ok && obj.Version() != "" { // a file, which can be opened again
			obj = one.take(obj, func() (source.Object, error) { return e.bytes(ctx, p.file, in) })
		}
		obj = e.counted(obj)
		defer obj.Close()
		f := in.format
		if f == anyFormat {
			if f, err = detect(ctx, obj, int64(in.offset), in.reads()); err != nil {
				return named(err, obj.Name())
			}
		}
		if f != formatMsglc {
			return fault.New(fault.Invalid, "", "is a %s file, not a document; pack or index makes one of it", f).In(obj.Name())
		}
		if obj, err = from(obj, in.offset); err != nil {
			return err
		}
		parts[i] = msglc.Part{Name: p.name, Object: obj}
	}
	if w.appends {
		return msglc.Append(ctx, w.output, parts, &msglc.CombineOptions{Named: given[0].named, WriteOptions: *w.options(in)})
	}
	return e.write(ctx, "combine", w.output, func(out output) error {
		return msglc.Combine(ctx, out, parts, &msglc.CombineOptions{Named: given[0].named, WriteOptions: *w.options(in)})
	})
}

// turns keep one of some files open, the one that was read last: a process may hold fewer than combine is given.
type turns struct {
	mu   sync.Mutex
	last *turn
}

// turn is a file that is opened again when it is read again.
type turn struct {
	source.Object // the first that was opened
	turns         *turns
	now           source.Object // nil while it is closed
	open          func() (source.Object, error)
}

// take takes a file that is open.
func (t *turns) take(obj source.Object, open func() (source.Object, error)) source.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &turn{Object: obj, turns: t, now: obj, open: open}
	t.next(o)
	return o
}

func (t *turns) next(o *turn) {
	if t.last != nil && t.last != o && t.last.now != nil {
		t.last.now.Close()
		t.last.now = nil
	}
	t.last = o
}

func (o *turn) ReadAt(ctx context.Context, p []byte, off int64) error {
	o.turns.mu.Lock()
	defer o.turns.mu.Unlock()
	o.turns.next(o)
	if o.now == nil {
		obj, err := o.open()
		if err != nil {
			return err
		}
		if obj.Version() != o.Version() {
			obj.Close()
			return fault.New(fault.Changed, "", "the file has changed while it was used").In(o.Name())
		}
		o.now = obj
	}
	return o.now.ReadAt(ctx, p, off)
}

func (o *turn) Close() error {
	o.turns.mu.Lock()
	defer o.turns.mu.Unlock()
	if o.now == nil {
		return nil
	}
	obj := o.now
	o.now = nil
	return obj.Close()
}
