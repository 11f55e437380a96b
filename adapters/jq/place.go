package jq

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// place is a value of the document that was not read. It travels through gojq as a value that gojq never looks at.
type place struct {
	run  *run
	node msglc.Node // of a slice: the list
	// Where it is: child index or key of a place, nil for the value of the run.
	above *place
	index int64
	key   value.Raw
	// A slice is the items from to to of the list.
	sliced   bool
	from, to int64

	kind    value.Kind // once shape has found it
	decoded bool
	value   any // when it is decoded
}

// shape is [value.Array], [value.Map] or, for all whose insides are gojq's business, [value.Invalid].
func (p *place) shape() (value.Kind, error) {
	if p.sliced {
		return value.Array, nil
	}
	if p.kind == value.Invalid {
		kind, err := p.node.Kind(p.run.ctx)
		if err != nil {
			return kind, p.run.fail(err)
		}
		if kind == value.Map && p.run.json.Keys == value.KeysPairs {
			pairs, err := p.isPairs()
			if err != nil {
				return kind, err
			}
			if pairs {
				kind = value.Ext // stands for a kind of its own: in JSON the map is a list of pairs
			}
		}
		p.kind = kind
	}
	if p.kind == value.Array || p.kind == value.Map {
		return p.kind, nil
	}
	return value.Invalid, nil
}

func (p *place) isPairs() (bool, error) {
	for key, err := range p.node.Keys(p.run.ctx) {
		if err != nil {
			return false, p.run.fail(err)
		}
		if _, ok := plainName(key); !ok && p.run.text.NeedsPairs(key.Codec, key.Data) {
			return true, nil
		}
	}
	return false, nil
}

// inner is the place of a child of p.
func (p *place) inner(c msglc.Child) *place {
	return &place{run: p.run, node: c.Node, above: p, index: c.Index, key: c.Key}
}

// path leads from the value of the run to the place.
func (p *place) path() msglc.Path {
	var path msglc.Path
	for ; p.above != nil; p = p.above {
		path = append(path, msglc.Child{Index: p.index, Key: p.key}.Step())
	}
	slices.Reverse(path)
	return path
}

// trouble is the error of a child whose bytes are those of others too, or that is nested too deep.
type trouble struct {
	class error
	text  string
	at    int64
	path  msglc.Path // from the child up
}

func (o *trouble) Error() string { return o.text }

// fail ends the run, see [run.fail]. It gives the place of trouble below p.
func (p *place) fail(err error) error {
	if o, ok := err.(*trouble); ok {
		slices.Reverse(o.path)
		err = fault.New(o.class, "jq", "%s", o.text).At(o.at).On(append(p.path(), o.path...).String())
	}
	return p.run.fail(err)
}

// item returns item i of a list, counted from the end when i is negative; nil when it is not there.
func (p *place) item(i int64) (any, error) {
	if p.sliced {
		if i < 0 {
			i += p.to - p.from
		}
		if i < 0 || i >= p.to-p.from {
			return nil, nil
		}
		i += p.from
	}
	n, err := p.node.Index(p.run.ctx, i)
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, p.run.fail(err)
	}
	return p.inner(msglc.Child{Index: i, Node: n}), nil
}

// count is the number of items of a list.
func (p *place) count() (int64, error) {
	if p.sliced {
		return p.to - p.from, nil
	}
	n, err := p.node.Len(p.run.ctx)
	if err != nil {
		return 0, p.run.fail(err)
	}
	return n, nil
}

// slice returns the items from to to of a list, bounds counted from the end when they are negative, and clamped.
func (p *place) slice(from, to int64) (*place, error) {
	count, err := p.count()
	if err != nil {
		return nil, err
	}
	clamp := func(i, low int64) int64 {
		if i < 0 {
			i += count
		}
		return min(max(i, low), count)
	}
	from = clamp(from, 0)
	to = clamp(to, from)
	part := *p
	part.sliced, part.from, part.to = true, p.from+from, p.from+to
	part.decoded, part.value = false, nil
	return &part, nil
}

