package series

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spilehq/spile/fault"
)

// LabelNames returns the names of the labels that the selected series have, in the order of the tags: in mode Prom those
// with a value that is not empty, in mode Native those with a value. Without matchers it reads pages alone.
func (a *Artifact) LabelNames(ctx context.Context, q *Query) ([]string, error) {
	found := make([]bool, len(a.tags))
	p, err := a.plan(q)
	if err != nil {
		return nil, err
	}
	// Which tags a block has a value of, its descriptor says, when all of its series are selected.
	missing := func(s *selection) (tags []int) {
		for i := 2; i < len(s.columns); i++ {
			if c := s.at(i); !found[c.tag] && c.hasStats && (q.Mode == Native || c.max != "") {
				tags = append(tags, c.tag)
			}
		}
		return tags
	}
	all := make([]int, len(a.tags))
	for tag := range all {
		all[tag] = tag
	}
	for s, err := range p.selections(ctx, wanted{later: all}) {
		if err != nil {
			return nil, err
		}
		tags := missing(s)
		if s.count == int(s.series) {
			for _, tag := range tags {
				found[tag] = true
			}
			continue
		}
		for _, tag := range tags {
			values, err := p.valuesOf(ctx, s, tag)
			if err != nil {
				return nil, err
			}
			for _, v := range values {
				found[tag] = found[tag] || q.Mode == Native || v != ""
			}
		}
	}
	var names []string
	for tag, ok := range found {
		if ok {
			names = append(names, a.tags[tag].Name)
		}
	}
	return names, nil
}

// valueSize is what a text takes beside its bytes: its place in a map, and in the list that is made of it.
const valueSize = 64

// valuesOfTag stands for the part in the key of the values of a tag, whose index is in place of the offset.
const valuesOfTag = math.MaxUint32

// tagValues are the values of a tag that an artifact has, sorted, as they are remembered.
type tagValues struct {
	values []string
	size   int64 // of them, as Query.Memory counts it
}

// in are the values in a mode, in a slice that the caller may keep.
func (v *tagValues) in(mode Mode) []string {
	values := v.values
	if mode == Prom && len(values) > 0 && values[0] == "" {
		values = values[1:]
	}
	return slices.Clone(values)
}

// LabelValues returns the distinct values of a label that the selected series have, sorted; in mode Prom without the empty
// one. A label that is no tag has none. q.Limit bounds their number, after sorting.
func (a *Artifact) LabelValues(ctx context.Context, name string, q *Query) ([]string, error) {
	tag := slices.IndexFunc(a.tags, func(t Tag) bool { return t.Name == name })
	p, err := a.plan(q)
	if err != nil || tag < 0 {
		return nil, err
	}
	key := cacheKey{a.cacheID, valuesOfTag, 0, uint64(tag)}
	whole := a.cache != nil && len(p.matchers) == 0 && !p.nothing && q.Range == nil && q.Tables == nil && q.Explain == nil && q.Limit == 0
	if whole {
		if v, ok := a.cache.get(key); ok && v.(*tagValues).size <= p.memory {
			if err := ctx.Err(); err != nil {
				return nil, fault.New(nil, "series", "").In(a.name).Because(err)
			}
			return v.(*tagValues).in(q.Mode), nil
		}
	}
	found := []string{""} // each value once, behind one that is none
	seen := newDistinct(1 << 7)
	defer func() { seen.release() }()
	held := int64(0)
	add := func(v string) error {
		if found = append(found, v); !seen.add(found, len(found)-1) {
			found = found[:len(found)-1]
			return nil
		}
		// The value alone, which does not keep the text of a dictionary.
		found[len(found)-1] = strings.Clone(v)
		if held += int64(len(v)) + valueSize; held > p.memory {
			return fault.New(fault.Limit, "series", "memory of %d bytes: more than %d values of the label %q", p.memory, len(found)-1, name).In(a.name)
		}
		if 2*len(found) > len(seen.slots) {
			seen.grow(found)
		}
		return nil
	}
	for s, err := range p.selections(ctx, wanted{later: []int{tag}}) {
		if err != nil {
			return nil, err
		}
		c := s.column(tag)
		if c == nil || !c.hasStats {
			continue
		}
		if s.count == int(s.series) && c.min == c.max { // the descriptor tells
			if err := add(c.min); err != nil {
				return nil, err
			}
			continue
		}
		values, err := p.valuesOf(ctx, s, tag)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if err := add(v); err != nil {
				return nil, err
			}
		}
	}
	all := found[1:]
	slices.Sort(all)
	values := &tagValues{all, held}
	if whole {
		a.cache.put(key, values, held)
	}
	all = values.in(q.Mode)
	if q.Limit > 0 && int64(len(all)) > q.Limit {
		all = all[:q.Limit]
		if q.Explain != nil {
			q.Explain.Truncated = true
		}
	}
	return all, nil
}

// Tables returns the tables that have series which are selected, sorted. Without matchers it reads pages alone.
func (a *Artifact) Tables(ctx context.Context, q *Query) ([]uint32, error) {
	p, err := a.plan(q)
	if err != nil {
		return nil, err
	}
	var tables []uint32 // blocks come in the order of their tables
	for s, err := range p.selections(ctx, wanted{}) {
		if err != nil {
			return nil, err
		}
		if n := len(tables); n == 0 || tables[n-1] != s.First.Table {
			tables = append(tables, s.First.Table)
		}
	}
	return tables, nil
}

// valuesOf reads the values of a tag that the selected rows of a block have.
func (p *plan) valuesOf(ctx context.Context, s *selection, tag int) ([]string, error) {
	if c := s.column(tag); c != nil && s.count == int(s.series) {
		return p.allValues(ctx, s, tag, c)
	}
	d := s.tags[tag] // when a matcher has read it
	if d == nil {
		got, err := load(ctx, []blockAt{s.blockAt}, wanted{tags: []int{tag}}, s.bytes)
		if err != nil {
			return nil, err
		}
		if d = got[0].tags[tag]; d == nil {
			return nil, nil
		}
	}
	used := make([]bool, len(d.values))
	for k := range s.each() {
		used[d.codes[k]] = true
	}
	var values []string // each once, as in the dictionary
	for code := 1; code < len(used); code++ {
		if used[code] {
			values = append(values, d.values[code])
		}
	}
	return values, nil
}

// allValues reads the values of a tag that a block has: those of its dictionary, since a verifier sees to it that each is used.
func (p *plan) allValues(ctx context.Context, s *selection, tag int, c *column) ([]string, error) {
	chunk := s.chunks[tag] // when a matcher has read it
	if chunk == nil {
		r := newRows(s.blockAt)
		if err := loadAll(ctx, []loading{{&r, c, tag}}, s.bytes); err != nil {
			return nil, err
		}
		chunk = r.chunks[tag]
	}
	values, err := chunk.values()
	if err != nil {
		return nil, s.atChunk(err, c)
	}
	return values, nil
}
