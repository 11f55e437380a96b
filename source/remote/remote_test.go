package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/rangetest"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a Getter of bytes in memory. answer, when it is set, bends what comes.
type store struct {
	data   []byte
	answer func(n int, r remote.Request, right *remote.Response) (*remote.Response, error)

	mu    sync.Mutex
	asked []remote.Request
	at    []time.Duration // when, since the first
	began time.Time
}

func (s *store) Name() string { return "test:object" }

func (s *store) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	s.mu.Lock()
	if s.asked == nil {
		s.began = time.Now()
	}
	s.asked = append(s.asked, r)
	s.at = append(s.at, time.Since(s.began))
	n := len(s.asked)
	s.mu.Unlock()
	size := int64(len(s.data))
	start, end := r.Start, min(r.Start+r.Len, size)
	if r.Suffix {
		start, end = max(0, size-r.Len), size
	}
	right := &remote.Response{
		Status: 206, Start: start, End: end, Size: size, Length: end - start, Version: "v1",
		Body: io.NopCloser(bytes.NewReader(s.data[start:end])),
	}
	if s.answer == nil {
		return right, nil
	}
	return s.answer(n, r, right)
}

func status(code int, after time.Duration) *remote.Response {
	return &remote.Response{Status: code, Start: -1, End: -1, Size: -1, Length: -1, RetryAfter: after, Body: io.NopCloser(strings.NewReader("busy"))}
}

// breaking is a body that breaks behind its bytes.
type breaking struct{ io.Reader }

func (b breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = errors.New("connection reset")
	}
	return n, err
}
func (breaking) Close() error { return nil }

// silent is a body that gives nothing until its context ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (silent) Close() error               { return nil }

func wantFault(t *testing.T, err, class error, texts ...string) {
	t.Helper()
	if _, ok := errors.AsType[*fault.Error](err); !ok || class != nil && !errors.Is(err, class) {
		t.Fatalf("%v, want %v", err, class)
	}
	for _, text := range append(texts, "test:object") {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q in it", err, text)
		}
	}
}

