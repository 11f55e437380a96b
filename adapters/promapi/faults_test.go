package promapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// many is an artifact of n series of labels of a length.
func many(n, length int) *spec {
	s := &spec{region: 1, generation: 9, tags: hostZone[:1], block: 64}
	for i := range n {
		s.records = append(s.records, record(1, uint64(i), fmt.Sprintf("host=%0*d", length, i)))
	}
	return s
}

var all = match(`{host=~".+"}`)

// damage changes the first chunk of hosts that lies behind an offset.
func damage(t *testing.T, dir string, behind int64) {
	t.Helper()
	a := open(t, dir, nil, nil)
	p, err := a.Part(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for leaf := range p.Leaves {
		blocks, err := a.Blocks(t.Context(), 0, leaf)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if c := b.Columns[2]; c.Offset >= behind {
				f, err := os.OpenFile(p.Name, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.WriteAt([]byte{0xff}, c.Offset+c.Stored/2); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatal("nothing to damage")
}

// An artifact that turns out to be bad is left out, told once, and named in answers.
func TestBadArtifact(t *testing.T) {
	good := &spec{region: 2, generation: 1, tags: hostZone, records: []series.Record{record(1, 1, "host=good")}}
	bad := many(100, 10)
	bad.start, bad.end = 1000, 2000
	for _, strict := range []bool{false, true} {
		dir := bad.folder(t)
		damage(t, dir, 0)
		var told []error
		h, err := New([]*series.Artifact{open(t, dir, nil, nil), open(t, good.folder(t), nil, nil)},
			&Options{Strict: strict, Failed: func(err error) { told = append(told, err) }, Warnings: []string{"left out: other"}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			code, body := ask(h, "GET", "/api/v1/series", all)
			e := decode(t, body)
			if strict {
				if code != 500 || e.ErrorType != internal || !strings.Contains(e.Error, "check 42") || e.Data != nil {
					t.Errorf("strict: %d %s", code, body)
				}
				continue
			}
			if code != 200 || string(e.Data) != `[{"host":"good"}]` || len(e.Warnings) != 2 || e.Warnings[0] != "left out: other" ||
				!strings.Contains(e.Warnings[1], filepath.Join(dir, "part-0.series")) || !strings.Contains(e.Warnings[1], "check 42") {
				t.Errorf("%d %s", code, body)
			}
		}
		if strict {
			continue
		}
		if len(told) != 1 || !errors.Is(told[0], fault.Corrupt) {
			t.Errorf("told %v", told)
		}
		_, body := ask(h, "GET", "/metrics", nil)
		for _, want := range []string{"spile_bad_artifacts 1\n", "spile_open_artifacts 1\n", `spile_http_requests_total{code="200",handler="/api/v1/series"} 3`} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s in\n%s", want, body)
			}
		}
		// Who asks for another time does not miss it.
		code, body := ask(h, "GET", "/api/v1/series", url.Values{"match[]": all["match[]"], "start": {"5000"}})
		if e := decode(t, body); code != 200 || len(e.Warnings) != 1 {
			t.Errorf("%d %s", code, body)
		}
	}
}

// The same where artifacts are merged: then the error tells which it is.
func TestBadAmongMerged(t *testing.T) {
	dir := many(100, 10).folder(t)
	damage(t, dir, 0)
	other := &spec{region: 1, generation: 1, tags: hostZone, records: []series.Record{record(1, 1, "host=good", "zone=eu")}}
	h, err := New([]*series.Artifact{open(t, dir, nil, nil), open(t, other.folder(t), nil, nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	code, body := ask(h, "GET", "/api/v1/series", all)
	if e := decode(t, body); code != 200 || string(e.Data) != `[{"host":"good","zone":"eu"}]` || len(e.Warnings) != 1 {
		t.Errorf("%d %s", code, body)
	}
}

// An error behind the first bytes of an answer ends the connection: no client takes it for an answer.
func TestBrokenAnswer(t *testing.T) {
	dir := many(20_000, 200).folder(t)
	damage(t, dir, 3<<20)
	requests := make(chan *Request, 1)
	h, err := New([]*series.Artifact{open(t, dir, nil, nil)}, &Options{Served: func(r *Request) { requests <- r }})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, h)
	code, body, err := get(t, s, "/api/v1/series", all)
	if code != 200 || !errors.Is(err, io.ErrUnexpectedEOF) || len(body) < holdBack {
		t.Errorf("%d, %d bytes, %v", code, len(body), err)
	}
	if r := <-requests; r.Code != "aborted" || r.Err == nil || !strings.Contains(r.Err.Error(), "check 42") {
		t.Errorf("%+v", r)
	}
	// Once it is known, the rest is an answer.
	code, body, err = get(t, s, "/api/v1/series", all)
	if err != nil || code != 200 || len(decode(t, body).Warnings) != 1 {
		t.Errorf("%d %.300s %v", code, body, err)
	}
}

func TestLongAnswer(t *testing.T) {
	s := serve(t, handler(t, nil, many(20_000, 200)))
	code, body, err := get(t, s, "/api/v1/series", all)
	if e := decode(t, body); err != nil || code != 200 || strings.Count(string(e.Data), `"host"`) != 20_000 {
		t.Errorf("%d, %d bytes, %v", code, len(body), err)
	}
	if code, body, err = get(t, s, "/api/v1/label/host/values", nil); err != nil || code != 200 || len(body) < 20_000*200 {
		t.Errorf("%d, %d bytes, %v", code, len(body), err)
	}
}

func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		path string
		want string
	}{
		"bytes":               {Options{MaxBytes: 100 << 10}, "series", "budget of 102400 bytes"},
		"bytes of values":     {Options{MaxBytes: 100 << 10}, "label/host/values", "budget of 102400 bytes"},
		"memory":              {Options{Memory: 300 << 10}, "series", "memory of 307200 bytes"},
		"memory of values":    {Options{Memory: 300 << 10}, "label/host/values", "memory of"},
		"memory of one block": {Options{Memory: 4 << 10}, "series", "a block takes about"},
		"memory of a matcher": {Options{Memory: 4 << 10}, "labels", "a block takes about"},
	} {
		h := handler(t, &c.o, many(5000, 50))
		code, body := ask(h, "GET", "/api/v1/"+c.path, match(`{host=~".*[0-9]"}`))
		if e := decode(t, body); code != 422 || e.ErrorType != execution || !strings.Contains(e.Error, c.want) {
			t.Errorf("%s: %d %.300s", name, code, body)
		}
	}
	// What fits is answered, and the budget is that of one request.
	h := handler(t, &Options{MaxBytes: 1 << 20, Memory: 1 << 20, Cache: series.NewCache(1)}, many(5000, 50))
	for range 4 {
		if code, body := ask(h, "GET", "/api/v1/series", all); code != 200 {
			t.Errorf("%d %.300s", code, body)
		}
	}
	_, body := ask(h, "GET", "/metrics", nil)
	for _, want := range []string{"spile_source_read_bytes_total 1.", "spile_source_reads_total ", "spile_cache_bytes 0\n", "spile_http_requests_running 1\n", "go_goroutines "} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// stuck is a source that does not answer, once it is stuck, until the context ends.
type stuck struct {
	source.Object
	is      *atomic.Bool
	entered chan struct{}
	reads   *atomic.Int64
}

func (s *stuck) ReadAt(ctx context.Context, p []byte, off int64) error {
	if !s.is.Load() {
		return s.Object.ReadAt(ctx, p, off)
	}
	s.reads.Add(1)
	select {
	case s.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// stuckHandler answers from a source that is stuck.
func stuckHandler(t *testing.T, o *Options) (h *Handler, s *stuck) {
	t.Helper()
	s = &stuck{is: new(atomic.Bool), entered: make(chan struct{}, 1), reads: new(atomic.Int64)}
	a := open(t, many(1000, 10).folder(t), nil, func(obj source.Object) source.Object {
		return &stuck{obj, s.is, s.entered, s.reads}
	})
	h, err := New([]*series.Artifact{a}, o)
	if err != nil {
		t.Fatal(err)
	}
	s.is.Store(true)
	return h, s
}

func TestTimeout(t *testing.T) {
	h, _ := stuckHandler(t, &Options{Timeout: 20 * time.Millisecond})
	code, body := ask(h, "GET", "/api/v1/series", all)
	if e := decode(t, body); code != 503 || e.ErrorType != timeout || e.Error != "the request took longer than 20ms" {
		t.Errorf("%d %s", code, body)
	}
}

// A request that its client gave up reads no more.
func TestCancelled(t *testing.T) {
	codes := make(chan string, 1)
	h, stuck := stuckHandler(t, &Options{Served: func(r *Request) { codes <- r.Code }})
	s := serve(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/api/v1/series?"+all.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-stuck.entered
		cancel()
	}()
	if _, err := s.Client().Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if code := <-codes; code != "503" {
		t.Errorf("code %s", code)
	}
	if n := stuck.reads.Load(); n < 1 || n > 2 { // the header and the end of the part, which are read at once
		t.Errorf("%d reads", n)
	}
}

// One request at a time: the second waits for the first, and gives up when its time is over.
func TestConcurrent(t *testing.T) {
	h, stuck := stuckHandler(t, &Options{Concurrent: 1, Timeout: 200 * time.Millisecond})
	var work sync.WaitGroup
	work.Go(func() {
		if code, body := ask(h, "GET", "/api/v1/labels", all); code != 503 {
			t.Errorf("the first: %d %s", code, body)
		}
	})
	<-stuck.entered
	stuck.is.Store(false) // what comes now would be answered at once
	if code, body := ask(h, "GET", "/-/healthy", nil); code != 200 {
		t.Errorf("health: %d %s", code, body)
	}
	code, body := ask(h, "GET", "/api/v1/labels", all)
	work.Wait()
	// It has waited: either its time was over first, or it came in when the first had gone.
	if code != 200 && !(code == 503 && decode(t, body).ErrorType == timeout) {
		t.Errorf("the second: %d %s", code, body)
	}
	if code, body := ask(h, "GET", "/api/v1/labels", all); code != 200 {
		t.Errorf("the third: %d %s", code, body)
	}
}

// A client that does not read its answer is left behind.
func TestSlowClient(t *testing.T) {
	codes := make(chan string, 1)
	h := handler(t, &Options{Timeout: 100 * time.Millisecond, Served: func(r *Request) { codes <- r.Code }}, many(4000, 8<<10))
	h.grace = 100 * time.Millisecond
	s := serve(t, h)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil { // whatever the system would buffer
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/series?%s HTTP/1.1\r\nHost: x\r\n\r\n", all.Encode()); err != nil {
		t.Fatal(err)
	}
	if code := <-codes; code != "aborted" && code != "503" { // 503 where it took that long to begin
		t.Errorf("code %s", code)
	}
}

// Many clients at once get what one gets, each for itself.
func TestManyClients(t *testing.T) {
	h := handler(t, &Options{Names: names, Cache: series.NewCache(4 << 10), Concurrent: 4}, append(store(), many(2000, 20))...)
	s := serve(t, h)
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 32
	type question struct {
		path string
		form url.Values
	}
	questions := []question{
		{"/api/v1/series", all}, {"/api/v1/series", match("up", "down")}, {"/api/v1/labels", nil}, {"/api/v1/labels", all},
		{"/api/v1/label/host/values", nil}, {"/api/v1/label/__name__/values", nil}, {"/api/v1/series", match("{")},
	}
	var want []string
	for _, q := range questions {
		_, body := ask(h, "GET", q.path, q.form)
		want = append(want, body)
	}
	var work sync.WaitGroup
	for client := range 32 {
		work.Go(func() {
			for i := range 2 * len(questions) {
				k := (i + client) % len(questions)
				_, body, err := get(t, s, questions[k].path, questions[k].form)
				if err != nil || body != want[k] {
					t.Errorf("%v: %v, %d bytes, want %d", questions[k], err, len(body), len(want[k]))
				}
			}
			if _, body, err := get(t, s, "/metrics", nil); err != nil || !strings.Contains(body, "spile_http_requests_total") {
				t.Errorf("metrics: %v", err)
			}
		})
	}
	work.Wait()
}

// A request cannot have more selectors, or patterns of more steps, than there is memory and time for; and no more requests wait
// than there is memory for.
func TestHostileRequests(t *testing.T) {
	h := handler(t, nil, many(100, 10))
	big := `{host=~"` + strings.Repeat("(?:abcdefghijklmnop){1000}", 5) + `"}`
	for _, tt := range []struct {
		name string
		form url.Values
		code int
		text string
	}{
		{"selectors", match(slices.Repeat([]string{`{host="a"}`}, maxSelectors+1)...), 400, "selectors, at most 1000"},
		{"as many as can be", match(slices.Repeat([]string{`{host="a"}`}, maxSelectors)...), 200, `"success"`},
		{"patterns", match(slices.Repeat([]string{big}, 10)...), 400, "steps"},
		{"one pattern", match(big), 200, `"success"`},
		{"a bomb", match(`{host=~"` + strings.Repeat("(?:abcdefghijklmnop){1000}", 1000) + `"}`), 400, "parse error"},
		{"nesting", match(`{host=~"` + strings.Repeat("(", 100_000) + `"}`), 400, "error parsing regexp"},
		{"a form that is too long", match(strings.Repeat(" ", maxForm)), 400, "too large"},
	} {
		code, body := ask(h, http.MethodPost, "/api/v1/series", tt.form)
		if code != tt.code || !strings.Contains(body, tt.text) || len(body) > 10_000 {
			t.Errorf("%s: %d %.300s", tt.name, code, body)
		}
	}
	h.pending.Store(int64(h.o.Concurrent + maxWaiting))
	if code, body := ask(h, http.MethodPost, "/api/v1/series", match(`{host="a"}`)); code != 503 || !strings.Contains(body, "wait") {
		t.Errorf("one more: %d %s", code, body)
	}
	h.pending.Store(0)
	if code, body := ask(h, http.MethodPost, "/api/v1/series", match(`{host="a"}`)); code != 200 || h.pending.Load() != 0 {
		t.Errorf("after that: %d %s, %d", code, body, h.pending.Load())
	}
}

// A pattern that takes long ends with the time of the request.
func TestSlowPattern(t *testing.T) {
	h := handler(t, &Options{Timeout: 50 * time.Millisecond}, many(20_000, 300))
	code, body := ask(h, http.MethodPost, "/api/v1/series", match(`{host=~"(?:[^x]*c?){900}(?:[^y]*d?){900}(?:.*e?){900}z"}`))
	if code != 503 || !strings.Contains(body, "took longer") {
		t.Errorf("%d %.300s", code, body)
	}
}
