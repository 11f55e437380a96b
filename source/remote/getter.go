package remote

import (
	"context"
	"io"
	"time"
)

// Getter asks a store for bytes of one object, once: it does not retry, and it does not judge what it gets, but passes on
// what the store says. Open makes a [source.Object] of it, which does both. A Getter is safe for concurrent use.
type Getter interface {
	// Name is the URL of the object, without credentials, for error messages.
	Name() string

	// Get sends one request for a range of the object. The caller closes the body. An answer of the store, whatever its
	// status, is a Response; an error means that there was none, such as a connection that broke. Open retries then, but
	// not after a [*fault.Error]: that is a failure that no retry mends, such as a certificate that is not trusted.
	Get(ctx context.Context, r Request) (*Response, error)
}

// Request is one request for a range of an object.
type Request struct {
	Start int64 // the first byte; 0 with Suffix
	Len   int64 // the number of bytes, at least 1
	// Suffix asks for the last Len bytes, whatever the size is; Start is 0 then.
	Suffix bool
	// Version is the version that the object must still have, as an earlier Response gave it; "" when none is known yet.
	Version string
	// Again is called before the getter sends a further request for this one, to where a redirect leads for one, with the
	// number of body bytes that came with the answer before. The request is not sent when it returns an error, which Get
	// returns then. It may be nil. So all that goes over the network is counted, and held to a budget.
	Again func(bytes int64) error
}

// Response is what a store answered.
type Response struct {
	Status int // as in HTTP: 206 for a range, 200 for the whole object, 412 for another version, 416 for a range behind the end

	// Start and End bound the bytes of the body within the object, and Size is the length of the object, as the answer
	// says them in its Content-Range; -1 where it does not.
	Start, End, Size int64
	// Length is the Content-Length of the body, -1 where it is not said.
	Length int64

	Version    string        // the ETag, generation or version id; "" when the store gives none
	Encoding   string        // the Content-Encoding, "" or "identity" when the bytes are those of the object
	RetryAfter time.Duration // how long the store wants to be left alone; 0 when it does not say
	Message    string        // what the store says of a failure, in one line, without anything secret
	Body       io.ReadCloser // never nil; of a failure, too, all that came, so that it is counted
}
