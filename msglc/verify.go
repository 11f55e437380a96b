package msglc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Finding is one thing that [Reader.Verify] has to say. A note is no fault of the file.
type Finding struct {
	Err  *fault.Error // Where is the document path, Offset the place in the object
	Note bool
}

// VerifyOptions are the options of [Reader.Verify]. Nil and the zero value mean the defaults.
type VerifyOptions struct {
	// Deep checks the payload too. It is walked and compared with the table node by node: every value decodes, starts and
	// ends where its node says, has the keys and the number of items that the table has; its text is UTF-8.
	Deep bool
}

// Verify checks the archive and the archives in it: the whole table of contents, in which no key may occur twice in one
// map and every text is UTF-8, and with VerifyOptions.Deep the payload. It reports each finding and goes on behind it. The
// error is one of the source or the context, not of the data.
func (r *Reader) Verify(ctx context.Context, o *VerifyOptions, report func(Finding)) error {
	deep := o != nil && o.Deep
	all := r.s.obj.Size() + r.h.tocSize
	v := &verifier{ctx: ctx, deep: deep, report: report, left: all, keysLeft: maxKeyPasses * all, keysAtOnce: keysAtOnce}
	if r.side != nil {
		v.found(r, nil, r.side.checkTOC(ctx, r.s.tocObj))
	}
	v.archive(r, nil)
	if v.err == errStop {
		return nil
	}
	return v.err
}

type verifier struct {
	ctx    context.Context
	deep   bool
	report func(Finding)
	left   int64 // bytes that may still be checked, see [budget]
	err    error // of the source, or errStop; ends the walk

	keysAtOnce int64
	keysLeft   int64      // bytes of tables that may still be passed over for the keys of large maps
	keys       keyset.Set // of one large map
}

// take counts bytes that are to be checked. Where archives or children overlap it ends the walk, which would go over
// the same bytes again and again.
func (v *verifier) take(r *Reader, path *trail, position, size int64) bool {
	if v.left -= size; v.left < 0 && v.err == nil {
		v.corrupt(r, path, position, "children overlap: more bytes to check than the file has; the rest is not checked")
		v.err = errStop
	}
	return v.err == nil
}

// found reports an error of the data; one of the source ends the walk.
func (v *verifier) found(r *Reader, path *trail, err error) {
	var e *fault.Error
	if v.err != nil || err == nil {
		return
	}
	if !errors.As(err, &e) || e.Package != "msglc" && e.Package != "value" || v.ctx.Err() != nil {
		v.err = err
		return
	}
	e = fault.Locate(e, r.s.obj.Name(), "", 0).(*fault.Error)
	if e.Where == "" {
		c := *e
		e = c.On(path.path().String())
	}
	v.report(Finding{Err: e})
}

func (v *verifier) corrupt(r *Reader, path *trail, position int64, format string, args ...any) {
	v.found(r, path, fault.New(fault.Corrupt, "msglc", format, args...).At(r.payload+position))
}

// trail is the path to a node, from the node up.
type trail struct {
	up    *trail
	step  Step
	depth int // steps from the root
}

func (t *trail) to(step Step) *trail { return &trail{up: t, step: step, depth: t.steps() + 1} }

// steps is how many nodes enclose the one that the trail leads to.
func (t *trail) steps() int {
	if t == nil {
		return 0
	}
	return t.depth
}

func (t *trail) path() Path {
	var p Path
	for ; t != nil; t = t.up {
		p = append(p, t.step)
	}
	for i, j := 0, len(p)-1; i < j; i, j = i+1, j-1 {
		p[i], p[j] = p[j], p[i]
	}
	return p
}

func (v *verifier) archive(r *Reader, path *trail) {
	if !v.take(r, path, 0, r.h.tocSize) {
		return
	}
	if r.toc != nil {
		if err := r.cursor(v.ctx, 0).walkTOC(r.h.tocStart, r.s.depth, nil); err != nil {
			// Beyond the first wrong number nothing in the table can be relied on.
			v.found(r, path, err)
			return
		}
	}
	w := &window{ctx: source.UpTo(v.ctx, r.payload+r.h.tocStart), r: r}
	root := &r.root
	if v.deep && root.hasRange && (root.start != 0 || root.end != r.h.tocStart) {
		v.corrupt(r, path, root.start, "root node [%d, %d) of a payload of %d bytes", root.start, root.end, r.h.tocStart)
	}
	end := v.node(r, w, root, path, 0)
	if v.deep && !root.hasRange && end >= 0 && end != r.h.tocStart {
		v.corrupt(r, path, end, "root value ends at %d, the payload at %d", end, r.h.tocStart)
	}
}

