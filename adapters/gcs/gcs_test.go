package gcs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/adapters/gcs"
	"github.com/spilehq/spile/adapters/internal/storesuite"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clean takes out of the environment what this machine has of credentials and settings.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{"GOOGLE_APPLICATION_CREDENTIALS", "GS_NO_SIGN_REQUEST", "STORAGE_EMULATOR_HOST"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("APPDATA", t.TempDir())
}

func open(t *testing.T, o *gcs.Options) *gcs.Store {
	t.Helper()
	s, err := gcs.New(t.Context(), o)
	storetest.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestFakeGCSServer runs against a real server.
func TestFakeGCSServer(t *testing.T) {
	clean(t)
	address := storetest.FakeGCS(t, "bucket", "versioned")
	proxy := storetest.NewProxy(t, address)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(proxy.URL, "http://"))
	store := open(t, nil)
	suite := &storesuite.Suite{
		Store: store, Prefix: "gs://bucket/", Missing: "gs://no-such-bucket/", Keys: []string{"keys/what?", "keys/#hash", "keys//double", "keys/a#1b"},
		Part: 1 << 20, MemoryPart: 8 << 20, // it goes over all that it has with every part
		Pages: 2100,
		Proxy: proxy,
		Makes: func(r *http.Request) bool {
			return r.URL.Query().Get("uploadType") == "media" || r.Method == "PUT" && !strings.HasSuffix(r.Header.Get("Content-Range"), "/*")
		},
		NoRace: true, // it joins objects against the condition
	}
	suite.Leftovers = func() (left []string) {
		for e, err := range store.List(t.Context(), suite.Prefix) {
			storetest.Must(t, err)
			if strings.Contains(e.Name, ".spile-") {
				left = append(left, e.Name)
			}
		}
		return left
	}
	suite.Run(t)

	t.Run("Generation", func(t *testing.T) {
		suite := &storesuite.Suite{Store: store, Prefix: "gs://versioned/"}
		suite.Put(t, "key", storesuite.Bytes(100))
		old, _ := suite.Get(t, "gs://versioned/key", remote.Request{Len: 1})
		suite.Put(t, "key", storesuite.Bytes(200))
		name := "gs://versioned/key#" + old.Version
		resp, body := suite.Get(t, name, remote.Request{Len: 1000})
		if resp.Version != old.Version || !bytes.Equal(body, storesuite.Bytes(100)) {
			t.Errorf("%+v", resp)
		}
		if resp, _ := suite.Get(t, "gs://versioned/key", remote.Request{Len: 10, Version: old.Version}); resp.Status != 206 || resp.Size != 100 {
			t.Errorf("%+v", resp)
		}
		if _, err := store.Create(t.Context(), name, nil); !errors.Is(err, fault.Invalid) {
			t.Errorf("a generation is written: %v", err)
		}
	})

	t.Run("OneRequest", func(t *testing.T) {
		before := proxy.Requests.Load()
		suite.Get(t, "gs://bucket/ranges", remote.Request{Len: 10})
		suite.Get(t, "gs://bucket/is-not-there", remote.Request{Len: 10})
		if n := proxy.Requests.Load() - before; n != 2 {
			t.Errorf("%d requests for two", n)
		}
	})

	// What is stored compressed comes as it is stored, and says so.
	t.Run("Compressed", func(t *testing.T) {
		resp, err := http.Post("http://"+address+"/upload/storage/v1/b/bucket/o?uploadType=media&name=packed&contentEncoding=gzip", "text/plain",
			bytes.NewReader(packed))
		storetest.Must(t, err)
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		got, body := suite.Get(t, "gs://bucket/packed", remote.Request{Start: 2, Len: 5})
		if got.Status != 206 || got.Encoding != "gzip" || !bytes.Equal(body, packed[2:7]) {
			t.Errorf("%+v, %x", got, body)
		}
	})
}

// packed is "hello" as gzip.
var packed = []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xcaH\xcd\xc9\xc9\x07\x04\x00\x00\xff\xff\x86\xa6\x106\x05\x00\x00\x00")

