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
	// The keys of the children that were not seen when the payload told them, and which is the last that has each.
	behind map[string]int64
}

// allKeys reports whether every key of the node is known.
func (k *known) allKeys(e *entry) bool {
	return e.count <= maxTableKeys && k.next == e.count || k.behind != nil
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

func (k *keyTable) add(hash uint64, index int64) {
	if 4*(k.used+1) > 3*len(k.slots) {
		old := k.slots
		k.slots = make([]atomic.Uint64, max(16, 2*len(old)))
		for i := range old {
			if s := old[i].Load(); s != 0 {
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
		if k.slots[i].Load() == 0 {
			k.slots[i].Store(slot)
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
	for i := hash >> 32 & mask; ; i = (i + 1) & mask {
		slot := k.slots[i].Load()
		if slot == 0 {
			return nil
		}
		if (slot^hash)>>32 == 0 {
			if err := f(int64(uint32(slot)) - 1); err != nil {
				return err
			}
		}
	}
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
		err := r.extend(c, d, i, nil)
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
// want, when that is not nil. d.grow is locked.
func (r *Reader) extend(c *tocCursor, d *directory, i int64, want []byte) error {
	k := *d.known.Load()
	if k.next > i || k.next >= d.e.count {
		return nil
	}
	defer func() { d.known.Store(&k) }()
	c.seek(k.nextAt)
	withKeys := d.e.isMap && d.e.count <= maxTableKeys
	var canonical []byte
	for k.next <= i && k.next < d.e.count {
		if k.partial {
			if err := c.skip(1); err != nil {
				return err
			}
		}
		k.nextAt, k.partial = c.at(), false // a read that fails below leaves the child unseen
		r.sampleHere(&k, c.at(), k.next)
		found := false
		switch {
		case d.e.isMap && (withKeys || want != nil):
			raw, err := c.key()
			if err != nil {
				return err
			}
			canonical = canonicalKey(canonical[:0], c.codec, raw)
			if withKeys {
				k.keys.add(maphash.Bytes(keySeed, canonical), k.next)
				r.s.keep(12)
			}
			found = want != nil && bytes.Equal(canonical, want)
		case d.e.isMap:
			if err := c.skip(1); err != nil {
				return err
			}
		}
		k.next++
		k.nextAt, k.partial = c.at(), true
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

// find returns the index of the child with the canonical key, -1 when there is none. Of equal keys the last counts
// (docs/format/msglc.md, "Keys"), so the first lookup comes by all keys of the node: in the table, or, where what
// follows in the payload is short, there.
func (r *Reader) find(c *tocCursor, d *directory, want []byte) (int64, error) {
	hash := maphash.Bytes(keySeed, want)
	if k := d.known.Load(); k.allKeys(&d.e) {
		return r.match(c, k, hash, want)
	}
	if err := r.lockGrow(c.ctx, d); err != nil {
		return -1, err
	}
	defer d.grow.unlock()
	if d.e.count > maxTableKeys {
		return r.findByPass(c, d, want)
	}
	for {
		k := d.known.Load()
		found, err := r.match(c, k, hash, want)
		if err != nil || k.allKeys(&d.e) {
			return found, err
		}
		told := false
		if found >= 0 {
			if told, err = r.keysBehind(c, d); err != nil {
				return -1, err
			}
		}
		if !told {
			if err := r.extend(c, d, d.e.count-1, want); err != nil {
				return -1, err
			}
		}
	}
}

// match returns the last of the children that were seen that has the key.
func (r *Reader) match(c *tocCursor, k *known, hash uint64, want []byte) (int64, error) {
	if i, ok := k.behind[string(want)]; ok {
		return i, nil
	}
	found := int64(-1)
	err := k.keys.candidates(hash, func(i int64) error {
		at, from := k.nearest(i)
		c.seek(at)
		if err := c.skip(2 * (i - from)); err != nil {
			return err
		}
		raw, err := c.key()
		if err == nil && i > found && bytes.Equal(canonicalKey(nil, c.codec, raw), want) {
			found = i
		}
		return err
	})
	return found, err
}

// maxTail is how much payload is read to spare a pass over the table.
const maxTail = 64 << 10

// keysBehind finds the keys of the children that were not seen yet without a pass over the node of the last that was,
// which may be long: what follows its value in the payload are the pairs that follow it in the table. It reports whether
// the payload told them.
func (r *Reader) keysBehind(c *tocCursor, d *directory) (bool, error) {
	k := *d.known.Load()
	if !d.e.hasRange || !k.partial {
		return false, nil
	}
	c.seek(k.nextAt)
	e, err := c.entry(d.e.start, d.e.end)
	if err != nil || e.whole || !e.hasRange || d.e.end-e.end > maxTail {
		return false, err
	}
	behind := make(map[string]int64)
	if e.end < d.e.end {
		p, err := r.read(c.ctx, e.end, d.e.end)
		if err != nil {
			return false, err
		}
		s := value.NewScanner(r.h.codec, p, r.s.limits)
		var canonical []byte
		for i := k.next; i < d.e.count; i++ {
			raw, err := s.Raw()
			if err != nil || s.Kind == value.End {
				return false, nil
			}
			canonical = canonicalKey(canonical[:0], r.h.codec, raw)
			behind[string(canonical)] = i
			r.s.keep(int64(len(canonical)) + 48)
			if s.Skip() != nil {
				return false, nil
			}
		}
		// A map of indefinite length ends with a break.
		rest := int64(len(p)) - s.Offset()
		if rest > 1 || rest == 1 && (r.h.codec != value.CBOR || p[len(p)-1] != cborBreak) {
			return false, nil
		}
	} else if k.next < d.e.count {
		return false, nil
	}
	k.behind = behind
	d.known.Store(&k)
	return true, nil
}

// findByPass looks for a key among more children than the key table takes.
func (r *Reader) findByPass(c *tocCursor, d *directory, want []byte) (int64, error) {
	found := int64(-1)
	c.seek(d.e.children)
	for i := range d.e.count {
		raw, err := c.key()
		if err != nil {
			return -1, err
		}
		if bytes.Equal(canonicalKey(nil, c.codec, raw), want) {
			found = i
		}
		if err := c.skip(1); err != nil {
			return -1, err
		}
	}
	if found < 0 {
		return -1, nil
	}
	return found, r.extend(c, d, found, nil)
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

// extendBlocks passes over the blocks that were not seen yet, until item i is among them, and returns what is known then.
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
