package tcb

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/spilehq/spile/internal/box"
	"github.com/spilehq/spile/source"
)

// structOf makes the struct type of a schema.
func structOf(s *Schema) reflect.Type {
	types := map[Element]reflect.Type{
		Enum: reflect.TypeFor[grade](), Bool: reflect.TypeFor[bool](), I32: reflect.TypeFor[int32](), I64: reflect.TypeFor[int64](),
		F32: reflect.TypeFor[float32](), F64: reflect.TypeFor[float64](), String: reflect.TypeFor[string](), UUID: guidType,
	}
	var fields []reflect.StructField
	for i, f := range s.Columns {
		t := types[f.Type.Element]
		if f.Type.ElementOptional {
			t = reflect.PointerTo(t)
		}
		if f.Type.Kind == Array {
			t = reflect.SliceOf(t)
		}
		if f.Type.Optional {
			t = reflect.PointerTo(t)
		}
		tag := fmt.Sprintf(`tcb:"%d"`, f.Tag)
		if f.Type.Element == Enum {
			tag = fmt.Sprintf(`tcb:"%d,enum"`, f.Tag)
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: t, Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(fields)
}

// Every conformance file goes through structs and comes out as it was.
func TestLoadVectors(t *testing.T) {
	n := 0
	for _, v := range vectors(t, "*.json") {
		if len(v.Schema.Columns) == 0 || v.Canonical != nil && !*v.Canonical || v.InvalidUTF8 > 0 {
			continue
		}
		n++
		table, err := Open(context.Background(), source.Memory(v.Name, v.file), &Options{Keys: v.keys()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLoader(context.Background(), structOf(v.Schema), table)
		if err != nil {
			t.Fatal(err)
		}
		rows := reflect.MakeSlice(reflect.SliceOf(l.plan.typ), table.Rows(), table.Rows())
		if err := l.fill(box.RowsOf(rows), 0); err != nil {
			t.Fatal(err)
		}
		columns, err := columnsOf(rows)
		if err != nil {
			t.Fatal(err)
		}
		file, err := Append(nil, table.Rows(), columns, &WriteOptions{Keys: v.keys()})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, v.file) {
			t.Errorf("%s: wrote % x\nwant % x", v.Name, file, v.file)
		}
	}
	if n < 30 {
		t.Errorf("%d files", n)
	}
}

// A file that is damaged is refused, whatever the struct.
func TestLoadBadVectors(t *testing.T) {
	for _, v := range vectors(t, "bad/*.json") {
		table, err := Open(context.Background(), source.Memory(v.Name, v.file), &Options{Keys: v.keys()})
		if err != nil {
			continue
		}
		s, err := table.Schema()
		if err != nil || len(s.Columns) == 0 {
			continue
		}
		for i := range s.Columns { // a bit that a column of scalars cannot have
			f := &s.Columns[i].Type
			f.ElementOptional = f.ElementOptional && f.Kind == Array
		}
		l, err := newLoader(context.Background(), structOf(s), table)
		if l != nil || Check(err) != v.Check {
			t.Errorf("%s: %v, want %s", v.Name, err, v.Check)
		}
	}
}
