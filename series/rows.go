package series

import (
	"context"
	"fmt"

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
	tags          []int // indexes of tags in the artifact
}

// column finds a stored tag of a block.
func (b *blockAt) column(tag int) *column {
	name := b.part.a.tags[tag].Name
	for i := 2; i < len(b.columns); i++ {
		if c := &b.columns[i]; c.name == name {
			return c
		}
	}
	return nil
}

// load reads and decodes columns of some blocks of one part, in one plan.
func load(ctx context.Context, blocks []blockAt, w wanted) ([]rows, error) {
	out := make([]rows, len(blocks))
	type chunk struct {
		row *rows
		c   *column
		tag int
	}
	var missing []chunk
	var ranges []source.Range
	for i, b := range blocks {
		out[i] = rows{blockAt: b, tags: make(map[int]*dict, len(w.tags))}
		r := &out[i]
		want := func(c *column, tag int) error {
			if v, ok := b.cached(c); ok {
				r.set(c, tag, v)
				return nil
			}
			if !c.known() {
				return b.at(failed(fault.UnsupportedCodec, 40, "stored in the encoding %d and the compression %d, which are not known", c.Encoding, c.Compression), c)
			}
			missing = append(missing, chunk{r, c, tag})
			ranges = append(ranges, source.Range{Start: int64(c.Offset), End: int64(c.end())})
			return nil
		}
		var err error
		if w.tsids {
			err = want(&b.columns[0], -1)
		}
		if w.counts && err == nil {
			err = want(&b.columns[1], -2)
		}
		for _, tag := range w.tags {
			if c := b.column(tag); c != nil && err == nil {
				err = want(c, tag)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	got, err := source.Fetch(ctx, blocks[0].part.obj, ranges)
	if err != nil {
		return nil, err
	}
	for i, m := range missing {
		v, size, err := m.row.decode(m.c, got[i])
		if err != nil {
			return nil, m.row.at(err, m.c)
		}
		m.row.set(m.c, m.tag, v)
		if c := m.row.part.a.cache; c != nil {
			c.put(cacheKey{m.row.part.id, m.c.Offset}, v, size)
		}
	}
	return out, nil
}

// at gives an error the place of a column.
func (b *blockAt) at(err error, c *column) error {
	return fault.Locate(err, b.part.obj.Name(), fmt.Sprintf("%s, column %s", b.part.place(b.leaf, b.block), c.name), 0)
}

func (b *blockAt) cached(c *column) (any, bool) {
	if b.part.a.cache == nil {
		return nil, false
	}
	return b.part.a.cache.get(cacheKey{b.part.id, c.Offset})
}

// set keeps a decoded column: tag -1 are the TSIDs, -2 the numbers of rows.
func (r *rows) set(_ *column, tag int, v any) {
	switch tag {
	case -1:
		r.tsids = v.([]uint64)
	case -2:
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
