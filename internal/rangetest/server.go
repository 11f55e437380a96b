// Package rangetest is a server of byte ranges for tests. It is right unless it is told otherwise, counts every request and
// every byte of every body, and can be made to answer in all the ways that servers should not.
package rangetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a server of objects that lie in memory.
type Server struct {
	URL string // without a slash at the end

	http *httptest.Server

	mu       sync.Mutex
	objects  map[string]object
	folder   string
	bend     func(*Answer)
	latency  time.Duration
	requests []string
	bytes    int64
}

type object struct {
	data    []byte
	version string
}

// Answer is what the server is about to answer, for a test to bend.
type Answer struct {
	Request *http.Request
	N       int    // of the request, from 1 on
	Data    []byte // all of the object

	Status int
	Header http.Header // without a Content-Length, which is that of Body unless it is set here; "-" leaves it out
	Body   []byte

	Cut  int           // the connection breaks behind so many bytes of the body; below 0 it does not
	Drip time.Duration // waits so long before each of 64 parts of the body
	Hang bool          // no answer, until the client leaves
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server that the caller ends.
func Start() *Server {
	s := &Server{objects: make(map[string]object)}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	return s
}

// StartTLS starts a server of https, also by HTTP/2, and returns the certificate of its own that clients have to trust, as
// PEM.
func StartTLS() (*Server, []byte) {
	s := &Server{objects: make(map[string]object)}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.EnableHTTP2 = true
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	s.http.StartTLS()
	s.URL = s.http.URL
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Close ends the server, and the connections to it.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Put makes an object, in place of the one that was there, and returns its URL. The path begins with a slash.
func (s *Server) Put(path string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = newObject(data)
	return s.URL + path
}

func newObject(data []byte) object {
	sum := sha256.Sum256(data)
	return object{data, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// Serve makes objects of the files in a folder, as they are when they are asked for.
func (s *Server) Serve(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folder = folder
}

// Remove takes an object away.
func (s *Server) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}

// Bend has f called with each answer before it is sent; nil for none.
func (s *Server) Bend(f func(*Answer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bend = f
}

// Latency is how long each answer is kept back.
func (s *Server) Latency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// Requests lists the requests since the start, or since Reset: method, path and range.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Bytes is how many bytes of bodies were written since then.
func (s *Server) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Reset starts the counts anew.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.bytes = nil, 0
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+strings.TrimPrefix(r.Header.Get("Range"), "bytes=")))
	obj, ok := s.objects[r.URL.Path]
	a := &Answer{Request: r, N: len(s.requests), Header: make(http.Header), Cut: -1}
	bend, latency, folder := s.bend, s.latency, s.folder
	s.mu.Unlock()
	if !ok && folder != "" {
		if data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path.Clean(r.URL.Path)))); err == nil {
			obj, ok = newObject(data), true
		}
	}
	if a.Data = obj.data; ok {
		a.object(obj)
	} else {
		a.Status, a.Body = http.StatusNotFound, []byte("there is no such object\n")
	}
	if bend != nil {
		bend(a)
	}
	if wait(r, latency) && !a.Hang {
		s.send(w, a)
	} else {
		<-r.Context().Done()
	}
}

// wait waits, and reports whether the client is still there.
func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// object makes the right answer for an object.
func (a *Answer) object(o object) {
	a.Header.Set("ETag", o.version)
	a.Header.Set("Accept-Ranges", "bytes")
	if want := a.Request.Header.Get("If-Match"); want != "" && want != o.version {
		a.Status, a.Body = http.StatusPreconditionFailed, []byte("another version\n")
		return
	}
	size := int64(len(o.data))
	text, ranged := strings.CutPrefix(a.Request.Header.Get("Range"), "bytes=")
	if !ranged {
		a.Status, a.Body = http.StatusOK, o.data
		return
	}
	first, last, _ := strings.Cut(text, "-")
	start, err := strconv.ParseInt(first, 10, 64)
	end := size
	if err != nil { // the last bytes
		n, _ := strconv.ParseInt(last, 10, 64)
		start = max(0, size-n)
	} else if n, err := strconv.ParseInt(last, 10, 64); err == nil {
		end = min(end, n+1)
	}
	if start >= end {
		a.Status = http.StatusRequestedRangeNotSatisfiable
		a.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return
	}
	a.Status, a.Body = http.StatusPartialContent, o.data[start:end]
	a.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, size))
}

func (s *Server) send(w http.ResponseWriter, a *Answer) {
	for key, values := range a.Header {
		w.Header()[key] = values
	}
	switch w.Header().Get("Content-Length") {
	case "":
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
		w.WriteHeader(a.Status)
	case "-":
		w.Header().Del("Content-Length")
		w.WriteHeader(a.Status)
		w.(http.Flusher).Flush() // or the server counts a short body itself
	}
	body := a.Body
	if a.Cut >= 0 {
		body = body[:min(a.Cut, len(body))]
	}
	step := 256 << 10
	if a.Drip > 0 {
		step = max(1, len(body)/64)
	}
	for part := range slices.Chunk(body, step) {
		if !wait(a.Request, a.Drip) {
			return
		}
		s.count(len(part)) // before a client can see them
		n, err := w.Write(part)
		if err != nil {
			s.count(n - len(part))
			return
		}
		if a.Drip > 0 {
			w.(http.Flusher).Flush()
		}
	}
	if a.Cut >= 0 {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += int64(n)
}

// Content is n bytes of which no two parts are alike.
func Content(n int) []byte {
	var b bytes.Buffer
	for i := uint64(0); b.Len() < n; i++ {
		sum := sha256.Sum256(strconv.AppendUint(nil, i, 10))
		b.Write(sum[:])
	}
	return b.Bytes()[:n]
}
