package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// shelf is a store in memory that holds a Writer to the contract of Upload.
type shelf struct {
	limits remote.UploadLimits
	keep   bool                     // keep the bytes
	source map[string]source.Object // what CopyPart can copy
	fail   func(what string) error  // the error of a call, nil for none

	mu        sync.Mutex
	calls     []string
	parts     map[int][]byte
	length    int64
	object    []byte // the result
	made      bool
	discarded bool
	running   int
	most      int
	next      int
	broken    []string // breaches of the contract
}

func newShelf(limits remote.UploadLimits) *shelf {
	return &shelf{limits: limits, keep: true, parts: map[int][]byte{}}
}

func (s *shelf) Name() string                { return "shelf://a/b" }
func (s *shelf) Limits() remote.UploadLimits { return s.limits }

func (s *shelf) call(ctx context.Context, what string) error {
	s.mu.Lock()
	s.calls = append(s.calls, what)
	fail := s.fail
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if fail != nil {
		return fail(what)
	}
	return nil
}

func (s *shelf) breach(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

func (s *shelf) Put(ctx context.Context, p []byte) error {
	if err := s.call(ctx, "put"); err != nil {
		return err
	}
	s.object, s.made = bytes.Clone(p), true
	return nil
}

func (s *shelf) Begin(ctx context.Context) error { return s.call(ctx, "begin") }

func (s *shelf) Part(ctx context.Context, p remote.Part) error {
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	if s.limits.Parallel == 1 && p.Number > 0 {
		s.next = max(s.next, 1)
		if p.Number != s.next {
			s.breach("part %d, expected %d", p.Number, s.next)
		}
		s.next++
	}
	if n := int64(len(p.Bytes)); !p.Last && (n < s.limits.MinPart || s.limits.Multiple > 0 && n%s.limits.Multiple != 0) || n == 0 {
		s.breach("part %d of %d bytes", p.Number, n)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if err := s.call(ctx, fmt.Sprint("part ", p.Number)); err != nil {
		return err
	}
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.length += int64(len(p.Bytes))
	if s.keep {
		if s.parts[p.Number] != nil {
			s.breach("part %d twice", p.Number)
		}
		s.parts[p.Number] = bytes.Clone(p.Bytes)
	}
	return nil
}

func (s *shelf) CopyPart(ctx context.Context, p remote.CopiedPart) error {
	if err := s.call(ctx, fmt.Sprint("copy ", p.Number)); err != nil {
		return err
	}
	obj := s.source[p.From]
	if obj == nil || obj.Version() != p.Version {
		return fault.New(fault.Changed, "shelf", "no %s of version %q", p.From, p.Version)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Len < s.limits.MinPart || p.Len > s.limits.MaxCopy {
		s.breach("copied part %d of %d bytes", p.Number, p.Len)
	}
	b := make([]byte, p.Len)
	s.parts[p.Number] = b
	s.length += p.Len
	return obj.ReadAt(ctx, b, p.Start)
}

func (s *shelf) Complete(ctx context.Context, parts int) error {
	if err := s.call(ctx, "complete"); err != nil {
		return err
	}
	if s.running > 0 {
		s.breach("completed while %d parts are under way", s.running)
	}
	for i := range parts {
		if s.keep && s.parts[i] == nil {
			s.breach("part %d of %d is missing", i, parts)
		}
		s.object = append(s.object, s.parts[i]...)
	}
	s.made = true
	return nil
}

func (s *shelf) Discard(ctx context.Context) error {
	err := s.call(ctx, "discard")
	if s.made || s.running > 0 {
		s.breach("discarded, made %v, %d parts under way", s.made, s.running)
	}
	s.discarded = true
	return err
}

func (s *shelf) Remove(ctx context.Context) error {
	err := s.call(ctx, "remove")
	if !s.made {
		s.breach("removed what was not made")
	}
	if err == nil {
		s.object, s.made = nil, false
	}
	return err
}

func (s *shelf) check(t interface{ Error(...any) }) {
	for _, b := range s.broken {
		t.Error(b)
	}
}

// versioned is an object of memory with a version and a name.
type versioned struct {
	source.Object
	name, version string
}

func (v versioned) Name() string    { return v.name }
func (v versioned) Version() string { return v.version }

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestWriterRandom writes, writes anew and copies at random, and expects the bytes of a plain buffer.
func TestWriterRandom(t *testing.T) {
	content := random(300)
	rapid.Check(t, func(t *rapid.T) {
		limits := remote.UploadLimits{
			MinPart:  rapid.Int64Range(0, 8).Draw(t, "min part"),
			MinCopy:  rapid.Int64Range(0, 20).Draw(t, "min copy"),
			MaxCopy:  rapid.SampledFrom([]int64{0, 16, 40}).Draw(t, "max copy"),
			Multiple: rapid.SampledFrom([]int64{0, 4}).Draw(t, "multiple"),
			Parallel: rapid.IntRange(0, 3).Draw(t, "parallel"),
		}
		if limits.Multiple > 1 {
			limits.MaxCopy = 0
		}
		s := newShelf(limits)
		obj := versioned{source.Memory("", content), "shelf://a/c", "v1"}
		s.source = map[string]source.Object{obj.name: obj}
		if rapid.Bool().Draw(t, "cannot copy") {
			s.fail = func(what string) error {
				if what[:2] == "co" && what != "complete" {
					return errors.ErrUnsupported
				}
				return nil
			}
		}
		o := &remote.WriteOptions{PartSize: rapid.Int64Range(1, 20).Draw(t, "part size"), Parallel: rapid.IntRange(0, 5).Draw(t, "at once")}
		o.Hold = rapid.Int64Range(0, o.PartSize).Draw(t, "hold")
		w, err := remote.NewWriter(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				p := content[:rapid.IntRange(0, 50).Draw(t, "bytes")]
				if n, err := w.Write(p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
				want = append(want, p...)
			case 1:
				end := min(o.Hold, int64(len(want)))
				from := rapid.Int64Range(0, end).Draw(t, "from")
				p := content[100:][:rapid.Int64Range(0, end-from).Draw(t, "anew")]
				if n, err := w.WriteAt(p, from); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
				copy(want[from:], p)
			case 2:
				start := rapid.IntRange(0, 300).Draw(t, "start")
				n := rapid.IntRange(0, 300-start).Draw(t, "copied")
				if copied, err := w.Copy(t.Context(), obj, int64(start), int64(n)); copied > int64(n) || err != nil {
					t.Fatal(copied, err)
				}
				want = append(want, content[start:start+n]...)
			}
		}
		if w.Len() != int64(len(want)) {
			t.Fatalf("length %d, expected %d", w.Len(), len(want))
		}
		if s.made {
			t.Fatal("there is an object before Commit")
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Abort(t.Context()); err != nil || s.discarded {
			t.Fatal("Abort after Commit does something", err)
		}
		if !s.made || !bytes.Equal(s.object, want) {
			t.Fatalf("wrote %x, expected %x", s.object, want)
		}
		s.check(t)
	})
}

func TestWriterCopies(t *testing.T) {
	content := random(200)
	for _, test := range []struct {
		name      string
		hold      int64
		before, n int
		maxCopy   int64
		version   string
		copied    int64
		calls     []string // sorted: those of parts go out at once
	}{
		{"at the start", 0, 0, 100, 1000, "v", 100, []string{"begin", "complete", "copy 0"}},
		{"behind a short part", 0, 3, 100, 1000, "v", 93, []string{"begin", "complete", "copy 1", "part 0"}},
		{"behind a long part", 0, 10, 100, 1000, "v", 100, []string{"begin", "complete", "copy 1", "part 0"}},
		{"held back", 4, 0, 100, 1000, "v", 90, []string{"begin", "complete", "copy 1", "part 0"}},
		{"in pieces", 0, 0, 65, 30, "v", 65, []string{"begin", "complete", "copy 0", "copy 1", "copy 2"}},
		{"in pieces, none short", 0, 0, 31, 30, "v", 31, []string{"begin", "complete", "copy 0", "copy 1"}},
		{"too short", 0, 5, 14, 1000, "v", 0, []string{"put"}},
		{"no version", 0, 0, 19, 1000, "", 0, []string{"put"}},
		{"a store that does not copy", 0, 0, 20, 0, "v", 0, []string{"put"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShelf(remote.UploadLimits{MinPart: 10, MaxCopy: test.maxCopy})
			obj := versioned{source.Memory("", content), "shelf://a/c", test.version}
			s.source = map[string]source.Object{obj.name: obj}
			w, err := remote.NewWriter(t.Context(), s, &remote.WriteOptions{PartSize: 20, Parallel: 1, Hold: test.hold})
			if err != nil {
				t.Fatal(err)
			}
			w.Write(content[:test.before])
			copied, err := w.Copy(t.Context(), obj, 50, int64(test.n))
			if err != nil || copied != test.copied {
				t.Errorf("copied %d, %v; expected %d", copied, err, test.copied)
			}
			if err := w.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := append(bytes.Clone(content[:test.before]), content[50:50+test.n]...); !bytes.Equal(s.object, want) {
				t.Errorf("wrote %x, expected %x", s.object, want)
			}
			slices.Sort(s.calls)
			if !slices.Equal(s.calls, test.calls) {
				t.Errorf("calls %q, expected %q", s.calls, test.calls)
			}
			s.check(t)
		})
	}
}

// TestWriterCopyReads: what the store copies is not read, by a read-ahead either.
func TestWriterCopyReads(t *testing.T) {
	content := random(20 << 20)
	s := newShelf(remote.UploadLimits{MinPart: 5 << 20, MaxCopy: 5 << 30})
	var meter source.Meter
	obj := versioned{source.ReadAhead(meter.Object(source.Memory("", content)), 32<<20), "shelf://a/c", "v"}
	defer obj.Close()
	s.source = map[string]source.Object{obj.name: versioned{source.Memory("", content), obj.name, obj.version}}
	w, err := remote.NewWriter(t.Context(), s, &remote.WriteOptions{Hold: 10})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(content[:10])
	copied, err := w.Copy(t.Context(), obj, 10, int64(len(content))-10)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil || !bytes.Equal(s.object, content) {
		t.Errorf("other bytes, %v", err)
	}
	if got, want := meter.Receipt().Bytes, int64(5<<20-10); got != want || copied != int64(len(content))-10-want {
		t.Errorf("%d bytes read and %d copied, %d to be read", got, copied, want)
	}
	s.check(t)
}

// TestWriterFails lets each call fail in turn: the error comes out, what was sent is removed, and there is no object.
func TestWriterFails(t *testing.T) {
	broken := errors.New("broken")
	for _, what := range []string{"begin", "part 0", "part 2", "part 5", "complete", "copy 3"} {
		t.Run(what, func(t *testing.T) {
			s := newShelf(remote.UploadLimits{MinPart: 2, MaxCopy: 100})
			s.fail = func(is string) error {
				if is == what {
					return broken
				}
				return nil
			}
			obj := versioned{source.Memory("", random(50)), "shelf://a/c", "v"}
			s.source = map[string]source.Object{obj.name: obj}
			w, err := remote.NewWriter(t.Context(), s, &remote.WriteOptions{PartSize: 4, Hold: 1})
			if err != nil {
				t.Fatal(err)
			}
			_, first := w.Write(random(12))
			_, second := w.Copy(t.Context(), obj, 0, 20)
			_, third := w.Write(random(40))
			last := w.Commit(t.Context())
			if !errors.Is(last, broken) {
				t.Errorf("errors %v, %v, %v, %v; expected the last to be %v", first, second, third, last, broken)
			}
			if s.made || !s.discarded {
				t.Errorf("made %v, discarded %v", s.made, s.discarded)
			}
			if _, err := w.Write([]byte{1}); !errors.Is(err, fault.Invalid) {
				t.Errorf("written to after a Commit that failed: %v", err)
			}
			s.check(t)
		})
	}
}

// TestWriterAborts ends the writing, by itself and by a context that has ended: what was sent is removed in each case.
func TestWriterAborts(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprint(cancelled), func(t *testing.T) {
			s := newShelf(remote.UploadLimits{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w, err := remote.NewWriter(ctx, s, &remote.WriteOptions{PartSize: 4})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(random(30)); err != nil {
				t.Fatal(err)
			}
			if cancelled {
				cancel()
				if _, err := w.Write(random(30)); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, expected that the context has ended", err)
				}
				if err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, expected that the context has ended", err)
				}
			}
			if err := w.Abort(ctx); err != nil {
				t.Errorf("abort: %v", err)
			}
			if s.made || !s.discarded {
				t.Errorf("made %v, discarded %v", s.made, s.discarded)
			}
			s.check(t)
		})
	}
}

// TestWriterRemove: what was committed can be removed, also when the context has ended, and nothing else.
func TestWriterRemove(t *testing.T) {
	for _, n := range []int{3, 30} {
		s := newShelf(remote.UploadLimits{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := remote.NewWriter(ctx, s, &remote.WriteOptions{PartSize: 4})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(random(n))
		if err := w.Remove(ctx); !errors.Is(err, fault.Invalid) {
			t.Errorf("removed before it was committed: %v", err)
		}
		if err := w.Commit(ctx); err != nil || !s.made {
			t.Fatal(err)
		}
		cancel()
		if err := w.Remove(ctx); err != nil || s.made {
			t.Errorf("not removed: %v", err)
		}
		s.check(t)
	}
	s := newShelf(remote.UploadLimits{})
	w, err := remote.NewWriter(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort(t.Context())
	if err := w.Remove(t.Context()); !errors.Is(err, fault.Invalid) || len(s.calls) > 0 {
		t.Errorf("removed after Abort: %v, calls %q", err, s.calls)
	}
}

// TestWriterInterrupted: a context that ends while the store makes the object does not leave it unknown whether it did.
func TestWriterInterrupted(t *testing.T) {
	for n, what := range map[int]string{3: "put", 30: "complete"} {
		synctest.Test(t, func(t *testing.T) {
			for _, late := range []bool{false, true} {
				s := newShelf(remote.UploadLimits{})
				ctx, cancel := context.WithCancel(t.Context())
				slow := &slowShelf{shelf: s, began: cancel, wait: time.Second}
				if late {
					slow.wait = time.Minute
				}
				w, err := remote.NewWriter(ctx, slow, &remote.WriteOptions{PartSize: 4})
				if err != nil {
					t.Fatal(err)
				}
				w.Write(random(n))
				err = w.Commit(ctx)
				if !late && (err != nil || !s.made) || late && (!errors.Is(err, context.Canceled) || s.made) {
					t.Errorf("%s, late %v: %v, made %v", what, late, err, s.made)
				}
				s.check(t)
				synctest.Wait()
			}
		})
	}
}

// slowShelf is a shelf that takes its time to make an object.
type slowShelf struct {
	*shelf
	began func()
	wait  time.Duration
}

func (s *slowShelf) pause(ctx context.Context) error {
	s.began()
	select {
	case <-time.After(s.wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slowShelf) Put(ctx context.Context, p []byte) error {
	if err := s.pause(ctx); err != nil {
		return err
	}
	return s.shelf.Put(ctx, p)
}

func (s *slowShelf) Complete(ctx context.Context, parts int) error {
	if err := s.pause(ctx); err != nil {
		return err
	}
	return s.shelf.Complete(ctx, parts)
}

// TestWriterBeginCutOff: beginning an upload is waited for when the writing is to end, for some seconds.
func TestWriterBeginCutOff(t *testing.T) {
	for _, takes := range []time.Duration{3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowBegin{newShelf(remote.UploadLimits{}), takes, false}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			w, err := remote.NewWriter(ctx, s, &remote.WriteOptions{PartSize: 4})
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			w.Write(random(30))
			if err := w.Commit(ctx); !errors.Is(err, context.Canceled) || s.begun != (takes < 5*time.Second) || time.Since(before) > 7*time.Second {
				t.Errorf("after %v: %v, begun %v", time.Since(before), err, s.begun)
			}
			s.check(t)
		})
	}
}

// slowBegin is a shelf that takes its time to begin.
type slowBegin struct {
	*shelf
	takes time.Duration
	begun bool
}

func (s *slowBegin) Begin(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		s.begun = true
		return s.shelf.Begin(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWriterCutOff: when parts were cut off, what is left of them is removed again.
func TestWriterCutOff(t *testing.T) {
	s := &stuck{shelf: newShelf(remote.UploadLimits{}), arrived: make(chan struct{}, 1)}
	w, err := remote.NewWriter(t.Context(), s, &remote.WriteOptions{PartSize: 4, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(random(5)); err != nil {
		t.Fatal(err)
	}
	<-s.arrived
	if err := w.Abort(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"begin", "discard", "discard", "discard"}; !slices.Equal(s.calls, want) {
		t.Errorf("calls %q, expected %q", s.calls, want)
	}
}

// TestWriterCopyCutOff: a copy that the store makes is waited for when the writing is to end, for some time, since it would be kept
// after what was sent is removed. When it takes longer, what is left is removed again.
func TestWriterCopyCutOff(t *testing.T) {
	for takes, want := range map[time.Duration][]string{
		3 * time.Second: {"begin", "copy 0", "discard"},
		time.Minute:     {"begin", "discard", "discard", "discard"},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := versioned{source.Memory("m", random(100)), "shelf://from", "v"}
			s := &slowCopy{newShelf(remote.UploadLimits{MaxCopy: 100}), takes}
			s.source = map[string]source.Object{from.Name(): from}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			w, err := remote.NewWriter(ctx, s, &remote.WriteOptions{PartSize: 10})
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Copy(ctx, from, 0, 100)
			if late := takes > 10*time.Second; late != errors.Is(err, context.Canceled) {
				t.Errorf("a copy of %v: %v", takes, err)
			}
			if err := w.Abort(ctx); err != nil {
				t.Error(err)
			}
			if !slices.Equal(s.calls, want) {
				t.Errorf("a copy of %v: calls %q, expected %q", takes, s.calls, want)
			}
			s.check(t)
		})
	}
}

// slowCopy is a shelf that takes its time to copy.
type slowCopy struct {
	*shelf
	takes time.Duration
}

func (s *slowCopy) CopyPart(ctx context.Context, p remote.CopiedPart) error {
	select {
	case <-time.After(s.takes):
		return s.shelf.CopyPart(context.WithoutCancel(ctx), p)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stuck is a shelf that takes no part before the context ends.
type stuck struct {
	*shelf
	arrived chan struct{}
}

func (s *stuck) Part(ctx context.Context, _ remote.Part) error {
	s.arrived <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestWriterRefuses(t *testing.T) {
	limits := remote.UploadLimits{MinPart: 5, MaxPart: 50, MaxParts: 3}
	for _, o := range []remote.WriteOptions{{PartSize: -1}, {Hold: -1}, {Size: -1}, {PartSize: 51}, {PartSize: 10, Hold: 11}} {
		if _, err := remote.NewWriter(t.Context(), newShelf(limits), &o); !errors.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	s := newShelf(limits)
	w, err := remote.NewWriter(t.Context(), s, &remote.WriteOptions{PartSize: 5, Hold: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte{1})
	for _, bad := range []struct {
		n   int
		off int64
	}{{1, -1}, {2, 0}, {1, 1}, {0, 2}} {
		if n, err := w.WriteAt(make([]byte, bad.n), bad.off); n != 0 || !errors.Is(err, fault.Invalid) {
			t.Errorf("WriteAt of %d bytes at %d: %d, %v", bad.n, bad.off, n, err)
		}
	}
	if _, err := w.Copy(t.Context(), source.Memory("m", make([]byte, 9)), 5, 5); !errors.Is(err, fault.Invalid) {
		t.Errorf("copied behind the end: %v", err)
	}
	if n, err := w.Write(make([]byte, 20)); n != 19 || !errors.Is(err, fault.Limit) {
		t.Errorf("four parts of three: wrote %d, %v", n, err)
	}
	if err := w.Commit(t.Context()); !errors.Is(err, fault.Limit) || s.made {
		t.Errorf("committed: %v", err)
	}
	s.check(t)
}

// TestWriterSize: with the size that is expected, parts are large enough.
func TestWriterSize(t *testing.T) {
	s := newShelf(remote.UploadLimits{MaxParts: 3})
	w, err := remote.NewWriter(t.Context(), s, &remote.WriteOptions{PartSize: 5, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(random(110)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil || len(s.parts) != 3 || !bytes.Equal(s.object, random(110)) {
		t.Errorf("%d parts, %v", len(s.parts), err)
	}
	s.check(t)
}

// blocks counts the bytes of the buffers that a Writer has made, by the address where each begins.
type blocks struct {
	shelf
	seen  sync.Map
	bytes atomic.Int64
}

func (b *blocks) Part(ctx context.Context, p remote.Part) error {
	if _, twice := b.seen.LoadOrStore(&p.Bytes[0], true); !twice {
		b.bytes.Add(int64(cap(p.Bytes)))
	}
	return b.shelf.Part(ctx, p)
}

// TestWriterMemory: an object of 200 MiB takes as many buffers as are documented, and no other memory.
func TestWriterMemory(t *testing.T) {
	const part, parallel = 256 << 10, 4
	b := &blocks{shelf: *newShelf(remote.UploadLimits{})}
	b.keep = false
	w, err := remote.NewWriter(t.Context(), b, &remote.WriteOptions{PartSize: part, Parallel: parallel, Hold: 100})
	if err != nil {
		t.Fatal(err)
	}
	piece := random(100_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for w.Len() < 200<<20 {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got, most := b.bytes.Load(), int64(parallel+2)*(part+part/2); got > most {
		t.Errorf("buffers of %d bytes, at most %d expected", got, most)
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(16<<20); got > most {
		t.Errorf("%d bytes allocated for 200 MiB, at most %d expected", got, most)
	}
	if b.length < 200<<20 || b.most > parallel {
		t.Errorf("%d bytes sent, %d parts at once", b.length, b.most)
	}
	b.check(t)
}

var _ io.WriterAt = (*remote.Writer)(nil)
