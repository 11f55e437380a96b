package series

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spilehq/spile/internal/wire"
)

// badUvarint is the error for a number that cannot be read.
func badUvarint(pos, n int) error {
	if n < 0 {
		return corrupt(70, "a number of more than 64 bits at byte %d of the chunk", pos)
	}
	return corrupt(70, "a number that does not end in the chunk, at byte %d", pos)
}

// uvarint reads a number of one to eight bytes that is followed by enough bytes to look at eight; k is 0 for another one.
func uvarint(p []byte) (v uint64, k int) {
	x := binary.LittleEndian.Uint64(p)
	ends := ^x & 0x8080808080808080
	if ends == 0 {
		return 0, 0
	}
	x &= ends ^ (ends - 1) // up to the first byte that ends a number
	x &= 0x7f7f7f7f7f7f7f7f
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	x = x&0x000000000fffffff | x&0x0fffffff00000000>>4
	return x, bits.TrailingZeros64(ends)>>3 + 1
}

// decodeDeltas decodes a chunk of n numbers (docs/format/series.md, "Deltas").
func decodeDeltas(p []byte, n int) ([]uint64, error) {
	out := make([]uint64, n) // n is at most the length of p, check 68
	return out, allDeltas(p, out)
}

// allDeltas decodes a chunk into memory for its numbers.
func allDeltas(p []byte, out []uint64) error {
	pos, err := deltas(p, 0, out)
	if err != nil {
		return err
	}
	if pos != len(p) {
		return corrupt(71, "%d bytes behind the %d numbers of the chunk", len(p)-pos, len(out))
	}
	return nil
}

// deltas decodes the next numbers of a chunk behind prev, and returns how many bytes they take.
func deltas(p []byte, prev uint64, out []uint64) (pos int, err error) {
	for i := range out {
		if pos < len(p) && p[pos] < 0x80 {
			prev += uint64(wire.UnZigZag64(uint64(p[pos])))
			pos++
			out[i] = prev
			continue
		}
		var u uint64
		k := 0
		if pos+8 <= len(p) {
			u, k = uvarint(p[pos:])
		}
		if k == 0 {
			if u, k = wire.Uvarint64(p[pos:]); k <= 0 {
				return pos, badUvarint(pos, k)
			}
		}
		prev += uint64(wire.UnZigZag64(u))
		out[i] = prev
		pos += k
	}
	return pos, nil
}

func appendDeltas(dst []byte, v []uint64) []byte {
	var prev uint64
	for _, x := range v {
		u := wire.ZigZag64(int64(x - prev))
		prev = x
		for u >= 0x80 {
			dst = append(dst, byte(u)|0x80)
			u >>= 7
		}
		dst = append(dst, byte(u))
	}
	return dst
}

// checkTSIDs makes check 72.
func checkTSIDs(v []uint64, b *block) error {
	for i := 1; i < len(v); i++ {
		if v[i] <= v[i-1] {
			return corrupt(72, "TSID %d of row %d is not above that of the row before, %d", v[i], i, v[i-1])
		}
	}
	if v[0] != b.First.TSID || v[len(v)-1] != b.Last.TSID {
		return corrupt(72, "the TSIDs go from %d to %d, the block says %d to %d", v[0], v[len(v)-1], b.First.TSID, b.Last.TSID)
	}
	return nil
}

// dict is a decoded tag column: the distinct values and, for each row, which one it has. Code 0 is null.
type dict struct {
	values []string // values[0] is ""; they share memory
	codes  []uint32
}

// dictionary returns the dictionary of a chunk, and where the codes behind it begin.
func dictionary(p []byte) (text []byte, pos int, err error) {
	size, k := wire.Uvarint64(p)
	if k <= 0 {
		return nil, 0, badUvarint(0, k)
	}
	if size < 9 || size > uint64(len(p)-k) {
		return nil, 0, corrupt(73, "a dictionary of %d bytes in a chunk of %d", size, len(p))
	}
	pos = k + int(size)
	return p[k:pos], pos, nil
}

// checkCount checks the number of the entries of a dictionary of size bytes, before memory is taken for them.
func checkCount(count uint64, size int) error {
	if most := 1 + uint64(size-9)/9; count < 1 || count > most {
		return corrupt(73, "a dictionary of %d entries in %d bytes, 1 to %d", count, size, most)
	}
	return nil
}

// decodeDict decodes a chunk of the tag values of n rows, of which nulls are null, and makes checks 70 and 73 to 77.
func decodeDict(p []byte, n int, nulls uint32) (*dict, error) {
	d := &dict{}
	if err := d.decode(p, n, nulls); err != nil {
		return nil, err
	}
	return d, nil
}

// checkDict is decodeDict for the checks alone: a reader makes them of all of a chunk that it uses, whatever part of it leads
// to the answer.
func checkDict(p []byte, n int, nulls uint32) error {
	d, _ := checkedDicts.Get().(*dict)
	if d == nil {
		d = &dict{}
	}
	err := d.decode(p, n, nulls)
	if cap(d.values) <= 1<<16 && cap(d.codes) <= 1<<16 {
		clear(d.values[:cap(d.values)]) // which hold the text
		checkedDicts.Put(d)
	}
	return err
}

var checkedDicts sync.Pool // of *dict

