package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/value"
)

// document is a FILE argument, opened to be read as a document.
//
// Or it is a table or a series artifact, for the verbs that read these; then it has no reader of documents.
type document struct {
	*msglc.Reader
	table    *table
	artifact *artifact
	name     string
	size     int64 // of the file
	format   format
}

// open opens what a FILE argument names. A MessagePack or CBOR file is read by the sidecar beside it, where there is
// one, else by a scan; JSON becomes a temporary document first. The caller closes the document.
func (e *env) open(ctx context.Context, arg string, f *sourceFlags) (*document, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if dir, ok := folder(arg); ok {
		return e.openFolder(ctx, dir, f)
	}
	inFolder := folderURL(arg)
	if inFolder {
		if f.artifacts == nil || f.format != anyFormat && f.format != formatSeries {
			return nil, fault.New(fault.Invalid, "", "is the URL of a folder, and this is for files").In(shown(arg))
		}
		arg = beside(arg, series.ManifestName)
	}
	obj, err := e.object(ctx, arg, f)
	if errors.Is(err, fault.NotFound) {
		switch {
		case inFolder && isHTTP(arg):
			err = advised{err, "servers of files over HTTP do not list them, so a URL with a slash at its end is the folder of one artifact"}
		case e.remote.full < 0 && new(size).Set(arg) == nil:
			err = advised{err, "MAX of --allow-full-download stands behind a ="}
		}
	}
	if err != nil {
		return nil, err
	}
	d, err := openDocument(ctx, obj, e, f)
	if err != nil {
		obj.Close()
		return nil, named(err, obj.Name())
	}
	if inFolder && d.artifact == nil {
		d.Close()
		return nil, fault.New(fault.Invalid, "", "is a %s file, and no manifest", d.format).In(d.name)
	}
	return d, nil
}

// openToPrint opens a document whose values are printed by the flags of out.
func (e *env) openToPrint(ctx context.Context, arg string, f *sourceFlags, out *jsonFlags) (*document, error) {
	own := *f // f may be shared with documents that are opened at the same time
	own.lossless, own.keepDup, own.invalidUTF8 = out.Lossless, out.Dup != value.DupError, out.InvalidUTF8
	return e.open(ctx, arg, &own)
}

func openDocument(ctx context.Context, obj source.Object, e *env, f *sourceFlags) (*document, error) {
	d := &document{name: obj.Name(), size: obj.Size(), format: f.format}
	var err error
	if d.format == anyFormat {
		if d.format, err = detectMagic(ctx, obj, int64(f.offset), f.reads()); err != nil {
			return nil, err
		}
	}
	switch d.format {
	case formatMsglc:
		d.Reader, err = msglc.Open(ctx, obj, f.options())
		if errors.Is(err, fault.Corrupt) {
			err = advised{named(err, obj.Name()), "spile repair makes a new table of contents for a whole payload, spile salvage takes what is whole of a broken one"}
		}
		return d, err
	case formatTCB:
		return d, d.openTable(ctx, obj, e, f)
	case formatSeries:
		return d, d.openSeries(ctx, obj, e, f)
	}
	if d.format == anyFormat {
		json, err := isJSONFile(ctx, obj, int64(f.offset))
		if err != nil {
			return nil, err
		}
		if json { // which has no sidecar, whatever lies beside it
			d.format = formatJSON
		}
	}
	if d.format == anyFormat || d.format.codec() != 0 {
		// A sidecar says what lies beside it better than a guess.
		sidecar, err := e.sidecar(ctx, obj, f)
		if err != nil {
			return nil, err
		}
		if sidecar != nil {
			if d.Reader, err = msglc.OpenSidecar(ctx, obj, sidecar, f.options()); err != nil {
				sidecar.Close()
				return nil, err
			}
			d.format = formatOf(d.Info().Codec)
			if f.format != anyFormat && f.format != d.format {
				sidecar.Close()
				return nil, fault.New(fault.Conflict, "", "--format %s, but its sidecar %s is of a %s file", f.format, sidecar.Name(), d.format).In(d.name)
			}
			return d, nil
		}
	}
	return d.openPlain(ctx, obj, e, f)
}

