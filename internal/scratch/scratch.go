// Package scratch makes temporary files that nobody else sees and that are gone when they are closed, or when the
// process ends, where the system lets go of the name of a file that is open.
package scratch

import "os"

// File is a temporary file.
type File struct {
	*os.File
	name string // to be removed at Close; "" where it is gone already
}

// Create makes a temporary file in dir, the system's folder for them when dir is "".
func Create(dir string) (*File, error) {
	f, err := os.CreateTemp(dir, "spile-*")
	if err != nil {
		return nil, err
	}
	if os.Remove(f.Name()) == nil {
		return &File{File: f}, nil
	}
	return &File{File: f, name: f.Name()}, nil
}

// Close frees the file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.name != "" {
		os.Remove(f.name)
	}
	return err
}
