package series

import (
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
)

// lookupParts is how many parts are read side by side for many lookups.
const lookupParts = 8

// LookupAll finds series, and gives them in the order of ids. What they need is read together, of several parts side by side, so
// that over a network many take little longer than one. It ends with the first that cannot be had; that is [fault.NotFound]
// when there is none. Until the first record is given all of them are held, and the columns of some blocks.
func (a *Artifact) LookupAll(ctx context.Context, ids []ID) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if len(ids) == 1 {
			yield(a.Lookup(ctx, ids[0]))
			return
		}
		l := a.lookUp(ctx, ids)
		for _, id := range ids {
			var r Record
			var err error
			switch i, _ := slices.BinarySearchFunc(l.ids, id, ID.Compare); {
			case l.state[i] == lookupFound:
				r = l.records[i]
			case l.state[i] == lookupMissing:
				err = a.missing(id)
			case l.failed != nil:
				err = l.failed
			default:
				r, err = a.Lookup(ctx, id)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

type lookupState uint8

const (
	lookupOpen    lookupState = iota // it is left to a lookup of its own, or there is an error
	lookupFound                      // there is a record
	lookupMissing                    // there is no such series
)

// lookups are identifiers that are looked up together, each once, in order.
type lookups struct {
	a       *Artifact
	ids     []ID
	records []Record
	state   []lookupState
	failed  error // of the source, or of the context
	share   int64 // what the blocks of a part may take that are decoded together
}

func (a *Artifact) lookUp(ctx context.Context, ids []ID) *lookups {
	l := &lookups{a: a, ids: slices.Clone(ids)}
	slices.SortFunc(l.ids, ID.Compare)
	l.ids = slices.Compact(l.ids)
	l.records, l.state = make([]Record, len(l.ids)), make([]lookupState, len(l.ids))
	var parts []*part
	var of [][2]int // the identifiers of each
	from := 0
	for _, p := range a.parts {
		to := len(l.ids)
		if p.file != nil {
			first := l.from(p.file.First)
			l.set(from, first, lookupMissing) // between the parts
			from, to = first, l.behind(p.file.Last)
		}
		if from < to {
			parts, of = append(parts, p), append(of, [2]int{from, to})
		}
		from = max(from, to)
	}
	l.set(from, len(l.ids), lookupMissing)
	side := min(len(parts), lookupParts)
	if side == 0 {
		return l
	}
	l.share = min(a.most, windowDecoded) / int64(side)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(side)
	for i, p := range parts {
		work.Go(func() error {
			err := l.part(ctx, p, of[i][0], of[i][1])
			// What is wrong with the data is told by the lookups that it keeps from their series, and by them alone.
			if f, ok := errors.AsType[*fault.Error](err); ok && f.Class != nil && !errors.Is(err, fault.Changed) {
				return nil
			}
			return err
		})
	}
	l.failed = work.Wait()
	return l
}

// from is the index of the first identifier that is not before id, and behind of the first that is after it.
func (l *lookups) from(id ID) int {
	i, _ := slices.BinarySearchFunc(l.ids, id, ID.Compare)
	return i
}

func (l *lookups) behind(id ID) int {
	i, ok := slices.BinarySearchFunc(l.ids, id, ID.Compare)
	if ok {
		i++
	}
	return i
}

func (l *lookups) set(from, to int, s lookupState) {
	for i := from; i < to; i++ {
		l.state[i] = s
	}
}

// part looks up the identifiers [from, to), which a part may have.
func (l *lookups) part(ctx context.Context, p *part, from, to int) error {
	ranges := make([]Range, 0, to-from)
	for _, id := range l.ids[from:to] {
		ranges = append(ranges, Range{id, id})
	}
	w := wanted{tsids: true, counts: true, tags: make([]int, len(l.a.tags))}
	for i := range w.tags {
		w.tags[i] = i
	}
	var window []blockAt
	var sum extent
	flush := func() error {
		if len(window) == 0 {
			return nil
		}
		got, err := load(ctx, window, w, newStore(p))
		if err != nil {
			return err
		}
		for i := range got {
			l.take(&got[i], from, to)
		}
		window, sum = window[:0], extent{}
		return nil
	}
	next := from
	for b, err := range p.blocks(ctx, meetsOne(ranges)) {
		if err != nil {
			return err
		}
		first := min(to, l.from(b.First))
		l.set(next, first, lookupMissing) // between the blocks
		next = max(next, l.behind(b.Last))
		holds := b.holds(w, nil)
		if b.unknown() != nil || holds > l.share {
			continue
		}
		if len(window) > 0 && (sum.size > batchBytes || sum.held+holds > l.share) {
			if err := flush(); err != nil {
				return err
			}
		}
		window = append(window, b)
		sum.add(&b, holds)
	}
	l.set(next, to, lookupMissing)
	return flush()
}

// take takes the series out of a block that are looked up, of the identifiers [from, to).
func (l *lookups) take(r *rows, from, to int) {
	var found, at []int // identifiers, and their rows
	for i := max(from, l.from(r.First)); i < min(to, l.behind(r.Last)); i++ {
		row, ok := slices.BinarySearch(r.tsids, l.ids[i].TSID)
		if !ok {
			l.state[i] = lookupMissing
			continue
		}
		found, at = append(found, i), append(at, row)
	}
	if len(found) == 0 {
		return
	}
	out := r.pick(at)
	var room labelRoom
	for k, i := range found {
		l.records[i] = Record{ID: l.ids[i], RowCount: r.counts[at[k]], Labels: room.labels(out, k, len(found)-k, Native)}
		l.state[i] = lookupFound
	}
}
