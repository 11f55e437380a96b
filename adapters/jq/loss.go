package jq

import (
	"io"
	"slices"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// counted is the parts of the document whose losses were counted, apart from one another and in order. A program may
// come to a value more than once, and what the document could not keep there is one loss.
type counted []source.Range

// maxCounted bounds what is remembered. A program that comes back to more lossy values than that counts some again.
const maxCounted = 1 << 16

// find is the first part that ends behind an offset.
func (c counted) find(at int64) int {
	i, _ := slices.BinarySearchFunc(c, at, func(r source.Range, at int64) int {
		if r.End <= at {
			return -1
		}
		return 1
	})
	return i
}

func (c counted) has(r source.Range) bool {
	if r.Len() <= 0 {
		return false
	}
	i := c.find(r.Start)
	return i < len(c) && c[i].Start <= r.Start && r.End <= c[i].End
}

// add adds a part in the place of those in it, joined with those beside it.
func (c counted) add(r source.Range) counted {
	if r.Len() <= 0 {
		return c
	}
	from := c.find(r.Start - 1)
	to := from
	for ; to < len(c) && c[to].Start <= r.End; to++ {
		r.Start, r.End = min(r.Start, c[to].Start), max(r.End, c[to].End)
	}
	if to == from && len(c) >= maxCounted {
		return c
	}
	return slices.Replace(c, from, to, r)
}

// once makes a conversion of what lies at a range and counts what that loses, unless it was counted before. The range
// is asked for when it matters; it is empty where nobody knows it.
func (r *run) once(at func() source.Range, convert func() error) error {
	if r.loss == nil {
		return convert()
	}
	if len(r.counted) > 0 && r.counted.has(at()) {
		before := *r.loss
		defer func() { *r.loss = before }()
		return convert()
	}
	before := r.loss.Count()
	err := convert()
	if r.loss.Count() > before {
		r.counted = r.counted.add(at())
	}
	return err
}

// extent is where a value lies; a list without bytes of its own reaches from its first item to its last.
func (r *run) extent(n msglc.Node) source.Range {
	if at, ok := n.Range(); ok {
		return at
	}
	first, err := n.Index(r.ctx, 0)
	if err != nil {
		return source.Range{}
	}
	last, err := n.Index(r.ctx, -1)
	if err != nil {
		return source.Range{}
	}
	from, ok := first.Range()
	to, ok2 := last.Range()
	if !ok || !ok2 {
		return source.Range{}
	}
	return source.Range{Start: from.Start, End: to.End}
}

// write writes a node of the document.
func (r *run) write(n msglc.Node, w io.Writer, o *value.JSONOptions) error {
	return r.once(func() source.Range { return r.extent(n) }, func() error { return n.WriteJSON(r.ctx, w, o, r.loss) })
}
