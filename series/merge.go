package series

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/spilehq/spile/fault"
)

// Merger reads several artifacts of one region as one: for example one for each bucket of time.
type Merger struct {
	inputs    []*Artifact // in the order of the starts of their buckets, then of their generations
	tags      []Tag
	maps      []map[string]int // for each input: the name of a tag there -> its index in tags
	lists     [][]bool         // for each input: which of the tags its manifest lists
	keepFirst bool
	conflicts int64
}

// NewMerger returns a merger of artifacts, each of which has its manifest. Series with one identifier in several of them
// become one: the numbers of rows are added, and the values of a tag must be the same in every artifact whose manifest lists
// it ([fault.Conflict] else). With keepFirst that of the earliest bucket counts, and [Merger.Conflicts] the series.
func NewMerger(artifacts []*Artifact, keepFirst bool) (*Merger, error) {
	m := &Merger{inputs: slices.Clone(artifacts), keepFirst: keepFirst}
	for _, a := range m.inputs {
		if a.manifest == nil {
			return nil, fault.New(fault.Invalid, "series", "is a part without its manifest").In(a.name)
		}
		if first := m.inputs[0]; a.manifest.RegionID != first.manifest.RegionID {
			return nil, fault.New(fault.Conflict, "series", "is of the region %d, %s of %d", a.manifest.RegionID, first.name, first.manifest.RegionID).In(a.name)
		}
	}
	slices.SortStableFunc(m.inputs, func(a, b *Artifact) int {
		switch x, y := a.manifest.Coverage.start(), b.manifest.Coverage.start(); {
		case before(x, y):
			return -1
		case before(y, x):
			return 1
		}
		return slices.Compare(a.manifest.Generation[:], b.manifest.Generation[:])
	})
	return m, m.mergeTags()
}

func (c *Coverage) start() Timestamp {
	if c.BucketStart != nil {
		return *c.BucketStart
	}
	return Timestamp{math.MinInt64, timeUnits[0]}
}

func (c *Coverage) end() Timestamp {
	if c.BucketEnd != nil {
		return *c.BucketEnd
	}
	return Timestamp{math.MinInt64, timeUnits[0]}
}

// mergeTags makes the union of the tags, by their columns. A name is that of the latest bucket.
func (m *Merger) mergeTags() error {
	index := make(map[uint32]int)
	var named []Timestamp // the end of the bucket that each name is of
	for _, a := range m.inputs {
		end := a.manifest.Coverage.end()
		for _, t := range a.tags {
			i, ok := index[t.ColumnID]
			if !ok {
				index[t.ColumnID] = len(m.tags)
				m.tags, named = append(m.tags, t), append(named, end)
			} else if !before(end, named[i]) {
				m.tags[i].Name, named[i] = t.Name, end
			}
		}
	}
	if err := checkTags(m.tags); err != nil {
		return fault.New(fault.Conflict, "series", "the tags of the artifacts together have %s", err)
	}
	for _, a := range m.inputs {
		names, lists := make(map[string]int), make([]bool, len(m.tags))
		for _, t := range a.tags {
			names[t.Name], lists[index[t.ColumnID]] = index[t.ColumnID], true
		}
		m.maps, m.lists = append(m.maps, names), append(m.lists, lists)
	}
	return nil
}

// Tags are the tags of all artifacts together.
func (m *Merger) Tags() []Tag { return m.tags }

// Conflicts counts the series of which a value was left out.
func (m *Merger) Conflicts() int64 { return m.conflicts }

// Overlaps reports whether the buckets of two artifacts overlap in time. Then rows may have been counted twice, and the
// numbers of rows are upper bounds.
func (m *Merger) Overlaps() bool {
	for i := 1; i < len(m.inputs); i++ {
		for _, a := range m.inputs[:i] {
			if before(m.inputs[i].manifest.Coverage.start(), a.manifest.Coverage.end()) {
				return true
			}
		}
	}
	return false
}

// Generation is one that follows from those of the inputs: a UUID of version 8 made of their hash, so that the same inputs
// give the same artifact.
func (m *Merger) Generation() UUID {
	h := sha256.New()
	for _, a := range m.inputs {
		h.Write(a.manifest.Generation[:])
	}
	return hashUUID(h.Sum(nil))
}

// Manifest is what an artifact of the merged series is built of: the region, the tags, and the bucket from the first start
// to the last end. The sequences go from the least to the greatest.
func (m *Merger) Manifest(generation UUID) *Manifest {
	out := &Manifest{RegionID: m.inputs[0].manifest.RegionID, Generation: generation, Tags: m.tags}
	c := &out.Coverage
	seen := make(map[UUID]bool)
	for _, a := range m.inputs {
		in := a.manifest.Coverage
		if in.BucketStart != nil && (c.BucketStart == nil || before(*in.BucketStart, *c.BucketStart)) {
			c.BucketStart = in.BucketStart
		}
		if in.BucketEnd != nil && (c.BucketEnd == nil || before(*c.BucketEnd, *in.BucketEnd)) {
			c.BucketEnd = in.BucketEnd
		}
		for _, u := range in.SourceFileIDs {
			if !seen[u] {
				seen[u] = true
				c.SourceFileIDs = append(c.SourceFileIDs, u)
			}
		}
		if n := in.MinFileSequence; n != nil && (c.MinFileSequence == nil || *n < *c.MinFileSequence) {
			c.MinFileSequence = n
		}
		if n := in.MaxFileSequence; n != nil && (c.MaxFileSequence == nil || *n > *c.MaxFileSequence) {
			c.MaxFileSequence = n
		}
		if c.CompactionWindowSecs == nil {
			c.CompactionWindowSecs = in.CompactionWindowSecs
		}
		for start, w := range in.WindowSequences {
			if c.WindowSequences == nil {
				c.WindowSequences = make(map[string]Window)
			}
			if have, ok := c.WindowSequences[start]; ok {
				w.End, w.MaxSequence = max(w.End, have.End), max(w.MaxSequence, have.MaxSequence)
			}
			c.WindowSequences[start] = w
		}
	}
	return out
}

