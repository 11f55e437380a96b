package main

import (
	"context"
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/secret"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// remoteFlags say how objects are read over a network. They go with every verb.
type remoteFlags struct {
	full    fullDownload
	tail    size
	timeout time.Duration
	retries int
	cache   cacheFlag
	offline bool
}

func (f *remoteFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.full, "allow-full-download", "read a URL whose server gives no ranges, all of it, if it has at most MAX bytes; without MAX of any size")
	flags.Lookup("allow-full-download").NoOptDefVal = anySize
	flags.Var(&f.tail, "tail", "ask for the last N bytes of a URL together with the first ones")
	flags.DurationVar(&f.timeout, "timeout", remote.DefaultTimeout, "how long a request to a server may take to be answered, and again for each MiB that comes or is sent")
	flags.IntVar(&f.retries, "retries", remote.DefaultRetries, "send a request that failed again, up to `N` times")
	flags.Var(&f.cache, "cache", "keep what is read of URLs in the folder DIR, up to SIZE bytes (1GiB), for this run and others")
	flags.BoolVar(&f.offline, "offline", false, "read of URLs what --cache has, and ask nobody")
}

// fullDownload is the value of --allow-full-download: 0 for no, below 0 for any size.
type fullDownload int64

// anySize is the value of the flag without one, which help shows in brackets.
const anySize = "MAX"

func (d *fullDownload) Set(text string) error {
	if text == anySize {
		*d = -1
		return nil
	}
	var s size
	err := s.Set(text)
	*d = fullDownload(s)
	return err
}

func (d *fullDownload) String() string {
	switch {
	case *d == 0:
		return ""
	case *d < 0:
		return anySize
	}
	s := size(*d)
	return s.String()
}

func (d *fullDownload) Type() string { return "" } // the value is optional, and stands behind = alone

// options are the options of an object that is opened over a network. Its requests are charged to the meter.
func (e *env) remoteOptions() (remote.Options, error) {
	f := &e.remote
	switch {
	case f.timeout <= 0:
		return remote.Options{}, usagef("--timeout %v, want more than 0", f.timeout)
	case f.retries < 0:
		return remote.Options{}, usagef("--retries %d, want 0 or more", f.retries)
	}
	o := remote.Options{MaxFullDownload: int64(f.full), Tail: int64(f.tail), Timeout: f.timeout, Retries: f.retries, Meter: e.budget()}
	if o.Retries == 0 {
		o.Retries = -1
	}
	return o, nil
}

// isURL reports whether a FILE argument names an object of a store, and no file of this machine.
func isURL(arg string) bool {
	switch scheme, _, ok := strings.Cut(arg, "://"); strings.ToLower(scheme) {
	case "http", "https", "s3", "gs", "azblob":
		return ok
	}
	return false
}

