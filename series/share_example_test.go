package series_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// exampleB2 has the series of exampleB1 in two leaves.
const exampleB2 = "../testdata/series/example-b2/4398046511105/series/"

// The same series, stored in another way.
func ExampleCompare() {
	ctx := context.Background()
	a, b, err := openTwo(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	defer b.Close()
	sum, err := series.Compare(ctx, a, b, func(d series.Difference) error {
		fmt.Println(d.ID, "differs")
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sum.Equal(), sum.Same)
	// Output:
	// true 3
}

func openTwo(ctx context.Context) (a, b *series.Artifact, err error) {
	if a, err = series.Open(ctx, series.Folder(exampleB1), nil); err != nil {
		return nil, nil, err
	}
	generations, err := os.ReadDir(exampleB2)
	if err == nil {
		b, err = series.Open(ctx, series.Folder(exampleB2+generations[0].Name()), nil)
	}
	if err != nil {
		a.Close()
	}
	return a, b, err
}

// How many values the labels of an artifact have.
func ExampleAnalyze() {
	ctx := context.Background()
	a, err := series.Open(ctx, series.Folder(exampleB1), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	all, err := series.Analyze(ctx, a, &series.AnalyzeOptions{Top: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range all.Tables {
		fmt.Println("table", t.Table, t.Series, "series")
	}
	for _, l := range all.Labels {
		fmt.Println(l.Name, l.Distinct, "values,", l.Nulls, "nulls", l.Top)
	}
	// Output:
	// table 1025 2 series
	// table 1026 1 series
	// host 2 values, 1 nulls [{ 1}]
	// zone 0 values, 3 nulls []
}

// Series that are looked up together, in the order in which they are asked for, up to one that is not there.
func ExampleArtifact_LookupAll() {
	ctx := context.Background()
	a, b, err := openTwo(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	defer b.Close()
	ids := []series.ID{{Table: 1026, TSID: 7}, {Table: 1025, TSID: 10}, {Table: 1025, TSID: 11}, {Table: 1025, TSID: 10}}
	for r, err := range a.LookupAll(ctx, ids) {
		if err != nil {
			fmt.Println("not found:", errors.Is(err, fault.NotFound))
			return
		}
		fmt.Println(r.ID, r.RowCount, r.Labels)
	}
	// Output:
	// 1026/7 300 [{host web-1}]
	// 1025/10 3 []
	// not found: true
}

// What is selected in several artifacts, which need not be open at the same time.
func ExampleGatherer() {
	ctx := context.Background()
	a, b, err := openTwo(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	g := series.NewGatherer(ctx, &series.Query{Mode: series.Native, Limit: 2}, nil)
	defer g.Close()
	for i, one := range []*series.Artifact{a, b} {
		err := g.Add(ctx, one, i, nil)
		one.Close()
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for r, err := range g.Records() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.ID, r.RowCount, r.Labels)
	}
	// Output:
	// 1025/10 6 []
	// 1025/9223372036854775813 2 [{host }]
}

// An artifact that can be shown to others.
func ExampleRedactor() {
	ctx := context.Background()
	a, err := series.Open(ctx, series.Folder(exampleB1), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	key := make([]byte, series.RedactKeySize) // a real one is random, and secret
	r, err := series.NewRedactor(ctx, a, &series.RedactOptions{Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	meta := r.Manifest()
	w, err := series.NewWriter(ctx, series.NewFolderTarget(dir, meta.RegionID, meta.Generation), meta, r.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Abort()
	for rec, err := range r.Records(ctx) {
		if err == nil {
			err = w.Add(rec)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rec.ID, rec.RowCount, len(rec.Labels), "labels")
	}
	fmt.Println(w.Close())
	// Output:
	// 1025/10 3 0 labels
	// 1025/9223372036854775813 1 1 labels
	// 1026/7 300 1 labels
	// <nil>
}
