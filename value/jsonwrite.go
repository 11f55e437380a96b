package value

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// jsonTags is the CBOR tags that were read before the next value.
type jsonTags struct {
	any     bool
	start   int64 // of the first one
	form    byteForm
	forms   bool   // form holds
	big     uint8  // the last one: tagPosBig or tagNegBig, else 0
	numbers []byte // all, with KeysPairs
	bigAt   int64
}

// The CBOR tags that say how binary becomes text: RFC 8949 section 3.4.5.2.
const (
	tagBase64URL = 21
	tagBase64    = 22
	tagHex       = 23
)

// run writes the next whole item of s: a value, or a key where the open map is the caller's.
func (w *JSONWriter) run(s *Scanner) error {
	if w.err != nil {
		return w.err
	}
	depth := len(w.open)
	f := w.top()
	w.keys.SetMode(w.keyMode(f))
	for first := true; ; first = false {
		if w.canRush(s, depth) {
			if done, err := w.rush(s, depth); err != nil {
				return w.fail(err)
			} else if done {
				break
			}
		}
		done, err := w.step(s, depth)
		if err == io.EOF && first {
			return io.EOF
		} else if err != nil {
			return w.fail(err)
		}
		if err := w.spill(); err != nil {
			return err
		}
		if done {
			break
		}
	}
	if err := w.lookUp(math.MaxInt64); err != nil {
		return w.fail(err)
	}
	return nil
}

// keyMode says what becomes of more keys than memory is for, in f or in what stands in it. A pair that is dropped must
// be known at once.
func (w *JSONWriter) keyMode(f *jsonFrame) keyset.Mode {
	switch {
	case w.opts.Dup == DupFirst || w.mode == modePlan:
		return keyset.Exact
	case w.input.rereads() && !(f.isMap() && !f.value):
		return keyset.Reread
	}
	return keyset.Log
}

// step writes the next token. It reports whether the item that run writes is complete.
func (w *JSONWriter) step(s *Scanner, depth int) (bool, error) {
	f := w.top()
	if w.plan != nil && w.mode == modeWrite && f.isMap() && !f.value && !w.tags.any && w.plan.dropsNext(s) {
		return false, w.dropPair(s)
	}
	if err := s.Next(); err != nil {
		return false, err
	}
	switch s.Kind {
	case End:
		if len(w.open) == depth { // of the caller's container
			return false, io.EOF
		}
		if err := w.close(); err != nil {
			return false, err
		}
		return w.complete(s, depth)
	case Tag:
		return false, w.tag(s)
	}
	tags := w.tags
	w.tags = jsonTags{numbers: tags.numbers}
	start := s.start
	if tags.any {
		start = tags.start
	}
	if f.isMap() && !f.value {
		f.keyStart, f.isString = start, s.Kind == String
		if err := w.checkKey(f, s); err != nil {
			return false, err
		}
		if f.kindMark = len(w.kinds); w.hold == 0 {
			w.kinds, f.kindMark = w.kinds[:0], 0
		}
		if w.opts.Keys == KeysPairs {
			w.keyKind(s, &tags)
		}
	} else if w.hold > 0 && w.opts.Keys == KeysPairs {
		w.keyKind(s, &tags)
	}
	w.lead(f)
	if tags.big != 0 {
		if s.Kind == Bytes {
			return w.bignum(s, tags.big, depth)
		}
		if err := w.lost(LossTag, tags.bigAt); err != nil {
			return false, err
		}
	}
	form := f.form
	if tags.forms {
		form = tags.form
	}
	var err error
	switch s.Kind {
	case Null:
		w.buf = append(w.buf, "null"...)
	case Bool:
		if s.Bits == 0 {
			w.buf = append(w.buf, "false"...)
		} else {
			w.buf = append(w.buf, "true"...)
		}
	case Uint:
		w.buf = appendUint(w.buf, s.Bits)
	case Nint:
		w.buf = appendNegative(w.buf, s.Bits)
	case Float16:
		err = w.float(widenHalf(uint16(s.Bits)), 32, s.start)
	case Float32:
		err = w.float(float64(math.Float32frombits(uint32(s.Bits))), 32, s.start)
	case Float64:
		err = w.float(math.Float64frombits(s.Bits), 64, s.start)
	case String:
		err = w.string(s.Data, s.start)
	case Bytes:
		err = w.binary(s.Data, form)
	case Ext:
		err = w.ext(s.Ext, s.Data, form)
	case Undefined:
		w.buf = append(w.buf, "null"...)
		err = w.lost(LossUndefined, s.start)
	case Simple:
		w.buf = append(w.buf, "null"...)
		err = w.lost(LossSimple, s.start)
	case Array:
		return false, w.beginIn(s, frameArray, form)
	case Map:
		return false, w.beginIn(s, frameMap, form)
	}
	if err != nil {
		return false, err
	}
	return w.complete(s, depth)
}

