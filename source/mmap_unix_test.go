//go:build unix

package source

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func mapped(t *testing.T, size int) (*mapping, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := newMapping(f, int64(size))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, path
}

// Below the pin check the signal itself is an error, also for many readers at once.
func TestMappingFault(t *testing.T) {
	size := 4 * os.Getpagesize()
	m, path := mapped(t, size)
	if err := os.Truncate(path, 1); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				n, err := m.ReadAt(make([]byte, 1000), int64(size-1000))
				if n != 0 || !errors.Is(err, errMappingFault) {
					t.Errorf("%d, %v, want %v", n, err, errMappingFault)
				}
			}
		})
	}
	wg.Wait()
	// The setting is the goroutine's own again.
	if old := debug.SetPanicOnFault(false); old {
		t.Error("memory faults still panic")
	}
}

// A fault that is not of the mapping is not hidden: here in the buffer of the caller.
func TestMappingForeignFault(t *testing.T) {
	m, _ := mapped(t, 100)
	readOnly, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(readOnly)
	defer func() {
		if _, ok := recover().(runtime.Error); !ok {
			t.Error("no memory fault, want one")
		}
	}()
	m.ReadAt(readOnly[:100], 0)
}
