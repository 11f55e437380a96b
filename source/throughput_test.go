package source_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spilehq/spile/source"
)

// link is an object behind a network: an answer takes a time to begin, and all answers share so many bytes in a second.
// One stream of all of it takes latency + size / rate.
type link struct {
	size    int64
	latency time.Duration
	rate    int64 // bytes in a second

	mu   sync.Mutex
	free time.Time // when the link has carried what was asked for
	sent int64
}

func (l *link) Size() int64     { return l.size }
func (l *link) Version() string { return "1" }
func (l *link) Name() string    { return "link" }
func (l *link) Close() error    { return nil }
func (l *link) Cost() source.Cost {
	return source.Cost{Gap: 1 << 20, Parallel: 16, MaxRequest: 16 << 20}
}

func (l *link) ReadAt(ctx context.Context, p []byte, off int64) error {
	l.mu.Lock()
	begin := time.Now().Add(l.latency)
	if l.free.After(begin) {
		begin = l.free
	}
	l.free = begin.Add(l.carries(int64(len(p))))
	l.sent += int64(len(p))
	wait := time.NewTimer(time.Until(l.free))
	l.mu.Unlock()
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// carries is how long the link takes for n bytes.
func (l *link) carries(n int64) time.Duration {
	return time.Duration(float64(n) / float64(l.rate) * float64(time.Second))
}

// pass reads all of the object from front to back, as cat does.
func (l *link) pass(ctx context.Context) error {
	obj := source.ReadAhead(l, 32<<20)
	defer obj.Close()
	_, err := io.Copy(io.Discard, source.NewReader(ctx, obj, 0, obj.Size(), 0))
	return err
}

var links = []link{
	{size: 256 << 20, latency: 30 * time.Millisecond, rate: 35e6},
	{size: 512 << 20, latency: 30 * time.Millisecond, rate: 100e6},
	{size: 1 << 30, latency: 30 * time.Millisecond, rate: 500e6},
	{size: 512 << 20, latency: 100 * time.Millisecond, rate: 100e6},
	{size: 512 << 20, latency: 5 * time.Millisecond, rate: 1e9},
}

func (l *link) String() string {
	return fmt.Sprintf("%d MiB, %v, %d MB each second", l.size>>20, l.latency, l.rate/1e6)
}

// TestReadAheadThroughput compares a pass with one stream of all the bytes. The time is that of a bubble, in which nothing
// takes any but the link.
func TestReadAheadThroughput(t *testing.T) {
	for i := range links {
		synctest.Test(t, func(t *testing.T) {
			l := &links[i]
			l.free, l.sent = time.Time{}, 0
			begun := time.Now()
			if err := l.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			took, stream := time.Since(begun), l.latency+l.carries(l.size)
			share := float64(stream) / float64(took)
			if share < 0.9 || l.sent != l.size {
				t.Errorf("%v: %.3f of one stream, which takes %v; %d bytes", l, share, stream, l.sent)
			}
			t.Logf("%v: %.3f of one stream", l, share)
		})
	}
}

// BenchmarkReadAhead is a pass over 64 MiB behind a link of 2 ms and 2 GB each second, and one stream of them.
func BenchmarkReadAhead(b *testing.B) {
	l := link{size: 64 << 20, latency: 2 * time.Millisecond, rate: 2e9}
	b.Run("ahead", func(b *testing.B) {
		b.SetBytes(l.size)
		for b.Loop() {
			if err := l.pass(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("stream", func(b *testing.B) {
		b.SetBytes(l.size)
		for b.Loop() {
			if err := l.ReadAt(b.Context(), make([]byte, l.size), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}