// decode is decodeDict into memory that is there.
func (d *dict) decode(p []byte, n int, nulls uint32) error {
	text, pos, err := dictionary(p)
	if err != nil {
		return err
	}
	if err := d.entries(string(text)); err != nil {
		return err
	}
	d.codes = slices.Grow(d.codes[:0], n)[:n]
	count := uint64(len(d.values))
	var zero uint32
	for i := range d.codes {
		var code uint64
		if pos < len(p) && p[pos] < 0x80 {
			code = uint64(p[pos])
			pos++
		} else if pos+1 < len(p) && p[pos+1] < 0x80 {
			code = uint64(p[pos]&0x7f) | uint64(p[pos+1])<<7
			pos += 2
		} else {
			u, k := wire.Uvarint64(p[pos:])
			if k <= 0 {
				return badUvarint(pos, k)
			}
			code = u
			pos += k
		}
		if code >= count {
			return corrupt(76, "code %d of row %d, the dictionary has %d entries", code, i, count)
		}
		if code == 0 {
			zero++
		}
		d.codes[i] = uint32(code)
	}
	if pos != len(p) {
		return corrupt(76, "%d bytes behind the %d codes of the chunk", len(p)-pos, n)
	}
	if zero != nulls {
		return corrupt(77, "%d rows are null, the descriptor says %d", zero, nulls)
	}
	return nil
}

// entries reads the entries of a dictionary.
func (d *dict) entries(text string) error {
	count := leU64(text)
	if err := checkCount(count, len(text)); err != nil {
		return err
	}
	pos := 8
	d.values = slices.Grow(d.values[:0], int(count))[:count]
	d.values[0] = ""
	seen := newDistinct(int(count))
	defer seen.release()
	plain := isASCII(text)
	for i := range d.values {
		if pos >= len(text) {
			return corrupt(74, "the dictionary ends in front of entry %d of %d", i, count)
		}
		present := text[pos]
		if want := byte(min(i, 1)); present != want {
			return corrupt(74, "entry %d has the presence %d, not %d", i, present, want)
		}
		if pos++; i == 0 {
			continue
		}
		if len(text)-pos < 8 || leU64(text[pos:]) > uint64(len(text)-pos-8) {
			return corrupt(74, "entry %d does not fit into the dictionary", i)
		}
		n := int(leU64(text[pos:]))
		v := text[pos+8 : pos+8+n]
		if !plain && !utf8.ValidString(v) {
			return corrupt(74, "entry %d is not UTF-8", i)
		}
		d.values[i] = v
		if !seen.add(d.values, i) {
			return corrupt(75, "entry %d, %q, is there twice", i, short(v))
		}
		pos += 8 + n
	}
	if pos != len(text) {
		return corrupt(74, "%d bytes behind the entries of the dictionary", len(text)-pos)
	}
	return nil
}

// isASCII reports whether no byte of a text is above 0x7f.
func isASCII(text string) bool {
	for len(text) >= 8 {
		if leU64(text)&0x8080808080808080 != 0 {
			return false
		}
		text = text[8:]
	}
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// distinct is a table of hashes of values, by which two equal ones are found: for each the half of its hash that is not its
// place, and its index.
type distinct struct {
	slots []uint64
	mask  uint64
}

var (
	distinctSeed  = maphash.MakeSeed() // of this process, so that no file can have values whose hashes are equal
	distinctTable sync.Pool            // of *distinct
)

// newDistinct returns a table for some values, of at most half its slots.
func newDistinct(count int) *distinct {
	size := 16
	for size < 2*count {
		size *= 2
	}
	t, _ := distinctTable.Get().(*distinct)
	if t == nil {
		t = &distinct{}
	}
	if cap(t.slots) < size {
		t.slots = make([]uint64, size)
	}
	t.slots, t.mask = t.slots[:size], uint64(size-1)
	clear(t.slots)
	return t
}

// grow doubles the table, for values of which it holds as many as there are.
func (t *distinct) grow(values []string) {
	t.slots = make([]uint64, 2*len(t.slots))
	t.mask = uint64(len(t.slots) - 1)
	for i := 1; i < len(values); i++ {
		t.add(values, i)
	}
}

// release gives a table to the next one that needs it, but for one that is larger than most.
func (t *distinct) release() {
	if cap(t.slots) <= 1<<17 {
		distinctTable.Put(t)
	}
}

// add adds values[i], i at least 1. It reports false when the value is there.
func (t *distinct) add(values []string, i int) bool {
	v := values[i]
	hash := maphash.String(distinctSeed, v)
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := t.slots[at]
		if s == 0 {
			t.slots[at] = hash&^0xffffffff | uint64(i)
			return true
		}
		if s>>32 == hash>>32 && values[uint32(s)] == v {
			return false
		}
	}
}

// short is a value as messages show it.
func short(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

func leU64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// appendDict appends the chunk of a tag: the distinct values in the order of their first row, and the codes of all rows.
func appendDict(dst []byte, values []string, codes []uint32) []byte {
	size := 9
	for _, v := range values {
		size += 9 + len(v)
	}
	dst = wire.AppendUvarint64(dst, uint64(size))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(values))+1)
	dst = append(dst, 0)
	for _, v := range values {
		dst = appendText(append(dst, 1), v)
	}
	for _, c := range codes {
		switch {
		case c < 1<<7:
			dst = append(dst, byte(c))
		case c < 1<<14:
			dst = append(dst, byte(c)|0x80, byte(c>>7))
		default:
			dst = wire.AppendUvarint64(dst, uint64(c))
		}
	}
	return dst
}
