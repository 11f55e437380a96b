package azure

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source/remote"
)

const pkg = "azure"

// Options say which account is meant. Nil and the zero value take everything from the environment, as the package says.
type Options struct {
	Account string
	// Endpoint is the URL of the account, where it is not Azure's usual one.
	Endpoint string
	// Anonymous sends requests without credentials.
	Anonymous bool
	// Transport sends the requests to the store, but not those for credentials. By default it is one of the Store's own.
	Transport http.RoundTripper
	// Requests limits and counts the requests of lists and writers. Those of reads are the matter of who opens the object.
	Requests remote.Requests
}

// Store is a set of credentials and an account.
type Store struct {
	once, again azcore.ClientOptions
	anonymous   bool
	own         *http.Transport

	home *account // that which the environment names, nil when it names none

	mu     sync.Mutex
	others map[string]*account // by host
	token  azcore.TokenCredential
}

// account is the clients for an account.
type account struct {
	host        string
	once, again *service.Client // without and with further tries
	token       azcore.TokenCredential
	unsigned    bool
}

// azureHosts are the ends of the hosts of Azure's accounts, in its clouds.
var azureHosts = []string{".blob.core.windows.net", ".blob.core.usgovcloudapi.net", ".blob.core.chinacloudapi.cn", ".blob.storage.azure.net"}

// New returns a Store. It sends no request.
func New(_ context.Context, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Store{anonymous: o.Anonymous || store.Yes(os.Getenv("AZURE_NO_SIGN_REQUEST")), others: make(map[string]*account)}
	transport := o.Transport
	if transport == nil {
		s.own = store.NewTransport()
		transport = s.own
	}
	s.once = azcore.ClientOptions{Transport: &store.Recorder{Base: transport}, Retry: policy.RetryOptions{MaxRetries: -1}}
	s.again = azcore.ClientOptions{Transport: &store.Recorder{Base: store.Limit(transport, &o.Requests)}, Retry: s.once.Retry}
	if more := store.Tries(&o.Requests) - 1; more > 0 { // pauses of 0.2 s, 0.6 s, 1.4 s, and 3 s from there on
		s.again.Retry = policy.RetryOptions{MaxRetries: int32(more), RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 3 * time.Second}
	}
	if err := s.findHome(o); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the connections that nobody uses. A transport of the options is left alone.
func (s *Store) Close() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}

// findHome makes the clients for the account that options and environment name.
func (s *Store) findHome(o *Options) error {
	var make func(*service.ClientOptions) (*service.Client, error)
	name := cmp.Or(o.Account, os.Getenv("AZURE_STORAGE_ACCOUNT"))
	text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	a := &account{unsigned: s.anonymous}
	if text != "" && o.Account == "" && !s.anonymous {
		make = func(c *service.ClientOptions) (*service.Client, error) {
			return service.NewClientFromConnectionString(text, c)
		}
	} else {
		endpoint := cmp.Or(o.Endpoint, os.Getenv("AZURE_STORAGE_SERVICE_ENDPOINT"))
		if endpoint == "" && name == "" {
			return nil
		}
		if endpoint == "" {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
				return fault.New(fault.Invalid, pkg, "account %q, of small letters and digits alone", name)
			}
			endpoint = "https://" + name + azureHosts[0]
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return fault.New(fault.Invalid, pkg, "the endpoint is no URL of the form https://host, without credentials")
		}
		key, signature := os.Getenv("AZURE_STORAGE_KEY"), strings.TrimPrefix(os.Getenv("AZURE_STORAGE_SAS_TOKEN"), "?")
		switch {
		case s.anonymous:
			make = func(c *service.ClientOptions) (*service.Client, error) {
				return service.NewClientWithNoCredential(endpoint, c)
			}
		case key != "":
			if name == "" {
				return fault.New(fault.Invalid, pkg, "AZURE_STORAGE_KEY needs AZURE_STORAGE_ACCOUNT")
			}
			credential, err := service.NewSharedKeyCredential(name, key)
			if err != nil { // the text may hold the key
				return fault.New(fault.Invalid, pkg, "AZURE_STORAGE_KEY is no key: it is not base64")
			}
			make = func(c *service.ClientOptions) (*service.Client, error) {
				return service.NewClientWithSharedKeyCredential(endpoint, credential, c)
			}
		case signature != "":
			make = func(c *service.ClientOptions) (*service.Client, error) {
				return service.NewClientWithNoCredential(endpoint+"?"+signature, c)
			}
		default:
			if a.token, err = s.defaultToken(); err != nil {
				return err
			}
			make = func(c *service.ClientOptions) (*service.Client, error) {
				return service.NewClient(endpoint, a.token, c)
			}
		}
	}
	var err error
	if a.once, err = make(&service.ClientOptions{ClientOptions: s.once}); err == nil {
		a.again, err = make(&service.ClientOptions{ClientOptions: s.again})
	}
	var u *url.URL
	if err == nil {
		u, err = url.Parse(a.once.URL())
	}
	if err != nil || u.Host == "" { // the text may hold a key
		return fault.New(fault.Invalid, pkg, "AZURE_STORAGE_CONNECTION_STRING, or what stands for it, names no account with a key or a signature")
	}
	a.host = u.Host
	s.home = a
	return nil
}

// defaultToken returns the default credential of Azure.
func (s *Store) defaultToken() (azcore.TokenCredential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == nil {
		c, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, fault.New(fault.Invalid, pkg, "the environment has no credentials of use").Because(err)
		}
		s.token = login{c}
	}
	return s.token, nil
}

