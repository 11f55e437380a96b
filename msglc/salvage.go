package msglc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// SalvageReport says what Salvage kept.
type SalvageReport struct {
	Codec    value.Codec // of the new archive
	Breaks   []Break     // where something is missing or not as it should be, the first thousand; none: nothing is
	Unlisted int64       // how many more

	steps int // in the paths of the breaks
}

// maxBreaks bounds the breaks that are listed, and maxBreakSteps the steps of their paths, which may be long: 16 MB.
const (
	maxBreaks     = 1000
	maxBreakSteps = 1 << 18
)

func (r *SalvageReport) add(b Break) {
	if len(r.Breaks) >= maxBreaks || r.steps > maxBreakSteps {
		r.Unlisted++
		return
	}
	r.steps += len(b.Path)
	r.Breaks = append(r.Breaks, b)
}

// Break is a place where a document breaks off.
type Break struct {
	Offset int64 // in the object
	Path   Path  // of the value that is broken
	Err    error // what is wrong there
	// Cut are the containers around the broken value that are in the new document with what they had before it,
	// outermost first. There are none when nothing was kept of a part, or its bytes are all there.
	Cut []CutContainer
}

// CutContainer is a container that lost what follows a break.
type CutContainer struct {
	Path    Path
	Kind    value.Kind // Array or Map
	Kept    int64      // items or pairs, the one that is cut itself included
	Claimed int64      // that the container says it has; -1 when it does not say
}

// Salvage makes an archive of what is whole in a truncated or damaged one, or in a plain value: every complete value
// before the break. The containers that are open at the break are closed: an array has its complete items, a map its
// complete pairs, and their counts are made right. Behind a break, values are kept where an intact table of contents
// says where they are and they fill their range; without one nothing is looked at there, since without what stands in
// front of them bytes can mean anything. Text that is not UTF-8 is kept as it is and reported. What is found of the
// object is as with [Repair].
//
// A combined archive keeps its parts, each salvaged by itself, and of those at one offset the first. When its table of
// contents is lost, so are the names of the parts: they become a list.
//
// The object is read twice, since the counts stand in front of what they count. Nothing to keep is [fault.Corrupt].
func Salvage(ctx context.Context, dst Target, obj source.Object, o *WriteOptions) (SalvageReport, error) {
	var r SalvageReport
	w, err := examine(ctx, obj, o)
	if err == nil {
		err = w.refuseMixed()
	}
	switch {
	case err != nil:
	case w.combined:
		r.Codec, err = w.salvageParts(wholeOf(dst), &r, nil, 0)
	default:
		var v *survey
		if v, err = w.surveyAll(); err == nil {
			r.Codec = v.codec
			err = w.salvage(dst, v, &r, nil)
		}
	}
	if n, ok := err.(*nothingKept); ok {
		e := *n.why
		e.Msg = "nothing to salvage: " + e.Msg
		err = &e
	}
	return r, fault.Locate(err, obj.Name(), "", 0)
}

// nothingKept says why there is nothing to keep of an archive. It does not leave the package.
type nothingKept struct{ why *fault.Error }

func (n *nothingKept) Error() string { return n.why.Error() }

func nothing(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	return &nothingKept{e}
}

// salvage writes an archive of what is whole in a plain payload. path leads to it.
func (w *wreck) salvage(dst Target, v *survey, r *SalvageReport, up *trail) error {
	b := Break{Offset: w.start + v.end, Path: up.path()}
	bad := int64(-1) // where text is not UTF-8; in a key, the table may have it right
	if v.whole {
		var err error
		if bad, err = w.badText(v.codec, v.end); err != nil {
			return err
		}
	}
	if !v.whole || bad >= 0 || w.headerOK && w.h.tocStart != v.end {
		if done, err := w.salvageByTable(dst, v.codec, r, up); done || err != nil {
			return err
		}
	}
	switch {
	case !v.whole && len(v.open) == 0:
		return nothing(v.err)
	case !v.whole:
		b = v.report(w.start, up.path())
	case w.headerOK && w.h.tocStart != v.end && w.tocAt(w.h.tocStart, v.codec):
		b.Err = w.corrupt(v.end, "the value ends here, its table of contents follows after %d bytes: bytes inside it are damaged", w.h.tocStart-v.end)
	case !w.archive && v.end != w.size:
		b.Err = w.corrupt(v.end, "%d bytes behind the value", w.size-v.end)
	}
	if b.Err != nil {
		r.add(b)
	}
	if !v.whole {
		var err error
		if bad, err = w.badText(v.codec, v.end); err != nil {
			return err
		}
	}
	if bad >= 0 {
		r.add(Break{Offset: w.start + bad, Path: up.path(), Err: w.notUTF8(bad)})
	}
	s := w.s
	s.codec = v.codec
	out, err := newWriter(w.ctx, dst, s)
	if err != nil {
		return err
	}
	if err := w.copyWhole(out, v); err != nil {
		return out.fail(err)
	}
	return out.Close()
}

