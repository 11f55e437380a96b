//go:build unix

package diskcache

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe or a link in the place of a file of the cache is not waited for and not followed.
func TestNoRegularFiles(t *testing.T) {
	ctx, data := context.Background(), random(BlockSize, 18)
	outside := filepath.Join(t.TempDir(), "outside")
	for name, put := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink(outside, path) },
	} {
		dir := t.TempDir()
		first := &remoteObject{data: data, version: "1"}
		read(t, ctx, open(t, dir, 0).Object(key, first, nil), 0, BlockSize)
		block := blocks(t, dir)[0]
		kept, err := os.ReadFile(block)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(outside, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{block, filepath.Join(dir, hash(key), currentName), filepath.Join(dir, hash(key), missingName)} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
		}
		c := open(t, dir, 0)
		if _, known := c.Known(key); known || c.Missing(key, "1") {
			t.Errorf("%s: something is known", name)
		}
		for fetched := range int64(2) {
			if got := read(t, ctx, c.Object(key, first, nil), 0, BlockSize); !bytes.Equal(got, data) || first.reads.Load() != 2 {
				t.Errorf("%s, read %d: %d reads of the object", name, fetched, first.reads.Load())
			}
		}
		if after, err := os.ReadFile(outside); err != nil || !bytes.Equal(after, kept) {
			t.Errorf("%s: what the link leads to was changed: %v", name, err)
		}
	}
}
