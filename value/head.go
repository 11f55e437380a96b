package value

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/spilehq/spile/fault"
)

// form says what a first byte means. The two tables of forms are the only place that knows the opcodes of a codec;
// the scanner, the skip kernel and the head reader all read them.
type form struct {
	kind  Kind
	width uint8 // bytes of the argument after the first byte: 0, 1, 2, 4 or 8
	arg   uint8 // the argument when width is 0
	flags uint8
}

const (
	signed     = 1 << iota // msgpack int8..int64: the argument is in two's complement
	extType                // msgpack ext: one byte of type follows the argument
	indefinite             // CBOR: no length
	simple8                // CBOR: a simple value in its own byte, which must be 32 or more
)

var forms = [...][256]form{Msgpack: msgpackForms(), CBOR: cborForms()}

func msgpackForms() (t [256]form) {
	for b := range 0x80 {
		t[b] = form{kind: Uint, arg: uint8(b)}
	}
	for n := range uint8(16) {
		t[0x80+int(n)] = form{kind: Map, arg: n}
		t[0x90+int(n)] = form{kind: Array, arg: n}
	}
	for n := range uint8(32) {
		t[0xa0+int(n)] = form{kind: String, arg: n}
		t[0xe0+int(n)] = form{kind: Nint, arg: 31 - n} // 0xff is -1, that is Nint 0
	}
	t[0xc0] = form{kind: Null}
	t[0xc1] = form{kind: Invalid} // never used by the format
	t[0xc2] = form{kind: Bool, arg: 0}
	t[0xc3] = form{kind: Bool, arg: 1}
	for i, w := range []uint8{1, 2, 4} {
		t[0xc4+i] = form{kind: Bytes, width: w}
		t[0xc7+i] = form{kind: Ext, width: w, flags: extType}
		t[0xd9+i] = form{kind: String, width: w}
	}
	t[0xca] = form{kind: Float32, width: 4}
	t[0xcb] = form{kind: Float64, width: 8}
	for i, w := range []uint8{1, 2, 4, 8} {
		t[0xcc+i] = form{kind: Uint, width: w}
		t[0xd0+i] = form{kind: Uint, width: w, flags: signed}
	}
	for i := range 5 {
		t[0xd4+i] = form{kind: Ext, arg: 1 << i, flags: extType}
	}
	for i, w := range []uint8{2, 4} {
		t[0xdc+i] = form{kind: Array, width: w}
		t[0xde+i] = form{kind: Map, width: w}
	}
	return t
}

func cborForms() (t [256]form) {
	majors := [...]Kind{Uint, Nint, Bytes, String, Array, Map, Tag}
	for major, kind := range majors {
		for info := range uint8(24) {
			t[major<<5|int(info)] = form{kind: kind, arg: info}
		}
		for i, w := range []uint8{1, 2, 4, 8} {
			t[major<<5|(24+i)] = form{kind: kind, width: w}
		}
		if kind == Bytes || kind == String || kind == Array || kind == Map {
			t[major<<5|31] = form{kind: kind, flags: indefinite}
		}
	}
	for info := range uint8(20) {
		t[0xe0|int(info)] = form{kind: Simple, arg: info}
	}
	t[0xf4] = form{kind: Bool, arg: 0}
	t[0xf5] = form{kind: Bool, arg: 1}
	t[0xf6] = form{kind: Null}
	t[0xf7] = form{kind: Undefined}
	t[0xf8] = form{kind: Simple, width: 1, flags: simple8}
	t[0xf9] = form{kind: Float16, width: 2}
	t[0xfa] = form{kind: Float32, width: 4}
	t[0xfb] = form{kind: Float64, width: 8}
	t[0xff] = form{kind: End}
	return t
}

// MaxHead is the length of the longest head: a first byte and eight bytes of argument. (A msgpack ext has at most
// 1 + 4 + 1.)
const MaxHead = 9

