package value

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// JSONReadOptions says how JSON text is read. The zero value is the default.
type JSONReadOptions struct {
	Limits   Limits
	Lossless bool // the first loss is an error of class fault.Invalid
	KeepDup  bool // keys that occur twice in one object are all kept; the encoding is then no msglc payload

	InvalidUTF8 UTF8Mode // strings, keys among them, that are not UTF-8
}

// ReadJSON reads the JSON text in the first size bytes of src, which must be one value with nothing but white space
// around it, and writes its encoding to dst. A nil o means the defaults; losses are counted in loss unless it is nil.
//
// An integer keeps every digit: in CBOR one beyond 64 bits is a bignum, in msgpack it is an error of class
// fault.Invalid. A number with a fraction or an exponent is a float64; it is an error where it is too large for one,
// and a loss where the float64 stands for other digits. -0 is the integer 0, a loss; -0.0 keeps its sign. Text that is
// not JSON by RFC 8259, or its strings UTF-8 (unless UTF8Replace is set: then a byte that belongs to no character, and
// the escape of half a surrogate pair, becomes U+FFFD, a loss), is an error of class fault.Corrupt; a key that occurs
// twice in one object is one of class fault.Conflict, unless KeepDup is set. Errors name the line, the column and the
// offset. A byte order mark at the start is skipped. A number of more than 640 KiB of text and a key of more than 16
// MiB are refused.
//
// Lengths come before content in both encodings, so src is read twice when it is long: first for the number of items of
// the long containers. The memory does not grow with the text, apart from the keys of objects that are open: those are
// kept up to a limit, beyond it a filter takes over and suspects are looked up by reading src again.
func ReadJSON(dst io.Writer, src io.ReaderAt, size int64, c Codec, o *JSONReadOptions, loss *Losses) error {
	r := new(jsonReader)
	r.reset(c, o, loss)
	r.size = size
	if size <= minLong {
		r.buf = make([]byte, size)
		if err := readFull(src, r.buf, 0); err != nil {
			return r.located(err)
		}
		if err := r.read(); err != nil {
			return r.located(err)
		}
		_, err := dst.Write(r.out)
		return err
	}
	r.limits.long = longLimit(size)
	return r.located(r.stream(dst, src))
}

// stream reads a text that is too long to be in memory.
func (r *jsonReader) stream(dst io.Writer, src io.ReaderAt) error {
	longs, err := prescan(src, r.size, r.limits, r.lim.depth())
	if err != nil {
		return err
	}
	r.src, r.dst, r.longs = src, dst, longs
	r.buf = make([]byte, 0, r.limits.window)
	return r.read()
}

// AppendFromJSON appends the encoding of the JSON text to dst, see [ReadJSON]. On an error it returns dst as it was.
func AppendFromJSON(dst []byte, c Codec, text []byte, o *JSONReadOptions, loss *Losses) ([]byte, error) {
	r := jsonReaders.Get().(*jsonReader)
	r.reset(c, o, loss)
	r.buf, r.size = text, int64(len(text))
	r.out = dst
	err := r.located(r.read())
	if err == nil {
		dst = r.out
	}
	r.forget()
	jsonReaders.Put(r)
	return dst, err
}

// jsonReaders keeps the stacks of readers, and the shapes they have learned, for the next call of AppendFromJSON.
var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

// jsonReader is one conversion of JSON text.
//
// The head of a container holds the number of its items, which the text tells at its end. For a long container the
// pre-scan has counted them. For others one byte is left free, and the text up to the end of the outermost of them is
// kept in out; that is the whole head when there are few items. Longer heads are put in when out is written.
type jsonReader struct {
	codec    Codec
	lim      Limits
	lossless bool
	losses   *Losses
	// keepTwins leaves out the comparison of keys.
	keepTwins bool
	replace   bool  // what is not UTF-8
	check     bool  // out is dropped, suspect keys are compared
	stop      int64 // offset at which a check is done

	limits readLimits
	src    io.ReaderAt // nil when buf is all the text
	size   int64
	buf    []byte // the window
	pos    int    // of the next byte in buf
	base   int64  // offset of buf[0]

	dst     io.Writer // nil when the encoding stays in out
	out     []byte
	pending int // open containers whose heads are not known
	wide    []wideHead
	longs   []longContainer // those that were not begun yet

	open []readFrame

	keys    keyset.Set
	learned keyShapes
	root    [CBOR + 1]shapePlace
	text    []byte // a decoded string
}

// readLimits is how much of the text is in memory; tests make it small.
type readLimits struct {
	window int   // bytes of text, more only for a long key or number
	ahead  int   // see minAhead
	long   int64 // bytes of a container beyond which the pre-scan counts its items
}

// readFrame is an open container.
type readFrame struct {
	isMap bool
	known bool // the head is written, for count items
	n     int  // items or keys that have begun
	count int
	at    int // of the head in out
	start int64

	shape *keyShape
	next  int
	key   int
	hits  uint64
	slot  *shapePlace
	keys  keyset.Map
}

// wideHead is a head that takes more than the byte that was left for it.
type wideHead struct {
	at    int
	n     int
	isMap bool
}

const jsonFlush = 64 << 10

