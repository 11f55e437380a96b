package promtsdb

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// MetricName is the label whose value stands for the table.
const MetricName = "__name__"

// seriesAlign is what the series of an index begin at multiples of.
const seriesAlign = 16

// entry is a series of the index.
type entry struct {
	labels []series.Label // sorted by name
	chunks []chunks.Meta
	place  string
}

// entries gives the series of the index, in its order. What an entry holds is good until the next one.
func (b *Block) entries(ctx context.Context, withChunks bool) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		err := b.walk(ctx, withChunks, func(e *entry) bool { return yield(e, nil) })
		if err != nil {
			yield(nil, fault.Locate(err, b.index.Name(), "", 0))
		}
	}
}

func (b *Block) walk(ctx context.Context, withChunks bool, use func(*entry) bool) error {
	w := view{ctx: ctx, obj: b.index, end: b.series.End}
	names := make(map[uint32]string) // those of labels, which every series looks up
	dec := index.Decoder{LookupSymbol: func(_ context.Context, i uint32) (string, error) {
		if s, ok := names[i]; ok {
			return s, nil
		}
		s, err := b.symbols.get(i)
		if err == nil && len(names) < 1<<12 {
			names[i] = s
		}
		return s, err
	}}
	var e entry
	var builder labels.ScratchBuilder
	var set labels.Labels
	metas := &e.chunks
	if !withChunks {
		metas = nil
	}
	n := uint64(0)
	for at := align(b.series.Start); at < b.series.End; n++ {
		head, err := w.get(at, binary.MaxVarintLen32)
		if err != nil {
			return err
		}
		size, k := binary.Uvarint(head)
		left := b.series.End - at - int64(k) - crc32.Size
		if k <= 0 || left < 0 || size > uint64(left) {
			return corrupt("a series of %d bytes, and %d are left", size, max(0, left)).At(at)
		}
		body, err := w.get(at+int64(k), int64(size)+crc32.Size)
		if err != nil {
			return err
		}
		body, sum := body[:size], binary.BigEndian.Uint32(body[size:])
		if got := checksum(body); got != sum {
			return corrupt("a series: the checksum is %08x, not %08x", got, sum).At(at)
		}
		if err := dec.Series(body, &builder, metas); err != nil {
			if f, ok := errors.AsType[*fault.Error](err); ok {
				return f.At(at)
			}
			return corrupt("a series").Because(err).At(at)
		}
		builder.Overwrite(&set)
		e.labels, e.place = e.labels[:0], ""
		set.Range(func(l labels.Label) { e.labels = append(e.labels, series.Label{Name: l.Name, Value: l.Value}) })
		for i, l := range e.labels {
			if i > 0 && e.labels[i-1].Name >= l.Name {
				return corrupt("a series: the label %q comes behind %q", l.Name, e.labels[i-1].Name).At(at)
			}
		}
		if !use(&e) {
			return nil
		}
		at = align(at + int64(k) + int64(size) + crc32.Size)
	}
	if b.meta.Series > 0 && n != b.meta.Series {
		return corrupt("the index has %d series, %s says %d", n, MetaName, b.meta.Series)
	}
	return nil
}

func align(at int64) int64 { return (at + seriesAlign - 1) / seriesAlign * seriesAlign }

