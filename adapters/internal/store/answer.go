package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/secret"
	"github.com/spilehq/spile/source/remote"
)

const (
	// errorBody bounds how much of the body of a failure is read; stores send less than a KiB.
	errorBody = 64 << 10

	// answerBody bounds the answers that are no bytes of an object: libraries read them whole, and what is behind them. The
	// longest is a page of a list of Azure, of 5,000 names of up to 1,024 characters.
	answerBody = 64 << 20
)

// Recorder is a transport that keeps the answer to the last request made with a context of [Record], as it came, since the
// libraries of the stores give their own view of it. It follows no redirect.
type Recorder struct{ Base http.RoundTripper }

// Record is where a Recorder keeps an answer.
type Record struct {
	Response *http.Response // its body is that which the library reads
	Failure  bytes.Buffer   // what has been read of the body, when the status is a failure
	Lost     bool           // a request of the context has got no answer
}

type recordKey struct{}

// Keep returns a context whose requests are kept in the returned record.
func Keep(ctx context.Context) (context.Context, *Record) {
	rec := &Record{}
	return context.WithValue(ctx, recordKey{}, rec), rec
}

type headerKey struct{}

// WithHeader returns a context whose requests have a header that the library cannot be told to send. It is not signed, which
// headers need not be that say no more than a condition.
func WithHeader(ctx context.Context, name, value string) context.Context {
	return context.WithValue(ctx, headerKey{}, [2]string{name, value})
}

// RoundTrip sends the request.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if h, ok := req.Context().Value(headerKey{}).([2]string); ok {
		req = req.Clone(req.Context())
		req.Header.Set(h[0], h[1])
	}
	resp, err := r.Base.RoundTrip(req)
	if rec, ok := req.Context().Value(recordKey{}).(*Record); ok {
		rec.Response = resp
		rec.Lost = rec.Lost || err != nil
		if err == nil && resp.StatusCode >= 300 {
			resp.Body = &tee{resp.Body, &rec.Failure}
		}
	}
	if err == nil {
		switch ranged := req.Header.Get("Range") != "" || req.Header.Get("x-ms-range") != ""; {
		case resp.StatusCode >= 300:
			resp.Body = &bounded{resp.Body, errorBody, io.EOF}
		case !ranged:
			resp.Body = &bounded{resp.Body, answerBody, fault.New(fault.Limit, "", "the answer of the store is longer than %d bytes", answerBody)}
		}
		if answered, ok := req.Context().Value(answeredKey{}).(func(*url.URL)); ok && resp.StatusCode < 300 {
			answered(req.URL)
		}
	}
	return resp, err
}

type answeredKey struct{}

// Answered returns a context of whose requests the URLs are told that were answered by a success.
func Answered(ctx context.Context, tell func(*url.URL)) context.Context {
	return context.WithValue(ctx, answeredKey{}, tell)
}

// bounded is a body of which so many bytes are left to be read at most. Behind them comes the error.
type bounded struct {
	io.ReadCloser
	left int64
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Do sends the request; it makes a transport of the Azure library.
func (r *Recorder) Do(req *http.Request) (*http.Response, error) { return r.RoundTrip(req) }

// tee keeps what is read, up to errorBody bytes.
type tee struct {
	io.ReadCloser
	to *bytes.Buffer
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.to.Write(p[:min(n, max(0, errorBody-t.to.Len()))])
	return n, err
}

// Close reads what is left first, which a library may have no use for: it came, and is counted.
func (t *tee) Close() error {
	io.CopyN(io.Discard, t, errorBody)
	return t.ReadCloser.Close()
}

// Answer makes a Response of the headers of an answer. Its Body is the failure's, when it is one, and otherwise to be set, as
// is the version.
func (rec *Record) Answer() *remote.Response {
	resp := rec.Response
	h := resp.Header
	r := &remote.Response{
		Status: resp.StatusCode, Start: -1, End: -1, Size: -1, Length: -1,
		Encoding:   h.Get("Content-Encoding"),
		RetryAfter: retryAfter(h.Get("Retry-After"), time.Now()),
	}
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		r.Length = n
	}
	r.Start, r.End, r.Size = contentRange(h.Get("Content-Range"))
	if resp.StatusCode >= 300 {
		resp.Body.Close()
		r.Message = Message(rec.Failure.Bytes())
		r.Body = io.NopCloser(bytes.NewReader(rec.Failure.Bytes()))
	}
	return r
}

