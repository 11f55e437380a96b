package value

import (
	"io"
	"slices"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// jsonInput is the bytes of the value that is being written, for those who must read them again.
type jsonInput struct {
	codec     Codec
	start     int64 // offset of the value in the scanner that writes it
	data      []byte
	src       io.ReaderAt // instead of data
	off, size int64
}

func (in *jsonInput) rereads() bool { return in.data != nil || in.src != nil }

// scanner returns a scanner of the input from its start: s where the input is in memory.
func (in *jsonInput) scanner(s *Scanner, lim Limits) *Scanner {
	if in.data == nil {
		return NewStream(in.codec, io.NewSectionReader(in.src, in.off, in.size), in.size, lim)
	}
	s.Reset(in.codec, in.data, lim)
	return s
}

// jsonPlan is what must be known of maps before they are written.
type jsonPlan struct {
	pairs []uint64 // a bit for each map with keys, in order: it is written [[key,value],…]
	drops []int64  // offsets of keys whose pairs are not written, ascending
	next  int
}

// maxPlan is how many words of a plan are kept for the next one.
const maxPlan = 128 << 10

// maxDrops limits the memory for pairs that DupLast drops.
const maxDrops = 4 << 20

func (p *jsonPlan) setPairs(number int) {
	for number/64 >= len(p.pairs) {
		p.pairs = append(p.pairs, 0)
	}
	p.pairs[number/64] |= 1 << (number % 64)
}

func (p *jsonPlan) isPairs(number int) bool {
	return number/64 < len(p.pairs) && p.pairs[number/64]>>(number%64)&1 != 0
}

// drop notes that the pair of an earlier key is not written, since the same key was found at offset.
func (p *jsonPlan) drop(twin *keyset.Entry, offset int64) error {
	if len(p.drops) >= maxDrops {
		return fault.New(fault.Limit, "value", "more than %d keys occur twice", maxDrops).At(offset)
	}
	p.drops = append(p.drops, twin.Offset)
	twin.Offset = offset
	return nil
}

// dropsNext reports whether the pair whose key is next in s is not written.
func (p *jsonPlan) dropsNext(s *Scanner) bool {
	at := s.Offset()
	for p.next < len(p.drops) && p.drops[p.next] < at { // inside a pair that was dropped itself
		p.next++
	}
	return s.rem != 0 && p.next < len(p.drops) && p.drops[p.next] == at
}

// looksAhead reports whether the options need a map whole before it is written.
func (w *JSONWriter) looksAhead() bool { return w.opts.Keys == KeysPairs || w.opts.Dup == DupLast }

// makePlan reads the input through. It returns io.EOF where there is no value.
func (w *JSONWriter) makePlan() error {
	// A document may have millions of values that each need a plan: the memory of the last one serves again.
	if w.planner == nil {
		w.planner = new(JSONWriter)
	}
	sub := w.planner
	if sub.plan == nil {
		sub.plan = new(jsonPlan)
	}
	p := sub.plan
	p.pairs, p.drops, p.next = p.pairs[:0], p.drops[:0], 0
	opts := w.opts
	opts.Pretty, opts.Lossless = false, false
	if opts.Dup != DupLast {
		opts.Dup = DupAll
	}
	sub.reset(nil, w.lim, &opts, nil)
	sub.mode, sub.plan = modePlan, p
	if err := sub.run(w.input.scanner(&sub.scan, w.lim)); err != nil {
		w.planner = nil
		return err
	}
	if len(p.pairs) > 0 || len(p.drops) > 0 {
		slices.Sort(p.drops)
		w.plan = p
	}
	if cap(p.pairs)+cap(p.drops) > maxPlan || sub.keys.Memory() > 8*maxPlan {
		w.planner = nil // it was a long value
	}
	w.distinct = w.opts.Dup == DupLast
	w.maps = 0
	return nil
}

// maxAhead is the length up to which a scanner over a reader takes a value into memory for a plan.
const maxAhead = 32 << 20

// writeAhead is WriteValue where a plan is needed: the bytes of the value are brought together and read twice.
func (w *JSONWriter) writeAhead(s *Scanner) error {
	raw, err := s.rawWithin(maxAhead)
	if err != nil && err != io.EOF {
		return w.fail(err)
	}
	if raw == nil { // the end of the input or of the caller's container
		return io.EOF
	}
	start := s.Start()
	w.input = jsonInput{codec: s.codec, data: raw}
	w.base += start
	if err = w.makePlan(); err != nil {
		err = w.fail(err)
	} else {
		err = w.run(w.input.scanner(&w.inner, w.lim)) // scan may be s
	}
	w.base -= start
	w.plan, w.distinct = nil, false
	return err
}

// rawWithin is [Scanner.Raw], but fails where it must hold more than limit bytes for a value.
func (s *Scanner) rawWithin(limit int) ([]byte, error) {
	if s.src == nil || !s.atValue() {
		return s.Raw()
	}
	// A look at the value through windows that double, so that Raw finds it whole.
	for want := minWindow; ; want *= 2 {
		s.fill(want)
		n, err := Skip(s.codec, s.buf[s.pos:], 1, s.lim)
		if err != io.ErrUnexpectedEOF || s.src == nil {
			if n > limit {
				return nil, s.fail(aheadFault(limit).At(s.Offset()))
			}
			return s.Raw()
		}
		if len(s.buf)-s.pos > limit {
			return nil, s.fail(aheadFault(limit).At(s.Offset()))
		}
	}
}

func aheadFault(limit int) *fault.Error {
	return fault.New(fault.Limit, "value", "a value of more than %d bytes from a stream, whose maps must be known before they are written", limit)
}

// dropPair passes the next pair of s, which is not written.
func (w *JSONWriter) dropPair(s *Scanner) error {
	start := s.Offset()
	for range 2 {
		if err := w.countMaps(s); err != nil {
			return err
		}
	}
	return w.lost(LossPair, start)
}

// countMaps passes the next value of s and counts its maps, as they are counted for the plan.
func (w *JSONWriter) countMaps(s *Scanner) error {
	for depth := s.Depth(); ; {
		if err := s.Next(); err != nil {
			return err
		}
		if s.Kind == Map && s.Len != 0 {
			w.maps++
		}
		if s.Depth() == depth && s.Kind != Tag {
			return nil
		}
	}
}

// lookUp takes the second look at keys up to the one at offset stop by reading the input again.
func (w *JSONWriter) lookUp(stop int64) error {
	return w.keys.LookUp(func(look *keyset.Set) error {
		sub := &JSONWriter{opts: w.opts, lim: w.lim, mode: modeCheck, open: []jsonFrame{{key: -1}}, shift: w.input.start, keys: *look}
		sub.opts.Pretty, sub.opts.Lossless = false, false
		s := w.input.scanner(&sub.scan, w.lim)
		for done := false; !done && w.input.start+s.Offset() <= stop; {
			var err error
			if done, err = sub.step(s, 1); err == nil {
				err = sub.spill()
			}
			if err != nil {
				return fault.Shift(err, w.input.start)
			}
		}
		return nil
	})
}
