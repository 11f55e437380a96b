package promtsdb

import (
	"encoding/binary"
	"unicode/utf8"
)

// symbols are the names and values of labels by their numbers. The table of the library keeps every 32nd place and walks to the
// others with each look-up; all are looked up here, most of them often.
type symbols struct {
	text string
	ends []uint32 // where each ends in the text; its length stands in front of it
	from []uint32
}

// newSymbols reads the section of symbols: its length, their number, the symbols with their lengths, a checksum.
func newSymbols(section []byte) (*symbols, error) {
	if len(section) < 12 {
		return nil, corrupt("symbols in %d bytes", len(section))
	}
	size := uint64(binary.BigEndian.Uint32(section))
	if size < 4 || size+8 > uint64(len(section)) {
		return nil, corrupt("symbols of %d bytes, and %d are there", size, len(section)-8)
	}
	body, sum := section[4:4+size], binary.BigEndian.Uint32(section[4+size:])
	if got := checksum(body); got != sum {
		return nil, corrupt("symbols: the checksum is %08x, not %08x", got, sum)
	}
	count := uint64(binary.BigEndian.Uint32(body))
	if count > size-4 { // each has a byte at least
		return nil, corrupt("%d symbols in %d bytes", count, size)
	}
	s := &symbols{text: string(body), ends: make([]uint32, 0, count), from: make([]uint32, 0, count)}
	at := 4
	for i := range count {
		n, k := binary.Uvarint(body[at:])
		if k <= 0 || n > uint64(len(body)-at-k) {
			return nil, corrupt("symbol %d of %d passes the end of the symbols", i, count)
		}
		at += k
		s.from = append(s.from, uint32(at))
		at += int(n)
		s.ends = append(s.ends, uint32(at))
	}
	if at != len(body) {
		return nil, corrupt("%d bytes behind %d symbols", len(body)-at, count)
	}
	return s, nil
}

// get returns a symbol by its number.
func (s *symbols) get(i uint32) (string, error) {
	if uint64(i) >= uint64(len(s.ends)) {
		return "", corrupt("symbol %d of %d", i, len(s.ends))
	}
	text := s.text[s.from[i]:s.ends[i]]
	if !utf8.ValidString(text) {
		return "", corrupt("symbol %d is no UTF-8: %.40q", i, text)
	}
	return text, nil
}
