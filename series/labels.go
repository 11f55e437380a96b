package series

import (
	"context"
	"maps"
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

// LabelValues returns the distinct values of a label that the selected series have, sorted; in mode Prom without the empty
// one. A label that is no tag has none. q.Limit bounds their number, after sorting.
func (a *Artifact) LabelValues(ctx context.Context, name string, q *Query) ([]string, error) {
	tag := slices.IndexFunc(a.tags, func(t Tag) bool { return t.Name == name })
	p, err := a.plan(q)
	if err != nil || tag < 0 {
		return nil, err
	}
	found := make(map[string]struct{})
	held := int64(0)
	add := func(v string) error {
		if _, ok := found[v]; ok {
			return nil
		}
		found[strings.Clone(v)] = struct{}{} // the value alone, which does not keep the text of a dictionary
		if held += int64(len(v)) + valueSize; held > p.memory {
			return fault.New(fault.Limit, "series", "memory of %d bytes: more than %d values of the label %q", p.memory, len(found), name).In(a.name)
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
	if q.Mode == Prom {
		delete(found, "")
	}
	all := slices.Sorted(maps.Keys(found))
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
	if s.count == int(s.series) {
		for i := range used {
			used[i] = true // a verifier sees to it that each value is used
		}
	} else {
		for k := range s.each() {
			used[d.codes[k]] = true
		}
	}
	var values []string // each once, as in the dictionary
	for code := 1; code < len(used); code++ {
		if used[code] {
			values = append(values, d.values[code])
		}
	}
	return values, nil
}
