package value

import (
	"encoding/binary"
	"math"
	"math/big"
	"time"

	"github.com/spilehq/spile/fault"
)

// The Append functions write one head, or one scalar with its content, in the one form that the msglc format writes
// (docs/format/msglc.md, "Payload encoding"): integers and lengths in their shortest form, floats in eight bytes.
// Reading takes every valid form. They check nothing that costs a pass over the content: a string is not checked for
// UTF-8. A length or a kind that the codec does not have is a mistake of the program, and they panic.

// The first bytes of msgpack; those of fixed length are in forms.
const (
	mpFixMap   = 0x80
	mpFixArray = 0x90
	mpFixStr   = 0xa0
	mpNil      = 0xc0
	mpFalse    = 0xc2
	mpTrue     = 0xc3
	mpBin8     = 0xc4
	mpExt8     = 0xc7
	mpFloat32  = 0xca
	mpFloat64  = 0xcb
	mpUint8    = 0xcc
	mpInt8     = 0xd0
	mpFixExt1  = 0xd4
	mpStr8     = 0xd9
	mpArray16  = 0xdc
	mpMap16    = 0xde
)

// The major types of CBOR, in place in the first byte, and the first bytes of major type 7.
const (
	cborUint      = 0 << 5
	cborNint      = 1 << 5
	cborBytes     = 2 << 5
	cborText      = 3 << 5
	cborArray     = 4 << 5
	cborMap       = 5 << 5
	cborTag       = 6 << 5
	cborSimple    = 7 << 5
	cborFalse     = 0xf4
	cborTrue      = 0xf5
	cborNull      = 0xf6
	cborUndefined = 0xf7
	cborSimple8   = 0xf8
	cborFloat16   = 0xf9
	cborFloat32   = 0xfa
	cborFloat64   = 0xfb
	cborNoLength  = 31 // the low bits of a head of indefinite length
)

// The CBOR tags that have a Go type of their own.
const (
	tagTimeText  = 0 // RFC 3339 text
	tagTimeEpoch = 1 // seconds since 1970, integer or float
	tagPosBig    = 2 // n, big-endian
	tagNegBig    = 3 // -1 - n, big-endian
)

// extTimestamp is the msgpack ext type of a timestamp.
const extTimestamp = -1

// AppendNull appends null.
func AppendNull(dst []byte, c Codec) []byte {
	if c == CBOR {
		return append(dst, cborNull)
	}
	return append(dst, mpNil)
}

// AppendBool appends a boolean.
func AppendBool(dst []byte, c Codec, b bool) []byte {
	first := byte(mpFalse)
	if c == CBOR {
		first = cborFalse
	}
	if b {
		first++
	}
	return append(dst, first)
}

// AppendUint appends an integer >= 0 in its shortest form.
func AppendUint(dst []byte, c Codec, n uint64) []byte {
	if c == CBOR {
		return appendCBORHead(dst, cborUint, n)
	}
	switch {
	case n < 0x80:
		return append(dst, byte(n))
	case n <= math.MaxUint8:
		return append(dst, mpUint8, byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpUint8+1, byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, mpUint8+2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpUint8+3), n)
}

