package series

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
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
