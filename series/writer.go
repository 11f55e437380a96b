package series

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/spilehq/spile/fault"
)

// The defaults of WriteOptions.
const (
	DefaultBlockSeries = 8192
	DefaultPageBytes   = maxRoot
	DefaultPartBytes   = 512 << 20
	DefaultZstdLevel   = 3
)

// WriteOptions are the options of a writer. Nil and the zero value mean the defaults.
type WriteOptions struct {
	BlockSeries int   // series of a block at most; 0: DefaultBlockSeries
	PageBytes   int   // target of a decoded page; 0: DefaultPageBytes, which is the most
	PartBytes   int64 // target of a part; 0: DefaultPartBytes
	Zstd        bool  // compress what becomes smaller by it
	Level       int   // of the compression, 1 to 22; 0: DefaultZstdLevel
	// KeepFirst keeps the labels of the first of two series with one identifier and different labels, which are an error
	// otherwise. [Writer.Conflicts] counts them.
	KeepFirst bool
}

func (o *WriteOptions) withDefaults() (WriteOptions, error) {
	var out WriteOptions
	if o != nil {
		out = *o
	}
	for _, d := range []struct {
		name     string
		value    *int
		def, max int
	}{{"BlockSeries", &out.BlockSeries, DefaultBlockSeries, MaxBlockSeries}, {"PageBytes", &out.PageBytes, DefaultPageBytes, maxRoot}, {"Level", &out.Level, DefaultZstdLevel, 22}} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < 1 || *d.value > d.max {
			return out, fault.New(fault.Invalid, "series", "%s %d, 1 to %d", d.name, *d.value, d.max)
		}
	}
	if out.PartBytes == 0 {
		out.PartBytes = DefaultPartBytes
	}
	if out.PartBytes < 1 {
		return out, fault.New(fault.Invalid, "series", "PartBytes %d, 1 or more", out.PartBytes)
	}
	return out, nil
}

// Output is an object of an artifact that is being written. It appears by Commit, complete, or not at all.
type Output interface {
	io.Writer
	Commit() error
	Abort()
}

// Target is where the objects of an artifact are written to.
type Target interface {
	// Create begins an object.
	Create(ctx context.Context, name string) (Output, error)
	// Discard removes the objects that were committed by this target, after a failure.
	Discard() error
}

// Writer writes an artifact from records in the order of their identifiers. It is not safe for concurrent use.
type Writer struct {
	ctx      context.Context
	target   Target
	manifest Manifest
	opts     WriteOptions
	zip      *zstd.Encoder
	tagIndex map[string]int

	pending   *record // the record that the next one may add to
	scratch   *record
	conflicts int64
	block     *blockBuilder
	part      *partWriter
	err       error
	closed    bool
}

// NewWriter begins an artifact. Region, generation, tags and coverage are those of meta; its files are not looked at.
func NewWriter(ctx context.Context, target Target, meta *Manifest, o *WriteOptions) (*Writer, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkTags(meta.Tags); err != nil {
		return nil, fault.New(fault.Invalid, "series", "%s", err)
	}
	w := &Writer{ctx: ctx, target: target, manifest: *meta, opts: opts, tagIndex: make(map[string]int)}
	w.manifest.Files = nil
	w.manifest.Coverage.IndexUUID = meta.Generation
	text, err := w.manifest.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	if _, err := ParseMeta(text); err != nil { // nobody could read what is written
		return nil, err
	}
	for i, t := range meta.Tags {
		w.tagIndex[t.Name] = i
	}
	if opts.Zstd {
		w.zip, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(opts.Level)), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(8<<20), zstd.WithEncoderCRC(false), zstd.WithAllLitEntropyCompression(true))
		if err != nil {
			return nil, fault.New(fault.Invalid, "series", "compression").Because(err)
		}
	}
	w.block = newBlockBuilder(meta.Tags)
	w.scratch = w.newRecord()
	return w, nil
}

func (w *Writer) newRecord() *record {
	n := len(w.manifest.Tags)
	return &record{values: make([]string, n), has: make([]bool, n)}
}

// Conflicts counts the series whose labels were left out because the first ones of the same identifier differ.
func (w *Writer) Conflicts() int64 { return w.conflicts }

