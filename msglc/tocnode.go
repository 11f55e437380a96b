package msglc

import (
	"errors"
	"fmt"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// Form is the form of a node (docs/format/msglc.md, "Nodes"), or says how a node of this package was reached.
type Form uint8

// The forms.
const (
	Leaf     Form = 1 + iota // one value, decoded as a whole
	Blocks                   // an array, given by runs of items
	List                     // an array with a node for every item
	Map                      // a map with a node for every pair
	Combined                 // an array or map whose children are archives
	Inside                   // a value inside a leaf or a block: not in the table of contents
	Slice                    // some items of a list, as a list of their own
)

var formNames = [...]string{Leaf: "leaf", Blocks: "blocks", List: "list", Map: "map", Combined: "combined", Inside: "inside", Slice: "slice"}

// String returns the name of the form in lower case.
func (f Form) String() string {
	if int(f) < len(formNames) && f > 0 {
		return formNames[f]
	}
	return fmt.Sprintf("form(%d)", uint8(f))
}

// entry is one parsed node of the table of contents, without its children.
type entry struct {
	form       Form
	isMap      bool  // the children have keys
	hasRange   bool  // p gives the bytes of the whole value
	at         int64 // of the node in the table
	start, end int64 // payload range; that of the parent for a node without one
	children   int64 // position in the table of the first child (its key, in a map) or block
	count      int64 // children or blocks
	offset     int64 // form Combined without children: a child archive starts here
	whole      bool  // the node was parsed whole, and ends at behind
	behind     int64
	rest       int64 // otherwise: pairs of the node behind its children, -1 when a break follows them
	open       bool  // the children end with a break
}

// isArchive reports whether the entry is the offset of a child archive.
func (e *entry) isArchive() bool { return e.form == Combined && e.children == 0 }

// entry parses the node at the cursor. lo and hi are the payload range it must lie in.
func (c *tocCursor) entry(lo, hi int64) (e entry, err error) {
	e.at = c.at()
	if err := c.need(); err != nil {
		return e, err
	}
	if start, end, ok := c.leafRange(); ok {
		e.form, e.hasRange, e.whole, e.behind = Leaf, true, true, c.at()
		e.start, e.end = start, end
		return e, c.checkRange(&e, lo, hi)
	}
	h, err := c.anyHead()
	if err != nil {
		return e, err
	}
	if h.Kind == value.Uint {
		c.archives = true
		e.form, e.whole, e.behind, e.offset = Combined, true, c.at(), int64(min(h.Arg, maxPosition))
		e.start, e.end = lo, hi
		if e.offset+PrefixSize >= c.payload {
			return e, c.failAt(e.at, "child archive at %d with its prefix of %d, but the payload has %d bytes", h.Arg, PrefixSize, c.payload)
		}
		return e, nil
	}
	if h.Kind != value.Map {
		return e, c.failAt(e.at, "%s where a node is due", h.Kind)
	}
	e.start, e.end = lo, hi
	hasP, seenT, hasT, blocks := false, false, false, entry{}
	for i := int64(0); ; i++ {
		more, err := c.more(h, i)
		if err != nil {
			return e, err
		}
		if !more {
			break
		}
		key, err := c.nodeKey()
		if err != nil {
			return e, err
		}
		switch {
		case key == 'p' && hasP, key == 't' && seenT:
			return e, c.twoOf(&e, key)
		case key == 'p':
			hasP = true
			if err := c.parseP(&e, &blocks); err != nil {
				return e, err
			}
		case key == 't':
			seenT = true
			at := c.at()
			t, err := c.anyHead()
			if err != nil {
				return e, err
			}
			switch t.Kind {
			case value.Null: // as if it were absent
				continue
			case value.Array:
				e.form = List
			case value.Map:
				e.form, e.isMap = Map, true
			default:
				return e, c.failAt(at, "t is of kind %s, which needs to be a list or a map", t.Kind)
			}
			hasT = true
			e.children, e.count, e.open = c.at(), int64(t.Arg), t.Indefinite
			if !t.Indefinite && (hasP || !h.Indefinite && i+1 == int64(h.Arg)) {
				// What follows are the children; what stands behind them is for behindChildren.
				e.rest = int64(h.Arg) - i - 1
				if h.Indefinite {
					e.rest = -1
				}
				return c.finish(&e, blocks, lo, hi)
			}
			s, err := c.contentOf(t)
			if err != nil {
				return e, err
			}
			e.count = s.count
		default:
			if err := c.skip(1); err != nil {
				return e, err
			}
		}
	}
	e.whole, e.behind = true, c.at()
	if !hasP && !hasT {
		return e, c.failAt(e.at, "node with neither p nor t")
	}
	return c.finish(&e, blocks, lo, hi)
}

func (c *tocCursor) twoOf(e *entry, key byte) error {
	return c.failAt(e.at, "node with two values of %c", key)
}

func (c *tocCursor) finish(e *entry, blocks entry, lo, hi int64) (entry, error) {
	switch {
	case e.form == List || e.form == Map:
		if !e.hasRange {
			e.start, e.end = lo, hi
			if e.count == 0 {
				return *e, c.failAt(e.at, "combined node without children")
			}
			d := *c
			d.seek(e.children)
			if e.count > 0 {
				combined, err := d.startsWithOffset(e.isMap)
				if err != nil {
					return *e, err
				}
				if combined {
					e.form = Combined
				}
			}
			return *e, nil
		}
	case e.hasRange:
		e.form = Leaf
	default:
		blocks.at, blocks.whole, blocks.behind = e.at, e.whole, e.behind
		blocks.start, blocks.end = lo, hi
		return blocks, nil
	}
	return *e, c.checkRange(e, lo, hi)
}

// startsWithOffset reports whether the child at the cursor is the offset of an archive; the cursor stays. What is wrong with
// a child is for whoever reads it; a read that fails is an error here as well.
func (c *tocCursor) startsWithOffset(isMap bool) (bool, error) {
	at := c.at()
	defer c.seek(at)
	var h value.Head
	var err error
	if isMap {
		err = c.skip(1)
	}
	if err == nil {
		h, err = c.head()
	}
	if errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Limit) {
		return false, nil
	}
	return err == nil && h.Kind == value.Uint, err
}

