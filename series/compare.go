package series

import (
	"context"
	"iter"

	"github.com/spilehq/spile/fault"
)

// Comparison counts the series of two artifacts, A and B. A series whose labels and whose number of rows differ counts for
// both.
type Comparison struct {
	OnlyA  uint64 `json:"only_a"`
	OnlyB  uint64 `json:"only_b"`
	Labels uint64 `json:"labels"` // in both, with other labels
	Rows   uint64 `json:"rows"`   // in both, with another number of rows
	Same   uint64 `json:"same"`
}

// Equal reports whether the two have the same series.
func (c *Comparison) Equal() bool {
	return c.OnlyA == 0 && c.OnlyB == 0 && c.Labels == 0 && c.Rows == 0
}

// Difference is a series that the two artifacts do not have alike.
type Difference struct {
	ID
	A, B   *Record  // nil in the artifact that does not have it
	Labels []string // the names of those that differ, where both have it
	Rows   bool     // the numbers of rows differ, where both have it
}

// Compare compares the series of two artifacts, whatever their blocks, pages and parts are. Labels are the same by their
// names; null and the empty string differ, and a label that is no tag of an artifact is null there. Each difference is
// reported in the order of identifiers; an error of report ends the comparison. Memory is that of a window of blocks of
// each.
func Compare(ctx context.Context, a, b *Artifact, report func(Difference) error) (*Comparison, error) {
	sides := [2]*side{newSide(ctx, a), newSide(ctx, b)}
	defer sides[0].stop()
	defer sides[1].stop()
	for _, s := range sides {
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	c := &comparer{labels: pairLabels(a.tags, b.tags), report: report}
	for {
		order := sides[0].compare(sides[1])
		if order == 0 && sides[0].rows == nil {
			return &c.Comparison, nil
		}
		if err := c.pair(sides[0], sides[1], order); err != nil {
			return nil, err
		}
		if order <= 0 {
			if err := sides[0].advance(); err != nil {
				return nil, err
			}
		}
		if order >= 0 {
			if err := sides[1].advance(); err != nil {
				return nil, err
			}
		}
	}
}

// labelPair is a label, and its index in the tags of each artifact, -1 where it is none.
type labelPair struct {
	name string
	a, b int
}

func pairLabels(a, b []Tag) []labelPair {
	inA, inB := newTagIndex(a).byName, newTagIndex(b).byName
	var out []labelPair
	for i, t := range a {
		k, ok := inB[t.Name]
		if !ok {
			k = -1
		}
		out = append(out, labelPair{t.Name, i, k})
	}
	for i, t := range b {
		if _, ok := inA[t.Name]; !ok {
			out = append(out, labelPair{t.Name, -1, i})
		}
	}
	return out
}

type comparer struct {
	Comparison
	labels []labelPair
	report func(Difference) error
}

// pair takes the series at two places into account: order says which of them comes first.
func (c *comparer) pair(a, b *side, order int) error {
	switch {
	case order < 0:
		c.OnlyA++
		r := a.rows.record(a.row)
		return c.report(Difference{ID: r.ID, A: &r})
	case order > 0:
		c.OnlyB++
		r := b.rows.record(b.row)
		return c.report(Difference{ID: r.ID, B: &r})
	}
	d := Difference{Rows: a.rows.counts[a.row] != b.rows.counts[b.row]}
	for _, l := range c.labels {
		va, hasA := a.rows.value(l.a, a.row)
		vb, hasB := b.rows.value(l.b, b.row)
		if hasA != hasB || va != vb {
			d.Labels = append(d.Labels, l.name)
		}
	}
	if !d.Rows && d.Labels == nil {
		c.Same++
		return nil
	}
	if d.Rows {
		c.Rows++
	}
	if d.Labels != nil {
		c.Labels++
	}
	ra, rb := a.rows.record(a.row), b.rows.record(b.row)
	d.ID, d.A, d.B = ra.ID, &ra, &rb
	return c.report(d)
}

// value is the value of a tag in row k, and whether it is there.
func (r *rows) value(tag, k int) (string, bool) {
	if tag < 0 {
		return "", false
	}
	d := r.tags[tag]
	if d == nil || d.codes.at(k) == 0 {
		return "", false
	}
	return d.value(d.codes.at(k)), true
}

// side is an artifact that is gone through in the order of identifiers.
type side struct {
	ctx    context.Context
	name   string
	next   func() ([]rows, error, bool)
	stop   func()
	window []rows // that come behind the block
	rows   *rows  // the block, nil at the end
	row    int
}

func newSide(ctx context.Context, a *Artifact) *side {
	all := make([]int, len(a.tags))
	for i := range all {
		all[i] = i
	}
	s := &side{ctx: ctx, name: a.name}
	s.next, s.stop = iter.Pull2(a.windows(ctx, everything, wanted{tsids: true, counts: true, tags: all}))
	return s
}

// advance goes to the next series.
func (s *side) advance() error {
	if s.rows != nil {
		if s.row++; s.row < int(s.rows.series) {
			return nil
		}
	}
	s.rows, s.row = nil, 0
	for len(s.window) == 0 {
		if err := s.ctx.Err(); err != nil { // what is remembered is read without a look at it
			return fault.New(nil, "series", "").In(s.name).Because(err)
		}
		window, err, ok := s.next()
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		s.window = window
	}
	s.rows, s.window = &s.window[0], s.window[1:]
	return nil
}

// compare is -1 where the series of s comes first, 1 where that of t does, 0 where they have one identifier or both sides
// have ended.
func (s *side) compare(t *side) int {
	switch {
	case s.rows == nil && t.rows == nil:
		return 0
	case t.rows == nil:
		return -1
	case s.rows == nil:
		return 1
	}
	return ID{s.rows.First.Table, s.rows.tsids[s.row]}.Compare(ID{t.rows.First.Table, t.rows.tsids[t.row]})
}
