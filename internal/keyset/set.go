package keyset

import (
	"bytes"
	"hash/maphash"

	"github.com/spilehq/spile/fault"
)

// Set is the keys of the maps that are open. Its zero value is ready, in mode [Exact].
type Set struct {
	seed   maphash.Seed
	seeded bool
	limits Limits
	mode   Mode
	bound  int // the budget, 0 until it is looked up

	entries  []Entry
	text     []byte
	free     []table // of maps that were closed
	inTables int     // bytes of the tables that are in use

	filter   []uint64 // blocks of blockWords words, nil until it is needed
	added    int      // keys that went to the filter since it was empty
	filtered int      // open maps whose keys are in the filter
	suspects []uint64 // of maps that are read again
	logs     []logMap // maps whose keys are in log; the innermost is the last one
	logged   int      // suspects of those
	log      keyLog
	check    *second // not nil: a second look, which compares suspects and nothing else
	looks    second  // memory for them
}

// Mode says what a set does with more keys than its budget allows.
type Mode uint8

const (
	// Exact keeps all keys. Past the budget [Set.Add] returns an error of class [fault.Limit].
	Exact Mode = iota
	// Reread uses a filter. The owner calls [Set.LookUp] when the set is [Set.Full] and at the end.
	Reread
	// Log uses a filter, and puts the keys into a temporary file for the second look. A key that occurs twice is found
	// when its map ends at the latest, and is a [*Twice].
	Log
)

// Limits bounds the memory of a set.
type Limits struct {
	Exact    int // bytes for keys that are kept, in the modes Exact and Log
	Reread   int // and in mode Reread
	Filter   int // words of the filter, a power of 2
	Suspects int // keys that wait for a second look
}

// DefaultLimits returns 96 MiB for keys, or 16 MiB and a filter of 64 MiB.
func DefaultLimits() Limits {
	return Limits{Exact: 96 << 20, Reread: 16 << 20, Filter: 8 << 20, Suspects: 512 << 10}
}

// Map is what a set knows of one open map. The zero value is not open.
type Map struct {
	Open bool

	id    int64
	first int    // index of its first entry
	n     int    // number of its entries
	text  int    // where its bytes start
	marks uint64 // a bit for each key: where it is not set, the key is new
	table table  // nil as long as the map is small

	filtered bool // its keys are in the filter and not on the stack
	logged   bool // and in the log
}

// Entry is a key that is kept. Offset is the owner's, to be changed as it likes.
type Entry struct {
	Offset int64

	hash uint64 // 0 as long as the map is small
	text int
	size int
}

// Twice is the error that a map has a key two times, found by a second look.
type Twice struct {
	Key    []byte
	Offset int64 // of the later one
}

func (t *Twice) Error() string { return "a key occurs twice in one map" }

const (
	// EntrySize is the memory that a key takes beside its bytes, without the table.
	EntrySize = 32
	// SmallMap is the number of keys up to which marks and comparing save the hash.
	SmallMap = 24
)

// SetLimits replaces the limits; for tests.
func (s *Set) SetLimits(l Limits) { s.limits, s.bound = l, 0 }

// Reset empties the set and sets its mode; it keeps its memory.
func (s *Set) Reset(m Mode) {
	s.entries, s.text, s.inTables = s.entries[:0], s.text[:0], 0
	if s.added > 0 {
		clear(s.filter)
	}
	s.added, s.filtered, s.suspects, s.logs, s.logged, s.mode = 0, 0, s.suspects[:0], s.logs[:0], 0, m
	s.bound = 0
	s.log.close()
}

// Memory is about the number of bytes that the set holds on to.
func (s *Set) Memory() int {
	n := cap(s.text) + EntrySize*cap(s.entries) + s.inTables + 8*len(s.filter) + 8*cap(s.suspects) + cap(s.log.buf)
	for _, t := range s.free {
		n += 4 * cap(t)
	}
	for _, m := range s.logs[:cap(s.logs)] {
		n += 8 * cap(m.suspects)
	}
	return n + suspectSize*cap(s.looks.slots) + cap(s.looks.text)
}

// SetMode sets the mode for what is added from now on. Maps whose keys went out of memory stay in the mode that they
// had then.
func (s *Set) SetMode(m Mode) { s.mode, s.bound = m, 0 }

func (s *Set) budget() int {
	if s.limits == (Limits{}) {
		s.limits = DefaultLimits()
	}
	if s.mode == Reread {
		return s.limits.Reread
	}
	return s.limits.Exact
}

func (s *Set) hash(key []byte) uint64 {
	if !s.seeded {
		s.seed, s.seeded = maphash.MakeSeed(), true
	}
	return maphash.Bytes(s.seed, key)
}

// Begin opens a map. id tells it from the others of the same input, and is the same for it at a second look. Maps that
// were opened later must end before it gets keys again.
func (s *Set) Begin(m *Map, id int64) {
	*m = Map{Open: true, id: id, first: len(s.entries), text: len(s.text)}
}

// End closes the map that was opened last. The error is a [*Twice], or one of the temporary file.
func (s *Set) End(m *Map) error {
	var err error
	s.forget(m)
	if m.logged {
		err = s.endLog()
	}
	if m.filtered {
		// Few keys among many bits do no harm; to clear them takes longer than to look at some suspects.
		if s.filtered--; s.filtered == 0 && s.added > len(s.filter)/2 {
			clear(s.filter)
			s.added = 0
		}
	}
	*m = Map{}
	return err
}

