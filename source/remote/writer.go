package remote

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
)

const (
	// With 8 MiB, 20 ms of waiting for a request are a tenth of what sending it takes at 300 Mbit/s, and four under way
	// hide them. An object of the 10,000 parts that S3 takes has 78 GiB; [WriteOptions.Size] is for longer ones.
	defaultPart     = 8 << 20
	defaultParallel = 4

	// discardTime bounds the requests that clean up: a program that was told to end does not wait longer.
	discardTime = 30 * time.Second

	// makeTime is how long the request that begins an upload, makes the object, or copies a part, may go on when its context
	// ends: cut off, nobody would know whether there is an upload, an object, or a part. A program that was told to end waits so
	// long at most.
	makeTime = 5 * time.Second
)

// WriteOptions says how an object is written. The zero value, and nil, are the defaults.
type WriteOptions struct {
	// PartSize is the number of bytes that are sent by one request, 8 MiB when it is 0. It is rounded up to what the
	// store takes. A Writer holds up to Parallel+2 parts in memory, whatever the length of the object.
	PartSize int64
	// Parallel is how many parts are sent at once, 4 when it is less than 1. A store may take fewer.
	Parallel int
	// Size is how many bytes are expected, about; 0 when that is not known. Parts become larger when the object would
	// have too many of them.
	Size int64
	// Hold is the number of bytes at the beginning of the object that [Writer.WriteAt] may write anew until Commit: the
	// first part is held back, and sent last. It may be as long as a part.
	Hold int64
	// NoOverwrite makes it fault.Conflict when there is an object under the name, at the latest in Commit.
	NoOverwrite bool
}

// Writer writes one object to a store, in constant memory. Nothing can be read under the name, or what was there before,
// until Commit has returned without error. A Writer is not safe for concurrent use.
//
//	w, err := s3.Create(ctx, "s3://bucket/key", nil, nil)
//	if err != nil {
//		return err
//	}
//	defer w.Abort(ctx)
//	…
//	return w.Commit(ctx)
type Writer struct {
	up       Upload
	limits   UploadLimits
	partSize int64
	hold     int64

	ctx    context.Context // of the parts; cancelled by Abort
	cancel context.CancelFunc
	group  *errgroup.Group // parts under way
	free   chan []byte     // buffers of parts that are sent

	part   []byte // the bytes of the part that is being filled
	held   []byte // part 0, when it is full and held back
	parts  int    // parts that are numbered
	length int64
	begun  bool // Begin was called
	copies bool // the store has copied a part
	noCopy bool // the store has said that it cannot
	ended  bool // committed or aborted
	made   bool // committed

	cut atomic.Int64 // parts that were cut off by the end of a context

	mu  sync.Mutex
	err error // the first failure
}

// NewWriter returns a Writer over an upload. It is called by packages of stores. The context is that of every Write, and of
// the parts that are sent by it.
func NewWriter(ctx context.Context, up Upload, o *WriteOptions) (*Writer, error) {
	if o == nil {
		o = &WriteOptions{}
	}
	w := &Writer{up: up, limits: up.Limits(), hold: o.Hold, partSize: o.PartSize}
	l := &w.limits
	l.MinPart, l.Multiple = max(l.MinPart, 1), max(l.Multiple, 1)
	if w.partSize == 0 {
		w.partSize = defaultPart
	}
	if w.partSize < 0 || o.Hold < 0 || o.Size < 0 {
		return nil, w.invalid("part size %d, %d bytes held back, %d expected; none may be negative", o.PartSize, o.Hold, o.Size)
	}
	if l.MaxParts > 0 { // a tenth more than is expected
		w.partSize = max(w.partSize, (o.Size+o.Size/10)/int64(l.MaxParts)+1)
	}
	w.partSize = max(w.partSize, l.MinPart)
	w.partSize += (l.Multiple - w.partSize%l.Multiple) % l.Multiple
	if l.MaxPart > 0 && w.partSize > l.MaxPart {
		return nil, w.invalid("part size %d, at most %d", w.partSize, l.MaxPart)
	}
	if w.partSize > math.MaxInt {
		return nil, w.invalid("part size %d, at most %d", w.partSize, math.MaxInt)
	}
	if o.Hold > w.partSize {
		return nil, w.invalid("%d bytes held back, at most %d, a part", o.Hold, w.partSize)
	}
	parallel := o.Parallel
	if parallel < 1 {
		parallel = defaultParallel
	}
	if l.Parallel > 0 {
		parallel = min(parallel, l.Parallel)
	}
	cancelled, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	w.group, w.ctx = errgroup.WithContext(cancelled)
	w.group.SetLimit(parallel)
	w.free = make(chan []byte, parallel+1)
	return w, nil
}

// Name is the URL of the object, without credentials.
func (w *Writer) Name() string { return w.up.Name() }

// Len is the number of bytes written.
func (w *Writer) Len() int64 { return w.length }

// Write appends p. It waits when parts are sent more slowly than they are written.
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	n := 0
	for n < len(p) {
		if int64(len(w.part)) == w.partSize { // more follows, so it is not the last
			if err := w.flush(false); err != nil {
				return n, err
			}
		}
		if w.part == nil && w.parts > 0 {
			w.part = w.buffer()
		}
		// The first part grows, so that a short object takes little memory.
		m := int(min(int64(len(p)-n), w.partSize-int64(len(w.part))))
		w.part = append(w.part, p[n:n+m]...)
		n += m
		w.length += int64(m)
	}
	return n, nil
}

// WriteAt writes p over bytes that are written already and held back: the first [WriteOptions.Hold] of them.
func (w *Writer) WriteAt(p []byte, off int64) (int, error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	end := min(w.hold, w.length)
	if off < 0 || off > end || int64(len(p)) > end-off {
		return 0, w.invalid("%d bytes to be written anew at %d, of %d that are held back", len(p), off, end)
	}
	first := w.held
	if first == nil {
		first = w.part
	}
	return copy(first[off:], p), nil
}

