package series

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/filelock"
	"github.com/spilehq/spile/source"
)

// FolderTarget writes an artifact into a folder that is not there before, or is empty: nothing that is there is ever
// replaced. Until the manifest is committed the objects lie in a folder of their own beside it; then that folder gets the
// name, and all of the artifact is there at once. From [FolderTarget.Begin] until then, or until [FolderTarget.Discard],
// a lock keeps other runs out that would write the same generation; what one that was killed has left is removed by the next.
//
// A FolderTarget is not safe for concurrent use.
type FolderTarget struct {
	dir   string
	lock  *filelock.Lock
	stage string   // where the objects lie, "" before the first one
	done  bool     // the folder has its name
	made  []string // folders, the outermost first
	files []string // that were committed: of the artifact when it is done, and beside it
}

// NewFolderTarget returns the target for the artifact of a region and a generation below root, in the layout of the
// format: <root>/<region>/series/<generation>.
func NewFolderTarget(root string, region uint64, generation UUID) *FolderTarget {
	return &FolderTarget{dir: filepath.Join(root, fmt.Sprint(region), "series", generation.String())}
}

// Dir is the folder of the artifact.
func (t *FolderTarget) Dir() string { return t.dir }

// Begin takes the lock and looks whether the folder is free, which is [fault.Conflict] where it is not. The first Create does
// it where nobody did before.
func (t *FolderTarget) Begin() error {
	if t.lock != nil {
		return nil
	}
	if t.done {
		return fault.New(fault.Invalid, "series", "the artifact is complete").In(t.dir)
	}
	if err := t.free(); err != nil { // before a folder is made
		return err
	}
	above, name := filepath.Split(t.dir)
	above = filepath.Clean(above)
	for try := 1; t.lock == nil; try++ {
		err := t.makeFolders(above)
		if err == nil {
			t.lock, err = filelock.Take(filepath.Join(above, "."+name+".lock"))
		}
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && try < 1000: // another run that failed has removed the folder that it made
		case errors.Is(err, fault.Conflict):
			t.removeFolders()
			return fault.New(fault.Conflict, "series", "another run writes this artifact").In(t.dir).Because(err)
		default:
			t.removeFolders()
			return folderFault(above, err)
		}
	}
	err := t.free() // another run may have ended in between
	if err == nil {
		err = t.sweep()
	}
	if err != nil {
		t.release()
		t.removeFolders()
	}
	return err
}

// free looks whether nothing is in the way.
func (t *FolderTarget) free() error {
	info, err := os.Lstat(t.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return folderFault(t.dir, err)
	case !info.IsDir():
		return fault.New(fault.Conflict, "series", "is there already, and is no folder").In(t.dir)
	}
	list, err := os.ReadDir(t.dir)
	switch {
	case err != nil:
		return folderFault(t.dir, err)
	case slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == ManifestName }):
		return fault.New(fault.Conflict, "series", "holds an artifact already, and a generation is used once").In(t.dir)
	case len(list) > 0:
		return fault.New(fault.Conflict, "series", "holds files already, %s among them, and no manifest", list[0].Name()).In(t.dir)
	}
	return nil
}

