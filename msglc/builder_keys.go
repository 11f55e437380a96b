package msglc

import (
	"hash/maphash"
	"math/bits"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// A key that occurs twice in one map makes two readers see different documents, so a map that gets a table must not
// have one. Its keys are on the tape. One pass marks their hashes in a set of bounded size; what the set has seen
// before is a suspect, and another pass compares the suspects byte for byte. A map of more keys than the set takes is
// passed several times, a part of the hashes at a time: 40 million keys take ten passes, about four seconds.

// keySet is a set of hashes by open addressing, of which a slot holds 32 bits.
type keySet struct {
	slots     []uint32
	canonical []byte
}

const (
	// maxKeySlots bounds the memory of the set to 32 MiB.
	maxKeySlots = 8 << 20
	// maxSuspects is when suspects are looked at before the pass goes on. By chance there is one in a thousand
	// million keys; there are more when keys do occur twice.
	maxSuspects = 1000
)

// add reports whether the set may have had the hash before.
func (s *keySet) add(hash uint64) bool {
	mark := uint32(hash>>32) | 1
	for i := hash; ; i++ {
		slot := &s.slots[i&uint64(len(s.slots)-1)]
		if *slot == mark {
			return true
		}
		if *slot == 0 {
			*slot = mark
			return false
		}
	}
}

// reset makes room for n hashes, at most half of maxKeySlots.
func (s *keySet) reset(n int64) {
	size := 1 << bits.Len64(uint64(2*n-1))
	if size > cap(s.slots) {
		s.slots = make([]uint32, size)
		return
	}
	s.slots = s.slots[:size]
	clear(s.slots)
}

// mapKey is a key of a map whose children are on the tape.
type mapKey struct {
	raw       []byte // both are valid until the next key
	canonical []byte
	hash      uint64
	pos       int64
}

// uniqueKeys checks that no key occurs twice in the map that ends, whose children are on the tape.
func (b *tocBuilder) uniqueKeys(f *frame) error {
	if f.count < 2 {
		return nil
	}
	s := &b.keys
	const bound = maxKeySlots / 2
	parts := uint64((f.count + bound - 1) / bound)
	for part := range parts {
		s.reset(min(f.count, bound))
		var suspects map[uint64]bool
		err := b.eachKey(f, func(k *mapKey) error {
			if parts > 1 && k.hash>>40%parts != part || !s.add(k.hash) {
				return nil
			}
			if suspects == nil {
				suspects = make(map[uint64]bool)
			}
			suspects[k.hash] = true
			if len(suspects) < maxSuspects {
				return nil
			}
			defer clear(suspects)
			return b.compareKeys(f, suspects)
		})
		if err == nil && len(suspects) > 0 {
			err = b.compareKeys(f, suspects)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareKeys looks for keys that are equal among those whose hash is a suspect.
func (b *tocBuilder) compareKeys(f *frame, suspects map[uint64]bool) error {
	seen := make(map[string]int64)
	return b.eachKey(f, func(k *mapKey) error {
		if !suspects[k.hash] {
			return nil
		}
		if first, ok := seen[string(k.canonical)]; ok {
			name := keyText(value.Raw{Codec: b.codec, Data: k.raw})
			if len(name) > 100 {
				name = strings.ToValidUTF8(name[:100], "") + "…"
			}
			return fault.New(fault.Conflict, "msglc", "key %s occurs twice in one map, first at %#x", name, first).At(k.pos)
		}
		seen[string(k.canonical)] = k.pos
		return nil
	})
}

// eachKey calls do with the keys of the map that ends, in order.
func (b *tocBuilder) eachKey(f *frame, do func(*mapKey) error) error {
	k := mapKey{pos: f.items}
	r := b.children.reader(f.mark + tapeTableSize)
	for range f.count {
		var err error
		if k.raw, err = r.key(); err != nil {
			return err
		}
		b.keys.canonical = canonicalKey(b.keys.canonical[:0], b.codec, k.raw)
		k.canonical = b.keys.canonical
		k.hash = maphash.Bytes(keySeed, k.canonical)
		size := int64(len(k.raw))
		if err := do(&k); err != nil {
			return err
		}
		rec, err := r.record()
		if err != nil {
			return err
		}
		if rec.op != tapeLeaf {
			r.seek(r.at() + rec.length)
		}
		k.pos += size + rec.size
	}
	return nil
}
