package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
	"github.com/spilehq/spile/source"
)

// Finding is one thing that a verifier has to say.
type Finding struct {
	Err   *fault.Error // the object, the place in it, the offset
	Check int          // the number of the check, 0 where there is none
	// Warning: readers do not mind. Undecodable: the values of a column are stored in a way that is not known, which is no
	// damage.
	Warning, Undecodable bool
}

// VerifyOptions say how much is verified.
type VerifyOptions struct {
	Options
	// Full reads and decodes every chunk, too; else the manifest, the frames and the pages are checked alone.
	Full bool
	// List, when set, gives the names of the objects beside the manifest, among them those that do not belong there.
	List func(ctx context.Context) ([]string, error)
}

// Verify checks an artifact, and goes on behind a finding as far as the structure allows. The error is one of the source,
// not of the data.
func Verify(ctx context.Context, open Opener, o *VerifyOptions, report func(Finding)) error {
	v := &verifier{ctx: ctx, report: report}
	if o != nil {
		v.opts = *o
	}
	v.opts.CacheBytes = -1
	obj, err := open(ctx, ManifestName)
	if err != nil {
		return err
	}
	m, err := ReadManifest(ctx, obj, &v.opts.Options)
	obj.Close()
	if err != nil {
		return v.found(err)
	}
	v.manifest(obj.Name(), m)
	a := &Artifact{manifest: m, name: obj.Name(), open: open, tags: m.Tags, index: newTagIndex(m.Tags), most: math.MaxInt64} // of pages and chunks there is one at a time
	defer a.Close()
	for i := range m.Files {
		p := newPart(a, uint32(i), &m.Files[i])
		a.parts = append(a.parts, p)
		if err := v.part(p); err != nil {
			return err
		}
	}
	return v.others(obj.Name(), m)
}

// VerifyPart checks a part without its manifest. It does not close obj.
func VerifyPart(ctx context.Context, obj source.Object, o *VerifyOptions, report func(Finding)) error {
	v := &verifier{ctx: ctx, report: report}
	if o != nil {
		v.opts = *o
	}
	a := &Artifact{name: obj.Name(), most: math.MaxInt64, open: func(context.Context, string) (source.Object, error) { return obj, nil }}
	return v.part(newPart(a, 0, nil))
}

type verifier struct {
	ctx    context.Context
	opts   VerifyOptions
	report func(Finding)
}

// found reports an error that is one of the data, and returns any other.
func (v *verifier) found(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || Check(err) == 0 {
		return err
	}
	v.report(Finding{Err: f, Check: Check(err)})
	return nil
}

// say reports what a verifier alone looks at.
func (v *verifier) say(warning bool, object, where string, offset int64, check int, format string, args ...any) {
	f := corrupt(check, format, args...).In(object).On(where).At(offset)
	v.report(Finding{Err: f, Check: check, Warning: warning})
}

// manifest makes check 85.
func (v *verifier) manifest(name string, m *Manifest) {
	warn := func(format string, args ...any) { v.say(true, name, "", fault.NoOffset, 85, format, args...) }
	for _, member := range m.unknown {
		warn("the member %s is not known", member)
	}
	if m.moreUnknown > 0 {
		warn("%d more members are not known", m.moreUnknown)
	}
	c := &m.Coverage
	for _, start := range slices.Sorted(maps.Keys(c.WindowSequences)) {
		w := c.WindowSequences[start]
		if start != strconv.FormatInt(w.Start, 10) {
			warn("the window %s starts at %d", start, w.Start)
		}
		if w.Start >= w.End {
			warn("the window %s ends at %d", start, w.End)
		}
	}
	if c.BucketStart != nil && c.BucketEnd != nil && !before(*c.BucketStart, *c.BucketEnd) {
		warn("the bucket ends at %d %ss, it starts at %d %ss", c.BucketEnd.Value, c.BucketEnd.Unit, c.BucketStart.Value, c.BucketStart.Unit)
	}
	if c.MinFileSequence != nil && c.MaxFileSequence != nil && *c.MinFileSequence > *c.MaxFileSequence {
		warn("the sequences go from %d to %d", *c.MinFileSequence, *c.MaxFileSequence)
	}
	if !slices.IsSortedFunc(c.SourceFileIDs, func(a, b UUID) int { return slices.Compare(a[:], b[:]) }) {
		warn("the source files are not in the order of their identifiers")
	}
}