// member returns the value of a key of a map, nil when it is not there.
func (p *place) member(name string) (any, error) {
	r := p.run
	if !r.scansKeys {
		key := value.Raw{Codec: value.Msgpack, Data: value.AppendString(nil, value.Msgpack, name)}
		n, err := p.node.Lookup(r.ctx, key)
		if err == nil {
			return p.inner(msglc.Child{Key: key, Node: n}), nil
		}
		if !errors.Is(err, fault.NotFound) {
			return nil, r.fail(err)
		}
		// In CBOR the key may stand there in another form: behind a tag.
		if a, err := p.node.Archive(r.ctx); err == nil && a.Info().Codec != value.CBOR {
			return nil, nil
		}
	}
	var found any
	for child, err := range p.node.Children(r.ctx) {
		if err != nil {
			return nil, r.fail(err)
		}
		text, ok := r.lenientName(child.Key)
		if !ok || text != name {
			continue
		}
		if found != nil && r.json.Dup == value.DupError {
			return nil, r.fail(twice(name, keyRange(child).Start))
		}
		found = p.inner(child)
		if r.json.Dup == value.DupFirst {
			break
		}
	}
	return found, nil
}

// entry is a pair of a map.
type entry struct {
	name  string
	at    int64 // where the key lies
	child msglc.Child
}

func twice(name string, at int64) error {
	return fault.New(fault.Conflict, "jq", "key %q occurs twice in one map", name).At(at)
}

// sorted reports whether the names of a map stand in order, each once.
func (p *place) sorted() (bool, error) {
	last, first := "", true
	for key, err := range p.node.Keys(p.run.ctx) {
		if err != nil {
			return false, p.run.fail(err)
		}
		name, ok := plainName(key)
		if !ok || !first && name <= last {
			return false, nil
		}
		last, first = name, false
	}
	return true, nil
}

