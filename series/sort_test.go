package series

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// Records come out in order, those of one identifier in the order in which they went in, and no file is left, whatever the
// memory: all in it, some runs, and so many runs that they are merged twice.
func TestSorter(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, memory := range []int64{0, 1 << 20, 32 << 10} {
		n := 40_000
		if memory == 32<<10 {
			n = 120_000
		}
		s := NewSorter(context.Background(), memory)
		rng := rand.New(rand.NewPCG(1, uint64(memory)))
		var want []Record
		for i := range n {
			r := Record{ID: ID{rng.Uint32N(3), rng.Uint64N(uint64(n) / 3)}, RowCount: uint64(i) + 1}
			for k := range rng.IntN(4) {
				r.Labels = append(r.Labels, Label{fmt.Sprintf("name%d", k), strings.Repeat("v", rng.IntN(40))})
			}
			if i == n/2 {
				r.Labels = []Label{{"long", strings.Repeat("x", 3<<20)}}
			}
			want = append(want, r)
			if err := s.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(s.runs); (got > 0) != (memory > 0) || memory == 32<<10 && (got < 2 || s.runs[0].level == 0) {
			t.Errorf("memory %d: %d runs", memory, got)
		}
		slices.SortStableFunc(want, func(a, b Record) int { return a.ID.Compare(b.ID) })
		i := 0
		for r, err := range s.Sorted() {
			if err != nil {
				t.Fatal(err)
			}
			if !sameRecord(r, want[i]) {
				t.Fatalf("memory %d: record %d is %v, want %v", memory, i, r, want[i])
			}
			i++
		}
		if i != n {
			t.Errorf("memory %d: %d records, want %d", memory, i, n)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%v, %v", names, err)
		}
		s.Close()
	}
}

func TestSorterCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := NewSorter(ctx, 16<<10)
	defer s.Close()
	cancel()
	var err error
	for i := 0; i < 10_000 && err == nil; i++ {
		err = s.Add(Record{ID: ID{1, uint64(i)}, RowCount: 1})
	}
	if err == nil {
		t.Error("no error")
	}
}

func BenchmarkSorter(b *testing.B) {
	labels := []Label{{"host", "web-00012.example.org"}, {"zone", "eu-1"}, {"job", "node"}, {"env", "prod"}, {"path", "/dev/sda1"}, {"mode", "idle"}, {"cpu", "17"}}
	for _, memory := range []int64{0, 16 << 20} {
		b.Run(fmt.Sprint(memory), func(b *testing.B) {
			s := NewSorter(context.Background(), memory)
			defer s.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			for range b.N {
				if err := s.Add(Record{ID: ID{1, rng.Uint64()}, RowCount: 1, Labels: labels}); err != nil {
					b.Fatal(err)
				}
			}
			for _, err := range s.Sorted() {
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