// bucket is a server of sessions that does to them what happens on the way to Google.
type bucket struct {
	t       *testing.T
	mu      sync.Mutex
	before  func(w http.ResponseWriter, r *http.Request) bool // answers a request in the place of the server
	keep    func(n int) int                                   // how many of n bytes of a request are kept
	body    []byte                                            // of the request
	data    []byte                                            // of the session
	objects map[string][]byte
	calls   []string
	session string // the name of the object of the session
	wrong   bool   // the checksum of what is made is another
	base    string
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	q := r.URL.Query()
	what := r.Method + " " + r.URL.Path + " " + q.Get("uploadType") + r.Header.Get("Content-Range")
	if q.Get("ifGenerationMatch") != "" {
		what += " ifGenerationMatch=" + q.Get("ifGenerationMatch")
	}
	b.calls, b.body = append(b.calls, what), body
	if b.before != nil && b.before(w, r) {
		return
	}
	switch {
	case r.URL.Path == "/session" && r.Method == "PUT":
		span, total, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
		if first, _, ok := strings.Cut(span, "-"); ok {
			if first != fmt.Sprint(len(b.data)) {
				b.t.Errorf("bytes from %s on, the server has %d", first, len(b.data))
			}
			b.data = append(b.data, body[:b.keep(len(body))]...)
		}
		if total == fmt.Sprint(len(b.data)) {
			b.make(w, b.session, b.data)
			return
		}
		if len(b.data) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(b.data)-1))
		}
		w.WriteHeader(308)
	case r.URL.Path == "/session" && r.Method == "DELETE":
		w.WriteHeader(499)
	case q.Get("uploadType") == "resumable":
		b.session, b.data = q.Get("name"), nil
		w.Header().Set("Location", b.base+"/session?upload_id=secret-session")
	case q.Get("uploadType") == "media":
		b.make(w, q.Get("name"), body)
	case strings.HasSuffix(r.URL.Path, "/compose"):
		var c struct {
			SourceObjects []struct{ Name, Generation string }
		}
		json.Unmarshal(body, &c)
		var all []byte
		for _, s := range c.SourceObjects {
			if b.objects[s.Name] == nil || s.Generation != "7" {
				b.t.Errorf("joins %+v", s)
			}
			all = append(all, b.objects[s.Name]...)
		}
		b.make(w, strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/storage/v1/b/bucket/o/"), "/compose"), all)
	case r.Method == "DELETE":
		delete(b.objects, strings.TrimPrefix(r.URL.Path, "/storage/v1/b/bucket/o/"))
		w.WriteHeader(204)
	default:
		w.WriteHeader(404)
	}
}

func (b *bucket) make(w http.ResponseWriter, name string, data []byte) {
	b.objects[name] = bytes.Clone(data)
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	if b.wrong {
		sum++
	}
	fmt.Fprintf(w, `{"generation":"7","size":"%d","crc32c":%q}`, len(data), base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum)))
}

func newBucket(t *testing.T) (*bucket, *gcs.Store) {
	t.Helper()
	clean(t)
	b := &bucket{t: t, objects: map[string][]byte{}, keep: func(n int) int { return n }}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.base = server.URL
	return b, open(t, &gcs.Options{Endpoint: server.URL})
}

const part = 256 << 10

// TestSession sends parts over a network that loses bytes, answers and connections.
func TestSession(t *testing.T) {
	content := storesuite.Bytes(3*part + 1000)
	for name, trouble := range map[string]func(*bucket) func(http.ResponseWriter, *http.Request) bool{
		"none": func(b *bucket) func(http.ResponseWriter, *http.Request) bool { return nil },
		"half is kept": func(b *bucket) func(http.ResponseWriter, *http.Request) bool {
			b.keep = func(n int) int { return (n + 1) / 2 }
			return nil
		},
		"requests break": func(b *bucket) func(http.ResponseWriter, *http.Request) bool {
			n := 0
			return func(http.ResponseWriter, *http.Request) bool {
				if n++; n%4 == 0 {
					panic(http.ErrAbortHandler)
				}
				return false
			}
		},
		"answers get lost": func(b *bucket) func(http.ResponseWriter, *http.Request) bool {
			lost := false
			return func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/session" && !lost && strings.HasPrefix(r.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", part)) {
					lost = true
					b.data = append(b.data, b.body[:1234]...)
					w.WriteHeader(503)
					return true
				}
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, hold := range []int64{0, 5} {
				b, s := newBucket(t)
				b.before = trouble(b)
				w, err := s.Create(t.Context(), "gs://bucket/key", &remote.WriteOptions{PartSize: part, Hold: hold})
				storetest.Must(t, err)
				_, err = w.Write(content)
				storetest.Must(t, err)
				storetest.Must(t, w.Commit(t.Context()))
				if len(b.objects) != 1 || !bytes.Equal(b.objects["key"], content) {
					t.Errorf("%d objects, of which that has %d bytes, expected %d", len(b.objects), len(b.objects["key"]), len(content))
				}
			}
		})
	}
}