// openPlain opens a file that has neither a magic nor a sidecar. What is found in it is found by passes over it.
func (d *document) openPlain(ctx context.Context, obj source.Object, e *env, f *sourceFlags) (_ *document, err error) {
	plain := e.once(obj)
	defer func() {
		if err != nil {
			forget(plain)
		}
	}()
	if d.format == anyFormat {
		if d.format, err = detectPlain(ctx, plain, int64(f.offset)); err != nil {
			return nil, err
		}
	}
	if d.format == formatJSON && f.format == anyFormat && f.artifacts != nil && f.offset == 0 {
		if yes, err := isManifest(ctx, plain); err != nil {
			return nil, err
		} else if yes {
			forget(plain)
			d.format = formatSeries
			return d, d.openManifest(ctx, obj, e, f)
		}
	}
	if plain, err = from(plain, f.offset); err != nil {
		return nil, err
	}
	switch d.format {
	case formatMsgpack, formatCBOR:
		o := f.options()
		o.Offset = 0 // plain begins there
		d.Reader, err = msglc.OpenRaw(ctx, plain, d.format.codec(), o)
	case formatJSON:
		d.Reader, err = e.openJSON(ctx, plain, f)
	}
	return d, err
}

// notDocument is the error of verbs that take documents, for a file that is none.
func notDocument(f format) *fault.Error {
	what := "is a table (tcb)"
	if f == formatSeries {
		what = "is of a series artifact"
	}
	return fault.New(fault.Invalid, "", "%s, and this verb takes documents", what)
}

// openTable opens a document that is a table.
func (d *document) openTable(ctx context.Context, obj source.Object, e *env, f *sourceFlags) error {
	if f.tables == nil {
		return notDocument(formatTCB)
	}
	obj, err := from(obj, f.offset)
	if err == nil {
		d.table, err = e.openTable(ctx, obj, f.tables)
	}
	return err
}

// Close closes what was opened.
func (d *document) Close() error {
	switch {
	case d.table != nil:
		return d.table.Close()
	case d.artifact != nil:
		return d.artifact.Close()
	}
	return d.Reader.Close()
}

// from is what lies in obj from the offset on, which closes obj when it is closed. With an error it is obj, still open.
func from(obj source.Object, offset size) (source.Object, error) {
	if offset == 0 {
		return obj, nil
	}
	if int64(offset) > obj.Size() {
		return obj, fault.New(fault.Invalid, "", "nothing there, the size is %d", obj.Size()).In(obj.Name()).At(int64(offset))
	}
	rest, err := source.Section(obj, int64(offset), obj.Size()-int64(offset))
	if err != nil {
		return obj, err
	}
	return &restOf{rest, obj}, nil
}

// restOf is a section that closes the object that it is of.
type restOf struct {
	source.Object
	whole source.Object
}

func (r *restOf) Close() error { return r.whole.Close() }

func formatOf(c value.Codec) format {
	if c == value.CBOR {
		return formatCBOR
	}
	return formatMsgpack
}

// openJSON makes a temporary document of a JSON file, in CBOR, which has integers of any size. Where keys that occur
// twice are to be printed, it is a plain CBOR file: a document has none of these.
func (e *env) openJSON(ctx context.Context, obj source.Object, f *sourceFlags) (*msglc.Reader, error) {
	obj, err := local(ctx, obj)
	if err != nil {
		return nil, err
	}
	t, err := source.CreateTemporary("")
	if err != nil {
		return nil, err
	}
	r, err := e.openTemporary(ctx, t, obj, f)
	if err != nil {
		t.Close()
	}
	return r, err
}

