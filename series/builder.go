package series

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/internal/wire"
)

// blockBuilder collects the series of a block and encodes them.
type blockBuilder struct {
	tags   []Tag
	table  uint32
	tsids  []uint64
	counts []uint64
	cols   []tagBuilder
	number uint32    // of the block, for recentValue
	packs  sync.Pool // of *literals
	// What the two columns of numbers take.
	tsidSize, countSize int
}

// tagBuilder collects the values of a tag.
type tagBuilder struct {
	index  map[string]uint32 // value -> code
	most   int               // values that it has held: what clearing it costs
	recent [64]recentValue   // values that were seen, in front of index: labels of few values are found here
	values []string          // of the codes from 1 on
	codes  []uint32
	nulls  int
	dict   int // bytes of the dictionary
	size   int // bytes of the codes
}

// recentValue is a value that was seen, and its code in a block. It stays when the block ends, as one that is known to be
// UTF-8.
type recentValue struct {
	value string
	code  uint32
	block uint32
}

// slot is the place of a value in recent. The last bytes are those that differ between the values of most labels.
func slot(v string) int {
	n := len(v)
	if n < 2 {
		return n
	}
	return int(v[n-1]+v[n-2]*10+v[n/2]*7+byte(n)) & 63
}

func newBlockBuilder(tags []Tag) *blockBuilder {
	b := &blockBuilder{tags: tags, cols: make([]tagBuilder, len(tags))}
	b.reset()
	return b
}

func (b *blockBuilder) reset() {
	b.tsids, b.counts = b.tsids[:0], b.counts[:0]
	b.tsidSize, b.countSize = 0, 0
	b.number++
	for i := range b.cols {
		c := &b.cols[i]
		// A map that is not filled again as it was costs more to be cleared than to be made.
		if c.most = max(c.most, len(c.index)); c.index == nil || len(c.index) < c.most/8 {
			c.index, c.most = make(map[string]uint32), 0
		}
		clear(c.index)
		c.values, c.codes, c.nulls, c.dict, c.size = c.values[:0], c.codes[:0], 0, 9, 0
	}
}

func (b *blockBuilder) len() int { return len(b.tsids) }

// record is a series on its way into a block: the value of each tag, and whether it is there.
type record struct {
	ID
	count  uint64
	values []string
	has    []bool
}

// fits reports whether every column stays within its limit when the record is added.
func (b *blockBuilder) fits(r *record) bool {
	tsid, count := b.deltas(r)
	if b.tsidSize+tsid > maxChunk || b.countSize+count > maxChunk {
		return false
	}
	for i := range b.cols {
		c := &b.cols[i]
		if most := c.dict + c.size + 2*binary.MaxVarintLen64 + entryHead + len(r.values[i]); most <= maxChunk {
			continue // whatever the code is, and whether the value is new
		}
		dict, code := c.dict, uint32(0)
		if r.has[i] {
			var ok bool
			if code, ok = c.index[r.values[i]]; !ok {
				code = uint32(len(c.values)) + 1
				dict += entryHead + len(r.values[i])
			}
		}
		if wire.Uvarint64Size(uint64(dict))+dict+c.size+wire.Uvarint64Size(uint64(code)) > maxChunk {
			return false
		}
	}
	return true
}

// deltas are the sizes that the numbers of a record take in their chunks.
func (b *blockBuilder) deltas(r *record) (tsid, count int) {
	var lastTSID, lastCount uint64
	if n := len(b.tsids); n > 0 {
		lastTSID, lastCount = b.tsids[n-1], b.counts[n-1]
	}
	return wire.Varint64Size(int64(r.TSID - lastTSID)), wire.Varint64Size(int64(r.count - lastCount))
}

func (b *blockBuilder) add(r *record) {
	tsid, count := b.deltas(r)
	b.table = r.Table
	b.tsidSize += tsid
	b.countSize += count
	b.tsids, b.counts = append(b.tsids, r.TSID), append(b.counts, r.count)
	for i := range b.cols {
		c := &b.cols[i]
		code := uint32(0)
		if r.has[i] {
			v := r.values[i]
			seen := &c.recent[slot(v)]
			if seen.block != b.number || seen.value != v {
				*seen = recentValue{v, c.code(v), b.number}
			}
			code = seen.code
		} else {
			c.nulls++
		}
		c.codes = append(c.codes, code)
		c.size += wire.Uvarint64Size(uint64(code))
	}
}

// code is that of a value, a new one when the block has it not.
func (c *tagBuilder) code(v string) uint32 {
	code, ok := c.index[v]
	if !ok {
		c.values = append(c.values, v)
		code = uint32(len(c.values))
		c.index[v] = code
		c.dict += 9 + len(v)
	}
	return code
}

// chunk is an encoded column on its way into a part.
type chunk struct {
	column
	bytes []byte
}

// encode encodes the columns that the block stores. Their offsets are those of the part, set later.
func (b *blockBuilder) encode(zip *zstd.Encoder) []chunk {
	chunks := []chunk{{column: column{name: tsidColumn, tag: -1}}, {column: column{name: rowCountColumn, tag: -1}}}
	for i := range b.cols {
		if c := &b.cols[i]; c.nulls < len(b.tsids) {
			chunks = append(chunks, chunk{column: column{name: b.tags[i].Name, tag: i, nulls: uint32(c.nulls), hasStats: true, min: slices.Min(c.values), max: slices.Max(c.values)}})
		}
	}
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	if len(b.tsids) < 1024 {
		work.SetLimit(1)
	}
	for i := range chunks {
		work.Go(func() error {
			c := &chunks[i]
			switch i {
			case 0:
				p := appendDeltas(make([]byte, 0, b.tsidSize), b.tsids)
				c.payloadRef, c.bytes = stored(p, b.pack(p, 0, zip), encodingDelta)
			case 1: // most series have the same number: there are matches
				c.payloadRef, c.bytes = seal(appendDeltas(make([]byte, 0, b.countSize), b.counts), encodingDelta, zip)
			default:
				t := &b.cols[c.tag]
				p := appendDict(make([]byte, 0, t.dict+t.size+10), t.values, t.codes)
				c.payloadRef, c.bytes = stored(p, b.pack(p, len(p)-t.size, zip), encodingDict)
			}
			return nil
		})
	}
	work.Wait() // no error
	return chunks
}

// pack compresses a payload with [literals], if there is compression.
func (b *blockBuilder) pack(p []byte, front int, zip *zstd.Encoder) []byte {
	if zip == nil {
		return nil
	}
	l, _ := b.packs.Get().(*literals)
	if l == nil {
		l = &literals{}
	}
	defer b.packs.Put(l)
	return l.pack(p, front, zip)
}

// seal compresses a payload, if that makes it smaller, and makes its reference.
func seal(p []byte, encoding uint16, zip *zstd.Encoder) (payloadRef, []byte) {
	var packed []byte
	if zip != nil {
		packed = zip.EncodeAll(p, make([]byte, 0, len(p)))
	}
	return stored(p, packed, encoding)
}

// stored is what is stored of a payload, the packed bytes when they are fewer, and its reference. There is no compression
// where packed is nil.
func stored(p, packed []byte, encoding uint16) (payloadRef, []byte) {
	r := payloadRef{Decoded: uint32(len(p)), Encoding: encoding}
	if packed != nil && len(packed) < len(p) {
		p, r.Compression = packed, compressionZstd
	}
	r.Stored, r.Checksum = uint32(len(p)), xxhash.Sum64(p)
	return r, p
}
