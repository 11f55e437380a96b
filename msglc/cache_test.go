package msglc

import (
	"bytes"
	"sync"
	"testing"
)

// TestRangeCacheBound fills a cache far beyond its bound and finds what is there to be what was put.
func TestRangeCacheBound(t *testing.T) {
	const bound = 1 << 20
	c := newRangeCache(bound)
	content := func(off int64) []byte { return bytes.Repeat([]byte{byte(off >> 10)}, 1000+int(off>>10)%50) }
	for off := int64(0); off < 10000<<10; off += 1 << 10 {
		c.put(off, content(off))
		c.get(0, int64(len(content(0)))) // asked for all the time: it stays
	}
	total, found := int64(0), 0
	for i := range c.shards {
		total += c.shards[i].bytes
		for off, item := range c.shards[i].m {
			found++
			if !bytes.Equal(item.data, content(off)) || !bytes.Equal(c.get(off, int64(len(item.data))), item.data) {
				t.Errorf("other bytes at %d", off)
			}
		}
	}
	if total > bound || found < bound/2000 {
		t.Errorf("%d items in %d bytes, the bound is %d", found, total, bound)
	}
	if c.get(0, int64(len(content(0)))) == nil {
		t.Error("the item that is always asked for is gone")
	}
	if c.get(0, 2000) != nil {
		t.Error("more was given than there is")
	}
	c.put(0, content(0)[:64])
	if p := c.get(0, 64); !bytes.Equal(p, content(0)[:64]) || c.get(0, int64(len(content(0)))) == nil {
		t.Error("the head of a leaf takes its place")
	}
}

// TestRangeCacheRace lets goroutines put and get ranges of changing lengths at the same offsets.
func TestRangeCacheRace(t *testing.T) {
	c := newRangeCache(1 << 16)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				off, n := int64(i%100), int64(1+(i+g)%3)
				if p := c.get(off, n); p != nil && int64(len(p)) != n {
					t.Errorf("%d bytes, want %d", len(p), n)
				}
				c.put(off, make([]byte, n))
			}
		})
	}
	wg.Wait()
}
