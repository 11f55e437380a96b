package source_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

func TestReader(t *testing.T) {
	want := content(10_000)
	for _, size := range []int{-1, 0, 1, 7, 4096, 20_000} {
		for _, r := range (ranges{{0, 10_000}, {0, 0}, {10_000, 10_000}, {3, 9_999}, {5000, 5001}}) {
			var meter source.Meter
			obj := meter.Object(source.Memory("data", want))
			got, err := io.ReadAll(source.NewReader(t.Context(), obj, r.Start, r.Len(), size))
			if err != nil || !bytes.Equal(got, want[r.Start:r.End]) {
				t.Errorf("buffer %d, %v: %d bytes, %v", size, r, len(got), err)
			}
			if size < 1 {
				size = 256 << 10
			}
			requests := (r.Len() + int64(size) - 1) / int64(size)
			if use := meter.Receipt(); use.Bytes != r.Len() || use.Requests != requests {
				t.Errorf("buffer %d, %v: %+v, want %d requests", size, r, use, requests)
			}
		}
	}
}

func TestReaderFaults(t *testing.T) {
	obj := source.Memory("data", content(100))
	for _, r := range (ranges{{0, 101}, {-1, 4}, {101, 102}, {5, 4}, {0, math.MaxInt64}}) {
		n, err := source.NewReader(t.Context(), obj, r.Start, r.Len(), math.MaxInt).Read(make([]byte, 10))
		wantFault(t, err, fault.Invalid, "the size is 100")
		if n != 0 {
			t.Errorf("%d bytes beside an error", n)
		}
	}

	// The second request fails for a while: what came before is whole, and the reader goes on where it was.
	broken := errors.New("broken")
	calls := 0
	flaky := object{Object: obj, read: func(ctx context.Context, p []byte, off int64) error {
		if calls++; calls == 2 {
			return broken
		}
		return obj.ReadAt(ctx, p, off)
	}}
	r := source.NewReader(t.Context(), flaky, 0, 100, 30)
	first, err := io.ReadAll(r)
	if len(first) != 30 || !errors.Is(err, broken) {
		t.Errorf("%d bytes, %v", len(first), err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(append(first, rest...), content(100)) {
		t.Errorf("%d bytes more, %v", len(rest), err)
	}

	// No request is longer than the source allows.
	narrow := object{Object: obj, cost: source.Cost{MaxRequest: 7}}
	narrow.read = func(ctx context.Context, p []byte, off int64) error {
		if len(p) > 7 {
			t.Errorf("request of %d bytes", len(p))
		}
		return obj.ReadAt(ctx, p, off)
	}
	got, err := io.ReadAll(source.NewReader(t.Context(), narrow, 0, 100, 0))
	if err != nil || !bytes.Equal(got, content(100)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	r = source.NewReader(ctx, obj, 0, 100, 10)
	cancel()
	_, err = r.Read(make([]byte, 1))
	wantFault(t, err, context.Canceled, "data")
}

func TestAsReaderAt(t *testing.T) {
	r := source.AsReaderAt(t.Context(), source.Memory("data", []byte("0123456789")))
	for _, tt := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil}, {3, 2, "34", nil}, {0, 0, "", nil},
		{8, 5, "89", io.EOF}, {10, 1, "", io.EOF}, {11, 1, "", io.EOF}, {math.MaxInt64, 1, "", io.EOF},
		{-1, 1, "", fault.Invalid}, {math.MinInt64, 1, "", fault.Invalid},
	} {
		p := make([]byte, tt.n)
		n, err := r.ReadAt(p, tt.off)
		if string(p[:n]) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%d at %d: %q, %v, want %q, %v", tt.n, tt.off, p[:n], err, tt.want, tt.err)
		}
	}
	got, err := io.ReadAll(io.NewSectionReader(r, 2, 100))
	if err != nil || string(got) != "23456789" {
		t.Errorf("%q, %v", got, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = source.AsReaderAt(cancelled, source.Memory("data", []byte("0"))).ReadAt(make([]byte, 1), 0)
	wantFault(t, err, context.Canceled)
	short := source.ReaderAt("data", strings.NewReader("01"), 4)
	n, err := source.AsReaderAt(t.Context(), short).ReadAt(make([]byte, 4), 0)
	wantFault(t, err, fault.Changed)
	if n != 0 {
		t.Errorf("%d bytes beside an error", n)
	}
}
