package source

import (
	"context"
	"sync"
)

// ReadAhead returns obj with the bytes that reads in a row will want next asked for before they are wanted, in pieces that
// are on their way at the same time: one connection of many does not have to wait for its answer before it asks again. It is
// for objects whose requests take long; for a local file it is of no use.
//
// Reads are in a row when each starts where the one before it ended, or behind a gap that is cheaper than a request. The
// third one in a row, or one behind two requests' worth of bytes, starts the read-ahead. How far it goes grows with the
// row, to limit bytes at most, so that a row that ends early has cost little more than it brought. Two rows at a time are
// followed. A piece that could not be read, because of a budget for one, is forgotten: the read that wants it is made as
// without it.
//
// Pieces that are on their way outlive the read that has started them, but not the object: Close ends them, and waits for
// them. They do not go behind the end that [UpTo] gives a read.
func ReadAhead(obj Object, limit int64) Object {
	if limit < 1 {
		return obj
	}
	a := &ahead{Object: obj, cost: obj.Cost(), limit: limit}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// The arithmetic: at 30 ms for a request, eight pieces of 4 MiB in flight are a gigabyte in a second, more than the
// network gives. A piece of 4 MiB takes as long as a request does at 140 MB/s, so that requests are no more than half of
// the cost.
const (
	aheadPiece = 4 << 20
	aheadGrow  = 4       // a row of n bytes, less than a piece, is followed by at most as many times n bytes
	aheadRead  = 8 << 20 // a longer read is no step of a row: whoever asks for it knows what comes next
	aheadRows  = 2
)

type ahead struct {
	Object
	cost  Cost
	limit int64
	ctx   context.Context // until Close
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	rows   []*row // the one that was used last is the last
}

// row is a run of reads one behind the other.
type row struct {
	next   int64 // behind the last read
	reads  int
	bytes  int64
	pieces []*piece // what was asked for, without gaps, in order
}

type piece struct {
	Range
	data []byte
	err  error
	done chan struct{} // closed when data or err are there
}

func (a *ahead) ReadAt(ctx context.Context, p []byte, off int64) error {
	n := int64(len(p))
	if n == 0 || n > aheadRead || inside(a, off, n) != nil || ctx.Err() != nil || !a.copy(ctx, p, a.follow(ctx, off, n)) {
		return a.Object.ReadAt(ctx, p, off)
	}
	return nil
}

// follow notes a read, asks for what comes behind it, and returns the pieces that hold its bytes; nil when it is to be made
// as it is.
func (a *ahead) follow(ctx context.Context, off, n int64) []piecePart {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	r := a.row(off)
	if r == nil {
		a.rows = append(a.rows, &row{next: off + n, reads: 1, bytes: n})
		if len(a.rows) > aheadRows {
			a.rows = a.rows[1:]
		}
		return nil
	}
	begins := r.reads >= 2 || r.bytes >= 2*a.cost.Gap
	r.reads++
	r.bytes += n
	r.next = off + n
	for len(r.pieces) > 0 && r.pieces[0].End <= off {
		r.pieces = r.pieces[1:]
	}
	if !begins && len(r.pieces) == 0 {
		return nil
	}
	end := a.Size()
	if most, known := upTo(ctx); known {
		end = min(end, max(most, r.next))
	}
	a.ask(r, off, end)
	return partsOf(r.pieces, off, n)
}

// row finds the row that a read continues, and makes it the last one: the one that has asked for its bytes, or else the one
// that ended closest before it.
func (a *ahead) row(off int64) *row {
	found := -1
	for i, r := range a.rows {
		if len(r.pieces) > 0 && off >= r.pieces[0].Start && off < r.pieces[len(r.pieces)-1].End {
			found = i
			break
		}
		if off >= r.next && off-r.next <= a.cost.Gap && (found < 0 || r.next >= a.rows[found].next) {
			found = i
		}
	}
	if found < 0 {
		return nil
	}
	r := a.rows[found]
	a.rows = append(append(a.rows[:found], a.rows[found+1:]...), r)
	return r
}

// ask starts the pieces that are due, from off on where there are none, and none behind last.
func (a *ahead) ask(r *row, off, last int64) {
	window := a.limit
	if r.bytes < aheadPiece {
		window = min(window, aheadGrow*r.bytes)
	}
	size := max(min(aheadPiece, r.bytes), a.cost.Gap, 1)
	from := off
	if k := len(r.pieces); k > 0 {
		from = r.pieces[k-1].End
	}
	// A piece is started when there is room for all of it, so that pieces do not become shorter and shorter.
	for end := min(r.next+window, last); from < end; {
		p := &piece{Range: Range{from, min(from+size, last)}, done: make(chan struct{})}
		if p.End > end && from >= r.next {
			return
		}
		from = p.End
		r.pieces = append(r.pieces, p)
		a.work.Go(func() {
			defer close(p.done)
			data := make([]byte, p.Len())
			if p.err = a.Object.ReadAt(a.ctx, data, p.Start); p.err == nil {
				p.data = data
			}
		})
	}
}

// piecePart is a part of a piece that belongs to a read.
type piecePart struct {
	*piece
	at Range // in the object
}

// partsOf gives the parts of pieces that make a read up, nil when they do not.
func partsOf(pieces []*piece, off, n int64) (parts []piecePart) {
	end := off + n
	for _, p := range pieces {
		if p.Start > off {
			return nil
		}
		if p.End > off {
			upTo := min(p.End, end)
			parts = append(parts, piecePart{p, Range{off, upTo}})
			if off = upTo; off == end {
				return parts
			}
		}
	}
	return nil
}

// copy waits for the pieces of a read, and reports whether it got all of it.
func (a *ahead) copy(ctx context.Context, p []byte, parts []piecePart) bool {
	for _, part := range parts {
		select {
		case <-part.done:
		case <-ctx.Done():
			return false
		}
		if part.err != nil {
			a.forget(part.piece)
			return false
		}
		p = p[copy(p, part.data[part.at.Start-part.Start:part.at.End-part.Start]):]
	}
	return len(parts) > 0
}

// forget drops a piece that could not be read, and those behind it.
func (a *ahead) forget(bad *piece) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.rows {
		for i, p := range r.pieces {
			if p == bad {
				r.pieces = r.pieces[:i:i]
				return
			}
		}
	}
}

// Close ends what is on its way before it closes the object.
func (a *ahead) Close() error {
	a.mu.Lock()
	a.closed = true
	a.rows = nil
	a.mu.Unlock()
	a.stop()
	a.work.Wait()
	return a.Object.Close()
}
