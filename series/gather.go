package series

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/spilehq/spile/fault"
)

// GatherOptions are the options of a gatherer. Nil and the zero value mean the defaults.
type GatherOptions struct {
	KeepFirst bool  // where labels of a series differ, take those of the earliest bucket; see [NewMerger]
	Memory    int64 // for series, in bytes, approximately; 0: DefaultSortBytes. More goes to temporary files
	Parallel  int   // how many artifacts are added at a time, which share the memory; 0: one
}

// Gatherer collects the series that a query selects in many artifacts, which need not be open at the same time, and gives
// them in the order of their identifiers. An artifact that fails has no part in the result. It is safe for concurrent use.
type Gatherer struct {
	query Query
	opts  GatherOptions

	mu        sync.Mutex
	sorter    *Sorter
	inputs    []gathered
	err       error // of the sorter: what it holds is not whole
	conflicts int64
	tags      []Tag
}

// gathered is an artifact that was added: its manifest without the parts, and its place among the others.
type gathered struct {
	*Artifact
	order int
}

// inputLabel is the label that says which input a record in the sorter is of. No tag has this name.
const inputLabel = ""

// NewGatherer returns a gatherer for a query. Columns of the query are names of merged tags; what it explains, [Gatherer.Add]
// is asked for. Close frees memory and temporary files.
func NewGatherer(ctx context.Context, q *Query, o *GatherOptions) *Gatherer {
	g := &Gatherer{query: *q}
	if o != nil {
		g.opts = *o
	}
	if g.opts.Memory <= 0 {
		g.opts.Memory = DefaultSortBytes
	}
	g.opts.Parallel = max(1, g.opts.Parallel)
	g.sorter = NewSorter(ctx, g.opts.Memory/2)
	return g
}

// Add selects the series of an artifact that has its manifest. Order is its place among artifacts with the same bucket and
// the same generation. When it fails, nothing of the artifact is in the result.
func (g *Gatherer) Add(ctx context.Context, a *Artifact, order int, explain *Explain) error {
	if a.manifest == nil {
		return fault.New(fault.Invalid, "series", "is a part without its manifest").In(a.name)
	}
	sub := g.query
	sub.Explain = explain
	sub.ahead = max(1, windowDecoded/int64(g.opts.Parallel))
	if sub.Limit > 0 {
		sub.Limit++ // which tells whether there are more
	}
	if len(sub.Columns) > 0 { // names of tags may be others here
		sub.Columns = nil
	}
	mine := NewSorter(ctx, g.opts.Memory/2/int64(g.opts.Parallel))
	defer mine.Close()
	for r, err := range a.selectRecords(ctx, &sub, Native) { // empty labels are left out behind the merge
		if err == nil {
			err = mine.Add(r)
		}
		if err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err
	}
	which := strconv.Itoa(len(g.inputs))
	m := *a.manifest
	m.Files = nil
	g.inputs = append(g.inputs, gathered{&Artifact{manifest: &m, name: a.name, tags: a.tags}, order})
	for r, err := range mine.Sorted() {
		if err == nil {
			r.Labels = append(r.Labels, Label{inputLabel, which})
			err = g.sorter.Add(r)
		}
		if err != nil {
			g.err = err
			return err
		}
	}
	return nil
}

// region is what was added of a region: its inputs as one.
type region struct {
	merger   *Merger
	places   map[*Artifact]int // of inputs in the merger
	combined *combined
}

// Records gives the series, once. A series that several artifacts of a region have is one: the numbers of rows are added,
// and labels must be equal, as with [Merger]. Series of different regions stay what they are, that of the lesser region first.
func (g *Gatherer) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		regions, err := g.regions()
		if err == nil {
			err = g.err
		}
		if err != nil {
			yield(Record{}, err)
			return
		}
		given := int64(0)
		for group, err := range g.groups() {
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range g.combine(group, regions) {
				if r.err != nil {
					yield(Record{}, r.err)
					return
				}
				if g.query.Limit > 0 && given == g.query.Limit {
					if g.query.Explain != nil {
						g.query.Explain.Truncated = true
					}
					return
				}
				given++
				if !yield(r.Record, nil) {
					return
				}
			}
		}
	}
}

// Tags are the tags of all artifacts together, those of the lesser region first, each name once; they are there behind
// [Gatherer.Records].
func (g *Gatherer) Tags() []Tag { return g.tags }

// Conflicts counts the series of which a value was left out.
func (g *Gatherer) Conflicts() int64 { return g.conflicts }

// Close frees memory and temporary files.
func (g *Gatherer) Close() { g.sorter.Close() }

// regions makes mergers of the inputs, which were added in any order.
func (g *Gatherer) regions() (map[uint64]*region, error) {
	sorted := slices.Clone(g.inputs)
	slices.SortStableFunc(sorted, func(a, b gathered) int { return a.order - b.order })
	inputs := make(map[uint64][]*Artifact)
	for _, in := range sorted {
		inputs[in.manifest.RegionID] = append(inputs[in.manifest.RegionID], in.Artifact)
	}
	out := make(map[uint64]*region)
	g.tags = nil
	named := make(map[string]bool)
	for _, id := range slices.Sorted(maps.Keys(inputs)) {
		m, err := NewMerger(inputs[id], g.opts.KeepFirst)
		if err != nil {
			return nil, err
		}
		r := &region{m, make(map[*Artifact]int), m.newCombined(&g.query)}
		for i, a := range m.inputs {
			r.places[a] = i
		}
		out[id] = r
		for _, t := range m.tags {
			if !named[t.Name] {
				named[t.Name] = true
				g.tags = append(g.tags, t)
			}
		}
	}
	return out, nil
}

// gatheredRecord is a record, and the input that it is of.
type gatheredRecord struct {
	Record
	input *Artifact
	err   error
}

// groups gives the records of each identifier.
func (g *Gatherer) groups() iter.Seq2[[]gatheredRecord, error] {
	return func(yield func([]gatheredRecord, error) bool) {
		var group []gatheredRecord
		for r, err := range g.sorter.Sorted() {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) > 0 && group[0].ID != r.ID {
				if !yield(group, nil) {
					return
				}
				group = group[:0]
			}
			last := len(r.Labels) - 1
			which, err := strconv.Atoi(r.Labels[last].Value) // as Add has written it
			if err != nil {
				yield(nil, err)
				return
			}
			r.Labels = slices.Clone(r.Labels[:last])
			group = append(group, gatheredRecord{Record: r, input: g.inputs[which].Artifact})
		}
		if len(group) > 0 {
			yield(group, nil)
		}
	}
}

// combine makes one record for each region of those that have one identifier.
func (g *Gatherer) combine(group []gatheredRecord, regions map[uint64]*region) []gatheredRecord {
	slices.SortStableFunc(group, func(a, b gatheredRecord) int {
		x, y := a.input.manifest.RegionID, b.input.manifest.RegionID
		if x != y {
			return cmp.Compare(x, y)
		}
		in := regions[x]
		return in.places[a.input] - in.places[b.input]
	})
	var out []gatheredRecord
	for len(group) > 0 {
		id := group[0].input.manifest.RegionID
		in := regions[id]
		before := in.merger.conflicts
		c := in.combined
		c.begin(group[0].ID)
		made := gatheredRecord{}
		for len(group) > 0 && group[0].input.manifest.RegionID == id {
			if made.err == nil {
				made.err = c.add(in.places[group[0].input], group[0].Record)
			}
			group = group[1:]
		}
		made.Record = c.record()
		g.conflicts += in.merger.conflicts - before
		out = append(out, made)
	}
	return out
}
