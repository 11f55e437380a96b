package xlsx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/adapters/xlsx"
	"github.com/spilehq/spile/tcb"
)

func Example() {
	ctx := context.Background()
	s, err := tcb.ParseSchema([]byte(`{"table":"Items","columns":[
		{"tag":1,"name":"id","type":"i64"},
		{"tag":2,"name":"since","type":"datetime","optional":true}]}`))
	if err != nil {
		panic(err)
	}
	columns := []*tcb.Column{
		{Tag: 1, Rows: 2, Type: s.Columns[0].Type, Int64s: []int64{7, 9007199254740993}},
		{Tag: 2, Rows: 2, Type: s.Columns[1].Type, Int64s: []int64{638_918_496_000_000_001, 0}, Present: tcb.Bitmap{0b01}},
	}
	var file bytes.Buffer
	if err := xlsx.Write(ctx, &file, 2, columns, s, nil); err != nil {
		panic(err)
	}
	p := file.Bytes()
	back, rows, warnings, err := xlsx.Read(ctx, bytes.NewReader(p), int64(len(p)), s, &xlsx.Options{Sheet: "Items"})
	if err != nil {
		panic(err)
	}
	fmt.Println(rows, back[0].Int64s, back[1].Int64s, back[1].Has(1), warnings)

	// Another schema does not fit; the cells are named.
	s.Columns[0].Type.Element = tcb.I32
	_, _, _, err = xlsx.Read(ctx, bytes.NewReader(p), int64(len(p)), s, &xlsx.Options{Options: tabular.Options{Name: "items.xlsx"}})
	fmt.Println(err)

	proposed, err := xlsx.Infer(ctx, bytes.NewReader(p), int64(len(p)), nil)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(proposed)
	fmt.Println(string(text), err)
	// Output:
	// 2 [7 9007199254740993] [638918496000000001 0] false []
	// xlsx: items.xlsx: Items!A3, column 1 (id): text "9007199254740993", want a whole number of 32 bits
	// {"columns":[{"tag":1,"name":"id","type":"i64"},{"tag":2,"name":"since","type":"datetime","optional":true}]} <nil>
}
