package azure_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"go.uber.org/goleak"

	"github.com/spilehq/spile/adapters/azure"
	"github.com/spilehq/spile/adapters/internal/storesuite"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const account = "testaccount"

var (
	key      = base64.StdEncoding.EncodeToString([]byte("a key that nobody may see, of some length"))
	wrongKey = base64.StdEncoding.EncodeToString([]byte("a key that is not that of the account 12"))
)

// clean takes out of the environment what this machine has of credentials and settings.
func clean(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AZURE_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
}

func open(t *testing.T, o *azure.Options) *azure.Store {
	t.Helper()
	s, err := azure.New(t.Context(), o)
	storetest.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestAzurite runs against a real server.
func TestAzurite(t *testing.T) {
	clean(t)
	address := storetest.Azurite(t, account, key)
	endpoint := "http://" + address + "/" + account
	credential, err := service.NewSharedKeyCredential(account, key)
	storetest.Must(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	options := &service.ClientOptions{}
	options.Transport = &http.Client{Transport: transport}
	client, err := service.NewClientWithSharedKeyCredential(endpoint, credential, options)
	storetest.Must(t, err)
	ctx := t.Context()
	_, err = client.CreateContainer(ctx, "container", nil)
	storetest.Must(t, err)
	_, err = client.CreateContainer(ctx, "public", &service.CreateContainerOptions{Access: to.Ptr(container.PublicAccessTypeContainer)})
	storetest.Must(t, err)

	proxy := storetest.NewProxy(t, address)
	t.Setenv("AZURE_STORAGE_ACCOUNT", account)
	t.Setenv("AZURE_STORAGE_KEY", wrongKey)
	t.Setenv("AZURE_STORAGE_SERVICE_ENDPOINT", proxy.URL+"/"+account)
	wrong := open(t, nil)
	t.Setenv("AZURE_STORAGE_KEY", key)
	store := open(t, nil)
	suite := &storesuite.Suite{
		Store: store, Wrong: wrong, Prefix: "azblob://container/", Missing: "azblob://no-such-container/", Secrets: []string{key, wrongKey, "sig="},
		Keys: []string{"keys/what?", "keys/#hash", "keys//double"}, Part: 1 << 20, Pages: 0,
		NoSuffix: true, // nor has Azure
		Proxy:    proxy, Makes: func(r *http.Request) bool {
			comp := r.URL.Query().Get("comp")
			return r.Method == "PUT" && (comp == "" || comp == "blocklist")
		},
		Leftovers: func() (left []string) {
			pages := client.NewContainerClient("container").NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
				Include: container.ListBlobsInclude{UncommittedBlobs: true},
			})
			for pages.More() {
				page, err := pages.NextPage(ctx)
				storetest.Must(t, err)
				for _, item := range page.Segment.BlobItems {
					if _, err := client.NewContainerClient("container").NewBlobClient(*item.Name).GetProperties(ctx, nil); err != nil {
						left = append(left, *item.Name)
					}
				}
			}
			return left
		},
	}
	suite.Run(t)

	// The server does not copy ranges. A proxy does in its place, with what the store sends along.
	t.Run("CopyBlocks", func(t *testing.T) {
		copier := func(w http.ResponseWriter, r *http.Request) bool {
			from := r.Header.Get("x-ms-copy-source")
			if from == "" {
				return false
			}
			req, err := http.NewRequestWithContext(r.Context(), "GET", from, nil)
			if err != nil {
				t.Error(err)
			}
			req.Header.Set("x-ms-range", r.Header.Get("x-ms-source-range"))
			req.Header.Set("If-Match", r.Header.Get("x-ms-source-if-match"))
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return false
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode == 206 {
				name := strings.TrimPrefix(r.URL.Path, "/"+account+"/container/")
				_, err = client.NewContainerClient("container").NewBlockBlobClient(name).StageBlock(r.Context(), r.URL.Query().Get("blockid"),
					streaming.NopCloser(bytes.NewReader(body)), nil)
				if err != nil {
					t.Error(err)
				}
				w.WriteHeader(201)
				return true
			}
			w.Header().Set("x-ms-error-code", resp.Header.Get("x-ms-error-code"))
			w.WriteHeader(resp.StatusCode)
			return true
		}
		proxy.Before.Store(&copier)
		defer proxy.Before.Store(nil)
		copies := *suite
		copies.Copies = true
		copies.Copy(t)
	})

	t.Run("OneRequest", func(t *testing.T) {
		before := proxy.Requests.Load()
		suite.Get(t, "azblob://container/ranges", remote.Request{Len: 10})
		suite.Get(t, "azblob://container/is-not-there", remote.Request{Len: 10})
		if n := proxy.Requests.Load() - before; n != 2 {
			t.Errorf("%d requests for two", n)
		}
	})

	reads := func(t *testing.T, store storesuite.Store, url string) {
		t.Helper()
		resp, body := (&storesuite.Suite{Store: store}).Get(t, url, remote.Request{Start: 5, Len: 10})
		if resp.Status != 206 || !bytes.Equal(body, storesuite.Bytes(100_000)[5:15]) {
			t.Errorf("%s: %+v", url, resp)
		}
	}
	t.Run("Host", func(t *testing.T) {
		// An account in the path of the endpoint cannot be told from a container, so this takes a server for one account.
		t.Setenv("AZURE_STORAGE_SERVICE_ENDPOINT", "http://"+address+"/"+account)
		reads(t, open(t, nil), "azblob://"+address+"/container/ranges")
	})
	t.Run("ConnectionString", func(t *testing.T) {
		clean(t)
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName="+account+";AccountKey="+key+";BlobEndpoint="+endpoint+";")
		reads(t, open(t, nil), "azblob://container/ranges")
	})
	t.Run("Signature", func(t *testing.T) {
		signed, err := client.GetSASURL(sas.AccountResourceTypes{Object: true, Container: true}, sas.AccountPermissions{Read: true, List: true}, time.Now().Add(time.Hour), nil)
		storetest.Must(t, err)
		_, signature, _ := strings.Cut(signed, "?")
		clean(t)
		t.Setenv("AZURE_STORAGE_ACCOUNT", account)
		t.Setenv("AZURE_STORAGE_SERVICE_ENDPOINT", endpoint)
		t.Setenv("AZURE_STORAGE_SAS_TOKEN", "?"+signature)
		store := open(t, nil)
		reads(t, store, "azblob://container/ranges")
		w, err := store.Create(ctx, "azblob://container/with-a-signature", nil)
		storetest.Must(t, err)
		if err := w.Commit(ctx); err == nil || strings.Contains(err.Error(), "sig=") {
			t.Errorf("written with a signature for reading: %v", err)
		}
		clean(t)
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "SharedAccessSignature="+signature+";BlobEndpoint="+endpoint+";")
		reads(t, open(t, nil), "azblob://container/ranges")
	})
	t.Run("Anonymous", func(t *testing.T) {
		(&storesuite.Suite{Store: store, Prefix: "azblob://public/"}).Put(t, "key", storesuite.Bytes(100_000))
		t.Setenv("AZURE_NO_SIGN_REQUEST", "YES")
		public := open(t, nil)
		reads(t, public, "azblob://public/key")
		resp, _ := (&storesuite.Suite{Store: public}).Get(t, "azblob://container/ranges", remote.Request{Len: 1})
		if resp.Status < 400 || !strings.Contains(resp.Message, "without credentials") {
			t.Errorf("%+v", resp)
		}
		n := 0
		for e, err := range public.List(ctx, "azblob://public/k") {
			if n++; err != nil || e.Name != "azblob://public/key" {
				t.Error(e, err)
			}
		}
		if n != 1 {
			t.Errorf("%d blobs", n)
		}
	})
}

