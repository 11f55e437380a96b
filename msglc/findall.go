package msglc

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// FindAll finds the nodes at many paths as [Reader.Find] does one by one, and gives for each path, in order, its node or the
// error that Find would give. An error of one path does not end the others.
//
// What the paths need is read together: all of them go on until each waits for a read, and then all these reads are made
// at once, merged where the bytes between them cost less than a request, and as many at a time as the object takes. So a
// thousand paths wait for about as many reads one behind the other as one path does. Values of up to 4 MiB are read as well,
// so that to use them needs no read. Where a request is dear, all of a table of contents comes first when there are four
// paths for each 64 KiB of it. When a read fails, the paths that have no node yet are found one by one.
//
// It works on up to 4,096 paths at a time, and holds some 16 MiB of their bytes and, while it reads, some 4 MiB for each
// request; a node holds the bytes of its value. An iteration that ends early has read for up to so many paths in vain.
func (r *Reader) FindAll(ctx context.Context, paths []Path) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		if len(paths) < 2 || r.head != nil { // nothing to be read together
			for _, p := range paths {
				if !yield(r.Find(ctx, p)) {
					return
				}
			}
			return
		}
		if r.toc != nil {
			r.toc.loadFor(ctx, len(paths))
		}
		for len(paths) > 0 {
			found, failed := r.findSome(ctx, paths)
			for i := range found {
				f := &found[i]
				if failed && !f.done {
					f.node, f.err = r.Find(ctx, f.path)
				}
				n, err := f.node, f.err
				*f = search{} // its bytes are not held longer than they are used
				if !yield(n, err) {
					return
				}
			}
			paths = paths[len(found):]
		}
	}
}

const (
	maxSearches   = 4096     // that are made together
	maxBatchBytes = 16 << 20 // of their values, and of what is read for them, each
	// A search that so many rounds have not ended is made by itself: what it reads may be forgotten before it is used.
	maxRounds = 64
)

// search is the way along one path.
type search struct {
	path   Path
	from   *Path // of the root
	node   Node  // as far as it has come
	steps  int   // how far that is
	rounds int
	held   int64 // bytes that wait for their use
	done   bool
	err    error
}

// findSome searches for the first of some paths, at least one, and reports whether a read has failed: searches that are not
// done are to be made without the others then.
func (r *Reader) findSome(ctx context.Context, paths []Path) (found []search, failed bool) {
	b := &batch{s: r.s}
	within := context.WithValue(ctx, batchKey{}, b)
	held := int64(0)
	advance := func(s *search) {
		if s.done {
			return
		}
		s.rounds++
		s.advance(ctx, within)
		held += s.held
	}
	for {
		for i := range found {
			if advance(&found[i]); b.failed {
				return found, true
			}
		}
		for len(found) < min(len(paths), maxSearches) && held+b.size < maxBatchBytes {
			root := r.Root()
			found = append(found, search{path: paths[len(found)], from: root.path, node: root})
			if advance(&found[len(found)-1]); b.failed {
				return found, true
			}
		}
		if b.size == 0 {
			return found, false
		}
		if b.fetch(ctx) != nil {
			return found, true
		}
	}
}

// advance goes on until the search waits for a read of the batch, or ends.
func (s *search) advance(ctx, within context.Context) {
	if s.rounds > maxRounds {
		within = ctx
	}
	ended := func(err error) {
		if !errors.Is(err, errLater) {
			s.done, s.err = true, err
		}
	}
	for s.steps < len(s.path) {
		next, err := s.node.Step(within, s.path[s.steps])
		if err != nil {
			ended(onPath(err, s.path[:s.steps+1]))
			return
		}
		s.node = next
		s.steps++
	}
	n, err := s.node.arrived(within, s.from, s.path)
	if err == nil {
		n, err = s.warm(within, n)
	}
	if err == nil {
		s.node = n
	}
	ended(err)
}

// warm reads the bytes of a value that is not long. Where that fails, whoever uses the value finds out.
func (s *search) warm(ctx context.Context, n Node) (Node, error) {
	var err error
	switch {
	case n.r.head != nil || n.slice != nil:
	case n.e.hasRange && !n.mixed():
		if n, err = n.loaded(ctx); err == nil {
			s.held = int64(len(n.data))
		}
	case n.e.form == Blocks && n.r.s.cache != nil: // which remembers them
		var k *known
		if k, err = n.allBlocks(ctx); err != nil {
			break
		}
		if size := k.end - k.start; n.r.s.cache.keeps(size) {
			err = n.eachBlock(ctx, 0, false, func(block, []byte) error { return nil })
			s.held = 2 * size // they must not push one another out of the cache
		}
	}
	if !errors.Is(err, errLater) {
		err = nil
	}
	return n, err
}

// batch collects the reads of many searches that are made one after the other by one goroutine. A read of what is not here
// yet is noted, and fails with errLater; the search is made again from its last step on when the bytes have come. What
// is remembered of a table of contents stands failed reads, so that no step begins from nothing.
type batch struct {
	s      *shared
	have   [2]pieces // of the object, and of the sidecar
	wanted [2]map[int64]want
	size   int64 // bytes that are wanted
	failed bool  // a read that was made at once has failed
}

type want struct {
	n         int64
	directory bool
}

// batchKey is the key of the batch in the contexts of its reads.
type batchKey struct{}

var errLater = errors.New("the read is made later")

// atOnce is a context for reads that are not to be collected: the next piece of what is read from front to back, since
// nobody can go on without it.
func atOnce(ctx context.Context) context.Context {
	if b, ok := ctx.Value(batchKey{}).(*batch); ok {
		return context.WithValue(ctx, batchKey{}, &live{b})
	}
	return ctx
}