// Pauses double, are random below that, and are as long as the store asks for.
func TestRetries(t *testing.T) {
	data := rangetest.Content(200_000)
	for _, tt := range []struct {
		name   string
		answer func(n int, right *remote.Response) (*remote.Response, error)
		tries  int
		text   string // of the error, "" for success
		least  time.Duration
		most   time.Duration
	}{
		{"503 twice", func(n int, right *remote.Response) (*remote.Response, error) {
			if n <= 2 {
				return status(503, 0), nil
			}
			return right, nil
		}, 3, "", 0, 300 * time.Millisecond},
		{"429 with Retry-After", func(n int, right *remote.Response) (*remote.Response, error) {
			if n == 1 {
				return status(429, 7*time.Second), nil
			}
			return right, nil
		}, 2, "", 7 * time.Second, 7 * time.Second},
		{"408", func(n int, right *remote.Response) (*remote.Response, error) {
			if n == 1 {
				return status(408, 0), nil
			}
			return right, nil
		}, 2, "", 0, 100 * time.Millisecond},
		{"no connection", func(n int, right *remote.Response) (*remote.Response, error) {
			if n == 1 {
				return nil, errors.New("connection refused")
			}
			return right, nil
		}, 2, "", 0, 100 * time.Millisecond},
		{"always 500", func(int, *remote.Response) (*remote.Response, error) { return status(500, 0), nil },
			6, "answers 500, tried 6 times", 0, 3100 * time.Millisecond},
		{"never a connection", func(int, *remote.Response) (*remote.Response, error) { return nil, errors.New("refused") },
			6, "tried 6 times: refused", 0, 3100 * time.Millisecond},
		{"a long Retry-After", func(int, *remote.Response) (*remote.Response, error) { return status(503, time.Hour), nil },
			1, "asks to be left alone for 1h0m0s", 0, 0},
		{"no retry for 400", func(int, *remote.Response) (*remote.Response, error) { return status(400, 0), nil },
			1, "answers 400", 0, 0},
		{"no retry for what the getter has judged", func(int, *remote.Response) (*remote.Response, error) {
			return nil, fault.New(nil, "test", "no credentials")
		}, 1, "no credentials", 0, 0},
		{"a clean end that is too early", func(n int, right *remote.Response) (*remote.Response, error) {
			if n == 1 {
				right.Length, right.Body = -1, io.NopCloser(bytes.NewReader(data[:10]))
			}
			return right, nil
		}, 2, "", 0, 100 * time.Millisecond},
		{"a body of another length", func(n int, right *remote.Response) (*remote.Response, error) {
			if n == 1 {
				right.Length = 10
			}
			return right, nil
		}, 2, "", 0, 100 * time.Millisecond},
		{"no answer", func(n int, right *remote.Response) (*remote.Response, error) {
			if n == 1 {
				time.Sleep(29 * time.Second)
			}
			return right, nil
		}, 1, "", 29 * time.Second, 29 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var meter source.Meter
				s := &store{data: data}
				s.answer = func(n int, _ remote.Request, right *remote.Response) (*remote.Response, error) {
					return tt.answer(n, right)
				}
				began := time.Now()
				obj, err := remote.Open(t.Context(), s, &remote.Options{Meter: &meter})
				if tt.text != "" {
					wantFault(t, err, nil, tt.text)
				} else if err != nil {
					t.Fatal(err)
				} else {
					p := make([]byte, 65_536)
					if err := obj.ReadAt(t.Context(), p, 0); err != nil || !bytes.Equal(p, data[:len(p)]) {
						t.Errorf("other bytes, %v", err)
					}
					obj.Close()
				}
				if took := time.Since(began); took < tt.least || took > tt.most {
					t.Errorf("took %v, want %v to %v", took, tt.least, tt.most)
				}
				if len(s.asked) != tt.tries || meter.Receipt().Requests != int64(tt.tries) {
					t.Errorf("%d requests, the receipt says %d, want %d", len(s.asked), meter.Receipt().Requests, tt.tries)
				}
			})
		})
	}
}

// What came before a connection broke is not asked for again.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := rangetest.Content(200_000)
		var meter source.Meter
		s := &store{data: data}
		s.answer = func(n int, r remote.Request, right *remote.Response) (*remote.Response, error) {
			if n == 2 || n == 3 {
				right.Body = breaking{bytes.NewReader(data[r.Start : r.Start+1000])}
			}
			return right, nil
		}
		obj, err := remote.Open(t.Context(), s, &remote.Options{Meter: &meter})
		if err != nil {
			t.Fatal(err)
		}
		defer obj.Close()
		p := make([]byte, 10_000)
		if err := obj.ReadAt(t.Context(), p, 100_000); err != nil || !bytes.Equal(p, data[100_000:110_000]) {
			t.Fatalf("other bytes, %v", err)
		}
		if r := s.asked[3]; r.Start != 102_000 || r.Len != 8_000 || r.Version != "v1" {
			t.Errorf("%+v", r)
		}
		if got := meter.Receipt(); got.Requests != 4 || got.Bytes != 65_536+10_000 {
			t.Errorf("%+v", got)
		}
	})
}

