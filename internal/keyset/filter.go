package keyset

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	blockWords = 8 // a cache line
	// maxSuspectBytes bounds the bytes of suspects that are compared at once, unless it is a single one.
	maxSuspectBytes = 16 << 20
)

func ceilLog(n int) int { return bits.Len(uint(n - 1)) }

// mix makes one number of a key's hash and its map.
func mix(hash uint64, id int64) uint64 {
	hi, lo := bits.Mul64(hash^uint64(id)*0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return hi ^ lo
}

// addFilter adds a key to the filter, a Bloom filter of five bits in one cache line, and reports whether it may have
// been there already. At 20 million keys one in 10,000 is there by chance, at 100 million one in eight.
func (s *Set) addFilter(h uint64) (known bool) {
	if s.filter == nil {
		s.budget() // the limits
		s.filter = make([]uint64, s.limits.Filter)
	}
	s.added++
	blocks := uint64(len(s.filter) / blockWords)
	block := s.filter[h>>32&(blocks-1)*blockWords:][:blockWords]
	known = true
	pos := h * 0xff51afd7ed558ccd // other bits than those that chose the block
	for range 5 {
		word, bit := &block[pos>>61], uint64(1)<<(pos>>55&63)
		known = known && *word&bit != 0
		*word |= bit
		pos <<= 9
	}
	return known
}

// Full reports whether [Set.LookUp] must be called before more keys are added.
func (s *Set) Full() bool { return len(s.suspects) > 0 && len(s.suspects) >= s.limits.Suspects }

// LookUp takes the second look at the suspects. again must read the input once more, up to the last key that was added
// or further, and begin, add and end on the set it is given as it did on s; there [Set.Add] finds the key that occurs
// twice. LookUp ends with the first error of again.
func (s *Set) LookUp(again func(*Set) error) error {
	if len(s.suspects) == 0 {
		return nil
	}
	err := s.lookUp(s.suspects, again)
	s.suspects = s.suspects[:0]
	return err
}

func (s *Set) lookUp(suspects []uint64, again func(*Set) error) error {
	for part := len(suspects); len(suspects) > 0; {
		part = min(part, len(suspects))
		s.looks.set(suspects[:part])
		look := Set{seed: s.seed, seeded: true, check: &s.looks}
		if err := again(&look); err != nil {
			return err
		}
		if s.looks.over && part > 1 { // there was not enough room
			part /= 2
			continue
		}
		suspects = suspects[part:]
	}
	return nil
}

// second compares the keys that a filter suspects.
type second struct {
	slots []suspect // open addressing; its length is a power of 2
	text  []byte
	n     int  // slots in use
	one   bool // a single suspect is looked for
	over  bool // there was no room for all: the set must be smaller
}

type suspect struct {
	hash uint64
	id   int64
	text int // where its bytes start; noText before it was seen, 0 in a free slot
	size int
}

const noText = -1

// suspectSize is the memory that a suspect takes beside its bytes.
const suspectSize = 32

// set makes it a look at the suspects.
func (c *second) set(suspects []uint64) {
	size := 1 << max(5, bits.Len(uint(len(suspects)+len(suspects)/2)))
	if len(c.slots) < size {
		c.slots = make([]suspect, size)
	}
	clear(c.slots)
	c.text, c.n, c.one, c.over = append(c.text[:0], 0), len(suspects), len(suspects) == 1, false // text 0 stands for a free slot
	mask := uint64(len(c.slots) - 1)
next:
	for _, h := range suspects {
		i := h & mask
		for c.slots[i].text != 0 {
			if c.slots[i].hash == h {
				continue next
			}
			i = (i + 1) & mask
		}
		c.slots[i] = suspect{hash: h, text: noText}
	}
}

// twice reports whether the key of the map id, with the given hash, is a suspect that was seen before.
func (c *second) twice(hash uint64, id int64, key []byte) bool {
	mask := uint64(len(c.slots) - 1)
	known := false
	i := hash & mask
	for ; c.slots[i].text != 0; i = (i + 1) & mask {
		e := &c.slots[i]
		if e.hash != hash {
			continue
		}
		known = true
		if e.text == noText {
			c.keep(e, id, key)
			return false
		}
		if e.id == id && bytes.Equal(c.text[e.text:e.text+e.size], key) {
			return true
		}
	}
	if !known {
		return false
	}
	// Another key of the same hash.
	if 4*c.n >= 3*len(c.slots) {
		c.over = true
		return false
	}
	c.slots[i].hash = hash
	c.keep(&c.slots[i], id, key)
	c.n++
	return false
}

func (c *second) keep(e *suspect, id int64, key []byte) {
	if len(c.text)+len(key) > maxSuspectBytes && len(c.text) > 1 && !c.one {
		c.over = true
		e.text = noText
		return
	}
	e.id, e.text, e.size = id, len(c.text), len(key)
	c.text = append(c.text, key...)
}

// logMap is a map whose keys are in the log.
type logMap struct {
	start    int64 // its first key there
	suspects []uint64
}

func (s *Set) beginLog() {
	if len(s.logs) < cap(s.logs) {
		s.logs = s.logs[:len(s.logs)+1]
	} else {
		s.logs = append(s.logs, logMap{})
	}
	m := &s.logs[len(s.logs)-1]
	m.start, m.suspects = s.log.size(), m.suspects[:0]
}

func (s *Set) addLog(h uint64, id int64, key []byte, offset int64, known bool) error {
	if err := s.log.add(h, id, key, offset); err != nil {
		return err
	}
	if !known {
		return nil
	}
	m := &s.logs[len(s.logs)-1]
	m.suspects = append(m.suspects, h)
	if s.logged++; s.logged < s.limits.Suspects {
		return nil
	}
	for i := range s.logs {
		if err := s.readLog(&s.logs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) endLog() error {
	m := &s.logs[len(s.logs)-1]
	err := s.readLog(m)
	s.log.cut(m.start)
	if s.logs = s.logs[:len(s.logs)-1]; len(s.logs) == 0 {
		s.log.close()
	}
	return err
}

// readLog takes the second look at the suspects of a map and forgets them.
func (s *Set) readLog(m *logMap) error {
	defer func() { s.logged, m.suspects = s.logged-len(m.suspects), m.suspects[:0] }()
	if len(m.suspects) == 0 {
		return nil
	}
	return s.lookUp(m.suspects, func(look *Set) error {
		return s.log.each(m.start, func(h uint64, id int64, key []byte, offset int64) error {
			if look.check.twice(h, id, key) {
				return &Twice{Key: bytes.Clone(key), Offset: offset}
			}
			return nil
		})
	})
}

// appendRecord appends a key as it stands in the log.
func appendRecord(b []byte, h uint64, id int64, key []byte, offset int64) []byte {
	b = binary.LittleEndian.AppendUint64(b, h)
	b = binary.AppendVarint(b, id)
	b = binary.AppendVarint(b, offset)
	b = binary.AppendUvarint(b, uint64(len(key)))
	return append(b, key...)
}
