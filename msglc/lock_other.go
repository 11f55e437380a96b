//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package msglc

import "os"

// tryLock does nothing: there is no lock that is both kept while the file is replaced and gone with the process. (A
// file that is open cannot be replaced on Windows.) That another append has replaced the file is seen before this one
// does.
func tryLock(*os.File) (locked, supported bool) { return false, false }
