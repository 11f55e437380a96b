package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// anonymous is a store whose server answers as it is told.
func anonymous(t *testing.T, answer http.HandlerFunc) *s3.Store {
	clean(t)
	t.Setenv("AWS_NO_SIGN_REQUEST", "yes")
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return open(t, server.URL, s3.Options{})
}

// TestListCircles: a list that leads back to a page that was there before ends, with an error, also when its pages are empty or
// break off.
func TestListCircles(t *testing.T) {
	const page = `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken>%s</ListBucketResult>`
	for name, next := range map[string]func(token string) (string, string){
		"the same page": func(string) (string, string) { return "t", "<Contents><Key>a</Key></Contents>" },
		"empty pages":   func(string) (string, string) { return "t", "" },
		"a longer circle": func(token string) (string, string) {
			return map[string]string{"": "1", "1": "2", "2": "3", "3": "1"}[token], ""
		},
		"pages broken off": func(token string) (string, string) {
			return map[string]string{"": "t"}[token], "<Contents><Key>a</Key></Contents>"
		},
	} {
		requests := 0
		s := anonymous(t, func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests > 100 {
				w.WriteHeader(404)
				return
			}
			token, contents := next(r.URL.Query().Get("continuation-token"))
			text := fmt.Sprintf(page, token, contents)
			if token == "" {
				w.Header().Set("Content-Length", "1000")
				text = text[:len(text)-len("</ListBucketResult>")]
			}
			io.WriteString(w, text)
		})
		var last error
		for _, last = range s.List(t.Context(), "s3://bucket/") {
		}
		if !errors.Is(last, fault.Corrupt) || requests > 20 {
			t.Errorf("%s: %v after %d requests", name, last, requests)
		}
	}
}

// TestListedNames: what a list gives is read as what was listed, also when a key looks like one with a version.
func TestListedNames(t *testing.T) {
	var asked []string
	s := anonymous(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("list-type") == "" {
			asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("versionId"))
			w.WriteHeader(404)
			return
		}
		io.WriteString(w, "<ListBucketResult><Contents><Key>a</Key></Contents><Contents><Key>a?versionId=1</Key></Contents></ListBucketResult>")
	})
	for e, err := range s.List(t.Context(), "s3://bucket/") {
		storetest.Must(t, err)
		g, err := s.Getter(e.Name)
		storetest.Must(t, err)
		_, err = g.Get(t.Context(), remote.Request{Len: 10})
		storetest.Must(t, err)
	}
	if want := []string{"/bucket/a ", "/bucket/a?versionId=1 "}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, expected %q", asked, want)
	}
}

// TestEndlessAnswers: no answer is read without end, be it that to a request for bytes, to a list or to an upload.
func TestEndlessAnswers(t *testing.T) {
	const most = 70 << 20 // more than is read of any answer, and what the connection holds beside
	piece := bytes.Repeat([]byte(" "), 1<<20)
	for _, status := range []int{200, 403} {
		var sent atomic.Int64
		s := anonymous(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"0"`)
			w.WriteHeader(status)
			if io.WriteString(w, "<ListBucketResult>"); r.Method == http.MethodPut && status == 200 {
				return
			}
			for sent.Store(0); sent.Load() < 2*most; sent.Add(int64(len(piece))) {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		})
		var last error
		for _, last = range s.List(t.Context(), "s3://bucket/") {
		}
		if last == nil || sent.Load() > most {
			t.Errorf("list: %v after %d bytes", last, sent.Load())
		}
		if status == 200 {
			if !errors.Is(last, fault.Limit) {
				t.Error(last)
			}
			continue
		}
		g, err := s.Getter("s3://bucket/key")
		storetest.Must(t, err)
		resp, err := g.Get(t.Context(), remote.Request{Len: 10})
		storetest.Must(t, err)
		if resp.Body.Close(); resp.Status != 403 || sent.Load() > most {
			t.Errorf("%d after %d bytes", resp.Status, sent.Load())
		}
		w, err := s.Create(t.Context(), "s3://bucket/key", nil)
		storetest.Must(t, err)
		if err := w.Commit(t.Context()); err == nil || sent.Load() > most {
			t.Errorf("%v after %d bytes", err, sent.Load())
		}
	}
}

// TestEmptyObject: a store answers no range of an empty object, and mostly does not say in a header that it is empty.
func TestEmptyObject(t *testing.T) {
	for name, test := range map[string]struct {
		said     string // in the answer to the range
		length   string // in the answer to a further request
		requests int64
		opens    bool
	}{
		"Amazon":          {"<ActualObjectSize>0</ActualObjectSize>", "9", 1, true},
		"others":          {"", "0", 2, true},
		"not empty":       {"", "9", 2, false},
		"a size, and 416": {"<ActualObjectSize>9</ActualObjectSize>", "0", 1, false},
	} {
		s := anonymous(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
			w.Header().Set("ETag", `"e"`)
			if r.Method == http.MethodHead {
				w.Header().Set("Content-Length", test.length)
				return
			}
			w.WriteHeader(416)
			io.WriteString(w, "<Error><Code>InvalidRange</Code><Message>No such range</Message>"+test.said+"</Error>")
		})
		g, err := s.Getter("s3://bucket/key")
		storetest.Must(t, err)
		meter := &source.Meter{}
		obj, err := remote.Open(t.Context(), g, &remote.Options{Meter: meter, Retries: -1})
		if (err == nil) != test.opens || err == nil && obj.Size() != 0 || meter.Receipt().Requests != test.requests {
			t.Errorf("%s: %v, after %d requests", name, err, meter.Receipt().Requests)
		}
	}
}

// TestLostUpload: when the answer breaks off which says how the upload is called, what ends the writing says that it may be left; a
// store that refuses to begin one has left none.
func TestLostUpload(t *testing.T) {
	for _, status := range []int{200, 403} {
		s := anonymous(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if r.Method != http.MethodPost || !r.URL.Query().Has("uploads") {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			if status == 200 {
				w.Header().Set("Content-Length", "1000")
			}
			w.WriteHeader(status)
			io.WriteString(w, "<InitiateMultipartUploadResult>")
		})
		w, err := s.Create(t.Context(), "s3://bucket/key", &remote.WriteOptions{PartSize: 5 << 20})
		storetest.Must(t, err)
		if _, err = w.Write(make([]byte, 6<<20)); err == nil {
			err = w.Commit(t.Context())
		}
		if err == nil {
			t.Fatalf("%d: an upload without a name has succeeded", status)
		}
		left := w.Abort(t.Context())
		if says := left != nil && strings.Contains(left.Error(), "s3://bucket/key: an upload without parts may be left"); says != (status == 200) {
			t.Errorf("%d: %v", status, left)
		}
	}
}
