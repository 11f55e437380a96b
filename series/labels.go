package series

import (
	"context"
	"math"

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
			if found[tag], err = p.hasValue(ctx, s, tag); err != nil {
				return nil, err
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

// in are the values in a mode.
func (v *tagValues) in(mode Mode) []string {
	values := v.values
	if mode == Prom && len(values) > 0 && values[0] == "" {
		values = values[1:]
	}
	return values[:len(values):len(values)]
}

// LabelValues returns the distinct values of a label that the selected series have, sorted; in mode Prom without the empty
// one. A label that is no tag has none. q.Limit bounds their number, after sorting. The values are remembered, and the slice is
// shared by all who ask for them: it is for reading.
func (a *Artifact) LabelValues(ctx context.Context, name string, q *Query) ([]string, error) {
	tag, known := a.index.byName[name]
	key := cacheKey{a.cacheID, valuesOfTag, 0, uint64(tag)}
	whole := known && a.cache != nil && len(q.Matchers) == 0 && q.Range == nil && q.Tables == nil && q.Explain == nil && q.Limit == 0
	if whole {
		if v, ok := a.cache.get(key); ok && v.(*tagValues).size <= a.bound(q) {
			if err := ctx.Err(); err != nil {
				return nil, fault.New(nil, "series", "").In(a.name).Because(err)
			}
			return v.(*tagValues).in(q.Mode), nil
		}
	}
	values, err := a.labelValues(ctx, name, tag, known, q)
	if err != nil || values == nil {
		return nil, err
	}
	if whole {
		a.cache.put(key, values, values.size)
	}
	all := values.in(q.Mode)
	if q.Limit > 0 && int64(len(all)) > q.Limit {
		all = all[:q.Limit]
		if q.Explain != nil {
			q.Explain.Truncated = true
		}
	}
	return all, nil
}

// labelValues finds the values of a label that is a tag if it is known.
func (a *Artifact) labelValues(ctx context.Context, name string, tag int, known bool, q *Query) (*tagValues, error) {
	p, err := a.plan(q)
	if err != nil || !known {
		return nil, err
	}
	found := &valueSets{}
	for _, err := range p.selections(ctx, wanted{later: []int{tag}, values: found}) {
		if err != nil {
			return nil, err
		}
		if n := found.over.Load(); n > 0 {
			return nil, fault.New(fault.Limit, "series", "memory of %d bytes: more than %d values of the label %q", p.memory, n-1, name).In(a.name)
		}
	}
	values, held := found.sorted()
	return &tagValues{values, held}, nil
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

// hasValue reports whether one of the selected rows of a block has a value of a tag, one that is not empty in mode Prom.
func (p *plan) hasValue(ctx context.Context, s *selection, tag int) (bool, error) {
	d := s.tags[tag] // when a matcher has read it
	if d == nil {
		got, err := load(ctx, []blockAt{s.blockAt}, wanted{tags: []int{tag}}, s.bytes)
		if err != nil {
			return false, err
		}
		d = got[0].tags[tag]
	}
	for k := range s.each() {
		if code := d.codes.at(k); code != 0 && (p.q.Mode == Native || d.value(code) != "") {
			return true, nil
		}
	}
	return false, nil
}