// tag notes a tag for the value that comes.
func (w *JSONWriter) tag(s *Scanner) error {
	t := &w.tags
	if !t.any {
		t.any, t.start, t.numbers = true, s.start, t.numbers[:0]
	}
	if w.opts.Keys == KeysPairs {
		t.numbers = binary.AppendUvarint(t.numbers, s.Bits)
	}
	if t.big != 0 { // it belongs to the bytes right behind it
		t.big = 0
		if err := w.lost(LossTag, t.bigAt); err != nil {
			return err
		}
	}
	switch s.Bits {
	case tagPosBig, tagNegBig:
		t.big, t.bigAt = uint8(s.Bits), s.start
	case tagBase64URL, tagBase64, tagHex:
		t.forms, t.form = true, byteForm(s.Bits-tagBase64URL)
	default:
		return w.lost(LossTag, s.start)
	}
	return nil
}

// beginIn opens the container whose head s has read.
func (w *JSONWriter) beginIn(s *Scanner, kind frameKind, form byteForm) error {
	outer := w.top()
	number := w.maps
	if kind == frameMap && s.Len != 0 {
		w.maps++
		if w.plan != nil && w.mode == modeWrite && w.plan.isPairs(number) {
			kind = framePairs
		}
	}
	if outer.isMap() && !outer.value { // a key
		w.hold++
		if w.opts.Keys == KeysString {
			w.text++
		}
	}
	if err := w.begin(kind, s.start, false); err != nil {
		return err
	}
	f := w.top()
	f.form, f.number = form, number
	if w.mode == modeWrite && w.plan == nil && !w.slow {
		w.place(f, &w.open[len(w.open)-2], s.codec)
		if kind == frameMap {
			f.shape = w.learned.of(f.slot)
		}
	}
	return nil
}

// place gives a container that was opened in outer its place in the shapes.
func (w *JSONWriter) place(f, outer *jsonFrame, c Codec) {
	switch {
	case outer.caller || outer.kind == frameTop:
		f.slot = &w.roots[c]
	case outer.kind == frameArray:
		f.slot = outer.slot
	default:
		f.slot = outer.shape.sub(outer.key)
	}
}

// begin opens a container. id tells its keys from those of others.
func (w *JSONWriter) begin(kind frameKind, id int64, caller bool) error {
	if len(w.open) > w.lim.depth() {
		return depthFault(w.lim).At(id)
	}
	outer := w.top()
	indent := outer.indent + 1
	if outer.kind == frameTop {
		indent = 1
	} else if outer.kind == framePairs {
		indent++
	}
	if kind == frameMap {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, '[')
	}
	if len(w.open) < cap(w.open) {
		w.open = w.open[:len(w.open)+1]
	} else {
		w.open = append(w.open, jsonFrame{})
	}
	f := w.top()
	f.kind, f.caller, f.some, f.value, f.dropped = kind, caller, false, false, false
	f.form, f.indent, f.id = 0, indent, id
	f.shape, f.slot, f.next, f.key, f.hits = nil, nil, 0, -1, 0
	f.keys.Open = false // the other fields are set before they are read
	return nil
}

// close ends the innermost container.
func (w *JSONWriter) close() error {
	f := w.top()
	if f.some && w.opts.Pretty && w.text == 0 {
		w.line(f.indent - 1)
	}
	if f.kind == frameMap {
		w.buf = append(w.buf, '}')
	} else {
		w.buf = append(w.buf, ']')
	}
	return w.closeFrame(f)
}

func (w *JSONWriter) closeFrame(f *jsonFrame) error {
	if f.keys.Open {
		if err := w.keys.End(&f.keys); err != nil {
			return w.twice(err)
		}
		if f.shape != nil && len(f.shape.keys) == maxShapeKeys {
			f.shape.missed()
		}
	}
	w.open = w.open[:len(w.open)-1]
	if outer := w.top(); outer.isMap() && !outer.value { // a key
		w.hold--
		if w.opts.Keys == KeysString {
			w.text--
		}
	}
	return nil
}

// lead writes what comes before an item: the comma, the line break, what begins a pair.
func (w *JSONWriter) lead(f *jsonFrame) {
	f.mark = len(w.buf)
	pretty := w.opts.Pretty && w.text == 0
	switch {
	case f.kind == frameTop:
		if f.some {
			w.buf = append(w.buf, '\n')
		}
	case f.isMap() && f.value:
		if f.kind == framePairs && pretty {
			w.line(f.indent + 1)
		}
	default:
		if f.some {
			w.buf = append(w.buf, ',')
		}
		if pretty {
			w.line(f.indent)
		}
		if f.kind == framePairs {
			w.buf = append(w.buf, '[')
			if pretty {
				w.line(f.indent + 1)
			}
		}
	}
	f.textMark = len(w.buf)
}

