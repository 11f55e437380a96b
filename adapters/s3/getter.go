package s3

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
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
	o := minio.GetObjectOptions{VersionID: g.version}
	start, end := r.Start, r.Start+r.Len-1
	if r.Suffix {
		start, end = 0, -r.Len
	}
	if err := o.SetRange(start, end); err != nil {
		return nil, fault.New(fault.Invalid, pkg, "%d bytes from %d on", r.Len, r.Start).In(g.url)
	}
	if g.version == "" && r.Version != "" {
		o.Set("If-Match", r.Version)
	}
	if g.store.payer {
		o.Set(payerHeader, "requester")
	}
	ctx, rec := store.Keep(ctx)
	body, _, _, err := g.store.once.GetObject(ctx, g.bucket, g.key, o)
	if rec.Response == nil {
		return nil, store.Cause(pkg, g.url, err)
	}
	resp := rec.Answer()
	if resp.Status >= 300 {
		region := rec.Response.Header.Get("x-amz-bucket-region")
		resp.Message = g.store.explained(resp.Status, resp.Message, region)
		return resp, nil
	}
	if err != nil { // an answer that the client does not understand
		return nil, fault.New(fault.Corrupt, pkg, "the answer of the store cannot be used").In(g.url).Because(store.Cause(pkg, g.url, err))
	}
	resp.Version = rec.Response.Header.Get("ETag")
	if g.version != "" {
		resp.Version = g.version
	}
	resp.Encoding = stored(resp.Encoding)
	resp.Body = io.ReadCloser(body)
	return resp, nil
}

// stored is a Content-Encoding without what was the encoding of the upload, which some stores take for one of the object.
func stored(encoding string) string {
	list := strings.Split(encoding, ",")
	list = slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "aws-chunked" })
	return strings.TrimSpace(strings.Join(list, ","))
}
