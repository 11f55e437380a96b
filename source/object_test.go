package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content returns n bytes in which no two places look alike.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// writeFile makes a file that was written an hour ago, so that a change of it shows on every file system.
func writeFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	hourAgo := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(path, b, 0o644), os.Chtimes(path, hourAgo, hourAgo)); err != nil {
		t.Fatal(err)
	}
	return path
}

// must is for calls that cannot fail in a sound test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wantFault checks the class of an error, and that its text is one line with the parts.
func wantFault(t *testing.T, err, class error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v", class)
	}
	if _, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, class) {
		t.Errorf("error %q of type %T, want a fault of class %v", err, err, class)
	}
	text := err.Error()
	if !strings.HasPrefix(text, "source: ") || strings.Count(text, "source: ") != 1 || strings.Contains(text, "\n") {
		t.Errorf("text %q, want one line with the package once", text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("text %q, want %q in it", text, part)
		}
	}
}

// kinds are all local objects.
var kinds = []struct {
	name  string
	holds bool // something that Close frees
	open  func(t testing.TB, b []byte) source.Object
}{
	{"file", true, func(t testing.TB, b []byte) source.Object { return must(source.OpenFile(writeFile(t, b))) }},
	{"mmap", true, func(t testing.TB, b []byte) source.Object { return must(source.OpenMmap(writeFile(t, b))) }},
	{"memory", false, func(_ testing.TB, b []byte) source.Object { return source.Memory("data", b) }},
	{"readerat", false, func(_ testing.TB, b []byte) source.Object {
		return source.ReaderAt("data", bytes.NewReader(b), int64(len(b)))
	}},
	{"spool", true, func(t testing.TB, b []byte) source.Object {
		return must(source.Spool(t.Context(), bytes.NewReader(b), "data"))
	}},
	{"section", false, func(_ testing.TB, b []byte) source.Object {
		around := source.Memory("data", append(append([]byte("before"), b...), "after"...))
		return must(source.Section(around, int64(len("before")), int64(len(b))))
	}},
	{"metered", false, func(_ testing.TB, b []byte) source.Object {
		return new(source.Meter).Object(source.Memory("data", b))
	}},
}

func TestObjectContract(t *testing.T) {
	const size = 100_000
	want := content(size)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			obj := k.open(t, want)
			defer obj.Close()
			if obj.Size() != size || !strings.HasSuffix(obj.Name(), "data") || obj.Cost().Parallel < 1 {
				t.Errorf("size %d, name %q, cost %+v", obj.Size(), obj.Name(), obj.Cost())
			}
			for _, tt := range []struct {
				off, n int64
				ok     bool
			}{
				{0, size, true}, {0, 0, true}, {size, 0, true}, {size - 1, 1, true}, {4095, 2, true},
				{-1, 1, false}, {-1, 0, false}, {0, size + 1, false}, {size, 1, false}, {size + 1, 0, false},
				{math.MaxInt64, 1, false}, {math.MinInt64, 1, false},
			} {
				p := make([]byte, tt.n)
				err := obj.ReadAt(t.Context(), p, tt.off)
				if !tt.ok {
					wantFault(t, err, fault.Invalid, "data", fmt.Sprint(tt.off), fmt.Sprint(tt.n), fmt.Sprint(size))
					continue
				}
				if err != nil {
					t.Errorf("read of %d at %d: %v", tt.n, tt.off, err)
				} else if !bytes.Equal(p, want[tt.off:tt.off+tt.n]) {
					t.Errorf("read of %d at %d: wrong bytes", tt.n, tt.off)
				}
			}
			wantFault(t, obj.ReadAt(ended, make([]byte, 1), 0), context.Canceled, "data")

			if err := errors.Join(obj.Close(), obj.Close()); err != nil {
				t.Errorf("close, and again: %v", err)
			}
			err := obj.ReadAt(t.Context(), make([]byte, 1), 0)
			if k.holds {
				wantFault(t, err, fault.Invalid, "closed")
			} else if err != nil {
				t.Errorf("nothing was to be freed, yet a read after Close gives %v", err)
			}
		})
		t.Run(k.name+"/empty", func(t *testing.T) {
			obj := k.open(t, nil)
			if err := errors.Join(obj.ReadAt(t.Context(), nil, 0), obj.Close()); err != nil || obj.Size() != 0 {
				t.Errorf("size %d, error %v", obj.Size(), err)
			}
		})
	}
}