// Head is the part of a token before its content.
type Head struct {
	Kind       Kind
	Ext        int8
	Indefinite bool   // CBOR: no length is given; the items, or the chunks of a String or Bytes, end with an End
	Size       int    // bytes of the head
	Arg        uint64 // Bits, or the count of an Array or Map, or the length of String, Bytes, Ext
}

// HasContent reports whether Arg bytes of content follow the head.
func (h Head) HasContent() bool {
	return (h.Kind == String || h.Kind == Bytes || h.Kind == Ext) && !h.Indefinite
}

// ReadHead reads the head at the start of p. A p that ends within the head gives [io.ErrUnexpectedEOF] itself, bytes
// that no value starts with an error of class [fault.Corrupt] with offset 0. An End is a head like any other: whether
// one may stand here is for the caller to know.
func ReadHead(c Codec, p []byte) (Head, error) {
	if len(p) == 0 {
		return Head{}, io.ErrUnexpectedEOF
	}
	f := &forms[c][p[0]]
	n := f.size()
	if f.kind == Invalid {
		return Head{}, badOpcode(c, p[0])
	}
	if len(p) < n {
		return Head{}, io.ErrUnexpectedEOF
	}
	h := Head{Kind: f.kind, Size: n, Arg: f.argument(p), Indefinite: f.flags == indefinite}
	switch f.flags {
	case signed:
		h.Kind, h.Arg = f.signed(h.Arg)
	case extType:
		h.Ext = int8(p[n-1])
	case simple8:
		if h.Arg < 32 {
			return Head{}, badSimple(h.Arg)
		}
	}
	if h.Arg > maxLength && (h.HasContent() || h.Kind == Array || h.Kind == Map) {
		return Head{}, badLength(h.Kind, h.Arg)
	}
	return h, nil
}

const (
	// maxLength is small enough that sums of a few lengths do not overflow an int: a build for 32 bits refuses what is
	// longer than 256 MiB.
	maxLength = math.MaxInt / 8
	// noLength is more than any length that bytes can back.
	noLength = math.MaxInt64 / 8
)

// size is the length of the head in bytes.
func (f *form) size() int {
	n := 1 + int(f.width)
	if f.flags == extType {
		n++
	}
	return n
}

// argument reads the argument of a head that is whole.
func (f *form) argument(p []byte) uint64 {
	switch f.width {
	case 1:
		return uint64(p[1])
	case 2:
		return uint64(binary.BigEndian.Uint16(p[1:]))
	case 4:
		return uint64(binary.BigEndian.Uint32(p[1:]))
	case 8:
		return binary.BigEndian.Uint64(p[1:])
	}
	return uint64(f.arg)
}

// signed gives the kind and bits of a two's complement argument.
func (f *form) signed(arg uint64) (Kind, uint64) {
	shift := 64 - 8*uint(f.width)
	if v := int64(arg<<shift) >> shift; v < 0 {
		return Nint, uint64(^v)
	}
	return Uint, arg
}

func badSimple(n uint64) *fault.Error {
	return corrupt("simple value %d in two bytes, which needs 32 or more", n)
}

func badLength(kind Kind, n uint64) *fault.Error {
	if n <= noLength {
		return fault.New(fault.Limit, "value", "%s of length %d, a build for 32 bits takes up to %d", kind, n, maxLength).At(0)
	}
	return corrupt("%s of length %d", kind, n)
}

func corrupt(format string, args ...any) *fault.Error {
	return fault.New(fault.Corrupt, "value", format, args...).At(0)
}

func badOpcode(c Codec, b byte) *fault.Error {
	return corrupt("byte 0x%02x starts no %s value", b, c)
}

// errTruncated gives the fault for input that ends within a value, at offset off; more is the number of bytes that it
// is short of at least, 0 where that is not known.
func errTruncated(off int64, missing string, more int64) *fault.Error {
	return fault.New(fault.Corrupt, "value", "input ends within %s", missing).At(off).Because(fault.Short(more))
}

// IsTruncated reports whether err says that the input ends within a value: more bytes could make it whole.
func IsTruncated(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
