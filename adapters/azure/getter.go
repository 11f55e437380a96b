package azure

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source/remote"
)

// Getter returns what reads a blob, by single requests. It sends none itself.
func (s *Store) Getter(url string) (remote.Getter, error) {
	b, err := s.parseBlob(url)
	if err != nil {
		return nil, err
	}
	return &getter{b, b.account.once.NewContainerClient(b.box).NewBlobClient(b.key)}, nil
}

type getter struct {
	blobURL
	client *blob.Client
}

func (g *getter) Name() string { return g.url }

func (g *getter) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	if r.Suffix {
		return nil, fault.New(fault.Invalid, pkg, "the store gives no range from the end").In(g.url).Because(errors.ErrUnsupported)
	}
	o := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: r.Start, Count: r.Len}}
	if r.Version != "" {
		o.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: (*azcore.ETag)(&r.Version)}}
	}
	ctx, rec := store.Keep(ctx)
	resp, err := g.client.DownloadStream(ctx, o)
	if rec.Response == nil {
		return nil, store.Cause(pkg, g.url, err)
	}
	a := rec.Answer()
	if a.Status >= 300 {
		if a.Message == "" {
			a.Message = rec.Response.Header.Get("x-ms-error-code")
		}
		a.Message = g.account.explained(a.Status, a.Message)
		return a, nil
	}
	if err != nil { // an answer that the client does not understand
		rec.Response.Body.Close()
		return nil, fault.New(fault.Corrupt, pkg, "the answer of the store cannot be used").In(g.url).Because(store.Cause(pkg, g.url, err))
	}
	a.Version = rec.Response.Header.Get("ETag")
	a.Body = resp.Body
	return a, nil
}
