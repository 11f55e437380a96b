package promapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spilehq/spile/adapters/promql"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// The defaults of Options.
const (
	DefaultTimeout    = 30 * time.Second
	DefaultMaxBytes   = 1 << 30
	DefaultMemory     = 256 << 20
	DefaultConcurrent = 8
)

// Options are the options of a Handler. Nil and the zero value mean the defaults.
type Options struct {
	Names      map[uint32]string // of tables: the label __name__; nil: series have none
	Timeout    time.Duration     // of a request, waiting and sending included; 0: DefaultTimeout
	MaxBytes   int64             // that a request reads of objects which Reads has wrapped; 0: DefaultMaxBytes
	Memory     int64             // that a request takes, approximately, beside what is shared; 0: DefaultMemory
	Concurrent int               // requests that are answered at a time, others wait; 0: DefaultConcurrent
	// Strict makes a fault of an artifact an error. Without it the artifact is left out, and answers have a warning.
	Strict   bool
	Warnings []string // that every answer has, as for artifacts that could not be opened

	// Failed is told, once for each artifact, why it is left out; nil: nobody is.
	Failed func(error)
	// Served is told of each request when it has been answered; nil: nobody is.
	Served func(*Request)

	Reads   *Reads        // that has wrapped the objects of the artifacts, for the budget and the metrics; nil: none has
	Cache   *series.Cache // that the artifacts share, for the metrics; nil: they share none
	Version string        // of the program, for buildinfo and the metrics
}

// Request is what is told of a request.
type Request struct {
	Method, Path string // without parameters
	Code         string // of the answer, or "aborted" where its sending ended before the answer did
	Bytes        int64  // of the answer
	Elapsed      time.Duration
	Err          error // why it was aborted
}

// Handler answers requests from a set of artifacts. It is safe for concurrent use.
type Handler struct {
	o         Options
	artifacts []*served // by region, start of the bucket, generation
	parts     map[string]*served
	slots     chan struct{}
	pending   atomic.Int64  // requests with a turn, or that wait for one
	grace     time.Duration // how much longer than a request may take its answer may be sent: enough for an error
	mux       *http.ServeMux
	metrics   *metrics
}

// served is an artifact with what is known against it.
type served struct {
	*series.Artifact
	manifest *series.Manifest
	fault    atomic.Pointer[string] // why it is left out from now on
	told     atomic.Bool
}

// New returns a handler of artifacts, each of which has its manifest. They stay the caller's, who closes them when no
// request runs any more. An artifact that has no manifest, or a tag of the name __name__, is an error with Options.Strict
// and left out without.
func New(artifacts []*series.Artifact, o *Options) (*Handler, error) {
	h := &Handler{parts: make(map[string]*served), grace: 5 * time.Second}
	if o != nil {
		h.o = *o
	}
	h.o.Timeout = cmp.Or(h.o.Timeout, DefaultTimeout)
	h.o.MaxBytes = cmp.Or(h.o.MaxBytes, DefaultMaxBytes)
	h.o.Memory = cmp.Or(h.o.Memory, DefaultMemory)
	h.o.Concurrent = cmp.Or(h.o.Concurrent, DefaultConcurrent)
	if h.o.Timeout < 0 || h.o.MaxBytes < 0 || h.o.Memory < 0 || h.o.Concurrent < 0 {
		return nil, fault.New(fault.Invalid, "promapi", "timeout %v, %d bytes, memory %d, %d at a time: none may be below 0", h.o.Timeout, h.o.MaxBytes, h.o.Memory, h.o.Concurrent)
	}
	h.slots = make(chan struct{}, h.o.Concurrent)
	h.o.Warnings = slices.Clone(h.o.Warnings)
	for _, a := range artifacts {
		if err := usable(a); err != nil {
			if h.o.Strict {
				return nil, err
			}
			h.o.Warnings = append(h.o.Warnings, leftOut(err))
			if h.o.Failed != nil {
				h.o.Failed(err)
			}
			continue
		}
		h.add(a)
	}
	slices.SortStableFunc(h.artifacts, func(a, b *served) int {
		x, y := a.manifest, b.manifest
		if d := cmp.Compare(x.RegionID, y.RegionID); d != 0 {
			return d
		}
		s, t := x.Coverage.BucketStart, y.Coverage.BucketStart
		switch {
		case s == nil && t != nil, s != nil && t != nil && s.Before(*t):
			return -1
		case s != nil && t == nil, s != nil && t != nil && t.Before(*s):
			return 1
		}
		return slices.Compare(x.Generation[:], y.Generation[:])
	})
	h.metrics = newMetrics(h)
	h.route()
	return h, nil
}

func usable(a *series.Artifact) error {
	if a.Manifest() == nil {
		return fault.New(fault.Invalid, "promapi", "is a part without its manifest").In(a.Name())
	}
	for _, t := range a.Tags() {
		if t.Name == promql.MetricName {
			return fault.New(fault.Invalid, "promapi", "has a tag %s, which names metrics", t.Name).In(a.Name())
		}
	}
	return nil
}

