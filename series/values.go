package series

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// valueSet collects distinct values. A short one, as most are, stands in its table with its length, so that one look at memory
// finds it.
type valueSet struct {
	table valueTable
	short int
	long  map[string]struct{}
	held  int64 // what the values take, as Query.Memory counts it
}

// shortValue is a value of up to shortLength bytes as two numbers, which order values as their bytes do: 8 bytes, 7 more, and the
// length with one added. Zero stands for none.
type shortValue struct{ hi, lo uint64 }

const shortLength = 15

// valueTable is a table of hashes with a power of two of slots, of which at most half are taken.
type valueTable []shortValue

func newValueSet() *valueSet { return &valueSet{table: make(valueTable, 1<<8)} }

func (s *valueSet) len() int { return s.short + len(s.long) }

// place is where a value is, or where it belongs.
func (t valueTable) place(v shortValue) *shortValue {
	mask := uint64(len(t) - 1)
	for at := v.hash() & mask; ; at = (at + 1) & mask {
		if s := &t[at]; *s == v || s.lo == 0 {
			return s
		}
	}
}

// shortValueAt is the value of n bytes, at most shortLength, at a place in a text.
func shortValueAt(text string, at, n int) (v shortValue) {
	if len(text)-at < 16 {
		var some [16]byte
		copy(some[:], text[at:at+n])
		v = shortValue{binary.BigEndian.Uint64(some[:]), binary.BigEndian.Uint64(some[8:])}
	} else {
		v = shortValue{bits.ReverseBytes64(leU64(text[at:])), bits.ReverseBytes64(leU64(text[at+8:]))}
		v.hi &= ^uint64(0) << (64 - 8*min(n, 8))
		v.lo &= ^uint64(0) << (64 - 8*max(n-8, 0))
	}
	v.lo |= uint64(n) + 1
	return v
}

func (v shortValue) len() int { return int(v.lo&0xff) - 1 }

func (v shortValue) hash() uint64 {
	hi, lo := bits.Mul64(v.hi^distinctSeeds[0], v.lo^distinctSeeds[1])
	return hi ^ lo
}

// append appends the bytes of the value.
func (v shortValue) append(dst []byte) []byte {
	n := v.len()
	dst = binary.BigEndian.AppendUint64(dst, v.hi)
	dst = binary.BigEndian.AppendUint64(dst, v.lo)
	return dst[:len(dst)-16+n]
}

// add adds a value.
func (s *valueSet) add(v string) {
	if len(v) > shortLength {
		s.addLong(v)
	} else {
		s.addShort(shortValueAt(v, 0, len(v)))
	}
}

func (s *valueSet) addLong(v string) {
	if _, ok := s.long[v]; ok {
		return
	}
	if s.long == nil {
		s.long = make(map[string]struct{})
	}
	s.long[strings.Clone(v)] = struct{}{} // the value alone, which does not keep the text of a dictionary
	s.held += int64(len(v)) + valueSize
}

func (s *valueSet) addShort(v shortValue) {
	to := s.table.place(v)
	if to.lo != 0 {
		return
	}
	*to = v
	s.held += int64(v.len()) + valueSize
	if s.short++; 2*s.short > len(s.table) {
		old := s.table
		s.table = make(valueTable, 2*len(old))
		for _, v := range old {
			if v.lo != 0 {
				*s.table.place(v) = v
			}
		}
	}
}

// addRows adds the values that the selected rows of a block have, until the set takes more than there may be. Entries that no
// row has, which a verifier alone objects to, are values of no series.
func (s *valueSet) addRows(sel *selection, d *dict, most int64) {
	used := make([]bool, d.len())
	used[0] = true
	left := d.len() - 1
	for k := range sel.each() {
		if code := d.codes.at(k); !used[code] {
			used[code] = true
			if left--; left == 0 {
				break
			}
		}
	}
	for i := 1; i < d.len() && s.held <= most; {
		i = s.addSome(d, used, i)
	}
}

// addSome adds some entries of a dictionary that are used, from one on, and returns the one behind them. Most are there already,
// and of many the table lies in no cache: it is looked at for all of them, which waits for memory once, before what is found is
// compared.
func (s *valueSet) addSome(d *dict, used []bool, from int) (next int) {
	const some = 64
	var values, found [some]shortValue
	t := s.table
	mask := uint64(len(t) - 1)
	n, i := 0, from
	for ; i < d.len() && n < some; i++ {
		if !used[i] {
			continue
		}
		at, size := int(d.at[i]), int(d.at[i+1]-d.at[i])-entryHead
		if size > shortLength {
			s.addLong(d.text[at : at+size])
			continue
		}
		values[n] = shortValueAt(d.text, at, size)
		found[n] = t[values[n].hash()&mask]
		n++
	}
	for k, v := range values[:n] {
		if found[k] != v {
			s.addShort(v)
		}
	}
	return i
}

// valueStretch is the most text that values share which are given: who keeps one of them keeps the stretch.
const valueStretch = 4 << 10

// sorted are the values.
func (s *valueSet) sorted() []string {
	short := make([]shortValue, 0, s.short)
	for _, v := range s.table {
		if v.lo != 0 {
			short = append(short, v)
		}
	}
	slices.SortFunc(short, func(a, b shortValue) int {
		if a.hi != b.hi {
			return cmp.Compare(a.hi, b.hi)
		}
		return cmp.Compare(a.lo, b.lo)
	})
	values := make([]string, 0, s.len())
	text, from := make([]byte, 0, valueStretch), 0
	for at := 0; at < len(short); at = from {
		text = text[:0]
		for from < len(short) && len(text)+16 <= valueStretch {
			text = short[from].append(text)
			from++
		}
		all := string(text)
		for _, v := range short[at:from] {
			n := v.len()
			values = append(values, all[:n])
			all = all[n:]
		}
	}
	if len(s.long) == 0 {
		return values
	}
	for v := range s.long {
		values = append(values, v)
	}
	slices.SortFunc(values, strings.Compare)
	return values
}