// nodeKey reads a key of a node: 'p', 't', or 0 for another, which is passed.
func (c *tocCursor) nodeKey() (byte, error) {
	at := c.at()
	h, err := c.anyHead()
	if err != nil {
		return 0, err
	}
	if h.Kind == value.String && !h.Indefinite {
		if h.Arg != 1 {
			c.seek(at)
			return 0, c.skip(1)
		}
		p, err := c.content(1)
		if err != nil {
			return 0, err
		}
		return p[0], nil
	}
	c.seek(at)
	if err := c.skip(1); err != nil || !h.Indefinite || c.at()-at > 64 {
		return 0, err
	}
	raw, err := c.bytesBetween(at, c.at())
	if _, name := keyContent(c.codec, raw); err == nil && h.Kind == value.String && len(name) == 1 {
		return name[0], nil
	}
	return 0, err
}

// parseP reads the value of p: the range of the node, or its blocks.
func (c *tocCursor) parseP(e, blocks *entry) error {
	at := c.at()
	h, err := c.anyHead()
	if err != nil {
		return err
	}
	if h.Kind != value.Array {
		return c.failAt(at, "p is of kind %s, which needs to be a list", h.Kind)
	}
	first := c.at()
	if h.Indefinite {
		s, err := c.contentOf(h)
		if err != nil {
			return err
		}
		h.Arg = uint64(s.count)
		c.seek(first)
	}
	if h.Arg == 0 {
		return c.failAt(at, "p is an empty list")
	}
	item, err := c.anyHead()
	if err != nil {
		return err
	}
	c.seek(first)
	if item.Kind == value.Array {
		blocks.form, blocks.children, blocks.count = Blocks, first, int64(h.Arg)
		if err := c.skip(blocks.count); err != nil {
			return err
		}
		return c.closing(h.Indefinite)
	}
	if h.Arg != 2 {
		return c.failAt(at, "p has %d numbers, which needs to be 2", h.Arg)
	}
	if e.start, err = c.position(); err != nil {
		return err
	}
	if e.end, err = c.position(); err != nil {
		return err
	}
	e.hasRange = true
	return c.closing(h.Indefinite)
}

