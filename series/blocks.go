package series

import (
	"context"

	"github.com/spilehq/spile/fault"
)

// Part is what the frame and the root of a part say.
type Part struct {
	Range
	Name   string // of the object
	Size   int64
	Depth  int    // levels of pages, 1 or 2
	Series uint64 // as the manifest says; 0 without one
	Root   Chunk  // the root page, which is the only leaf of a part of one level
	Leaves []Leaf
}

// Leaf is a page that describes blocks.
type Leaf struct {
	Range
	Chunk
}

// Chunk is where a page or the values of a column are, and how they are stored.
type Chunk struct {
	Offset      int64
	Stored      int64 // bytes in the part
	Decoded     int64 // bytes when decompressed
	Encoding    uint16
	Compression uint16 // 0 none, 1 Zstandard
}

// Block is what a leaf says of a block.
type Block struct {
	Range
	Series  int
	Columns []Column // the TSIDs, the numbers of rows, and the tags that the block stores
}

// Column is what a leaf says of a column of a block.
type Column struct {
	Name string
	Chunk
	Nulls    int
	HasRange bool // it is a tag, and not all of it is null
	Min, Max string
}

// NumParts is the number of parts.
func (a *Artifact) NumParts() int { return len(a.parts) }

// Part opens a part, and tells what is known of it. No leaf is read, unless it is the root.
func (a *Artifact) Part(ctx context.Context, i int) (*Part, error) {
	p, err := a.partAt(ctx, i)
	if err != nil {
		return nil, err
	}
	out := &Part{Range: p.frame.root.Range, Name: p.obj.Name(), Size: p.obj.Size(), Depth: int(p.frame.depth), Root: p.frame.root.chunk()}
	if p.file != nil {
		out.Series = p.file.NumSeries
	}
	for _, leaf := range p.leaves {
		out.Leaves = append(out.Leaves, Leaf{leaf.Range, leaf.chunk()})
	}
	return out, nil
}

func (a *Artifact) partAt(ctx context.Context, i int) (*part, error) {
	if i < 0 || i >= len(a.parts) {
		return nil, fault.New(fault.NotFound, "series", "there is no part %d of %d", i, len(a.parts)).In(a.name)
	}
	return a.parts[i], a.parts[i].ready(ctx)
}

// Blocks tells what a leaf says of its blocks.
func (a *Artifact) Blocks(ctx context.Context, part, leaf int) ([]Block, error) {
	p, err := a.partAt(ctx, part)
	if err != nil {
		return nil, err
	}
	if leaf < 0 || leaf >= len(p.leaves) {
		return nil, fault.New(fault.NotFound, "series", "there is no leaf %d of %d", leaf, len(p.leaves)).In(p.obj.Name())
	}
	blocks, err := p.leaf(ctx, leaf, nil)
	if err != nil {
		return nil, err
	}
	out := make([]Block, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		out[i] = Block{Range: b.Range, Series: int(b.series), Columns: make([]Column, len(b.columns))}
		for k := range b.columns {
			c := &b.columns[k]
			out[i].Columns[k] = Column{Name: c.name, Chunk: c.chunk(), Nulls: int(c.nulls), HasRange: c.hasStats, Min: c.min, Max: c.max}
		}
	}
	return out, nil
}

func (r payloadRef) chunk() Chunk {
	return Chunk{int64(r.Offset), int64(r.Stored), int64(r.Decoded), r.Encoding, r.Compression}
}
