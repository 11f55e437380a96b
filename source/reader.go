package source

import (
	"context"
	"io"
)

// defaultBuffer is the read size of a pass over a file: from here on the throughput of pread no longer grows.
const defaultBuffer = 256 << 10

// passGaps is how many times the gap of its cost a pass reads at once: where requests are dear, a fifth of what it takes
// is requests then, and [ReadAhead] has seen enough to go at full speed behind the first one.
const passGaps = 4

// NewReader returns a reader of the n bytes of obj from off on, which makes requests of bufSize bytes whatever the size
// of the reads; less than 1 means 256 KiB. From there on they are longer where the cost of obj makes that worth while, up
// to 4 MiB. Reading fails once ctx has ended. The reader is not safe for concurrent use.
func NewReader(ctx context.Context, obj Object, off, n int64, bufSize int) io.Reader {
	if bufSize < 1 {
		bufSize = defaultBuffer
	}
	cost := obj.Cost()
	if bufSize >= defaultBuffer {
		bufSize = max(bufSize, int(min(passGaps*cost.Gap, aheadPiece)))
	}
	if m := cost.MaxRequest; m > 0 {
		bufSize = int(min(int64(bufSize), m))
	}
	return &reader{ctx: UpTo(ctx, off+n), obj: obj, next: off, left: n, size: bufSize}
}

// reader keeps a context, against the custom, since io.Reader has no place for one.
type reader struct {
	ctx        context.Context
	obj        Object
	next, left int64 // what has not been asked of obj
	size       int
	buf        []byte // made by the first read, at most size long
	unread     []byte // the part of buf that has not been given out
}

func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.unread) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		if err := inside(r.obj, r.next, r.left); err != nil {
			return 0, err // before a buffer is made for what is not there
		}
		n := min(int64(r.size), r.left)
		if r.buf == nil {
			r.buf = make([]byte, n)
		}
		if err := r.obj.ReadAt(r.ctx, r.buf[:n], r.next); err != nil {
			return 0, err
		}
		r.unread = r.buf[:n]
		r.next += n
		r.left -= n
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// AsReaderAt returns obj as an [io.ReaderAt], for libraries that want one. As usual there, a read that passes the end
// gives what is before it and [io.EOF]. Reads fail once ctx has ended.
func AsReaderAt(ctx context.Context, obj Object) io.ReaderAt { return objectReaderAt{ctx, obj} }

type objectReaderAt struct {
	ctx context.Context
	obj Object
}

func (r objectReaderAt) ReadAt(p []byte, off int64) (int, error) {
	left := r.obj.Size() - off
	if off >= 0 && left <= 0 {
		return 0, io.EOF
	}
	var end error
	if off >= 0 && int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	if err := r.obj.ReadAt(r.ctx, p, off); err != nil {
		return 0, err
	}
	return len(p), end
}