// AppendInt appends an integer in its shortest form; one >= 0 is written as [AppendUint] does.
func AppendInt(dst []byte, c Codec, n int64) []byte {
	if n >= 0 {
		return AppendUint(dst, c, uint64(n))
	}
	if c == CBOR {
		return appendCBORHead(dst, cborNint, uint64(^n))
	}
	switch {
	case n >= -32:
		return append(dst, byte(n))
	case n >= math.MinInt8:
		return append(dst, mpInt8, byte(n))
	case n >= math.MinInt16:
		return append(dst, mpInt8+1, byte(n>>8), byte(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, mpInt8+2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpInt8+3), uint64(n))
}

// appendNint appends -1 - bits, which both codecs can hold as long as it fits an int64, CBOR always.
func appendNint(dst []byte, c Codec, bits uint64) ([]byte, error) {
	if bits <= math.MaxInt64 {
		return AppendInt(dst, c, ^int64(bits)), nil
	}
	if c == CBOR {
		return appendCBORHead(dst, cborNint, bits), nil
	}
	return dst, intRange(new(big.Int).Not(new(big.Int).SetUint64(bits)))
}

// AppendBigInt appends an integer of any size: as [AppendInt] where 64 bits hold it; beyond, CBOR has a plain integer
// down to -2^64 and tags 2 and 3 for the rest, and msgpack has nothing, an error of class [fault.Invalid].
func AppendBigInt(dst []byte, c Codec, n *big.Int) ([]byte, error) {
	if n.IsUint64() {
		return AppendUint(dst, c, n.Uint64()), nil
	}
	if n.IsInt64() {
		return AppendInt(dst, c, n.Int64()), nil
	}
	if c != CBOR {
		return dst, intRange(n)
	}
	if n.Sign() > 0 {
		return AppendBytes(AppendTag(dst, c, tagPosBig), c, n.Bytes()), nil
	}
	m := new(big.Int).Not(n) // -1 - n
	if m.IsUint64() {
		return appendCBORHead(dst, cborNint, m.Uint64()), nil
	}
	return AppendBytes(AppendTag(dst, c, tagNegBig), c, m.Bytes()), nil
}

func intRange(n *big.Int) error {
	text := "an integer of " + big.NewInt(int64(n.BitLen())).String() + " bits"
	if n.BitLen() <= 256 {
		text = "integer " + n.String()
	}
	return fault.New(fault.Invalid, "value", "%s, msgpack holds -2^63 to 2^64-1", text).Because(PermitCodec)
}

// AppendFloat64 appends a float in nine bytes; only in CBOR NaN and the infinities take three, and all NaN are one.
func AppendFloat64(dst []byte, c Codec, f float64) []byte {
	if c != CBOR {
		return binary.BigEndian.AppendUint64(append(dst, mpFloat64), math.Float64bits(f))
	}
	switch {
	case f != f:
		return append(dst, cborFloat16, 0x7e, 0)
	case f > math.MaxFloat64:
		return append(dst, cborFloat16, 0x7c, 0)
	case f < -math.MaxFloat64:
		return append(dst, cborFloat16, 0xfc, 0)
	}
	return binary.BigEndian.AppendUint64(append(dst, cborFloat64), math.Float64bits(f))
}

// AppendFloat32 appends a float in five bytes. The msglc format never writes that form; it serves those who copy a
// value and keep its width.
func AppendFloat32(dst []byte, c Codec, f float32) []byte {
	first := byte(mpFloat32)
	if c == CBOR {
		first = cborFloat32
	}
	return binary.BigEndian.AppendUint32(append(dst, first), math.Float32bits(f))
}

// AppendString appends a string, which must be valid UTF-8.
func AppendString(dst []byte, c Codec, s string) []byte {
	return append(appendStringHead(dst, c, len(s)), s...)
}

// AppendBytes appends a binary value.
func AppendBytes(dst []byte, c Codec, b []byte) []byte {
	return append(appendBytesHead(dst, c, len(b)), b...)
}

// AppendArrayHeader appends the head of an array of n items, which must follow.
func AppendArrayHeader(dst []byte, c Codec, n int) []byte {
	if c == CBOR {
		return appendCBORHead(dst, cborArray, uint64(n))
	}
	if n < 16 {
		return append(dst, mpFixArray|byte(n))
	}
	return appendMsgpackCount(dst, mpArray16, n)
}

// AppendMapHeader appends the head of a map of n pairs, which must follow: each key, then its value.
func AppendMapHeader(dst []byte, c Codec, n int) []byte {
	if c == CBOR {
		return appendCBORHead(dst, cborMap, uint64(n))
	}
	if n < 16 {
		return append(dst, mpFixMap|byte(n))
	}
	return appendMsgpackCount(dst, mpMap16, n)
}

// AppendExt appends a msgpack ext value. CBOR has none: c must be Msgpack.
func AppendExt(dst []byte, c Codec, typ int8, data []byte) []byte {
	if c != Msgpack {
		panic("value: ext in " + c.String())
	}
	return append(appendExtHead(dst, typ, len(data)), data...)
}

// AppendTag appends the head of a CBOR tag; the tagged value must follow. Msgpack has none: c must be CBOR.
func AppendTag(dst []byte, c Codec, number uint64) []byte {
	if c != CBOR {
		panic("value: tag in " + c.String())
	}
	return appendCBORHead(dst, cborTag, number)
}

// AppendUndefined appends the CBOR value undefined. Msgpack has none: c must be CBOR.
func AppendUndefined(dst []byte, c Codec) []byte {
	if c != CBOR {
		panic("value: undefined in " + c.String())
	}
	return append(dst, cborUndefined)
}

// AppendSimple appends a CBOR simple value: 0 to 19 or 32 to 255; 20 to 23 are false, true, null and undefined. Msgpack
// has none: c must be CBOR.
func AppendSimple(dst []byte, c Codec, n uint8) []byte {
	switch {
	case c != CBOR:
		panic("value: simple value in " + c.String())
	case n < 24:
		return append(dst, cborSimple|n)
	case n < 32:
		panic("value: simple values 24 to 31 do not exist")
	}
	return append(dst, cborSimple8, n)
}

// AppendTimestamp appends a point in time. In msgpack it is the shortest of the three timestamp forms, always UTC. In
// CBOR it is RFC 3339 text under tag 0 in the zone of t, with six digits of fraction where there is one, nine where six
// do not hold it; a year outside 0 to 9999 has no such text and is an error of class [fault.Invalid].
func AppendTimestamp(dst []byte, c Codec, t time.Time) ([]byte, error) {
	if c != CBOR {
		return appendMsgpackTime(dst, t.Unix(), uint32(t.Nanosecond())), nil
	}
	if _, offset := t.Zone(); offset%60 != 0 || offset <= -24*3600 || offset >= 24*3600 {
		t = t.UTC() // the text has no room for such an offset
	}
	if y := t.Year(); y < 0 || y > 9999 {
		return dst, fault.New(fault.Invalid, "value", "time in the year %d, the text form holds 0 to 9999", y)
	}
	layout := "2006-01-02T15:04:05Z07:00"
	switch n := t.Nanosecond(); {
	case n%1000 != 0:
		layout = "2006-01-02T15:04:05.000000000Z07:00"
	case n != 0:
		layout = "2006-01-02T15:04:05.000000Z07:00"
	}
	var text [40]byte
	b := t.AppendFormat(text[:0], layout)
	return append(appendStringHead(AppendTag(dst, c, tagTimeText), c, len(b)), b...), nil
}

func appendMsgpackTime(dst []byte, sec int64, nsec uint32) []byte {
	switch {
	case uint64(sec)>>34 != 0:
		dst = binary.BigEndian.AppendUint32(appendExtHead(dst, extTimestamp, 12), nsec)
		return binary.BigEndian.AppendUint64(dst, uint64(sec))
	case nsec != 0 || sec > math.MaxUint32:
		return binary.BigEndian.AppendUint64(appendExtHead(dst, extTimestamp, 8), uint64(nsec)<<34|uint64(sec))
	}
	return binary.BigEndian.AppendUint32(appendExtHead(dst, extTimestamp, 4), uint32(sec))
}

func appendStringHead(dst []byte, c Codec, n int) []byte {
	switch {
	case c == CBOR:
		return appendCBORHead(dst, cborText, uint64(n))
	case n < 32:
		return append(dst, mpFixStr|byte(n))
	}
	return appendMsgpackLength(dst, mpStr8, n)
}

func appendBytesHead(dst []byte, c Codec, n int) []byte {
	if c == CBOR {
		return appendCBORHead(dst, cborBytes, uint64(n))
	}
	return appendMsgpackLength(dst, mpBin8, n)
}

func appendExtHead(dst []byte, typ int8, n int) []byte {
	switch n {
	case 1:
		return append(dst, mpFixExt1, byte(typ))
	case 2:
		return append(dst, mpFixExt1+1, byte(typ))
	case 4:
		return append(dst, mpFixExt1+2, byte(typ))
	case 8:
		return append(dst, mpFixExt1+3, byte(typ))
	case 16:
		return append(dst, mpFixExt1+4, byte(typ))
	}
	return append(appendMsgpackLength(dst, mpExt8, n), byte(typ))
}

// appendMsgpackLength appends a length with the 8-bit form at first, the 16- and 32-bit forms behind it.
func appendMsgpackLength(dst []byte, first byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, first, byte(n))
	case n <= math.MaxUint16:
		return append(dst, first+1, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, first+2), msgpackSize(n))
}

// appendMsgpackCount appends a count with the 16-bit form at first and the 32-bit form behind it.
func appendMsgpackCount(dst []byte, first byte, n int) []byte {
	if n <= math.MaxUint16 {
		return append(dst, first, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, first+1), msgpackSize(n))
}

func msgpackSize(n int) uint32 {
	if uint64(n) > math.MaxUint32 {
		panic("value: msgpack holds lengths up to 2^32-1")
	}
	return uint32(n)
}

// appendCBORHead appends a head with its argument in the shortest form.
func appendCBORHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|24, byte(n))
	case n <= math.MaxUint16:
		return append(dst, major|25, byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}
