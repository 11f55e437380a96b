package tcb

import (
	"encoding/binary"
	"math"

	"github.com/spilehq/spile/internal/wire"
)

// array decodes an array column of rows rows. elements is how many elements its bitmap has, -1 without one.
func (b *block) array(c *Column, enc Encoding, rows, elements int) error {
	if err := b.budget.take(int64(rows)+1, 4); err != nil {
		return err
	}
	if enc == Raw {
		if err := b.enough(rows, 1); err != nil {
			return err
		}
		return b.rawArray(c, rows, elements)
	}
	inner, err := b.byte("encoding of the elements")
	if err != nil {
		return err
	}
	elem := Encoding(inner)
	if !(Type{Element: c.Type.Element}).allows(elem) {
		b.pos--
		return b.fail("D5", "elements of %s are stored in %s (%d), which they cannot be", c.Type.Element, elem, inner)
	}
	lengths, err := b.byte("encoding of the lengths")
	if err != nil {
		return err
	}
	if e := Encoding(lengths); e != Raw && e != RLE {
		b.pos--
		return b.fail("D5", "lengths are stored in %s (%d), where 0 or 3 can be", e, lengths)
	} else if e == Raw {
		if err := b.enough(rows, 1); err != nil {
			return err
		}
	}
	c.Offsets = make([]int32, rows+1)
	var sum int64
	s := b.ints(Encoding(lengths), rows)
	var buf [chunk]int32
	for at := 0; at < rows; {
		v := buf[:min(chunk, rows-at)]
		if err := s.fill(v); err != nil {
			return err
		}
		for i, n := range v {
			if n < 0 {
				return b.fail("D8", "row %d has %d elements", at+i, n)
			}
			if sum += int64(n); sum > math.MaxInt32 {
				return b.fail("D7", "%d elements, at most %d", sum, math.MaxInt32)
			}
			c.Offsets[at+i+1] = int32(sum)
		}
		at += len(v)
	}
	if err := b.sameElements(elements, sum); err != nil {
		return err
	}
	return b.values(c, elem, int(sum))
}

// sameElements refuses a bitmap of elements that is not one of the elements there are.
func (b *block) sameElements(bitmap int, sum int64) error {
	if bitmap >= 0 && int64(bitmap) != sum {
		return b.fail("D9", "the bitmap has %d elements, the rows have %d", bitmap, sum)
	}
	return nil
}

// rawArray decodes rows of lengths and elements. The first pass finds the lengths, the second decodes, row after row.
func (b *block) rawArray(c *Column, rows, elements int) error {
	c.Offsets = make([]int32, rows+1)
	start := b.pos
	var sum int64
	size, fixed := c.Type.Element.rawSize()
	for i := range rows {
		at := b.pos
		n, err := b.counter()
		switch {
		case err != nil:
			return err
		case n < 0:
			return failed("D8", "row %d has %d elements", i, n).At(int64(at))
		case int64(n)*size > int64(b.left()):
			return failed("D1", "row %d has %d elements, and %d bytes are left", i, n, b.left()).At(int64(at))
		}
		sum += int64(n) // no more than there are bytes in the block
		c.Offsets[i+1] = int32(sum)
		switch {
		case fixed:
			b.pos += int(n) * int(size)
		case c.Type.Element == String:
			for range n {
				if _, _, err := b.string(); err != nil {
					return err
				}
			}
		default:
			for range n {
				if _, err := b.counter(); err != nil {
					return err
				}
			}
		}
	}
	if err := b.sameElements(elements, sum); err != nil {
		return err
	}
	if err := b.budget.take(sum, c.Type.Element.size()); err != nil {
		return err
	}
	c.setLen(int(sum))
	end := b.pos
	text := ""
	if c.Type.Element == String {
		text = string(b.p[start:end])
	}
	b.pos = start
	for i := range rows {
		from, to := c.Span(i)
		b.counter() // the length, in whatever form it has
		b.rawRow(c, from, to, text, start)
	}
	b.pos = end
	return nil
}

// rawRow decodes elements that the first pass has checked. text is the block from start on.
func (b *block) rawRow(c *Column, from, to int, text string, start int) {
	p := b.p[b.pos:]
	switch c.Type.Element {
	case Enum:
		for i := from; i < to; i++ {
			c.Int32s[i], _ = b.counter()
		}
		return
	case String:
		for i := from; i < to; i++ {
			s, e, _ := b.string()
			c.Strings[i] = text[s-start : e-start]
		}
		return
	case Bool:
		for i := from; i < to; i++ {
			c.Bools[i] = p[i-from] != 0
		}
	case I32:
		for i := from; i < to; i++ {
			c.Int32s[i] = int32(binary.LittleEndian.Uint32(p[4*(i-from):]))
		}
	case F32:
		for i := from; i < to; i++ {
			c.Float32s[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*(i-from):]))
		}
	case I64:
		for i := from; i < to; i++ {
			c.Int64s[i] = int64(binary.LittleEndian.Uint64(p[8*(i-from):]))
		}
	case F64:
		for i := from; i < to; i++ {
			c.Float64s[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*(i-from):]))
		}
	case UUID:
		for i := from; i < to; i++ {
			c.UUIDs[i] = GUID(p[16*(i-from):])
		}
	}
	size, _ := c.Type.Element.rawSize()
	b.pos += int(size) * (to - from)
}

// lengths are the numbers of elements of all rows.
func (c *Column) lengths() []int32 {
	out := make([]int32, c.Rows)
	for i := range out {
		out[i] = c.Offsets[i+1] - c.Offsets[i]
	}
	return out
}

// appendRawArray appends rows of lengths and elements.
func (c *Column) appendRawArray(dst []byte) []byte {
	for i := range c.Rows {
		from, to := c.Span(i)
		dst = wire.AppendVarint32(dst, int32(to-from))
		dst = c.appendRaw(dst, from, to)
	}
	return dst
}
