package value

import (
	"math"
	"math/big"
	"strconv"

	"github.com/spilehq/spile/fault"
)

// jsonNumber is a number of JSON text as its parts.
type jsonNumber struct {
	size     int // of its text
	negative bool
	float    bool   // it has a fraction or an exponent
	mantissa uint64 // of the digits, when there are few
	digits   int    // without leading zeros
	exponent int    // of the last digit, when digits are few: the value is mantissa * 10^exponent
	bad      int    // 1 + the index of a byte that is wrong, 0 when there is none
}

// maxMantissa is the number of digits that a uint64 always holds.
const maxMantissa = 19

// scanNumber reads the number at the start of p. One that ends at the end of p may go on behind it.
func scanNumber(p []byte) (n jsonNumber) {
	i := 0
	if p[0] == '-' {
		n.negative = true
		i = 1
	}
	start := i
	for i < len(p) && p[i]-'0' < 10 {
		n.mantissa = n.mantissa*10 + uint64(p[i]-'0')
		i++
	}
	n.digits = i - start
	switch {
	case n.digits == 0:
		n.bad = i + 1
		n.size = i
		return n
	case p[start] == '0':
		if n.digits > 1 {
			n.bad = start + 2
		}
		n.digits = 0
	}
	if i < len(p) && p[i] == '.' {
		n.float = true
		i++
		start := i
		for i < len(p) && p[i]-'0' < 10 {
			n.mantissa = n.mantissa*10 + uint64(p[i]-'0')
			i++
		}
		if i == start && n.bad == 0 {
			n.bad = i + 1
		}
		n.exponent = start - i
		if n.digits += i - start; n.digits == i-start { // 0.000123 has three
			for start < i && p[start] == '0' {
				n.digits--
				start++
			}
		}
	}
	if i < len(p) && p[i]|0x20 == 'e' {
		n.float = true
		i++
		minus := false
		if i < len(p) && (p[i] == '+' || p[i] == '-') {
			minus = p[i] == '-'
			i++
		}
		start := i
		exp := 0
		for i < len(p) && p[i]-'0' < 10 {
			exp = min(exp*10+int(p[i]-'0'), maxExponent)
			i++
		}
		if i == start && n.bad == 0 {
			n.bad = i + 1
		}
		if minus {
			exp = -exp
		}
		n.exponent += exp
	}
	n.size = i
	return n
}

// maxExponent is where exponents are cut: far beyond what the digits of a number can make up for, and small enough for
// sums on 32 bits.
const maxExponent = 1 << (strconv.IntSize/2 + 8)

// maxJSONNumber is the length of the longest number as text. It holds the digits of a bignum of maxBignum bytes.
const maxJSONNumber = 640 << 10

// decimalPiece is the number of digits that are read in one go: reading takes time by the square of their number.
const decimalPiece = 2 << 10

// bigDecimal reads decimal digits. It cuts them in two and multiplies, which math/big does faster than by the square.
func bigDecimal(p []byte) *big.Int {
	var powers []*big.Int // 10^decimalPiece, and each the square of the one before
	for n := decimalPiece; n < len(p); n *= 2 {
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(decimalPiece), nil)
		if i := len(powers); i > 0 {
			power.Mul(powers[i-1], powers[i-1])
		}
		powers = append(powers, power)
	}
	return bigPiece(p, powers)
}

func bigPiece(p []byte, powers []*big.Int) *big.Int {
	for i := len(powers) - 1; i >= 0; i-- {
		if low := decimalPiece << i; len(p) > low {
			v := bigPiece(p[:len(p)-low], powers[:i+1])
			v.Mul(v, powers[i])
			return v.Add(v, bigPiece(p[len(p)-low:], powers[:i]))
		}
	}
	v, ok := new(big.Int).SetString(string(p), 10)
	if !ok {
		panic("value: scanNumber took what is no integer")
	}
	return v
}

