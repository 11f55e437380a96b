package series

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// literals compresses numbers that come in no order, the differences of hashes or codes of a label: as Zstandard without
// matches, Huffman codes alone (RFC 8878, section 3.1.1.3.1). An encoder that looks for matches takes several times as long
// for them. In hashes it finds none, and then leaves alone what becomes shorter by less than 1/16, as they do by the bit that
// says whether a number goes on; in codes of few values it finds matches that cost more than what they stand for. It is not
// safe for concurrent use.
type literals struct {
	huff   huff0.Scratch
	front  []byte
	places []uint32
}

// The kinds of blocks, and those of sections of literals: the last two have Huffman codes, with their tree or with that of
// the section before.
const (
	blockRaw        = 0
	blockRun        = 1
	blockCompressed = 2

	literalsRaw      = 0
	literalsRun      = 1
	literalsTree     = 2
	literalsTreeless = 3
)

// oneStream is the length from which on the codes are in four streams: the head for one stream has ten bits for it.
const oneStream = 1 << 10

// pack compresses p, in which the bytes behind the first front ones are numbers. The same bytes give the same frame,
// whatever was compressed before them.
func (l *literals) pack(p []byte, front int, zip *zstd.Encoder) []byte {
	frame := appendFrameHead(make([]byte, 0, len(p)+frameHead+blockHead), len(p))
	if front > 0 {
		frame = l.appendFront(frame, p[:front], zip)
	}
	at := len(frame)
	frame = l.appendLiterals(frame, p[front:])
	// Numbers that become much shorter are no hashes, and what they have in common can be a match of five bytes.
	if size := len(frame) - at; front == 0 && size < len(p)/8*7 || l.repeats(p[front:], size) {
		if q := zip.EncodeAll(p, make([]byte, 0, len(p))); len(q) < len(frame) {
			return q
		}
	}
	return frame
}

// appendFront appends what stands in front of the numbers, as blocks that others follow.
func (l *literals) appendFront(dst, p []byte, zip *zstd.Encoder) []byte {
	at := len(dst)
	if e, ok := entriesOf(p); ok {
		l.huff.Reuse = huff0.ReusePolicyNone
		if dst = l.appendEntries(dst, e); !l.more(e, len(dst)-at, zip) {
			return dst
		}
	}
	l.front = zip.EncodeAll(p, l.front[:0])
	if n := len(dst) - at; n == 0 || len(l.front) < n {
		dst = appendBlocks(dst[:at], l.front)
	}
	return dst
}

// frameHead is what the head of a frame takes at most, blockHead what that of a block takes.
const (
	frameHead = 10
	blockHead = 3
)

// appendFrameHead appends the head of a frame of n bytes: without a sum, in a single segment unless that would make the
// window larger than writers may use.
func appendFrameHead(dst []byte, n int) []byte {
	const single, window8M = 1 << 5, 13 << 3
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	switch {
	case n < 256:
		return append(dst, single, byte(n))
	case n < 256+1<<16:
		return binary.LittleEndian.AppendUint16(append(dst, 1<<6|single), uint16(n-256))
	case n <= 8<<20:
		dst = append(dst, 2<<6|single)
	default:
		dst = append(dst, 2<<6, window8M)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

// appendBlockHead appends the head of a block, where size is that of its content or of the run.
func appendBlockHead(dst []byte, kind, size int, last bool) []byte {
	h := size<<3 | kind<<1
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16))
}

// appendBlocks appends the blocks of a frame of the encoder's, which has no sum, as blocks that others follow.
func appendBlocks(dst, frame []byte) []byte {
	head := frame[4]
	p := frame[5+[4]int{0, 2, 4, 8}[head>>6]:]
	if single := head&(1<<5) != 0; !single || head>>6 == 0 { // a window, or a size of one byte
		p = p[1:]
	}
	for len(p) > 0 {
		h := int(p[0]) | int(p[1])<<8 | int(p[2])<<16
		kind, size := h>>1&3, h>>3
		dst = appendBlockHead(dst, kind, size, false)
		if kind == blockRun {
			size = 1
		}
		dst = append(dst, p[blockHead:blockHead+size]...)
		p = p[blockHead+size:]
	}
	return dst
}

// appendLiterals appends p as blocks, the last of a frame.
func (l *literals) appendLiterals(dst, p []byte) []byte {
	l.huff.Reuse = huff0.ReusePolicyNone
	for {
		n := min(len(p), zstdBlock)
		dst = l.appendBlock(dst, p[:n], n == len(p))
		if p = p[n:]; len(p) == 0 {
			return dst
		}
	}
}

