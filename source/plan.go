package source

import (
	"cmp"
	"slices"
)

// Request is one read of a source, and the ranges it serves.
type Request struct {
	Range
	Serves []int // indices of the ranges that share bytes with the request, in order of their start; not to be modified
}

// Plan returns the requests that read all bytes of the ranges. The requests are sorted and disjoint.
//
// Ranges that overlap, or lie at most c.Gap bytes apart, are read together unless the request would pass c.MaxRequest.
// Only ranges that have to be are split: one that is longer than c.MaxRequest, or that overlaps its way into a run that
// is. A range without bytes, or one that starts below 0, is served by no request.
func Plan(ranges []Range, c Cost) []Request {
	order := make([]int, 0, len(ranges))
	for i, r := range ranges {
		if r.Start >= 0 && r.Start < r.End {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranges[a].Start, ranges[b].Start), cmp.Compare(a, b))
	})
	var plan []Request
	for len(order) > 0 {
		// A run is what overlaps, directly or by way of others; it cannot be two requests without splitting a range.
		run, n := ranges[order[0]], 1
		for n < len(order) && ranges[order[n]].Start < run.End {
			run.End = max(run.End, ranges[order[n]].End)
			n++
		}
		serves := order[:n]
		order = order[n:]
		switch last := len(plan) - 1; {
		case last >= 0 && run.Start-plan[last].End <= c.Gap && c.allows(run.End-plan[last].Start):
			plan[last].End = run.End
			// Runs stand side by side in order, so this puts each index where it is already, and allocates nothing.
			plan[last].Serves = append(plan[last].Serves, serves...)
		case c.allows(run.Len()):
			plan = append(plan, Request{run, serves})
		default:
			plan = appendSplit(plan, run, c.MaxRequest, ranges, serves)
		}
	}
	for i := range plan {
		plan[i].Serves = slices.Clip(plan[i].Serves)
	}
	return plan
}

func (c Cost) allows(n int64) bool { return c.MaxRequest < 1 || n <= c.MaxRequest }

// appendSplit adds a run as requests of size bytes, the last one shorter.
func appendSplit(plan []Request, run Range, size int64, ranges []Range, serves []int) []Request {
	var open []int // the ranges that the previous piece served
	for run.Len() > 0 {
		piece := Range{run.Start, run.Start + min(size, run.Len())}
		var in []int
		for _, i := range open {
			if ranges[i].End > piece.Start {
				in = append(in, i)
			}
		}
		for len(serves) > 0 && ranges[serves[0]].Start < piece.End {
			in = append(in, serves[0])
			serves = serves[1:]
		}
		plan = append(plan, Request{piece, in})
		open, run.Start = in, piece.End
	}
	return plan
}
