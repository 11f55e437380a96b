package promtsdb

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"

	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// The files of a block.
const (
	MetaName       = "meta.json"
	IndexName      = "index"
	ChunksName     = "chunks"
	TombstonesName = "tombstones"
)

const (
	// tocSize is that of the table of contents at the end of an index: six offsets and a checksum.
	tocSize = 6*8 + 4
	// headerSize is that of the head of an index: magic and version.
	headerSize = 5
	// window is what is read of an index or a segment at once.
	window = 1 << 20
	// maxMeta bounds meta.json.
	maxMeta = 16 << 20
	// emptyTombstones is the size of a file of tombstones without one: magic, version, checksum.
	emptyTombstones = 9
)

// checksum is the one of all parts of a block.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// Opener opens a file of a block by its name: MetaName, IndexName, or "chunks/000001". A file that is not there is
// io/fs.ErrNotExist.
type Opener func(ctx context.Context, name string) (source.Object, error)

// Meta is what meta.json says of a block.
type Meta struct {
	ULID    string
	MinTime int64 // milliseconds, inclusive
	MaxTime int64 // milliseconds, exclusive
	Series  uint64
	Text    []byte // all of it
}

// Block is an opened block. It is safe for concurrent use.
type Block struct {
	meta    Meta
	open    Opener
	index   source.Object
	symbols *symbols
	series  source.Range // of the index
}

// Open reads the symbols of a block. Close closes it.
func Open(ctx context.Context, open Opener) (*Block, error) {
	b := &Block{open: open}
	if err := b.readMeta(ctx); err != nil {
		return nil, err
	}
	var err error
	if b.index, err = open(ctx, IndexName); err != nil {
		return nil, err
	}
	if err := b.openIndex(ctx); err != nil {
		b.index.Close()
		return nil, fault.Locate(err, b.index.Name(), "", 0)
	}
	return b, nil
}

// Close closes what is open.
func (b *Block) Close() error { return b.index.Close() }

// Meta is what meta.json says.
func (b *Block) Meta() Meta { return b.meta }

// Tombstones reports whether the block has deletions, which are not applied.
func (b *Block) Tombstones(ctx context.Context) (bool, error) {
	obj, err := b.open(ctx, TombstonesName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer obj.Close()
	return obj.Size() > emptyTombstones, nil
}

func corrupt(format string, args ...any) *fault.Error {
	return fault.New(fault.Corrupt, "promtsdb", format, args...)
}

func (b *Block) readMeta(ctx context.Context) error {
	obj, err := b.open(ctx, MetaName)
	if err != nil {
		return err
	}
	defer obj.Close()
	if obj.Size() > maxMeta {
		return fault.New(fault.Limit, "promtsdb", "%d bytes, at most %d", obj.Size(), maxMeta).In(obj.Name())
	}
	text := make([]byte, obj.Size())
	if err := obj.ReadAt(ctx, text, 0); err != nil {
		return err
	}
	var m struct {
		Version int
		ULID    string
		MinTime int64
		MaxTime int64
		Stats   struct{ NumSeries uint64 }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return corrupt("is no JSON of a block").Because(err).In(obj.Name())
	}
	if m.Version != 1 {
		return fault.New(fault.UnsupportedVersion, "promtsdb", "a block of version %d, 1 is read", m.Version).In(obj.Name())
	}
	b.meta = Meta{m.ULID, m.MinTime, m.MaxTime, m.Stats.NumSeries, text}
	return nil
}

// bytes is a part of a file as the library wants it.
type bytes []byte

func (b bytes) Len() int                    { return len(b) }
func (b bytes) Range(start, end int) []byte { return b[start:end] }

func (b *Block) openIndex(ctx context.Context) error {
	size := b.index.Size()
	if size < headerSize+tocSize {
		return corrupt("has %d bytes, the least is %d", size, headerSize+tocSize)
	}
	got, err := source.Fetch(ctx, b.index, []source.Range{{Start: 0, End: headerSize}, {Start: size - tocSize, End: size}})
	if err != nil {
		return err
	}
	head := got[0]
	if magic := uint32(head[0])<<24 | uint32(head[1])<<16 | uint32(head[2])<<8 | uint32(head[3]); magic != index.MagicIndex {
		return corrupt("begins with %#x, an index of Prometheus with %#x", magic, uint32(index.MagicIndex))
	}
	if v := head[4]; v != index.FormatV2 && v != index.FormatV3 {
		return fault.New(fault.UnsupportedVersion, "promtsdb", "the index has version %d, %d and %d are read", v, index.FormatV2, index.FormatV3)
	}
	toc, err := index.NewTOCFromByteSlice(bytes(got[1]))
	if err != nil {
		return corrupt("the table of contents").Because(err).At(size - tocSize)
	}
	end := uint64(size - tocSize)
	if toc.Symbols < headerSize || toc.Symbols >= toc.Series || toc.Series > toc.LabelIndices || toc.LabelIndices > end {
		return corrupt("symbols at %d, series from %d to %d, in %d bytes", toc.Symbols, toc.Series, toc.LabelIndices, size)
	}
	b.series = source.Range{Start: int64(toc.Series), End: int64(toc.LabelIndices)}
	text := make([]byte, toc.Series-toc.Symbols)
	if err := b.index.ReadAt(ctx, text, int64(toc.Symbols)); err != nil {
		return err
	}
	b.symbols, err = newSymbols(text)
	if f, ok := err.(*fault.Error); ok {
		return f.At(int64(toc.Symbols))
	}
	return err
}
