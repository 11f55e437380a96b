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
	http        lazy[*http.Client]
	s3, gs, azb lazy[store]
	cache       lazy[*diskcache.Cache]
}

// lazy is what is made at the first use. Making it may take requests, so each has a lock of its own: a store that waits for
// credentials keeps nobody from another one. What could not be made is tried anew.
type lazy[T any] struct {
	mu   sync.Mutex
	made bool
	it   T
}

func (l *lazy[T]) get(make func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made {
		return l.it, nil
	}
	it, err := make()
	if err == nil {
		l.it, l.made = it, true
	}
	return it, err
}

// of is the store of a URL that is not one of HTTP.
func (s *stores) of(ctx context.Context, url string, o remote.Requests) (store, error) {
	scheme, _, _ := strings.Cut(url, "://")
	switch strings.ToLower(scheme) {
	case "s3":
		return s.s3.get(func() (store, error) { return s3.New(ctx, &s3.Options{Requests: o}) })
	case "gs":
		return s.gs.get(func() (store, error) { return gcs.New(ctx, &gcs.Options{Requests: o}) })
	case "azblob":
		return s.azb.get(func() (store, error) { return azure.New(ctx, &azure.Options{Requests: o}) })
	}
	return nil, fault.New(fault.UnsupportedVersion, "", "is in a store that is not read by this version").In(shown(url))
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
	at, err := s.of(ctx, url, remote.Requests{Retries: o.Retries, Timeout: o.Timeout, Meter: o.Meter})
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
	o, err := e.remoteOptions()
	if err != nil {
		return nil, err
	}
	return e.shared.stores.of(ctx, url, remote.Requests{Retries: o.Retries, Timeout: o.Timeout, Meter: o.Meter})
}

// list gives the objects whose URL begins with a prefix.
func (e *env) list(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error] {
	at, err := e.storeOf(ctx, prefix)
	if err == nil && (e.limits.maxBytes == 0 || e.limits.maxRequests == 0) { // which the meter takes for none
		err = fault.New(fault.Limit, "", "budget of 0: the list adds a request").In(shown(prefix))
	}
	if err != nil {
		return func(yield func(remote.Entry, error) bool) { yield(remote.Entry{}, err) }
	}
	return at.List(ctx, prefix)
}

// storeOutput is an output in a store.
type storeOutput struct {
	*remote.Writer
	env   *env
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
	return &storeOutput{w, e, ctx, cache, url}, nil
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
func (s *storeOutput) Abort() { s.env.discard(s.ctx, s.Writer) }

// discard ends writing an object, and says so when something may be left of it.
func (e *env) discard(ctx context.Context, w *remote.Writer) {
	if err := w.Abort(ctx); err != nil {
		e.say("warning: %s", message(err))
	}
}

func (s *stores) client() *http.Client {
	c, _ := s.http.get(func() (*http.Client, error) { return httprange.NewClient(), nil })
	return c
}

// openCache opens the cache that the flags name, nil when they name none.
func (s *stores) openCache(f *remoteFlags) (*diskcache.Cache, error) {
	if f.cache.dir == "" {
		if f.offline {
			return nil, usagef("--offline reads what --cache DIR has, and there is no --cache")
		}
		return nil, nil
	}
	return s.cache.get(func() (*diskcache.Cache, error) { return diskcache.Open(f.cache.dir, f.cache.size) })
}

// close ends the connections that are kept for further requests.
func (s *stores) close() {
	if s.http.made {
		s.http.it.CloseIdleConnections()
	}
	for _, at := range []*lazy[store]{&s.s3, &s.gs, &s.azb} {
		if at.made {
			at.it.Close()
		}
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
