package msglc

import (
	"cmp"
	"context"
	"io"
	"strconv"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Node is a place in a document: a value with a node in the table of contents, a value inside a leaf, a child archive,
// or a slice of a list. It is a small value that stays good as long as its reader is open, and is safe for concurrent
// use. Making one reads at most what is needed to find it; its content is read by the methods that return content.
type Node struct {
	r     *Reader
	e     entry
	data  []byte // the bytes of the value, when they are in memory
	peek  []byte // its first bytes, see Peek
	slice *sliceOf
	path  *Path // from the root of the document, for messages; nil where it is not known
}

// sliceOf is the list of the items from, from+step, … of a list.
type sliceOf struct {
	list              Node
	from, step, count int64
}

// Child is a child of a node: Key is its encoded key in a map and has no data in a list.
type Child struct {
	Index int64
	Key   value.Raw
	Node  Node
}

// Root returns the root node.
func (r *Reader) Root() Node {
	n := Node{r: r, e: r.root}
	if r.combineDepth == 0 {
		n.path = &r.noPath
	}
	return n
}

// resolve goes from a child archive to its root.
func (n Node) resolve(ctx context.Context) (Node, error) {
	for n.e.isArchive() {
		sub, err := n.r.archive(ctx, n.e.offset)
		if err != nil {
			return n, n.r.locate(err)
		}
		n = Node{r: sub, e: sub.root, path: n.path}
	}
	return n, nil
}

// enter makes n ready for a step into it: resolved, with the bytes of a leaf in memory, which the step needs all, and
// its kind.
func (n Node) enter(ctx context.Context) (Node, value.Kind, error) {
	n, err := n.resolve(ctx)
	if err == nil && n.slice == nil && n.e.children == 0 {
		n, err = n.loaded(ctx)
	}
	if err != nil {
		return n, value.Invalid, err
	}
	kind, err := n.Kind(ctx)
	return n, kind, err
}

func (r *Reader) locate(err error) error { return fault.Locate(err, r.s.obj.Name(), "", 0) }

func (n Node) invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "msglc", format, args...).In(n.r.s.obj.Name())
}

// noBytes is the error of a node that has no encoding, with its place.
func (n Node) noBytes(text string) error {
	at := n.r.payload + n.e.start
	switch {
	case n.e.isArchive():
		at = n.r.payload + n.e.offset
	case n.e.at == 0 && n.r.start >= 0:
		at = n.r.start
	}
	return fault.New(fault.Invalid, "msglc", "%s", text).In(n.r.s.obj.Name()).At(at)
}

// Form returns the form of the node. A child archive that was not opened yet is [Combined].
func (n Node) Form() Form {
	if n.slice != nil {
		return Slice
	}
	return n.e.form
}

// Archive returns the archive that holds the node; for a child of a combined archive that is the child's.
func (n Node) Archive(ctx context.Context) (*Reader, error) {
	n, err := n.resolve(ctx)
	return n.r, err
}

// Kind returns the kind of the value: [value.Array], [value.Map] or that of a scalar. It may read the first bytes of
// the value. Of a tagged value it is the kind of the content.
func (n Node) Kind(ctx context.Context) (value.Kind, error) {
	n, err := n.resolve(ctx)
	switch {
	case err != nil:
		return value.Invalid, err
	case n.slice != nil || n.e.form == Blocks:
		return value.Array, nil
	case n.e.children != 0 && n.e.isMap:
		return value.Map, nil
	case n.e.children != 0:
		return value.Array, nil
	}
	h, err := n.head(ctx)
	return h.Kind, err
}

// peekSize is what is read for the head of a value. Tags in front of it are rare and short.
const peekSize = 64

