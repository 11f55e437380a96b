package series

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/spilehq/spile/fault"
)

const magic = "GTSERIES"

// frame is what header and trailer of a part say.
type frame struct {
	root       pageRef
	depth      uint32
	payloadEnd uint64
	size       uint64 // of the part
}

// metadataEnd is where the root page ends and the trailer starts.
func (f *frame) metadataEnd() uint64 { return f.size - trailerSize }

// parseFrame reads the header and the trailer of a part of size bytes, and makes checks 17 to 28 and those of the reference
// to the root. listed is what the manifest says of the part, nil without one.
func parseFrame(header, trailer []byte, size uint64, listed *File) (*frame, error) {
	trailerAt := size - trailerSize
	at := func(f *fault.Error, field uint64) error { return f.At(int64(trailerAt + field)) }
	if string(header[:8]) != magic {
		return nil, corrupt(17, "begins with % x, not with %q", header[:8], magic).At(0)
	}
	if v := binary.LittleEndian.Uint32(header[8:]); v != Version {
		return nil, failed(fault.UnsupportedVersion, 18, "the header is of version %d, %d is read", v, Version).At(8)
	}
	if v := binary.LittleEndian.Uint32(header[12:]); v != 0 {
		return nil, failed(fault.UnsupportedVersion, 19, "the reserved field of the header is %#x, not 0", v).At(12)
	}
	if string(trailer[80:88]) != magic {
		return nil, at(corrupt(20, "the trailer has % x, not %q", trailer[80:88], magic), 80)
	}
	if sum, want := xxhash.Sum64(trailer[:88]), binary.LittleEndian.Uint64(trailer[88:]); sum != want {
		return nil, at(corrupt(21, "the trailer has the checksum %016x, its bytes %016x", want, sum), 88)
	}
	if v := binary.LittleEndian.Uint32(trailer[60:]); v != Version {
		return nil, at(failed(fault.UnsupportedVersion, 22, "the trailer is of version %d, %d is read", v, Version), 60)
	}
	f := &frame{depth: binary.LittleEndian.Uint32(trailer[56:]), payloadEnd: binary.LittleEndian.Uint64(trailer[72:]), size: size}
	if v := binary.LittleEndian.Uint64(trailer[64:]); v != size {
		return nil, at(corrupt(23, "the trailer says %d bytes, the part has %d", v, size), 64)
	}
	if f.depth != 1 && f.depth != 2 {
		return nil, at(corrupt(24, "the depth is %d, 1 or 2", f.depth), 56)
	}
	if f.payloadEnd < headerSize || f.payloadEnd >= trailerAt {
		return nil, at(corrupt(25, "the columns end at %d, in a part whose trailer is at %d", f.payloadEnd, trailerAt), 72)
	}
	most := uint32(maxPage)
	if f.depth == 2 {
		most = maxRoot
	}
	first, last := parseID(trailer), parseID(trailer[12:])
	if last.Less(first) {
		return nil, at(corrupt(26, "the part goes from %s to %s", first, last), 0)
	}
	if listed != nil && (first != listed.First || last != listed.Last) {
		return nil, at(corrupt(27, "the part goes from %s to %s, the manifest says %s to %s", first, last, listed.First, listed.Last), 0)
	}
	offset, stored := binary.LittleEndian.Uint64(trailer[24:]), binary.LittleEndian.Uint32(trailer[32:])
	if end := offset + uint64(stored); end < offset || end != trailerAt {
		return nil, at(corrupt(28, "the root page is %d bytes at %d, and must end at %d", stored, offset, trailerAt), 24)
	}
	var err error
	if f.root, err = parsePageRef(trailer, f.payloadEnd, trailerAt, most); err != nil {
		return nil, fault.Locate(err, "", "", 0)
	}
	return f, nil
}

func appendHeader(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, Version)
	return binary.LittleEndian.AppendUint32(dst, 0)
}

func (f *frame) appendTrailer(dst []byte) []byte {
	start := len(dst)
	dst = f.root.append(dst)
	dst = binary.LittleEndian.AppendUint32(dst, f.depth)
	dst = binary.LittleEndian.AppendUint32(dst, Version)
	dst = binary.LittleEndian.AppendUint64(dst, f.size)
	dst = binary.LittleEndian.AppendUint64(dst, f.payloadEnd)
	dst = append(dst, magic...)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}
