package diskcache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// DefaultSize bounds a cache that is told nothing else.
const DefaultSize = 1 << 30

const (
	tagName     = "CACHEDIR.TAG"
	currentName = "current"
	missingName = "missing"
	tempSuffix  = ".tmp"

	// tag is the signature by which programs that make backups know a cache; see bford.info/cachedir.
	tag = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of spile. It can be removed at any time.\n"
)

// MissingAge is how long a cache believes that there is no object under a URL.
const MissingAge = time.Hour

// Cache is a folder of blocks.
type Cache struct {
	dir     string
	size    int64
	written atomic.Int64 // bytes since the last look at what the folder takes
}

// Open opens the cache in the folder dir, and makes it where it does not exist. A folder that holds something and is no cache
// is [fault.Invalid]: a cache removes files. Blocks take about size bytes at most; less than 1 means [DefaultSize].
func Open(dir string, size int64) (*Cache, error) {
	if size < 1 {
		size = DefaultSize
	}
	c := &Cache{dir: dir, size: size}
	if err := os.MkdirAll(dir, 0o700); err != nil { // what was read may be for nobody else
		return nil, c.failed(err)
	}
	path := filepath.Join(dir, tagName)
	switch _, err := os.Stat(path); {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, c.failed(err)
	default:
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, c.failed(err)
		}
		for _, e := range entries { // another process may be making the same cache
			if name := e.Name(); name != tagName && filepath.Ext(name) != tempSuffix {
				return nil, fault.New(fault.Invalid, "diskcache", "the folder holds %s, and is no cache: it has no %s", name, tagName).In(dir)
			}
		}
		if err := writeFile(path, []byte(tag)); err != nil {
			return nil, c.failed(err)
		}
	}
	c.evict()
	return c, nil
}

func (c *Cache) failed(err error) error {
	return fault.New(nil, "diskcache", "").In(c.dir).Because(err)
}

// Known is what a cache knows of an object without asking its source.
type Known struct {
	Version string `json:"version"`
	Size    int64  `json:"size"`
}

// Known returns what an object was when it was last opened through the cache. The key is the whole URL.
func (c *Cache) Known(key string) (Known, bool) {
	text, err := readFile(filepath.Join(c.dir, hash(key), currentName))
	if err != nil {
		return Known{}, false
	}
	var k Known
	if json.Unmarshal(text, &k) != nil || k.Version == "" || k.Size < 0 {
		return Known{}, false
	}
	return k, true
}

// Object returns obj with its blocks kept in the cache. The key is the whole URL, which no two objects share. An object without
// a version is returned as it is, since nothing tells whether a block of it still holds. Closing the object closes obj. Reads that
// need no request count as cache hits in the meter, which can be nil.
func (c *Cache) Object(key string, obj source.Object, m *source.Meter) source.Object {
	if obj.Version() == "" {
		return obj
	}
	dir := filepath.Join(c.dir, hash(key))
	known := Known{obj.Version(), obj.Size()}
	if !utf8.ValidString(known.Version) { // JSON would keep another one
		known.Version = strconv.Quote(known.Version)
	}
	if before, ok := c.Known(key); !ok || before != known {
		text, err := json.Marshal(known)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			err = writeFile(filepath.Join(dir, currentName), append(text, '\n'))
		}
		if err != nil { // a cache that cannot be written to is none
			return obj
		}
	}
	// The size is in the name too: a version that is the time of a change stays the same for a second.
	return newObject(c, filepath.Join(dir, hash(strconv.FormatInt(known.Size, 10)+" "+known.Version)), obj, m)
}

// SetMissing notes that there is no object under a URL. It is looked for beside another one, whose version is given: with another
// version there may be one.
func (c *Cache) SetMissing(key, version string) {
	dir := filepath.Join(c.dir, hash(key))
	if os.MkdirAll(dir, 0o700) == nil {
		writeFile(filepath.Join(dir, missingName), []byte(hash(version)+"\n")) // it is asked for again when that fails
	}
}

// Missing reports whether SetMissing has noted the same, no longer than MissingAge ago.
func (c *Cache) Missing(key, version string) bool {
	path := filepath.Join(c.dir, hash(key), missingName)
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > MissingAge {
		return false
	}
	text, err := readFile(path)
	return err == nil && string(text) == hash(version)+"\n"
}

// Made notes that an object was made under a URL: it is missing no more.
func (c *Cache) Made(key string) { os.Remove(filepath.Join(c.dir, hash(key), missingName)) }

// Offline returns an object of what the cache knows, which asks nobody: a block that is not there is [fault.NotFound]. The name
// is that of the object in messages.
func (c *Cache) Offline(key, name string, m *source.Meter) (source.Object, error) {
	known, ok := c.Known(key)
	if !ok {
		return nil, fault.New(fault.NotFound, "diskcache", "is not in the cache %s", c.dir).In(name)
	}
	return c.Object(key, &absent{name, known, c.dir}, m), nil
}

// hash names a key or a version in the folder.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
