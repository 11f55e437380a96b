package source_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

var openers = map[string]func(string) (source.Object, error){"file": source.OpenFile, "mmap": source.OpenMmap}

// A file that is touched while it is open is found out by the next read, wherever that reads.
func TestFileChanged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can be neither removed nor replaced there")
	}
	const size = 3 * 4096
	swap := func(path string, b []byte, at time.Time) error {
		temp := path + ".new"
		return errors.Join(os.WriteFile(temp, b, 0o644), os.Chtimes(temp, at, at), os.Rename(temp, path))
	}
	for _, tt := range []struct {
		name   string
		change func(path string, info fs.FileInfo) error
		text   string
	}{
		{"replaced", func(path string, _ fs.FileInfo) error {
			return swap(path, make([]byte, size), time.Now())
		}, "replaced"},
		{"replaced, same size and time", func(path string, info fs.FileInfo) error {
			return swap(path, make([]byte, size), info.ModTime())
		}, "replaced"},
		{"removed", func(path string, _ fs.FileInfo) error { return os.Remove(path) }, "removed"},
		{"moved away", func(path string, _ fs.FileInfo) error { return os.Rename(path, path+".old") }, "removed"},
		{"folder gone", func(path string, _ fs.FileInfo) error { return os.RemoveAll(filepath.Dir(path)) }, "removed"},
		{"replaced by a folder", func(path string, _ fs.FileInfo) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		}, "replaced"},
		{"emptied", func(path string, _ fs.FileInfo) error { return os.Truncate(path, 0) }, "was 12288 when opened, is 0"},
		{"cut inside a page", func(path string, _ fs.FileInfo) error { return os.Truncate(path, 5000) }, "is 5000"},
		{"cut at its last byte", func(path string, _ fs.FileInfo) error { return os.Truncate(path, size-1) }, "is 12287"},
		{"cut and grown again", func(path string, _ fs.FileInfo) error {
			return errors.Join(os.Truncate(path, 0), os.Truncate(path, size))
		}, "modified"},
		{"grown", func(path string, _ fs.FileInfo) error { return os.Truncate(path, size+1) }, "is 12289"},
		{"written to", func(path string, _ fs.FileInfo) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{1}, size-1)
			return errors.Join(err, f.Close())
		}, "modified"},
	} {
		for kind, open := range openers {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				want := content(size)
				path := writeFile(t, want)
				info := must(os.Stat(path))
				obj := must(open(path))
				defer obj.Close()
				p := make([]byte, 100)
				if err := obj.ReadAt(t.Context(), p, 0); err != nil || !bytes.Equal(p, want[:100]) {
					t.Fatalf("before the change: %v", err)
				}
				if err := tt.change(path, info); err != nil {
					t.Fatal(err)
				}
				for _, off := range []int64{0, 4990, size - 100} {
					wantFault(t, obj.ReadAt(t.Context(), p, off), fault.Changed, path, tt.text)
				}
				wantFault(t, obj.ReadAt(t.Context(), make([]byte, size), 0), fault.Changed, path, tt.text)
			})
		}
	}
}

// What leaves the bytes as they are is no change.
func TestFileUnchanged(t *testing.T) {
	for kind, open := range openers {
		t.Run(kind, func(t *testing.T) {
			path := writeFile(t, content(100))
			obj := must(open(path))
			defer obj.Close()
			if err := errors.Join(
				os.Chmod(path, 0o600),
				os.Link(path, path+".link"),
				os.Rename(path, path+".away"), os.Rename(path+".away", path),
			); err != nil {
				t.Fatal(err)
			}
			if err := obj.ReadAt(t.Context(), make([]byte, 100), 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFileVersion(t *testing.T) {
	path := writeFile(t, content(100))
	version := func() string {
		obj := must(source.OpenFile(path))
		defer obj.Close()
		return obj.Version()
	}
	first := version()
	if first == "" || first != version() {
		t.Errorf("version %q, then %q", first, version())
	}
	seen := map[string]string{first: "first"}
	for _, change := range []struct {
		name string
		make func() error
	}{
		{"time", func() error { return os.Chtimes(path, time.Time{}, time.Now()) }},
		{"size", func() error { return os.Truncate(path, 99) }},
	} {
		if err := change.make(); err != nil {
			t.Fatal(err)
		}
		v := version()
		if other, ok := seen[v]; ok {
			t.Errorf("version %q after change of %s is that of %s", v, change.name, other)
		}
		seen[v] = change.name
	}
}

func TestOpenRefused(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	_, err := os.Stat(missing)
	noFile := errors.Unwrap(err).Error() // in the words of the system
	for kind, open := range openers {
		t.Run(kind, func(t *testing.T) {
			for _, tt := range []struct {
				path  string
				class error
				text  string
			}{
				{missing, fault.NotFound, "source: " + missing + ": " + noFile},
				{"", fault.NotFound, "source: " + noFile},
				{dir, fault.Invalid, "source: " + dir + ": is a folder, not a regular file"},
			} {
				_, err := open(tt.path)
				wantFault(t, err, tt.class)
				if err.Error() != tt.text {
					t.Errorf("text %q, want %q", err, tt.text)
				}
			}
		})
	}
}

// The price of the pin check is part of the contract: one stat, of two allocations.
func TestFileAllocations(t *testing.T) {
	for kind, open := range openers {
		obj := must(open(writeFile(t, content(8192))))
		defer obj.Close()
		p := make([]byte, 4096)
		if n := testing.AllocsPerRun(100, func() { obj.ReadAt(t.Context(), p, 100) }); n > 2 {
			t.Errorf("%s: %v allocations a read, at most 2", kind, n)
		}
	}
}

func BenchmarkReadAt(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			obj := k.open(b, content(1<<20))
			defer obj.Close()
			p := make([]byte, 4096)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				if err := obj.ReadAt(b.Context(), p, i*7919%(1<<20-4096)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
