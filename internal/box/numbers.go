package box

import (
	"encoding/binary"
	"math"
)

// Fixed is what Numbers makes.
type Fixed interface {
	int32 | int64 | float32 | float64
}

// numbers is Numbers number by number.
func numbers[T Fixed](p []byte) []T {
	var out []T
	switch v := any(&out).(type) {
	case *[]int32:
		*v = make([]int32, len(p)/4)
		for i := range *v {
			(*v)[i] = int32(binary.LittleEndian.Uint32(p[4*i:]))
		}
	case *[]int64:
		*v = make([]int64, len(p)/8)
		for i := range *v {
			(*v)[i] = int64(binary.LittleEndian.Uint64(p[8*i:]))
		}
	case *[]float32:
		*v = make([]float32, len(p)/4)
		for i := range *v {
			(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
		}
	case *[]float64:
		*v = make([]float64, len(p)/8)
		for i := range *v {
			(*v)[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
	}
	return out
}
