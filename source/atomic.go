package source

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spilehq/spile/fault"
)

// AtomicFile is an output file that appears under its name when it is complete. Until [AtomicFile.Commit] the bytes go
// to a temporary file in the same folder, and what was there before stays as it is.
//
//	f, err := source.CreateAtomic(path)
//	if err != nil {
//		return err
//	}
//	defer f.Abort()
//	…
//	return f.Commit()
//
// An output that cannot be replaced by a rename (standard output under whatever name, a pipe, a device) is written
// directly; then Abort takes nothing back. Standard output takes no WriteAt and no ReadAt, since it need not begin
// where its file does; other outputs take them where the system does.
//
// An AtomicFile is not safe for concurrent use.
type AtomicFile struct {
	path   string   // as given, for messages
	target string   // what Commit renames to, "" when f is written directly
	f      *os.File // nil after Commit or Abort
	stdout bool     // f is os.Stdout: not closed, and only appended to
	isNew  bool     // Commit replaces nothing
	err    error    // the first failed write
}

// CreateAtomic begins the output file path, whose folder must exist. The file gets the permissions of the one it
// replaces, or else those of [os.Create]; a symbolic link stays and what it leads to is replaced. A folder is
// [fault.Invalid].
func CreateAtomic(path string) (*AtomicFile, error) {
	return create(&AtomicFile{path: path})
}

// CreateNew is CreateAtomic for a file that must not be there. When there is one, at the latest in [AtomicFile.Commit], it is
// [fault.Conflict], and stays as it is. An output that is written directly replaces nothing, and is no conflict.
func CreateNew(path string) (*AtomicFile, error) {
	return create(&AtomicFile{path: path, isNew: true})
}

func create(a *AtomicFile) (*AtomicFile, error) {
	path := a.path
	perm, existed := fs.FileMode(0o666), false
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, fault.New(fault.Invalid, "source", "is a folder, not a file").In(path)
	case err == nil && isStdout(info):
		// Not opened anew, which would start at the beginning of a file that the shell appends to.
		a.f, a.stdout = os.Stdout, true
		return a, nil
	case err == nil && !info.Mode().IsRegular():
		if a.f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return nil, systemFault(path, err)
		}
		return a, nil
	case err == nil && a.isNew:
		return nil, existsFault(path)
	case err == nil:
		perm, existed = info.Mode().Perm(), true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, systemFault(path, err)
	}
	target, err := linkTarget(path)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(target)
	// Names end at 255 bytes in most systems, and the suffix needs 32.
	temp := dir + "." + strings.ToValidUTF8(base[:min(len(base), 200)], "") + "." + rand.Text() + ".tmp"
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, systemFault(path, err)
	}
	a.target, a.f = target, f
	if existed { // the umask may have taken bits that the old file has
		if err := f.Chmod(perm); err != nil {
			a.Abort()
			return nil, systemFault(path, err)
		}
	}
	return a, nil
}

func isStdout(info fs.FileInfo) bool {
	out, err := os.Stdout.Stat()
	return err == nil && os.SameFile(info, out)
}

// linkTarget follows the symbolic links of path to a name that is none, or that nothing has yet. Unlike
// [filepath.EvalSymlinks] it takes a link that leads to a file which is still to be made.
func linkTarget(path string) (string, error) {
	given := path
	for range 40 { // as many as Linux follows
		dir, base := filepath.Split(path)
		if base == "" {
			return "", fault.New(fault.Invalid, "source", "names no file").In(given)
		}
		dir, err := filepath.EvalSymlinks(cmp.Or(dir, "."))
		if err != nil {
			return "", systemFault(given, fmt.Errorf("folder of the output: %w", err))
		}
		path = filepath.Join(dir, base)
		link, err := os.Readlink(path)
		if err != nil { // it is no link
			return path, nil
		}
		// Not joined with filepath.Join: "a/.." is not "." when a is a link.
		if path = link; !filepath.IsAbs(link) {
			path = dir + string(filepath.Separator) + link
		}
	}
	return "", fault.New(fault.Invalid, "source", "more than 40 symbolic links").In(given)
}

// Write writes p after the bytes of the last Write.
func (a *AtomicFile) Write(p []byte) (int, error) {
	f, err := a.open()
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, a.failed(err)
}

// WriteAt writes p at off, and does not move the place of the next Write.
func (a *AtomicFile) WriteAt(p []byte, off int64) (int, error) {
	f, err := a.seekable()
	if err != nil {
		return 0, err
	}
	n, err := f.WriteAt(p, off)
	return n, a.failed(err)
}

// ReadAt reads back what was written, as an [io.ReaderAt].
func (a *AtomicFile) ReadAt(p []byte, off int64) (int, error) {
	f, err := a.seekable()
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = systemFault(a.path, err)
	}
	return n, err
}

// Commit brings the bytes to the disk and gives the file its name. It fails when a write has failed before; whenever
// it fails, the temporary file is removed and what was there before is as it was.
func (a *AtomicFile) Commit() error {
	f, err := a.open()
	if err != nil {
		return err
	}
	defer a.Abort()
	if a.err != nil {
		return a.err
	}
	if a.target == "" {
		a.f = nil
		if a.stdout {
			return nil
		}
		return a.failed(f.Close())
	}
	if err := cmp.Or(f.Sync(), f.Close()); err != nil {
		return a.failed(err)
	}
	publish := os.Rename
	if a.isNew {
		publish = renameNew
	}
	if err := publish(f.Name(), a.target); err != nil {
		if a.isNew && errors.Is(err, fs.ErrExist) {
			return existsFault(a.path)
		}
		if link, ok := errors.AsType[*os.LinkError](err); ok { // both names stand in front of the cause
			err = link.Err
		}
		return a.failed(err)
	}
	a.f = nil
	syncFolder(filepath.Dir(a.target))
	return nil
}

// renameNew renames a file to a name that nothing has. No system call that all systems have does that; but a second name is
// given by none of them where there is a file.
func renameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		os.Remove(from) // a name that stays is no other content
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without second names. An empty file takes the name, so that nobody else can, and is replaced.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	f.Close()
	if err = os.Rename(from, to); err != nil {
		os.Remove(to)
	}
	return err
}

func existsFault(path string) error {
	return fault.New(fault.Conflict, "source", "there is a file under this name, and it is not to be replaced").In(path)
}

// Abort removes the temporary file. After Commit, and when called again, it does nothing.
func (a *AtomicFile) Abort() {
	f := a.f
	a.f = nil
	if f == nil || a.stdout {
		return
	}
	f.Close()
	if a.target != "" {
		os.Remove(f.Name())
	}
}

func (a *AtomicFile) open() (*os.File, error) {
	if a.f == nil {
		return nil, fault.New(fault.Invalid, "source", "output is committed or aborted already").In(a.path)
	}
	return a.f, nil
}

func (a *AtomicFile) seekable() (*os.File, error) {
	if a.stdout {
		return nil, fault.New(fault.Invalid, "source", "standard output can only be appended to").In(a.path)
	}
	return a.open()
}

// failed keeps the first error of a write, so that a caller who overlooks it cannot commit.
func (a *AtomicFile) failed(err error) error {
	if err == nil {
		return nil
	}
	e := systemFault(a.path, err)
	if a.err == nil {
		a.err = e
	}
	return e
}

// syncFolder makes the rename last through a power cut, where the system can. It gives no error: the file is in its
// place and complete, and to say that it failed would be wrong.
func syncFolder(dir string) {
	if runtime.GOOS == "windows" { // has no such thing
		return
	}
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
