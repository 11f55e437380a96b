package series

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// A dictionary whose values have one length, as host-00017 and host-04711 have, is made of entries that begin alike: a match
// each, at a distance that is always the same, and the rest as literals. So its sequences are all the same one, whose codes
// take no bits (RFC 8878, section 3.1.1.3.2.1: RLE_Mode), and the literals have no more in them than what differs. An
// encoder that looks for matches finds longer ones, of digits that are equal by chance, whose distances cost more.

// entries are the entries of a dictionary, of one length.
type entries struct {
	p    []byte
	head int // bytes in front of the first
	size int // of one
	same int // bytes that all begin with
}

// matchLengths and literalRuns are the first lengths of the codes (RFC 8878, section 3.1.1.3.2.1.1), and how many bits
// are added to them.
var (
	matchLengths = codeLengths(3, 32, []int{1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7})
	literalRuns  = codeLengths(0, 16, []int{1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7})
)

type codeLength struct{ first, bits int }

// codeLengths makes the table of codes from the length of the code 0, the number of codes of one length, and the bits of the
// others.
func codeLengths(first, single int, more []int) []codeLength {
	var t []codeLength
	for range single {
		t = append(t, codeLength{first, 0})
		first++
	}
	for _, n := range more {
		t = append(t, codeLength{first, n})
		first += 1 << n
	}
	return t
}

// codeFor is the code of a length, and what is added to it; false: the table is too short.
func codeFor(t []codeLength, length int) (code byte, extra, bits int, ok bool) {
	for i := len(t) - 1; i >= 0; i-- {
		if c := t[i]; length >= c.first {
			return byte(i), length - c.first, c.bits, length < c.first+1<<c.bits
		}
	}
	return 0, 0, 0, false
}

// entriesOf are those of a dictionary in front of its codes, if there are enough of them to be worth it and they have one
// length.
func entriesOf(p []byte) (e entries, ok bool) {
	const least = 16
	_, n := binary.Uvarint(p)
	e = entries{p: p, head: n + 9} // the number of entries, and the null entry
	if n <= 0 || len(p) < e.head {
		return e, false
	}
	count := binary.LittleEndian.Uint64(p[n:]) - 1 // without the null entry
	if count < least || count > uint64(len(p)) || (len(p)-e.head)%int(count) != 0 {
		return e, false
	}
	e.size = (len(p) - e.head) / int(count)
	first := p[e.head : e.head+e.size]
	e.same = e.size - 1
	for at := e.head + e.size; at < len(p); at += e.size {
		if row := p[at:]; !bytes.Equal(row[:e.same], first[:e.same]) {
			for e.same = 0; row[e.same] == first[e.same]; {
				e.same++
			}
			if e.same < entryHead {
				return e, false
			}
		}
	}
	_, _, _, ok = codeFor(matchLengths, e.same)
	_, _, _, fits := codeFor(literalRuns, e.head+e.size)
	return e, ok && fits && e.same >= entryHead
}

// appendEntries appends the entries as blocks that others follow.
func (l *literals) appendEntries(dst []byte, e entries) []byte {
	at := len(dst)
	// The first entry, and the first match, whose distance is the last one from then on.
	first := e.head + e.size
	dst = append(dst, make([]byte, blockHead)...)
	dst = append(appendPlainHead(dst, literalsRaw, first), e.p[:first]...)
	dst = e.appendSequences(dst, 1, first, e.size+3)
	appendBlockHead(dst[:at], blockCompressed, len(dst)-at-blockHead, false)

	most := zstdBlock / e.size // entries of a block
	rows := e.p[first:]
	for len(rows) > 0 {
		n := min(most, len(rows)/e.size)
		l.front = l.front[:0]
		for i := range n {
			l.front = append(l.front, rows[i*e.size+e.same:(i+1)*e.size]...)
		}
		rows = rows[n*e.size:]
		if len(rows) == 0 {
			n-- // nothing follows the last
		}
		at := len(dst)
		dst = l.appendSection(append(dst, make([]byte, blockHead)...), l.front)
		dst = e.appendSequences(dst, n, e.size-e.same, 1)
		appendBlockHead(dst[:at], blockCompressed, len(dst)-at-blockHead, false)
	}
	return dst
}

// more reports whether the entries, which take size bytes by appendEntries, may have something in common that an encoder that
// looks for matches could use, as those which come in the order of their values have: whether it does about as well with
// some of them.
func (l *literals) more(e entries, size int, zip *zstd.Encoder) bool {
	const sample, long = 256, 8
	n := (len(e.p) - e.head) / e.size
	if n < 2*sample || e.size-e.same > long {
		return true
	}
	from := e.head + n/2*e.size
	l.front = zip.EncodeAll(e.p[from:from+sample*e.size], l.front[:0])
	return int64(len(l.front)) < int64(size)*sample/int64(n)*8/7
}

// appendSequences appends a section of n equal sequences: so many literals, and a match of what entries begin with. The offset is
// 1 for the distance of the match before, or the distance and 3.
func (e entries) appendSequences(dst []byte, n, run, offset int) []byte {
	switch {
	case n == 0:
		return append(dst, 0)
	case n < 128:
		dst = append(dst, byte(n))
	default: // two bytes are enough for 32,511, and a block has 13,107 entries at most, of ten bytes
		dst = append(dst, byte(n>>8)+128, byte(n))
	}
	runCode, runExtra, runBits, _ := codeFor(literalRuns, run)
	matchCode, matchExtra, matchBits, _ := codeFor(matchLengths, e.same)
	offsetBits := bits.Len(uint(offset)) - 1
	const rle = 1<<6 | 1<<4 | 1<<2
	dst = append(dst, rle, runCode, byte(offsetBits), matchCode)
	// The bits are read from the end: of a sequence those of the offset first, then those of the match, then of the literals.
	sequence := uint64(runExtra) | uint64(matchExtra)<<runBits | uint64(offset-1<<offsetBits)<<(runBits+matchBits)
	width := runBits + matchBits + offsetBits
	var waiting uint64
	held := 0
	for range n {
		waiting |= sequence << held
		for held += width; held >= 8; held -= 8 {
			dst = append(dst, byte(waiting))
			waiting >>= 8
		}
	}
	return append(dst, byte(waiting|1<<held)) // the bit where reading begins
}
