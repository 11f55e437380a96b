package tcb_test

import (
	"fmt"
	"log"

	"github.com/spilehq/spile/tcb"
)

func schema(text string) *tcb.Schema {
	s, err := tcb.ParseSchema([]byte(text))
	if err != nil {
		log.Fatal(err)
	}
	return s
}

// What deployed readers make of new files, and new readers of old ones.
func ExampleCompare() {
	old := schema(`{"columns":[
		{"tag":1,"name":"id","type":"i32"},
		{"tag":2,"name":"grade","type":"enum","enum":{"Common":1,"Rare":2}},
		{"tag":3,"name":"color","type":"string"}]}`)
	cur := schema(`{"columns":[
		{"tag":1,"name":"id","type":"i64"},
		{"tag":2,"name":"grade","type":"enum","enum":{"Common":1,"Fine":2,"Rare":3}},
		{"tag":4,"name":"tint","type":"string"}]}`)
	for _, c := range tcb.Compare(old, cur) {
		fmt.Printf("%d: %v / %v\n", c.Tag, c.OldReadsNew, c.NewReadsOld)
		if c.OldReadsNew.Verdict == tcb.Misreads || !c.NewReadsOld.OK() {
			fmt.Println("   stop:", c.OldReadsNew.Why)
		}
	}
	// Output:
	// 1: refuses (type) / widens (i32 -> i64)
	// 2: misreads (Rare was 2, is 3) / misreads (Rare was 2, is 3)
	//    stop: [Rare was 2, is 3]
	// 3: empty (not in the file) / skips (unknown tag)
	// 4: skips (unknown tag) / empty (not in the file)
}

// A build checks the schemas of all tables before it writes data, and then replaces the baseline.
func ExampleBaseline() {
	first, err := new(tcb.Baseline).Check([]*tcb.Schema{
		schema(`{"table":"Item","columns":[{"tag":1,"name":"Id","type":"i32"},{"tag":2,"name":"Price","type":"i32"}]}`),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	file := first.Next.AppendJSON(nil)

	b, err := tcb.ParseBaseline(file)
	if err != nil {
		log.Fatal(err)
	}
	if b.Version != tcb.BaselineVersion {
		fmt.Println("of another version: it is replaced")
	}
	changed := []*tcb.Schema{schema(`{"table":"Item","columns":[{"tag":1,"name":"Id","type":"i64"}]}`)}
	report, err := b.Check(changed, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range report.Problems {
		fmt.Println(p.Rule, p.Tag, p.Accept)
	}
	report, err = b.Check(changed, &tcb.BaselineOptions{Accepted: []string{"Item.Id", "Item.Price", "Shop.Id"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(report.Problems), report.Unused, report.Next != nil)
	// Output:
	// type-changed 1 Item.Id
	// column-deleted 2 Item.Price
	// 0 [Shop.Id] true
}