func (w *JSONWriter) line(indent int) {
	w.buf = append(w.buf, '\n')
	for range indent {
		w.buf = append(w.buf, ' ', ' ')
	}
}

// complete notes that an item of the innermost container is written. It reports whether run is done with it.
func (w *JSONWriter) complete(s *Scanner, depth int) (bool, error) {
	f := w.top()
	if !f.isMap() || f.value {
		w.valueDone(f)
		return len(w.open) == depth, nil
	}
	if err := w.keyDone(f, s); err != nil {
		return false, err
	}
	if len(w.open) == depth {
		return true, nil
	}
	if f.dropped {
		f.dropped = false
		return false, w.passValue(s)
	}
	return false, nil
}

func (w *JSONWriter) valueDone(f *jsonFrame) {
	if f.kind == framePairs {
		if w.opts.Pretty && w.text == 0 {
			w.line(f.indent)
		}
		w.buf = append(w.buf, ']')
	}
	f.some, f.value = true, false
}

// checkKey refuses a key that cannot be written.
func (w *JSONWriter) checkKey(f *jsonFrame, s *Scanner) error {
	if s.Kind == String {
		return nil
	}
	switch w.opts.Keys {
	case KeysError:
		return fault.New(fault.Invalid, "value", "key is of kind %s, JSON has string keys only", s.Kind).At(f.keyStart).Because(PermitKeys)
	case KeysString:
		// The text of a key inside the text of a key would double its backslashes on each level.
		if w.text > 0 && (s.Kind == Array || s.Kind == Map || s.Kind == Ext) {
			return fault.New(fault.Invalid, "value", "key of kind %s inside a key that is written as a string", s.Kind).At(f.keyStart).Because(PermitKeys)
		}
	case KeysPairs:
		if w.mode == modePlan {
			w.plan.setPairs(f.number)
		} else if w.mode == modeWrite && f.kind == frameMap {
			return misuse("key of kind " + s.Kind.String() + " in a map that was not begun with pairs").At(f.keyStart)
		}
	}
	return nil
}

// keyKind notes what the text of a key does not tell. Where keys are written as they are, two that differ are two keys,
// such as the string "QQ" and a byte that is written so. A string is one with tags and without, since a map of strings
// alone has no other keys.
func (w *JSONWriter) keyKind(s *Scanner, tags *jsonTags) {
	kind := s.Kind
	switch {
	case kind == String:
	case tags.big != 0 && kind == Bytes, kind == Uint, kind == Nint:
		kind = Uint
	case kind == Float16, kind == Float32, kind == Float64:
		kind = Float64
	}
	n := len(tags.numbers)
	if tags.big != 0 && s.Kind == Bytes {
		n-- // its number is a byte
	}
	if tags.any && n > 0 && kind != String {
		w.kinds = binary.AppendUvarint(append(w.kinds, byte(Tag)), uint64(n))
		w.kinds = append(w.kinds, tags.numbers[:n]...)
	}
	w.kinds = append(w.kinds, byte(kind))
	switch kind {
	case Simple:
		w.kinds = append(w.kinds, byte(s.Bits))
	case Float64:
		if f := s.Float(); math.IsInf(f, 0) { // null, perhaps, as NaN is
			w.kinds = append(w.kinds, byte(math.Float64bits(f)>>63))
		}
	}
}

// maxKeyText is the length of the longest key as text. A key is held in memory to be compared.
const maxKeyText = 16 << 20

// keyDone makes a string of the key that was written, where it must, and compares it with those before it.
func (w *JSONWriter) keyDone(f *jsonFrame, s *Scanner) error {
	if len(w.buf)-f.textMark > maxKeyText {
		return fault.New(fault.Limit, "value", "key of more than %d bytes", maxKeyText).At(f.keyStart)
	}
	if !f.isString && w.opts.Keys == KeysString {
		if w.buf[f.textMark] != '"' {
			w.scratch = append(w.scratch[:0], w.buf[f.textMark:]...)
			w.buf = append(w.buf[:f.textMark], '"')
			w.buf = append(appendEscaped(w.buf, w.scratch), '"')
		}
		if err := w.lost(LossKey, f.keyStart); err != nil {
			return err
		}
	}
	if err := w.compare(f, s); err != nil || f.dropped {
		return err
	}
	switch {
	case f.kind == framePairs:
		w.buf = append(w.buf, ',')
	case w.opts.Pretty && w.text == 0:
		w.buf = append(w.buf, ':', ' ')
	default:
		w.buf = append(w.buf, ':')
	}
	f.value, f.some = true, true
	return nil
}

