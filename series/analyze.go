package series

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// The defaults of AnalyzeOptions.
const (
	DefaultTop          = 10
	DefaultAnalyzeBytes = 256 << 20
)

// AnalyzeOptions are the options of an analyzer. Nil and the zero value mean the defaults.
type AnalyzeOptions struct {
	Top int // how many values of each label are listed; 0: DefaultTop, negative: none
	// Memory bounds what is held of distinct values, in bytes, approximately; 0: DefaultAnalyzeBytes. What does not fit goes
	// to temporary files.
	Memory int64
	// Parallel is how many artifacts are added at a time, which share the memory; 0: one.
	Parallel int
}

// Analysis says where the series of some artifacts are, and which values their labels have.
type Analysis struct {
	Series uint64 // a series that several artifacts have counts once for each
	Tables []TableAnalysis
	Labels []LabelAnalysis
	Parts  []PartAnalysis
}

// TableAnalysis is a table.
type TableAnalysis struct {
	Table  uint32
	Series uint64
	Blocks uint64
	Stored uint64 // bytes of the chunks
}

// LabelAnalysis is a label. The empty string is a value, null is none.
type LabelAnalysis struct {
	Name       string
	Series     uint64 // that have a value
	Nulls      uint64 // those that have none
	Empty      uint64 // whose value is the empty string
	Distinct   uint64 // values
	ValueBytes uint64 // of the distinct values
	Stored     uint64 // bytes of the chunks
	Decoded    uint64 // of the chunks, decompressed
	// Unknown counts the series that have a value which is not known, as their chunks are stored in a way that is not:
	// what the other members say of values leaves them out.
	Unknown uint64
	Top     []ValueCount // the values that most series have; of those with as many, the lesser
}

// ValueCount is a value, and how many series have it.
type ValueCount struct {
	Value  string
	Series uint64
}

// PartAnalysis is a part.
type PartAnalysis struct {
	Name   string
	Size   uint64 // bytes
	Series uint64
	Blocks uint64
	Leaves uint64
	Chunks uint64 // bytes
	Pages  uint64 // bytes
}

// Analyze analyzes one artifact; see [Analyzer].
func Analyze(ctx context.Context, a *Artifact, o *AnalyzeOptions) (*Analysis, error) {
	z := NewAnalyzer(ctx, o)
	defer z.Close()
	if err := z.Add(ctx, a, 0); err != nil {
		return nil, err
	}
	return z.Result()
}

// Analyzer counts the series and the values of artifacts. Pages tell it how many series there are, and the values of labels
// that have one in a block; of the others it reads dictionaries and codes, a window of blocks at a time. It makes no record.
// It is safe for concurrent use.
type Analyzer struct {
	opts AnalyzeOptions

	mu  sync.Mutex
	all *analysis
	err error // of all: what it holds is not whole
}

// NewAnalyzer returns an analyzer. Close frees what it holds.
func NewAnalyzer(ctx context.Context, o *AnalyzeOptions) *Analyzer {
	z := &Analyzer{}
	if o != nil {
		z.opts = *o
	}
	z.opts.Top = cmp.Or(z.opts.Top, DefaultTop)
	z.opts.Memory = cmp.Or(max(0, z.opts.Memory), DefaultAnalyzeBytes)
	z.opts.Parallel = max(1, z.opts.Parallel)
	z.all = newAnalysis(ctx, z.opts.Memory/2)
	return z
}

// Add analyzes an artifact, whose place among the others order is. Of one that fails nothing is counted.
func (z *Analyzer) Add(ctx context.Context, a *Artifact, order int) error {
	one := newAnalysis(ctx, z.opts.Memory/2/int64(z.opts.Parallel))
	defer one.values.close()
	if err := one.read(ctx, a); err != nil {
		return err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err == nil {
		z.err = z.all.add(one, order)
	}
	return z.err
}

// Result is what was found so far: tables in the order of their numbers, labels and parts in that of the artifacts and their
// manifests.
func (z *Analyzer) Result() (*Analysis, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err != nil {
		return nil, z.err
	}
	return z.all.result(max(0, z.opts.Top))
}

// Close frees memory and temporary files.
func (z *Analyzer) Close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.all.values.close()
}

