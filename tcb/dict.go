package tcb

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/internal/wire"
)

// strings decodes the values of a String column. Those of one block share one buffer.
func (b *block) strings(c *Column, enc Encoding, n int) error {
	c.Strings = make([]string, n)
	if enc == Raw {
		// The text with the lengths in it costs a byte a string more than the text alone, and saves a pass.
		start := b.pos
		text := string(b.p[start:])
		for i := range c.Strings {
			from, to, err := b.string()
			if err != nil {
				return err
			}
			c.Strings[i] = text[from-start : to-start]
		}
		return nil
	}
	var entries []string
	var err error
	switch enc {
	case Dict, DictRLE:
		entries, err = b.plainEntries()
	case DictFront, DictFrontRLE:
		entries, err = b.frontEntries("entry")
	default:
		entries, err = b.segmentEntries()
	}
	if err != nil {
		return err
	}
	return gather(b, enc == DictRLE || enc == DictFrontRLE || enc == DictSegRLE, c.Strings, entries)
}

// string reads a string, and returns where its text lies in the block.
func (b *block) string() (from, to int, err error) {
	at := b.pos
	n, err := b.counter()
	switch {
	case err != nil:
		return 0, 0, err
	case n < 0:
		return 0, 0, failed("D8", "a string of %d bytes", n).At(int64(at))
	case int(n) > b.left():
		return 0, 0, failed("D1", "a string of %d bytes, and %d are left", n, b.left()).At(int64(at))
	}
	from = b.pos
	b.pos += int(n)
	if b.utf8 && !utf8.Valid(b.p[from:b.pos]) {
		return 0, 0, failed("text", "a string that is no UTF-8").At(int64(from))
	}
	return from, b.pos, nil
}

// plainEntries reads a dictionary whose entries are strings.
func (b *block) plainEntries() ([]string, error) {
	n, err := b.count("entry count")
	if err != nil {
		return nil, err
	}
	if err := b.budget.take(int64(n), 16); err != nil {
		return nil, err
	}
	start := b.pos
	for range n {
		if _, _, err := b.string(); err != nil {
			return nil, err
		}
	}
	text := string(b.p[start:b.pos])
	b.pos = start
	entries := make([]string, n)
	for i := range entries {
		from, to, err := b.string()
		if err != nil {
			return nil, err
		}
		entries[i] = text[from-start : to-start]
	}
	return entries, nil
}

// front reads the head of a front-coded entry, what it shares with the one before and what it adds, and passes over
// the text.
func (b *block) front(what string, before int) (shared int, rest []byte, err error) {
	at := b.pos
	v, err := b.counter()
	switch {
	case err != nil:
		return 0, nil, err
	case v < 0:
		return 0, nil, failed("D4", "the %s shares %d bytes", what, v).At(int64(at))
	case int(v) > before:
		return 0, nil, failed("D4", "the %s shares %d bytes with one of %d", what, v, before).At(int64(at))
	}
	at = b.pos
	n, err := b.counter()
	switch {
	case err != nil:
		return 0, nil, err
	case n < 0:
		return 0, nil, failed("D4", "the %s adds %d bytes", what, n).At(int64(at))
	}
	rest, err = b.bytes(int64(n), "the text of an entry")
	return int(v), rest, err
}

// frontEntries reads front-coded strings. The first pass sums their lengths up, so that nothing is allocated that a few
// bytes of the file only claim.
func (b *block) frontEntries(what string) ([]string, error) {
	n, err := b.count(what + " count")
	if err != nil {
		return nil, err
	}
	if err := b.budget.take(int64(n), 16); err != nil {
		return nil, err
	}
	start, before, total := b.pos, 0, int64(0)
	for range n {
		shared, rest, err := b.front(what, before)
		if err != nil {
			return nil, err
		}
		before = shared + len(rest)
		total += int64(before) // a length below 2 GiB each time, and fewer entries than that
	}
	if err := b.budget.take(total, 1); err != nil {
		return nil, err
	}
	end := b.pos
	b.pos = start
	var text strings.Builder
	text.Grow(int(total))
	entries := make([]string, n)
	last := ""
	for i := range entries {
		shared, rest, _ := b.front(what, len(last))
		from := text.Len()
		text.WriteString(last[:shared])
		text.Write(rest)
		last = text.String()[from:]
		entries[i] = last
		if what != "entry" {
			continue // a piece may end inside a character
		}
		if err := b.checkUTF8(last, b.pos-len(rest)); err != nil {
			return nil, err
		}
	}
	b.pos = end
	return entries, nil
}

