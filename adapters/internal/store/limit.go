package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// Tries is how often a request is sent at most.
func Tries(o *remote.Requests) int {
	switch {
	case o.Retries < 0:
		return 1
	case o.Retries == 0:
		return 1 + remote.DefaultRetries
	}
	return 1 + min(o.Retries, math.MaxInt32-1) // some libraries take 32 bits
}

// Limit puts the time limit and the meter of a store's requests in front of a transport. It is not for reads of objects, which
// [remote.Open] limits and counts itself.
func Limit(base http.RoundTripper, o *remote.Requests) http.RoundTripper {
	l := &limited{base, o.Timeout, o.Meter}
	if l.timeout == 0 {
		l.timeout = remote.DefaultTimeout
	}
	if l.meter == nil {
		l.meter = new(source.Meter)
	}
	return l
}

type limited struct {
	base    http.RoundTripper
	timeout time.Duration
	meter   *source.Meter
}

const (
	// stride is how many bytes, sent or received, win a request another time limit.
	stride = 1 << 20

	// workStride is how many bytes that a store copies by itself do: stores copy some 50 MB a second.
	workStride = 16 << 20
)

type workKey struct{}

// Working returns a context whose requests have the store copy or join so many bytes that it has, and time for that.
func Working(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, workKey{}, bytes)
}

type budgetKey struct{}

// Budgeted returns a context whose requests are refused when they would pass the budget of the meter. The context ends then,
// with the refusal as its cause, so that no library tries again. The function ends it without one.
func Budgeted(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return context.WithValue(ctx, budgetKey{}, cancel), cancel
}

// limit is how long a request may make no progress, 0 without limit.
func (l *limited) limit(ctx context.Context) time.Duration {
	if l.timeout < 0 {
		return 0
	}
	work, _ := ctx.Value(workKey{}).(int64)
	times := 1 + work/workStride
	if int64(l.timeout) > math.MaxInt64/times {
		return 0
	}
	return l.timeout * time.Duration(times)
}

func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	w := &watched{limited: l, outer: req.Context(), limit: l.limit(req.Context())}
	w.refuse, _ = w.outer.Value(budgetKey{}).(context.CancelCauseFunc)
	if w.refuse == nil {
		l.meter.Count(source.Receipt{Requests: 1})
	} else if err := w.charge(1, 0); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancelCause(w.outer)
	if w.limit > 0 {
		w.timer = time.AfterFunc(w.limit, func() { w.cancel(errSlow) })
	}
	req = req.WithContext(w.ctx)
	if body := req.Body; body != nil && body != http.NoBody {
		req.Body = &sent{ReadCloser: body, watched: w}
		if again := req.GetBody; again != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				body, err := again()
				return &sent{ReadCloser: body, watched: w}, err
			}
		}
	}
	resp, err := l.base.RoundTrip(req)
	if err != nil {
		defer w.end()
		return nil, w.failure(err, false)
	}
	if w.refuse != nil && resp.ContentLength > 0 && req.Method != http.MethodHead {
		if err := w.charge(0, resp.ContentLength); err != nil {
			resp.Body.Close()
			w.end()
			return nil, err
		}
		w.charged = resp.ContentLength
	}
	if resp.Body == http.NoBody {
		w.end()
		return resp, nil
	}
	w.moved()
	resp.Body = &received{ReadCloser: resp.Body, watched: w}
	return resp, nil
}

// watched is one request on its way.
type watched struct {
	*limited
	outer, ctx context.Context
	cancel     context.CancelCauseFunc
	refuse     context.CancelCauseFunc // nil when the request is held to no budget
	limit      time.Duration
	timer      *time.Timer // nil without a limit
	charged    int64       // bytes of the answer that the budget knows of
}

var errSlow = errors.New("too slow")

// slow is the error of a request that was ended.
type slow struct {
	limit    time.Duration
	answered bool // and the answer stopped
}

func (s slow) Error() string { return fmt.Sprintf("no progress within %v", s.limit) }
func (slow) Unwrap() error   { return context.DeadlineExceeded }

// BreaksOff reports whether an error is that of an answer that did not come to its end.
func BreaksOff(err error) bool {
	s, ok := errors.AsType[slow](err)
	return ok && s.answered || errors.Is(err, io.ErrUnexpectedEOF)
}

func (w *watched) failure(err error, answered bool) error {
	if w.outer.Err() == nil && context.Cause(w.ctx) == errSlow {
		return slow{w.limit, answered}
	}
	return err
}

// charge asks the budget, and ends the context of a request that it refuses.
func (w *watched) charge(requests, bytes int64) error {
	err := w.meter.Charge(requests, bytes)
	if err != nil {
		w.refuse(err)
	}
	return err
}

// moved sets the time limit anew. Of a body that is sent and an answer that comes at the same time one does.
func (w *watched) moved() {
	if w.timer != nil && w.timer.Stop() {
		w.timer.Reset(w.limit)
	}
}

func (w *watched) end() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}

// sent is the body of a request.
type sent struct {
	io.ReadCloser
	*watched
	since int
}

func (s *sent) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.meter.Count(source.Receipt{Sent: int64(n)})
	if s.since += n; s.since >= stride || err != nil {
		s.since = 0
		s.moved()
	}
	return n, err
}

// received is the body of an answer.
type received struct {
	io.ReadCloser
	*watched
	since  int
	got    int64
	closed bool
}

func (r *received) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p[:min(len(p), stride)])
	r.got += int64(n)
	switch more := r.got - r.charged; {
	case r.refuse == nil:
		r.meter.Count(source.Receipt{Bytes: int64(n)})
	case more > 0:
		r.charged = r.got
		if refused := r.charge(0, more); refused != nil {
			r.meter.Correct(more) // it has come
			return 0, refused
		}
	}
	if r.since += n; r.since >= stride {
		r.since = 0
		r.moved()
	}
	if err != nil && err != io.EOF {
		err = r.failure(err, true)
	}
	return n, err
}

func (r *received) Close() error {
	err := r.ReadCloser.Close()
	if !r.closed {
		r.closed = true
		if r.charged > r.got {
			r.meter.Correct(r.got - r.charged)
		}
		r.end()
	}
	return err
}