// analysis is what an analyzer has counted.
type analysis struct {
	series uint64
	tables map[uint32]*TableAnalysis
	labels []LabelAnalysis
	index  map[string]int // of labels, by name
	seen   [][2]int       // for each label, the first artifact that has it, and its place there
	parts  []PartAnalysis
	orders []int // of the artifacts of the parts
	values tally // labels by their index
}

func newAnalysis(ctx context.Context, memory int64) *analysis {
	return &analysis{tables: make(map[uint32]*TableAnalysis), index: make(map[string]int), values: tally{ctx: ctx, memory: memory}}
}

func (z *analysis) label(name string) int {
	k, ok := z.index[name]
	if !ok {
		k = len(z.labels)
		z.index[name] = k
		z.labels = append(z.labels, LabelAnalysis{Name: name})
		z.seen = append(z.seen, [2]int{math.MaxInt, k})
	}
	return k
}

func (z *analysis) table(id uint32) *TableAnalysis {
	t := z.tables[id]
	if t == nil {
		t = &TableAnalysis{Table: id}
		z.tables[id] = t
	}
	return t
}

// read goes through an artifact.
func (z *analysis) read(ctx context.Context, a *Artifact) error {
	for _, t := range a.tags {
		z.label(t.Name)
	}
	var counts []uint64
	scan := tagScan{
		// What the descriptor of a column tells needs no chunk.
		wants: func(b blockAt, c *column) (bool, error) {
			k := z.label(c.name)
			l := &z.labels[k]
			has := uint64(b.series - c.nulls)
			l.Series += has
			l.Stored += uint64(c.Stored)
			l.Decoded += uint64(c.Decoded)
			switch {
			case !c.hasStats:
				return false, nil
			case c.min == c.max:
				return false, z.values.add(k, c.min, has)
			case !c.known():
				l.Unknown += has
				return false, nil
			}
			return true, nil
		},
		take: func(_ blockAt, c *column, d *dict) error {
			counts = append(counts[:0], make([]uint64, d.len())...)
			for row := range d.codes.len() {
				counts[d.codes.at(row)]++
			}
			k := z.label(c.name)
			for code, n := range counts[1:] {
				if n == 0 { // which the verifier objects to
					continue
				}
				if err := z.values.add(k, d.value(uint32(code+1)), n); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for _, p := range a.parts {
		if err := p.ready(ctx); err != nil {
			return err
		}
		at := PartAnalysis{Name: p.obj.Name(), Size: p.frame.size, Leaves: uint64(len(p.leaves))}
		if p.frame.depth == 2 {
			at.Pages += uint64(p.frame.root.Stored)
		}
		pages := newStore(p)
		for i := range p.leaves {
			at.Pages += uint64(p.leaves[i].Stored)
			blocks, err := p.leafAhead(ctx, i, everyLeaf, pages)
			if err != nil {
				return err
			}
			for k := range blocks {
				b := blockAt{&blocks[k], p, i}
				stored := uint64(0)
				for c := range b.columns {
					stored += uint64(b.columns[c].Stored)
				}
				t := z.table(b.First.Table)
				t.Series += uint64(b.series)
				t.Blocks++
				t.Stored += stored
				at.Series += uint64(b.series)
				at.Blocks++
				at.Chunks += stored
				if err := scan.block(ctx, b); err != nil {
					return err
				}
			}
		}
		if err := scan.flush(ctx); err != nil {
			return err
		}
		z.series += at.Series
		z.parts = append(z.parts, at)
	}
	return nil
}

// add takes over what was found in another artifact.
func (z *analysis) add(one *analysis, order int) error {
	z.series += one.series
	z.parts = append(z.parts, one.parts...)
	for range one.parts {
		z.orders = append(z.orders, order)
	}
	for id, t := range one.tables {
		sum := z.table(id)
		sum.Series += t.Series
		sum.Blocks += t.Blocks
		sum.Stored += t.Stored
	}
	for i := range one.labels {
		l := &one.labels[i]
		k := z.label(l.Name)
		if at := [2]int{order, i}; slices.Compare(at[:], z.seen[k][:]) < 0 {
			z.seen[k] = at
		}
		sum := &z.labels[k]
		sum.Series += l.Series
		sum.Stored += l.Stored
		sum.Decoded += l.Decoded
		sum.Unknown += l.Unknown
	}
	sameLabels := slices.EqualFunc(z.labels, one.labels, func(a, b LabelAnalysis) bool { return a.Name == b.Name })
	if z.values.held == 0 && len(z.values.runs) == 0 && sameLabels { // as for the first one: all of it
		memory, ctx := z.values.memory, z.values.ctx
		z.values, one.values = one.values, tally{}
		z.values.memory, z.values.ctx = memory, ctx
		return nil
	}
	return one.values.each(func(label int, value string, n uint64) error {
		return z.values.add(z.index[one.labels[label].Name], value, n)
	})
}

// result counts the values.
func (z *analysis) result(top int) (*Analysis, error) {
	out := &Analysis{Series: z.series, Labels: slices.Clone(z.labels), Parts: slices.Clone(z.parts), Tables: make([]TableAnalysis, 0, len(z.tables))}
	for _, id := range slices.Sorted(maps.Keys(z.tables)) {
		out.Tables = append(out.Tables, *z.tables[id])
	}
	most := make([]topValues, len(out.Labels))
	err := z.values.each(func(label int, value string, n uint64) error {
		l := &out.Labels[label]
		l.Distinct++
		l.ValueBytes += uint64(len(value))
		if value == "" {
			l.Empty = n
		}
		most[label].add(ValueCount{value, n}, top)
		return nil
	})
	for i := range out.Labels {
		l := &out.Labels[i]
		l.Nulls = z.series - l.Series
		l.Top = most[i].first(top)
	}
	arrange(out.Labels, func(i int) [2]int { return z.seen[i] })
	arrange(out.Parts, func(i int) [2]int { return [2]int{z.orders[i], i} })
	return out, err
}

// arrange sorts a list by a key of each place.
func arrange[T any](list []T, key func(i int) [2]int) {
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(i, k int) int {
		a, b := key(i), key(k)
		return slices.Compare(a[:], b[:])
	})
	old := slices.Clone(list)
	for i, k := range places {
		list[i] = old[k]
	}
}

// topValues are the values that were counted most often, and some more.
type topValues []ValueCount

func (t *topValues) add(v ValueCount, n int) {
	if n == 0 {
		return
	}
	if *t = append(*t, v); len(*t) >= 2*n+16 {
		*t = t.first(n)
	}
}

func (t topValues) first(n int) []ValueCount {
	slices.SortFunc(t, func(a, b ValueCount) int {
		return cmp.Or(cmp.Compare(b.Series, a.Series), strings.Compare(a.Value, b.Value))
	})
	return t[:min(n, len(t))]
}

// tagScan reads the columns of tags whose values are wanted, a window of blocks at a time, and decodes one after the other.
type tagScan struct {
	wants func(b blockAt, c *column) (bool, error)
	take  func(b blockAt, c *column, d *dict) error

	window []scanned
	ranges []source.Range
	size   uint64
}

type scanned struct {
	b blockAt
	c *column
}

// block adds a block.
func (s *tagScan) block(ctx context.Context, b blockAt) error {
	for i := 2; i < len(b.columns); i++ {
		c := &b.columns[i]
		if s.size > windowBytes {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
		yes, err := s.wants(b, c)
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		if !c.known() {
			return b.located(c.unknown(), c)
		}
		if most, holds := b.part.a.most, int64(c.Stored)+c.holds(b.block)+c.decoding(); most > 0 && holds > most {
			return b.tooLarge(most, holds, c)
		}
		s.window = append(s.window, scanned{b, c})
		s.ranges = append(s.ranges, c.span())
		s.size += uint64(c.Stored)
	}
	return nil
}

// flush reads what was added. It is called at the end of each part.
func (s *tagScan) flush(ctx context.Context) error {
	if len(s.window) == 0 {
		return nil
	}
	bytes := newStore(s.window[0].b.part)
	if err := bytes.fetch(ctx, s.ranges); err != nil {
		return err
	}
	for i, l := range s.window {
		if err := ctx.Err(); err != nil { // of a source that does not look at it
			return fault.New(nil, "series", "").In(l.b.part.a.name).Because(err)
		}
		v, _, err := l.b.decode(l.c, bytes.get(s.ranges[i]))
		if err == nil {
			err = s.take(l.b, l.c, v.(*dict))
		}
		if err != nil {
			return l.b.located(err, l.c)
		}
	}
	s.window, s.ranges, s.size = s.window[:0], s.ranges[:0], 0
	return nil
}
