package value

import (
	"encoding/binary"
	"io"
	"math"
	"math/big"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/box"
)

// Decode decodes data, which must hold exactly one value and nothing behind it. The Go types are listed at [ExtValue].
//
// Floats of any width become float64, text must be UTF-8. Of two pairs with the same key the last one wins. A
// timestamp, a time tag or a big number whose content makes no sense stays what it is on the wire: an [ExtValue] or a
// [TagValue]. The values share no memory with data. Short strings of a document share blocks of a few KiB, and the
// interfaces of 32 numbers or strings share one piece of memory: one that is kept for long keeps what it shares; a
// copy of the number, or strings.Clone, keeps nothing else.
//
// A container of more than half a MiB is decoded by several goroutines, GOMAXPROCS at most, which end before Decode
// returns. They change neither the value nor the error.
func Decode(c Codec, data []byte, lim Limits) (any, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	d := decoders.Get().(*decoder)
	defer d.release()
	return d.document(c, data, lim)
}

func (d *decoder) document(c Codec, data []byte, lim Limits) (any, error) {
	s := &d.scanner
	s.Reset(c, data, lim)
	v, err := d.next(s)
	if err != nil {
		return nil, notEmpty(err)
	}
	if err := d.atEnd(s); err != nil {
		return nil, err
	}
	return v, nil
}

// DecodeNext decodes the next value of s as [Decode] does. Where no value is left, at the end of the input or of the
// container that is open, it returns [io.EOF]; behind the end of a container, s goes on in the container around it.
func DecodeNext(s *Scanner) (any, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	return d.next(s)
}

// check refuses a codec that is none.
func (c Codec) check() error {
	if c != Msgpack && c != CBOR {
		return fault.New(fault.Invalid, "value", "%s, known are msgpack and cbor", c)
	}
	return nil
}

// notEmpty turns the end of the input before the first byte into a fault.
func notEmpty(err error) error {
	if err == io.EOF {
		return errTruncated(0, "a value", 1)
	}
	return err
}

// Sizes of the decoder's memory, by measurement on documents of records: tables that hold the keys of any sane schema,
// and blocks of text large enough that their allocation does not show, small enough that a string that outlives its
// document keeps little.
const (
	slots        = 256
	maxSharedKey = 64
	textBlock    = 4 << 10
	maxShared    = textBlock / 8 // a longer string has memory of its own
)

// maxHint bounds the room that is made ahead for the pairs of a map. A pair needs two bytes of input and takes up
// to 80 bytes of room, and a map whose keys are all the same would need none of it.
const maxHint = 1 << 12

// room is the number of items that get memory when a container opens: all of them where the scanner has checked that
// each has a byte at least, a few where more input may come and the count is only a claim.
func room(s *Scanner) int {
	if s.src != nil {
		return max(0, min(s.Len, 64))
	}
	return max(0, s.Len)
}

// maxBigBytes bounds the content of a tag that becomes a big.Int. Beyond, it stays a TagValue: text of such a number
// costs more than linear time, and nobody means a number by it.
const maxBigBytes = 8 << 10

// decoder is the state of decoding that is worth keeping between calls.
type decoder struct {
	scanner Scanner
	stack   []frame
	typed   []typedFrame
	text    strings.Builder // the block that new strings are cut from
	keys    [slots]keySlot  // keys that were seen, by hash
	long    [slots]string   // the same of more than maxWords bytes
	texts   [slots]textSlot // short strings that were seen, by hash
	kept    int             // slots of texts that were written, the first of them in filled
	filled  [16]uint8
	floats  box.Slab[float64]
	ints    box.Slab[int64]
	uints   box.Slab[uint64]
	strings box.Slab[string] // short ones, so that a slab keeps no more than its blocks of text
	split   splitting
	scratch []byte // of encodedKey
	open    []bool // of encodedKey: containers of indefinite length
}

var decoders = sync.Pool{New: func() any { return &decoder{split: usualSplit} }}

// keySlot is a key with its words.
type keySlot struct {
	x, y uint64
	text string
}

// textSlot is a boxed string with its words and length.
type textSlot struct {
	x, y, n uint64
	boxed   any
}

// frame is a container or a tag that is open.
type frame struct {
	kind  Kind // Array, Map or Tag
	list  []any
	named map[string]any // a map whose keys are strings so far
	mixed map[any]any    // any other
	name  string         // the key whose value comes next, in named
	key   any            // the same in mixed
	tag   uint64
}

