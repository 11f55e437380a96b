package value

import (
	"io"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// AppendJSON appends the JSON text of data, which must hold exactly one value, to dst. A nil o means the zero
// [JSONOptions], a nil loss that losses are not counted. On an error it returns dst as it was.
func AppendJSON(dst []byte, c Codec, data []byte, lim Limits, o *JSONOptions, loss *Losses) ([]byte, error) {
	w := jsonWriters.Get().(*JSONWriter)
	w.reset(nil, lim, o, loss)
	w.buf = dst
	w.scan.Reset(c, data, lim)
	err := w.WriteValue(&w.scan)
	if err == nil {
		err = w.nothingLeft(&w.scan)
	} else if err == io.EOF {
		err = errTruncated(0, "a value", 1)
	}
	if err == nil {
		dst = w.buf
	}
	w.forget()
	jsonWriters.Put(w)
	return dst, err
}

// jsonWriters keeps the stacks of writers, and the shapes they have learned, for the next call of AppendJSON.
var jsonWriters = sync.Pool{New: func() any { return new(JSONWriter) }}

// JSONWriter writes values as JSON text. Memory is bounded: the buffer of 64 KiB, the stack of open containers, and
// the keys of the maps that are open, which it must compare (see [DupMode]). Of those, some tens of megabytes are
// kept; beyond that a filter of 64 MiB takes over, and what it suspects is looked up by reading the input again, or in
// a temporary file where that cannot be. [DupFirst] and [DupLast] have to know at once: past 96 MiB of keys they are
// an error of class fault.Limit.
//
// Values come whole ([JSONWriter.WriteValue], [JSONWriter.WriteSection]) or as the children of containers that the
// caller begins and ends; the writer puts commas, line breaks and indentation. Values at the top level are separated by
// a line break. The children of one container may have different codecs.
//
// Integers keep every digit, CBOR bignums among them. A float is the shortest text that reads back to the same bits, as
// a 32-bit float when it is one of 32 or 16 bits, and keeps a fraction or an exponent. Binary is base64url without
// padding, or what an enclosing CBOR tag 21, 22 or 23 asks for. A msgpack timestamp is RFC 3339 with nine digits of
// fraction; another ext, and a timestamp outside the years 0 to 9999, is {"$ext":TYPE,"$data":"<base64url>"}. The rest
// are losses: undefined and other simple values give null, other CBOR tags give their content.
//
// A writer that has returned an error returns it again. It is not safe for concurrent use.
type JSONWriter struct {
	out    io.Writer // nil when the text stays in buf
	opts   JSONOptions
	lim    Limits
	losses *Losses
	where  string
	base   int64 // see At
	err    error

	buf   []byte
	mode  writerMode
	slow  bool        // without rush and shapes, for tests
	open  []jsonFrame // the first one stands for the top level and is never closed
	hold  int         // keys that are being written and must not leave buf before they are compared
	text  int         // those of them that become strings
	kinds []byte      // of the tokens of the keys that are held, where text does not tell them apart

	tags     jsonTags
	keys     keyset.Set
	shift    int64       // what makes its offsets those of the writer that made it
	callers  int64       // maps that the caller has begun
	maps     int         // maps with keys that were begun, for plan
	plan     *jsonPlan   // nil where all maps are written as they are
	planner  *JSONWriter // nil until one is needed
	distinct bool        // keys that occur twice are in the plan, or there are none
	input    jsonInput

	learned keyShapes
	roots   [CBOR + 1]shapePlace
	scan    Scanner
	inner   Scanner
	scratch []byte
	section []byte
}

// writerMode says what a writer is for.
type writerMode uint8

const (
	modeWrite writerMode = iota
	modePlan             // text is dropped, plan is made
	modeCheck            // text is dropped, suspect keys are compared
)

// jsonFrame is an open container, or the top level.
type jsonFrame struct {
	kind   frameKind
	some   bool // an item was written
	value  bool // in a map: the key was written, the value is next
	caller bool // begun by the caller
	form   byteForm
	indent int // levels of indentation of its items
	id     int64
	number int // of the map, for plan

	// The key that is being written or was written last. The marks are positions in buf.
	mark     int // before its comma
	textMark int
	keyStart int64
	kindMark int // in kinds
	isString bool
	dropped  bool

	shape *keyShape
	next  int    // the key of shape that is expected next
	key   int    // the key of shape that was written last, -1 when it is none of them
	hits  uint64 // the keys of shape that were written
	slot  *shapePlace
	keys  keyset.Map // what hits does not tell
}

type frameKind uint8

const (
	frameTop frameKind = iota
	frameArray
	frameMap
	framePairs // a map that is written [[key,value],…]
)

func (f *jsonFrame) isMap() bool { return f.kind >= frameMap }

const (
	jsonBuffer   = 64 << 10
	smallSection = 256 << 10 // a section up to here is read in one piece
)

// NewJSONWriter returns a writer to w. A nil o means the zero [JSONOptions]; losses are counted in loss unless it is
// nil. The limit of depth holds for the containers that the caller begins and those inside the values together.
func NewJSONWriter(w io.Writer, lim Limits, o *JSONOptions, loss *Losses) *JSONWriter {
	jw := new(JSONWriter)
	jw.reset(w, lim, o, loss)
	return jw
}

func (w *JSONWriter) reset(out io.Writer, lim Limits, o *JSONOptions, loss *Losses) {
	w.out, w.lim, w.losses = out, lim, loss
	w.opts = JSONOptions{}
	if o != nil {
		w.opts = *o
	}
	w.where, w.base, w.err = "", 0, nil
	w.mode, w.hold, w.text, w.maps, w.plan = modeWrite, 0, 0, 0, nil
	w.kinds, w.callers = w.kinds[:0], 0
	w.distinct = false
	w.tags = jsonTags{}
	w.keys.Reset(keyset.Exact)
	w.open = append(w.open[:0], jsonFrame{key: -1})
	w.buf = w.buf[:0]
	if w.learned.learned >= maxLearnedKeys/2 {
		w.learned, w.roots = keyShapes{}, [CBOR + 1]shapePlace{}
	}
}

// forget drops what a writer that waits for its next use must not keep.
func (w *JSONWriter) forget() {
	const much = 1 << 20
	w.buf, w.input, w.plan, w.losses = nil, jsonInput{}, nil, nil
	if w.planner != nil {
		w.planner.forget()
	}
	w.scan.Reset(Msgpack, nil, Limits{})
	w.inner.Reset(Msgpack, nil, Limits{})
	if w.keys.Reset(keyset.Exact); w.keys.Memory() > much {
		w.keys = keyset.Set{}
	}
	if cap(w.scratch) > much {
		w.scratch = nil
	}
}

// At tells the writer where the values that are written next come from: offset 0 of their scanner, or of their section,
// is base in the object; where names the place and may be empty. Errors and losses say it.
func (w *JSONWriter) At(where string, base int64) { w.where, w.base = where, base }

// WriteValue writes the next whole value of s; where none is left, at the end of the input or of the container of s
// that is open, it returns [io.EOF] and writes nothing.
//
// [KeysPairs] and [DupLast] need to know a map whole before its first byte is written. A scanner over a reader must
// then take the value into memory, up to 32 MiB; a longer one is an error of class fault.Limit, and is for
// [JSONWriter.WriteSection].
func (w *JSONWriter) WriteValue(s *Scanner) error {
	if err := w.ready(); err != nil {
		return err
	}
	if w.looksAhead() {
		return w.writeAhead(s)
	}
	w.input = jsonInput{codec: s.codec, start: s.Offset()}
	if s.src == nil {
		w.input.data = s.buf[s.pos:]
	}
	return w.run(s)
}

// WriteSection writes the value in the bytes off to off+size of src, which must hold exactly one. It may read them more
// than once: when the options need a map whole before its first byte (KeysPairs, DupLast), and when a map has so many
// keys that they are compared by a filter and suspects are looked up again. Offsets in errors and losses are those of
// the section, on top of what [JSONWriter.At] says.
func (w *JSONWriter) WriteSection(c Codec, src io.ReaderAt, off, size int64) error {
	if err := w.ready(); err != nil {
		return err
	}
	w.input = jsonInput{codec: c, src: src, off: off, size: size}
	if size <= smallSection {
		w.section = append(w.section[:0], make([]byte, size)...)
		if n, err := src.ReadAt(w.section, off); n < len(w.section) {
			if err == io.EOF {
				err = errTruncated(int64(n), "a section of the source", size-int64(n))
			}
			return w.fail(err)
		}
		w.input.data = w.section
	}
	if w.looksAhead() {
		if err := w.makePlan(); err != nil && err != io.EOF {
			return w.fail(err)
		}
	}
	s := w.input.scanner(&w.scan, w.lim)
	err := w.run(s)
	w.plan, w.distinct = nil, false
	if err == io.EOF {
		return w.fail(errTruncated(0, "a value", 1))
	} else if err != nil {
		return err
	}
	if err := w.nothingLeft(s); err != nil {
		return err
	}
	if s.Offset() < size {
		return w.fail(errTruncated(s.Offset(), "a section of the source", size-s.Offset()))
	}
	return nil
}

// nothingLeft checks that the value that was written is the last one of s.
func (w *JSONWriter) nothingLeft(s *Scanner) error {
	if s.fill(1); s.pos < len(s.buf) {
		return w.fail(corrupt("more bytes after the value").At(s.Offset()))
	}
	if err := s.Next(); err != io.EOF {
		return w.fail(err)
	}
	return nil
}

// BeginArray begins an array, as a value of the container that is open.
func (w *JSONWriter) BeginArray() error {
	if err := w.ready(); err != nil {
		return err
	}
	w.lead(w.top())
	return w.begin(frameArray, 0, true)
}

// EndArray ends the array that BeginArray began.
func (w *JSONWriter) EndArray() error {
	if f := w.top(); w.err == nil && (f.kind != frameArray || !f.caller) {
		return w.fail(misuse("EndArray without BeginArray"))
	}
	return w.endOwn()
}

// BeginMap begins a map, as a value of the container that is open.
func (w *JSONWriter) BeginMap() error { return w.beginMap(frameMap) }

// BeginPairs begins a map that is written as [[key,value],…]. [JSONWriter.NeedsPairs] says of each key whether that
// must be.
func (w *JSONWriter) BeginPairs() error { return w.beginMap(framePairs) }

func (w *JSONWriter) beginMap(kind frameKind) error {
	if err := w.ready(); err != nil {
		return err
	}
	w.lead(w.top())
	w.callers++
	return w.begin(kind, -w.callers, true)
}

// NeedsPairs reports whether a map with this encoded key must be begun by BeginPairs: whether the options say
// [KeysPairs] and the key is no string.
func (w *JSONWriter) NeedsPairs(c Codec, key []byte) bool {
	if w.opts.Keys != KeysPairs {
		return false
	}
	w.scan.Reset(c, key, w.lim)
	err := w.scan.Next()
	for err == nil && w.scan.Kind == Tag {
		err = w.scan.Next()
	}
	return err == nil && w.scan.Kind != String
}

// Key writes a key, given as the bytes of one encoded value, in the map that BeginMap or BeginPairs began. The value
// must follow when it returns true. It returns false where [DupFirst] drops the pair; then the value must not be
// written. With [DupLast] the caller is to leave out earlier pairs, and a key that occurs twice is an error of class
// fault.Conflict.
func (w *JSONWriter) Key(c Codec, key []byte) (bool, error) {
	f := w.top()
	if w.err == nil && (!f.isMap() || !f.caller || f.value) {
		return false, w.fail(misuse("Key where no key can stand"))
	}
	w.input = jsonInput{codec: c, start: 0, data: key}
	w.scan.Reset(c, key, w.lim)
	if err := w.run(&w.scan); err == io.EOF {
		return false, w.fail(errTruncated(0, "a key", 1))
	} else if err != nil {
		return false, err
	}
	if err := w.nothingLeft(&w.scan); err != nil {
		return false, err
	}
	return !w.top().dropped, nil
}

// EndMap ends the map that BeginMap or BeginPairs began.
func (w *JSONWriter) EndMap() error {
	if f := w.top(); w.err == nil && (!f.isMap() || !f.caller || f.value) {
		return w.fail(misuse("EndMap without BeginMap, or behind a key"))
	}
	return w.endOwn()
}

func (w *JSONWriter) endOwn() error {
	if w.err != nil {
		return w.err
	}
	if err := w.close(); err != nil {
		return w.fail(err)
	}
	w.valueDone(w.top())
	return w.spill()
}

// Flush writes what is in the buffer. It does not write a line break.
func (w *JSONWriter) Flush() error {
	if w.err != nil || w.out == nil || len(w.buf) == 0 {
		return w.err
	}
	_, w.err = w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return w.err
}

// ready checks that a value can be written now.
func (w *JSONWriter) ready() error {
	if f := w.top(); w.err == nil && f.isMap() && !f.value {
		return w.fail(misuse("a value where a key must come"))
	}
	return w.err
}

func (w *JSONWriter) top() *jsonFrame { return &w.open[len(w.open)-1] }

func misuse(what string) *fault.Error {
	return fault.New(fault.Invalid, "value", "JSON writer: %s", what)
}

// fail makes err, with the place of the values that are written now, the error of this call and of all that follow.
func (w *JSONWriter) fail(err error) error {
	if e, ok := err.(*fault.Error); ok && (e.Offset >= 0 || e.Where == "") {
		c := *e
		if c.Offset >= 0 {
			c.Offset += w.base
		}
		if c.Where == "" {
			c.Where = w.where
		}
		err = &c
	}
	w.err = err
	w.keys.Reset(keyset.Exact)
	return err
}
