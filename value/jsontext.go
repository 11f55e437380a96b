package value

import (
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// The functions of this file print single values by the rules of JSONWriter, for rows and records of other formats.

// AppendJSONFloat appends a float of 32 or 64 bits as JSON text: the shortest that reads back to the same bits, with a
// fraction or an exponent. o says what becomes of NaN and the infinities, nil stands for the zero options; lost reports
// that one was written, as null ([LossNonFinite]) or as text ([LossNonFiniteText]). An error has no offset.
func AppendJSONFloat(dst []byte, f float64, size int, o *JSONOptions) (out []byte, lost bool, err error) {
	if f-f == 0 {
		return appendFloat(dst, f, size), false, nil
	}
	mode := NonFiniteError
	if o != nil {
		mode = o.NonFinite
	}
	out, e := appendNonFinite(dst, f, mode)
	if e != nil {
		return dst, false, e
	}
	return out, true, nil
}

func appendNonFinite(dst []byte, f float64, mode NonFiniteMode) ([]byte, *fault.Error) {
	name := "NaN"
	if f > 0 {
		name = "Infinity"
	} else if f < 0 {
		name = "-Infinity"
	}
	switch mode {
	case NonFiniteNull:
		return append(dst, "null"...), nil
	case NonFiniteString:
		return append(append(append(dst, '"'), name...), '"'), nil
	}
	return dst, fault.New(fault.Invalid, "value", "%s has no JSON form", name).Because(PermitNonFinite)
}

// AppendJSONString appends a string as JSON text. o says what becomes of bytes that are no UTF-8, nil stands for the
// zero options; lost reports that some were replaced. An error has no offset.
func AppendJSONString(dst []byte, s string, o *JSONOptions) (out []byte, lost bool, err error) {
	p := []byte(s)
	if n := plainPrefix(p); n < len(p) && !utf8.Valid(p[n:]) {
		if o == nil || o.InvalidUTF8 == UTF8Error {
			return dst, false, invalidText(p)
		}
		lost = true
		p = replaceUTF8(nil, p)
	}
	return append(appendEscaped(append(dst, '"'), p), '"'), lost, nil
}

func invalidText(p []byte) *fault.Error {
	return fault.New(fault.Corrupt, "value", "string is not valid UTF-8 (byte %d of %d)", invalidAt(p), len(p)).Because(PermitInvalidUTF8)
}

// invalidAt is where the first bytes of p stand that are no character.
func invalidAt(p []byte) int {
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(p)
}
