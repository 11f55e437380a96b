package series

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/source"
)

// store keeps the stored bytes of a part that one query has read, as long as it needs them, so that no byte is read twice:
// what a merged request brings beside the chunks that were asked for serves the next ones.
type store struct {
	obj   source.Object
	spans []stretch // sorted, disjoint
	free  []*lot    // memory of what was dropped
	keeps int64     // how many bytes more it may be
}

// newStore returns a store of a part that is ready: the end of it was read already.
func newStore(p *part) *store {
	return &store{obj: p.obj, spans: []stretch{{start: int64(p.tailAt), bytes: p.tail}}}
}

type stretch struct {
	start int64
	bytes []byte
	of    *lot // nil: the memory is not the store's
}

// lot is memory for what one fetch reads.
type lot struct {
	bytes []byte
	used  int // stretches in it
}

func (s stretch) end() int64 { return s.start + int64(len(s.bytes)) }

// from is the index of the first stretch that ends behind an offset.
func (s *store) from(at int64) int {
	return sort.Search(len(s.spans), func(i int) bool { return s.spans[i].end() > at })
}

// has reports whether all of a range was read.
func (s *store) has(r source.Range) bool {
	for i := s.from(r.Start); r.Start < r.End; i++ {
		if i == len(s.spans) || s.spans[i].start > r.Start {
			return false
		}
		r.Start = s.spans[i].end()
	}
	return true
}

// get returns the bytes of a range that was read, nil otherwise.
func (s *store) get(r source.Range) []byte {
	if !s.has(r) {
		return nil
	}
	i := s.from(r.Start)
	if i == len(s.spans) {
		return nil
	}
	if s.spans[i].end() >= r.End {
		at := r.Start - s.spans[i].start
		return s.spans[i].bytes[at : at+r.Len() : at+r.Len()]
	}
	// It lies in more than one, which is seldom: a part of it came with what was asked for before.
	out := make([]byte, 0, r.Len())
	for ; r.Start < r.End; i++ {
		end := min(r.End, s.spans[i].end())
		out = append(out, s.spans[i].bytes[r.Start-s.spans[i].start:end-s.spans[i].start]...)
		r.Start = end
	}
	return out
}

// fetch reads the ranges that are not there yet: a plan by the cost of the source, in parallel. Bytes that are there are
// not read again.
func (s *store) fetch(ctx context.Context, ranges []source.Range) error {
	var missing []source.Range
	for _, r := range ranges {
		if r.Len() > 0 && !s.has(r) {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	cost := s.obj.Cost()
	var gaps []source.Range
	n := int64(0)
	for _, req := range source.Plan(missing, cost) {
		for _, gap := range s.gaps(req.Range) {
			gaps = append(gaps, gap)
			n += gap.Len()
		}
	}
	of := s.take(n)
	of.used = len(gaps)
	reads := make([]stretch, len(gaps))
	n = 0
	for i, gap := range gaps {
		reads[i] = stretch{gap.Start, of.bytes[n : n+gap.Len() : n+gap.Len()], of}
		n += gap.Len()
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(1, cost.Parallel))
	for _, r := range reads {
		work.Go(func() error { return s.obj.ReadAt(ctx, r.bytes, r.start) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	s.spans = append(s.spans, reads...)
	slices.SortFunc(s.spans, func(a, b stretch) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// gaps are the parts of a range that were not read.
func (s *store) gaps(r source.Range) []source.Range {
	var out []source.Range
	at := r.Start
	for _, have := range s.spans {
		if have.end() <= at || have.start >= r.End {
			continue
		}
		if have.start > at {
			out = append(out, source.Range{Start: at, End: have.start})
		}
		at = max(at, have.end())
	}
	if at < r.End {
		out = append(out, source.Range{Start: at, End: r.End})
	}
	return out
}

// drop forgets what lies before an offset: what get returned of it must not be used any more.
func (s *store) drop(before int64) {
	i := 0
	for i < len(s.spans)-1 && s.spans[i].end() <= before { // the last one is the end of the part
		if of := s.spans[i].of; of != nil {
			if of.used--; of.used == 0 && int64(cap(of.bytes)) <= s.keeps {
				s.free, s.keeps = append(s.free, of), s.keeps-int64(cap(of.bytes))
			}
		}
		i++
	}
	s.spans = slices.Delete(s.spans, 0, i)
}

// maxLot is how long memory is that is made somewhat longer, so that it serves for what comes next.
const maxLot = 2 * windowBytes

// take returns memory for n bytes, the shortest that suffices of what was dropped.
func (s *store) take(n int64) *lot {
	best := -1
	for i, l := range s.free {
		if have := cap(l.bytes); int64(have) >= n && (best < 0 || have < cap(s.free[best].bytes)) {
			best = i
		}
	}
	if best >= 0 {
		l := s.free[best]
		s.free, s.keeps = slices.Delete(s.free, best, best+1), s.keeps+int64(cap(l.bytes))
		l.bytes = l.bytes[:n]
		return l
	}
	const step = windowBytes / 8
	if n < step || n > maxLot-step || s.keeps == 0 {
		return &lot{bytes: make([]byte, n)}
	}
	if l, ok := waitingLots.Get().(*lot); ok && int64(cap(l.bytes)) >= n {
		l.bytes = l.bytes[:n]
		return l
	}
	return &lot{bytes: make([]byte, n, (n/step+1)*step)}
}

// waitingLots are of queries that have ended.
var waitingLots sync.Pool // of *lot

// release ends the use of the store: nothing that get returned is used any more.
func (s *store) release() {
	s.drop(math.MaxInt64)
	for _, l := range s.free {
		if n := cap(l.bytes); n >= windowBytes/8 && n <= maxLot {
			waitingLots.Put(l)
		}
	}
	s.free = nil
}
