//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package msglc

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of a file, unless somebody else has it. Some file systems have no locks.
func tryLock(f *os.File) (locked, supported bool) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, true
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, true
		default:
			return false, false
		}
	}
}
