package tcb

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
)

// Finding is one thing that [Table.Verify] has to say. A note is no fault of the file: it says what no reader looks at,
// and what the writer of this package would have stored in another way. Neither is what has the class [fault.Limit]: it
// says what was not looked at, since [Limits] does not allow it.
type Finding struct {
	Err  *fault.Error // Where is the column, Offset the place in the file
	Note bool
}

// VerifyOptions are the options of Verify. Nil and the zero value mean the defaults.
type VerifyOptions struct {
	// Deep decodes every block, and compares it with what the writer would have made of the same values. Without it the
	// header and the descriptors alone are looked at.
	Deep bool
}

// Verify reports what is wrong with a file that [Open] has taken, column by column; it goes on behind a bad one, and
// behind one that is beyond the limits. The limit on bytes is one for each column here, and 16 times as many for all of
// them; the columns that are not looked at are named. The error is one of the source or the context, not of the data.
func (t *Table) Verify(ctx context.Context, o *VerifyOptions, report func(Finding)) error {
	deep := o != nil && o.Deep
	say := func(f *fault.Error, note bool) { report(Finding{f.In(t.Name()), note}) }
	for _, f := range t.leftovers() {
		say(f, true)
	}
	tooMany, skipped := t.tooManyRows(), false
	all := verifyReads * min(t.limits.Bytes, math.MaxInt64/verifyReads)
	left := all
	var passed []string // columns that are not looked at since nothing is left
	for _, d := range t.dir.columns {
		if err := ctx.Err(); err != nil {
			return fault.New(nil, "tcb", "").Because(err).In(t.Name())
		}
		err := checkFloor(d, t.dir.rows)
		var blocks [][]byte
		var c *Column
		if err == nil {
			if !deep {
				continue
			}
			if tooMany != nil {
				skipped = true
				continue
			}
			if left <= 0 {
				passed = append(passed, label(d.Tag, ""))
				continue
			}
			if blocks, _, err = t.blocks(ctx, []Descriptor{d}); err != nil {
				return fault.Locate(err, t.Name(), "", 0)
			}
			bud := newBudget(t.limits.Bytes)
			c, err = decodeBlock(blocks[0], d, t.dir.rows, bud, false)
			left -= bud.all - bud.left.Load()
		}
		if err != nil {
			f, ok := errors.AsType[*fault.Error](fault.Locate(err, t.Name(), label(d.Tag, ""), d.Offset))
			if !ok {
				return err
			}
			if f.Offset < 0 {
				f.At(d.Offset)
			}
			say(f, false)
			continue
		}
		for _, f := range lint(c, d, blocks[0]) {
			say(f.On(label(d.Tag, "")).At(d.Offset), true)
		}
	}
	if skipped {
		say(tooMany, false)
	}
	if n := len(passed); n > 0 {
		const most = 10
		names := strings.Join(passed[:min(n, most)], ", ")
		if n > most {
			names += " and " + strconv.Itoa(n-most) + " more"
		}
		say(fault.New(fault.Limit, "tcb", "%s: not looked at, the columns in front decode to %d bytes; Limits.Bytes allows more", names, all-left), false)
	}
	return nil
}

// verifyReads is how many times what one read may decode Verify decodes, of all columns.
const verifyReads = 16

// leftovers are the things in front of the blocks that no reader looks at.
func (t *Table) leftovers() []*fault.Error {
	var out []*fault.Error
	note := func(at int64, format string, args ...any) {
		out = append(out, fault.New(fault.Invalid, "tcb", format, args...).At(at))
	}
	if !t.seal.Encrypted {
		if c := t.stored[cipherAt]; c != 0 {
			note(cipherAt, "the cipher is %d, and the file is not encrypted", c)
		}
		if !isZero(t.stored[nonceAt:macAt]) {
			note(nonceAt, "there is a nonce, and the file is not encrypted")
		}
		if k := t.stored[keyCheckAt:HeaderSize]; string(k) != magic {
			note(keyCheckAt, "the key check is % x, not % x", k, magic)
		}
	}
	if t.dir.form == countForm {
		note(HeaderSize, "each descriptor has a count, as in an old description of the format")
	}
	size := int64(HeaderSize + wire.Varint32Size(int32(t.dir.rows)) + wire.Varint32Size(int32(len(t.dir.columns))))
	var last int32
	ascending := true
	blocks := t.obj.Size()
	for i, d := range t.dir.columns {
		size += int64(len(appendDescriptor(nil, d)))
		ascending = ascending && d.Tag > last
		last = d.Tag
		if i == 0 {
			blocks = d.Offset
		}
	}
	if t.dir.form == plainForm && blocks != size {
		note(HeaderSize, "the counts and descriptors take %d bytes, their shortest form %d", blocks-HeaderSize, size-HeaderSize)
	}
	if !ascending {
		note(HeaderSize, "the tags do not ascend")
	}
	return out
}

// lint says where a block is not what the writer would have made of its values.
func lint(c *Column, d Descriptor, block []byte) []*fault.Error {
	var out []*fault.Error
	note := func(format string, args ...any) {
		out = append(out, fault.New(fault.Invalid, "tcb", format, args...))
	}
	bad := 0
	for _, s := range c.Strings {
		if !utf8.ValidString(s) {
			bad++
		}
	}
	if bad > 0 {
		note("%d of %d strings are no UTF-8", bad, len(c.Strings))
	}
	switch e := encodeColumn(c); {
	case bytes.Equal(e.bytes, block) && e.enc == d.Encoding:
	case e.enc != d.Encoding:
		note("is stored in %s, %d bytes; the writer's choice is %s, %d bytes", d.Encoding, len(block), e.enc, len(e.bytes))
	default:
		note("is stored in %s, %d bytes, not in the form that the writer gives it, %d bytes", d.Encoding, len(block), len(e.bytes))
	}
	return out
}
