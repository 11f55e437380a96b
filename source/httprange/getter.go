package httprange

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/secret"
	"github.com/spilehq/spile/source/remote"
)

// maxRedirects is what browsers and curl are near to.
const maxRedirects = 10

// getter is the object at a URL.
type getter struct {
	client http.Client
	origin *url.URL // without a name and password
	user   *url.Userinfo
	header http.Header
	moved  atomic.Pointer[url.URL] // where redirects have led
}

// newGetter returns the getter of the object at an http or https URL. The header is sent to the host of the URL alone.
func newGetter(rawURL string, client *http.Client, header http.Header) (remote.Getter, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	g := &getter{client: *client, user: u.User, header: header}
	g.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	g.origin = u
	return g, nil
}

func (g *getter) Name() string { return name(g.origin) }

// Get begins where redirects have led before: an object that moved costs its redirects once. When that place no longer
// gives it, as when a signature has run out, it begins at the URL again.
func (g *getter) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	u := g.moved.Load()
	remembered := u != nil
	if u == nil {
		u = g.origin
	}
	for hops := 0; ; hops++ {
		resp, err := g.send(ctx, u, r)
		if err != nil {
			return nil, g.failure(err)
		}
		next, wrong := redirect(u, resp)
		if remembered && expired(resp.StatusCode) {
			g.moved.Store(nil)
			next = g.origin
		}
		remembered = false
		if next != nil && hops == maxRedirects {
			next, wrong = nil, fmt.Sprintf("more than %d redirects", maxRedirects)
		}
		if next == nil {
			if hops > 0 && resp.StatusCode == http.StatusPartialContent {
				g.moved.Store(u)
			}
			return response(resp, wrong), nil
		}
		came, _ := io.CopyN(io.Discard, resp.Body, 64<<10)
		resp.Body.Close()
		if r.Again != nil {
			if err := r.Again(came); err != nil {
				return nil, err
			}
		}
		u = next
	}
}

// expired reports whether an answer may be that of a place which was good for some time only.
func expired(status int) bool {
	switch status {
	case 400, 401, 403, 404, 410:
		return true
	}
	return false
}

// redirect is where an answer leads to, nil when it leads nowhere, or, as wrong says, nowhere that is followed.
func redirect(from *url.URL, resp *http.Response) (to *url.URL, wrong string) {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
	default:
		return nil, ""
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	switch {
	case err != nil || resp.Header.Get("Location") == "" || to.Host == "" && to.Scheme == from.Scheme:
		return nil, "leads to no URL"
	case to.Scheme != "https" && (to.Scheme != "http" || from.Scheme == "https"):
		return nil, fmt.Sprintf("leads from %s to %q", from.Scheme, to.Scheme)
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	return to, ""
}

// send sends one request, with the range and the conditions.
func (g *getter) send(ctx context.Context, u *url.URL, r remote.Request) (*http.Response, error) {
	// The transport sends a request again, unasked, when it broke on a connection that was used before.
	var written atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			written.Add(1)
		}
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if u.Scheme == g.origin.Scheme && u.Host == g.origin.Host {
		for key, values := range g.header {
			req.Header[key] = values
		}
		if g.user != nil {
			password, _ := g.user.Password()
			req.SetBasicAuth(g.user.Username(), password)
		}
	}
	req.Header.Set("User-Agent", "spile")
	req.Header.Set("Accept-Encoding", "identity")
	if r.Suffix {
		req.Header.Set("Range", fmt.Sprintf("bytes=-%d", r.Len))
	} else {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.Start, r.Start+r.Len-1))
	}
	switch {
	case strings.HasPrefix(r.Version, `"`):
		req.Header.Set("If-Match", r.Version)
	case isTime(r.Version): // and no ETag, weak or without its quotes
		req.Header.Set("If-Unmodified-Since", r.Version)
	}
	resp, err := g.client.Do(req)
	for again := written.Load() - 1; again > 0 && r.Again != nil; again-- {
		if refused := r.Again(0); refused != nil {
			if err == nil {
				resp.Body.Close()
			}
			return nil, refused
		}
	}
	return resp, err
}

func isTime(version string) bool {
	_, err := http.ParseTime(version)
	return err == nil
}

func (g *getter) fault(format string, args ...any) *fault.Error {
	return fault.New(nil, "httprange", format, args...).In(g.Name())
}

// failure is the error of a request without an answer. One that no retry mends is a [*fault.Error].
func (g *getter) failure(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if u, ok := errors.AsType[*url.Error](err); ok { // whose text has the URL in it
		err = u.Err
	}
	err = secret.Answer(err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, isTLS := errors.AsType[*tls.CertificateVerificationError](err)
	if isDNS && dns.IsNotFound || isTLS || errors.Is(err, http.ErrSchemeMismatch) {
		return g.fault("").Because(err)
	}
	return err
}

// response says what an answer is, and what is wrong with it, when it is a redirect.
func response(resp *http.Response, wrong string) *remote.Response {
	r := &remote.Response{
		Status: resp.StatusCode, Length: resp.ContentLength, Version: resp.Header.Get("ETag"),
		Encoding: resp.Header.Get("Content-Encoding"), RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
		Message: cmp.Or(wrong, http.StatusText(resp.StatusCode)), Body: resp.Body,
	}
	if r.Version == "" {
		r.Version = resp.Header.Get("Last-Modified")
	}
	r.Start, r.End, r.Size = contentRange(resp.Header.Get("Content-Range"))
	return r
}

// contentRange reads "bytes 0-9/100", "bytes 0-9/*" and "bytes */100". What is not said is -1.
func contentRange(text string) (start, end, size int64) {
	none := func() (int64, int64, int64) { return -1, -1, -1 }
	unit, text, _ := strings.Cut(strings.TrimSpace(text), " ")
	part, whole, ok := strings.Cut(text, "/")
	if !strings.EqualFold(unit, "bytes") || !ok {
		return none()
	}
	start, end, size = -1, -1, -1
	if whole != "*" {
		if size, ok = number(whole); !ok {
			return none()
		}
	}
	if part == "*" {
		return start, end, size
	}
	first, last, _ := strings.Cut(part, "-")
	a, okA := number(first)
	b, okB := number(last)
	if !okA || !okB || b < a || b == math.MaxInt64 {
		return none()
	}
	return a, b + 1, size
}

// number reads decimal digits and nothing else.
func number(text string) (int64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	return int64(n), err == nil
}

// retryAfter reads a number of seconds or a date.
func retryAfter(text string) time.Duration {
	if n, ok := number(text); ok {
		return time.Duration(min(n, int64(math.MaxInt64/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}
