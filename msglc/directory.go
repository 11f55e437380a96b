package msglc

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/spilehq/spile/value"
)

// directory remembers where the children of one node stand in the table of contents: a sample of their positions, and
// a table of the hashes of their keys. It is filled by the passes that look for a child, as far as they came, so one
// child of a million costs a pass over the table the first time and a lookup afterwards.
type directory struct {
	mu      sync.RWMutex
	e       entry
	next    int64   // children seen
	nextAt  int64   // where the node of the last of them stands; where the first stands when there is none
	partial bool    // the last of them was not passed yet: it may be long, and is perhaps what was looked for
	sample  []int64 // positions of some children or blocks, see sampleBytes
	index   []int64 // which children they are
	// Of a blocks node: the items in front of the sampled blocks, and of all blocks seen; the first and last bytes.
	items      []int64
	itemsSeen  int64
	start, end int64
	keys       keyTable

	accessed atomic.Int64 // children asked for, see Node.Value
}

// sampleBytes is the distance of sampled children in bytes of the table: what is passed over for a lookup, half of
// it on average, whether nodes are small or whole sub-trees.
const sampleBytes = 512

// sampleHere notes the position of child or block i, when it is far enough from the last one that was noted. It may be
// called again for the same one, after a read that failed.
func (r *Reader) sampleHere(d *directory, at, i int64) bool {
	k := len(d.sample)
	if k > 0 && (at-d.sample[k-1] < sampleBytes || d.index[k-1] == i) {
		return false
	}
	d.sample, d.index = append(d.sample, at), append(d.index, i)
	r.s.keep(16)
	return true
}

// nearest returns the last sampled child that is not behind child i: its position and which one it is.
func (d *directory) nearest(i int64) (at, index int64) {
	k := searchLast(d.index, i)
	return d.sample[k], d.index[k]
}

// keyTable maps the hash of a key to the index of its child, by open addressing: the upper half of a slot holds hash
// bits, the lower half index + 1, so that a key costs 12 bytes on average.
type keyTable struct {
	slots []uint64
	used  int
}

func (k *keyTable) add(hash uint64, index int64) {
	if 4*(k.used+1) > 3*len(k.slots) {
		old := k.slots
		k.slots = make([]uint64, max(16, 2*len(old)))
		for _, s := range old {
			if s != 0 {
				k.insert(s)
			}
		}
	}
	k.insert(hash&^math.MaxUint32 | uint64(index+1))
	k.used++
}

func (k *keyTable) insert(slot uint64) {
	mask := uint64(len(k.slots) - 1)
	for i := slot >> 32 & mask; ; i = (i + 1) & mask {
		if k.slots[i] == 0 {
			k.slots[i] = slot
			return
		}
	}
}