// TestSessionFails: what does not pass is an error, without the URL of the session; nothing is left, and nothing tried for ever.
func TestSessionFails(t *testing.T) {
	answer := func(path string, status int, header, value string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path || r.Method == "DELETE" {
				return false
			}
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(status)
			return true
		}
	}
	for name, test := range map[string]struct {
		before func(http.ResponseWriter, *http.Request) bool
		wrong  bool
		class  error
	}{
		"forbidden":        {answer("/session", 403, "", ""), false, nil},
		"gone":             {answer("/session", 410, "", ""), false, fault.NotFound},
		"too many bytes":   {answer("/session", 308, "Range", "bytes=0-99999999"), false, fault.Corrupt},
		"bytes taken back": {answer("/session", 308, "Range", "bytes=7-9"), false, fault.Corrupt},
		"done too early":   {answer("/session", 200, "", ""), false, fault.Corrupt},
		"another host":     {answer("/upload/storage/v1/b/bucket/o", 200, "Location", "http://example.com/session?upload_id=secret-session"), false, fault.Corrupt},
		"another checksum": {nil, true, fault.Corrupt},
		"exists":           {answer("/storage/v1/b/bucket/o/key/compose", 412, "", ""), false, fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := newBucket(t)
			b.before, b.wrong = test.before, test.wrong
			w, err := s.Create(t.Context(), "gs://bucket/key", &remote.WriteOptions{PartSize: part, Hold: 5, NoOverwrite: true})
			storetest.Must(t, err)
			w.Write(storesuite.Bytes(3*part + 1000))
			err = w.Commit(t.Context())
			if err == nil || test.class != nil && !errors.Is(err, test.class) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, expected %v", err, test.class)
			}
			t.Log(err)
			if len(b.objects) > 0 {
				t.Errorf("%d objects are left", len(b.objects))
			}
			if _, err := w.Write([]byte{1}); !errors.Is(err, fault.Invalid) {
				t.Error(err)
			}
		})
	}
}

// TestConditions: where there must be no object, each request that makes one says so.
func TestConditions(t *testing.T) {
	for _, hold := range []int64{0, 5} {
		for _, n := range []int{10, 2*part + 1} {
			b, s := newBucket(t)
			w, err := s.Create(t.Context(), "gs://bucket/key", &remote.WriteOptions{PartSize: part, Hold: hold, NoOverwrite: true})
			storetest.Must(t, err)
			_, err = w.Write(storesuite.Bytes(n))
			storetest.Must(t, err)
			storetest.Must(t, w.Commit(t.Context()))
			makes := 0
			for _, call := range b.calls {
				if strings.HasPrefix(call, "POST ") {
					if makes++; !strings.HasSuffix(call, " ifGenerationMatch=0") {
						t.Errorf("%s without a condition", call)
					}
				}
			}
			if makes == 0 {
				t.Errorf("calls %q", b.calls)
			}
		}
	}
}

// redirected sends requests for Google to a server of the test.
type redirected struct{ to string }

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != "storage.googleapis.com" || req.URL.Scheme != "https" {
		return nil, errors.New("a request to " + req.URL.Host)
	}
	to, err := url.Parse(r.to)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = to.Scheme, to.Host
	return http.DefaultTransport.RoundTrip(req)
}