// release gives d back without anything of the document, other than keys and the rest of a text block.
func (d *decoder) release() {
	d.scanner.Reset(0, nil, Limits{})
	for i, frames := 0, d.stack[:cap(d.stack)]; i < len(frames) && frames[i].kind != Invalid; i++ {
		frames[i] = frame{} // those that were used are the first ones
	}
	for i, frames := 0, d.typed[:cap(d.typed)]; i < len(frames) && frames[i].plan != nil; i++ {
		frames[i] = typedFrame{}
	}
	const keep = 64 // frames; a pool is not the place for the stack of a hostile document
	if cap(d.stack) > keep {
		d.stack = nil
	}
	if cap(d.typed) > keep {
		d.typed = nil
	}
	if cap(d.scratch) > textBlock {
		d.scratch = nil
	}
	if d.kept > len(d.filled) {
		clear(d.texts[:])
	} else {
		for _, i := range d.filled[:d.kept] {
			d.texts[i] = textSlot{}
		}
	}
	d.kept = 0
	d.split = usualSplit
	d.stack, d.typed = d.stack[:0], d.typed[:0]
	decoders.Put(d)
}

func (d *decoder) next(s *Scanner) (any, error) {
	if err := s.Next(); err != nil {
		return nil, d.place(err)
	}
	if s.Kind == End {
		return nil, io.EOF
	}
	return d.value(s)
}

// atEnd checks that nothing follows the value.
func (d *decoder) atEnd(s *Scanner) error {
	if n := len(s.buf) - s.pos; n > 0 {
		return fault.New(fault.Corrupt, "value", "%d bytes follow the value", n).At(s.Offset())
	}
	return nil
}

// value decodes the value whose first token s holds.
func (d *decoder) value(s *Scanner) (any, error) {
	base := len(d.stack)
	for {
		var v any
		switch s.Kind {
		case String:
			text, ok := d.textValue(s.Data)
			if !ok {
				return nil, d.place(notUTF8(s))
			}
			v = text
		case Array:
			d.stack = append(d.stack, frame{kind: Array, list: make([]any, 0, room(s))})
			if d.maySplit(s) {
				d.splitOpen(s, &d.stack[len(d.stack)-1], len(d.stack)-base)
			}
			goto next
		case Map:
			d.stack = append(d.stack, frame{kind: Map, named: make(map[string]any, min(room(s), maxHint))})
			if d.maySplit(s) {
				d.splitOpen(s, &d.stack[len(d.stack)-1], len(d.stack)-base)
			}
			goto next
		case Tag:
			d.stack = append(d.stack, frame{kind: Tag, tag: s.Bits})
			goto next
		case End:
			top := &d.stack[len(d.stack)-1]
			switch {
			case top.kind == Array:
				v = top.list
			case top.mixed != nil:
				v = top.mixed
			default:
				v = top.named
			}
			d.stack = d.stack[:len(d.stack)-1]
		default:
			v = d.scalar(&s.Token)
		}
	put:
		if len(d.stack) == base {
			return v, nil
		}
		switch top := &d.stack[len(d.stack)-1]; {
		case top.kind == Array:
			top.list = append(top.list, v)
		case top.kind == Tag:
			v = tagged(top.tag, v)
			d.stack = d.stack[:len(d.stack)-1]
			goto put
		case top.mixed != nil:
			top.mixed[top.key] = v
		default:
			top.named[top.name] = v
		}
	next:
		top := &d.stack[len(d.stack)-1]
		needKey := top.kind == Map
		switch {
		case top.kind == Array:
			top.list = d.quickList(s, top.list)
		case top.named != nil:
			needKey = !d.quickMap(s, top)
		}
		if err := s.Next(); err != nil {
			return nil, d.place(err)
		}
		if needKey && s.Kind != End {
			if err := d.mapKey(s, top); err != nil {
				return nil, d.place(err)
			}
			if err := s.Next(); err != nil {
				return nil, d.place(err)
			}
		}
	}
}

// mapKey takes the key whose first token s holds into its frame.
func (d *decoder) mapKey(s *Scanner, top *frame) (err error) {
	if s.Kind == String && top.mixed == nil {
		var ok bool
		if top.name, ok = d.keyText(s.Data); !ok {
			return notUTF8(s)
		}
		return nil
	}
	if top.mixed == nil {
		top.mixed = make(map[any]any, len(top.named))
		for k, v := range top.named {
			top.mixed[k] = v
		}
		top.named = nil
	}
	top.key, err = d.key(s)
	return err
}

