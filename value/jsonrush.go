package value

import (
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"
)

// canRush reports whether rush can write what comes next.
func (w *JSONWriter) canRush(s *Scanner, depth int) bool {
	return w.mode == modeWrite && !w.slow && w.plan == nil && !w.opts.Pretty && w.hold == 0 && !w.tags.any &&
		(s.rem >= 0 || len(s.open) == 0) && w.top().kind != frameTop
}

const (
	rushString = 4 << 10 // longer strings are written in parts
	rushRoom   = 1 << 10 // bytes that any other token, with a key before it and what is around them, takes at most
)

// rush is the fast twin of step: it writes many tokens at a time, the ordinary ones, that lie whole in the window of the
// scanner, in compact form. It leaves all else to step and never does otherwise than step would. It reports whether the
// item that run writes is complete.
//
// What makes it fast is that the scanner's token is not stored and loaded, and that the keys of maps are guessed from the
// maps at the same place before (see keyShape). A document of small records comes out at three times the speed.
func (w *JSONWriter) rush(s *Scanner, depth int) (bool, error) {
	b, p, pos := w.buf, s.buf, s.pos
	table := &forms[s.codec]
	f := w.top()
	base := len(w.open) == depth
	full := w.full(b)
	done := false
	var err error
	for !done {
		if s.rem == 0 {
			if base {
				break // the caller's container ends
			}
			s.closeContainer()
			if f.kind == frameArray {
				b = append(b, ']')
			} else {
				b = append(b, '}')
			}
			if f.keys.open {
				w.closeFrame(f)
			} else {
				w.open = w.open[:len(w.open)-1]
			}
			f = w.top()
			base = len(w.open) == depth
		} else {
			if pos >= len(p) {
				break
			}
			if len(b) > full {
				w.buf = b
				if err = w.spill(); err != nil {
					break
				}
				b = slices.Grow(w.buf, rushRoom)
				full = w.full(b)
			}
			mark := len(b)
			if f.kind == frameArray {
				if f.some {
					b = append(b, ',')
				}
			} else if !f.value {
				if f.shape == nil || f.keys.open {
					break
				}
				i := f.next
				var k *knownKey
				if uint(i) < uint(len(f.shape.keys)) {
					k = &f.shape.keys[i]
				}
				if k == nil || !k.starts(p[pos:]) {
					if i = w.findKey(f.shape, table, p[pos:]); i < 0 {
						break
					}
					k = &f.shape.keys[i]
				}
				if f.hits>>i&1 != 0 {
					break
				}
				b = k.appendTo(b, !f.some)
				pos += len(k.raw)
				s.rem--
				f.hits |= 1 << i
				f.key, f.next, f.some, f.value = i, i+1, true, true
				if mark = len(b); pos >= len(p) {
					break
				}
			}
			fm := table[p[pos]]
			n := 1 + int(fm.width)
			if fm.flags > signed || len(p)-pos < n {
				b = b[:mark]
				break
			}
			kind, arg := fm.kind, uint64(fm.arg)
			if len(p)-pos >= MaxHead { // no branch on the width; arg is 0 where there is one
				arg |= binary.BigEndian.Uint64(p[pos+1:]) >> (64 - 8*uint(fm.width))
			} else if fm.width != 0 {
				arg = fm.argument(p[pos:])
			}
			if fm.flags == signed {
				kind, arg = fm.signed(arg)
			}
			ok := true
			switch kind {
			case String:
				if ok = arg <= rushString && int(arg) <= len(p)-pos-n; ok {
					if arg > rushRoom/4 {
						b = slices.Grow(b, rushString+rushRoom)
						full = w.full(b)
					}
					b, ok = appendPlain(b, p[pos+n:], int(arg))
					n += int(arg)
				}
			case Uint:
				b = appendUint(b, arg)
			case Nint:
				b = appendNegative(b, arg)
			case Float64:
				v := math.Float64frombits(arg)
				if ok = v-v == 0; ok {
					b = appendFloat(b, v, 64)
				}
			case Float32:
				v := math.Float32frombits(uint32(arg))
				if ok = v-v == 0; ok {
					b = appendFloat(b, float64(v), 32)
				}
			case Null:
				b = append(b, "null"...)
			case Bool:
				if arg == 0 {
					b = append(b, "false"...)
				} else {
					b = append(b, "true"...)
				}
			case Array, Map:
				if ok = arg <= maxLength; !ok {
					break
				}
				s.start, s.pos = s.base+int64(pos), pos+n
				s.Kind, s.Len = kind, int(arg)
				inner := frameArray
				if kind == Map {
					inner, arg = frameMap, 2*arg
				}
				w.buf = b
				if err = s.push(kind, int64(arg)); err == nil {
					err = w.beginIn(s, inner, f.form)
				}
				if err != nil {
					return false, err
				}
				b, pos = w.buf, s.pos
				full = w.full(b)
				f, base = w.top(), false
				continue
			default:
				ok = false
			}
			if !ok {
				b = b[:mark]
				break
			}
			pos += n
			s.rem--
		}
		f.some = true
		if f.kind != frameArray {
			f.value = false
			if f.kind == framePairs {
				b = append(b, ']')
			}
		}
		done = base
	}
	w.buf, s.pos = b, pos
	return done, err
}

