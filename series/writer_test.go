package series

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spilehq/spile/fault"
)

// options are those of a vector.
func (v *vector) options() *WriteOptions {
	o := &WriteOptions{}
	for name, value := range v.Options {
		n, _ := value.(float64)
		switch name {
		case "block-series":
			o.BlockSeries = int(n)
		case "page-bytes":
			o.PageBytes = int(n)
		case "part-bytes":
			o.PartBytes = int64(n)
		case "level":
			o.Level = int(n)
		case "compression":
			o.Zstd = value == "zstd"
		default:
			panic(name)
		}
	}
	return o
}

// meta is the manifest of a vector without its files.
func (v *vector) meta(t *testing.T) *Manifest {
	t.Helper()
	m, err := ParseMeta(v.Meta)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// write builds the artifact of a vector below dir.
func (v *vector) write(t *testing.T, dir string, o *WriteOptions) (*FolderTarget, error) {
	t.Helper()
	m := v.meta(t)
	target := NewFolderTarget(dir, m.RegionID, m.Generation)
	w, err := NewWriter(context.Background(), target, m, o)
	if err != nil {
		return target, err
	}
	defer w.Abort()
	input := v.Input
	if input == nil {
		input = v.Records
	}
	input = slices.Clone(input)
	slices.SortStableFunc(input, func(a, b recordJSON) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.TSID, b.TSID))
	})
	for _, r := range input {
		if err := w.Add(r.record(m.Tags)); err != nil {
			return target, err
		}
	}
	return target, w.Close()
}

func TestWriteVectors(t *testing.T) {
	n := 0
	for _, v := range vectors(t, "*.json", 40) {
		if !v.Build {
			continue
		}
		n++
		t.Run(v.Name, func(t *testing.T) {
			target, err := v.write(t, t.TempDir(), v.options())
			if err != nil {
				t.Fatal(err)
			}
			a, err := Open(context.Background(), Folder(target.Dir()), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			i := 0
			for r, err := range a.Records(context.Background(), everything) {
				if err != nil {
					t.Fatal(err)
				}
				if want := v.Records[i].record(a.Tags()); !sameRecord(r, want) {
					t.Fatalf("record %d is %+v, want %+v", i, r, want)
				}
				i++
			}
			if i != len(v.Records) || len(a.Manifest().Files) != v.Parts {
				t.Errorf("%d records in %d parts, want %d in %d", i, len(a.Manifest().Files), len(v.Records), v.Parts)
			}
			if !v.Identical {
				return
			}
			for k := range a.Manifest().Files {
				got, err := os.ReadFile(filepath.Join(target.Dir(), PartName(uint32(k))))
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(filepath.Join(v.folder, PartName(uint32(k))))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("part %d of %d bytes is not that of the vector, %d bytes", k, len(got), len(want))
				}
			}
		})
	}
	if n < 25 {
		t.Errorf("%d artifacts to build", n)
	}
}

func TestRefuseVectors(t *testing.T) {
	for _, v := range vectors(t, "refuse/*.json", 5) {
		t.Run(v.Name, func(t *testing.T) {
			dir := t.TempDir()
			m, err := ParseMeta(v.Meta)
			if err == nil {
				_ = m
				_, err = v.write(t, dir, nil)
			}
			want := map[string]error{"conflict": fault.Conflict, "invalid input": fault.Invalid, "limit exceeded": fault.Limit}[v.Class]
			if !errors.Is(err, want) {
				t.Errorf("%v, want %s: %s", err, v.Class, v.Why)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Two labels for one identifier, of which the first stays.
func TestKeepFirst(t *testing.T) {
	v := readVector(t, filepath.Join(vectorFolder, "refuse", "conflict.json"))
	m := v.meta(t)
	target := NewFolderTarget(t.TempDir(), m.RegionID, m.Generation)
	w, err := NewWriter(context.Background(), target, m, &WriteOptions{KeepFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, r := range []Record{
		{ID{1, 5}, 2, []Label{{"host", "a"}}}, {ID{1, 5}, 3, []Label{{"host", "b"}}}, {ID{1, 6}, 1, nil},
	} {
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || w.Conflicts() != 1 {
		t.Fatal(err, w.Conflicts())
	}
	a, err := Open(context.Background(), Folder(target.Dir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got, err := a.Lookup(context.Background(), ID{1, 5})
	if err != nil || got.RowCount != 5 || got.Labels[0].Value != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	// A generation is used once.
	if _, err := (&FolderTarget{dir: target.Dir()}).Create(context.Background(), PartName(0)); !errors.Is(err, fault.Conflict) {
		t.Errorf("another artifact in the same folder: %v", err)
	}
}

// What nobody could read again is refused before the first byte is written.
func TestUnreadableMeta(t *testing.T) {
	for name, m := range map[string]*Manifest{
		"a name that is no text": {Tags: []Tag{{1, "a\xff"}}},
		"a unit of its own":      {Coverage: Coverage{BucketStart: &Timestamp{1, "Minute"}}},
		"no start of a window":   {Coverage: Coverage{WindowSequences: map[string]Window{"noon": {}}}},
	} {
		target := NewFolderTarget(filepath.Join(t.TempDir(), "out"), 0, UUID{})
		if _, err := NewWriter(context.Background(), target, m, nil); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(target.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
