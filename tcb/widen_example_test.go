package tcb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// An old file under the schema of today: a column that became wider, and one that is new.
func ExampleTable_ReadAs() {
	ctx := context.Background()
	type item struct {
		ID    int32   `tcb:"1"`
		Price float32 `tcb:"2"`
	}
	old, err := tcb.Marshal(nil, []item{{1, 2.5}, {2, 0.25}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	table, err := tcb.Open(ctx, source.Memory("old.tcb", old), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()
	s, err := table.As(schema(`{"columns":[
		{"tag":1,"name":"id","type":"i64"},
		{"tag":2,"name":"price","type":"f64"},
		{"tag":3,"name":"note","type":"string","optional":true}]}`))
	if err != nil {
		log.Fatal(err)
	}
	columns, err := table.ReadAs(ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	rows := tcb.NewRows(columns, s, nil)
	for i := range table.Rows() {
		line, err := rows.Append(nil, i)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", line)
	}
	// Output:
	// {"id":1,"price":2.5,"note":null}
	// {"id":2,"price":0.25,"note":null}
}
