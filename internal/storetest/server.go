// Package storetest starts servers of object stores for tests, and stands before them and counts.
package storetest

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Program returns the path of a server's program, which an environment variable names. Without it the test is skipped.
func Program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s is not set to the path of the server's program", variable)
	}
	return path
}

// The credentials of a server that VersityGW has started.
const (
	S3AccessKey = "test-access-key"
	S3SecretKey = "test-secret-key-that-nobody-may-see"
)

// VersityGW starts versitygw, an S3 server, with buckets. Without its program the test is skipped.
func VersityGW(t *testing.T, buckets ...string) (address string) {
	t.Helper()
	program := Program(t, "SPILE_VERSITYGW")
	address, stop, err := LaunchVersityGW(program, t.TempDir(), buckets...)
	Must(t, err)
	t.Cleanup(stop)
	return address
}

// LaunchVersityGW is VersityGW outside of tests. The server keeps its files in dir, until stop is called.
func LaunchVersityGW(program, dir string, buckets ...string) (address string, stop func(), err error) {
	data, meta, versions := filepath.Join(dir, "data"), filepath.Join(dir, "meta"), filepath.Join(dir, "versions")
	for _, folder := range []string{data, meta, versions} {
		if err := os.Mkdir(folder, 0o777); err != nil {
			return "", nil, err
		}
	}
	for _, bucket := range buckets { // which is a folder there
		if err := os.Mkdir(filepath.Join(data, bucket), 0o777); err != nil {
			return "", nil, err
		}
	}
	return Launch(dir, []string{"ROOT_ACCESS_KEY=" + S3AccessKey, "ROOT_SECRET_KEY=" + S3SecretKey}, func(host, port string) []string {
		return []string{program, "--quiet", "--keep-alive", "--port", host + ":" + port, "posix", "--sidecar", meta, "--versioning-dir", versions, data}
	})
}

// FakeGCS starts fake-gcs-server with buckets. Without its program the test is skipped.
func FakeGCS(t *testing.T, buckets ...string) (address string) {
	t.Helper()
	program := Program(t, "SPILE_FAKE_GCS")
	address = Start(t, nil, func(host, port string) []string {
		return []string{program, "-scheme", "http", "-host", host, "-port", port, "-backend", "memory", "-public-host", host + ":" + port, "-log-level", "error"}
	})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, bucket := range buckets {
		resp, err := (&http.Client{Transport: transport}).Post("http://"+address+"/storage/v1/b?project=test", "application/json",
			strings.NewReader(fmt.Sprintf(`{"name":%q,"versioning":{"enabled":%v}}`, bucket, bucket == "versioned")))
		Must(t, err)
		if resp.Body.Close(); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	return address
}

// Azurite starts Azurite with an account. Without its program the test is skipped.
func Azurite(t *testing.T, account, key string) (address string) {
	t.Helper()
	program, data := Program(t, "SPILE_AZURITE"), t.TempDir()
	return Start(t, []string{"AZURITE_ACCOUNTS=" + account + ":" + key}, func(host, port string) []string {
		return []string{program, "--blobHost", host, "--blobPort", port, "--location", data, "--silent", "--skipApiVersionCheck", "--disableTelemetry"}
	})
}

// Start starts a server that listens at the address it is given in its arguments, and waits until it takes connections. The
// server ends with the test.
func Start(t *testing.T, env []string, command func(host, port string) []string) (address string) {
	t.Helper()
	address, stop, err := Launch(t.TempDir(), env, command)
	Must(t, err)
	t.Cleanup(stop)
	return address
}

// Launch is Start outside of tests: in a folder, until stop is called.
func Launch(dir string, env []string, command func(host, port string) []string) (address string, stop func(), err error) {
	// The port is free now. When something else takes it before the server does, the server ends, and another is tried.
	for try := 0; ; try++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		address = l.Addr().String()
		l.Close()
		host, port, _ := strings.Cut(address, ":")
		args := command(host, port)
		var said output
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			return "", nil, err
		}
		ended := make(chan struct{})
		go func() {
			cmd.Wait()
			close(ended)
		}()
		stop := func() {
			cmd.Process.Kill()
			<-ended
		}
		if waitFor(address, ended) {
			return address, stop, nil
		}
		stop()
		if try == 2 {
			return "", nil, fmt.Errorf("%s does not listen at %s: %s", args[0], address, said.String())
		}
	}
}

// waitFor waits until something listens at an address, for at most a minute, or until the server has ended.
func waitFor(address string, ended <-chan struct{}) bool {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// output keeps what a server says.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Proxy stands before a server and counts.
type Proxy struct {
	URL      string
	Requests atomic.Int64 // of objects and of everything else
	Bytes    atomic.Int64 // of bodies of answers
	Sent     atomic.Int64 // of bodies of requests
	// Before, when it is set, may answer a request in the place of the server; it returns true then.
	Before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	back   *httputil.ReverseProxy
}

// NewProxy starts a proxy for the server at an address, which ends with the test.
func NewProxy(t *testing.T, address string) *Proxy {
	t.Helper()
	p := &Proxy{}
	p.back = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &counted{r.Body, &p.Bytes}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // of requests that a test cancels
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Requests.Add(1)
		r.Body = &counted{r.Body, &p.Sent}
		if before := p.Before.Load(); before != nil && (*before)(w, r) {
			return
		}
		p.back.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// LoseAnswer passes the next request that matches to the server, and breaks the connection in the place of its answer. The
// function that it returns ends that, and says whether it has happened.
func (p *Proxy) LoseAnswer(match func(*http.Request) bool) (end func() bool) {
	var lost atomic.Bool
	lose := func(w http.ResponseWriter, r *http.Request) bool {
		if !match(r) || lost.Swap(true) {
			return false
		}
		p.back.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	p.Before.Store(&lose)
	return func() bool {
		p.Before.Store(nil)
		return lost.Load()
	}
}

type counted struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c *counted) Close() error { return c.body.Close() }

// Must fails the test when there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Sprint(err))
	}
}
