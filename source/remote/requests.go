package remote

import (
	"time"

	"github.com/spilehq/spile/source"
)

// Requests says how a store sends the requests that read no object: those that list, and those of a [Writer]. The zero value
// is the defaults. The reads of an object have the same in [Options].
type Requests struct {
	// Retries is how often a request that failed in passing is sent again, [DefaultRetries] by default; below 0, never.
	Retries int
	// Timeout is how long a request may take to be answered, and then again for every MiB that it sends or that comes:
	// [DefaultTimeout] by default, below 0 without limit. A request by which the store copies or joins bytes that it has may
	// take as long again for every 16 MiB of these.
	Timeout time.Duration
	// Meter counts the requests, retries among them, and the bytes that come and that are sent. A list that would pass its
	// budget is fault.Limit. What makes or removes an object is counted and never refused: an upload that ends in its
	// middle was paid for in vain.
	Meter *source.Meter
}
