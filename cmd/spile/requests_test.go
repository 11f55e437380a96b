package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// cupboard is an S3 server inside the test, of whole objects.
type cupboard struct {
	mu      sync.Mutex
	objects map[string]string // by the path of their URL
}

func (c *cupboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("ETag", `"v1"`)
	switch content, there := c.objects[r.URL.Path]; {
	case r.Method == http.MethodPut:
		c.objects[r.URL.Path] = string(body)
	case r.URL.Query().Has("list-type"):
		var keys []string
		for path := range c.objects {
			if key, ok := strings.CutPrefix(path, "/bucket/"); ok && strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		io.WriteString(w, "<ListBucketResult>")
		for _, key := range keys {
			fmt.Fprintf(w, `<Contents><Key>%s</Key><Size>%d</Size></Contents>`, key, len(c.objects["/bucket/"+key]))
		}
		io.WriteString(w, "</ListBucketResult>")
	case !there:
		w.WriteHeader(404)
	default:
		http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(content))
	}
}

// startCupboard starts one behind a proxy that counts.
func startCupboard(t *testing.T) *s3Server {
	t.Helper()
	server := httptest.NewServer(&cupboard{objects: make(map[string]string)})
	t.Cleanup(server.Close)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	s := &s3Server{Proxy: storetest.NewProxy(t, server.Listener.Addr().String())}
	t.Setenv("AWS_NO_SIGN_REQUEST", "yes")
	t.Setenv("AWS_ENDPOINT_URL_S3", s.URL)
	t.Setenv("HOME", t.TempDir())
	return s
}

// receiptOf runs a command line that must succeed, and returns its receipt, which must be what the proxy has counted.
func (s *s3Server) receiptOf(t *testing.T, args ...string) source.Receipt {
	t.Helper()
	requests, received, sent := s.Requests.Load(), s.Bytes.Load(), s.Sent.Load()
	_, errs, status := command(t, append(args, "--stats")...)
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	var r source.Receipt
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || status != statusDone {
		t.Fatalf("%q: status %d, %s", args, status, errs)
	}
	requests, received, sent = s.Requests.Load()-requests, s.Bytes.Load()-received, s.Sent.Load()-sent
	if r.Requests != requests || r.Bytes != received || r.Sent != sent {
		t.Errorf("%q: %+v, the server has seen %d requests, sent %d bytes and received %d", args, r, requests, received, sent)
	}
	return r
}

// busy answers the next n requests that match by 503.
func (s *s3Server) busy(n int, match func(*http.Request) bool) {
	s.hook(func(w http.ResponseWriter, r *http.Request) bool {
		if n == 0 || !match(r) {
			return false
		}
		n--
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(503)
		return true
	})
}

func isList(r *http.Request) bool { return r.URL.Query().Has("list-type") }
func isPut(r *http.Request) bool  { return r.Method == http.MethodPut }

// TestStoreReceipt: lists and uploads are in the receipt, with their retries, and lists are held to the budget.
func TestStoreReceipt(t *testing.T) {
	s := startCupboard(t)
	for i, text := range []string{`{"a":1}`, `{"a":2}`} {
		good(t, "pack", filepath.Join(sampleFiles(t, map[string]string{"x": text}), "x"), "-o", fmt.Sprintf("s3://bucket/in/%d.msg", i))
	}
	if r := s.receiptOf(t, "get", "s3://bucket/in/*.msg", "a"); r.Requests != 3 || r.Sent != 0 {
		t.Errorf("a list and two objects: %+v", r)
	}
	s.busy(2, isList)
	if r := s.receiptOf(t, "find", "s3://bucket/in/", ".a"); r.Requests != 5 {
		t.Errorf("a list after two refusals, and two objects: %+v", r)
	}
	s.busy(1, isPut)
	if r := s.receiptOf(t, "extract", "s3://bucket/in/0.msg", "", "-o", "s3://bucket/out.msg"); r.Requests != 3 || r.Sent == 0 || r.Sent%2 != 0 {
		t.Errorf("a read, and an upload after a refusal: %+v", r)
	}
	s.hook(func(http.ResponseWriter, *http.Request) bool { return false })

	for _, budget := range []string{"--max-requests=0", "--max-bytes=0", "--max-bytes=10"} {
		bad(t, statusFailed, "s3://bucket/in/: budget of ", "find", "s3://bucket/in/", ".a", budget)
	}
	s.busy(1, isList)
	before := s.Requests.Load()
	bad(t, statusFailed, "budget of 1 requests: 1 used", "find", "s3://bucket/in/", ".a", "--max-requests=1")
	if n := s.Requests.Load() - before; n != 1 {
		t.Errorf("%d requests, 1 allowed", n)
	}
}

