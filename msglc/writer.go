package msglc

import (
	"context"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Target is what an archive is written to, such as a [source.AtomicFile]. Write appends; WriteAt fills in the header
// at the end, at an offset from the first byte of the archive. After a failed write the caller drops what the target
// holds.
type Target interface {
	io.Writer
	io.WriterAt
}

// writeChunk is how many bytes of payload are looked at and written at once: enough for a system call to cost little,
// and the caches of a processor core still hold them when they are copied.
const writeChunk = 256 << 10

// Writer writes one archive: it copies the payload, which comes as bytes, and makes the table of contents beside it
// (docs/format/msglc.md, "Writing"). The payload is kept as it is, whatever valid encoding it has.
//
//	w, err := msglc.NewWriter(ctx, target, nil)
//	if err != nil {
//		return err
//	}
//	defer w.Close()
//	if err := w.WriteValue(v); err != nil {
//		return err
//	}
//	return w.Close()
//
// Memory does not grow with the payload: a table of contents longer than about 16 MiB in its packed form goes to a
// temporary file until the end. A Writer is not safe for concurrent use.
type Writer struct {
	ctx  context.Context // that of NewWriter: Write has no place for one
	dst  Target
	s    writeSettings
	toc  *tocBuilder
	buf  []byte // payload that was not passed on yet
	size int64  // payload that was
	err  error  // the first failure; errClosed after Close
}

// NewWriter begins an archive. When ctx ends, the writer fails with its error. Options that cannot be are an error of
// class [fault.Invalid].
func NewWriter(ctx context.Context, dst Target, o *WriteOptions) (*Writer, error) {
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	return newWriter(ctx, dst, s)
}

func newWriter(ctx context.Context, dst Target, s writeSettings) (*Writer, error) {
	w := &Writer{ctx: ctx, dst: dst, s: s, toc: newTOCBuilder(&s)}
	if err := beginArchive(dst, s.magic); err != nil {
		return nil, w.fail(err)
	}
	return w, nil
}

// beginArchive writes the prefix of an archive. Its header is filled in last: until then nothing can be read.
func beginArchive(dst io.Writer, magic [MagicSize]byte) error {
	prefix := make([]byte, PrefixSize)
	copy(prefix, magic[:])
	_, err := dst.Write(prefix)
	return err
}

var errWriterClosed = fault.New(fault.Invalid, "msglc", "writer is closed")

// Write takes the next bytes of the payload, which in all are one encoded value. Bytes that break the rules of the
// codec, bytes behind the value and a container claiming a wrong count are [fault.Corrupt], too deep nesting is
// [fault.Limit], a key twice in a map that gets a table is [fault.Conflict]; offsets are positions in the payload. The
// bytes need not be looked at before Close.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n := len(p)
	if len(w.buf)+len(p) < writeChunk {
		if w.buf == nil {
			w.buf = make([]byte, 0, writeChunk)
		}
		w.buf = append(w.buf, p...)
		return n, nil
	}
	if err := w.flush(); err != nil {
		return 0, err
	}
	for len(p) >= writeChunk {
		if err := w.pass(p[:writeChunk]); err != nil {
			return n - len(p), err
		}
		p = p[writeChunk:]
	}
	w.buf = append(w.buf, p...)
	return n, nil
}

// WriteValue encodes a Go value as the payload, or the next part of it, see [value.Write], which nests to
// [value.DefaultDepth] at most: the limits of the options can only bound it further. A list or map that is too long for
// memory is a [value.Seq] or [value.MapSeq], whose items are made while they are written.
func (w *Writer) WriteValue(v any) error {
	if w.err != nil {
		return w.err
	}
	if err := value.Write(w, w.s.codec, v); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.pass(w.buf)
	w.buf = w.buf[:0]
	return err
}

// pass gives bytes to the table and to the target.
func (w *Writer) pass(p []byte) error {
	if err := w.ctx.Err(); err != nil {
		return w.fail(fault.New(nil, "msglc", "writing").Because(err))
	}
	if err := w.toc.write(p); err != nil {
		return w.fail(err)
	}
	if _, err := w.dst.Write(p); err != nil {
		return w.fail(err)
	}
	w.size += int64(len(p))
	if w.s.progress != nil {
		w.s.progress(w.size)
	}
	return nil
}

// Close writes the table of contents and the header, when one whole value was written; else it is an error, and the
// target holds nothing that can be read. Closing again gives an error and does nothing. The target is not closed.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	_, err := w.finish()
	return err
}

// finish is Close, and returns the header.
func (w *Writer) finish() (header, error) {
	h := header{codec: w.s.codec}
	err := w.flush()
	if err == nil {
		h.tocStart = w.size
		h.tocSize, err = w.toc.writeTOC(w.dst)
	}
	if err == nil {
		_, err = w.dst.WriteAt(appendHeader(nil, h), MagicSize)
	}
	if err != nil {
		return h, w.fail(err)
	}
	w.fail(errWriterClosed)
	return h, nil
}

// fail ends the writer with its first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
		w.toc.close()
		w.buf = nil
	}
	return w.err
}

// appendHeader appends the two fields behind the magic.
func appendHeader(dst []byte, h header) []byte {
	return appendField(appendField(dst, h.codec, h.tocStart), h.codec, h.tocSize)
}

// Dump writes a Go value as an archive to the file path, which appears when it is complete. Lists and maps in it that
// are too long for memory are a [value.Seq] or [value.MapSeq].
func Dump(ctx context.Context, path string, v any, o *WriteOptions) error {
	s, err := o.settings()
	if err != nil {
		return fault.Locate(err, path, "", 0)
	}
	f, err := source.CreateAtomic(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := dump(ctx, f, v, s); err != nil {
		return fault.Locate(err, path, "", 0)
	}
	return f.Commit()
}

// Dumps returns a Go value as an archive.
func Dumps(v any, o *WriteOptions) ([]byte, error) {
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	var b buffer
	if err := dump(context.Background(), &b, v, s); err != nil {
		return nil, err
	}
	return b, nil
}

func dump(ctx context.Context, dst Target, v any, s writeSettings) error {
	w, err := newWriter(ctx, dst, s)
	if err != nil {
		return err
	}
	if err := w.WriteValue(v); err != nil {
		return err
	}
	return w.Close()
}

// buffer is a target in memory.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *buffer) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(*b))-int64(len(p)) {
		return 0, fault.New(fault.Invalid, "msglc", "write of %d bytes at %d, %d are there", len(p), off, len(*b))
	}
	return copy((*b)[off:], p), nil
}

// inner is the place of an archive inside a target.
type inner struct {
	Target
	start int64
}

func (t inner) WriteAt(p []byte, off int64) (int, error) { return t.Target.WriteAt(p, t.start+off) }
