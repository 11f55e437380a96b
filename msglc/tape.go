package msglc

import (
	"encoding/binary"
	"errors"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// A tape holds the table of contents while it is made: one record a node, a node before its children, in a map each
// with its key in front. Positions are not on it, since they follow from the sizes: the children of a list follow one
// another, those of a map stand behind their keys.
//
//	leaf           size                     one byte below 192, two below 12,480; else 0xf0, size
//	run of leaves  0xf1, count, size        in lists, leaves of one size
//	blocks         0xf2, head, size, count, length, blocks
//	list, map      0xf3 or 0xf4, head, size, count, length, children
//	block          count, size
//	key            length, bytes
//
// size is the bytes of the whole value, head those in front of its first item or pair, count the children or blocks,
// length the bytes of tape that they take. head is a byte, and the numbers of lists and maps take eight bytes each,
// since they are filled in when the container ends; others are varints.
const (
	tapeShort  = 192
	tapeLeaf   = 0xf0
	tapeRun    = 0xf1
	tapeBlocks = 0xf2
	tapeList   = 0xf3
	tapeMap    = 0xf4

	tapeLong      = tapeShort + (tapeLeaf-tapeShort)<<8 // leaves below take up to two bytes
	tapeTableSize = 1 + 1 + 3*8                         // record of a list or map
)

// tapeBound is how much of a tape stays in memory. A document of 1 GB at the default threshold takes some hundred
// kilobytes; only lists and maps of many millions of children that are not trivial get here.
const tapeBound = 16 << 20

// tape is an append-only run of bytes that can be cut back. What is beyond the bound, the older part, goes to a
// temporary file.
type tape struct {
	dir   string
	bound int
	mem   []byte // the bytes from base on
	base  int64
	file  *source.Temporary // nil until the bound was passed
}

func (t *tape) size() int64 { return t.base + int64(len(t.mem)) }

// appendLeaf appends the record of a leaf.
func (t *tape) appendLeaf(size int64) {
	switch {
	case size < tapeShort:
		t.mem = append(t.mem, byte(size))
	case size < tapeLong:
		n := size - tapeShort
		t.mem = append(t.mem, tapeShort+byte(n>>8), byte(n))
	default:
		t.mem = binary.AppendUvarint(append(t.mem, tapeLeaf), uint64(size))
	}
}

// appendTable appends the record of a list or map.
func (t *tape) appendTable(op byte, head, size, count, length int64) {
	var rec [tapeTableSize]byte
	t.mem = append(t.mem, putTable(&rec, op, head, size, count, length)...)
}

func putTable(rec *[tapeTableSize]byte, op byte, head, size, count, length int64) []byte {
	rec[0], rec[1] = op, byte(head)
	binary.LittleEndian.PutUint64(rec[2:], uint64(size))
	binary.LittleEndian.PutUint64(rec[10:], uint64(count))
	binary.LittleEndian.PutUint64(rec[18:], uint64(length))
	return rec[:]
}

// appendRun appends the record of count leaves of one size.
func (t *tape) appendRun(count, size int64) {
	if count <= 3 {
		for range count {
			t.appendLeaf(size)
		}
		return
	}
	t.mem = binary.AppendUvarint(append(t.mem, tapeRun), uint64(count))
	t.mem = binary.AppendUvarint(t.mem, uint64(size))
}

// appendBlocksHead appends the record of a blocks node, whose blocks must follow.
func (t *tape) appendBlocksHead(head, size, count, length int64) {
	t.mem = append(t.mem, tapeBlocks, byte(head))
	for _, n := range [...]int64{size, count, length} {
		t.mem = binary.AppendUvarint(t.mem, uint64(n))
	}
}

// appendBlock appends one block; it stands on a tape of blocks until its list ends.
func (t *tape) appendBlock(count, size int64) {
	t.mem = binary.AppendUvarint(t.mem, uint64(count))
	t.mem = binary.AppendUvarint(t.mem, uint64(size))
}

// appendKey appends a key, given in two pieces.
func (t *tape) appendKey(a, b []byte) {
	t.mem = binary.AppendUvarint(t.mem, uint64(len(a)+len(b)))
	t.mem = append(append(t.mem, a...), b...)
}

// appendTape appends the bytes of another tape from a place on.
func (t *tape) appendTape(src *tape, from int64) error {
	for r := src.reader(from); r.at() < src.size(); {
		p, err := r.some(src.size() - r.at())
		if err != nil {
			return err
		}
		t.mem = append(t.mem, p...)
		if err := t.settle(); err != nil {
			return err
		}
	}
	return nil
}

// truncate cuts the tape back to size n.
func (t *tape) truncate(n int64) {
	if n >= t.base {
		t.mem = t.mem[:n-t.base]
		return
	}
	t.base, t.mem = n, t.mem[:0]
}

// patch overwrites bytes of the tape.
func (t *tape) patch(off int64, p []byte) error {
	if off < t.base {
		n := min(int64(len(p)), t.base-off)
		if _, err := t.file.WriteAt(p[:n], off); err != nil {
			return t.failed(err)
		}
		p, off = p[n:], off+n
	}
	if len(p) > 0 {
		copy(t.mem[off-t.base:], p)
	}
	return nil
}

// settle brings the memory back below the bound. It is cheap to call after every record.
func (t *tape) settle() error {
	if len(t.mem) <= t.bound {
		return nil
	}
	return t.spill()
}

func (t *tape) spill() error {
	if t.file == nil {
		f, err := source.CreateTemporary(t.dir)
		if err != nil {
			return t.failed(err)
		}
		t.file = f
	}
	// What stays is what is most likely cut off again.
	n := len(t.mem) - t.bound/4
	if _, err := t.file.WriteAt(t.mem[:n], t.base); err != nil {
		return t.failed(err)
	}
	t.base += int64(n)
	rest := t.mem[n:]
	if cap(t.mem) > 4*t.bound { // a long key came by
		t.mem = append(make([]byte, 0, t.bound), rest...)
		return nil
	}
	t.mem = t.mem[:copy(t.mem, rest)]
	return nil
}

// close frees the tape. It may be called again.
func (t *tape) close() {
	t.mem, t.base = nil, 0
	if t.file == nil {
		return
	}
	t.file.Close()
	t.file = nil
}

func (t *tape) failed(err error) error {
	return fault.New(nil, "msglc", "temporary file of the table of contents").Because(err)
}

// tapeReader reads a tape from a place on. The tape must not change meanwhile.
type tapeReader struct {
	t   *tape
	off int64 // of buf[0]
	buf []byte
	pos int
	own []byte // the memory for what comes from the file
}

var errShortTape = errors.New("it is shorter than what was written")

// tapeWindow is how much is read back from the file at once.
const tapeWindow = 64 << 10

func (t *tape) reader(from int64) *tapeReader {
	return &tapeReader{t: t, off: from}
}

// at is the place of the next byte.
func (r *tapeReader) at() int64 { return r.off + int64(r.pos) }

func (r *tapeReader) seek(at int64) {
	if at >= r.off && at <= r.off+int64(len(r.buf)) {
		r.pos = int(at - r.off)
		return
	}
	r.off, r.pos, r.buf = at, 0, nil
}

// need brings n bytes into the window, fewer only where the tape ends.
func (r *tapeReader) need(n int) error {
	if len(r.buf)-r.pos >= n {
		return nil
	}
	return r.fill(n)
}

func (r *tapeReader) fill(n int) error {
	t, at := r.t, r.at()
	if at >= t.base {
		r.buf, r.off, r.pos = t.mem, t.base, int(at-t.base)
		return nil
	}
	size := min(max(int64(n), tapeWindow), t.size()-at)
	if int64(cap(r.own)) < size {
		r.own = make([]byte, size)
	}
	p := r.own[:size]
	m := min(size, t.base-at)
	if _, err := t.file.ReadAt(p[:m], at); err != nil {
		return t.failed(err)
	}
	copy(p[m:], t.mem)
	r.buf, r.off, r.pos = p, at, 0
	return nil
}

// some returns the next bytes, one at least and n at most, and passes them.
func (r *tapeReader) some(n int64) ([]byte, error) {
	if err := r.need(1); err != nil {
		return nil, err
	}
	p := r.buf[r.pos:]
	p = p[:min(int64(len(p)), n)]
	if len(p) == 0 {
		return nil, r.t.failed(errShortTape)
	}
	r.pos += len(p)
	return p, nil
}

// number reads a varint.
func (r *tapeReader) number() (int64, error) {
	if err := r.need(binary.MaxVarintLen64); err != nil {
		return 0, err
	}
	v, n := binary.Uvarint(r.buf[r.pos:])
	if n <= 0 {
		return 0, r.t.failed(errShortTape)
	}
	r.pos += n
	return int64(v), nil
}

// key reads a key. It is valid until the next call.
func (r *tapeReader) key() ([]byte, error) {
	n, err := r.number()
	if err != nil {
		return nil, err
	}
	if err := r.need(int(n)); err != nil {
		return nil, err
	}
	p := r.buf[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return p, nil
}

// record is one record of a tape.
type record struct {
	op     byte // tapeLeaf, tapeRun, tapeBlocks, tapeList or tapeMap
	head   int64
	size   int64
	count  int64
	length int64
}

// record reads a record: the children, or blocks, come next.
func (r *tapeReader) record() (rec record, err error) {
	if err := r.need(tapeTableSize); err != nil {
		return rec, err
	}
	p := r.buf[r.pos:]
	if len(p) == 0 {
		return rec, r.t.failed(errShortTape)
	}
	op := p[0]
	switch {
	case op < tapeShort:
		r.pos++
		return record{op: tapeLeaf, size: int64(op)}, nil
	case op < tapeLeaf:
		r.pos += 2
		return record{op: tapeLeaf, size: int64(op-tapeShort)<<8 + int64(p[1]) + tapeShort}, nil
	case op >= tapeList:
		r.pos += tapeTableSize
		return record{
			op: op, head: int64(p[1]), size: int64(binary.LittleEndian.Uint64(p[2:])),
			count:  int64(binary.LittleEndian.Uint64(p[10:])),
			length: int64(binary.LittleEndian.Uint64(p[18:])),
		}, nil
	}
	r.pos++
	rec.op = op
	switch op {
	case tapeLeaf:
		rec.size, err = r.number()
		return rec, err
	case tapeBlocks:
		rec.head = int64(p[1])
		r.pos++
		if rec.size, err = r.number(); err != nil {
			return rec, err
		}
	}
	if rec.count, err = r.number(); err != nil {
		return rec, err
	}
	if op == tapeBlocks {
		rec.length, err = r.number()
	} else {
		rec.size, err = r.number()
	}
	return rec, err
}
