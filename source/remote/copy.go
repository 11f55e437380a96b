package remote

import (
	"context"
	"errors"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// Bytes that are read to be written are read in pieces of this length: as dear as a request or two at an object store.
const copyBuffer = 1 << 20

// Copy appends the n bytes of obj from start on, and returns how many of them the store has copied without sending them to
// this machine. It does that when obj is an object of the same store whose version is known, for a run that is long enough
// (5 MiB at S3); what remains is read and written.
func (w *Writer) Copy(ctx context.Context, obj source.Object, start, n int64) (copied int64, err error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	if n < 0 || start < 0 || start > obj.Size() || n > obj.Size()-start {
		return 0, fault.New(fault.Invalid, "remote", "%d bytes to be copied at %d of an object of %d", n, start, obj.Size()).In(obj.Name())
	}
	lead, ok := w.lead(obj, n)
	if !ok {
		return 0, w.stream(ctx, obj, start, n)
	}
	// With one read: nothing is wanted behind it, which reads in a row would have asked for ahead.
	first := make([]byte, lead)
	if err := obj.ReadAt(ctx, first, start); err != nil {
		return 0, err
	}
	if _, err := w.Write(first); err != nil {
		return 0, err
	}
	if len(w.part) > 0 {
		if err := w.flush(false); err != nil {
			return 0, err
		}
	}
	for at, end := start+lead, start+n; at < end; {
		length := end - at
		if m := w.limits.MaxCopy; length > m {
			// The piece behind is long enough for a part as well.
			length = min(m, length-w.limits.MinPart)
		}
		if err := w.begin(); err != nil {
			return copied, err
		}
		number, err := w.next()
		if err != nil {
			return copied, err
		}
		part := CopiedPart{Number: number, From: obj.Name(), Version: obj.Version(), Start: at, Len: length}
		// A store goes on with copying when nobody waits for it any more, and would keep the part after it was told to remove all.
		copyPart := func() error {
			return w.outliving(w.ctx, func(ctx context.Context) error { return w.up.CopyPart(ctx, part) })
		}
		if w.copies {
			w.run(copyPart)
		} else {
			// Only an attempt tells whether the store can. Until one has succeeded, the next part waits for it.
			err := copyPart()
			if errors.Is(err, errors.ErrUnsupported) {
				w.noCopy = true
				w.parts--
				return copied, w.stream(ctx, obj, at, end-at)
			}
			if err != nil {
				w.failed(err)
				return copied, err
			}
			w.copies = true
		}
		at += length
		w.length += length
		copied += length
	}
	return copied, nil
}

// lead returns how many of n bytes of obj have to be written before the store can copy the others, because the part before
// must be long enough or is held back; false when nothing can be copied.
func (w *Writer) lead(obj source.Object, n int64) (int64, bool) {
	least := w.limits.MinPart
	if w.noCopy || w.limits.MaxCopy < 2*least || obj.Version() == "" || w.limits.Parallel == 1 {
		return 0, false
	}
	need := int64(0)
	switch have := int64(len(w.part)); {
	case w.parts == 0 && w.hold > 0:
		need = max(least, w.hold) - have
	case have > 0:
		need = least - have
	}
	need = max(need, 0)
	return need, n-need >= max(least, w.limits.MinCopy)
}

// stream reads n bytes of obj and writes them.
func (w *Writer) stream(ctx context.Context, obj source.Object, start, n int64) error {
	if n == 0 {
		return nil
	}
	p := make([]byte, min(n, copyBuffer))
	for n > 0 {
		p = p[:min(n, int64(len(p)))]
		if err := obj.ReadAt(ctx, p, start); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		start += int64(len(p))
		n -= int64(len(p))
	}
	return nil
}