// Peek reads the first bytes of the values of many nodes of one reader with few requests, so that [Node.Kind] and
// [Node.Len] of them read nothing more. Of values that are shorter than a request is worth (Cost.Gap of the object) it
// reads all, so that nothing of them is read again. It changes the nodes in place, and not at all when it fails.
func Peek(ctx context.Context, nodes []Node) error {
	var ranges []source.Range
	var wanted []int
	for i, n := range nodes {
		if n.e.hasRange && n.e.children == 0 && n.data == nil && n.peek == nil && n.r.head == nil {
			start, end := n.r.payload+n.e.start, n.r.payload+n.e.end
			if end-start > max(peekSize, n.r.s.obj.Cost().Gap) {
				end = start + peekSize
			}
			ranges = append(ranges, source.Range{Start: start, End: end})
			wanted = append(wanted, i)
		}
	}
	if len(ranges) == 0 {
		return nil
	}
	obj := nodes[wanted[0]].r.s.obj
	heads, err := source.Fetch(ctx, obj, ranges)
	if err != nil {
		return err
	}
	for k, i := range wanted {
		if n := &nodes[i]; int64(len(heads[k])) == n.e.end-n.e.start {
			n.data = heads[k]
		} else {
			n.peek = heads[k]
		}
	}
	return nil
}

// head reads the head of a value with a range, behind its tags.
func (n Node) head(ctx context.Context) (value.Head, error) {
	p := n.data
	if p == nil {
		p = n.peek
	}
	if p == nil {
		var err error
		if p, err = n.r.read(ctx, n.e.start, min(n.e.end, n.e.start+peekSize)); err != nil {
			return value.Head{}, n.r.locate(err)
		}
	}
	pos := 0
	for {
		h, err := value.ReadHead(n.r.h.codec, p[pos:])
		if err == io.ErrUnexpectedEOF && int64(len(p)) < n.e.end-n.e.start { // a long row of tags
			if p, err = n.r.read(ctx, n.e.start, n.e.end); err != nil {
				return value.Head{}, n.r.locate(err)
			}
			continue
		}
		if err == io.ErrUnexpectedEOF {
			err = fault.New(fault.Corrupt, "msglc", "value ends within its head").At(0)
		}
		if err != nil {
			return h, n.fault(fault.Shift(err, int64(pos)))
		}
		if h.Kind != value.Tag {
			return h, nil
		}
		pos += h.Size
	}
}

// fault gives an error in the value's bytes its place in the object.
func (n Node) fault(err error) error {
	return fault.Locate(err, n.r.s.obj.Name(), "", n.r.payload+n.e.start)
}

// Range returns the bytes of the value in the object, and false for a value that has no bytes of its own: a blocks or
// combined node, a list or map with archives among its children, or a slice.
func (n Node) Range() (source.Range, bool) {
	if n.slice != nil || !n.e.hasRange || n.mixed() {
		return source.Range{}, false
	}
	return source.Range{Start: n.r.payload + n.e.start, End: n.r.payload + n.e.end}, true
}

// Size returns the stored bytes of the value: of the items for blocks and slices, of the archive for a child archive,
// of the archives for a combined node.
func (n Node) Size(ctx context.Context) (int64, error) {
	archive := n.e.isArchive()
	n, err := n.resolve(ctx)
	switch {
	case err != nil:
		return 0, err
	case archive:
		return PrefixSize + n.r.h.tocStart + n.r.h.tocSize, nil
	case n.slice != nil:
		total := int64(0)
		for child, err := range n.Children(ctx) {
			if err != nil {
				return 0, err
			}
			size, err := child.Node.Size(ctx)
			if err != nil {
				return 0, err
			}
			total += size
		}
		return total, nil
	case n.e.form == Blocks:
		k, err := n.allBlocks(ctx)
		if err != nil {
			return 0, err
		}
		return k.end - k.start, nil
	}
	return n.e.end - n.e.start, nil
}

// allBlocks returns what is known of a blocks node after a pass over all its blocks.
func (n Node) allBlocks(ctx context.Context) (*known, error) {
	k, err := n.r.extendBlocks(n.r.cursor(ctx, 0), n.r.directory(&n.e), maxPosition)
	return k, n.r.locate(err)
}

