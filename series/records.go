package series

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
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
		var room labelRoom
		for batch, err := range a.windows(ctx, r, wanted{tsids: true, counts: true, tags: all}) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			for i := range batch {
				rows := &batch[i]
				from, to := rows.cut(r)
				out := rows.span(from, to)
				for k := from; k < to; k++ {
					rec := Record{ID: ID{rows.First.Table, rows.tsids[k]}, RowCount: rows.counts[k], Labels: room.labels(out, k-from, to-k, Native)}
					if !yield(rec, nil) {
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
		if d := r.tags[c.tag]; d != nil {
			if code := d.codes.at(k); code != 0 {
				rec.Labels = append(rec.Labels, Label{r.part.a.tags[c.tag].Name, d.value(code)})
			}
		}
	}
	return rec
}

// span are the tags that were read, of the rows [from, to).
func (r *rows) span(from, to int) []outColumn {
	return r.shown(func(d *dict) ([]string, []uint32) { return d.span(from, to) })
}

// pick are the tags that were read, of some rows.
func (r *rows) pick(of []int) []outColumn {
	return r.shown(func(d *dict) ([]string, []uint32) { return d.pick(of) })
}

// shown are the tags that were read as records show them.
func (r *rows) shown(cut func(d *dict) (values []string, codes []uint32)) []outColumn {
	out := make([]outColumn, 0, len(r.tags))
	for tag := range r.part.a.tags {
		if d := r.tags[tag]; d != nil {
			values, codes := cut(d)
			out = append(out, outColumn{r.part.a.tags[tag].Name, values, codes})
		}
	}
	return out
}

// windows gives the blocks that meet a range, decoded, some at a time.
func (a *Artifact) windows(ctx context.Context, r Range, w wanted) iter.Seq2[[]rows, error] {
	return func(yield func([]rows, error) bool) {
		var window []blockAt
		var sum extent
		flush := func() bool {
			if len(window) == 0 {
				return true
			}
			got, err := load(ctx, window, w, newStore(window[0].part))
			window, sum = window[:0], extent{}
			return yield(got, err) && err == nil
		}
		for b, err := range a.blocks(ctx, []Range{r}) {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			if !r.covers(b.Range) && b.unknown() != nil {
				got, err := load(ctx, []blockAt{b}, wanted{tsids: true}, newStore(b.part))
				if err != nil {
					if flush() {
						yield(nil, err)
					}
					return
				}
				if from, to := got[0].cut(r); from == to {
					continue
				}
			}
			holds := b.holds(w, nil)
			if holds > a.most {
				if flush() {
					yield(nil, b.tooLarge(a.most, holds, nil))
				}
				return
			}
			full := sum.size > windowBytes || sum.held+holds > min(a.most, windowDecoded)
			if len(window) > 0 && (window[0].part != b.part || full) && !flush() {
				return
			}
			window = append(window, b)
			sum.add(&b, holds)
		}
		flush()
	}
}

// blocks gives the blocks that meet one of some ranges, which are in order and apart, each once, in order. It opens parts and
// reads leaves as it comes to them.
func (a *Artifact) blocks(ctx context.Context, ranges []Range) iter.Seq2[blockAt, error] {
	meets := meetsOne(ranges)
	return func(yield func(blockAt, error) bool) {
		for _, p := range a.parts {
			if p.file != nil && !meets(Range{p.file.First, p.file.Last}) {
				continue
			}
			for b, err := range p.blocks(ctx, meets) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// meetsOne reports whether a range meets one of some ranges, which are in order and apart.
func meetsOne(ranges []Range) func(Range) bool {
	return func(r Range) bool {
		i := sort.Search(len(ranges), func(i int) bool { return !ranges[i].Last.Less(r.First) })
		return i < len(ranges) && ranges[i].meets(r)
	}
}

// blocks gives the blocks of the part whose ranges are wanted, in order.
func (p *part) blocks(ctx context.Context, wants func(Range) bool) iter.Seq2[blockAt, error] {
	return func(yield func(blockAt, error) bool) {
		if err := p.ready(ctx); err != nil {
			yield(blockAt{}, err)
			return
		}
		pages := newStore(p)
		for i, leaf := range p.leaves {
			if !wants(leaf.Range) {
				continue
			}
			blocks, err := p.leafAhead(ctx, i, wants, pages)
			if err != nil {
				yield(blockAt{}, err)
				return
			}
			for k := range blocks {
				if wants(blocks[k].Range) && !yield(blockAt{&blocks[k], p, i}, nil) {
					return
				}
			}
		}
	}
}

// Lookup finds a series; it is [fault.NotFound] when there is none.
func (a *Artifact) Lookup(ctx context.Context, id ID) (Record, error) {
	missing := func() (Record, error) { return Record{}, a.missing(id) }
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
	if a.cache == nil {
		r, err := p.lookupOnce(ctx, i, id)
		if err == nil && r == nil {
			return missing()
		}
		if err != nil {
			return Record{}, err
		}
		return *r, nil
	}
	blocks, err := p.leaf(ctx, i, nil)
	if err != nil {
		return Record{}, err
	}
	j, ok := slices.BinarySearchFunc(blocks, id, func(b block, id ID) int { return b.Range.compare(id) })
	if !ok {
		return missing()
	}
	b := blockAt{&blocks[j], p, i}
	if err := b.fitsLookup(); err != nil {
		return Record{}, err
	}
	r, err := a.lookupKept(ctx, b, id)
	if err == nil && r == nil {
		return missing()
	}
	if err != nil {
		return Record{}, err
	}
	return *r, nil
}

func (a *Artifact) missing(id ID) error {
	return fault.New(fault.NotFound, "series", "there is no such series").On(id.String()).In(a.name)
}

// together reports whether a lookup reads all columns of a block with the TSIDs, since another request is dear beside them; else
// the TSIDs tell first whether they are needed. Most who look a series up know that it is there.
func (b *blockAt) together() bool {
	return int64(b.columns[len(b.columns)-1].end()-b.columns[0].Offset) <= 4*b.part.obj.Cost().Gap
}

// unknown is the first column whose values no known codec reads, nil when there is none. Who finds no series does not need it.
func (b *block) unknown() *column {
	for i := range b.columns {
		if c := &b.columns[i]; !c.known() {
			return c
		}
	}
	return nil
}

// fitsLookup reports a block of which all columns are more than may be held.
func (b *blockAt) fitsLookup() error {
	all := make([]int, len(b.part.a.tags))
	for i := range all {
		all[i] = i
	}
	if holds := b.holds(wanted{tags: all}, nil); holds > b.part.a.most {
		return b.tooLarge(b.part.a.most, holds, nil)
	}
	return nil
}

// stored are the tags that a block stores, in the order of the tags.
func (b *blockAt) stored() []*column {
	columns := make([]*column, 0, len(b.columns)-2)
	for i := 2; i < len(b.columns); i++ {
		columns = append(columns, &b.columns[i])
	}
	slices.SortFunc(columns, func(x, y *column) int { return x.tag - y.tag }) // they are, where there is a manifest
	return columns
}

// lookupCached finds a series in a block all of whose columns are in the cache. ok is false when they are not.
func (a *Artifact) lookupCached(b *blockAt, id ID) (r *Record, ok bool, err error) {
	v, ok := b.cached(&b.columns[0])
	if !ok {
		return nil, false, nil
	}
	row, ok := slices.BinarySearch(v.([]uint64), id.TSID)
	if !ok {
		return nil, true, nil
	}
	if v, ok = b.cached(&b.columns[1]); !ok || !a.index.ordered {
		return nil, false, nil
	}
	r = &Record{ID: id, RowCount: v.([]uint64)[row], Labels: make([]Label, 0, len(b.columns)-2)}
	for i := 2; i < len(b.columns); i++ {
		c := &b.columns[i]
		if v, ok = b.cached(c); !ok {
			return nil, false, nil
		}
		d := v.(*dict)
		if code := d.codes.at(row); code != 0 {
			r.Labels = append(r.Labels, Label{a.tags[c.tag].Name, d.value(code)})
		}
	}
	return r, true, nil
}

// lookupKept finds a series in a block whose columns are remembered. The record is nil when it is not there.
func (a *Artifact) lookupKept(ctx context.Context, b blockAt, id ID) (*Record, error) {
	if r, ok, err := a.lookupCached(&b, id); ok {
		return r, err
	}
	found := newRows(b)
	columns := b.stored()
	list := make([]loading, 0, len(b.columns))
	list = append(list, loading{&found, &b.columns[0], tagTSID}, loading{&found, &b.columns[1], tagCount})
	for _, c := range columns {
		list = append(list, loading{&found, c, c.tag})
	}
	first := list
	if b.unknown() != nil || !b.together() {
		first = list[:1]
	}
	bytes := newStore(b.part)
	if err := loadAll(ctx, first, bytes); err != nil {
		return nil, err
	}
	row, ok := slices.BinarySearch(found.tsids, id.TSID)
	if !ok {
		return nil, nil
	}
	if err := loadAll(ctx, list[len(first):], bytes); err != nil {
		return nil, err
	}
	r := &Record{ID: id, RowCount: found.counts[row], Labels: make([]Label, 0, len(columns))}
	for _, c := range columns {
		d := found.tags[c.tag]
		if code := d.codes.at(row); code != 0 {
			r.Labels = append(r.Labels, Label{a.tags[c.tag].Name, d.value(code)})
		}
	}
	return r, nil
}

// lookupOnce finds a series in a leaf when nothing is remembered: it decodes as much of the page and of each column as leads to
// the series. The record is nil when it is not there.
func (p *part) lookupOnce(ctx context.Context, leaf int, id ID) (*Record, error) {
	room, _ := lookupRooms.Get().(*lookupRoom)
	if room == nil || room.isLarge() {
		room = &lookupRoom{}
	}
	defer func() {
		room.store = nil
		room.column.dict.text = ""
		lookupRooms.Put(room)
	}()
	ok, err := room.findBlock(ctx, p, leaf, id)
	if err != nil || !ok {
		return nil, err
	}
	b := blockAt{&room.block, p, leaf}
	if err := b.fitsLookup(); err != nil {
		return nil, err
	}
	columns := b.stored()
	unknown := b.unknown()
	if unknown == &b.columns[0] {
		return nil, b.located(unknown.unknown(), unknown)
	}
	first := 1
	if unknown == nil && b.together() {
		first = len(b.columns)
	}
	if err := room.read(ctx, &b, b.columns[:first]); err != nil {
		return nil, err
	}
	decode := func(c *column) error {
		if err := room.column.decode(&b, c, room.get(c)); err != nil {
			return b.located(err, c)
		}
		return nil
	}
	if err := decode(&b.columns[0]); err != nil {
		return nil, err
	}
	row, ok := slices.BinarySearch(room.column.numbers, id.TSID)
	if !ok {
		return nil, nil
	}
	if unknown != nil {
		return nil, b.located(unknown.unknown(), unknown)
	}
	if first < len(b.columns) {
		if err := room.read(ctx, &b, b.columns[first:]); err != nil {
			return nil, err
		}
	}
	r := &Record{ID: id, Labels: make([]Label, 0, len(columns))}
	room.values, room.ends = room.values[:0], room.ends[:0]
	if err := decode(&b.columns[1]); err != nil {
		return nil, err
	}
	r.RowCount = room.column.numbers[row]
	for _, c := range columns {
		if err := decode(c); err != nil {
			return nil, err
		}
		if code := room.column.dict.codes.at(row); code != 0 {
			room.values = append(room.values, room.column.dict.value(code)...)
			r.Labels = append(r.Labels, Label{p.a.tags[c.tag].Name, ""})
			room.ends = append(room.ends, len(room.values))
		}
	}
	values, from := string(room.values), 0 // one text for all of them
	for i, end := range room.ends {
		r.Labels[i].Value = values[from:end]
		from = end
	}
	return r, nil
}

// lookupRoom is memory for a page, the block that is found in it, and the columns of that.
type lookupRoom struct {
	stored []byte // the page as it is stored
	page   []byte // the page, decompressed
	block  block  // its texts are in the page
	chunks []byte // as they are stored
	at     uint64 // where they begin
	store  *store // in their place, where they do not follow one another
	column columnRoom
	values []byte // of the series, one behind the other
	ends   []int  // of each
}

// lookupRooms are those that wait for the next lookup. One that is larger than most is not kept.
var lookupRooms sync.Pool

const (
	maxLookupRoom    = 4 << 20
	maxLookupColumns = 4096
)

// isLarge reports whether something in it has become larger than most.
func (l *lookupRoom) isLarge() bool {
	return max(cap(l.stored), cap(l.page), cap(l.chunks), l.column.bytes(), cap(l.values)) > maxLookupRoom || cap(l.block.columns) > maxLookupColumns
}

// read reads the chunks of columns that follow one another.
func (l *lookupRoom) read(ctx context.Context, b *blockAt, columns []column) error {
	l.store = nil
	l.at = columns[0].Offset
	end, sum := columns[len(columns)-1].end(), uint64(0)
	for i := range columns {
		sum += uint64(columns[i].Stored)
	}
	if end-l.at == sum && end <= b.part.tailAt && sum <= maxLookupRoom {
		l.chunks = slices.Grow(l.chunks[:0], int(sum))[:sum]
		return b.part.obj.ReadAt(ctx, l.chunks, int64(l.at))
	}
	l.store = newStore(b.part)
	ranges := make([]source.Range, len(columns))
	for i := range columns {
		ranges[i] = columns[i].span()
	}
	return l.store.fetch(ctx, ranges)
}

// findBlock finds the block of an identifier in a leaf.
func (l *lookupRoom) findBlock(ctx context.Context, p *part, leaf int, id ID) (bool, error) {
	ref := p.leaves[leaf]
	if err := p.fits(ref); err != nil {
		return false, err
	}
	stored, err := []byte(nil), error(nil)
	if ref.end() <= p.tailAt {
		l.stored = slices.Grow(l.stored[:0], int(ref.Stored))[:ref.Stored]
		stored = l.stored
		err = p.obj.ReadAt(source.ForDirectory(ctx), stored, int64(ref.Offset))
	} else {
		stored, err = p.stored(source.ForDirectory(ctx), ref.payloadRef)
	}
	if err != nil {
		return false, fault.Locate(err, p.obj.Name(), leafPlace(leaf), 0)
	}
	page, err := ref.decodeInto(&l.page, stored)
	if err != nil {
		return false, fault.Locate(err, p.obj.Name(), leafPlace(leaf), 0)
	}
	ok, err := findBlock(page, p.frame, p.a.index, id, &l.block)
	return ok, p.inLeaf(err, leaf)
}

// get returns the stored bytes of a chunk that was read.
func (l *lookupRoom) get(c *column) []byte {
	if l.store != nil {
		return l.store.get(c.span())
	}
	return l.chunks[c.Offset-l.at:][:c.Stored]
}

func (r payloadRef) span() source.Range {
	return source.Range{Start: int64(r.Offset), End: int64(r.end())}
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