// node checks a node, and in a deep check its value, which must start at the position from, unless that is negative.
// It returns where the value ends, -1 when that cannot be said.
func (v *verifier) node(r *Reader, w *window, e *entry, path *trail, from int64) int64 {
	if v.err != nil {
		return -1
	}
	if e.isArchive() {
		sub, err := r.archive(v.ctx, e.offset)
		if err != nil {
			v.found(r, path, err)
			return -1
		}
		if !v.take(r, path, e.offset, PrefixSize) {
			return -1
		}
		v.archive(sub, path)
		return -1
	}
	if v.deep && e.hasRange && from >= 0 && e.start != from {
		v.corrupt(r, path, from, "node starts at %d, its value at %d", e.start, from)
	}
	switch {
	case e.children != 0 && path.steps() >= r.s.depth:
		v.found(r, path, tooDeep(r.s.depth).At(r.payload+e.start))
		return e.end
	case e.form == Blocks:
		return v.blocks(r, w, e, path, from)
	case e.children == 0:
		if v.deep {
			v.leaf(r, w, e.start, e.end, 1, path)
		}
		return e.end
	}
	return v.table(r, w, e, path, from)
}

// table checks a list, map or combined node and its children. A node without a range of its own must stand at from.
func (v *verifier) table(r *Reader, w *window, e *entry, path *trail, from int64) int64 {
	pos, start := int64(-1), from
	if e.hasRange {
		start = e.start
	}
	var head value.Head
	if v.deep && e.form != Combined && start >= 0 {
		var err error
		if head, pos, err = w.head(start, e.end); err != nil {
			v.found(r, path, err)
			return e.end
		}
		kind := value.Array
		if e.isMap {
			kind = value.Map
		}
		if head.Kind != kind {
			v.corrupt(r, path, start, "%s in the payload, %s in the table of contents", head.Kind, kind)
			return e.end
		}
		if !head.Indefinite && int64(head.Arg) != e.count {
			v.corrupt(r, path, start, "%s of %d in the payload, of %d in the table of contents", kind, head.Arg, e.count)
			pos = -1
		}
	}
	var seen map[string]bool // keys, in a map of not too many
	var twice []int64        // children whose key occurs before, in a larger one
	if e.isMap && e.count > v.keysAtOnce {
		if twice = v.keysTwice(r, e, path); v.err != nil {
			return -1
		}
	} else if e.isMap {
		seen = make(map[string]bool)
	}
	c := r.cursor(v.ctx, e.children)
	for i := range e.count {
		step := Step{text: strconv.FormatInt(i, 10)}
		if e.isMap {
			raw, err := c.key()
			if err != nil {
				v.found(r, path, err)
				return e.end
			}
			key := Child{Key: value.Raw{Codec: r.h.codec, Data: bytes.Clone(raw)}}
			step = key.Step()
			again := false
			if seen != nil {
				canonical := canonicalKey(nil, r.h.codec, raw)
				again = seen[string(canonical)]
				seen[string(canonical)] = true
			} else if again = len(twice) > 0 && twice[0] == i; again {
				twice = twice[1:]
			}
			if h, content := keyContent(r.h.codec, raw); h.Kind == value.String && !utf8.Valid(content) {
				v.found(r, path, fault.New(fault.Corrupt, "msglc", "key %s in the table of contents is not UTF-8", keyText(key.Key)).At(c.t.base+c.at()))
			}
			if h, err := value.ReadHead(r.h.codec, raw); v.deep && err == nil && (h.Kind == value.Array || h.Kind == value.Map || h.Kind == value.Tag) {
				limits := r.s.limits.Within(path.steps() + 1)
				jw := value.NewJSONWriter(io.Discard, limits, anyKeys, nil)
				jw.At("", c.t.base+c.at()-int64(len(raw)))
				v.found(r, path, jw.WriteValue(value.NewScanner(r.h.codec, raw, limits)))
			}
			if again {
				v.found(r, path, fault.New(fault.Conflict, "msglc", "key %s occurs twice in the table of contents", keyText(key.Key)).At(c.t.base+c.at()))
			}
			pos = v.key(r, w, pos, e.end, key.Key, path)
		}
		child, err := c.entry(e.start, e.end)
		if err != nil {
			v.found(r, path, err)
			return e.end
		}
		end := v.node(r, w, &child, path.to(step), pos)
		if v.err != nil {
			return -1
		}
		if pos >= 0 {
			pos = end
		}
		if err := c.leave(&child); err != nil {
			v.found(r, path, err)
			return e.end
		}
	}
	c.passed(e)
	if pos >= 0 && head.Indefinite {
		if p, err := w.bytes(pos, min(pos+1, e.end)); err != nil {
			v.found(r, path, err)
		} else if len(p) == 0 || p[0] != 0xff {
			v.corrupt(r, path, pos, "no break behind the last child")
		}
		pos++
	}
	if !e.hasRange {
		return pos
	}
	if pos >= 0 && pos != e.end {
		v.corrupt(r, path, pos, "children end at %d, their node at %d", pos, e.end)
	}
	return e.end
}