type live struct{ *batch }

// read reads from obj, or from what a batch has of it.
func (s *shared) read(ctx context.Context, obj source.Object, p []byte, off int64) error {
	switch b := ctx.Value(batchKey{}).(type) {
	case *batch:
		return b.read(ctx, obj, p, off)
	case *live:
		err := obj.ReadAt(ctx, p, off)
		b.failed = b.failed || err != nil
		return err
	}
	return obj.ReadAt(ctx, p, off)
}

func (b *batch) read(ctx context.Context, obj source.Object, p []byte, off int64) error {
	side := 0
	if obj != b.s.obj {
		side = 1
	}
	n := int64(len(p))
	if b.have[side].copy(p, off) {
		return nil
	}
	if off < 0 || n > obj.Size()-off { // what cannot be read must not be noted
		return obj.ReadAt(ctx, p, off)
	}
	if b.wanted[side] == nil {
		b.wanted[side] = make(map[int64]want)
	}
	w := b.wanted[side][off]
	if n > w.n {
		b.size += n - w.n
		w.n = n
	}
	w.directory = source.IsDirectory(ctx)
	b.wanted[side][off] = w
	return errLater
}

// fetch reads all that is wanted.
func (b *batch) fetch(ctx context.Context) error {
	for side, obj := range []source.Object{b.s.obj, b.s.tocObj} {
		if len(b.wanted[side]) == 0 {
			continue
		}
		directory := true
		var ranges []source.Range
		for off, w := range b.wanted[side] {
			ranges = append(ranges, source.Range{Start: off, End: off + w.n})
			directory = directory && w.directory
		}
		b.wanted[side] = nil
		slices.SortFunc(ranges, func(a, b source.Range) int { return int(a.Start - b.Start) })
		ctx := ctx
		if directory {
			ctx = source.ForDirectory(ctx)
		}
		have := &b.have[side]
		if have.size > maxBatchBytes { // what was read is in nodes and caches by now, but for what is read again then
			*have = pieces{}
		}
		data, err := fetchScattered(ctx, obj, ranges)
		if err != nil {
			return err
		}
		have.add(ranges, data)
	}
	b.size = 0
	return nil
}

// pieces are parts of an object, in order of their start.
type pieces struct {
	list []pieceOf
	size int64
}

type pieceOf struct {
	start int64
	data  []byte
}

func (p *pieces) add(ranges []source.Range, data [][]byte) {
	for i, r := range ranges {
		p.list = append(p.list, pieceOf{r.Start, data[i]})
		p.size += r.Len()
	}
	slices.SortStableFunc(p.list, func(a, b pieceOf) int { return int(a.start - b.start) })
}

// copy fills dst with the bytes from off on, and reports whether they are all in one piece.
func (p *pieces) copy(dst []byte, off int64) bool {
	i, _ := slices.BinarySearchFunc(p.list, off+1, func(a pieceOf, at int64) int { return int(a.start - at) })
	// The pieces in front may be longer than those behind: a few of them are looked at.
	for k := i - 1; k >= max(0, i-4); k-- {
		from := off - p.list[k].start
		if data := p.list[k].data; from+int64(len(dst)) <= int64(len(data)) {
			copy(dst, data[from:])
			return true
		}
	}
	return false
}

// maxScattered is the longest request for what is scattered over an object. It bounds the bytes in between that are held.
const maxScattered = 4 << 20

// fetchScattered reads many ranges of an object, in order of their start, as [source.Fetch] does, but of the bytes between
// them it holds no more than those of the requests that run. All bytes or none.
func fetchScattered(ctx context.Context, obj source.Object, ranges []source.Range) ([][]byte, error) {
	plan := planScattered(ranges, obj.Cost())
	out := make([][]byte, len(ranges))
	for i, r := range ranges {
		out[i] = make([]byte, r.Len())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() {
		var buf []byte
		for i := next.Add(1) - 1; i < int64(len(plan)) && ctx.Err() == nil; i = next.Add(1) - 1 {
			req := plan[i]
			if int64(cap(buf)) < req.Len() {
				buf = make([]byte, req.Len())
			}
			p := buf[:req.Len()]
			// What comes next is known, so nothing is to be read ahead.
			if err := obj.ReadAt(source.UpTo(ctx, req.End), p, req.Start); err != nil {
				cancel(err)
				return
			}
			for _, k := range req.Serves { // requests share no byte, so none is written twice
				r := ranges[k]
				from, to := max(r.Start, req.Start), min(r.End, req.End)
				copy(out[k][from-r.Start:to-r.Start], p[from-req.Start:])
			}
		}
	}
	var running sync.WaitGroup
	for range min(max(1, obj.Cost().Parallel), len(plan)) - 1 {
		running.Go(work)
	}
	work()
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, fault.Locate(err, obj.Name(), "", 0)
	}
	return out, nil
}

// planScattered merges ranges as far as it makes the read of all of them cheaper: as many requests as the object takes at a
// time cost as much as one. Beside one another they share what the network carries, which is several times what one of them
// gets, so that bytes cost a sixth of what they do in a row.
func planScattered(ranges []source.Range, c source.Cost) []source.Request {
	const share = 6
	if c.MaxRequest < 1 || c.MaxRequest > maxScattered {
		c.MaxRequest = maxScattered
	}
	c.Gap = min(c.Gap, share*c.Gap/int64(max(1, c.Parallel)))
	return source.Plan(ranges, c)
}