func (h *Handler) add(a *series.Artifact) {
	s := &served{Artifact: a, manifest: a.Manifest()}
	h.artifacts = append(h.artifacts, s)
	before, behind := aroundManifest(a.Name())
	for i := range s.manifest.Files {
		h.parts[before+series.PartName(uint32(i))+behind] = s
	}
}

func (h *Handler) route() {
	h.mux = http.NewServeMux()
	get, both := []string{http.MethodGet, http.MethodHead}, []string{http.MethodGet, http.MethodHead, http.MethodPost}
	h.handle("/api/v1/series", both, h.answering((*query).series))
	h.handle("/api/v1/labels", both, h.answering((*query).names))
	h.handle("/api/v1/label/{name}/values", get, h.answering((*query).values))
	h.handle("/api/v1/status/buildinfo", get, h.buildInfo)
	for _, path := range []string{"/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars"} {
		h.handle(path, both, func(w *watched, _ *http.Request) {
			writeError(w, failed(execution, "series, label names and label values are answered here; queries of samples are not"))
		})
	}
	h.handle("/api/v1/", nil, func(w *watched, r *http.Request) {
		writeError(w, failed(notFound, "%s is not answered here", clip(r.URL.Path)))
	})
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		h.handle(path, get, func(w *watched, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintln(w, "Spile is "+path[len("/-/"):]+".")
		})
	}
	h.handle("/metrics", get, func(w *watched, r *http.Request) { h.metrics.page.ServeHTTP(w, r) })
}

// handle serves a path, and counts what it answers.
func (h *Handler) handle(path string, methods []string, serve func(*watched, *http.Request)) {
	h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		// A client that reads slowly ends with the request. What cannot have a deadline, such as a recorder, needs none.
		_ = http.NewResponseController(w).SetWriteDeadline(begun.Add(h.o.Timeout + h.grace))
		out := &watched{ResponseWriter: w, code: http.StatusOK}
		done := h.metrics.begin(path)
		ended := false
		defer func() {
			code := fmt.Sprint(out.code)
			if !ended {
				code = "aborted"
			}
			elapsed := time.Since(begun)
			done(code, elapsed)
			if h.o.Served != nil {
				h.o.Served(&Request{r.Method, r.URL.Path, code, out.bytes, elapsed, out.err})
			}
		}()
		if methods != nil && !slices.Contains(methods, r.Method) {
			for _, m := range methods {
				w.Header().Add("Allow", m)
			}
			writeError(out, &apiError{badData, http.StatusMethodNotAllowed, fmt.Sprintf("method %s, want GET%s", clip(r.Method), orPost(methods))})
		} else {
			serve(out, r)
		}
		ended = true
	})
}

func orPost(methods []string) string {
	if slices.Contains(methods, http.MethodPost) {
		return " or POST"
	}
	return ""
}

// watched notes the code and the length of an answer.
type watched struct {
	http.ResponseWriter
	code  int
	bytes int64
	err   error // why the answer breaks off
}

func (w *watched) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// maxWaiting is how many requests wait for their turn, each of which may have parameters of a MiB.
const maxWaiting = 256

// errTimeout is why a request ends that took too long.
var errTimeout = errors.New("timeout")

// answering is the handler of a question: it reads the parameters, waits for its turn, and tries until no artifact is at
// fault.
func (h *Handler) answering(answer func(*query, *answer) error) func(*watched, *http.Request) {
	return func(w *watched, r *http.Request) {
		ctx, cancel := context.WithTimeoutCause(r.Context(), h.o.Timeout, errTimeout)
		defer cancel()
		if n := h.pending.Add(1); n > int64(h.o.Concurrent+maxWaiting) {
			h.pending.Add(-1)
			w.Header().Set("Retry-After", "1")
			writeError(w, failed(timeout, "%d requests are answered and %d wait, no more can", h.o.Concurrent, maxWaiting))
			return
		}
		defer h.pending.Add(-1)
		q, err := h.parse(w, r)
		if err != nil {
			writeError(w, err)
			return
		}
		q.ctx = context.WithValue(ctx, budgetKey{}, &source.Meter{MaxBytes: h.o.MaxBytes})
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		case <-ctx.Done():
			writeError(w, h.classify(ctx, ctx.Err()))
			return
		}
		if err := q.parseSelectors(r.Form["match[]"]); err != nil { // patterns take memory, so this has a turn as well
			writeError(w, h.classify(ctx, err))
			return
		}
		for {
			out := newAnswer(w)
			q.attempt = attempt{}
			err := answer(q, out)
			if err == nil {
				err = out.end(slices.Concat(q.left, q.warnings), q.infos)
			}
			if err == nil {
				return
			}
			again := ctx.Err() == nil && q.without(err)
			if out.sent {
				// The client sees a connection that ends in the middle, and no answer.
				w.err = h.classify(ctx, err)
				panic(http.ErrAbortHandler)
			}
			if !again {
				writeError(w, h.classify(ctx, err))
				return
			}
		}
	}
}

func (h *Handler) buildInfo(w *watched, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"status": "success", "data": buildInfo(h.o.Version)})
}
