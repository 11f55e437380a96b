package msglc

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync/atomic"

	"github.com/spilehq/spile/value"
)

// directory remembers where the children of one node stand in the table of contents: a sample of their positions, and
// a table of the hashes of their keys. It is filled by the passes that look for a child, as far as they came, so one
// child of a million costs a pass over the table the first time and a lookup afterwards.
//
// What is known is a value that does not change; who knows more puts another in its place. So a lookup among what was
// seen waits for nobody, and only those who have to pass over more of the table wait for one another.
type directory struct {
	e     entry
	grow  gate // of those who pass over more of the table
	known atomic.Pointer[known]

	accessed atomic.Int64 // children asked for, see Node.Value
}

// known is what a directory knows. Slices and the key table are shared with what is known later: they are only appended
// to.
type known struct {
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
}

func newDirectory(e *entry) *directory {
	d := &directory{e: *e, grow: newGate()}
	d.known.Store(&known{nextAt: e.children, end: -1})
	return d
}

// touch counts a child that was asked for. Beyond all of them the count tells nothing more, and goroutines would wait
// for one another to count.
func (d *directory) touch() {
	if d.accessed.Load() < d.e.count {
		d.accessed.Add(1)
	}
}

// sampleBytes is the distance of sampled children in bytes of the table: what is passed over for a lookup, half of
// it on average, whether nodes are small or whole sub-trees.
const sampleBytes = 512

// sampleHere notes the position of child or block i, when it is far enough from the last one that was noted. It may be
// called again for the same one, after a read that failed.
func (r *Reader) sampleHere(k *known, at, i int64) bool {
	n := len(k.sample)
	if n > 0 && (at-k.sample[n-1] < sampleBytes || k.index[n-1] == i) {
		return false
	}
	k.sample, k.index = append(k.sample, at), append(k.index, i)
	r.s.keep(16)
	return true
}

// nearest returns the last sampled child that is not behind child i: its position and which one it is.
func (k *known) nearest(i int64) (at, index int64) {
	n := searchLast(k.index, i)
	return k.sample[n], k.index[n]
}

// lockGrow waits until nobody else passes over more of the table.
func (r *Reader) lockGrow(ctx context.Context, d *directory) error {
	if err := d.grow.lock(ctx); err != nil {
		return r.ended(err)
	}
	return nil
}

// keyTable maps the hash of a key to the index of its child, by open addressing: the upper half of a slot holds hash
// bits, the lower half index + 1, so that a key costs 12 bytes on average. One goroutine may add while others look:
// they may see keys that were added since.
type keyTable struct {
	slots []atomic.Uint64
	used  int
}

// sameHash is how many slots there may be whose 32 bits of a hash are equal. Keys that differ share them by chance,
// four of 16 million keys once in a hundred documents. Equal keys share them always, and as each new slot is found
// behind those before, a hundred thousand equal keys took 8 s without a bound.
const sameHash = 4

// add adds a child. Where there is no room for one more with its hash, the last one is kept, or the first ones are.
func (k *keyTable) add(hash uint64, index int64, last bool) {
	if 4*(k.used+1) > 3*len(k.slots) {
		old := k.slots
		k.slots = make([]atomic.Uint64, max(16, 2*len(old)))
		for i := range old {
			if s := old[i].Load(); s != 0 {
				k.insert(s, last)
			}
		}
	}
	if k.insert(hash&^math.MaxUint32|uint64(index+1), last) {
		k.used++
	}
}

// insert reports whether the slot took one that was free.
func (k *keyTable) insert(slot uint64, last bool) bool {
	mask := uint64(len(k.slots) - 1)
	same := 0
	var first *atomic.Uint64 // of the slots with the hash, the one of the first child
	for i := slot >> 32 & mask; ; i = (i + 1) & mask {
		s := &k.slots[i]
		was := s.Load()
		if was == 0 {
			s.Store(slot)
			return true
		}
		if (was^slot)>>32 != 0 {
			continue
		}
		if first == nil || was < first.Load() {
			first = s
		}
		if same++; same == sameHash {
			if last {
				first.Store(slot)
			}
			return false
		}
	}
}

