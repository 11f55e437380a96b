package series

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// What a query has given stays what it is when others use its memory, however each of them ended.
func TestAnswersStay(t *testing.T) {
	ctx := context.Background()
	m, records := many(6000)
	r := rand.New(rand.NewPCG(1, 6))
	matcher := func(op Op, name, value string) *Matcher {
		m, err := NewMatcher(op, name, value)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	queries := []*Query{
		{},
		{Columns: []string{"instance"}, Range: &Range{records[100].ID, records[5000].ID}},
		{Matchers: []*Matcher{matcher(Regexp, "instance", ".*[13579]"), matcher(NotEqual, "instance", "host-00017")}},
		{Matchers: []*Matcher{matcher(Equal, "region", "region-3")}, Mode: Native, Limit: 300},
		{Matchers: []*Matcher{matcher(NotEqual, "version", "v1")}, Columns: []string{"version", "job"}},
	}
	for _, o := range []*WriteOptions{{BlockSeries: 500}, {BlockSeries: 1500, Zstd: true}} { // without compression texts stand in the stored bytes
		target := buildIn(t, m, records, o)
		for _, cache := range []int64{-1, 0} {
			a, err := Open(ctx, target.opener(), &Options{CacheBytes: cache})
			if err != nil {
				t.Fatal(err)
			}
			type answer struct {
				query  *Query
				given  []Record
				values []string
				text   string // of the values, when they came
			}
			var answers []answer
			for range 60 {
				q := queries[r.IntN(len(queries))]
				stop := len(records)
				if r.IntN(2) == 0 {
					stop = r.IntN(1000)
				}
				x := answer{query: q}
				func() {
					defer func() {
						if p := recover(); p != nil && p != "who asks fails" {
							panic(p)
						}
					}()
					for rec, err := range a.Select(ctx, q) {
						if err != nil {
							t.Error(err)
						}
						if x.given = append(x.given, rec); len(x.given) >= stop {
							if stop%2 == 0 {
								panic("who asks fails")
							}
							break
						}
					}
				}()
				if x.values, err = a.LabelValues(ctx, "instance", q); err != nil {
					t.Error(err)
				}
				x.text = fmt.Sprintf("%q", x.values)
				answers = append(answers, x)
			}
			for _, x := range answers {
				want := oracleSelects(x.query, m.Tags, records)
				if !same(x.given, want[:min(len(want), len(x.given))]) || !slices.IsSorted(x.values) || fmt.Sprintf("%q", x.values) != x.text {
					t.Fatalf("cache %d: what %q has given is not what it was", cache, x.query.Matchers)
				}
			}
			a.Close()
		}
	}
}
