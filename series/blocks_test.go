package series_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spilehq/spile/series"
)

// exampleB1 is the worked example of the format document.
const exampleB1 = "../testdata/series/example-b1/4398046511105/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f"

// Where the bytes of an artifact are, from metadata alone.
func ExampleArtifact_Blocks() {
	ctx := context.Background()
	a, err := series.Open(ctx, series.Folder(exampleB1), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	for i := range a.NumParts() {
		p, err := a.Part(ctx, i)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("part", i, p.Range, p.Size, "bytes")
		for k := range p.Leaves {
			blocks, err := a.Blocks(ctx, i, k)
			if err != nil {
				fmt.Println(err)
				return
			}
			for _, b := range blocks {
				c := b.Columns[2]
				fmt.Printf("block %s: %d series, %s from %q to %q in %d bytes\n", b.Range, b.Series, c.Name, c.Min, c.Max, c.Stored)
			}
		}
	}
	// Output:
	// part 0 1025/10 to 1026/7 628 bytes
	// block 1025/10 to 1025/9223372036854775813: 2 series, host from "" to "" in 21 bytes
	// block 1026/7 to 1026/7: 1 series, host from "web-1" to "web-1" in 25 bytes
}

// An artifact of series that come in any order.
func ExampleSorter() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	meta := &series.Manifest{RegionID: 1, Generation: series.UUID{1}, Tags: []series.Tag{{ColumnID: 5, Name: "host"}}}
	target := series.NewFolderTarget(dir, meta.RegionID, meta.Generation)
	w, err := series.NewWriter(ctx, target, meta, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Abort()

	s := series.NewSorter(ctx, 0)
	defer s.Close()
	for _, r := range []series.Record{
		{ID: series.ID{Table: 2, TSID: 1}, RowCount: 5, Labels: []series.Label{{Name: "host", Value: "b"}}},
		{ID: series.ID{Table: 1, TSID: 9}, RowCount: 3, Labels: []series.Label{{Name: "host", Value: "a"}}},
	} {
		if err := s.Add(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	for r, err := range s.Sorted() {
		if err == nil {
			err = w.Add(r)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(w.Close(), w.Manifest().Files[0].First, w.Manifest().Files[0].Last)
	// Output: <nil> 1/9 2/1
}
