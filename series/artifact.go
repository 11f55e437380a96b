package series

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// DefaultCacheBytes bounds the decoded pages and chunks that an artifact remembers.
const DefaultCacheBytes = 64 << 20

// Options are the options of a reader. Nil and the zero value mean the defaults.
type Options struct {
	// Region and Generation are those that the artifact must have, when they are known from its path or a catalog.
	Region     *uint64
	Generation *UUID
	// CacheBytes bounds what is remembered of decoded pages and chunks; 0: DefaultCacheBytes, negative: nothing.
	CacheBytes int64
	// Cache is shared by artifacts that are open at the same time, in place of a cache for each. What it remembers of an
	// artifact that was closed makes room for what comes later.
	Cache *Cache
	// MaxDecoded bounds what a query holds at a time of pages and columns in decoded form, in bytes, approximately: fewer
	// blocks are decoded at once, and one block, or page, that takes more is [fault.Limit] before memory is taken for it. 0:
	// DefaultMaxDecoded, negative: no bound but those of the format. [Query.Memory] bounds a query below that.
	MaxDecoded int64
}

// Opener opens an object of an artifact by its name: ManifestName, or a PartName.
type Opener func(ctx context.Context, name string) (source.Object, error)

// Folder is an Opener of the files in a folder.
func Folder(dir string) Opener {
	return func(_ context.Context, name string) (source.Object, error) {
		return source.OpenFile(filepath.Join(dir, name))
	}
}

// Artifact is an opened artifact. It is safe for concurrent use.
type Artifact struct {
	manifest *Manifest // nil for a part without one
	name     string
	open     Opener
	cache    *Cache // nil: nothing is remembered
	cacheID  uint64 // of the artifact in it
	tags     []Tag
	index    *tagIndex // of them
	parts    []*part
	most     int64 // bytes that are held decoded at a time
}

// Open reads the manifest of an artifact. Parts are opened when a query comes to them; Close closes them.
func Open(ctx context.Context, open Opener, o *Options) (*Artifact, error) {
	if o == nil {
		o = &Options{}
	}
	obj, err := open(ctx, ManifestName)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	m, err := ReadManifest(ctx, obj, o)
	if err != nil {
		return nil, err
	}
	a := &Artifact{manifest: m, name: obj.Name(), open: open, tags: m.Tags, index: newTagIndex(m.Tags)}
	a.setOptions(o)
	for i := range m.Files {
		a.parts = append(a.parts, newPart(a, uint32(i), &m.Files[i]))
	}
	return a, nil
}

// ReadManifest reads manifest.json and makes the checks of manifests.
func ReadManifest(ctx context.Context, obj source.Object, o *Options) (*Manifest, error) {
	m, err := readManifest(ctx, obj, o)
	return m, fault.Locate(err, obj.Name(), "", 0)
}

func readManifest(ctx context.Context, obj source.Object, o *Options) (*Manifest, error) {
	if obj.Size() > maxManifest {
		return nil, failed(fault.Limit, 1, "a manifest of %d bytes, at most %d", obj.Size(), maxManifest)
	}
	text := make([]byte, obj.Size())
	if err := obj.ReadAt(source.ForDirectory(ctx), text, 0); err != nil {
		return nil, err
	}
	m, err := ParseManifest(text)
	switch {
	case err != nil:
		return nil, err
	case o != nil && o.Generation != nil && *o.Generation != m.Generation:
		return nil, corrupt(6, "the generation is %s, not %s", m.Generation, *o.Generation)
	case o != nil && o.Region != nil && *o.Region != m.RegionID:
		return nil, corrupt(7, "the region is %d, not %d", m.RegionID, *o.Region)
	}
	return m, nil
}

// OpenPart opens a part without its manifest: its tags are those that its blocks store, in the order in which they are
// first seen. It reads all pages. The artifact keeps obj and closes it; after an error obj stays open.
func OpenPart(ctx context.Context, obj source.Object, o *Options) (*Artifact, error) {
	if o == nil {
		o = &Options{}
	}
	a := &Artifact{name: obj.Name(), index: &tagIndex{byName: make(map[string]int), grows: true}}
	a.open = func(context.Context, string) (source.Object, error) { return obj, nil }
	a.setOptions(o)
	p := newPart(a, 0, nil)
	a.parts = []*part{p}
	if err := p.ready(ctx); err != nil {
		return nil, err
	}
	held := int64(0)
	for i := range p.leaves {
		blocks, err := p.leaf(ctx, i, nil)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			for _, c := range b.columns[2:] {
				if c.tag < len(a.tags) {
					continue
				}
				a.tags = append(a.tags, Tag{Name: c.name})
				if held += int64(len(c.name)) + valueSize; held > a.most {
					return nil, fault.New(fault.Limit, "series", "memory of %d bytes: more than %d tags", a.most, len(a.tags)).In(a.name)
				}
			}
		}
	}
	a.index.grows = false
	return a, nil
}