const (
	// keysAtOnce is the number of keys of one map up to which they are all kept in memory, to be compared with one
	// another.
	keysAtOnce = 1 << 20
	// maxKeyPasses bounds the passes over tables for the keys of larger maps, in lengths of the file. A large map takes
	// one, and one more when a filter suspects keys; those around it pass over it too.
	maxKeyPasses = 16
)

// keysTwice returns the children of a large map whose key is also that of one in front of them, in order. It is a pass
// over the table in bounded memory, and another one to compare what a filter suspects (package keyset).
func (v *verifier) keysTwice(r *Reader, e *entry, path *trail) (twice []int64) {
	var canonical []byte
	var pass func(set *keyset.Set, upTo int64) error
	pass = func(set *keyset.Set, upTo int64) error {
		c := r.cursor(v.ctx, e.children)
		defer func() { v.keysLeft -= c.at() - e.children }()
		var m keyset.Map
		set.Begin(&m, 0)
		for i := range upTo {
			raw, err := c.key()
			if err != nil {
				return err
			}
			canonical = canonicalKey(canonical[:0], r.h.codec, raw)
			twin, err := set.Add(&m, canonical, i)
			if err != nil {
				return err
			}
			if twin != nil {
				twice = append(twice, i)
			}
			if set == &v.keys && set.Full() {
				if err := set.LookUp(func(look *keyset.Set) error { return pass(look, i+1) }); err != nil {
					return err
				}
			}
			if err := c.skip(1); err != nil {
				return err
			}
			if v.keysLeft < c.at()-e.children {
				return fault.New(fault.Limit, "msglc", "map of %d keys: to compare them all, more of the table would be read than %d times the file", e.count, maxKeyPasses).
					At(c.t.base + e.children)
			}
		}
		return set.End(&m)
	}
	v.keys.Reset(keyset.Reread)
	err := pass(&v.keys, e.count)
	if err == nil {
		err = v.keys.LookUp(func(look *keyset.Set) error { return pass(look, e.count) })
	}
	v.keys.Reset(keyset.Reread)
	v.found(r, path, err)
	slices.Sort(twice)
	return slices.Compact(twice) // a second look may begin anew
}

// key compares the key in the payload at pos with that of the table and returns where it ends.
func (v *verifier) key(r *Reader, w *window, pos, end int64, key value.Raw, path *trail) int64 {
	if pos < 0 {
		return pos
	}
	p, err := w.bytes(pos, min(end, pos+int64(len(key.Data))))
	if err != nil {
		v.found(r, path, err)
		return -1
	}
	if !bytes.Equal(p, key.Data) {
		v.corrupt(r, path, pos, "key % x in the payload, % x (%s) in the table of contents", p, key.Data, keyText(key))
		return -1
	}
	return pos + int64(len(p))
}

