package tcb

import (
	"context"
	"io"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
)

// WriteOptions are the options of a writer. Nil and the zero value mean the defaults.
type WriteOptions struct {
	// Keys seal and sign the file.
	Keys Keys
	// Explain, when set, is called for each column, in their order, with the encodings that were tried and the one that
	// was taken.
	Explain func(c *Column, tried []Candidate, taken Encoding)
}

// Append appends a file that holds the columns, in their order, each with the given number of rows. The same columns and
// options give the same bytes.
//
// An error is [fault.Invalid], for columns that do not fit together, or [fault.Limit], for a file of 2 GiB or more.
func Append(dst []byte, rows int, columns []*Column, o *WriteOptions) ([]byte, error) {
	blocks, size, err := encodeColumns(rows, columns, o)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, int(size))
	start := len(dst)
	dst = appendDirectory(dst, rows, columns, blocks)
	for i := range blocks {
		dst = append(dst, blocks[i].bytes...)
		blocks[i].bytes = nil
	}
	if o == nil {
		return dst, nil
	}
	return dst, seal(dst[start:], o.Keys)
}

// Write is Append to a writer. A file that is neither sealed nor signed is never in memory as a whole, in addition to its
// blocks.
func Write(w io.Writer, rows int, columns []*Column, o *WriteOptions) error {
	write := func(p []byte) error {
		if _, err := w.Write(p); err != nil {
			return fault.New(nil, "tcb", "").Because(err)
		}
		return nil
	}
	if o != nil && (len(o.Keys.MAC) > 0 || len(o.Keys.Encryption) > 0) {
		p, err := Append(nil, rows, columns, o)
		if err != nil {
			return err
		}
		return write(p)
	}
	blocks, size, err := encodeColumns(rows, columns, o)
	if err != nil {
		return err
	}
	p := make([]byte, 0, min(size, writeAtOnce))
	p = appendDirectory(p, rows, columns, blocks)
	for i := range blocks {
		block := blocks[i].bytes
		blocks[i].bytes = nil
		if len(p)+len(block) <= cap(p) {
			p = append(p, block...)
			continue
		}
		if err := write(p); err != nil {
			return err
		}
		p = p[:0]
		if len(block) > cap(p)/2 {
			if err := write(block); err != nil {
				return err
			}
			continue
		}
		p = append(p, block...)
	}
	if len(p) == 0 {
		return nil
	}
	return write(p)
}

// writeAtOnce is what Write collects of short blocks before it writes them.
const writeAtOnce = 64 << 10

// encodeColumns checks columns, makes their blocks, and returns about how long the file is, or more.
func encodeColumns(rows int, columns []*Column, o *WriteOptions) ([]encoded, int64, error) {
	if o == nil {
		o = &WriteOptions{}
	}
	if err := o.Keys.check(); err != nil {
		return nil, 0, err
	}
	if err := checkColumns(rows, columns); err != nil {
		return nil, 0, err
	}
	blocks := make([]encoded, len(columns))
	// What is tried takes up to three times the memory of a column while it is tried. So it is not columns that are
	// counted: those that are worked on at a time have no more than half of all bytes, or atOnce.
	var total int64
	for _, c := range columns {
		total += c.size()
	}
	most := max(total/2, atOnce)
	room := semaphore.NewWeighted(most)
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range columns {
		size := min(c.size(), most)
		room.Acquire(context.Background(), size) // which has no end, so there is no error
		work.Go(func() error {
			defer room.Release(size)
			blocks[i] = encodeColumn(c)
			return nil
		})
	}
	work.Wait() // no error
	size := int64(HeaderSize + 10)
	for _, b := range blocks {
		size += int64(len(b.bytes)) + 11
	}
	if size > math.MaxInt32 {
		return nil, 0, fault.New(fault.Limit, "tcb", "a file of about %d bytes, at most %d", size, math.MaxInt32)
	}
	if o.Explain != nil {
		for i, b := range blocks {
			o.Explain(columns[i], b.tried, b.enc)
		}
	}
	return blocks, size, nil
}

// atOnce is how many bytes of columns are always worked on at a time.
const atOnce = 8 << 20

// size is what the values of the column take, the text of strings aside.
func (c *Column) size() int64 { return int64(c.Len())*c.Type.Element.size() + 4*int64(len(c.Offsets)) }