// candidates returns the indexes of the children whose key may have the hash. When there are sameHash of them, others
// may have been left out.
func (k *keyTable) candidates(hash uint64) (indexes [sameHash]int64, n int) {
	if len(k.slots) == 0 {
		return indexes, 0
	}
	mask := uint64(len(k.slots) - 1)
	for i := hash >> 32 & mask; n < sameHash; i = (i + 1) & mask {
		slot := k.slots[i].Load()
		if slot == 0 {
			break
		}
		if (slot^hash)>>32 == 0 {
			indexes[n] = int64(uint32(slot)) - 1
			n++
		}
	}
	return indexes, n
}

// maxTableKeys is the number of children beyond which keys are not put into the table; lookups then pass over them.
const maxTableKeys = 1 << 24

var keySeed = maphash.MakeSeed()

// canonicalKey appends a form of an encoded key that is equal for equal keys, whatever the width of their encoding:
// type and value decide, so 1, 1.0 and "1" differ (docs/format/msglc.md, "Keys").
func canonicalKey(dst []byte, c value.Codec, raw []byte) []byte {
	h, content := keyContent(c, raw)
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
		return append(append(dst, 's'), content...)
	case value.Bytes:
		return append(append(dst, 'x'), content...)
	}
	return append(append(dst, 'r', byte(c)), raw...)
}