// blocks checks a blocks node, whose array header stands in front of its items.
func (v *verifier) blocks(r *Reader, w *window, e *entry, path *trail, from int64) (end int64) {
	c := r.cursor(v.ctx, e.children)
	items, start, last, err := c.checkBlocks(e)
	if err != nil {
		v.found(r, path, err)
		return -1
	}
	if !v.deep {
		return -1
	}
	end = last
	if head, at, err := w.head(max(from, 0), last); from < 0 {
		end = -1
	} else if err != nil {
		v.found(r, path, err)
	} else {
		switch {
		case head.Kind != value.Array:
			v.corrupt(r, path, from, "%s in the payload, blocks in the table of contents", head.Kind)
		case !head.Indefinite && int64(head.Arg) != items:
			v.corrupt(r, path, from, "list of %d in the payload, blocks of %d in the table of contents", head.Arg, items)
		case at != start:
			v.corrupt(r, path, from, "first item at %d, first block at %d", at, start)
		}
		if head.Indefinite {
			end++ // the break
			if p, err := w.bytes(last, min(end, r.h.tocStart)); err != nil {
				v.found(r, path, err)
			} else if len(p) == 0 || p[0] != 0xff {
				v.corrupt(r, path, last, "no break behind the last block")
			}
		}
	}
	c.seek(e.children)
	before := int64(0)
	for range e.count {
		n, s, t, err := c.block(-1, e.start, e.end)
		if err != nil || v.err != nil {
			return -1
		}
		v.leaf(r, w, s, t, n, path.to(Step{text: strconv.FormatInt(before, 10) + ":" + strconv.FormatInt(before+n, 10)}))
		before += n
	}
	return end
}

// leaf decodes the values in a payload range, count of them and nothing behind.
func (v *verifier) leaf(r *Reader, w *window, start, end, count int64, path *trail) {
	if !v.take(r, path, start, end-start) {
		return
	}
	limits := r.s.limits.Within(path.steps())
	marked, err := v.decode(r, w, start, end, count, limits, plainKeys)
	if errors.Is(err, fault.Invalid) {
		// A key that is no string, most likely. The JSON form that takes all keys needs a look ahead into every map.
		marked, err = v.decode(r, w, start, end, count, limits, anyKeys)
	}
	if err != nil {
		v.found(r, path, err)
		return
	}
	if marked {
		v.pickles(r, w, start, end, path)
	}
}

// The JSON writer serves as a checker: everything that is right in the encoding passes.
var (
	plainKeys = &value.JSONOptions{NonFinite: value.NonFiniteString}
	anyKeys   = &value.JSONOptions{NonFinite: value.NonFiniteString, Keys: value.KeysPairs}
)

// decode decodes the values in a payload range, and reports whether there may be pickles in it.
func (v *verifier) decode(r *Reader, w *window, start, end, count int64, limits value.Limits, o *value.JSONOptions) (marked bool, err error) {
	s, err := w.scan(start, end, limits)
	if err != nil {
		return false, err
	}
	jw := value.NewJSONWriter(io.Discard, limits, o, nil)
	jw.At("", r.payload+start)
	if count == 1 && end-start > maxInMemory { // it may read parts again, to compare many keys and to look ahead
		ctx := source.UpTo(v.ctx, r.payload+end)
		in := &marks{r: io.NewSectionReader(source.AsReaderAt(ctx, r.s.obj), r.payload+start, end-start)}
		err := jw.WriteSection(r.h.codec, in, 0, end-start)
		return in.found || in.seen < end-start, err
	}
	for i := range count {
		if err := jw.WriteValue(s); err == io.EOF {
			return false, fault.New(fault.Corrupt, "msglc", "%d of %d values", i, count).At(r.payload + end)
		} else if err != nil {
			return false, err
		}
	}
	if at := start + s.Offset(); at != end {
		return false, fault.New(fault.Corrupt, "msglc", "value ends at %d, its node at %d", at, end).At(r.payload + at)
	}
	return true, nil
}

// marks looks for the mark of pickles in what is read of a long value from front to back, so that by far the most of them
// are not read once more for it.
type marks struct {
	r     io.ReaderAt
	seen  int64  // bytes from the front
	tail  []byte // the last of them, where a mark may begin
	found bool
}

