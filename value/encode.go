package value

import (
	"errors"
	"io"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// Append appends the encoding of v to dst. The result is fixed by v and the codec alone.
//
// Besides the types listed at [ExtValue] it takes all Go numbers (a float32 is widened), types made from basic types,
// arrays, slices, maps, structs and pointers to them, [Number], [OrderedMap], [Seq], [MapSeq] and [Raw]. []byte and
// [N]byte are binary. A nil pointer, slice, map or interface is null. A Raw of the other codec goes through
// [Transcode].
//
// The pairs of a Go map are written with string keys in the order of their bytes, integer keys in that of their
// numbers, and all others in that of their encodings. Two keys with the same encoding are an error of class
// [fault.Conflict], in a Go map, an OrderedMap and a MapSeq.
//
// A struct is a map of its exported fields, in their order. The tag `spile:"name,omitempty"` renames a field and
// leaves it out where it is false, 0, empty or nil; "-" leaves it out always. Without a spile tag the json tag is read
// the same way. Fields of embedded structs are taken as fields of the struct, with the rules of encoding/json.
//
// What a codec does not have is an error of class [fault.Invalid], and so is a string that is not UTF-8. Values nested
// deeper than [DefaultDepth], such as a pointer to itself, are one of class [fault.Limit]. dst is returned as it was
// where there is an error.
func Append(dst []byte, c Codec, v any) ([]byte, error) {
	if err := c.check(); err != nil {
		return dst, err
	}
	e := encoders.Get().(*encoder)
	own := e.dst
	e.dst, e.c, e.flushAt = dst, c, math.MaxInt
	err := e.value(v)
	out := e.dst
	e.dst = own
	err = e.located(err)
	e.release()
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Write writes the encoding of v to w, see [Append], in pieces as it is made: of a [Seq] or a [MapSeq] only the item at
// hand is in memory. After an error a part of the encoding may have been written. An error of w is returned as it is.
func Write(w io.Writer, c Codec, v any) error {
	if err := c.check(); err != nil {
		return err
	}
	e := encoders.Get().(*encoder)
	e.dst, e.c, e.w, e.flushAt = e.dst[:0], c, w, flushSize
	err := e.value(v)
	if err == nil {
		err = e.flush()
	}
	err = e.located(err)
	e.release()
	return err
}

// flushSize is the length of the pieces that Write writes: large enough that the calls do not show, small beside the
// memory of any program.
const flushSize = 64 << 10

// encoder appends values to dst and, when it has a writer, moves dst there now and then.
type encoder struct {
	dst     []byte
	c       Codec
	w       io.Writer // nil in Append
	flushAt int       // dst is written out when it is that long
	depth   int       // containers, tags and pointers around the value
	path    []string  // of an error, the innermost step first

	pairs  []namedPair // of the maps being written, the innermost last
	shapes [shapeSlots]shapeSlot
	keys   []byte // encoded keys of a Go map
	seen   keyset.Set
	maps   int64 // with keys in seen
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.seen.SetMode(keyset.Log)
	return e
}}

// release gives e back without anything of the value.
func (e *encoder) release() {
	clear(e.pairs) // some are left after an error
	const keep = 1024
	if cap(e.pairs) > keep {
		e.pairs = nil
	}
	if cap(e.dst) > 2*flushSize {
		e.dst = nil
	}
	if cap(e.keys) > flushSize {
		e.keys = nil
	}
	if e.maps > 0 {
		if e.seen.Reset(keyset.Log); e.seen.Memory() > 1<<20 {
			e.seen = keyset.Set{}
			e.seen.SetMode(keyset.Log)
		}
		e.maps = 0
	}
	e.dst, e.w, e.depth, e.path, e.pairs, e.keys = e.dst[:0], nil, 0, nil, e.pairs[:0], e.keys[:0]
	encoders.Put(e)
}

func (e *encoder) flush() error {
	if len(e.dst) == 0 || e.w == nil {
		return nil
	}
	n, err := e.w.Write(e.dst)
	if err == nil && n < len(e.dst) {
		err = io.ErrShortWrite
	}
	e.dst = e.dst[:0]
	return err
}

// located gives a fault the path of the value that caused it.
func (e *encoder) located(err error) error {
	var f *fault.Error
	if err == nil || len(e.path) == 0 || !errors.As(err, &f) || f.Where != "" || f.Package != "value" {
		return err
	}
	var p pathText
	for i := len(e.path) - 1; i >= 0; i-- {
		p.name(e.path[i])
	}
	f.Where = p.String()
	return err
}

// under notes on the way out of an error that it came from the child of that name.
func (e *encoder) under(err error, step string) error {
	e.path = append(e.path, step)
	return err
}

func (e *encoder) underIndex(err error, i int) error { return e.under(err, strconv.Itoa(i)) }

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "value", format, args...)
}

