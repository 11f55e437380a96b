package msglc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Children iterates over the items of a list or the pairs of a map in stored order. Nothing is yielded after an error.
// A scalar is [fault.Invalid].
func (n Node) Children(ctx context.Context) iter.Seq2[Child, error] {
	return func(yield func(Child, error) bool) {
		n, err := n.resolve(ctx)
		if err != nil {
			yield(Child{}, err)
			return
		}
		if err := n.eachFrom(ctx, 0, yield); err != nil && err != errStop {
			yield(Child{}, n.r.locate(err))
		}
	}
}

// eachFrom yields the children from the first on.
func (n Node) eachFrom(ctx context.Context, first int64, yield func(Child, error) bool) error {
	switch {
	case n.slice != nil:
		return n.eachOfSlice(ctx, first, yield)
	case n.e.form == Blocks:
		return n.eachOfBlocks(ctx, first, yield)
	case n.e.children != 0:
		return n.eachOfTable(ctx, first, yield)
	}
	return n.eachInside(ctx, first, yield)
}

// Keys iterates over the encoded keys of a map in stored order.
func (n Node) Keys(ctx context.Context) iter.Seq2[value.Raw, error] {
	return func(yield func(value.Raw, error) bool) {
		kind, err := n.Kind(ctx)
		if err == nil && kind != value.Map {
			err = n.invalid("%s has no keys", kind)
		}
		if err != nil {
			yield(value.Raw{}, err)
			return
		}
		for child, err := range n.Children(ctx) {
			if !yield(child.Key, err) {
				return
			}
		}
	}
}

// errStop ends an iteration whose consumer wants no more.
var errStop = errors.New("stop")

// eachOfSlice makes one pass over the list. Backwards it remembers the items of the pass, where finding one by its
// index would be a pass of its own.
func (n Node) eachOfSlice(ctx context.Context, first int64, yield func(Child, error) bool) error {
	s := n.slice
	if first >= s.count {
		return nil
	}
	low, high := s.from+first*s.step, s.from+(s.count-1)*s.step
	if s.step < 0 {
		low, high = high, low
	}
	random := s.list.e.children != 0 && s.list.e.form != Blocks
	if s.step < 0 && random {
		for i := first; i < s.count; i++ {
			item, err := s.list.Index(ctx, s.from+i*s.step)
			if err != nil {
				return err
			}
			if !yield(Child{Index: i, Node: item}, nil) {
				return errStop
			}
		}
		return nil
	}
	var backwards []Node
	next, i := low, first
	err := s.list.eachFrom(ctx, low, func(c Child, err error) bool {
		if err != nil || c.Index < next {
			return err == nil
		}
		if s.step < 0 {
			c.Node.data = nil // the bytes are read again rather than kept
			backwards = append(backwards, c.Node)
			if -s.step > high-next {
				return false
			}
			next -= s.step
			return true
		}
		i++
		if !yield(Child{Index: i - 1, Node: c.Node}, nil) || s.step > high-next {
			return false
		}
		next += s.step
		return true
	})
	if err != nil && err != errStop {
		return err
	}
	for k := len(backwards) - 1; k >= 0; k-- {
		if !yield(Child{Index: first + int64(len(backwards)-1-k), Node: backwards[k]}, nil) {
			return errStop
		}
	}
	return err
}

func (n Node) eachOfTable(ctx context.Context, first int64, yield func(Child, error) bool) error {
	t, err := n.tableFrom(ctx, first)
	if err != nil {
		return err
	}
	for {
		child, ok, err := t.next()
		if err != nil || !ok {
			return err
		}
		if !yield(child, nil) {
			return errStop
		}
	}
}

// tableIter goes over the children of a node with a table. What recurses over a document holds one for each level,
// which takes less stack than an iteration by a function.
type tableIter struct {
	n    Node
	c    *tocCursor
	d    *directory
	i    int64
	last entry // whose end the cursor has yet to go to
}

func (n Node) tableFrom(ctx context.Context, first int64) (*tableIter, error) {
	t := &tableIter{n: n, c: n.r.cursor(ctx, n.e.children), d: n.r.directory(&n.e), i: first}
	if first > 0 && first < n.e.count {
		at, err := n.r.childAt(t.c, t.d, first)
		if err != nil {
			return nil, err
		}
		t.c.seek(at)
	}
	return t, nil
}

