package source_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// far is an object whose requests are dear. It notes what is asked of it.
type far struct {
	source.Object
	gap  int64
	fail func(r source.Range) error

	mu    sync.Mutex
	asked []source.Range
	most  int // that were on their way at the same time
	now   int
}

func (f *far) Cost() source.Cost { return source.Cost{Gap: f.gap, Parallel: 16} }

func (f *far) ReadAt(ctx context.Context, p []byte, off int64) error {
	r := source.Range{Start: off, End: off + int64(len(p))}
	f.mu.Lock()
	f.asked = append(f.asked, r)
	f.now++
	f.most = max(f.most, f.now)
	fail := f.fail
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.now--
		f.mu.Unlock()
	}()
	select { // long enough for others to be on their way, too
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fail != nil {
		if err := fail(r); err != nil {
			return err
		}
	}
	return f.Object.ReadAt(ctx, p, off)
}

// requests are the requests so far, in order.
func (f *far) requests() []source.Range {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.asked)
	slices.SortFunc(out, func(a, b source.Range) int { return int(a.Start - b.Start) })
	return out
}

func TestReadAhead(t *testing.T) {
	defer goleak.VerifyNone(t)
	data := content(48 << 20)
	f := &far{Object: source.Memory("x", data), gap: 1 << 20}
	obj := source.ReadAhead(f, 32<<20)
	defer obj.Close()
	got, err := io.ReadAll(source.NewReader(t.Context(), obj, 0, obj.Size(), 0))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	// Every byte once, in few requests, many of them at once, and no more than fit into the limit.
	end := int64(0)
	for _, r := range f.requests() {
		if r.Start != end {
			t.Fatalf("request %v behind %d", r, end)
		}
		end = r.End
	}
	if n := len(f.asked); end != obj.Size() || n > 25 || f.most < 4 || f.most > 9 {
		t.Errorf("%d bytes with %d requests, %d at once", end, n, f.most)
	}
}

