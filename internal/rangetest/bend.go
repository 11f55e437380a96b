package rangetest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// From bends the n-th answer and those behind it.
func From(n int, f func(*Answer)) func(*Answer) {
	return func(a *Answer) {
		if a.N >= n {
			f(a)
		}
	}
}

// Only bends the n-th answer alone.
func Only(n int, f func(*Answer)) func(*Answer) {
	return func(a *Answer) {
		if a.N == n {
			f(a)
		}
	}
}

// Whole answers a range with the whole object.
func Whole(a *Answer) {
	if a.Status == http.StatusPartialContent || a.Status == http.StatusRequestedRangeNotSatisfiable {
		a.Status, a.Body = http.StatusOK, a.Data
		a.Header.Del("Content-Range")
	}
}

// Shifted answers with a Content-Range that begins a byte later.
func Shifted(a *Answer) { a.Header.Set("Content-Range", moved(a, 1)) }

// moved is the Content-Range of an answer, some bytes later.
func moved(a *Answer, by int64) string {
	var start, end, size int64
	fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &start, &end, &size)
	return fmt.Sprintf("bytes %d-%d/%d", start+by, end+by, size+by)
}

// Range sets the Content-Range.
func Range(text string) func(*Answer) {
	return func(a *Answer) {
		if a.Header.Del("Content-Range"); text != "" {
			a.Header.Set("Content-Range", text)
		}
	}
}

// Short ends the body after n bytes, in good order: with the Content-Length of what is there, or without one.
func Short(n int, declared bool) func(*Answer) {
	return func(a *Answer) {
		a.Body = a.Body[:min(n, len(a.Body))]
		if !declared {
			a.Header.Set("Content-Length", "-")
		}
	}
}

// Long adds n bytes to the body.
func Long(n int, declared bool) func(*Answer) {
	return func(a *Answer) {
		a.Body = append(bytes.Clone(a.Body), make([]byte, n)...)
		if !declared {
			a.Header.Set("Content-Length", "-")
		}
	}
}

// Cut breaks the connection behind n bytes of the body.
func Cut(n int) func(*Answer) { return func(a *Answer) { a.Cut = n } }

// Gzip compresses the body, asked or not.
func Gzip(a *Answer) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(a.Body)
	z.Close()
	a.Body = b.Bytes()
	a.Header.Set("Content-Encoding", "gzip")
}

// ETag sets the version, "" for none, whatever the conditions of the request were.
func ETag(version string) func(*Answer) {
	return func(a *Answer) {
		if a.Header.Del("ETag"); version != "" {
			a.Header.Set("ETag", version)
		}
	}
}

// Status answers with a status alone, and with Retry-After unless that is "".
func Status(status int, retryAfter string) func(*Answer) {
	return func(a *Answer) {
		a.Status, a.Body = status, []byte(strings.ToLower(http.StatusText(status))+"\n")
		a.Header = make(http.Header)
		if retryAfter != "" {
			a.Header.Set("Retry-After", retryAfter)
		}
	}
}

// Redirect answers with a redirect.
func Redirect(status int, to string) func(*Answer) {
	return func(a *Answer) {
		Status(status, "")(a)
		a.Header.Set("Location", to)
	}
}

// Drip sends the body in 64 parts, and waits before each.
func Drip(d time.Duration) func(*Answer) { return func(a *Answer) { a.Drip = d } }

// Hang never answers.
func Hang(a *Answer) { a.Hang = true }

// Clip answers with at most n bytes of the range, and says so.
func Clip(n int) func(*Answer) {
	return func(a *Answer) {
		if a.Status == http.StatusPartialContent && len(a.Body) > n {
			var start, end, size int64
			fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &start, &end, &size)
			a.Body = a.Body[:n]
			a.Header.Set("Content-Range", "bytes "+strconv.FormatInt(start, 10)+"-"+strconv.FormatInt(start+int64(n)-1, 10)+"/"+strconv.FormatInt(size, 10))
		}
	}
}
