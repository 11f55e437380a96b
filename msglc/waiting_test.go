package msglc

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// stuck is an object whose reads from some place on hang until it is let go.
type stuck struct {
	source.Object
	from    int64
	reached chan struct{}
	letGo   chan struct{}
	once    atomic.Bool
}

func (s *stuck) ReadAt(ctx context.Context, p []byte, off int64) error {
	if off >= s.from && s.once.CompareAndSwap(false, true) {
		close(s.reached)
		<-s.letGo
	}
	return s.Object.ReadAt(ctx, p, off)
}

// TestWaitersSeeTheirContextEnd: one goroutine hangs in a read of the table; another that needs the same part returns
// when its own context ends.
func TestWaitersSeeTheirContextEnd(t *testing.T) {
	rows := make([]any, 20_000)
	for i := range rows {
		rows[i] = strings.Repeat("x", 30)
	}
	file := dumps(t, value.OrderedMap{{Key: "rows", Value: rows}, {Key: "last", Value: "here"}}, &WriteOptions{Threshold: 25})
	for _, path := range []string{"rows/19999", "last", "rows/5"} {
		obj := &stuck{Object: source.Memory("hangs.msg", file), reached: make(chan struct{}), letGo: make(chan struct{})}
		obj.from = int64(len(file)) + 1
		r, err := Open(t.Context(), obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		obj.from = r.toc.base + tocPageSize
		if path == "rows/5" { // a read of the page itself
			r.toc.pages[0].Store(nil)
			obj.from = r.toc.base
		}
		done := make(chan error)
		go func() {
			_, err := r.Find(context.Background(), SplitPath(path))
			done <- err
		}()
		<-obj.reached
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := r.Find(ctx, SplitPath(path)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the waiter got %v", path, err)
		}
		cancel()
		close(obj.letGo)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := r.Find(t.Context(), SplitPath(path)); err != nil {
			t.Errorf("%s: afterwards: %v", path, err)
		}
	}
}

// TestBlocksAreReadInRuns pins the requests of a pass over a list of many small blocks.
func TestBlocksAreReadInRuns(t *testing.T) {
	list := make([]any, 300_000)
	for i := range list {
		list[i] = int64(i)
	}

	file := dumps(t, list, &WriteOptions{Threshold: 9, Trivial: 9})
	for _, cache := range []int64{0, -1} {
		meter := &source.Meter{}
		r, err := Open(t.Context(), meter.Object(source.Memory("small.msg", file)), &Options{CacheBytes: cache})
		if err != nil {
			t.Fatal(err)
		}
		if r.root.form != Blocks {
			t.Fatalf("root of form %v", r.root.form)
		}
		n := int64(0)
		for child, err := range r.Root().Children(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if v, err := child.Node.Value(t.Context()); err != nil || v != n {
				t.Fatalf("%v, %v, want %d", v, err, n)
			}
			n++
		}
		if got := meter.Receipt(); n != 300_000 || got.Requests > 40 {
			t.Errorf("cache %d: %d items took %d requests", cache, n, got.Requests)
		}
		// One item takes no more than a request is worth.
		before := meter.Receipt()
		for range r.Root().Children(t.Context()) {
			break
		}
		if got := meter.Receipt(); got.Bytes-before.Bytes > 64<<10 {
			t.Errorf("the first item took %d bytes", got.Bytes-before.Bytes)
		}
	}
}
