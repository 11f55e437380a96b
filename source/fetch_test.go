package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// object is an object in which a test takes the place of the read, the cost or the size.
type object struct {
	source.Object
	cost source.Cost
	size int64
	read func(ctx context.Context, p []byte, off int64) error // nil: as the object does
}

func (o object) Cost() source.Cost { return o.cost }
func (o object) Size() int64       { return max(o.size, o.Object.Size()) }

func (o object) ReadAt(ctx context.Context, p []byte, off int64) error {
	if o.read != nil {
		return o.read(ctx, p, off)
	}
	return o.Object.ReadAt(ctx, p, off)
}

func TestFetch(t *testing.T) {
	want := content(10_000)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		cost := source.Cost{Gap: r.Int64N(200), Parallel: r.IntN(8) - 1, MaxRequest: r.Int64N(300) - 50}
		in := make(ranges, r.IntN(50))
		for i := range in {
			start := r.Int64N(int64(len(want)) + 1)
			in[i] = source.Range{start, start + r.Int64N(min(1000, int64(len(want))-start)+1)}
		}
		got, err := source.Fetch(t.Context(), object{Object: source.Memory("data", want), cost: cost}, in)
		if err != nil || len(got) != len(in) {
			t.Fatalf("round %d: %d results, %v", round, len(got), err)
		}
		for i, b := range got {
			if b == nil || len(b) != cap(b) || !bytes.Equal(b, want[in[i].Start:in[i].End]) {
				t.Errorf("round %d: range %v of %+v is wrong", round, in[i], cost)
			}
		}
	}
}

func TestFetchKinds(t *testing.T) {
	want := content(200_000)
	in := ranges{{150_000, 150_010}, {0, 10}, {20, 30}, {199_999, 200_000}, {50_000, 150_000}, {7, 7}}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			obj := k.open(t, want)
			defer obj.Close()
			got, err := source.Fetch(t.Context(), obj, in)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range in {
				if !bytes.Equal(got[i], want[r.Start:r.End]) {
					t.Errorf("range %v: wrong bytes", r)
				}
			}
		})
	}
}

// Ranges that cannot be there are refused before a byte is read or allocated.
func TestFetchRefused(t *testing.T) {
	obj := object{Object: source.Memory("data", content(100)), read: func(context.Context, []byte, int64) error {
		t.Error("read")
		return nil
	}}
	for _, r := range (ranges{
		{0, 101}, {-1, 5}, {100, 101}, {101, 101}, {5, 4}, {0, math.MaxInt64}, {math.MinInt64, math.MaxInt64},
	}) {
		got, err := source.Fetch(t.Context(), obj, ranges{{0, 10}, r})
		wantFault(t, err, fault.Invalid, "data", "the size is 100")
		if got != nil {
			t.Error("bytes beside an error")
		}
	}
	// A size that nothing can back.
	obj.size = math.MaxInt64
	_, err := source.Fetch(t.Context(), obj, ranges{{10, 1 << 50}})
	wantFault(t, err, fault.Limit, "data", "bytes wanted at once", "0xa")
}

func TestFetchParallel(t *testing.T) {
	for _, parallel := range []int{-1, 0, 1, 4, 16} {
		synctest.Test(t, func(t *testing.T) {
			var running, most atomic.Int32
			obj := object{Object: source.Memory("data", content(3200)), cost: source.Cost{Parallel: parallel}}
			obj.read = func(ctx context.Context, p []byte, off int64) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
				return obj.Object.ReadAt(ctx, p, off)
			}
			var in ranges
			for i := range int64(32) {
				in = append(in, source.Range{i * 100, i*100 + 50})
			}
			start := time.Now()
			if _, err := source.Fetch(t.Context(), obj, in); err != nil {
				t.Error(err)
			}
			want := max(parallel, 1)
			if got := time.Since(start); int(most.Load()) != want || got != time.Duration(32/want)*time.Second {
				t.Errorf("parallel %d: %d at once, all in %v", parallel, most.Load(), got)
			}
		})
	}
}

// The n-th read fails: its error comes out, the reads that run are told to stop, no more begin, nothing stays behind.
func TestFetchFails(t *testing.T) {
	broken := errors.New("broken")
	var in ranges
	for i := range int64(100) {
		in = append(in, source.Range{i * 100, i*100 + 50})
	}
	for _, n := range []int32{1, 2, 50, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			var calls atomic.Int32
			obj := object{Object: source.Memory("data", content(10_000)), cost: source.Cost{Parallel: 4}}
			obj.read = func(ctx context.Context, p []byte, off int64) error {
				switch k := calls.Add(1); {
				case k == n:
					return broken
				case k > n-4: // beside the one that fails, or after it
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
			got, err := source.Fetch(t.Context(), obj, in)
			if got != nil || !errors.Is(err, broken) {
				t.Errorf("%d results, error %v, want %v", len(got), err, broken)
			}
			if k := calls.Load(); k > n+8 {
				t.Errorf("%d reads begun, the error was at %d", k, n)
			}
		})
	}
}

func TestFetchCancelled(t *testing.T) {
	defer goleak.VerifyNone(t)
	obj := object{Object: source.Memory("data", content(10_000)), cost: source.Cost{Parallel: 2}}
	in := ranges{{0, 10}, {100, 110}, {200, 210}, {300, 310}}

	ctx, cancel := context.WithCancel(t.Context())
	obj.read = func(ctx context.Context, _ []byte, _ int64) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if got, err := source.Fetch(ctx, obj, in); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled in a read: %v, %v", got, err)
	}
	obj.read = func(context.Context, []byte, int64) error { t.Error("read"); return nil }
	got, err := source.Fetch(ctx, obj, in)
	wantFault(t, err, context.Canceled, "data")
	if got != nil {
		t.Error("bytes beside an error")
	}
	// A read that ends well although the context has ended must not hide that others were never made.
	ctx, cancel = context.WithCancel(t.Context())
	obj.cost.Parallel = 1
	obj.read = func(context.Context, []byte, int64) error { cancel(); return nil }
	_, err = source.Fetch(ctx, obj, in)
	wantFault(t, err, context.Canceled, "data")
}

func BenchmarkFetch(b *testing.B) {
	const size = 64 << 20
	spread := make(ranges, 1000) // each a request of its own
	near := make(ranges, 1000)   // merged by the cost of a file
	for i := range spread {
		at := int64(i) * (size / 1000)
		spread[i] = source.Range{at, at + 200}
		near[i] = source.Range{int64(i) * 1000, int64(i)*1000 + 200}
	}
	for _, k := range kinds[:3] {
		obj := k.open(b, content(size))
		defer obj.Close()
		for name, in := range map[string]ranges{"spread": spread, "near": near, "one": spread[:1]} {
			b.Run(k.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := source.Fetch(b.Context(), obj, in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
