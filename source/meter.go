package source

import (
	"context"
	"sync"

	"github.com/spilehq/spile/fault"
)

// Receipt is what was asked of the objects of a [Meter].
type Receipt struct {
	Size      int64 `json:"size"`       // bytes of all objects together
	Requests  int64 `json:"requests"`   // reads asked of the source, failed ones too; opening a file is none
	Bytes     int64 `json:"bytes"`      // bytes asked for by those reads
	CacheHits int64 `json:"cache_hits"` // reads that a cache answered, which are no requests
}

// Meter counts the reads of the objects it wraps, and holds them to a budget: a read that would pass it is
// [fault.Limit] and is not made. The budget is exact, also when many goroutines read at once. The zero Meter has no
// budget. The budget is set before the first read.
type Meter struct {
	MaxBytes    int64 // budget of bytes; less than 1 means none
	MaxRequests int64 // budget of requests; less than 1 means none

	mu   sync.Mutex // one lock and not two atomics: a read is counted in both budgets or in none
	used Receipt
}

// Object returns obj with its reads counted by m, and adds its size to the receipt.
func (m *Meter) Object(obj Object) Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Size += obj.Size()
	return &metered{Object: obj, meter: m}
}

// Receipt returns what has been asked so far.
func (m *Meter) Receipt() Receipt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Hit counts a read that a cache answered.
func (m *Meter) Hit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.CacheHits++
}

// charge counts one read of n bytes, unless it passes the budget.
func (m *Meter) charge(n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.MaxRequests > 0 && m.used.Requests >= m.MaxRequests {
		return fault.New(fault.Limit, "source", "budget of %d requests: %d used, the read adds 1",
			m.MaxRequests, m.used.Requests)
	}
	if m.MaxBytes > 0 && n > m.MaxBytes-m.used.Bytes {
		return fault.New(fault.Limit, "source", "budget of %d bytes: %d used, the read adds %d",
			m.MaxBytes, m.used.Bytes, n)
	}
	m.used.Requests++
	m.used.Bytes += n
	return nil
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
	if err := o.meter.charge(int64(len(p))); err != nil {
		return fault.Locate(err, o.Name(), "", 0)
	}
	return o.Object.ReadAt(ctx, p, off)
}
