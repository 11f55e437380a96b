package series

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
)

// tagChunk is the chunk of a tag of a block, decompressed, and decoded once somebody needs all of its rows. It is safe for
// concurrent use.
type tagChunk struct {
	series int
	nulls  uint32
	state  atomic.Pointer[chunkState]

	cache *Cache // that remembers it as key; nil: none
	key   cacheKey
}

// chunkState has one of the two.
type chunkState struct {
	p []byte // as it is stored
	d *dict
}

func newTagChunk(p []byte, series int, nulls uint32) *tagChunk {
	c := &tagChunk{series: series, nulls: nulls}
	c.state.Store(&chunkState{p: p})
	return c
}

// dict decodes the chunk.
func (c *tagChunk) dict() (*dict, error) {
	s := c.state.Load()
	if s.d != nil {
		return s.d, nil
	}
	d, err := decodeDict(s.p, c.series, c.nulls)
	if err == nil && c.state.CompareAndSwap(s, &chunkState{d: d}) && c.cache != nil {
		c.cache.resize(c.key, c.size(len(s.p)))
	}
	return d, err
}

// size is what the chunk takes in memory, whose bytes without compression are decoded.
func (c *tagChunk) size(decoded int) int64 {
	if d := c.state.Load().d; d != nil {
		return int64(decoded) + 4*int64(c.series) + 16*int64(len(d.values))
	}
	return int64(decoded)
}

// lacks reports whether no value of the chunk can match, for a matcher that does not select nulls in it. It looks for bytes
// that every match has in it, which takes a small part of the time of decoding.
func (c *tagChunk) lacks(m *Matcher) bool {
	s := c.state.Load()
	if s.d != nil {
		return false // matching tells as fast
	}
	entries, _, err := dictionary(s.p)
	if err != nil {
		return false // decoding says what is wrong
	}
	entries = entries[8:]
	switch {
	case m.Op == Equal:
		return !hasEntry(entries, m.Value)
	case m.Op == Regexp && m.pattern.kind == patternSet:
		return len(m.pattern.set) <= 8 && !slices.ContainsFunc(m.pattern.set, func(v string) bool { return hasEntry(entries, v) })
	case m.Op == Regexp:
		return !bytes.Contains(entries, []byte(m.needle()))
	}
	return false
}

// needle is a text that is in every value which the text or the pattern of the matcher stands for, negated or not. It may be
// empty.
func (m *Matcher) needle() string {
	switch {
	case m.Op == Equal || m.Op == NotEqual:
		return m.Value
	case m.pattern == nil || m.pattern.kind == patternSet:
		return ""
	case m.pattern.text != "":
		return m.pattern.text
	}
	return m.pattern.prefix
}

// match takes the rows out of alive, which is nil for all rows, that a matcher does not select, and returns the number of
// values that were looked at. It keeps nothing of the chunk, and makes checks 73, 74, 76 and 77.
func (c *tagChunk) match(ctx context.Context, p []byte, m *Matcher, null bool, alive []uint64) (left []uint64, ran int64, err error) {
	text, pos, err := dictionary(p)
	if err != nil {
		return nil, 0, err
	}
	hit, some, err := matchEntries(ctx, string(text), m)
	if err != nil {
		return nil, 0, err
	}
	hit[0] = null
	ran = int64(len(hit) - 1)
	if !some && !null {
		return make([]uint64, (c.series+63)/64), ran, nil
	}
	left, err = c.matchCodes(p, pos, hit, alive)
	return left, ran, err
}

// values are those of the dictionary, without null.
func (c *tagChunk) values() ([]string, error) {
	state := c.state.Load()
	if state.d != nil {
		return state.d.values[1:], nil
	}
	text, _, err := dictionary(state.p)
	if err != nil {
		return nil, err
	}
	d := &dict{}
	if err := d.entries(string(text)); err != nil {
		return nil, err
	}
	return d.values[1:], nil
}