func TestSuffix(t *testing.T) {
	clean(t)
	g, err := open(t, &azure.Options{Account: account, Anonymous: true}).Getter("azblob://container/blob")
	storetest.Must(t, err)
	if _, err := g.Get(t.Context(), remote.Request{Len: 5, Suffix: true}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// TestRetries: a getter sends one request, whatever comes of it; a writer sends one again that failed in passing.
func TestRetries(t *testing.T) {
	clean(t)
	const busy = "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>ServerBusy</Code><Message>The server is busy.\nRequestId:1</Message></Error>"
	requests, fail := 0, 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if requests++; fail > 0 {
			fail--
			w.Header().Set("x-ms-error-code", "ServerBusy")
			w.WriteHeader(503)
			io.WriteString(w, busy)
			return
		}
		w.WriteHeader(201)
	}))
	defer server.Close()
	t.Setenv("AZURE_STORAGE_KEY", key)
	s := open(t, &azure.Options{Account: account, Endpoint: server.URL})
	g, err := s.Getter("azblob://container/blob")
	storetest.Must(t, err)
	resp, err := g.Get(t.Context(), remote.Request{Len: 10})
	storetest.Must(t, err)
	body, _ := io.ReadAll(resp.Body)
	if resp.Status != 503 || resp.Message != "ServerBusy: The server is busy." || requests != 1 || string(body) != busy {
		t.Errorf("%+v after %d requests, body %q", resp, requests, body)
	}
	requests, fail = 0, 2
	w, err := s.Create(t.Context(), "azblob://container/blob", nil)
	storetest.Must(t, err)
	storetest.Must(t, w.Commit(t.Context()))
	if requests != 3 {
		t.Errorf("%d requests, expected two that failed and one", requests)
	}
}

