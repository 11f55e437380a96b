package msglc

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Salvage and Repair of combined archives.

// children finds the parts of a combined archive: those that the table of contents names, when it can be read and is
// true, else those that follow one another from the start. The second result says whether the table was read.
func (w *wreck) children() (c combiner, ok bool, err error) {
	c = combiner{ctx: w.ctx, s: w.s}
	if isMap, entries, err := w.parts(); err == nil {
		c.s.codec, c.isMap, c.entries, c.size = w.h.codec, isMap, entries, w.h.tocStart
		return c, true, w.compare(&c)
	} else if !unlike(err) {
		return c, false, err
	}
	if c.entries, c.size, err = w.inRow(); err != nil {
		return c, false, err
	}
	// The table follows the last part. It is true when it lists just these.
	for _, codec := range w.codecs {
		rest := io.NewSectionReader(source.AsReaderAt(w.ctx, w.obj), w.start+c.size, w.size-c.size)
		sc := value.NewStream(codec, rest, w.size-c.size, w.s.limits)
		isMap, entries, err := parseCombined(sc, header{codec: codec, tocStart: c.size})
		if err == nil && sameOffsets(entries, c.entries) {
			c.s.codec, c.isMap, c.entries = codec, isMap, entries
			return c, true, nil
		}
	}
	if w.headerOK {
		c.s.codec = w.h.codec
	}
	return c, false, nil
}

// inRow returns the archives that follow one another from the start of the payload, and where they end.
func (w *wreck) inRow() (entries []combinedEntry, end int64, err error) {
	for {
		h, err := w.childAt(end)
		if unlike(err) {
			return entries, end, nil
		} else if err != nil {
			return nil, 0, err
		}
		entries = append(entries, combinedEntry{offset: end})
		end += h.archiveSize()
	}
}

// compare looks at what the table of contents lists where archives fill the payload. Where an offset leads to none of
// them, and the table does not list the one that stands in its place, it is corrected. The others that are not listed
// are noted: bytes between the parts are nobody's, but an archive may be what a wrong offset has left behind.
func (w *wreck) compare(c *combiner) error {
	row, end, err := w.inRow()
	if err != nil || end != c.size {
		return err
	}
	listed := make(map[int64]bool, len(c.entries)) // the archives in the row that are
	for _, e := range row {
		listed[e.offset] = false
	}
	for _, e := range c.entries {
		if _, ok := listed[e.offset]; ok {
			listed[e.offset] = true
		}
	}
	w.moved, w.unlisted = nil, nil
	if len(row) == len(c.entries) {
		c.entries = slices.Clone(c.entries)
		for i, e := range row {
			if _, ok := listed[c.entries[i].offset]; !ok && !listed[e.offset] {
				c.entries[i].offset, listed[e.offset] = e.offset, true
				w.moved = append(w.moved, i)
			}
		}
	}
	for _, e := range row {
		if !listed[e.offset] {
			w.unlisted = append(w.unlisted, e.offset)
		}
	}
	return nil
}

// listsParts reports whether the table of contents is that of a combined archive, and leads to archives: a table of a
// plain archive differs from it by one letter.
func (w *wreck) listsParts() (bool, error) {
	_, entries, err := w.parts()
	if err != nil {
		return false, reading(err)
	}
	for _, e := range entries[:min(len(entries), 100)] {
		if _, err := w.childAt(e.offset); err == nil {
			return true, nil
		} else if !unlike(err) {
			return false, err
		}
	}
	return false, nil
}

// listed is what the table of contents says of the parts of a combined archive.
type listed struct {
	isMap   bool
	entries []combinedEntry
	err     error
}

// parts reads the table of contents of a combined archive, once.
func (w *wreck) parts() (isMap bool, entries []combinedEntry, err error) {
	if w.listed == nil {
		isMap, entries, err := w.readParts()
		w.listed = &listed{isMap, entries, err}
	}
	return w.listed.isMap, w.listed.entries, w.listed.err
}

func (w *wreck) readParts() (isMap bool, entries []combinedEntry, err error) {
	if !w.headerOK || w.h.tocStart > w.size || w.h.tocSize > w.size-w.h.tocStart {
		return false, nil, w.corrupt(0, "no table of contents")
	}
	return readCombined(w.ctx, w.obj, w.start+w.h.tocStart, w.h, w.s)
}

// childAt reads the prefix of the part at a position.
func (w *wreck) childAt(pos int64) (header, error) {
	part, err := source.Section(w.obj, w.start+pos, w.size-pos)
	if err != nil {
		return header{}, err
	}
	magic := w.s.magic
	if w.s.anyMagic && part.Size() >= MagicSize {
		if err := part.ReadAt(w.ctx, magic[:], 0); err != nil {
			return header{}, err
		}
	}
	h, err := readPrefix(w.ctx, part, magic)
	return h, fault.Shift(err, w.start+pos)
}

func sameOffsets(a, b []combinedEntry) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	for i := range a {
		if a[i].offset != b[i].offset {
			return false
		}
	}
	return true
}