// Len returns the number of items or pairs; a scalar is [fault.Invalid].
func (n Node) Len(ctx context.Context) (int64, error) {
	n, err := n.resolve(ctx)
	switch {
	case err != nil:
		return 0, err
	case n.slice != nil:
		return n.slice.count, nil
	case n.e.form == Blocks:
		k, err := n.allBlocks(ctx)
		if err != nil {
			return 0, err
		}
		return k.itemsSeen, nil
	case n.e.children != 0:
		return n.e.count, nil
	}
	h, err := n.head(ctx)
	switch {
	case err != nil:
		return 0, err
	case h.Kind != value.Array && h.Kind != value.Map:
		return 0, n.invalid("%s has no length", h.Kind)
	case !h.Indefinite:
		return int64(h.Arg), nil
	}
	count := int64(0)
	for _, err := range n.Children(ctx) {
		if err != nil {
			return 0, err
		}
		count++
	}
	return count, nil
}

// Index returns item i of a list, counted from the end when it is negative. An index outside the list is
// [fault.NotFound], found without reading the items; a node that is no list is [fault.Invalid].
func (n Node) Index(ctx context.Context, i int64) (Node, error) {
	return n.index(ctx, i, "")
}

// index is Index by a text, which errors show unless it is "": it may be a number that does not fit into i.
func (n Node) index(ctx context.Context, i int64, text string) (Node, error) {
	n, kind, err := n.enter(ctx)
	if err != nil {
		return n, err
	}
	if kind != value.Array {
		return n, n.invalid("index %s into a %s", cmp.Or(text, strconv.FormatInt(i, 10)), kind)
	}
	// Only what needs the length asks for it: an index from the end, and one that was not found.
	if i < 0 || n.slice != nil || n.e.children != 0 && n.e.form != Blocks {
		count, err := n.Len(ctx)
		if err != nil {
			return n, err
		}
		if i < -count || i >= count {
			return n, n.noIndex(i, text, count)
		}
		if i < 0 {
			i += count
		}
	}
	switch {
	case n.slice != nil:
		return n.slice.list.Index(ctx, n.slice.from+i*n.slice.step)
	case n.e.form == Blocks:
		return n.blockItem(ctx, i, text)
	case n.e.children != 0:
		return n.child(ctx, i)
	}
	return n.indexInside(ctx, i, text)
}

func (n Node) noIndex(i int64, text string, count int64) error {
	return fault.New(fault.NotFound, "msglc", "index %s in a list of %d", cmp.Or(text, strconv.FormatInt(i, 10)), count).In(n.r.s.obj.Name())
}

// child makes child i of a node with a table.
func (n Node) child(ctx context.Context, i int64) (Node, error) {
	c := n.r.cursor(ctx, 0)
	d := n.r.directory(&n.e)
	e, _, err := n.r.child(c, d, i)
	if err != nil {
		return n, n.r.locate(err)
	}
	d.touch()
	return Node{r: n.r, e: e}, nil
}

// blockItem finds the block that holds an item, reads it and passes the items in front.
func (n Node) blockItem(ctx context.Context, i int64, text string) (Node, error) {
	d := n.r.directory(&n.e)
	c := n.r.cursor(ctx, 0)
	k, err := n.r.extendBlocks(c, d, i)
	if err != nil {
		return n, n.r.locate(err)
	}
	if i >= k.itemsSeen {
		return n, n.noIndex(i, text, k.itemsSeen)
	}
	b, err := n.r.blockOf(c, d, k, i)
	if err != nil {
		return n, n.r.locate(err)
	}
	p, err := n.r.read(ctx, b.start, b.end)
	if err != nil {
		return n, n.r.locate(err)
	}
	at, err := value.Skip(n.r.h.codec, p, int(i-b.before), n.r.s.limits)
	if err != nil {
		return n, n.badBlock(b, err, 0)
	}
	size, err := value.Skip(n.r.h.codec, p[at:], 1, n.r.s.limits)
	if err != nil {
		return n, n.badBlock(b, err, int64(at))
	}
	rest := int(b.count - (i - b.before) - 1)
	behind, err := value.Skip(n.r.h.codec, p[at+size:], rest, n.r.s.limits)
	if err != nil {
		return n, n.badBlock(b, err, int64(at+size))
	}
	if used := at + size + behind; used != len(p) {
		return n, n.r.blockSurplus(b, int64(used))
	}
	return n.inside(b.start+int64(at), p[at:at+size]), nil
}

