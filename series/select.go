package series

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// Query says which series are selected, and what of them is wanted. The zero value selects all.
type Query struct {
	Matchers []*Matcher // all must hold
	Mode     Mode
	Tables   []uint32 // nil: every table
	Range    *Range   // of identifiers; nil: all
	Columns  []string // the labels that records have; nil: every tag
	Limit    int64    // of records; 0: none. [Explain.Truncated] tells that there are more
	// IgnoreUnknown leaves matchers out whose label is no tag of the artifact, which gives candidates: a superset.
	IgnoreUnknown bool
	// Memory bounds what the query holds at a time of columns and of the values that it gives, in bytes, approximately; 0, or
	// more than that: [Options.MaxDecoded]. Fewer blocks are decoded at once then, and one block that is too large is [fault.Limit].
	Memory int64
	// Explain, when set, is filled while the query runs. It is to be read when the query has ended.
	Explain *Explain

	ahead int64 // of queries that run beside others; 0: windowDecoded
}

// Explain says what a query did.
type Explain struct {
	Matchers  []MatcherExplain
	Blocks    int64 // that the range and the tables leave
	Skipped   int64 // by statistics alone
	Whole     int64 // all of whose series match by statistics alone
	Evaluated int64 // whose values were looked at
	Series    int64 // in the blocks that are left
	Selected  int64
	Truncated bool // the limit was reached, and there is more
}

// MatcherExplain says what one matcher did.
type MatcherExplain struct {
	Matcher         string
	None, All, Read int64 // blocks by the decision
	Bytes           int64 // stored bytes of the chunks that were read for it
	Evaluations     int64 // values that it was run on
}

// plan is a query that was checked against an artifact.
type plan struct {
	a        *Artifact
	q        *Query
	matchers []planned
	nothing  bool // a matcher on an unknown label selects nothing
	columns  []int
	tables   []uint32 // sorted
	ranges   []Range  // in order, apart
	memory   int64    // that is held at a time
	ahead    int64    // of that, in blocks that are read together
	rooms    columnRooms
}

type planned struct {
	*Matcher
	tag     int
	explain *MatcherExplain
}

// bound is what a query may hold at a time.
func (a *Artifact) bound(q *Query) int64 {
	if q.Memory > 0 {
		return min(a.most, q.Memory)
	}
	return a.most
}

func (a *Artifact) plan(q *Query) (*plan, error) {
	p := &plan{a: a, q: q, memory: a.bound(q), ahead: windowDecoded}
	if q.ahead > 0 {
		p.ahead = q.ahead
	}
	byName := a.index.byName
	if q.Explain != nil {
		*q.Explain = Explain{Matchers: make([]MatcherExplain, len(q.Matchers))}
	}
	for i, m := range q.Matchers {
		if m.Op >= IsNull && q.Mode != Native {
			return nil, fault.New(fault.Invalid, "series", "%s needs the mode native: in that of Prometheus null is the empty string", m)
		}
		e := &MatcherExplain{}
		if q.Explain != nil {
			e = &q.Explain.Matchers[i]
		}
		e.Matcher = m.String()
		tag, ok := byName[m.Name]
		if !ok { // null for every series
			p.nothing = p.nothing || !q.IgnoreUnknown && !m.matchesNull(q.Mode)
			continue
		}
		p.matchers = append(p.matchers, planned{m, tag, e})
	}
	if q.Columns == nil {
		for i := range a.tags {
			p.columns = append(p.columns, i)
		}
	}
	for _, name := range q.Columns {
		if tag, ok := byName[name]; ok {
			p.columns = append(p.columns, tag)
		}
	}
	slices.Sort(p.columns)
	p.columns = slices.Compact(p.columns)
	in := everything
	if q.Range != nil {
		in = *q.Range
	}
	if q.Tables == nil {
		p.ranges = []Range{in}
		return p, nil
	}
	p.tables = slices.Clone(q.Tables)
	slices.Sort(p.tables)
	for _, t := range slices.Compact(p.tables) {
		r := TableRange(t)
		if !r.meets(in) {
			continue
		}
		if r.First.Less(in.First) {
			r.First = in.First
		}
		if in.Last.Less(r.Last) {
			r.Last = in.Last
		}
		p.ranges = append(p.ranges, r)
	}
	return p, nil
}

