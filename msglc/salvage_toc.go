package msglc

import (
	"errors"
	"io"
	"strconv"

	"github.com/spilehq/spile/value"
)

// A payload that breaks in the middle may have its table of contents whole. Then what follows the break is not lost:
// the table says where values start and end, and a value that fills its range is taken for whole. What has a node is
// kept or lost by its node; of a leaf that is broken, what comes before the break in it.

// tocSalvage goes over a payload by its table of contents: once to look, once to write.
type tocSalvage struct {
	w   *wreck
	r   *Reader // of the payload as the header and the table have it
	win *window
	rep *SalvageReport
	// What is not as the table says, by the position of the node or block in the table.
	broken map[int64]verdict
	kept   map[int64]int64 // children or items that are kept of a node
}

// verdict says what is kept of a leaf or block that is not whole.
type verdict struct {
	keep  bool
	cut   *survey // of a leaf; nil: its first bytes
	bytes int64
	items int64 // of a block
}

// maxBroken bounds the leaves and blocks that are noted as broken, about 100 MB of notes. Beyond, the table is of no
// use, and a hostile one would only cost memory.
const maxBroken = 1 << 20

var errUseless = errors.New("table of contents is of no use")

// byTable returns a salvage by the table of contents, nil when there is none that helps.
func (w *wreck) byTable(c value.Codec) (*tocSalvage, error) {
	h := w.h
	r, err := w.reader()
	if err != nil || r == nil || h.codec != c {
		return nil, err
	}
	end := int64(0) // of the leaf or block before: no byte is in two
	cur := r.cursor(w.ctx, 0)
	err = cur.walkTOC(h.tocStart, r.s.depth, func(e *entry, _ []byte) error {
		if e.isArchive() || e.form == Combined || (e.form == List || e.form == Map) && !e.hasRange {
			return errUseless
		}
		start, behind := e.start, e.end
		switch e.form {
		case Leaf:
		case Blocks:
			var err error
			if _, start, behind, err = r.cursor(w.ctx, 0).checkBlocks(e); err != nil {
				return err
			}
		default:
			return nil
		}
		if start < end {
			return errUseless
		}
		end = behind
		return nil
	})
	if err == nil {
		cur.seek(0)
		r.root, err = cur.entry(0, h.tocStart)
	}
	if err != nil {
		return nil, reading(err)
	}
	if r.root.form == Leaf || r.root.hasRange && (r.root.start != 0 || r.root.end != h.tocStart) {
		return nil, nil
	}
	return &tocSalvage{w: w, r: r, win: &window{ctx: w.ctx, r: r}, broken: make(map[int64]verdict), kept: make(map[int64]int64)}, nil
}

// look goes over a node and what is below it, and reports whether anything of it is kept.
func (t *tocSalvage) look(e *entry, path *trail) (bool, error) {
	switch {
	case e.form == Blocks:
		return true, t.lookBlocks(e, path)
	case e.children == 0:
		return t.lookLeaf(e, path)
	}
	c := t.r.cursor(t.w.ctx, e.children)
	kept := int64(0)
	var lost []int // of the breaks that say what is lost of this node
	for i := range e.count {
		step := Child{Index: i}
		if e.isMap {
			raw, err := c.key()
			if err != nil {
				return false, err
			}
			step.Key = value.Raw{Codec: t.r.h.codec, Data: append([]byte(nil), raw...)}
		}
		child, err := c.entry(e.start, e.end)
		if err != nil {
			return false, err
		}
		keep, err := t.look(&child, path.to(step.Step()))
		if err != nil {
			return false, err
		}
		if keep {
			kept++
		} else if n := len(t.rep.Breaks); t.rep.Unlisted == 0 {
			lost = append(lost, n-1)
		}
		if err := c.leave(&child); err != nil {
			return false, err
		}
	}
	if kept < e.count {
		t.kept[e.at] = kept
		kind := value.Array
		if e.isMap {
			kind = value.Map
		}
		if len(lost) > 0 { // said once, with the last that is lost
			b := &t.rep.Breaks[lost[len(lost)-1]]
			b.Cut = append(b.Cut, CutContainer{Path: path.path(), Kind: kind, Kept: kept, Claimed: e.count})
		}
	}
	return true, nil
}