// Add adds a series. Records of one identifier follow one another, and become one whose number of rows is the sum; a record
// below the one before is [fault.Invalid], other labels are [fault.Conflict]. Labels that are not there are null.
func (w *Writer) Add(r Record) error {
	if w.err != nil {
		return w.err
	}
	if err := w.fill(w.scratch, r); err != nil {
		return w.fail(err)
	}
	if w.pending == nil {
		w.pending, w.scratch = w.scratch, w.newRecord()
		return nil
	}
	switch w.pending.ID.Compare(r.ID) {
	case 0:
		return w.fail(w.merge(w.scratch))
	case 1:
		return w.fail(fault.New(fault.Invalid, "series", "the series comes behind %s, which is greater", w.pending.ID).On(r.ID.String()))
	}
	w.pending, w.scratch = w.scratch, w.pending
	return w.fail(w.push(w.scratch))
}

// fill takes a record apart.
func (w *Writer) fill(to *record, r Record) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "series", format, args...).On(r.ID.String())
	}
	if r.RowCount == 0 {
		return bad("a series without rows")
	}
	to.ID, to.count = r.ID, r.RowCount
	clear(to.has)
	clear(to.values)
	next := 0 // labels come in the order of the tags for the most part
	for _, l := range r.Labels {
		i, ok := next, true
		for i < len(to.has) && i < next+4 && w.manifest.Tags[i].Name != l.Name {
			i++
		}
		if i == len(to.has) || i == next+4 {
			i, ok = w.tagIndex[l.Name]
		}
		next = i + 1
		switch {
		case !ok:
			return bad("the label %q is no tag of the artifact", l.Name)
		case to.has[i]:
			return bad("the label %q is there twice", l.Name)
		case w.block.cols[i].recent[slot(l.Value)].value != l.Value && !utf8.ValidString(l.Value):
			return bad("the value of the label %q is not UTF-8", l.Name)
		}
		to.values[i], to.has[i] = l.Value, true
	}
	return nil
}

// merge adds a record to the one with the same identifier.
func (w *Writer) merge(r *record) error {
	p := w.pending
	for i := range p.has {
		if p.has[i] == r.has[i] && p.values[i] == r.values[i] {
			continue
		}
		if !w.opts.KeepFirst {
			return fault.New(fault.Conflict, "series", "the label %q is %s and %s", w.manifest.Tags[i].Name, shown(p, i), shown(r, i)).On(p.ID.String())
		}
		w.conflicts++
		break
	}
	if p.count > math.MaxUint64-r.count {
		return fault.New(fault.Limit, "series", "the numbers of rows, %d and %d, have a sum of more than 64 bits", p.count, r.count).On(p.ID.String())
	}
	p.count += r.count
	return nil
}

func shown(r *record, i int) string {
	if !r.has[i] {
		return "null"
	}
	return fmt.Sprintf("%q", short(r.values[i]))
}

func (w *Writer) fail(err error) error {
	if err != nil {
		w.err = err
	}
	return err
}

// push puts a record into the block.
func (w *Writer) push(r *record) error {
	b := w.block
	if b.len() > 0 && (b.table != r.Table || b.len() >= w.opts.BlockSeries || !b.fits(r)) {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	if b.len() == 0 && !b.fits(r) {
		return fault.New(fault.Limit, "series", "one series does not fit into a chunk of %d bytes", maxChunk).On(r.ID.String())
	}
	b.add(r)
	return nil
}

// endBlock writes the block and begins the next.
func (w *Writer) endBlock() error {
	if err := w.ctx.Err(); err != nil {
		return fault.New(nil, "series", "").Because(err)
	}
	b := w.block
	chunks := b.encode(w.zip)
	d := block{
		Range:  Range{ID{b.table, b.tsids[0]}, ID{b.table, b.tsids[len(b.tsids)-1]}},
		series: uint32(len(b.tsids)), columns: make([]column, len(chunks)),
	}
	stored := uint64(0)
	for i := range chunks {
		d.columns[i] = chunks[i].column
		stored += uint64(chunks[i].Stored)
	}
	b.reset()
	size := d.size()
	if pagePrefix+size > maxPage {
		return fault.New(fault.Limit, "series", "a block whose description takes %d bytes, at most %d", size, maxPage-pagePrefix).On(d.First.String())
	}
	if p := w.part; p != nil && (p.needsLeaf(size, w.opts.PageBytes) && len(p.leaves) == maxChildren ||
		p.series > 0 && p.pos+stored > uint64(w.opts.PartBytes)) {
		if err := w.endPart(); err != nil {
			return err
		}
	}
	if w.part == nil {
		if err := w.beginPart(); err != nil {
			return err
		}
	}
	return w.part.add(d, chunks, size, w.opts.PageBytes)
}

// Close writes what is left, and at last the manifest: only then the artifact exists.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err != nil {
		w.Abort()
	}
	return w.err
}

