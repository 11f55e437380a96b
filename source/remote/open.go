package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// Options say how an object is opened and read. Nil and the zero value are the defaults.
type Options struct {
	// Head is how many bytes the first request asks for, [DefaultHead] by default. They stay in memory. Where neither Head nor
	// Tail is set, they are what [source.Ends] says.
	Head int64
	// Tail, when it is above 0, sends a second request with the first one, for the last Tail bytes, where a table of contents
	// may lie. It saves the time of a request, and costs one where the object turns out to be short. It is a guess: when its
	// answer is of no use, it is as if it had not been sent.
	Tail int64
	// MaxFullDownload allows a store that answers a range with the whole object, which is refused otherwise: an object of up
	// to so many bytes is copied to a temporary file once, and read there. Below 0 it may have any size.
	MaxFullDownload int64
	// Retries is how often a request that failed is sent again, [DefaultRetries] by default; below 0, never.
	Retries int
	// Timeout is how long a request may take to be answered, and then again for every MiB of the answer: [DefaultTimeout] by
	// default, below 0 without limit.
	Timeout time.Duration
	// ReadAhead bounds the bytes that are asked for ahead of reads in a row, see [source.ReadAhead]: [DefaultReadAhead] by
	// default, none below 0. There is none either under a budget, so that what counts is what was wanted.
	ReadAhead int64
	// Meter counts the requests, retries among them, and the bytes that came, and refuses what would pass its budget.
	Meter *source.Meter
}

// The defaults of Options.
const (
	// DefaultHead: at 30 ms for a request and 50 MB/s, 64 KiB make the first request longer by a twentieth. The directory of
	// most tables, and all of most small documents, is within them.
	DefaultHead      = 64 << 10
	DefaultRetries   = 5
	DefaultTimeout   = 30 * time.Second
	DefaultReadAhead = 32 << 20
)

// cost is that of a store: a request takes as long as some 1 MiB (30 ms at 35 MB/s), and stores answer many at once. A
// request of 16 MiB is half a second at that rate: longer ones gain nothing, and lose more when they break.
var cost = source.Cost{Gap: 1 << 20, Parallel: 16, MaxRequest: 16 << 20}

// Open opens an object with its first request, for the first bytes of it, and pins the version.
//
// An object that is not there is [fault.NotFound]; one that may not be read wraps [fs.ErrPermission].
// A store that does not answer ranges is [fault.Limit], unless the options allow to read all of the object.
func Open(ctx context.Context, g Getter, o *Options) (source.Object, error) {
	c := newClient(g, endsOf(ctx, o))
	endTail := c.startTail(ctx)
	var first part
	var whole *spool
	err := c.retry(ctx, func() error {
		first = part{}
		return c.send(ctx, Request{Len: c.o.Head}, &first, nil, func(w *watch, r *Response) (err error) {
			whole, err = c.spool(w, r)
			return err
		})
	})
	more := err == nil && whole == nil && int64(len(first.data)) < first.size
	tail := endTail(more)
	switch {
	case err != nil:
		return nil, err
	case whole != nil:
		c.o.Meter.Opened(whole.Size())
		return whole, nil
	}
	c.o.Meter.Opened(first.size)
	obj := &object{client: c, size: first.size, version: first.version, head: first.data}
	if tail.size == first.size && tail.version == first.version {
		obj.tail = tail.data
	}
	if c.o.ReadAhead > 0 && c.o.Meter.MaxBytes < 1 && c.o.Meter.MaxRequests < 1 {
		return source.ReadAhead(obj, c.o.ReadAhead), nil
	}
	return obj, nil
}

// endsOf are the options with the ends that the context knows.
func endsOf(ctx context.Context, o *Options) *Options {
	head, tail := source.Ends(ctx)
	if head < 1 || o != nil && (o.Head > 0 || o.Tail > 0) {
		return o
	}
	var with Options
	if o != nil {
		with = *o
	}
	with.Head, with.Tail = head, tail
	return &with
}

// startTail sends the request for the end of the object, when there is to be one. The function that it returns waits for
// the answer, or ends the request when that is not wanted.
func (c *client) startTail(ctx context.Context) func(wanted bool) part {
	if c.o.Tail < 1 {
		return func(bool) part { return part{} }
	}
	ctx, cancel := context.WithCancel(ctx)
	answer := make(chan part, 1)
	go func() {
		var tail part
		if c.send(ctx, Request{Len: c.o.Tail, Suffix: true}, &tail, nil, nil) != nil {
			tail = part{}
		}
		answer <- tail
	}()
	return func(wanted bool) part {
		if !wanted {
			cancel()
		}
		defer cancel()
		return <-answer
	}
}

// object is an object of a store that answers ranges.
type object struct {
	*client
	size    int64
	version string
	head    []byte
	tail    []byte
	closed  atomic.Bool
}

func (o *object) Size() int64       { return o.size }
func (o *object) Version() string   { return o.version }
func (o *object) Name() string      { return o.name }
func (o *object) Cost() source.Cost { return cost }

