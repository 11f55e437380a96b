//go:build !unix

package source

import "io/fs"

// OpenMmap is [OpenFile] on this system.
func OpenMmap(path string) (Object, error) { return OpenFile(path) }

func inode(fs.FileInfo) uint64 { return 0 }
