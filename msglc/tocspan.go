package msglc

import (
	"math/bits"
	"sync/atomic"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// A pass over a container of the table tells where its content ends, and how much is in it. That is worth remembering
// where it was long: a node of the older order of keys, "t" before "p", has its range behind all its children, so every
// level of such nodes would pass over all the levels below it; and so would a walk that comes back from the children of
// a node and looks for its end.

// span is the content of one container of a table.
type span struct {
	end   int64 // behind the content; at the break, where there is one
	count int64 // items or pairs
}

// plainPasses is how often the bytes of a table may be passed over before what is in the containers is remembered too.
// A pass that remembers takes some twenty times as long, and few documents have that many levels of long containers.
const plainPasses = 4

// spanWorth is the length from which a span is remembered when it comes along, in bytes of the table.
const spanWorth = 512

// spanShare is how much shorter than the container that was passed those in it may be that are remembered with it. With
// it, a byte of a table of 100 MB is passed some four times, however deep its nodes are.
const spanShare = 64

// maxSpans bounds the spans that are remembered of one table, about 5 MB of them.
const maxSpans = 1 << 16

// spanTable remembers the spans of one table, by open addressing; it goes when the table does. It does not grow, and
// where many of the same place in it came first, one of them makes room. Lookups write nothing, so that goroutines that go
// over the same children do not wait for one another.
type spanTable struct {
	slots atomic.Pointer[[]atomic.Pointer[spanAt]] // nil until there is one; their number is a power of 2
}

type spanAt struct {
	at int64 // of the first item
	span
}

// spanProbes is how many slots are looked at. Half of them are free at least, so by far the most are found by the first two.
const spanProbes = 16

func spanSlot(at int64) uint64 { return uint64(at) * 0x9e3779b97f4a7c15 >> 32 }

func (t *spanTable) of(at int64) (span, bool) {
	p := t.slots.Load()
	if p == nil {
		return span{}, false
	}
	slots := *p
	for i, h := uint64(0), spanSlot(at); i < spanProbes; i++ {
		s := slots[(h+i)%uint64(len(slots))].Load()
		if s == nil {
			break
		}
		if s.at == at {
			return s.span, true
		}
	}
	return span{}, false
}

// note remembers a span of a table of some size, and returns the bytes that this took.
func (t *spanTable) note(at int64, s span, size int64) (took int64) {
	if _, known := t.of(at); known {
		return 0
	}
	p := t.slots.Load()
	if p == nil {
		// Where spans do not nest there are at most so many that are worth it.
		n := min(max(256, 2*size/spanWorth), 2*maxSpans)
		made := make([]atomic.Pointer[spanAt], 1<<bits.Len64(uint64(n-1)))
		if t.slots.CompareAndSwap(nil, &made) {
			took += 8 * int64(len(made))
		}
		p = t.slots.Load()
	}
	slots, entry := *p, &spanAt{at, s}
	took += 32
	h := spanSlot(at)
	for i := range uint64(spanProbes) {
		if slots[(h+i)%uint64(len(slots))].CompareAndSwap(nil, entry) {
			return took
		}
	}
	slots[h%uint64(len(slots))].Store(entry)
	return took
}

// noteSpan remembers the content of the container whose first item stands at a place.
func (t *tocBytes) noteSpan(at int64, s span) {
	if took := t.spans.note(at, s, t.size); took > 0 && t.pool.keep != nil {
		t.pool.keep(took)
	}
}

// contentOf passes over the content of the container whose head h was just read, with its break, and returns its span.
func (c *tocCursor) contentOf(h value.Head) (span, error) {
	start := c.at()
	s, ok := c.t.spans.of(start)
	switch {
	case ok:
	case !h.Indefinite && c.t.passed.Load() < plainPasses*c.t.size:
		n := int64(h.Arg)
		if h.Kind == value.Map {
			n *= 2
		}
		if err := c.skip(n); err != nil {
			return s, err
		}
		s = span{end: c.at(), count: int64(h.Arg)}
		if c.t.passed.Add(s.end - start); s.end-start >= spanWorth {
			c.t.noteSpan(start, s)
		}
	default:
		var err error
		if s, err = c.measure(h); err != nil {
			return s, err
		}
	}
	c.seek(s.end)
	return s, c.closing(h.Indefinite)
}

// more reports whether item i of a container with the head h follows, and passes the break when there is one in its
// place.
func (c *tocCursor) more(h value.Head, i int64) (bool, error) {
	if !h.Indefinite {
		return i < int64(h.Arg), nil
	}
	if err := c.need(); err != nil {
		return false, err
	}
	if c.pos < len(c.w) && c.w[c.pos] == cborBreak {
		c.pos++
		return false, nil
	}
	return true, nil
}

// closing passes the break of a container, when it has one.
func (c *tocCursor) closing(indefinite bool) error {
	if !indefinite {
		return nil
	}
	if err := c.need(); err != nil {
		return err
	}
	if c.pos >= len(c.w) || c.w[c.pos] != cborBreak {
		return c.corrupt("no break behind the last item in the table of contents")
	}
	c.pos++
	return nil
}

const cborBreak = 0xff

// measure passes over the content of a container, without its break, and remembers its span and the longer ones of
// those in it.
func (c *tocCursor) measure(h value.Head) (span, error) {
	type frame struct {
		start      int64
		left       int64 // values to come, unless indefinite
		count      int64 // values passed
		isMap      bool
		indefinite bool
	}
	enter := func(h value.Head) frame {
		f := frame{start: c.at(), left: int64(h.Arg), isMap: h.Kind == value.Map, indefinite: h.Indefinite}
		if f.isMap {
			f.left *= 2
		}
		return f
	}
	open := []frame{enter(h)}
	// The length of the whole, which decides what is worth remembering, is known at the end.
	var spans []spanAt
	limit := func(worth int64) {
		kept := 0
		for _, s := range spans {
			if s.end-s.at >= worth {
				spans[kept] = s
				kept++
			}
		}
		spans = spans[:kept]
	}
	worth := int64(spanWorth)
	for {
		top := &open[len(open)-1]
		if err := c.need(); err != nil {
			return span{}, err
		}
		if !top.indefinite && top.left == 0 || top.indefinite && c.pos < len(c.w) && c.w[c.pos] == cborBreak {
			s := span{end: c.at(), count: top.count}
			if top.isMap {
				if s.count%2 != 0 {
					return s, c.corrupt("map in the table of contents ends after a key")
				}
				s.count /= 2
			}
			if s.end-top.start >= worth || len(open) == 1 {
				spans = append(spans, spanAt{top.start, s})
				if len(spans) >= maxSpans {
					worth *= 4
					limit(worth)
				}
			}
			if err := c.closing(top.indefinite); err != nil {
				return s, err
			}
			if len(open) > 1 {
				open = open[:len(open)-1]
				continue
			}
			limit(max(spanWorth, (s.end-top.start)/spanShare))
			for _, s := range spans {
				c.t.noteSpan(s.at, s.span)
			}
			return s, nil
		}
		top.left--
		top.count++
		if _, _, ok := c.leafRange(); ok {
			continue
		}
		at := c.at()
		h, err := c.anyHead()
		switch {
		case err != nil:
			return span{}, err
		case h.Kind == value.Array || h.Kind == value.Map:
			if len(open) > 2*value.MaxDepth { // no nodes; the plain pass takes any depth
				c.seek(at)
				if err := c.skip(1); err != nil {
					return span{}, err
				}
				continue
			}
			open = append(open, enter(h))
		case h.Kind == value.Tag || h.Indefinite:
			c.seek(at)
			if err := c.skip(1); err != nil {
				return span{}, err
			}
		case h.HasContent():
			if int64(h.Arg) > c.t.size-c.at() {
				return span{}, c.corrupt("table of contents ends within a string")
			}
			c.seek(c.at() + int64(h.Arg))
		}
	}
}

// leave goes behind a node whose children the cursor came from.
func (c *tocCursor) leave(e *entry) error {
	if e.whole {
		c.seek(e.behind)
		return nil
	}
	if s, ok := c.t.spans.of(e.children); ok {
		c.seek(s.end)
		return c.behindChildren(e)
	}
	c.seek(e.at)
	return c.skip(1)
}

// behindChildren goes from behind the last child of a node to its end. Only unknown keys can stand there.
func (c *tocCursor) behindChildren(e *entry) error {
	if err := c.closing(e.open); err != nil {
		return err
	}
	node := value.Head{Arg: uint64(max(e.rest, 0)), Indefinite: e.rest < 0}
	for i := int64(0); ; i++ {
		more, err := c.more(node, i)
		if err != nil || !more {
			return err
		}
		key, err := c.nodeKey()
		if err != nil {
			return err
		}
		if key == 'p' || key == 't' {
			return c.twoOf(e, key)
		}
		if err := c.skip(1); err != nil {
			return err
		}
	}
}

// checkNext checks the range of a child of e at a place of the table, in a walk over all the children: items of a list
// follow one another without a gap, between values of a map are keys. A damaged byte can make a walk take what is in a
// child for children, or the other way round.
func (c *tocCursor) checkNext(e *entry, at int64, child, before *entry) error {
	if before.hasRange && child.hasRange && (child.start < before.end || !e.isMap && child.start > before.end) {
		return c.failAt(at, "node [%d, %d), the one before it ends at %d", child.start, child.end, before.end)
	}
	return nil
}

// rootEnds checks that the table ends behind the last child of its root, where the cursor is. For nodes that are no
// root, or in which something may follow, it does nothing.
func (c *tocCursor) rootEnds(e *entry) error {
	if e.at == 0 && !e.whole && !e.open && e.rest == 0 && c.at() != c.t.size {
		return c.corrupt("table of contents has %d bytes behind its root node", c.t.size-c.at())
	}
	return nil
}

// passed remembers that the cursor has come behind the last child of a node.
func (c *tocCursor) passed(e *entry) {
	if end := c.at(); !e.whole && end-e.children >= spanWorth {
		c.t.noteSpan(e.children, span{end: end, count: e.count})
	}
}

// skipIndefinite passes a CBOR value of indefinite length.
func (c *tocCursor) skipIndefinite(at int64) error {
	left := c.t.size - at
	s := value.NewStream(c.codec, source.NewReader(c.ctx, c.t.obj, c.t.base+at, left, 4<<10), left, value.Limits{Depth: value.MaxDepth})
	if err := s.Skip(); err != nil {
		return fault.Locate(err, c.t.obj.Name(), "", c.t.base+at)
	}
	c.seek(at + s.Offset())
	return nil
}
