package msglc

import (
	"bytes"
	"context"
	"iter"

	"github.com/spilehq/spile/source"
)

// A pass over the items of a slice, all of which are wanted, reads them in windows: a read costs more than the bytes of a
// short item. A window has the items of some maxBlockRun bytes, as the runs of blocks have, and at most maxWindow items,
// for the memory that their nodes take.
const maxWindow = 4096

// ahead iterates as Children does, with the bytes of short items in their nodes.
func (n Node) ahead(ctx context.Context) iter.Seq2[Child, error] {
	return func(yield func(Child, error) bool) {
		gap := n.r.s.obj.Cost().Gap
		var window []Child
		size, last := int64(0), int64(0)
		// flush yields the window and reports whether more is wanted.
		flush := func() bool {
			n.fill(ctx, window)
			for i := range window {
				c := window[i]
				window[i] = Child{} // its bytes are not held longer than they are used
				if !yield(c, nil) {
					return false
				}
			}
			window, size = window[:0], 0
			return true
		}
		for child, err := range n.Children(ctx) {
			if err != nil {
				if flush() {
					yield(child, err)
				}
				return
			}
			window = append(window, child)
			if e := &child.Node.e; e.hasRange { // with what is read between it and the one before
				size += e.end - e.start + min(max(e.start-last, last-e.end, 0), gap)
				last = e.end
			}
			if (size >= maxBlockRun || len(window) >= maxWindow) && !flush() {
				return
			}
		}
		flush()
	}
}

// fill reads the bytes of those items of a window of n that are short and were not read yet. When that fails, because of a
// budget for one, each is left to be read when it is used: what comes before the error is found as without it.
func (n Node) fill(ctx context.Context, window []Child) {
	r := n.r
	if r.head != nil || len(window) < 2 {
		return
	}
	// What is longer than a request is worth is read alone, and as its reader likes it.
	longest := min(max(peekSize, r.s.obj.Cost().Gap), r.s.maxValue, maxBlockRun)
	var ranges []source.Range
	var wanted []int
	for i := range window {
		c := &window[i].Node
		size := c.e.end - c.e.start
		if c.r != r || !c.e.hasRange || c.data != nil || size > longest || c.mixed() || c.e.children != 0 && !c.fast() {
			continue
		}
		if r.s.cache != nil {
			if c.data = r.s.cache.get(r.payload+c.e.start, size); c.data != nil {
				continue
			}
		}
		ranges = append(ranges, source.Range{Start: r.payload + c.e.start, End: r.payload + c.e.end})
		wanted = append(wanted, i)
	}
	if len(wanted) < 2 {
		return
	}
	data, err := source.Fetch(ctx, countedObject{r.s.obj, r.s}, ranges)
	if err != nil {
		return
	}
	for k, i := range wanted {
		window[i].Node.data = data[k]
		if r.s.cache != nil { // one item that is kept keeps no other
			r.s.cache.put(ranges[k].Start, bytes.Clone(data[k]))
		}
	}
}

// countedObject counts the reads of an object in the statistics of a reader.
type countedObject struct {
	source.Object
	s *shared
}

func (o countedObject) ReadAt(ctx context.Context, p []byte, off int64) error {
	return o.s.countedRead(o.Object)(ctx, p, off)
}