// block reads one block of a blocks node. Its range starts at from, where from is not negative.
func (c *tocCursor) block(from, lo, hi int64) (count, start, end int64, err error) {
	if err = c.need(); err != nil {
		return
	}
	at := c.at()
	if p, behind, ok := c.numbers(c.pos+1, 3); ok && c.w[c.pos] == nodeShapes[c.codec].block {
		count, start, end = p[0], p[1], p[2]
		c.pos = behind
	} else if count, start, end, err = c.plainBlock(); err != nil {
		return
	}
	switch {
	case start >= end || start < lo || end > hi:
		err = c.failAt(at, "block [%d, %d), which needs to lie in [%d, %d)", start, end, lo, hi)
	case from >= 0 && start != from:
		err = c.failAt(at, "block starts at %d, the one before ends at %d", start, from)
	case count < 1 || count > end-start:
		err = c.failAt(at, "block of %d items in %d bytes", count, end-start)
	}
	return
}

// plainBlock reads the numbers of a block of any encoding.
func (c *tocCursor) plainBlock() (count, start, end int64, err error) {
	at := c.at()
	h, err := c.anyHead()
	if err != nil {
		return 0, 0, 0, err
	}
	if h.Kind != value.Array || h.Arg != 3 && !h.Indefinite {
		return 0, 0, 0, c.failAt(at, "%s of %d where a block of 3 numbers is due", h.Kind, h.Arg)
	}
	if count, err = c.position(); err != nil {
		return
	}
	if start, err = c.position(); err != nil {
		return
	}
	if end, err = c.position(); err != nil {
		return
	}
	return count, start, end, c.closing(h.Indefinite)
}

func (c *tocCursor) checkRange(e *entry, lo, hi int64) error {
	if e.start < lo || e.end > hi || e.start >= e.end {
		return c.failAt(e.at, "node [%d, %d), which needs to lie in [%d, %d)", e.start, e.end, lo, hi)
	}
	return nil
}

func (c *tocCursor) failAt(at int64, format string, args ...any) error {
	e := c.corrupt(format, args...)
	return e.At(c.t.base + at)
}

// checkBlocks parses all the blocks of a node and returns the number of items and the payload range. The cursor ends
// behind them.
func (c *tocCursor) checkBlocks(e *entry) (items, start, end int64, err error) {
	c.seek(e.children)
	from := int64(-1)
	for i := range e.count {
		n, s, t, err := c.block(from, e.start, e.end)
		if err != nil {
			return 0, 0, 0, err
		}
		if i == 0 {
			start = s
		}
		items, end, from = items+n, t, t
	}
	return items, start, end, nil
}

// walkTOC parses the whole table: one node tree that fills it, every node of a right form, every number in range. It
// calls visit, when that is not nil, for every node in order, with its encoded key in a map.
func (c *tocCursor) walkTOC(tocStart int64, maxDepth int, visit func(e *entry, key []byte) error) error {
	type frame struct {
		left int64 // children to come
		node entry
	}
	open := []frame{{left: 1, node: entry{start: 0, end: tocStart}}}
	c.seek(0)
	for len(open) > 0 {
		top := &open[len(open)-1]
		if top.left == 0 {
			if top.node.whole {
				c.seek(top.node.behind)
			} else if err := c.behindChildren(&top.node); err != nil {
				return err
			}
			open = open[:len(open)-1]
			continue
		}
		top.left--
		var key []byte
		if top.node.isMap {
			at := c.at()
			if err := c.skip(1); err != nil {
				return err
			}
			if visit != nil {
				var err error
				if key, err = c.bytesBetween(at, c.at()); err != nil {
					return err
				}
			}
		}
		e, err := c.entry(top.node.start, top.node.end)
		if err != nil {
			return err
		}
		if len(open) == 1 && e.isArchive() {
			return c.failAt(e.at, "int where the root node is due")
		}
		if visit != nil {
			if err := visit(&e, key); err != nil {
				return err
			}
		}
		switch {
		case e.form == Blocks:
			if _, _, _, err := c.checkBlocks(&e); err != nil {
				return err
			}
			c.seek(e.behind)
		case e.children != 0:
			if len(open) > maxDepth {
				return tooDeep(maxDepth).At(c.t.base + e.at)
			}
			c.seek(e.children)
			open = append(open, frame{left: e.count, node: e})
		}
	}
	if c.at() != c.t.size {
		return c.corrupt("table of contents has %d bytes behind its root node", c.t.size-c.at())
	}
	return nil
}
