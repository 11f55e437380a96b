package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// paced is a server that takes and gives a MiB each time that it has paused, and has another pause before it answers.
type paced struct {
	send, answer, receive time.Duration
	length                int64 // of the answer; below 0 it is not said
}

const mib = 1 << 20

func (s paced) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	for r.Body != nil {
		if _, err := io.CopyN(io.Discard, r.Body, mib); err == io.EOF {
			r.Body.Close()
			break
		}
		if err := sleep(ctx, s.send); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, s.answer); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, ContentLength: s.length, Body: &pacedBody{ctx, s.receive, max(s.length, -s.length)}}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

type pacedBody struct {
	ctx   context.Context
	pause time.Duration
	left  int64
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), b.left, mib))
	if b.left/mib != (b.left-int64(n))/mib {
		if err := sleep(b.ctx, b.pause); err != nil {
			return 0, err
		}
	}
	b.left -= int64(n)
	return n, nil
}

func (b *pacedBody) Close() error { return nil }

// TestLimit: a request has its time to be answered, and for each MiB that goes or comes, and not for the whole.
func TestLimit(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		server  paced
		send    int64
		work    int64
		timeout time.Duration
		slow    bool
		breaks  bool // while the answer comes
	}{
		"in time":                   {paced{second, 29 * second, second, mib}, mib, 0, 0, false, false},
		"a long upload":             {paced{25 * second, 0, 0, 0}, 20 * mib, 0, 0, false, false},
		"an upload that stops":      {paced{31 * second, 0, 0, 0}, 20 * mib, 0, 0, true, false},
		"after a long upload":       {paced{25 * second, 25 * second, 0, 0}, 20 * mib, 0, 0, false, false},
		"no answer":                 {paced{0, 31 * second, 0, 0}, 0, 0, 0, true, false},
		"no limit":                  {paced{0, 1000 * time.Hour, 0, 0}, 0, 0, -1, false, false},
		"a long answer":             {paced{0, 0, 25 * second, 20 * mib}, 0, 0, 0, false, false},
		"an answer that stops":      {paced{0, 0, 31 * second, 20 * mib}, 0, 0, 0, true, true},
		"a copy of 64 MiB":          {paced{0, 149 * second, 0, 0}, 0, 64 * mib, 0, false, false},
		"a slow copy of 64 MiB":     {paced{0, 151 * second, 0, 0}, 0, 64 * mib, 0, true, false},
		"a copy, and a long limit":  {paced{0, 1000 * time.Hour, 0, 0}, 0, 5 << 40, 1e6 * time.Hour, false, false},
		"a copy, and a short limit": {paced{0, 6 * second, 0, 0}, 0, 64 * mib, second, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var meter source.Meter
				l := Limit(test.server, &remote.Requests{Timeout: test.timeout, Meter: &meter})
				var body io.Reader
				if test.send > 0 {
					body = strings.NewReader(strings.Repeat("x", int(test.send)))
				}
				req, err := http.NewRequestWithContext(Working(t.Context(), test.work), http.MethodPut, "http://store/", body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := l.RoundTrip(req)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if _, slow := errors.AsType[slow](err); slow != test.slow || BreaksOff(err) != test.breaks || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				if r := meter.Receipt(); r.Requests != 1 || err == nil && (r.Sent != test.send || r.Bytes != test.server.length) {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestLimitInterrupted: the end of the caller's context is told as that.
func TestLimitInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://store/", nil)
		if _, err := Limit(paced{answer: time.Minute}, &remote.Requests{}).RoundTrip(req); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestBudgeted: what would pass the budget is refused, and ends the context.
func TestBudgeted(t *testing.T) {
	for name, test := range map[string]struct {
		maxBytes, maxRequests int64
		length                int64
		refused               bool
		bytes                 int64
	}{
		"enough":                       {1000, 1, 1000, false, 1000},
		"enough of what is not said":   {1000, 0, -1000, false, 1000},
		"too many bytes":               {999, 0, 1000, true, 0},
		"too many that were not said":  {999, 0, -1000, true, 1000},
		"a request of those that were": {0, 3, 10, true, 0},
	} {
		meter := &source.Meter{MaxBytes: test.maxBytes, MaxRequests: test.maxRequests}
		if meter.MaxRequests == 3 {
			meter.Count(source.Receipt{Requests: 3})
		}
		ctx, stop := Budgeted(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://store/", nil)
		resp, err := Limit(paced{length: test.length}, &remote.Requests{Meter: meter}).RoundTrip(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if errors.Is(err, fault.Limit) != test.refused || errors.Is(context.Cause(ctx), fault.Limit) != test.refused || meter.Receipt().Bytes != test.bytes {
			t.Errorf("%s: %v, %v, %+v", name, err, context.Cause(ctx), meter.Receipt())
		}
		stop(nil)
	}
}
