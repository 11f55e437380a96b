package value

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

// The bytes of a word, eight at a time: a byte of a word is special when its high bit comes out set.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// lowBytes has, at n, a word with the first n bytes set, and at n+17 the second word for n bytes in two.
var lowBytes = func() (t [34]uint64) {
	for n := range 17 {
		t[n] = 1<<(8*uint(min(n, 8))) - 1
		t[n+17] = 1<<(8*uint(max(n, 8)-8)) - 1
	}
	return t
}()

// specialBytes has the high bit set of the first byte of x that needs care in a JSON string: a control, a quote, a
// backslash, a byte beyond ASCII. Bytes before it have theirs clear, those behind it can have any.
func specialBytes(x uint64) uint64 {
	return (x | (x - 0x20*eachByte) | (x ^ '"'*eachByte - eachByte) | (x ^ '\\'*eachByte - eachByte)) & highBits
}

// escapeBytes is specialBytes without those beyond ASCII.
func escapeBytes(x uint64) uint64 {
	return ((x - 0x20*eachByte) | (x ^ '"'*eachByte - eachByte) | (x ^ '\\'*eachByte - eachByte)) &^ x & highBits
}

// plainPrefix is the number of bytes at the start of p that stand for themselves in a JSON string and are ASCII.
func plainPrefix(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		if m := specialBytes(binary.LittleEndian.Uint64(p[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// escapePrefix is the number of bytes at the start of p that need no escape in a JSON string.
func escapePrefix(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		if m := escapeBytes(binary.LittleEndian.Uint64(p[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// appendEscape appends the shortest escape of a byte that needs one.
func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	}
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// appendEscaped appends p with its escapes. It does not look at bytes beyond ASCII.
func appendEscaped(b, p []byte) []byte {
	for {
		n := escapePrefix(p)
		b = append(b, p[:n]...)
		if n == len(p) {
			return b
		}
		b = appendEscape(b, p[n])
		p = p[n+1:]
	}
}

// replaceUTF8 appends p with U+FFFD for each byte that belongs to no character, without escapes.
func replaceUTF8(b, p []byte) []byte {
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		b = utf8.AppendRune(b, r) // RuneError for what is no character
		p = p[n:]
	}
	return b
}

const digitPairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

// appendUint appends n in decimal. Unlike strconv.AppendUint it has no loop and no branch on the number of digits,
// which no processor can guess.
func appendUint(b []byte, n uint64) []byte {
	if n >= 1e8 {
		return appendLongUint(b, n)
	}
	x := decimal8(uint32(n))
	zeros := bits.TrailingZeros64(x|1<<56) &^ 7
	b = binary.LittleEndian.AppendUint64(b, (x|'0'*eachByte)>>zeros)
	return b[:len(b)-zeros/8]
}

func appendLongUint(b []byte, n uint64) []byte {
	if n >= 1e16 {
		b = appendUint(b, n/1e16)
		b = binary.LittleEndian.AppendUint64(b, decimal8(uint32(n/1e8%1e8))|'0'*eachByte)
	} else {
		b = appendUint(b, n/1e8)
	}
	return binary.LittleEndian.AppendUint64(b, decimal8(uint32(n%1e8))|'0'*eachByte)
}

// decimal8 gives the eight decimal digits of n < 10^8, each in a byte, the first one in the lowest. It splits lanes of
// a word in two, three times; the products are exact divisions for numbers as small as those in the lanes.
func decimal8(n uint32) uint64 {
	x := uint64(n/10000) | uint64(n%10000)<<32
	q := x * 10486 >> 20 & 0x7f_0000_007f // by 100
	x = q | (x-100*q)<<16
	q = x * 103 >> 10 & 0xf_000f_000f_000f // by 10
	return q | (x-10*q)<<8
}

// appendNegative appends -1 - bits in decimal.
func appendNegative(b []byte, bits uint64) []byte {
	if bits == math.MaxUint64 {
		return append(b, "-18446744073709551616"...)
	}
	return appendUint(append(b, '-'), bits+1)
}

// appendFloat appends the shortest text that reads back to the bits of f, as a float of the given size. It has a
// fraction or an exponent, the exponent where encoding/json and JavaScript put one. f is finite.
func appendFloat(b []byte, f float64, size int) []byte {
	abs := math.Abs(f)
	if math.Signbit(f) {
		b = append(b, '-')
	}
	if size == 64 {
		// A number with few decimals, which most are, has a decimal form of 15 digits at most. No two of those are the
		// same float64, so one that reads back to f is the shortest. A division that is rounded once tells, and is several
		// times faster than finding the digits.
		if abs < 1e9 {
			scaled := abs * 1e6
			n := int64(scaled + 0.5)
			if math.Abs(float64(n)-scaled) <= scaled*0x1p-50 && float64(n)/1e6 == abs {
				return appendMillionths(b, uint64(n))
			}
		}
	} else if abs < 1e3 && float32(float64(int64(abs*1e3+0.5))/1e3) == float32(abs) {
		// The same with the six digits that a float32 tells apart. The second rounding does no harm: such a decimal is
		// much further from the middle of two float32 than a float64 is wrong, or is the middle.
		return appendMillionths(b, 1000*uint64(abs*1e3+0.5))
	}
	at := len(b)
	b = strconv.AppendFloat(b, abs, 'e', -1, size)
	exp := len(b) - 1 // of the last digit of the exponent
	for b[exp-1] != '-' && b[exp-1] != '+' {
		exp--
	}
	x := 0
	for _, c := range b[exp:] {
		x = x*10 + int(c-'0')
	}
	mantissa := b[at : exp-2]
	if b[exp-1] == '-' {
		x = -x
	}
	if x < -6 || x >= 21 {
		if b[exp] == '0' { // e-07 is e-7
			b = append(b[:exp], b[exp+1:]...)
		}
		return b
	}
	return pointed(b, at, mantissa, x)
}

// pointed rewrites the mantissa d.ddd at the end of b, which stands for itself times 10^x, without the exponent.
// strconv can do that, but digit by digit.
func pointed(b []byte, at int, mantissa []byte, x int) []byte {
	const zeros = "0000000000000000000000"
	digits := mantissa[:1]
	var rest []byte
	if len(mantissa) > 2 {
		rest = mantissa[2:]
	}
	switch {
	case x < 0:
		first := at + 1 - x // behind 0. and -x-1 zeros
		b = append(b[:at+len(mantissa)], zeros[:8]...)
		copy(b[first+1:], rest)
		b[first] = digits[0]
		copy(b[at:first], "0.00000000"[:1-x])
		return b[:first+1+len(rest)]
	case len(rest) > x:
		copy(b[at+1:], rest[:x])
		b[at+1+x] = '.'
		return b[:at+2+len(rest)]
	}
	copy(b[at+1:], rest)
	b = append(b[:at+1+len(rest)], zeros[:x-len(rest)]...)
	return append(b, '.', '0')
}

// appendMillionths appends n / 10^6 without trailing zeros, but with one digit behind the point at least.
func appendMillionths(b []byte, n uint64) []byte {
	whole := n / 1e6
	b = append(appendUint(b, whole), '.')
	x := decimal8(uint32(n-whole*1e6) * 100)
	b = binary.LittleEndian.AppendUint64(b, x|'0'*eachByte)
	return b[:len(b)-bits.LeadingZeros64(x|1)/8]
}

// maxBignum is the length of the longest bignum, in bytes, that is printed: 631,306 digits, which take a quarter of a
// second. The time grows faster than the length, so a limit is needed.
const maxBignum = 256 << 10

// appendBignum appends the integer of the magnitude p, or -1 - p.
func appendBignum(b, p []byte, negative bool) []byte {
	for len(p) > 0 && p[0] == 0 {
		p = p[1:]
	}
	if len(p) <= 8 {
		var n uint64
		for _, c := range p {
			n = n<<8 | uint64(c)
		}
		if negative {
			return appendNegative(b, n)
		}
		return appendUint(b, n)
	}
	n := new(big.Int).SetBytes(p)
	if negative {
		n.Not(n)
	}
	return n.Append(b, 10)
}

// byteForm says how binary is written as text.
type byteForm uint8

const (
	formBase64URL byteForm = iota // without padding; the default, and CBOR tag 21
	formBase64                    // with padding, CBOR tag 22
	formHex                       // CBOR tag 23
)

// appendBytesText appends the text of p, without quotes. A long p can be cut at multiples of byteChunk.
func appendBytesText(b, p []byte, form byteForm) []byte {
	switch form {
	case formBase64:
		return base64.StdEncoding.AppendEncode(b, p)
	case formHex:
		at := len(b)
		b = hex.AppendEncode(b, p)
		for i, c := range b[at:] {
			if c >= 'a' {
				b[at+i] = c - 'a' + 'A' // RFC 8949 section 3.4.5.2 wants capitals
			}
		}
		return b
	}
	return base64.RawURLEncoding.AppendEncode(b, p)
}

// byteChunk is a multiple of the three bytes that base64 puts into four characters.
const byteChunk = 12 << 10

// appendTimestamp appends the text of a msgpack timestamp, quotes included; false when p is none that RFC 3339 can say.
func appendTimestamp(b, p []byte) ([]byte, bool) {
	sec, nsec, ok := timestampParts(p)
	const first, last = -62167219200, 253402300799 // 0000-01-01T00:00:00Z, 9999-12-31T23:59:59Z
	if !ok || sec < first || sec > last {
		return b, false
	}
	t := time.Unix(sec, 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendPair(appendPair(append(b, '"'), year/100), year%100)
	b = appendPair(append(b, '-'), int(month))
	b = appendPair(append(b, '-'), day)
	b = appendPair(append(b, 'T'), hour)
	b = appendPair(append(b, ':'), minute)
	b = appendPair(append(b, ':'), second)
	b = append(b, '.')
	for unit := uint32(100000000); unit > 0; unit /= 10 {
		b = append(b, byte('0'+nsec/unit%10))
	}
	return append(b, 'Z', '"'), true
}

func appendPair(b []byte, n int) []byte { return append(b, digitPairs[2*n], digitPairs[2*n+1]) }