// A request that makes no progress is given up and sent again; one that moves on, slowly, is not.
func TestTimeLimits(t *testing.T) {
	data := rangetest.Content(4 << 20)
	t.Run("a body that stalls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{data: data}
			getter := stalling{s, func(n int) bool { return n == 2 }}
			obj, err := remote.Open(t.Context(), getter, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer obj.Close()
			began, p := time.Now(), make([]byte, 1000)
			if err := obj.ReadAt(t.Context(), p, 100_000); err != nil || !bytes.Equal(p, data[100_000:101_000]) {
				t.Fatalf("other bytes, %v", err)
			}
			if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("always", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, err := remote.Open(t.Context(), stalling{&store{data: data}, func(int) bool { return true }}, &remote.Options{Retries: 1, Timeout: time.Second})
			wantFault(t, err, context.DeadlineExceeded, "no progress within 1s, tried 2 times")
		})
	})
	t.Run("a slow one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{data: data}
			s.answer = func(n int, r remote.Request, right *remote.Response) (*remote.Response, error) {
				right.Body = io.NopCloser(slow{right.Body})
				return right, nil
			}
			obj, err := remote.Open(t.Context(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer obj.Close()
			p := make([]byte, 4<<20)
			if err := obj.ReadAt(t.Context(), p, 0); err != nil || !bytes.Equal(p, data) {
				t.Fatalf("other bytes, %v", err)
			}
			if len(s.asked) != 2 {
				t.Errorf("%d requests", len(s.asked))
			}
		})
	})
	t.Run("a drip", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{data: data}
			s.answer = func(n int, r remote.Request, right *remote.Response) (*remote.Response, error) {
				right.Body = io.NopCloser(drip{right.Body})
				return right, nil
			}
			_, err := remote.Open(t.Context(), s, &remote.Options{Retries: -1})
			wantFault(t, err, context.DeadlineExceeded, "no progress within 30s")
		})
	})
}

// slow gives 100 KiB in 10 seconds, drip a byte in one. They do not look at a context, as a body of net/http would.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(2 * time.Second)
	return s.Reader.Read(p[:min(len(p), 100<<10)])
}

type drip struct{ io.Reader }

func (d drip) Read(p []byte) (int, error) {
	time.Sleep(31 * time.Second)
	return 0, context.Canceled
}

// stalling is a store whose bodies give nothing at times.
type stalling struct {
	*store
	when func(n int) bool
}

func (s stalling) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	resp, err := s.store.Get(ctx, r)
	if err == nil && s.when(len(s.asked)) {
		resp.Body = silent{ctx}
	}
	return resp, err
}