// Close may come at any time; a read gives the right bytes or says that the object is closed.
func TestObjectCloseWhileReading(t *testing.T) {
	want := content(1 << 16)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			obj := k.open(t, want)
			var wg sync.WaitGroup
			for g := range 16 {
				wg.Go(func() {
					p := make([]byte, 1000)
					for i := range 100 {
						off := (g*977 + i*613) % (len(want) - len(p))
						switch err := obj.ReadAt(t.Context(), p, int64(off)); {
						case errors.Is(err, fault.Invalid):
							return
						case err != nil:
							t.Error(err)
						case !bytes.Equal(p, want[off:off+len(p)]):
							t.Error("wrong bytes")
						}
					}
				})
			}
			wg.Go(func() {
				if err := obj.Close(); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		})
	}
}

// readerAtFunc is a hostile io.ReaderAt.
type readerAtFunc func(p []byte, off int64) (int, error)

func (f readerAtFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

func TestReaderAtFaults(t *testing.T) {
	broken := errors.New("broken\ndisk")
	for _, tt := range []struct {
		name  string
		n     int
		err   error
		class error // nil: the read succeeds
		text  string
	}{
		{"all with EOF", 10, io.EOF, nil, ""},
		{"all with an error", 10, broken, nil, ""}, // io.ReaderAt says that n == len(p) is success
		{"short with EOF", 9, io.EOF, fault.Changed, "source: x: 9 of 10 bytes are there (offset 0x5)"},
		{"short without error", 9, nil, fault.Changed, "source: x: 9 of 10 bytes are there (offset 0x5)"},
		{"short with an error", 9, broken, broken, `source: x: broken\u000adisk (offset 0x5)`},
		{"too long", 11, nil, fault.Changed, "11 of 10"},
		{"negative", -1, nil, fault.Changed, "-1 of 10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readerAtFunc(func([]byte, int64) (int, error) { return tt.n, tt.err })
			err := source.ReaderAt("x", r, 20).ReadAt(t.Context(), make([]byte, 10), 5)
			if tt.class != nil {
				wantFault(t, err, tt.class, tt.text)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	if n := source.ReaderAt("x", nil, -5).Size(); n != 0 {
		t.Errorf("size %d of a negative length, want 0", n)
	}
}

func TestSection(t *testing.T) {
	obj := source.Memory("data", []byte("0123456789"))
	for _, w := range []source.Range{{-1, 3}, {0, 11}, {10, 11}, {5, 4}, {11, 11}, {math.MaxInt64, math.MinInt64}} {
		_, err := source.Section(obj, w.Start, w.Len())
		wantFault(t, err, fault.Invalid, "the size is 10")
	}
	// A section of a section cannot reach beyond either.
	inner := must(source.Section(must(source.Section(obj, 2, 6)), 1, 3))
	p := make([]byte, 3)
	if err := inner.ReadAt(t.Context(), p, 0); err != nil || string(p) != "345" {
		t.Errorf("%q, %v", p, err)
	}
	wantFault(t, inner.ReadAt(t.Context(), p, 1), fault.Invalid, "the size is 3")

	file := must(source.OpenFile(writeFile(t, []byte("0123456789"))))
	defer file.Close()
	part := must(source.Section(file, 2, 6))
	if err := errors.Join(part.Close(), file.ReadAt(t.Context(), p, 0)); err != nil {
		t.Errorf("closing the section closed the file: %v", err)
	}
	got := []any{part.Name(), part.Version(), part.Cost()}
	if diff := cmp.Diff([]any{file.Name(), file.Version() + " [2,8)", file.Cost()}, got); diff != "" {
		t.Error(diff)
	}
	if v := must(source.Section(obj, 2, 6)).Version(); v != "" { // as that of obj
		t.Errorf("version %q of a section of what has none", v)
	}
}

func TestPinned(t *testing.T) {
	gone := fault.New(fault.Changed, "source", "etag was 1, is 2").In("x")
	unreachable := errors.New("source: no route")
	short := readerAtFunc(func([]byte, int64) (int, error) { return 0, io.EOF })
	broken := readerAtFunc(func([]byte, int64) (int, error) { return 0, io.ErrClosedPipe })
	for _, tt := range []struct {
		name  string
		r     io.ReaderAt
		check error
		want  error
		calls int
	}{
		{"same", strings.NewReader("0123"), nil, nil, 1},
		{"changed", strings.NewReader("0123"), gone, gone, 1},
		{"check fails", strings.NewReader("0123"), unreachable, unreachable, 1},
		{"short and changed", short, gone, gone, 1},
		{"short, check fails", short, unreachable, io.ErrUnexpectedEOF, 1},
		{"broken", broken, nil, io.ErrClosedPipe, 1},
		{"outside", nil, gone, fault.Invalid, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls, off := 0, int64(0)
			if tt.r == nil {
				off = 1
			}
			obj := source.Pinned(source.ReaderAt("x", tt.r, 4), func(context.Context) error { calls++; return tt.check })
			if err := obj.ReadAt(t.Context(), make([]byte, 4), off); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if calls != tt.calls {
				t.Errorf("checked %d times, want %d", calls, tt.calls)
			}
		})
	}
}
