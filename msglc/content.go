package msglc

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// budget bounds the bytes that one call decodes. In an honest document no byte belongs to two values, so a call never
// decodes more than the object has: children that overlap, or archives that are listed twice, are found by it before
// they multiply.
type budget struct {
	left int64
	from *Path   // to the node of the call, nil where it is not known
	at   []place // of the children that are being decoded, from the node of the call down
}

// place says which child of its parent one is.
type place struct {
	index int64
	key   value.Raw
}

func (b *budget) enter(c Child) { b.at = append(b.at, place{c.Index, c.Key}) }
func (b *budget) leave()        { b.at = b.at[:len(b.at)-1] }

// path is the path of the child that is being decoded, as text; "" where it is not known.
func (b *budget) path() string {
	if b.from == nil {
		return ""
	}
	p := slices.Clone(*b.from)
	for _, at := range b.at {
		p = append(p, Child{Index: at.index, Key: at.key}.Step())
	}
	return p.String()
}

func (n Node) budget() *budget { return &budget{left: n.r.s.obj.Size(), from: n.path} }

func (b *budget) take(n Node, size int64) error {
	if b.left -= size; b.left < 0 {
		return n.r.locate(fault.New(fault.Corrupt, "msglc", "children overlap: more bytes to decode than the file has").
			At(n.r.payload + n.e.start).On(b.path()))
	}
	n.r.s.decoded.Add(size)
	return nil
}

func tooDeep(limit int) *fault.Error {
	return fault.New(fault.Limit, "msglc", "nested deeper than %d", limit)
}

// Raw returns the encoded bytes of the value. They must not be changed. A blocks node gets an array header of the
// shortest form; a combined node, and a slice over archives, have no encoding in one codec and are [fault.Invalid].
func (n Node) Raw(ctx context.Context) (value.Raw, error) {
	n, err := n.resolve(ctx)
	if err != nil {
		return value.Raw{}, err
	}
	b := n.budget()
	if n.mixed() {
		return value.Raw{}, n.noBytes("a node with archives below it has no encoding of its own")
	}
	if n.e.hasRange {
		p, err := n.whole(ctx, b)
		return value.Raw{Codec: n.r.h.codec, Data: p}, err
	}
	if n.slice == nil && n.e.form != Blocks {
		return value.Raw{}, n.noBytes("a combined node has no encoding of its own")
	}
	count, err := n.Len(ctx)
	if err != nil {
		return value.Raw{}, err
	}
	out := value.Raw{Codec: n.r.h.codec, Data: value.AppendArrayHeader(nil, n.r.h.codec, int(count))}
	for child, err := range n.ahead(ctx) {
		if err != nil {
			return value.Raw{}, err
		}
		item, err := n.item(ctx, child, out.Codec)
		if err != nil {
			return value.Raw{}, err
		}
		if int64(len(out.Data)+len(item.Data)) > n.r.s.maxValue {
			return value.Raw{}, n.r.locate(fault.New(fault.Limit, "msglc", "value of more than %d bytes, at most that is read at once", n.r.s.maxValue))
		}
		out.Data = append(out.Data, item.Data...)
	}
	return out, nil
}

// item returns the encoding of an item of n, which must be of a codec. An error names the item: one of a slice by its
// index in the list.
func (n Node) item(ctx context.Context, child Child, c value.Codec) (value.Raw, error) {
	raw, err := child.Node.Raw(ctx)
	if err == nil && raw.Codec != c {
		err = child.Node.noBytes(fmt.Sprintf("a value of codec %s has no encoding in a list of codec %s", raw.Codec, c))
	}
	return raw, onPath(err, n.pathTo(child))
}

// pathTo is the path of an item: in the list that n is, or is a slice of.
func (n Node) pathTo(child Child) Path {
	if n.slice != nil {
		child.Index = n.slice.from + child.Index*n.slice.step
	}
	return Path{child.Step()}
}

