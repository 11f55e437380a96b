package msglc

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// The defaults of Options.
const (
	DefaultMaxValue             = 1 << 30
	DefaultCacheBytes           = 32 << 20
	DefaultFastLoadingThreshold = 0.3
)

// eagerTOC is the size up to which a table of contents is checked whole when it is opened, about 50 µs of work. In a
// larger one every node is checked when a read comes to it, and [Verify] checks all.
const eagerTOC = 64 << 10

// Options are the options of a reader. Nil and the zero value mean the defaults.
type Options struct {
	// Magic is the magic that archives must have, 1 to 30 bytes; nil: DefaultMagic.
	Magic []byte
	// Compatible, when set, decides in place of the comparison with Magic. It gets the 30 bytes as they are read.
	Compatible func(magic []byte) bool
	// Offset is where the archive starts in the object.
	Offset int64
	// Codec is the codec that the outer archive must have; 0: any.
	Codec value.Codec
	// Limits bounds the nesting of the payload, of the table of contents and of archives in one another, each.
	Limits value.Limits
	// MaxValue is the length in bytes of the longest value that is read into memory at once; 0: DefaultMaxValue.
	MaxValue int64
	// CacheBytes bounds what is remembered by the reader and the archives in it: half of it leaves and blocks (none of
	// more than a 64th of half of it), a quarter pages of tables of contents, 2 MiB at least, and a quarter the places of
	// nodes and child archives. 0: DefaultCacheBytes; negative: nothing but the pages is remembered.
	CacheBytes int64
	// NoFastLoading makes the full value of a list or map always come child by child.
	NoFastLoading bool
	// FastLoadingThreshold is the share of the children that may have been read before the full value comes child by
	// child, so that they are not read again; 0: DefaultFastLoadingThreshold.
	FastLoadingThreshold float64
}

// Reader is one opened archive. It is safe for concurrent use.
type Reader struct {
	s            *shared
	h            header
	magic        [MagicSize]byte
	start        int64 // of the archive in the object, -1 for a raw value
	payload      int64 // of the payload in the object
	toc          *tocBytes
	side         *sidecar // where the table is in one
	eager        bool     // the whole table was checked
	root         entry
	archives     bool   // it was, and lists archives
	head         []byte // the archive from start on, when all of it came with the first read
	combineDepth int
	noPath       Path // of the root

	dirs     sync.Map // position of a node in the table -> *directory
	recent   [recentDirs]atomic.Pointer[directory]
	children sync.Map // offset of a child archive -> *Reader

	generation atomic.Int64 // of what is remembered, see shared.keep
}

// shared is what an archive and the archives in it have in common.
type shared struct {
	obj          source.Object
	tocObj       source.Object // of a sidecar; else obj
	magic        [MagicSize]byte
	compatible   func([]byte) bool
	limits       value.Limits
	depth        int
	maxValue     int64
	cacheBytes   int64
	cache        *rangeCache // nil: nothing is remembered
	kept         atomic.Int64
	generation   atomic.Int64
	pages        pagePool
	fastShare    float64 // negative: no fast loading
	reads, bytes atomic.Int64
	decoded      atomic.Int64
}

// Stats counts what a reader asked of its source and gave out. As in the original, prefixes do not count.
type Stats struct {
	Reads   int64 // reads of the table of contents and of values
	Bytes   int64 // bytes of these reads
	Decoded int64 // bytes of values that were decoded or copied out
}

func (o *Options) shared(obj source.Object) (s *shared, err error) {
	if o == nil {
		o = &Options{}
	}
	s = &shared{
		obj: obj, tocObj: obj, compatible: o.Compatible, limits: o.Limits, depth: o.Limits.MaxNesting(),
		maxValue: o.MaxValue, cacheBytes: o.CacheBytes, fastShare: o.FastLoadingThreshold,
	}
	if s.magic, err = padMagic(o.Magic); err != nil {
		return nil, err
	}
	if s.maxValue <= 0 {
		s.maxValue = DefaultMaxValue
	}
	if s.fastShare == 0 {
		s.fastShare = DefaultFastLoadingThreshold
	}
	if s.fastShare < 0 || s.fastShare > 1 {
		return nil, fault.New(fault.Invalid, "msglc", "fast loading threshold %g, which needs 0 to 1", s.fastShare)
	}
	if o.NoFastLoading {
		s.fastShare = -1
	}
	if s.cacheBytes == 0 {
		s.cacheBytes = DefaultCacheBytes
	}
	if s.cacheBytes > 0 {
		s.cache = newRangeCache(s.cacheBytes / 2)
	}
	s.pages.keep = s.keep
	s.pages.bound = max(2*maxTOCRun, int(s.cacheBytes/4/tocPageSize))
	if o.Codec > value.CBOR {
		return nil, fault.New(fault.Invalid, "msglc", "unknown codec %d", o.Codec)
	}
	return s, nil
}

