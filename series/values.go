package series

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// valueSet collects distinct values. A short one, as most are, stands with its length in two numbers. They are sorted now and then,
// digit by digit, which takes a fraction of the time of looking each of them up in a table that no cache of a processor holds.
type valueSet struct {
	sorted []shortValue // each once
	fresh  []shortValue // that came since
	room   []shortValue // for sorting
	spare  []shortValue // for sorted, in turn
	long   map[string]struct{}
	short  int64 // what the values take that are sorted, as Query.Memory counts it
	held   int64 // that, and what the long ones take
}

// shortValue is a value of up to shortLength bytes as two numbers, which order values as their bytes do: 8 bytes, 7 more, and the
// length with one added.
type shortValue struct{ hi, lo uint64 }

const shortLength = 15

// minFresh is the least number of values that are sorted at once.
const minFresh = 1 << 14

// waitingSets have memory for the values of the next query.
var waitingSets sync.Pool // of *valueSet

// maxWaitingSet bounds how many values a set has room for that waits.
const maxWaitingSet = 1 << 18

func newValueSet() *valueSet {
	if s, ok := waitingSets.Get().(*valueSet); ok {
		return s
	}
	return &valueSet{}
}

// release ends the use of the set.
func (s *valueSet) release() {
	if max(cap(s.sorted), cap(s.fresh), cap(s.room), cap(s.spare)) <= maxWaitingSet {
		waitingSets.Put(&valueSet{sorted: s.sorted[:0], fresh: s.fresh[:0], room: s.room[:0], spare: s.spare[:0]})
	}
}

// len is the number of distinct values, once those that came are settled.
func (s *valueSet) len() int { return len(s.sorted) + len(s.long) }

// shortValueAt is the value of n bytes, at most shortLength, at a place in a text.
func shortValueAt(text string, at, n int) (v shortValue) {
	if len(text)-at < 16 {
		var some [16]byte
		copy(some[:], text[at:at+n])
		v = shortValue{binary.BigEndian.Uint64(some[:]), binary.BigEndian.Uint64(some[8:])}
	} else {
		v = shortValue{bits.ReverseBytes64(leU64(text[at:])), bits.ReverseBytes64(leU64(text[at+8:]))}
		v.hi &= ^uint64(0) << (64 - 8*min(n, 8))
		v.lo &= ^uint64(0) << (64 - 8*max(n-8, 0))
	}
	v.lo |= uint64(n) + 1
	return v
}

func (v shortValue) len() int { return int(v.lo&0xff) - 1 }

// append appends the bytes of the value.
func (v shortValue) append(dst []byte) []byte {
	n := v.len()
	dst = binary.BigEndian.AppendUint64(dst, v.hi)
	dst = binary.BigEndian.AppendUint64(dst, v.lo)
	return dst[:len(dst)-16+n]
}

// add adds a value.
func (s *valueSet) add(v string) {
	if len(v) > shortLength {
		s.addLong(v)
		return
	}
	s.fresh = append(s.fresh, shortValueAt(v, 0, len(v)))
	s.settleSome()
}

func (s *valueSet) addLong(v string) {
	if _, ok := s.long[v]; ok {
		return
	}
	if s.long == nil {
		s.long = make(map[string]struct{})
	}
	s.long[strings.Clone(v)] = struct{}{} // the value alone, which does not keep the text of a dictionary
	s.held += int64(len(v)) + valueSize
}

// settleSome sorts the values that came, when they are many beside those that are sorted.
func (s *valueSet) settleSome() {
	if len(s.fresh) >= max(minFresh, len(s.sorted)) {
		s.settle()
	}
}

// settle sorts the values that came in among the others.
func (s *valueSet) settle() {
	if len(s.fresh) == 0 {
		return
	}
	s.room = slices.Grow(s.room[:0], len(s.fresh))[:len(s.fresh)]
	s.fresh, s.room = sortShort(s.fresh, s.room)
	s.sorted, s.spare = merged(s.spare[:0], s.sorted, slices.Compact(s.fresh)), s.sorted
	s.fresh = s.fresh[:0]
	s.held -= s.short
	s.short = 0
	for _, v := range s.sorted {
		s.short += int64(v.len()) + valueSize
	}
	s.held += s.short
}

// sortShort sorts values by their digits, which are bytes, from the last one on, and passes over those that all have in common.
// It needs room for as many, and returns where they are, and the rest of the memory.
func sortShort(v, room []shortValue) (sorted, free []shortValue) {
	if len(v) < 1<<8 {
		slices.SortFunc(v, shortValue.compare)
		return v, room
	}
	var differ shortValue
	for _, x := range v {
		differ.hi |= x.hi ^ v[0].hi
		differ.lo |= x.lo ^ v[0].lo
	}
	for digit := range 16 {
		shift := uint(digit % 8 * 8)
		all := differ.lo
		if digit >= 8 {
			all = differ.hi
		}
		if all>>shift&0xff == 0 {
			continue
		}
		var at [256]int
		for _, x := range v {
			at[x.digit(digit, shift)]++
		}
		sum := 0
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, x := range v {
			d := x.digit(digit, shift)
			room[at[d]] = x
			at[d]++
		}
		v, room = room, v
	}
	return v, room
}

