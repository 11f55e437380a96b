package tcb

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
)

// budget is what one read may still allocate for columns. It is shared by columns that are decoded in parallel.
type budget struct {
	left atomic.Int64
	all  int64
}

func newBudget(n int64) *budget {
	b := &budget{all: n}
	b.left.Store(n)
	return b
}

// take takes n values of size bytes each. What is refused is not taken, so that it is refused for some column, whatever
// their order, exactly when all of them need more than there is.
func (b *budget) take(n, size int64) error {
	need := n * size
	if need > math.MaxInt {
		return fault.New(fault.Limit, "tcb", "decodes to %d bytes, more than a program of %d bits holds", need, bits.UintSize)
	}
	for {
		left := b.left.Load()
		if need > left {
			return fault.New(fault.Limit, "tcb", "decodes to more than the %d bytes that one read may allocate; Limits.Bytes allows more", b.all)
		}
		if b.left.CompareAndSwap(left, left-need) {
			return nil
		}
	}
}

// block is a cursor over the bytes of one block. Offsets in errors are those in the block.
type block struct {
	p      []byte
	pos    int
	budget *budget
	utf8   bool // refuse strings that are no UTF-8
	own    bool // p belongs to the read, and most of what was fetched with it is p: values can stay where they are
}

func (b *block) left() int { return len(b.p) - b.pos }

// fail is a fault at the cursor.
func (b *block) fail(check, format string, args ...any) error {
	return failed(check, format, args...).At(int64(b.pos))
}

// badVarint is the error for a number that cannot be read at pos.
func badVarint(pos, n int) error {
	if n < 0 {
		return failed("sec2", "a number wider than its type").At(int64(pos))
	}
	return failed("D1", "the block ends inside a number").At(int64(pos))
}

// counter reads a counter32. Most take one byte.
func (b *block) counter() (int32, error) {
	if p := b.p[b.pos:]; len(p) > 0 && p[0] < 0x80 {
		b.pos++
		return wire.UnZigZag32(uint32(p[0])), nil
	}
	v, n := wire.Varint32(b.p[b.pos:])
	if n <= 0 {
		return 0, badVarint(b.pos, n)
	}
	b.pos += n
	return v, nil
}

// count reads the count of things that each take a byte at least.
func (b *block) count(what string) (int, error) {
	at := b.pos
	v, err := b.counter()
	switch {
	case err != nil:
		return 0, err
	case v < 0:
		return 0, failed("D4", "the %s is %d", what, v).At(int64(at))
	case int(v) > b.left():
		return 0, failed("D1", "the %s is %d, and %d bytes are left", what, v, b.left()).At(int64(at))
	}
	return int(v), nil
}

// byte reads a byte.
func (b *block) byte(what string) (byte, error) {
	if b.left() == 0 {
		return 0, b.fail("D1", "the block ends in front of the %s", what)
	}
	b.pos++
	return b.p[b.pos-1], nil
}

// bytes reads n bytes.
func (b *block) bytes(n int64, what string) ([]byte, error) {
	if n > int64(b.left()) {
		return nil, b.fail("D1", "%s of %d bytes, and %d are left", what, n, b.left())
	}
	b.pos += int(n)
	return b.p[b.pos-int(n) : b.pos], nil
}

// enough refuses n values that take size bytes each at least when so many are not left. It comes before what they are
// decoded into is allocated.
func (b *block) enough(n int, size int64) error {
	if int64(n)*size > int64(b.left()) {
		return b.fail("D1", "%d values of %d bytes at least, and %d bytes are left", n, size, b.left())
	}
	return nil
}

// decodeBlock decodes the block of a column.
func decodeBlock(p []byte, d Descriptor, rows int, bud *budget, strict bool) (*Column, error) {
	return (&block{p: p, budget: bud, utf8: strict}).column(d, rows)
}

