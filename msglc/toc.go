package msglc

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// The encoded table of contents stays encoded, and mostly unread: pages of it are fetched when a cursor gets there.
// A page of 64 KiB costs about as much as two reads of a few bytes from a local file; the table of a document of 1 GB
// at the default threshold has some tens of them.
const tocPageSize = 64 << 10

// maxTOCRun bounds how far a sequential pass over the table reads ahead, in pages.
const maxTOCRun = 16

// pathsOfPage is for how many paths that are looked for together a page of the table is read ahead.
const pathsOfPage = 4

// tocBytes gives the bytes of one table of contents.
type tocBytes struct {
	obj   source.Object
	base  int64 // offset of the table in obj
	size  int64
	read  func(ctx context.Context, p []byte, off int64) error // reads from obj and counts
	pages []atomic.Pointer[[]byte]
	pool  *pagePool

	passed  atomic.Int64 // bytes that were passed over for what stands behind them
	spans   spanTable
	loading gate
	run     int // length of the last fetch, in pages
	expect  int // the page behind the last fetch
}

// pagePool bounds the pages that stay in memory, of all the tables of a reader: past it the oldest goes.
type pagePool struct {
	bound int

	mu     sync.Mutex
	loaded []pageOf

	keep func(n int64) // counts what is remembered of tables beside their pages; nil: nobody does
}

type pageOf struct {
	t *tocBytes
	i int
}

func (p *pagePool) add(t *tocBytes, first, last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := first; i <= last; i++ {
		p.loaded = append(p.loaded, pageOf{t, i})
	}
	for len(p.loaded) > p.bound {
		old := p.loaded[0]
		old.t.pages[old.i].Store(nil)
		p.loaded[0] = pageOf{}
		p.loaded = p.loaded[1:]
	}
}

func newTOCBytes(obj source.Object, base, size int64, pool *pagePool, read func(context.Context, []byte, int64) error) *tocBytes {
	n := int((size + tocPageSize - 1) / tocPageSize)
	return &tocBytes{
		obj: obj, base: base, size: size, read: read,
		pages: make([]atomic.Pointer[[]byte], n), pool: pool, expect: -1, loading: newGate(),
	}
}

// preset takes the whole table from memory.
func (t *tocBytes) preset(p []byte) {
	for i := range t.pages {
		page := p[i*tocPageSize : min((i+1)*tocPageSize, len(p))]
		t.pages[i].Store(&page)
	}
}

// window returns the bytes from off to the end of a page; off lies before size.
func (t *tocBytes) window(ctx context.Context, off int64) ([]byte, error) {
	i := int(off / tocPageSize)
	page := t.pages[i].Load()
	if page == nil {
		var err error
		if page, err = t.load(ctx, i); err != nil {
			return nil, err
		}
	}
	return (*page)[off%tocPageSize:], nil
}

// load fetches page i and some pages behind it: as many as a request is worth at this source, and twice as many as
// the last time when the table is read in order.
func (t *tocBytes) load(ctx context.Context, i int) (*[]byte, error) {
	if err := t.loading.lock(ctx); err != nil {
		return nil, fault.New(nil, "msglc", "").In(t.obj.Name()).Because(err)
	}
	defer t.loading.unlock()
	if page := t.pages[i].Load(); page != nil {
		return page, nil
	}
	n := max(1, int(min(t.obj.Cost().Gap/tocPageSize, maxTOCRun)))
	if i == t.expect {
		n = max(n, min(2*t.run, maxTOCRun))
	}
	if rest := len(t.pages) - i; n == maxTOCRun && rest <= 2*maxTOCRun { // what is left costs no more than another request
		n = rest
	}
	last := i
	for last+1 < len(t.pages) && last+1 < i+n && t.pages[last+1].Load() == nil {
		last++
	}
	if i == t.expect {
		ctx = atOnce(ctx)
	}
	page, err := t.fetch(source.UpTo(source.ForDirectory(ctx), t.base+t.size), i, last)
	if err != nil {
		return nil, err
	}
	t.run, t.expect = last-i+1, last+1
	return page, nil
}

