package tcb

import (
	"math"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// Bitmap has one bit for each row or element, the lowest bit of a byte first; 1 is present.
type Bitmap []byte

// NewBitmap returns a bitmap of n bits, all 0.
func NewBitmap(n int) Bitmap { return make(Bitmap, bitmapSize(n)) }

// bitmapSize is the length in bytes of a bitmap of n bits.
func bitmapSize(n int) int { return n/8 + (n&7+7)/8 }

// Get reports whether bit i is set.
func (b Bitmap) Get(i int) bool { return b[i>>3]>>(i&7)&1 != 0 }

// Set sets bit i.
func (b Bitmap) Set(i int) { b[i>>3] |= 1 << (i & 7) }

// Column is the content of a column: typed values for all rows, absent ones included.
//
// Exactly one of the slices of values is used, the one of Type.Element. A scalar column has a value for each row. The
// elements of the array in row i are the values [Offsets[i], Offsets[i+1]). A row or an element that is absent holds the
// empty value: 0, false, "", an array without elements.
type Column struct {
	Tag  int32
	Name string // of the schema; "" where none is known
	Type Type
	Rows int

	Present        Bitmap // of the rows; used when Type.Optional
	ElementPresent Bitmap // of the elements; used when Type.ElementOptional

	Offsets []int32 // Rows+1 of them; used when Type.Kind is Array

	Bools    []bool
	Int32s   []int32 // I32 and Enum
	Int64s   []int64
	Float32s []float32
	Float64s []float64
	Strings  []string // those of one column share memory
	UUIDs    []GUID
}

// Len is the number of values: Rows in a scalar column, the elements of all rows in an array column.
func (c *Column) Len() int {
	switch c.Type.Element {
	case Enum, I32:
		return len(c.Int32s)
	case Bool:
		return len(c.Bools)
	case I64:
		return len(c.Int64s)
	case F32:
		return len(c.Float32s)
	case F64:
		return len(c.Float64s)
	case String:
		return len(c.Strings)
	case UUID:
		return len(c.UUIDs)
	}
	return 0
}

// Has reports whether row i is present.
func (c *Column) Has(i int) bool { return !c.Type.Optional || c.Present.Get(i) }

// HasElement reports whether value i of an array column is present.
func (c *Column) HasElement(i int) bool { return !c.Type.ElementOptional || c.ElementPresent.Get(i) }

// Span is where the values of row i start and end.
func (c *Column) Span(i int) (start, end int) {
	if c.Type.Kind == Scalar {
		return i, i + 1
	}
	return int(c.Offsets[i]), int(c.Offsets[i+1])
}

// setLen makes the slice of values n long.
func (c *Column) setLen(n int) {
	switch c.Type.Element {
	case Enum, I32:
		c.Int32s = make([]int32, n)
	case Bool:
		c.Bools = make([]bool, n)
	case I64:
		c.Int64s = make([]int64, n)
	case F32:
		c.Float32s = make([]float32, n)
	case F64:
		c.Float64s = make([]float64, n)
	case String:
		c.Strings = make([]string, n)
	case UUID:
		c.UUIDs = make([]GUID, n)
	}
}

// writable refuses a column that cannot be written.
func (c *Column) writable() error {
	if c.Tag < 1 {
		return fault.New(fault.Invalid, "tcb", "tag %d, tags start at 1", c.Tag).On(c.label())
	}
	if err := c.Check(); err != nil {
		return err
	}
	for i, s := range c.Strings {
		if !utf8.ValidString(s) {
			return fault.New(fault.Invalid, "tcb", "value %d is no UTF-8: %q", i, s[:min(len(s), 40)]).On(c.label())
		}
	}
	return nil
}

// Check refuses a column whose parts do not fit together: values, bitmaps and offsets of another number than the rows and
// the elements have, or a type that is none. What makes a column of parts calls it before it hands the column on; what this
// package reads, builds and writes is checked. The error is [fault.Invalid].
func (c *Column) Check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "tcb", format, args...).On(c.label())
	}
	t := c.Type
	switch {
	case !t.Element.known() || t.Kind > Array:
		return bad("type %s cannot be written", t)
	case t.ElementOptional && t.Kind == Scalar:
		return bad("a column of scalars has no optional elements")
	case c.Rows < 0 || c.Rows > math.MaxInt32:
		return bad("%d rows, at most %d", c.Rows, math.MaxInt32)
	}
	n := c.Len()
	switch {
	case n > math.MaxInt32:
		return bad("%d values, at most %d", n, math.MaxInt32)
	case t.Kind == Scalar && n != c.Rows:
		return bad("%d values for %d rows", n, c.Rows)
	case t.Optional && len(c.Present) != bitmapSize(c.Rows):
		return bad("a bitmap of %d bytes for %d rows, which need %d", len(c.Present), c.Rows, bitmapSize(c.Rows))
	case t.ElementOptional && len(c.ElementPresent) != bitmapSize(n):
		return bad("a bitmap of %d bytes for %d elements, which need %d", len(c.ElementPresent), n, bitmapSize(n))
	}
	switch {
	case t.Kind == Scalar:
		return nil
	case len(c.Offsets) != c.Rows+1:
		return bad("%d offsets for %d rows, which need one more", len(c.Offsets), c.Rows)
	case c.Offsets[0] != 0 || int(c.Offsets[c.Rows]) != n:
		return bad("offsets from %d to %d for %d elements", c.Offsets[0], c.Offsets[c.Rows], n)
	}
	for i := range c.Rows {
		if c.Offsets[i] > c.Offsets[i+1] {
			return bad("offset %d of row %d is behind the next, %d", c.Offsets[i], i, c.Offsets[i+1])
		}
	}
	return nil
}