// isHTTP reports whether a URL is one of a server of files, and not of a store with an interface of its own.
func isHTTP(url string) bool {
	scheme, _, ok := strings.Cut(url, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// shown is a FILE argument as messages and results show it: of a URL without what is secret in it. The URLs of stores hold
// no secrets, and are refused when they do.
func shown(arg string) string {
	switch {
	case isHTTP(arg):
		return httprange.Name(arg)
	case isURL(arg):
		return secret.URL(arg)
	}
	return arg
}

// atStore is an object of a store. Its requests are counted where they are made.
type atStore struct {
	source.Object
	url string
}

// openURL opens an object of a store.
func (e *env) openURL(ctx context.Context, arg string) (source.Object, error) {
	o, err := e.remoteOptions()
	if err != nil {
		return nil, err
	}
	if err := e.spent(shown(arg), remote.DefaultHead); err != nil {
		return nil, err
	}
	obj, err := e.shared.stores.open(ctx, arg, &e.remote, o)
	_, noUUID := series.ParseUUID(path.Base(pathOf(arg)))
	switch missing := errors.Is(err, fault.NotFound); {
	case noUUID == nil && !folderURL(arg) && (missing || errors.Is(err, fault.Limit)): // a server may show a list in its place
		err = advised{err, "a URL of the folder of an artifact ends with a slash"}
	case missing && isHTTP(arg) && strings.ContainsAny(pathOf(arg), "*[{"):
		err = advised{err, "servers of files over HTTP do not list them, so a URL is one file and no pattern"}
	}
	if err != nil {
		return nil, err
	}
	return &atStore{obj, arg}, nil
}

// beside is the URL of what has the name in the folder of a URL; "" is the folder.
func beside(arg, name string) string {
	if !isHTTP(arg) {
		before := pathOf(arg)
		return before[:strings.LastIndexByte(before, '/')+1] + name
	}
	u, err := url.Parse(arg)
	if err != nil { // it was opened by then
		return arg
	}
	escaped := u.EscapedPath() // in which %2F is no slash
	escaped = escaped[:strings.LastIndexByte(escaped, '/')+1] + (&url.URL{Path: name}).EscapedPath()
	if path, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = path, escaped
	}
	return u.String()
}

// pathOf is a URL without its query, or without the version that it names.
func pathOf(arg string) string {
	if !isHTTP(arg) {
		return storeVersion.ReplaceAllString(arg, "")
	}
	if at := strings.IndexAny(arg, "?#"); at >= 0 {
		return arg[:at]
	}
	return arg
}

// storeVersion is how the URL of an object of a store names a version.
var storeVersion = regexp.MustCompile(`\?versionId=[^/]*$|#[0-9]+$`)

// behind is a URL with something behind its path, in front of the query.
func behind(arg, suffix string) string {
	before := pathOf(arg)
	return before + suffix + arg[len(before):]
}

// folderURL reports whether a FILE argument is the URL of a folder: its path ends with a slash.
func folderURL(arg string) bool {
	_, place, _ := strings.Cut(pathOf(arg), "://")
	return isURL(arg) && place != "" && strings.HasSuffix(place, "/")
}

// local copies an object of a store to a temporary file, for those who read it more than once. Another object is returned
// as it is. After an error the object is closed.
func local(ctx context.Context, obj source.Object) (source.Object, error) {
	_, stored := obj.(*atStore)
	if _, kept := obj.(*onceRead); !stored && !kept {
		return obj, nil
	}
	copied, err := source.Spool(ctx, source.NewReader(ctx, obj, 0, obj.Size(), 0), obj.Name())
	if err != nil {
		obj.Close()
		return nil, err
	}
	return &spooledInput{copied, obj}, nil
}

// spooledInput is the copy of an object, which is closed with it.
type spooledInput struct {
	source.Object
	input source.Object
}

func (s *spooledInput) Close() error {
	s.Object.Close()
	return s.input.Close()
}

// onceRead is an object of a store that is read from front to back, perhaps several times: a plain file, in which each step
// of a path is a scan. What was read of it in a row from its first byte on is kept in a temporary file, and read there.
type onceRead struct {
	source.Object
	hits *atomic.Int64

	mu   sync.Mutex
	file *source.Temporary // nil until there is something to be kept
	have int64             // bytes from the front that are in it
}

// once keeps what is read of an object of a store. Another object is returned as it is.
func (e *env) once(obj source.Object) source.Object {
	if _, ok := obj.(*atStore); !ok {
		return obj
	}
	return &onceRead{Object: obj, hits: &e.shared.hits}
}

func (o *onceRead) ReadAt(ctx context.Context, p []byte, off int64) error {
	o.mu.Lock()
	file, have := o.file, o.have
	o.mu.Unlock()
	known := min(max(0, have-off), int64(len(p)))
	if off < 0 || known == 0 && off != have {
		return o.Object.ReadAt(ctx, p, off)
	}
	if known > 0 {
		if _, err := file.ReadAt(p[:known], off); err != nil {
			return o.Object.ReadAt(ctx, p, off)
		}
		if known == int64(len(p)) {
			o.hits.Add(1)
			return ctx.Err()
		}
	}
	fresh := p[known:]
	if err := o.Object.ReadAt(ctx, fresh, have); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.have != have { // somebody else has read the same
		return nil
	}
	if o.file == nil {
		made, err := source.CreateTemporary("")
		if err != nil { // the bytes are there all the same
			return nil
		}
		o.file = made
	}
	if _, err := o.file.WriteAt(fresh, have); err == nil {
		o.have += int64(len(fresh))
	}
	return nil
}

// forget frees what is kept of an object that is read on by itself.
func forget(obj source.Object) {
	o, ok := obj.(*onceRead)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
	}
	o.file, o.have = nil, 0
}

func (o *onceRead) Close() error {
	forget(o)
	return o.Object.Close()
}