// others makes check 86.
func (v *verifier) others(name string, m *Manifest) error {
	if v.opts.List == nil {
		return nil
	}
	names, err := v.opts.List(v.ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{ManifestName: true}
	for i := range m.Files {
		known[PartName(uint32(i))] = true
	}
	for _, n := range names {
		if !known[n] {
			v.say(true, name, "", fault.NoOffset, 86, "another object lies beside the artifact: %s", n)
		}
	}
	return nil
}

// part verifies a part.
func (v *verifier) part(p *part) error {
	err := p.ready(v.ctx)
	switch {
	case p.file != nil && errors.Is(err, fault.NotFound):
		v.say(false, p.a.name, "", fault.NoOffset, 82, "part %d is not there", p.id)
		return nil
	case err != nil:
		return v.found(err)
	}
	name, f := p.obj.Name(), p.frame
	warn := func(where string, offset uint64, check int, format string, args ...any) {
		v.say(true, name, where, int64(offset), check, format, args...)
	}
	v.payload(p, "root", f.root.payloadRef, nil)
	if f.depth == 2 && len(p.leaves) == 1 {
		warn("root", f.root.Offset, 84, "two levels of pages for one leaf")
	}
	used := []span{{0, headerSize, -1}, {f.root.Offset, f.root.end(), -1}, {f.metadataEnd(), f.size, -1}}
	var series uint64
	complete := true
	lastLeaf, lastChunk := uint64(0), uint64(0)
	for i, ref := range p.leaves {
		if f.depth == 2 {
			v.payload(p, leafPlace(i), ref.payloadRef, nil)
			used = append(used, span{ref.Offset, ref.end(), -1})
		}
		if ref.Offset < lastLeaf {
			warn(leafPlace(i), ref.Offset, 84, "the leaf lies in front of the one before it")
		}
		lastLeaf = ref.Offset
		blocks, err := p.leaf(v.ctx, i, nil)
		if err != nil {
			complete = false
			if err := v.found(err); err != nil {
				return err
			}
			continue
		}
		if ref.Decoded > maxRoot && len(blocks) > 1 {
			warn(leafPlace(i), ref.Offset, 84, "a leaf of %d bytes with %d blocks, %d bytes are the target", ref.Decoded, len(blocks), maxRoot)
		}
		for k := range blocks {
			b := blockAt{&blocks[k], p, i}
			series += uint64(b.series)
			for c := range b.columns {
				col := &b.columns[c]
				used = append(used, span{col.Offset, col.end(), i})
				if col.Offset < lastChunk {
					warn(p.place(i, b.block), col.Offset, 84, "the chunk of column %s lies in front of the one before it", col.name)
				}
				lastChunk = col.Offset
				if c >= 2 && !col.hasStats {
					warn(p.place(i, b.block), col.Offset, 84, "column %s is stored, and all of it is null", col.name)
				}
			}
			if v.opts.Full {
				if err := v.block(b); err != nil {
					return err
				}
			}
		}
	}
	if p.file != nil && complete && series != p.file.NumSeries {
		v.say(false, name, "", fault.NoOffset, 80, "the blocks have %d series, the manifest says %d", series, p.file.NumSeries)
	}
	v.spans(name, used, complete, f)
	return nil
}

// span is a range of a part that a payload takes; leaf is the leaf of a chunk, -1 for what is none.
type span struct {
	start, end uint64
	leaf       int
}

// spans makes checks 81 and 83.
func (v *verifier) spans(name string, used []span, complete bool, f *frame) {
	slices.SortFunc(used, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	end := uint64(0)
	last := span{leaf: -1}
	for _, s := range used {
		switch {
		case s.start < end && s.leaf >= 0 && last.leaf >= 0 && s.leaf != last.leaf:
			v.say(false, name, leafPlace(s.leaf), int64(s.start), 81, "a chunk at %d, one of leaf %d ends at %d", s.start, last.leaf, end)
		case s.start > end && complete:
			v.say(true, name, "", int64(end), 83, "%d bytes that belong to nothing", s.start-end)
		}
		if s.end > end {
			end, last = s.end, s
		}
	}
}

// payload makes the part of check 84 that is about compression. stored is nil where it is not read yet.
func (v *verifier) payload(p *part, where string, r payloadRef, stored []byte) {
	if r.Compression == compressionZstd && r.Stored >= r.Decoded {
		v.say(true, p.obj.Name(), where, int64(r.Offset), 84, "compressed to %d bytes, not fewer than the %d that it decodes to", r.Stored, r.Decoded)
	}
	if r.Compression != compressionZstd || !v.opts.Full {
		return
	}
	if stored == nil {
		var err error
		if stored, err = p.stored(v.ctx, r); err != nil {
			return
		}
	}
	if s, err := shapeOf(stored); err == nil && (s.frames != 1 || s.skippable > 0) {
		v.say(true, p.obj.Name(), where, int64(r.Offset), 84, "compressed as more than one frame")
	}
}

// block reads the chunks of a block and makes the checks of them.
func (v *verifier) block(b blockAt) error {
	for i := range b.columns {
		c := &b.columns[i]
		stored, err := b.part.stored(v.ctx, c.payloadRef)
		if err != nil {
			return b.located(err, c)
		}
		if !c.known() {
			if err := c.checkSum(stored); err != nil {
				if err := v.found(b.located(err, c)); err != nil {
					return err
				}
				continue
			}
			f := failed(fault.UnsupportedCodec, 40, "not decodable, the encoding %d and the compression %d are not known", c.Encoding, c.Compression).At(int64(c.Offset))
			f, _ = errors.AsType[*fault.Error](b.located(f, c))
			v.report(Finding{Err: f, Check: 40, Undecodable: true})
			continue
		}
		p, err := c.payloadRef.decode(stored)
		var decoded any
		if err == nil {
			decoded, _, err = b.decodeChunk(c, p)
		}
		if err != nil {
			if err := v.found(b.located(err, c)); err != nil {
				return err
			}
			continue
		}
		where := fmt.Sprintf("%s, column %s", b.part.place(b.leaf, b.block), c.name)
		v.payload(b.part, where, c.payloadRef, stored)
		if d, ok := decoded.(*dict); ok {
			if err := d.lint(c); err != nil {
				if err := v.found(b.located(err, c)); err != nil {
					return err
				}
			}
		}
		if !shortest(p, c, b.series) {
			v.say(true, b.part.obj.Name(), where, int64(c.Offset), 84, "numbers that are longer than they need be")
		}
	}
	return nil
}

// lint makes checks 78 and 79.
func (d *dict) lint(c *column) error {
	var most uint32
	for i := range d.codes.len() {
		code := d.codes.at(i)
		if code > most+1 {
			return corrupt(78, "row %d is the first with code %d, and code %d was not used yet", i, code, most+1).At(int64(c.Offset))
		}
		most = max(most, code)
	}
	if int(most) != d.len()-1 {
		return corrupt(78, "the dictionary has %d values, the rows use %d", d.len()-1, most).At(int64(c.Offset))
	}
	if !c.hasStats {
		return nil
	}
	values := d.values()[1:]
	if lo, hi := slices.Min(values), slices.Max(values); lo != c.min || hi != c.max {
		return corrupt(79, "the values go from %q to %q, the descriptor says %q to %q", short(lo), short(hi), short(c.min), short(c.max)).At(int64(c.Offset))
	}
	return nil
}

// shortest reports whether the numbers of a decoded chunk have their shortest form.
func shortest(p []byte, c *column, series uint32) bool {
	isShort := func() (uint64, bool) {
		u, n := wire.Uvarint64(p)
		p = p[max(0, n):]
		return u, n == wire.Uvarint64Size(u)
	}
	if c.Encoding == encodingDict {
		size, ok := isShort()
		if !ok {
			return false
		}
		p = p[size:]
	}
	for range series {
		if _, ok := isShort(); !ok {
			return false
		}
	}
	return true
}

// before compares instants in different units. The finer one is taken apart, since the coarser one times a thousand may have
// more than 64 bits.
func before(a, b Timestamp) bool {
	scale := func(t Timestamp) int { return slices.Index(timeUnits, t.Unit) } // powers of a thousand of a second
	d := scale(b) - scale(a)
	fine, coarse := b.Value, a.Value
	if d < 0 {
		fine, coarse = a.Value, b.Value
	}
	per := [...]int64{1, 1e3, 1e6, 1e9}[max(d, -d)]
	whole, rest := fine/per, fine%per
	if rest < 0 {
		whole, rest = whole-1, rest+per
	}
	if d < 0 {
		return whole < coarse
	}
	return coarse < whole || coarse == whole && rest > 0
}