// Close makes later reads fail. What is on its way is the matter of the contexts of these reads.
func (o *object) Close() error {
	o.closed.Store(true)
	return nil
}

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) error {
	n := int64(len(p))
	switch {
	case off < 0 || off > o.size || n > o.size-off:
		return fault.New(fault.Invalid, "remote", "%d bytes wanted at %d, the size is %d", n, off, o.size).In(o.name)
	case o.closed.Load():
		return o.system(os.ErrClosed, fault.Invalid).At(off)
	case ctx.Err() != nil:
		return o.system(ctx.Err(), nil).At(off)
	case n == 0:
		return nil
	}
	// What is in memory is not asked for.
	if off < int64(len(o.head)) {
		m := copy(p, o.head[off:])
		p, off = p[m:], off+int64(m)
	}
	if at := o.size - int64(len(o.tail)); off+int64(len(p)) > at && len(p) > 0 {
		from := max(off, at)
		copy(p[from-off:], o.tail[from-at:])
		p = p[:from-off]
	}
	if len(p) == 0 {
		o.o.Meter.Hit()
		return nil
	}
	if int64(len(p)) <= cost.MaxRequest {
		return o.fetch(ctx, p, off)
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(cost.Parallel)
	for len(p) > 0 {
		m := min(int64(len(p)), cost.MaxRequest)
		piece, at := p[:m], off
		work.Go(func() error { return o.fetch(ctx, piece, at) })
		p, off = p[m:], off+m
	}
	return work.Wait()
}

// fetch fills p with the bytes from off on, by one request unless it breaks.
func (o *object) fetch(ctx context.Context, p []byte, off int64) error {
	return o.retry(ctx, func() error {
		got := part{data: p[:0]}
		r := Request{Start: off, Len: int64(len(p)), Version: o.version}
		err := o.send(ctx, r, &got, o.same, nil)
		p, off = p[len(got.data):], off+int64(len(got.data))
		if err == nil && len(p) > 0 {
			err = &broken{o.fault(nil, "the answer ends %d bytes before those that were asked for do", len(p)).At(off), 0}
		}
		return err
	})
}

// same checks that an answer is of the version that was opened.
func (o *object) same(r *Response) error {
	switch {
	case r.Status == 412:
		return o.fault(fault.Changed, "is no longer the version that was opened, %s", o.version)
	case r.Status == 404 || r.Status == 410:
		return o.fault(fault.Changed, "was removed while it was read")
	case r.Status == 416 && r.Size >= 0 && r.Size != o.size, r.Status == 206 && r.Size >= 0 && r.Size != o.size:
		return o.fault(fault.Changed, "the size was %d when opened, is %d", o.size, r.Size)
	case (r.Status == 206 || r.Status == 200) && r.Version != o.version:
		return o.fault(fault.Changed, "the version was %s when opened, is %s", known(o.version), known(r.Version))
	case r.Status == 206 && r.Size < 0 && r.Version == "":
		return o.fault(fault.Corrupt, "the answer says neither the size nor the version of the object")
	}
	return nil
}

func known(version string) string {
	if version == "" {
		return "not given"
	}
	return version
}

// spool is an object that came whole.
type spool struct {
	source.Object
	version string
	meter   *source.Meter
	file    *source.Temporary
}

func (s *spool) Version() string { return s.version }

func (s *spool) ReadAt(ctx context.Context, p []byte, off int64) error {
	err := s.Object.ReadAt(ctx, p, off)
	if err == nil && len(p) > 0 {
		s.meter.Hit()
	}
	return err
}

func (s *spool) Close() error {
	if err := s.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fault.New(nil, "remote", "temporary file").In(s.Name()).Because(err)
	}
	return nil
}

// spool copies the body of an answer, which is the whole object, to a temporary file.
func (c *client) spool(w *watch, r *Response) (*spool, error) {
	most := c.o.MaxFullDownload
	if most < 0 {
		most = 1<<63 - 1
	}
	tooLong := func() error {
		return c.fault(fault.Limit, "the answer to a range is the whole object, of more than the %d bytes that are allowed", most)
	}
	if r.Length > most {
		return nil, tooLong()
	}
	t, err := source.CreateTemporary("")
	if err != nil {
		return nil, fault.Locate(err, c.name, "", 0)
	}
	size, buf := int64(0), make([]byte, 256<<10)
	for err == nil {
		var n int
		if err = w.grow(max(r.Length, min(size+int64(len(buf)), most))); err != nil { // all at once where the length is known
			break
		}
		n, err = w.read(r.Body, buf)
		if size += int64(n); size > most {
			err = tooLong()
			break
		}
		if _, werr := t.Write(buf[:n]); werr != nil {
			err = c.system(werr, nil)
		}
	}
	switch {
	case err == io.EOF && r.Length >= 0 && size != r.Length:
		err = &broken{c.fault(nil, "the body ends after %d of %d bytes", size, r.Length), 0}
	case err == io.EOF:
		return &spool{Object: source.ReaderAt(c.name, t, size), version: r.Version, meter: c.o.Meter, file: t}, nil
	}
	t.Close()
	return nil, err
}

// fault makes an error about the object.
func (c *client) fault(class error, format string, args ...any) *fault.Error {
	return fault.New(class, "remote", format, args...).In(c.name)
}

// system makes an error of the system below, or of a context.
func (c *client) system(err error, class error) *fault.Error {
	return c.fault(class, "").Because(err)
}

// refused is the error for an answer that no retry makes better.
func (c *client) refused(r *Response) error {
	said := r.Message
	if said != "" {
		said = ": " + said
	}
	switch r.Status {
	case 401, 403:
		return c.fault(nil, "the store answers %d%s", r.Status, said).Because(fs.ErrPermission)
	case 404, 410:
		return c.fault(fault.NotFound, "the store answers %d%s", r.Status, said)
	case 412:
		return c.fault(fault.Changed, "the store answers %d%s", r.Status, said)
	case 416:
		if r.Size >= 0 {
			said += fmt.Sprintf(", and says that the object has %d bytes", r.Size)
		}
		return c.fault(fault.Corrupt, "the store answers %d%s", r.Status, said)
	}
	return c.fault(nil, "the store answers %d%s", r.Status, said)
}
