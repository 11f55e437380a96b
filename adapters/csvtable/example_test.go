package csvtable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spilehq/spile/adapters/csvtable"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

const schema = `{"columns":[
	{"tag":1,"name":"id","type":"i32"},
	{"tag":2,"name":"name","type":"string","optional":true},
	{"tag":3,"name":"drops","type":"i32[]"}]}`

func Example() {
	ctx := context.Background()
	s, err := tcb.ParseSchema([]byte(schema))
	if err != nil {
		panic(err)
	}
	text := "id,name,drops\n1,Slime,10;11\n2,,\n3,\"\",7\n"
	columns, rows, _, err := csvtable.Read(ctx, strings.NewReader(text), s, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(rows, columns[1].Has(1), columns[1].Has(2))
	err = csvtable.Write(ctx, os.Stdout, rows, columns, s, &csvtable.Options{Delimiter: ';', Options: tabular.Options{Tags: true}})
	if err != nil {
		panic(err)
	}
	// Output:
	// 3 false true
	// id@1;name@2;drops@3
	// 1;Slime;"10;11"
	// 2;;
	// 3;"";7
}

// All that is wrong is found in one run.
func ExampleRead_errors() {
	s, err := tcb.ParseSchema([]byte(schema))
	if err != nil {
		panic(err)
	}
	text := "id,name,drops\n1,\"Green\nSlime\",10\n3.5,x,\n4,y,1;z\n5,v\n"
	_, _, _, err = csvtable.Read(context.Background(), strings.NewReader(text), s, &csvtable.Options{Options: tabular.Options{Name: "items.csv"}})
	fmt.Println(err)

	var all *tabular.Errors
	fmt.Println(errors.As(err, &all), all.Count, errors.Is(err, fault.Invalid))
	// Output:
	// csvtable: items.csv: line 4, column 1 (id): text "3.5", want a whole number of 32 bits
	// csvtable: items.csv: line 5, column 3 (drops), element 1: text "z", want a whole number of 32 bits
	// csvtable: items.csv: line 6: 2 fields, the header has 3
	// true 3 true
}

func ExampleInfer() {
	text := "id@1,#old@2,price@3,since@5\n1,,0.5,2026-01-02\n2,,3,\n"
	s, err := csvtable.Infer(context.Background(), strings.NewReader(text), nil)
	if err != nil {
		panic(err)
	}
	out, err := json.MarshalIndent(s, "", " ")
	fmt.Println(string(out), err)
	// Output:
	// {
	//  "columns": [
	//   {
	//    "tag": 1,
	//    "name": "id",
	//    "type": "i32"
	//   },
	//   {
	//    "tag": 3,
	//    "name": "price",
	//    "type": "f64"
	//   },
	//   {
	//    "tag": 5,
	//    "name": "since",
	//    "type": "datetime",
	//    "optional": true
	//   }
	//  ],
	//  "reserved": [
	//   {
	//    "tag": 2,
	//    "name": "old"
	//   }
	//  ]
	// } <nil>
}