// head is the next record of an input.
type head struct {
	record Record
	next   func() (Record, error, bool)
	done   bool
}

// Select gives the series that match in at least one artifact, merged, in the order of their identifiers. Columns of the
// query are names of merged tags.
func (m *Merger) Select(ctx context.Context, q *Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		heads := make([]head, len(m.inputs))
		fail := func(err error) { yield(Record{}, err) }
		for i, a := range m.inputs {
			// Empty labels are left out behind the merge: null and the empty string may not be mixed up in it.
			sub := *q
			sub.Limit, sub.Explain = 0, nil
			if len(sub.Columns) > 0 { // names of tags may be others here
				sub.Columns = nil
			}
			sub.ahead = max(1, windowDecoded/int64(len(m.inputs)))
			if q.Memory > 0 {
				sub.Memory = max(1, q.Memory/int64(len(m.inputs)))
			}
			sub.Columns = m.columnsOf(i, q)
			next, stop := iter.Pull2(a.selectRecords(ctx, &sub, Native))
			defer stop()
			heads[i].next = next
			if err := heads[i].advance(); err != nil {
				fail(err)
				return
			}
		}
		c := m.newCombined(q)
		given := int64(0)
		for {
			least := -1
			for i := range heads {
				if !heads[i].done && (least < 0 || heads[i].record.Less(heads[least].record.ID)) {
					least = i
				}
			}
			if least < 0 {
				return
			}
			if q.Limit > 0 && given == q.Limit {
				if q.Explain != nil {
					q.Explain.Truncated = true
				}
				return
			}
			r, err := c.merge(heads, heads[least].record.ID)
			if err != nil {
				fail(err)
				return
			}
			given++
			if !yield(r, nil) {
				return
			}
		}
	}
}

// columnsOf are the columns of a query by the names that an input has for them.
func (m *Merger) columnsOf(i int, q *Query) []string {
	if q.Columns == nil {
		return nil
	}
	columns := []string{}
	for _, t := range m.inputs[i].tags {
		if slices.Contains(q.Columns, m.tags[m.maps[i][t.Name]].Name) {
			columns = append(columns, t.Name)
		}
	}
	return columns
}

func (h *head) advance() error {
	r, err, ok := h.next()
	h.record, h.done = r, !ok
	if ok && err != nil {
		return err
	}
	return nil
}

// merge makes one record of those that have the identifier.
func (c *combined) merge(heads []head, id ID) (Record, error) {
	c.begin(id)
	for i := range heads {
		h := &heads[i]
		if h.done || h.record.ID != id {
			continue
		}
		if err := c.add(i, h.record); err != nil {
			return c.out, err
		}
		if err := h.advance(); err != nil {
			return c.out, err
		}
	}
	return c.record(), nil
}

// combined becomes one record of those that several inputs have of a series, and then of the next series.
type combined struct {
	m        *Merger
	mode     Mode
	wanted   []bool // which of the merged tags are asked for
	out      Record
	values   []combinedValue // of the merged tags
	mine     []combinedValue // those of an input
	conflict bool
}

type combinedValue struct {
	text      string
	has, seen bool
}

func (m *Merger) newCombined(q *Query) *combined {
	n := len(m.tags)
	c := &combined{m: m, mode: q.Mode, wanted: make([]bool, n), values: make([]combinedValue, n), mine: make([]combinedValue, n)}
	for t := range m.tags {
		c.wanted[t] = q.Columns == nil || slices.Contains(q.Columns, m.tags[t].Name)
	}
	return c
}

// begin forgets the series before.
func (c *combined) begin(id ID) {
	c.out, c.conflict = Record{ID: id}, false
	clear(c.values)
}

// add takes the record of input i into account.
func (c *combined) add(i int, r Record) error {
	m := c.m
	if c.out.RowCount > math.MaxUint64-r.RowCount {
		return fault.New(fault.Limit, "series", "the numbers of rows have a sum of more than 64 bits").On(r.ID.String())
	}
	c.out.RowCount += r.RowCount
	clear(c.mine)
	for _, l := range r.Labels {
		c.mine[m.maps[i][l.Name]] = combinedValue{l.Value, true, true}
	}
	for t := range m.tags {
		if !m.lists[i][t] || !c.wanted[t] {
			continue
		}
		v := combinedValue{c.mine[t].text, c.mine[t].has, true}
		if !c.values[t].seen {
			c.values[t] = v
			continue
		}
		if c.values[t] == v {
			continue
		}
		if !m.keepFirst {
			return fault.New(fault.Conflict, "series", "the label %q is %s in one artifact and %s in another", m.tags[t].Name, c.values[t], v).On(r.ID.String()).In(m.inputs[i].name)
		}
		c.conflict = true
	}
	return nil
}

// String is the value as messages show it.
func (v combinedValue) String() string {
	if !v.has {
		return "null"
	}
	return fmt.Sprintf("%q", short(v.text))
}

// record is the record that was made.
func (c *combined) record() Record {
	if c.conflict {
		c.m.conflicts++
	}
	c.out.Labels = make([]Label, 0, len(c.m.tags))
	for t, v := range c.values {
		if v.has && (c.mode == Native || v.text != "") {
			c.out.Labels = append(c.out.Labels, Label{c.m.tags[t].Name, v.text})
		}
	}
	return c.out
}
