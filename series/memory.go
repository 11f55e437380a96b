package series

import (
	"github.com/spilehq/spile/fault"
)

// DefaultMaxDecoded bounds what a query of an artifact holds at a time. It is more than 60 times what 64 blocks of the default
// size take with ten tags of 20 bytes a value, and four columns of the greatest length that the format has.
const DefaultMaxDecoded = 1 << 30

// windowDecoded bounds what is decoded ahead of what is given, as long as a block alone is not more.
const windowDecoded = 64 << 20

// reads is what a block has fetched for it at most: its chunks, and the gaps in front of them that are read rather than skipped.
// before is the end of what is fetched in front of the block, 0 when nothing is.
func (b *blockAt) reads(before uint64) int64 {
	gap := b.part.obj.Cost().Gap
	n := int64(0)
	for i := range b.columns {
		c := &b.columns[i]
		n += int64(c.Stored)
		if before > 0 && c.Offset > before {
			n += min(gap, int64(c.Offset-before))
		}
		before = c.end()
	}
	return n
}

// extent is what some blocks of one part come to that are read together.
type extent struct {
	size int64  // that is read for them
	held int64  // what they take in memory
	end  uint64 // of the last one
}

// add adds a block, which stands behind the others and takes some memory.
func (e *extent) add(b *blockAt, holds int64) {
	e.size += b.reads(e.end)
	e.held += holds
	e.end = b.end()
}

// end is where the last chunk of a block ends.
func (b *block) end() uint64 { return b.columns[len(b.columns)-1].end() }

// holds is what a block takes in memory while it is read, approximately: its stored bytes, what becomes of the columns, and
// what decoding one of them takes beside it. later are tags of which one after the other is decoded behind that.
func (b *blockAt) holds(w wanted, later []int) int64 {
	n := b.reads(0) + 16*int64(b.series) // TSIDs and numbers of rows
	decoding := int64(max(b.columns[0].Decoded, b.columns[1].Decoded))
	for c := range b.among(w.tags) {
		n += c.holds(b.block)
		decoding = max(decoding, c.decoding())
	}
	extra := int64(0)
	for c := range b.among(later) {
		extra = max(extra, c.holds(b.block))
		decoding = max(decoding, c.decoding())
	}
	return n + decoding + extra
}

// holds is what a tag of a block takes when it is decoded, approximately: the text, a string for each value, whose length
// takes 8 bytes of the text, and the codes.
func (c *column) holds(b *block) int64 {
	return 3*int64(c.Decoded) + 4*int64(b.series)
}

// decoding is what a tag takes while it is decoded: the bytes of the chunk, and a table of the values.
func (c *column) decoding() int64 {
	return 4 * int64(c.Decoded)
}

// tooLarge is the error for a block, or a column of it, that takes more than there may be.
func (b *blockAt) tooLarge(most, holds int64, c *column) error {
	if c != nil {
		return b.located(fault.New(fault.Limit, "series", "memory of %d bytes: the column takes about %d", most, holds), c)
	}
	return fault.New(fault.Limit, "series", "memory of %d bytes: a block takes about %d", most, holds).On(b.part.place(b.leaf, b.block)).In(b.part.obj.Name())
}