// account writes a file of credentials, whose tokens come from a server.
func account(t *testing.T, tokens string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	storetest.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	storetest.Must(t, err)
	b, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "test@example.com", "private_key_id": "1", "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	storetest.Must(t, err)
	file := filepath.Join(t.TempDir(), "account.json")
	storetest.Must(t, os.WriteFile(file, b, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}

// TestCredentials: requests to Google carry a token, and no other do.
func TestCredentials(t *testing.T) {
	clean(t)
	refuse := false
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse {
			w.WriteHeader(400)
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"secret %s"}`, body)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"secret-token","token_type":"Bearer","expires_in":3600}`)
	}))
	defer tokens.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var got http.Header
	var where string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, where = r.Header, r.RequestURI
		w.Header().Set("Location", "https://example.com/elsewhere")
		w.WriteHeader(302)
	}))
	defer server.Close()
	account(t, tokens.URL)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := gcs.New(ctx, &gcs.Options{Transport: redirected{server.URL}, UserProject: "payer"})
	storetest.Must(t, err)
	cancel() // the tokens last longer than the context they were looked for with
	g, err := s.Getter("gs://bucket/a key/ä")
	storetest.Must(t, err)
	resp, err := g.Get(t.Context(), remote.Request{Len: 10})
	storetest.Must(t, err)
	if resp.Status != 302 || got.Get("Authorization") != "Bearer secret-token" {
		t.Errorf("%+v, sent %v", resp, got)
	}
	if where != "/storage/v1/b/bucket/o/a%20key%2F%C3%A4?alt=media&userProject=payer" {
		t.Error(where)
	}
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	g, err = open(t, nil).Getter("gs://bucket/key")
	storetest.Must(t, err)
	if _, err = g.Get(t.Context(), remote.Request{Len: 10}); err != nil || got.Get("Authorization") != "" {
		t.Errorf("%v, sent %v", err, got)
	}
	t.Setenv("STORAGE_EMULATOR_HOST", "")

	refuse = true
	g, err = open(t, &gcs.Options{Transport: redirected{server.URL}}).Getter("gs://bucket/key")
	storetest.Must(t, err)
	_, err = g.Get(t.Context(), remote.Request{Len: 10})
	if f, ok := errors.AsType[*fault.Error](err); !ok || strings.Contains(err.Error(), "secret") || f.Object != "gs://bucket/key" {
		t.Errorf("without a token: %v", err)
	}
	t.Log(err)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "is-not-there"))
	if _, err := gcs.New(t.Context(), nil); !errors.Is(err, fault.Invalid) {
		t.Errorf("credentials that are named and not there: %v", err)
	}
	t.Setenv("GS_NO_SIGN_REQUEST", "YES")
	got = nil
	g, err = open(t, &gcs.Options{Transport: redirected{server.URL}}).Getter("gs://bucket/key")
	storetest.Must(t, err)
	if _, err = g.Get(t.Context(), remote.Request{Len: 10}); err != nil || got.Get("Authorization") != "" {
		t.Errorf("%v, sent %v", err, got)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestAnonymous: that a request had no credentials is said when it is refused.
func TestAnonymous(t *testing.T) {
	b, s := newBucket(t)
	b.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(401)
		io.WriteString(w, "Anonymous caller does not have storage.objects.get access.\nsecret")
		return true
	}
	g, err := s.Getter("gs://bucket/key")
	storetest.Must(t, err)
	resp, err := g.Get(t.Context(), remote.Request{Len: 10})
	storetest.Must(t, err)
	if resp.Status != 401 || resp.Message != "Anonymous caller does not have storage.objects.get access.; the request was sent without credentials, since there are none" {
		t.Errorf("%+v", resp)
	}
	body, _ := io.ReadAll(resp.Body)
	if len(body) != 65 {
		t.Errorf("body %q", body)
	}
}

func TestURLs(t *testing.T) {
	clean(t)
	s := open(t, &gcs.Options{Endpoint: "127.0.0.1:1"})
	for _, bad := range []string{"", "gs://", "gs:///key", "gs://bucket", "gs://bucket/", "gs://bucket/..", "gs://bucket/#1", "s3://bucket/key", "gs://a:secret@bucket/key", "gs://buck?et/key"} {
		if _, err := s.Getter(bad); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, endpoint := range []string{"ftp://host", "http://a:secret@host", "http://host/path", "http://host?secret"} {
		if _, err := gcs.New(t.Context(), &gcs.Options{Endpoint: endpoint}); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	for _, err := range s.List(t.Context(), "gs://bucket/a#1") {
		if !errors.Is(err, fault.Invalid) {
			t.Error(err)
		}
	}
}
