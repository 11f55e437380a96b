package series

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/spilehq/spile/fault"
)

// Label is the value of a tag.
type Label struct {
	Name  string
	Value string
}

// Record is one series. Its labels are those that are not null, in the order of the tags of the artifact; an empty string is
// a value.
type Record struct {
	ID
	RowCount uint64
	Labels   []Label
}

// windowBytes is how much of the columns is read ahead by a scan: what a connection brings while a block is decoded.
const windowBytes = 4 << 20

// Records gives the series of a range in the order of their identifiers. It reads a window of blocks at a time. Its memory
// is that of a window.
func (a *Artifact) Records(ctx context.Context, r Range) iter.Seq2[Record, error] {
	all := make([]int, len(a.tags))
	for i := range all {
		all[i] = i
	}
	return func(yield func(Record, error) bool) {
		for batch, err := range a.windows(ctx, r, wanted{tsids: true, counts: true, tags: all}) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			for i := range batch {
				from, to := batch[i].cut(r)
				for k := from; k < to; k++ {
					if !yield(batch[i].record(k), nil) {
						return
					}
				}
			}
		}
	}
}

// cut returns the rows of a block that lie in a range.
func (r *rows) cut(in Range) (from, to int) {
	n := int(r.series)
	if in.covers(r.Range) {
		return 0, n
	}
	table := r.First.Table
	from = sort.Search(n, func(i int) bool { return !(ID{table, r.tsids[i]}).Less(in.First) })
	to = sort.Search(n, func(i int) bool { return in.Last.Less(ID{table, r.tsids[i]}) })
	return from, to
}

// record is row k.
func (r *rows) record(k int) Record {
	rec := Record{ID: ID{r.First.Table, r.tsids[k]}, RowCount: r.counts[k], Labels: make([]Label, 0, len(r.tags))}
	for i := 2; i < len(r.columns); i++ {
		c := r.at(i)
		if d := r.tags[c.tag]; d != nil && d.codes[k] != 0 {
			rec.Labels = append(rec.Labels, Label{r.part.a.tags[c.tag].Name, d.values[d.codes[k]]})
		}
	}
	return rec
}

// windows gives the blocks that meet a range, decoded, some at a time.
func (a *Artifact) windows(ctx context.Context, r Range, w wanted) iter.Seq2[[]rows, error] {
	return func(yield func([]rows, error) bool) {
		var window []blockAt
		size, held := int64(0), int64(0)
		flush := func() bool {
			if len(window) == 0 {
				return true
			}
			got, err := load(ctx, window, w, newStore(window[0].part))
			window, size, held = window[:0], 0, 0
			return yield(got, err) && err == nil
		}
		for b, err := range a.blocks(ctx, []Range{r}) {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			holds := b.holds(w, nil)
			if holds > a.most {
				if flush() {
					yield(nil, b.tooLarge(a.most, holds, nil))
				}
				return
			}
			full := size > windowBytes || held+holds > min(a.most, windowDecoded)
			if len(window) > 0 && (window[0].part != b.part || full) && !flush() {
				return
			}
			before := uint64(0)
			if n := len(window); n > 0 {
				before = window[n-1].end()
			}
			window = append(window, b)
			size += b.reads(before)
			held += holds
		}
		flush()
	}
}

// blocks gives the blocks that meet one of some ranges, which are in order and apart, each once, in order. It opens parts and
// reads leaves as it comes to them.
func (a *Artifact) blocks(ctx context.Context, ranges []Range) iter.Seq2[blockAt, error] {
	meets := func(r Range) bool {
		i := sort.Search(len(ranges), func(i int) bool { return !ranges[i].Last.Less(r.First) })
		return i < len(ranges) && ranges[i].meets(r)
	}
	return func(yield func(blockAt, error) bool) {
		for _, p := range a.parts {
			if p.file != nil && !meets(Range{p.file.First, p.file.Last}) {
				continue
			}
			if err := p.ready(ctx); err != nil {
				yield(blockAt{}, err)
				return
			}
			for i, leaf := range p.leaves {
				if !meets(leaf.Range) {
					continue
				}
				blocks, err := p.leaf(ctx, i)
				if err != nil {
					yield(blockAt{}, err)
					return
				}
				for k := range blocks {
					if meets(blocks[k].Range) && !yield(blockAt{&blocks[k], p, i}, nil) {
						return
					}
				}
			}
		}
	}
}

// Lookup finds a series; it is [fault.NotFound] when there is none.
func (a *Artifact) Lookup(ctx context.Context, id ID) (Record, error) {
	missing := func() (Record, error) {
		return Record{}, fault.New(fault.NotFound, "series", "there is no such series").On(id.String()).In(a.name)
	}
	k, ok := slices.BinarySearchFunc(a.parts, id, func(p *part, id ID) int {
		switch {
		case p.file == nil:
			return 0
		case p.file.Last.Less(id):
			return -1
		case id.Less(p.file.First):
			return 1
		}
		return 0
	})
	if !ok {
		return missing()
	}
	p := a.parts[k]
	if err := p.ready(ctx); err != nil {
		return Record{}, err
	}
	i, ok := slices.BinarySearchFunc(p.leaves, id, func(r pageRef, id ID) int { return r.Range.compare(id) })
	if !ok {
		return missing()
	}
	blocks, err := p.leaf(ctx, i)
	if err != nil {
		return Record{}, err
	}
	j, ok := slices.BinarySearchFunc(blocks, id, func(b block, id ID) int { return b.Range.compare(id) })
	if !ok {
		return missing()
	}
	b := blockAt{&blocks[j], p, i}
	rest := wanted{counts: true}
	for tag := range a.tags {
		rest.tags = append(rest.tags, tag)
	}
	// Where a request is dear, all columns come with the TSIDs; else the TSIDs tell first whether they are needed.
	first := wanted{tsids: true}
	together := int64(b.columns[len(b.columns)-1].end()-b.columns[0].Offset) <= p.obj.Cost().Gap
	if together {
		first.counts, first.tags = rest.counts, rest.tags
	}
	if holds := b.holds(rest, nil); holds > a.most {
		return Record{}, b.tooLarge(a.most, holds, nil)
	}
	bytes := newStore(p)
	found, err := load(ctx, []blockAt{b}, first, bytes)
	if err != nil {
		return Record{}, err
	}
	row, ok := slices.BinarySearch(found[0].tsids, id.TSID)
	if !ok {
		return missing()
	}
	if !together {
		more, err := load(ctx, []blockAt{b}, rest, bytes)
		if err != nil {
			return Record{}, err
		}
		found[0].counts, found[0].tags = more[0].counts, more[0].tags
	}
	return found[0].record(row), nil
}

// compare is -1 when the range is before the identifier, 1 when it is behind, 0 when it has the identifier in it.
func (r Range) compare(id ID) int {
	switch {
	case r.Last.Less(id):
		return -1
	case id.Less(r.First):
		return 1
	}
	return 0
}

// String is "FIRST to LAST".
func (r Range) String() string { return fmt.Sprintf("%s to %s", r.First, r.Last) }