func (a *Artifact) setOptions(o *Options) {
	switch a.most = o.MaxDecoded; {
	case a.most == 0:
		a.most = DefaultMaxDecoded
	case a.most < 0:
		a.most = math.MaxInt64
	}
	switch {
	case o.Cache != nil:
		a.cache = o.Cache
	case o.CacheBytes == 0:
		a.cache = NewCache(DefaultCacheBytes)
	case o.CacheBytes > 0:
		a.cache = NewCache(o.CacheBytes)
	}
	if a.cache != nil {
		a.cacheID = a.cache.artifacts.Add(1)
	}
}

// Manifest is the manifest, nil for a part that was opened without one. It is the artifact's, for reading.
func (a *Artifact) Manifest() *Manifest { return a.manifest }

// Tags are the tags, in the order of the manifest. They are the artifact's, for reading.
func (a *Artifact) Tags() []Tag { return a.tags }

// Name is that of the manifest, or of the part.
func (a *Artifact) Name() string { return a.name }

// Close closes the parts that are open.
func (a *Artifact) Close() error {
	var err error
	for _, p := range a.parts {
		if e := p.close(); err == nil {
			err = e
		}
	}
	return err
}

// part is a part of an artifact, opened when it is used first.
type part struct {
	a    *Artifact
	id   uint32
	file *File // of the manifest, nil without one

	lock   chan struct{} // holds a token while the part is opened
	opened bool
	obj    source.Object
	frame  *frame
	leaves []pageRef
	tail   []byte // the end of the part, as far as it was read when it was opened; all of a short one
	tailAt uint64
	mu     sync.Mutex // over obj, for close
}

func newPart(a *Artifact, id uint32, file *File) *part {
	return &part{a: a, id: id, file: file, lock: make(chan struct{}, 1)}
}

// tailSize is what is read at the end of a part with one request: the trailer, and every root of two levels that is not
// larger than its decoded form.
const tailSize = maxRoot + trailerSize

// farTail is tailSize where a request is dear: the pages of some 500 blocks of ten columns, so that of most parts nothing else is
// read to find the blocks. It is an eighth of what a request is worth to a store.
const farTail = 2*maxRoot + trailerSize

// farWhole is how long a part is of which all comes with the request that opens it: what lies between its ends is worth one.
const farWhole = 1 << 20

// isFar reports whether a request is so dear that it is better to read what may not be needed than to ask again.
func isFar(obj source.Object) bool { return obj.Cost().Gap > farTail }

// ends tells the opener what is read first of a part whose length is known.
func (p *part) ends(ctx context.Context) context.Context {
	switch {
	case p.file == nil || p.file.FileSize < minPartSize:
		return ctx
	case p.file.FileSize <= farWhole:
		return source.WithEnds(ctx, int64(p.file.FileSize), 0)
	}
	return source.WithEnds(ctx, headerSize, farTail)
}

// keptTail is how many times as long as its end a part is of which chunks at the end are read again.
const keptTail = 16

// ready opens the part, and reads its root.
func (p *part) ready(ctx context.Context) error {
	select {
	case p.lock <- struct{}{}:
		defer func() { <-p.lock }()
	case <-ctx.Done():
		return fault.New(nil, "series", "").In(p.a.name).Because(ctx.Err())
	}
	if p.opened {
		return nil
	}
	if p.obj == nil {
		obj, err := p.a.open(p.ends(ctx), PartName(p.id))
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.obj = obj
		p.mu.Unlock()
	}
	if err := p.openFrame(ctx); err != nil {
		return fault.Locate(err, p.obj.Name(), "", 0)
	}
	p.opened = true
	return nil
}

func (p *part) openFrame(ctx context.Context) error {
	size := uint64(p.obj.Size())
	if p.file != nil && size != p.file.FileSize {
		return corrupt(16, "has %d bytes, the manifest says %d", size, p.file.FileSize)
	}
	if size < minPartSize {
		return corrupt(16, "has %d bytes, the least is %d", size, minPartSize)
	}
	end := uint64(tailSize)
	if isFar(p.obj) {
		end = farTail
	}
	p.tailAt = size - min(size, end)
	ends := []source.Range{{Start: 0, End: headerSize}, {Start: int64(p.tailAt), End: int64(size)}}
	if len(source.Plan(ends, p.obj.Cost())) == 1 { // what lies between comes as well, and is kept
		p.tailAt = 0
		ends[1].Start = 0
	}
	got, err := source.Fetch(source.ForDirectory(ctx), p.obj, ends)
	if err != nil {
		return err
	}
	p.tail = got[1]
	p.frame, err = parseFrame(got[0], p.tail[len(p.tail)-trailerSize:], size, p.file)
	if err != nil {
		return err
	}
	// Of a large part the pages are kept alone, so that many open ones take little: where reads are cheap, that some chunks in
	// front of them are read again is nothing beside the others.
	if behind := p.frame.payloadEnd; size > keptTail*tailSize && behind > p.tailAt && p.obj.Cost().Gap < tailSize {
		p.tail, p.tailAt = slices.Clone(p.tail[behind-p.tailAt:]), behind
	}
	if p.frame.depth == 1 {
		p.leaves = []pageRef{p.frame.root}
		return nil
	}
	page, err := p.page(ctx, p.frame.root, nil)
	if err == nil {
		p.leaves, err = parseInternal(page, p.frame)
	}
	return fault.Locate(err, p.obj.Name(), "root", 0)
}

