package gcs

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/source/remote"
)

// Getter returns what reads an object, by single requests. It sends none itself.
func (s *Store) Getter(url string) (remote.Getter, error) {
	o, err := parseObject(url)
	if err != nil {
		return nil, err
	}
	return &getter{s, o}, nil
}

type getter struct {
	store *Store
	object
}

func (g *getter) Name() string { return g.url }

func (g *getter) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	generation := g.generation
	if generation == "" {
		generation = r.Version
	}
	ctx, rec := store.Keep(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.store.address(objectPath(g.bucket, g.key), "alt", "media", "generation", generation), nil)
	if err != nil {
		return nil, store.Cause(pkg, g.url, err)
	}
	if r.Suffix {
		req.Header.Set("Range", fmt.Sprintf("bytes=-%d", r.Len))
	} else {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.Start, r.Start+r.Len-1))
	}
	// Without this the store unpacks an object that is stored compressed, and takes no notice of the range.
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := g.store.reads.Do(req)
	if err != nil {
		return nil, store.Cause(pkg, g.url, err)
	}
	a := rec.Answer()
	if a.Status >= 300 {
		a.Message = g.store.explained(a.Status, a.Message)
		return a, nil
	}
	a.Version = resp.Header.Get("X-Goog-Generation")
	a.Body = resp.Body
	return a, nil
}
