package series

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spilehq/spile/internal/box"
	"github.com/spilehq/spile/internal/wire"
)

// dict is a decoded tag column of a block: its distinct values, and of each row the code, which is the number of its value. Code
// 0 is null.
type dict struct {
	text  string   // the dictionary as it is stored
	at    []uint32 // where the value of each entry begins in the text; behind them, as if there was one more
	codes codes

	room     codes // memory for codes of each kind, that of codes among it
	borrowed bool  // the text is in memory that others use later
}

// entryHead is what stands in front of the value of an entry: its presence, and its length.
const entryHead = 9

// len is the number of entries; the first is null.
func (d *dict) len() int { return len(d.at) - 1 }

// value is that of an entry, a part of the text; of null it is "".
func (d *dict) value(entry uint32) string { return d.text[d.at[entry] : d.at[entry+1]-entryHead] }

// values are those of all entries, for whoever wants to keep them.
func (d *dict) values() []string {
	if d.borrowed {
		d.text, d.borrowed = strings.Clone(d.text), false
	}
	values := make([]string, d.len())
	for i := range values {
		values[i] = d.value(uint32(i))
	}
	return values
}

// size is what the column takes in memory.
func (d *dict) size() int64 {
	return int64(len(d.text)) + 4*int64(len(d.at)) + int64(d.codes.bytes())
}

// codes are those of all rows, in the narrowest of the three kinds of numbers that has room for each entry of the dictionary; the
// others are nil.
type codes struct {
	narrow []uint8
	medium []uint16
	wide   []uint32
}

// code is a number of an entry.
type code interface{ uint8 | uint16 | uint32 }

// len is the number of rows.
func (c *codes) len() int { return len(c.narrow) + len(c.medium) + len(c.wide) }

// at is the code of row k.
func (c *codes) at(k int) uint32 {
	switch {
	case c.narrow != nil:
		return uint32(c.narrow[k])
	case c.medium != nil:
		return uint32(c.medium[k])
	}
	return c.wide[k]
}

// bytes is what the codes take in memory.
func (c *codes) bytes() int { return cap(c.narrow) + 2*cap(c.medium) + 4*cap(c.wide) }

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

// decodeDict decodes a chunk of the tag values of n rows, of which nulls are null, and makes checks 70 and 73 to 77. It keeps
// nothing of the chunk.
func decodeDict(p []byte, n int, nulls uint32) (*dict, error) {
	d := &dict{}
	if err := d.decode(p, n, nulls); err != nil {
		return nil, err
	}
	d.text, d.borrowed = strings.Clone(d.text), false
	return d, nil
}

// decode is decodeDict into memory that is there. The text is in that of the chunk.
func (d *dict) decode(p []byte, n int, nulls uint32) error {
	text, pos, err := dictionary(p)
	if err != nil {
		return err
	}
	d.text, d.borrowed = box.Text(text), true
	if err := d.entries(); err != nil {
		return err
	}
	d.codes = codes{}
	var zero int
	switch count := d.len(); {
	case count <= 1<<8:
		d.room.narrow, zero, pos, err = readCodes(p, pos, n, count, d.room.narrow)
		d.codes.narrow = d.room.narrow
	case count <= 1<<16:
		d.room.medium, zero, pos, err = readCodes(p, pos, n, count, d.room.medium)
		d.codes.medium = d.room.medium
	default:
		d.room.wide, zero, pos, err = readCodes(p, pos, n, count, d.room.wide)
		d.codes.wide = d.room.wide
	}
	if err != nil {
		return err
	}
	if pos != len(p) {
		return corrupt(76, "%d bytes behind the %d codes of the chunk", len(p)-pos, n)
	}
	if uint64(zero) != uint64(nulls) {
		return corrupt(77, "%d rows are null, the descriptor says %d", zero, nulls)
	}
	return nil
}

// entries finds the entries in the text.
func (d *dict) entries() error {
	text := d.text
	count := leU64(text)
	if most := 1 + uint64(len(text)-9)/entryHead; count < 1 || count > most { // before memory is taken for them
		return corrupt(73, "a dictionary of %d entries in %d bytes, 1 to %d", count, len(text), most)
	}
	if text[8] != 0 {
		return corrupt(74, "entry 0 has the presence %d, not 0", text[8])
	}
	d.at = slices.Grow(d.at[:0], int(count)+1)[:count+1]
	d.at[0] = 9
	seen := newDistinct(int(count))
	defer seen.release()
	plain := isASCII(text[8:]) // the number in front may be any
	pos := 9
	for i := 1; i < int(count); i++ {
		if pos >= len(text) {
			return corrupt(74, "the dictionary ends in front of entry %d of %d", i, count)
		}
		if text[pos] != 1 {
			return corrupt(74, "entry %d has the presence %d, not 1", i, text[pos])
		}
		if len(text)-pos < entryHead || leU64(text[pos+1:]) > uint64(len(text)-pos-entryHead) {
			return corrupt(74, "entry %d does not fit into the dictionary", i)
		}
		n := int(leU64(text[pos+1:]))
		pos += entryHead
		d.at[i] = uint32(pos)
		v := text[pos : pos+n]
		pos += n
		if !plain && !utf8.ValidString(v) {
			return corrupt(74, "entry %d is not UTF-8", i)
		}
		d.at[i+1] = uint32(pos + entryHead)
		if !seen.add(d, uint32(i), v) {
			return corrupt(75, "entry %d, %q, is there twice", i, short(v))
		}
	}
	if pos != len(text) {
		return corrupt(74, "%d bytes behind the entries of the dictionary", len(text)-pos)
	}
	d.at[count] = uint32(pos + entryHead)
	return nil
}