// copyWhole writes the payload: what is whole, each open container with a new head.
func (w *wreck) copyWhole(out *Writer, v *survey) error {
	pass := func(from, to int64) error {
		return eachChunk(w.ctx, w.obj, w.start+from, to-from, func(p []byte) error {
			_, err := out.Write(p)
			return err
		})
	}
	if v.whole {
		return pass(0, v.end)
	}
	for i, p := range v.open {
		head := value.AppendArrayHeader(nil, v.codec, int(p.kept))
		if p.isMap {
			head = value.AppendMapHeader(nil, v.codec, int(p.kept))
		}
		if _, err := out.Write(head); err != nil {
			return err
		}
		to := v.end
		if i+1 < len(v.open) {
			to = v.open[i+1].start
		}
		if err := pass(p.items, to); err != nil {
			return err
		}
	}
	return nil
}

// report describes the break for people. start is where the payload starts in the object, path leads to its root.
func (v *survey) report(start int64, path Path) Break {
	b := Break{Offset: start + v.at, Err: v.err}
	path = append(make(Path, 0, len(path)+len(v.open)+1), path...) // the paths of all share their steps
	for i, p := range v.open {
		kind := value.Array
		if p.isMap {
			kind = value.Map
		}
		b.Cut = append(b.Cut, CutContainer{Path: path[:len(path):len(path)], Kind: kind, Kept: p.kept, Claimed: p.claimed})
		key, index := p.key, p.kept-1
		if i == len(v.open)-1 {
			key, index = v.key, p.kept
		}
		step := TextStep(fmt.Sprint(index))
		if p.isMap {
			if len(key) == 0 { // the key itself is broken
				break
			}
			step = keyStep(value.Raw{Codec: v.codec, Data: key})
		}
		path = append(path, step)
	}
	b.Path = path
	return b
}

// keyStep is the step by a key: a text where that says it.
func keyStep(key value.Raw) Step {
	h, err := value.ReadHead(key.Codec, key.Data)
	if err == nil && h.Kind == value.String && !h.Indefinite {
		return TextStep(string(key.Data[h.Size:]))
	}
	return KeyStep(key)
}