// login is the default credential. Its errors list all the ways it has tried, over many lines, and what was answered.
type login struct{ azcore.TokenCredential }

func (l login) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := l.TokenCredential.GetToken(ctx, o)
	var refused *azidentity.AuthenticationFailedError
	switch {
	case err == nil:
		return token, nil
	case ctx.Err() != nil:
		return token, ctx.Err()
	case errors.As(err, &refused):
		return token, fault.New(nil, pkg, "the login is refused, of the environment, of a workload, of this machine, or of az login")
	}
	return token, fault.New(nil, pkg, "there are no credentials: no connection string, key or signature, and no login of the environment, of a workload, of "+
		"this machine, or of az login; AZURE_NO_SIGN_REQUEST=YES reads what is public")
}

// blobURL is what a URL names.
type blobURL struct {
	url     string
	account *account
	place   string // what stands before the name of the blob
	box     string // the container
	key     string
}

func (s *Store) parse(url string) (blobURL, error) {
	place, key, err := store.Split(pkg, "azblob", url)
	if err != nil {
		return blobURL{}, err
	}
	b := blobURL{url: url, account: s.home, place: "azblob://" + place + "/", box: place, key: key}
	switch {
	case strings.ContainsAny(place, ".:"):
		if b.account, err = s.at(url, place); err != nil {
			return b, err
		}
		b.box, b.key, _ = strings.Cut(key, "/")
		b.place += b.box + "/"
	case s.home == nil:
		return b, fault.New(fault.Invalid, pkg, "neither the URL nor the environment (AZURE_STORAGE_ACCOUNT) names an account").In(url)
	}
	if b.box == "" || strings.Trim(b.box, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" && b.box != "$root" && b.box != "$web" && b.box != "$logs" {
		return b, fault.New(fault.Invalid, pkg, "container %q, of small letters, digits and - alone", b.box).In(url)
	}
	return b, nil
}

// parseBlob is parse for a URL that names a blob.
func (s *Store) parseBlob(url string) (blobURL, error) {
	b, err := s.parse(url)
	if err == nil && b.key == "" {
		err = fault.New(fault.Invalid, pkg, "the URL names no blob").In(url)
	}
	return b, err
}

// at returns the account at a host.
func (s *Store) at(name, host string) (*account, error) {
	if s.home != nil && host == s.home.host {
		return s.home, nil
	}
	known := false
	for _, end := range azureHosts {
		first, ok := strings.CutSuffix(host, end)
		known = known || ok && first != "" && strings.Trim(first, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
	}
	if !known {
		return nil, fault.New(fault.Invalid, pkg, "%s is neither a host of Azure Storage nor the one that the environment names", host).In(name)
	}
	var token azcore.TokenCredential
	if !s.anonymous {
		var err error
		if token, err = s.defaultToken(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.others[host]; a != nil {
		return a, nil
	}
	client := func(o azcore.ClientOptions) (*service.Client, error) {
		c := &service.ClientOptions{ClientOptions: o}
		if token == nil {
			return service.NewClientWithNoCredential("https://"+host, c)
		}
		return service.NewClient("https://"+host, token, c)
	}
	a := &account{host: host, token: token, unsigned: token == nil}
	var err error
	if a.once, err = client(s.once); err == nil {
		a.again, err = client(s.again)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, pkg, "account %s", host).In(name).Because(err)
	}
	s.others[host] = a
	return a, nil
}

// List gives the blobs whose URL begins with the prefix, azblob://container/ for all, ordered by name. It ends after an error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error] {
	return func(yield func(remote.Entry, error) bool) {
		at, err := s.parse(prefix)
		if err != nil {
			yield(remote.Entry{}, err)
			return
		}
		pages := at.account.again.NewContainerClient(at.box).NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &at.key})
		asked, stop := store.Budgeted(ctx)
		defer stop(nil)
		var circle store.Circle
		circle.Closed("")
		for pages.More() {
			page, err := pages.NextPage(asked)
			if cause := context.Cause(asked); errors.Is(cause, fault.Limit) {
				yield(remote.Entry{}, fault.Locate(cause, prefix, "", 0))
				return
			}
			if err != nil {
				yield(remote.Entry{}, at.failed("list", err))
				return
			}
			if next := page.NextMarker; next != nil && *next != "" && circle.Closed(*next) {
				yield(remote.Entry{}, store.Circles(pkg, prefix))
				return
			}
			if page.Segment == nil {
				continue
			}
			for _, item := range page.Segment.BlobItems {
				if item == nil || item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil {
					yield(remote.Entry{}, fault.New(fault.Corrupt, pkg, "the list of the store has a blob without name or length").In(prefix))
					return
				}
				e := remote.Entry{Name: at.place + *item.Name, Size: *item.Properties.ContentLength}
				if tag := item.Properties.ETag; tag != nil && *tag != "" {
					e.Version = `"` + strings.Trim(string(*tag), `"`) + `"` // a list has no quotes around it, an answer has
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// failed is the error of a request of a client.
func (b *blobURL) failed(doing string, err error) error {
	var r *azcore.ResponseError
	if !errors.As(err, &r) {
		return store.Failed(pkg, b.url, doing, err)
	}
	return store.Refused(pkg, b.url, doing, r.StatusCode, b.account.explained(r.StatusCode, r.ErrorCode))
}

// explained adds to the message of a failure what the store does not say.
func (a *account) explained(status int, message string) string {
	if a.unsigned && (status == 401 || status == 403 || status == 404 || status == 409) { // it says all of these of what is not public
		return store.Join(message, "the request was sent without credentials")
	}
	return message
}