// readCodes reads the codes of n rows, which begin at pos of a chunk, for a dictionary of count entries, and counts those that are
// zero. next is where they end.
func readCodes[C code](p []byte, pos, n, count int, out []C) (_ []C, zero, next int, err error) {
	if cap(out) < n || out == nil {
		out = make([]C, n) // n is at most the length of p, check 68
	}
	out = out[:n]
	i := 0
	if count <= 0x80 && len(p)-pos >= n { // each takes a byte, unless it is longer than it need be
		row := p[pos : pos+n]
		i = countBelow(row, byte(count))
		if narrow, ok := any(out).([]uint8); ok {
			copy(narrow, row[:i])
		} else {
			for k, code := range row[:i] {
				out[k] = C(code)
			}
		}
		zero = bytes.Count(row[:i], []byte{0})
		pos += i
	}
	for ; i < n; i++ {
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
				return out, zero, pos, badUvarint(pos, k)
			}
			code = u
			pos += k
		}
		if code >= uint64(count) {
			return out, zero, pos, corrupt(76, "code %d of row %d, the dictionary has %d entries", code, i, count)
		}
		if code == 0 {
			zero++
		}
		out[i] = C(code)
	}
	return out, zero, pos, nil
}

// countBelow is how many bytes there are in front of the first that is not below most, which is 0x80 at most.
func countBelow(p []byte, most byte) int {
	const high = 0x8080808080808080
	add := uint64(0x80-most) * 0x0101010101010101 // which takes a byte of most and more to the high bit
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		if (x|(x&^high+add))&high != 0 {
			break
		}
	}
	for i < len(p) && p[i] < most {
		i++
	}
	return i
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

// distinct is a table of hashes of the entries of a dictionary, by which two equal ones are found: for each its number, and above
// that as much of the end of its hash as there is room for. Its place is the beginning of the hash.
type distinct struct {
	slots  []uint32
	mask   uint64
	number uint // bits of a number
}

// The seeds are those of this process, so that no file can have values whose hashes are equal.
var (
	distinctSeed  = maphash.MakeSeed()
	distinctSeeds = [2]uint64{rand.Uint64(), rand.Uint64()}
	distinctTable sync.Pool // of *distinct
)

// newDistinct returns a table for some entries, of at most half its slots.
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
		t.slots = make([]uint32, size)
	}
	t.slots, t.mask = t.slots[:size], uint64(size-1)
	t.number = uint(bits.Len(uint(count))) // a dictionary has far fewer than 2^32 entries
	clear(t.slots)
	return t
}

// release gives a table to the next one that needs it, but for one that is larger than most.
func (t *distinct) release() {
	if cap(t.slots) <= 1<<18 {
		distinctTable.Put(t)
	}
}

// add adds an entry, 1 at least, with its value. It reports false when the value is there.
func (t *distinct) add(d *dict, entry uint32, v string) bool {
	hash := hashText(v)
	number := t.number & 31
	end := uint32(hash>>32) >> number << number
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := t.slots[at]
		if s == 0 {
			t.slots[at] = end | entry
			return true
		}
		if s>>number<<number == end && d.value(s&(1<<number-1)) == v {
			return false
		}
	}
}

// hashText is a hash of a text. Most are short: they are two words, with the length.
func hashText(v string) uint64 {
	var a, b uint64
	switch n := len(v); {
	case n > 16:
		return maphash.String(distinctSeed, v)
	case n >= 8:
		a, b = leU64(v), leU64(v[n-8:])
	case n >= 4:
		a, b = uint64(leU32(v)), uint64(leU32(v[n-4:]))
	case n > 0:
		a, b = uint64(v[0])|uint64(v[n/2])<<8, uint64(v[n-1])
	}
	hi, lo := bits.Mul64(a^distinctSeeds[0], b^distinctSeeds[1]^uint64(len(v))<<56)
	return hi ^ lo
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

func leU32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
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