// enter counts one more level of nesting; leave takes it back.
func (e *encoder) enter() error {
	if e.depth >= DefaultDepth {
		return depthFault(Limits{})
	}
	e.depth++
	return nil
}

func (e *encoder) leave() { e.depth-- }

// item is called before each item of a container.
func (e *encoder) item() error {
	if len(e.dst) < e.flushAt {
		return nil
	}
	return e.flush()
}

// value encodes any value. The types of decoded documents are tried before reflection.
func (e *encoder) value(v any) error {
	switch v := v.(type) {
	case nil:
		e.dst = AppendNull(e.dst, e.c)
	case string:
		return e.string(v)
	case int64:
		e.dst = AppendInt(e.dst, e.c, v)
	case float64:
		e.dst = AppendFloat64(e.dst, e.c, v)
	case bool:
		e.dst = AppendBool(e.dst, e.c, v)
	case map[string]any:
		return e.namedMap(v)
	case []any:
		return e.list(v)
	case int:
		e.dst = AppendInt(e.dst, e.c, int64(v))
	case uint64:
		e.dst = AppendUint(e.dst, e.c, v)
	case []byte:
		if v == nil {
			e.dst = AppendNull(e.dst, e.c)
			return nil
		}
		return e.bytes(v)
	case []string:
		return encodeSlice(e, v, (*encoder).string)
	case []int64:
		return encodeSlice(e, v, func(e *encoder, n int64) error { e.dst = AppendInt(e.dst, e.c, n); return nil })
	case []int:
		return encodeSlice(e, v, func(e *encoder, n int) error { e.dst = AppendInt(e.dst, e.c, int64(n)); return nil })
	case []float64:
		return encodeSlice(e, v, func(e *encoder, f float64) error { e.dst = AppendFloat64(e.dst, e.c, f); return nil })
	case []map[string]any:
		return encodeSlice(e, v, (*encoder).namedMap)
	case map[any]any:
		return e.mixedMap(v)
	case time.Time:
		return e.time(v)
	case *big.Int:
		return e.bigInt(v)
	case Number:
		return e.number(v)
	case OrderedMap:
		return e.orderedMap(v)
	case ExtValue:
		return e.ext(v)
	case TagValue:
		return e.tag(v)
	case UndefinedValue:
		return e.undefined()
	case SimpleValue:
		return e.simple(v)
	case EncodedKey:
		return e.encoded(v.Codec, []byte(v.Data))
	case Raw:
		return e.encoded(v.Codec, v.Data)
	case Seq:
		return e.seq(v)
	case MapSeq:
		return e.mapSeq(v)
	default:
		return e.reflected(reflect.ValueOf(v))
	}
	return nil
}

