package series

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// heapInUse is what the heap holds when nothing is left to be collected.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC() // what has a finalizer goes with the second one
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A thousand artifacts that are open at a time hold 64 KiB each at most, also when their parts were read; each part that was
// read is one open file, and none is left when they are closed.
func TestResident(t *testing.T) {
	const count, asked, most = 1000, 200, 64 << 10
	ctx := context.Background()
	meta := &Manifest{RegionID: 1, Generation: UUID{1}}
	for i := range 12 {
		meta.Tags = append(meta.Tags, Tag{uint32(i + 1), fmt.Sprintf("label_%02d", i)})
	}
	target := NewFolderTarget(t.TempDir(), 1, meta.Generation)
	w, err := NewWriter(ctx, target, meta, &WriteOptions{BlockSeries: 100, PartBytes: 24 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4000 {
		r := Record{ID: ID{uint32(1 + i/1000), uint64(i)}, RowCount: 1}
		for k, tag := range meta.Tags {
			r.Labels = append(r.Labels, Label{tag.Name, fmt.Sprintf("value-%d", i/(k+1)%50)})
		}
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Manifest().Files); n < 3 {
		t.Fatalf("%d parts", n)
	}
	ask := func(a *Artifact, i int) {
		t.Helper()
		r, err := a.Lookup(ctx, ID{1, uint64(i % 100)}) // in the first part
		if err != nil || len(r.Labels) != len(meta.Tags) {
			t.Fatal(r, err)
		}
	}
	open := func() *Artifact {
		t.Helper()
		a, err := Open(ctx, Folder(target.Dir()), &Options{CacheBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := open() // what all share is made with the first one
	ask(first, 0)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	first = nil
	files := -1
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		files = openFiles(t)
	}
	artifacts := make([]*Artifact, count)
	before := heapInUse()
	for i := range artifacts {
		artifacts[i] = open()
	}
	if each := (heapInUse() - before) / count; each > most {
		t.Errorf("an open artifact holds %d bytes, at most %d", each, most)
	}
	if files >= 0 && openFiles(t) != files {
		t.Errorf("%d files are open, %d were: manifests are read and closed", openFiles(t), files)
	}
	before = heapInUse()
	for i, a := range artifacts[:asked] {
		ask(a, i)
	}
	if each := (heapInUse() - before) / asked; each > most {
		t.Errorf("an artifact holds %d bytes more when a part was read, at most %d", each, most)
	}
	if files >= 0 && openFiles(t) != files+asked {
		t.Errorf("%d files are open, want %d and one for each of %d parts", openFiles(t), files, asked)
	}
	for _, a := range artifacts {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if files >= 0 && openFiles(t) != files {
		t.Errorf("%d files are open behind Close, %d were", openFiles(t), files)
	}
	runtime.KeepAlive(artifacts)
}
