package series

import (
	"context"
	"errors"
	"iter"
	"testing"
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
