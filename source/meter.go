package source

import (
	"context"
	"sync"

	"github.com/spilehq/spile/fault"
)

// Receipt is what was asked of the objects of a [Meter].
type Receipt struct {
	Size      int64 `json:"size"`           // bytes of all objects together
	Requests  int64 `json:"requests"`       // asked of the source, failed ones too: reads, over a network all requests; opening a file is none
	Bytes     int64 `json:"bytes"`          // bytes asked for by those reads; over a network, bytes that came
	CacheHits int64 `json:"cache_hits"`     // reads that a cache answered, which are no requests
	Sent      int64 `json:"sent,omitempty"` // bytes that were sent to be written, those of retries too
}

// Meter counts the reads of the objects it wraps, and holds them to a budget: a read that would pass it is
// [fault.Limit] and is not made. The budget is exact, also when many goroutines read at once. The zero Meter has no
// budget. The budget is set before the first read.
//
// An object that makes other requests than its reads, such as one over a network, which retries, is not wrapped. It
// charges the meter itself: by [Meter.Opened] once, by [Meter.Charge] before a request, by [Meter.Correct] behind it.
type Meter struct {
	MaxBytes    int64 // budget of bytes; less than 1 means none
	MaxRequests int64 // budget of requests; less than 1 means none

	mu   sync.Mutex // one lock and not two atomics: a read is counted in both budgets or in none
	used Receipt
}

// Object returns obj with its reads counted by m, and adds its size to the receipt.
func (m *Meter) Object(obj Object) Object {
	m.Opened(obj.Size())
	return &metered{Object: obj, meter: m}
}

// Opened adds the size of an object that charges the meter itself.
func (m *Meter) Opened(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Size += size
}

// Receipt returns what has been asked so far.
func (m *Meter) Receipt() Receipt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Charge counts requests that are about to be made and the bytes that they ask for. When that would pass the budget, it is
// [fault.Limit]: nothing is counted, and the requests must not be made.
func (m *Meter) Charge(requests, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.MaxRequests > 0 && requests > m.MaxRequests-m.used.Requests {
		return fault.New(fault.Limit, "source", "budget of %d requests: %d used, the read adds %d",
			m.MaxRequests, m.used.Requests, requests)
	}
	if m.MaxBytes > 0 && bytes > m.MaxBytes-m.used.Bytes {
		return fault.New(fault.Limit, "source", "budget of %d bytes: %d used, the read adds %d",
			m.MaxBytes, m.used.Bytes, bytes)
	}
	m.used.Requests += requests
	m.used.Bytes += bytes
	return nil
}

// Count adds to what was counted, without regard to the budget: for requests that are not refused, since they are no reads.
func (m *Meter) Count(r Receipt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Size += r.Size
	m.used.Requests += r.Requests
	m.used.Bytes += r.Bytes
	m.used.CacheHits += r.CacheHits
	m.used.Sent += r.Sent
}

// Correct adds to the bytes that were counted, or takes from them when more were charged than came.
func (m *Meter) Correct(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Bytes += bytes
}

// Hit counts a read that needed no request.
func (m *Meter) Hit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.CacheHits++
}

type metered struct {
	Object
	meter *Meter
}

func (o *metered) ReadAt(ctx context.Context, p []byte, off int64) error {
	// A read that cannot be made is not charged.
	if err := inside(o, off, int64(len(p))); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return systemFault(o.Name(), err)
	}
	if err := o.meter.Charge(1, int64(len(p))); err != nil {
		return fault.Locate(err, o.Name(), "", 0)
	}
	return o.Object.ReadAt(ctx, p, off)
}
