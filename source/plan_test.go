package source_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spilehq/spile/source"
)

type ranges = []source.Range

var planTests = []struct {
	name string
	in   ranges
	cost source.Cost
	want []source.Request
}{
	{name: "none"},
	{name: "empty ranges", in: ranges{{3, 3}, {5, 2}, {-4, 2}, {math.MaxInt64, math.MinInt64}}},
	{name: "one", in: ranges{{3, 5}}, want: []source.Request{{source.Range{3, 5}, []int{0}}}},
	{
		name: "sorted by start", in: ranges{{30, 40}, {3, 5}},
		want: []source.Request{{source.Range{3, 5}, []int{1}}, {source.Range{30, 40}, []int{0}}},
	},
	{
		name: "duplicates", in: ranges{{3, 5}, {3, 5}, {3, 5}},
		want: []source.Request{{source.Range{3, 5}, []int{0, 1, 2}}},
	},
	{
		name: "overlap", in: ranges{{3, 8}, {0, 5}, {4, 6}},
		want: []source.Request{{source.Range{0, 8}, []int{1, 0, 2}}},
	},
	{
		name: "touching", in: ranges{{0, 5}, {5, 8}},
		want: []source.Request{{source.Range{0, 8}, []int{0, 1}}},
	},
	{
		name: "gap as dear as a request", in: ranges{{0, 5}, {15, 20}}, cost: source.Cost{Gap: 10},
		want: []source.Request{{source.Range{0, 20}, []int{0, 1}}},
	},
	{
		name: "gap dearer than a request", in: ranges{{0, 5}, {16, 20}}, cost: source.Cost{Gap: 10},
		want: []source.Request{{source.Range{0, 5}, []int{0}}, {source.Range{16, 20}, []int{1}}},
	},
	{
		name: "gap after the longest, not the last", in: ranges{{0, 100}, {1, 2}, {105, 110}}, cost: source.Cost{Gap: 5},
		want: []source.Request{{source.Range{0, 110}, []int{0, 1, 2}}},
	},
	{
		name: "not merged beyond the longest request", in: ranges{{0, 5}, {5, 9}, {9, 12}},
		cost: source.Cost{Gap: 5, MaxRequest: 9},
		want: []source.Request{{source.Range{0, 9}, []int{0, 1}}, {source.Range{9, 12}, []int{2}}},
	},
	{
		name: "split", in: ranges{{0, 25}, {26, 30}, {2, 4}, {9, 11}}, cost: source.Cost{Gap: 5, MaxRequest: 10},
		want: []source.Request{
			{source.Range{0, 10}, []int{0, 2, 3}},
			{source.Range{10, 20}, []int{0, 3}},
			{source.Range{20, 30}, []int{0, 1}},
		},
	},
	{
		name: "the ends of the numbers", in: ranges{{math.MaxInt64 - 1, math.MaxInt64}, {0, 1}},
		cost: source.Cost{Gap: math.MaxInt64},
		want: []source.Request{{source.Range{0, math.MaxInt64}, []int{1, 0}}},
	},
	{
		name: "split at the end of the numbers", in: ranges{{math.MaxInt64 - 15, math.MaxInt64}},
		cost: source.Cost{MaxRequest: 10},
		want: []source.Request{
			{source.Range{math.MaxInt64 - 15, math.MaxInt64 - 5}, []int{0}},
			{source.Range{math.MaxInt64 - 5, math.MaxInt64}, []int{0}},
		},
	},
}

func TestPlan(t *testing.T) {
	for _, tt := range planTests {
		t.Run(tt.name, func(t *testing.T) {
			in := slices.Clone(tt.in)
			if diff := cmp.Diff(tt.want, source.Plan(tt.in, tt.cost)); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(in, tt.in) {
				t.Error("the ranges were modified")
			}
		})
	}
}

