package value

import (
	"math"
	"math/big"
	"reflect"
	"strconv"
	"time"
)

// fillScalar decodes a scalar token into dst.
func (d *decoder) fillScalar(s *Scanner, p *plan, dst reflect.Value) error {
	switch s.Kind {
	case Bool:
		if p.class == boolClass {
			dst.SetBool(s.Bits != 0)
			return nil
		}
	case Uint, Nint:
		return d.fillInt(s, p, dst)
	case Float16, Float32, Float64:
		return d.fillFloat(s, p, dst)
	case String:
		if p.class == stringClass {
			text, ok := d.string(s.Data)
			if !ok {
				return notUTF8(s)
			}
			dst.SetString(text)
			return nil
		}
	case Bytes:
		switch {
		case p.class == bytesClass:
			dst.SetBytes(append(make([]byte, 0, len(s.Data)), s.Data...))
			return nil
		case p.class == byteArrayClass && dst.Len() == len(s.Data):
			reflect.Copy(dst, reflect.ValueOf(s.Data))
			return nil
		}
	case Ext:
		if p.class == timeClass {
			if t, ok := scalar(&s.Token).(time.Time); ok {
				dst.Set(reflect.ValueOf(t))
				return nil
			}
		}
	}
	return d.mismatch(s, p)
}

// fillInt decodes an integer token.
func (d *decoder) fillInt(s *Scanner, p *plan, dst reflect.Value) error {
	negative, bits := s.Kind == Nint, s.Bits
	switch p.class {
	case intClass:
		n := int64(bits)
		if negative {
			n = ^n
		}
		if bits <= math.MaxInt64 && !dst.OverflowInt(n) {
			dst.SetInt(n)
			return nil
		}
	case uintClass:
		if !negative && !dst.OverflowUint(bits) {
			dst.SetUint(bits)
			return nil
		}
	default:
		n := new(big.Int).SetUint64(bits)
		if negative {
			n.Not(n)
		}
		return d.fillBig(s, p, dst, n)
	}
	return d.mismatch(s, p)
}

// fillBig decodes an integer of any size.
func (d *decoder) fillBig(s *Scanner, p *plan, dst reflect.Value, n *big.Int) error {
	switch p.class {
	case intClass:
		if n.IsInt64() && !dst.OverflowInt(n.Int64()) {
			dst.SetInt(n.Int64())
			return nil
		}
	case uintClass:
		if n.IsUint64() && !dst.OverflowUint(n.Uint64()) {
			dst.SetUint(n.Uint64())
			return nil
		}
	case floatClass:
		f, accuracy := new(big.Float).SetInt(n).Float64()
		if accuracy == big.Exact && fitsFloat(f, dst) {
			dst.SetFloat(f)
			return nil
		}
	case bigClass:
		dst.Addr().Interface().(*big.Int).Set(n)
		return nil
	case numberClass:
		dst.SetString(n.String())
		return nil
	}
	text := "integer of " + strconv.Itoa(n.BitLen()) + " bits"
	if n.BitLen() <= 256 {
		text = "integer " + n.String()
	}
	return d.misfit(s, text, p)
}

// fitsFloat reports whether the type of dst holds f exactly.
func fitsFloat(f float64, dst reflect.Value) bool {
	return dst.Kind() == reflect.Float64 || f != f || float64(float32(f)) == f
}

// fillFloat decodes a float token.
func (d *decoder) fillFloat(s *Scanner, p *plan, dst reflect.Value) error {
	f := s.Float()
	switch p.class {
	case floatClass:
		if fitsFloat(f, dst) {
			dst.SetFloat(f)
			return nil
		}
	case intClass:
		// 2^63 is the first float that an int64 does not hold.
		if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 && !dst.OverflowInt(int64(f)) {
			dst.SetInt(int64(f))
			return nil
		}
	case uintClass:
		if f == math.Trunc(f) && f >= 0 && f < 1<<64 && !dst.OverflowUint(uint64(f)) {
			dst.SetUint(uint64(f))
			return nil
		}
	case bigClass:
		if f == math.Trunc(f) && !math.IsInf(f, 0) {
			new(big.Float).SetFloat64(f).Int(dst.Addr().Interface().(*big.Int))
			return nil
		}
	case numberClass:
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			dst.SetString(string(appendFloat(nil, f, 64)))
			return nil
		}
	}
	return d.mismatch(s, p)
}
