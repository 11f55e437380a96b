package series

import (
	"context"
	"fmt"
	"runtime"
	"slices"
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
	tags          []int      // indexes of tags in the artifact, in order
	later         []int      // tags, in order, that may be read behind that
	values        *valueSets // of the first of these, nil when they are not wanted
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
	room := takeRoom()
	defer room.release()
	p, err := c.decodeInto(&room.chunk, stored)
	if err != nil {
		return nil, 0, err
	}
	return b.decodeChunk(c, p)
}

// placed gives an error of a chunk its place in the part.
func placed(err error, c *column) error {
	if f, ok := err.(*fault.Error); ok {
		return f.At(int64(c.Offset))
	}
	return err
}

// decodeChunk is decode of a chunk that was checked and decompressed.
func (b *blockAt) decodeChunk(c *column, p []byte) (any, int64, error) {
	n := int(b.series)
	if c.Encoding == encodingDict {
		d, err := decodeDict(p, n, c.nulls)
		if err != nil {
			return nil, 0, placed(err, c)
		}
		return d, d.size(), nil
	}
	numbers, err := decodeDeltas(p, n)
	if err == nil && c.name == tsidColumn {
		err = checkTSIDs(numbers, b.block)
	}
	return numbers, 8 * int64(n), placed(err, c)
}

// columnRoom is memory for a column that is decoded and used, but not kept: that of the next one is the same, and in the caches
// of a processor.
type columnRoom struct {
	chunk   []byte // decompressed
	numbers []uint64
	dict    dict // its text is in the chunk, or in the stored bytes
}

// maxRoom bounds the memory of a room that waits for the next column.
const maxRoom = 1 << 20

var waitingRooms sync.Pool // of *columnRoom

func takeRoom() *columnRoom {
	if room, ok := waitingRooms.Get().(*columnRoom); ok {
		return room
	}
	return &columnRoom{}
}

// release gives the room to whoever needs one next.
func (room *columnRoom) release() {
	if room.bytes() > maxRoom {
		return
	}
	room.dict.text = ""
	waitingRooms.Put(room)
}

// bytes is what the room takes.
func (room *columnRoom) bytes() int {
	return cap(room.chunk) + 8*cap(room.numbers) + 4*cap(room.dict.at) + room.dict.room.bytes()
}

// decode decodes a chunk of a block, into the dictionary or the numbers of the room. They are there until the next one, and as
// long as the stored bytes are.
func (room *columnRoom) decode(b *blockAt, c *column, stored []byte) error {
	p, err := c.decodeInto(&room.chunk, stored)
	if err != nil {
		return err
	}
	n := int(b.series)
	if c.Encoding == encodingDict {
		return placed(room.dict.decode(p, n, c.nulls), c)
	}
	room.numbers = slices.Grow(room.numbers[:0], n)[:n] // n is at most the length of p, check 68
	err = allDeltas(p, room.numbers)
	if err == nil && c.name == tsidColumn {
		err = checkTSIDs(room.numbers, b.block)
	}
	return placed(err, c)
}

// columnRooms are the rooms of a query, which uses more of them at a time than there are processors.
type columnRooms struct {
	mu   sync.Mutex
	free []*columnRoom
}

func (r *columnRooms) take() *columnRoom {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return takeRoom()
	}
	room := r.free[n-1]
	r.free = r.free[:n-1]
	return room
}

func (r *columnRooms) put(rooms ...*columnRoom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, room := range rooms {
		if room.bytes() <= maxRoom {
			r.free = append(r.free, room)
		}
	}
}

// release gives up the rooms, when nobody uses one.
func (r *columnRooms) release() {
	for _, room := range r.free {
		room.release()
	}
	r.free = nil
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

// had is what there is of a column without reading: by a matcher, or in the cache.
func (l *loading) had() (v any, ok bool) {
	if d := l.row.tags[l.tag]; d != nil {
		return d, true
	}
	if l.tag == tagTSID && l.row.tsids != nil {
		return l.row.tsids, true
	}
	return l.row.cached(l.c)
}

// fetchAll reads what is missing of some columns of blocks of one part, in one plan. It returns what there is of the columns without
// reading, and the ranges of the others.
func fetchAll(ctx context.Context, list []loading, bytes *store) (had []any, ranges []source.Range, err error) {
	had, ranges = make([]any, len(list)), make([]source.Range, len(list))
	for i := range list {
		l := &list[i]
		v, ok := l.had()
		switch {
		case ok:
			had[i] = v
		case !l.c.known():
			return nil, nil, l.row.located(l.c.unknown(), l.c)
		default:
			ranges[i] = l.c.span()
		}
	}
	return had, ranges, bytes.fetch(ctx, ranges)
}

// useAll reads columns of blocks of one part, as far as they are not remembered, and hands each to use, some side by side. What a
// cache is to remember is decoded into memory of its own, the rest into a room, which use may keep.
func useAll(ctx context.Context, list []loading, bytes *store, rooms *columnRooms, use func(i int, v any, room *columnRoom) (keep bool, err error)) error {
	had, ranges, err := fetchAll(ctx, list, bytes)
	if err != nil {
		return err
	}
	return parallel(len(list), func(i int) error {
		l, v := list[i], had[i]
		cache := l.row.part.a.cache
		var room *columnRoom
		var size int64
		var err error
		switch {
		case v != nil:
		case rooms != nil && cache == nil:
			room = rooms.take()
			err = room.decode(&l.row.blockAt, l.c, bytes.get(ranges[i]))
			if l.c.Encoding == encodingDict {
				v = &room.dict
			} else {
				v = room.numbers
			}
		default:
			v, size, err = l.row.decode(l.c, bytes.get(ranges[i]))
		}
		if err != nil {
			return l.row.located(err, l.c)
		}
		if size > 0 && cache != nil {
			cache.put(l.row.key(l.c), v, size)
		}
		keep, err := use(i, v, room)
		if room != nil && !keep {
			rooms.put(room)
		}
		return err
	})
}

// loadAll reads and decodes columns of blocks of one part, as far as they are not remembered, and keeps them in their rows.
func loadAll(ctx context.Context, list []loading, bytes *store) error {
	values := make([]any, len(list))
	err := useAll(ctx, list, bytes, nil, func(i int, v any, _ *columnRoom) (bool, error) {
		values[i] = v
		return false, nil
	})
	if err != nil {
		return err
	}
	for i, v := range values {
		list[i].row.set(list[i].tag, v)
	}
	return nil
}