// forget takes the keys of the innermost map off the stack.
func (s *Set) forget(m *Map) {
	if s.check != nil {
		return
	}
	s.entries, s.text = s.entries[:m.first], s.text[:m.text]
	if m.table != nil {
		s.inTables -= 4 * len(m.table)
		s.free = append(s.free, m.table)
	}
	m.table, m.n = nil, 0
}

// Add adds a key, which stands at offset, to the innermost map. It returns the entry of the same key when it sees that
// the map has it already; the entry is empty at a second look.
func (s *Set) Add(m *Map, key []byte, offset int64) (*Entry, error) {
	if s.check != nil {
		if s.check.twice(mix(s.hash(key), m.id), m.id, key) {
			return new(Entry), nil
		}
		return nil, nil
	}
	if m.filtered {
		return nil, s.addFiltered(m, s.hash(key), key, offset)
	}
	hash := uint64(0)
	if m.table == nil {
		mark := markOf(key)
		if m.marks&mark != 0 {
			for i := range s.entries[m.first:] {
				if e := &s.entries[m.first+i]; e.size == len(key) && bytes.Equal(s.text[e.text:e.text+e.size], key) {
					return e, nil
				}
			}
		}
		m.marks |= mark
	} else {
		hash = s.hash(key)
		if e := s.find(m, hash, key); e != nil {
			return e, nil
		}
	}
	if used := len(s.text) + EntrySize*len(s.entries) + s.inTables; used > s.bound && s.over(m, used) {
		if s.mode == Exact {
			return nil, fault.New(fault.Limit, "value", "the keys of the open maps take more than %d bytes of memory", s.bound).At(offset)
		}
		if err := s.moveToFilter(m); err != nil {
			return nil, err
		}
		return nil, s.addFiltered(m, s.hash(key), key, offset)
	}
	s.entries = append(s.entries, Entry{hash: hash, Offset: offset, text: len(s.text), size: len(key)})
	s.text = append(s.text, key...)
	if m.n++; m.n > SmallMap {
		s.index(m)
	}
	return nil, nil
}

// over reports whether the map must go to the filter. A small one stays as long as it may.
func (s *Set) over(m *Map, used int) bool {
	s.bound = s.budget()
	return used > s.bound && (m.n >= SmallMap || used > 2*s.bound)
}

// markOf gives a key one of 64 bits, cheaper than by its hash.
func markOf(key []byte) uint64 {
	n := len(key)
	if n == 0 {
		return 1
	}
	return 1 << (uint(n+7*int(key[n-1])+3*int(key[n/2])) & 63)
}

// table finds the entries of a map by hash: open addressing, 1 + the index of the entry. Its length is a power of 2.
type table []int32

// find returns the entry of key, nil when the map, which has a table, has none.
func (s *Set) find(m *Map, hash uint64, key []byte) *Entry {
	entries := s.entries[m.first : m.first+m.n]
	mask := uint64(len(m.table) - 1)
	for i := hash & mask; m.table[i] != 0; i = (i + 1) & mask {
		if e := &entries[m.table[i]-1]; e.hash == hash && bytes.Equal(s.text[e.text:e.text+e.size], key) {
			return e
		}
	}
	return nil
}

// index adds the last entry of a map to its table, which it makes or makes longer where it must.
func (s *Set) index(m *Map) {
	entries := s.entries[m.first : m.first+m.n]
	from := m.n - 1
	if m.table == nil {
		s.hashEntries(m)
	}
	if 2*m.n > len(m.table) {
		old := m.table
		s.inTables -= 4 * len(old)
		m.table = s.newTable(max(8*SmallMap, 2*len(old)))
		s.inTables += 4 * len(m.table)
		if old != nil {
			s.free = append(s.free, old)
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

// hashEntries hashes the keys of a map that had no need of it.
func (s *Set) hashEntries(m *Map) {
	for i := range s.entries[m.first:] {
		e := &s.entries[m.first+i]
		e.hash = s.hash(s.text[e.text : e.text+e.size])
	}
}

func (s *Set) newTable(size int) table {
	size = 1 << ceilLog(size)
	for i := len(s.free) - 1; i >= 0; i-- {
		if t := s.free[i]; cap(t) >= size {
			s.free[i] = s.free[len(s.free)-1]
			s.free = s.free[:len(s.free)-1]
			t = t[:size]
			clear(t)
			return t
		}
	}
	s.free = s.free[:0] // all too small: the large one serves for them from now on
	return make(table, size)
}

// moveToFilter makes room. The map is the innermost one, so its keys are the last ones.
func (s *Set) moveToFilter(m *Map) error {
	if m.table == nil {
		s.hashEntries(m)
	}
	m.filtered, m.logged = true, s.mode == Log
	s.filtered++
	if m.logged {
		s.beginLog()
	}
	for _, e := range s.entries[m.first:] {
		if err := s.addFiltered(m, e.hash, s.text[e.text:e.text+e.size], e.Offset); err != nil {
			return err
		}
	}
	s.forget(m)
	return nil
}

// addFiltered adds a key to the filter, and to the suspects when that may have it already.
func (s *Set) addFiltered(m *Map, hash uint64, key []byte, offset int64) error {
	h := mix(hash, m.id)
	known := s.addFilter(h)
	if !m.logged {
		if known {
			s.suspects = append(s.suspects, h)
		}
		return nil
	}
	return s.addLog(h, m.id, key, offset, known)
}
