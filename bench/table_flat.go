package main

import (
	"fmt"
	"reflect"

	flatbuffers "github.com/google/flatbuffers/go"
)

// FlatBuffers are here for their size. What flatc generates is calls of the builder, and of a table that is read; here
// these calls follow from the fields of a struct, as those of a schema
//
//	table Row { … }
//	table Table { rows: [Row]; }
//
// A string that was there before is written once.

// buildFlat builds a table of rows.
func buildFlat(rows reflect.Value) []byte {
	b := flatbuffers.NewBuilder(1 << 16)
	offsets := make([]flatbuffers.UOffsetT, rows.Len())
	for i := range offsets {
		offsets[i] = buildRow(b, rows.Index(i))
	}
	b.StartVector(4, len(offsets), 4)
	for i := len(offsets) - 1; i >= 0; i-- {
		b.PrependUOffsetT(offsets[i])
	}
	list := b.EndVector(len(offsets))
	b.StartObject(1)
	b.PrependUOffsetTSlot(0, list, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func buildRow(b *flatbuffers.Builder, row reflect.Value) flatbuffers.UOffsetT {
	outside := make([]flatbuffers.UOffsetT, row.NumField()) // what a row refers to comes before it
	for k := range outside {
		switch v := row.Field(k).Interface().(type) {
		case string:
			outside[k] = b.CreateSharedString(v)
		case *string:
			if v != nil {
				outside[k] = b.CreateSharedString(*v)
			}
		case []string:
			of := make([]flatbuffers.UOffsetT, len(v))
			for i, s := range v {
				of[i] = b.CreateSharedString(s)
			}
			b.StartVector(4, len(v), 4)
			for i := len(v) - 1; i >= 0; i-- {
				b.PrependUOffsetT(of[i])
			}
			outside[k] = b.EndVector(len(v))
		case []int32:
			b.StartVector(4, len(v), 4)
			for i := len(v) - 1; i >= 0; i-- {
				b.PrependInt32(v[i])
			}
			outside[k] = b.EndVector(len(v))
		case []float64:
			b.StartVector(8, len(v), 8)
			for i := len(v) - 1; i >= 0; i-- {
				b.PrependFloat64(v[i])
			}
			outside[k] = b.EndVector(len(v))
		}
	}
	b.StartObject(row.NumField())
	// Wide fields first, as flatc does it, so that less is padded.
	for _, size := range []uintptr{8, 4, 1} {
		for k := range outside {
			switch v := row.Field(k).Interface().(type) {
			case int64:
				if size == 8 {
					b.PrependInt64Slot(k, v, 0)
				}
			case float64:
				if size == 8 {
					b.PrependFloat64Slot(k, v, 0)
				}
			case int32:
				if size == 4 {
					b.PrependInt32Slot(k, v, 0)
				}
			case float32:
				if size == 4 {
					b.PrependFloat32Slot(k, v, 0)
				}
			case *int32:
				if size == 4 && v != nil {
					b.PrependInt32(*v)
					b.Slot(k)
				}
			case bool:
				if size == 1 {
					b.PrependBoolSlot(k, v, false)
				}
			case string, *string, []string, []int32, []float64:
				if size == 4 {
					b.PrependUOffsetTSlot(k, outside[k], 0)
				}
			default:
				panic(fmt.Sprintf("no FlatBuffers for %T", v)) // the rows are ours
			}
		}
	}
	return b.EndObject()
}

// readFlat reads the rows back into a slice, to see that they are all there.
func readFlat(p []byte, rows reflect.Value) {
	root := flatbuffers.Table{Bytes: p, Pos: flatbuffers.GetUOffsetT(p)}
	slot := func(k int) flatbuffers.VOffsetT { return flatbuffers.VOffsetT(4 + 2*k) }
	list := flatbuffers.UOffsetT(root.Offset(slot(0)))
	n := root.VectorLen(list)
	start := root.Vector(list)
	rows.Set(reflect.MakeSlice(rows.Type(), n, n))
	for i := range n {
		row := flatbuffers.Table{Bytes: p, Pos: root.Indirect(start + flatbuffers.UOffsetT(4*i))}
		for k := range rows.Type().Elem().NumField() {
			f := rows.Index(i).Field(k)
			o := flatbuffers.UOffsetT(row.Offset(slot(k)))
			if o == 0 {
				continue
			}
			at := row.Pos + o
			switch f.Interface().(type) {
			case int32:
				f.SetInt(int64(row.GetInt32(at)))
			case int64:
				f.SetInt(row.GetInt64(at))
			case float32:
				f.SetFloat(float64(row.GetFloat32(at)))
			case float64:
				f.SetFloat(row.GetFloat64(at))
			case bool:
				f.SetBool(row.GetBool(at))
			case string:
				f.SetString(row.String(at))
			case *string:
				f.Set(reflect.ValueOf(new(row.String(at))))
			case *int32:
				f.Set(reflect.ValueOf(new(row.GetInt32(at))))
			case []string:
				v := make([]string, row.VectorLen(o))
				for j := range v {
					v[j] = row.String(row.Vector(o) + flatbuffers.UOffsetT(4*j))
				}
				f.Set(reflect.ValueOf(v))
			case []int32:
				v := make([]int32, row.VectorLen(o))
				for j := range v {
					v[j] = row.GetInt32(row.Vector(o) + flatbuffers.UOffsetT(4*j))
				}
				f.Set(reflect.ValueOf(v))
			case []float64:
				v := make([]float64, row.VectorLen(o))
				for j := range v {
					v[j] = row.GetFloat64(row.Vector(o) + flatbuffers.UOffsetT(8*j))
				}
				f.Set(reflect.ValueOf(v))
			}
		}
	}
}