func (p *part) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.obj == nil {
		return nil
	}
	return p.obj.Close()
}

// page reads and decodes a page. pages may have it; nil has none.
func (p *part) page(ctx context.Context, ref pageRef, pages *store) ([]byte, error) {
	if err := p.fits(ref); err != nil {
		return nil, err
	}
	if pages != nil {
		if stored := pages.get(source.Range{Start: int64(ref.Offset), End: int64(ref.end())}); stored != nil {
			return ref.decode(stored)
		}
	}
	stored, err := p.stored(source.ForDirectory(ctx), ref.payloadRef)
	if err != nil {
		return nil, err
	}
	return ref.decode(stored)
}

// fits reports a page that is more than may be held.
func (p *part) fits(ref pageRef) error {
	if holds := pageSize * int64(ref.Decoded); holds > p.a.most {
		return fault.New(fault.Limit, "series", "memory of %d bytes: a page takes about %d", p.a.most, holds).At(int64(ref.Offset))
	}
	return nil
}

// pageSize is how many times its decoded bytes a page takes in memory, at most: a block with two columns has a descriptor of
// 148 bytes, and is twice as long in memory.
const pageSize = 4

// stored reads the stored bytes of a payload, but for those that were read when the part was opened.
func (p *part) stored(ctx context.Context, ref payloadRef) ([]byte, error) {
	if ref.Offset >= p.tailAt {
		return p.tail[ref.Offset-p.tailAt:][:ref.Stored:ref.Stored], nil
	}
	b := make([]byte, ref.Stored)
	n := min(uint64(len(b)), p.tailAt-ref.Offset)
	copy(b[n:], p.tail)
	return b, p.obj.ReadAt(ctx, b[:n], int64(ref.Offset))
}

// inLeaf gives an error the place of the i-th leaf.
func (p *part) inLeaf(err error, i int) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Where != "" { // a block of it
		f.Where = leafPlace(i) + ", " + f.Where
	}
	return fault.Locate(err, p.obj.Name(), leafPlace(i), 0)
}

// fetchLeaves reads the pages of the i-th leaf and of the wanted ones behind it, as many as a request is worth. What is
// remembered is not read.
func (p *part) fetchLeaves(ctx context.Context, i int, wants func(Range) bool, pages *store) error {
	var ranges []source.Range
	n, most := int64(0), p.obj.Cost().Gap
	for ; i < len(p.leaves); i++ {
		ref := p.leaves[i]
		if !wants(ref.Range) {
			continue
		}
		r := source.Range{Start: int64(ref.Offset), End: int64(ref.end())}
		if len(ranges) == 0 && pages.has(r) {
			return nil
		}
		if n += r.Len(); p.fits(ref) != nil || n > most && len(ranges) > 0 {
			break
		}
		if c := p.a.cache; c != nil {
			if _, ok := c.get(cacheKey{p.a.cacheID, p.id, i, ref.Offset}); ok {
				break
			}
		}
		ranges = append(ranges, r)
	}
	return pages.fetch(source.ForDirectory(ctx), ranges)
}

// leafAhead is leaf for one after the other: some are read at once.
func (p *part) leafAhead(ctx context.Context, i int, wants func(Range) bool, pages *store) ([]block, error) {
	pages.drop(int64(p.leaves[i].Offset)) // those in front are done with
	if err := p.fetchLeaves(ctx, i, wants, pages); err != nil {
		return nil, fault.Locate(err, p.obj.Name(), leafPlace(i), 0)
	}
	return p.leaf(ctx, i, pages)
}

func everyLeaf(Range) bool { return true }

// leaf reads the i-th leaf. pages may have it; nil has none.
func (p *part) leaf(ctx context.Context, i int, pages *store) ([]block, error) {
	ref := p.leaves[i]
	key := cacheKey{p.a.cacheID, p.id, i, ref.Offset}
	if c := p.a.cache; c != nil {
		if v, ok := c.get(key); ok {
			return v.([]block), nil
		}
	}
	page, err := p.page(ctx, ref, pages)
	if err != nil {
		return nil, fault.Locate(err, p.obj.Name(), leafPlace(i), 0)
	}
	blocks, err := parseLeaf(page, p.frame, ref, p.a.index)
	if err != nil {
		return nil, p.inLeaf(err, i)
	}
	if c := p.a.cache; c != nil {
		c.put(key, blocks, (pageSize-1)*int64(len(page)))
	}
	return blocks, nil
}

// place names a block in messages.
func (p *part) place(leaf int, b *block) string {
	return fmt.Sprintf("leaf %d, block %d", leaf, b.index)
}
