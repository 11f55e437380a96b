// Package filelock keeps what a file stands for to one holder at a time, among all processes of a machine and all goroutines
// of a process. The system lets go of a lock when its process ends, however that ends.
package filelock

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spilehq/spile/fault"
)

// Lock is a lock that is held, by way of a file that is there as long.
type Lock struct {
	f *os.File
	// Alone says that nobody else has it, which is not known where the system or the file system has no locks: there
	// everybody gets one.
	Alone bool
}

// errHeld says that somebody else has the lock.
var errHeld = errors.New("locked")

// Take takes the lock of a file, which it makes in a folder that is there. It does not wait: a lock that somebody holds is
// [fault.Conflict], and the error names the file. Release ends it.
func Take(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, failed(path, err)
		}
		alone, err := lock(f)
		switch {
		case errors.Is(err, errHeld):
			f.Close()
			return nil, fault.New(fault.Conflict, "", "is held by another run").In(path)
		case err != nil:
			f.Close()
			return nil, failed(path, err)
		}
		// Who held it may have removed the file between the two steps: then this is the lock of a file that is not there.
		mine, err := f.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(path); err == nil && os.SameFile(mine, there) {
				return &Lock{f, alone}, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, failed(path, err)
		}
	}
}

func failed(path string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the name is said already
	}
	return fault.New(nil, "", "").In(path).Because(err)
}

// Release removes the file and lets go of the lock.
func (l *Lock) Release() {
	removeLocked(l.f)
}
