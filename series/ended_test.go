package series

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spilehq/spile/source"
)

// failing is a source that counts the reads that run, and of which some succeed before the others fail.
type failing struct {
	source.Object
	cost  source.Cost
	runs  *atomic.Int64
	fails *atomic.Int64 // reads that succeed before the others fail
}

var errCut = errors.New("the line is cut")

func (s failing) Cost() source.Cost { return s.cost }

func (s failing) ReadAt(ctx context.Context, p []byte, off int64) error {
	s.runs.Add(1)
	defer s.runs.Add(-1)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.fails.Add(-1) < 0 {
		return errCut
	}
	return s.Object.ReadAt(ctx, p, off)
}

// Whoever ends a query that runs ahead, wherever: what was given is right, the error is told, and no read and no goroutine is left.
func TestEndsOfQueries(t *testing.T) {
	m, records := many(1500)
	for _, zstd := range []bool{false, true} {
		files := build(t, m, records, &WriteOptions{Zstd: zstd, BlockSeries: 20, PartBytes: 20 << 10, PageBytes: 3000})
		for _, cost := range []source.Cost{{}, {Gap: 1 << 20, Parallel: 4}} {
			for _, cache := range []int64{-1, 0} {
				var runs atomic.Int64
				var fails atomic.Int64
				fails.Store(1 << 40)
				open := func(ctx context.Context, name string) (source.Object, error) {
					b, ok := files[name]
					if !ok {
						return nil, errCut
					}
					obj := source.Memory(name, b.Bytes())
					return failing{obj, cost, &runs, &fails}, nil
				}
				a, err := Open(context.Background(), open, &Options{CacheBytes: cache})
				if err != nil {
					t.Fatal(err)
				}
				all, err := collect(a.Select(context.Background(), &Query{}))
				if err != nil || len(all) != 1500 {
					t.Fatal(err, len(all))
				}
				runtime.GC()
				before := runtime.NumGoroutine()
				r := rand.New(rand.NewPCG(1, 1))
				for n := range 40 {
					stop := r.IntN(1700)
					if n%3 == 0 {
						stop = 1 + r.IntN(3)
					}
					q := &Query{Explain: &Explain{}}
					if n%4 == 0 {
						q.Memory = 100000 + r.Int64N(1000000)
					}
					ctx, cancel := context.WithCancel(context.Background())
					kind := r.IntN(5)
					fails.Store(1 << 40)
					if kind == 4 {
						fails.Store(r.Int64N(20))
					}
					got := 0
					var last error
					func() {
						defer func() {
							if x := recover(); x != nil && x != "mine" {
								panic(x)
							}
						}()
						seq := a.Select(ctx, q)
						if kind == 3 {
							next, stopIt := iter.Pull2(seq)
							defer stopIt()
							for got < stop {
								_, err, ok := next()
								if !ok {
									break
								}
								if err != nil {
									last = err
									break
								}
								got++
							}
							return
						}
						for rec, err := range seq {
							if err != nil {
								last = err
								break
							}
							if rec.ID != all[got].ID || !slices.Equal(rec.Labels, all[got].Labels) {
								t.Fatalf("record %d", got)
							}
							got++
							if got == stop {
								switch kind {
								case 0:
									return
								case 1:
									panic("mine")
								case 2:
									cancel()
								}
							}
						}
					}()
					if runs.Load() != 0 {
						t.Fatalf("%d reads run", runs.Load())
					}
					switch kind {
					case 0, 1, 3:
						if last != nil || got != min(stop, 1500) {
							t.Fatalf("kind %d: %d, %v, stop %d", kind, got, last, stop)
						}
					case 2:
						if last == nil && got != 1500 || last != nil && !errors.Is(last, context.Canceled) {
							t.Fatalf("cancel: %d, %v, stop %d", got, last, stop)
						}
					case 4:
						if last == nil && got != 1500 || last != nil && !errors.Is(last, errCut) {
							t.Fatalf("fails: %d, %v", got, last)
						}
					}
					cancel()
				}
				fails.Store(1 << 40)
				// One sequence, twice, and by two.
				seq := a.Select(context.Background(), &Query{})
				var work sync.WaitGroup
				for range 3 {
					work.Go(func() {
						for range 2 {
							if got, err := collect(seq); err != nil || !same(got, all) {
								t.Error("other records", err)
							}
						}
					})
				}
				work.Wait()
				for range 100 {
					if runtime.NumGoroutine() <= before {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if n := runtime.NumGoroutine(); n > before {
					t.Fatalf("%d goroutines, %d before", n, before)
				}
				a.Close()
			}
		}
	}
}