// column decodes all of the block.
func (b *block) column(d Descriptor, rows int) (*Column, error) {
	if err := checkType(d); err != nil {
		return nil, err
	}
	t := d.Type
	c := &Column{Tag: d.Tag, Type: t, Rows: rows}
	var err error
	if t.Optional {
		if c.Present, err = b.bitmap(rows, "rows"); err != nil {
			return nil, err
		}
	}
	elements := -1
	if t.ElementOptional {
		at := b.pos
		n, err := b.counter()
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, failed("D9", "the bitmap of elements has %d bits", n).At(int64(at))
		}
		elements = int(n)
		if c.ElementPresent, err = b.bitmap(elements, "elements"); err != nil {
			return nil, err
		}
	}
	if t.Kind == Scalar {
		err = b.values(c, d.Encoding, rows)
	} else {
		err = b.array(c, d.Encoding, rows, elements)
	}
	if err != nil {
		return nil, err
	}
	if b.left() > 0 {
		return nil, b.fail("D10", "the block has %d bytes behind its values", b.left())
	}
	c.emptyAbsent()
	return c, nil
}

// checkType refuses a column that cannot be decoded, whatever is in its block.
func checkType(d Descriptor) error {
	t := d.Type
	switch {
	case !t.Element.known() || t.Kind > Array:
		return failed("C4", "is of the type %s, which this version does not define", t)
	case t.ElementOptional && t.Kind == Scalar:
		return failed("C1", "is a column of scalars with optional elements")
	case int(d.Encoding) >= len(encodingNames):
		return failed("C4", "is stored in %s, which this version does not define", d.Encoding)
	case !t.allows(d.Encoding):
		return failed("C4", "is stored in the encoding %s (%d), which a column of %s cannot have", d.Encoding, uint8(d.Encoding), typeName(t))
	}
	return nil
}

// checkFloor is checkType, and refuses a block that has fewer bytes than its encoding takes for so many rows. It looks at
// the descriptor alone.
func checkFloor(d Descriptor, rows int) error {
	if err := checkType(d); err != nil {
		return err
	}
	var size int64 // of a row, at least
	switch d.Encoding {
	case Raw:
		if size = 1; d.Type.Kind == Scalar {
			size, _ = d.Type.Element.rawSize()
		}
	case Varint, Delta, Dict, DictFront, DictSeg:
		size = 1
	}
	if int64(rows)*size > d.Size {
		return failed("D1", "%d rows take %d bytes at least in %s, and the block has %d", rows, int64(rows)*size, d.Encoding, d.Size).At(0)
	}
	return nil
}

// typeName is a type without what can be absent.
func typeName(t Type) string {
	t.Optional, t.ElementOptional = false, false
	return t.String()
}

// values decodes n values of the column's element, stored as those of a scalar column.
func (b *block) values(c *Column, enc Encoding, n int) error {
	size, _ := c.Type.Element.rawSize()
	switch enc {
	case Raw, Varint:
		if enc == Varint {
			size = 1
		}
		if err := b.enough(n, size); err != nil {
			return err
		}
	case Delta:
		if err := b.enough(n, 1); err != nil {
			return err
		}
	}
	if err := b.budget.take(int64(n), c.Type.Element.size()); err != nil {
		return err
	}
	switch c.Type.Element {
	case Enum, I32:
		return b.int32s(c, enc, n)
	case Bool:
		return b.bools(c, enc, n)
	case I64:
		return b.int64s(c, enc, n)
	case F32:
		return b.float32s(c, enc, n)
	case F64:
		return b.float64s(c, enc, n)
	case String:
		return b.strings(c, enc, n)
	}
	return b.guids(c, n)
}

// checkUTF8 refuses text that is no UTF-8 when that is asked for. at is where the text starts.
func (b *block) checkUTF8(s string, at int) error {
	if b.utf8 && !utf8.ValidString(s) {
		return failed("text", "a string that is no UTF-8").At(int64(at))
	}
	return nil
}
