//go:build unix

package source

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenMmap opens the regular file at path as a read-only mapping, with the contract of [OpenFile]; a file that is
// truncated while it is read is [fault.Changed] here too, not a crash. It is meant for long-lived servers whose pages
// stay in memory: a hot read saves the copy out of the kernel, while a cold page costs several preads. On systems
// without mappings it is [OpenFile].
func OpenMmap(path string) (Object, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	// The mapping alone keeps the inode, a descriptor would be one more thing to run out of.
	defer f.Close()
	m, err := newMapping(f, info.Size())
	if err != nil {
		return nil, systemFault(path, err)
	}
	obj := &readerAt{name: path, version: fileVersion(info), size: info.Size(), cost: localCost, r: m, closer: m}
	return Pinned(obj, samePath(path, info)), nil
}

// mapping is a mapped file as an io.ReaderAt.
type mapping struct {
	mu     sync.RWMutex // held for reading while data is read, so that Close does not pull it away
	closed bool
	data   []byte
	base   uintptr // the address of data
}

func newMapping(f *os.File, size int64) (*mapping, error) {
	if size == 0 {
		return &mapping{}, nil // the system refuses to map nothing
	}
	if size > math.MaxInt {
		return nil, unix.ENOMEM
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &mapping{data: data, base: reflect.ValueOf(data).Pointer()}, nil
}

var errMappingFault = errors.New("a mapped page cannot be read")

// ReadAt is called with 0 <= off and off+len(p) <= len(m.data).
func (m *mapping) ReadAt(p []byte, off int64) (n int, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return 0, os.ErrClosed
	}
	// A page that is gone, since the file was cut, or that the disk does not give back, raises a signal, which ends
	// the process unless it is asked to panic.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !m.faulted(r) {
				panic(r)
			}
			n, err = 0, errMappingFault
		}
	}()
	return copy(p, m.data[off:]), nil
}

// faulted reports whether the panic is a memory fault inside the mapping; a fault in the caller's buffer is not ours.
func (m *mapping) faulted(r any) bool {
	f, ok := r.(interface{ Addr() uintptr })
	return ok && f.Addr()-m.base < uintptr(len(m.data))
}

func (m *mapping) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.data == nil {
		m.closed = true
		return nil
	}
	m.closed = true
	return unix.Munmap(m.data)
}

func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