func (e *env) openTemporary(ctx context.Context, t *source.Temporary, obj source.Object, f *sourceFlags) (*msglc.Reader, error) {
	o := &msglc.WriteOptions{Codec: value.CBOR, Limits: f.limits()}
	var err error
	if f.keepDup {
		err = e.readJSON(ctx, t, obj, f, o.Codec)
	} else {
		err = e.packJSON(ctx, t, obj, f, o)
	}
	if err != nil {
		return nil, err
	}
	size, err := t.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	made := &scratch{source.ReaderAt(obj.Name(), t, size), t, obj}
	if f.keepDup {
		return msglc.OpenRaw(ctx, made, o.Codec, &msglc.Options{Limits: f.limits()})
	}
	return msglc.Open(ctx, made, &msglc.Options{Limits: f.limits()})
}

// scratch is a temporary document that stands for another file.
type scratch struct {
	source.Object
	file  *source.Temporary
	input source.Object
}

func (s *scratch) Close() error {
	s.file.Close()
	return s.input.Close()
}

// object opens the bytes of a FILE argument. They are counted, and held to the budget.
func (e *env) object(ctx context.Context, arg string, f *sourceFlags) (source.Object, error) {
	obj, err := e.bytes(ctx, arg, f)
	if err != nil {
		return nil, err
	}
	return e.counted(obj), nil
}

// bytes is object without the count.
func (e *env) bytes(ctx context.Context, arg string, f *sourceFlags) (source.Object, error) {
	if arg == "-" {
		if e.stdinIn {
			return nil, usagef("standard input can be read once only")
		}
		e.stdinIn = true
		return source.Spool(ctx, e.stdin, "standard input")
	}
	if isURL(arg) {
		return e.openURL(ctx, arg)
	}
	path, err := localPath(arg)
	if err != nil {
		return nil, err
	}
	obj, err := openPath(ctx, path, f)
	if info, err2 := os.Stat(path); err == nil && err2 == nil {
		e.inputs = append(e.inputs, info)
	}
	return obj, err
}

// localPath is the path that a FILE argument, or the name of an output, stands for.
func localPath(arg string) (string, error) {
	if isURL(arg) {
		return "", usagef("%s is a URL, and a file of this machine belongs there", shown(arg))
	}
	scheme, _, ok := strings.Cut(arg, "://")
	if !ok {
		if arg == "" {
			return "", usagef("an empty FILE argument names no file")
		}
		return arg, nil
	}
	if strings.EqualFold(scheme, "file") {
		u, err := url.Parse(arg)
		if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return "", usagef("%q is no URL of a local file; file:///folder/file is one", arg)
		}
		return filepath.FromSlash(u.Path), nil
	}
	if _, err := os.Lstat(arg); err != nil && urlScheme.MatchString(scheme) {
		return "", usagef("%s: no URL of the kinds that are known, which are http, https, s3, gs, azblob and file", httprange.Name(arg))
	}
	return arg, nil
}

// urlScheme is what stands before :// in a URL.
var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// openPath opens a file. A pipe is spooled, as standard input is.
func openPath(ctx context.Context, path string, f *sourceFlags) (source.Object, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fault.New(fault.Invalid, "", "is a folder, and a file belongs there").In(path)
	case err == nil && info.Mode()&fs.ModeNamedPipe != 0:
		return spoolPipe(ctx, path)
	case f.mmap:
		return source.OpenMmap(path)
	}
	return source.OpenFile(path)
}

// openNamed opens a file that a flag names, which is one of this machine.
func openNamed(arg string) (*os.File, error) {
	path, err := localPath(arg)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(nil, "", "").In(path).Because(bare(err))
	}
	return f, nil
}

// readNamed reads a file that a flag names.
func readNamed(arg string) ([]byte, error) {
	f, err := openNamed(arg)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fault.New(nil, "", "").In(arg).Because(bare(err))
	}
	return text, nil
}