// matchEntries reports which entries of a dictionary a matcher selects, and whether it selects one.
func matchEntries(ctx context.Context, text string, m *Matcher) (hit []bool, some bool, err error) {
	count := leU64(text)
	if err := checkCount(count, len(text)); err != nil {
		return nil, false, err
	}
	if text[8] != 0 {
		return nil, false, corrupt(74, "entry 0 has the presence %d, not 0", text[8])
	}
	hit = make([]bool, count)
	plain := isASCII(text)
	needle, negated := m.needle(), m.Op == NotEqual || m.Op == NotRegexp
	next := -1 // where the needle is, not in front of the entry
	pos, spent := 9, int64(0)
	for i := 1; i < len(hit); i++ {
		if len(text)-pos < 9 || text[pos] != 1 || leU64(text[pos+1:]) > uint64(len(text)-pos-9) {
			return nil, false, corrupt(74, "entry %d does not fit into the dictionary, or has no presence", i)
		}
		n := int(leU64(text[pos+1:]))
		pos += 9
		v := text[pos : pos+n]
		if !plain && !utf8.ValidString(v) {
			return nil, false, corrupt(74, "entry %d is not UTF-8", i)
		}
		if next < pos {
			if next = strings.Index(text[pos:], needle); next < 0 {
				next = len(text)
			} else {
				next += pos
			}
		}
		if next+len(needle) <= pos+n {
			hit[i] = m.matchesWithin(ctx, v)
			if spent += m.cost(v); spent >= costly {
				spent = 0
				if err := ctx.Err(); err != nil {
					return nil, false, fault.New(nil, "series", "").Because(err)
				}
			}
		} else {
			hit[i] = negated
		}
		some = some || hit[i]
		pos += n
	}
	if pos != len(text) {
		return nil, false, corrupt(74, "%d bytes behind the entries of the dictionary", len(text)-pos)
	}
	return hit, some, nil
}

// matchCodes reads the codes of all rows.
func (c *tagChunk) matchCodes(p []byte, pos int, hit []bool, alive []uint64) ([]uint64, error) {
	if alive == nil {
		alive = make([]uint64, (c.series+63)/64)
		for w := range alive {
			alive[w] = ^uint64(0)
		}
		if rest := c.series % 64; rest > 0 {
			alive[len(alive)-1] = 1<<rest - 1
		}
	}
	zero := uint32(0)
	var word uint64
	for i := range c.series {
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
				return nil, badUvarint(pos, k)
			}
			code = u
			pos += k
		}
		if code >= uint64(len(hit)) {
			return nil, corrupt(76, "code %d of row %d, the dictionary has %d entries", code, i, len(hit))
		}
		if code == 0 {
			zero++
		}
		if hit[code] {
			word |= 1 << (i & 63)
		}
		if i&63 == 63 {
			alive[i>>6] &= word
			word = 0
		}
	}
	if rest := c.series % 64; rest > 0 {
		alive[len(alive)-1] &= word
	}
	if pos != len(p) {
		return nil, corrupt(76, "%d bytes behind the %d codes of the chunk", len(p)-pos, c.series)
	}
	if zero != c.nulls {
		return nil, corrupt(77, "%d rows are null, the descriptor says %d", zero, c.nulls)
	}
	return alive, nil
}

// hasEntry reports whether the encoded entry of a value is among some bytes.
func hasEntry(entries []byte, v string) bool {
	if v == "" {
		return true
	}
	// The value first, since the bytes in front of it are those of most entries.
	for at := 0; ; {
		i := bytes.Index(entries[at:], []byte(v))
		if i < 0 {
			return false
		}
		at += i
		if at >= 9 && entries[at-9] == 1 && binary.LittleEndian.Uint64(entries[at-8:]) == uint64(len(v)) {
			return true
		}
		at++
	}
}

// pick decodes some rows, which ascend: the codes of the result are those of these rows, not of all, and its values are
// those that they have.
func (c *tagChunk) pick(of []int) (*dict, error) {
	s := c.state.Load()
	if s.d != nil {
		d := &dict{values: s.d.values, codes: make([]uint32, len(of))}
		for i, k := range of {
			d.codes[i] = s.d.codes[k]
		}
		return d, nil
	}
	return pickDict(s.p, c.series, of)
}

func pickDict(p []byte, series int, of []int) (*dict, error) {
	entries, at, err := dictionary(p)
	if err != nil {
		return nil, err
	}
	count := binary.LittleEndian.Uint64(entries)
	if err := checkCount(count, len(entries)); err != nil {
		return nil, err
	}
	d := &dict{codes: make([]uint32, len(of))}
	row := 0
	for i, k := range of {
		if k > row {
			n := skipUvarints(p[at:], k-row)
			if n < 0 {
				return nil, corrupt(76, "the codes end in front of row %d of %d", k, series)
			}
			at += n
		}
		code, n := wire.Uvarint64(p[at:])
		if n <= 0 {
			return nil, badUvarint(at, n)
		}
		if code >= count {
			return nil, corrupt(76, "code %d of row %d, the dictionary has %d entries", code, k, count)
		}
		at += n
		row = k + 1
		d.codes[i] = uint32(code)
	}
	return d, d.pickEntries(entries)
}

