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
				// The length comes from the head and not from the key that is found, so that what follows need not wait.
				fm := &table[p[pos]]
				if fm.kind != String || fm.flags != 0 || len(p)-pos < MaxHead {
					break
				}
				n := 1 + int(fm.width) + int(fm.arg)
				if fm.width != 0 {
					n += int(fm.argument(p[pos:]))
				}
				if uint(n) > maxShapeKey || n > len(p)-pos {
					break
				}
				i := f.next
				var k *knownKey
				if uint(i) < uint(len(f.shape.keys)) {
					k = &f.shape.keys[i]
				}
				if k == nil || !k.starts(p[pos:]) {
					if i = f.shape.findKey(p[pos:], n); i < 0 {
						break
					}
					k = &f.shape.keys[i]
				}
				if f.hits>>i&1 != 0 {
					break
				}
				b = k.appendTo(b, !f.some)
				pos += n
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
			case Uint, Nint:
				// The sign is a word of ones or of zeros, since data mixes them as no branch can guess.
				sign := -uint64(kind - Uint)
				if fm.flags == signed {
					unused := 64 - 8*uint(fm.width)
					v := int64(arg<<unused) >> unused
					sign = uint64(v >> 63)
					arg = uint64(v) ^ sign
				}
				if minus := sign & 1; arg < math.MaxUint64 {
					b = append(b, '-')
					b = appendUint(b[:len(b)-1+int(minus)], arg+minus)
				} else if minus == 0 {
					b = appendUint(b, arg)
				} else {
					b = appendNegative(b, arg)
				}
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
				b = append(b, boolTexts[arg&1]...)
				b = b[:len(b)-3-int(arg&1)]
			case Array, Map:
				if ok = arg <= maxLength; !ok {
					break
				}
				if arg == 0 && s.nested() < s.lim.depth() && len(w.open) <= w.lim.depth() {
					b = append(b, emptyTexts[kind-Array]...)
					break
				}
				s.start, s.pos = s.base+int64(pos), pos+n
				s.Kind, s.Len = kind, int(arg)
				if kind == Map {
					arg *= 2
				}
				w.buf = b
				if err = s.push(kind, int64(arg)); err == nil {
					err = w.rushInto(kind, s)
				}
				if err != nil {
					return false, err
				}
				b, pos = w.buf, s.pos
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

// rushInto is beginIn for what rush comes across: no plan, no layout, not a key.
func (w *JSONWriter) rushInto(kind Kind, s *Scanner) error {
	if len(w.open) == cap(w.open) || len(w.open) > w.lim.depth() {
		return w.beginIn(s, frameArray+frameKind(kind-Array), w.top().form)
	}
	w.open = w.open[:len(w.open)+1]
	f, outer := &w.open[len(w.open)-1], &w.open[len(w.open)-2]
	f.kind, f.caller, f.some, f.value, f.dropped = frameArray, false, false, false, false
	f.form, f.id = outer.form, s.start
	f.shape, f.next, f.key, f.hits = nil, 0, -1, 0
	f.keys.open = false
	w.place(f, outer, s.codec)
	if kind == Array {
		w.buf = append(w.buf, '[')
		return nil
	}
	f.kind = frameMap
	f.shape = w.learned.of(f.slot)
	w.buf = append(w.buf, '{')
	return nil
}

// full is the length beyond which b must be spilled or made longer before the next token.
func (w *JSONWriter) full(b []byte) int {
	n := cap(b) - rushRoom
	if w.out != nil {
		n = min(n, jsonBuffer-1)
	}
	return n
}

// findKey looks up the key of n bytes at the start of p.
func (s *keyShape) findKey(p []byte, n int) int {
	if len(p) < 16 {
		return s.find(p[:n])
	}
	short := min(n, 16)
	return s.lookUp(binary.LittleEndian.Uint64(p)&lowBytes[short], binary.LittleEndian.Uint64(p[8:])&lowBytes[short+17], p[:n])
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
		binary.LittleEndian.PutUint64(d, x)
		binary.LittleEndian.PutUint64(d[8:], y)
		x, y = x&lowBytes[n]|^lowBytes[n]&blankBytes, y&lowBytes[n+17]|^lowBytes[n+17]&blankBytes
		if specialBytes(x)|specialBytes(y) != 0 && (escapeBytes(x)|escapeBytes(y) != 0 || !utf8.Valid(p[:n])) {
			return appendSpecial(b, p[:n])
		}
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

// boolTexts has the texts of false and true with blanks behind them, so that both are copied with one length.
var boolTexts = [2]string{"false   ", "true    "}

// emptyTexts has the texts of the empty array and the empty map.
var emptyTexts = [2]string{"[]", "{}"}

const blankBytes = ' ' * eachByte
