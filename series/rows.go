package series

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// blockAt is a block with the part and the leaf that it is in.
type blockAt struct {
	*block
	part *part
	leaf int
}

// rows are decoded columns of a block. What was not asked for is nil.
type rows struct {
	blockAt
	tsids  []uint64
	counts []uint64
	tags   map[int]*dict // by the index of the tag in the artifact; a tag that the block does not store is not there
}

// wanted says which columns of a block are read.
type wanted struct {
	tsids, counts bool
	tags          []int // indexes of tags in the artifact, in order
	later         []int // tags, in order, that may be read behind that
	values        bool  // those of the first of these are wanted, but where the descriptor tells the one that all rows have
}

// load reads and decodes columns of some blocks of one part, in one plan.
func load(ctx context.Context, blocks []blockAt, w wanted, bytes *store) ([]rows, error) {
	out := make([]rows, len(blocks))
	var list []loading
	for i, b := range blocks {
		out[i] = newRows(b)
		if w.tsids {
			list = append(list, loading{&out[i], &b.columns[0], tagTSID})
		}
		if w.counts {
			list = append(list, loading{&out[i], &b.columns[1], tagCount})
		}
		for c := range b.among(w.tags) {
			list = append(list, loading{&out[i], c, c.tag})
		}
	}
	return out, loadAll(ctx, list, bytes)
}

func newRows(b blockAt) rows {
	return rows{blockAt: b, tags: make(map[int]*dict)}
}

// parallel does n things, as many at a time as there are processors, and returns the error of the first of those that fail.
func parallel(n int, do func(i int) error) error {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, n)
	var next atomic.Int64
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if errs[i] = do(i); errs[i] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// atChunk is at, for an error that tells no place in the part.
func (b *blockAt) atChunk(err error, c *column) error {
	if f, ok := err.(*fault.Error); ok {
		err = f.At(int64(c.Offset))
	}
	return b.located(err, c)
}

// located gives an error the place of a column.
func (b *blockAt) located(err error, c *column) error {
	return fault.Locate(err, b.part.obj.Name(), fmt.Sprintf("%s, column %s", b.part.place(b.leaf, b.block), c.name), 0)
}

func (b *blockAt) cached(c *column) (any, bool) {
	if b.part.a.cache == nil {
		return nil, false
	}
	return b.part.a.cache.get(b.key(c))
}

// key is the place of a chunk in the cache.
func (b *blockAt) key(c *column) cacheKey {
	return cacheKey{b.part.a.cacheID, b.part.id, b.leaf, c.Offset}
}

// set keeps a decoded column.
func (r *rows) set(tag int, v any) {
	switch tag {
	case tagTSID:
		r.tsids = v.([]uint64)
	case tagCount:
		r.counts = v.([]uint64)
	default:
		r.tags[tag] = v.(*dict)
	}
}

// decode decodes a chunk, and says what it takes in memory. It keeps nothing of the stored bytes.
func (b *blockAt) decode(c *column, stored []byte) (v any, size int64, err error) {
	var room []byte
	select {
	case room = <-chunkRooms:
	default:
	}
	p, err := c.payloadRef.decodeInto(room, stored)
	if err == nil {
		v, size, err = b.decodeChunk(c, p)
		if f, ok := err.(*fault.Error); ok {
			err = f.At(int64(c.Offset))
		}
	}
	if n := cap(p); c.Compression != compressionNone && n > cap(room) && n <= maxChunkRoom {
		room = p
	}
	if cap(room) > 0 {
		select {
		case chunkRooms <- room:
		default:
		}
	}
	return v, size, err
}

// chunkRooms is memory for chunks that are decompressed, and not kept: as much as is used at a time. A sync.Pool would forget it
// whenever memory is collected, which is often while a query decodes.
var chunkRooms = make(chan []byte, runtime.NumCPU())

const maxChunkRoom = 1 << 20

func (b *blockAt) decodeChunk(c *column, p []byte) (any, int64, error) {
	n := int(b.series)
	if c.Encoding == encodingDict {
		d, err := decodeDict(p, n, c.nulls)
		if err != nil {
			return nil, 0, err
		}
		return d, d.size(), nil
	}
	numbers, err := decodeDeltas(p, n)
	if err == nil && c.name == tsidColumn {
		err = checkTSIDs(numbers, b.block)
	}
	return numbers, 8 * int64(n), err
}

// The tags that stand for the two columns that are always there.
const (
	tagTSID  = -1
	tagCount = -2
)

// loading is a column that is to be read.
type loading struct {
	row *rows
	c   *column
	tag int
}

// loadAll reads and decodes columns of blocks of one part, as far as they are not remembered.
func loadAll(ctx context.Context, list []loading, bytes *store) error {
	var ranges []source.Range
	var missing []loading
	for _, l := range list {
		if v, ok := l.row.cached(l.c); ok {
			l.row.set(l.tag, v)
			continue
		}
		if !l.c.known() {
			return l.row.located(l.c.unknown(), l.c)
		}
		missing = append(missing, l)
		ranges = append(ranges, l.c.span())
	}
	if len(missing) == 0 {
		return nil
	}
	if err := bytes.fetch(ctx, ranges); err != nil {
		return err
	}
	decoded := make([]any, len(missing))
	if err := parallel(len(missing), func(i int) error {
		l := missing[i]
		v, size, err := l.row.decode(l.c, bytes.get(ranges[i]))
		if err != nil {
			return l.row.located(err, l.c)
		}
		decoded[i] = v
		if c := l.row.part.a.cache; c != nil {
			c.put(l.row.key(l.c), v, size)
		}
		return nil
	}); err != nil {
		return err
	}
	for i, l := range missing {
		l.row.set(l.tag, decoded[i])
	}
	return nil
}
