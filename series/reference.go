package series

import (
	"encoding/binary"

	"github.com/spilehq/spile/fault"
)

// The sizes and limits of the format (docs/format/series.md, "Limits").
const (
	headerSize   = 16
	trailerSize  = 96
	payloadSize  = 32 // of a payload reference
	pageRefSize  = 56
	pagePrefix   = 12
	minPartSize  = headerSize + 1 + 1 + trailerSize
	minBlockSize = 148 // of the descriptor of a block with the two columns that are always there
	minColumn    = 48  // of a column descriptor

	maxPage        = 8 << 20
	maxPageStored  = maxPage + 64<<10
	maxRoot        = 64 << 10
	maxChildren    = 1170
	maxChunk       = 64 << 20
	maxChunkStored = maxChunk + 1<<20
	// MaxBlockSeries is the most series that a block can have.
	MaxBlockSeries = 8 << 20
)

// The encodings and compressions.
const (
	encodingDelta = 1 // of __tsid and __series_row_count
	encodingDict  = 2 // of tags
	encodingPage  = 1 // of pages

	compressionNone = 0
	compressionZstd = 1
)

// payloadRef says where a chunk or a page is, and how it is stored.
type payloadRef struct {
	Offset      uint64
	Stored      uint32 // bytes in the file
	Decoded     uint32 // bytes when decompressed
	Checksum    uint64 // XXH64 of the stored bytes
	Encoding    uint16
	Compression uint16
}

// end is the offset behind the payload.
func (r payloadRef) end() uint64 { return r.Offset + uint64(r.Stored) }

// parsePayloadRef reads a reference of 32 bytes and makes checks 29 to 31 and 37, which hold for all. mandatory says that
// the payload cannot be empty.
func parsePayloadRef(p []byte, mandatory func(r payloadRef) bool) (payloadRef, error) {
	r := payloadRef{
		Offset: binary.LittleEndian.Uint64(p), Stored: binary.LittleEndian.Uint32(p[8:]), Decoded: binary.LittleEndian.Uint32(p[12:]),
		Checksum: binary.LittleEndian.Uint64(p[16:]), Encoding: binary.LittleEndian.Uint16(p[24:]), Compression: binary.LittleEndian.Uint16(p[26:]),
	}
	switch reserved := binary.LittleEndian.Uint32(p[28:]); {
	case reserved != 0:
		return r, failed(fault.UnsupportedVersion, 29, "the reserved field of a reference is %#x, not 0", reserved)
	case r.end() < r.Offset:
		return r, corrupt(30, "a payload of %d bytes at %d", r.Stored, r.Offset)
	case mandatory(r) && (r.Stored < 1 || r.Decoded < 1):
		return r, corrupt(31, "a payload of %d stored and %d decoded bytes", r.Stored, r.Decoded)
	case r.Compression == compressionNone && r.Stored != r.Decoded:
		return r, corrupt(37, "a payload without compression has %d stored and %d decoded bytes", r.Stored, r.Decoded)
	}
	return r, nil
}

func (r payloadRef) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, r.Offset)
	dst = binary.LittleEndian.AppendUint32(dst, r.Stored)
	dst = binary.LittleEndian.AppendUint32(dst, r.Decoded)
	dst = binary.LittleEndian.AppendUint64(dst, r.Checksum)
	dst = binary.LittleEndian.AppendUint16(dst, r.Encoding)
	dst = binary.LittleEndian.AppendUint16(dst, r.Compression)
	return binary.LittleEndian.AppendUint32(dst, 0)
}

// pageRef says where a page is, and which identifiers are below it.
type pageRef struct {
	Range
	payloadRef
}

func parseID(p []byte) ID {
	return ID{binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint64(p[4:])}
}

func appendID(dst []byte, id ID) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(dst, id.Table), id.TSID)
}

// parsePageRef reads a reference of 56 bytes and makes the checks of page references. The metadata area is [from, to).
func parsePageRef(p []byte, from, to uint64, most uint32) (r pageRef, err error) {
	r.Range = Range{parseID(p), parseID(p[12:])}
	if r.payloadRef, err = parsePayloadRef(p[24:], func(payloadRef) bool { return true }); err != nil {
		return r, err
	}
	switch {
	case r.Offset < from || r.end() > to:
		return r, corrupt(32, "a page at [%d, %d), the metadata area is [%d, %d)", r.Offset, r.end(), from, to)
	case r.Stored > maxPageStored:
		return r, failed(fault.Limit, 34, "a page of %d stored bytes, at most %d", r.Stored, maxPageStored)
	case r.Decoded > most:
		return r, failed(fault.Limit, 35, "a page of %d decoded bytes, at most %d", r.Decoded, most)
	case r.Encoding != encodingPage:
		return r, failed(fault.UnsupportedCodec, 38, "a page in the encoding %d, %d is known", r.Encoding, encodingPage)
	case r.Compression > compressionZstd:
		return r, failed(fault.UnsupportedCodec, 39, "a page with the compression %d, 0 and 1 are known", r.Compression)
	}
	return r, nil
}

func (r pageRef) append(dst []byte) []byte {
	return r.payloadRef.append(appendID(appendID(dst, r.First), r.Last))
}