func (w *Writer) finish() error {
	if w.pending != nil {
		if err := w.push(w.pending); err != nil {
			return err
		}
	}
	if w.block.len() > 0 {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	if w.part != nil {
		if err := w.endPart(); err != nil {
			return err
		}
	}
	text, err := w.manifest.AppendJSON(nil)
	if err != nil {
		return err
	}
	out, err := w.target.Create(w.ctx, ManifestName)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := out.Write(text); err != nil {
		return writeFault(err)
	}
	if err := w.ctx.Err(); err != nil {
		return fault.New(nil, "series", "").Because(err)
	}
	return out.Commit()
}

// Manifest is what was written, complete behind Close.
func (w *Writer) Manifest() *Manifest { return &w.manifest }

// Abort ends a writer that was not closed, and removes what it has written. Behind Close without an error it does nothing.
func (w *Writer) Abort() {
	if w.closed && w.err == nil {
		return
	}
	w.closed = true
	if w.err == nil {
		w.err = fault.New(fault.Invalid, "series", "the writer was ended")
	}
	if w.part != nil {
		w.part.out.Abort()
		w.part = nil
	}
	w.target.Discard()
}

func writeFault(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.New(nil, "series", "").Because(err)
}

// partWriter writes a part: chunks as they come, and their descriptions at the end.
type partWriter struct {
	w      *Writer
	out    Output
	pos    uint64
	series uint64
	leaves []leafPlan
}

// leafPlan is a leaf that will be written.
type leafPlan struct {
	blocks []block
	size   int
}

func (w *Writer) beginPart() error {
	out, err := w.target.Create(w.ctx, PartName(uint32(len(w.manifest.Files))))
	if err != nil {
		return err
	}
	w.part = &partWriter{w: w, out: out}
	return w.part.write(appendHeader(nil))
}

func (p *partWriter) write(b []byte) error {
	n, err := p.out.Write(b)
	p.pos += uint64(n)
	if err != nil {
		return writeFault(err)
	}
	return nil
}

// needsLeaf reports whether a block whose descriptor has size bytes begins a leaf.
func (p *partWriter) needsLeaf(size, target int) bool {
	n := len(p.leaves)
	return n == 0 || len(p.leaves[n-1].blocks) > 0 && p.leaves[n-1].size+size > target
}

func (p *partWriter) add(d block, chunks []chunk, size, target int) error {
	if p.needsLeaf(size, target) {
		p.leaves = append(p.leaves, leafPlan{size: pagePrefix})
	}
	for i := range chunks {
		d.columns[i].Offset = p.pos
		if err := p.write(chunks[i].bytes); err != nil {
			return err
		}
	}
	leaf := &p.leaves[len(p.leaves)-1]
	leaf.blocks = append(leaf.blocks, d)
	leaf.size += size
	p.series += uint64(d.series)
	return nil
}

// page writes a page.
func (p *partWriter) page(b []byte, r Range) (pageRef, error) {
	ref, stored := seal(b, encodingPage, p.w.zip)
	ref.Offset = p.pos
	return pageRef{r, ref}, p.write(stored)
}

// endPart writes the pages and the trailer of the part.
func (w *Writer) endPart() error {
	p := w.part
	f := frame{depth: 1, payloadEnd: p.pos}
	var children []pageRef
	for _, leaf := range p.leaves {
		r := Range{leaf.blocks[0].First, leaf.blocks[len(leaf.blocks)-1].Last}
		ref, err := p.page(appendLeaf(make([]byte, 0, leaf.size), leaf.blocks), r)
		if err != nil {
			return err
		}
		children = append(children, ref)
	}
	f.root = children[0]
	if len(children) > 1 {
		f.depth = 2
		r := Range{children[0].First, children[len(children)-1].Last}
		var err error
		if f.root, err = p.page(appendInternal(nil, children), r); err != nil {
			return err
		}
	}
	f.size = p.pos + trailerSize
	if err := p.write(f.appendTrailer(nil)); err != nil {
		return err
	}
	if err := p.out.Commit(); err != nil {
		return err
	}
	w.manifest.Files = append(w.manifest.Files, File{
		PartID: uint32(len(w.manifest.Files)), FileSize: f.size, NumSeries: p.series, First: f.root.First, Last: f.root.Last,
	})
	w.part = nil
	return nil
}
