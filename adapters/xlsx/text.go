package xlsx

import (
	"unicode/utf16"
	"unicode/utf8"
)

// maxCell is the most UTF-16 units of text that a cell holds.
const maxCell = 32767

// escape reads _xHHHH_ at the start of a text.
func escape[T string | []byte](s T) (unit rune, ok bool) {
	if len(s) < 7 || s[0] != '_' || s[1] != 'x' || s[6] != '_' {
		return 0, false
	}
	return hex4(s[2:6])
}

func hex4[T string | []byte](s T) (n rune, ok bool) {
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// unescape replaces _xHHHH_ in place. ok is false where that is half a surrogate pair.
func unescape(p []byte) (text []byte, ok bool) {
	out := p[:0]
	for i := 0; i < len(p); {
		unit, ok := rune(0), false
		if p[i] == '_' {
			unit, ok = escape(p[i:])
		}
		if !ok {
			out = append(out, p[i])
			i++
			continue
		}
		i += 7
		if utf16.IsSurrogate(unit) {
			second, ok := escape(p[i:])
			pair := utf16.DecodeRune(unit, second)
			if !ok || pair == utf8.RuneError {
				return nil, false
			}
			unit = pair
			i += 7
		}
		out = utf8.AppendRune(out, unit)
	}
	return out, true
}

// appendText appends text as the content of an element.
func appendText(dst []byte, s []byte) []byte {
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRune(s[i:])
		switch {
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c == '_':
			// An escape of its own, and what becomes one together with an escape behind it.
			if len(s) >= i+6 && s[i+1] == 'x' {
				if _, ok := hex4(s[i+2 : i+6]); ok {
					dst = append(dst, "_x005F"...)
				}
			}
			dst = append(dst, '_')
		case c < ' ' && c != '\t' && c != '\n', c == 0xfffe, c == 0xffff:
			const digits = "0123456789ABCDEF"
			dst = append(dst, '_', 'x', digits[c>>12], digits[c>>8&15], digits[c>>4&15], digits[c&15], '_')
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

// units is the length of text in UTF-16.
func units(s []byte) int {
	if len(s) <= maxCell {
		return 0
	}
	n := 0
	for _, c := range string(s) {
		n += utf16.RuneLen(c)
	}
	return n
}
