package series

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// jsonText reads JSON text, which is valid UTF-8, once from front to back. What is passed over costs no memory. Behind an
// error everything is empty, and nothing more is read.
type jsonText struct {
	p     []byte
	pos   int
	first bool // the container was just opened
	err   error
	buf   []byte // of texts with escapes
}

// aKind is a kind in messages.
func aKind(kind string) string {
	switch kind {
	case "":
		return "nothing"
	case "object", "array":
		return "an " + kind
	case "null":
		return kind
	}
	return "a " + kind
}

func (j *jsonText) fail(format string, args ...any) {
	if j.err == nil {
		j.err = corrupt(2, format, args...).At(int64(j.pos))
		j.pos = len(j.p)
	}
}

// next is the next byte that is no blank, 0 at the end.
func (j *jsonText) next() byte {
	for ; j.pos < len(j.p); j.pos++ {
		switch c := j.p[j.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// kind says what the next value is, "" when there is none.
func (j *jsonText) kind() string {
	switch c := j.next(); {
	case c == '{':
		return "object"
	case c == '[':
		return "array"
	case c == '"':
		return "string"
	case c == '-' || c >= '0' && c <= '9':
		return "number"
	case c == 't' || c == 'f':
		return "boolean"
	case c == 'n':
		return "null"
	}
	if j.pos == len(j.p) {
		j.fail("the text ends where a value belongs")
	} else {
		r, _ := utf8.DecodeRune(j.p[j.pos:])
		j.fail("%q where a value belongs", r)
	}
	return ""
}

// open goes into a container, whose kind was looked at.
func (j *jsonText) open() {
	if j.err == nil {
		j.pos++
	}
	j.first = true
}

// more goes to the next member or item, and out of the container at its end.
func (j *jsonText) more(closer byte) bool {
	if j.err != nil {
		return false
	}
	c := j.next()
	first := j.first
	j.first = false
	switch {
	case c == closer:
		j.pos++
		return false
	case first:
		return true
	case c == ',':
		j.pos++
		return true
	}
	j.fail("%q or a comma is missing", closer)
	return false
}

// key reads the name of a member and the colon behind it.
func (j *jsonText) key() []byte {
	if j.next() != '"' {
		j.fail("the name of a member is missing")
		return nil
	}
	name := j.text()
	if j.next() != ':' {
		j.fail("a colon is missing")
		return nil
	}
	j.pos++
	return name
}

// end demands that nothing follows.
func (j *jsonText) end() {
	if j.next(); j.pos < len(j.p) {
		j.fail("there is more behind the object")
	}
}

// skip passes a value over. Containers within one another are bounded.
func (j *jsonText) skip() {
	var open []byte // the bytes that end the containers around
	for {
		switch j.kind() {
		case "":
			return
		case "object", "array":
			if len(open) == value.DefaultDepth {
				if j.err == nil {
					j.err = failed(fault.Limit, 2, "more than %d objects and arrays within one another", value.DefaultDepth).At(int64(j.pos))
					j.pos = len(j.p)
				}
				return
			}
			closer := byte('}')
			if j.p[j.pos] == '[' {
				closer = ']'
			}
			open = append(open, closer)
			j.open()
		case "string":
			j.pass()
		case "number":
			j.number()
		case "boolean":
			if j.p[j.pos] == 't' {
				j.word("true")
			} else {
				j.word("false")
			}
		case "null":
			j.word("null")
		}
		// To the next value, out of what ends here.
		for len(open) > 0 && !j.more(open[len(open)-1]) {
			open = open[:len(open)-1]
		}
		if len(open) == 0 || j.err != nil {
			return
		}
		if open[len(open)-1] == '}' {
			if j.next() != '"' {
				j.fail("the name of a member is missing")
				return
			}
			j.pass()
			if j.next() != ':' {
				j.fail("a colon is missing")
				return
			}
			j.pos++
		}
	}
}

func (j *jsonText) word(word string) {
	if !bytes.HasPrefix(j.p[j.pos:], []byte(word)) {
		j.fail("no value that JSON has")
		return
	}
	j.pos += len(word)
}

// number reads a number, and returns it as it stands there.
func (j *jsonText) number() []byte {
	start := j.pos
	digits := func() int {
		n := j.pos
		for j.pos < len(j.p) && j.p[j.pos]-'0' <= 9 {
			j.pos++
		}
		return j.pos - n
	}
	at := func(set string) bool {
		if j.pos < len(j.p) && bytes.IndexByte([]byte(set), j.p[j.pos]) >= 0 {
			j.pos++
			return true
		}
		return false
	}
	at("-")
	ok := at("0") || digits() > 0
	if ok && at(".") {
		ok = digits() > 0
	}
	if ok && at("eE") {
		at("+-")
		ok = digits() > 0
	}
	if ok && j.pos < len(j.p) && j.p[j.pos]-'0' <= 9 {
		ok = false // a 0 in front
	}
	if !ok {
		j.fail("no number that JSON has")
		return nil
	}
	return j.p[start:j.pos]
}

// pass passes a string over.
func (j *jsonText) pass() {
	for j.pos++; j.pos < len(j.p); j.pos++ {
		switch c := j.p[j.pos]; {
		case c == '"':
			j.pos++
			return
		case c < ' ':
			j.fail("a control character in a string")
			return
		case c == '\\':
			if _, ok := j.escape(); !ok {
				return
			}
			j.pos--
		}
	}
	j.fail("a string does not end")
}

// text reads a string. The bytes are good until the next one.
func (j *jsonText) text() []byte {
	start := j.pos + 1
	i := start
	for i < len(j.p) && j.p[i] != '"' && j.p[i] != '\\' && j.p[i] >= ' ' {
		i++
	}
	if i < len(j.p) && j.p[i] == '"' {
		j.pos = i + 1
		return j.p[start:i]
	}
	j.buf = append(j.buf[:0], j.p[start:min(i, len(j.p))]...)
	for j.pos = i; j.pos < len(j.p); {
		switch c := j.p[j.pos]; {
		case c == '"':
			j.pos++
			return j.buf
		case c < ' ':
			j.fail("a control character in a string")
			return nil
		case c == '\\':
			r, ok := j.escape()
			if !ok {
				return nil
			}
			j.buf = utf8.AppendRune(j.buf, r)
		default:
			j.buf = append(j.buf, c)
			j.pos++
		}
	}
	j.fail("a string does not end")
	return nil
}

// escape reads an escape.
func (j *jsonText) escape() (rune, bool) {
	const names, runes = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if len(j.p)-j.pos < 2 {
		j.fail("a string does not end")
		return 0, false
	}
	c := j.p[j.pos+1]
	if i := slices.Index([]byte(names), c); i >= 0 {
		j.pos += 2
		return rune(runes[i]), true
	}
	r, ok := hex4(j.p[j.pos:])
	if !ok {
		j.fail("an escape that JSON does not have")
		return 0, false
	}
	if utf16.IsSurrogate(r) {
		second, _ := hex4(j.p[j.pos+6:])
		if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
			j.fail("half of a character in an escape")
			return 0, false
		}
		j.pos += 6
	}
	j.pos += 6
	return r, true
}

// hex4 reads \uXXXX.
func hex4(p []byte) (r rune, ok bool) {
	if len(p) < 6 || p[0] != '\\' || p[1] != 'u' {
		return 0, false
	}
	for _, c := range p[2:6] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