// compare looks for the key that was written among those of the map.
func (w *JSONWriter) compare(f *jsonFrame, s *Scanner) error {
	f.dropped = false
	text := w.buf[f.textMark:]
	if f.shape != nil && !f.keys.Open {
		if f.key = w.learn(f, s, text); f.key >= 0 {
			f.hits |= 1 << f.key
			f.next = f.key + 1
			return nil
		}
	}
	f.key = -1
	if w.opts.Dup == DupAll || w.distinct {
		return nil
	}
	if w.opts.Keys == KeysPairs && !f.isString {
		w.scratch = append(append(append(w.scratch[:0], text...), 0), w.kinds[f.kindMark:]...)
		text = w.scratch
	}
	if !f.keys.Open {
		w.keys.Begin(&f.keys, w.shift+f.id)
		for i := range maxShapeKeys {
			if f.hits>>i&1 != 0 {
				if _, err := w.keys.Add(&f.keys, f.shape.keys[i].text, -1); err != nil {
					return w.twice(err)
				}
			}
		}
	}
	twin, err := w.keys.Add(&f.keys, text, w.base+f.keyStart)
	if err != nil {
		return w.twice(err)
	}
	if twin == nil {
		if w.keys.Full() {
			return w.lookUp(s.start)
		}
		return nil
	}
	switch {
	case w.mode == modePlan:
		return w.plan.drop(twin, f.keyStart)
	case w.opts.Dup == DupFirst:
		f.dropped = true
		w.buf = w.buf[:f.mark]
		return w.lost(LossPair, f.keyStart)
	}
	return doubleText(text, f.keyStart)
}

func doubleText(text []byte, offset int64) error {
	text, _, _ = bytes.Cut(text, []byte{0}) // behind it are kinds
	return fault.New(fault.Conflict, "value", "key %s occurs twice in one map", clip(text)).At(offset).Because(PermitDup)
}

// twice is the error of a key that was found to occur twice later than it was written.
func (w *JSONWriter) twice(err error) error {
	switch e := err.(type) {
	case *keyset.Twice:
		return doubleText(e.Key, e.Offset-w.base)
	case *fault.Error:
		return fault.Shift(e, -w.base)
	}
	return err
}

// learn finds or adds the key that s has read, whose text is given, in the shape of its map. It returns -1 when the
// shape does not know it, or when the map has it already.
func (w *JSONWriter) learn(f *jsonFrame, s *Scanner, text []byte) int {
	if !f.isString || s.Kind != String || f.keyStart != s.start || s.start < s.base || f.kind != frameMap {
		return -1
	}
	raw := s.buf[s.start-s.base : s.pos]
	if len(raw) > maxShapeKey || w.opts.InvalidUTF8 != UTF8Error && !utf8.Valid(s.Data) {
		return -1
	}
	i := f.shape.find(raw)
	if i < 0 {
		var out [8 * maxShapeKey]byte
		b := append(append(out[:0], text...), ':')
		i = w.learned.learn(f.shape, raw, b, 0, len(text))
	}
	if i >= 0 && f.hits>>i&1 != 0 {
		return -1
	}
	return i
}

// clip shortens a key for a message.
func clip(text []byte) string {
	const most = 80
	if len(text) <= most {
		return string(text)
	}
	n := most
	for n > most-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return string(text[:n]) + "…"
}

// passValue passes the value of a pair that is dropped.
func (w *JSONWriter) passValue(s *Scanner) error {
	if w.plan == nil {
		return s.Skip()
	}
	return w.countMaps(s)
}

// lost counts a loss, or refuses it.
func (w *JSONWriter) lost(kind LossKind, offset int64) error {
	if w.mode != modeWrite {
		return nil
	}
	if w.opts.Lossless {
		return lossFault(kind, w.where, offset)
	}
	if w.losses != nil {
		w.losses.Add(kind, w.where, w.base+offset)
	}
	return nil
}

// spill writes the buffer when it is full and nothing holds it.
func (w *JSONWriter) spill() error {
	if len(w.buf) < jsonBuffer || w.hold > 0 {
		if w.hold > 0 && len(w.buf) > 2*maxKeyText {
			return w.fail(fault.New(fault.Limit, "value", "key of more than %d bytes", maxKeyText))
		}
		return nil
	}
	if w.mode != modeWrite {
		w.buf = w.buf[:0]
		return nil
	}
	return w.Flush()
}