// loadFor loads the whole table, in runs side by side, for n paths that lead to various places of it: where a request is dear,
// and there are some paths for each page. What fails is left to those who need it.
func (t *tocBytes) loadFor(ctx context.Context, n int) {
	cost := t.obj.Cost()
	if cost.Gap < tocPageSize || len(t.pages) > min(n/pathsOfPage, t.pool.bound) || t.loading.lock(ctx) != nil {
		return
	}
	defer t.loading.unlock()
	var work errgroup.Group
	work.SetLimit(max(1, cost.Parallel))
	ctx = source.ForDirectory(ctx)
	missing := -1 // the first page of a run
	for i := range len(t.pages) + 1 {
		here := i == len(t.pages) || t.pages[i].Load() != nil
		if missing >= 0 && (here || i == missing+maxTOCRun) {
			first := missing
			ctx := source.UpTo(ctx, t.base+min(int64(i)*tocPageSize, t.size))
			work.Go(func() error { _, err := t.fetch(ctx, first, i-1); return err })
			missing = -1
		}
		if missing < 0 && !here {
			missing = i
		}
	}
	work.Wait()
}

// fetch reads pages, and returns the first of them, which may be forgotten already.
func (t *tocBytes) fetch(ctx context.Context, first, last int) (*[]byte, error) {
	from, to := int64(first)*tocPageSize, min(int64(last+1)*tocPageSize, t.size)
	buf := make([]byte, to-from)
	if err := t.read(ctx, buf, t.base+from); err != nil {
		return nil, err
	}
	for k := first; k <= last; k++ {
		page := buf[(k-first)*tocPageSize : min((k-first+1)*tocPageSize, len(buf))]
		t.pages[k].Store(&page)
	}
	t.pool.add(t, first, last)
	page := buf[:min(tocPageSize, len(buf))]
	return &page, nil
}

// tocCursor walks over the encoded table. It is not safe for concurrent use.
type tocCursor struct {
	ctx   context.Context
	t     *tocBytes
	codec value.Codec
	w     []byte // a window of the table
	off   int64  // of w[0] in the table
	pos   int
	join  [128]byte // the bytes around a page border

	archives bool // a node was parsed that is the offset of an archive

	maxKey  int64 // longest string that is taken out of the table
	payload int64 // length of the payload
}

func (r *Reader) cursor(ctx context.Context, at int64) *tocCursor {
	return &tocCursor{ctx: ctx, t: r.toc, codec: r.h.codec, off: at, maxKey: r.s.maxValue, payload: r.h.tocStart}
}

// at is the position in the table.
func (c *tocCursor) at() int64 { return c.off + int64(c.pos) }

func (c *tocCursor) seek(at int64) {
	if at >= c.off && at <= c.off+int64(len(c.w)) {
		c.pos = int(at - c.off)
		return
	}
	c.off, c.pos, c.w = at, 0, nil
}

// need brings at least 64 bytes into the window, fewer only at the end of the table: enough for the head of any value,
// for a whole leaf node and for the units of skipRun.
func (c *tocCursor) need() error {
	if len(c.w)-c.pos >= 64 {
		return nil
	}
	at := c.at()
	if at >= c.t.size || len(c.w) > 0 && c.off+int64(len(c.w)) == c.t.size {
		return nil
	}
	if err := c.ctx.Err(); err != nil {
		return fault.New(nil, "msglc", "").In(c.t.obj.Name()).Because(err)
	}
	w, err := c.t.window(c.ctx, at)
	if err != nil {
		return err
	}
	if len(w) < 64 && at+int64(len(w)) < c.t.size {
		next, err := c.t.window(c.ctx, at+int64(len(w)))
		if err != nil {
			return err
		}
		n := copy(c.join[:], w)
		n += copy(c.join[n:], next)
		w = c.join[:n]
	}
	c.w, c.off, c.pos = w, at, 0
	return nil
}

