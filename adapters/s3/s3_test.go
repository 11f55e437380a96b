package s3_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"go.uber.org/goleak"

	"github.com/spilehq/spile/adapters/internal/storesuite"
	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	accessKey = storetest.S3AccessKey
	secretKey = storetest.S3SecretKey
)

// clean takes out of the environment what this machine has of credentials and settings.
func clean(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// open returns a store at an endpoint, which ends with the test.
func open(t *testing.T, endpoint string, o s3.Options) *s3.Store {
	t.Helper()
	o.Endpoint = endpoint
	s, err := s3.New(t.Context(), &o)
	storetest.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestVersityGW runs against a real server.
func TestVersityGW(t *testing.T) {
	clean(t)
	address := storetest.VersityGW(t, "bucket", "versioned", "public")
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1"})
	storetest.Must(t, err)
	ctx := t.Context()
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-"+secretKey)
	wrong := open(t, "http://"+address, s3.Options{})
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	proxy := storetest.NewProxy(t, address)
	store := open(t, proxy.URL, s3.Options{})
	suite := &storesuite.Suite{
		Store: store, Wrong: wrong, Prefix: "s3://bucket/", Missing: "s3://no-such-bucket/", Secrets: []string{secretKey},
		Keys: []string{"keys/#hash", "keys/what?"}, Part: 5 << 20, Copies: true, Pages: 1100,
		Proxy: proxy, Makes: func(r *http.Request) bool {
			return r.Method == "PUT" && !r.URL.Query().Has("partNumber") || r.Method == "POST" && r.URL.Query().Has("uploadId")
		},
		Leftovers: func() (left []string) {
			for u := range client.ListIncompleteUploads(ctx, "bucket", "", true) {
				left = append(left, u.Key)
			}
			return left
		},
	}
	suite.Run(t)

	t.Run("Version", func(t *testing.T) {
		storetest.Must(t, client.EnableVersioning(ctx, "versioned"))
		suite := &storesuite.Suite{Store: store, Prefix: "s3://versioned/"}
		suite.Put(t, "key", storesuite.Bytes(100))
		info, err := client.StatObject(ctx, "versioned", "key", minio.StatObjectOptions{})
		storetest.Must(t, err)
		suite.Put(t, "key", storesuite.Bytes(200))
		old := "s3://versioned/key?versionId=" + info.VersionID
		resp, body := suite.Get(t, old, remote.Request{Len: 1000})
		if resp.Version != info.VersionID || string(body) != string(storesuite.Bytes(100)) {
			t.Errorf("%+v", resp)
		}
		resp, _ = suite.Get(t, old, remote.Request{Start: 50, Len: 10, Version: resp.Version})
		if resp.Status != 206 || resp.Size != 100 {
			t.Errorf("%+v", resp)
		}
		if resp, _ := suite.Get(t, "s3://versioned/key", remote.Request{Len: 10}); resp.Size != 200 {
			t.Errorf("%+v", resp)
		}
		if _, err := store.Create(ctx, old, nil); !errors.Is(err, fault.Invalid) {
			t.Errorf("a version is written: %v", err)
		}
	})

	t.Run("Anonymous", func(t *testing.T) {
		storetest.Must(t, client.SetBucketPolicy(ctx, "public", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*",
			"Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::public","arn:aws:s3:::public/*"]}]}`))
		(&storesuite.Suite{Store: store, Prefix: "s3://public/"}).Put(t, "key", storesuite.Bytes(100))
		t.Setenv("AWS_NO_SIGN_REQUEST", "YES")
		public := &storesuite.Suite{Store: open(t, "http://"+address, s3.Options{}), Prefix: "s3://public/"}
		if got := public.Whole(t, "key"); string(got) != string(storesuite.Bytes(100)) {
			t.Error("other bytes")
		}
		resp, _ := public.Get(t, "s3://bucket/plain", remote.Request{Len: 10})
		if resp.Status != 403 || !strings.Contains(resp.Message, "not signed") {
			t.Errorf("%+v", resp)
		}
		for e, err := range public.Store.List(ctx, "s3://public/") {
			if err != nil || e.Name != "s3://public/key" {
				t.Error(e, err)
			}
		}
	})

	t.Run("OneRequest", func(t *testing.T) {
		before := proxy.Requests.Load()
		suite.Get(t, "s3://bucket/ranges", remote.Request{Len: 10})
		suite.Get(t, "s3://bucket/is-not-there", remote.Request{Len: 10})
		if n := proxy.Requests.Load() - before; n != 2 {
			t.Errorf("%d requests for two", n)
		}
	})

	t.Run("Profile", func(t *testing.T) {
		os.Unsetenv("AWS_ACCESS_KEY_ID")
		os.Unsetenv("AWS_SECRET_ACCESS_KEY")
		dir := filepath.Join(os.Getenv("HOME"), ".aws")
		storetest.Must(t, os.MkdirAll(dir, 0o700))
		storetest.Must(t, os.WriteFile(filepath.Join(dir, "credentials"), []byte("[p]\naws_access_key_id = "+accessKey+"\naws_secret_access_key = "+secretKey+"\n"), 0o600))
		t.Setenv("AWS_PROFILE", "p")
		t.Setenv("AWS_ENDPOINT_URL_S3", "http://"+address)
		suite := &storesuite.Suite{Store: open(t, "", s3.Options{}), Prefix: "s3://bucket/"}
		if got := suite.Whole(t, "ranges"); len(got) != 100_000 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// TestRetries: a getter sends one request, whatever comes of it; a writer sends one again that failed in passing.
func TestRetries(t *testing.T) {
	clean(t)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	const slow = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
	requests, fail := 0, 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; fail > 0 {
			fail--
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(503)
			io.WriteString(w, slow)
		}
	}))
	defer server.Close()
	s := open(t, server.URL, s3.Options{})
	g, err := s.Getter("s3://bucket/key")
	storetest.Must(t, err)
	resp, err := g.Get(t.Context(), remote.Request{Len: 10})
	storetest.Must(t, err)
	body, _ := io.ReadAll(resp.Body)
	if resp.Status != 503 || resp.RetryAfter.Seconds() != 7 || resp.Message != "SlowDown: Please reduce your request rate." || requests != 1 || string(body) != slow {
		t.Errorf("%+v after %d requests, body %q", resp, requests, body)
	}
	requests, fail = 0, 2
	w, err := s.Create(t.Context(), "s3://bucket/key", nil)
	storetest.Must(t, err)
	storetest.Must(t, w.Commit(t.Context()))
	if requests != 3 {
		t.Errorf("%d requests, expected two that failed and one", requests)
	}
}

// TestListBreaksOff: a list whose answers break off goes on behind what has come; when nothing comes any more, the error says why.
func TestListBreaksOff(t *testing.T) {
	clean(t)
	t.Setenv("AWS_NO_SIGN_REQUEST", "yes")
	const head = `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>`
	var asked []string
	breaks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("start-after")+" "+q.Get("continuation-token"))
		body := head + "<Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>"
		if q.Get("start-after")+q.Get("continuation-token") != "" {
			body = "<ListBucketResult><Contents><Key>b</Key><Size>2</Size></Contents></ListBucketResult>"
			if breaks > 0 {
				breaks--
				w.Header().Set("Content-Length", "1000")
				io.WriteString(w, body[:40])
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}
		io.WriteString(w, body)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	s := open(t, server.URL, s3.Options{})
	list := func() (keys []string, err error) {
		asked = nil
		for e, err := range s.List(t.Context(), "s3://bucket/") {
			if err != nil {
				return keys, err
			}
			keys = append(keys, e.Name)
		}
		return keys, nil
	}
	breaks = 2
	keys, err := list()
	if want := []string{"s3://bucket/a", "s3://bucket/b"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v; expected %q", keys, err, want)
	}
	if want := []string{" ", " t", "a ", "a "}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, expected %q", asked, want)
	}
	breaks = 1000
	keys, err = list()
	if err == nil || !strings.Contains(err.Error(), "cannot list: the answer breaks off") || len(keys) != 1 || len(asked) > 10 {
		t.Errorf("%q, %v, after %d requests", keys, err, len(asked))
	}
}

// TestNoAnswer: what fails without an answer is an error, and not a fault where it may pass.
func TestNoAnswer(t *testing.T) {
	clean(t)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	trusted := httptest.NewTLSServer(http.NotFoundHandler())
	trusted.Config.ErrorLog = nil
	defer trusted.Close()
	for _, test := range []struct {
		endpoint string
		fault    bool
	}{{server.URL, false}, {"http://127.0.0.1:1", false}, {trusted.URL, true}, {strings.Replace(server.URL, "http:", "https:", 1), true}} {
		g, err := open(t, test.endpoint, s3.Options{}).Getter("s3://bucket/key")
		storetest.Must(t, err)
		_, err = g.Get(t.Context(), remote.Request{Len: 10})
		var f *fault.Error
		if err == nil || errors.As(err, &f) != test.fault || strings.Contains(err.Error(), secretKey) {
			t.Errorf("%s: %v", test.endpoint, err)
		}
		t.Log(err)
	}
}

// TestRedirect: credentials do not follow to another host.
func TestRedirect(t *testing.T) {
	clean(t)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-amz-bucket-region", "eu-west-1")
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	g, err := open(t, server.URL, s3.Options{}).Getter("s3://bucket/key")
	storetest.Must(t, err)
	resp, err := g.Get(t.Context(), remote.Request{Len: 10})
	storetest.Must(t, err)
	if resp.Status != 307 || !strings.Contains(resp.Message, "eu-west-1") {
		t.Errorf("%+v", resp)
	}
}

func TestURLs(t *testing.T) {
	clean(t)
	s := open(t, "http://127.0.0.1:1", s3.Options{})
	for _, bad := range []string{
		"", "s3://", "s3:///key", "s3://bucket", "s3://bucket/", "gs://bucket/key", "s3://b/key", "s3://key:secret@bucket/key", "s3://bucket/?versionId=1",
		"s3://bucket/key?X-Amz-Credential=abc&X-Amz-Signature=secret",
	} {
		if _, err := s.Getter(bad); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, endpoint := range []string{"localhost:9000", "ftp://host", "http://user:secret@host", "http://host/path", "http://host?secret", "http://%zz"} {
		if _, err := s3.New(t.Context(), &s3.Options{Endpoint: endpoint}); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	for _, err := range s.List(t.Context(), "s3://bucket/a?versionId=1") {
		if !errors.Is(err, fault.Invalid) {
			t.Error(err)
		}
	}
}

// TestProfileMissing: a profile that is asked for by name is not passed over.
func TestProfileMissing(t *testing.T) {
	clean(t)
	file := filepath.Join(t.TempDir(), "credentials")
	storetest.Must(t, os.WriteFile(file, []byte("[other]\nsecret-line-without-a-value\n"), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	if _, err := s3.New(t.Context(), &s3.Options{Profile: "p"}); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestRegion: the region of the profile, and who pays, are part of what is signed.
func TestRegion(t *testing.T) {
	clean(t)
	dir := filepath.Join(os.Getenv("HOME"), ".aws")
	storetest.Must(t, os.MkdirAll(dir, 0o700))
	storetest.Must(t, os.WriteFile(filepath.Join(dir, "config"), []byte("[default]\nregion = eu-north-1\naws_access_key_id = "+accessKey+"\naws_secret_access_key = "+secretKey+"\n"), 0o600))
	t.Setenv("AWS_REQUEST_PAYER", "requester")
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer server.Close()
	s := open(t, server.URL, s3.Options{})
	check := func(what string) {
		t.Helper()
		if sign := got.Get("Authorization"); !strings.Contains(sign, "/eu-north-1/s3/") || !strings.Contains(sign, "x-amz-request-payer") || got.Get("x-amz-request-payer") != "requester" {
			t.Errorf("%s: %v", what, got)
		}
	}
	g, err := s.Getter("s3://bucket/key")
	storetest.Must(t, err)
	_, _ = g.Get(t.Context(), remote.Request{Len: 10})
	check("get")
	for range s.List(t.Context(), "s3://bucket/") {
	}
	check("list")
}

// TestEncoding: what some stores take for an encoding of the object was one of its upload.
func TestEncoding(t *testing.T) {
	clean(t)
	t.Setenv("AWS_NO_SIGN_REQUEST", "yes")
	for said, want := range map[string]string{"": "", "aws-chunked": "", "gzip,aws-chunked": "gzip", "aws-chunked, gzip": "gzip", "gzip": "gzip"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", said)
			w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
		}))
		g, err := open(t, server.URL, s3.Options{}).Getter("s3://bucket/key")
		storetest.Must(t, err)
		resp, err := g.Get(t.Context(), remote.Request{Len: 10})
		storetest.Must(t, err)
		if resp.Body.Close(); resp.Encoding != want {
			t.Errorf("%q is read as %q", said, resp.Encoding)
		}
		server.Close()
	}
}

// TestCancelled: a context that ends stops what is being asked for.
func TestCancelled(t *testing.T) {
	clean(t)
	t.Setenv("AWS_NO_SIGN_REQUEST", "yes")
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	g, err := open(t, server.URL, s3.Options{}).Getter("s3://bucket/key")
	storetest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := g.Get(ctx, remote.Request{Len: 10}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
