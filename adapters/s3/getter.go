package s3

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
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
		if resp.Status == 416 && resp.Size < 0 && r.Start == 0 {
			if err := g.sized(ctx, r, rec.Failure.Bytes(), resp); err != nil {
				return nil, err
			}
		}
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

// sized finds out how long an object is that has no first byte, as an empty one has not, where the answer does not say so as HTTP
// does. Amazon says it in the body of the answer; others are asked.
func (g *getter) sized(ctx context.Context, r remote.Request, body []byte, resp *remote.Response) error {
	var said struct{ ActualObjectSize *int64 }
	if xml.Unmarshal(body, &said) == nil && said.ActualObjectSize != nil && *said.ActualObjectSize >= 0 {
		resp.Size = *said.ActualObjectSize
		return nil
	}
	if r.Again != nil {
		if err := r.Again(int64(len(body))); err != nil {
			return err
		}
		resp.Body = http.NoBody // it is counted
	}
	info, err := g.store.once.StatObject(ctx, g.bucket, g.key, minio.StatObjectOptions{VersionID: g.version})
	if err == nil && info.Size == 0 { // no byte of another one was asked for in vain
		resp.Size, resp.Version = 0, `"`+info.ETag+`"`
		if g.version != "" {
			resp.Version = g.version
		}
	}
	return nil
}

// stored is a Content-Encoding without what was the encoding of the upload, which some stores take for one of the object.
func stored(encoding string) string {
	list := strings.Split(encoding, ",")
	list = slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "aws-chunked" })
	return strings.TrimSpace(strings.Join(list, ","))
}