// head reads the head of a value of definite length.
func (c *tocCursor) head() (value.Head, error) {
	h, err := c.anyHead()
	if err == nil && h.Indefinite {
		err = c.corrupt("%s of indefinite length in the table of contents", h.Kind)
	}
	return h, err
}

// anyHead reads the head of a value.
func (c *tocCursor) anyHead() (value.Head, error) {
	if err := c.need(); err != nil {
		return value.Head{}, err
	}
	h, err := value.ReadHead(c.codec, c.w[c.pos:])
	switch {
	case err == io.ErrUnexpectedEOF:
		return h, c.corrupt("table of contents ends within a node")
	case err != nil:
		return h, fault.Locate(err, c.t.obj.Name(), "", c.t.base+c.at())
	case h.Kind == value.End:
		return h, c.corrupt("break in the table of contents")
	}
	if h.Arg > uint64(c.t.size) && (h.HasContent() || h.Kind == value.Array || h.Kind == value.Map) {
		return h, c.corrupt("%s of length %d in a table of contents of %d bytes", h.Kind, h.Arg, c.t.size)
	}
	c.pos += h.Size
	return h, nil
}

// content reads n bytes behind a head.
func (c *tocCursor) content(n int64) ([]byte, error) {
	if n > c.t.size-c.at() {
		return nil, c.corrupt("table of contents ends within a string")
	}
	if n <= int64(len(c.w)-c.pos) {
		p := c.w[c.pos : c.pos+int(n)]
		c.pos += int(n)
		return p, nil
	}
	if n > c.maxKey {
		return nil, c.limit(n)
	}
	p := make([]byte, 0, min(n, tocPageSize))
	for int64(len(p)) < n {
		if c.pos == len(c.w) {
			w, err := c.t.window(c.ctx, c.at())
			if err != nil {
				return nil, err
			}
			c.off, c.pos, c.w = c.at(), 0, w
		}
		m := min(int(n)-len(p), len(c.w)-c.pos)
		p = append(p, c.w[c.pos:c.pos+m]...)
		c.pos += m
	}
	return p, nil
}

func (c *tocCursor) limit(n int64) error {
	return fault.New(fault.Limit, "msglc", "key of %d bytes, at most %d are read at once", n, c.maxKey).In(c.t.obj.Name()).At(c.t.base + c.at())
}

// bytesBetween returns a copy of the bytes of the table from one position to another.
func (c *tocCursor) bytesBetween(from, to int64) ([]byte, error) {
	d := tocCursor{ctx: c.ctx, t: c.t, codec: c.codec, off: from, maxKey: c.maxKey}
	p, err := d.content(to - from)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), p...), nil
}

// intSizes gives the length of an unsigned integer by its first byte, 0 when it starts none.
var intSizes = [...][256]uint8{value.Msgpack: intSizesOf(value.Msgpack), value.CBOR: intSizesOf(value.CBOR)}

func intSizesOf(c value.Codec) (t [256]uint8) {
	var p [value.MaxHead]byte
	for b := range t {
		p[0] = byte(b)
		if h, err := value.ReadHead(c, p[:]); err == nil && h.Kind == value.Uint {
			t[b] = uint8(h.Size)
		}
	}
	return t
}

// leafRange reads a leaf node of the usual form and reports whether one was there.
func (c *tocCursor) leafRange() (start, end int64, ok bool) {
	if len(c.w)-c.pos < 22 || binary.BigEndian.Uint32(c.w[c.pos:]) != nodeShapes[c.codec].leaf {
		return 0, 0, false
	}
	p, behind, ok := c.numbers(c.pos+4, 2)
	if ok {
		c.pos = behind
	}
	return p[0], p[1], ok
}

// skip passes n values.
func (c *tocCursor) skip(n int64) error {
	for n > 0 {
		if err := c.need(); err != nil {
			return err
		}
		if n = c.skipRun(n); n == 0 {
			break
		}
		var err error
		if n, err = c.skipHead(n); err != nil {
			return err
		}
	}
	return nil
}

