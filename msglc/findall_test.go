package msglc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// distant is an object with the cost of one over a network, which counts what is asked of it, and answers late.
type distant struct {
	source.Object
	cost source.Cost
	late time.Duration

	mu              sync.Mutex
	requests, bytes int64
	now, most       int64 // bytes on their way, and at most
}

func (d *distant) Cost() source.Cost { return d.cost }

func (d *distant) ReadAt(ctx context.Context, p []byte, off int64) error {
	d.mu.Lock()
	d.requests++
	d.bytes += int64(len(p))
	d.now += int64(len(p))
	d.most = max(d.most, d.now)
	d.mu.Unlock()
	if d.late > 0 {
		time.Sleep(d.late) // in a bubble, where time is not real
	}
	d.mu.Lock()
	d.now -= int64(len(p))
	d.mu.Unlock()
	return d.Object.ReadAt(ctx, p, off)
}

func (d *distant) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests, d.bytes, d.most = 0, 0, 0
}

// overNetwork is the cost of a store.
var overNetwork = source.Cost{Gap: 1 << 20, Parallel: 16, MaxRequest: 16 << 20}

// outcome is what one gets at a path: JSON text or an error.
func outcome(ctx context.Context, n Node, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var out strings.Builder
	o := &value.JSONOptions{NonFinite: value.NonFiniteString, InvalidUTF8: value.UTF8Replace, Keys: value.KeysPairs, Dup: value.DupAll}
	if err := n.WriteJSON(ctx, &out, o, nil); err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(n.Form(), n.path, " ", out.String())
}

// pathsOf lists the paths of all nodes of a document.
func pathsOf(t *rapid.T, n Node, at Path, list []Path) []Path {
	list = append(list, at)
	kind, err := n.Kind(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if kind != value.Array && kind != value.Map {
		return list
	}
	for child, err := range n.Children(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		list = pathsOf(t, child.Node, append(at[:len(at):len(at)], child.Step()), list)
	}
	return list
}

// TestFindAllEqualsFind looks for paths of random documents, right and wrong ones, together and one by one.
func TestFindAllEqualsFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		file, err := Dumps(drawValue(t, 4), drawWriteOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "combined") {
			var out buffer
			parts := []Part{{Object: source.Memory("a", file)}, {Object: source.Memory("b", file)}}
			if err := Combine(ctx, &out, parts, nil); err != nil {
				t.Fatal(err)
			}
			file = out
		}
		file = append(file, make([]byte, 6<<10)...) // so that it is not all read when it is opened
		obj := &distant{Object: source.Memory("test.msg", file), cost: source.Cost{
			Gap: rapid.Int64Range(0, 200).Draw(t, "gap"), Parallel: rapid.IntRange(0, 4).Draw(t, "parallel"), MaxRequest: rapid.Int64Range(0, 300).Draw(t, "most"),
		}}
		o := &Options{CacheBytes: rapid.SampledFrom([]int64{-1, 0, 4096, 1 << 16}).Draw(t, "cache")}
		single, err := Open(ctx, obj, o)
		if err != nil {
			t.Fatal(err)
		}
		all := pathsOf(t, single.Root(), Path{}, nil)
		paths := make([]Path, rapid.IntRange(0, 30).Draw(t, "paths"))
		for i := range paths {
			p := rapid.SampledFrom(all).Draw(t, "path")
			switch rapid.IntRange(0, 8).Draw(t, "other") {
			case 0:
				p = append(p[:len(p):len(p)], TextStep(rapid.SampledFrom([]string{"0", "-1", "1:3", "::-1", "9999", "nothing", "7"}).Draw(t, "step")))
			case 1:
				p = append(p[:len(p):len(p)], IndexStep(rapid.Int64Range(-3, 9).Draw(t, "index")))
			}
			paths[i] = p
		}
		together, err := Open(ctx, obj, o)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for n, err := range together.FindAll(ctx, paths) {
			m, err2 := single.Find(ctx, paths[i])
			if got, want := outcome(ctx, n, err), outcome(ctx, m, err2); got != want {
				t.Fatalf("path %v:\n%s\nand one by one\n%s", paths[i], got, want)
			}
			i++
		}
		if i != len(paths) {
			t.Fatalf("%d results for %d paths", i, len(paths))
		}
	})
}

