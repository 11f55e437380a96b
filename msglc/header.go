package msglc

import (
	"bytes"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// The prefix of an archive (docs/format/msglc.md, "Prefix"):
//
//	0        30       40       50
//	+--------+--------+--------+---------
//	| magic  | toc    | toc    | payload…
//	|        | start  | size   |
//	+--------+--------+--------+---------
const (
	MagicSize  = 30 // bytes of the magic field, and the longest magic
	fieldSize  = 10 // bytes of one header field
	PrefixSize = MagicSize + 2*fieldSize
)

// DefaultMagic is the magic of archives that nobody gave another.
const DefaultMagic = "msglc-2024"

// maxPosition bounds the two header fields, so that sums of positions do not overflow.
const maxPosition = 1 << 62

// header is the decoded prefix of an archive.
type header struct {
	codec    value.Codec
	tocStart int64 // bytes of payload; positions count from the payload start
	tocSize  int64 // bytes of the table of contents
}

// padMagic returns the magic field: the magic at the right end, zeros on the left.
func padMagic(magic []byte) ([MagicSize]byte, error) {
	var field [MagicSize]byte
	if magic == nil {
		magic = []byte(DefaultMagic)
	}
	if len(magic) == 0 || len(magic) > MagicSize {
		return field, fault.New(fault.Invalid, "msglc", "magic of %d bytes, which needs 1 to %d", len(magic), MagicSize)
	}
	copy(field[MagicSize-len(magic):], magic)
	return field, nil
}

// logicalMagic is the magic without its padding. Leading zeros of a magic cannot be told from padding.
func logicalMagic(field []byte) []byte { return bytes.TrimLeft(field, "\x00") }

// appendPrefix appends the 50 bytes in front of the payload.
func appendPrefix(dst []byte, magic [MagicSize]byte, h header) []byte {
	dst = append(dst, magic[:]...)
	dst = appendField(dst, h.codec, h.tocStart)
	return appendField(dst, h.codec, h.tocSize)
}

// appendField appends one header field: the number in its shortest form, at the right end in msgpack, at the left end
// in CBOR.
func appendField(dst []byte, c value.Codec, n int64) []byte {
	var field [fieldSize]byte
	num := value.AppendUint(nil, c, uint64(n))
	if c == value.Msgpack {
		copy(field[fieldSize-len(num):], num)
	} else {
		copy(field[:], num)
	}
	return append(dst, field[:]...)
}

// parseHeader reads the codec and the two fields from the 20 bytes behind the magic. Offsets of faults count from the
// archive start.
func parseHeader(p []byte) (header, error) {
	h := header{codec: value.CBOR}
	// A number of msgpack has at most 9 bytes and stands right: byte 0 of its field is zero. A CBOR number stands left and
	// is not 0, so its first byte is not.
	if p[0] == 0 {
		h.codec = value.Msgpack
	}
	var err error
	if h.tocStart, err = parseField(h.codec, p[:fieldSize], "toc start"); err != nil {
		return h, fault.Shift(err, MagicSize)
	}
	if h.tocSize, err = parseField(h.codec, p[fieldSize:2*fieldSize], "toc size"); err != nil {
		return h, fault.Shift(err, MagicSize+fieldSize)
	}
	return h, nil
}

func parseField(c value.Codec, field []byte, name string) (int64, error) {
	bad := func(format string, args ...any) (int64, error) {
		e := fault.New(fault.Corrupt, "msglc", format, args...).At(0)
		e.Msg = "header: " + name + " " + e.Msg
		return 0, e
	}
	num := field
	if c == value.Msgpack {
		num = bytes.TrimLeft(field, "\x00")
		if len(num) == 0 {
			return bad("is not filled in")
		}
	}
	head, err := value.ReadHead(c, num)
	if err == io.ErrUnexpectedEOF {
		return bad("ends within its number (% x)", field)
	} else if err != nil || head.Kind != value.Uint {
		return bad("is no unsigned integer (% x)", field)
	}
	rest := num[head.Size:]
	if c == value.Msgpack && len(rest) > 0 || len(bytes.TrimLeft(rest, "\x00")) > 0 {
		return bad("has other bytes beside its number (% x)", field)
	}
	if head.Arg == 0 {
		return bad("is 0, at least 1")
	}
	if head.Arg > maxPosition {
		return bad("is %d, at most %d", head.Arg, int64(maxPosition))
	}
	return int64(head.Arg), nil
}

// checkMagic says what is wrong with the magic of the archive that begins with p, nil when it is the right one. Offsets
// count from the archive start.
func checkMagic(p []byte, want [MagicSize]byte) error {
	right := len(p) >= MagicSize && [MagicSize]byte(p) == want
	switch {
	case right:
		return nil
	case isOldMagic(p): // the right one may begin alike
		return fault.New(fault.UnsupportedVersion, "msglc", "archive of a release before 2024-03-12, which is not read: its magic has no padding").At(0)
	case len(p) < MagicSize:
		return fault.New(fault.Corrupt, "msglc", "no msglc archive: %d bytes, its magic takes %d", len(p), MagicSize).At(0)
	}
	return fault.New(fault.Corrupt, "msglc", "no msglc archive: magic %q, expected %q", logicalMagic(p[:MagicSize]), logicalMagic(want[:])).At(0)
}

// isOldMagic reports whether p begins as the two oldest releases wrote it, with a magic of 10 bytes and no padding.
func isOldMagic(p []byte) bool { return bytes.HasPrefix(p, []byte(DefaultMagic)) }
