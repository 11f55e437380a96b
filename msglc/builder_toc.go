package msglc

import (
	"encoding/binary"
	"io"

	"github.com/spilehq/spile/value"
)

// writeTOC writes the encoded table of contents, when the payload is whole, in one pass over the tape
// (docs/format/msglc.md, "Table of contents"), and returns its length in bytes.
func (b *tocBuilder) writeTOC(w io.Writer) (int64, error) {
	if err := b.finish(); err != nil {
		return 0, err
	}
	e := tocEncoder{codec: b.codec, w: w, r: b.children.reader(0)}
	err := e.encode()
	if err == nil {
		err = e.flush()
	}
	return e.written, err
}

// tocEncoder turns a tape into an encoded table.
type tocEncoder struct {
	codec   value.Codec
	w       io.Writer
	r       *tapeReader
	buf     []byte
	written int64
	open    []openNode
}

// openNode is a list or map whose children are being written.
type openNode struct {
	left  int64 // children to come
	pos   int64 // position of the next child, or its key
	end   int64
	isMap bool
}

// tocBuffer is the length of the writes.
const tocBuffer = 256 << 10

func (e *tocEncoder) flush() error {
	n, err := e.w.Write(e.buf)
	e.written += int64(n)
	e.buf = e.buf[:0]
	return err
}

// encode takes the nodes one after another. Not recursive: the depth of the document is the caller's to choose.
func (e *tocEncoder) encode() error {
	pos := int64(0)
	for {
		rec, err := e.r.record()
		if err != nil {
			return err
		}
		end := pos + rec.size
		switch rec.op {
		case tapeLeaf:
			e.leaf(pos, end)
		case tapeRun:
			for range rec.count {
				e.leaf(pos, pos+rec.size)
				pos += rec.size
				if len(e.buf) >= tocBuffer {
					if err := e.flush(); err != nil {
						return err
					}
				}
			}
			end = pos
			e.open[len(e.open)-1].left -= rec.count - 1
		case tapeBlocks:
			if err := e.blocks(pos+rec.head, rec.count); err != nil {
				return err
			}
		default:
			isMap := rec.op == tapeMap
			e.table(isMap, pos, end, rec.count)
			e.open = append(e.open, openNode{left: rec.count, pos: pos + rec.head, end: end, isMap: isMap})
			if isMap {
				if err := e.key(); err != nil {
					return err
				}
			}
			pos = e.open[len(e.open)-1].pos
			continue
		}
		// The node has ended, and with it perhaps those around it.
		for {
			if len(e.open) == 0 {
				return nil
			}
			o := &e.open[len(e.open)-1]
			o.pos = end
			if o.left--; o.left > 0 {
				break
			}
			end = o.end
			e.open = e.open[:len(e.open)-1]
		}
		if len(e.buf) >= tocBuffer {
			if err := e.flush(); err != nil {
				return err
			}
		}
		o := &e.open[len(e.open)-1]
		if o.isMap {
			if err := e.key(); err != nil {
				return err
			}
		}
		pos = o.pos
	}
}

// key copies the key that comes next into the innermost map.
func (e *tocEncoder) key() error {
	key, err := e.r.key()
	if err != nil {
		return err
	}
	e.buf = append(e.buf, key...)
	e.open[len(e.open)-1].pos += int64(len(key))
	return nil
}

// leaf appends a leaf. Nearly all nodes are leaves.
func (e *tocEncoder) leaf(start, end int64) {
	e.buf = binary.BigEndian.AppendUint32(e.buf, nodeShapes[e.codec].leaf)
	e.buf = value.AppendUint(e.buf, e.codec, uint64(start))
	e.buf = value.AppendUint(e.buf, e.codec, uint64(end))
}

// table appends a list or map node, whose n children must follow.
func (e *tocEncoder) table(isMap bool, start, end, n int64) {
	e.buf = value.AppendMapHeader(e.buf, e.codec, 2)
	e.buf = value.AppendString(e.buf, e.codec, "p")
	e.buf = value.AppendArrayHeader(e.buf, e.codec, 2)
	e.buf = value.AppendUint(e.buf, e.codec, uint64(start))
	e.buf = value.AppendUint(e.buf, e.codec, uint64(end))
	e.buf = value.AppendString(e.buf, e.codec, "t")
	if isMap {
		e.buf = value.AppendMapHeader(e.buf, e.codec, int(n))
	} else {
		e.buf = value.AppendArrayHeader(e.buf, e.codec, int(n))
	}
}

// blocks appends a blocks node whose first item is at pos.
func (e *tocEncoder) blocks(pos, n int64) error {
	e.blocksHead(n)
	for range n {
		count, err := e.r.number()
		if err != nil {
			return err
		}
		size, err := e.r.number()
		if err != nil {
			return err
		}
		e.block(count, pos, pos+size)
		pos += size
		if len(e.buf) >= tocBuffer {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// blocksHead appends the head of a blocks node; n blocks must follow.
func (e *tocEncoder) blocksHead(n int64) {
	e.buf = value.AppendMapHeader(e.buf, e.codec, 1)
	e.buf = value.AppendString(e.buf, e.codec, "p")
	e.buf = value.AppendArrayHeader(e.buf, e.codec, int(n))
}

func (e *tocEncoder) block(count, start, end int64) {
	e.buf = value.AppendArrayHeader(e.buf, e.codec, 3)
	for _, n := range [...]int64{count, start, end} {
		e.buf = value.AppendUint(e.buf, e.codec, uint64(n))
	}
}
