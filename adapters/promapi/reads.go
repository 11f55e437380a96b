package promapi

import (
	"context"
	"sync/atomic"

	"github.com/spilehq/spile/source"
)

// Reads counts what is read of the objects that it has wrapped, in all, and holds each request to its budget. The zero
// value is ready.
type Reads struct {
	requests, bytes atomic.Int64
}

// Object returns obj with its reads counted, and charged to the request of a [Handler] that they are made for.
func (r *Reads) Object(obj source.Object) source.Object { return &counted{obj, r} }

type counted struct {
	source.Object
	reads *Reads
}

// budgetKey is the key of the source.Meter of a request in its context.
type budgetKey struct{}

func (c *counted) ReadAt(ctx context.Context, p []byte, off int64) error {
	c.reads.requests.Add(1)
	c.reads.bytes.Add(int64(len(p)))
	if m, ok := ctx.Value(budgetKey{}).(*source.Meter); ok {
		return m.Object(c.Object).ReadAt(ctx, p, off)
	}
	return c.Object.ReadAt(ctx, p, off)
}
