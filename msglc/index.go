package msglc

import (
	"context"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// Index makes an archive of an encoded value that exists: the bytes of payload are copied untouched, in one pass. They
// must be one whole value of the codec that the options name; what is wrong with them is reported as by [Writer.Write],
// with the offset in payload.
func Index(ctx context.Context, dst Target, payload source.Object, o *WriteOptions) error {
	s, err := o.settings()
	if err != nil {
		return fault.Locate(err, payload.Name(), "", 0)
	}
	return fault.Locate(index(ctx, dst, payload, s), payload.Name(), "", 0)
}

func index(ctx context.Context, dst Target, payload source.Object, s writeSettings) error {
	w, err := newWriter(ctx, dst, s)
	if err != nil {
		return err
	}
	err = eachChunk(ctx, payload, 0, payload.Size(), func(p []byte) error { return w.pass(p) })
	if err != nil {
		return w.fail(err)
	}
	return w.Close()
}

// eachChunk calls do with the n bytes of obj from off on, in pieces of at most writeChunk bytes. A piece is valid until
// do returns.
func eachChunk(ctx context.Context, obj source.Object, off, n int64, do func(p []byte) error) error {
	// Where a request is dear, one is worth eight times what the source would read to save it.
	cost := obj.Cost()
	size := min(max(writeChunk, min(8*cost.Gap, 8<<20)), n)
	if cost.MaxRequest > 0 {
		size = min(size, cost.MaxRequest)
	}
	buf := make([]byte, size)
	for n > 0 {
		p := buf[:min(size, n)]
		if err := obj.ReadAt(ctx, p, off); err != nil {
			return err
		}
		off += int64(len(p))
		n -= int64(len(p))
		for len(p) > 0 {
			m := min(writeChunk, len(p))
			if err := do(p[:m]); err != nil {
				return err
			}
			p = p[m:]
		}
	}
	return nil
}
