package series

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/spilehq/spile/fault"
)

// order says for each of some blocks which matchers have to read, in their order, and how many these are at most.
func (p *plan) order(window []*selection) (todo [][]planned, rounds int) {
	todo = make([][]planned, len(window))
	for i, s := range window {
		for _, m := range p.matchers {
			switch m.decide(s.column(m.tag), p.q.Mode) {
			case decideAll:
				m.explain.All++
			case decideRead:
				m.explain.Read++
				todo[i] = append(todo[i], m)
			}
		}
		// The shortest chunk first, since the others may not be needed; what is equal, by equality before patterns.
		slices.SortStableFunc(todo[i], func(a, b planned) int {
			ca, cb := s.column(a.tag), s.column(b.tag)
			return cmp.Or(cmp.Compare(ca.Stored>>10, cb.Stored>>10), cmp.Compare(a.Op, b.Op), cmp.Compare(ca.Stored, cb.Stored))
		})
		rounds = max(rounds, len(todo[i]))
		if e := p.q.Explain; e != nil {
			if len(todo[i]) == 0 {
				e.Whole++
			} else {
				e.Evaluated++
			}
		}
	}
	return todo, rounds
}

// evaluate finds the rows that match in some blocks of one part, and reads the wanted columns of those that have any.
func (p *plan) evaluate(ctx context.Context, window []*selection, bytes *store, w wanted) error {
	todo, rounds := p.order(window)
	for round := range rounds {
		if err := p.match(ctx, window, todo, round, bytes, w); err != nil {
			return err
		}
	}
	// Where the range cuts a block, the rows that are left may all lie outside it, and what nobody can read is not needed.
	var cut []*selection
	var ids []loading
	for _, s := range window {
		if s.isLeft() && !s.in.covers(s.Range) && s.unknown() != nil {
			cut, ids = append(cut, s), append(ids, loading{&s.rows, &s.columns[0], tagTSID})
		}
	}
	if err := loadAll(ctx, ids, bytes); err != nil {
		return err
	}
	for _, s := range cut {
		if s.cutAlive(); s.count == 0 {
			s.alive = make([]uint64, 1)
		}
	}
	return p.show(ctx, window, bytes, w)
}

// match runs of each block the matcher of a round, where it has one and rows are left.
func (p *plan) match(ctx context.Context, window []*selection, todo [][]planned, round int, bytes *store, w wanted) error {
	var list []loading
	var of []int // the block of each
	for i, s := range window {
		if round >= len(todo[i]) || !s.isLeft() {
			continue
		}
		m := todo[i][round]
		c := s.column(m.tag)
		if s.tags[m.tag] == nil {
			m.explain.Bytes += int64(c.Stored)
		}
		list, of = append(list, loading{&s.rows, c, m.tag}), append(of, i)
	}
	ran := make([]int64, len(list))
	err := useAll(ctx, list, bytes, &p.rooms, func(k int, v any, room *columnRoom) (keep bool, err error) {
		s, m, d := window[of[k]], todo[of[k]][round], v.(*dict)
		s.alive, ran[k], err = d.match(ctx, m.Matcher, m.matchesNull(p.q.Mode), s.alive)
		if err != nil {
			return false, fault.Locate(err, s.part.a.name, "", 0)
		}
		if room == nil { // it is remembered
			s.tags[m.tag] = d
			return false, nil
		}
		again := slices.ContainsFunc(todo[of[k]][round+1:], func(o planned) bool { return o.tag == m.tag })
		_, shown := slices.BinarySearch(w.tags, m.tag)
		if keep = again || shown || slices.Contains(w.later, m.tag); keep {
			s.tags[m.tag] = d
			s.kept = append(s.kept, room)
		}
		return keep, nil
	})
	for k, n := range ran {
		if n > 0 {
			todo[of[k]][round].explain.Evaluations += n
		}
	}
	return err
}

