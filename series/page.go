package series

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/box"
)

// The kinds of pages.
const (
	kindLeaf     = 0
	kindInternal = 1
)

// column describes a column of a block: where its chunk is, and what is known of its values.
type column struct {
	payloadRef
	name     string
	tag      int // index in the tags of the artifact, -1 for the two columns that are always there
	nulls    uint32
	hasStats bool
	min, max string // least and greatest value, when hasStats
}

// block describes the series of one table that follow one another.
type block struct {
	Range          // both of one table
	series  uint32 // how many
	columns []column
	byTag   []int32 // columns in the order of their tags, where they do not stand in it: without a manifest
	index   int     // in its leaf
	offset  int64   // of the descriptor in the decoded page
}

// pageKind reads the prefix of a page and makes checks 44 to 46. inner says that the page must be internal.
func pageKind(p []byte, inner bool) (count uint64, err error) {
	if len(p) < pagePrefix {
		return 0, corrupt(44, "a page of %d bytes, its prefix has %d", len(p), pagePrefix)
	}
	kind, want := binary.LittleEndian.Uint32(p), uint32(kindLeaf)
	if inner {
		want = kindInternal
	}
	switch {
	case kind > kindInternal:
		return 0, corrupt(44, "a page of the kind %d, 0 and 1 are known", kind)
	case kind != want:
		return 0, corrupt(45, "a page of the kind %d where %d belongs", kind, want)
	}
	if count = binary.LittleEndian.Uint64(p[4:]); count < 1 {
		return 0, corrupt(46, "a page without entries")
	}
	return count, nil
}

// parseInternal reads the root of a part of two levels and makes checks 44 to 53.
func parseInternal(p []byte, f *frame) ([]pageRef, error) {
	count, err := pageKind(p, true)
	if err != nil {
		return nil, err
	}
	if count > maxChildren {
		return nil, failed(fault.Limit, 47, "a page of %d children, at most %d", count, maxChildren)
	}
	if want := pagePrefix + pageRefSize*int(count); len(p) != want {
		return nil, corrupt(48, "a page of %d bytes for %d children, which take %d", len(p), count, want)
	}
	children := make([]pageRef, count)
	for i := range children {
		c := &children[i]
		if *c, err = parsePageRef(p[pagePrefix+pageRefSize*i:], f.payloadEnd, f.metadataEnd(), maxPage); err != nil {
			return nil, err
		}
		switch {
		case c.Last.Less(c.First):
			return nil, corrupt(51, "child %d goes from %s to %s", i, c.First, c.Last)
		case i > 0 && !children[i-1].Last.Less(c.First):
			return nil, corrupt(51, "child %d begins with %s, the one before ends with %s", i, c.First, children[i-1].Last)
		case c.end() > f.root.Offset:
			return nil, corrupt(53, "child %d ends at %d, the root starts at %d", i, c.end(), f.root.Offset)
		}
	}
	if got := (Range{children[0].First, children[count-1].Last}); got != f.root.Range {
		return nil, corrupt(52, "the children go from %s to %s, the reference says %s to %s", got.First, got.Last, f.root.First, f.root.Last)
	}
	byPlace := slices.Clone(children)
	slices.SortFunc(byPlace, func(a, b pageRef) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(byPlace); i++ {
		if byPlace[i].Offset < byPlace[i-1].end() {
			return nil, corrupt(53, "a page at %d, another ends at %d", byPlace[i].Offset, byPlace[i-1].end())
		}
	}
	return children, nil
}

func appendInternal(dst []byte, children []pageRef) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, kindInternal)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(children)))
	for _, c := range children {
		dst = c.append(dst)
	}
	return dst
}

// pageReader reads what stands in a leaf page.
type pageReader struct {
	p   []byte
	all string // the page as a text, which its strings are parts of
	pos int
	err error
}

func (r *pageReader) take(n int) []byte {
	if r.err == nil && n > len(r.p)-r.pos {
		r.err = corrupt(50, "an entry goes beyond the page, %d bytes at %d of %d", n, r.pos, len(r.p))
	}
	if r.err != nil {
		return make([]byte, n)
	}
	r.pos += n
	return r.p[r.pos-n : r.pos]
}

