package value

import (
	"cmp"
	"encoding/binary"
	"io"
	"math/bits"
	"slices"

	"github.com/spilehq/spile/fault"
)

// longContainer is what the pre-scan of JSON text tells of a container that is too long to be held back until its items
// are counted.
type longContainer struct {
	start int64 // offset of its bracket
	n     int   // items or pairs
}

const (
	minLong    = 1 << 20
	maxLong    = 16 << 20
	maxLongs   = 4 << 20 // 64 MiB of them
	jsonWindow = 256 << 10
)

// longLimit is the length of text beyond which a container of a text of the given size is a long one. The encoding of
// shorter ones is held back: it takes 9 bytes for 4 bytes of text at most, `1.0,`. In a longer text the limit is
// higher, so that hostile nesting cannot make many long containers: each covers a multiple of the limit.
func longLimit(size int64) int64 { return min(max(minLong, size/1024), maxLong) }

// prescan finds the long containers of a text and counts their items; in the order of their starts. It looks at
// brackets, commas and quotes only. Where the text is not JSON, what it finds is of no use and does no harm: the
// parser stops before it comes to a container that is not well-formed up to there.
func prescan(src io.ReaderAt, size int64, lim readLimits, depth int) ([]longContainer, error) {
	s := structure{long: lim.long, depth: depth}
	buf := make([]byte, lim.window)
	for off := int64(0); off < size; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), size-off)]
		if err := readFull(src, buf, off); err != nil {
			return nil, err
		}
		if !s.scan(buf, off) {
			break
		}
		if len(s.found) > maxLongs {
			return nil, fault.New(fault.Limit, "value", "more than %d containers longer than %d bytes", maxLongs, s.long).At(off)
		}
	}
	slices.SortFunc(s.found, func(a, b longContainer) int { return cmp.Compare(a.start, b.start) })
	return s.found, nil
}

// readFull reads p from off; where src ends before, [IsTruncated] holds for the error.
func readFull(src io.ReaderAt, p []byte, off int64) error {
	n, err := src.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return errTruncated(off, "the text", int64(len(p)-n))
	}
	return err
}

// structure is the state of the pre-scan between two pieces of text.
type structure struct {
	long   int64
	depth  int
	found  []longContainer
	open   []longContainer
	string bool // inside a string
	escape bool // behind a backslash
	fresh  bool // behind an opening bracket
}

// The classes of bytes outside of strings.
const (
	otherByte = iota
	blankByte
	quoteByte
	openByte
	closeByte
	commaByte
)

var jsonClass = [256]uint8{' ': blankByte, '\t': blankByte, '\n': blankByte, '\r': blankByte, '"': quoteByte,
	'[': openByte, '{': openByte, ']': closeByte, '}': closeByte, ',': commaByte}

// scan takes the next piece of text, which is at off. It returns false when no more need be read.
func (s *structure) scan(p []byte, off int64) bool {
	i := 0
	if s.string {
		i = s.passString(p, 0)
	}
	for i < len(p) {
		class := jsonClass[p[i]]
		if s.fresh && class != blankByte {
			s.fresh = false
			if class != closeByte {
				s.open[len(s.open)-1].n = 1
			}
		}
		switch class {
		case quoteByte:
			i = s.passString(p, i+1)
			continue
		case commaByte:
			if len(s.open) == 0 {
				return false
			}
			s.open[len(s.open)-1].n++
		case openByte:
			if len(s.open) > s.depth {
				return false
			}
			s.open = append(s.open, longContainer{start: off + int64(i)})
			s.fresh = true
		case closeByte:
			if len(s.open) == 0 {
				return false
			}
			c := s.open[len(s.open)-1]
			s.open = s.open[:len(s.open)-1]
			if off+int64(i)-c.start >= s.long {
				s.found = append(s.found, c)
			}
		}
		i++
	}
	return true
}

// passString returns the index behind the string that p[i] is inside of, len(p) when it ends in a later piece.
func (s *structure) passString(p []byte, i int) int {
	s.string = true
	if s.escape && i < len(p) {
		s.escape = false
		i++
	}
	for i < len(p) {
		if i+8 <= len(p) {
			x := binary.LittleEndian.Uint64(p[i:])
			m := ((x ^ '"'*eachByte) - eachByte) &^ (x ^ '"'*eachByte)
			m |= ((x ^ '\\'*eachByte) - eachByte) &^ (x ^ '\\'*eachByte)
			if m &= highBits; m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) / 8
		}
		switch p[i] {
		case '"':
			s.string = false
			return i + 1
		case '\\':
			if i++; i == len(p) {
				s.escape = true
				return i
			}
		}
		i++
	}
	return i
}
