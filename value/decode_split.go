package value

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A large document is decoded by all processors: the items of a list, or the pairs of a map, are cut into runs with the
// skip kernel, which takes a twentieth of the time of decoding, and each run is decoded as a row of values of its own.
// The runs change nothing but the time. Where one of them fails, or anything of the container looks wrong, the decoder
// goes on by itself from there, as if there were no runs, and finds the fault, if it is one, in its own way.

// splitting says when a container is split.
type splitting struct {
	off     bool // all processors have work already, or the document is wrong
	least   int  // bytes that are worth it
	run     int  // bytes of a run, about
	pair    int  // bytes of a pair that are worth it: a map takes its pairs one at a time
	workers int  // of a container, this goroutine among them; 0 is not known yet
	vain    int  // bytes of containers that were passed over and found too small
}

// On records of 150 bytes, decoding takes 12 µs a KiB, passing over half a microsecond; workers start and end within
// some ten microseconds. A run of 64 KiB takes longer than that by far, and eight of them share out well.
var usualSplit = splitting{least: 512 << 10, run: 64 << 10, pair: 256}

// splitDepth is the number of containers that one after the other may be passed over for what lies in them.
const splitDepth = 4

// maySplit is all that a small document pays.
func (d *decoder) maySplit(s *Scanner) bool {
	return len(s.buf)-s.pos >= d.split.least && !d.split.off
}

// run is some consecutive items of a list, or pairs of a map.
type run struct {
	pos, end int // of the scanner's window
	first, n int
	names    []string // of pairs
	values   []any
}

// splitter decodes the runs of a container.
type splitter struct {
	scanner *Scanner // not to be moved while the workers run
	lim     Limits
	pairs   bool
	runs    []run
	next    atomic.Int64 // run that nobody has taken
	failed  atomic.Int64 // the first run that failed, as far as is known
}

// splitOpen decodes the items of the container that s has opened into its frame, up to the first run in which there may
// be a fault, and leaves s there. Where the container is not worth it, s stays before the first item.
func (d *decoder) splitOpen(s *Scanner, top *frame, depth int) {
	if d.split.workers == 0 {
		d.split.workers = runtime.GOMAXPROCS(0)
		d.split.off = d.split.workers < 2
	}
	// A document of small containers side by side is not passed over as a whole.
	if d.split.off || s.src != nil || s.Len < 2 || depth > splitDepth || d.split.vain > d.split.least+s.pos/8 {
		return
	}
	inside := s.lim.depth() - s.nested()
	if inside <= 0 {
		return
	}
	sp := splitter{scanner: s, lim: Limits{Depth: inside}, pairs: top.kind == Map}
	if !sp.cut(&d.split) {
		return
	}
	if !sp.pairs {
		top.list = top.list[:s.Len]
		for i := range sp.runs {
			r := &sp.runs[i]
			r.values = top.list[r.first : r.first : r.first+r.n]
		}
	}
	sp.failed.Store(int64(len(sp.runs)))
	var others sync.WaitGroup
	for range min(d.split.workers, len(sp.runs)) - 1 {
		others.Go(sp.work)
	}
	sp.work()
	others.Wait()
	sp.take(s, top)
}

// cut finds the runs and reports whether they are worth it. A container that ends too early, or leaves less than a byte
// for each value around it, is not: the scanner refuses it somewhere within.
func (sp *splitter) cut(p *splitting) bool {
	s := sp.scanner
	items, values := s.Len, 1
	if sp.pairs {
		values = 2
	}
	k := skipper{open: s.skip.open[:0]}
	pos, longest := s.pos, 0
	// The size of items is not known: a few first, then as many as would have made the last run as long as it should be.
	n := min(16, max(1, items/16))
	for first := 0; first < items; {
		n = min(n, items-first)
		k = skipper{codec: s.codec, lim: sp.lim, need: n * values, open: k.open[:0]}
		size, err := k.run(s.buf[pos:], len(s.buf)-pos)
		if err != nil || size > len(s.buf)-pos {
			p.off = true
			return false
		}
		sp.runs = append(sp.runs, run{pos: pos, end: pos + size, first: first, n: n})
		first += n
		pos += size
		longest = max(longest, size)
		n = min(4*n, max(1, int(int64(n)*int64(p.run)/int64(size))))
	}
	s.skip.open = k.open
	size := pos - s.pos
	if s.outer > int64(len(s.buf)-pos) {
		p.off = true
		return false
	}
	if size < p.least {
		p.vain += size
		return false
	}
	if sp.pairs && size/items < p.pair {
		return false
	}
	return longest <= size-size/4 // else most of the bytes are in one item, which is split itself when it opens
}

// work decodes runs until there are none, or one before them has failed.
func (sp *splitter) work() {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.split.off = true
	for {
		i := sp.next.Add(1) - 1
		if i >= sp.failed.Load() {
			return
		}
		r := &sp.runs[i]
		d.scanner.Reset(sp.scanner.codec, sp.scanner.buf[r.pos:r.end], sp.lim)
		decode := d.items
		if sp.pairs {
			decode = d.pairs
		}
		if !decode(r) {
			sp.fail(i)
			return // what is left comes behind run i
		}
	}
}

// fail notes that run i failed.
func (sp *splitter) fail(i int64) {
	for {
		was := sp.failed.Load()
		if i >= was || sp.failed.CompareAndSwap(was, i) {
			return
		}
	}
}

// items decodes a run of items.
func (d *decoder) items(r *run) bool {
	s := &d.scanner
	for {
		r.values = d.quickList(s, r.values)
		if len(r.values) == r.n {
			return s.pos == len(s.buf)
		}
		v, err := d.next(s)
		if err != nil {
			return false
		}
		r.values = append(r.values, v)
	}
}

// pairs decodes a run of pairs, all of which must have strings as keys.
func (d *decoder) pairs(r *run) bool {
	s := &d.scanner
	r.names, r.values = make([]string, 0, r.n), make([]any, 0, r.n)
	for range r.n {
		if s.Next() != nil || s.Kind != String {
			return false
		}
		name, ok := d.keyText(s.Data)
		if !ok {
			return false
		}
		v, err := d.next(s)
		if err != nil {
			return false
		}
		r.names, r.values = append(r.names, name), append(r.values, v)
	}
	return s.pos == len(s.buf)
}

// take moves what the runs before the first failed one have to the frame, and s behind them.
func (sp *splitter) take(s *Scanner, top *frame) {
	done := sp.runs[:sp.failed.Load()]
	items, pos := 0, s.pos
	if len(done) > 0 {
		last := done[len(done)-1]
		items, pos = last.first+last.n, last.end
	}
	if !sp.pairs {
		clear(top.list[items:])
		top.list = top.list[:items]
		s.leap(s.rem-int64(items), pos)
		return
	}
	for _, r := range done {
		for i, name := range r.names {
			top.named[name] = r.values[i]
			top.name = name
		}
	}
	s.leap(s.rem-2*int64(items), pos)
}