// appendNumber appends the encoding of a number that scanNumber has read from p.
func (r *jsonReader) appendNumber(b, p []byte, n *jsonNumber, offset int64) ([]byte, error) {
	p = p[:n.size]
	if n.float {
		return r.appendDecimal(b, p, n, offset)
	}
	switch {
	case n.digits <= maxMantissa || n.digits == maxMantissa+1 && p[len(p)-n.digits] == '1' && n.mantissa >= 1e19:
		// 20 digits fit when they do not wrap around: below 2*10^19 only then they stay above 10^19.
		if !n.negative {
			return AppendUint(b, r.codec, n.mantissa), nil
		}
		if n.mantissa == 0 {
			return AppendUint(b, r.codec, 0), r.lost(LossSign, offset)
		}
		b, err := appendNint(b, r.codec, n.mantissa-1)
		return b, at(err, offset)
	case len(p) > maxJSONNumber:
		return b, fault.New(fault.Limit, "value", "number of %d digits, at most %d bytes", n.digits, maxJSONNumber).At(offset)
	}
	v := bigDecimal(p[len(p)-n.digits:])
	if n.negative {
		v.Neg(v)
	}
	b, err := AppendBigInt(b, r.codec, v)
	return b, at(err, offset)
}

// at gives an error that has no offset its own.
func at(err error, offset int64) error {
	if e, ok := err.(*fault.Error); ok && e.Offset < 0 {
		return e.At(offset)
	}
	return err
}

var exactPowers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
	1e18, 1e19, 1e20, 1e21, 1e22}

// appendDecimal appends the float64 that is nearest to a number.
func (r *jsonReader) appendDecimal(b, p []byte, n *jsonNumber, offset int64) ([]byte, error) {
	if len(p) > maxJSONNumber {
		return b, fault.New(fault.Limit, "value", "number of more than %d bytes", maxJSONNumber).At(offset)
	}
	var f float64
	if n.digits <= 15 && -22 <= n.exponent && n.exponent <= 22 {
		// Both numbers are exact, so one operation rounds once. And 15 digits are never lost.
		if f = float64(n.mantissa); n.exponent < 0 {
			f /= exactPowers[-n.exponent]
		} else {
			f *= exactPowers[n.exponent]
		}
		if n.negative {
			f = -f
		}
		return AppendFloat64(b, r.codec, f), nil
	}
	f, err := strconv.ParseFloat(string(p), 64)
	if err != nil || math.IsInf(f, 0) {
		return b, fault.New(fault.Invalid, "value", "number %s is beyond what a float64 holds", clip(p)).At(offset)
	}
	if n.digits > 15 || math.Abs(f) < 1e-300 { // tiny ones have fewer bits
		var shortest [32]byte
		if !sameDecimal(p, strconv.AppendFloat(shortest[:0], f, 'e', -1, 64)) {
			if err := r.lost(LossDigits, offset); err != nil {
				return b, err
			}
		}
	}
	return AppendFloat64(b, r.codec, f), nil
}

// decimalText walks over the digits of a number, without its leading zeros.
type decimalText struct {
	p        []byte // from the first digit that is not 0; may hold a point
	exponent int    // of the digit before the first one of p, as in 0.p * 10^exponent
}

func decimalOf(p []byte) decimalText {
	if p[0] == '-' {
		p = p[1:]
	}
	var d decimalText
	point := -1
	first := -1
	i := 0
	digits := 0 // before the point
	for ; i < len(p) && p[i]|0x20 != 'e'; i++ {
		switch {
		case p[i] == '.':
			point = i
			continue
		case point < 0:
			digits++
		}
		if first < 0 && p[i] != '0' {
			first = i
		}
	}
	if first < 0 {
		return d // zero
	}
	d.p = p[first:i]
	if i < len(p) {
		exp, _ := strconv.Atoi(string(p[i+1:])) // Atoi saturates, and takes a +
		d.exponent = min(max(exp, -maxExponent), maxExponent)
	}
	if point >= 0 && first > point {
		d.exponent -= first - point - 1
	} else {
		d.exponent += digits - first
	}
	return d
}

// sameDecimal reports whether two numbers of the same sign are the same.
func sameDecimal(a, b []byte) bool {
	x, y := decimalOf(a), decimalOf(b)
	if len(x.p) == 0 || len(y.p) == 0 {
		return len(x.p) == len(y.p)
	}
	if x.exponent != y.exponent {
		return false
	}
	i, j := 0, 0
	for i < len(x.p) || j < len(y.p) {
		c, d := byte('0'), byte('0')
		if i < len(x.p) {
			if c = x.p[i]; c == '.' {
				i++
				continue
			}
		}
		if j < len(y.p) {
			if d = y.p[j]; d == '.' {
				j++
				continue
			}
		}
		if c != d {
			return false
		}
		i++
		j++
	}
	return true
}
