package value

import (
	"encoding/binary"
	"io"
	"math"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// Transcode appends to dst, in the codec to, the value that data holds in the codec from, and returns the longer slice;
// data must hold exactly one value. What comes out is the plain form of the codec: integers and lengths in their
// shortest form, definite lengths, strings in one piece. The order of pairs and the width of floats are kept, with to
// equal to from as well.
//
// Nothing is lost without an error. What the other codec cannot hold is an error of class [fault.Invalid] with the
// offset in data; what means the same there is translated, see below. A map in which an encoded key comes twice is an
// error of class [fault.Conflict], a string that is not UTF-8 one of class [fault.Corrupt].
//
//	CBOR                             msgpack
//	float16                       -> float32
//	tag 0 text, in UTC, up to ns  -> timestamp
//	tag 1, a whole number of ns   -> timestamp
//	tag 2, 3 within 64 bits       -> integer; in CBOR too
//	tag 55799 (this is CBOR)      -> its content
//	other tags, undefined, simple    refused
//	integers below -2^63             refused
//	tag 0 text, tag 1 outside the    <- timestamp
//	years 0 to 9999 (where exact)
//	refused                          other ext
//
// Besides the output it takes memory for the keys of the maps around the current value: up to 16 MiB they are kept,
// beyond that a filter of 64 MiB takes over and what it suspects is looked up by reading data again. With containers
// of indefinite length, whose counts take a pass of their own, it takes a byte for each and 16 for one of more than
// 254 items, up to 256 MiB; past that it returns an error of class [fault.Limit].
func Transcode(dst []byte, to, from Codec, data []byte, lim Limits) ([]byte, error) {
	t := transcoder{to: to, from: from, out: dst, memory: transcodeMemory, open: func() *Scanner {
		return NewScanner(from, data, lim)
	}}
	if err := t.run(); err != nil {
		return dst, err
	}
	return t.out, nil
}

// TranscodeAt writes to w what [Transcode] appends, of the size bytes of src. It reads src once from front to back,
// once more when it meets a container of indefinite length, and again where many keys need a second look. Besides what
// Transcode says it takes memory for the longest string and the longest key. What was written before an error is a
// part of a value.
func TranscodeAt(w io.Writer, to, from Codec, src io.ReaderAt, size int64, lim Limits) error {
	t := transcoder{to: to, from: from, w: w, memory: transcodeMemory, open: func() *Scanner {
		return NewStream(from, io.NewSectionReader(src, 0, size), size, lim)
	}}
	if err := t.run(); err != nil {
		return err
	}
	return t.flush(0)
}

// transcodeMemory bounds the memory for counts.
const transcodeMemory = 256 << 20

// transcodeBuffer is how much is written at once.
const transcodeBuffer = 64 << 10

type transcoder struct {
	to, from Codec
	w        io.Writer       // nil when out takes all
	memory   int             // for counts
	open     func() *Scanner // starts at the first byte

	s      *Scanner
	out    []byte
	counts *counts // nil until the first container of indefinite length
	frames []transFrame
	inKeys int // keys that are being written, one inside the other; their bytes must stay in out
	keys   keyset.Set
	check  bool  // out is dropped, suspect keys are compared
	stop   int64 // offset at which a check is done

	held   bool // a tag was read whose meaning hangs on its content
	tag    uint64
	tagged int64 // its offset
}

// transFrame is an open container.
type transFrame struct {
	isMap bool
	value bool  // the next value is the value of a pair
	key   int   // where the key that is being written starts in out, noKey when there is none
	at    int64 // the offset of the key in the input
	seen  keyset.Map
}

const noKey = -1

func (t *transcoder) run() error {
	for _, c := range []Codec{t.to, t.from} {
		if err := c.check(); err != nil {
			return err
		}
	}
	t.s = t.open()
	t.keys.SetMode(keyset.Reread)
	for {
		if err := t.s.Next(); err != nil {
			return notEmpty(err)
		}
		if t.check && t.s.Start() > t.stop {
			return errStopped
		}
		if t.s.Kind != End {
			t.begin()
		}
		whole, err := t.token()
		if err != nil {
			return err
		}
		if !whole {
			continue
		}
		if len(t.frames) == 0 {
			break
		}
		if err := t.end(); err != nil {
			return err
		}
		if len(t.out) >= transcodeBuffer {
			if err := t.flush(transcodeBuffer); err != nil {
				return err
			}
		}
	}
	if err := t.lookUp(math.MaxInt64); err != nil {
		return err
	}
	if t.s.fill(1); t.s.pos < len(t.s.buf) {
		return corrupt("more bytes behind the value").At(t.s.Offset())
	}
	return t.s.err
}

// begin notes where a key starts. (Its tag and its first token both come here.)
func (t *transcoder) begin() {
	if len(t.frames) == 0 {
		return
	}
	if f := &t.frames[len(t.frames)-1]; f.isMap && !f.value && f.key == noKey {
		f.key, f.at = len(t.out), t.s.Start()
		t.inKeys++
	}
}

// end counts a whole value in the container around it. A key must be new there.
func (t *transcoder) end() error {
	f := &t.frames[len(t.frames)-1]
	if !f.isMap {
		return nil
	}
	f.value = !f.value
	if !f.value {
		return nil
	}
	key := t.out[f.key:]
	f.key = noKey
	t.inKeys--
	twin, err := t.keys.Add(&f.seen, key, f.at)
	switch {
	case err != nil:
		return err
	case twin != nil:
		return doubleKey(t.to, key).At(f.at)
	case t.keys.Full():
		return t.lookUp(f.at)
	}
	return nil
}

// lookUp takes the second look at keys up to the one at offset stop by reading the input again.
func (t *transcoder) lookUp(stop int64) error {
	return t.keys.LookUp(func(look *keyset.Set) error {
		sub := transcoder{to: t.to, from: t.from, open: t.open, keys: *look, check: true, stop: stop}
		if t.counts != nil {
			again := *t.counts
			again.next, again.nextInBig = 0, 0
			sub.counts = &again
		}
		if err := sub.run(); err != errStopped {
			return err
		}
		return nil
	})
}

// flush writes out, unless a key in it is not complete. Less than size bytes may stay.
func (t *transcoder) flush(size int) error {
	if t.check && t.inKeys == 0 {
		t.out = t.out[:0]
	}
	if t.w == nil || t.inKeys > 0 || len(t.out) < size {
		return nil
	}
	_, err := t.w.Write(t.out)
	t.out = t.out[:0]
	return err
}

// token writes one token, and reports whether a value is complete with it.
func (t *transcoder) token() (whole bool, err error) {
	s := t.s
	if t.held {
		if done, err := t.heldTag(); done || err != nil {
			return done, err
		}
	}
	switch s.Kind {
	case Null:
		t.out = AppendNull(t.out, t.to)
	case Bool:
		t.out = AppendBool(t.out, t.to, s.Bits != 0)
	case Uint:
		t.out = AppendUint(t.out, t.to, s.Bits)
	case Nint:
		if s.Bits > math.MaxInt64 && t.to == Msgpack {
			return false, t.refuse("an integer below -2^63")
		}
		t.out, err = appendNint(t.out, t.to, s.Bits)
	case Float16, Float32, Float64:
		t.out = appendFloatBits(t.out, t.to, s.Kind, s.Bits)
	case String:
		if !utf8.Valid(s.Data) {
			return false, notUTF8(s)
		}
		return true, t.content(appendStringHead)
	case Bytes:
		return true, t.content(appendBytesHead)
	case Ext:
		if t.to == CBOR {
			return true, t.ext()
		}
		return true, t.content(func(dst []byte, _ Codec, n int) []byte { return appendExtHead(dst, s.Ext, n) })
	case Array, Map:
		return false, t.container()
	case Tag:
		return false, t.tagHead()
	case Undefined:
		if t.to == Msgpack {
			return false, t.refuse("undefined")
		}
		t.out = AppendUndefined(t.out, t.to)
	case Simple:
		if t.to == Msgpack {
			return false, t.refuse("a simple value")
		}
		t.out = AppendSimple(t.out, t.to, uint8(s.Bits))
	case End:
		if f := &t.frames[len(t.frames)-1]; f.isMap {
			if err := t.keys.End(&f.seen); err != nil {
				return false, err
			}
		}
		t.frames = t.frames[:len(t.frames)-1]
	}
	return true, err
}

// content writes a head and the content of a string, binary or ext. Long content goes straight to the writer.
func (t *transcoder) content(head func(dst []byte, c Codec, n int) []byte) error {
	data := t.s.Data
	if t.to == Msgpack && uint64(len(data)) > math.MaxUint32 {
		return t.refuse("a " + t.s.Kind.String() + " of 2^32 bytes or more")
	}
	t.out = head(t.out, t.to, len(data))
	if len(data) < transcodeBuffer || t.w == nil || t.inKeys > 0 {
		t.out = append(t.out, data...)
		return nil
	}
	if err := t.flush(0); err != nil {
		return err
	}
	_, err := t.w.Write(data)
	return err
}

// container writes the head of an array or map.
func (t *transcoder) container() error {
	n := t.s.Len
	if n < 0 {
		if t.counts == nil {
			var err error
			if t.counts, err = countItems(t.open(), t.memory); err != nil {
				return err
			}
		}
		n = t.counts.take()
	}
	if t.to == Msgpack && uint64(n) > math.MaxUint32 {
		return t.refuse("a " + t.s.Kind.String() + " of 2^32 items or more")
	}
	f := transFrame{isMap: t.s.Kind == Map, key: noKey}
	if f.isMap {
		t.out = AppendMapHeader(t.out, t.to, n)
	} else {
		t.out = AppendArrayHeader(t.out, t.to, n)
	}
	t.frames = append(t.frames, f)
	if f.isMap {
		t.keys.Begin(&t.frames[len(t.frames)-1].seen, t.s.Start())
	}
	return nil
}

// refuse is the error for what the other codec cannot hold.
func (t *transcoder) refuse(what string) error { return t.refuseAt(what, t.s.Start()) }

func (t *transcoder) refuseAt(what string, at int64) error {
	return fault.New(fault.Invalid, "value", "%s has no form in %s", what, t.to).At(at).Because(PermitCodec)
}

// appendFloatBits appends a float in its own width, bit by bit: a signalling NaN would not outlive a float32. Msgpack
// has no half float, every one is a float32.
func appendFloatBits(dst []byte, c Codec, kind Kind, bits uint64) []byte {
	switch {
	case kind == Float16 && c == CBOR:
		return append(dst, cborFloat16, byte(bits>>8), byte(bits))
	case kind == Float16:
		return binary.BigEndian.AppendUint32(append(dst, mpFloat32), halfToSingle(uint16(bits)))
	case kind == Float32 && c == CBOR:
		return binary.BigEndian.AppendUint32(append(dst, cborFloat32), uint32(bits))
	case kind == Float32:
		return binary.BigEndian.AppendUint32(append(dst, mpFloat32), uint32(bits))
	case c == CBOR:
		return binary.BigEndian.AppendUint64(append(dst, cborFloat64), bits)
	}
	return binary.BigEndian.AppendUint64(append(dst, mpFloat64), bits)
}

func halfToSingle(bits uint16) uint32 {
	if bits&0x7c00 == 0x7c00 { // infinities, and NaN with what it carries
		return uint32(bits&0x8000)<<16 | 0xff<<23 | uint32(bits&0x3ff)<<13
	}
	return math.Float32bits(float32(widenHalf(bits)))
}