// scattered is a document of n maps in a list, with a table of contents of some 34 bytes for each of the 2 n values, and
// paths to some of them at random.
func scattered(t testing.TB, n, pad, paths int) (file []byte, list []Path, want []string) {
	runs := make([]any, n)
	for i := range runs {
		runs[i] = value.OrderedMap{{Key: "name", Value: fmt.Sprintf("run %d", i)}, {Key: "tail", Value: strings.Repeat("x", pad)}}
	}
	file = dumps(t, value.OrderedMap{{Key: "runs", Value: runs}}, &WriteOptions{Threshold: 64})
	rnd := rand.New(rand.NewPCG(7, uint64(n)))
	for range paths {
		i := rnd.IntN(n)
		list = append(list, SplitPath(fmt.Sprintf("runs/%d/name", i)))
		want = append(want, fmt.Sprintf("run %d", i))
	}
	return file, list, want
}

func wantValues(t *testing.T, r *Reader, paths []Path, want []string) {
	t.Helper()
	i := 0
	for n, err := range r.FindAll(t.Context(), paths) {
		if err != nil {
			t.Fatal(err)
		}
		if v, err := n.Value(t.Context()); err != nil || v != want[i] {
			t.Fatalf("%v, %v, want %v", v, err, want[i])
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d results for %d paths", i, len(want))
	}
}

// TestFindAllRounds counts requests, and how often they wait for one another, of a thousand values at random. The time is
// that of the requests alone, 30 ms each, since the clock of a bubble stands still while something runs.
func TestFindAllRounds(t *testing.T) {
	const late = 30 * time.Millisecond
	for _, tt := range []struct {
		n, pad   int
		rounds   int64 // of 30 ms, for all paths
		requests int64
	}{
		{20_000, 500, 4, 6},   // 10 MB, and 1 MB of contents
		{20_000, 3000, 6, 40}, // 60 MB
		{100_000, 200, 5, 25}, // 5 MB of contents, which so many paths are worth at once
	} {
		file, paths, want := scattered(t, tt.n, tt.pad, 1000)
		synctest.Test(t, func(t *testing.T) {
			obj := &distant{Object: source.Memory("far.msg", file), cost: overNetwork, late: late}
			begun := time.Now()
			r, err := Open(t.Context(), obj, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantValues(t, r, paths, want)
			together := time.Since(begun)
			rounds, requests := int64(together/late), obj.requests
			if rounds > tt.rounds || requests > tt.requests {
				t.Errorf("%d maps: %d rounds and %d requests, at most %d and %d", tt.n, rounds, requests, tt.rounds, tt.requests)
			}
			obj.reset()
			begun = time.Now()
			if r, err = Open(t.Context(), obj, nil); err != nil {
				t.Fatal(err)
			}
			for i, p := range paths {
				n, err := r.Find(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if v, err := n.Value(t.Context()); err != nil || v != want[i] {
					t.Fatalf("%v, %v, want %v", v, err, want[i])
				}
			}
			if single := time.Since(begun); single < 20*together {
				t.Errorf("%d maps: %v together, one by one %v", tt.n, together, single)
			} else {
				t.Logf("%d maps: %d rounds and %d requests together, %d requests one by one", tt.n, rounds, requests, obj.requests)
			}
		})
	}
}

// TestFindAllMemory asks for values that are together far longer than what may be held, and stops at the first.
func TestFindAllMemory(t *testing.T) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = strings.Repeat(string(rune('a'+i%26)), 100_000)
	}
	paths := make([]Path, len(list))
	for i := range paths {
		paths[i] = Path{IndexStep(int64(i * 7 % len(list)))}
	}
	obj := &distant{Object: source.Memory("big.msg", dumps(t, list, nil)), cost: overNetwork}
	r, err := Open(t.Context(), obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	obj.reset()
	for _, err := range r.FindAll(t.Context(), paths) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	// What is wanted at once, and the bytes in between.
	if obj.bytes < 16<<20 || obj.bytes > 100<<20 || obj.most > int64(overNetwork.Parallel)*maxScattered {
		t.Errorf("%d bytes for the first value, up to %d at a time", obj.bytes, obj.most)
	}
	obj.reset()
	i := 0
	for n, err := range r.FindAll(t.Context(), paths) {
		if err != nil {
			t.Fatal(err)
		}
		if v, err := n.Value(t.Context()); err != nil || v != list[i*7%len(list)] {
			t.Fatalf("value %d: %v", i, err)
		}
		i++
	}
	if obj.requests > int64(len(list)) || obj.bytes > 200<<20 || obj.most > int64(overNetwork.Parallel)*maxScattered {
		t.Errorf("%d requests, %d bytes, up to %d at a time", obj.requests, obj.bytes, obj.most)
	}
}

// TestFindAllFailures has every fourth read fail, a budget that ends, and a context that ends: each path has its value or
// an error of a read.
func TestFindAllFailures(t *testing.T) {
	file, paths, want := scattered(t, 20_000, 50, 200)
	bad := &flaky{Object: source.Memory("flaky", file)}
	r, err := Open(t.Context(), bad, nil)
	for errors.Is(err, errFlaky) {
		r, err = Open(t.Context(), bad, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for left, wanted := paths, want; len(left) > 0; {
		i := 0
		for n, err := range r.FindAll(t.Context(), left) {
			var v any
			if err == nil {
				v, err = n.Value(t.Context())
			}
			if errors.Is(err, errFlaky) {
				break
			}
			if err != nil || v != wanted[i] {
				t.Fatalf("%v, %v, want %v", v, err, wanted[i])
			}
			i++
		}
		left, wanted = left[i:], wanted[i:]
	}

	meter := source.Meter{MaxRequests: 10}
	if r, err = Open(t.Context(), meter.Object(source.Memory("budget", file)), nil); err != nil {
		t.Fatal(err)
	}
	got := 0
	for n, err := range r.FindAll(t.Context(), paths) {
		if err == nil {
			_, err = n.Value(t.Context())
		}
		if err == nil {
			got++
		} else if !errors.Is(err, fault.Limit) {
			t.Fatal(err)
		}
	}
	if used := meter.Receipt().Requests; got == len(paths) || used > 10 {
		t.Errorf("%d values, %d requests", got, used)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range r.FindAll(ctx, paths) {
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// TestFindAllDamaged compares the two in documents whose long table of contents is damaged, which shows when it is read.
func TestFindAllDamaged(t *testing.T) {
	file, paths, _ := scattered(t, 6_000, 20, 60)
	clean := open(t, file, nil)
	from := clean.Info().TOCStart
	dice := rand.New(rand.NewPCG(5, 6))
	wrong := 0
	for range 40 {
		bad := append([]byte(nil), file...)
		for range 3 {
			bad[from+dice.Int64N(clean.Info().TOCSize)] ^= 1 << dice.IntN(8)
		}
		obj := &distant{Object: source.Memory("bad.msg", bad), cost: source.Cost{Gap: 4 << 10, Parallel: 4}}
		single, err := Open(t.Context(), obj, nil)
		if err != nil {
			continue
		}
		together, err := Open(t.Context(), obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for n, err := range together.FindAll(t.Context(), paths) {
			m, err2 := single.Find(t.Context(), paths[i])
			got, want := outcome(t.Context(), n, err), outcome(t.Context(), m, err2)
			if got != want {
				t.Fatalf("path %v:\n%s\nand one by one\n%s", paths[i], got, want)
			}
			if strings.HasPrefix(got, "error: ") {
				wrong++
			}
			i++
		}
	}
	if wrong == 0 {
		t.Error("no damage was found")
	}
}
