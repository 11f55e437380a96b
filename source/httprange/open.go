package httprange

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// Options say how an object is opened and read. Nil and the zero value are the defaults.
type Options struct {
	remote.Options
	// Client sends the requests. Objects that share one share its connections; without one, an object has a client of its
	// own. Its CheckRedirect is not used.
	Client *http.Client
	// Header is sent with each request to the host of the URL, and to no other.
	Header http.Header
}

// OpenURL opens the object at an http or https URL by one request, as [remote.Open] says.
func OpenURL(ctx context.Context, rawURL string, o *Options) (source.Object, error) {
	if o == nil {
		o = &Options{}
	}
	client := o.Client
	if client == nil {
		client = NewClient()
	}
	g, err := newGetter(rawURL, client, o.Header)
	if err != nil {
		return nil, err
	}
	obj, err := remote.Open(ctx, g, &o.Options)
	if o.Client != nil {
		return obj, err
	}
	if err != nil {
		client.CloseIdleConnections()
		return nil, err
	}
	return &owner{obj, client}, nil
}

// owner is an object with a client of its own.
type owner struct {
	source.Object
	client *http.Client
}

func (o *owner) Close() error {
	err := o.Object.Close()
	o.client.CloseIdleConnections()
	return err
}

// NewClient returns a client for many objects: it keeps as many connections to a host as there are requests at once, never
// unpacks a body, and uses the proxies that the environment names.
func NewClient() *http.Client {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial.DialContext,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConns:        64,
		MaxIdleConnsPerHost: 16, // as many as requests of an object run at once
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
}

// Name is a URL as messages show it: without a name and password, and without the values of its query. What is no URL is
// not shown.
func Name(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "a URL that cannot be read"
	}
	return name(u)
}

func name(u *url.URL) string {
	v := *u
	v.User, v.Fragment, v.RawFragment = nil, "", ""
	if v.RawQuery != "" {
		items := strings.Split(v.RawQuery, "&")
		for i, item := range items {
			key, _, ok := strings.Cut(item, "=")
			if items[i] = key + "=..."; !ok {
				items[i] = "..."
			}
		}
		v.RawQuery = strings.Join(items, "&")
	}
	return v.String()
}

// parse reads an http or https URL.
func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil: // which has the URL in it
		return nil, fault.New(fault.Invalid, "httprange", "cannot be read as a URL").In(Name(rawURL))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.New(fault.Invalid, "httprange", "has the scheme %q, want http or https", u.Scheme).In(name(u))
	case u.Hostname() == "":
		return nil, fault.New(fault.Invalid, "httprange", "names no host").In(name(u))
	}
	return u, nil
}