// candidates calls f with the index of every child whose key may have the hash.
func (k *keyTable) candidates(hash uint64, f func(index int64) error) error {
	if len(k.slots) == 0 {
		return nil
	}
	mask := uint64(len(k.slots) - 1)
	for i := hash >> 32 & mask; k.slots[i] != 0; i = (i + 1) & mask {
		if (k.slots[i]^hash)>>32 == 0 {
			if err := f(int64(uint32(k.slots[i])) - 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxTableKeys is the number of children beyond which keys are not put into the table; lookups then pass over them.
const maxTableKeys = 1 << 24

var keySeed = maphash.MakeSeed()

// canonicalKey appends a form of an encoded key that is equal for equal keys, whatever the width of their encoding:
// type and value decide, so 1, 1.0 and "1" differ (docs/format/msglc.md, "Keys").
func canonicalKey(dst []byte, c value.Codec, raw []byte) []byte {
	h, err := value.ReadHead(c, raw)
	if err != nil || h.Indefinite {
		return append(append(dst, 'r', byte(c)), raw...)
	}
	switch h.Kind {
	case value.Null:
		return append(dst, 'z')
	case value.Bool:
		return append(dst, 'b', byte(h.Arg))
	case value.Uint:
		return binary.BigEndian.AppendUint64(append(dst, 'u'), h.Arg)
	case value.Nint:
		return binary.BigEndian.AppendUint64(append(dst, 'n'), h.Arg)
	case value.Float16, value.Float32, value.Float64:
		t := value.Token{Kind: h.Kind, Bits: h.Arg}
		f := t.Float()
		if math.IsNaN(f) {
			f = math.NaN()
		}
		return binary.BigEndian.AppendUint64(append(dst, 'f'), math.Float64bits(f))
	case value.String:
		return append(append(dst, 's'), raw[min(h.Size, len(raw)):]...)
	case value.Bytes:
		return append(append(dst, 'x'), raw[min(h.Size, len(raw)):]...)
	}
	return append(append(dst, 'r', byte(c)), raw...)
}

// child returns the entry of child i and, in a map, its encoded key.
func (r *Reader) child(c *tocCursor, d *directory, i int64) (e entry, key []byte, err error) {
	at, err := r.childAt(c, d, i)
	if err != nil {
		return e, nil, err
	}
	c.seek(at)
	if d.e.isMap {
		if err := c.skip(1); err != nil {
			return e, nil, err
		}
		if key, err = c.bytesBetween(at, c.at()); err != nil {
			return e, nil, err
		}
	}
	e, err = c.entry(d.e.start, d.e.end)
	return e, key, err
}

// childAt returns the position of child i in the table.
func (r *Reader) childAt(c *tocCursor, d *directory, i int64) (int64, error) {
	d.mu.RLock()
	seen := i < d.next
	d.mu.RUnlock()
	if !seen {
		d.mu.Lock()
		err := r.extend(c, d, i, nil)
		d.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
	d.mu.RLock()
	at, from := d.nearest(i)
	d.mu.RUnlock()
	c.seek(at)
	if err := c.skip(d.valuesPer() * (i - from)); err != nil {
		return 0, err
	}
	return c.at(), nil
}

func (d *directory) valuesPer() int64 {
	if d.e.isMap {
		return 2
	}
	return 1
}

// extend passes over the children that were not seen yet, up to child i, or up to the first whose canonical key is
// want, when that is not nil. d is locked.
func (r *Reader) extend(c *tocCursor, d *directory, i int64, want []byte) error {
	if d.next == 0 {
		d.nextAt = d.e.children
	}
	c.seek(d.nextAt)
	withKeys := d.e.isMap && d.e.count <= maxTableKeys
	var canonical []byte
	for d.next <= i && d.next < d.e.count {
		if d.partial {
			if err := c.skip(1); err != nil {
				return err
			}
		}
		d.nextAt, d.partial = c.at(), false // a read that fails below leaves the child unseen
		r.sampleHere(d, c.at(), d.next)
		found := false
		switch {
		case d.e.isMap && (withKeys || want != nil):
			raw, err := c.key()
			if err != nil {
				return err
			}
			canonical = canonicalKey(canonical[:0], c.codec, raw)
			if withKeys {
				d.keys.add(maphash.Bytes(keySeed, canonical), d.next)
				r.s.keep(12)
			}
			found = want != nil && bytes.Equal(canonical, want)
		case d.e.isMap:
			if err := c.skip(1); err != nil {
				return err
			}
		}
		d.next++
		d.nextAt, d.partial = c.at(), true
		if found {
			break
		}
	}
	return nil
}

// key passes the key at the cursor and returns its bytes, valid until the cursor moves on.
func (c *tocCursor) key() ([]byte, error) {
	if err := c.need(); err != nil {
		return nil, err
	}
	at := c.at()
	h, err := c.head()
	if err != nil {
		return nil, err
	}
	if h.HasContent() && int64(h.Arg) <= int64(len(c.w)-c.pos) {
		raw := c.w[c.pos-h.Size : c.pos+int(h.Arg)]
		c.pos += int(h.Arg)
		return raw, nil
	}
	c.seek(at)
	if err := c.skip(1); err != nil {
		return nil, err
	}
	return c.bytesBetween(at, c.at())
}

// find returns the index of the child with the canonical key, -1 when there is none. Of equal keys the last counts,
// among those seen: a table with a key twice is the work of a faulty writer, and looking for it would cost a pass over
// the whole node for every first lookup. Tables that are checked at opening are always seen whole.
func (r *Reader) find(c *tocCursor, d *directory, want []byte) (int64, error) {
	hash := maphash.Bytes(keySeed, want)
	found := int64(-1)
	match := func(i int64) error {
		at, from := d.nearest(i)
		c.seek(at)
		if err := c.skip(2 * (i - from)); err != nil {
			return err
		}
		raw, err := c.key()
		if err == nil && i > found && bytes.Equal(canonicalKey(nil, c.codec, raw), want) {
			found = i
		}
		return err
	}
	d.mu.RLock()
	seenAll := d.next == d.e.count
	err := d.keys.candidates(hash, match)
	d.mu.RUnlock()
	if err != nil || found >= 0 && (seenAll || !r.eager) || seenAll && d.e.count <= maxTableKeys {
		return found, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.e.count > maxTableKeys {
		return r.findByPass(c, d, want)
	}
	if err := d.keys.candidates(hash, match); err != nil || found >= 0 && !r.eager {
		return found, err
	}
	for d.next < d.e.count {
		before := d.next
		if err := r.extend(c, d, d.e.count-1, want); err != nil {
			return -1, err
		}
		if d.next == before {
			break
		}
		at := d.next - 1
		if err := match(at); err != nil {
			return -1, err
		}
		if found == at && !r.eager {
			break
		}
	}
	return found, nil
}

// findByPass looks for a key among more children than the key table takes.
func (r *Reader) findByPass(c *tocCursor, d *directory, want []byte) (int64, error) {
	c.seek(d.e.children)
	for i := range d.e.count {
		raw, err := c.key()
		if err != nil {
			return -1, err
		}
		if bytes.Equal(canonicalKey(nil, c.codec, raw), want) {
			if err := r.extend(c, d, i, nil); err != nil {
				return -1, err
			}
			return i, nil
		}
		if err := c.skip(1); err != nil {
			return -1, err
		}
	}
	return -1, nil
}

// blockOf returns the block that holds item i of a blocks node: its range, and the number of items in front of it.
func (r *Reader) blockOf(c *tocCursor, d *directory, i int64) (b block, err error) {
	d.mu.RLock()
	k := -1
	if i < d.itemsSeen {
		k = searchLast(d.items, i)
	}
	d.mu.RUnlock()
	if k < 0 {
		if err := r.extendBlocks(c, d, i); err != nil {
			return b, err
		}
		d.mu.RLock()
		k = searchLast(d.items, i)
		d.mu.RUnlock()
	}
	d.mu.RLock()
	at, before := d.sample[k], d.items[k]
	d.mu.RUnlock()
	c.seek(at)
	for {
		n, start, end, err := c.block(-1, d.e.start, d.e.end)
		if err != nil {
			return b, err
		}
		if i < before+n {
			return block{before: before, count: n, start: start, end: end}, nil
		}
		before += n
	}
}

// block is a run of items of an array.
type block struct {
	before, count int64 // items in front of it and in it
	start, end    int64 // payload range
}

// searchLast returns the index of the last element of the ascending list that is at most x.
func searchLast(list []int64, x int64) int {
	lo, hi := 0, len(list)
	for lo+1 < hi {
		if m := int(uint(lo+hi) >> 1); list[m] <= x {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// extendBlocks passes over the blocks that were not seen yet, until item i is among them.
func (r *Reader) extendBlocks(c *tocCursor, d *directory, i int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next == 0 {
		d.nextAt, d.end = d.e.children, -1
	}
	c.seek(d.nextAt)
	for d.next < d.e.count && d.itemsSeen <= i {
		at := c.at()
		n, start, end, err := c.block(d.end, d.e.start, d.e.end)
		if err != nil {
			return err
		}
		if d.next == 0 {
			d.start = start
		}
		if r.sampleHere(d, at, d.next) {
			d.items = append(d.items, d.itemsSeen)
			r.s.keep(8)
		}
		d.itemsSeen += n
		d.end = end
		d.next++
		d.nextAt = c.at()
	}
	return nil
}