// pickEntries reads the entries that the codes name, and gives them new numbers.
func (d *dict) pickEntries(entries []byte) error {
	if entries[8] != 0 {
		return corrupt(74, "entry 0 has the presence %d, not 0", entries[8])
	}
	// The new number of each code, where there are many; of few, the sorted codes.
	var number []uint32
	var wanted []uint32
	last := uint32(0)
	for _, code := range d.codes {
		last = max(last, code)
	}
	if len(d.codes) > 16 {
		number = make([]uint32, last+1)
		for _, code := range d.codes {
			number[code] = 1
		}
	} else {
		wanted = slices.Clone(d.codes)
		slices.Sort(wanted)
		wanted = slices.Compact(wanted)
	}
	var text []byte
	var ends []int
	pos, next := 9, 0
	for entry := uint32(1); entry <= last; entry++ {
		if len(entries)-pos < 9 || entries[pos] != 1 || binary.LittleEndian.Uint64(entries[pos+1:]) > uint64(len(entries)-pos-9) {
			return corrupt(74, "entry %d does not fit into the dictionary, or has no presence", entry)
		}
		n := int(binary.LittleEndian.Uint64(entries[pos+1:]))
		pos += 9 + n
		if number != nil {
			if number[entry] == 0 {
				continue
			}
			number[entry] = uint32(len(ends) + 1)
		} else {
			for wanted[next] == 0 {
				next++
			}
			if wanted[next] != entry {
				continue
			}
			next++
		}
		v := entries[pos-n : pos]
		if !utf8.Valid(v) {
			return corrupt(74, "entry %d is not UTF-8", entry)
		}
		text = append(text, v...)
		ends = append(ends, len(text))
	}
	all, from := string(text), 0
	d.values = make([]string, 1, 1+len(ends))
	for _, end := range ends {
		d.values = append(d.values, all[from:end])
		from = end
	}
	if number != nil {
		number[0] = 0
	} else if len(wanted) > 0 && wanted[0] == 0 {
		wanted = wanted[1:]
	}
	for i, code := range d.codes {
		if number != nil {
			d.codes[i] = number[code]
		} else if code != 0 {
			at, _ := slices.BinarySearch(wanted, code)
			d.codes[i] = uint32(at + 1)
		}
	}
	return nil
}

// skipUvarints returns how many bytes the first n numbers take, -1 when there are not as many.
func skipUvarints(p []byte, n int) int {
	pos := 0
	for n >= 8 && pos+8 <= len(p) { // eight bytes end eight numbers at most
		n -= bits.OnesCount64(^binary.LittleEndian.Uint64(p[pos:]) & 0x8080808080808080)
		pos += 8
	}
	// What has begun in the bytes that were passed ends in those that follow: n counts ends.
	for ; n > 0 && pos < len(p); pos++ {
		if p[pos] < 0x80 {
			n--
		}
	}
	if n > 0 {
		return -1
	}
	return pos
}

// outColumn is a tag as records show it.
type outColumn struct {
	name   string
	d      *dict
	picked bool // its codes are those of the rows that match, not of all
}

// labelRoom hands out memory for the labels of records, a stretch for some of them.
type labelRoom struct{ free []Label }

// labelRoomSize is the most labels of a stretch: who keeps one record keeps the stretch.
const labelRoomSize = 256

// labels are those of row k, the i-th of those that match, in a mode: that of Prometheus leaves empty ones out.
func (room *labelRoom) labels(out []outColumn, i, k, left int, mode Mode) []Label {
	if cap(room.free)-len(room.free) < len(out) {
		room.free = make([]Label, 0, max(len(out), min(labelRoomSize, left*len(out))))
	}
	from := len(room.free)
	to := room.free
	for c := range out {
		o := &out[c]
		at := k
		if o.picked {
			at = i
		}
		code := o.d.codes[at]
		if code == 0 || mode == Prom && o.d.values[code] == "" {
			continue
		}
		to = append(to, Label{o.name, o.d.values[code]})
	}
	room.free = to
	return to[from:len(to):len(to)]
}
