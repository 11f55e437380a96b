package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// client sends the requests for an object.
type client struct {
	getter Getter
	name   string
	o      Options
	slots  chan struct{} // one for each request that may be on its way
}

func newClient(g Getter, o *Options) *client {
	c := &client{getter: g, name: g.Name(), slots: make(chan struct{}, cost.Parallel)}
	if o != nil {
		c.o = *o
	}
	if c.o.Head < 1 {
		c.o.Head = DefaultHead
	}
	if c.o.Retries == 0 {
		c.o.Retries = DefaultRetries
	}
	if c.o.Timeout == 0 {
		c.o.Timeout = DefaultTimeout
	}
	if c.o.ReadAhead == 0 {
		c.o.ReadAhead = DefaultReadAhead
	}
	if c.o.Meter == nil {
		c.o.Meter = new(source.Meter)
	}
	return c
}

// part is what an answer brought.
type part struct {
	start   int64
	data    []byte
	size    int64 // of the object
	version string
}

// errBody bounds what is read of the body of a failure, for the sake of the connection.
const errBody = 64 << 10

// send sends one request and judges the answer. The bytes of a range are appended to got.data, also those that came before
// the connection broke. check sees the answer before all else; whole, when it is allowed, gets one that is the whole object.
func (c *client) send(ctx context.Context, r Request, got *part, check func(*Response) error, whole func(*watch, *Response) error) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return c.system(ctx.Err(), nil)
	}
	if err := c.o.Meter.Charge(1, r.Len); err != nil {
		return fault.Locate(err, c.name, "", 0)
	}
	w := &watch{client: c, asked: r.Len, outer: ctx}
	defer w.end()
	r.Again = func(bytes int64) error {
		w.got += bytes
		if err := w.grow(w.got + r.Len); err != nil {
			return err
		}
		return fault.Locate(c.o.Meter.Charge(1, 0), c.name, "", 0)
	}
	resp, err := c.getter.Get(w.begin(), r)
	if err != nil {
		if _, final := errors.AsType[*fault.Error](err); final && ctx.Err() == nil {
			return fault.Locate(err, c.name, "", 0)
		}
		return w.failure(err)
	}
	defer resp.Body.Close()
	w.moved()
	encoded := resp.Encoding != "" && resp.Encoding != "identity"
	if resp.Status == 206 || resp.Status == 200 {
		if check != nil {
			err = check(resp)
		}
		switch {
		case err != nil:
			w.drain(resp.Body)
			return err
		case encoded:
			return c.fault(fault.UnsupportedCodec, "the answer is compressed as %q, and ranges are of what is stored", resp.Encoding)
		case resp.Status == 206:
			return c.receive(w, r, resp, got)
		case resp.Length == 0: // a store has no range of nothing to give
			*got = part{version: resp.Version}
			return nil
		case whole == nil || c.o.MaxFullDownload == 0:
			return c.fault(fault.Limit, "the store answers a range with the whole object%s; Options.MaxFullDownload "+
				"allows that", length(resp.Length))
		}
		return whole(w, resp)
	}
	w.drain(resp.Body)
	switch s := resp.Status; {
	case s == 416 && resp.Size == 0 && check == nil:
		*got = part{version: resp.Version}
		return nil
	case s == 408 || s == 429 || s >= 500:
		return &broken{c.refused(resp), resp.RetryAfter}
	}
	if check != nil {
		err = check(resp)
	}
	if err == nil {
		err = c.refused(resp)
	}
	return err
}

// receive judges the answer to a range, and reads it.
func (c *client) receive(w *watch, r Request, resp *Response, got *part) error {
	bad := func(format string, args ...any) error { return c.fault(fault.Corrupt, format, args...).At(r.Start) }
	n := resp.End - resp.Start
	switch {
	case resp.Start < 0 || n < 1:
		return bad("the answer does not say which bytes it has")
	case r.Version == "" && resp.Size < 0:
		return bad("the answer does not say how long the object is")
	case resp.Size >= 0 && resp.End > resp.Size:
		return bad("the answer has bytes %d to %d of an object of %d", resp.Start, resp.End, resp.Size)
	case r.Suffix && (resp.End != resp.Size || n != min(r.Len, resp.Size)):
		return bad("the last %d bytes were asked for, the answer has %d to %d of %d", r.Len, resp.Start, resp.End, resp.Size)
	case !r.Suffix && (resp.Start != r.Start || n > r.Len):
		return bad("bytes %d to %d were asked for, the answer has %d to %d", r.Start, r.Start+r.Len, resp.Start, resp.End)
	case resp.Length > n:
		return bad("a body of %d bytes for a range of %d", resp.Length, n)
	case resp.Length >= 0 && resp.Length < n:
		return &broken{c.fault(nil, "a body of %d bytes for a range of %d", resp.Length, n).At(r.Start), 0}
	}
	at, data := len(got.data), got.data
	have, err := int64(0), error(nil)
	for have < n && err == nil {
		if len(data) == cap(data) { // it grows with what comes, and not by what is claimed
			data = slices.Grow(data, int(min(n-have, max(stride, have))))
		}
		var m int
		m, err = w.read(resp.Body, data[len(data):min(int64(cap(data)), int64(at)+n)])
		data = data[:len(data)+m]
		have += int64(m)
	}
	if have < n {
		if err == io.EOF { // what ends in good order and is too short is not trusted
			return &broken{c.fault(nil, "the body ends after %d of %d bytes", have, n).At(r.Start), 0}
		}
		got.data = data
		return err
	}
	var more [1]byte
	if m, _ := w.read(resp.Body, more[:]); m > 0 {
		return bad("the body goes on behind the %d bytes of its range", n)
	}
	got.data = data
	got.start, got.size, got.version = resp.Start, resp.Size, resp.Version
	return nil
}

