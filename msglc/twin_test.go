package msglc

import (
	"errors"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// The plain twin of the builder: the pseudocode of docs/format/msglc.md, "Building", over a whole payload in memory,
// recursive, with a node for everything. Tests and fuzz targets compare the two.

type twinNode struct {
	start, end int64
	trivial    bool
	isMap      bool
	keys       [][]byte
	t          []*twinNode
	blocks     [][3]int64
	number     traits // of a scalar that is a plain number: its kind and size
}

type twinParser struct {
	s    *writeSettings
	p    []byte
	pos  int64
	nest int
}

// twinTOC returns the table of contents of the payload, or the class of its first fault.
func twinTOC(payload []byte, s *writeSettings) (toc []byte, err error) {
	if len(payload) == 0 {
		return nil, fault.Invalid
	}
	w := twinParser{s: s, p: payload}
	n, err := w.build(false)
	if err != nil {
		return nil, err
	}
	if w.pos != int64(len(payload)) {
		return nil, fault.Corrupt
	}
	return n.encode(nil, s.codec), nil
}

func (w *twinParser) head() (h value.Head, err error) {
	h, err = value.ReadHead(w.s.codec, w.p[w.pos:])
	if err != nil || h.HasContent() && h.Arg > uint64(int64(len(w.p))-w.pos-int64(h.Size)) {
		return h, fault.Corrupt
	}
	w.pos += int64(h.Size)
	if h.HasContent() {
		w.pos += int64(h.Arg)
	}
	return h, nil
}

func (w *twinParser) depth() int {
	if w.s.limits.Depth <= 0 {
		return value.DefaultDepth
	}
	return w.s.limits.Depth
}

// build reads one value. Inside keys and tags all is opaque: the value is a leaf whatever it is.
func (w *twinParser) build(opaque bool) (*twinNode, error) {
	s := w.pos
	nest := w.nest
	defer func() { w.nest = nest }()
	leaf := func() *twinNode {
		return &twinNode{start: s, end: w.pos, trivial: w.pos-s <= w.s.trivial}
	}
	h, err := w.head()
	if err != nil {
		return nil, err
	}
	for h.Kind == value.Tag {
		if w.nest >= w.depth() {
			return nil, fault.Limit
		}
		w.nest++
		opaque = true
		if h, err = w.head(); err != nil {
			return nil, err
		}
	}
	switch {
	case h.Kind == value.End:
		return nil, fault.Corrupt
	case h.Indefinite && (h.Kind == value.String || h.Kind == value.Bytes):
		for {
			part, err := w.head()
			if err != nil || part.Kind != value.End && (part.Kind != h.Kind || part.Indefinite) {
				return nil, fault.Corrupt
			}
			if part.Kind == value.End {
				return leaf(), nil
			}
		}
	case h.Kind != value.Array && h.Kind != value.Map:
		n := leaf()
		if k := kindTraits(h.Kind); k != isOther && !opaque {
			n.number = k | traits(h.Size)
		}
		return n, nil
	}
	if w.nest >= w.depth() {
		return nil, fault.Limit
	}
	w.nest++
	n := &twinNode{start: s, isMap: h.Kind == value.Map}
	itemsEnd := w.pos
	for i := uint64(0); h.Indefinite || i < h.Arg; i++ {
		if h.Indefinite && w.pos < int64(len(w.p)) && w.p[w.pos] == 0xff {
			w.pos++
			break
		}
		if n.isMap {
			at := w.pos
			if _, err := w.build(true); err != nil {
				return nil, err
			}
			n.keys = append(n.keys, w.p[at:w.pos])
		}
		child, err := w.build(opaque)
		if err != nil {
			return nil, err
		}
		n.t = append(n.t, child)
		itemsEnd = w.pos
	}
	if opaque {
		return leaf(), nil
	}
	n.end = w.pos
	return w.decide(n, itemsEnd, leaf())
}

func (w *twinParser) decide(n *twinNode, itemsEnd int64, leaf *twinNode) (*twinNode, error) {
	T := w.s.threshold
	if n.end-n.start < T {
		return leaf, nil
	}
	allTrivial := true
	for _, c := range n.t {
		allTrivial = allTrivial && c.trivial
	}
	if size := n.numberSize(w.s.numeric); size > 0 {
		count := int64(len(n.t))
		g := min(count, T/size+1)
		for i := int64(0); i < count; i += g {
			k := min(g, count-i)
			at := n.t[0].start + i*size
			n.blocks = append(n.blocks, [3]int64{k, at, at + k*size})
		}
		n.t = nil
		return n, nil
	}
	if !allTrivial {
		if n.isMap {
			seen := map[string]bool{}
			for _, k := range n.keys {
				c := string(canonicalKey(nil, w.s.codec, k))
				if seen[c] {
					return nil, fault.Conflict
				}
				seen[c] = true
			}
		}
		return n, nil
	}
	if n.isMap || len(n.t) == 0 {
		return leaf, nil
	}
	count, st, e := int64(0), n.t[0].start, int64(0)
	for _, c := range n.t {
		count++
		e = c.end
		if e-st >= T {
			n.blocks = append(n.blocks, [3]int64{count, st, e})
			count, st = 0, e
		}
	}
	if count > 0 {
		n.blocks = append(n.blocks, [3]int64{count, st, itemsEnd})
	}
	if len(n.blocks) > 1 {
		n.t = nil
		return n, nil
	}
	return leaf, nil
}

// numberSize is the size of the items where the numeric rule holds, else 0.
func (n *twinNode) numberSize(rule NumericRule) int64 {
	if rule == PlainBlocks || n.isMap || len(n.t) == 0 {
		return 0
	}
	first := n.t[0].number
	if first&isFloat == 0 && (first&isInt == 0 || rule != FloatAndIntBlocks) {
		return 0
	}
	for _, c := range n.t {
		if c.number != first {
			return 0
		}
	}
	return int64(first & sizeTrait)
}

func (n *twinNode) encode(dst []byte, c value.Codec) []byte {
	ints := func(v ...int64) {
		dst = value.AppendArrayHeader(dst, c, len(v))
		for _, x := range v {
			dst = value.AppendUint(dst, c, uint64(x))
		}
	}
	if n.blocks != nil {
		dst = value.AppendString(value.AppendMapHeader(dst, c, 1), c, "p")
		dst = value.AppendArrayHeader(dst, c, len(n.blocks))
		for _, b := range n.blocks {
			ints(b[:]...)
		}
		return dst
	}
	pairs := 1
	if n.t != nil {
		pairs = 2
	}
	dst = value.AppendString(value.AppendMapHeader(dst, c, pairs), c, "p")
	ints(n.start, n.end)
	if n.t == nil {
		return dst
	}
	dst = value.AppendString(dst, c, "t")
	if n.isMap {
		dst = value.AppendMapHeader(dst, c, len(n.t))
	} else {
		dst = value.AppendArrayHeader(dst, c, len(n.t))
	}
	for i, child := range n.t {
		if n.isMap {
			dst = append(dst, n.keys[i]...)
		}
		dst = child.encode(dst, c)
	}
	return dst
}

// buildTOC is what twinTOC is, by the builder: the payload comes in chunks of the lengths that next gives, and the
// tapes may hold bound bytes in memory.
func buildTOC(payload []byte, s *writeSettings, bound int, next func() int) (toc []byte, err error) {
	b := newTOCBuilder(s)
	defer b.close()
	b.children.bound, b.blocks.bound = bound, bound
	for len(payload) > 0 {
		n := min(max(1, next()), len(payload))
		// A copy that is overwritten: the builder must not hold on to a chunk.
		chunk := append([]byte(nil), payload[:n]...)
		if err := b.write(chunk); err != nil {
			return nil, err
		}
		clear(chunk)
		payload = payload[n:]
	}
	var out buffer
	n, err := b.writeTOC(&out)
	if err == nil && n != int64(len(out)) {
		err = errors.New("the length of the table is wrong")
	}
	return out, err
}

var _ io.Writer = (*buffer)(nil)
