//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func lock(f *os.File) (alone bool, err error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
			return false, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, errHeld
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// removeLocked removes the file before the lock ends: nobody else is to find a file whose lock another one takes.
func removeLocked(f *os.File) {
	os.Remove(f.Name())
	f.Close()
}