// Reads that are in no row are made as they are, and so are two in a row.
func TestReadAheadHoldsBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := &far{Object: source.Memory("x", content(10<<20)), gap: 1 << 16}
	obj := source.ReadAhead(f, 32<<20)
	defer obj.Close()
	want := []source.Range{{0, 100}, {100, 200}, {1 << 20, 1<<20 + 10}, {2 << 20, 2<<20 + 10}, {3 << 20, 3<<20 + 10}, {9 << 20, 10 << 20}}
	for _, r := range want {
		if err := obj.ReadAt(t.Context(), make([]byte, r.Len()), r.Start); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.requests(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	wantFault(t, obj.ReadAt(t.Context(), make([]byte, 10), 10<<20), fault.Invalid)
	if err := obj.ReadAt(t.Context(), nil, 0); err != nil {
		t.Error(err)
	}
}

// A row of short reads costs requests that double, not one for each.
func TestReadAheadShortReads(t *testing.T) {
	data := content(1 << 20)
	f := &far{Object: source.Memory("x", data), gap: 1 << 20}
	obj := source.ReadAhead(f, 32<<20)
	defer obj.Close()
	for at := int64(0); at < 1_000_000; at += 10_000 { // a hundred neighbours
		p := make([]byte, 9_000)
		if err := obj.ReadAt(t.Context(), p, at); err != nil || !bytes.Equal(p, data[at:at+9_000]) {
			t.Fatal(err)
		}
	}
	if n := len(f.requests()); n > 5 {
		t.Errorf("%d requests", n)
	}
}

// What cannot be read ahead is read when it is wanted, and only then an error.
func TestReadAheadFailures(t *testing.T) {
	defer goleak.VerifyNone(t)
	data := content(8 << 20)
	f := &far{Object: source.Memory("x", data), gap: 1 << 16}
	f.fail = func(r source.Range) error {
		if r.Len() > 1000 {
			return errors.New("too much")
		}
		return nil
	}
	obj := source.ReadAhead(f, 32<<20)
	defer obj.Close()
	for at := int64(0); at < 100_000; at += 1000 {
		p := make([]byte, 1000)
		if err := obj.ReadAt(t.Context(), p, at); err != nil || !bytes.Equal(p, data[at:at+1000]) {
			t.Fatal(err)
		}
	}
	f.mu.Lock() // pieces may still be on their way
	f.fail = func(r source.Range) error { return errors.New("broken") }
	f.mu.Unlock()
	if err := obj.ReadAt(t.Context(), make([]byte, 1000), 100_000); err == nil {
		t.Error("no error")
	}
}

// Close ends what is on its way, and a context ends the wait for it.
func TestReadAheadClose(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := &far{Object: source.Memory("x", content(8<<20)), gap: 1 << 16}
	obj := source.ReadAhead(f, 32<<20)
	for at := range int64(3) {
		ctx := t.Context()
		if at == 2 {
			f.Object = blocking{f.Object}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		}
		if err := obj.ReadAt(ctx, make([]byte, 1000), 1000*at); (err != nil) != (at == 2) {
			t.Errorf("read %d: %v", at, err)
		}
	}
	if err := obj.Close(); err != nil {
		t.Error(err)
	}
}

type blocking struct{ source.Object }

func (b blocking) ReadAt(ctx context.Context, _ []byte, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

// Whatever is read, by whom and in what order, the bytes are those of the object.
func TestReadAheadProperty(t *testing.T) {
	data := content(1 << 20)
	rapid.Check(t, func(t *rapid.T) {
		inner := source.Memory("x", data)
		obj := source.ReadAhead(&costly{inner, rapid.SampledFrom([]int64{0, 1, 100, 1 << 14}).Draw(t, "gap")}, rapid.SampledFrom([]int64{1, 1000, 1 << 16, 1 << 22}).Draw(t, "limit"))
		defer obj.Close()
		var work sync.WaitGroup
		for range rapid.IntRange(1, 3).Draw(t, "readers") {
			var reads []source.Range
			at := int64(0)
			for range rapid.IntRange(1, 30).Draw(t, "reads") {
				if rapid.IntRange(0, 5).Draw(t, "jump") == 0 {
					at = rapid.Int64Range(0, int64(len(data))).Draw(t, "to")
				}
				n := min(rapid.Int64Range(0, 5000).Draw(t, "n"), int64(len(data))-at)
				reads = append(reads, source.Range{Start: at, End: at + n})
				at += n
			}
			work.Go(func() {
				for _, r := range reads {
					p := make([]byte, r.Len())
					if err := obj.ReadAt(context.Background(), p, r.Start); err != nil || !bytes.Equal(p, data[r.Start:r.End]) {
						t.Errorf("other bytes at %v: %v", r, err)
					}
				}
			})
		}
		work.Wait()
	})
}

// costly is an object with a gap.
type costly struct {
	source.Object
	gap int64
}

func (c *costly) Cost() source.Cost { return source.Cost{Gap: c.gap, Parallel: 4} }

// What is read to an end is not followed by requests for what is behind it, also through a section.
func TestReadAheadUpTo(t *testing.T) {
	defer goleak.VerifyNone(t)
	data := content(16 << 20)
	f := &far{Object: source.Memory("x", data), gap: 1 << 16}
	obj := source.ReadAhead(f, 32<<20)
	defer obj.Close()
	part := must(source.Section(obj, 1<<20, 15<<20))
	got, err := io.ReadAll(source.NewReader(t.Context(), part, 1<<20, 6<<20, 0))
	if err != nil || !bytes.Equal(got, data[2<<20:8<<20]) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	end := int64(2 << 20)
	for _, r := range f.requests() {
		if r.Start != end || r.End > 8<<20 {
			t.Fatalf("request %v behind %d", r, end)
		}
		end = r.End
	}
	// An end in front of what is wanted ends nothing.
	p := make([]byte, 100_000)
	for at := int64(0); at < 3_000_000; at += int64(len(p)) {
		if err := obj.ReadAt(source.UpTo(t.Context(), 1000), p, at); err != nil || !bytes.Equal(p, data[at:at+int64(len(p))]) {
			t.Fatal(err)
		}
	}
}

// A row that has passed where another read has ended goes on as it was.
func TestReadAheadRowsMeet(t *testing.T) {
	defer goleak.VerifyNone(t)
	data := content(16 << 20)
	f := &far{Object: source.Memory("x", data), gap: 1 << 20}
	obj := source.ReadAhead(f, 32<<20)
	defer obj.Close()
	if err := obj.ReadAt(t.Context(), make([]byte, 900<<10), 64<<10); err != nil { // a look at the first bytes
		t.Fatal(err)
	}
	p := make([]byte, 65_500)
	end := int64(0)
	for ; end+int64(len(p)) <= int64(len(data)); end += int64(len(p)) {
		if err := obj.ReadAt(t.Context(), p, end); err != nil || !bytes.Equal(p, data[end:end+int64(len(p))]) {
			t.Fatal(err)
		}
	}
	total := int64(0)
	for _, r := range f.requests() {
		total += r.Len()
	}
	if total > int64(len(data))+1<<20 {
		t.Errorf("%d bytes of %d: %v", total, len(data), f.requests())
	}
}
