package series

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/source"
)

// An artifact of many tags is read by the tags that its blocks store, whether their order is that of a manifest or not.
func TestManyTags(t *testing.T) {
	const tags = 20_000
	ctx := context.Background()
	meta := &Manifest{RegionID: 1}
	for i := range tags {
		meta.Tags = append(meta.Tags, Tag{uint32(i), fmt.Sprintf("tag%05d", tags-i)})
	}
	target := NewFolderTarget(t.TempDir(), 1, UUID{})
	w, err := NewWriter(ctx, target, meta, &WriteOptions{BlockSeries: 2})
	if err != nil {
		t.Fatal(err)
	}
	var want []Record
	for i := range 6 {
		r := Record{ID: ID{1, uint64(i)}, RowCount: 1}
		for k := i / 2 * 7000 % 5000; k < tags; k += 1 + 3000*(i%2) {
			r.Labels = append(r.Labels, Label{meta.Tags[k].Name, fmt.Sprint(i, k)})
		}
		want = append(want, r)
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := Open(ctx, Folder(target.Dir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	obj, err := source.OpenFile(filepath.Join(target.Dir(), PartName(0)))
	if err != nil {
		t.Fatal(err)
	}
	part, err := OpenPart(ctx, obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	for _, a := range []*Artifact{whole, part} {
		if len(a.Tags()) != tags {
			t.Errorf("%s: %d tags", a.Name(), len(a.Tags()))
		}
		i := 0
		for r, err := range a.Select(ctx, &Query{Mode: Native}) {
			if err != nil {
				t.Fatal(err)
			}
			got := slices.SortedFunc(slices.Values(r.Labels), func(a, b Label) int { return -1 * slices.Compare([]byte(a.Name), []byte(b.Name)) })
			if r.ID != want[i].ID || !slices.Equal(got, want[i].Labels) {
				t.Fatalf("%s: series %d has %d labels, want %d", a.Name(), i, len(got), len(want[i].Labels))
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%s: %d series", a.Name(), i)
		}
		names, err := a.LabelNames(ctx, &Query{})
		if err != nil || len(names) != tags {
			t.Errorf("%s: %d names, %v", a.Name(), len(names), err)
		}
		m, err := NewMatcher(Equal, "tag00001", fmt.Sprint(2, tags-1))
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range a.Select(ctx, &Query{Matchers: []*Matcher{m}, Columns: []string{"tag00002", "none", "tag00001", "tag00002"}}) {
			if err != nil || r.TSID != 2 || len(r.Labels) != 2 {
				t.Errorf("%s: %+v, %v", a.Name(), r, err)
			}
		}
	}
}

// A block takes a record as long as each of its chunks has 64 MiB at most, to the byte.
func TestBlockOfWholeChunks(t *testing.T) {
	record := func(id, count uint64, value string) *record {
		return &record{ID: ID{1, id}, count: count, values: []string{value}, has: []bool{true}}
	}
	big := strings.Repeat("b", maxChunk)
	fill := func(rest int) *blockBuilder { // the chunk of the tag is short of the limit by rest bytes
		b := newBlockBuilder([]Tag{{1, "host"}})
		b.add(record(1, 1, "a"))
		b.add(record(2, 1, "c"))
		const others = 4 + 9 + 3*9 + 2 + 3 // length, null, three entries, "a" and "c", three codes
		b.add(record(3, 1, big[:maxChunk-others-rest]))
		return b
	}
	for rest, fits := range map[int]map[string]bool{
		0:  {"a": false},
		1:  {"a": true, "c": true, "d": false},
		10: {"d": false, "": true},
		11: {"d": true, "dd": false},
	} {
		b := fill(rest)
		if n := maxChunk - rest; rest == 1 && len(b.encode(nil)[2].bytes) != n {
			t.Fatalf("a chunk that has not %d bytes", n)
		}
		for value, want := range fits {
			if b.fits(record(4, 1, value)) != want {
				t.Errorf("%q with %d bytes left: fits %v", value, rest, !want)
			}
		}
	}
	b := newBlockBuilder([]Tag{{1, "host"}})
	if head := 4 + 9 + 9 + 1; !b.fits(record(1, 1, big[:maxChunk-head])) || b.fits(record(1, 1, big[:maxChunk-head+1])) {
		t.Error("the first record of a block")
	}
	b.add(record(1, 1, "a"))
	for _, tt := range []struct {
		tsids, counts int // bytes that are there
		fits          bool
	}{{maxChunk - 1, maxChunk - 2, true}, {maxChunk, 0, false}, {0, maxChunk - 1, false}} {
		b.tsidSize, b.countSize = tt.tsids, tt.counts
		if b.fits(record(2, 129, "a")) != tt.fits { // a byte, and two bytes
			t.Errorf("%d and %d bytes: fits %v", tt.tsids, tt.counts, !tt.fits)
		}
	}
}
