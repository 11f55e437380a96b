package promtsdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/bits"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/spilehq/spile/fault"
)

// maxSegments bounds the files of chunks: their number is one of 32 bits in the index, and each has up to 512 MiB.
const maxSegments = 1 << 20

// countSize is what a chunk has in front of its samples: their number.
const countSize = 2

// chunkCounter reads how many samples chunks have. Nil counts one for each series.
type chunkCounter struct {
	ctx      context.Context
	open     Opener
	segments []*view // opened when a chunk is looked for in them
}

// openChunks begins to read chunks. It returns nil when the block has none of their files.
func (b *Block) openChunks(ctx context.Context) (*chunkCounter, error) {
	c := &chunkCounter{ctx: ctx, open: b.open}
	_, err := c.segment(0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return c, err
}

func (c *chunkCounter) close() {
	if c == nil {
		return
	}
	for _, v := range c.segments {
		if v != nil {
			v.obj.Close()
		}
	}
}

// segment opens a file of chunks: the first is 000001.
func (c *chunkCounter) segment(i int) (*view, error) {
	if i < len(c.segments) && c.segments[i] != nil {
		return c.segments[i], nil
	}
	if i >= maxSegments {
		return nil, corrupt("a chunk in file %d of %s", i+1, ChunksName)
	}
	obj, err := c.open(c.ctx, fmt.Sprintf("%s/%06d", ChunksName, i+1))
	if err != nil {
		return nil, err
	}
	v := &view{ctx: c.ctx, obj: obj, end: obj.Size()}
	if err := v.checkHead(); err != nil {
		obj.Close()
		return nil, err
	}
	for len(c.segments) <= i {
		c.segments = append(c.segments, nil)
	}
	c.segments[i] = v
	return v, nil
}

// checkHead looks whether a file is one of chunks.
func (v *view) checkHead() error {
	head, err := v.get(0, chunks.SegmentHeaderSize)
	switch {
	case err != nil:
		return err
	case len(head) < chunks.SegmentHeaderSize || binary.BigEndian.Uint32(head) != chunks.MagicChunks:
		return corrupt("is no file of chunks").In(v.obj.Name())
	case head[4] != 1:
		return fault.New(fault.UnsupportedVersion, "promtsdb", "a file of chunks of version %d, 1 is read", head[4]).In(v.obj.Name())
	}
	return nil
}

// samples is the sum of the samples in chunks; 1 where there are none or it is not known.
func (c *chunkCounter) samples(list []chunks.Meta) (uint64, error) {
	if c == nil {
		return 1, nil
	}
	var sum, carry uint64
	for _, m := range list {
		n, err := c.count(m)
		if err != nil {
			return 0, err
		}
		if sum, carry = bits.Add64(sum, n, 0); carry != 0 {
			return 0, fault.New(fault.Limit, "promtsdb", "the numbers of samples have a sum of more than 64 bits")
		}
	}
	return max(1, sum), nil
}

// count reads the head of a chunk: its length, its encoding, its number of samples.
func (c *chunkCounter) count(m chunks.Meta) (uint64, error) {
	segment, offset := chunks.BlockChunkRef(m.Ref).Unpack()
	v, err := c.segment(segment)
	if err != nil {
		return 0, err
	}
	at := int64(offset)
	bad := func(format string, args ...any) (uint64, error) {
		return 0, corrupt(format, args...).In(v.obj.Name()).At(at)
	}
	head, err := v.get(at, chunks.MaxChunkLengthFieldSize+chunks.ChunkEncodingSize+countSize)
	if err != nil {
		return 0, err
	}
	size, k := binary.Uvarint(head)
	left := v.obj.Size() - at - int64(k) - chunks.ChunkEncodingSize - crc32.Size
	switch {
	case k <= 0 || left < 0 || size > uint64(left):
		return bad("a chunk of %d bytes, and %d are left", size, max(0, left))
	case size < countSize || len(head) < k+chunks.ChunkEncodingSize+countSize:
		return bad("a chunk of %d bytes", size)
	}
	chunk, err := chunkenc.FromData(chunkenc.Encoding(head[k]), head[k+1:k+1+countSize])
	if err != nil {
		return bad("a chunk of the encoding %d, which is not known", head[k])
	}
	return uint64(chunk.NumSamples()), nil
}