// whole returns the bytes of a value with a range: one read, one value, nothing behind it.
func (n Node) whole(ctx context.Context, b *budget) ([]byte, error) {
	if err := b.take(n, n.e.end-n.e.start); err != nil {
		return nil, err
	}
	if n.data == nil {
		p, err := n.bytes(ctx)
		if err != nil {
			return nil, err
		}
		n.data = p
	}
	if n.e.form == Inside {
		return n.data, nil
	}
	used, err := value.Skip(n.r.h.codec, n.data, 1, n.r.s.limits)
	if err == io.ErrUnexpectedEOF {
		err = fault.New(fault.Corrupt, "msglc", "node of %d bytes ends within its value", len(n.data)).At(0)
	} else if err == nil && used != len(n.data) {
		err = n.surplus(int64(used))
	}
	return n.data, n.fault(err)
}

// Value returns the value as Go values, see [value.Decode]. A list or map of which few children were read yet comes
// with one read of its whole range; one of which more were read comes child by child, so that what is remembered is
// not read again (Options.FastLoadingThreshold).
func (n Node) Value(ctx context.Context) (any, error) {
	return n.value(ctx, n.budget())
}

func (n Node) value(ctx context.Context, b *budget) (any, error) {
	archive := n.e.isArchive()
	n, err := n.resolve(ctx)
	if err != nil {
		return nil, err
	}
	if archive { // it was opened for this
		if err := b.take(n, PrefixSize+n.r.h.tocSize); err != nil {
			return nil, err
		}
	}
	enclosed := len(b.at)
	switch {
	case n.e.hasRange && (n.e.children == 0 || !n.mixed() && n.fast()):
		if err := b.take(n, n.e.end-n.e.start); err != nil {
			return nil, err
		}
		p, err := n.bytes(ctx)
		if err != nil {
			return nil, err
		}
		v, err := value.Decode(n.r.h.codec, p, n.r.s.limits.Within(enclosed))
		return v, n.fault(err)
	case enclosed >= n.r.s.depth:
		return nil, n.r.locate(tooDeep(n.r.s.depth).At(n.r.payload + n.e.start).On(b.path()))
	case n.e.form == Blocks:
		return n.blocksValue(ctx, b)
	}
	if n.slice != nil {
		return n.sliceValue(ctx, b)
	}
	t, err := n.tableFrom(ctx, 0)
	if err != nil {
		return nil, n.r.locate(err)
	}
	if n.e.isMap {
		return t.mapValue(ctx, b)
	}
	return t.listValue(ctx, b)
}