func (e *encoder) string(s string) error {
	if !utf8.ValidString(s) {
		return invalid("string of %d bytes is not UTF-8", len(s))
	}
	if err := e.fits("string", len(s)); err != nil {
		return err
	}
	if len(s) < flushSize || e.w == nil {
		e.dst = AppendString(e.dst, e.c, s)
		return nil
	}
	e.dst = appendStringHead(e.dst, e.c, len(s))
	for len(s) > 0 {
		n := min(len(s), flushSize)
		e.dst, s = append(e.dst, s[:n]...), s[n:]
		if err := e.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) bytes(b []byte) error {
	if err := e.fits("binary", len(b)); err != nil {
		return err
	}
	e.dst = appendBytesHead(e.dst, e.c, len(b))
	return e.content(b)
}

// content appends bytes; many of them go to the writer at once.
func (e *encoder) content(b []byte) error {
	if len(b) < flushSize || e.w == nil {
		e.dst = append(e.dst, b...)
		return nil
	}
	if err := e.flush(); err != nil {
		return err
	}
	n, err := e.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// fits refuses lengths that msgpack cannot write.
func (e *encoder) fits(what string, n int) error {
	if e.c == Msgpack && uint64(n) > math.MaxUint32 {
		return fault.New(fault.Invalid, "value", "%s of length %d, msgpack holds up to 2^32-1", what, n).Because(PermitCodec)
	}
	return nil
}

func (e *encoder) has(c Codec, what string) error {
	if e.c != c {
		return fault.New(fault.Invalid, "value", "%s, which %s has not", what, e.c).Because(PermitCodec)
	}
	return nil
}

func (e *encoder) time(t time.Time) (err error) {
	e.dst, err = AppendTimestamp(e.dst, e.c, t)
	return err
}

func (e *encoder) bigInt(n *big.Int) (err error) {
	if n == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	e.dst, err = AppendBigInt(e.dst, e.c, n)
	return err
}

func (e *encoder) ext(v ExtValue) error {
	if err := e.has(Msgpack, "an ext value"); err != nil {
		return err
	}
	if err := e.fits("ext", len(v.Data)); err != nil {
		return err
	}
	e.dst = appendExtHead(e.dst, v.Type, len(v.Data))
	return e.content(v.Data)
}

func (e *encoder) tag(v TagValue) error {
	if err := e.has(CBOR, "a tag"); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.dst = AppendTag(e.dst, e.c, v.Number)
	return e.value(v.Content)
}

func (e *encoder) undefined() error {
	if err := e.has(CBOR, "undefined"); err != nil {
		return err
	}
	e.dst = AppendUndefined(e.dst, e.c)
	return nil
}

func (e *encoder) simple(v SimpleValue) error {
	if err := e.has(CBOR, "a simple value"); err != nil {
		return err
	}
	if v >= 20 && v < 32 {
		return invalid("simple value %d, there are 0 to 19 and 32 to 255", v)
	}
	e.dst = AppendSimple(e.dst, e.c, uint8(v))
	return nil
}

// encoded copies bytes that hold one value; those of the other codec are transcoded.
func (e *encoder) encoded(c Codec, data []byte) error {
	if c != e.c {
		data, err := Transcode(nil, e.c, c, data, Limits{})
		if err != nil {
			return invalidEncoded(err)
		}
		return e.content(data)
	}
	n, err := Skip(c, data, 1, Limits{})
	if err != nil {
		return invalidEncoded(err)
	}
	if n != len(data) {
		return invalid("encoded value of %d bytes, given are %d", n, len(data))
	}
	return e.content(data)
}

// invalidEncoded is the fault of an encoded value that cannot be written; the text has the name of the package once.
func invalidEncoded(err error) error {
	if f, ok := err.(*fault.Error); ok && f.Package == "value" {
		c := *f
		c.Package = ""
		err = &c
	}
	return fault.New(fault.Invalid, "value", "encoded value").Because(err)
}

// number encodes the number that a text names.
func (e *encoder) number(n Number) error {
	s := string(n)
	integer, ok := numberSyntax(s)
	if i, err := strconv.ParseInt(s, 10, 64); ok && err == nil {
		e.dst = AppendInt(e.dst, e.c, i)
		return nil
	}
	if !ok {
		return invalid("number %q is none", cutText(s))
	}
	if integer {
		if len(s) > maxNumber {
			return invalid("number of %d digits, at most %d are taken", len(s), maxNumber)
		}
		i, _ := new(big.Int).SetString(s, 10)
		return e.bigInt(i)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return invalid("number %q is beyond a float64", cutText(s))
	}
	e.dst = AppendFloat64(e.dst, e.c, f)
	return nil
}

// maxNumber is the longest integer that a Number may name: the digits of maxBigBytes bytes. Reading digits takes more
// than linear time.
const maxNumber = maxBigBytes * 5 / 2

// numberSyntax reports whether s is a JSON number, and whether it has neither a point nor an exponent. Leading zeros
// are allowed.
func numberSyntax(s string) (integer, ok bool) {
	s = strings.TrimPrefix(s, "-")
	for len(s) > 1 && s[0] == '0' && s[1]-'0' < 10 {
		s = s[1:]
	}
	if s == "" || s[0] == '-' {
		return false, false
	}
	n := scanNumber([]byte(s))
	return !n.float, n.bad == 0 && n.size == len(s)
}

// cutText keeps a message short.
func cutText(s string) string {
	if len(s) > maxStep {
		return s[:maxStep] + "…"
	}
	return s
}