// salvageParts writes a combined archive of the parts of one, and returns its codec. path leads to it.
func (w *wreck) salvageParts(dst part, r *SalvageReport, up *trail, depth int) (value.Codec, error) {
	if most := w.s.limits.MaxNesting(); depth >= most {
		return 0, fault.New(fault.Limit, "msglc", "archives nested deeper than %d", most).At(w.start)
	}
	found, named, err := w.children()
	if err != nil {
		return 0, err
	}
	ends := w.partEnds(found)
	if !named && found.size < w.size { // behind the last whole part there may be one that is cut
		found.entries = append(found.entries, combinedEntry{offset: found.size})
		ends = append(ends, w.size)
	}
	if err := beginArchive(dst, w.s.magic); err != nil {
		return 0, err
	}
	out := combiner{ctx: w.ctx, s: found.s, dst: dst, isMap: found.isMap}
	taken := make(map[int64]bool, len(found.entries))
	for i, e := range found.entries {
		step := TextStep(fmt.Sprint(i))
		if found.isMap {
			step = keyStep(value.Raw{Codec: found.s.codec, Data: e.name})
		}
		at := &trail{up: up, step: step}
		// Parts of different offsets share no byte, see partEnds. Those of one offset would, and in archives of archives
		// they multiply.
		if taken[e.offset] {
			r.add(Break{Offset: w.start + e.offset, Path: at.path(), Err: w.corrupt(e.offset, "children overlap: another part starts here, too")})
			continue
		}
		taken[e.offset] = true
		before := dst.c.n
		err := w.salvagePart(part{dst.c, dst.start + PrefixSize + out.size}, e.offset, ends[i], r, at, depth)
		none, ok := err.(*nothingKept)
		switch {
		case err == nil:
			out.entries = append(out.entries, combinedEntry{name: e.name, offset: out.size})
		case !ok:
			return 0, err
		case named || e.offset < found.size: // else it is what is left of the table of contents
			r.add(Break{Offset: w.start + e.offset, Path: at.path(), Err: none.why})
		}
		out.size += dst.c.n - before
	}
	if len(out.entries) == 0 {
		return 0, nothing(w.corrupt(0, "no part of the combined archive can be kept"))
	}
	if !named {
		r.add(Break{Offset: w.start + found.size, Path: up.path(), Err: w.corrupt(found.size,
			"the table of contents of the combined archive is lost, and with it the names of its parts if they had some: they are a list now")})
	}
	return out.s.codec, out.write(nil)
}

// partEnds gives for each part where the next one, or else the table of contents, begins.
func (w *wreck) partEnds(c combiner) []int64 {
	sorted := make([]int64, 0, len(c.entries)+1)
	for _, e := range c.entries {
		sorted = append(sorted, e.offset)
	}
	sorted = append(sorted, min(c.size, w.size))
	slices.Sort(sorted)
	ends := make([]int64, len(c.entries))
	for i, e := range c.entries {
		k, _ := slices.BinarySearch(sorted, e.offset+1)
		ends[i] = sorted[min(k, len(sorted)-1)]
	}
	return ends
}

// salvagePart writes what is whole in the part between two positions. A part that is whole is copied as it is.
func (w *wreck) salvagePart(dst part, start, end int64, r *SalvageReport, up *trail, depth int) error {
	section, err := source.Section(w.obj, w.start+start, end-start)
	if err != nil {
		return err
	}
	sub, err := examineAs(w.ctx, section, w.s, 0)
	if err == nil {
		err = sub.refuseMixed()
	}
	if err == nil && !sub.archive {
		err = fault.New(fault.Corrupt, "msglc", "no msglc archive").At(0)
	}
	if unlike(err) {
		return nothing(fault.Locate(err, w.obj.Name(), "", w.start+start))
	} else if err != nil {
		return err
	}
	// Offsets are those of the object, not of the section.
	sub.obj, sub.start = w.obj, w.start+start+sub.start
	if sub.combined {
		_, err := sub.salvageParts(dst, r, up, depth+1)
		return err
	}
	v, err := sub.surveyAll()
	if err != nil {
		return err
	}
	if v.whole && sub.headerOK && sub.h.tocStart == v.end && sub.h.tocSize <= sub.size-v.end && sub.tocAt(v.end, v.codec) {
		if bad, err := sub.badText(v.codec, v.end); err != nil {
			return err
		} else if bad >= 0 {
			return sub.salvage(dst, v, r, up)
		}
		c := combiner{ctx: w.ctx, s: w.s, dst: dst}
		return c.copy(w.obj, sub.start-PrefixSize, sub.h.archiveSize())
	}
	return sub.salvage(dst, v, r, up)
}

// part is the place of an archive in a target, whatever the archives around it.
type part struct {
	c     *counted
	start int64
}

func wholeOf(dst Target) part { return part{&counted{Target: dst}, 0} }

func (p part) Write(b []byte) (int, error) { return p.c.Write(b) }

func (p part) WriteAt(b []byte, off int64) (int, error) { return p.c.Target.WriteAt(b, p.start+off) }

// counted counts what is appended to a target.
type counted struct {
	Target
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Target.Write(p)
	c.n += int64(n)
	return n, err
}