func (r *pageReader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *pageReader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// text reads a string.
func (r *pageReader) text(check int, what string) string {
	n := r.u64()
	if r.err != nil {
		return ""
	}
	if n > uint64(len(r.p)-r.pos) {
		r.err = corrupt(check, "%s of %d bytes, and %d are left in the page", what, n, len(r.p)-r.pos)
		return ""
	}
	r.take(int(n))
	text := r.all[r.pos-int(n) : r.pos]
	if !utf8.ValidString(text) {
		r.err = corrupt(check, "%s that is not UTF-8", what)
		return ""
	}
	return text
}

// tagIndex finds tags by their names.
type tagIndex struct {
	names   []string
	byName  map[string]int
	ordered bool // they are those of a manifest, and blocks store them in its order
	grows   bool // what is met is added
}

func newTagIndex(tags []Tag) *tagIndex {
	x := &tagIndex{byName: make(map[string]int, len(tags)), ordered: true}
	for i, t := range tags {
		x.names = append(x.names, t.Name)
		x.byName[t.Name] = i
	}
	return x
}

// find finds a tag. It is tried first whether it is one: in a row of columns most are the next of all tags.
func (x *tagIndex) find(name string, first int) (tag int, ok bool) {
	if first < len(x.names) && x.names[first] == name {
		return first, true
	}
	tag, ok = x.byName[name]
	return tag, ok
}

// parseLeaf reads a leaf page and makes checks 44 to 46, 49, 50 and 54 to 69. tags is nil where there is no manifest and
// nobody asks for columns.
func parseLeaf(p []byte, f *frame, ref pageRef, tags *tagIndex) ([]block, error) {
	count, err := pageKind(p, false)
	if err != nil {
		return nil, err
	}
	if most := uint64(len(p)-pagePrefix) / minBlockSize; count > most {
		return nil, corrupt(49, "a leaf of %d blocks in %d bytes, at most %d", count, len(p), most)
	}
	r := &pageReader{p: p, all: string(p), pos: pagePrefix}
	blocks := make([]block, count)
	chunksEnd := uint64(headerSize)
	for i := range blocks {
		b := &blocks[i]
		b.index, b.offset = i, int64(r.pos)
		if err := b.parse(r, f, tags, &chunksEnd); err != nil {
			return nil, fault.Locate(err, "", blockPlace(i), 0)
		}
		if i > 0 && !blocks[i-1].Last.Less(b.First) {
			return nil, outOfOrder(b, blocks[i-1].Last)
		}
	}
	if r.pos != len(p) {
		return nil, corrupt(50, "%d bytes behind the last block of the page", len(p)-r.pos)
	}
	if got := (Range{blocks[0].First, blocks[count-1].Last}); got != ref.Range {
		return nil, corrupt(60, "the blocks go from %s to %s, the reference to the leaf says %s to %s", got.First, got.Last, ref.First, ref.Last)
	}
	return blocks, nil
}

// outOfOrder is the error for a block that begins in front of the end of the one before.
func outOfOrder(b *block, before ID) error {
	return corrupt(59, "the block begins with %s, the one before ends with %s", b.First, before).On(blockPlace(b.index))
}

// findBlock reads the blocks of a leaf up to the one that has an identifier in it into the memory of b, and reports whether
// there is one. Of the checks it makes those of the blocks that it reads. The texts of the block are in the memory of the page.
func findBlock(p []byte, f *frame, tags *tagIndex, id ID, b *block) (bool, error) {
	count, err := pageKind(p, false)
	if err != nil {
		return false, err
	}
	r := &pageReader{p: p, all: box.Text(p), pos: pagePrefix}
	chunksEnd := uint64(headerSize)
	before := ID{}
	for i := 0; uint64(i) < count; i++ {
		b.index, b.offset = i, int64(r.pos)
		if err := b.parse(r, f, tags, &chunksEnd); err != nil {
			return false, fault.Locate(err, "", blockPlace(i), 0)
		}
		if i > 0 && !before.Less(b.First) {
			return false, outOfOrder(b, before)
		}
		switch b.compare(id) {
		case 0:
			return true, nil
		case 1:
			return false, nil
		}
		before = b.Last
	}
	return false, nil
}

func (b *block) parse(r *pageReader, f *frame, tags *tagIndex, chunksEnd *uint64) error {
	hasManifest, known := tags != nil && tags.ordered, 0
	if hasManifest {
		known = len(tags.names)
	}
	table, first, last := r.u32(), r.u64(), r.u64()
	b.Range = Range{ID{table, first}, ID{table, last}}
	b.series = r.u32()
	columns := r.u32()
	if r.err != nil {
		return r.err
	}
	switch {
	case first > last:
		return corrupt(54, "the block goes from TSID %d to %d", first, last)
	case b.series < 1:
		return corrupt(55, "the block has no series")
	case b.series > MaxBlockSeries:
		return failed(fault.Limit, 56, "the block has %d series, at most %d", b.series, MaxBlockSeries)
	case uint64(b.series)-1 > last-first || b.series == 1 && first != last:
		return corrupt(57, "the block has %d series from TSID %d to %d", b.series, first, last)
	case columns < 2 || hasManifest && uint64(columns) > 2+uint64(known) || int64(columns) > int64(len(r.p)-r.pos)/minColumn:
		return corrupt(58, "the block has %d columns, the artifact %d tags, and %d bytes are left in the page", columns, known, len(r.p)-r.pos)
	}
	b.columns = slices.Grow(b.columns[:0], int(columns))[:columns]
	clear(b.columns)
	before := -1 // the tag of the last column
	var names map[string]bool
	if !hasManifest {
		names = make(map[string]bool)
	}
	for i := range b.columns {
		c := &b.columns[i]
		if err := b.parseColumn(r, c, i, f, tags, &before, names, chunksEnd); err != nil {
			return err
		}
	}
	b.byTag = nil // of the block that was read into b before
	if byTag := func(x, y column) int { return cmp.Compare(x.tag, y.tag) }; !slices.IsSortedFunc(b.columns, byTag) {
		b.byTag = make([]int32, columns)
		for i := range b.byTag {
			b.byTag[i] = int32(i)
		}
		slices.SortFunc(b.byTag, func(x, y int32) int { return byTag(b.columns[x], b.columns[y]) })
	}
	return nil
}

// at is the i-th column in the order of tags, behind the two that are always there.
func (b *block) at(i int) *column {
	if b.byTag != nil {
		i = int(b.byTag[i])
	}
	return &b.columns[i]
}

// column finds a stored tag of a block, nil when there is none.
func (b *block) column(tag int) *column {
	if i := sort.Search(len(b.columns), func(i int) bool { return b.at(i).tag >= tag }); i < len(b.columns) && b.at(i).tag == tag {
		return b.at(i)
	}
	return nil
}

// among gives the stored tags of a block that are among some, which are in order.
func (b *block) among(tags []int) iter.Seq[*column] {
	return func(yield func(*column) bool) {
		if len(tags) < 8 {
			for _, tag := range tags {
				if c := b.column(tag); c != nil && !yield(c) {
					return
				}
			}
			return
		}
		for i := 2; i < len(b.columns); i++ {
			c := b.at(i)
			if _, ok := slices.BinarySearch(tags, c.tag); ok && !yield(c) {
				return
			}
		}
	}
}

func (b *block) parseColumn(r *pageReader, c *column, i int, f *frame, tags *tagIndex, before *int, names map[string]bool, chunksEnd *uint64) (err error) {
	c.name = r.text(61, "the name of a column")
	if r.err != nil {
		return r.err
	}
	at := func(err error) error { return fault.Locate(err, "", blockPlace(b.index)+", column "+c.name, 0) }
	c.tag = -1
	switch want := [2]string{tsidColumn, rowCountColumn}; {
	case i < 2 && c.name != want[i]:
		return at(corrupt(62, "column %d is %q, not %s", i, c.name, want[i]))
	case i < 2:
	case names == nil:
		tag, ok := tags.find(c.name, *before+1)
		if !ok || tag <= *before {
			return at(corrupt(63, "the column is no tag of the manifest, or not in its order"))
		}
		c.tag, *before = tag, tag
	default:
		if names[c.name] || c.name == tableColumn || c.name == tsidColumn || c.name == rowCountColumn {
			return at(corrupt(63, "the column has a reserved name, or that of another column"))
		}
		names[c.name] = true
		if tags == nil {
			break
		}
		tag, ok := tags.byName[c.name]
		switch {
		case !ok && !tags.grows:
			return at(corrupt(63, "the column was not there when the part was opened"))
		case !ok:
			tag = len(tags.names)
			tags.names = append(tags.names, c.name)
			tags.byName[c.name] = tag
		}
		c.tag = tag
	}
	ref := r.take(payloadSize)
	c.nulls = r.u32()
	kind := r.u32()
	if r.err != nil {
		return at(r.err)
	}
	if c.payloadRef, err = parsePayloadRef(ref, func(r payloadRef) bool { return r.Encoding == encodingDelta || r.Encoding == encodingDict }); err != nil {
		return at(err)
	}
	switch {
	case c.Offset < headerSize || c.end() > f.payloadEnd:
		return at(corrupt(33, "a chunk at [%d, %d), the columns are in [%d, %d)", c.Offset, c.end(), headerSize, f.payloadEnd))
	case c.Stored > maxChunkStored || c.Decoded > maxChunk:
		return at(failed(fault.Limit, 36, "a chunk of %d stored and %d decoded bytes, at most %d and %d", c.Stored, c.Decoded, maxChunkStored, maxChunk))
	case i < 2 && c.nulls != 0 || c.nulls > b.series:
		return at(corrupt(64, "%d nulls in %d series", c.nulls, b.series))
	case kind > 1 || (kind == 1) != (i >= 2 && c.nulls < b.series):
		return at(corrupt(65, "statistics of the kind %d with %d nulls in %d series", kind, c.nulls, b.series))
	}
	if kind == 1 {
		c.hasStats = true
		c.min, c.max = r.text(66, "a minimum"), r.text(66, "a maximum")
		if r.err != nil {
			return at(r.err)
		}
		if c.min > c.max {
			return at(corrupt(66, "the minimum %q is above the maximum %q", c.min, c.max))
		}
	}
	n := uint64(b.series)
	switch {
	case c.Encoding == encodingDelta && i >= 2 || c.Encoding == encodingDict && i < 2:
		return at(corrupt(67, "the encoding %d, which such a column cannot have", c.Encoding))
	case c.Encoding == encodingDelta && (uint64(c.Decoded) < n || uint64(c.Decoded) > 10*n):
		return at(corrupt(68, "%d bytes for %d numbers", c.Decoded, n))
	case c.Encoding == encodingDict && uint64(c.Decoded) < n+10:
		return at(corrupt(68, "%d bytes for a dictionary and %d codes", c.Decoded, n))
	case c.Offset < *chunksEnd:
		return at(corrupt(69, "a chunk at %d, the one before ends at %d", c.Offset, *chunksEnd))
	}
	*chunksEnd = c.end()
	return nil
}

// size is the length of the descriptor.
func (b *block) size() int {
	n := 28
	for i := range b.columns {
		c := &b.columns[i]
		n += 8 + len(c.name) + payloadSize + 8
		if c.hasStats {
			n += 16 + len(c.min) + len(c.max)
		}
	}
	return n
}

func appendText(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(len(s))), s...)
}

func (b *block) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, b.First.Table)
	dst = binary.LittleEndian.AppendUint64(dst, b.First.TSID)
	dst = binary.LittleEndian.AppendUint64(dst, b.Last.TSID)
	dst = binary.LittleEndian.AppendUint32(dst, b.series)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.columns)))
	for i := range b.columns {
		c := &b.columns[i]
		dst = appendText(dst, c.name)
		dst = c.payloadRef.append(dst)
		dst = binary.LittleEndian.AppendUint32(dst, c.nulls)
		if !c.hasStats {
			dst = binary.LittleEndian.AppendUint32(dst, 0)
			continue
		}
		dst = binary.LittleEndian.AppendUint32(dst, 1)
		dst = appendText(appendText(dst, c.min), c.max)
	}
	return dst
}

func appendLeaf(dst []byte, blocks []block) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, kindLeaf)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(blocks)))
	for i := range blocks {
		dst = blocks[i].append(dst)
	}
	return dst
}
