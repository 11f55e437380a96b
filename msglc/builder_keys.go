package msglc

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// A key that occurs twice in one map makes two readers see different documents, so a map that gets a table must not
// have one. Its keys are on the tape. A pass over them puts their hashes into a set; what the set has seen before is a
// suspect, and another pass compares the suspects byte for byte. The hashes of a map with more than a million keys go
// to a tape of their own first, in groups by their upper bits, and each group has its turn in the set: memory stays at
// some 16 MiB up to 200 million keys, which take about 100 ns each.

// keySet is a set of hashes by open addressing, of which a slot holds 32 bits.
type keySet struct {
	slots     []uint32
	canonical []byte
}

const (
	// groupKeys is about how many keys have their turn in the set at once.
	groupKeys = 1 << 20
	// maxGroups bounds the memory for hashes that wait to be put on the tape.
	maxGroups = 256
	// hashBlock is how many hashes of one group are put on the tape at once.
	hashBlock = 1 << 10
	// maxSuspects is when suspects are looked at before the pass goes on. By chance there is about one in a hundred
	// million keys; there are more when keys do occur twice.
	maxSuspects = 1000
)

// add reports whether the set may have had the hash before. The set must have room.
func (s *keySet) add(hash uint64) bool {
	mark := uint32(hash>>22) | 1 // neither the bits of the group nor those of the slot
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

// reset empties the set and makes room for n hashes.
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
	p := suspects{b: b, f: f}
	var err error
	if f.count > groupKeys {
		err = b.groupedKeys(f, &p)
	} else {
		b.keys.reset(f.count)
		err = b.eachKey(f, func(k *mapKey) error { return p.add(k.hash) })
	}
	if err != nil {
		return err
	}
	return p.compare()
}

// groupedKeys is uniqueKeys for many keys.
func (b *tocBuilder) groupedKeys(f *frame, p *suspects) error {
	type group struct {
		blocks  []int64 // where they stand on the tape
		waiting []byte
	}
	shift := bits.Len64(uint64((f.count - 1) / (groupKeys / 2)))
	shift = min(shift, bits.Len(maxGroups-1))
	groups := make([]group, 1<<shift)
	hashes := tape{dir: b.children.dir, bound: b.blocks.bound}
	defer hashes.close()
	err := b.eachKey(f, func(k *mapKey) error {
		g := &groups[k.hash>>(64-shift)]
		g.waiting = binary.LittleEndian.AppendUint64(g.waiting, k.hash)
		if len(g.waiting) < 8*hashBlock {
			return nil
		}
		g.blocks = append(g.blocks, hashes.size())
		hashes.mem = append(hashes.mem, g.waiting...)
		g.waiting = g.waiting[:0]
		return hashes.settle()
	})
	if err != nil {
		return err
	}
	r := hashes.reader(0)
	for i := range groups {
		g := &groups[i]
		b.keys.reset(int64(len(g.blocks)*hashBlock + len(g.waiting)/8 + 1))
		for _, at := range g.blocks {
			r.seek(at)
			if err := r.need(8 * hashBlock); err != nil {
				return err
			}
			if err := p.addAll(r.buf[r.pos : r.pos+8*hashBlock]); err != nil {
				return err
			}
		}
		if err := p.addAll(g.waiting); err != nil {
			return err
		}
		g.waiting = nil
	}
	return nil
}

// suspects are the hashes that the set has had twice.
type suspects struct {
	b      *tocBuilder
	f      *frame
	hashes map[uint64]bool
}

// add puts a hash into the set.
func (s *suspects) add(hash uint64) error {
	if !s.b.keys.add(hash) {
		return nil
	}
	if s.hashes == nil {
		s.hashes = make(map[uint64]bool)
	}
	s.hashes[hash] = true
	if len(s.hashes) < maxSuspects {
		return nil
	}
	return s.compare()
}

func (s *suspects) addAll(p []byte) error {
	for ; len(p) > 0; p = p[8:] {
		if err := s.add(binary.LittleEndian.Uint64(p)); err != nil {
			return err
		}
	}
	return nil
}

// compare looks at the keys of the suspects, and acquits them when no two are equal.
func (s *suspects) compare() error {
	if len(s.hashes) == 0 {
		return nil
	}
	defer clear(s.hashes)
	return s.b.compareKeys(s.f, s.hashes)
}

// compareKeys looks for keys that are equal among those whose hash is a suspect.
func (b *tocBuilder) compareKeys(f *frame, wanted map[uint64]bool) error {
	seen := make(map[string]int64)
	return b.eachKey(f, func(k *mapKey) error {
		if !wanted[k.hash] {
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