// keyContent returns the head of an encoded key and, of a string or binary one, the content, which may come in pieces.
// The kind is Invalid where the key is none.
func keyContent(c value.Codec, raw []byte) (h value.Head, content []byte) {
	h, err := value.ReadHead(c, raw)
	switch {
	case err != nil:
		return value.Head{}, nil
	case h.HasContent():
		return h, raw[min(h.Size, len(raw)):]
	case !h.Indefinite || h.Kind != value.String && h.Kind != value.Bytes:
		return h, nil
	}
	s := value.NewScanner(c, raw, value.Limits{})
	if s.Next() != nil {
		return value.Head{}, nil
	}
	return h, s.Data
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
	k := d.known.Load()
	if i >= k.next {
		if err := r.lockGrow(c.ctx, d); err != nil {
			return 0, err
		}
		_, err := r.extend(c, d, i, nil)
		d.grow.unlock()
		if err != nil {
			return 0, err
		}
		k = d.known.Load()
	}
	at, from := k.nearest(i)
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
// want, when that is not nil, and reports whether it came to that. d.grow is locked.
func (r *Reader) extend(c *tocCursor, d *directory, i int64, want []byte) (found bool, err error) {
	k := *d.known.Load()
	if k.next > i || k.next >= d.e.count {
		return false, nil
	}
	defer func() { d.known.Store(&k) }()
	c.seek(k.nextAt)
	withKeys := d.e.isMap && d.e.count <= maxTableKeys
	var canonical []byte
	for !found && k.next <= i && k.next < d.e.count {
		if k.partial {
			if err := c.skip(1); err != nil {
				return false, err
			}
		}
		k.nextAt, k.partial = c.at(), false // a read that fails below leaves the child unseen
		r.sampleHere(&k, c.at(), k.next)
		switch {
		case d.e.isMap && (withKeys || want != nil):
			raw, err := c.key()
			if err != nil {
				return false, err
			}
			canonical = canonicalKey(canonical[:0], c.codec, raw)
			if withKeys {
				k.keys.add(maphash.Bytes(keySeed, canonical), k.next, r.eager)
				r.s.keep(12)
			}
			found = want != nil && bytes.Equal(canonical, want)
		case d.e.isMap:
			if err := c.skip(1); err != nil {
				return false, err
			}
		}
		k.next++
		k.nextAt, k.partial = c.at(), true
	}
	if want != nil && !found && !r.eager && d.e.at == 0 { // that the key is not there was found out by a pass over all
		defer c.seek(k.nextAt)
		if err := c.skip(1); err != nil {
			return false, err
		}
		return false, c.rootEnds(&d.e)
	}
	return found, nil
}

// key passes the key at the cursor and returns its bytes, valid until the cursor moves on.
func (c *tocCursor) key() ([]byte, error) {
	if err := c.need(); err != nil {
		return nil, err
	}
	at := c.at()
	h, err := c.anyHead()
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

// find returns the index of the child with the canonical key, -1 when there is none. Of equal keys the last counts in
// a table that was checked whole at opening, whose bytes are in memory. In a longer one the first counts, so that a
// lookup passes over nothing behind what it looks for (docs/format/msglc.md, "Keys").
func (r *Reader) find(c *tocCursor, d *directory, want []byte) (int64, error) {
	hash := maphash.Bytes(keySeed, want)
	// decided reports whether more of the table would not change the answer.
	decided := func(k *known, found int64) bool { return k.next == d.e.count || found >= 0 && !r.eager }
	if d.e.count <= maxTableKeys {
		k := d.known.Load()
		if found, err := r.match(c, d, k, hash, want); err != nil || decided(k, found) {
			return found, err
		}
	}
	if err := r.lockGrow(c.ctx, d); err != nil {
		return -1, err
	}
	defer d.grow.unlock()
	if d.e.count > maxTableKeys {
		i, err := r.findByPass(c, d, want, d.e.count)
		if err == nil && i >= 0 {
			_, err = r.extend(c, d, i, nil)
		}
		return i, err
	}
	k := d.known.Load() // another may have come by more of the table
	if found, err := r.match(c, d, k, hash, want); err != nil || decided(k, found) {
		return found, err
	}
	if !r.eager {
		found, err := r.extend(c, d, d.e.count-1, want)
		if !found || err != nil {
			return -1, err
		}
		return d.known.Load().next - 1, nil
	}
	if _, err := r.extend(c, d, d.e.count-1, nil); err != nil {
		return -1, err
	}
	return r.match(c, d, d.known.Load(), hash, want)
}

// match returns the child, of those that were seen, that has the key: the one that counts when more than one has it.
func (r *Reader) match(c *tocCursor, d *directory, k *known, hash uint64, want []byte) (int64, error) {
	found := int64(-1)
	indexes, n := k.keys.candidates(hash)
	for _, i := range indexes[:n] {
		if found >= 0 && r.eager == (i < found) {
			continue
		}
		at, from := k.nearest(i)
		c.seek(at)
		if err := c.skip(2 * (i - from)); err != nil {
			return -1, err
		}
		raw, err := c.key()
		if err != nil {
			return -1, err
		}
		if bytes.Equal(canonicalKey(nil, c.codec, raw), want) {
			found = i
		}
	}
	if found < 0 && n == sameHash {
		return r.findByPass(c, d, want, k.next)
	}
	return found, nil
}

// findByPass looks for a key among the first children of a node, where the key table does not tell.
func (r *Reader) findByPass(c *tocCursor, d *directory, want []byte, among int64) (int64, error) {
	found := int64(-1)
	c.seek(d.e.children)
	for i := range among {
		raw, err := c.key()
		if err != nil {
			return -1, err
		}
		if bytes.Equal(canonicalKey(nil, c.codec, raw), want) {
			if found = i; !r.eager {
				break
			}
		}
		if err := c.skip(1); err != nil {
			return -1, err
		}
	}
	return found, nil
}

// blockOf returns the block that holds item i of a blocks node: its range, and the number of items in front of it. The
// block was seen.
func (r *Reader) blockOf(c *tocCursor, d *directory, k *known, i int64) (b block, err error) {
	n := searchLast(k.items, i)
	before := k.items[n]
	c.seek(k.sample[n])
	for {
		count, start, end, err := c.block(-1, d.e.start, d.e.end)
		if err != nil {
			return b, err
		}
		if i < before+count {
			return block{before: before, count: count, start: start, end: end}, nil
		}
		before += count
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

// extendBlocks passes over the blocks that were not seen yet, until item i is among them, and returns what is known
// then.
func (r *Reader) extendBlocks(c *tocCursor, d *directory, i int64) (*known, error) {
	if k := d.known.Load(); k.next == d.e.count || k.itemsSeen > i {
		return k, nil
	}
	if err := r.lockGrow(c.ctx, d); err != nil {
		return nil, err
	}
	defer d.grow.unlock()
	k := *d.known.Load()
	defer func() { d.known.Store(&k) }()
	c.seek(k.nextAt)
	for k.next < d.e.count && k.itemsSeen <= i {
		at := c.at()
		n, start, end, err := c.block(k.end, d.e.start, d.e.end)
		if err != nil {
			return nil, err
		}
		if k.next == 0 {
			k.start = start
		}
		if r.sampleHere(&k, at, k.next) {
			k.items = append(k.items, k.itemsSeen)
			r.s.keep(8)
		}
		k.itemsSeen += n
		k.end = end
		k.next++
		k.nextAt = c.at()
	}
	return &k, nil
}
