package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/tinylib/msgp/msgp"
	"google.golang.org/protobuf/proto"

	"github.com/spilehq/spile/bench/tablepb"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// shape is what the tables with one type of rows have in common. Rows are passed as a slice of that type.
type shape struct {
	newRows func() any           // a pointer to no rows, to decode into
	message func() proto.Message // a table without rows

	marshal      func(dst []byte, rows any) ([]byte, error)
	load         func(*tcb.Table) (any, error)
	msgpack      func(rows any) ([]byte, error)
	readMsgpack  func(p []byte) (any, error)
	parquet      func(w io.Writer, rows any, c compress.Codec) error
	readParquet  func(p []byte) (any, error)
	flatbuffers  func(rows any) []byte
	readFlatbufs func(p []byte) any
}

var (
	growthShape = shapeOf[growth](func() proto.Message { return new(tablepb.GrowthTable) })
	itemShape   = shapeOf[item](func() proto.Message { return new(tablepb.ItemTable) })
	skillShape  = shapeOf[skill](func() proto.Message { return new(tablepb.SkillTable) })
	dropShape   = shapeOf[drop](func() proto.Message { return new(tablepb.DropTable) })
	questShape  = shapeOf[quest](func() proto.Message { return new(tablepb.QuestTable) })
	saleShape   = shapeOf[sale](func() proto.Message { return new(tablepb.SaleTable) })
)

func shapeOf[T any, P interface {
	*T
	msgp.Marshaler
	msgp.Unmarshaler
}](message func() proto.Message) *shape {
	return &shape{
		newRows: func() any { return new([]T) },
		message: message,
		marshal: func(dst []byte, rows any) ([]byte, error) { return tcb.Marshal(dst, rows.([]T), nil) },
		load:    func(t *tcb.Table) (any, error) { return tcb.Load[T](context.Background(), t) },
		msgpack: func(rows any) (p []byte, err error) {
			list := rows.([]T)
			p = msgp.AppendArrayHeader(p, uint32(len(list)))
			for i := range list {
				if p, err = P(&list[i]).MarshalMsg(p); err != nil {
					break
				}
			}
			return p, err
		},
		readMsgpack: func(p []byte) (any, error) {
			n, p, err := msgp.ReadArrayHeaderBytes(p)
			if err != nil {
				return nil, err
			}
			rows := make([]T, n)
			for i := range rows {
				if p, err = P(&rows[i]).UnmarshalMsg(p); err != nil {
					return nil, err
				}
			}
			return rows, nil
		},
		parquet: func(w io.Writer, rows any, c compress.Codec) error {
			out := parquet.NewGenericWriter[T](w, parquet.Compression(c))
			if _, err := out.Write(rows.([]T)); err != nil {
				return err
			}
			return out.Close()
		},
		readParquet: func(p []byte) (any, error) {
			return parquet.Read[T](bytes.NewReader(p), int64(len(p)))
		},
		flatbuffers: func(rows any) []byte { return buildFlat(reflect.ValueOf(rows)) },
		readFlatbufs: func(p []byte) any {
			rows := reflect.New(reflect.TypeFor[[]T]()).Elem()
			readFlat(p, rows)
			return rows.Interface()
		},
	}
}

// tcb is the table as a TCB file.
func (t *gameTable) tcb() ([]byte, error) { return t.shape.marshal(nil, t.rows) }

// json is the table as row objects.
func (t *gameTable) json() ([]byte, error) { return json.Marshal(t.rows) }

// protobuf is the table as a message.
func (t *gameTable) protobuf() ([]byte, error) {
	m := t.shape.message()
	rows := reflect.ValueOf(t.rows)
	list := reflect.ValueOf(m).Elem().FieldByName("Rows")
	list.Set(reflect.MakeSlice(list.Type(), rows.Len(), rows.Len()))
	for i := range rows.Len() {
		row := reflect.New(list.Type().Elem().Elem())
		copyFields(row.Elem(), rows.Index(i))
		list.Index(i).Set(row)
	}
	return proto.Marshal(m)
}

// rowsOf gives the rows of a message.
func (s *shape) rowsOf(m proto.Message) any {
	list := reflect.ValueOf(m).Elem().FieldByName("Rows")
	rows := reflect.ValueOf(s.newRows()).Elem()
	rows.Set(reflect.MakeSlice(rows.Type(), list.Len(), list.Len()))
	for i := range list.Len() {
		copyFields(rows.Index(i), list.Index(i).Elem())
	}
	return rows.Interface()
}

// copyFields sets the exported fields of a struct to those of another, which has the same ones in the same order.
func copyFields(dst, src reflect.Value) {
	k := 0
	for i := range src.NumField() {
		if !src.Type().Field(i).IsExported() {
			continue
		}
		for !dst.Type().Field(k).IsExported() {
			k++
		}
		dst.Field(k).Set(src.Field(i))
		k++
	}
}

// rowsOfColumns gives the rows of decoded columns, without the loader of tcb: each value is looked up by itself.
func (s *shape) rowsOfColumns(n int, columns []*tcb.Column) (any, error) {
	rows := reflect.ValueOf(s.newRows()).Elem()
	rows.Set(reflect.MakeSlice(rows.Type(), n, n))
	for k := range rows.Type().Elem().NumField() {
		tag, _, _ := strings.Cut(rows.Type().Elem().Field(k).Tag.Get("tcb"), ",")
		number, err := strconv.Atoi(tag)
		if err != nil {
			return nil, err
		}
		var column *tcb.Column
		for _, c := range columns {
			if int(c.Tag) == number {
				column = c
			}
		}
		if column == nil {
			return nil, fmt.Errorf("no column with the tag %d", number)
		}
		values := valuesOf(column)
		for i := range n {
			f := rows.Index(i).Field(k)
			from, to := column.Span(i)
			switch {
			case !column.Has(i):
			case column.Type.Kind == tcb.Array:
				f.Set(values.Slice3(from, to, to))
			case f.Kind() == reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
				f.Elem().Set(values.Index(i))
			default:
				f.Set(values.Index(i))
			}
		}
	}
	return rows.Interface(), nil
}

func valuesOf(c *tcb.Column) reflect.Value {
	switch c.Type.Element {
	case tcb.Enum, tcb.I32:
		return reflect.ValueOf(c.Int32s)
	case tcb.Bool:
		return reflect.ValueOf(c.Bools)
	case tcb.I64:
		return reflect.ValueOf(c.Int64s)
	case tcb.F32:
		return reflect.ValueOf(c.Float32s)
	case tcb.F64:
		return reflect.ValueOf(c.Float64s)
	case tcb.String:
		return reflect.ValueOf(c.Strings)
	}
	return reflect.ValueOf(c.UUIDs)
}

// openTable opens a file that is in memory.
func openTable(file []byte) (*tcb.Table, error) {
	return tcb.Open(context.Background(), source.Memory("table", file), nil)
}
