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
	rushAhead  = 16      // bytes that must be there, so that a head and the start of a key can be read at once
	rushRoom   = 1 << 10 // bytes that any other token, with a key before it and what is around them, takes at most
)

// rush is the fast twin of step: it writes many tokens at a time, the ordinary ones, that lie whole in the window of
// the scanner, in compact form. It leaves all else to step and never does otherwise than step would. It reports
// whether the item that run writes is complete.
//
// What makes it fast is that the scanner's token is not stored and loaded, and that the keys of maps are guessed from
// the maps at the same place before (see keyShape). Inside of it, a comma stands behind each item and not before it,
// and is taken back where none follows.
func (w *JSONWriter) rush(s *Scanner, depth int) (bool, error) {
	b, p, pos := w.buf, s.buf, s.pos
	table := &forms[s.codec]
	f := w.top()
	base := len(w.open) == depth // f is not of the item that is written
	full := w.full(b)
	value := f.isMap() && f.value
	if f.some && !value {
		b = append(b, ',')
	}
	for {
		if s.rem < 0 && len(s.open) > 0 {
			break // of indefinite length: step looks for its end, and counts keys and values
		}
		if s.rem == 0 {
			if base {
				break // the caller's container ends
			}
			s.closeContainer()
			closer := byte('}')
			if f.kind == frameArray {
				closer = ']'
			}
			if last := len(b) - 1; last >= 0 && b[last] == ',' {
				b[last] = closer
			} else {
				b = append(b, closer)
			}
			if f.keys.Open {
				if err := w.closeFrame(f); err != nil {
					return false, err
				}
			} else {
				w.open = w.open[:len(w.open)-1]
			}
			f = w.top()
			base = len(w.open) == depth
		} else {
			if len(p)-pos < rushAhead {
				break
			}
			if len(b) > full {
				comma := len(b) > 0 && b[len(b)-1] == ',' // stays where it can be taken back
				if w.buf = b; comma {
					w.buf = b[:len(b)-1]
				}
				if err := w.spill(); err != nil {
					return false, err
				}
				if b = slices.Grow(w.buf, rushRoom); comma {
					b = append(b, ',')
				}
				full = w.full(b)
			}
			if f.kind != frameArray && !value {
				if f.shape == nil || f.keys.Open {
					break
				}
				i, n := f.next, 0
				var k *knownKey
				if uint(i) < uint(len(f.shape.keys)) {
					k = &f.shape.keys[i]
				}
				if k != nil && k.starts(p[pos:]) {
					n = len(k.raw)
				} else {
					if n, i = f.shape.findKey(table, p[pos:]); i < 0 {
						break
					}
					k = &f.shape.keys[i]
				}
				if f.hits>>i&1 != 0 {
					break
				}
				b = k.appendTo(b)
				pos += n
				s.rem--
				f.hits |= 1 << i
				f.key, f.next = i, i+1
				if value = true; len(p)-pos < rushAhead {
					break
				}
			}
			mark := len(b)
			fm := table[p[pos]]
			n := 1 + int(fm.width)
			if fm.flags > signed {
				break
			}
			// The argument without a branch on the width; arg is 0 where there is one.
			arg := uint64(fm.arg) | binary.BigEndian.Uint64(p[pos+1:])>>(64-8*uint(fm.width))
			ok := true
			switch fm.kind {
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
				sign := -uint64(fm.kind - Uint)
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
					b = append(b, emptyTexts[fm.kind-Array]...)
					break
				}
				s.start, s.pos = s.base+int64(pos), pos+n
				s.Kind, s.Len = fm.kind, int(arg)
				if fm.kind == Map {
					arg *= 2
				}
				w.buf = b
				f.value = value
				err := s.push(fm.kind, int64(arg))
				if err == nil {
					err = w.rushInto(fm.kind, s)
				}
				if err != nil {
					return false, err
				}
				b, pos = w.buf, s.pos
				full = w.full(b)
				f, base, value = w.top(), false, false
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
		value = false
		if base {
			w.buf, s.pos = b, pos
			w.rushDone(f)
			return true, nil
		}
		b = append(b, ',')
	}
	if last := len(b) - 1; !value && last >= 0 && b[last] == ',' {
		f.some = true
		b = b[:last]
	}
	f.value = value
	f.some = f.some || value
	w.buf, s.pos = b, pos
	return false, nil
}

// rushDone is valueDone for compact text.
func (w *JSONWriter) rushDone(f *jsonFrame) {
	f.some, f.value = true, false
	if f.kind == framePairs {
		w.buf = append(w.buf, ']')
	}
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
	f.keys.Open = false
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

// findKey looks up the key at the start of p, a short string. It returns its length and its index, -1 when there is
// none. The length comes from the head and not from the key that is found, so that what follows need not wait for
// that.
func (s *keyShape) findKey(table *[256]form, p []byte) (int, int) {
	f := &table[p[0]]
	if f.kind != String || f.flags != 0 {
		return 0, -1
	}
	n := f.size() + int(f.arg)
	if f.width != 0 {
		n += int(f.argument(p))
	}
	if uint(n) > maxShapeKey || n > len(p) {
		return 0, -1
	}
	short := min(n, 16)
	return n, s.lookUp(binary.LittleEndian.Uint64(p)&lowBytes[short], binary.LittleEndian.Uint64(p[8:])&lowBytes[short+17], p[:n])
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
