package value

import (
	"bytes"
	"hash/maphash"
)

// keyStack holds the keys of the maps that are open, those of the innermost map last, and finds keys that come twice.
// Nothing is allocated a key; memory is used again when a map ends.
type keyStack struct {
	text   []byte // of all keys
	ends   []int  // of each key in text
	tables [][]uint32
	inUse  int // of tables
	slots  int // of all tables
	seed   maphash.Seed
}

// keyFrame is the part of a keyStack that belongs to one map.
type keyFrame struct {
	first, text int    // in ends and text
	marks       uint64 // a bit for each key: where it is not set, the key is new
	table       int    // in tables, noTable while there are few keys
}

const (
	noTable = -1
	// fewKeys is the number of keys up to which marks and comparing save the hash.
	fewKeys = 24
)

// frame starts an empty map.
func (k *keyStack) frame() keyFrame {
	return keyFrame{first: len(k.ends), text: len(k.text), table: noTable}
}

// drop ends the map that was started last.
func (k *keyStack) drop(f *keyFrame) {
	k.text, k.ends = k.text[:f.text], k.ends[:f.first]
	if f.table != noTable {
		k.inUse--
	}
}

// memory is the number of bytes that are taken.
func (k *keyStack) memory() int { return cap(k.text) + 8*cap(k.ends) + 4*k.slots }

// add adds a key to the map that was started last, and reports whether it is new there.
func (k *keyStack) add(f *keyFrame, key []byte) bool {
	n := len(k.ends) - f.first
	if n < fewKeys {
		mark := uint64(1) << (uint(len(key)+7*int(key[len(key)-1])+3*int(key[len(key)/2])) & 63)
		if f.marks&mark != 0 {
			for i := range n {
				if bytes.Equal(k.key(f, i), key) {
					return false
				}
			}
		}
		f.marks |= mark
		k.push(key)
		return true
	}
	if f.table == noTable {
		k.makeTable(f, 4*fewKeys)
	} else if table := k.tables[f.table]; 2*n >= len(table) {
		k.makeTable(f, 2*len(table))
	}
	table := k.tables[f.table]
	slot := k.find(f, table, key)
	if table[slot] != 0 {
		return false
	}
	k.push(key)
	table[slot] = uint32(n + 1)
	return true
}

func (k *keyStack) push(key []byte) {
	k.text = append(k.text, key...)
	k.ends = append(k.ends, len(k.text))
}

// key is the key i of a map.
func (k *keyStack) key(f *keyFrame, i int) []byte {
	start := f.text
	if i > 0 {
		start = k.ends[f.first+i-1]
	}
	return k.text[start:k.ends[f.first+i]]
}

// find returns the slot of the key, or the free one where it belongs.
func (k *keyStack) find(f *keyFrame, table []uint32, key []byte) int {
	slot := int(maphash.Bytes(k.seed, key) % uint64(len(table)))
	for table[slot] != 0 && !bytes.Equal(k.key(f, int(table[slot]-1)), key) {
		if slot++; slot == len(table) {
			slot = 0
		}
	}
	return slot
}

// makeTable makes the table of a map anew, with the number of slots.
func (k *keyStack) makeTable(f *keyFrame, slots int) {
	if f.table == noTable {
		if k.seed == (maphash.Seed{}) {
			k.seed = maphash.MakeSeed()
		}
		f.table = k.inUse
		if k.inUse++; k.inUse > len(k.tables) {
			k.tables = append(k.tables, nil)
		}
	}
	table := k.tables[f.table]
	if cap(table) < slots {
		k.slots += slots - cap(table)
		table = make([]uint32, slots)
	}
	table = table[:slots]
	clear(table)
	for i := range len(k.ends) - f.first {
		table[k.find(f, table, k.key(f, i))] = uint32(i + 1)
	}
	k.tables[f.table] = table
}