// Commit sends what is left and makes the object. When it fails, what was sent is removed; then the name leads to what it
// led to before, unless the connection broke while the store made the object, which the error says. A request for that which
// is on its way when ctx ends is waited for, a few seconds long.
func (w *Writer) Commit(ctx context.Context) error {
	if err := w.usable(); err != nil {
		if !w.ended {
			w.Abort(ctx)
		}
		return err
	}
	defer context.AfterFunc(ctx, w.cancel)()
	if err := w.commit(ctx); err != nil {
		w.fail(err)
		w.Abort(ctx)
		return err
	}
	w.ended, w.made = true, true
	w.release()
	return nil
}

// Remove deletes the object that Commit has made, and no other: one that has replaced it, or that somebody has removed, is
// left alone, as far as the store can be asked for that. It is for objects of which several are wanted or none. Like Abort it
// works for half a minute when ctx has ended. Before Commit has succeeded it is [fault.Invalid].
func (w *Writer) Remove(ctx context.Context) error {
	if !w.made {
		return w.invalid("there is no object to be removed: nothing was committed")
	}
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
	defer cancel()
	return w.up.Remove(fresh)
}

func (w *Writer) commit(ctx context.Context) error {
	if w.parts == 0 {
		return w.outliving(ctx, func(ctx context.Context) error { return w.up.Put(ctx, w.part) })
	}
	if len(w.part) > 0 {
		if err := w.flush(true); err != nil {
			return err
		}
	}
	if w.held != nil { // something follows it, so it is not the last
		if err := w.begin(); err != nil {
			return err
		}
		w.run(func() error { return w.up.Part(w.ctx, Part{Number: 0, Bytes: w.held}) })
	}
	if err := w.group.Wait(); err != nil {
		return err
	}
	return w.outliving(ctx, func(ctx context.Context) error { return w.up.Complete(ctx, w.parts) })
}

// outliving calls f with a context that ends makeTime after ctx does.
func (w *Writer) outliving(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return w.stopped(err)
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.NewTimer(makeTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})()
	return f(longer)
}

// Abort ends the writing and removes what was sent. It does so too when ctx has ended: for half a minute then, and not
// longer. An error says that something may be left. After Commit, and when called again, it does nothing.
func (w *Writer) Abort(ctx context.Context) error {
	if w.ended {
		return nil
	}
	w.ended = true
	w.cancel()
	w.group.Wait()
	defer w.release()
	if !w.begun {
		return nil
	}
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
	defer cancel()
	err := w.up.Discard(fresh)
	// A part whose request was cut off when all of it was sent may be kept by the store a little later, also after the others
	// were removed. So they are removed again.
	for _, pause := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond} {
		if w.cut.Load() == 0 {
			break
		}
		time.Sleep(pause)
		err = w.up.Discard(fresh)
	}
	return err
}

// release ends the context of the parts and lets go of the buffers.
func (w *Writer) release() {
	w.cancel()
	w.part, w.held, w.free = nil, nil, nil
}

// usable returns the error of a part that has failed, or of a Writer that is no longer written to.
func (w *Writer) usable() error {
	if w.ended {
		return w.invalid("the object is committed or aborted already")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.ctx.Err() != nil {
		return w.stopped(context.Cause(w.ctx))
	}
	return w.err
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// flush sends the part that is being filled, or holds it back.
func (w *Writer) flush(last bool) error {
	p := w.part
	w.part = nil
	number, err := w.next()
	if err != nil {
		return err
	}
	if number == 0 && w.hold > 0 {
		w.held = p
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.run(func() error {
		defer func() { w.free <- p[:0] }() // as many buffers as parts at once, and one that was waiting
		return w.up.Part(w.ctx, Part{Number: number, Last: last, Bytes: p})
	})
	return nil
}

// next numbers a part.
func (w *Writer) next() (int, error) {
	if w.limits.MaxParts > 0 && w.parts >= w.limits.MaxParts {
		err := fault.New(fault.Limit, "remote", "more than %d parts of %d bytes: the object needs a larger part size, or the size that is expected", w.limits.MaxParts, w.partSize).In(w.Name())
		w.fail(err)
		return 0, err
	}
	w.parts++
	return w.parts - 1, nil
}

// begin tells the store that parts come. A context that ends does not stop it at once, since nobody could remove then what
// the store has begun: its answer says under which name.
func (w *Writer) begin() error {
	if err := w.usable(); err != nil || w.begun {
		return err
	}
	w.begun = true
	err := w.outliving(w.ctx, w.up.Begin)
	if err != nil {
		w.fail(err)
	}
	return err
}

// run runs a request in its goroutine, when there is room for one.
func (w *Writer) run(request func() error) {
	w.group.Go(func() error {
		err := request()
		if err != nil {
			w.failed(err)
		}
		return err
	})
}

// failed notes the error of a part, and whether its request was cut off.
func (w *Writer) failed(err error) {
	if w.ctx.Err() != nil {
		w.cut.Add(1)
	}
	w.fail(err)
}

// buffer returns an empty buffer for a part.
func (w *Writer) buffer() []byte {
	select {
	case p := <-w.free:
		return slices.Grow(p, int(w.partSize)-len(p)) // that of the first part may be a little larger or smaller
	default:
		return make([]byte, 0, w.partSize)
	}
}

// stopped is the error for a context that has ended.
func (w *Writer) stopped(err error) error {
	return fault.New(nil, "remote", "").In(w.Name()).Because(err)
}

func (w *Writer) invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "remote", format, args...).In(w.Name())
}