// part examines the archive between two positions of the payload.
func (w *wreck) part(start, end int64) (*wreck, error) {
	section, err := source.Section(w.obj, w.start+start, end-start)
	if err != nil {
		return nil, err
	}
	sub, err := examineAs(w.ctx, section, w.s, 0)
	if err == nil {
		err = sub.refuseMixed()
	}
	if err == nil && !sub.archive {
		err = fault.New(fault.Corrupt, "msglc", "no msglc archive").At(0)
	}
	if unlike(err) {
		return nil, fault.Locate(err, w.obj.Name(), "", w.start+start)
	} else if err != nil {
		return nil, err
	}
	// Offsets are those of the object, not of the section.
	sub.obj, sub.start = w.obj, w.start+start+sub.start
	return sub, nil
}

// tooDeep says so of archives in one another.
func (w *wreck) tooDeep(depth int) error {
	if most := w.s.limits.MaxNesting(); depth >= most {
		return fault.New(fault.Limit, "msglc", "archives nested deeper than %d", most).At(w.start)
	}
	return nil
}

// stepTo is the step to a part.
func (c *combiner) stepTo(i int) Step {
	if c.isMap {
		return keyStep(value.Raw{Codec: c.s.codec, Data: c.entries[i].name})
	}
	return TextStep(strconv.Itoa(i))
}

// repairParts writes a combined archive of the parts of one, each with a new table. path leads to it.
func (w *wreck) repairParts(dst part, c combiner, up *trail, depth int) error {
	if err := w.tooDeep(depth); err != nil {
		return err
	}
	taken := make(map[string]bool)
	for i, e := range c.entries {
		if !c.isMap {
			break
		}
		step := up.to(c.stepTo(i))
		h, name := keyContent(c.s.codec, e.name)
		if h.Kind == value.String && !utf8.Valid(name) {
			return fault.New(fault.Corrupt, "msglc", "name of a part that is not UTF-8").At(w.start + c.size).On(step.path().String())
		}
		canonical := string(canonicalKey(nil, c.s.codec, e.name))
		if taken[canonical] {
			return fault.New(fault.Conflict, "msglc", "two parts have this name").At(w.start + c.size).On(step.path().String())
		}
		taken[canonical] = true
	}
	if len(w.unlisted) > 0 {
		return w.corrupt(w.unlisted[0], "an archive stands here that the table of contents does not list")
	}
	if err := beginArchive(dst, w.s.magic); err != nil {
		return err
	}
	out := combiner{ctx: w.ctx, s: c.s, dst: dst, isMap: c.isMap}
	ends, err := w.partEnds(c)
	if err != nil {
		return err
	}
	made := make(map[int64]bool, len(c.entries))
	for i, e := range c.entries {
		step := up.to(c.stepTo(i))
		if made[e.offset] { // a reader takes its bytes twice, and a repaired archive has no other bytes to spare
			return w.corrupt(e.offset, "children overlap: another part starts here, too").(*fault.Error).On(step.path().String())
		}
		made[e.offset] = true
		at, before := out.size, dst.c.n
		sub, err := w.part(e.offset, ends[i])
		if err == nil {
			err = sub.repair(part{dst.c, dst.start + PrefixSize + at}, step, depth+1)
		}
		if e, ok := err.(*fault.Error); ok && unlike(err) && e.Where == "" {
			located := *e
			err = located.On(step.path().String())
		}
		if err != nil {
			return err
		}
		out.size += dst.c.n - before
		out.entries = append(out.entries, combinedEntry{name: e.name, offset: at})
	}
	return out.write(nil)
}

// sound checks the archive as it stands, with its payload and its table. The findings are nil when nothing is wrong.
// Offsets are those of the archive.
func (w *wreck) sound() (findings []*fault.Error, err error) {
	none := []*fault.Error{fault.New(fault.Corrupt, "msglc", "no archive that can be opened")}
	if h := w.h; !w.headerOK || h.tocStart > w.size || h.tocSize > w.size-h.tocStart {
		return none, nil
	}
	section, err := source.Section(w.obj, w.start-PrefixSize, w.h.archiveSize())
	if err != nil {
		return nil, err
	}
	s, err := (&Options{Limits: w.s.limits, CacheBytes: -1}).shared(section)
	if err != nil {
		return nil, err
	}
	s.magic = w.s.magic
	r, err := s.open(w.ctx, 0, section.Size(), 0)
	if unlike(err) {
		return none, nil
	} else if err != nil {
		return nil, err
	}
	err = r.Verify(w.ctx, &VerifyOptions{Deep: true}, func(f Finding) {
		// Of a thousand the first ones do; but none that is worse than a key that occurs twice may be left out.
		if !f.Note && (len(findings) < maxBreaks || !errors.Is(f.Err, fault.Conflict) && len(findings) < 2*maxBreaks) {
			findings = append(findings, f.Err)
		}
	})
	return findings, err
}

