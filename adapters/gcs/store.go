package gcs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source/remote"
)

const pkg = "gcs"

// Options say which store is meant. Nil and the zero value take everything from the environment, as the package says.
type Options struct {
	// Endpoint is the URL of an emulator. It gets no credentials.
	Endpoint string
	// Anonymous sends requests without credentials.
	Anonymous bool
	// UserProject is the project that pays, where a bucket asks for that.
	UserProject string
	// Transport sends the requests to the store, but not those for credentials. By default it is one of the Store's own.
	Transport http.RoundTripper
	// Requests limits and counts the requests of lists and writers. Those of reads are the matter of who opens the object.
	Requests remote.Requests
}

// Store is a set of credentials and an endpoint.
type Store struct {
	base    string       // the endpoint, without a slash at the end
	reads   *http.Client // for reads of objects, which are limited and counted elsewhere
	client  *http.Client // for everything else
	tries   int
	project string
	open    bool // no credentials
	own     *http.Transport
}

// New returns a Store. It looks for credentials, which may take a request to the machine that the program runs on.
func New(ctx context.Context, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Store{base: "https://" + googleHost, project: o.UserProject, tries: store.Tries(&o.Requests)}
	if e := cmp.Or(o.Endpoint, os.Getenv("STORAGE_EMULATOR_HOST")); e != "" {
		if !strings.Contains(e, "://") {
			e = "http://" + e
		}
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
			return nil, fault.New(fault.Invalid, pkg, "the endpoint is no host and no URL of the form https://host")
		}
		s.base, s.open = u.Scheme+"://"+u.Host, true
	}
	var tokens oauth2.TokenSource
	if s.open = s.open || o.Anonymous || store.Yes(os.Getenv("GS_NO_SIGN_REQUEST")); !s.open {
		var err error
		if tokens, err = defaultTokens(ctx); err != nil {
			return nil, err
		}
		s.open = tokens == nil
	}
	base := o.Transport
	if base == nil {
		s.own = store.NewTransport()
		base = s.own
	}
	if tokens != nil {
		base = &signing{base, tokens}
	}
	client := func(base http.RoundTripper) *http.Client {
		return &http.Client{Transport: &store.Recorder{Base: base}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	s.reads, s.client = client(base), client(store.Limit(base, &o.Requests))
	return s, nil
}

// Close closes the connections that nobody uses. A transport of the options is left alone.
func (s *Store) Close() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}

// googleHost is the one host that gets credentials.
const googleHost = "storage.googleapis.com"

// defaultTokens returns the source of tokens of the default credentials, nil when there are none. It goes on to be used after
// the context has ended.
func defaultTokens(ctx context.Context) (oauth2.TokenSource, error) {
	found, err := until(ctx, func() (*google.Credentials, error) {
		return google.FindDefaultCredentials(context.WithoutCancel(ctx), "https://www.googleapis.com/auth/devstorage.read_write")
	})
	switch {
	case err == nil:
		return found.TokenSource, nil
	case ctx.Err() != nil:
		return nil, fault.New(nil, pkg, "no credentials could be had").Because(ctx.Err())
	case strings.Contains(err.Error(), "could not find default credentials"): // it has no type
		return nil, nil
	}
	// The text may hold what stands in the file.
	return nil, fault.New(fault.Invalid, pkg, "the default credentials cannot be read, of %s", cmp.Or(os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"), "gcloud"))
}

// until runs what takes no context, and does not wait for it longer than ctx lasts.
func until[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// signing adds a token to the requests to Google.
type signing struct {
	base   http.RoundTripper
	tokens oauth2.TokenSource
}

func (s *signing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" || r.URL.Host != googleHost {
		return s.base.RoundTrip(r)
	}
	token, err := until(r.Context(), s.tokens.Token)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		return nil, tokenFault(err)
	}
	r = r.Clone(r.Context())
	token.SetAuthHeader(r)
	return s.base.RoundTrip(r)
}

// tokenFault is the error of a token that could not be had: a fault when it was refused. What a server answers to that may
// repeat what it was sent, and is not shown.
func tokenFault(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case !errors.As(err, &refused) || refused.Response == nil:
		return fmt.Errorf("no token could be had: %w", store.Cause(pkg, "", err))
	case passing(refused.Response.StatusCode):
		return fmt.Errorf("no token could be had: the answer is %d", refused.Response.StatusCode)
	}
	return fault.New(nil, pkg, "no token could be had: the answer is %d", refused.Response.StatusCode)
}