// appendDirectory appends what stands in front of the blocks.
func appendDirectory(dst []byte, rows int, columns []*Column, blocks []encoded) []byte {
	dst = appendHeader(dst)
	dst = wire.AppendVarint32(dst, int32(rows))
	dst = wire.AppendVarint32(dst, int32(len(columns)))
	for i, b := range blocks {
		c := columns[i]
		dst = appendDescriptor(dst, Descriptor{Tag: c.Tag, Type: c.Type, Encoding: b.enc, Size: int64(len(b.bytes))})
	}
	return dst
}

// checkColumns refuses columns that are no table.
func checkColumns(rows int, columns []*Column) error {
	if rows < 0 || rows > math.MaxInt32 {
		return fault.New(fault.Invalid, "tcb", "%d rows, 0 to %d", rows, math.MaxInt32)
	}
	seen := make(map[int32]bool, len(columns))
	for _, c := range columns {
		if err := c.writable(); err != nil {
			return err
		}
		if c.Rows != rows {
			return fault.New(fault.Invalid, "tcb", "%d rows, the table has %d", c.Rows, rows).On(c.label())
		}
		if seen[c.Tag] {
			return fault.New(fault.Invalid, "tcb", "the tag %d is there twice", c.Tag).On(c.label())
		}
		seen[c.Tag] = true
	}
	return nil
}

// encoded is the block of a column.
type encoded struct {
	enc   Encoding
	bytes []byte
	tried []Candidate
}

func encodeColumn(c *Column) encoded {
	c = c.clean()
	best := chooseColumn(c)
	taken, tried, write := best.taken(), best.tried, best.writers[best.best]
	best = choice{} // what the others would have written can go
	var p []byte
	if c.Type.Optional {
		p = appendBitmap(p, c.Present)
	}
	if c.Type.ElementOptional {
		p = wire.AppendVarint32(p, int32(c.Len()))
		p = appendBitmap(p, c.ElementPresent)
	}
	p = slices.Grow(p, taken.Size)
	return encoded{taken.Encoding, write(p), tried}
}

func appendBitmap(dst []byte, b Bitmap) []byte {
	enc, size := chooseBytes(b)
	dst = slices.Grow(dst, 1+size)
	return appendBytes(append(dst, byte(enc)), enc, b)
}

// clean returns c with the empty value in all that is absent. It is c itself when that is so already, else a copy.
func (c *Column) clean() *Column {
	if c.isClean() {
		return c
	}
	d := *c
	d.Present, d.ElementPresent, d.Offsets = slices.Clone(c.Present), slices.Clone(c.ElementPresent), slices.Clone(c.Offsets)
	d.Int32s, d.Bools, d.Int64s = slices.Clone(c.Int32s), slices.Clone(c.Bools), slices.Clone(c.Int64s)
	d.Float32s, d.Float64s = slices.Clone(c.Float32s), slices.Clone(c.Float64s)
	d.Strings, d.UUIDs = slices.Clone(c.Strings), slices.Clone(c.UUIDs)
	d.emptyAbsent()
	return &d
}

func (c *Column) isClean() bool {
	if c.Type.ElementOptional {
		if !cleanTail(c.ElementPresent, c.Len()) {
			return false
		}
		for i := range absent(c.ElementPresent, c.Len()) {
			if !c.isEmpty(i) {
				return false
			}
		}
	}
	if !c.Type.Optional {
		return true
	}
	if !cleanTail(c.Present, c.Rows) {
		return false
	}
	for i := range absent(c.Present, c.Rows) {
		if c.Type.Kind == Scalar && !c.isEmpty(i) || c.Type.Kind == Array && c.Offsets[i] != c.Offsets[i+1] {
			return false
		}
	}
	return true
}

// cleanTail reports whether the bits of the last byte that stand for nothing are 0.
func cleanTail(b Bitmap, n int) bool { return n&7 == 0 || b[len(b)-1]>>(n&7) == 0 }

// isEmpty reports whether value i is the empty value, to the bit.
func (c *Column) isEmpty(i int) bool {
	switch c.Type.Element {
	case Enum, I32:
		return c.Int32s[i] == 0
	case Bool:
		return !c.Bools[i]
	case I64:
		return c.Int64s[i] == 0
	case F32:
		return math.Float32bits(c.Float32s[i]) == 0
	case F64:
		return math.Float64bits(c.Float64s[i]) == 0
	case String:
		return c.Strings[i] == ""
	}
	return c.UUIDs[i] == GUID{}
}