// Open opens the archive in obj. It reads the prefix and as much of the table of contents as the root node takes; a
// table of up to 64 KiB is read and checked whole. The reader closes obj when it is closed, not when Open fails.
//
// A file without a table of contents of its own is opened by [OpenSidecar], or by [OpenRaw], which scans. JSON text has
// to be made one of these first, see [value.ReadJSON].
func Open(ctx context.Context, obj source.Object, o *Options) (*Reader, error) {
	s, err := o.shared(obj)
	if err != nil {
		return nil, fault.Locate(err, obj.Name(), "", 0)
	}
	var offset int64
	var demanded value.Codec
	if o != nil {
		offset, demanded = o.Offset, o.Codec
	}
	if offset < 0 || offset > obj.Size() {
		return nil, fault.New(fault.Invalid, "msglc", "archive start %d in an object of %d bytes", offset, obj.Size()).In(obj.Name())
	}
	r, err := s.open(ctx, offset, obj.Size(), 0)
	if err == nil && demanded != 0 && r.h.codec != demanded {
		err = fault.New(fault.UnsupportedCodec, "msglc", "archive of codec %s, %s was demanded", r.h.codec, demanded).At(offset + MagicSize)
	}
	if err != nil {
		return nil, fault.Locate(err, obj.Name(), "", 0)
	}
	return r, nil
}

// OpenRaw opens a plain msgpack or CBOR value as a document whose root is one leaf.
func OpenRaw(ctx context.Context, obj source.Object, c value.Codec, o *Options) (*Reader, error) {
	s, err := o.shared(obj)
	if err != nil {
		return nil, fault.Locate(err, obj.Name(), "", 0)
	}
	if c != value.Msgpack && c != value.CBOR {
		return nil, fault.New(fault.Invalid, "msglc", "unknown codec %d", c).In(obj.Name())
	}
	if o != nil && (o.Offset != 0 || o.Codec != 0 && o.Codec != c) {
		return nil, fault.New(fault.Invalid, "msglc", "a plain %s value takes no archive start and no other codec", c).In(obj.Name())
	}
	if obj.Size() == 0 {
		return nil, fault.New(fault.Corrupt, "msglc", "no value in an object of 0 bytes").In(obj.Name())
	}
	r := &Reader{s: s, start: -1, h: header{codec: c, tocStart: obj.Size()}, eager: true}
	r.root = entry{form: Leaf, hasRange: true, whole: true, start: 0, end: obj.Size()}
	return r, nil
}

// OpenSidecar opens a plain msgpack or CBOR value by the table of contents in a sidecar (docs/format/sidecar.md). It
// compares what the sidecar says of the payload with the payload; a difference is [fault.Changed]. Closing the reader
// closes both.
func OpenSidecar(ctx context.Context, payload, sidecar source.Object, o *Options) (*Reader, error) {
	s, err := o.shared(payload)
	if err != nil {
		return nil, fault.Locate(err, payload.Name(), "", 0)
	}
	side, err := readSidecar(ctx, payload, sidecar)
	if err != nil {
		return nil, err
	}
	if o != nil && (o.Offset != 0 || o.Codec != 0 && o.Codec != side.codec) {
		return nil, fault.New(fault.Invalid, "msglc", "a plain %s value takes no archive start and no other codec", side.codec).In(payload.Name())
	}
	s.tocObj = sidecar
	r := &Reader{s: s, side: &side, start: -1, h: header{codec: side.codec, tocStart: payload.Size(), tocSize: side.tocSize}}
	r.toc = newTOCBytes(sidecar, side.tocStart, side.tocSize, &s.pages, s.countedRead(sidecar))
	if err := r.readRoot(ctx); err != nil {
		return nil, fault.Locate(err, sidecar.Name(), "", 0)
	}
	return r, nil
}

// keep counts bytes that directories and child archives take, of all the archives of a reader. Past their quarter of
// the bound all is forgotten: simple, and rare enough not to matter.
func (s *shared) keep(n int64) {
	if s.kept.Add(n) > s.cacheBytes/4 {
		s.kept.Store(0)
		s.generation.Add(1)
	}
}