func (v shortValue) digit(digit int, shift uint) byte {
	if digit >= 8 {
		return byte(v.hi >> (shift & 63))
	}
	return byte(v.lo >> (shift & 63))
}

// addRows adds the values that the selected rows of a block have, until the set takes more than there may be. Entries that no
// row has, which a verifier alone objects to, are values of no series.
func (s *valueSet) addRows(sel *selection, d *dict, most int64) {
	used := make([]bool, d.len())
	switch {
	case sel.alive != nil:
		for k := range sel.each() {
			used[d.codes.at(k)] = true
		}
	case d.codes.narrow != nil:
		markCodes(used, d.codes.narrow[sel.from:sel.to])
	case d.codes.medium != nil:
		markCodes(used, d.codes.medium[sel.from:sel.to])
	default:
		markCodes(used, d.codes.wide[sel.from:sel.to])
	}
	for i := 1; i < d.len() && s.held <= most; i++ {
		if !used[i] {
			continue
		}
		at, size := int(d.at[i]), int(d.at[i+1]-d.at[i])-entryHead
		if size > shortLength {
			s.addLong(d.text[at : at+size])
			continue
		}
		s.fresh = append(s.fresh, shortValueAt(d.text, at, size))
	}
	s.settleSome()
}

// markCodes marks the entries that rows have. Where entries are few, some rows have all of them.
func markCodes[C code](used []bool, codes []C) {
	stride := max(1<<9, 4*len(used))
	for len(codes) > 0 {
		some := codes[:min(stride, len(codes))]
		for _, code := range some {
			used[code] = true
		}
		if codes = codes[len(some):]; !slices.Contains(used[1:], false) {
			return
		}
	}
}

// valueSets collect distinct values of blocks side by side, each in a set that no other uses at the time.
type valueSets struct {
	mu   sync.Mutex
	sets []*valueSet  // that nobody uses
	over atomic.Int64 // how many values there are, once they take more than there may be
}

// use hands out a set for a while.
func (s *valueSets) use(do func(*valueSet)) {
	s.mu.Lock()
	var set *valueSet
	if n := len(s.sets); n > 0 {
		set, s.sets = s.sets[n-1], s.sets[:n-1]
	} else {
		set = newValueSet()
	}
	s.mu.Unlock()
	do(set)
	s.mu.Lock()
	s.sets = append(s.sets, set)
	s.mu.Unlock()
}

// add adds a value.
func (s *valueSets) add(v string) { s.use(func(set *valueSet) { set.add(v) }) }

// addRows adds the values that the selected rows of a block have, some of them where a set takes more than there may be.
func (s *valueSets) addRows(sel *selection, d *dict, most int64) {
	s.use(func(set *valueSet) { set.addRows(sel, d, most) })
}

// settle finds out, while nobody uses a set, whether the values take more than there may be.
func (s *valueSets) settle(most int64) {
	held := int64(0)
	for _, set := range s.sets {
		held += set.held + (valueSize+shortLength)*int64(len(set.fresh))
	}
	if held <= most || len(s.sets) == 0 {
		return
	}
	one := s.sets[0] // a value that is in several counts once
	for _, set := range s.sets[1:] {
		one.fresh = append(append(one.fresh, set.sorted...), set.fresh...)
		for v := range set.long {
			one.addLong(v)
		}
	}
	one.settle()
	s.sets = slices.Delete(s.sets, 1, len(s.sets))
	if one.held > most {
		s.over.Store(int64(one.len()))
	}
}

// sorted are the values, and what they take.
func (s *valueSets) sorted() (values []string, held int64) {
	parallel(len(s.sets), func(i int) error {
		s.sets[i].settle()
		return nil
	}) // no error
	var all []shortValue
	long := make(map[string]struct{})
	for _, set := range s.sets {
		all = merged(make([]shortValue, 0, len(all)+len(set.sorted)), all, set.sorted)
		maps.Copy(long, set.long)
	}
	for _, set := range s.sets {
		set.release()
	}
	s.sets = nil
	values = textsOf(all, long)
	for _, v := range values {
		held += int64(len(v)) + valueSize
	}
	return values, held
}

// merged appends the values of two sorted lists, each once.
func merged(out, a, b []shortValue) []shortValue {
	out = slices.Grow(out, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(b[0]); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func (v shortValue) compare(o shortValue) int {
	if v.hi != o.hi {
		return cmp.Compare(v.hi, o.hi)
	}
	return cmp.Compare(v.lo, o.lo)
}

// valueStretch is the most text that values share which are given: who keeps one of them keeps the stretch.
const valueStretch = 4 << 10

// textsOf are short values, which are sorted, and long ones, all in order.
func textsOf(short []shortValue, long map[string]struct{}) []string {
	values := make([]string, 0, len(short)+len(long))
	text, from := make([]byte, 0, valueStretch), 0
	for at := 0; at < len(short); at = from {
		text = text[:0]
		for from < len(short) && len(text)+16 <= valueStretch {
			text = short[from].append(text)
			from++
		}
		all := string(text)
		for _, v := range short[at:from] {
			n := v.len()
			values = append(values, all[:n])
			all = all[n:]
		}
	}
	if len(long) == 0 {
		return values
	}
	for v := range long {
		values = append(values, v)
	}
	slices.SortFunc(values, strings.Compare)
	return values
}