// TestNoAnswer: what fails without an answer is an error that holds no signature, and not a fault where it may pass.
func TestNoAnswer(t *testing.T) {
	clean(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2020&sig=secret")
	for endpoint, final := range map[string]bool{server.URL: false, "http://127.0.0.1:1": false, untrusted.URL: true} {
		s := open(t, &azure.Options{Account: account, Endpoint: endpoint})
		g, err := s.Getter("azblob://container/blob")
		storetest.Must(t, err)
		_, err = g.Get(t.Context(), remote.Request{Len: 10})
		if _, ok := errors.AsType[*fault.Error](err); err == nil || ok != final || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", endpoint, err)
		}
		t.Log(err)
	}
}

// TestHosts: a key goes to its account and no other, and nothing to a host that is not Azure's.
func TestHosts(t *testing.T) {
	clean(t)
	t.Setenv("AZURE_STORAGE_ACCOUNT", account)
	t.Setenv("AZURE_STORAGE_KEY", key)
	var got []*http.Request
	s := open(t, &azure.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		return nil, errors.New("no network")
	})})
	ask := func(url string) error {
		g, err := s.Getter(url)
		if err != nil {
			return err
		}
		_, err = g.Get(t.Context(), remote.Request{Len: 1})
		return err
	}
	for _, url := range []string{"azblob://container/blob", "azblob://" + account + ".blob.core.windows.net/container/blob"} {
		if got = nil; ask(url) == nil || len(got) != 1 || got[0].URL.Host != account+".blob.core.windows.net" ||
			!strings.HasPrefix(got[0].Header.Get("Authorization"), "SharedKey "+account+":") {
			t.Errorf("%s: %v", url, got)
		}
	}
	got = nil
	if err := ask("azblob://" + account + ".example.com/container/blob"); !errors.Is(err, fault.Invalid) || got != nil {
		t.Errorf("another host: %v, %v", err, got)
	}
	if err := ask("azblob://.blob.core.windows.net/container/blob"); !errors.Is(err, fault.Invalid) || got != nil {
		t.Errorf("another host: %v, %v", err, got)
	}
	// Another account is asked without credentials, or with a login, and never with this key.
	t.Setenv("AZURE_NO_SIGN_REQUEST", "yes")
	s = open(t, &azure.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		return nil, errors.New("no network")
	})})
	if got = nil; ask("azblob://other.blob.core.windows.net/container/blob") == nil || len(got) != 1 || got[0].Header.Get("Authorization") != "" {
		t.Errorf("another account: %v", got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestURLs(t *testing.T) {
	clean(t)
	s := open(t, &azure.Options{Account: account, Anonymous: true})
	for _, bad := range []string{
		"", "azblob://", "azblob:///blob", "azblob://container", "azblob://container/", "s3://container/blob", "azblob://Container/blob",
		"azblob://other.blob.core.windows.net/container", "azblob://other.blob.core.windows.net/", "azblob://a:secret@container/blob",
		"azblob://container/blob?sv=2020&sig=secret",
	} {
		if _, err := s.Getter(bad); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := open(t, nil).Getter("azblob://container/blob"); !errors.Is(err, fault.Invalid) {
		t.Errorf("without an account: %v", err)
	}
	for _, o := range []azure.Options{{Account: "a.b"}, {Endpoint: "ftp://host"}, {Endpoint: "https://a:secret@host"}, {Endpoint: "https://host?sig=secret"}} {
		if _, err := azure.New(t.Context(), &o); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for variable, value := range map[string]string{
		"AZURE_STORAGE_CONNECTION_STRING": "AccountKey=secret", "AZURE_STORAGE_KEY": "secret!",
	} {
		t.Setenv(variable, value)
		if _, err := azure.New(t.Context(), &azure.Options{Endpoint: "https://host"}); !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", variable, err)
		}
		t.Setenv(variable, "")
	}
}