// skipHead passes one head, with the content of a string, and returns how many values are left of n then. It is the
// plain twin of skipRun, and takes all that skipRun leaves.
func (c *tocCursor) skipHead(n int64) (int64, error) {
	at := c.at()
	h, err := c.anyHead()
	if err != nil {
		return n, err
	}
	n--
	if h.Indefinite {
		return n, c.skipIndefinite(at)
	}
	switch h.Kind {
	case value.Array:
		n += int64(h.Arg)
	case value.Map:
		n += 2 * int64(h.Arg)
	case value.Tag:
		n++
	case value.String, value.Bytes, value.Ext:
		if int64(h.Arg) > c.t.size-c.at() {
			return n, c.corrupt("table of contents ends within a string")
		}
		c.seek(c.at() + int64(h.Arg))
	}
	if n > c.t.size-c.at() { // each value takes a byte at least
		return n, c.corrupt("table of contents ends within a node")
	}
	return n, nil
}

// nodeShape is what nodes look like in one codec, as every writer writes them.
type nodeShape struct {
	leaf       uint32 // map of one, "p", array of two
	table      uint32 // map of two, "p", array of two; then the positions, "t" and its container
	tableFirst uint32 // map of two, "t": the older order
	block      byte   // array of three
	range2     byte   // array of two
	keyT       uint16
	short      byte // first bytes of strings that hold their length: from here on
	shortCount byte
	u16, u32   byte // heads of integers of two and four bytes
	list, dict byte // first bytes of arrays and maps that hold their count: from here on
	fewItems   byte
}

var nodeShapes = [...]nodeShape{
	value.Msgpack: {0x81a17092, 0x82a17092, 0x82a174, 0x93, 0x92, 0xa174, 0xa0, 32, 0xcd, 0xce, 0x90, 0x80, 16},
	value.CBOR:    {0xa1617082, 0xa2617082, 0xa26174, 0x83, 0x82, 0x6174, 0x60, 24, 0x19, 0x1a, 0x80, 0xa0, 24},
}

// runReach is more than any unit of skipRun takes, but for the content of a key.
const runReach = 48

// skipRun passes values by whole units: a short key, a leaf, the start of a node with a table, the start of blocks, a
// block. It stops where the window is about to end or the table looks otherwise, and returns how many values are left.
// The widths of integers are told apart by branches, which the processor predicts, and not by a table, whose loads
// would wait for one another. The table of 5,000 runs, 470 kB, takes 0.6 ms so and 5.5 ms head by head
// (BenchmarkSkipTable).
func (c *tocCursor) skipRun(n int64) int64 {
	shape, sizes := &nodeShapes[c.codec], &intSizes[c.codec]
	pos := c.pos
	for n > 0 && pos+runReach <= len(c.w) {
		q := c.w[pos : pos+runReach : pos+runReach]
		if k := q[0] - shape.short; k < shape.shortCount {
			pos += 1 + int(k)
			n--
			continue
		}
		i, numbers, table := 4, 2, false
		switch start := binary.BigEndian.Uint32(q); {
		case start == shape.leaf:
		case start == shape.table:
			table = true
		case q[0] == shape.block:
			i, numbers = 1, 3
		case q[0] == shape.range2: // of a node whose table stands in front
			i = 1
		case start>>8 == shape.leaf>>8: // blocks: "p" is an array of another length, of arrays
			items, size := c.itemsAt(shape, q[3:])
			if size == 0 || q[3+size] != shape.block {
				c.pos = pos
				return n
			}
			pos += 3 + size
			n += items - 1
			continue
		case start>>8 == shape.tableFirst: // its table, then "p" and the range
			items, size := c.itemsAt(shape, q[3:])
			if size == 0 {
				c.pos = pos
				return n
			}
			pos += 3 + size
			if n += items + 1; n > c.t.size-c.off-int64(pos) {
				c.pos = pos
				return n
			}
			continue
		default:
			c.pos = pos
			return n
		}
		if numbers == 3 {
			switch w := q[1]; {
			case w == shape.u16:
				i = 4
			case sizes[w] != 0:
				i = 1 + int(sizes[w])
			default: // no position: a list of three nodes, say
				c.pos = pos
				return n
			}
		}
		if q[i] == shape.u32 && q[i+5] == shape.u32 { // by far the most in a long table
			i += 10
		} else {
			for range 2 {
				switch w := q[i]; {
				case w == shape.u32:
					i += 5
				case w == shape.u16:
					i += 3
				case sizes[w] != 0:
					i += int(sizes[w])
				default:
					c.pos = pos
					return n
				}
			}
		}
		if table {
			items, size := c.itemsAt(shape, q[i+2:])
			if size == 0 || binary.BigEndian.Uint16(q[i:]) != shape.keyT {
				c.pos = pos
				return n
			}
			n += items
			i += 2 + size
		}
		pos += i
		n--
		if n > c.t.size-c.off-int64(pos) { // too many for what is left; the plain twin says so
			break
		}
	}
	c.pos = min(pos, len(c.w))
	if pos > len(c.w) { // a key goes on behind the window
		c.seek(c.off + int64(pos))
	}
	return n
}