// key gives the key whose first token s holds, in a form that Go can compare.
func (d *decoder) key(s *Scanner) (any, error) {
	switch s.Kind {
	case String:
		text, ok := d.keyText(s.Data)
		if !ok {
			return nil, notUTF8(s)
		}
		return text, nil
	case Null, Bool, Uint, Undefined, Simple:
		return scalar(&s.Token), nil
	case Float16, Float32, Float64:
		if f := s.Float(); f == f {
			return f, nil
		}
	case Nint:
		if s.Bits <= math.MaxInt64 {
			return scalar(&s.Token), nil
		}
	case Ext:
		if t, ok := scalar(&s.Token).(time.Time); ok {
			return t, nil
		}
	}
	return d.encodedKey(s)
}

// encodedKey reads the key whose first token s holds and encodes it anew: equal keys in different forms become equal,
// and the bytes need not lie in one piece of the scanner's window.
func (d *decoder) encodedKey(s *Scanner) (any, error) {
	outside := s.Depth()
	if s.Kind == Array || s.Kind == Map {
		outside--
	}
	out, open := d.scratch[:0], d.open[:0]
	first, number := s.Kind, s.Bits
	for tokens := 0; ; tokens++ {
		if s.Kind == String && !utf8.Valid(s.Data) {
			return nil, notUTF8(s)
		}
		if tokens == 1 && first == Tag && s.Depth() == outside && s.Kind != Tag {
			// A time or an integer within 64 bits needs no encoding.
			content := scalar(&s.Token)
			if s.Kind == String {
				content = string(s.Data)
			}
			switch v := tagged(number, content).(type) {
			case time.Time, int64, uint64:
				return v, nil
			}
		}
		switch s.Kind {
		case Array, Map:
			open = append(open, s.Len < 0)
		case End:
			if open[len(open)-1] {
				out = append(out, breakByte)
			}
			open = open[:len(open)-1]
		}
		out = appendToken(out, s.codec, &s.Token)
		if s.Kind != Tag && s.Depth() == outside {
			break
		}
		if err := s.Next(); err != nil {
			return nil, err
		}
	}
	d.scratch, d.open = out, open
	return EncodedKey{Codec: s.codec, Data: string(out)}, nil
}

// appendToken appends a token as it stands in its own codec, in the shortest form; of an End, nothing.
func appendToken(dst []byte, c Codec, t *Token) []byte {
	switch t.Kind {
	case Null:
		return AppendNull(dst, c)
	case Bool:
		return AppendBool(dst, c, t.Bits != 0)
	case Uint:
		return AppendUint(dst, c, t.Bits)
	case Nint:
		dst, _ = appendNint(dst, c, t.Bits) // it came from the same codec
		return dst
	case Float16, Float32, Float64:
		return AppendFloat64(dst, c, t.Float())
	case String:
		return append(appendStringHead(dst, c, len(t.Data)), t.Data...)
	case Bytes:
		return AppendBytes(dst, c, t.Data)
	case Ext:
		return AppendExt(dst, c, t.Ext, t.Data)
	case Array:
		if t.Len < 0 {
			return append(dst, cborArray|cborNoLength)
		}
		return AppendArrayHeader(dst, c, t.Len)
	case Map:
		if t.Len < 0 {
			return append(dst, cborMap|cborNoLength)
		}
		return AppendMapHeader(dst, c, t.Len)
	case Tag:
		return AppendTag(dst, c, t.Bits)
	case Undefined:
		return AppendUndefined(dst, c)
	case Simple:
		return AppendSimple(dst, c, uint8(t.Bits))
	}
	return dst
}

