package series

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/spilehq/spile/source"
)

// A sequence that runs one ahead gives the same elements and its error, is never more than one element ahead, and has ended when
// its user has, wherever that stops.
func TestOneAhead(t *testing.T) {
	failure := errors.New("the end")
	for stop := range 8 {
		made, ended := 0, false
		of := func(ctx context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				defer func() { ended = true }()
				for i := range 5 {
					made = i + 1
					if !yield(i, nil) {
						return
					}
				}
				yield(0, failure)
			}
		}
		got := 0
		for v, err := range oneAhead(context.Background(), of) {
			if err != nil {
				if err != failure || got != 5 {
					t.Fatalf("%v behind %d elements", err, got)
				}
				got++
				continue
			}
			if v != got {
				t.Fatalf("element %d is %d", got, v)
			}
			if got++; got == stop {
				break
			}
		}
		if !ended {
			t.Fatalf("stopped behind %d: it goes on", stop)
		}
		if want := min(5, stop+1); stop > 0 && made > want {
			t.Fatalf("stopped behind %d: %d were made", stop, made)
		}
		if want := map[bool]int{true: 6, false: stop}[stop == 0 || stop > 6]; got != want {
			t.Fatalf("stopped behind %d: %d elements", stop, got)
		}
	}
	// The context that the sequence gets ends with its user.
	var seen error
	waits := make(chan struct{}) // the next element
	for range oneAhead(context.Background(), func(ctx context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			if yield(1, nil) {
				close(waits)
				<-ctx.Done()
				seen = ctx.Err()
			}
		}
	}) {
		<-waits
		break
	}
	if !errors.Is(seen, context.Canceled) {
		t.Errorf("it ended with %v", seen)
	}
}

// counted is a source whose requests are dear, and which counts them.
type counted struct {
	source.Object
	reads *int
}

func (c counted) Cost() source.Cost { return source.Cost{Gap: farTail + 1, Parallel: 1} }

func (c counted) ReadAt(ctx context.Context, p []byte, off int64) error {
	*c.reads++
	return c.Object.ReadAt(ctx, p, off)
}

// Where there is no room for two windows, nothing of the next one is read before the one that is given was used.
func TestNoRoomForTwoWindows(t *testing.T) {
	ctx := context.Background()
	m, records := many(20000)
	files := build(t, m, records, &WriteOptions{BlockSeries: 1000})
	reads := 0
	a, err := Open(ctx, func(_ context.Context, name string) (source.Object, error) {
		return counted{source.Memory(name, files[name].Bytes()), &reads}, nil
	}, &Options{CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	p, err := a.plan(&Query{Memory: 5 << 16})
	if err != nil {
		t.Fatal(err)
	}
	used, windows, empty := 0, 0, 0
	for blocks, err := range p.evaluated(ctx, wanted{tsids: true, counts: true, tags: p.columns}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(blocks) > 0 {
			windows++
			used = reads
		} else if empty++; reads != used {
			t.Fatalf("behind window %d there were %d reads, %d before", windows, reads, used)
		}
	}
	if windows < 3 || empty < windows-2 {
		t.Errorf("%d windows, %d times no room", windows, empty)
	}
}