// Names goes through the series, and returns the names of the labels, MetricName left out, and those of the metrics, both
// sorted. The metric of a series without a name is "".
func (b *Block) Names(ctx context.Context) (labelNames, metrics []string, err error) {
	names, tables := make(map[string]struct{}), make(map[string]struct{})
	for e, err := range b.entries(ctx, false) { // whose labels share memory that is overwritten
		if err != nil {
			return nil, nil, err
		}
		metric := ""
		for _, l := range e.labels {
			if l.Name == MetricName {
				metric = l.Value
				continue
			}
			if _, ok := names[l.Name]; !ok {
				names[strings.Clone(l.Name)] = struct{}{}
			}
		}
		if _, ok := tables[metric]; !ok {
			tables[strings.Clone(metric)] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(tables)), nil
}

// Options say how the series of a block are read.
type Options struct {
	Tables map[string]uint32 // the table of each metric; "" is the metric of series without a name
	Tags   []series.Tag      // which every label must be one of
	// Note is told what is not as it should be, nil: nobody.
	Note func(text string)
}

// Records gives the series of the block, in the order of its index. The labels of a record are good until the next one, and
// are sorted by name. An error ends it.
func (b *Block) Records(ctx context.Context, o *Options) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		tags := make(map[string]string, len(o.Tags))
		for _, t := range o.Tags {
			tags[t.Name] = t.Name
		}
		counter, err := b.openChunks(ctx)
		if err != nil {
			yield(series.Record{}, err)
			return
		}
		defer counter.close()
		if counter == nil && o.Note != nil {
			o.Note("there are no files of chunks: each series counts one row")
		}
		var hash []byte
		var record series.Record
		for e, err := range b.entries(ctx, counter != nil) {
			if err != nil {
				yield(series.Record{}, err)
				return
			}
			record, hash, err = e.record(o, tags, record.Labels[:0], hash[:0])
			if err == nil {
				record.RowCount, err = counter.samples(e.chunks)
			}
			if err != nil {
				yield(series.Record{}, fault.Locate(err, b.index.Name(), text(e.labels), 0))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// record makes a record of an entry, but for its number of rows.
func (e *entry) record(o *Options, tags map[string]string, list []series.Label, hash []byte) (series.Record, []byte, error) {
	metric := ""
	for _, l := range e.labels {
		hash = append(append(append(append(hash, l.Name...), 0xff), l.Value...), 0xff)
		if l.Name == MetricName {
			metric = l.Value
			continue
		}
		name, ok := tags[l.Name]
		if !ok {
			return series.Record{}, hash, fault.New(fault.Invalid, "promtsdb", "the label %q is no tag of the artifact", l.Name)
		}
		list = append(list, series.Label{Name: name, Value: l.Value})
	}
	table, ok := o.Tables[metric]
	if !ok {
		return series.Record{}, hash, fault.New(fault.Invalid, "promtsdb", "the metric %q has no table", metric)
	}
	return series.Record{ID: series.ID{Table: table, TSID: xxhash.Sum64(hash)}, Labels: list}, hash, nil
}

// maxText is about how much of a set of labels a message shows.
const maxText = 1000

// text is a set of labels as Prometheus writes it.
func text(list []series.Label) string {
	out := []byte{'{'}
	for i, l := range list {
		if i > 0 {
			out = append(out, ", "...)
		}
		if len(out)+len(l.Name)+len(l.Value) > maxText {
			out = append(out, "…"...)
			break
		}
		out = strconv.AppendQuote(append(append(out, l.Name...), '='), l.Value)
	}
	return string(append(out, '}'))
}

// Distinct gives records in the order of their identifiers on, and refuses two of one identifier: the index of a block has each
// series once, so that these are two series with one hash.
func Distinct(records iter.Seq2[series.Record, error]) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		var last series.Record
		begun := false
		for r, err := range records {
			if err == nil && begun && r.ID == last.ID {
				err = fault.New(fault.Conflict, "promtsdb", "two series of table %d have the TSID %d: %s and %s", r.Table, r.TSID, text(last.Labels), text(r.Labels))
			}
			if !yield(r, err) || err != nil {
				return
			}
			last.ID, last.Labels, begun = r.ID, append(last.Labels[:0], r.Labels...), true
		}
	}
}

// view gives bytes of an object in order, through a window.
type view struct {
	ctx context.Context
	obj source.Object
	end int64 // up to which the window reads ahead

	buf []byte
	at  int64
}

// get returns n bytes from off on, or fewer where the object ends; they are good until the next call.
func (v *view) get(off, n int64) ([]byte, error) {
	n = min(n, v.obj.Size()-off)
	if n <= 0 {
		return nil, nil
	}
	if off < v.at || off+n > v.at+int64(len(v.buf)) {
		ahead := min(max(n, window), max(n, v.end-off))
		if off >= v.at && off < v.at+int64(len(v.buf)) { // what is there is not read again
			v.buf = append(v.buf[:0], v.buf[off-v.at:]...)
		} else {
			v.buf = v.buf[:0]
		}
		v.at = off
		have := len(v.buf)
		v.buf = slices.Grow(v.buf, int(ahead)-have)[:ahead]
		if err := v.obj.ReadAt(v.ctx, v.buf[have:], off+int64(have)); err != nil {
			v.buf = v.buf[:0]
			return nil, err
		}
	}
	return v.buf[off-v.at:][:n], nil
}
