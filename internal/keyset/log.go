package keyset

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/scratch"
)

// keyLog is keys in the order in which they came. What is longer than logBuffer goes to a temporary file.
type keyLog struct {
	buf  []byte // the bytes from base on
	base int64
	file *scratch.File // nil until it is needed
}

// logBuffer keeps the keys of maps of some thousands of keys, which do not last, out of the file.
const logBuffer = 1 << 20

func (l *keyLog) size() int64 { return l.base + int64(len(l.buf)) }

func (l *keyLog) add(h uint64, id int64, key []byte, offset int64) error {
	l.buf = appendRecord(l.buf, h, id, key, offset)
	if len(l.buf) < logBuffer {
		return nil
	}
	if l.file == nil {
		f, err := scratch.Create("")
		if err != nil {
			return failed(err)
		}
		l.file = f
	}
	if _, err := l.file.WriteAt(l.buf, l.base); err != nil {
		return failed(err)
	}
	l.base += int64(len(l.buf))
	l.buf = l.buf[:0]
	return nil
}

// cut drops what stands from a place on.
func (l *keyLog) cut(at int64) {
	l.buf = l.buf[:max(at-l.base, 0)]
	l.base = min(l.base, at)
}

// each calls do with the keys from a place on. The key is valid until it returns.
func (l *keyLog) each(from int64, do func(h uint64, id int64, key []byte, offset int64) error) error {
	var parts []io.Reader
	if from < l.base {
		parts = append(parts, io.NewSectionReader(l.file, from, l.base-from))
	}
	parts = append(parts, bytes.NewReader(l.buf[max(from-l.base, 0):]))
	r := bufio.NewReaderSize(io.MultiReader(parts...), 64<<10)
	var head [8]byte
	var key []byte
	for left := l.size() - from; left > 0; {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return failed(err)
		}
		id, err := binary.ReadVarint(r)
		if err != nil {
			return failed(err)
		}
		offset, err := binary.ReadVarint(r)
		if err != nil {
			return failed(err)
		}
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return failed(err)
		}
		if n > uint64(left) {
			return failed(errShort)
		}
		if uint64(cap(key)) < n {
			key = make([]byte, n, 2*n)
		}
		key = key[:n]
		if _, err := io.ReadFull(r, key); err != nil {
			return failed(err)
		}
		h := binary.LittleEndian.Uint64(head[:])
		left -= int64(8 + varintSize(id) + varintSize(offset) + uvarintSize(n) + int(n))
		if err := do(h, id, key, offset); err != nil {
			return err
		}
	}
	return nil
}

func varintSize(v int64) int { return uvarintSize(uint64(v)<<1 ^ uint64(v>>63)) }

func uvarintSize(v uint64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], v)
}

var errShort = errors.New("it is not what was written")

func (l *keyLog) close() {
	l.buf, l.base = l.buf[:0], 0
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

func failed(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errShort
	}
	return fault.New(nil, "value", "temporary file of keys").Because(err)
}
