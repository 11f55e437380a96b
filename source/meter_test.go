package source_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

func TestMeter(t *testing.T) {
	var meter source.Meter
	if use := meter.Receipt(); use != (source.Receipt{}) {
		t.Errorf("new meter: %+v", use)
	}
	a := meter.Object(source.Memory("a", content(100)))
	b := meter.Object(must(source.OpenFile(writeFile(t, content(50)))))
	defer b.Close()
	if use := meter.Receipt(); use != (source.Receipt{Size: 150}) {
		t.Errorf("opening: %+v, want no request", use)
	}
	if err := errors.Join(
		a.ReadAt(t.Context(), make([]byte, 30), 0),
		b.ReadAt(t.Context(), make([]byte, 50), 0),
	); err != nil {
		t.Fatal(err)
	}
	// Reads that are not made are not counted.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantFault(t, a.ReadAt(t.Context(), make([]byte, 1), 100), fault.Invalid)
	wantFault(t, a.ReadAt(ended, make([]byte, 1), 0), context.Canceled)
	want := source.Receipt{Size: 150, Requests: 2, Bytes: 80}
	if diff := cmp.Diff(want, meter.Receipt()); diff != "" {
		t.Error(diff)
	}
	// Reads that were made and failed are.
	fail := func(context.Context, []byte, int64) error { return errors.New("broken") }
	broken := meter.Object(object{Object: source.Memory("c", content(10)), read: fail})
	if err := broken.ReadAt(t.Context(), make([]byte, 5), 0); err == nil {
		t.Error("no error")
	}
	want = source.Receipt{Size: 160, Requests: 3, Bytes: 85}
	if diff := cmp.Diff(want, meter.Receipt()); diff != "" {
		t.Error(diff)
	}
}

func TestMeterBudget(t *testing.T) {
	for _, tt := range []struct {
		name  string
		meter *source.Meter
		text  string
	}{
		{"bytes", &source.Meter{MaxBytes: 25}, "source: data: budget of 25 bytes: 20 used, the read adds 10"},
		{"requests", &source.Meter{MaxRequests: 2}, "source: data: budget of 2 requests: 2 used, the read adds 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reads := 0
			count := func(context.Context, []byte, int64) error { reads++; return nil }
			obj := tt.meter.Object(object{Object: source.Memory("data", content(100)), read: count})
			p := make([]byte, 10)
			if err := errors.Join(obj.ReadAt(t.Context(), p, 0), obj.ReadAt(t.Context(), p, 0)); err != nil {
				t.Fatal(err)
			}
			err := obj.ReadAt(t.Context(), p, 0)
			wantFault(t, err, fault.Limit)
			if err.Error() != tt.text {
				t.Errorf("text %q, want %q", err, tt.text)
			}
			if use := tt.meter.Receipt(); reads != 2 || use.Requests != 2 || use.Bytes != 20 {
				t.Errorf("%d reads, %+v", reads, use)
			}
		})
	}
	// What still fits is read, and nothing overflows.
	meter := source.Meter{MaxBytes: 15, MaxRequests: math.MaxInt64}
	obj := meter.Object(source.Memory("data", content(100)))
	for _, step := range []struct {
		n    int
		fits bool
	}{{10, true}, {11, false}, {4, true}, {2, false}, {1, true}, {0, true}, {1, false}} {
		if err := obj.ReadAt(t.Context(), make([]byte, step.n), 0); (err == nil) != step.fits {
			t.Errorf("read of %d: %v", step.n, err)
		}
	}
}

