package msglc

import (
	"context"
	"errors"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Repair makes a new archive of one whose payload is whole, whatever its header and its table of contents say, or of a
// plain value without either. The payload is what it is found to be by a pass over it; its bytes are kept, the table is
// made anew with the options. An object that begins with the magic of the options is an archive; another magic is
// refused, not guessed, unless [WriteOptions.AnyMagic] takes whatever stands there. The codec is that of the options,
// else that of a good header, else the one whose rules the bytes follow.
//
// The parts of a combined archive are each repaired by themselves, in their own codec, and the table of the whole leads
// to where they are then. When that table cannot be read, the names of the parts are lost, and Repair refuses; so it does
// when archives stand between the parts that the table does not list.
//
// A payload that is not whole, or has text that is not UTF-8, is [fault.Corrupt]; [Salvage] keeps what can be kept of it.
func Repair(ctx context.Context, dst Target, obj source.Object, o *WriteOptions) error {
	w, err := examine(ctx, obj, o)
	if err == nil {
		err = w.repair(wholeOf(dst), nil, 0)
	}
	return fault.Locate(err, obj.Name(), "", 0)
}

// wreck is an object that may be damaged.
type wreck struct {
	ctx      context.Context
	obj      source.Object
	s        writeSettings
	archive  bool  // it begins with the magic
	combined bool  // so does its payload
	start    int64 // of the payload
	size     int64 // of all that follows
	h        header
	listed   *listed
	moved    []int         // parts whose offset in the table was wrong, see compare
	unlisted []int64       // archives that the table does not list
	headerOK bool          // h can be read; it may be wrong all the same
	codecs   []value.Codec // that come into question
}

// examine looks at the first bytes of obj.
func examine(ctx context.Context, obj source.Object, o *WriteOptions) (*wreck, error) {
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	demanded := value.Codec(0)
	if o != nil {
		demanded = o.Codec
	}
	return examineAs(ctx, obj, s, demanded)
}

// examineAs is examine with checked options. A demanded codec of 0 stands for any.
func examineAs(ctx context.Context, obj source.Object, s writeSettings, demanded value.Codec) (w *wreck, err error) {
	w = &wreck{ctx: ctx, obj: obj, s: s, size: obj.Size()}
	p := make([]byte, min(w.size, PrefixSize+MagicSize))
	if err := obj.ReadAt(ctx, p, 0); err != nil {
		return nil, err
	}
	bad := func(class error, format string, args ...any) (*wreck, error) {
		return nil, fault.New(class, "msglc", format, args...).At(0)
	}
	if len(p) == 0 {
		return bad(fault.Corrupt, "no value in an object of 0 bytes")
	}
	switch err := checkMagic(p, s.magic); {
	case err == nil, s.anyMagic && len(p) >= MagicSize:
		w.archive = true
	case errors.Is(err, fault.UnsupportedVersion), p[0] == 0 && len(p) > 1: // as a value it is the integer 0, with bytes behind it
		return nil, err
	}
	if w.archive {
		if len(p) <= PrefixSize {
			return bad(fault.Corrupt, "archive of %d bytes, which ends before its payload", len(p))
		}
		w.start = PrefixSize
		w.size -= PrefixSize
		w.combined = len(p) == PrefixSize+MagicSize && [MagicSize]byte(p[PrefixSize:]) == s.magic
		h, err := parseHeader(p[MagicSize:PrefixSize])
		w.h, w.headerOK = h, err == nil
	}
	if w.archive && !w.combined {
		// The magic of the first part may be what is damaged.
		if w.combined, err = w.listsParts(); err != nil {
			return nil, err
		}
	}
	switch {
	case demanded != 0:
		w.codecs = []value.Codec{demanded}
		w.headerOK = w.headerOK && w.h.codec == demanded
	case w.headerOK:
		w.codecs = []value.Codec{w.h.codec}
	default:
		w.codecs = []value.Codec{value.Msgpack, value.CBOR}
	}
	return w, nil
}

func (w *wreck) corrupt(pos int64, format string, args ...any) error {
	return fault.New(fault.Corrupt, "msglc", format, args...).At(w.start + pos)
}

// locate gives a fault in the payload its place in the object.
func (w *wreck) locate(err error) error { return fault.Locate(err, w.obj.Name(), "", w.start) }

// repair writes a new archive. path leads to it.
func (w *wreck) repair(dst part, up *trail, depth int) error {
	if err := w.refuseMixed(); err != nil {
		return err
	}
	if w.combined {
		c, ok, err := w.children()
		if err != nil {
			return err
		}
		if !ok {
			return w.corrupt(c.size, "combined archive of %d parts whose table of contents cannot be read: with it the names of the parts are lost", len(c.entries))
		}
		return w.repairParts(dst, c, up, depth)
	}
	v, err := w.surveyAll()
	if err != nil {
		return err
	}
	if !v.whole {
		return v.err
	}
	// A header and a table that agree with each other, and not with the payload, tell of a damaged payload.
	if w.headerOK && w.h.tocStart != v.end && w.tocAt(w.h.tocStart, v.codec) {
		return w.corrupt(v.end, "payload is a value of %d bytes, its table of contents follows after %d: bytes inside it are damaged", v.end, w.h.tocStart)
	}
	if !w.archive && v.end != w.size {
		return w.corrupt(v.end, "%d bytes behind the value", w.size-v.end)
	}
	if bad, err := w.badText(v.codec, v.end); err != nil {
		return err
	} else if bad >= 0 {
		return w.corrupt(bad, "text that is not UTF-8")
	}
	payload, err := source.Section(w.obj, w.start, v.end)
	if err != nil {
		return err
	}
	s := w.s
	s.codec = v.codec
	return w.locate(index(w.ctx, dst, payload, s))
}

// tocAt reports whether something that looks like a node of a table of contents stands at a position.
func (w *wreck) tocAt(pos int64, c value.Codec) bool {
	if pos < 1 || pos >= w.size {
		return false
	}
	p := make([]byte, min(w.size-pos, 16))
	if w.obj.ReadAt(w.ctx, p, w.start+pos) != nil {
		return false
	}
	node, err := value.ReadHead(c, p)
	if err != nil || node.Kind != value.Map || node.Arg < 1 || node.Arg > 8 {
		return false
	}
	p = p[node.Size:]
	key, err := value.ReadHead(c, p)
	if err != nil || key.Kind != value.String || key.Arg != 1 || len(p) < key.Size+2 {
		return false
	}
	name := p[key.Size]
	v, err := value.ReadHead(c, p[key.Size+1:])
	return err == nil && (name == 'p' && v.Kind == value.Array || name == 't' && (v.Kind == value.Array || v.Kind == value.Map))
}

// survey is what a pass over a payload has found.
type survey struct {
	codec value.Codec
	whole bool
	end   int64 // where the value ends, or else the last whole value in it
	at    int64 // where it breaks
	err   error // why it is not whole
	open  []openPart
	key   []byte // the key of the value that is broken, when that is in a map and has a whole key
}

// openPart is a container that was open at the break, with what is whole of it.
type openPart struct {
	isMap bool
	start int64
	items int64
	// Items or pairs: those that are kept, of which the last may be the next open container, and those that were
	// claimed, -1 when the container does not say.
	kept, claimed int64
	key           []byte // of the next open container in this one
}

// survey passes over the payload, up to a limit, as a value of the codec. Errors are those of reading, and what is no
// fault of the payload's bytes.
func (w *wreck) survey(c value.Codec, limit int64) (*survey, error) {
	s := w.s
	s.codec = c
	b := newTOCBuilder(&s)
	defer b.close()
	done := errors.New("the value has ended")
	err := eachChunk(w.ctx, w.obj, w.start, limit, func(p []byte) error {
		if _, err := b.take(p); err != nil {
			return err
		}
		if b.whole {
			return done
		}
		return nil
	})
	if err == done || err == nil && b.whole {
		return &survey{codec: c, whole: true, end: b.base}, nil
	}
	if err == nil {
		err = b.finish()
	} else if !errors.Is(err, fault.Corrupt) {
		return nil, w.locate(err)
	}
	v := &survey{codec: c, at: b.base, err: w.locate(err)}
	return v, v.take(b)
}

// take notes the containers that are open in the builder.
func (v *survey) take(b *tocBuilder) error {
	v.end = b.base
	if b.begun {
		v.end = b.start
	}
	frames := b.frames
	for i := range frames {
		if frames[i].opaque { // a part of a key, or of a tagged value, is no value
			v.end, frames = frames[i].start, frames[:i]
			break
		}
	}
	for i := range frames {
		f := &frames[i]
		p := openPart{isMap: f.isMap, start: f.start, items: f.items, kept: f.count, claimed: -1}
		if !f.indefinite {
			p.claimed = f.count + f.left
			if f.isMap {
				p.claimed = f.count + (f.left+1)/2
			}
		}
		var key []byte
		if f.isMap && f.odd {
			k, err := b.children.reader(f.keyAt).key()
			if err != nil {
				return err
			}
			key = append([]byte(nil), k...)
		}
		if i < len(frames)-1 {
			p.kept++
			p.key = key
		} else {
			v.key = key
			v.end -= int64(len(key))
		}
		v.open = append(v.open, p)
	}
	if len(frames) == 0 {
		v.end = 0
	}
	return nil
}

// surveyAll passes over the payload with each codec that comes into question, and returns what fits best: a whole value
// with a table of contents behind it, then any whole value, then what breaks last.
func (w *wreck) surveyAll() (best *survey, err error) {
	rank := -1
	var deep *fault.Error // of bytes that nest too deep, which may be for they are of the other codec
	for _, c := range w.codecs {
		limit := w.size
		if w.headerOK && w.tocAt(w.h.tocStart, c) {
			limit = w.h.tocStart
		}
		v, err := w.survey(c, limit)
		if f, ok := err.(*fault.Error); ok && errors.Is(err, fault.Limit) {
			deep = f
			continue
		}
		if err != nil {
			return nil, err
		}
		r := 0
		if v.whole {
			r = 1
			if v.end == w.size || w.tocAt(v.end, c) {
				r = 2
			}
		}
		if r > rank || r == rank && v.end > best.end {
			best, rank = v, r
		}
	}
	if deep != nil && (best == nil || rank == 0 && best.end < deep.Offset-w.start) {
		return nil, deep
	}
	return best, nil
}

// unlike reports whether an error says that the bytes are not what was looked for. Others are errors of reading, a
// budget of the source among them.
func unlike(err error) bool {
	if err == errUseless || err == io.ErrUnexpectedEOF {
		return true
	}
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Package != "msglc" && e.Package != "value" {
		return false
	}
	switch e.Class {
	case fault.Corrupt, fault.Invalid, fault.Limit, fault.UnsupportedVersion, fault.UnsupportedCodec:
		return true
	}
	return false
}

// reading returns an error of reading, nil for one of the bytes.
func reading(err error) error {
	if unlike(err) {
		return nil
	}
	return err
}

// refuseMixed refuses an archive whose table is intact and lists archives among the nodes of values: its payload is no
// value, so what a pass over it finds would be wrong.
func (w *wreck) refuseMixed() error {
	if !w.archive {
		return nil
	}
	if _, _, err := w.parts(); err == nil { // archives and nothing else
		return nil
	}
	r, err := w.reader()
	if err != nil || r == nil {
		return err
	}
	c := r.cursor(w.ctx, 0)
	if err := c.walkTOC(w.h.tocStart, r.s.depth, nil); err != nil {
		return reading(err)
	}
	if c.archives {
		return fault.New(fault.Invalid, "msglc", "table of contents with archives among the nodes of values; take out the parts by their paths").At(w.start + w.h.tocStart)
	}
	return nil
}

// reader returns a reader of the payload by the table that the header names, nil when it names none. Its root is not
// read.
func (w *wreck) reader() (*Reader, error) {
	h := w.h
	if !w.archive || !w.headerOK || h.tocStart > w.size || h.tocSize > w.size-h.tocStart {
		return nil, nil
	}
	s, err := (&Options{Limits: w.s.limits, CacheBytes: -1}).shared(w.obj)
	if err != nil {
		return nil, err
	}
	r := &Reader{s: s, h: h, start: w.start - PrefixSize, payload: w.start}
	r.toc = newTOCBytes(w.obj, w.start+h.tocStart, h.tocSize, &s.pages, s.countedRead(w.obj))
	return r, nil
}
