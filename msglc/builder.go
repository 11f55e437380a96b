package msglc

import (
	"fmt"
	"io"
	"math"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// tocBuilder makes the table of contents of a payload whose bytes go by in chunks of any length
// (docs/format/msglc.md, "Building"). It is the one mechanism behind everything that writes an archive, so a table
// cannot disagree with its payload.
//
// A container gets a frame, its children go to a tape, and when it ends its size decides what stays of them: a
// container that turns out a leaf is cut back to one record. Most containers are smaller than the threshold and lie in
// one chunk; those are passed without a look inside, see [tocBuilder.skip].
//
// After an error a builder is of no use.
type tocBuilder struct {
	codec     value.Codec
	threshold int64
	trivial   int64
	numeric   traits // what the numeric rule applies to
	depth     int
	scalars   *[256]traits

	children tape
	blocks   tape // of the lists that are open
	frames   []frame
	outerTag int // tags around the open containers
	run      struct{ count, size int64 }

	chunk []byte // during write
	base  int64  // position of chunk[0]; between two writes, of the byte to come
	whole bool   // the root value has ended

	// The value that has begun and not ended, containers aside.
	begun   bool
	start   int64      // its first byte, tags included
	tags    int        // tags read in front of it
	content int64      // bytes of content to come
	chunked value.Kind // of a string of indefinite length: its kind
	bits    traits
	carry   [value.MaxHead]byte // a head that goes on in the next chunk
	carried int

	inKey   bool
	keyFrom int    // in the chunk: where the key begins or goes on
	key     []byte // what earlier chunks had of it

	wasted int64 // bytes of containers that were looked at and found too long
	keys   keySet
	batch  [batchSize]byte
}

// frame is an open container.
type frame struct {
	start      int64 // position of the first byte, tags included
	items      int64 // position of the first item
	left       int64 // items, or keys and values, to come; noCount: the end is marked
	count      int64 // children so far
	mark       int64 // of the record on the tape
	bmark      int64 // where the blocks of the list begin on the tape of blocks
	group      int64 // position where the group that is open begins
	n          int64 // items in it
	nblock     int64 // blocks on the tape
	keyAt      int64 // where the key on the tape is whose value comes
	tags       int
	isMap      bool
	indefinite bool
	opaque     bool // within a key or under a tag: no value in it gets a node
	odd        bool // a key was read and its value was not
	large      bool // the last container in it has the size of the threshold or more
	or         traits
	and        traits
}

// traits say of a value what the blocks of a list depend on. The low byte is the size of numbers, and of other scalars
// that end within [maxScalar] bytes.
type traits uint16

const (
	isFloat traits = 1 << (8 + iota)
	isInt
	isOther
	notTrivial

	sizeTrait traits = 0xff
)

// noCount counts down without ever reaching 0.
const noCount = math.MinInt64 / 2

// maxScalar is the length of the longest scalar whose first byte tells its length: a msgpack string of 31 bytes.
const maxScalar = 32

// newTOCBuilder returns a builder that waits for the first byte of the payload. It must be closed.
func newTOCBuilder(s *writeSettings) *tocBuilder {
	b := &tocBuilder{codec: s.codec, threshold: s.threshold, trivial: s.trivial, depth: s.limits.MaxNesting()}
	b.threshold = min(b.threshold, maxPosition/2) // no payload reaches it, and sums with it do not overflow
	switch s.numeric {
	case FloatBlocks:
		b.numeric = isFloat
	case FloatAndIntBlocks:
		b.numeric = isFloat | isInt
	}
	b.scalars = scalarTraits(s.codec, s.trivial)
	b.children = tape{dir: s.tempDir, bound: tapeBound}
	b.blocks = tape{dir: s.tempDir, bound: tapeBound / 4}
	return b
}

// scalarTraits gives the traits of the scalars by their first byte, 0 where that does not tell their size.
func scalarTraits(c value.Codec, trivial int64) *[256]traits {
	var t [256]traits
	var p [value.MaxHead]byte
	for first := range t {
		p[0] = byte(first)
		h, err := value.ReadHead(c, p[:])
		if err != nil {
			continue
		}
		size := int64(h.Size)
		switch h.Kind {
		case value.Array, value.Map, value.Tag, value.End:
			continue
		case value.String, value.Bytes, value.Ext:
			if !contentByFirst(h) {
				continue
			}
			size += int64(h.Arg)
		}
		t[first] = traits(size) | kindTraits(h.Kind)
		if size > trivial {
			t[first] |= notTrivial
		}
	}
	return &t
}

// contentByFirst reports whether the first byte alone tells the length of the content. (An ext of fixed length has its
// type in the second byte, and its length is not 0.)
func contentByFirst(h value.Head) bool {
	return !h.Indefinite && (h.Size == 1 || h.Kind == value.Ext && h.Size == 2 && h.Arg > 0)
}

func kindTraits(k value.Kind) traits {
	switch k {
	case value.Float16, value.Float32, value.Float64:
		return isFloat
	case value.Uint, value.Nint:
		return isInt
	}
	return isOther
}

// close frees what the builder holds.
func (b *tocBuilder) close() {
	b.children.close()
	b.blocks.close()
}

// write takes the next bytes of the payload.
func (b *tocBuilder) write(p []byte) error {
	n, err := b.take(p)
	if err == nil && n < len(p) {
		err = fault.New(fault.Corrupt, "msglc", "bytes behind the value, which ends here").At(b.base)
	}
	return err
}

// take takes the next bytes of the payload up to where the root value ends, and returns how many these are.
func (b *tocBuilder) take(p []byte) (n int, err error) {
	b.chunk, b.keyFrom = p, 0
	i := 0
	if b.carried > 0 {
		i, err = b.resume(p)
	}
	for i < len(p) && err == nil && !b.whole {
		if err = b.children.settle(); err != nil {
			break
		}
		if b.content > 0 {
			n := min(b.content, int64(len(p)-i))
			i += int(n)
			if b.content -= n; b.content == 0 && b.chunked == 0 {
				err = b.scalar(i)
			}
			continue
		}
		if !b.begun && len(b.frames) > 0 {
			f := &b.frames[len(b.frames)-1]
			if before := i; !f.opaque {
				if f.isMap {
					i = b.pairs(f, p, i)
				} else {
					i, err = b.items(f, p, i)
				}
				if f.left == 0 {
					err = b.complete(0, 0, 0, i)
				}
				if i != before {
					continue
				}
			}
		}
		i, err = b.head(p, i)
	}
	if err == nil && b.inKey {
		b.key = append(b.key, p[b.keyFrom:]...)
	}
	b.base += int64(i)
	b.chunk = nil
	return i, err
}

// head reads the head at p[i].
func (b *tocBuilder) head(p []byte, i int) (int, error) {
	h, err := value.ReadHead(b.codec, p[i:])
	if err != nil && err != io.ErrUnexpectedEOF {
		return i, fault.Shift(err, b.base+int64(i))
	}
	if h.Kind == value.End && err == nil {
		if err := b.end(i); err != nil {
			return i, err
		}
		return i + 1, nil
	}
	if !b.begun {
		b.begun, b.start = true, b.base+int64(i)
		if len(b.frames) > 0 {
			if f := &b.frames[len(b.frames)-1]; f.isMap && !f.odd && !f.opaque {
				b.inKey, b.keyFrom = true, i
			}
		}
	}
	if err != nil {
		b.carried = copy(b.carry[:], p[i:])
		return len(p), nil
	}
	if b.chunked == 0 && (h.Kind == value.Array || h.Kind == value.Map) {
		if n := b.skip(p, i); n > 0 {
			return i + n, b.complete(b.start, b.base+int64(i+n), isOther, i+n)
		}
	}
	return i + h.Size, b.token(h, i+h.Size)
}

// resume completes the head that the last chunk ended in.
func (b *tocBuilder) resume(p []byte) (int, error) {
	for i := 0; i < len(p); {
		b.carry[b.carried] = p[i]
		b.carried++
		i++
		h, err := value.ReadHead(b.codec, b.carry[:b.carried])
		if err == io.ErrUnexpectedEOF {
			continue
		}
		if err != nil {
			return i, fault.Shift(err, b.base+int64(i-b.carried))
		}
		b.carried = 0
		return i, b.token(h, i)
	}
	return len(p), nil
}

// token takes a head that ends in front of chunk[i]. No value begins with an end.
func (b *tocBuilder) token(h value.Head, i int) error {
	at := b.base + int64(i-h.Size)
	switch {
	case b.chunked != 0:
		if h.Kind != b.chunked || h.Indefinite {
			return fault.New(fault.Corrupt, "msglc", "%s as a chunk of a %s", h.Kind, b.chunked).At(at)
		}
		b.content = int64(h.Arg)
		return nil
	case h.Kind == value.Tag:
		if b.nested() >= b.depth {
			return b.tooDeep(at)
		}
		b.tags++
		return nil
	case h.Kind == value.Array || h.Kind == value.Map:
		return b.push(h, i)
	case h.Indefinite:
		b.chunked, b.bits = h.Kind, isOther
		return nil
	}
	b.bits = kindTraits(h.Kind)
	if b.bits != isOther {
		b.bits |= traits(h.Size)
	}
	if h.HasContent() && h.Arg > 0 {
		b.content = int64(h.Arg)
		return nil
	}
	return b.scalar(i)
}

// scalar ends the scalar that has begun, in front of chunk[i].
func (b *tocBuilder) scalar(i int) error {
	end := b.base + int64(i)
	if b.tags > 0 {
		b.bits = isOther
	}
	return b.complete(b.start, end, b.bits, i)
}

// size gives the trait of a leaf of n bytes.
func (b *tocBuilder) size(n int64) traits {
	if n > b.trivial {
		return notTrivial
	}
	return 0
}

// end takes a break at chunk[i]: of a string, or of a container.
func (b *tocBuilder) end(i int) error {
	if b.chunked != 0 {
		return b.scalar(i + 1)
	}
	at := b.base + int64(i)
	if b.begun || len(b.frames) == 0 || b.frames[len(b.frames)-1].left >= 0 {
		return fault.New(fault.Corrupt, "msglc", "break outside a container of indefinite length").At(at)
	}
	f := &b.frames[len(b.frames)-1]
	if f.odd {
		return fault.New(fault.Corrupt, "msglc", "map of indefinite length ends after a key").At(at)
	}
	f.left = 0
	return b.complete(0, 0, 0, i+1)
}

// nested is the number of containers and tags around the next value.
func (b *tocBuilder) nested() int { return len(b.frames) + b.outerTag + b.tags }

func (b *tocBuilder) tooDeep(at int64) error {
	return tooDeep(b.depth).At(at)
}

// push opens the container whose head ends in front of chunk[i].
func (b *tocBuilder) push(h value.Head, i int) error {
	items := b.base + int64(i)
	if b.nested() >= b.depth {
		return b.tooDeep(items - int64(h.Size))
	}
	f := frame{
		start: b.start, items: items, group: items, left: int64(h.Arg), isMap: h.Kind == value.Map,
		opaque: b.tags > 0 || b.inKey || len(b.frames) > 0 && b.frames[len(b.frames)-1].opaque,
		tags:   b.tags, and: ^traits(0),
	}
	if f.isMap {
		f.left *= 2
	}
	if h.Indefinite {
		f.left, f.indefinite = noCount, true
	}
	if !f.opaque {
		b.flushRun()
		f.mark, f.bmark = b.children.size(), b.blocks.size()
		b.children.appendTable(0, 0, 0, 0, 0)
	}
	b.begun, b.tags = false, 0
	b.outerTag += f.tags
	b.frames = append(b.frames, f)
	if f.left == 0 {
		return b.complete(0, 0, 0, i)
	}
	return nil
}

// complete ends the value [start, end) in front of chunk[i], and the containers that end with it. When no value comes
// to the innermost container any more, it ends just that, and takes no value.
func (b *tocBuilder) complete(start, end int64, bits traits, i int) error {
	b.begun, b.tags, b.chunked = false, 0, 0
	bits |= b.size(end - start)
	recorded := false
	for {
		if len(b.frames) == 0 {
			if !recorded {
				b.children.appendLeaf(end - start)
			}
			b.whole = true
			return nil
		}
		f := &b.frames[len(b.frames)-1]
		if f.left != 0 {
			f.left--
			if f.isMap {
				f.odd = !f.odd
				if f.odd && !f.opaque {
					f.keyAt = b.children.size()
					b.endKey(i)
					return nil
				}
			}
			if !f.opaque {
				b.register(f, start, end, bits, recorded)
			}
			if f.left != 0 {
				return b.blocks.settle()
			}
		}
		end = b.base + int64(i)
		start = f.start
		var err error
		if bits, recorded, err = b.closeFrame(f, end); err != nil {
			return err
		}
		b.outerTag -= f.tags
		b.frames = b.frames[:len(b.frames)-1]
		if len(b.frames) > 0 {
			b.frames[len(b.frames)-1].large = end-start >= b.threshold
		}
	}
}

// endKey puts the key that ends in front of chunk[i] on the tape.
func (b *tocBuilder) endKey(i int) {
	b.children.appendKey(b.key, b.chunk[b.keyFrom:i])
	b.inKey, b.key = false, b.key[:0]
	if cap(b.key) > 1<<20 { // one long key is no reason to hold on to that much
		b.key = nil
	}
}

// register takes a child into the frame.
func (b *tocBuilder) register(f *frame, start, end int64, bits traits, recorded bool) {
	f.count++
	f.or |= bits
	f.and &= bits
	if !recorded {
		b.flushRun()
		b.children.appendLeaf(end - start)
	}
	if !f.isMap && f.or&notTrivial == 0 {
		f.n++
		if end-f.group >= b.threshold {
			b.closeGroup(f, end)
		}
	}
}

// closeGroup makes a block of the items since the last one.
func (b *tocBuilder) closeGroup(f *frame, end int64) {
	b.blocks.appendBlock(f.n, end-f.group)
	f.nblock++
	f.n, f.group = 0, end
}

// flushRun puts the leaves of one size that were only counted on the tape.
func (b *tocBuilder) flushRun() {
	b.children.appendRun(b.run.count, b.run.size)
	b.run.count = 0
}

// closeFrame decides on the form of the container that ends, writes its record over its children where they are not
// needed, and returns its traits and whether its record is on the tape.
func (b *tocBuilder) closeFrame(f *frame, end int64) (bits traits, recorded bool, err error) {
	size := end - f.start
	leaf := isOther | b.size(size)
	if f.opaque {
		return leaf, false, nil
	}
	common := f.or
	if f.or != f.and {
		common = 0
	}
	switch {
	case size < b.threshold:
	case !f.isMap && common&b.numeric != 0:
		err = b.numericBlocks(f, end, int64(common&sizeTrait))
		return isOther | notTrivial, true, err
	case f.or&notTrivial != 0:
		b.flushRun()
		if f.isMap {
			if err := b.uniqueKeys(f); err != nil {
				return 0, false, err
			}
		}
		op := byte(tapeList)
		if f.isMap {
			op = tapeMap
		}
		var rec [tapeTableSize]byte
		length := b.children.size() - f.mark - tapeTableSize
		err = b.children.patch(f.mark, putTable(&rec, op, f.items-f.start, size, f.count, length))
		b.blocks.truncate(f.bmark)
		return isOther | notTrivial, true, err
	case f.isMap:
	case f.nblock > 1 || f.nblock == 1 && f.n > 0:
		if f.n > 0 {
			b.closeGroup(f, f.itemsEnd(end))
		}
		return isOther | notTrivial, true, b.putBlocks(f, end)
	}
	b.cut(f)
	return leaf, false, nil
}

// cut takes the record and the children of the frame off the tape.
func (b *tocBuilder) cut(f *frame) {
	b.run.count = 0
	b.children.truncate(f.mark)
	b.blocks.truncate(f.bmark)
}

// putBlocks makes the list that ends a blocks node of the blocks that were collected.
func (b *tocBuilder) putBlocks(f *frame, end int64) error {
	b.run.count = 0
	b.children.truncate(f.mark)
	b.children.appendBlocksHead(f.items-f.start, end-f.start, f.nblock, b.blocks.size()-f.bmark)
	err := b.children.appendTape(&b.blocks, f.bmark)
	b.blocks.truncate(f.bmark)
	return err
}

// numericBlocks makes the list that ends, of numbers of one size, a blocks node by the numeric rule: blocks of equal
// counts, the last one shorter, also when there is only one (docs/format/msglc.md, "Numeric arrays"). The original
// takes the average for the size, and so makes wrong blocks of unequal items; here all items are known to be equal.
func (b *tocBuilder) numericBlocks(f *frame, end, size int64) error {
	b.blocks.truncate(f.bmark)
	f.nblock = 0
	each := min(f.count, b.threshold/size+1)
	for left := f.count; left > 0; left -= each {
		n := min(each, left)
		b.blocks.appendBlock(n, n*size)
		f.nblock++
		if err := b.blocks.settle(); err != nil {
			return err
		}
	}
	return b.putBlocks(f, end)
}

// itemsEnd is the position behind the last item of a list that ends at end.
func (f *frame) itemsEnd(end int64) int64 {
	if f.indefinite {
		return end - 1
	}
	return end
}

// finish ends the payload, which must be whole.
func (b *tocBuilder) finish() error {
	if b.whole {
		return nil
	}
	if b.base == 0 {
		return fault.New(fault.Invalid, "msglc", "payload without a value")
	}
	what := "a value"
	if !b.begun && len(b.frames) > 0 {
		what = b.frames[len(b.frames)-1].missing()
	}
	return fault.New(fault.Corrupt, "msglc", "payload ends within %s", what).At(b.base).Because(fault.Short(0))
}

// missing describes an open container and how much of it is there.
func (f *frame) missing() string {
	kind, unit := value.Array, "items"
	if f.isMap {
		kind, unit = value.Map, "pairs"
	}
	if f.indefinite {
		return fmt.Sprintf("the %s that begins at %#x, its end is missing", kind, f.start)
	}
	left, have := f.left, f.count
	if f.isMap {
		left = (left + 1) / 2
	}
	if f.opaque {
		return fmt.Sprintf("the %s that begins at %#x, %d %s are missing", kind, f.start, left, unit)
	}
	return fmt.Sprintf("the %s that begins at %#x, after %d of %d %s", kind, f.start, have, have+left, unit)
}