// Many goroutines over many objects never pass the budget, and use all of it.
func TestMeterConcurrent(t *testing.T) {
	for _, meter := range []*source.Meter{{MaxBytes: 7000}, {MaxRequests: 1000}, {MaxBytes: 7000, MaxRequests: 1000}} {
		var requests, bytes, refused atomic.Int64
		read := func(_ context.Context, p []byte, _ int64) error {
			requests.Add(1)
			bytes.Add(int64(len(p)))
			return nil
		}
		var wg sync.WaitGroup
		for range 32 {
			obj := meter.Object(object{Object: source.Memory("data", content(100)), read: read})
			wg.Go(func() {
				for range 100 {
					if err := obj.ReadAt(t.Context(), make([]byte, 7), 0); errors.Is(err, fault.Limit) {
						refused.Add(1)
					} else if err != nil {
						t.Error(err)
					}
					meter.Receipt()
				}
			})
		}
		wg.Wait()
		want := source.Receipt{Size: 3200, Requests: 1000, Bytes: 7000}
		if diff := cmp.Diff(want, meter.Receipt()); diff != "" {
			t.Error(diff)
		}
		if requests.Load() != 1000 || bytes.Load() != 7000 || refused.Load() != 2200 {
			t.Errorf("%d reads of %d bytes made, %d refused", requests.Load(), bytes.Load(), refused.Load())
		}
	}
}

// A budget that ends in the middle of a fetch ends the fetch.
func TestMeterFetch(t *testing.T) {
	meter := source.Meter{MaxRequests: 3}
	obj := meter.Object(object{Object: source.Memory("data", content(1000)), cost: source.Cost{Parallel: 4}})
	got, err := source.Fetch(t.Context(), obj, ranges{{0, 1}, {10, 11}, {20, 21}, {30, 31}})
	wantFault(t, err, fault.Limit, "budget of 3 requests")
	if got != nil {
		t.Error("bytes beside an error")
	}
}

// TestMeterCharges charges a meter as an object over a network does: before each request, and corrected behind it.
func TestMeterCharges(t *testing.T) {
	meter := source.Meter{MaxRequests: 3, MaxBytes: 100}
	meter.Opened(40)
	meter.Opened(2)
	steps := []struct {
		requests, bytes, correct int64
		refused                  string
		want                     source.Receipt
	}{
		{1, 60, 0, "", source.Receipt{Size: 42, Requests: 1, Bytes: 60}},
		{1, 41, 0, "budget of 100 bytes: 60 used, the read adds 41", source.Receipt{Size: 42, Requests: 1, Bytes: 60}},
		{1, 40, -30, "", source.Receipt{Size: 42, Requests: 2, Bytes: 70}}, // cut short
		{0, 10, 25, "", source.Receipt{Size: 42, Requests: 2, Bytes: 105}}, // more has come than was asked for
		{1, 1, 0, "budget of 100 bytes: 105 used, the read adds 1", source.Receipt{Size: 42, Requests: 2, Bytes: 105}},
		{1, 0, 0, "budget of 100 bytes: 105 used, the read adds 0", source.Receipt{Size: 42, Requests: 2, Bytes: 105}},
		{2, 0, 0, "budget of 3 requests: 2 used, the read adds 2", source.Receipt{Size: 42, Requests: 2, Bytes: 105}},
	}
	for i, s := range steps {
		err := meter.Charge(s.requests, s.bytes)
		if s.refused == "" {
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			meter.Correct(s.correct)
		} else {
			wantFault(t, err, fault.Limit, s.refused)
		}
		if diff := cmp.Diff(s.want, meter.Receipt()); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
	meter.Hit()
	meter.Hit()
	if got := meter.Receipt(); got.CacheHits != 2 || got.Requests != 2 {
		t.Errorf("%+v", got)
	}
}

// TestMeterChargesAtOnce has many goroutines charge for the same budget: no more than it gets through, and none is lost.
func TestMeterChargesAtOnce(t *testing.T) {
	meter := source.Meter{MaxRequests: 500}
	var granted atomic.Int64
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 100 {
				if meter.Charge(1, 7) == nil {
					granted.Add(1)
					meter.Correct(-3)
				}
				meter.Hit()
			}
		})
	}
	running.Wait()
	want := source.Receipt{Requests: 500, Bytes: 2000, CacheHits: 800}
	if got := meter.Receipt(); got != want || granted.Load() != 500 {
		t.Errorf("%+v, %d granted, want %+v", got, granted.Load(), want)
	}
}
