package source

import (
	"context"
	"math"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
)

// Fetch reads the ranges of obj and returns their bytes in the order of the ranges. It makes a [Plan] with the cost of
// obj and runs up to [Cost.Parallel] of its requests at once. The first error ends the others, and Fetch returns when
// all have ended: all bytes or none.
//
// Ranges that were read together share memory, overlapping ones their bytes, so the result is for reading, and a small
// range keeps the buffer of its request alive. Every range is checked against the size of obj first ([fault.Invalid]);
// so never more than that size is allocated.
func Fetch(ctx context.Context, obj Object, ranges []Range) ([][]byte, error) {
	for _, r := range ranges {
		if err := inside(obj, r.Start, r.Len()); err != nil {
			return nil, err
		}
	}
	cost := obj.Cost()
	plan := Plan(ranges, cost)
	out, bufs, err := buffers(obj, ranges, plan)
	if err != nil {
		return nil, err
	}
	var next atomic.Int64
	work := func(ctx context.Context) error {
		for {
			i := next.Add(1) - 1
			if i >= int64(len(plan)) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return systemFault(obj.Name(), err)
			}
			if err := obj.ReadAt(ctx, bufs[i], plan[i].Start); err != nil {
				return err
			}
		}
	}
	if workers := min(cost.Parallel, len(plan)); workers <= 1 {
		err = work(ctx)
	} else {
		g, ctx := errgroup.WithContext(ctx)
		for range workers {
			g.Go(func() error { return work(ctx) })
		}
		err = g.Wait()
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// maxRun is the longest buffer that is tried. Beyond it make panics; below, it is a matter of how much memory there is.
const maxRun = min(math.MaxInt, 1<<40)

// buffers makes room for the requests of a plan: out[i] is the part that range i gets, bufs[k] what request k fills.
func buffers(obj Object, ranges []Range, plan []Request) (out, bufs [][]byte, err error) {
	out, bufs = make([][]byte, len(ranges)), make([][]byte, 0, len(plan))
	for i := range out {
		out[i] = []byte{} // what stays of a range without bytes
	}
	for len(plan) > 0 {
		// Requests that touch share a buffer, since a range that was split lies in several.
		n := 1
		for n < len(plan) && plan[n].Start == plan[n-1].End {
			n++
		}
		run := Range{plan[0].Start, plan[n-1].End}
		if run.Len() > maxRun {
			return nil, nil, fault.New(fault.Limit, "source", "%d bytes wanted at once, at most %d", run.Len(), int64(maxRun)).
				In(obj.Name()).At(run.Start)
		}
		buf := make([]byte, run.Len())
		part := func(r Range) []byte {
			from, to := r.Start-run.Start, r.End-run.Start
			return buf[from:to:to]
		}
		for _, req := range plan[:n] {
			bufs = append(bufs, part(req.Range))
			for _, i := range req.Serves {
				out[i] = part(ranges[i])
			}
		}
		plan = plan[n:]
	}
	return out, bufs, nil
}
