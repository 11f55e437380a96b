package value

import (
	"bytes"
	"hash/maphash"
	"math/bits"

	"github.com/spilehq/spile/fault"
)

// keyTracker finds keys that occur twice in the maps that are open. It compares the bytes of keys, never hashes alone.
//
// Keys are kept on one stack for all open maps, their bytes on another. When the two are longer than the budget, the keys
// of a map of more than smallMap keys go to a filter (64 MiB, shared by all maps) instead. A key that the filter may have
// seen is a suspect; the owner of the tracker reads its input again, with a tracker that has suspects and nothing else,
// and that one compares the bytes of those. Where the input cannot be read again the budget is a limit.
type keyTracker struct {
	seed    maphash.Seed
	limits  keyLimits
	budget  int  // bytes for keys that are kept
	rereads bool // the input can be read again, so the filter may be used

	entries  []keyEntry
	text     []byte
	free     []keyTable // of maps that were closed
	inTables int        // bytes of the tables that are in use

	filter   []uint64 // blocks of 8 words, nil until it is needed
	filtered bool     // it holds keys
	suspects []uint64
	check    *suspectSet // not nil: only suspects are compared
}

// mapKeys is what a keyTracker knows of one open map. The zero value is not open.
type mapKeys struct {
	id    int64 // tells the maps of one input apart: the offset at which it starts
	first int   // index of its first entry
	n     int   // number of its entries
	text  int   // where its bytes start
	seen  uint64
	table keyTable

	open     bool
	filtered bool // its keys are in the filter and nowhere else
}

type keyEntry struct {
	hash   uint64
	offset int64 // of the key
	text   int
	size   int
}

const (
	smallMap   = 32 // keys that are compared one by one; about what a table costs to clear
	entrySize  = 32
	blockWords = 8 // a cache line
)

// keyLimits bounds the memory of a keyTracker.
type keyLimits struct {
	exact    int // bytes for keys that are kept where nothing can be read again
	filtered int // and where it can
	filter   int // words of the filter, a power of 2
	suspects int // keys that wait to be looked up
}

var defaultKeyLimits = keyLimits{exact: 96 << 20, filtered: 16 << 20, filter: 8 << 20, suspects: 512 << 10}

// reset makes the tracker ready for an input.
func (t *keyTracker) reset() {
	if t.seed == (maphash.Seed{}) {
		t.seed, t.limits = maphash.MakeSeed(), defaultKeyLimits
	}
	t.entries, t.text, t.inTables = t.entries[:0], t.text[:0], 0
	t.mayReread(false)
}

// mayReread says whether the input of the maps that are begun from now on can be read again.
func (t *keyTracker) mayReread(can bool) {
	t.budget = t.limits.exact
	if t.rereads = can; can {
		t.budget = t.limits.filtered
	}
	t.suspects = t.suspects[:0]
	if !can && t.filtered {
		clear(t.filter)
		t.filtered = false
	}
}

// begin opens a map. Those that were opened later must be closed.
func (t *keyTracker) begin(m *mapKeys, id int64) {
	*m = mapKeys{id: id, first: len(t.entries), text: len(t.text), open: true}
}

// end closes a map.
func (t *keyTracker) end(m *mapKeys) {
	t.forget(m)
	*m = mapKeys{}
}

func (t *keyTracker) forget(m *mapKeys) {
	t.entries, t.text = t.entries[:m.first], t.text[:m.text]
	if m.table != nil {
		t.inTables -= 4 * len(m.table)
		t.free = append(t.free, m.table)
	}
	m.table, m.n = nil, 0
}

// moveToFilter makes room. The map is the innermost one, so its keys are the last ones.
func (t *keyTracker) moveToFilter(m *mapKeys) {
	for i := range t.entries[m.first:] {
		t.addFilter(mixKey(t.entries[m.first+i].hash, m.id))
	}
	t.forget(m)
	m.filtered = true
}

// add adds a key, at offset, to a map. It returns the entry of the same key when the map has it already.
func (t *keyTracker) add(m *mapKeys, key []byte, offset int64) (*keyEntry, error) {
	hash := maphash.Bytes(t.seed, key)
	if t.check != nil {
		if t.check.twice(mixKey(hash, m.id), key) {
			return &keyEntry{}, nil
		}
		return nil, nil
	}
	if m.filtered {
		t.addFilter(mixKey(hash, m.id))
		return nil, nil
	}
	bit := uint64(1) << (hash >> 58)
	if m.seen&bit != 0 {
		if e := t.find(m, hash, key); e != nil {
			return e, nil
		}
	}
	if used := len(t.text) + entrySize*len(t.entries) + t.inTables; used > t.budget && (m.n >= smallMap || used > 2*t.budget) {
		if !t.rereads {
			return nil, fault.New(fault.Limit, "value", "the keys of the open maps take more than %d bytes of memory", t.budget).At(offset)
		}
		t.moveToFilter(m)
		t.addFilter(mixKey(hash, m.id))
		return nil, nil
	}
	m.seen |= bit
	t.entries = append(t.entries, keyEntry{hash: hash, offset: offset, text: len(t.text), size: len(key)})
	t.text = append(t.text, key...)
	m.n++
	if m.n > smallMap {
		t.index(m)
	}
	return nil, nil
}