// spoolPipe spools a pipe with a name, such as <(command) of a shell. Opening one waits for its writer.
func spoolPipe(ctx context.Context, path string) (source.Object, error) {
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.Open(path)
		opened <- result{f, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-opened:
		if r.err != nil {
			return nil, fault.New(nil, "", "").In(path).Because(bare(r.err))
		}
		defer r.f.Close()
		return source.Spool(ctx, r.f, path)
	}
}

// sidecarStart is how sidecars of all versions begin.
const sidecarStart = "spile-sidecar-"

// sidecar opens the sidecar beside obj, nil when there is none, none is wanted, or obj is no file of its own. A table
// of contents that was printed into a file of that name is none; anything else that is no sidecar is a damaged one, and an
// error.
func (e *env) sidecar(ctx context.Context, obj source.Object, f *sourceFlags) (source.Object, error) {
	if s, ok := obj.(*atStore); ok {
		return e.storedSidecar(ctx, s, f)
	}
	if f.offset > 0 || f.noSidecar || obj.Version() == "" {
		return nil, nil
	}
	path := msglc.SidecarName(obj.Name())
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	side, err := openPath(ctx, path, f)
	if err != nil {
		return nil, err
	}
	side = e.counted(side)
	start, err := headOf(ctx, side, 0, 64)
	if err == nil && !printedTOC.Match(start) {
		return side, nil
	}
	side.Close()
	return nil, err
}

// storedSidecar opens the sidecar beside an object of a store. It is not looked for where all of the object costs no more
// than that.
func (e *env) storedSidecar(ctx context.Context, obj *atStore, f *sourceFlags) (source.Object, error) {
	if f.offset > 0 || f.noSidecar || obj.Size() <= obj.Cost().Gap {
		return nil, nil
	}
	url := behind(obj.url, msglc.SidecarName(""))
	cache, err := e.shared.stores.openCache(&e.remote)
	if err != nil {
		return nil, err
	}
	if cache != nil && cache.Missing(url, obj.Version()) {
		e.shared.hits.Add(1)
		return nil, nil
	}
	side, err := e.openURL(ctx, url)
	if errors.Is(err, fault.NotFound) || errors.Is(err, fs.ErrPermission) { // some stores do not say what is not there
		if cache != nil && !e.remote.offline {
			cache.SetMissing(url, obj.Version())
		}
		return nil, nil
	}
	return side, err
}

// printedTOC is how a table of contents begins that toc has printed.
var printedTOC = regexp.MustCompile(`^\{\s*"[pt]"`)

// counted wraps an object that was opened: its reads are counted, and held to the budget.
func (e *env) counted(obj source.Object) source.Object {
	if _, ok := obj.(*atStore); ok { // which has its first bytes in memory
		return e.metered(obj)
	}
	return &headed{Object: e.metered(obj), hits: &e.shared.hits}
}

// headed remembers the bytes of its first read, and reads as much as a request is worth there: finding the format and
// opening the document want the same bytes.
type headed struct {
	source.Object
	hits *atomic.Int64
	head atomic.Pointer[head]
}

type head struct {
	start int64
	data  []byte
}

// maxHead bounds what is remembered: a longer first read is the start of a pass over the object.
const maxHead = 64 << 10

func (h *headed) ReadAt(ctx context.Context, p []byte, off int64) error {
	n := int64(len(p))
	if known := h.head.Load(); known != nil {
		if rel := off - known.start; rel >= 0 && n > 0 && rel+n <= int64(len(known.data)) {
			h.hits.Add(1)
			copy(p, known.data[rel:])
			return ctx.Err()
		}
		return h.Object.ReadAt(ctx, p, off)
	}
	room := h.Size() - off
	if off < 0 || n > room || n > maxHead {
		return h.Object.ReadAt(ctx, p, off)
	}
	first := &head{off, make([]byte, min(max(n, 4<<10, min(h.Cost().Gap, maxHead)), room))}
	if err := h.Object.ReadAt(ctx, first.data, off); err != nil {
		return err
	}
	copy(p, first.data)
	h.head.Store(first)
	return nil
}