// forget drops what r remembers of an older generation.
func (r *Reader) forget() {
	if g := r.s.generation.Load(); r.generation.Load() != g && r.generation.Swap(g) != g {
		r.dirs.Clear()
		r.children.Clear()
		for i := range r.recent {
			r.recent[i].Store(nil)
		}
	}
}

func (s *shared) countedRead(obj source.Object) func(context.Context, []byte, int64) error {
	return func(ctx context.Context, p []byte, off int64) error {
		err := s.read(ctx, obj, p, off)
		if err != errLater {
			s.reads.Add(1)
			s.bytes.Add(int64(len(p)))
		}
		return err
	}
}

// firstRead is how much is read at the archive start in one go: what a request is worth at the source. Small archives
// come whole with it. At the start of the object it is no more than what a source over a network has in memory since it was
// opened, unless all the rest costs no more than the request that it saves.
func firstRead(obj source.Object, start, room int64) int64 {
	gap := min(obj.Cost().Gap, 1<<20)
	if start == 0 && room > gap/2 {
		gap = min(gap, 64<<10)
	}
	return min(max(4<<10, gap), room)
}

// open opens the archive that starts at start and must end by limit.
func (s *shared) open(ctx context.Context, start, limit int64, depth int) (*Reader, error) {
	bad := func(class error, off int64, format string, args ...any) (*Reader, error) {
		return nil, fault.New(class, "msglc", format, args...).At(start + off)
	}
	head := make([]byte, firstRead(s.obj, start, limit-start))
	if err := s.read(source.ForDirectory(ctx), s.obj, head, start); err != nil {
		return nil, err
	}
	if s.compatible != nil && len(head) >= MagicSize {
		if !s.compatible(bytes.Clone(head[:MagicSize])) {
			return bad(fault.Corrupt, 0, "magic %q is not compatible", logicalMagic(head[:MagicSize]))
		}
	} else if err := checkMagic(head, s.magic); err != nil {
		return nil, fault.Shift(err, start)
	}
	if len(head) < PrefixSize {
		return bad(fault.Corrupt, 0, "header ends after %d of %d bytes", len(head)-MagicSize, PrefixSize-MagicSize)
	}
	h, err := parseHeader(head[MagicSize:PrefixSize])
	if err != nil {
		return nil, fault.Shift(err, start)
	}
	r := &Reader{s: s, h: h, start: start, payload: start + PrefixSize, combineDepth: depth}
	copy(r.magic[:], head)
	if h.tocStart > limit-r.payload || h.tocSize > limit-r.payload-h.tocStart {
		return bad(fault.Corrupt, MagicSize, "payload of %d and table of contents of %d bytes, but %d bytes are there", h.tocStart, h.tocSize, limit-r.payload)
	}
	r.toc = newTOCBytes(s.obj, r.payload+h.tocStart, h.tocSize, &s.pages, s.countedRead(s.obj))
	if from := PrefixSize + h.tocStart; from+h.tocSize <= int64(len(head)) {
		r.toc.preset(head[from : from+h.tocSize])
		r.head = head
		s.reads.Add(1) // the table counts as one read, as in the original
		s.bytes.Add(h.tocSize)
	}
	return r, r.readRoot(ctx)
}

func (r *Reader) readRoot(ctx context.Context) error {
	c := r.cursor(ctx, 0)
	if r.h.tocSize <= eagerTOC {
		if err := c.walkTOC(r.h.tocStart, r.s.depth, nil); err != nil {
			return err
		}
		r.eager, r.archives = true, c.archives
		c.seek(0)
	}
	var err error
	if r.root, err = c.entry(0, r.h.tocStart); err != nil {
		return err
	}
	if r.root.isArchive() {
		return c.failAt(0, "int where the root node is due")
	}
	return nil
}

// Close closes the object. Reads that run end first, later ones fail.
func (r *Reader) Close() error {
	err := r.s.obj.Close()
	if r.s.tocObj != r.s.obj {
		if err2 := r.s.tocObj.Close(); err == nil {
			err = err2
		}
	}
	return err
}

// Stats returns the counts since the reader was opened, those of the archives in it included.
func (r *Reader) Stats() Stats {
	return Stats{Reads: r.s.reads.Load(), Bytes: r.s.bytes.Load(), Decoded: r.s.decoded.Load()}
}

// Info describes an archive. Offsets are offsets in the object.
type Info struct {
	Codec        value.Codec
	Magic        []byte // without padding; nil for a raw value
	Start        int64  // of the archive; -1 for a raw value
	PayloadStart int64
	PayloadSize  int64
	TOCStart     int64 // in the sidecar, when there is one
	TOCSize      int64 // 0 for a raw value without a sidecar
	Form         Form  // of the root node
	Sidecar      string
}