func (m *marks) ReadAt(p []byte, off int64) (int, error) {
	n, err := m.r.ReadAt(p, off)
	if more := off + int64(n) - m.seen; off <= m.seen && more > 0 {
		fresh, border := p[int64(n)-more:n], len(pickleMark)-1
		joined := append(m.tail, fresh[:min(len(fresh), border)]...)
		m.found = m.found || bytes.Contains(joined, pickleMark) || bytes.Contains(fresh, pickleMark)
		if len(fresh) >= border {
			joined = append(joined[:0], fresh[len(fresh)-border:]...)
		}
		m.tail = joined[max(0, len(joined)-border):]
		m.seen += more
	}
	return n, err
}

// pickles notes the first binary value in a payload range that looks like a pickle.
func (v *verifier) pickles(r *Reader, w *window, start, end int64, path *trail) {
	if end-start <= maxInMemory {
		if p, err := w.bytes(start, end); err != nil || !bytes.Contains(p, pickleMark) {
			return // by far the most
		}
	}
	s, err := w.scan(start, end, r.s.limits)
	for err == nil {
		if err = s.Next(); err == nil && s.Kind == value.Bytes && looksLikePickle(s.Data) {
			e := fault.New(fault.Invalid, "msglc", "binary value looks like a Python pickle of an array; it is never interpreted")
			v.report(Finding{Note: true, Err: e.At(r.payload + start + s.Start()).On(path.path().String()).In(r.s.obj.Name())})
			return
		}
	}
}

var pickleMark = []byte("multiarray")

// looksLikePickle reports whether the original would take a binary value for a pickled array: it has the text
// "multiarray" in its first 40 bytes. Nothing here ever interprets it.
func looksLikePickle(content []byte) bool {
	return bytes.Contains(content[:min(len(content), 40)], pickleMark)
}

// window reads the payload in order, in long reads.
type window struct {
	ctx context.Context
	r   *Reader
	off int64
	p   []byte
}

// bytes returns a payload range, valid until the next call.
func (w *window) bytes(start, end int64) ([]byte, error) {
	if end < start || end > w.r.h.tocStart { // also of what is here: a value may begin behind the end of its node
		return nil, fault.New(fault.Corrupt, "msglc", "range [%d, %d) in a payload of %d", start, end, w.r.h.tocStart)
	}
	if start < w.off || end > w.off+int64(len(w.p)) {
		n := min(max(end-start, copyBuffer), w.r.h.tocStart-start)
		// What is here already is not read again, so that each read starts where the one before has ended.
		var known []byte
		if rel := start - w.off; rel >= 0 && rel < int64(len(w.p)) {
			known = w.p[rel:]
		}
		n = max(n, int64(len(known)))
		if int64(cap(w.p)) < n {
			w.p = make([]byte, n)
		}
		have := copy(w.p[:n], known)
		w.p = w.p[:n]
		w.off = start
		if err := w.r.s.obj.ReadAt(w.ctx, w.p[have:], w.r.payload+start+int64(have)); err != nil {
			w.p = w.p[:0]
			return nil, err
		}
	}
	return w.p[start-w.off : end-w.off], nil
}

// head reads the head of the container at start and returns where its content starts.
func (w *window) head(start, end int64) (value.Head, int64, error) {
	p, err := w.bytes(start, min(end, start+value.MaxHead))
	if err != nil {
		return value.Head{}, 0, err
	}
	h, err := value.ReadHead(w.r.h.codec, p)
	if err == io.ErrUnexpectedEOF {
		err = fault.New(fault.Corrupt, "msglc", "value ends within its head").At(0)
	}
	return h, start + int64(h.Size), fault.Shift(err, w.r.payload+start)
}

// scan returns a scanner of a payload range.
func (w *window) scan(start, end int64, limits value.Limits) (*value.Scanner, error) {
	if end-start > maxInMemory {
		in := source.NewReader(w.ctx, w.r.s.obj, w.r.payload+start, end-start, copyBuffer)
		return value.NewStream(w.r.h.codec, in, end-start, limits), nil
	}
	p, err := w.bytes(start, end)
	return value.NewScanner(w.r.h.codec, p, limits), err
}
