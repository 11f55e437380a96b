package storesuite

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// Limited is a store whose lists and uploads are held to [remote.Requests], in front of a server that fails.
type Limited struct {
	Prefix string // of URLs
	Page   string // the answer to a request for a list of one object
	// Made answers the request that has made an object of these bytes.
	Made func(w http.ResponseWriter, content []byte)
	// Open opens the store at the URL of a server.
	Open func(endpoint string, o remote.Requests) Store
}

// failing is the server.
type failing struct {
	*Limited
	mu             sync.Mutex
	fail           int  // requests that it still refuses
	silent         bool // it answers nothing
	requests       int
	sent, received int64
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	f.received += int64(len(content))
	switch {
	case f.silent:
		f.mu.Unlock()
		<-r.Context().Done()
		f.mu.Lock()
	case f.fail > 0:
		f.fail--
		w.WriteHeader(503)
		f.sent += 4
		io.WriteString(w, "busy")
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/xml")
		f.sent += int64(len(f.Page))
		io.WriteString(w, f.Page)
	default:
		out := &counter{w, 0}
		f.Made(out, content)
		f.sent += out.n
	}
}

type counter struct {
	http.ResponseWriter
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.ResponseWriter.Write(p)
}

// seen is what the server has counted since it was asked last.
func (f *failing) seen() source.Receipt {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := source.Receipt{Requests: int64(f.requests), Bytes: f.sent, Sent: f.received}
	f.requests, f.sent, f.received = 0, 0, 0
	return r
}

// Run runs the tests.
func (l *Limited) Run(t *testing.T) {
	const wait = 30 * time.Millisecond
	for name, test := range map[string]struct {
		requests              remote.Requests
		maxBytes, maxRequests int64 // the budget
		fail                  int
		silent                bool
		counted               int64  // requests for each: a list and an upload
		text                  string // of the error
		refused               bool   // the list is, by the budget; an upload is not
	}{
		"one fails":         {fail: 1, counted: 2},
		"never again":       {requests: remote.Requests{Retries: -1}, fail: 9, counted: 1, text: "503"},
		"twice again":       {requests: remote.Requests{Retries: 2}, fail: 9, counted: 3, text: "503"},
		"silent":            {requests: remote.Requests{Retries: -1, Timeout: wait}, silent: true, counted: 1, text: "no progress within 30ms"},
		"silent again":      {requests: remote.Requests{Retries: 1, Timeout: wait}, silent: true, counted: 2, text: "no progress within 30ms"},
		"budget of bytes":   {maxBytes: 20, counted: 1, refused: true},
		"budget of retries": {maxRequests: 1, fail: 1, counted: 1, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failing{Limited: l, silent: test.silent}
			server := httptest.NewServer(f)
			defer server.Close()
			check := func(what string, meter *source.Meter, err error, refused, again bool) {
				t.Helper()
				seen, counted := f.seen(), meter.Receipt()
				switch {
				case refused && !errors.Is(err, fault.Limit), !refused && test.text == "" && err != nil,
					test.text != "" && (err == nil || !strings.Contains(err.Error(), test.text)):
					t.Errorf("%s: %v", what, err)
				}
				want := test.counted
				if test.refused && !refused {
					want = int64(1 + test.fail)
				}
				if counted != seen && !(refused && counted.Requests == seen.Requests) || counted.Requests != want && !(again && counted.Requests == 2*want) {
					t.Errorf("%s: counted %+v, the server has seen %+v, expected %d requests", what, counted, seen, want)
				}
			}
			set := func() (Store, *source.Meter) {
				f.fail = test.fail
				meter := &source.Meter{MaxBytes: test.maxBytes, MaxRequests: test.maxRequests}
				o := test.requests
				o.Meter = meter
				return l.Open(server.URL, o), meter
			}

			s, meter := set()
			entries, last := 0, error(nil)
			for _, err := range s.List(t.Context(), l.Prefix) {
				if last = err; err == nil {
					entries++
				}
			}
			check("list", meter, last, test.refused, false)
			if (last == nil) != (entries == 1) {
				t.Errorf("%d entries, %v", entries, last)
			}

			s, meter = set()
			w, err := s.Create(t.Context(), l.Prefix+"key", nil)
			storetest.Must(t, err)
			_, err = w.Write([]byte("hello, store"))
			storetest.Must(t, err)
			// Without an answer it asks as often whether the object is there.
			check("upload", meter, w.Commit(t.Context()), false, test.silent)
		})
	}
}
