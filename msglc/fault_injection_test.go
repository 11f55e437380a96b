package msglc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// flaky is an object of which about every fourth read fails.
type flaky struct {
	source.Object
	reads atomic.Int64
}

var errFlaky = errors.New("flaky")

func (f *flaky) ReadAt(ctx context.Context, p []byte, off int64) error {
	if uint64(f.reads.Add(1))*0x9e3779b97f4a7c15>>62 == 0 {
		return errFlaky
	}
	return f.Object.ReadAt(ctx, p, off)
}

// TestFailedReads looks for keys and items while every fourth read fails: what is remembered of a pass over the table
// that was cut off must not mislead later ones.
func TestFailedReads(t *testing.T) {
	for _, width := range []int{20, 200, 3000, 70000} { // keys that lie across the borders of pages
		count := max(6, 600000/width)
		m, list := value.OrderedMap{}, []any{}
		for i := range count {
			m = append(m, value.Pair{Key: fmt.Sprintf("%d %s", i, strings.Repeat("k", width)), Value: strings.Repeat("v", 30)})
			list = append(list, strings.Repeat("w", 40))
		}
		file := dumps(t, value.OrderedMap{{Key: "m", Value: m}, {Key: "l", Value: list}}, &WriteOptions{Threshold: 32})
		obj := &flaky{Object: source.Memory("flaky", file)}
		var r *Reader
		for r == nil {
			var err error
			if r, err = Open(t.Context(), obj, nil); err != nil && !errors.Is(err, errFlaky) {
				t.Fatal(err)
			}
		}
		rnd := rand.New(rand.NewPCG(1, uint64(width)))
		for range 200 {
			i := rnd.IntN(count)
			for path, want := range map[string]string{
				"m/" + m[i].Key.(string): m[i].Value.(string), fmt.Sprintf("l/%d", i): list[i].(string),
			} {
				for {
					n, err := r.Find(t.Context(), SplitPath(path))
					if errors.Is(err, errFlaky) {
						continue
					}
					if err != nil {
						t.Fatalf("width %d: %v", width, err)
					}
					v, err := n.Value(t.Context())
					if errors.Is(err, errFlaky) {
						continue
					}
					if err != nil || v != want {
						t.Fatalf("width %d: %v, want %v, error %v", width, v, want, err)
					}
					break
				}
			}
		}
	}
}

// TestContextEnds asks for everything with a context that has ended, of an archive that lies in memory.
func TestContextEnds(t *testing.T) {
	r := open(t, dumps(t, []any{strings.Repeat("x", 50), ints(1, 2, 3)}, &WriteOptions{Threshold: 20}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, find := r.Find(ctx, SplitPath("1/2"))
	_, whole := r.Root().Value(ctx)
	for name, err := range map[string]error{
		"find": find, "value": whole, "verify": r.Verify(ctx, &VerifyOptions{Deep: true}, func(f Finding) { t.Error(f.Err) }),
	} {
		if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "msglc: test.msg: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestSmallCache walks many small lists and archives within a small bound and measures what is remembered.
func TestSmallCache(t *testing.T) {
	lists := make([]any, 20000)
	for i := range lists {
		lists[i] = []any{strings.Repeat("a", 21), strings.Repeat("b", 21)}
	}
	const bound = 1 << 20
	r := open(t, dumps(t, lists, &WriteOptions{Threshold: 30}), &Options{CacheBytes: bound})
	for c, err := range r.Root().Children(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Node.Index(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	r.dirs.Range(func(any, any) bool { count++; return true })
	if count*directoryCost > bound {
		t.Errorf("%d directories are remembered within %d bytes", count, bound)
	}
	if len(r.s.pages.loaded) > 2*maxTOCRun {
		t.Errorf("%d pages are remembered within %d bytes", len(r.s.pages.loaded), bound)
	}
	// The bound is one for all the archives of a reader.
	file := dumps(t, lists[:3000], &WriteOptions{Threshold: 30})
	var children []Part
	for range 40 {
		children = append(children, Part{Object: source.Memory("child", file)})
	}
	var all buffer
	if err := Combine(t.Context(), &all, children, nil); err != nil {
		t.Fatal(err)
	}
	r = open(t, all, &Options{CacheBytes: bound})
	for c, err := range r.Root().Children(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int64{0, 1500, -1} {
			n, err := c.Node.Index(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := n.Value(t.Context()); err != nil || !sameValue(v, lists[0]) {
				t.Fatalf("%v, error %v", v, err)
			}
		}
	}
	if n, kept := len(r.s.pages.loaded), r.s.kept.Load(); n > 2*maxTOCRun || kept > bound/4 {
		t.Errorf("40 archives: %d pages and %d bytes are remembered", n, kept)
	}
}

// TestLookupBehindLongSiblings pins that a second lookup passes over no sub-tree again.
func TestLookupBehindLongSiblings(t *testing.T) {
	long := make([]any, 20000)
	for i := range long {
		long[i] = strings.Repeat("x", 25)
	}
	m := value.OrderedMap{{Key: "a", Value: long}, {Key: "b", Value: long}, {Key: "c", Value: value.OrderedMap{{Key: "k", Value: strings.Repeat("v", 40)}, {Key: "l", Value: strings.Repeat("v", 40)}}}}
	meter := &source.Meter{}
	r, err := Open(t.Context(), meter.Object(source.Memory("long.msg", dumps(t, m, &WriteOptions{Threshold: 32}))), &Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		before := meter.Receipt()
		if _, err := r.Find(t.Context(), SplitPath("c/k")); err != nil {
			t.Fatal(err)
		}
		if got := meter.Receipt(); i > 0 && got.Bytes-before.Bytes > 2*tocPageSize {
			t.Errorf("lookup %d took %d bytes", i, got.Bytes-before.Bytes)
		}
	}
}