// emptyAbsent gives rows and elements that are absent their empty value, and clears the bits behind the bitmaps.
// Values are changed in place.
func (c *Column) emptyAbsent() {
	if c.Type.ElementOptional {
		clearTail(c.ElementPresent, c.Len())
		for i := range absent(c.ElementPresent, c.Len()) {
			c.empty(i, i+1)
		}
	}
	if !c.Type.Optional {
		return
	}
	clearTail(c.Present, c.Rows)
	if c.Type.Kind == Scalar {
		for i := range absent(c.Present, c.Rows) {
			c.empty(i, i+1)
		}
		return
	}
	for i := range absent(c.Present, c.Rows) {
		if c.Offsets[i] != c.Offsets[i+1] {
			c.dropAbsentRows()
			return
		}
	}
}

// dropAbsentRows takes the elements out that rows which are absent have.
func (c *Column) dropAbsentRows() {
	var present Bitmap
	if c.Type.ElementOptional {
		present = NewBitmap(c.Len())
	}
	to := 0
	for i := range c.Rows {
		start, end := c.Span(i)
		c.Offsets[i] = int32(to)
		if !c.Present.Get(i) {
			continue
		}
		if present != nil {
			for j := start; j < end; j++ {
				if c.ElementPresent.Get(j) {
					present.Set(to + j - start)
				}
			}
		}
		c.move(to, start, end)
		to += end - start
	}
	c.Offsets[c.Rows] = int32(to)
	c.cut(to)
	if present != nil {
		c.ElementPresent = present[:bitmapSize(to)]
	}
}

func (c *Column) empty(start, end int) {
	switch c.Type.Element {
	case Enum, I32:
		clear(c.Int32s[start:end])
	case Bool:
		clear(c.Bools[start:end])
	case I64:
		clear(c.Int64s[start:end])
	case F32:
		clear(c.Float32s[start:end])
	case F64:
		clear(c.Float64s[start:end])
	case String:
		clear(c.Strings[start:end])
	case UUID:
		clear(c.UUIDs[start:end])
	}
}

func (c *Column) move(to, start, end int) {
	switch c.Type.Element {
	case Enum, I32:
		copy(c.Int32s[to:], c.Int32s[start:end])
	case Bool:
		copy(c.Bools[to:], c.Bools[start:end])
	case I64:
		copy(c.Int64s[to:], c.Int64s[start:end])
	case F32:
		copy(c.Float32s[to:], c.Float32s[start:end])
	case F64:
		copy(c.Float64s[to:], c.Float64s[start:end])
	case String:
		copy(c.Strings[to:], c.Strings[start:end])
	case UUID:
		copy(c.UUIDs[to:], c.UUIDs[start:end])
	}
}

func (c *Column) cut(n int) {
	switch c.Type.Element {
	case Enum, I32:
		c.Int32s = c.Int32s[:n]
	case Bool:
		c.Bools = c.Bools[:n]
	case I64:
		c.Int64s = c.Int64s[:n]
	case F32:
		c.Float32s = c.Float32s[:n]
	case F64:
		c.Float64s = c.Float64s[:n]
	case String:
		c.Strings = c.Strings[:n]
	case UUID:
		c.UUIDs = c.UUIDs[:n]
	}
}

// clearTail clears the bits of the last byte that stand for nothing.
func clearTail(b Bitmap, n int) {
	if n&7 != 0 {
		b[len(b)-1] &= 1<<(n&7) - 1
	}
}

// absent iterates over the bits of n that are 0, whole bytes of ones at once.
func absent(b Bitmap, n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for k, bits := range b {
			if bits == 0xff {
				continue
			}
			for j := range min(8, n-k*8) {
				if bits>>j&1 == 0 && !yield(k*8+j) {
					return
				}
			}
		}
	}
}

// label names the column in messages.
func (c *Column) label() string { return label(c.Tag, c.Name) }