func (t *tocSalvage) note(at int64, v verdict) error {
	if len(t.broken) >= maxBroken {
		return errUseless
	}
	t.broken[at] = v
	return nil
}

// lookLeaf checks that a leaf is one value that fills its range.
func (t *tocSalvage) lookLeaf(e *entry, path *trail) (bool, error) {
	size := e.end - e.start
	if size <= maxInMemory {
		p, err := t.win.bytes(e.start, e.end)
		if err != nil {
			return false, err
		}
		if used, err := value.Skip(t.r.h.codec, p, 1, t.w.s.limits); err == nil && used == len(p) {
			return true, t.lookText(e.start, e.end, path)
		}
	}
	sub := *t.w
	sub.start += e.start
	v, err := sub.survey(t.r.h.codec, size)
	if err != nil {
		return false, err
	}
	if v.whole && v.end == size {
		return true, t.lookText(e.start, e.end, path)
	}
	b := Break{Offset: sub.start + v.end, Path: path.path()}
	kept := verdict{keep: true, cut: v}
	switch {
	case v.whole:
		b.Err = sub.corrupt(v.end, "value of %d bytes, its node has %d: bytes inside it are damaged", v.end, size)
		head, _, err := t.win.head(e.start, e.end)
		kept = verdict{keep: err == nil && (head.Kind == value.Array || head.Kind == value.Map), bytes: v.end}
	case len(v.open) == 0:
		b.Offset, b.Err = sub.start+v.at, v.err
		kept.keep = false
	default:
		b = v.report(sub.start, path.path())
	}
	t.rep.add(b)
	return kept.keep, t.note(e.at, kept)
}

// lookBlocks checks that each block holds its items and nothing else.
func (t *tocSalvage) lookBlocks(e *entry, path *trail) error {
	c := t.r.cursor(t.w.ctx, e.children)
	from, items, kept := int64(-1), int64(0), int64(0)
	said := -1
	for range e.count {
		at := c.at()
		n, start, end, err := c.block(from, e.start, e.end)
		if err != nil {
			return err
		}
		from = end
		whole, size, err := t.wholeItems(start, end, n)
		if whole == n && size == end-start {
			err = t.lookText(start, end, path)
		} else if reading(err) == nil {
			if size < end-start && whole == n { // bytes behind the last item: none of them can be trusted to be the right ones
				whole, size = 0, 0
			}
			step := path.to(TextStep(strconv.FormatInt(items+whole, 10)))
			t.rep.add(Break{Offset: t.w.start + start + size, Path: step.path(), Err: t.w.corrupt(start+size, "block of %d items breaks after %d", n, whole)})
			if t.rep.Unlisted == 0 {
				said = len(t.rep.Breaks) - 1
			}
			err = t.note(at, verdict{keep: true, items: whole, bytes: size})
		}
		if err != nil {
			return err
		}
		items += n
		kept += whole
	}
	if kept != items {
		t.kept[e.at] = kept
		if said >= 0 {
			t.rep.Breaks[said].Cut = []CutContainer{{Path: path.path(), Kind: value.Array, Kept: kept, Claimed: items}}
		}
	} else {
		t.kept[e.at] = items
	}
	return nil
}

// wholeItems counts the whole values in a payload range, n at most, and their bytes. The error says what breaks.
func (t *tocSalvage) wholeItems(start, end, n int64) (items, size int64, err error) {
	s, err := t.win.scan(start, end, t.r.s.limits)
	if err != nil {
		return 0, 0, err
	}
	for items < n {
		if err := s.Skip(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return items, size, err
		}
		items, size = items+1, s.Offset()
	}
	return items, size, nil
}

// lookText reports the first text in a payload range, of whole values, that is not UTF-8.
func (t *tocSalvage) lookText(start, end int64, path *trail) error {
	s := newTextScan(t.r.h.codec, start)
	for at := start; at < end && s.bad < 0; {
		p, err := t.win.bytes(at, min(end, at+copyBuffer))
		if err != nil {
			return err
		}
		s.take(p)
		at += int64(len(p))
	}
	if s.bad >= 0 {
		t.rep.add(Break{Offset: t.w.start + s.bad, Path: path.path(), Err: t.w.notUTF8(s.bad)})
	}
	return nil
}

