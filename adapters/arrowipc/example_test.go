package arrowipc_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/spilehq/spile/adapters/arrowipc"
	"github.com/spilehq/spile/tcb"
)

func ExampleWrite() {
	// What Open and Read give for a file, and a schema that has the names.
	schema, err := tcb.ParseSchema([]byte(`{"table":"Quest","columns":[
		{"tag":1,"name":"id","type":"i32"},
		{"tag":2,"name":"rewards","type":"i32[]"},
		{"tag":3,"name":"takes","type":"timespan"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	columns := []*tcb.Column{
		{Tag: 1, Type: schema.Columns[0].Type, Rows: 2, Int32s: []int32{1, 2}},
		{Tag: 2, Type: schema.Columns[1].Type, Rows: 2, Offsets: []int32{0, 2, 3}, Int32s: []int32{100, 101, 7}},
		{Tag: 3, Type: schema.Columns[2].Type, Rows: 2, Int64s: []int64{5 * tcb.TicksPerSecond, 1}},
	}

	var out bytes.Buffer
	o := &arrowipc.Options{DateTimes: arrowipc.TimesTicks, TimeSpans: arrowipc.TimesAuto, BatchRows: arrowipc.DefaultBatchRows}
	if err := arrowipc.Write(context.Background(), &out, columns[0].Rows, columns, schema, o); err != nil {
		log.Fatal(err)
	}

	r, err := ipc.NewFileReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	batch, err := r.RecordBatchAt(0)
	if err != nil {
		log.Fatal(err)
	}
	for i, c := range batch.Columns() {
		f := r.Schema().Field(i)
		fmt.Println(f.Name, f.Type, c)
	}
	metadata := r.Schema().Metadata()
	_, ok := metadata.GetValue(arrowipc.SchemaKey)
	fmt.Println(ok)
	// Output:
	// id int32 [1 2]
	// rewards list<item: int32> [[100 101] [7]]
	// takes duration[ns] [5000000000 100]
	// true
}
