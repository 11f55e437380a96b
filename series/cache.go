package series

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Cache remembers decoded pages and chunks of some artifacts, the last ones that were used, up to a number of bytes. It is
// safe for concurrent use.
type Cache struct {
	cache
	artifacts atomic.Uint64
}

// NewCache returns a cache of up to max bytes.
func NewCache(max int64) *Cache {
	return &Cache{cache: cache{max: max, items: make(map[cacheKey]*list.Element)}}
}

// Bytes is what the cache holds, approximately.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// cacheKey is the place of a page or a chunk in an artifact, which never changes. The leaf is a part of it since chunks of two
// leaves may lie at one offset in a file that is made to mislead: what is decoded for a block of one fits no block of the other.
type cacheKey struct {
	artifact uint64 // of those that share the cache; two may have one generation, and differ all the same
	part     uint32
	leaf     int // the page itself, or that which describes the block
	offset   uint64
}

type cache struct {
	mu    sync.Mutex
	max   int64
	bytes int64
	items map[cacheKey]*list.Element
	order list.List // of *cached, the last used in front
}

type cached struct {
	key   cacheKey
	value any
	size  int64
}

func (c *cache) get(key cacheKey) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).value, true
}

// put remembers a value of a size in bytes, unless it is more than a quarter of all.
func (c *cache) put(key cacheKey, value any, size int64) {
	if size > c.max/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok {
		return
	}
	c.items[key] = c.order.PushFront(&cached{key, value, size})
	c.bytes += size
	c.shrink()
}

// shrink forgets what was not used for longest.
func (c *cache) shrink() {
	for c.bytes > c.max {
		e := c.order.Back()
		old := c.order.Remove(e).(*cached)
		delete(c.items, old.key)
		c.bytes -= old.size
	}
}
