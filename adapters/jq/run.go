package jq

import (
	"bytes"
	"context"
	"iter"
	"runtime"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// run is one run of a query.
type run struct {
	ctx     context.Context
	cancel  context.CancelFunc
	json    *value.JSONOptions // of the results
	limits  value.Limits
	loss    *value.Losses
	counted counted // of loss
	reader  *msglc.Reader
	end     int64 // of the count of decoded bytes, 0: none

	err       error // of the document: the run is over, whatever the program makes of it
	sizes     sizes
	scansKeys bool // keys can have names that are not theirs in the document

	plain value.JSONOptions // of what is decoded: on one line
	text  *value.JSONWriter // writes to buf
	buf   bytes.Buffer
	lines *value.JSONWriter // of results, writes to line
	line  bytes.Buffer
	scan  value.Scanner

	mu    sync.Mutex
	pulls map[*stopper]struct{}
}

// sizes are the lengths in bytes where a run changes its ways. They do not change what it finds.
type sizes struct {
	// container: up to it all children of a list or map are found before the first is used, which is cheaper than to
	// walk and use them in turn.
	container int64
	// preview: up to it a value is decoded so that gojq makes the error about it. The start of a longer one serves.
	preview int64
	// raw: up to it the bytes of a value are read at once. It keeps a margin to the limit of a reader.
	raw int64
	// line: up to it a result is made in memory before it is written.
	line int64
}

var defaultSizes = sizes{container: 64 << 10, preview: 64 << 10, raw: 256 << 20, line: 64 << 10}

func (q *Query) start(ctx context.Context, n msglc.Node, loss *value.Losses) (*run, error) {
	a, err := n.Archive(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{sizes: q.sizes, json: &q.json, limits: q.limits, loss: loss, reader: a, plain: q.json, pulls: make(map[*stopper]struct{})}
	r.plain.Pretty = false
	if q.maxDecode > 0 {
		r.end = a.Stats().Decoded + q.maxDecode
	}
	r.scansKeys = q.json.Keys != value.KeysError || q.json.Dup == value.DupFirst || q.json.InvalidUTF8 != value.UTF8Error
	r.text = value.NewJSONWriter(&r.buf, q.limits, &r.plain, loss)
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r, nil
}

// fail ends the run: an error of the document is not for the program to catch. gojq stops when its context does.
func (r *run) fail(err error) error {
	if r.err == nil {
		r.err = err
		r.cancel()
	}
	return r.err
}

// allow refuses to decode what would pass the bound.
func (r *run) allow(n msglc.Node) error {
	if r.end == 0 {
		return nil
	}
	size, err := n.Size(r.ctx)
	if err != nil {
		return r.fail(err)
	}
	if done := r.reader.Stats().Decoded; size > r.end-done {
		return r.fail(fault.New(fault.Limit, "jq", "the program needs %d more bytes decoded, %d are left of what it may", size, max(r.end-done, 0)))
	}
	return nil
}

func (r *run) close() {
	r.cancel()
	r.mu.Lock()
	left := make([]*stopper, 0, len(r.pulls))
	for s := range r.pulls {
		left = append(left, s)
	}
	r.mu.Unlock()
	for _, s := range left {
		s.stop()
	}
}

// stopper ends a walk over children. gojq does not say when it has lost interest in an iterator, as first(.[]) makes it,
// so the collector tells, and the end of the run at the latest.
type stopper struct {
	run  *run
	once sync.Once
	end  func()
}

func (s *stopper) stop() {
	s.once.Do(func() {
		s.end()
		s.run.mu.Lock()
		delete(s.run.pulls, s)
		s.run.mu.Unlock()
	})
}

// puller is what the collector watches.
type puller struct {
	next func() (msglc.Child, error, bool)
}

// pull turns a walk over children into a function that gives the next one.
func (r *run) pull(children iter.Seq2[msglc.Child, error]) func() (msglc.Child, error, bool) {
	next, end := iter.Pull2(children)
	s := &stopper{run: r, end: end}
	r.mu.Lock()
	r.pulls[s] = struct{}{}
	r.mu.Unlock()
	p := &puller{next: next}
	runtime.AddCleanup(p, (*stopper).stop, s)
	return func() (msglc.Child, error, bool) {
		n, err, ok := p.next()
		if !ok || err != nil {
			s.stop()
		}
		return n, err, ok
	}
}
