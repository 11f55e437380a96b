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
	flags.BoolVar(&f.stats, "stats", false, "print what was read and sent, as a line of JSON at the end of standard error")
	flags.Var(&f.maxBytes, "max-bytes", "refuse the read that would pass N bytes in all (64K, 1.5GiB)")
	flags.Var(&f.maxRequests, "max-requests", "refuse the read that would pass N requests in all")
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
	r := receipt{e.shared.meter.Receipt(), math.Round(elapsed*1000) / 1000, e.decoded}
	r.CacheHits += e.shared.hits.Load()
	if line, err := json.Marshal(r); err == nil {
		fmt.Fprintf(e.stderr, "%s\n", line)
	}
}

// budget is the meter, with the budget of the flags.
func (e *env) budget() *source.Meter {
	e.shared.budget.Do(func() { // files may be opened while others are read
		e.shared.meter.MaxBytes, e.shared.meter.MaxRequests = max(0, int64(e.limits.maxBytes)), max(0, int64(e.limits.maxRequests))
	})
	return &e.shared.meter
}

// metered returns obj with its reads counted and held to the budget.
func (e *env) metered(obj source.Object) source.Object {
	if at, ok := obj.(*atStore); ok { // which counts itself
		if e.wrap == nil {
			return obj
		}
		return &atStore{e.wrap(at.Object), at.url}
	}
	obj = e.budget().Object(obj)
	if e.wrap != nil {
		obj = e.wrap(obj)
	}
	return unspent{obj, e}
}

// spent is the error of a read under a budget of nothing, which the meter takes for none.
func (e *env) spent(name string, n int) error {
	if e.limits.maxBytes != 0 && e.limits.maxRequests != 0 {
		return nil
	}
	return fault.New(fault.Limit, "", "budget of 0: the read would add %d bytes", n).In(name)
}

// unspent is an object whose reads ask whether there is a budget at all.
type unspent struct {
	source.Object
	e *env
}

func (u unspent) ReadAt(ctx context.Context, p []byte, off int64) error {
	if err := u.e.spent(u.Name(), len(p)); err != nil && len(p) > 0 {
		return err
	}
	return u.Object.ReadAt(ctx, p, off)
}