// scalar gives the Go value of a token that is neither a String nor a container.
func scalar(t *Token) any {
	switch t.Kind {
	case Bool:
		return t.Bits != 0
	case Uint:
		if t.Bits <= math.MaxInt64 {
			return int64(t.Bits)
		}
		return t.Bits
	case Nint:
		if t.Bits <= math.MaxInt64 {
			return ^int64(t.Bits)
		}
		return bigNint(t.Bits)
	case Float64:
		return math.Float64frombits(t.Bits)
	case Float16, Float32:
		return t.Float()
	case Bytes:
		return append(make([]byte, 0, len(t.Data)), t.Data...)
	case Ext:
		if t.Ext == extTimestamp {
			if at, ok := msgpackTime(t.Data); ok {
				return at
			}
		}
		return ExtValue{Type: t.Ext, Data: append(make([]byte, 0, len(t.Data)), t.Data...)}
	case Undefined:
		return UndefinedValue{}
	case Simple:
		return SimpleValue(t.Bits)
	}
	return nil
}

// Float gives the number of a float token, widened to 64 bits; 0 for another kind.
func (t *Token) Float() float64 {
	switch t.Kind {
	case Float64:
		return math.Float64frombits(t.Bits)
	case Float32:
		return float64(math.Float32frombits(uint32(t.Bits)))
	case Float16:
		return widenHalf(uint16(t.Bits))
	}
	return 0
}

// widenHalf gives the number of an IEEE 754 binary16.
func widenHalf(bits uint16) float64 {
	sign, exp, frac := uint64(bits>>15)<<63, int(bits>>10)&0x1f, uint64(bits&0x3ff)
	var f float64
	switch exp {
	case 0:
		f = math.Ldexp(float64(frac), -24)
	case 0x1f:
		f = math.Float64frombits(0x7ff<<52 | frac<<42)
	default:
		f = math.Ldexp(float64(frac|0x400), exp-25)
	}
	return math.Float64frombits(math.Float64bits(f) | sign)
}

// bigNint gives -1 - bits.
func bigNint(bits uint64) *big.Int {
	n := new(big.Int).SetUint64(bits)
	return n.Not(n)
}

// integer gives n in the smallest type that Decode uses.
func integer(n *big.Int) any {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.IsUint64():
		return n.Uint64()
	}
	return n
}

// tagged gives the Go value of a tag with its content.
func tagged(number uint64, content any) any {
	switch number {
	case tagTimeText, tagTimeEpoch:
		if t, ok := cborTime(number, content); ok {
			return t
		}
	case tagPosBig, tagNegBig:
		if b, ok := content.([]byte); ok && len(b) <= maxBigBytes {
			n := new(big.Int).SetBytes(b)
			if number == tagNegBig {
				n.Not(n)
			}
			return integer(n)
		}
	}
	return TagValue{Number: number, Content: content}
}

// maxUnix is the last second whose time.Time does not overflow: that type counts from the year 1.
const maxUnix = math.MaxInt64 - 62135596800

// timestampParts reads the content of a msgpack timestamp; false when it has another length, or too many nanoseconds.
func timestampParts(b []byte) (sec int64, nsec uint32, ok bool) {
	switch len(b) {
	case 4:
		sec = int64(binary.BigEndian.Uint32(b))
	case 8:
		v := binary.BigEndian.Uint64(b)
		sec, nsec = int64(v&(1<<34-1)), uint32(v>>34)
	case 12:
		sec, nsec = int64(binary.BigEndian.Uint64(b[4:])), binary.BigEndian.Uint32(b)
	default:
		return 0, 0, false
	}
	return sec, nsec, nsec <= 999_999_999
}

// msgpackTime gives a msgpack timestamp as a Go time.
func msgpackTime(b []byte) (time.Time, bool) {
	sec, nsec, ok := timestampParts(b)
	if !ok || sec > maxUnix {
		return time.Time{}, false
	}
	return time.Unix(sec, int64(nsec)).UTC(), true
}

// cborTime reads the content of a time tag.
func cborTime(number uint64, content any) (t time.Time, ok bool) {
	switch v := content.(type) {
	case string:
		if number != tagTimeText {
			return t, false
		}
		var err error
		if t, err = time.Parse(time.RFC3339Nano, v); err != nil {
			return t, false
		}
	case int64:
		if number != tagTimeEpoch || v > maxUnix {
			return t, false
		}
		t = time.Unix(v, 0)
	case float64:
		if number != tagTimeEpoch || !(math.Abs(v) < 1<<53) {
			return t, false
		}
		sec := math.Floor(v)
		t = time.Unix(int64(sec), int64(math.Round((v-sec)*1e9)))
	default:
		return t, false
	}
	t = t.UTC()
	return t, t.Year() >= 0 && t.Year() <= 9999 // what the tag can be written with
}