func (r *jsonReader) reset(c Codec, o *JSONReadOptions, loss *Losses) {
	var opts JSONReadOptions
	if o != nil {
		opts = *o
	}
	r.codec, r.lim, r.lossless, r.keepTwins, r.losses = c, opts.Limits, opts.Lossless, opts.KeepDup, loss
	r.replace = opts.InvalidUTF8 == UTF8Replace
	r.check, r.stop = false, math.MaxInt64
	r.src, r.pos, r.base = nil, 0, 0
	r.limits = readLimits{window: jsonWindow, ahead: minAhead}
	r.dst, r.pending, r.wide, r.longs = nil, 0, r.wide[:0], nil
	r.open = r.open[:0]
	r.keys.Reset(keyset.Reread)
	if r.learned.learned >= maxLearnedKeys/2 {
		r.learned, r.root = keyShapes{}, [CBOR + 1]shapePlace{}
	}
}

// forget drops what a reader that waits for its next use must not keep.
func (r *jsonReader) forget() {
	const much = 1 << 20
	r.buf, r.out, r.losses = nil, nil, nil
	if r.keys.Reset(keyset.Reread); r.keys.Memory() > much {
		r.keys = keyset.Set{}
	}
	if cap(r.text) > much {
		r.text = nil
	}
	if cap(r.wide) > much/16 {
		r.wide = nil
	}
}

// read reads the text and writes, or leaves in out, its encoding.
func (r *jsonReader) read() error {
	if err := r.parse(); err != nil {
		return err
	}
	if err := r.lookUp(math.MaxInt64); err != nil {
		return err
	}
	return r.emit()
}

// offset is the offset of the next byte.
func (r *jsonReader) offset() int64 { return r.base + int64(r.pos) }

// fill moves the window so that it starts at pos and makes it full. It makes it longer when pos is its start already.
// It returns false at the end of the text.
func (r *jsonReader) fill() (bool, error) {
	next := r.base + int64(len(r.buf))
	if r.src == nil || next >= r.size {
		return false, nil
	}
	if r.pos == 0 && len(r.buf) == cap(r.buf) {
		r.buf = slices.Grow(r.buf, cap(r.buf))
	}
	rest := copy(r.buf[:cap(r.buf)], r.buf[r.pos:])
	r.base += int64(r.pos)
	r.pos = 0
	n := int(min(int64(cap(r.buf)-rest), r.size-next))
	r.buf = r.buf[:rest+n]
	if err := readFull(r.src, r.buf[rest:], next); err != nil {
		r.buf = r.buf[:rest]
		return false, err
	}
	return true, nil
}

// emit writes what is in out, when nothing in it waits for the end of a container.
func (r *jsonReader) emit() error {
	r.settle()
	if r.check {
		r.out = r.out[:0]
		return nil
	}
	if r.dst == nil {
		return nil
	}
	_, err := r.dst.Write(r.out)
	r.out = r.out[:0]
	return err
}

// settle puts the wide heads into out. It goes from the end to the start, so that each byte moves once.
func (r *jsonReader) settle() {
	if len(r.wide) == 0 {
		return
	}
	slices.SortFunc(r.wide, func(a, b wideHead) int { return cmp.Compare(a.at, b.at) })
	var head [MaxHead]byte
	grow := 0
	for _, w := range r.wide {
		grow += len(w.append(head[:0], r.codec)) - 1
	}
	src := len(r.out)
	r.out = append(r.out, make([]byte, grow)...)
	dst := len(r.out)
	for i := len(r.wide) - 1; i >= 0; i-- {
		w := &r.wide[i]
		n := src - w.at - 1
		copy(r.out[dst-n:dst], r.out[w.at+1:src])
		dst -= n
		h := w.append(head[:0], r.codec)
		dst -= copy(r.out[dst-len(h):], h)
		src = w.at
	}
	r.wide = r.wide[:0]
}

func (w *wideHead) append(b []byte, c Codec) []byte {
	if w.isMap {
		return AppendMapHeader(b, c, w.n)
	}
	return AppendArrayHeader(b, c, w.n)
}

// lookUp takes the second look at keys up to the one at offset stop by reading the text again.
func (r *jsonReader) lookUp(stop int64) error {
	return r.keys.LookUp(func(look *keyset.Set) error {
		sub := &jsonReader{codec: CBOR, lim: r.lim, replace: r.replace, check: true, stop: stop, src: r.src, size: r.size, buf: r.buf,
			limits: r.limits, keys: *look}
		if r.src != nil {
			sub.buf = make([]byte, 0, r.limits.window)
		}
		if err := sub.parse(); err != errStopped {
			return err
		}
		return nil
	})
}

var errStopped = errors.New("value: check is done")

// lost counts a loss, or refuses it.
func (r *jsonReader) lost(kind LossKind, offset int64) error {
	if r.check {
		return nil
	}
	if r.lossless {
		return lossFault(kind, "", offset)
	}
	if r.losses != nil {
		r.losses.Add(kind, "", offset)
	}
	return nil
}

// located gives an error its line and column.
func (r *jsonReader) located(err error) error {
	e, ok := err.(*fault.Error)
	if !ok || e.Offset < 0 || e.Where != "" {
		return err
	}
	line, column := int64(1), e.Offset+1
	for off := int64(0); off < e.Offset; {
		n := min(e.Offset-off, jsonWindow)
		var piece []byte
		if r.src != nil {
			piece = slices.Grow(r.buf[:0], jsonWindow)[:n]
			if readFull(r.src, piece, off) != nil {
				return err
			}
		} else {
			piece = r.buf[off : off+n]
		}
		line += int64(bytes.Count(piece, []byte{'\n'}))
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 {
			column = e.Offset - (off + int64(i))
		}
		off += n
	}
	return e.On(fmt.Sprintf("line %d, column %d", line, column))
}
