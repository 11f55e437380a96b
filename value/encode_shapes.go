package value

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A document of records repeats the keys of its maps. The encoder remembers the keys of the last map of each size and
// depth, sorted and encoded: when the next one has as many keys and all of these, there is nothing to sort or to check.

// shape is the keys of a map. It does not change once it is made.
type shape struct {
	names []string
	heads []byte // the encoded names of both codecs, one codec after the other
	ends  [CBOR + 1][]int
}

// shapeSlot holds a shape until maps of other shapes have come more often than its own: making one costs as much as
// sorting a few.
type shapeSlot struct {
	shape  *shape
	credit int
}

const (
	shapeSlots  = 32
	shapeCredit = 4
	maxShape    = 64   // keys
	maxNames    = 1024 // bytes of all keys; a shape outlives the map
)

// namedPair is a pair of a map with string keys.
type namedPair struct {
	name  string
	value any
}

func newShape(pairs []namedPair) *shape {
	size := 0
	for _, p := range pairs {
		size += len(p.name)
	}
	if len(pairs) > maxShape || size > maxNames {
		return nil
	}
	s := new(shape)
	for _, p := range pairs {
		if !utf8.ValidString(p.name) {
			return nil
		}
		s.names = append(s.names, strings.Clone(p.name))
	}
	for c := Msgpack; c <= CBOR; c++ {
		for _, name := range s.names {
			s.ends[c] = append(s.ends[c], len(s.heads))
			s.heads = AppendString(s.heads, c, name)
		}
		s.ends[c] = append(s.ends[c], len(s.heads))
	}
	return s
}

// head gives the encoding of the name at i.
func (s *shape) head(c Codec, i int) []byte { return s.heads[s.ends[c][i]:s.ends[c][i+1]] }

// namedMap encodes a map with string keys, sorted.
func (e *encoder) namedMap(m map[string]any) error {
	if m == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.mapHead(len(m)); err != nil {
		return err
	}
	base := len(e.pairs)
	slot := &e.shapes[(uint(len(m))*7+uint(e.depth))%shapeSlots]
	known := slot.shape
	if known != nil && e.takePairs(m, known) {
		slot.credit = min(slot.credit+1, shapeCredit)
	} else {
		for k, v := range m {
			e.pairs = append(e.pairs, namedPair{k, v})
		}
		sortPairs(e.pairs[base:])
		known = nil
		if slot.credit--; slot.credit < 0 {
			known = newShape(e.pairs[base:])
			*slot = shapeSlot{known, shapeCredit}
		}
	}
	for i := range len(m) {
		if err := e.item(); err != nil {
			return err
		}
		if known != nil {
			e.dst = append(e.dst, known.head(e.c, i)...)
		} else if err := e.string(e.pairs[base+i].name); err != nil {
			return e.under(err, e.pairs[base+i].name)
		}
		if err := e.value(e.pairs[base+i].value); err != nil {
			return e.under(err, e.pairs[base+i].name)
		}
	}
	clear(e.pairs[base:])
	e.pairs = e.pairs[:base]
	e.leave()
	return nil
}

// takePairs appends the pairs of m in the order of s, or none when m has other keys.
func (e *encoder) takePairs(m map[string]any, s *shape) bool {
	if len(s.names) != len(m) {
		return false
	}
	base := len(e.pairs)
	for _, name := range s.names {
		v, ok := m[name]
		if !ok {
			clear(e.pairs[base:])
			e.pairs = e.pairs[:base]
			return false
		}
		e.pairs = append(e.pairs, namedPair{name, v})
	}
	return true
}

// sortPairs sorts pairs by name.
func sortPairs(pairs []namedPair) {
	if len(pairs) > 16 {
		slices.SortFunc(pairs, func(a, b namedPair) int { return strings.Compare(a.name, b.name) })
		return
	}
	for i := 1; i < len(pairs); i++ {
		p := pairs[i]
		j := i
		for ; j > 0 && p.name < pairs[j-1].name; j-- {
			pairs[j] = pairs[j-1]
		}
		pairs[j] = p
	}
}