// next returns the next child, false behind the last.
func (t *tableIter) next() (child Child, ok bool, err error) {
	c, n := t.c, &t.n
	if t.last.form != 0 {
		if err := c.leave(&t.last); err != nil {
			return child, false, err
		}
	}
	if t.i >= n.e.count {
		c.passed(&n.e)
		if n.r.eager {
			return child, false, nil
		}
		return child, false, c.rootEnds(&n.e)
	}
	at := c.at()
	child.Index = t.i
	if n.e.isMap {
		if err := c.skip(1); err != nil {
			return child, false, err
		}
		key, err := c.bytesBetween(at, c.at())
		if err != nil {
			return child, false, err
		}
		child.Key = value.Raw{Codec: n.r.h.codec, Data: key}
	}
	before := t.last
	if t.last, err = c.entry(n.e.start, n.e.end); err != nil {
		return child, false, err
	}
	if !n.r.eager {
		if err := c.checkNext(&n.e, at, &t.last, &before); err != nil {
			return child, false, err
		}
	}
	t.d.touch()
	t.i++
	child.Node = Node{r: n.r, e: t.last}
	return child, true, nil
}

func (n Node) eachOfBlocks(ctx context.Context, first int64, yield func(Child, error) bool) error {
	return n.eachBlock(ctx, first, true, func(b block, p []byte) error {
		i := b.before
		pos := 0
		for range b.count {
			size, err := value.Skip(n.r.h.codec, p[pos:], 1, n.r.s.limits)
			if err != nil {
				return n.badBlock(b, err, int64(pos))
			}
			if i >= first && !yield(Child{Index: i, Node: n.inside(b.start+int64(pos), p[pos:pos+size])}, nil) {
				return errStop
			}
			pos += size
			i++
		}
		if pos != len(p) {
			return n.r.blockSurplus(b, int64(pos))
		}
		return nil
	})
}

// maxBlockRun bounds the bytes of blocks that are read at once.
const maxBlockRun = 1 << 20

// eachBlock calls f for the blocks of a blocks node in order, from the one that holds item first on, with their bytes;
// with keep they may be kept, else they are good until f returns. Blocks follow one another, so they are read in runs:
// as much as a request is worth at the source at first, since f may want no more, and twice as much each time.
func (n Node) eachBlock(ctx context.Context, first int64, keep bool, f func(b block, p []byte) error) error {
	ctx = source.UpTo(ctx, n.r.payload+n.e.end)
	c := n.r.cursor(ctx, n.e.children)
	left, b := n.e.count, block{end: -1}
	if first > 0 {
		k, err := n.r.extendBlocks(c, n.r.directory(&n.e), first)
		if err != nil {
			return err
		}
		i := searchLast(k.items, first)
		c.seek(k.sample[i])
		left -= k.index[i]
		b.before = k.items[i]
	}
	most := min(maxBlockRun, n.r.s.maxValue)
	limit := min(n.r.s.obj.Cost().Gap, most)
	var run []block
	flush := func() error {
		err := n.blockRun(ctx, run, keep, f)
		if len(run) > 0 {
			limit = min(max(2*limit, 2*(b.end-run[0].start)), most)
		}
		run = run[:0]
		return err
	}
	for ; left > 0; left-- {
		count, start, end, err := c.block(b.end, n.e.start, n.e.end)
		if err != nil {
			return cmp.Or(flush(), err)
		}
		next := block{before: b.before + b.count, count: count, start: start, end: end}
		if len(run) > 0 && end-run[0].start > limit {
			if err := flush(); err != nil {
				return err
			}
		}
		if b = next; b.before+count > first {
			run = append(run, b)
		}
	}
	return flush()
}

// blockRun calls f for blocks that follow one another. Those that are not remembered are read together.
func (n Node) blockRun(ctx context.Context, run []block, keep bool, f func(b block, p []byte) error) error {
	r := n.r
	for len(run) > 0 {
		var known []byte
		k := 0 // blocks to read
		if r.s.cache != nil && r.head == nil {
			for ; k < len(run) && known == nil; k++ {
				known = r.s.cache.get(r.payload+run[k].start, run[k].end-run[k].start)
			}
			if known != nil {
				k--
			}
		} else if r.head == nil {
			k = len(run)
		}
		if k <= 1 && known == nil { // in memory, or one block
			p, err := r.read(ctx, run[0].start, run[0].end)
			if err == nil {
				err = f(run[0], p)
			}
			if err != nil {
				return err
			}
			run = run[1:]
			continue
		}
		if k > 0 {
			from := run[0].start
			buf := make([]byte, run[k-1].end-from)
			if err := r.s.countedRead(r.s.obj)(ctx, buf, r.payload+from); err != nil {
				return err
			}
			for _, b := range run[:k] {
				p := buf[b.start-from : b.end-from : b.end-from]
				if keep || r.s.cache != nil { // one block that is kept keeps no other
					p = bytes.Clone(p)
				}
				if r.s.cache != nil {
					r.s.cache.put(r.payload+b.start, p)
				}
				if err := f(b, p); err != nil {
					return err
				}
			}
			run = run[k:]
		}
		if known != nil {
			if err := ctx.Err(); err != nil {
				return r.ended(err)
			}
			if err := f(run[0], known); err != nil {
				return err
			}
			run = run[1:]
		}
	}
	return nil
}