// object is what a URL names.
type object struct{ url, bucket, key, generation string }

func parse(url string) (object, error) {
	bucket, key, err := store.Split(pkg, "gs", url)
	if err != nil {
		return object{}, err
	}
	if strings.Trim(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return object{}, fault.New(fault.Invalid, pkg, "bucket %q, of small letters, digits, - _ and . alone", bucket).In(url)
	}
	o := object{url: url, bucket: bucket, key: key}
	if i := strings.LastIndexByte(key, '#'); i >= 0 {
		if _, err := strconv.ParseUint(key[i+1:], 10, 63); err == nil {
			o.key, o.generation = key[:i], key[i+1:]
		}
	}
	return o, nil
}

// parseObject is parse for a URL that names an object.
func parseObject(url string) (object, error) {
	o, err := parse(url)
	if err == nil && (o.key == "" || o.key == "." || o.key == ".." || strings.ContainsAny(o.key, "\r\n")) {
		err = fault.New(fault.Invalid, pkg, "the URL names no object").In(url)
	}
	return o, err
}

// address is the URL of a request. The query is pairs of names and values; a pair without value is left out.
func (s *Store) address(path string, query ...string) string {
	q := make(url.Values)
	for i := 0; i < len(query); i += 2 {
		if query[i+1] != "" {
			q.Set(query[i], query[i+1])
		}
	}
	if s.project != "" {
		q.Set("userProject", s.project)
	}
	return s.base + path + "?" + q.Encode()
}

func bucketPath(bucket string) string { return "/storage/v1/b/" + bucket + "/o" }

func objectPath(bucket, key string) string { return bucketPath(bucket) + "/" + url.PathEscape(key) }

// List gives the objects whose URL begins with the prefix, gs://bucket/ for all, ordered by name. It ends after an error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error] {
	return func(yield func(remote.Entry, error) bool) {
		at, err := parse(prefix)
		if err == nil && at.generation != "" {
			err = fault.New(fault.Invalid, pkg, "a prefix has no generation").In(prefix)
		}
		pages, stop := store.Budgeted(ctx)
		defer stop(nil)
		var circle store.Circle
		for page := ""; err == nil; {
			if circle.Closed(page) {
				err = store.Circles(pkg, prefix)
				break
			}
			var list struct {
				Items []struct {
					Name       string
					Size       int64 `json:",string"`
					Generation string
				}
				NextPageToken string
			}
			var body []byte
			body, err = s.ask(pages, prefix, "list", request{
				method: http.MethodGet,
				url: s.address(bucketPath(at.bucket), "prefix", at.key, "pageToken", page,
					"fields", "items(name,size,generation),nextPageToken"),
			})
			if cause := context.Cause(pages); errors.Is(cause, fault.Limit) {
				err = fault.Locate(cause, prefix, "", 0)
			}
			if err == nil {
				if bad := json.Unmarshal(body, &list); bad != nil {
					err = fault.New(fault.Corrupt, pkg, "the list of the store cannot be read").In(prefix).Because(bad)
				}
			}
			if err != nil {
				break
			}
			for _, item := range list.Items {
				e := remote.Entry{Name: "gs://" + at.bucket + "/" + item.Name, Size: item.Size, Version: item.Generation}
				if named, bad := parse(e.Name); bad == nil && named.generation != "" { // the name ends as one with a generation does
					e.Name += "#" + item.Generation
				}
				if !yield(e, nil) {
					return
				}
			}
			if page = list.NextPageToken; page == "" {
				return
			}
		}
		yield(remote.Entry{}, err)
	}
}
