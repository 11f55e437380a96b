package parquet_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	pq "github.com/parquet-go/parquet-go"

	"github.com/spilehq/spile/adapters/parquet"
	"github.com/spilehq/spile/tcb"
)

func ExampleWrite() {
	// What Open and Read give for a file, and a schema that has the names.
	schema, err := tcb.ParseSchema([]byte(`{"table":"Item","columns":[
		{"tag":1,"name":"id","type":"i32"},
		{"tag":2,"name":"label","type":"string","optional":true},
		{"tag":3,"name":"since","type":"datetime"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	since, _ := tcb.ParseDateTime("2026-11-30T08:00:00")
	columns := []*tcb.Column{
		{Tag: 1, Type: schema.Columns[0].Type, Rows: 2, Int32s: []int32{1, 2}},
		{Tag: 2, Type: schema.Columns[1].Type, Rows: 2, Strings: []string{"sword", ""}, Present: tcb.Bitmap{0b01}},
		{Tag: 3, Type: schema.Columns[2].Type, Rows: 2, Int64s: []int64{since, since}},
	}

	var out bytes.Buffer
	o := &parquet.Options{Compression: parquet.Snappy, DateTimes: parquet.TimesAuto, RowGroupRows: parquet.DefaultRowGroupRows}
	if err := parquet.Write(context.Background(), &out, columns[0].Rows, columns, schema, o); err != nil {
		log.Fatal(err)
	}

	f, err := pq.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Schema())
	text, _ := f.Lookup(parquet.SchemaKey)
	fmt.Println(text)
	// Output:
	// message spile {
	// 	required int32 id (INT(32,true));
	// 	optional binary label (STRING);
	// 	required int64 since (TIMESTAMP(isAdjustedToUTC=false,unit=MICROS));
	// }
	// {"table":"Item","columns":[{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"label","type":"string","optional":true},{"tag":3,"name":"since","type":"datetime"}]}
}

// Ticks are exported as they are where no unit of Parquet holds all of them.
func ExampleTimes() {
	schema, err := tcb.ParseSchema([]byte(`{"columns":[{"tag":1,"name":"at","type":"datetime"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	columns := []*tcb.Column{{Tag: 1, Type: schema.Columns[0].Type, Rows: 2, Int64s: []int64{0, tcb.MaxDateTime}}}
	for _, how := range []parquet.Times{parquet.TimesAuto, parquet.TimesTicks} {
		var out bytes.Buffer
		err := parquet.Write(context.Background(), &out, columns[0].Rows, columns, schema, &parquet.Options{DateTimes: how, Compression: parquet.Zstd})
		fmt.Println(err)
	}
	// Output:
	// parquet: row 0, column 1 (at): 0001-01-01T00:00:00 is beyond the years 1678 to 2261, which nanoseconds reach, and row 1, column 1 (at), 9999-12-31T23:59:59.9999999, has parts of a microsecond: no unit holds both, DateTimes: TimesTicks exports ticks
	// <nil>
}
