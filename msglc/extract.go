package msglc

import (
	"context"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// Extract writes the value of a node as an archive of its own, by copying its bytes; the codec is that of the node. A
// node of the table of contents keeps the part of the table below it, with its positions moved, so threshold and
// trivial size of the options do not matter there. The root and a child archive are copied whole, prefix and all. A
// value inside a leaf becomes a leaf. The items of a blocks node get an array header of the shortest form, and so do
// those of a slice, which gets a table of its own.
//
// The bytes of a leaf are checked to be one value, those of other nodes are not: the copy is as right as the
// original. A combined node that has no archive of its own, and a slice with a combined archive among its items or with one
// of the other codec, are [fault.Invalid], with the index of the item in the list; a codec in the options that is another
// than the node's is [fault.UnsupportedCodec].
func Extract(ctx context.Context, dst Target, n Node, o *WriteOptions) error {
	s, err := o.settings()
	if err != nil {
		return err
	}
	archive := n.e.isArchive()
	if n, err = n.resolve(ctx); err != nil {
		return err
	}
	s.codec = n.r.h.codec
	if o != nil && o.Codec != 0 && o.Codec != s.codec {
		return fault.New(fault.UnsupportedCodec, "msglc", "value of codec %s, %s was demanded", s.codec, o.Codec).In(n.r.s.obj.Name())
	}
	x := extractor{ctx: ctx, dst: dst, s: s, n: n}
	switch {
	case archive || n.slice == nil && n.e.at == 0 && n.r.start >= 0:
		err = x.copy(n.r.start, n.r.h.archiveSize())
	case n.slice != nil:
		err = x.slice()
	case n.e.form == Blocks:
		err = x.blocks()
	case n.e.form == Leaf || n.e.form == Inside:
		err = x.leaf()
	case n.e.hasRange:
		err = x.table()
	default:
		err = n.noBytes("a combined node has no archive of its own")
	}
	return n.r.locate(err)
}

type extractor struct {
	ctx  context.Context
	dst  Target
	s    writeSettings
	n    Node
	done int64
}

// copy appends bytes of the object to the target.
func (x *extractor) copy(off, n int64) error {
	return eachChunk(x.ctx, x.n.r.s.obj, off, n, func(p []byte) error {
		if _, err := x.dst.Write(p); err != nil {
			return err
		}
		x.done += int64(len(p))
		if x.s.progress != nil {
			x.s.progress(x.done)
		}
		return nil
	})
}

// leaf writes a value that becomes a leaf: below an endless threshold all are.
func (x *extractor) leaf() error {
	s := x.s
	s.threshold, s.numeric = maxPosition, PlainBlocks
	w, err := newWriter(x.ctx, x.dst, s)
	if err != nil {
		return err
	}
	e := &x.n.e
	if x.n.data != nil {
		_, err = w.Write(x.n.data)
	} else {
		err = eachChunk(x.ctx, x.n.r.s.obj, x.n.r.payload+e.start, e.end-e.start, w.pass)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return x.n.fault(w.fail(err))
	}
	return nil
}

// slice writes the items of a slice, with a table as the options say.
func (x *extractor) slice() error {
	count, err := x.n.Len(x.ctx)
	if err != nil {
		return err
	}
	w, err := newWriter(x.ctx, x.dst, x.s)
	if err != nil {
		return err
	}
	w.Write(value.AppendArrayHeader(nil, x.s.codec, int(count)))
	left := x.n.r.s.obj.Size()
	for child, err := range x.n.ahead(x.ctx) {
		if err != nil {
			return w.fail(err)
		}
		item, err := x.n.item(x.ctx, child, x.s.codec)
		if err != nil {
			return w.fail(err)
		}
		if left -= int64(len(item.Data)); left < 0 {
			return w.fail(fault.New(fault.Corrupt, "msglc", "children overlap: more bytes to copy than the file has").
				At(child.Node.r.payload + child.Node.e.start).On(x.n.pathTo(child).String()))
		}
		if _, err := w.Write(item.Data); err != nil {
			return err
		}
	}
	return w.Close()
}

// blocks writes a blocks node.
func (x *extractor) blocks() error {
	k, err := x.n.allBlocks(x.ctx)
	if err != nil {
		return err
	}
	items, start, end := k.itemsSeen, k.start, k.end
	head := value.AppendArrayHeader(nil, x.s.codec, int(items))
	return x.write(head, start, end)
}

// table writes a list or map node.
func (x *extractor) table() error { return x.write(nil, x.n.e.start, x.n.e.end) }

// write writes the archive whose payload is head and the bytes between two positions, and whose table is the one below
// the node, moved.
func (x *extractor) write(head []byte, start, end int64) error {
	if err := beginArchive(x.dst, x.s.magic); err != nil {
		return err
	}
	if len(head) > 0 {
		if _, err := x.dst.Write(head); err != nil {
			return err
		}
	}
	if err := x.copy(x.n.r.payload+start, end-start); err != nil {
		return err
	}
	h := header{codec: x.s.codec, tocStart: int64(len(head)) + end - start}
	e := tocEncoder{codec: x.s.codec, w: x.dst}
	err := e.move(x.n.r.cursor(x.ctx, 0), &x.n.e, start-int64(len(head)), x.n.r.s.depth)
	if err == nil {
		err = e.flush()
	}
	if err != nil {
		return err
	}
	h.tocSize = e.written
	_, err = x.dst.WriteAt(appendHeader(nil, h), MagicSize)
	return err
}

// move encodes the node and all below it with every position less by shift.
func (e *tocEncoder) move(c *tocCursor, root *entry, shift int64, maxDepth int) error {
	type frame struct {
		left int64 // children to come
		node entry
	}
	var open []frame
	node := *root
	for {
		switch {
		case node.isArchive():
			if node.offset < root.start || node.offset >= root.end {
				return c.failAt(node.at, "archive at %d outside its list or map", node.offset)
			}
			e.buf = value.AppendUint(e.buf, e.codec, uint64(node.offset-shift))
		case node.form == Leaf:
			e.leaf(node.start-shift, node.end-shift)
		case node.form == Blocks:
			if err := e.moveBlocks(c, &node, shift); err != nil {
				return err
			}
		case !node.hasRange:
			return c.failAt(node.at, "node without a range inside a list or map")
		default:
			if len(open) >= maxDepth {
				return tooDeep(maxDepth).At(c.t.base + node.at)
			}
			e.table(node.isMap, node.start-shift, node.end-shift, node.count)
			c.seek(node.children)
			open = append(open, frame{left: node.count, node: node})
		}
		if node.form == Blocks {
			c.seek(node.behind)
		}
		if len(e.buf) >= tocBuffer {
			if err := e.flush(); err != nil {
				return err
			}
		}
		for len(open) > 0 && open[len(open)-1].left == 0 {
			top := &open[len(open)-1]
			if len(open) == 1 {
				return nil
			}
			if top.node.whole {
				c.seek(top.node.behind)
			} else if err := c.behindChildren(&top.node); err != nil {
				return err
			}
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil
		}
		top := &open[len(open)-1]
		top.left--
		if top.node.isMap {
			at := c.at()
			if err := c.skip(1); err != nil {
				return err
			}
			key, err := c.bytesBetween(at, c.at())
			if err != nil {
				return err
			}
			e.buf = append(e.buf, key...)
		}
		var err error
		if node, err = c.entry(top.node.start, top.node.end); err != nil {
			return err
		}
	}
}

func (e *tocEncoder) moveBlocks(c *tocCursor, node *entry, shift int64) error {
	e.blocksHead(node.count)
	c.seek(node.children)
	from := int64(-1)
	for range node.count {
		n, start, end, err := c.block(from, node.start, node.end)
		if err != nil {
			return err
		}
		e.block(n, start-shift, end-shift)
		from = end
		if len(e.buf) >= tocBuffer {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
