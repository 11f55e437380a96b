package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spilehq/spile/fault"
)

// Object is one immutable sequence of bytes. Its methods are safe for concurrent use.
type Object interface {
	// ReadAt fills all of p with the bytes from off on, or returns an error and leaves p with unspecified content: it
	// is never partial. A read outside [0, Size] is [fault.Invalid]; a source that is no longer what was opened is
	// [fault.Changed].
	ReadAt(ctx context.Context, p []byte, off int64) error

	// Size is the length in bytes. It never changes.
	Size() int64

	// Version tells two contents under one name apart: size, modification time and inode of a file, the ETag or
	// generation of a remote object. It is "" when there is none.
	Version() string

	// Name is the path or URL, for error messages.
	Name() string

	// Cost is what a request costs here, for [Plan] and [Fetch].
	Cost() Cost

	// Close frees what the object holds. It is safe while reads run; those that come later fail where there was
	// something to free. Closing again does nothing.
	Close() error
}

// Range is the half-open run of bytes [Start, End).
type Range struct{ Start, End int64 }

// Len is the number of bytes in r.
func (r Range) Len() int64 { return r.End - r.Start }

// Cost says what a request costs at a source.
type Cost struct {
	Gap        int64 // bytes that are as dear as one request: a gap of up to Gap bytes is read rather than skipped
	Parallel   int   // requests that run at once; less than 1 means 1
	MaxRequest int64 // the longest request in bytes; less than 1 means no limit
}

var (
	// A pread with its pin check costs about a microsecond; so does the copy of some 16 KiB. Four at once keep a
	// solid-state disk busy; in the page cache one is as fast.
	localCost = Cost{Gap: 16 << 10, Parallel: 4}

	// Nothing is gained by reading what nobody asked for, nor by a second goroutine.
	memoryCost = Cost{Gap: 0, Parallel: 1}
)

// Memory returns b as an object. The caller must not modify b afterwards.
func Memory(name string, b []byte) Object {
	return &memory{readerAt{name: name, size: int64(len(b)), cost: memoryCost, r: bytes.NewReader(b)}, b}
}

type memory struct {
	readerAt
	content []byte
}

// Bytes returns the content of an object that [Memory] has made, for who needs no copy of it. It is for reading. Any other
// object, one that counts what is read of a Memory too, gives false.
func Bytes(obj Object) (content []byte, ok bool) {
	m, ok := obj.(*memory)
	if !ok {
		return nil, false
	}
	return m.content, true
}

// ReaderAt returns the first size bytes of r as an object; a size below 0 counts as 0. When r ends earlier, reads of
// what is missing are [fault.Changed]. Closing the object does not close r.
func ReaderAt(name string, r io.ReaderAt, size int64) Object {
	return &readerAt{name: name, size: max(size, 0), cost: localCost, r: r}
}

// readerAt is every local object: an io.ReaderAt that is held to the contract of Object.
type readerAt struct {
	name    string
	version string
	size    int64
	cost    Cost
	r       io.ReaderAt
	closer  io.Closer // nil when nothing is to be freed
}

func (o *readerAt) ReadAt(ctx context.Context, p []byte, off int64) error {
	if err := inside(o, off, int64(len(p))); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return systemFault(o.name, err)
	}
	switch n, err := o.r.ReadAt(p, off); {
	case n == len(p): // io.ReaderAt may add io.EOF to a read that ends at the end
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fault.New(fault.Changed, "source", "%d of %d bytes are there", n, len(p)).
			In(o.name).At(off).Because(fault.Short(0))
	default:
		return systemFault(o.name, err).At(off)
	}
}

func (o *readerAt) Size() int64     { return o.size }
func (o *readerAt) Version() string { return o.version }
func (o *readerAt) Name() string    { return o.name }
func (o *readerAt) Cost() Cost      { return o.cost }

func (o *readerAt) Close() error {
	if o.closer == nil {
		return nil
	}
	if err := o.closer.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return systemFault(o.name, err)
	}
	return nil
}

// Section returns the n bytes of obj from off on as an object of their own, with the name and the cost of obj. Its version
// is that of obj with the window behind it, so that nobody who goes by name and version takes one for the other. Closing
// the section does not close obj. A window that passes the end of obj is [fault.Invalid].
func Section(obj Object, off, n int64) (Object, error) {
	if err := inside(obj, off, n); err != nil {
		return nil, err
	}
	return &section{Object: obj, off: off, size: n}, nil
}

type section struct {
	Object
	off, size int64
}

func (s *section) ReadAt(ctx context.Context, p []byte, off int64) error {
	if err := inside(s, off, int64(len(p))); err != nil {
		return err
	}
	if end, known := upTo(ctx); known {
		ctx = UpTo(ctx, s.off+end)
	}
	return s.Object.ReadAt(ctx, p, s.off+off)
}

func (s *section) Size() int64  { return s.size }
func (s *section) Close() error { return nil }

func (s *section) Version() string {
	v := s.Object.Version()
	if v == "" {
		return ""
	}
	return fmt.Sprintf("%s [%d,%d)", v, s.off, s.off+s.size)
}

// Pinned returns obj with unchanged called after every read. The bytes are given to the caller only when it returns
// nil, so unchanged must return an error, of class [fault.Changed], once the source may hold another version than obj
// was opened with. It must be safe for concurrent use.
func Pinned(obj Object, unchanged func(ctx context.Context) error) Object {
	return &pinned{Object: obj, unchanged: unchanged}
}

type pinned struct {
	Object
	unchanged func(context.Context) error
}

func (p *pinned) ReadAt(ctx context.Context, b []byte, off int64) error {
	err := p.Object.ReadAt(ctx, b, off)
	if err != nil && (errors.Is(err, fault.Invalid) || ctx.Err() != nil) {
		return err
	}
	// After a failed read as well: that the source has changed explains a short read better than its length does.
	if changed := p.unchanged(ctx); changed != nil && (err == nil || errors.Is(changed, fault.Changed)) {
		return changed
	}
	return err
}

// inside checks that obj holds n bytes from off on.
func inside(obj Object, off, n int64) error {
	if size := obj.Size(); off < 0 || n < 0 || off > size || n > size-off {
		return fault.New(fault.Invalid, "source", "%d bytes wanted at %d, the size is %d", n, off, size).In(obj.Name())
	}
	return nil
}

// systemFault wraps an error of the system below or of a context. The path that the os package puts in front is taken
// off, since the name of the object says it already.
func systemFault(name string, err error) *fault.Error {
	var class error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		class = fault.NotFound
	case errors.Is(err, os.ErrClosed):
		class = fault.Invalid
	}
	if p, ok := err.(*fs.PathError); ok {
		err = p.Err
	}
	return &fault.Error{Class: class, Package: "source", Object: name, Offset: fault.NoOffset, Err: err}
}