// contentRange parses "bytes 0-9/100", "bytes 0-9/*" and "bytes */100". What is not said is -1.
func contentRange(s string) (start, end, size int64) {
	start, end, size = -1, -1, -1
	unit, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	span, whole, ok := strings.Cut(rest, "/")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return
	}
	if n, ok := digits(whole); ok {
		size = n
	}
	first, last, ok := strings.Cut(strings.TrimSpace(span), "-")
	a, okFirst := digits(first)
	b, okLast := digits(last)
	if ok && okFirst && okLast && a <= b && b < 1<<63-1 {
		start, end = a, b+1
	}
	return
}

func digits(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63) // takes no sign
	return int64(n), err == nil
}

// retryAfter parses seconds or a time.
func retryAfter(s string, now time.Time) time.Duration {
	if n, ok := digits(s); ok {
		return time.Duration(min(n, 1<<32)) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// Message is what the body of a failure says, in one line: the code and the first line of the message of an XML or a JSON
// document, or the first line of a short text. The rest is left out: stores repeat there what was signed.
func Message(body []byte) string {
	var x struct {
		Code    string
		Message string
	}
	var j struct {
		Error struct {
			Code    any
			Message string
		}
	}
	switch {
	case xml.Unmarshal(body, &x) == nil && x.Code != "":
		return join(x.Code, x.Message)
	case json.Unmarshal(body, &j) == nil && j.Error.Message != "":
		return join("", j.Error.Message)
	case len(body) < 1000 && utf8.Valid(body) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		return join("", string(body))
	}
	return ""
}

func join(code, message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	if message = strings.TrimSpace(message); len(message) > 300 {
		message = strings.ToValidUTF8(message[:300], "") + "…"
	}
	if code != "" && message != "" {
		code += ": "
	}
	return fault.OneLine(code + message)
}

// Join adds to what a store says.
func Join(message, more string) string {
	if message == "" {
		return more
	}
	return message + "; " + more
}

// Refused is the error for an answer that is a failure. What was being done is, for example, "begin an upload".
func Refused(pkg, name, doing string, status int, message string) error {
	if message != "" {
		message = ": " + message
	}
	e := fault.New(nil, pkg, "cannot %s: the store answers %d%s", doing, status, message).In(name)
	switch status {
	case 401, 403:
		e.Err = quiet{fs.ErrPermission}
	case 404, 410:
		e.Class = fault.NotFound
	case 409, 412:
		e.Class = fault.Conflict
	}
	return e
}

// Exists is the error for an object that is there and must not be replaced.
func Exists(pkg, name string) error {
	return fault.New(fault.Conflict, pkg, "there is an object under this name, and it is not to be replaced").In(name)
}

// quiet is a cause for programs, without text.
type quiet struct{ error }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.error }

// Cause is the error of a request that got no answer, without the URL of the request, which may hold a signature. Where no
// further try can help it is a [*fault.Error]: the certificate is not trusted, the server does not speak TLS, there are no
// credentials.
func Cause(pkg, name string, err error) error {
	for {
		var u *url.Error
		if !errors.As(err, &u) {
			break
		}
		err = u.Err
	}
	err = secret.Answer(err)
	if trust(err) {
		return fault.New(nil, pkg, "").In(name).Because(err)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return fault.Locate(f, name, "", 0)
	}
	return err
}

// trust reports whether an error is one about whom the server is.
func trust(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		host        x509.HostnameError
		invalid     x509.CertificateInvalidError
		record      tls.RecordHeaderError
	)
	return errors.As(err, &certificate) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &record) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// Failed is the error of a request that got no answer, for callers who do not try again.
func Failed(pkg, name, doing string, err error) error {
	err = Cause(pkg, name, err)
	if f, ok := err.(*fault.Error); ok {
		return f
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // which has no text of its own in a fault
		return fault.New(nil, pkg, "cannot %s: the answer breaks off", doing).In(name).Because(err)
	}
	return fault.New(nil, pkg, "cannot %s", doing).In(name).Because(err)
}

// NewTransport is a transport for a store. It waits for answers without limit: [Limit] and [remote.Open] have one. Bodies are not
// unpacked, and as many connections are kept as requests run at once.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
	}
}
