package series

import (
	"context"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"github.com/spilehq/spile/fault"
)

// match takes the rows out of alive, which is nil for all rows, that a matcher does not select; null says whether it selects those
// without a value. ran is the number of values that it was run on.
func (d *dict) match(ctx context.Context, rows int, m *Matcher, null bool, alive []uint64) (left []uint64, ran int64, err error) {
	hit := make([]bool, d.len())
	hit[0] = null
	some, ran, err := d.hits(ctx, m, hit)
	if err != nil {
		return nil, 0, err
	}
	if !some && !null {
		return make([]uint64, (rows+63)/64), ran, nil
	}
	switch {
	case d.codes.narrow != nil:
		return keepRows(d.codes.narrow, hit, alive), ran, nil
	case d.codes.medium != nil:
		return keepRows(d.codes.medium, hit, alive), ran, nil
	}
	return keepRows(d.codes.wide, hit, alive), ran, nil
}

// maxFound is how many values a pattern that is a set may have to be looked for one after the other.
const maxFound = 8

// hits finds the entries that a matcher selects, from 1 on, and reports whether there is one. It looks for bytes that every match
// has in it, which takes a small part of the time of looking at each value.
func (d *dict) hits(ctx context.Context, m *Matcher, hit []bool) (some bool, ran int64, err error) {
	negated := m.Op == NotEqual || m.Op == NotRegexp
	var set []string
	switch {
	case m.Op == Equal || m.Op == NotEqual:
		set = []string{m.Value}
	case m.pattern != nil && m.pattern.kind == patternSet && len(m.pattern.set) <= maxFound:
		set = m.pattern.set
	}
	needle := m.needle()
	if set == nil && needle == "" || slices.Contains(set, "") {
		spent := int64(0)
		for i := 1; i < len(hit); i++ {
			v := d.value(uint32(i))
			if m.matchesWithin(ctx, v) {
				hit[i], some = true, true
			}
			if spent += m.cost(v); spent >= costly {
				spent = 0
				if err := ctx.Err(); err != nil {
					return false, 0, fault.New(nil, "series", "").Because(err)
				}
			}
		}
		return some, int64(len(hit) - 1), nil
	}
	if negated {
		for i := 1; i < len(hit); i++ {
			hit[i] = true
		}
	}
	if set != nil {
		found := 0
		for _, v := range set {
			if entry := d.find(v); entry > 0 {
				hit[entry] = !negated
				found++
			}
		}
		if negated {
			return found < len(hit)-1, int64(found), nil
		}
		return found > 0, int64(found), nil
	}
	spent := int64(0)
	for entry := range d.having(needle) {
		v := d.value(entry)
		hit[entry] = m.matchesWithin(ctx, v)
		ran++
		if spent += m.cost(v); spent >= costly {
			spent = 0
			if err := ctx.Err(); err != nil {
				return false, 0, fault.New(nil, "series", "").Because(err)
			}
		}
	}
	return slices.Contains(hit[1:], true), ran, nil
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

// find returns the entry of a value that is not empty, 0 when there is none.
func (d *dict) find(v string) uint32 {
	for entry := range d.having(v) {
		if d.value(entry) == v {
			return entry
		}
	}
	return 0
}

// having gives the entries whose value has a text in it that is not empty.
func (d *dict) having(text string) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for pos := d.at[0]; int(pos) < len(d.text); {
			i := strings.Index(d.text[pos:], text)
			if i < 0 {
				return
			}
			pos += uint32(i)
			// The last entry whose value begins at pos or in front of it: null, when it is in front of all.
			entry := uint32(sort.Search(d.len(), func(i int) bool { return d.at[i] > pos }) - 1)
			// Else it is in what stands in front of the next value, in part at least.
			if int(pos)+len(text) <= int(d.at[entry+1])-entryHead && !yield(entry) {
				return
			}
			pos = d.at[entry+1]
		}
	}
}

// keepRows takes the rows out of alive, which is nil for all rows, whose entry is not hit.
func keepRows[C code](codes []C, hit []bool, alive []uint64) []uint64 {
	if alive == nil {
		alive = make([]uint64, (len(codes)+63)/64)
		for w := range alive {
			row := codes[w<<6 : min(len(codes), w<<6+64)]
			var word uint64
			for i, code := range row {
				if hit[code] {
					word |= 1 << i
				}
			}
			alive[w] = word
		}
		return alive
	}
	for w, word := range alive {
		for rest := word; rest != 0; rest &= rest - 1 {
			bit := bits.TrailingZeros64(rest)
			if !hit[codes[w<<6+bit]] {
				word &^= 1 << bit
			}
		}
		alive[w] = word
	}
	return alive
}