func length(n int64) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprintf(", of %d bytes", n)
}

// watch is one request on its way: it is ended when it makes no progress, and settles with the meter what came.
type watch struct {
	*client
	outer      context.Context
	ctx        context.Context
	cancel     context.CancelCauseFunc
	timer      *time.Timer
	asked, got int64 // bytes: that were charged, and that came
	since      int64 // bytes since the timer was set
}

// stride is how many bytes win a request another time limit.
const stride = 1 << 20

var errSlow = errors.New("too slow")

// begin starts the time limit.
func (w *watch) begin() context.Context {
	w.ctx, w.cancel = context.WithCancelCause(w.outer)
	if w.o.Timeout > 0 {
		w.timer = time.AfterFunc(w.o.Timeout, func() { w.cancel(errSlow) })
	}
	return w.ctx
}

// moved sets the time limit anew.
func (w *watch) moved() {
	w.since = 0
	if w.timer != nil && w.timer.Stop() {
		w.timer.Reset(w.o.Timeout)
	}
}

func (w *watch) end() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
	w.o.Meter.Correct(w.got - w.asked)
}

// grow charges for bytes beyond those that were asked for, up to n in all.
func (w *watch) grow(n int64) error {
	if n <= w.asked {
		return nil
	}
	if err := w.o.Meter.Charge(0, n-w.asked); err != nil {
		return fault.Locate(err, w.name, "", 0)
	}
	w.asked = n
	return nil
}

// read reads some bytes of a body. An error is [io.EOF], or that of a request that failed.
func (w *watch) read(body io.Reader, p []byte) (int, error) {
	n, err := body.Read(p[:min(len(p), stride)])
	w.got += int64(n)
	if w.since += int64(n); w.since >= stride {
		w.moved()
	}
	if err != nil && err != io.EOF {
		err = w.failure(err)
	}
	return n, err
}

// drain reads the body of a failure, so that the connection can be used again.
func (w *watch) drain(body io.Reader) {
	n, _ := io.CopyN(io.Discard, body, errBody)
	w.got += n
}

// failure is the error of a request that broke.
func (w *watch) failure(err error) error {
	switch {
	case w.outer.Err() != nil:
		return w.system(w.outer.Err(), nil)
	case context.Cause(w.ctx) == errSlow:
		return &broken{w.fault(nil, "no progress within %v", w.o.Timeout).Because(context.DeadlineExceeded), 0}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // which has no text of its own in a fault
		return &broken{w.fault(nil, "the answer breaks off after %d bytes of its body", w.got).Because(io.ErrUnexpectedEOF), 0}
	}
	return &broken{w.system(err, nil), 0}
}

// broken is the error of a request that may do better when it is sent again.
type broken struct {
	error
	after time.Duration // how long the store wants to be left alone
}

func (b *broken) Unwrap() error { return b.error }

// Pauses double from pauseFirst to pauseMost, and are random below that, so that many who fail together do not come back
// together. A store may ask for more, but not for longer than pauseAsked: then somebody has to know.
const (
	pauseFirst = 100 * time.Millisecond
	pauseMost  = 5 * time.Second
	pauseAsked = 60 * time.Second
)

// retry calls do until it succeeds, fails for good, or has failed too often.
func (c *client) retry(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		b, ok := err.(*broken)
		switch {
		case !ok:
			return err
		case b.after > pauseAsked:
			return gaveUp(b.error, "asks to be left alone for %v", b.after)
		case try >= c.o.Retries:
			if try == 0 {
				return b.error
			}
			return gaveUp(b.error, "tried %d times", try+1)
		}
		pause := time.Duration(rand.Int64N(int64(min(pauseMost, pauseFirst<<min(try, 10)))))
		timer := time.NewTimer(max(pause, b.after))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return c.system(ctx.Err(), nil)
		}
	}
}

// gaveUp adds to an error why there was no other try.
func gaveUp(err error, format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	e := *f
	if e.Msg != "" {
		e.Msg += ", "
	}
	e.Msg += why
	return &e
}