func (w *wreck) notUTF8(pos int64) error {
	return w.corrupt(pos, "text that is not UTF-8; it is kept as it is")
}

// write writes what is kept of a node.
func (t *tocSalvage) write(out *Writer, e *entry) error {
	codec := t.r.h.codec
	if e.children == 0 {
		return t.writeRange(out, e.at, e.start, e.end)
	}
	if e.form == Blocks {
		if _, err := out.Write(value.AppendArrayHeader(nil, codec, int(t.kept[e.at]))); err != nil {
			return err
		}
		c := t.r.cursor(t.w.ctx, e.children)
		for range e.count {
			at := c.at()
			_, start, end, err := c.block(-1, e.start, e.end)
			if err == nil {
				err = t.writeRange(out, at, start, end)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	kept, cut := t.kept[e.at]
	if !cut {
		kept = e.count
	}
	head := value.AppendArrayHeader(nil, codec, int(kept))
	if e.isMap {
		head = value.AppendMapHeader(nil, codec, int(kept))
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	c := t.r.cursor(t.w.ctx, e.children)
	for range e.count {
		var key []byte
		if e.isMap {
			raw, err := c.key()
			if err != nil {
				return err
			}
			key = append(key, raw...)
		}
		child, err := c.entry(e.start, e.end)
		if err != nil {
			return err
		}
		if v, broken := t.broken[child.at]; !broken || v.keep || child.children != 0 {
			if _, err := out.Write(key); err != nil {
				return err
			}
			if err := t.write(out, &child); err != nil {
				return err
			}
		}
		if err := c.leave(&child); err != nil {
			return err
		}
	}
	return nil
}

// writeRange writes what is kept of a leaf or block.
func (t *tocSalvage) writeRange(out *Writer, at, start, end int64) error {
	if v, broken := t.broken[at]; broken {
		if v.cut != nil {
			sub := *t.w
			sub.start += start
			return sub.copyWhole(out, v.cut)
		}
		end = start + v.bytes
	}
	if end-start > maxInMemory {
		return eachChunk(t.w.ctx, t.w.obj, t.w.start+start, end-start, out.pass)
	}
	p, err := t.win.bytes(start, end)
	if err == nil {
		_, err = out.Write(p)
	}
	return err
}

// salvageByTable writes an archive of what is whole by the table of contents. It reports false, and has written
// nothing, when the table is of no use.
func (w *wreck) salvageByTable(dst Target, c value.Codec, r *SalvageReport, up *trail) (bool, error) {
	t, err := w.byTable(c)
	if err != nil || t == nil {
		return false, err
	}
	was := *r
	t.rep = r
	if _, err := t.look(&t.r.root, up); err != nil {
		*r = was
		return false, reading(err)
	}
	if len(r.Breaks) == len(was.Breaks) && r.Unlisted == was.Unlisted {
		// All that has a node is whole, so what breaks is a head or a key, which the table has too.
		r.add(Break{Offset: w.start, Path: up.path(), Err: w.corrupt(0, "the payload is damaged between its values; the table of contents has what is missing, and nothing is lost")})
	}
	s := w.s
	s.codec = c
	out, err := newWriter(w.ctx, dst, s)
	if err != nil {
		return true, err
	}
	if err := t.write(out, &t.r.root); err != nil {
		return true, out.fail(err)
	}
	return true, out.Close()
}

// badText returns the position of the first text that is not UTF-8 in the first bytes of a payload, in which a survey
// found nothing wrong; -1 when there is none.
func (w *wreck) badText(c value.Codec, end int64) (int64, error) {
	s := newTextScan(c, 0)
	err := eachChunk(w.ctx, w.obj, w.start, end, func(p []byte) error {
		if s.take(p); s.bad >= 0 {
			return errStop
		}
		return nil
	})
	if err == errStop {
		err = nil
	}
	return s.bad, err
}
