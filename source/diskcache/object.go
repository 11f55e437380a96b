package diskcache

import (
	"context"
	"os"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// object is an object whose blocks are kept.
type object struct {
	source.Object
	cache *Cache
	dir   string
	meter *source.Meter

	mu       sync.Mutex
	fetching map[int64]chan struct{} // closed when the goroutine that fetches the block has ended, well or not
}

func newObject(c *Cache, dir string, obj source.Object, m *source.Meter) *object {
	return &object{Object: obj, cache: c, dir: dir, meter: m, fetching: map[int64]chan struct{}{}}
}

// ReadAt fills p from the blocks that it lies in. Those that are missing and lie side by side are fetched with one request.
func (o *object) ReadAt(ctx context.Context, p []byte, off int64) error {
	if n := int64(len(p)); off < 0 || n > o.Size() || off > o.Size()-n || n == 0 {
		return o.Object.ReadAt(ctx, p, off) // which says what is wrong
	}
	first, last := off/BlockSize, (off+int64(len(p))-1)/BlockSize
	asked := false
	for number := first; number <= last; {
		if err := ctx.Err(); err != nil {
			return fault.New(nil, "diskcache", "").In(o.Name()).Because(err)
		}
		if o.load(ctx, number, p, off) {
			number++
			continue
		}
		end, wait := o.claim(number, last)
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
			}
			continue
		}
		if o.load(ctx, number, p, off) { // it came between the look at it and the claim
			o.release(number, end)
			number++
			continue
		}
		asked = true
		err := o.fetch(ctx, number, end, p, off)
		o.release(number, end)
		if err != nil {
			return err
		}
		number = end
	}
	if !asked && o.meter != nil {
		o.meter.Hit()
	}
	return nil
}

// block is the range of a block.
func (o *object) block(number int64) source.Range {
	start := number * BlockSize
	return source.Range{Start: start, End: start + min(BlockSize, o.Size()-start)} // the end of a block may be no int64
}

// overlay copies to p, which holds the bytes from off on, what of it lies in data, which are those from start on.
func overlay(p []byte, off int64, data []byte, start int64) {
	if start >= off {
		copy(p[start-off:], data)
	} else {
		copy(p, data[off-start:])
	}
}

// stored reports whether a block is there, whole or not.
func (o *object) stored(number int64) bool {
	for _, k := range []kind{payload, directory} {
		if _, err := os.Stat(blockPath(o.dir, number, k)); err == nil {
			return true
		}
	}
	return false
}

// load copies to p what a stored block has of it. A block of payload that is read as a directory becomes one of a directory.
func (o *object) load(ctx context.Context, number int64, p []byte, off int64) bool {
	r := o.block(number)
	data := make([]byte, r.Len())
	k := loadBlock(o.dir, number, data)
	if k == "" {
		return false
	}
	if k == payload && source.IsDirectory(ctx) {
		// Another process may have done it, or evicted the block. The bytes are here in any case.
		os.Rename(blockPath(o.dir, number, payload), blockPath(o.dir, number, directory))
	}
	overlay(p, off, data, r.Start)
	return true
}

// claim takes the block and those behind it, up to last, that are neither stored nor being fetched, to be fetched by the
// caller: those before end. Or it returns what to wait for, when another goroutine fetches the block.
func (o *object) claim(number, last int64) (end int64, wait <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if done := o.fetching[number]; done != nil {
		return 0, done
	}
	done := make(chan struct{})
	for end = number; end <= last && o.fetching[end] == nil && (end == number || !o.stored(end)); end++ {
		o.fetching[end] = done
	}
	return end, nil
}

func (o *object) release(number, end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.fetching[number])
	for ; number < end; number++ {
		delete(o.fetching, number)
	}
}

// fetch reads blocks from the source, copies to p what they have of it, and stores them.
func (o *object) fetch(ctx context.Context, number, end int64, p []byte, off int64) error {
	start, stop := o.block(number).Start, o.block(end-1).End
	data := make([]byte, stop-start)
	if err := o.Object.ReadAt(ctx, data, start); err != nil {
		return err
	}
	overlay(p, off, data, start)
	k := payload
	if source.IsDirectory(ctx) {
		k = directory
	}
	for ; number < end; number++ {
		r := o.block(number)
		block := data[r.Start-start : r.End-start]
		if storeBlock(o.dir, number, k, block) != nil { // a full disk, a folder that is gone: the bytes are good
			return nil
		}
		o.cache.stored(int64(len(block)))
	}
	return nil
}

// absent is an object whose source is not asked.
type absent struct {
	name  string
	known Known
	dir   string
}

func (a *absent) ReadAt(_ context.Context, p []byte, off int64) error {
	if n := int64(len(p)); off < 0 || n > a.known.Size || off > a.known.Size-n {
		return fault.New(fault.Invalid, "diskcache", "%d bytes wanted at %d, the size is %d", n, off, a.known.Size).In(a.name)
	} else if n == 0 {
		return nil
	}
	return fault.New(fault.NotFound, "diskcache", "%d bytes are not in the cache %s, and nobody may be asked for them", len(p), a.dir).
		In(a.name).At(off)
}

func (a *absent) Size() int64     { return a.known.Size }
func (a *absent) Version() string { return a.known.Version }
func (a *absent) Name() string    { return a.name }

// Cost is that of files: a range that nobody wants is not read, since it may not be there.
func (a *absent) Cost() source.Cost { return source.Cost{Parallel: 4} }
func (a *absent) Close() error      { return nil }