// full is the length beyond which b must be spilled or made longer before the next token.
func (w *JSONWriter) full(b []byte) int {
	n := cap(b) - rushRoom
	if w.out != nil {
		n = min(n, jsonBuffer-1)
	}
	return n
}

// findKey looks up the key at the start of p, a short string.
func (w *JSONWriter) findKey(s *keyShape, table *[256]form, p []byte) int {
	f := &table[p[0]]
	n := f.size()
	if f.kind != String || f.flags != 0 || n > len(p) {
		return -1
	}
	size := f.argument(p)
	if size > maxShapeKey || int(size) > len(p)-n {
		return -1
	}
	return s.find(p[:n+int(size)])
}

// appendPlain appends the first n bytes of p as a JSON string, unless they are not UTF-8. What is behind them is read
// but does not matter. The capacity of b must be there, with eight bytes to spare.
func appendPlain(b, p []byte, n int) ([]byte, bool) {
	at := len(b)
	b = append(b, '"')
	d := b[at+1 : cap(b)]
	i := 0
	if n <= 16 && len(p) >= 16 { // no loop, whose length cannot be guessed
		x, y := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		if specialBytes(x)&lowBytes[n]|specialBytes(y)&lowBytes[n+17] != 0 {
			return appendSpecial(b, p[:n])
		}
		binary.LittleEndian.PutUint64(d, x)
		binary.LittleEndian.PutUint64(d[8:], y)
		i = n
	}
	for ; i+8 <= len(p) && i < n; i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		m := specialBytes(x)
		if rest := uint(n - i); rest < 8 {
			m &= 1<<(8*rest) - 1
		}
		if m != 0 {
			return appendSpecial(b, p[:n])
		}
		binary.LittleEndian.PutUint64(d[i:], x)
	}
	for ; i < n; i++ {
		c := p[i]
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendSpecial(b, p[:n])
		}
		d[i] = c
	}
	b = b[:at+n+2]
	b[at+n+1] = '"'
	return b, true
}

func appendSpecial(b, p []byte) ([]byte, bool) {
	if !utf8.Valid(p) {
		return b, false
	}
	return append(appendEscaped(b, p), '"'), true
}

// lowBytes has, at n, a word with the first n bytes set, and at n+17 the second word for n bytes in two.
var lowBytes = func() (t [34]uint64) {
	for n := range 17 {
		t[n] = 1<<(8*uint(min(n, 8))) - 1
		t[n+17] = 1<<(8*uint(max(n, 8)-8)) - 1
	}
	return t
}()
