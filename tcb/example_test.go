package tcb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// monsters makes the columns of three rows, cell by cell.
func monsters() (*tcb.Schema, *tcb.Builder) {
	schema, err := tcb.ParseSchema([]byte(`{"table":"Monster","columns":[
		{"tag":1,"name":"id","type":"i32"},
		{"tag":2,"name":"name","type":"string","optional":true},
		{"tag":3,"name":"drops","type":"i32[]","elementOptional":true},
		{"tag":4,"name":"spawned","type":"datetime"},
		{"tag":5,"name":"respawn","type":"timespan"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	number := func(s string) tcb.Cell { return tcb.Cell{Kind: tcb.CellNumber, Text: s} }
	text := func(s string) tcb.Cell { return tcb.Cell{Kind: tcb.CellText, Text: s} }
	b := tcb.NewBuilder(schema)
	for _, row := range []struct {
		id, name         tcb.Cell
		drops            []tcb.Cell
		spawned, respawn string
	}{
		{number("1"), text("slime"), []tcb.Cell{number("7"), {}, number("9")}, "2026-11-30T08:00:00", "00:00:30"},
		{number("2"), tcb.Cell{}, []tcb.Cell{}, "2026-11-30T08:00:00.5", "1.00:00:00"},
		{number("3.0"), text("bat"), []tcb.Cell{number("7")}, "2026-12-01", "-00:00:01"},
	} {
		err := errors.Join(b.Scalar(0, row.id), b.Scalar(1, row.name), b.Array(2, row.drops), b.Scalar(3, text(row.spawned)), b.Scalar(4, text(row.respawn)))
		if err != nil {
			log.Fatal(err)
		}
		b.EndRow()
	}
	return schema, b
}

// monsterFile is the file of those rows, and the columns in it.
func monsterFile(o *tcb.WriteOptions) []byte {
	_, b := monsters()
	file, err := tcb.Append(nil, b.Rows(), b.Columns(), o)
	if err != nil {
		log.Fatal(err)
	}
	return file
}

// A file is made of columns and read back: first what it has, then the columns that are wanted.
func Example() {
	ctx := context.Background()
	t, err := tcb.Open(ctx, source.Memory("monsters.tcb", monsterFile(nil)), &tcb.Options{Limits: tcb.Limits{Rows: 1000}})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	fmt.Println(t.Name(), t.Rows(), t.HasCounts(), t.Protection())
	for _, d := range t.Columns() {
		fmt.Println(d.Tag, d.Type, d.Encoding, d.Size)
	}
	schema, _ := monsters()
	if schema, err = t.Named(schema); err != nil { // the names are not in the file, and have to fit it
		log.Fatal(err)
	}
	d, ok := t.Lookup(3)
	fmt.Println(d.Type.Element, d.Type.Kind, schema.Columns[2].Name, ok)

	columns, err := t.Read(ctx, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	names, drops := columns[0], columns[1]
	for i := range t.Rows() {
		fmt.Print(i)
		if names.Has(i) {
			fmt.Print(" ", names.Strings[i])
		}
		for start, end := drops.Span(i); start < end; start++ {
			fmt.Print(" ", drops.Int32s[start], drops.HasElement(start))
		}
		fmt.Println()
	}
	fmt.Println(drops.Len(), drops.Check())
	// Output:
	// monsters.tcb 3 false {false false false}
	// 1 i32 VARINT 3
	// 2 string? RAW 13
	// 3 i32?[] ARRAY 12
	// 4 i64 RAW 24
	// 5 i64 BITPACK 21
	// i32 array drops true
	// 0 slime 7 true 0 false 9 true
	// 1
	// 2 bat 7 true
	// 4 <nil>
}

// Write is Append to a writer. Explain tells what the writer tried.
func ExampleWrite() {
	_, b := monsters()
	rows, columns := b.Rows(), b.Columns()
	var out bytes.Buffer
	o := &tcb.WriteOptions{Explain: func(c *tcb.Column, tried []tcb.Candidate, taken tcb.Encoding) {
		if c.Tag == 3 {
			for _, cand := range tried {
				fmt.Println(c.Name, cand.Encoding, cand.Size, cand.Encoding == taken, cand.Inside)
			}
		}
	}}
	if err := tcb.Write(&out, rows, columns, o); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Equal(out.Bytes(), monsterFile(nil)))
	// Output:
	// drops RAW 19 false []
	// drops ARRAY 9 true [{elements VARINT 4} {lengths RAW 3}]
	// true
}

// Keys come from where secrets are kept. A file is signed and encrypted when it is written, or afterwards.
func ExampleSeal() {
	ctx := context.Background()
	keys := tcb.Keys{Encryption: bytes.Repeat([]byte{1}, tcb.KeySize), MAC: bytes.Repeat([]byte{2}, tcb.KeySize)}
	sealed, err := tcb.Seal(monsterFile(nil), keys)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Equal(sealed, monsterFile(&tcb.WriteOptions{Keys: keys})))

	obj := source.Memory("monsters.tcb", sealed)
	p, err := tcb.ReadProtection(ctx, obj) // without a key
	fmt.Printf("%+v %v\n", p, err)
	_, err = tcb.Open(ctx, obj, nil)
	fmt.Println(tcb.Check(err), err)
	t, err := tcb.Open(ctx, obj, &tcb.Options{Keys: keys})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", t.Protection())

	plain, err := tcb.Unseal(sealed, &tcb.Options{Keys: keys})
	fmt.Println(bytes.Equal(plain, monsterFile(nil)), err)
	// Output:
	// true
	// {Encrypted:true Signed:true Verified:false} <nil>
	// O7 tcb: monsters.tcb: O7: is encrypted, and there is no key for it (offset 0x8)
	// {Encrypted:true Signed:true Verified:true}
	// true <nil>
}

// Verify goes on behind a fault, and tells faults from what is odd and from what the limits keep it from looking at.
func ExampleTable_Verify() {
	ctx := context.Background()
	file := monsterFile(nil)
	file[bytes.Index(file, []byte("slime"))] = 0xff
	file[len(file)-49] = 0xff // a number in an array, which goes on
	t, err := tcb.Open(ctx, source.Memory("monsters.tcb", file), nil)
	if err != nil {
		log.Fatal(err)
	}
	err = t.Verify(ctx, &tcb.VerifyOptions{Deep: true}, func(f tcb.Finding) {
		switch {
		case f.Note:
			fmt.Println("note:", f.Err)
		case errors.Is(f.Err, fault.Limit):
			fmt.Println("not looked at:", f.Err)
		default:
			fmt.Println(f.Err)
		}
	})
	fmt.Println(err)
	// Output:
	// note: tcb: monsters.tcb: column 2: 1 of 3 strings are no UTF-8 (offset 0x52)
	// tcb: monsters.tcb: column 3: D1: the block ends inside a number (offset 0x6b)
	// <nil>
}

// Rows as JSON, by the names and the logical types of a schema: whole, a cell, an element.
func ExampleRows() {
	schema, b := monsters()
	n := b.Rows()
	rows := tcb.NewRows(b.Columns(), schema, &tcb.RowOptions{})
	for i := range n {
		line, err := rows.Append(nil, i)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", line)
	}
	cell, _ := rows.AppendCell(nil, 2, 0)
	element, _ := rows.AppendElement(nil, 2, 0, 1)
	fmt.Printf("%s %s\n", cell, element)
	// Output:
	// {"id":1,"name":"slime","drops":[7,null,9],"spawned":"2026-11-30T08:00:00","respawn":"00:00:30"}
	// {"id":2,"name":null,"drops":[],"spawned":"2026-11-30T08:00:00.5","respawn":"1.00:00:00"}
	// {"id":3,"name":"bat","drops":[7],"spawned":"2026-12-01T00:00:00","respawn":"-00:00:01"}
	// [7,null,9] null
}

// Datetimes and timespans are ticks of 100 ns.
func ExampleParseDateTime() {
	at, err := tcb.ParseDateTime("2026-11-30 08:00:00.25")
	if err != nil {
		log.Fatal(err)
	}
	text, _ := tcb.AppendDateTime(nil, at)
	fmt.Println(at, string(text), (at-tcb.UnixEpoch)/tcb.TicksPerSecond)
	t, ok := tcb.TimeOf(at)
	fmt.Println(t, ok)
	back, ok := tcb.TicksOf(t.Add(time.Hour))
	fmt.Println(back-at, ok)

	span, err := tcb.ParseTimeSpan("1.02:03:04.5")
	if err != nil {
		log.Fatal(err)
	}
	d, ok := tcb.SpanOf(span)
	fmt.Println(span, string(tcb.AppendTimeSpan(nil, span)), d, ok)
	_, err = tcb.AppendDateTime(nil, tcb.MaxDateTime+1)
	fmt.Println(err)
	// Output:
	// 639316224002500000 2026-11-30T08:00:00.25 1796025600
	// 2026-11-30 08:00:00.25 +0000 UTC true
	// 36000000000 true
	// 937845000000 1.02:03:04.5 26h3m4.5s true
	// tcb: 3155378976000000000 ticks are no datetime, 0 to 3155378975999999999 are
}

// A whole number is one in whatever form it is written.
func ExampleParseInteger() {
	for _, s := range []string{"3", "3.0", "1e3", "3.5", "9223372036854775807"} {
		n, ok := tcb.ParseInteger(s)
		fmt.Println(n, ok)
	}
	// Output:
	// 3 true
	// 3 true
	// 1000 true
	// 0 false
	// 9223372036854775807 true
}

// The file has a UUID in the order of .NET, other systems in that of the text.
func ExampleParseGUID() {
	g, err := tcb.ParseGUID("{00112233-4455-6677-8899-AABBCCDDEEFF}")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g)
	fmt.Printf("% x\n% x\n", g[:], g.Bytes())
	// Output:
	// 00112233-4455-6677-8899-aabbccddeeff
	// 33 22 11 00 55 44 77 66 88 99 aa bb cc dd ee ff
	// 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff
}

// A column is plain data, which a program can fill by itself.
func ExampleColumn() {
	c := &tcb.Column{Tag: 1, Name: "hp", Type: tcb.Type{Element: tcb.I32, Optional: true}, Rows: 10, Present: tcb.NewBitmap(10), Int32s: make([]int32, 10)}
	c.Int32s[8] = 50
	c.Present.Set(8)
	fmt.Println(c.Has(0), c.Has(8), c.Present.Get(8), c.Present)
	fmt.Println(c.Check())
	c.Int32s = c.Int32s[:9]
	fmt.Println(c.Check())

	f := tcb.Field{Tag: 2, Name: "at", Type: tcb.Type{Element: tcb.I64, Kind: tcb.Array, ElementOptional: true}, Logical: tcb.DateTime}
	fmt.Println(f.TypeName(), f.TypeText(), f.Type)
	// Output:
	// false true true [0 1]
	// <nil>
	// tcb: column 1 (hp): 9 values for 10 rows
	// datetime[] datetime?[] i64?[]
}
