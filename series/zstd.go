package series

import (
	"encoding/binary"

	"github.com/spilehq/spile/fault"
)

// The limits of Zstandard (RFC 8878).
const (
	zstdMagic     = 0xFD2FB528
	zstdSkippable = 0x184D2A50 // and the fifteen numbers behind it
	zstdBlock     = 128 << 10  // what a block decompresses to at most
	zstdMaxWindow = maxChunk
)

// zstdShape is what frames say of themselves, without being decompressed.
type zstdShape struct {
	frames, skippable int
	most              uint64 // bytes that they decompress to at most
}

// shapeOf goes over the frames that p consists of: their headers and those of their blocks. It is what keeps memory from
// being taken for a size that is declared and not there, and trailing bytes from being passed over.
func shapeOf(p []byte) (s zstdShape, err error) {
	for len(p) > 0 {
		if len(p) < 4 {
			return s, corrupt(43, "%d bytes behind the last Zstandard frame", len(p))
		}
		magic := binary.LittleEndian.Uint32(p)
		p = p[4:]
		switch {
		case magic&^15 == zstdSkippable:
			if len(p) < 4 || uint64(binary.LittleEndian.Uint32(p)) > uint64(len(p)-4) {
				return s, corrupt(43, "ends within a skippable Zstandard frame")
			}
			p = p[4+binary.LittleEndian.Uint32(p):]
			s.skippable++
			continue
		case magic != zstdMagic && s.frames+s.skippable > 0:
			return s, corrupt(43, "other bytes behind a Zstandard frame: the magic number %#08x", magic)
		case magic != zstdMagic:
			return s, corrupt(43, "is no Zstandard frame, with the magic number %#08x", magic)
		}
		if p, err = s.frame(p); err != nil {
			return s, err
		}
		s.frames++
	}
	return s, nil
}

// frame goes over a frame whose magic number was read, and returns what is behind it.
func (s *zstdShape) frame(p []byte) ([]byte, error) {
	short := func() error { return corrupt(43, "ends within a Zstandard frame") }
	field := func(n int) (v uint64, ok bool) {
		if len(p) < n {
			return 0, false
		}
		for i := range n {
			v |= uint64(p[i]) << (8 * i)
		}
		p = p[n:]
		return v, true
	}
	head, ok := field(1)
	if !ok {
		return nil, short()
	}
	if head&8 != 0 {
		return nil, corrupt(43, "a Zstandard frame with a reserved bit")
	}
	single := head&32 != 0
	window := uint64(0)
	if !single {
		d, ok := field(1)
		if !ok {
			return nil, short()
		}
		base := uint64(1) << (10 + d>>3)
		window = base + base/8*(d&7)
	}
	dictionary, ok := field([4]int{0, 1, 2, 4}[head&3])
	if !ok {
		return nil, short()
	}
	if dictionary != 0 {
		return nil, corrupt(43, "a Zstandard frame that needs the dictionary %d", dictionary)
	}
	sizeBytes := [4]int{0, 2, 4, 8}[head>>6]
	if sizeBytes == 0 && single {
		sizeBytes = 1
	}
	size, ok := field(sizeBytes)
	if !ok {
		return nil, short()
	}
	if sizeBytes == 2 {
		size += 256
	}
	if single {
		window = size
	}
	if window > zstdMaxWindow {
		return nil, failed(fault.Limit, 43, "a Zstandard frame with a window of %d bytes, at most %d", window, zstdMaxWindow)
	}
	most := uint64(0)
	for last := false; !last; {
		b, ok := field(3)
		if !ok {
			return nil, short()
		}
		last = b&1 != 0
		stored, gives := b>>3, b>>3
		switch b >> 1 & 3 {
		case 1: // a run of one byte
			stored = 1
		case 2:
			gives = zstdBlock
		case 3:
			return nil, corrupt(43, "a block of a reserved kind in a Zstandard frame")
		}
		if b>>3 > zstdBlock {
			return nil, corrupt(43, "a block of %d bytes in a Zstandard frame, at most %d", b>>3, zstdBlock)
		}
		if stored > uint64(len(p)) {
			return nil, short()
		}
		p = p[stored:]
		most += gives
	}
	if head&4 != 0 {
		if _, ok := field(4); !ok {
			return nil, short()
		}
	}
	if sizeBytes > 0 {
		if size > most {
			return nil, corrupt(43, "a Zstandard frame of %d bytes, whose blocks have %d at most", size, most)
		}
		most = size
	}
	s.most += most
	return p, nil
}