// itemsAt returns how many values are in the container whose head q begins with, and the length of the head; 0 when it
// is none that skipRun takes.
func (c *tocCursor) itemsAt(shape *nodeShape, q []byte) (items int64, size int) {
	if k := q[0] - shape.list; k < shape.fewItems {
		return int64(k), 1
	}
	if k := q[0] - shape.dict; k < shape.fewItems {
		return 2 * int64(k), 1
	}
	h, err := value.ReadHead(c.codec, q)
	switch {
	case err != nil || h.Indefinite || h.Arg > uint64(c.t.size):
		return 0, 0
	case h.Kind == value.Array:
		return int64(h.Arg), h.Size
	case h.Kind == value.Map:
		return 2 * int64(h.Arg), h.Size
	}
	return 0, 0
}

// uintAt reads an unsigned integer of p whose length is known from intSizes.
func uintAt(p []byte, size int) int64 {
	switch size {
	case 2:
		return int64(p[1])
	case 3:
		return int64(binary.BigEndian.Uint16(p[1:]))
	case 5:
		return int64(binary.BigEndian.Uint32(p[1:]))
	case 9:
		return int64(min(binary.BigEndian.Uint64(p[1:]), maxPosition+1)) // too large a position in any case
	}
	return int64(p[0]) // both codecs hold small integers in their first byte
}

// numbers reads n unsigned integers, 3 at most, when they stand in the window in their usual form.
func (c *tocCursor) numbers(at, n int) (out [3]int64, end int, ok bool) {
	t := &intSizes[c.codec]
	for i := range n {
		if at+value.MaxHead > len(c.w) {
			return out, 0, false
		}
		size := int(t[c.w[at]])
		if size == 0 {
			return out, 0, false
		}
		out[i] = uintAt(c.w[at:], size)
		at += size
	}
	return out, at, true
}

// position reads one integer of a node.
func (c *tocCursor) position() (int64, error) {
	at := c.at()
	h, err := c.head()
	if err != nil {
		return 0, err
	}
	if h.Kind != value.Uint || h.Arg > maxPosition {
		c.seek(at)
		if h.Kind == value.Nint {
			return 0, c.corrupt("position %d, at least 0", -1-int64(h.Arg))
		}
		return 0, c.corrupt("%s %d where a position is due", h.Kind, h.Arg)
	}
	return int64(h.Arg), nil
}

func (c *tocCursor) corrupt(format string, args ...any) *fault.Error {
	return fault.New(fault.Corrupt, "msglc", format, args...).In(c.t.obj.Name()).At(c.t.base + c.at())
}
