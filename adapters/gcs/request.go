package gcs

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
)

// request is one that does no harm when it is sent twice.
type request struct {
	method, url string
	header      http.Header
	body        []byte
}

// answer is what came of a request.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	message string
	lost    bool // the same request was sent before, and got no answer
}

// A request that failed in passing is sent again, after pauses that double from pauseFirst to some 3 s.
const (
	pauseFirst   = 200 * time.Millisecond
	pauseDoubles = 4
)

// answerMost bounds the answers that are read whole: a page of a list has up to 1,000 names of up to 1,024 bytes.
const answerMost = 16 << 20

// passing reports whether an answer may be another one soon.
func passing(status int) bool { return status == 408 || status == 429 || status >= 500 }

// pause waits before the next try, for as long as the store asks if that is longer, within reason.
func pause(ctx context.Context, try int, asked time.Duration) error {
	most := pauseFirst << min(try, pauseDoubles)
	timer := time.NewTimer(max(most/2+time.Duration(rand.Int64N(int64(most/2))), min(asked, 30*time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends a request once. An error means that there was no answer.
func (s *Store) send(ctx context.Context, r request) (answer, time.Duration, error) {
	ctx, rec := store.Keep(ctx)
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, 0, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		said := rec.Answer()
		return answer{resp.StatusCode, resp.Header, rec.Failure.Bytes(), s.explained(resp.StatusCode, said.Message), false}, said.RetryAfter, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMost))
	return answer{resp.StatusCode, resp.Header, body, "", false}, 0, err
}

// failed gives the error of a request without an answer, and whether a further one would have none either.
func failed(ctx context.Context, name, doing string, err error) (stop bool, failure error) {
	err = store.Cause(pkg, name, err)
	_, final := err.(*fault.Error)
	return final || ctx.Err() != nil, store.Failed(pkg, name, doing, err)
}

// try sends a request until it is answered, and not by a failure that may pass.
func (s *Store) try(ctx context.Context, name, doing string, r request) (answer, error) {
	lost := false
	for try := 0; ; try++ {
		a, asked, err := s.send(ctx, r)
		a.lost = lost
		lost = lost || err != nil
		if err == nil && !passing(a.status) {
			return a, nil
		}
		if err != nil {
			var stop bool
			if stop, err = failed(ctx, name, doing, err); stop {
				return a, err
			}
		} else {
			err = store.Refused(pkg, name, doing, a.status, a.message)
		}
		if try+1 >= s.tries {
			return a, err
		}
		if stopped := pause(ctx, try, asked); stopped != nil {
			return a, fault.New(nil, pkg, "cannot %s", doing).In(name).Because(stopped)
		}
	}
}

// ask is try for requests of which only success is of use.
func (s *Store) ask(ctx context.Context, name, doing string, r request) ([]byte, error) {
	a, err := s.try(ctx, name, doing, r)
	if err == nil && a.status >= 300 {
		err = store.Refused(pkg, name, doing, a.status, a.message)
	}
	return a.body, err
}

// explained adds to the message of a failure what the store does not say.
func (s *Store) explained(status int, message string) string {
	if s.open && (status == 401 || status == 403) {
		return store.Join(message, "the request was sent without credentials, since there are none")
	}
	return message
}
