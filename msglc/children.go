package msglc

import (
	"context"
	"errors"
	"iter"

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

// eachOfSlice makes one pass over the list. Backwards it remembers the items of the pass, where finding one by its index
// would be a pass of its own.
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
	c := n.r.cursor(ctx, n.e.children)
	d := n.r.directory(&n.e)
	if first > 0 && first < n.e.count {
		at, err := n.r.childAt(c, d, first)
		if err != nil {
			return err
		}
		c.seek(at)
	}
	for i := first; i < n.e.count; i++ {
		at := c.at()
		child := Child{Index: i}
		if n.e.isMap {
			if err := c.skip(1); err != nil {
				return err
			}
			key, err := c.bytesBetween(at, c.at())
			if err != nil {
				return err
			}
			child.Key = value.Raw{Codec: n.r.h.codec, Data: key}
		}
		e, err := c.entry(n.e.start, n.e.end)
		if err != nil {
			return err
		}
		d.accessed.Add(1)
		child.Node = Node{r: n.r, e: e}
		if !yield(child, nil) {
			return errStop
		}
		if !e.whole {
			c.seek(e.at)
			if err := c.skip(1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n Node) eachOfBlocks(ctx context.Context, first int64, yield func(Child, error) bool) error {
	return n.eachBlock(ctx, first, func(b block) error {
		i := b.before
		p, err := n.r.read(ctx, b.start, b.end)
		if err != nil {
			return err
		}
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

// eachBlock calls f for the blocks of a blocks node in order, from the one that holds item first on.
func (n Node) eachBlock(ctx context.Context, first int64, f func(b block) error) error {
	c := n.r.cursor(ctx, n.e.children)
	left, b := n.e.count, block{end: -1}
	if first > 0 {
		d := n.r.directory(&n.e)
		if err := n.r.extendBlocks(c, d, first); err != nil {
			return err
		}
		d.mu.RLock()
		k := searchLast(d.items, first)
		c.seek(d.sample[k])
		left -= d.index[k]
		b.before = d.items[k]
		d.mu.RUnlock()
	}
	for ; left > 0; left-- {
		count, start, end, err := c.block(b.end, n.e.start, n.e.end)
		if err != nil {
			return err
		}
		b = block{before: b.before + b.count, count: count, start: start, end: end}
		if b.before+count <= first {
			continue
		}
		if err := f(b); err != nil {
			return err
		}
	}
	return nil
}