func (n Node) sliceValue(ctx context.Context, b *budget) (any, error) {
	list := make([]any, 0, n.slice.count) // the table, or a leaf, backs the count
	for child, err := range n.ahead(ctx) {
		if err != nil {
			return nil, err
		}
		if list, err = appendValue(ctx, list, child, b); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func appendValue(ctx context.Context, list []any, child Child, b *budget) ([]any, error) {
	b.enter(child)
	v, err := child.Node.value(ctx, b)
	b.leave()
	return append(list, v), err
}

// listValue makes a list child by child.
func (t *tableIter) listValue(ctx context.Context, b *budget) (any, error) {
	list := make([]any, 0, t.n.e.count) // the table backs the count
	for {
		child, ok, err := t.next()
		if err != nil {
			return nil, t.n.r.locate(err)
		}
		if !ok {
			return list, nil
		}
		if list, err = appendValue(ctx, list, child, b); err != nil {
			return nil, err
		}
	}
}

// mixed reports whether archives may stand among the values of a node that has bytes of its own, so that these are no
// value. Writers never make such a table; in one that is not read whole when it is opened, it shows when the bytes are
// decoded.
func (n Node) mixed() bool {
	return n.r.archives && n.slice == nil && n.e.hasRange && n.e.children != 0
}

// fast decides between one read of the whole and reads of the children that are not remembered.
func (n Node) fast() bool {
	if n.r.s.cache == nil {
		return true
	}
	return float64(n.r.directory(&n.e).accessed.Load()) < n.r.s.fastShare*float64(n.e.count)
}

func (n Node) blocksValue(ctx context.Context, b *budget) (any, error) {
	var list []any
	limits := n.r.s.limits.Within(len(b.at) + 1)
	err := n.eachBlock(ctx, 0, false, func(blk block, p []byte) error {
		if err := b.take(n, blk.end-blk.start); err != nil {
			return err
		}
		s := value.NewScanner(n.r.h.codec, p, limits)
		for range blk.count {
			v, err := value.DecodeNext(s)
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return n.badBlock(blk, err, 0)
			}
			list = append(list, v)
		}
		if s.Offset() != int64(len(p)) {
			return n.r.blockSurplus(blk, s.Offset())
		}
		return nil
	})
	return list, n.r.locate(err)
}

// mapValue makes a map child by child, as [value.Decode] makes one from bytes.
func (t *tableIter) mapValue(ctx context.Context, b *budget) (any, error) {
	r := t.n.r
	named := make(map[string]any)
	var keyed map[any]any
	for {
		child, ok, err := t.next()
		if err != nil {
			return nil, r.locate(err)
		}
		if !ok {
			break
		}
		key, err := decodeKey(child.Key, r.s.limits.Within(len(b.at)))
		if err != nil {
			return nil, r.locate(err)
		}
		b.enter(child)
		v, err := child.Node.value(ctx, b)
		if err != nil {
			return nil, err
		}
		b.leave()
		if name, ok := key.(string); ok && keyed == nil {
			named[name] = v
			continue
		}
		if keyed == nil {
			keyed = make(map[any]any, len(named)+1)
			for k, v := range named {
				keyed[k] = v
			}
		}
		keyed[key] = v
	}
	if keyed != nil {
		return keyed, nil
	}
	return named, nil
}

// decodeKey gives the Go value that stands for a key in the maps of [value.Decode].
func decodeKey(key value.Raw, lim value.Limits) (any, error) {
	pair := value.AppendMapHeader(nil, key.Codec, 1)
	pair = append(pair, key.Data...)
	v, err := value.Decode(key.Codec, value.AppendNull(pair, key.Codec), lim)
	if err != nil {
		return nil, err
	}
	switch m := v.(type) {
	case map[string]any:
		for k := range m {
			return k, nil
		}
	case map[any]any:
		for k := range m {
			return k, nil
		}
	}
	return nil, fault.New(fault.Corrupt, "msglc", "key % x is no value", key.Data)
}

// Decode decodes the value into what v points to, see [value.Unmarshal]. A combined node, which has no bytes of its
// own, is [fault.Invalid]: decode its children.
func (n Node) Decode(ctx context.Context, v any) error {
	raw, err := n.Raw(ctx)
	if err != nil {
		return err
	}
	m, err := n.resolve(ctx)
	if err != nil {
		return err
	}
	return m.fault(value.Unmarshal(raw.Codec, raw.Data, n.r.s.limits, v))
}

// WriteJSON writes the value as JSON text, without a line break behind it. Memory is bounded, however long the value
// is. What JSON could not keep is counted in loss, unless that is nil.
func (n Node) WriteJSON(ctx context.Context, w io.Writer, o *value.JSONOptions, loss *value.Losses) error {
	jw := value.NewJSONWriter(w, n.r.s.limits, o, loss)
	if err := n.writeJSON(ctx, jw, n.budget()); err != nil {
		jw.Flush() // what was written so far is right: a prefix of the result
		return err
	}
	return jw.Flush()
}

func (n Node) writeJSON(ctx context.Context, jw *value.JSONWriter, b *budget) error {
	archive := n.e.isArchive()
	n, err := n.resolve(ctx)
	if err != nil {
		return err
	}
	if archive {
		if err := b.take(n, PrefixSize+n.r.h.tocSize); err != nil {
			return err
		}
	}
	switch {
	case n.e.hasRange && !n.mixed():
		if err := b.take(n, n.e.end-n.e.start); err != nil {
			return err
		}
		jw.At("", n.r.payload+n.e.start)
		return n.r.locate(jw.WriteSection(n.r.h.codec, n.section(ctx), 0, n.e.end-n.e.start))
	case n.e.form == Blocks:
		return n.writeBlocksJSON(ctx, jw, b)
	case n.e.isMap:
		return n.writeMapJSON(ctx, jw, b)
	}
	if n.slice != nil {
		return n.writeSliceJSON(ctx, jw, b)
	}
	if err := jw.BeginArray(); err != nil {
		return err
	}
	t, err := n.tableFrom(ctx, 0)
	if err != nil {
		return n.r.locate(err)
	}
	for {
		child, ok, err := t.next()
		if err != nil {
			return n.r.locate(err)
		}
		if !ok {
			return jw.EndArray()
		}
		b.enter(child)
		if err := child.Node.writeJSON(ctx, jw, b); err != nil {
			return err
		}
		b.leave()
	}
}

func (n Node) writeSliceJSON(ctx context.Context, jw *value.JSONWriter, b *budget) error {
	if err := jw.BeginArray(); err != nil {
		return err
	}
	for child, err := range n.ahead(ctx) {
		if err != nil {
			return err
		}
		b.enter(child)
		if err := child.Node.writeJSON(ctx, jw, b); err != nil {
			return err
		}
		b.leave()
	}
	return jw.EndArray()
}

// section gives the bytes of a value with a range as a reader, from memory when they are there.
func (n Node) section(ctx context.Context) io.ReaderAt {
	if n.data == nil && n.e.end-n.e.start <= maxInMemory {
		if p, err := n.bytes(ctx); err == nil {
			n.data = p
		}
	}
	obj := n.r.s.obj
	if n.data != nil {
		return source.AsReaderAt(ctx, source.Memory(obj.Name(), n.data))
	}
	ctx = source.UpTo(ctx, n.r.payload+n.e.end)
	return io.NewSectionReader(source.AsReaderAt(ctx, obj), n.r.payload+n.e.start, n.e.end-n.e.start)
}

func (n Node) writeBlocksJSON(ctx context.Context, jw *value.JSONWriter, b *budget) error {
	if err := jw.BeginArray(); err != nil {
		return err
	}
	err := n.eachBlock(ctx, 0, false, func(blk block, p []byte) error {
		if err := b.take(n, blk.end-blk.start); err != nil {
			return err
		}
		jw.At("", n.r.payload+blk.start)
		s := value.NewScanner(n.r.h.codec, p, n.r.s.limits)
		for range blk.count {
			err := jw.WriteValue(s)
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return n.badBlock(blk, io.ErrUnexpectedEOF, 0)
			}
			if err != nil {
				return n.r.locate(err)
			}
		}
		if s.Offset() != int64(len(p)) {
			return n.r.blockSurplus(blk, s.Offset())
		}
		return nil
	})
	if err != nil {
		return n.r.locate(err)
	}
	return jw.EndArray()
}

// writeMapJSON writes a map whose values are archives, or nodes without a common range.
func (n Node) writeMapJSON(ctx context.Context, jw *value.JSONWriter, b *budget) error {
	pairs := false
	for key, err := range n.Keys(ctx) {
		if err != nil {
			return err
		}
		pairs = pairs || jw.NeedsPairs(key.Codec, key.Data)
	}
	begin := jw.BeginMap
	if pairs {
		begin = jw.BeginPairs
	}
	if err := begin(); err != nil {
		return n.r.locate(err)
	}
	t, err := n.tableFrom(ctx, 0)
	if err != nil {
		return n.r.locate(err)
	}
	for {
		child, ok, err := t.next()
		if err != nil {
			return n.r.locate(err)
		}
		if !ok {
			return jw.EndMap()
		}
		wanted, err := jw.Key(child.Key.Codec, child.Key.Data)
		if err != nil {
			return n.r.locate(err)
		}
		if !wanted {
			continue
		}
		b.enter(child)
		if err := child.Node.writeJSON(ctx, jw, b); err != nil {
			return err
		}
		b.leave()
	}
}
