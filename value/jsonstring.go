package value

import (
	"unicode/utf16"
	"unicode/utf8"
)

// stringEnd says why decodeString stopped.
type stringEnd uint8

const (
	stringDone stringEnd = iota // behind the closing quote
	stringMore                  // the text goes on behind p
	stringUTF8                  // at bytes that are not UTF-8
	stringControl
	stringEscape    // at an escape that does not exist
	stringSurrogate // at the escape of half a pair
)

var stringFaults = [...]string{
	stringMore:      "text ends within a string",
	stringUTF8:      "string is not valid UTF-8",
	stringControl:   "control character in a string, which needs an escape",
	stringEscape:    "invalid escape in a string",
	stringSurrogate: "escape of a surrogate without its other half",
}

// decodeString appends the content of a JSON string, which p is inside of, to b. It returns how many bytes of p it has
// taken. What may be a part of an escape or of a character that goes on behind p is not taken.
func decodeString(b, p []byte) ([]byte, int, stringEnd) {
	i := 0
	for {
		n := escapePrefix(p[i:])
		run := p[i : i+n]
		end := i+n == len(p)
		if k := plainPrefix(run); k < n && !utf8.Valid(run[k:]) {
			valid := k
			for valid < n {
				if !utf8.FullRune(run[valid:]) && end {
					break
				}
				r, size := utf8.DecodeRune(run[valid:])
				if r == utf8.RuneError && size == 1 {
					return append(b, run[:valid]...), i + valid, stringUTF8
				}
				valid += size
			}
			run = run[:valid]
		}
		b = append(b, run...)
		i += len(run)
		if end {
			return b, i, stringMore
		}
		switch c := p[i]; {
		case c == '"':
			return b, i + 1, stringDone
		case c < ' ':
			return b, i, stringControl
		}
		rest := p[i:]
		if len(rest) < 2 {
			return b, i, stringMore
		}
		if c := escapes[rest[1]]; c != 0 {
			b = append(b, c)
			i += 2
			continue
		}
		if rest[1] != 'u' {
			return b, i, stringEscape
		}
		r, ok := hex4(rest[2:])
		if !ok {
			return b, i, moreOr(stringEscape, rest[2:], 4)
		}
		i += 6
		if utf16.IsSurrogate(r) {
			low := rest[6:]
			if r >= 0xdc00 {
				return b, i - 6, stringSurrogate
			}
			if len(low) < 2 && (len(low) == 0 || low[0] == '\\') {
				return b, i - 6, stringMore
			}
			if low[0] != '\\' || low[1] != 'u' {
				return b, i - 6, stringSurrogate
			}
			r2, ok := hex4(low[2:])
			if !ok {
				return b, i - 6, moreOr(stringSurrogate, low[2:], 4)
			}
			if r = utf16.DecodeRune(r, r2); r == utf8.RuneError {
				return b, i - 6, stringSurrogate
			}
			i += 6
		}
		b = utf8.AppendRune(b, r)
	}
}

// moreOr is why when n digits are there, or a byte that is none; else more text is needed to tell.
func moreOr(why stringEnd, p []byte, n int) stringEnd {
	for i := range min(n, len(p)) {
		if _, ok := hexDigit(p[i]); !ok {
			return why
		}
	}
	if len(p) < n {
		return stringMore
	}
	return why
}

// escapes maps the letter of a short escape to what it stands for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func hex4(p []byte) (rune, bool) {
	if len(p) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p[:4] {
		d, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
