package httprange_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/rangetest"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reading is an object at a server, with its meter.
type reading struct {
	t      *testing.T
	server *rangetest.Server
	meter  source.Meter
	source.Object
}

// open opens an object of the server. It is closed, and the receipt held against the counts of the server, by done.
func open(t *testing.T, s *rangetest.Server, url string, o *httprange.Options) (*reading, error) {
	t.Helper()
	r := &reading{t: t, server: s}
	if o == nil {
		o = &httprange.Options{}
	}
	o.Meter = &r.meter
	var err error
	r.Object, err = httprange.OpenURL(t.Context(), url, o)
	return r, err
}

func mustOpen(t *testing.T, s *rangetest.Server, url string, o *httprange.Options) *reading {
	t.Helper()
	r, err := open(t, s, url, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// done closes the object and compares the receipt with what the server has counted.
func (r *reading) done(requests int) {
	r.t.Helper()
	if r.Object != nil {
		if err := r.Close(); err != nil {
			r.t.Error(err)
		}
	}
	got := r.meter.Receipt()
	if seen := r.server.Requests(); len(seen) != requests || got.Requests != int64(requests) {
		r.t.Errorf("receipt of %d requests, the server has seen %q, want %d", got.Requests, seen, requests)
	}
	if got.Bytes != r.server.Bytes() {
		r.t.Errorf("receipt of %d bytes, the server has sent %d", got.Bytes, r.server.Bytes())
	}
}

func (r *reading) read(off, n int64) []byte {
	r.t.Helper()
	p := make([]byte, n)
	if err := r.ReadAt(r.t.Context(), p, off); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// want reads and compares.
func (r *reading) want(data []byte, off, n int64) {
	r.t.Helper()
	if !bytes.Equal(r.read(off, n), data[off:off+n]) {
		r.t.Errorf("%d bytes at %d are others", n, off)
	}
}

func wantFault(t *testing.T, err, class error, texts ...string) {
	t.Helper()
	if _, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, class) {
		t.Fatalf("%v, want %v", err, class)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q in it", err, text)
		}
	}
}

func TestRead(t *testing.T) {
	s := rangetest.New(t)
	data := rangetest.Content(300_000)
	r := mustOpen(t, s, s.Put("/object", data), nil)
	if r.Size() != 300_000 || !strings.HasPrefix(r.Version(), `"`) || r.Name() != s.URL+"/object" {
		t.Errorf("%d bytes of %s, version %s", r.Size(), r.Name(), r.Version())
	}
	r.want(data, 0, 0)
	r.want(data, 0, 64<<10)
	r.want(data, 100, 1000)
	if got := s.Requests(); len(got) != 1 || got[0] != "GET /object 0-65535" {
		t.Errorf("%q: reads in the head made requests", got)
	}
	r.want(data, 60_000, 10_000) // the rest of it
	r.want(data, 299_999, 1)
	wantFault(t, r.ReadAt(t.Context(), make([]byte, 2), 299_999), fault.Invalid)
	wantFault(t, r.ReadAt(t.Context(), make([]byte, 2), -1), fault.Invalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantFault(t, r.ReadAt(ended, make([]byte, 2), 0), context.Canceled)
	if got := s.Requests(); got[1] != "GET /object 65536-69999" {
		t.Errorf("%q", got)
	}
	r.done(3)
	wantFault(t, r.ReadAt(t.Context(), make([]byte, 2), 100), fault.Invalid)
	if err := r.Close(); err != nil {
		t.Error("closing again:", err)
	}
	if hits := r.meter.Receipt().CacheHits; hits != 2 {
		t.Errorf("%d hits, want 2", hits)
	}
}

func TestSmallObjects(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 64 << 10} {
		for _, whole := range []bool{false, true} {
			if whole && n > 0 {
				continue
			}
			s := rangetest.New(t)
			data := rangetest.Content(n)
			if whole { // as many servers answer for an empty file
				s.Bend(rangetest.Whole)
			}
			r := mustOpen(t, s, s.Put("/object", data), nil)
			if r.Size() != int64(n) {
				t.Errorf("%d bytes, want %d", r.Size(), n)
			}
			r.want(data, 0, int64(n))
			r.done(1)
		}
	}
}

func TestLongReads(t *testing.T) {
	s := rangetest.New(t)
	data := rangetest.Content(40 << 20)
	r := mustOpen(t, s, s.Put("/object", data), nil)
	r.want(data, 0, 40<<20)
	r.done(1 + 3)
}

func TestTail(t *testing.T) {
	s := rangetest.New(t)
	data := rangetest.Content(300_000)
	o := func() *httprange.Options { return &httprange.Options{Options: remote.Options{Tail: 100_000}} }
	r := mustOpen(t, s, s.Put("/object", data), o())
	r.want(data, 200_000, 100_000)
	r.want(data, 250_000, 10)
	r.want(data, 190_000, 20_000) // the part that is not there
	r.want(data, 0, 300_000)
	if got := s.Requests(); got[2] != "GET /object 190000-199999" || got[3] != "GET /object 65536-199999" {
		t.Errorf("%q", got)
	}
	r.done(4)

	// A tail that is of no use is dropped.
	for name, bend := range map[string]func(*rangetest.Answer){
		"refused":         rangetest.Status(416, ""),
		"another version": rangetest.ETag(`"other"`),
		"another place":   rangetest.Shifted,
		"failure":         rangetest.Status(503, ""),
	} {
		t.Run(name, func(t *testing.T) {
			s := rangetest.New(t)
			s.Bend(func(a *rangetest.Answer) {
				if strings.HasPrefix(a.Request.Header.Get("Range"), "bytes=-") {
					bend(a)
				}
			})
			r := mustOpen(t, s, s.Put("/object", data), o())
			r.want(data, 200_000, 100_000)
			r.done(3)
		})
	}
}

func TestHostileServers(t *testing.T) {
	data := rangetest.Content(300_000)
	for _, tt := range []struct {
		name  string
		bend  func(*rangetest.Answer)
		class error
		text  string
	}{
		{"whole object", rangetest.Whole, fault.Limit, "Options.MaxFullDownload allows that"},
		{"shifted", rangetest.Shifted, fault.Corrupt, "the answer has"},
		{"no Content-Range", rangetest.Range(""), fault.Corrupt, "does not say which bytes"},
		{"no sense in it", rangetest.Range("bytes 5-3/100"), fault.Corrupt, "does not say which bytes"},
		{"overflow", rangetest.Range("bytes 0-9223372036854775807/*"), fault.Corrupt, "does not say which bytes"},
		{"a range in another unit", rangetest.Range("lines 0-65535/300000"), fault.Corrupt, "does not say which bytes"},
		{"size smaller than the range", rangetest.Range("bytes 0-65535/100"), fault.Corrupt, "of an object of 100"},
		{"longer range", rangetest.Range("bytes 0-65536/300000"), fault.Corrupt, "bytes 0 to 65536 were asked for"},
		{"long body", rangetest.Long(5, true), fault.Corrupt, "a body of"},
		{"long body in chunks", rangetest.Long(5, false), fault.Corrupt, "goes on behind"},
		{"gzip", rangetest.Gzip, fault.UnsupportedCodec, `compressed as "gzip"`},
		{"forbidden", rangetest.Status(403, ""), fs.ErrPermission, "403"},
		{"unauthorized", rangetest.Status(401, ""), fs.ErrPermission, "401"},
		{"bad request", rangetest.Status(400, ""), nil, "the store answers 400"},
		{"redirect without a place", rangetest.Status(302, ""), nil, "leads to no URL"},
		{"redirect to a file", rangetest.Redirect(302, "file:///etc/passwd"), nil, "leads from http"},
		{"range behind the end", rangetest.Status(416, ""), fault.Corrupt, "416"},
	} {
		t.Run(tt.name+", at opening", func(t *testing.T) {
			s := rangetest.New(t)
			s.Bend(tt.bend)
			_, err := open(t, s, s.Put("/object", data), nil)
			class := tt.class
			if class == nil {
				class = err
			}
			wantFault(t, err, class, tt.text, s.URL+"/object")
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
		t.Run(tt.name+", later", func(t *testing.T) {
			if strings.HasPrefix(tt.name, "no sense") || strings.HasPrefix(tt.name, "overflow") || strings.Contains(tt.name, "size") || strings.Contains(tt.name, "longer range") {
				t.Skip("a Content-Range of the first answer")
			}
			s := rangetest.New(t)
			s.Bend(rangetest.From(2, tt.bend))
			r := mustOpen(t, s, s.Put("/object", data), nil)
			class := tt.class
			if tt.name == "shifted" { // with it the size is another one
				class = fault.Changed
			}
			err := r.ReadAt(t.Context(), make([]byte, 1000), 100_000)
			if class == nil {
				class = err
			}
			wantFault(t, err, class, s.URL+"/object")
			if n := len(s.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}
			r.Close()
		})
	}
	t.Run("size not said", func(t *testing.T) {
		s := rangetest.New(t)
		s.Bend(rangetest.Range("bytes 0-65535/*"))
		_, err := open(t, s, s.Put("/object", data), nil)
		wantFault(t, err, fault.Corrupt, "how long the object is")
	})
	t.Run("not there", func(t *testing.T) {
		s := rangetest.New(t)
		r, err := open(t, s, s.URL+"/nothing", nil)
		wantFault(t, err, fault.NotFound, "404")
		r.done(1)
	})
}

// A size that is not said later is no fault, as long as the version is.
func TestSizeUnsaid(t *testing.T) {
	data := rangetest.Content(300_000)
	s := rangetest.New(t)
	s.Bend(rangetest.From(2, rangetest.Range("bytes 100000-100999/*")))
	r := mustOpen(t, s, s.Put("/object", data), nil)
	r.want(data, 100_000, 1000)
	r.done(2)
	s = rangetest.New(t)
	s.Bend(func(a *rangetest.Answer) {
		rangetest.ETag("")(a)
		rangetest.From(2, rangetest.Range("bytes 100000-100999/*"))(a)
	})
	r = mustOpen(t, s, s.Put("/object", data), nil)
	wantFault(t, r.ReadAt(t.Context(), make([]byte, 1000), 100_000), fault.Corrupt, "neither")
	r.Close()
}

func TestChanged(t *testing.T) {
	data, other := rangetest.Content(300_000), bytes.Repeat([]byte{7}, 300_000)
	for _, tt := range []struct {
		name   string
		before func(*rangetest.Answer) // bends all answers
		change func(s *rangetest.Server)
		text   string
	}{
		{"replaced", nil, func(s *rangetest.Server) { s.Put("/object", other) }, "no longer the version"},
		{"removed", nil, func(s *rangetest.Server) { s.Remove("/object") }, "was removed"},
		{"If-Match ignored", func(a *rangetest.Answer) { a.Request.Header.Del("If-Match") },
			func(s *rangetest.Server) { s.Bend(rangetest.ETag(`"other"`)) }, `is "other"`},
		{"weak", rangetest.ETag(`W/"1"`), func(s *rangetest.Server) { s.Bend(rangetest.ETag(`W/"2"`)) }, `was W/"1" when opened, is W/"2"`},
		{"version gone", nil, func(s *rangetest.Server) { s.Bend(rangetest.ETag("")) }, "is not given"},
		{"version came", rangetest.ETag(""), func(s *rangetest.Server) { s.Bend(nil) }, "was not given"},
		{"size alone", rangetest.ETag(""), func(s *rangetest.Server) { s.Put("/object", other[:200_000]) }, "the size was 300000 when opened, is 200000"},
		{"shorter than the range", rangetest.ETag(""), func(s *rangetest.Server) { s.Put("/object", other[:10]) }, "is 10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := rangetest.New(t)
			s.Bend(tt.before)
			r := mustOpen(t, s, s.Put("/object", data), nil)
			r.want(data, 100_000, 1000)
			tt.change(s)
			wantFault(t, r.ReadAt(t.Context(), make([]byte, 1000), 100_000), fault.Changed, tt.text)
			r.done(3)
		})
	}
}

// A server that has no ETag is pinned by its Last-Modified.
func TestLastModified(t *testing.T) {
	data := rangetest.Content(300_000)
	s := rangetest.New(t)
	date := "Tue, 03 Nov 2026 10:00:00 GMT"
	var conditions []string
	s.Bend(func(a *rangetest.Answer) {
		a.Header.Del("ETag")
		a.Header.Set("Last-Modified", date)
		conditions = append(conditions, a.Request.Header.Get("If-Unmodified-Since"))
	})
	r := mustOpen(t, s, s.Put("/object", data), nil)
	r.want(data, 100_000, 1000)
	date = "Tue, 03 Nov 2026 10:00:01 GMT"
	wantFault(t, r.ReadAt(t.Context(), make([]byte, 1000), 100_000), fault.Changed, "10:00:00 GMT when opened")
	if conditions[0] != "" || conditions[1] != "Tue, 03 Nov 2026 10:00:00 GMT" {
		t.Errorf("%q", conditions)
	}
	r.done(3)
}

func TestFullDownload(t *testing.T) {
	data := rangetest.Content(300_000)
	for _, declared := range []bool{true, false} {
		s := rangetest.New(t)
		s.Bend(func(a *rangetest.Answer) {
			rangetest.Whole(a)
			if !declared {
				a.Header.Set("Content-Length", "-")
			}
			if a.N == 1 {
				a.Cut = 100_000
			}
		})
		r := mustOpen(t, s, s.Put("/object", data), &httprange.Options{Options: remote.Options{MaxFullDownload: -1}})
		r.want(data, 0, 300_000)
		r.want(data, 299_000, 1000)
		if r.Version() == "" {
			t.Error("no version")
		}
		r.done(2) // it broke once
		wantFault(t, r.ReadAt(t.Context(), make([]byte, 1), 0), fault.Invalid)

		s = rangetest.New(t)
		s.Bend(func(a *rangetest.Answer) {
			rangetest.Whole(a)
			if !declared {
				a.Header.Set("Content-Length", "-")
			}
		})
		_, err := open(t, s, s.Put("/object", data), &httprange.Options{Options: remote.Options{MaxFullDownload: 299_999}})
		wantFault(t, err, fault.Limit, "299999 bytes that are allowed")
		meter := source.Meter{MaxBytes: 200_000}
		_, err = httprange.OpenURL(t.Context(), s.URL+"/object", &httprange.Options{Options: remote.Options{MaxFullDownload: -1, Meter: &meter}})
		wantFault(t, err, fault.Limit, "budget of 200000 bytes")
		if got := meter.Receipt().Bytes; got > 200_000 {
			t.Errorf("%d bytes", got)
		}
	}
}

func TestBudget(t *testing.T) {
	data := rangetest.Content(300_000)
	s := rangetest.New(t)
	url := s.Put("/object", data)
	meter := &source.Meter{MaxRequests: 2}
	obj, err := httprange.OpenURL(t.Context(), url, &httprange.Options{Options: remote.Options{Meter: meter}})
	if err != nil {
		t.Fatal(err)
	}
	defer obj.Close()
	p := make([]byte, 10)
	for i := range 3 {
		err = obj.ReadAt(t.Context(), p, 100_000+int64(1000*i))
	}
	wantFault(t, err, fault.Limit, "budget of 2 requests", url)
	if len(s.Requests()) != 2 {
		t.Errorf("%q", s.Requests())
	}
	meter = &source.Meter{MaxBytes: 10}
	_, err = httprange.OpenURL(t.Context(), url, &httprange.Options{Options: remote.Options{Meter: meter}})
	wantFault(t, err, fault.Limit, "budget of 10 bytes", url)
	if len(s.Requests()) != 2 {
		t.Errorf("%q", s.Requests())
	}
}

// A pass over an object asks for pieces before they are wanted, and never for more than is there.
func TestPass(t *testing.T) {
	data := rangetest.Content(30 << 20)
	s := rangetest.New(t)
	r := mustOpen(t, s, s.Put("/object", data), nil)
	got, err := io.ReadAll(source.NewReader(t.Context(), r, 0, r.Size(), 0))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n := len(s.Requests()); n > 20 {
		t.Errorf("%d requests", n)
	}
	if s.Bytes() != int64(len(data)) {
		t.Errorf("%d bytes for %d", s.Bytes(), len(data))
	}
	r.done(len(s.Requests()))

	// One that is left early ends what is on its way.
	s = rangetest.New(t)
	s.Bend(func(a *rangetest.Answer) {
		var start int64
		fmt.Sscanf(a.Request.Header.Get("Range"), "bytes=%d-", &start)
		a.Hang = start >= 8<<20
	})
	r = mustOpen(t, s, s.Put("/object", data), nil)
	if _, err := io.CopyN(io.Discard, source.NewReader(t.Context(), r, 0, r.Size(), 0), 5<<20); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if got := r.meter.Receipt(); got.Requests < 3 || got.Bytes != 8<<20 {
		t.Errorf("%+v", got)
	}
}
