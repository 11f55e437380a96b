package jsonrows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spilehq/spile/adapters/jsonrows"
)

func Example() {
	ctx := context.Background()
	text := `{"id":1,"name":"Slime","drops":[10,11]}
{"id":9007199254740993,"drops":[]}
`
	s, err := jsonrows.Infer(ctx, strings.NewReader(text), nil)
	if err != nil {
		panic(err)
	}
	proposed, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(proposed))
	columns, rows, _, err := jsonrows.Read(ctx, strings.NewReader(text), s, nil)
	if err != nil {
		panic(err)
	}
	if err := jsonrows.Write(ctx, os.Stdout, rows, columns, s, nil); err != nil {
		panic(err)
	}

	_, _, _, err = jsonrows.Read(ctx, strings.NewReader(`{"id":1.5,"drops":null,"hp":3}`), s, nil)
	fmt.Println(err)
	// Output:
	// {"columns":[{"tag":1,"name":"id","type":"i64"},{"tag":2,"name":"name","type":"string","optional":true},{"tag":3,"name":"drops","type":"i32[]"}]}
	// {"id":1,"name":"Slime","drops":[10,11]}
	// {"id":9007199254740993,"name":null,"drops":[]}
	// jsonrows: line 1, column 1 (id): a number "1.5", want a whole number of 64 bits
	// jsonrows: line 1, column 3 (drops): no value, and the column is not optional
	// jsonrows: line 1: the schema has no column "hp"
}
