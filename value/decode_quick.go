package value

import (
	"encoding/binary"
	"math"
)

// Most values of most documents have a head without an argument, or a plain number behind one byte. The decoder takes
// runs of them from the scanner's window itself, which makes it twice as fast; all others go through [Scanner.Next]. A
// value that looks wrong in any way is left for the scanner to refuse.

// quickStep says what the quick path does for a first byte.
type quickStep struct {
	op  quickOp
	arg uint8 // the argument, or the width of the argument that follows
}

type quickOp uint8

const (
	quickNone quickOp = iota
	quickNull
	quickBool
	quickString  // of arg bytes
	quickString8 // of a length in the second byte
	quickInt     // arg
	quickNint    // -1 - arg
	quickUints   // an argument of arg bytes
	quickNints   // -1 - an argument of arg bytes
	quickSigneds // a two's complement argument of arg bytes
	quickFloat32
	quickFloat64
)

var quickSteps = [...][256]quickStep{Msgpack: quickStepsOf(Msgpack), CBOR: quickStepsOf(CBOR)}

func quickStepsOf(c Codec) (t [256]quickStep) {
	for b := range t {
		f := forms[c][b]
		s := quickStep{arg: f.arg}
		if f.width != 0 {
			s.arg = f.width
		}
		switch {
		case f.flags == signed:
			s.op = quickSigneds
		case f.flags != 0:
		case f.kind == Null:
			s.op = quickNull
		case f.kind == Bool:
			s.op = quickBool
		case f.kind == Float32:
			s.op = quickFloat32
		case f.kind == Float64:
			s.op = quickFloat64
		case f.kind == String && f.width == 0:
			s.op = quickString
		case f.kind == String && f.width == 1:
			s.op = quickString8
		case f.kind == Uint && f.width == 0:
			s.op = quickInt
		case f.kind == Uint:
			s.op = quickUints
		case f.kind == Nint && f.width == 0:
			s.op = quickNint
		case f.kind == Nint:
			s.op = quickNints
		}
		t[b] = s
	}
	return t
}

// quickList appends the quick items that come next in the innermost container of s.
func (d *decoder) quickList(s *Scanner, list []any) []any {
	t := &quickSteps[s.codec]
	p := s.buf[s.pos:]
	rem := s.rem
	for rem != 0 && len(p) > 0 {
		v, n := d.quick(t[p[0]], p)
		if n == 0 {
			break
		}
		list = append(list, v)
		p = p[n:]
		rem--
	}
	s.leap(rem, len(s.buf)-len(p))
	return list
}

// quickMap takes the pairs of quick keys and values that come next in the innermost container of s into the map of its
// frame. It reports whether it stopped behind a key, which is then in the frame.
func (d *decoder) quickMap(s *Scanner, top *frame) (keyed bool) {
	t := &quickSteps[s.codec]
	p := s.buf[s.pos:]
	rem := s.rem
	m, last := top.named, top.name
	for rem != 0 && len(p) > 0 {
		step := t[p[0]]
		end := 1 + int(step.arg)
		if step.op != quickString || len(p) <= end {
			break
		}
		name, ok := d.keyText(p[1:end])
		if !ok {
			break
		}
		p = p[end:]
		rem--
		last = name
		v, n := d.quick(t[p[0]], p)
		if n == 0 {
			keyed = true
			break
		}
		m[name] = v
		p = p[n:]
		rem--
	}
	top.name = last
	s.leap(rem, len(s.buf)-len(p))
	return keyed
}

// leap tells the scanner how far the quick path came in the innermost container.
func (s *Scanner) leap(rem int64, pos int) {
	if (s.rem-rem)&1 != 0 {
		s.odd = !s.odd
	}
	s.rem, s.pos = rem, pos
}

// quick gives the value at the start of p, whose first byte has the step given, and its length, 0 when it is none of
// the quick ones.
func (d *decoder) quick(step quickStep, p []byte) (any, int) {
	arg := int(step.arg)
	switch step.op {
	case quickNull:
		return nil, 1
	case quickBool:
		return arg != 0, 1
	case quickInt:
		return int64(arg), 1 // Go has boxes of these
	case quickNint:
		return d.ints.Box(^int64(arg)), 1
	case quickString:
		if end := 1 + arg; len(p) >= end {
			if text, ok := d.textValue(p[1:end]); ok {
				return text, end
			}
		}
	case quickString8:
		if len(p) < 2 {
			break
		}
		if end := 2 + int(p[1]); len(p) >= end {
			if text, ok := d.textValue(p[2:end]); ok {
				return text, end
			}
		}
	case quickFloat64:
		if len(p) >= 9 {
			return d.floats.Box(math.Float64frombits(binary.BigEndian.Uint64(p[1:]))), 9
		}
	case quickFloat32:
		if len(p) >= 5 {
			return d.floats.Box(float64(math.Float32frombits(binary.BigEndian.Uint32(p[1:])))), 5
		}
	default:
		if n := 1 + arg; n > 1 && len(p) >= n {
			if v, ok := quickWide(step, p); ok {
				return d.boxInt(v), n
			}
		}
	}
	return nil, 0
}

// quickWide gives an integer with an argument behind the first byte, which is there.
func quickWide(step quickStep, p []byte) (int64, bool) {
	var arg uint64
	switch step.arg {
	case 1:
		arg = uint64(p[1])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(p[1:]))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(p[1:]))
	case 8:
		arg = binary.BigEndian.Uint64(p[1:])
	}
	switch step.op {
	case quickSigneds:
		shift := 64 - 8*uint(step.arg)
		return int64(arg<<shift) >> shift, true
	case quickNints:
		return ^int64(arg), arg <= math.MaxInt64
	case quickUints:
		return int64(arg), arg <= math.MaxInt64
	}
	return 0, false
}