// entries returns the pairs of a map by name, as the text of the document would have them.
func (p *place) entries() ([]entry, error) {
	r := p.run
	var all []entry
	for child, err := range p.node.Children(r.ctx) {
		if err != nil {
			return nil, r.fail(err)
		}
		name, err := r.name(child)
		if err != nil {
			return nil, r.fail(err)
		}
		all = append(all, entry{name, keyRange(child).Start, child})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	kept := all[:0]
	for _, e := range all {
		if n := len(kept); n > 0 && kept[n-1].name == e.name {
			switch r.json.Dup {
			case value.DupError:
				return nil, r.fail(twice(e.name, e.at))
			case value.DupFirst:
			default:
				kept[n-1] = e
			}
			continue
		}
		kept = append(kept, e)
	}
	return kept, nil
}

// each returns the children of a list or map, one a call: a *place, or an error.
func (p *place) each(shape value.Kind) (func() (any, bool), error) {
	r := p.run
	from, to := int64(0), int64(math.MaxInt64)
	if p.sliced {
		from, to = p.from, p.to
	}
	if to-from <= 1 && shape == value.Array { // one item needs no walk
		return func() (any, bool) {
			if from >= to {
				return nil, false
			}
			n, err := p.node.Index(r.ctx, from)
			from++
			if err != nil {
				return r.fail(err), true
			}
			return p.inner(msglc.Child{Index: from - 1, Node: n}), true
		}, nil
	}
	size, err := p.node.Size(r.ctx)
	if err != nil {
		return nil, r.fail(err)
	}
	next, err := p.nodes(shape, size, window(p.node.Children(r.ctx), from, to))
	if err != nil {
		return nil, err
	}
	next = r.ahead(next)
	return func() (any, bool) {
		c, err, ok := next()
		if !ok {
			return nil, false
		}
		if err == nil {
			err = r.take(c, &size)
		}
		if err != nil {
			return p.fail(err), true
		}
		return p.inner(c), true
	}, nil
}

// nodes returns the children of a list or map of size bytes one a call: those of a map by name.
func (p *place) nodes(shape value.Kind, size int64, children iter.Seq2[msglc.Child, error]) (func() (msglc.Child, error, bool), error) {
	r := p.run
	var all []msglc.Child
	inOrder := true
	if shape == value.Map {
		var err error
		if inOrder, err = p.sorted(); err != nil {
			return nil, err
		}
	}
	switch {
	case !inOrder:
		pairs, err := p.entries()
		if err != nil {
			return nil, err
		}
		for _, e := range pairs {
			all = append(all, e.child)
		}
	case size > r.sizes.container:
		return r.pull(children), nil
	default:
		for n, err := range children {
			if err != nil {
				return nil, r.fail(err)
			}
			all = append(all, n)
		}
	}
	return func() (msglc.Child, error, bool) {
		if len(all) == 0 {
			return msglc.Child{}, nil, false
		}
		n := all[0]
		all = all[1:]
		return n, nil, true
	}, nil
}

// A walk over children reads short ones together, since a read costs more than their bytes: maxAheadNode is about what a
// read of a file is worth (16 KiB; its reader decides with what it knows), maxAhead bounds what is held in memory.
const (
	maxAheadNodes = 256
	maxAheadNode  = 16 << 10
	maxAhead      = 1 << 20
)

// ahead gives the same nodes, of which it has read the short ones some at a time. How many doubles from one on, so that a
// program that looks at the first few reads no more than twice what it uses. When such a read fails, because of a budget
// for one, each node is left to be read when it is used: what comes before the error is found as without ahead.
func (r *run) ahead(next func() (msglc.Child, error, bool)) func() (msglc.Child, error, bool) {
	var ready []msglc.Child
	var failed error
	ended, want := false, 1
	return func() (msglc.Child, error, bool) {
		if len(ready) == 0 && !ended {
			ready, failed, ended = r.fill(next, want)
			want = min(2*want, maxAheadNodes)
		}
		if len(ready) > 0 {
			n := ready[0]
			ready[0] = msglc.Child{} // its bytes are not held longer than they are used
			ready = ready[1:]
			return n, nil, true
		}
		err := failed
		failed = nil
		return msglc.Child{}, err, err != nil
	}
}

// together is ahead for a walk that goes to its end.
func (r *run) together(children iter.Seq2[msglc.Child, error]) iter.Seq2[msglc.Child, error] {
	return func(yield func(msglc.Child, error) bool) {
		next := r.ahead(r.pull(children))
		for n, err, ok := next(); ok && yield(n, err) && err == nil; {
			n, err, ok = next()
		}
	}
}

// fill takes up to n nodes, and reads the short ones when they are more than one.
func (r *run) fill(next func() (msglc.Child, error, bool), n int) (nodes []msglc.Child, failed error, ended bool) {
	var short []msglc.Node
	var at []int
	for total := int64(0); len(nodes) < n && total < maxAhead; {
		child, err, ok := next()
		if err != nil || !ok {
			failed, ended = err, true
			break
		}
		if rng, whole := child.Node.Range(); whole {
			if total += rng.Len(); rng.Len() <= maxAheadNode {
				short, at = append(short, child.Node), append(at, len(nodes))
			}
		}
		nodes = append(nodes, child)
	}
	if len(short) > 1 && msglc.Peek(r.ctx, short) == nil {
		for k, i := range at {
			nodes[i].Node = short[k]
		}
	}
	return nodes, failed, ended
}

// take takes the bytes of a child from those of the list or map around it, of which left are left. Children never have
// more, together. So a walk over children, and over theirs, comes to no byte twice on one level, and what it decodes is
// bounded by what the document has; children that overlap would multiply, level by level.
func (r *run) take(c msglc.Child, left *int64) error {
	size, err := c.Node.Size(r.ctx)
	if err != nil { // of an archive that cannot be opened: that matters where it is used
		size = msglc.PrefixSize
	}
	if *left -= size; *left < 0 {
		return &trouble{fault.Corrupt, "children overlap: they have more bytes than the list or map around them", r.offset(c.Node), msglc.Path{c.Step()}}
	}
	return nil
}

// offset is where a node lies: one without bytes of its own where its archive starts.
func (r *run) offset(n msglc.Node) int64 {
	if at, whole := n.Range(); whole {
		return at.Start
	}
	a, err := n.Archive(r.ctx)
	if err != nil {
		return fault.NoOffset
	}
	return a.Info().PayloadStart - msglc.PrefixSize
}

// window yields the children from to to.
func window(children iter.Seq2[msglc.Child, error], from, to int64) iter.Seq2[msglc.Child, error] {
	return func(yield func(msglc.Child, error) bool) {
		i := int64(0)
		for child, err := range children {
			if err == nil && i < from {
				i++
				continue
			}
			if err == nil && i >= to || !yield(child, err) {
				return
			}
			if i++; i >= to {
				return
			}
		}
	}
}

// typeName is the jq type of a place, "" when it must be decoded to tell.
func (p *place) typeName() (string, error) {
	shape, err := p.shape()
	if err != nil {
		return "", err
	}
	switch {
	case shape == value.Array:
		return "array", nil
	case shape == value.Map:
		return "object", nil
	case p.kind == value.String:
		return "string", nil
	}
	return "", nil
}

// list is the node of a list or map, of a slice too.
func (p *place) list(ctx context.Context) (msglc.Node, error) {
	if !p.sliced {
		return p.node, nil
	}
	return p.node.Slice(ctx, p.from, p.to, 1)
}

// misfit is the error of gojq for a step that does not fit the kind of a value.
type misfit struct{ text string }

func (e *misfit) Error() string { return e.text }

// misfit makes the error for a list where an object was expected, or the other way round; nil when gojq is to make it.
func (p *place) misfit(shape value.Kind) (error, error) {
	n, err := p.list(p.run.ctx)
	if err != nil {
		return nil, p.run.fail(err)
	}
	size, err := n.Size(p.run.ctx)
	if err != nil {
		return nil, p.run.fail(err)
	}
	if size <= p.run.sizes.preview {
		return nil, nil
	}
	var head prefix
	o := *p.run.json
	o.Lossless, o.Pretty = false, false
	if err := n.WriteJSON(p.run.ctx, &head, &o, nil); err != nil && !errors.Is(err, errEnough) {
		return nil, p.run.fail(err)
	}
	text := strings.ToValidUTF8(string(head[:min(len(head), previewSize)]), "")
	if shape == value.Array {
		return &misfit{"expected an object but got: array (" + text + " ...])"}, nil
	}
	return &misfit{"expected an array but got: object (" + text + " ...})"}, nil
}

// previewSize is what gojq shows of a value in an error, without its " ...]".
const previewSize = 25

// prefix takes the start of a text and then no more.
type prefix []byte

var errEnough = errors.New("enough")

func (h *prefix) Write(b []byte) (int, error) {
	if *h = append(*h, b...); len(*h) >= previewSize {
		return 0, errEnough
	}
	return len(b), nil
}

// length, keys and has of a place.

func (p *place) length() (any, error) {
	switch shape, err := p.shape(); {
	case err != nil:
		return nil, err
	case shape == value.Array:
		n, err := p.count()
		return int(n), err
	case shape == value.Map:
		names, err := p.names()
		return len(names), err
	}
	return nil, errNotHere
}

func (p *place) keys() (any, error) {
	switch shape, err := p.shape(); {
	case err != nil:
		return nil, err
	case shape == value.Array:
		n, err := p.count()
		if err != nil {
			return nil, err
		}
		all := make([]any, 0, min(n, 1<<16))
		for i := range n {
			all = append(all, int(i))
		}
		return all, nil
	case shape == value.Map:
		names, err := p.names()
		all := make([]any, len(names))
		for i, name := range names {
			all[i] = name
		}
		return all, err
	}
	return nil, errNotHere
}

// names returns the names of a map in order.
func (p *place) names() ([]string, error) {
	all, err := p.entries()
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.name
	}
	return names, err
}

func (p *place) has(key any) (any, error) {
	switch shape, err := p.shape(); {
	case err != nil:
		return nil, err
	case shape == value.Array:
		if i, ok := gojq.ToInt(key); ok {
			n, err := p.count()
			return 0 <= i && int64(i) < n, err
		}
	case shape == value.Map:
		if name, ok := key.(string); ok {
			v, err := p.member(name)
			return v != nil, err
		}
	}
	return nil, errNotHere
}

// errNotHere says that the place must be decoded for an answer.
var errNotHere = errors.New("must be decoded")
