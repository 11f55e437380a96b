package main

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/diskcache"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// stores keeps what is needed to talk to stores, from the first use on.
type stores struct {
	mu    sync.Mutex
	http  *http.Client
	cache *diskcache.Cache
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
	switch scheme, _, _ := strings.Cut(url, "://"); strings.ToLower(scheme) {
	case "http", "https":
		return httprange.OpenURL(ctx, url, &httprange.Options{Options: o, Client: s.client()})
	}
	return nil, fault.New(fault.UnsupportedVersion, "", "is in a store that is not read by this version").In(shown(url))
}

// list gives the objects whose URL begins with a prefix.
func (e *env) list(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error] {
	return func(yield func(remote.Entry, error) bool) {
		yield(remote.Entry{}, fault.New(fault.UnsupportedVersion, "", "is in a store that is not listed by this version").In(shown(prefix)))
	}
}

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
	return nil
}

func (c *cacheFlag) String() string { return c.dir }

func (c *cacheFlag) Type() string { return "DIR[,SIZE]" }