// TestStoreLimits: --retries and --timeout hold for lists and uploads.
func TestStoreLimits(t *testing.T) {
	s := startCupboard(t)
	file := filepath.Join(sampleFiles(t, map[string]string{"x": `{"a":1}`}), "x")
	pack, find := []string{"pack", file, "-o", "s3://bucket/x.msg"}, []string{"find", "s3://bucket/", ".a"}
	fails := func(text string, requests int64, args ...string) {
		t.Helper()
		before := s.Requests.Load()
		bad(t, statusFailed, text, args...)
		if n := s.Requests.Load() - before; n != requests {
			t.Errorf("%q: %d requests, expected %d", args, n, requests)
		}
	}
	for _, args := range [][]string{pack, find} {
		s.busy(100, func(*http.Request) bool { return true })
		fails("the store answers 503", 1, append(args, "--retries=0")...)
		fails("the store answers 503", 3, append(args, "--retries=2")...)
	}
	_, end := s.hold(func(*http.Request) bool { return true })
	defer end()
	fails("s3://bucket/: cannot list: no progress within 50ms", 2, append(find, "--timeout=50ms", "--retries=1")...)
	fails("s3://bucket/x.msg: cannot write the object: no progress within 50ms", 2, append(pack, "--timeout=50ms", "--retries=0")...) // and whether it is there
	bad(t, statusUsage, "--timeout -1s", append(pack, "--timeout=-1s")...)
}

// TestLostUpload: when the answer that begins an upload is lost, the user is told what may be left, and what has failed.
func TestLostUpload(t *testing.T) {
	s := startCupboard(t)
	file := filepath.Join(sampleFiles(t, map[string]string{"x": `{"a":"` + strings.Repeat("x", 40<<20) + `"}`}), "x")
	s.hook(func(w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("uploads") {
			return false
		}
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "<InitiateMultipartUploadResult>")
		return true
	})
	out, errs, status := command(t, "pack", file, "-o", "s3://bucket/x.msg")
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	if status != statusFailed || out != "" || len(lines) != 2 {
		t.Fatalf("status %d, %q, %s", status, out, errs)
	}
	if want := "spile: warning: s3://bucket/x.msg: an upload without parts may be left"; !strings.HasPrefix(lines[0], want) {
		t.Errorf("%s, not %s", lines[0], want)
	}
	if want := "spile: s3://bucket/x.msg: cannot begin an upload: "; !strings.HasPrefix(lines[1], want) {
		t.Errorf("%s, not %s", lines[1], want)
	}
}

// TestSlowCredentials: a store that waits for its credentials keeps nobody from another one.
func TestSlowCredentials(t *testing.T) {
	startCupboard(t)
	asked, answer := make(chan bool, 1), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		<-answer
		fmt.Fprint(w, `{"AccessKeyId":"a","SecretAccessKey":"b","Token":"c","Expiration":"2999-01-01T00:00:00Z"}`)
	}))
	defer server.Close()
	t.Setenv("AWS_NO_SIGN_REQUEST", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	var s stores
	defer s.close()
	done := make(chan error, 1)
	go func() {
		_, err := s.of(t.Context(), "s3://bucket/key", remote.Requests{})
		done <- err
	}()
	<-asked
	if _, err := s.of(t.Context(), "gs://bucket/key", remote.Requests{}); err != nil {
		t.Error(err)
	}
	if _, err := s.openCache(&remoteFlags{cache: cacheFlag{dir: t.TempDir()}}); err != nil {
		t.Error(err)
	}
	s.client()
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
