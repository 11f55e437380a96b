package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// receiptFlags say what a run may cost, and whether it tells what it has cost. They go with every verb.
type receiptFlags struct {
	stats       bool
	maxBytes    size
	maxRequests size
}

func (f *receiptFlags) add(flags *pflag.FlagSet) {
	f.maxBytes, f.maxRequests = unlimited, unlimited
	flags.BoolVar(&f.stats, "stats", false, "print what was read, as a line of JSON at the end of standard error")
	flags.Var(&f.maxBytes, "max-bytes", "refuse the read that would pass N bytes in all (64K, 1.5GiB)")
	flags.Var(&f.maxRequests, "max-requests", "refuse the read that would pass N reads in all")
}

// receipt is the line that --stats prints.
type receipt struct {
	source.Receipt
	ElapsedMS float64 `json:"elapsed_ms"`
	Decoded   *int64  `json:"decoded,omitempty"` // bytes of values that were decoded, where the verb tells
}

func (e *env) printReceipt() {
	if !e.limits.stats {
		return
	}
	elapsed := float64(time.Since(e.begun)) / float64(time.Millisecond)
	r := receipt{e.meter.Receipt(), math.Round(elapsed*1000) / 1000, e.decoded}
	r.CacheHits += e.hits.Load()
	if line, err := json.Marshal(r); err == nil {
		fmt.Fprintf(e.stderr, "%s\n", line)
	}
}

// metered returns obj with its reads counted and held to the budget.
func (e *env) metered(obj source.Object) source.Object {
	e.budget.Do(func() { // files may be opened while others are read
		e.meter.MaxBytes, e.meter.MaxRequests = max(0, int64(e.limits.maxBytes)), max(0, int64(e.limits.maxRequests))
	})
	obj = e.meter.Object(obj)
	if e.wrap != nil {
		obj = e.wrap(obj)
	}
	if e.limits.maxBytes == 0 || e.limits.maxRequests == 0 { // the meter takes 0 for no budget
		return unread{obj}
	}
	return obj
}

// unread is an object under a budget of nothing.
type unread struct{ source.Object }

func (u unread) ReadAt(_ context.Context, p []byte, _ int64) error {
	if len(p) == 0 {
		return nil
	}
	return fault.New(fault.Limit, "", "budget of 0: the read would add %d bytes", len(p)).In(u.Name())
}