// makeFolders makes a folder and those above it.
func (t *FolderTarget) makeFolders(dir string) error {
	var missing []string
	for {
		if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
	for _, dir := range slices.Backward(missing) {
		switch err := os.Mkdir(dir, 0o777); {
		case err == nil:
			t.made = append(t.made, dir)
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	return nil
}

// removeFolders removes the folders that were made. One that others use is not empty, and stays.
func (t *FolderTarget) removeFolders() {
	for _, dir := range slices.Backward(t.made) {
		os.Remove(dir)
	}
	t.made = nil
}

func (t *FolderTarget) release() {
	if t.lock != nil {
		t.lock.Release()
		t.lock = nil
	}
}

// staged is what the names of folders begin and end with in which artifacts of this generation are written.
func (t *FolderTarget) staged() (prefix, suffix string) {
	return "." + filepath.Base(t.dir) + ".", ".tmp"
}

// sweep removes what runs have left that were killed. With the lock there is no other run.
func (t *FolderTarget) sweep() error {
	if !t.lock.Alone {
		return nil
	}
	above := filepath.Dir(t.dir)
	list, err := os.ReadDir(above)
	if err != nil {
		return folderFault(above, err)
	}
	prefix, suffix := t.staged()
	for _, e := range list {
		if n := e.Name(); e.IsDir() && strings.HasPrefix(n, prefix) && strings.HasSuffix(n, suffix) {
			if err := os.RemoveAll(filepath.Join(above, n)); err != nil {
				return folderFault(above, err)
			}
		}
	}
	return nil
}

// begun makes the folder in which the objects lie, when there is none.
func (t *FolderTarget) begun() error {
	if err := t.Begin(); err != nil || t.stage != "" {
		return err
	}
	prefix, suffix := t.staged()
	stage := filepath.Join(filepath.Dir(t.dir), prefix+rand.Text()+suffix)
	if err := os.Mkdir(stage, 0o777); err != nil {
		return folderFault(filepath.Dir(t.dir), err)
	}
	t.stage = stage
	return nil
}

// Create begins an object. The manifest is the last one: the artifact is complete when it is committed.
func (t *FolderTarget) Create(_ context.Context, name string) (Output, error) {
	if err := t.begun(); err != nil {
		return nil, err
	}
	f, err := source.CreateAtomic(filepath.Join(t.stage, name))
	if err != nil {
		return nil, err
	}
	return &folderOutput{f, t, name}, nil
}

type folderOutput struct {
	*source.AtomicFile
	t    *FolderTarget
	name string
}

func (o *folderOutput) Commit() error {
	if err := o.AtomicFile.Commit(); err != nil {
		return err
	}
	o.t.files = append(o.t.files, filepath.Join(o.t.dir, o.name))
	if o.name != ManifestName {
		return nil
	}
	return o.t.publish()
}

// publish gives the folder its name.
func (t *FolderTarget) publish() error {
	if err := t.free(); err != nil {
		return err
	}
	os.Remove(t.dir) // an empty one, which not every system replaces; none goes that is not empty
	if err := os.Rename(t.stage, t.dir); err != nil {
		if taken := t.free(); taken != nil { // it was not when we looked
			return taken
		}
		return folderFault(t.dir, err)
	}
	t.done, t.stage = true, ""
	syncFolder(filepath.Dir(t.dir))
	t.release()
	return nil
}

// CreateBeside begins a file beside the folder: its path is that of the folder with suffix behind it. A file that is there
// is not replaced; one with other bytes is [fault.Conflict]. It is committed before the manifest, and Discard takes it back.
func (t *FolderTarget) CreateBeside(suffix string) (Output, error) {
	if err := t.begun(); err != nil {
		return nil, err
	}
	b := &besideOutput{t: t, path: t.dir + suffix}
	// In the folder that the next run removes when this one is killed.
	if _, err := os.Lstat(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, folderFault(b.path, err)
	}
	f, err := os.OpenFile(filepath.Join(t.stage, "beside"+suffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, folderFault(b.path, err)
	}
	b.f = f
	return b, nil
}

type besideOutput struct {
	t    *FolderTarget
	f    *os.File // nil after Commit or Abort
	path string
	err  error
}

func (b *besideOutput) Write(p []byte) (int, error) {
	n, err := b.f.Write(p)
	if err != nil {
		b.err = cmp.Or(b.err, folderFault(b.path, err))
		return n, b.err
	}
	return n, nil
}

func (b *besideOutput) Abort() {
	if b.f != nil {
		b.f.Close()
		os.Remove(b.f.Name())
		b.f = nil
	}
}

func (b *besideOutput) Commit() error {
	defer b.Abort()
	if b.err != nil {
		return b.err
	}
	if err := b.f.Sync(); err != nil {
		return folderFault(b.path, err)
	}
	err := os.Link(b.f.Name(), b.path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = copyNew(b.f, b.path) // a file system without links
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		if sameBytes(b.f, b.path) { // of a run that was killed, or made before
			return nil
		}
		return fault.New(fault.Conflict, "series", "is there already, and holds something else").In(b.path)
	case err != nil:
		return folderFault(b.path, err)
	}
	b.t.files = append(b.t.files, b.path)
	return nil
}

// copyNew copies a file to a name that nothing has.
func copyNew(from *os.File, path string) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = from.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

func sameBytes(f *os.File, path string) bool {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	there, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	mine := make([]byte, len(there)+1)
	n, err := f.ReadAt(mine, 0)
	return err == io.EOF && bytes.Equal(mine[:n], there)
}

// Discard removes what this target has made and lets go of the lock: files, and folders that are empty then.
func (t *FolderTarget) Discard() error {
	var errs []error
	if t.stage != "" {
		errs = append(errs, os.RemoveAll(t.stage))
	}
	for _, path := range slices.Backward(t.files) { // the manifest, which is the last one, first
		if t.done || filepath.Dir(path) != t.dir {
			errs = append(errs, os.Remove(path))
		}
	}
	if t.done {
		os.Remove(t.dir)
	}
	t.release()
	t.removeFolders()
	*t = FolderTarget{dir: t.dir}
	return errors.Join(errs...)
}

// folderFault is an error of the system, whose path is said already.
func folderFault(name string, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fault.New(nil, "series", "").In(name).Because(err)
}

// syncFolder makes a new name last through a power cut, where the system can.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
