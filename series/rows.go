package series

import (
	"context"
	"fmt"

	"github.com/spilehq/spile/fault"
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
	later         []int // tags, in order, that may be read behind that, for which those that matchers have read are kept
}

// load reads and decodes columns of some blocks of one part, in one plan.
func load(ctx context.Context, blocks []blockAt, w wanted, bytes *store) ([]rows, error) {
	out := make([]rows, len(blocks))
	var list []loading
	for i, b := range blocks {
		out[i] = rows{blockAt: b, tags: make(map[int]*dict, len(w.tags))}
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

// located gives an error the place of a column.
func (b *blockAt) located(err error, c *column) error {
	return fault.Locate(err, b.part.obj.Name(), fmt.Sprintf("%s, column %s", b.part.place(b.leaf, b.block), c.name), 0)
}

func (b *blockAt) cached(c *column) (any, bool) {
	if b.part.a.cache == nil {
		return nil, false
	}
	return b.part.a.cache.get(cacheKey{b.part.a.cacheID, b.part.id, c.Offset})
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

// decode decodes a chunk, and says what it takes in memory.
func (b *blockAt) decode(c *column, stored []byte) (v any, size int64, err error) {
	p, err := c.payloadRef.decode(stored)
	if err != nil {
		return nil, 0, err
	}
	v, size, err = b.decodeChunk(c, p)
	if f, ok := err.(*fault.Error); ok {
		err = f.At(int64(c.Offset))
	}
	return v, size, err
}

func (b *blockAt) decodeChunk(c *column, p []byte) (any, int64, error) {
	n := int(b.series)
	if c.Encoding == encodingDict {
		d, err := decodeDict(p, n, c.nulls)
		if err != nil {
			return nil, 0, err
		}
		return d, int64(len(p)) + 4*int64(n) + 16*int64(len(d.values)), nil
	}
	numbers, err := decodeDeltas(p, n)
	if err == nil && c.name == tsidColumn {
		err = checkTSIDs(numbers, b.block)
	}
	return numbers, 8 * int64(n), err
}