// checkPlan holds a plan to its contract.
func checkPlan(in ranges, c source.Cost, plan []source.Request) error {
	got := make(map[int]int64) // bytes of each range that its requests give
	for k, req := range plan {
		if req.Len() <= 0 || c.MaxRequest > 0 && req.Len() > c.MaxRequest {
			return fmt.Errorf("request %d has length %d, at most %d", k, req.Len(), c.MaxRequest)
		}
		if k > 0 {
			before := plan[k-1]
			if req.Start < before.End {
				return fmt.Errorf("request %d starts at %d, the one before ends at %d", k, req.Start, before.End)
			}
			if union := req.End - before.Start; req.Start-before.End <= c.Gap && (c.MaxRequest < 1 || union <= c.MaxRequest) {
				return fmt.Errorf("requests %d and %d could have been one", k-1, k)
			}
		}
		covered := req.Start // no request begins or ends with, or holds, a gap that is dearer than a request
		for n, i := range req.Serves {
			r := source.Range{max(in[i].Start, req.Start), min(in[i].End, req.End)}
			if r.Len() <= 0 {
				return fmt.Errorf("request %d says it serves range %d", k, i)
			}
			if n == 0 && r.Start != req.Start || r.Start-covered > c.Gap {
				return fmt.Errorf("request %d reads from %d to %d for nobody", k, covered, r.Start)
			}
			covered = max(covered, r.End)
			got[i] += r.Len()
		}
		if covered != req.End {
			return fmt.Errorf("request %d reads from %d on for nobody", k, covered)
		}
	}
	for i, r := range in {
		if want := max(0, r.Len()); r.Start >= 0 && got[i] != want {
			return fmt.Errorf("range %d has %d bytes in the requests that serve it, want %d", i, got[i], want)
		}
	}
	return nil
}

// plainPlan is the twin of Plan without MaxRequest: it marks the bytes of a small world, and the short gaps.
func plainPlan(in ranges, gap int64) ranges {
	var world [512]bool
	for _, r := range in {
		for i := r.Start; i < r.End; i++ {
			world[i] = true
		}
	}
	var out ranges
	for i := range int64(len(world)) {
		switch last := len(out) - 1; {
		case !world[i]:
		case last >= 0 && i-out[last].End <= gap:
			out[last].End = i + 1
		default:
			out = append(out, source.Range{i, i + 1})
		}
	}
	return out
}

func FuzzPlan(f *testing.F) {
	for _, tt := range planTests {
		seed := []byte{byte(tt.cost.Gap), byte(tt.cost.MaxRequest)}
		for _, r := range tt.in {
			seed = append(seed, byte(r.Start), byte(r.Len()))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 {
			return
		}
		c := source.Cost{Gap: int64(b[0]), MaxRequest: int64(b[1])}
		var in ranges
		for b = b[2:]; len(b) >= 2; b = b[2:] {
			in = append(in, source.Range{int64(b[0]), int64(b[0]) + int64(b[1])})
		}
		if err := checkPlan(in, c, source.Plan(in, c)); err != nil {
			t.Errorf("%v, %+v: %v", in, c, err)
		}
		c.MaxRequest = 0
		var got ranges
		for _, req := range source.Plan(in, c) {
			got = append(got, req.Range)
		}
		if diff := cmp.Diff(plainPlan(in, c.Gap), got); diff != "" {
			t.Error(diff)
		}
	})
}

// Without a split a request costs no allocation of its own, however many ranges it serves.
func TestPlanAllocations(t *testing.T) {
	in := make(ranges, 10_000)
	for i := range in {
		at := int64(i)*100 + int64(i/3)*1000
		in[i] = source.Range{at, at + 10}
	}
	for _, gap := range []int64{10, 90, 2000} { // each alone, by threes, all in one
		if n := testing.AllocsPerRun(5, func() { source.Plan(in, source.Cost{Gap: gap}) }); n > 40 {
			t.Errorf("gap %d: %v allocations, at most 40", gap, n)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	sorted := make(ranges, 100_000)
	for i := range sorted {
		at := int64(i) * 20_000
		sorted[i] = source.Range{at, at + 1 + int64(i%7)*2000}
	}
	shuffled := slices.Clone(sorted)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	for _, bb := range []struct {
		name string
		in   ranges
		cost source.Cost
	}{
		{"sorted", sorted, source.Cost{Gap: 16 << 10}},
		{"shuffled", shuffled, source.Cost{Gap: 16 << 10}},
		{"remote", sorted, source.Cost{Gap: 1 << 20, MaxRequest: 8 << 20}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				source.Plan(bb.in, bb.cost)
			}
		})
	}
}