// find returns the entry of key, nil when the map has none.
func (t *keyTracker) find(m *mapKeys, hash uint64, key []byte) *keyEntry {
	entries := t.entries[m.first : m.first+m.n]
	if m.table == nil {
		for i := range entries {
			if e := &entries[i]; e.hash == hash && bytes.Equal(t.text[e.text:e.text+e.size], key) {
				return e
			}
		}
		return nil
	}
	mask := uint64(len(m.table) - 1)
	for i := hash & mask; m.table[i] != 0; i = (i + 1) & mask {
		if e := &entries[m.table[i]-1]; e.hash == hash && bytes.Equal(t.text[e.text:e.text+e.size], key) {
			return e
		}
	}
	return nil
}

// keyTable finds the entries of a map by hash: open addressing, 1 + the index of the entry. Its length is a power of 2.
type keyTable []int32

// index adds the last entry of a map to its table, which it makes or makes longer where it must.
func (t *keyTracker) index(m *mapKeys) {
	entries := t.entries[m.first : m.first+m.n]
	from := m.n - 1
	if 2*m.n > len(m.table) {
		old := m.table
		t.inTables -= 4 * len(old)
		m.table = t.newTable(max(8*smallMap, 2*len(old)))
		t.inTables += 4 * len(m.table)
		if old != nil {
			t.free = append(t.free, old)
		}
		from = 0
	}
	mask := uint64(len(m.table) - 1)
	for n := from; n < m.n; n++ {
		i := entries[n].hash & mask
		for m.table[i] != 0 {
			i = (i + 1) & mask
		}
		m.table[i] = int32(n + 1)
	}
}

func (t *keyTracker) newTable(size int) keyTable {
	for i := len(t.free) - 1; i >= 0; i-- {
		if table := t.free[i]; cap(table) >= size {
			t.free[i] = t.free[len(t.free)-1]
			t.free = t.free[:len(t.free)-1]
			table = table[:size]
			clear(table)
			return table
		}
	}
	t.free = t.free[:0] // all too small: the large one serves for them from now on
	return make(keyTable, size)
}

// mixKey makes one number of a key's hash and its map.
func mixKey(hash uint64, id int64) uint64 {
	hi, lo := bits.Mul64(hash^uint64(id)*0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return hi ^ lo
}

// addFilter adds a key to the filter, a Bloom filter of five bits in one cache line, and to the suspects when it is
// there already. At 20 million keys one in 10,000 is there by chance, at 100 million one in eight.
func (t *keyTracker) addFilter(h uint64) {
	if t.filter == nil {
		t.filter = make([]uint64, t.limits.filter)
	}
	t.filtered = true
	blocks := uint64(len(t.filter) / blockWords)
	block := t.filter[h>>32&(blocks-1)*blockWords:][:blockWords]
	known := true
	pos := h * 0xff51afd7ed558ccd // other bits than those that chose the block
	for range 5 {
		word, bit := &block[pos>>61], uint64(1)<<(pos>>55&63)
		known = known && *word&bit != 0
		*word |= bit
		pos <<= 9
	}
	if known {
		t.suspects = append(t.suspects, h)
	}
}

// full reports whether the suspects must be looked up before more are added.
func (t *keyTracker) full() bool { return len(t.suspects) >= t.limits.suspects }

// suspectSet compares the keys that a filter suspects.
type suspectSet struct {
	slots []suspect // open addressing; its length is a power of 2
	text  []byte
	over  bool // text is too long: the set must be smaller
	n     int
}

type suspect struct {
	hash uint64
	text int32 // where its bytes start; noText before it was seen, 0 in a free slot
	size int32
}

const (
	noText          = -1
	maxSuspectBytes = 16 << 20
)

// set makes s the set of the suspects.
func (s *suspectSet) set(suspects []uint64) {
	size := 1 << bits.Len(uint(len(suspects)+len(suspects)/2))
	if len(s.slots) < size {
		s.slots = make([]suspect, size)
	}
	clear(s.slots)
	s.text, s.over, s.n = append(s.text[:0], 0), false, len(suspects) // text 0 stands for a free slot
	mask := uint64(len(s.slots) - 1)
next:
	for _, h := range suspects {
		i := h & mask
		for s.slots[i].text != 0 {
			if s.slots[i].hash == h {
				continue next
			}
			i = (i + 1) & mask
		}
		s.slots[i] = suspect{hash: h, text: noText}
	}
}

// twice reports whether key, with the given hash, is a suspect that was seen before.
func (s *suspectSet) twice(hash uint64, key []byte) bool {
	mask := uint64(len(s.slots) - 1)
	known := false
	i := hash & mask
	for ; s.slots[i].text != 0; i = (i + 1) & mask {
		e := &s.slots[i]
		if e.hash != hash {
			continue
		}
		known = true
		if e.text == noText {
			s.keep(e, key)
			return false
		}
		if bytes.Equal(s.text[e.text:e.text+e.size], key) {
			return true
		}
	}
	if known && 4*s.n < 3*len(s.slots) { // another key of the same hash
		s.slots[i].hash = hash
		s.keep(&s.slots[i], key)
		s.n++
	}
	return false
}

func (s *suspectSet) keep(e *suspect, key []byte) {
	if len(s.text)+len(key) > maxSuspectBytes && len(s.text) > 1 {
		s.over = true
		e.text = noText
		return
	}
	e.text, e.size = int32(len(s.text)), int32(len(key))
	s.text = append(s.text, key...)
}
