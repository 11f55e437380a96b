package series

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

// staged is what the names begin and end with under which an artifact of this generation, and what lies beside it, are written.
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
		if n := e.Name(); strings.HasPrefix(n, prefix) && strings.HasSuffix(n, suffix) {
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
		return nil, t.named(err, name)
	}
	return &folderOutput{f, t, name}, nil
}

// named gives an error the name that an object is to have, in place of that which it has so long.
func (t *FolderTarget) named(err error, name string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	c := *f
	return c.In(filepath.Join(t.dir, name))
}

type folderOutput struct {
	*source.AtomicFile
	t    *FolderTarget
	name string
}

func (o *folderOutput) Write(p []byte) (int, error) {
	n, err := o.AtomicFile.Write(p)
	return n, o.t.named(err, o.name)
}

func (o *folderOutput) Commit() error {
	if err := o.AtomicFile.Commit(); err != nil {
		return o.t.named(err, o.name)
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

// CreateBeside begins a file beside the folder: its path is that of the folder with suffix behind it. It is kept in memory
// until it is committed, which is done before the manifest; Discard takes it back. A file that is there already is not replaced:
// with other bytes it is [fault.Conflict].
func (t *FolderTarget) CreateBeside(_ context.Context, suffix string) (Output, error) {
	if err := t.Begin(); err != nil {
		return nil, err
	}
	return &besideOutput{t: t, path: t.dir + suffix}, nil
}

type besideOutput struct {
	bytes.Buffer
	t    *FolderTarget
	path string
}

func (b *besideOutput) Abort() {}

func (b *besideOutput) Commit() error {
	f, err := source.CreateNew(b.path)
	if err == nil {
		defer f.Abort()
		if _, err = f.Write(b.Bytes()); err == nil {
			err = f.Commit()
		}
	}
	switch {
	case err == nil:
		b.t.files = append(b.t.files, b.path)
	case errors.Is(err, fault.Conflict) && b.there(): // of a run that was killed, or made before
		return nil
	}
	return err
}

// there reports whether the file has these bytes already.
func (b *besideOutput) there() bool {
	if info, err := os.Lstat(b.path); err != nil || !info.Mode().IsRegular() || info.Size() != int64(b.Len()) {
		return false
	}
	text, err := os.ReadFile(b.path)
	return err == nil && bytes.Equal(text, b.Bytes())
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
