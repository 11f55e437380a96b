package msglc

import (
	"sync"
	"sync/atomic"
)

// rangeCache keeps the bytes of leaves and blocks, keyed by their offset in the object, within a bound in bytes. It
// is split into shards so that many goroutines seldom wait for one another; inside a shard, ranges that were used
// since the hand last passed them stay.
type rangeCache struct {
	shards [cacheShards]cacheShard
}

const cacheShards = 16

type cacheShard struct {
	mu    sync.RWMutex
	m     map[int64]*cacheItem
	ring  []*cacheItem
	hand  int
	bytes int64
	bound int64
}

type cacheItem struct {
	off  int64
	data []byte
	used atomic.Bool
}

// cacheItemCost is about what an item takes beside its bytes.
const cacheItemCost = 128

func newRangeCache(bound int64) *rangeCache {
	c := new(rangeCache)
	for i := range c.shards {
		c.shards[i].bound = bound / cacheShards
	}
	return c
}

// keeps reports whether a range of n bytes is kept.
func (c *rangeCache) keeps(n int64) bool { return n+cacheItemCost <= c.shards[0].bound/4 }

func (c *rangeCache) shard(off int64) *cacheShard {
	// Ranges follow one another at irregular distances; a multiplication spreads them evenly.
	return &c.shards[uint64(off)*0x9e3779b97f4a7c15>>60]
}

// get returns the n bytes at off, nil when they are not here. A head of what is here will do.
func (c *rangeCache) get(off, n int64) []byte {
	s := c.shard(off)
	var data []byte
	s.mu.RLock()
	if item := s.m[off]; item != nil {
		data = item.data
		if !item.used.Load() { // most are marked already, and a read does not make the line travel between cores
			item.used.Store(true)
		}
	}
	s.mu.RUnlock()
	if int64(len(data)) < n {
		return nil
	}
	return data[:n:n]
}

// put keeps data, which nobody may change any more. A range that would take a quarter of a shard is not kept.
func (c *rangeCache) put(off int64, data []byte) {
	s := c.shard(off)
	cost := int64(len(data)) + cacheItemCost
	if !c.keeps(int64(len(data))) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.m[off]; old != nil {
		if len(old.data) >= len(data) {
			return
		}
		s.bytes += int64(len(data)) - int64(len(old.data))
		old.data = data
		return
	}
	for s.bytes+cost > s.bound && len(s.ring) > 0 {
		s.evict()
	}
	if s.m == nil {
		s.m = make(map[int64]*cacheItem)
	}
	item := &cacheItem{off: off, data: data}
	s.m[off] = item
	s.ring = append(s.ring, item)
	s.bytes += cost
}

func (s *cacheShard) evict() {
	for {
		s.hand %= len(s.ring)
		item := s.ring[s.hand]
		if item.used.Swap(false) {
			s.hand++
			continue
		}
		last := len(s.ring) - 1
		s.ring[s.hand] = s.ring[last]
		s.ring[last] = nil
		s.ring = s.ring[:last]
		delete(s.m, item.off)
		s.bytes -= int64(len(item.data)) + cacheItemCost
		return
	}
}
