package tcb_test

import (
	"fmt"
	"log"
	"os"

	"github.com/spilehq/spile/tcb"
)

// items is a table of items, as Open, Read and Named give it for a file.
func items(ids []int32, labels []string, hp []int32) tcb.Snapshot {
	i32, text := tcb.Type{Element: tcb.I32}, tcb.Type{Element: tcb.String}
	return tcb.Snapshot{
		Columns: []*tcb.Column{
			{Tag: 1, Type: i32, Rows: len(ids), Int32s: ids},
			{Tag: 2, Type: text, Rows: len(ids), Strings: labels},
			{Tag: 3, Type: i32, Rows: len(ids), Int32s: hp},
		},
		Schema: &tcb.Schema{Columns: []tcb.Field{{Tag: 1, Name: "id", Type: i32}, {Tag: 2, Name: "label", Type: text}, {Tag: 3, Name: "hp", Type: i32}}},
	}
}

func ExampleDiff() {
	old := items([]int32{1, 2, 3}, []string{"sword", "shield", "bow"}, []int32{10, 20, 30})
	new := items([]int32{3, 1, 4}, []string{"bow", "sword", "staff"}, []int32{30, 12, 5})
	d, err := tcb.Diff(old, new, &tcb.DiffOptions{Key: "id"})
	if err != nil {
		log.Fatal(err)
	}
	if err := d.WriteText(os.Stdout, 100); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 row added, 1 removed, 1 changed (1 cell)
	// ~ id 1
	//     hp: 10 -> 12
	// - id 2: {"id":2,"label":"shield","hp":20}
	// + id 4: {"id":4,"label":"staff","hp":5}
}

func ExampleTableDiff_Rows() {
	old := items([]int32{1, 2}, []string{"sword", "bow"}, []int32{10, 20})
	new := items([]int32{2, 1, 3}, []string{"bow", "blade", "staff"}, []int32{20, 12, 5})
	d, err := tcb.Diff(old, new, &tcb.DiffOptions{Key: "id"})
	if err != nil {
		log.Fatal(err)
	}
	var count tcb.DiffCount = d.Count()
	fmt.Println(d.None(), d.Key, d.OldRows, d.NewRows, count.Changed, count.Cells)
	for row := range d.Rows() {
		switch row.Kind {
		case tcb.RowChanged:
			for _, cell := range row.Cells {
				fmt.Println("row", row.Old, "->", row.New, cell.Column, cell.Old, cell.New)
			}
		case tcb.RowAdded, tcb.RowRemoved:
			fmt.Println(row.Kind, row.Key)
		}
	}
	// Output:
	// false id 2 3 1 2
	// row 0 -> 1 label "sword" "blade"
	// row 0 -> 1 hp 10 12
	// added 3
}

func ExampleTableDiff_WriteMarkdown() {
	old := items([]int32{1}, []string{"sword"}, []int32{10})
	new := items([]int32{1}, []string{"sword"}, []int32{12})
	// A column of a wider type: its values are compared, and are the same.
	new.Columns[0] = &tcb.Column{Tag: 1, Type: tcb.Type{Element: tcb.I64}, Rows: 1, Int64s: []int64{1}}
	d, err := tcb.Diff(old, new, &tcb.DiffOptions{ByName: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range d.Columns {
		fmt.Println(c.Name, c.Old, c.New, c.Compared)
	}
	fmt.Println()
	if err := d.WriteMarkdown(os.Stdout, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	if err := d.WriteJSON(os.Stdout, 0); err != nil {
		log.Fatal(err)
	}
	// Output:
	// id i32 i64 true
	//
	// **0 rows added, 0 removed, 1 changed (1 cell)**
	//
	// | | Column | Old | New |
	// |---|---|---|---|
	// | ~ | `id` | `i32` | `i64` |
	//
	// | | Row | Column | Old | New |
	// |---|---|---|---|---|
	// | ~ | 0 | `hp` | `10` | `12` |
	//
	// {"oldRows":1,"newRows":1,"added":0,"removed":0,"changed":1,"cells":1,"columns":[{"tag":1,"name":"id","old":"i32","new":"i64","compared":true}],"rows":[{"change":"changed","oldRow":0,"newRow":0,"cells":[{"column":"hp","old":10,"new":12}]}]}
}
