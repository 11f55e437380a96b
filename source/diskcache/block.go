package diskcache

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// BlockSize is the number of bytes that are fetched and kept together. A request that fetches 64 KiB takes hardly longer than
// one that fetches a byte: at 10 to 50 ms before the first byte and 100 MB/s behind it, these take 0.6 ms. Blocks much smaller
// would make many files, larger ones would fetch what nobody asks for.
const BlockSize = 64 << 10

// checksumSize is the length of the checksum behind the bytes of a block.
const checksumSize = 8

// kind says what a block was read as. It is the end of the name of its file.
type kind string

const (
	directory kind = ".directory"
	payload   kind = ".payload"
)

// usedAge is how old the time of a file gets before a use of it is noted: noting every one would be a write for each read.
const usedAge = time.Minute

func blockPath(dir string, number int64, k kind) string {
	return filepath.Join(dir, strconv.FormatInt(number, 10)+string(k))
}

// checksum is that of a block: its number is in it, so that a file under a wrong name is none of the block's.
func checksum(number int64, data []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(number))
	d.Write(data)
	return d.Sum64()
}

// loadBlock fills data with a block, and returns its kind; "" when it is not there, or not whole. Payload is looked for first: it
// may become a directory meanwhile, and not the other way round.
func loadBlock(dir string, number int64, data []byte) kind {
	buf := make([]byte, len(data)+checksumSize+1) // a byte more shows a file that is longer
	for _, k := range []kind{payload, directory} {
		path := blockPath(dir, number, k)
		f, err := openFile(path)
		if err != nil {
			continue
		}
		n, err := io.ReadFull(f, buf)
		info, statErr := f.Stat()
		f.Close()
		if err != io.ErrUnexpectedEOF || n != len(data)+checksumSize || // it ends where the checksum does
			binary.LittleEndian.Uint64(buf[len(data):]) != checksum(number, buf[:len(data)]) {
			continue // storeBlock replaces it
		}
		copy(data, buf)
		if now := time.Now(); statErr == nil && now.Sub(info.ModTime()) > usedAge {
			os.Chtimes(path, now, now) // one that fails makes the block look older than it is
		}
		return k
	}
	return ""
}

// openFile opens a file of the cache. What is not a regular file somebody else has put there: it is none, is not waited for, as a
// pipe would be, and not followed.
func openFile(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// textMost bounds the files that hold text: a version is a header, and these have up to 10 MiB.
const textMost = 64 << 20

func readFile(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, textMost))
}

// storeBlock writes a block, by a rename. A cache that cannot be written to is none: the caller has the bytes anyway.
func storeBlock(dir string, number int64, k kind, data []byte) error {
	buf := binary.LittleEndian.AppendUint64(append(make([]byte, 0, len(data)+checksumSize), data...), checksum(number, data))
	err := writeFile(blockPath(dir, number, k), buf)
	if errors.Is(err, fs.ErrNotExist) { // the folder is new, or its last block was evicted
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = writeFile(blockPath(dir, number, k), buf)
		}
	}
	if err != nil {
		return err
	}
	if k == directory { // what was payload before is kept as a directory now
		if err := os.Remove(blockPath(dir, number, payload)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// writeFile makes a file appear whole under its name. It is not brought to the disk at once: what a crash leaves of it has a
// wrong checksum, and is fetched again.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*"+tempSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
