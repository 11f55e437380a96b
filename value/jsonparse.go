package value

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// minAhead is the number of bytes that parse has in its window, unless the text ends before. Shorter tokens, which
// nearly all are, need no look at the end of the window.
const minAhead = 4 << 10

// blank has the white space of JSON.
var blank = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}

// skipBlank gives the index of the first byte from i on that is not white space.
func skipBlank(p []byte, i int) int {
	for i < len(p) && blank[p[i]] {
		i++
	}
	return i
}

// next passes white space and returns the byte behind it without passing it; 0 at the end of the text.
func (r *jsonReader) next() (byte, error) {
	for {
		if r.pos = skipBlank(r.buf, r.pos); r.pos < len(r.buf) {
			return r.buf[r.pos], nil
		}
		if ok, err := r.fill(); !ok {
			return 0, err
		}
	}
}

// parse reads the text.
func (r *jsonReader) parse() error {
	for len(r.buf) < 3 {
		if ok, err := r.fill(); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	if len(r.buf) >= 3 && string(r.buf[:3]) == "\xef\xbb\xbf" {
		r.pos = 3
	}
	for {
		if len(r.buf)-r.pos < r.limits.ahead && r.src != nil {
			if err := r.ahead(); err != nil {
				return err
			}
		}
		if r.check {
			r.out = r.out[:0]
		}
		c, err := r.next()
		if err != nil {
			return err
		}
		done := false // with a value
		switch {
		case c == '"':
			err = r.string()
			done = true
		case c-'0' < 10 || c == '-':
			err = r.number()
			done = true
		case c == '{' || c == '[':
			if err = r.begin(c == '{'); err != nil {
				return err
			}
			if c, err = r.next(); err != nil {
				return err
			}
			f := &r.open[len(r.open)-1]
			switch {
			case c == f.closer():
				r.pos++
				err = r.end()
				done = true
			case f.isMap:
				err = r.key()
			default:
				f.n = 1
			}
		case c == 't':
			err = r.literal("true")
			r.out = AppendBool(r.out, r.codec, true)
			done = true
		case c == 'f':
			err = r.literal("false")
			r.out = AppendBool(r.out, r.codec, false)
			done = true
		case c == 'n':
			err = r.literal("null")
			r.out = AppendNull(r.out, r.codec)
			done = true
		default:
			return r.unexpected("a value")
		}
		if err != nil {
			return err
		}
		for done {
			if len(r.open) == 0 {
				if _, err = r.next(); err == nil && r.pos < len(r.buf) {
					err = r.unexpected("the end")
				}
				return err
			}
			f := &r.open[len(r.open)-1]
			if r.pos < len(r.buf) && r.buf[r.pos] == ',' { // without white space before it
				c = ','
			} else if c, err = r.next(); err != nil {
				return err
			}
			switch {
			case c == ',':
				r.pos++
				if f.isMap {
					if err := r.key(); err != nil {
						return err
					}
				} else {
					f.n++
				}
				done = false
			case c == f.closer():
				r.pos++
				if err := r.end(); err != nil {
					return err
				}
			case f.isMap:
				return r.unexpected("',' or '}'")
			default:
				return r.unexpected("',' or ']'")
			}
		}
	}
}

func (f *readFrame) closer() byte {
	if f.isMap {
		return '}'
	}
	return ']'
}

// ahead fills the window, and writes what is ready.
func (r *jsonReader) ahead() error {
	if r.offset() > r.stop {
		return errStopped
	}
	if r.src == nil {
		return nil
	}
	if r.pending == 0 && len(r.out) >= jsonFlush {
		if err := r.emit(); err != nil {
			return err
		}
	} else if int64(len(r.out)) > 4*(r.limits.long+jsonWindow) { // a container is longer than the pre-scan saw it
		return r.changed(r.open[0].start)
	}
	_, err := r.fill()
	return err
}

// unexpected is the error at a byte that cannot stand where it does.
func (r *jsonReader) unexpected(want string) error {
	if r.pos >= len(r.buf) {
		return errText("text ends", want).Because(fault.Short(0)).At(r.offset())
	}
	c := r.buf[r.pos]
	what := fmt.Sprintf("byte %#02x", c)
	if ' ' <= c && c < 0x7f {
		what = fmt.Sprintf("'%c'", c)
	}
	return errText(what, want).At(r.offset())
}

func errText(what, want string) *fault.Error {
	return fault.New(fault.Corrupt, "value", "not JSON: %s where %s is expected", what, want)
}

// literal passes a word.
func (r *jsonReader) literal(word string) error {
	if len(r.buf)-r.pos < len(word) {
		if _, err := r.fill(); err != nil {
			return err
		}
	}
	for i := range len(word) {
		if r.pos >= len(r.buf) || r.buf[r.pos] != word[i] {
			return r.unexpected(word)
		}
		r.pos++
	}
	return nil
}

// begin opens a container.
func (r *jsonReader) begin(isMap bool) error {
	start := r.offset()
	if len(r.open) >= r.lim.depth() {
		return depthFault(r.lim).At(start)
	}
	r.pos++
	var slot *shapePlace
	if len(r.open) == 0 {
		slot = &r.root[r.codec]
	} else if outer := &r.open[len(r.open)-1]; outer.isMap {
		slot = outer.shape.sub(outer.key)
	} else {
		slot = outer.slot
	}
	if len(r.open) < cap(r.open) {
		r.open = r.open[:len(r.open)+1]
	} else {
		r.open = append(r.open, readFrame{})
	}
	f := &r.open[len(r.open)-1]
	f.isMap, f.known, f.n, f.at, f.start = isMap, false, 0, len(r.out), start
	f.shape, f.slot, f.next, f.key, f.hits = nil, slot, 0, -1, 0
	f.keys.Open = false
	if isMap && !r.check {
		f.shape = r.learned.of(slot)
	}
	if r.check {
		f.known = true
		return nil
	}
	if len(r.longs) > 0 && r.longs[0].start == start {
		f.known, f.count = true, r.longs[0].n
		r.longs = r.longs[1:]
		if err := r.checkLength(f.count, start); err != nil {
			return err
		}
		h := wideHead{n: f.count, isMap: isMap}
		r.out = h.append(r.out, r.codec)
		return nil
	}
	r.pending++
	r.out = append(r.out, 0)
	return nil
}

// end closes the innermost container, whose bracket was passed.
func (r *jsonReader) end() error {
	f := &r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	if f.keys.Open {
		if err := r.keys.End(&f.keys); err != nil {
			return err
		}
		if f.shape != nil && len(f.shape.keys) == maxShapeKeys {
			f.shape.missed()
		}
	}
	switch {
	case r.check:
		return nil
	case f.known && f.n != f.count:
		return r.changed(f.start)
	case f.known:
		return nil
	}
	if f.n < 16 || f.n < 24 && r.codec == CBOR {
		first := byte(mpFixArray)
		switch {
		case r.codec == CBOR && f.isMap:
			first = cborMap
		case r.codec == CBOR:
			first = cborArray
		case f.isMap:
			first = mpFixMap
		}
		r.out[f.at] = first | byte(f.n)
	} else if err := r.checkLength(f.n, f.start); err != nil {
		return err
	} else {
		r.wide = append(r.wide, wideHead{at: f.at, n: f.n, isMap: f.isMap})
	}
	if r.pending--; r.pending == 0 && len(r.out) >= jsonFlush && r.src != nil {
		return r.emit()
	}
	return nil
}

// checkLength refuses what msgpack has no length for.
func (r *jsonReader) checkLength(n int, offset int64) error {
	if r.codec == Msgpack && int64(n) > math.MaxUint32 {
		return fault.New(fault.Invalid, "value", "length %d, msgpack holds %d at most", n, int64(math.MaxUint32)).At(offset).Because(PermitCodec)
	}
	return nil
}

func (r *jsonReader) changed(at int64) error {
	return fault.New(fault.Changed, "value", "JSON text has changed while it was read").At(at)
}

// number reads a number.
func (r *jsonReader) number() error {
	n := scanNumber(r.buf[r.pos:])
	for n.size == len(r.buf)-r.pos {
		if n.size > maxJSONNumber {
			return fault.New(fault.Limit, "value", "number of more than %d bytes", maxJSONNumber).At(r.offset())
		}
		if ok, err := r.fill(); err != nil {
			return err
		} else if !ok {
			break
		}
		n = scanNumber(r.buf[r.pos:])
	}
	if n.bad > 0 {
		r.pos += n.bad - 1
		return r.unexpected("a digit")
	}
	var err error
	r.out, err = r.appendNumber(r.out, r.buf[r.pos:], &n, r.offset())
	r.pos += n.size
	return err
}

// string reads a string that is a value.
func (r *jsonReader) string() error {
	p := r.buf[r.pos+1:]
	if n := plainPrefix(p); n < len(p) && p[n] == '"' && int64(n) <= math.MaxUint32 {
		r.out = append(appendStringHead(r.out, r.codec, n), p[:n]...)
		r.pos += n + 2
		return nil
	}
	for {
		var n int
		var why stringEnd
		var bad bool
		r.text, n, why, bad = r.decodeString(r.text[:0], r.buf[r.pos+1:])
		switch {
		case why == stringDone:
			if bad {
				if err := r.lost(LossUTF8, r.offset()); err != nil {
					return err
				}
			}
			if err := r.checkLength(len(r.text), r.offset()); err != nil {
				return err
			}
			r.out = append(appendStringHead(r.out, r.codec, len(r.text)), r.text...)
			r.pos += 1 + n
			return nil
		case why != stringMore:
			return r.stringFault(r.offset()+1+int64(n), why)
		case r.pos == 0 && len(r.buf) >= r.limits.window:
			return r.longString()
		}
		if ok, err := r.fill(); err != nil {
			return err
		} else if !ok {
			return r.stringFault(r.base+int64(len(r.buf)), why)
		}
	}
}

func (r *jsonReader) stringFault(at int64, why stringEnd) error {
	e := fault.New(fault.Corrupt, "value", "not JSON: %s", stringFaults[why]).At(at)
	switch why {
	case stringMore:
		e.Because(fault.Short(0))
	case stringUTF8, stringSurrogate:
		e.Because(PermitInvalidUTF8)
	}
	return e
}

// longString reads a string that is longer than the window: once for its length, once for its content.
func (r *jsonReader) longString() error {
	start := r.offset() + 1
	size := int64(0)
	replaced := false
	for pass := range 2 {
		r.base, r.pos, r.buf = start, 0, r.buf[:0]
		for {
			if _, err := r.fill(); err != nil {
				return err
			}
			text, n, why, bad := r.decodeString(r.text[:0], r.buf[r.pos:])
			r.text = text
			replaced = replaced || bad
			r.pos += n
			if end := r.base + int64(len(r.buf)); why == stringMore && end >= r.size {
				return r.stringFault(end, why)
			} else if why > stringMore {
				return r.stringFault(r.offset(), why)
			}
			if pass == 0 {
				size += int64(len(text))
			} else {
				r.out = append(r.out, text...)
				if r.pending == 0 {
					if err := r.emit(); err != nil {
						return err
					}
				}
			}
			if why == stringDone {
				break
			}
		}
		if pass == 0 {
			if err := r.checkLength(int(size), start-1); err != nil {
				return err
			}
			r.out = appendStringHead(r.out, r.codec, int(size))
		}
	}
	if replaced {
		return r.lost(LossUTF8, start-1)
	}
	return nil
}

// decodeString is [decodeString], which goes on behind what is not UTF-8, and says so, where that is to be replaced: a
// byte, or the escape of half a pair.
func (r *jsonReader) decodeString(b, p []byte) (text []byte, n int, why stringEnd, bad bool) {
	text, n, why = decodeString(b, p)
	for r.replace && (why == stringUTF8 || why == stringSurrogate) {
		bad = true
		n++
		if why == stringSurrogate {
			n += len(`u0000`)
		}
		text = utf8.AppendRune(text, utf8.RuneError)
		var m int
		text, m, why = decodeString(text, p[n:])
		n += m
	}
	return text, n, why, bad
}

// key reads a key and the colon behind it, from the white space before the key on.
func (r *jsonReader) key() error {
	if len(r.buf)-r.pos < r.limits.ahead && r.src != nil {
		if err := r.ahead(); err != nil {
			return err
		}
	}
	c, err := r.next()
	if err != nil {
		return err
	}
	if c != '"' {
		return r.unexpected("a key")
	}
	f := &r.open[len(r.open)-1]
	f.n++
	start := r.offset()
	if i := f.next; f.shape != nil && uint(i) < uint(len(f.shape.keys)) && !f.keys.Open && f.hits>>i&1 == 0 {
		if k := &f.shape.keys[i]; k.starts(r.buf[r.pos:]) {
			r.out = append(r.out, k.out...)
			r.pos += len(k.raw)
			f.hits |= 1 << i
			f.key, f.next = i, i+1
			return r.colon()
		}
	}
	raw, text, bad, err := r.keyText()
	if err != nil {
		return err
	}
	if bad {
		if err := r.lost(LossUTF8, start); err != nil {
			return err
		}
	}
	head := len(r.out)
	r.out = appendStringHead(r.out, r.codec, len(text))
	from := len(r.out)
	r.out = append(r.out, text...)
	if f.shape != nil && !f.keys.Open {
		i := f.shape.find(raw)
		if i < 0 && !bad {
			i = r.learned.learn(f.shape, raw, r.out[head:], from-head, len(r.out)-head)
		}
		if i >= 0 && f.hits>>i&1 == 0 {
			f.hits |= 1 << i
			f.key, f.next = i, i+1
			return r.colon()
		}
	}
	f.key = -1
	if r.keepTwins {
		return r.colon()
	}
	if !f.keys.Open {
		r.keys.Begin(&f.keys, f.start)
		for i := range maxShapeKeys {
			if f.hits>>i&1 != 0 {
				if _, err := r.keys.Add(&f.keys, f.shape.keys[i].text, -1); err != nil {
					return err
				}
			}
		}
	}
	twin, err := r.keys.Add(&f.keys, text, start)
	switch {
	case err != nil:
		return err
	case twin != nil:
		return fault.New(fault.Conflict, "value", "key %s occurs twice in one object", clip(raw)).At(start).Because(PermitKeepDup)
	case r.keys.Full():
		if err := r.lookUp(start); err != nil {
			return err
		}
	}
	return r.colon()
}

// keyText passes the key at pos. It returns the key as it stands in the text and its content, valid until the next
// fill, and whether something in it was replaced.
func (r *jsonReader) keyText() (raw, text []byte, bad bool, err error) {
	for {
		p := r.buf[r.pos:]
		if n := 1 + plainPrefix(p[1:]); n < len(p) && p[n] == '"' && n <= maxKeyText {
			r.pos += n + 1
			return p[:n+1], p[1:n], false, nil
		}
		var n int
		var why stringEnd
		r.text, n, why, bad = r.decodeString(r.text[:0], p[1:])
		n++
		switch {
		case why != stringDone && why != stringMore:
			return nil, nil, false, r.stringFault(r.offset()+int64(n), why)
		case n > maxKeyText || why == stringMore && len(p) > maxKeyText:
			return nil, nil, false, fault.New(fault.Limit, "value", "key of more than %d bytes", maxKeyText).At(r.offset())
		case why == stringDone:
			r.pos += n
			return p[:n], r.text, bad, nil
		}
		if ok, err := r.fill(); err != nil {
			return nil, nil, false, err
		} else if !ok {
			return nil, nil, false, r.stringFault(r.base+int64(len(r.buf)), why)
		}
	}
}

// colon passes the colon behind a key.
func (r *jsonReader) colon() error {
	if r.pos < len(r.buf) && r.buf[r.pos] == ':' {
		r.pos++
		return nil
	}
	c, err := r.next()
	if err != nil {
		return err
	}
	if c != ':' {
		return r.unexpected("':'")
	}
	r.pos++
	return nil
}
