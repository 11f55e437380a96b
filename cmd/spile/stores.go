package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/spilehq/spile/adapters/azure"
	"github.com/spilehq/spile/adapters/gcs"
	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/diskcache"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// store is where objects with URLs of a scheme are.
type store interface {
	Getter(url string) (remote.Getter, error)
	Create(ctx context.Context, url string, o *remote.WriteOptions) (*remote.Writer, error)
	List(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error]
	Close()
}

// stores keeps what is needed to talk to stores, from the first use on.
type stores struct {
	mu    sync.Mutex
	http  *http.Client
	known map[string]store // by scheme
	cache *diskcache.Cache
}

// of is the store of a URL that is not one of HTTP.
func (s *stores) of(ctx context.Context, url string) (store, error) {
	scheme, _, _ := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.known[scheme]; found != nil {
		return found, nil
	}
	var made store
	var err error
	switch scheme {
	case "s3":
		made, err = s3.New(ctx, nil)
	case "gs":
		made, err = gcs.New(ctx, nil)
	case "azblob":
		made, err = azure.New(ctx, nil)
	default:
		err = fault.New(fault.UnsupportedVersion, "", "is in a store that is not read by this version").In(shown(url))
	}
	if err != nil {
		return nil, err
	}
	if s.known == nil {
		s.known = make(map[string]store)
	}
	s.known[scheme] = made
	return made, nil
}

// open opens an object of a store, through the cache where there is one.
func (s *stores) open(ctx context.Context, url string, f *remoteFlags, o remote.Options) (source.Object, error) {
	cache, err := s.openCache(f)
	if err != nil {
		return nil, err
	}
	if cache == nil {
		return s.ask(ctx, url, o)
	}
	if f.offline {
		obj, err := cache.Offline(url, shown(url), o.Meter)
		if err == nil {
			o.Meter.Opened(obj.Size())
		}
		return obj, err
	}
	o.Head = diskcache.BlockSize // and not what is known to be read first: the cache reads the whole block around that
	if _, ok := cache.Known(url); ok {
		o.Head = 1 // which shows whether the version is still the same
	}
	obj, err := s.ask(ctx, url, o)
	if err != nil {
		return nil, err
	}
	return cache.Object(url, obj, o.Meter), nil
}

// ask opens an object without a cache.
func (s *stores) ask(ctx context.Context, url string, o remote.Options) (source.Object, error) {
	if isHTTP(url) {
		return httprange.OpenURL(ctx, url, &httprange.Options{Options: o, Client: s.client()})
	}
	at, err := s.of(ctx, url)
	if err != nil {
		return nil, err
	}
	g, err := at.Getter(url)
	if err != nil {
		return nil, err
	}
	return remote.Open(ctx, g, &o)
}

// storeOf is the store of a URL for what it alone can do: list objects, and make them.
func (e *env) storeOf(ctx context.Context, url string) (store, error) {
	if e.remote.offline {
		return nil, usagef("%s: --offline asks nobody, and only the store lists objects and makes them", shown(url))
	}
	return e.shared.stores.of(ctx, url)
}

// list gives the objects whose URL begins with a prefix.
func (e *env) list(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error] {
	at, err := e.storeOf(ctx, prefix)
	if err != nil {
		return func(yield func(remote.Entry, error) bool) { yield(remote.Entry{}, err) }
	}
	return at.List(ctx, prefix)
}

// storeOutput is an output in a store.
type storeOutput struct {
	*remote.Writer
	ctx   context.Context
	cache *diskcache.Cache // nil without one
	url   string
}

func (s *storeOutput) Commit(ctx context.Context) error {
	err := s.Writer.Commit(ctx)
	if err == nil && s.cache != nil {
		s.cache.Made(s.url)
	}
	return err
}

// createStored begins an output in a store. Its first bytes are held back: the header of a document is known last.
func (e *env) createStored(ctx context.Context, url string) (output, error) {
	if isHTTP(url) {
		return nil, usagef("%s: nothing is written over HTTP", shown(url))
	}
	at, err := e.storeOf(ctx, url)
	if err != nil {
		return nil, err
	}
	cache, err := e.shared.stores.openCache(&e.remote)
	if err != nil {
		return nil, err
	}
	w, err := at.Create(ctx, url, &remote.WriteOptions{Hold: msglc.PrefixSize, NoOverwrite: e.keep})
	if err != nil {
		return nil, err
	}
	return &storeOutput{w, ctx, cache, url}, nil
}

// Copy appends bytes of an object, which the store copies by itself when it has the object.
func (s *storeOutput) Copy(ctx context.Context, obj source.Object, start, n int64) error {
	if kept, ok := obj.(*onceRead); ok {
		obj = kept.Object
	}
	if at, ok := obj.(*atStore); ok { // as a whole, and not a section of it
		_, err := s.Writer.Copy(ctx, at.Object, start, n)
		return err
	}
	_, err := io.Copy(s.Writer, source.NewReader(ctx, obj, start, n, 0))
	return err
}

// Abort removes what was sent, also when the run was asked to end.
func (s *storeOutput) Abort() { _ = s.Writer.Abort(context.WithoutCancel(s.ctx)) }

func (s *stores) client() *http.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		s.http = httprange.NewClient()
	}
	return s.http
}

// openCache opens the cache that the flags name, nil when they name none.
func (s *stores) openCache(f *remoteFlags) (*diskcache.Cache, error) {
	if f.cache.dir == "" {
		if f.offline {
			return nil, usagef("--offline reads what --cache DIR has, and there is no --cache")
		}
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil {
		var err error
		if s.cache, err = diskcache.Open(f.cache.dir, f.cache.size); err != nil {
			return nil, err
		}
	}
	return s.cache, nil
}

// close ends the connections that are kept for further requests.
func (s *stores) close() {
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
	for _, at := range s.known {
		at.Close()
	}
}

// cacheFlag is the value of --cache: DIR or DIR,SIZE.
type cacheFlag struct {
	dir  string
	size int64
}

func (c *cacheFlag) Set(text string) error {
	*c = cacheFlag{dir: text}
	if at := strings.LastIndexByte(text, ','); at >= 0 {
		var s size
		if err := s.Set(text[at+1:]); err != nil {
			return err
		}
		*c = cacheFlag{text[:at], int64(s)}
	}
	if c.dir == "" {
		return errors.New("want a folder, DIR or DIR,SIZE")
	}
	return nil
}

func (c *cacheFlag) String() string { return c.dir }

func (c *cacheFlag) Type() string { return "DIR[,SIZE]" }