// selection is a block with the rows that match.
type selection struct {
	rows
	bytes *store // of the part, with what was read for the block
	in    Range
	alive []uint64 // a bit for each row; nil: all of those in the range
	count int      // of them, once the range is cut
	from  int      // the rows in the range
	to    int

	// Of the rows that match, what is wanted of them.
	ids    []uint64    // TSIDs
	counts []uint64    // numbers of rows
	out    []outColumn // tags, in their order

	kept   []*columnRoom // memory that tags are in until the rows are shown
	picked []int         // the rows that match, until then, if not all of the range do
}

// Select gives the series that match, in the order of their identifiers. Its memory is that of some blocks.
func (a *Artifact) Select(ctx context.Context, q *Query) iter.Seq2[Record, error] {
	return a.selectRecords(ctx, q, q.Mode)
}

// selectRecords is Select whose records have the labels of a mode of their own.
func (a *Artifact) selectRecords(ctx context.Context, q *Query, labels Mode) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		p, err := a.plan(q)
		if err != nil {
			yield(Record{}, err)
			return
		}
		var given int64
		var room labelRoom
		for s, err := range p.selections(ctx, wanted{tsids: true, counts: true, tags: p.columns}) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			for i := range s.count {
				if q.Limit > 0 && given == q.Limit {
					if q.Explain != nil {
						q.Explain.Truncated = true
					}
					return
				}
				given++
				if q.Explain != nil {
					q.Explain.Selected++
				}
				r := Record{ID: ID{s.First.Table, s.ids[i]}, RowCount: s.counts[i], Labels: room.labels(s.out, i, s.count-i, labels)}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// Count counts the series that match. Blocks that statistics decide cost nothing, but for the TSIDs of those at the ends of
// a range.
func (a *Artifact) Count(ctx context.Context, q *Query) (uint64, error) {
	p, err := a.plan(q)
	if err != nil {
		return 0, err
	}
	var n uint64
	for s, err := range p.selections(ctx, wanted{}) {
		if err != nil {
			return 0, err
		}
		n += uint64(s.count)
		if q.Explain != nil {
			q.Explain.Selected += int64(s.count)
		}
	}
	return n, nil
}

// SumRows adds the numbers of rows of the series that match up; a sum of more than 64 bits is [fault.Limit].
func (a *Artifact) SumRows(ctx context.Context, q *Query) (uint64, error) {
	p, err := a.plan(q)
	if err != nil {
		return 0, err
	}
	var sum uint64
	for s, err := range p.selections(ctx, wanted{counts: true}) {
		if err != nil {
			return 0, err
		}
		for _, n := range s.counts {
			next, carry := bits.Add64(sum, n, 0)
			if carry != 0 {
				return 0, fault.New(fault.Limit, "series", "the numbers of rows have a sum of more than 64 bits").In(a.name)
			}
			sum = next
		}
	}
	return sum, nil
}

// each gives the rows that match.
func (s *selection) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		if s.alive == nil {
			for k := s.from; k < s.to; k++ {
				if !yield(k) {
					return
				}
			}
			return
		}
		for w, word := range s.alive {
			for ; word != 0; word &= word - 1 {
				if !yield(w<<6 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// windowBlocks and windowBytes bound what a query decides and evaluates at once.
const windowBlocks = 64

// batchBytes bounds what a query reads at once where a request is dear: as much as a store is asked for with one, half a second at
// 35 MB/s.
const batchBytes = 16 << 20

// window are blocks of one part that are evaluated together.
type window struct {
	blocks []*selection
	extent
}

// batch are windows of one part of which the bytes are read together. Where requests are cheap, it is one.
type batch struct {
	windows []window
	size    int64 // that is read
}

// takesMore reports whether the batch is read with more windows. A query that wants few series may not need them.
func (b *batch) takesMore(p *plan, obj source.Object) bool {
	held := min(p.memory, p.ahead) // of a window: one is given, one is evaluated, and the next one comes to the batch
	return isFar(obj) && p.q.Limit == 0 && b.size < min(batchBytes, p.ahead/4) && b.size+3*held <= p.memory
}

// fetch reads what the evaluation of the windows may need, where a request is dear. Of a block that is no longer than what a
// request is worth, that is all of it: the first matcher seldom tells that nothing else is wanted, and its column mostly lies
// between those of other blocks, which are read with it.
func (b *batch) fetch(ctx context.Context, p *plan, w wanted, bytes *store) error {
	most := bytes.obj.Cost().Gap
	var ranges []source.Range
	for _, window := range b.windows {
		for _, s := range window.blocks {
			if int64(s.end()-s.columns[0].Offset) > most {
				continue // its columns are read as they are needed
			}
			for i := range s.columns {
				c := &s.columns[i]
				if _, ok := s.cached(c); !ok && p.needs(s, c, w) {
					ranges = append(ranges, c.span())
				}
			}
		}
	}
	return bytes.fetch(ctx, ranges)
}

// needs reports whether a column of a block may be read.
func (p *plan) needs(s *selection, c *column, w wanted) bool {
	switch c {
	case &s.columns[0]:
		return w.tsids || !s.in.covers(s.Range)
	case &s.columns[1]:
		return w.counts
	}
	if !c.known() {
		return false
	}
	if _, ok := slices.BinarySearch(w.tags, c.tag); ok || w.values != nil && c.tag == w.later[0] && c.hasStats && c.min != c.max {
		return true
	}
	return slices.ContainsFunc(p.matchers, func(m planned) bool { return m.tag == c.tag && m.decide(c, p.q.Mode) == decideRead })
}

// selections gives the blocks that have rows which match, with the wanted columns of them. A query that runs alone and gives all
// that it finds evaluates a window while the one before it is given, as long as both have room.
func (p *plan) selections(ctx context.Context, w wanted) iter.Seq2[*selection, error] {
	evaluated := func(ctx context.Context) iter.Seq2[[]*selection, error] { return p.evaluated(ctx, w) }
	later := len(w.later) > 0 && w.values == nil // reads of what is given
	windows := evaluated(ctx)
	if p.q.Limit == 0 && p.q.ahead == 0 && !later {
		windows = oneAhead(ctx, evaluated)
	}
	return func(yield func(*selection, error) bool) {
		for blocks, err := range windows {
			if err != nil {
				yield(nil, err)
				return
			}
			for i, s := range blocks {
				blocks[i] = nil // what is decoded of it goes when it was given
				if s.count > 0 && !yield(s, nil) {
					return
				}
			}
		}
	}
}

// oneAhead gives what a sequence gives, whose next element is made while one is used. When an element comes, those before it are
// not used any more. The sequence has ended when oneAhead has.
func oneAhead[T any](ctx context.Context, of func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		type element struct {
			v   T
			err error
		}
		ctx, cancel := context.WithCancel(ctx)
		made, quit := make(chan element), make(chan struct{})
		go func() {
			defer close(made)
			for v, err := range of(ctx) {
				select {
				case made <- element{v, err}: // or taken by nobody, who has quit
				case <-quit:
				}
				select {
				case <-quit:
					return
				default:
				}
			}
		}()
		defer func() {
			close(quit)
			cancel()
			for range made {
			}
		}()
		for e := range made {
			if !yield(e.v, e.err) {
				return
			}
		}
	}
}

// evaluated gives windows of blocks, each with the rows that match and the wanted columns of them. One without blocks says that
// those before it must be used no more before the next one is evaluated, since there is not room for both.
func (p *plan) evaluated(ctx context.Context, w wanted) iter.Seq2[[]*selection, error] {
	return func(yield func([]*selection, error) bool) {
		if p.nothing {
			return
		}
		defer p.rooms.release()
		e := p.q.Explain
		if e == nil {
			e = &Explain{}
		}
		var now window
		var reads batch
		var bytes *store
		defer func() {
			if bytes != nil {
				bytes.release()
			}
		}()
		given := int64(0) // what the last window holds
		room := func(of window) bool {
			if given+of.held <= p.memory {
				return true
			}
			given = 0
			return yield(nil, nil)
		}
		evaluate := func(ctx context.Context, of window) bool {
			if !room(of) {
				return false
			}
			given = of.held
			err := p.evaluate(ctx, of.blocks, bytes, w)
			if err == nil && ctx.Err() != nil { // what is remembered is read without a look at it
				err = fault.New(nil, "series", "").In(p.a.name).Because(ctx.Err())
			}
			if err != nil {
				yield(nil, err)
				return false
			}
			for _, s := range of.blocks {
				s.bytes = bytes
			}
			done := int64(of.blocks[len(of.blocks)-1].columns[0].Offset)
			if !yield(of.blocks, nil) {
				return false
			}
			bytes.drop(done) // now that nobody reads more of these blocks
			return true
		}
		endWindow := func() {
			if len(now.blocks) > 0 {
				reads.windows, reads.size = append(reads.windows, now), reads.size+now.size
				now = window{}
			}
		}
		flush := func() bool {
			endWindow()
			if len(reads.windows) == 0 {
				return true
			}
			now := reads
			reads = batch{}
			last := now.windows[len(now.windows)-1]
			part := last.blocks[0].part
			if bytes == nil || bytes.obj != part.obj {
				if bytes != nil {
					bytes.release()
				}
				bytes = newStore(part)
				bytes.keeps = min(p.memory, p.ahead) / 4
			}
			ctx := ctx
			if isFar(part.obj) {
				end := part.frame.payloadEnd
				if len(p.matchers) > 0 { // what is wanted behind that is not known
					end = last.end
				}
				ctx = source.UpTo(ctx, int64(min(end, part.tailAt)))
				if !room(now.windows[0]) { // its stored bytes count, too
					return false
				}
				if err := now.fetch(ctx, p, w, bytes); err != nil {
					yield(nil, err)
					return false
				}
			}
			for i, window := range now.windows {
				now.windows[i].blocks = nil // what is decoded of it goes when it was given
				if !evaluate(ctx, window) {
					return false
				}
			}
			return true
		}
		in := p.ranges
		var last *part
		for b, err := range p.a.blocks(ctx, p.ranges) {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			if err := ctx.Err(); err != nil { // many blocks may be skipped, each by a pattern that takes its time
				yield(nil, fault.New(nil, "series", "").In(p.a.name).Because(err))
				return
			}
			e.Blocks++
			e.Series += int64(b.series)
			for in[0].Last.Less(b.First) { // of ranges that are many, each is of one table, as the block is
				in = in[1:]
			}
			s := &selection{rows: newRows(b), in: in[0], to: int(b.series)}
			if p.skips(s) {
				e.Skipped++
				continue
			}
			holds := p.holds(s, w)
			if holds > p.memory {
				if flush() {
					yield(nil, b.tooLarge(p.memory, holds, nil))
				}
				return
			}
			if last != nil && last != b.part && !flush() {
				return
			}
			last = b.part
			n := len(now.blocks)
			if full := n == windowBlocks || now.size > windowBytes || now.held+holds > min(p.memory, p.ahead); full && n > 0 {
				if endWindow(); !reads.takesMore(p, b.part.obj) && !flush() {
					return
				}
			}
			now.blocks = append(now.blocks, s)
			now.add(&b, holds)
		}
		flush()
	}
}

// holds is what a block takes in memory while it is evaluated, approximately.
func (p *plan) holds(s *selection, w wanted) int64 {
	n := s.blockAt.holds(w, w.later)
	if len(p.matchers) > 0 {
		n += 8 * int64(s.series) // which rows match
	}
	for _, m := range p.matchers {
		if _, ok := slices.BinarySearch(w.tags, m.tag); ok {
			continue
		}
		if c := s.column(m.tag); c != nil {
			n += c.holds(s.block) + c.decoding()
		}
	}
	return n
}

// skips reports whether statistics say that no row of a block matches.
func (p *plan) skips(s *selection) bool {
	none := false
	for _, m := range p.matchers {
		if m.decide(s.column(m.tag), p.q.Mode) == decideNone {
			m.explain.None++
			none = true
		}
	}
	return none
}

// String says in a line what a query did.
func (e *Explain) String() string {
	return fmt.Sprintf("%d blocks of %d series: %d skipped, %d whole, %d evaluated; %d series selected", e.Blocks, e.Series, e.Skipped, e.Whole, e.Evaluated, e.Selected)
}
