package value

import (
	"bytes"
	"encoding/binary"
)

// keyShape is the keys that the maps at one place of a document have had, in the order in which they were first seen.
// The records of a list nearly always have the same keys in the same order. So the next key can be guessed, and what
// was worked out for it the first time (its check, its escapes, its hash) is copied. A key that is known by its number
// needs one bit to tell whether a map has it already.
//
// A place is the way of keys from the top; all items of an array are one place, and all keys that the shape has no room
// for.
type keyShape struct {
	keys   []knownKey
	index  [2 * maxShapeKeys]uint8 // open addressing: 1 + the index of a key
	other  shapePlace              // the place of values under keys that are not in keys
	misses int                     // maps that had keys which are not in keys, since it is full
	limit  int                     // misses after which it starts anew
}

type knownKey struct {
	head0, head1 uint64   // the first 16 bytes of raw, with zeros behind a shorter one
	mask0, mask1 uint64   // those of them that there are
	long         bool     // there are more
	room         [32]byte // out where it is short, so that it can be copied without regard to its length

	raw  []byte      // as it stands in the input, with all that marks its end
	out  []byte      // as it stands in the output, with all that surrounds it
	text []byte      // the part of out that tells keys apart
	sub  *shapePlace // the place of the values under it, nil as long as they are no containers
}

// shapePlace is one place.
type shapePlace struct{ shape *keyShape }

const (
	maxShapeKeys   = 64 // bits of a word
	maxShapeKey    = 64 // bytes of a key that is kept
	maxLearnedKeys = 8 << 10
	shapeMisses    = 8
)

// keyShapes makes shapes and limits how many keys they keep in all.
type keyShapes struct{ learned int }

// of returns the shape at a place.
func (l *keyShapes) of(slot *shapePlace) *keyShape {
	if slot == nil {
		return nil
	}
	if slot.shape == nil && l.learned < maxLearnedKeys {
		slot.shape = &keyShape{limit: shapeMisses}
		l.learned++ // so that maps without keys do not make shapes without end
	}
	return slot.shape
}

// learn adds a key that is not in the shape. It returns its index, -1 when it is not kept: it is too long, the shape is
// full, or another spelling of the same key is in it.
func (l *keyShapes) learn(s *keyShape, raw, out []byte, textFrom, textTo int) int {
	if s == nil || len(s.keys) == maxShapeKeys || len(raw) > maxShapeKey || l.learned >= maxLearnedKeys {
		return -1
	}
	for i := range s.keys {
		if bytes.Equal(s.keys[i].text, out[textFrom:textTo]) {
			return -1
		}
	}
	both := make([]byte, 0, len(raw)+len(out))
	both = append(append(both, raw...), out...)
	k := knownKey{raw: both[:len(raw):len(raw)], out: both[len(raw):]}
	k.text = k.out[textFrom:textTo]
	k.head0, k.head1 = keyHead(raw)
	k.mask0, k.mask1, k.long = lowBytes[min(len(raw), 16)], lowBytes[min(len(raw), 16)+17], len(raw) > 16
	copy(k.room[:], k.out)
	s.keys = append(s.keys, k)
	i := hashHead(k.head0, k.head1, len(raw))
	for s.index[i] != 0 {
		i = (i + 1) % uint(len(s.index))
	}
	s.index[i] = uint8(len(s.keys))
	l.learned++
	return len(s.keys) - 1
}

// missed notes that a map is done which had keys that are not in the shape. After some of them the shape forgets its
// keys, each time after more.
func (s *keyShape) missed() {
	if s.misses++; s.misses >= s.limit {
		*s = keyShape{limit: 4 * s.limit}
	}
}

// find returns the index of the key that is raw, -1 when there is none.
func (s *keyShape) find(raw []byte) int {
	head0, head1 := keyHead(raw)
	return s.lookUp(head0, head1, raw)
}

// keyHead gives the first 16 bytes of a key, with zeros behind a shorter one.
func keyHead(raw []byte) (uint64, uint64) {
	if len(raw) >= 16 {
		return binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
	}
	var b [16]byte
	copy(b[:], raw)
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
}

// lookUp is find where the head of the key is known. The head is two words and not an array: arrays live in memory.
func (s *keyShape) lookUp(head0, head1 uint64, raw []byte) int {
	for i := hashHead(head0, head1, len(raw)); s.index[i] != 0; i = (i + 1) % uint(len(s.index)) {
		n := int(s.index[i]) - 1
		k := &s.keys[n]
		if k.head0 == head0 && k.head1 == head1 && len(k.raw) == len(raw) && (!k.long || bytes.Equal(k.raw[16:], raw[16:])) {
			return n
		}
	}
	return -1
}

// hashHead gives an index into keyShape.index.
func hashHead(head0, head1 uint64, size int) uint {
	const mul = 0x9e3779b97f4a7c15
	h := head0 ^ head1*mul ^ uint64(size)
	h ^= h >> 32
	return uint(h*mul>>40) % (2 * maxShapeKeys)
}

// starts reports whether p starts with the key.
func (k *knownKey) starts(p []byte) bool {
	if len(p) < 16 || k.long {
		return bytes.HasPrefix(p, k.raw)
	}
	return (binary.LittleEndian.Uint64(p)^k.head0)&k.mask0|(binary.LittleEndian.Uint64(p[8:])^k.head1)&k.mask1 == 0
}

// appendTo appends out. There must be room for len(k.room) bytes.
func (k *knownKey) appendTo(b []byte) []byte {
	if len(k.out) > len(k.room) {
		return append(b, k.out...)
	}
	n := len(b)
	*(*[len(k.room)]byte)(b[n : n+len(k.room)]) = k.room
	return b[:n+len(k.out)]
}

// sub returns the place of the values under key i, or under keys that are not in the shape when i is -1.
func (s *keyShape) sub(i int) *shapePlace {
	if s == nil {
		return nil
	}
	if i < 0 {
		return &s.other
	}
	k := &s.keys[i]
	if k.sub == nil {
		k.sub = new(shapePlace)
	}
	return k.sub
}