func (n Node) badBlock(b block, err error, at int64) error {
	if err == io.ErrUnexpectedEOF {
		err = fault.New(fault.Corrupt, "msglc", "block of %d items ends within them after %d bytes", b.count, b.end-b.start).At(0)
		at = 0
	}
	return n.r.locate(fault.Shift(fault.Shift(err, at), n.r.payload+b.start))
}

func (r *Reader) blockSurplus(b block, used int64) error {
	return r.locate(fault.New(fault.Corrupt, "msglc", "block of %d items takes %d of its %d bytes", b.count, used, b.end-b.start).At(r.payload + b.start + used))
}

// inside makes the node of a value inside a leaf or block.
func (n Node) inside(start int64, data []byte) Node {
	return Node{r: n.r, data: data[:len(data):len(data)], e: entry{
		form: Inside, hasRange: true, whole: true, at: -1, start: start, end: start + int64(len(data)),
	}}
}

// Lookup returns the value of a key of a map. The type of the key counts: 7, 7.0 and "7" are three keys. A key that is
// not there is [fault.NotFound], a node that is no map [fault.Invalid].
func (n Node) Lookup(ctx context.Context, key value.Raw) (Node, error) {
	n, kind, err := n.enter(ctx)
	if err != nil {
		return n, err
	}
	if kind != value.Map {
		return n, n.invalid("key %s into a %s", keyText(key), kind)
	}
	want := canonicalKey(nil, key.Codec, key.Data)
	if n.e.children == 0 {
		return n.lookupInside(ctx, want, key)
	}
	c := n.r.cursor(ctx, 0)
	d := n.r.directory(&n.e)
	i, err := n.r.find(c, d, want)
	if err != nil {
		return n, n.r.locate(err)
	}
	if i < 0 {
		return n, n.noKey(key)
	}
	return n.child(ctx, i)
}

func (n Node) noKey(key value.Raw) error {
	return fault.New(fault.NotFound, "msglc", "no key %s", keyText(key)).In(n.r.s.obj.Name())
}

// Slice returns the items from, from+step, … before to (behind to, when step is negative) as a list. Bounds count from
// the end when they are negative and are clamped to the list.
func (n Node) Slice(ctx context.Context, from, to, step int64) (Node, error) {
	n, kind, err := n.enter(ctx)
	if err != nil {
		return n, err
	}
	if kind != value.Array {
		return n, n.invalid("slice of a %s", kind)
	}
	if step == 0 {
		return n, n.invalid("slice with a step of 0")
	}
	count, err := n.Len(ctx)
	if err != nil {
		return n, err
	}
	lo, hi := int64(0), count
	if step < 0 {
		lo, hi = -1, count-1
	}
	clamp := func(x int64) int64 {
		if x < 0 {
			x = max(x+count, lo)
		}
		return min(x, hi)
	}
	from, to = clamp(from), clamp(to)
	items := int64(0)
	if step > 0 && from < to {
		items = (to-from-1)/step + 1
	} else if step < 0 && from > to {
		items = (from-to-1)/-step + 1
	}
	return Node{r: n.r, e: entry{form: Slice}, slice: &sliceOf{list: n, from: from, step: step, count: items}}, nil
}