// salvageParts writes a combined archive of the parts of one, and returns its codec. path leads to it.
func (w *wreck) salvageParts(dst part, r *SalvageReport, up *trail, depth int) (value.Codec, error) {
	if err := w.tooDeep(depth); err != nil {
		return 0, err
	}
	found, named, err := w.children()
	if err != nil {
		return 0, err
	}
	ends, err := w.partEnds(found)
	if err != nil {
		return 0, err
	}
	if !named && found.size < w.size { // behind the last whole part there may be one that is cut
		found.entries = append(found.entries, combinedEntry{offset: found.size})
		ends = append(ends, w.size)
	}
	for _, i := range w.moved {
		at := found.entries[i].offset
		r.add(Break{Offset: w.start + at, Path: up.to(found.stepTo(i)).path(),
			Err: w.corrupt(at, "the table of contents leads to no archive; the one that stands here, in its place, is taken for it")})
	}
	for _, at := range w.unlisted {
		r.add(Break{Offset: w.start + at, Path: up.path(), Err: w.corrupt(at, "an archive stands here that the table of contents does not list; it is left out")})
	}
	if err := beginArchive(dst, w.s.magic); err != nil {
		return 0, err
	}
	out := combiner{ctx: w.ctx, s: found.s, dst: dst, isMap: found.isMap}
	taken := make(map[int64]bool, len(found.entries))
	names := partNames{codec: found.s.codec, taken: make(map[string]bool), last: make(map[string]int)}
	for i, e := range found.entries {
		at := up.to(found.stepTo(i))
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
			name := names.of(e.name)
			if !bytes.Equal(name, e.name) {
				r.add(Break{Offset: w.start + found.size, Path: at.path(), Err: w.corrupt(found.size, "the name of the part is not UTF-8, or is that of another part too; it is %s now",
					keyText(value.Raw{Codec: found.s.codec, Data: name}))})
			}
			out.entries = append(out.entries, combinedEntry{name: name, offset: out.size})
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

// partEnds gives for each part where the next one, or else the table of contents, begins. An offset at which no archive
// begins ends no part.
func (w *wreck) partEnds(c combiner) ([]int64, error) {
	sorted := make([]int64, 0, len(c.entries)+1)
	var magic [MagicSize]byte
	for _, e := range c.entries {
		if !w.s.anyMagic && e.offset <= w.size-MagicSize {
			if err := w.obj.ReadAt(w.ctx, magic[:], w.start+e.offset); err != nil {
				return nil, err
			}
			if magic != w.s.magic {
				continue
			}
		}
		sorted = append(sorted, e.offset)
	}
	sorted = append(sorted, min(c.size, w.size))
	slices.Sort(sorted)
	ends := make([]int64, len(c.entries))
	for i, e := range c.entries {
		k, _ := slices.BinarySearch(sorted, e.offset+1)
		ends[i] = sorted[min(k, len(sorted)-1)]
	}
	return ends, nil
}

// partNames makes names of parts differ, and UTF-8.
type partNames struct {
	codec value.Codec
	taken map[string]bool // canonical
	last  map[string]int  // number that was put behind a name
}

// of returns the encoded name for a part that has one, nil where it has none.
func (n *partNames) of(name []byte) []byte {
	if name == nil {
		return nil
	}
	h, content := keyContent(n.codec, name)
	free := func(name []byte) bool {
		c := string(canonicalKey(nil, n.codec, name))
		was := n.taken[c]
		n.taken[c] = true
		return !was
	}
	isText := h.Kind == value.String
	if (!isText || utf8.Valid(content)) && free(name) {
		return name
	}
	text := strings.ToValidUTF8(string(content), "\ufffd")
	if !isText {
		text = strings.ToValidUTF8(keyText(value.Raw{Codec: n.codec, Data: name}), "\ufffd")
	}
	name = value.AppendString(nil, n.codec, text)
	for !free(name) {
		n.last[text]++
		name = value.AppendString(nil, n.codec, text+"~"+strconv.Itoa(n.last[text]+1))
	}
	return name
}

// salvagePart writes what is whole in the part between two positions. A part that is whole is copied as it is.
func (w *wreck) salvagePart(dst part, start, end int64, r *SalvageReport, up *trail, depth int) error {
	sub, err := w.part(start, end)
	if unlike(err) {
		return nothing(err)
	} else if err != nil {
		return err
	}
	if sub.combined {
		_, err := sub.salvageParts(dst, r, up, depth+1)
		return err
	}
	findings, err := sub.sound()
	if err != nil {
		return err
	}
	for _, f := range findings {
		if errors.Is(f, fault.Conflict) { // a key that occurs twice: nothing can be made better
			continue
		}
		v, err := sub.surveyAll()
		if err != nil {
			return err
		}
		return sub.salvage(dst, v, r, up)
	}
	for _, f := range findings {
		r.add(Break{Offset: sub.start - PrefixSize + f.Offset, Path: up.path(), Err: fault.Shift(f, sub.start-PrefixSize)})
	}
	c := combiner{ctx: w.ctx, s: w.s, dst: dst}
	return c.copy(w.obj, sub.start-PrefixSize, sub.h.archiveSize())
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
