package series

import (
	"errors"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/spilehq/spile/fault"
)

// decoder is shared by all: it keeps no state between payloads, and its memory is that of the payloads that are decoded at
// the time. It gives no more than the capacity that it is handed.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(zstdMaxWindow))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
})

// known reports whether the payload of a column can be decoded.
func (r payloadRef) known() bool {
	return (r.Encoding == encodingDelta || r.Encoding == encodingDict) && r.Compression <= compressionZstd
}

// unknown is the error for a payload that cannot be decoded.
func (r payloadRef) unknown() error {
	return failed(fault.UnsupportedCodec, 40, "stored in the encoding %d and the compression %d, which are not known", r.Encoding, r.Compression)
}

// checkSum makes check 42 of the stored bytes.
func (r payloadRef) checkSum(stored []byte) error {
	if sum := xxhash.Sum64(stored); sum != r.Checksum {
		return corrupt(42, "the stored bytes have the checksum %016x, the reference says %016x", sum, r.Checksum).At(int64(r.Offset))
	}
	return nil
}

// decode checks and decompresses a payload. Without compression the result is a part of stored.
func (r payloadRef) decode(stored []byte) ([]byte, error) { return r.decodeInto(new([]byte), stored) }

// decodeInto is decode into memory that is there, in place of which longer memory comes where it does not suffice.
func (r payloadRef) decodeInto(room *[]byte, stored []byte) ([]byte, error) {
	if err := r.checkSum(stored); err != nil {
		return nil, err
	}
	if r.Compression == compressionNone {
		return stored, nil
	}
	shape, err := shapeOf(stored)
	if f, ok := err.(*fault.Error); ok {
		return nil, f.At(int64(r.Offset))
	}
	if shape.most < uint64(r.Decoded) { // before as much is taken
		return nil, corrupt(43, "decompresses to %d bytes at most, %d are declared", shape.most, r.Decoded).At(int64(r.Offset))
	}
	if cap(*room) < int(r.Decoded) {
		*room = make([]byte, 0, r.Decoded)
	}
	out, err := decoder().DecodeAll(stored, (*room)[:0:r.Decoded])
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, corrupt(43, "decompresses to more than the %d bytes that are declared", r.Decoded).At(int64(r.Offset))
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, failed(fault.Limit, 43, "a compression window of more than 64 MiB").At(int64(r.Offset))
	case err != nil:
		return nil, corrupt(43, "is no Zstandard frame").Because(err).At(int64(r.Offset))
	case len(out) != int(r.Decoded):
		return nil, corrupt(43, "decompresses to %d bytes, %d are declared", len(out), r.Decoded).At(int64(r.Offset))
	}
	return out, nil
}
