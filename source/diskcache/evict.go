package diskcache

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

var (
	hashName  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	blockName = regexp.MustCompile(`^[0-9]+\.(directory|payload)$`)
	tempName  = regexp.MustCompile(`^new-[0-9]+\.tmp$`)
)

// staleAge is how old a temporary file is that the process which made it has left behind.
const staleAge = time.Hour

// stored notes bytes that were added, and looks at what the folder takes after every sixteenth of the bound.
func (c *Cache) stored(n int64) {
	if c.written.Add(n) > c.size/16 {
		c.written.Store(0)
		c.evict()
	}
}

// file is a block file.
type file struct {
	path      string
	size      int64
	used      time.Time
	directory bool
}

// evict removes the blocks that were not used for the longest time until the folder is at fifteen sixteenths of its bound.
// Payload goes before directories, until directories alone would take more than half. Files that other processes remove at the same
// time are none.
func (c *Cache) evict() {
	var files []file
	var total, directories int64
	keys, _ := os.ReadDir(c.dir)
	for _, key := range keys {
		removeStale(c.dir, key)
		if !key.IsDir() || !hashName.MatchString(key.Name()) {
			continue
		}
		dir := filepath.Join(c.dir, key.Name())
		versions, _ := os.ReadDir(dir)
		held := false
		for _, version := range versions {
			removeStale(dir, version)
			if !version.IsDir() || !hashName.MatchString(version.Name()) {
				continue
			}
			held = true
			blocks, _ := os.ReadDir(filepath.Join(dir, version.Name()))
			for _, block := range blocks {
				info, err := block.Info()
				if err != nil || !info.Mode().IsRegular() {
					continue
				}
				path := filepath.Join(dir, version.Name(), block.Name())
				switch {
				case blockName.MatchString(block.Name()):
					f := file{path, info.Size(), info.ModTime(), filepath.Ext(path) == string(directory)}
					files = append(files, f)
					total += f.size
					if f.directory {
						directories += f.size
					}
				default:
					removeStale(filepath.Dir(path), block)
				}
			}
		}
		missing := filepath.Join(dir, missingName)
		if info, err := os.Stat(missing); err == nil && time.Since(info.ModTime()) > MissingAge {
			os.Remove(missing)
			os.Remove(dir) // one that holds something stays
		}
		current := filepath.Join(dir, currentName)
		if info, err := os.Stat(current); !held && err == nil && time.Since(info.ModTime()) > staleAge {
			os.Remove(current)
			os.Remove(dir)
		}
	}
	if total <= c.size {
		return
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	goal := c.size - c.size/16
	remove := func(f file) {
		if err := os.Remove(f.path); err == nil || errors.Is(err, fs.ErrNotExist) {
			total -= f.size
			if f.directory {
				directories -= f.size
			}
			// The last block of a version takes its folder with it; one that holds something stays.
			os.Remove(filepath.Dir(f.path))
		}
	}
	for _, f := range files {
		if total > goal && f.directory && directories > c.size/2 {
			remove(f)
		}
	}
	for _, f := range files {
		if total > goal && !f.directory {
			remove(f)
		}
	}
}

// removeStale removes a temporary file that the process which made it has left behind.
func removeStale(dir string, e fs.DirEntry) {
	if !tempName.MatchString(e.Name()) {
		return
	}
	if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAge {
		os.Remove(filepath.Join(dir, e.Name()))
	}
}
