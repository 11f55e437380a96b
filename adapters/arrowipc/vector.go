package arrowipc

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/spilehq/spile/adapters/internal/columnar"
	"github.com/spilehq/spile/tcb"
)

// vector is a column on its way into the file.
type vector struct {
	*columnar.Column
	large bool // text with offsets of 64 bits
}

// field is the type of the column in Arrow.
func (v *vector) field() arrow.Field {
	f := arrow.Field{Name: v.Field.Name, Type: v.element(), Nullable: v.Type.Optional}
	if v.Type.Element == tcb.UUID {
		// A canonical extension type: its name on top of the type that holds it.
		f.Metadata = arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{"arrow.uuid", ""})
	}
	if v.Type.Kind == tcb.Array {
		item := f
		item.Name, item.Nullable = "item", v.Type.ElementOptional
		f.Type, f.Metadata = arrow.ListOfField(item), arrow.Metadata{}
	}
	return f
}

func (v *vector) element() arrow.DataType {
	switch v.Type.Element {
	case tcb.Enum, tcb.I32:
		return arrow.PrimitiveTypes.Int32
	case tcb.Bool:
		return arrow.FixedWidthTypes.Boolean
	case tcb.F32:
		return arrow.PrimitiveTypes.Float32
	case tcb.F64:
		return arrow.PrimitiveTypes.Float64
	case tcb.String:
		if v.large {
			return arrow.BinaryTypes.LargeString
		}
		return arrow.BinaryTypes.String
	case tcb.UUID:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	}
	unit := arrow.Microsecond
	switch v.Unit {
	case columnar.Ticks:
		return arrow.PrimitiveTypes.Int64
	case columnar.Nanos:
		unit = arrow.Nanosecond
	}
	if v.Field.Logical == tcb.TimeSpan {
		return &arrow.DurationType{Unit: unit}
	}
	return &arrow.TimestampType{Unit: unit}
}

// data makes an array of the rows [start, end).
func (v *vector) data(t arrow.DataType, start, end int) *array.Data {
	n := end - start
	var validity *memory.Buffer
	nulls := 0
	if v.Type.Optional {
		validity, nulls = bitmap(v.Present, start, n)
	}
	list, isList := t.(*arrow.ListType)
	if !isList {
		return array.NewData(t, n, append([]*memory.Buffer{validity}, v.values(start, end)...), nil, nulls, 0)
	}
	first, last := int(v.Offsets[start]), int(v.Offsets[end])
	offsets := v.Offsets[start : end+1]
	if first > 0 {
		offsets = make([]int32, n+1)
		for i := range offsets {
			offsets[i] = v.Offsets[start+i] - int32(first)
		}
	}
	var itemValidity *memory.Buffer
	itemNulls := 0
	if v.Type.ElementOptional {
		itemValidity, itemNulls = bitmap(v.ElementPresent, first, last-first)
	}
	items := array.NewData(list.Elem(), last-first, append([]*memory.Buffer{itemValidity}, v.values(first, last)...), nil, itemNulls, 0)
	return array.NewData(t, n, []*memory.Buffer{validity, int32s(offsets)}, []arrow.ArrayData{items}, nulls, 0)
}

// values are the buffers of the values [start, end), behind that of the validity.
func (v *vector) values(start, end int) []*memory.Buffer {
	switch v.Type.Element {
	case tcb.Enum, tcb.I32:
		return []*memory.Buffer{int32s(v.Int32s[start:end])}
	case tcb.Bool:
		p := make([]byte, (end-start+7)/8)
		for i, x := range v.Bools[start:end] {
			if x {
				p[i>>3] |= 1 << (i & 7)
			}
		}
		return []*memory.Buffer{memory.NewBufferBytes(p)}
	case tcb.I64:
		if v.Unit == columnar.Ticks {
			return []*memory.Buffer{int64s(v.Int64s[start:end])}
		}
		out := make([]int64, end-start)
		for i := range out {
			out[i] = v.Time(start + i) // of what is absent, whatever comes out: 64 bits that nothing reads
		}
		return []*memory.Buffer{int64s(out)}
	case tcb.F32:
		return []*memory.Buffer{memory.NewBufferBytes(arrow.Float32Traits.CastToBytes(v.Float32s[start:end]))}
	case tcb.F64:
		return []*memory.Buffer{memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(v.Float64s[start:end]))}
	case tcb.String:
		return v.text(v.Strings[start:end])
	}
	p := make([]byte, 0, 16*(end-start))
	for _, g := range v.UUIDs[start:end] {
		u := g.Bytes()
		p = append(p, u[:]...)
	}
	return []*memory.Buffer{memory.NewBufferBytes(p)}
}

// text are the offsets and the bytes of strings.
func (v *vector) text(list []string) []*memory.Buffer {
	size := 0
	for _, s := range list {
		size += len(s)
	}
	p := make([]byte, 0, size)
	if v.large {
		offsets := make([]int64, 1, len(list)+1)
		for _, s := range list {
			p = append(p, s...)
			offsets = append(offsets, int64(len(p)))
		}
		return []*memory.Buffer{int64s(offsets), memory.NewBufferBytes(p)}
	}
	offsets := make([]int32, 1, len(list)+1)
	for _, s := range list {
		p = append(p, s...)
		offsets = append(offsets, int32(len(p)))
	}
	return []*memory.Buffer{int32s(offsets), memory.NewBufferBytes(p)}
}

func int32s(v []int32) *memory.Buffer { return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(v)) }
func int64s(v []int64) *memory.Buffer { return memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(v)) }

// bitmap returns the n bits from start on, and how many of them are 0. Arrow has them in the order of tcb.
func bitmap(b tcb.Bitmap, start, n int) (*memory.Buffer, int) {
	p := make([]byte, (n+7)/8)
	shift := start & 7
	ones := 0
	for i := range p {
		at := start>>3 + i
		x := b[at] >> shift
		if shift > 0 && at+1 < len(b) {
			x |= b[at+1] << (8 - shift)
		}
		if i == len(p)-1 && n&7 != 0 {
			x &= 1<<(n&7) - 1
		}
		p[i] = x
		ones += bits.OnesCount8(x)
	}
	return memory.NewBufferBytes(p), n - ones
}
