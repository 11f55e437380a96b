package series

import (
	"container/list"
	"sync"
)

// cacheKey is the place of a page or a chunk in an artifact, which never changes.
type cacheKey struct {
	part   uint32
	offset uint64
}

// cache remembers decoded pages and chunks, the last ones that were used, up to a number of bytes.
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

func newCache(max int64) *cache { return &cache{max: max, items: make(map[cacheKey]*list.Element)} }

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
	for c.bytes > c.max {
		e := c.order.Back()
		old := c.order.Remove(e).(*cached)
		delete(c.items, old.key)
		c.bytes -= old.size
	}
}