// appendBlock appends p as a block, in the form that is the shortest.
func (l *literals) appendBlock(dst, p []byte, last bool) []byte {
	at := len(dst)
	dst = l.appendSection(append(dst, make([]byte, blockHead)...), p)
	dst = append(dst, 0) // sequences
	switch kind := dst[at+blockHead] & 3; {
	case kind == literalsRun:
		return append(appendBlockHead(dst[:at], blockRun, len(p), last), p[0])
	case kind == literalsRaw:
		return append(appendBlockHead(dst[:at], blockRaw, len(p), last), p...)
	}
	appendBlockHead(dst[:at], blockCompressed, len(dst)-at-blockHead, last)
	return dst
}

// appendSection appends p as a section of literals, in the form that is the shortest.
func (l *literals) appendSection(dst, p []byte) []byte {
	compress := huff0.Compress4X
	if len(p) < oneStream {
		compress = huff0.Compress1X
	}
	codes, treeless, err := compress(p, &l.huff)
	if errors.Is(err, huff0.ErrUseRLE) {
		return append(appendPlainHead(dst, literalsRun, len(p)), p[0])
	}
	head, n := codedHead(len(p), len(codes), treeless)
	if err == nil && n+len(codes) < len(p) {
		l.huff.Reuse = huff0.ReusePolicyAllow
		return append(append(dst, head[:n]...), codes...)
	}
	l.huff.Reuse = huff0.ReusePolicyNone // its tree is not in the frame
	return append(appendPlainHead(dst, literalsRaw, len(p)), p...)
}

// appendPlainHead appends the head of a section of n literals that are raw or a run.
func appendPlainHead(dst []byte, kind, n int) []byte {
	switch {
	case n < 1<<5:
		return append(dst, byte(n<<3|kind))
	case n < 1<<12:
		return append(dst, byte(n<<4|1<<2|kind), byte(n>>4))
	}
	return append(dst, byte(n<<4|3<<2|kind), byte(n>>4), byte(n>>12))
}

// codedHead is the head of a section of n literals whose codes take size bytes, and its length.
func codedHead(n, size int, treeless bool) (head [8]byte, length int) {
	h, width := uint64(literalsTree), 18
	if treeless {
		h = literalsTreeless
	}
	switch {
	case n < oneStream:
		width = 10
	case n < 1<<14:
		h, width = h|2<<2, 14
	default:
		h |= 3 << 2
	}
	h |= uint64(n)<<4 | uint64(size)<<(4+width)
	binary.LittleEndian.PutUint64(head[:], h)
	return head, (4 + 2*width + 7) / 8
}

// repeats reports whether bytes that take size as literals repeat what came before, so that matches may be worth it. A match
// takes 20 to 30 bits. It looks for repetitions of as many bytes as take 40 as literals, which hardly come by chance: it
// remembers places at equal distances, up to 32, and compares as many in a row with them, in up to 128 rows.
func (l *literals) repeats(p []byte, size int) bool {
	const bitsOfRepeat, rows = 40, 128
	if len(p) < 256 {
		return true // to try costs little
	}
	window := max(5, int((bitsOfRepeat*int64(len(p))+8*int64(size)-1)/(8*int64(size))))
	step := min(max(len(p)/512, 1), 32)
	width := bits.Len(uint(min(len(p)/step, 1<<16)))
	if n := 1 << width; len(l.places) < n {
		l.places = make([]uint32, n)
	}
	places := l.places[:1<<width]
	clear(places)
	every := max(1, len(p)/(step*rows)) * step
	for i := 0; i+step+max(window, 8) <= len(p); i += step {
		if i%every == 0 {
			for k := i; k < i+step; k++ {
				if h := hashOf(p[k:], window); places[h>>(64-width)] == uint32(h)|1 {
					return true
				}
			}
		}
		h := hashOf(p[i:], window)
		places[h>>(64-width)] = uint32(h) | 1 // 0 is none
	}
	return false
}

// hashOf is a hash of the first n bytes of p, which has 8 or more.
func hashOf(p []byte, n int) uint64 {
	const prime = 0x9E3779B185EBCA87 // of XXH64
	h := binary.LittleEndian.Uint64(p)
	if n < 8 {
		return h << (64 - 8*n) * prime
	}
	h *= prime
	for n -= 8; n > 0; n -= 8 {
		h = (bits.RotateLeft64(h, 31) ^ binary.LittleEndian.Uint64(p[n:])) * prime
	}
	return h
}
