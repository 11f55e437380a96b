package value

import (
	"math"
)

// scalar is the function of that name, with numbers in slabs.
func (d *decoder) scalar(t *Token) any {
	switch t.Kind {
	case Uint:
		if t.Bits <= math.MaxInt64 {
			return d.boxInt(int64(t.Bits))
		}
		return d.uints.Box(t.Bits)
	case Nint:
		if t.Bits <= math.MaxInt64 {
			return d.ints.Box(^int64(t.Bits))
		}
	case Float16, Float32, Float64:
		return d.floats.Box(t.Float())
	}
	return scalar(t)
}

// boxInt boxes v. Go has boxes for the integers of one byte.
func (d *decoder) boxInt(v int64) any {
	if uint64(v) < 256 {
		return v
	}
	return d.ints.Box(v)
}