// Info returns the layout of the archive.
func (r *Reader) Info() Info {
	in := Info{
		Codec: r.h.codec, Start: r.start, PayloadStart: r.payload, PayloadSize: r.h.tocStart, TOCSize: r.h.tocSize,
		Form: r.root.form,
	}
	if r.start >= 0 {
		in.Magic = bytes.Clone(logicalMagic(r.magic[:]))
	}
	if r.toc != nil {
		in.TOCStart = r.toc.base
	}
	if r.s.tocObj != r.s.obj {
		in.Sidecar = r.s.tocObj.Name()
	}
	return in
}

// RawData returns the bytes of the archive: prefix, payload and table of contents. For a child of a combined archive
// they are a file of its own. A raw value has none but its payload.
func (r *Reader) RawData(ctx context.Context) io.Reader {
	if r.start < 0 {
		return r.ProtocolRawData(ctx)
	}
	return source.NewReader(ctx, r.s.obj, r.start, PrefixSize+r.h.tocStart+r.h.tocSize, copyBuffer)
}

// ProtocolRawData returns the bytes of the payload: a plain msgpack or CBOR value, except for a combined archive.
func (r *Reader) ProtocolRawData(ctx context.Context) io.Reader {
	return source.NewReader(ctx, r.s.obj, r.payload, r.h.tocStart, copyBuffer)
}

// copyBuffer is the length of the reads of a sequential pass.
const copyBuffer = 256 << 10

// archiveCost is about what an open archive takes beside its bytes.
const archiveCost = 2 << 10

// archive opens the child archive at a position of the payload.
func (r *Reader) archive(ctx context.Context, offset int64) (*Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, r.ended(err)
	}
	r.forget()
	if sub, ok := r.children.Load(offset); ok {
		return sub.(*Reader), nil
	}
	if r.combineDepth+1 >= r.s.depth {
		return nil, fault.New(fault.Limit, "msglc", "archives nested deeper than %d", r.s.depth).At(r.payload + offset)
	}
	sub, err := r.s.open(ctx, r.payload+offset, r.payload+r.h.tocStart, r.combineDepth+1)
	if err != nil {
		return nil, err
	}
	if r.s.cache != nil {
		r.s.keep(archiveCost + int64(len(sub.head)))
		r.children.Store(offset, sub)
	}
	return sub, nil
}

// ended is the error of a context that ended while all that was needed lay in memory.
func (r *Reader) ended(err error) error {
	return fault.New(nil, "msglc", "").In(r.s.obj.Name()).Because(err)
}

// read returns n bytes of the payload at the position, from memory when they are there. They must not be changed.
func (r *Reader) read(ctx context.Context, start, end int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, r.ended(err)
	}
	off, n := r.payload+start, end-start
	if r.head != nil {
		return r.head[off-r.start : off-r.start+n : off-r.start+n], nil
	}
	if n > r.s.maxValue {
		return nil, fault.New(fault.Limit, "msglc", "value of %d bytes, at most %d are read at once", n, r.s.maxValue).At(off)
	}
	if r.s.cache != nil {
		if p := r.s.cache.get(off, n); p != nil {
			return p, nil
		}
	}
	p := make([]byte, n)
	if err := r.s.countedRead(r.s.obj)(ctx, p, off); err != nil {
		return nil, err
	}
	if r.s.cache != nil {
		r.s.cache.put(off, p)
	}
	return p, nil
}

// directoryCost is about what an empty directory takes, its place in the map included.
const directoryCost = 600

// recentDirs is how many directories are found without the map, those of the outer nodes of a document mostly: all
// reads go through these, and the map is slower.
const recentDirs = 1 << recentBits

const recentBits = 4

// directory returns what is known of the children of a node.
func (r *Reader) directory(e *entry) *directory {
	if r.s.cache == nil {
		return newDirectory(e)
	}
	r.forget()
	slot := &r.recent[uint64(e.at)*0x9e3779b97f4a7c15>>(64-recentBits)]
	if d := slot.Load(); d != nil && d.e.at == e.at {
		return d
	}
	d, known := r.dirs.Load(e.at)
	if !known {
		d, known = r.dirs.LoadOrStore(e.at, newDirectory(e))
	}
	if !known {
		r.s.keep(directoryCost)
	}
	slot.Store(d.(*directory))
	return d.(*directory)
}
