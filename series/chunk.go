package series

import (
	"encoding/binary"
	"math/bits"

	"github.com/spilehq/spile/internal/wire"
)

// badUvarint is the error for a number that cannot be read.
func badUvarint(pos, n int) error {
	if n < 0 {
		return corrupt(70, "a number of more than 64 bits at byte %d of the chunk", pos)
	}
	return corrupt(70, "a number that does not end in the chunk, at byte %d", pos)
}

// sevens puts the lower seven bits of each byte side by side.
func sevens(x uint64) uint64 {
	x &= 0x7f7f7f7f7f7f7f7f
	x -= x & 0x7f007f007f007f00 >> 1
	high := x & 0x3fff00003fff0000
	x = x ^ high ^ high>>2
	return x&0x0fffffff | x>>32<<28
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
	for i := 0; i < len(out); i++ {
		if pos+8 <= len(p) {
			x := binary.LittleEndian.Uint64(p[pos:])
			ends := ^x & 0x8080808080808080 // a bit for each byte that ends a number
			// The differences of hashes are nearly all of one length, which the processor foretells: it need not wait for
			// this number to know where the next one is.
			switch {
			case ends == 1<<63:
				prev += uint64(wire.UnZigZag64(sevens(x)))
				out[i] = prev
				pos += 8
				continue
			case ends<<8 == 1<<63:
				prev += uint64(wire.UnZigZag64(sevens(x << 8 >> 8)))
				out[i] = prev
				pos += 7
				continue
			case x == 0 && len(out)-i >= 8: // the number of rows of many series is the same
				for k := range out[i : i+8] {
					out[i+k] = prev
				}
				i += 7
				pos += 8
				continue
			case x&0x8080 != 0x8080: // one byte or two, which nothing foretells
				two := x >> 7 & 1
				prev += uint64(wire.UnZigZag64(x&0x7f | x>>1&0x3f80&-two))
				out[i] = prev
				pos += 1 + int(two)
				continue
			case ends != 0:
				prev += uint64(wire.UnZigZag64(sevens(x & (ends ^ (ends - 1))))) // up to the first of these bytes
				out[i] = prev
				pos += bits.TrailingZeros64(ends)>>3 + 1
				continue
			}
		}
		u, k := wire.Uvarint64(p[pos:])
		if k <= 0 {
			return pos, badUvarint(pos, k)
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