// segmentEntries reads strings that are made of pieces.
func (b *block) segmentEntries() ([]string, error) {
	segments, err := b.frontEntries("segment")
	if err != nil {
		return nil, err
	}
	n, err := b.count("entry count")
	if err != nil {
		return nil, err
	}
	if err := b.budget.take(int64(n), 16); err != nil {
		return nil, err
	}
	start, total := b.pos, int64(0)
	for range n {
		pieces, err := b.count("piece count")
		if err != nil {
			return nil, err
		}
		for range pieces {
			at := b.pos
			k, err := b.counter()
			if err != nil {
				return nil, err
			}
			if k < 0 || int(k) >= len(segments) {
				return nil, failed("D3", "piece %d of %d segments", k, len(segments)).At(int64(at))
			}
			total += int64(len(segments[k]))
		}
	}
	if err := b.budget.take(total, 1); err != nil {
		return nil, err
	}
	b.pos = start
	var text strings.Builder
	text.Grow(int(total))
	entries := make([]string, n)
	for i := range entries {
		from := text.Len()
		pieces, _ := b.counter()
		for range pieces {
			k, _ := b.counter()
			text.WriteString(segments[k])
		}
		entries[i] = text.String()[from:]
		if err := b.checkUTF8(entries[i], b.pos); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// dictionary is what the writer knows of the strings of a column: the distinct ones in the order of their first
// appearance, and for each value which one it is.
type dictionary struct {
	entries []string
	indexes []int32
}

func newDictionary(v []string) dictionary {
	d := dictionary{indexes: make([]int32, len(v))}
	seen := make(map[string]int32)
	for i, s := range v {
		k, ok := seen[s]
		if !ok {
			k = int32(len(d.entries))
			seen[s] = k
			d.entries = append(d.entries, s)
		}
		d.indexes[i] = k
	}
	return d
}

// indexBits returns for each value of at most 64 bits which distinct one it is, and those in the order of their first
// appearance. It has its own table, of which a probe is one cache miss: with a million distinct values it takes a tenth of
// the time of a map. Values that are all distinct take 25 to 40 bytes each here.
func indexBits[T any](v []T, bitsOf func(T) uint64) (indexes []int32, keys []uint64) {
	// A slot is half of the hash, and behind it the number of the value, + 1; 0 is free.
	table := make([]uint64, 1<<10)
	shift := 64 - 10
	most := roomOf(len(table))
	keys = make([]uint64, 0, min(most, len(v)))
	indexes = make([]int32, len(v))
	for i, x := range v {
		key := bitsOf(x)
		hash := hashBits(key)
		at := int(hash >> shift)
		for {
			s := table[at]
			if s == 0 {
				indexes[i] = int32(len(keys))
				if len(keys) < most {
					keys = append(keys, key)
					table[at] = hash<<32 | uint64(len(keys))
				} else {
					table = nil // so that it can go before the next one comes
					shift--
					if len(keys) >= manyKeys && len(keys)/9 >= i/10 { // nearly all are distinct, and will be
						for shift > 1 && roomOf(1<<(64-shift)) < len(v) {
							shift--
						}
					}
					table = make([]uint64, 1<<(64-shift))
					most = roomOf(len(table))
					keys = append(append(make([]uint64, 0, min(most, len(v))), keys...), key)
					for k, old := range keys {
						putKey(table, shift, hashBits(old), k)
					}
				}
				break
			}
			if k := uint32(s) - 1; s>>32 == hash&math.MaxUint32 && keys[k] == key {
				indexes[i] = int32(k)
				break
			}
			at = (at + 1) & (len(table) - 1)
		}
	}
	return indexes, keys
}

// manyKeys is from how many distinct values on a table may grow at once to what all values need. One that turns out too
// large is slow, since it does not fit into a cache.
const manyKeys = 1 << 16

// roomOf is how many values a table of n slots takes.
func roomOf(n int) int { return n / 8 * 5 }

// putKey puts value k, which is not there, into a free slot.
func putKey(table []uint64, shift int, hash uint64, k int) {
	at := int(hash >> shift)
	for table[at] != 0 {
		at = (at + 1) & (len(table) - 1)
	}
	table[at] = hash<<32 | uint64(k+1)
}

// hashBits mixes all bits of a key into the upper ones, which say the slot, and the lower ones, which are kept in it.
func hashBits(key uint64) uint64 {
	hi, lo := bits.Mul64(key^0xa0761d6478bd642f, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

// remap returns the indexes into entries that stand in another order; rank is where each went.
func (d dictionary) remap(rank []int32) []int32 {
	out := make([]int32, len(d.indexes))
	for i, k := range d.indexes {
		out[i] = rank[k]
	}
	return out
}

// sorted returns the strings in the order of their bytes, and where each went.
func sorted(v []string) (out []string, rank []int32) {
	order := make([]int32, len(v))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(v[a], v[b]) })
	out, rank = make([]string, len(v)), make([]int32, len(v))
	for i, k := range order {
		out[i], rank[k] = v[k], int32(i)
	}
	return out, rank
}

// appendFront appends sorted strings, each by what it adds to the one before.
func appendFront(dst []byte, v []string) []byte {
	dst = wire.AppendVarint32(dst, int32(len(v)))
	last := ""
	for _, s := range v {
		n := commonPrefix(last, s)
		dst = wire.AppendVarint32(dst, int32(n))
		dst = wire.AppendVarint32(dst, int32(len(s)-n))
		dst = append(dst, s[n:]...)
		last = s
	}
	return dst
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// nextPiece returns the length of the first piece of s, which is not empty (docs/format/tcb.md, "DICT_SEG").
func nextPiece(s string) int {
	for i := range len(s) {
		switch s[i] {
		case '_', '-', '/', '.', '\\', ':', ' ', '|':
			return i + 1
		}
		if i+1 < len(s) && isDigit(s[i]) != isDigit(s[i+1]) {
			return i + 1
		}
	}
	return len(s)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// appendSegments appends the segment table of the entries and the entries by their pieces.
func appendSegments(dst []byte, entries []string) []byte {
	seen := make(map[string]int32)
	var distinct []string
	var pieces []int32 // of all entries
	counts := make([]int32, len(entries))
	for i, s := range entries {
		for len(s) > 0 {
			n := nextPiece(s)
			k, ok := seen[s[:n]]
			if !ok {
				k = int32(len(distinct))
				seen[s[:n]] = k
				distinct = append(distinct, s[:n])
			}
			pieces = append(pieces, k)
			counts[i]++
			s = s[n:]
		}
	}
	table, rank := sorted(distinct)
	dst = appendFront(dst, table)
	dst = wire.AppendVarint32(dst, int32(len(entries)))
	for _, n := range counts {
		dst = wire.AppendVarint32(dst, n)
		for _, k := range pieces[:n] {
			dst = wire.AppendVarint32(dst, rank[k])
		}
		pieces = pieces[n:]
	}
	return dst
}