// show reads the wanted columns of the blocks that have rows left, and takes of each what these rows have.
func (p *plan) show(ctx context.Context, window []*selection, bytes *store, w wanted) error {
	var cut []loading // the TSIDs of the blocks that the range cuts
	var all []loading // these and the list, block by block
	var list []loading
	var of []*selection // of list
	var slots []int     // of list: the place among the tags that are shown
	for _, s := range window {
		if !s.isLeft() {
			continue
		}
		add := func(c *column, tag, slot int) {
			l := loading{&s.rows, c, tag}
			all, list, of, slots = append(all, l), append(list, l), append(of, s), append(slots, slot)
		}
		if !s.in.covers(s.Range) {
			l := loading{&s.rows, &s.columns[0], tagTSID}
			all, cut = append(all, l), append(cut, l)
		}
		if w.tsids {
			add(&s.columns[0], tagTSID, 0)
		}
		if w.counts {
			add(&s.columns[1], tagCount, 0)
		}
		for c := range s.among(w.tags) {
			add(c, c.tag, len(s.out))
			s.out = append(s.out, outColumn{name: s.part.a.tags[c.tag].Name})
		}
		if w.values == nil {
			continue
		}
		if c := s.column(w.later[0]); c != nil && c.hasStats && !s.tells(c) {
			add(c, c.tag, 0)
		}
	}
	if len(cut) > 0 {
		if _, _, err := fetchAll(ctx, all, bytes); err != nil {
			return err
		}
		if err := loadAll(ctx, cut, bytes); err != nil {
			// The first fault is told, whatever else is wrong in a block behind it.
			nothing := func(int, any, *columnRoom) (bool, error) { return false, nil }
			return cmp.Or(useAll(ctx, all, bytes, &p.rooms, nothing), err)
		}
	}
	picks := w.tsids || w.counts || len(w.tags) > 0
	if err := parallel(len(window), func(i int) error {
		s := window[i]
		if s.cutAlive(); picks && s.alive != nil && s.count > 0 {
			s.picked = slices.AppendSeq(make([]int, 0, s.count), s.each())
		}
		return nil
	}); err != nil {
		return err
	}
	err := useAll(ctx, list, bytes, &p.rooms, func(k int, v any, room *columnRoom) (keep bool, err error) {
		switch s := of[k]; {
		case s.count == 0:
		case list[k].tag == tagTSID:
			s.ids = s.numbers(v.([]uint64), room != nil)
		case list[k].tag == tagCount:
			s.counts = s.numbers(v.([]uint64), room != nil)
		case w.values != nil:
			w.values.addRows(s, v.(*dict), p.memory)
		case s.alive == nil:
			o := &s.out[slots[k]]
			o.values, o.codes = v.(*dict).span(s.from, s.to)
		default:
			o := &s.out[slots[k]]
			o.values, o.codes = v.(*dict).pick(s.picked)
		}
		return false, nil
	})
	for _, s := range window {
		if len(w.later) == 0 || w.values != nil { // else it is read of them when the block is given
			p.rooms.put(s.kept...)
		}
		s.kept, s.picked = nil, nil
		if c := s.tellsValue(w); c != nil {
			w.values.add(c.min)
		}
	}
	if w.values != nil {
		w.values.settle(p.memory)
	}
	return err
}

// tells reports whether the descriptor tells what a column has in all rows that match.
func (s *selection) tells(c *column) bool {
	return s.alive == nil && s.in.covers(s.Range) && c.min == c.max
}

// tellsValue is the column whose values are wanted, if rows match and the descriptor tells its one value; else nil.
func (s *selection) tellsValue(w wanted) *column {
	if w.values == nil || s.count == 0 {
		return nil
	}
	if c := s.column(w.later[0]); c != nil && c.hasStats && s.tells(c) {
		return c
	}
	return nil
}

// isLeft reports whether there are rows left.
func (s *selection) isLeft() bool { return s.alive == nil || !isZero(s.alive) }

// numbers are those of the rows that match, in memory of their own if what they come from is used by others later.
func (s *selection) numbers(all []uint64, borrowed bool) []uint64 {
	if s.alive == nil {
		if all = all[s.from:s.to:s.to]; borrowed {
			all = slices.Clone(all)
		}
		return all
	}
	out := make([]uint64, len(s.picked))
	for i, k := range s.picked {
		out[i] = all[k]
	}
	return out
}

func isZero(words []uint64) bool {
	for _, w := range words {
		if w != 0 {
			return false
		}
	}
	return true
}

// cutAlive cuts the rows to the range, and counts them.
func (s *selection) cutAlive() {
	s.count = 0
	if s.alive != nil && isZero(s.alive) {
		return
	}
	s.from, s.to = s.cut(s.in)
	if s.alive == nil {
		s.count = s.to - s.from
		return
	}
	for w := range s.alive {
		lo, hi := w<<6, w<<6+64
		mask := ^uint64(0)
		if lo < s.from {
			mask &= ^uint64(0) << min(64, s.from-lo)
		}
		if hi > s.to {
			mask &= ^uint64(0) >> min(64, hi-s.to)
		}
		s.alive[w] &= mask
		s.count += bits.OnesCount64(s.alive[w])
	}
}