// The end of a context ends requests and pauses at once.
func TestCancel(t *testing.T) {
	data := rangetest.Content(200_000)
	for _, tt := range []struct {
		name   string
		answer func(n int, right *remote.Response) (*remote.Response, error)
		stall  bool
	}{
		{"in a pause", func(n int, right *remote.Response) (*remote.Response, error) {
			if n > 1 {
				return status(503, 50*time.Second), nil
			}
			return right, nil
		}, false},
		{"in a body", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{data: data}
				if tt.answer != nil {
					s.answer = func(n int, _ remote.Request, right *remote.Response) (*remote.Response, error) {
						return tt.answer(n, right)
					}
				}
				obj, err := remote.Open(t.Context(), stalling{s, func(n int) bool { return tt.stall && n > 1 }}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer obj.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				err = obj.ReadAt(ctx, make([]byte, 10), 100_000)
				wantFault(t, err, context.DeadlineExceeded)
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A store that gives less than was asked for, and says so, is asked for the rest.
func TestClipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := rangetest.Content(600_000)
		s := &store{data: data}
		s.answer = func(n int, r remote.Request, right *remote.Response) (*remote.Response, error) {
			right.End = min(right.End, right.Start+50_000)
			right.Length = right.End - right.Start
			right.Body = io.NopCloser(bytes.NewReader(data[right.Start:right.End]))
			return right, nil
		}
		obj, err := remote.Open(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer obj.Close()
		p := make([]byte, 150_000)
		if err := obj.ReadAt(t.Context(), p, 0); err != nil || !bytes.Equal(p, data[:150_000]) {
			t.Fatalf("other bytes, %v", err)
		}
		wantFault(t, obj.ReadAt(t.Context(), make([]byte, 600_000), 0), nil, "before those that were asked for do, tried 6 times")
	})
}

// TestClaimedLength: memory follows the bytes that come, whatever the answer says it has.
func TestClaimedLength(t *testing.T) {
	const claimed = 1 << 50
	s := &store{data: rangetest.Content(1000)}
	s.answer = func(_ int, r remote.Request, right *remote.Response) (*remote.Response, error) {
		right.Size, right.Length = claimed, -1
		right.Start, right.End = 0, r.Len
		if r.Suffix {
			right.Start, right.End = claimed-r.Len, claimed
		}
		right.Body = io.NopCloser(bytes.NewReader(s.data))
		return right, nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	obj, err := remote.Open(t.Context(), s, &remote.Options{Head: 1000, Tail: 1 << 42, Retries: -1})
	if err != nil || obj.Size() != claimed {
		t.Fatal(err)
	}
	obj.Close()
	_, err = remote.Open(t.Context(), s, &remote.Options{Head: 1 << 42, Retries: -1})
	wantFault(t, err, nil, "the body ends after 1000 of 4398046511104 bytes")
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 32<<20 {
		t.Errorf("%d bytes were allocated for 1000 that came", after.TotalAlloc-before.TotalAlloc)
	}
}

// TestBreaksOff: the last of many tries that were cut short says what happened, and not only how often.
func TestBreaksOff(t *testing.T) {
	s := &store{data: rangetest.Content(1000)}
	s.answer = func(_ int, _ remote.Request, right *remote.Response) (*remote.Response, error) {
		right.Body = io.NopCloser(io.MultiReader(bytes.NewReader(s.data[:300]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return right, nil
	}
	_, err := remote.Open(t.Context(), s, &remote.Options{Retries: 1})
	wantFault(t, err, io.ErrUnexpectedEOF, "the answer breaks off after 300 bytes of its body, tried 2 times")
}

// TestBehindTheEnd: an answer that says no size is not said to have said one.
func TestBehindTheEnd(t *testing.T) {
	s := &store{answer: func(int, remote.Request, *remote.Response) (*remote.Response, error) { return status(416, 0), nil }}
	_, err := remote.Open(t.Context(), s, nil)
	if wantFault(t, err, fault.Corrupt, "the store answers 416"); strings.Contains(err.Error(), "-1") {
		t.Error(err)
	}
}

// What is known of an object is asked for first, unless the options say otherwise.
func TestEnds(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 10_000) // longer than the head that is usual
	for _, tt := range []struct {
		head, tail int64
		o          *remote.Options
		want       []remote.Request // in any order
	}{
		{16, 100, nil, []remote.Request{{Len: 16}, {Len: 100, Suffix: true}}},
		{16, 100, &remote.Options{ReadAhead: -1}, []remote.Request{{Len: 16}, {Len: 100, Suffix: true}}},
		{100_000, 0, nil, []remote.Request{{Len: 100_000}}},
		{0, 0, nil, []remote.Request{{Len: remote.DefaultHead}}},
		{16, 100, &remote.Options{Head: 8}, []remote.Request{{Len: 8}}},
		{16, 100, &remote.Options{Tail: 9}, []remote.Request{{Len: remote.DefaultHead}, {Len: 9, Suffix: true}}},
	} {
		s := &store{data: data}
		before := remote.Options{}
		if tt.o != nil {
			before = *tt.o
		}
		ctx := source.WithEnds(t.Context(), tt.head, tt.tail)
		obj, err := remote.Open(ctx, s, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if tt.o != nil && *tt.o != before {
			t.Errorf("the options have become %+v", *tt.o)
		}
		var asked []remote.Request
		for _, r := range s.asked {
			asked = append(asked, remote.Request{Start: r.Start, Len: r.Len, Suffix: r.Suffix})
		}
		for _, r := range tt.want {
			if !slices.ContainsFunc(asked, func(a remote.Request) bool { return a.Start == r.Start && a.Len == r.Len && a.Suffix == r.Suffix }) || len(asked) != len(tt.want) {
				t.Errorf("ends %d and %d: asked for %+v, not %+v", tt.head, tt.tail, asked, tt.want)
			}
		}
		known := make([]byte, 10)
		if err := obj.ReadAt(ctx, known, int64(len(data)-10)); err != nil || string(known) != "0123456789" {
			t.Errorf("%q, %v", known, err)
		}
		if err := obj.Close(); err != nil {
			t.Error(err)
		}
	}
}
