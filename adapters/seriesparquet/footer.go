package seriesparquet

import (
	"encoding/binary"
	"io"

	"github.com/spilehq/spile/fault"
)

const (
	// maxFooter bounds the metadata of a file: those of 10,000 row groups of 100 columns have about 100 MB.
	maxFooter = 256 << 20
	// maxStructures bounds the structures in lists of metadata, of which the largest takes about 600 bytes in memory
	// and one byte in the file.
	maxStructures = 4 << 20
	// maxThriftDepth is more levels than the metadata of Parquet have.
	maxThriftDepth = 16
)

// The types of the compact protocol of Thrift.
const (
	thriftStop = iota
	thriftTrue
	thriftFalse
	thriftI8
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
	thriftUUID
)

// thriftBounds passes over a structure, and checks that its lengths lie within the bytes: the library allocates what a list
// claims to hold before it looks for it. It returns the number of bytes, and io.ErrUnexpectedEOF where there are too few.
func thriftBounds(b []byte) (int, error) {
	t := thriftScan{b: b}
	err := t.structure(0)
	return t.at, err
}

type thriftScan struct {
	b          []byte
	at         int
	structures int
}

func (t *thriftScan) byte() (byte, error) {
	if t.at >= len(t.b) {
		return 0, io.ErrUnexpectedEOF
	}
	t.at++
	return t.b[t.at-1], nil
}

func (t *thriftScan) uvarint() (uint64, error) {
	v, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	case n < 0:
		return 0, fault.New(fault.Corrupt, "seriesparquet", "metadata: a number of more than 64 bits")
	}
	t.at += n
	return v, nil
}

func (t *thriftScan) pass(n uint64) error {
	if n > uint64(len(t.b)-t.at) {
		return io.ErrUnexpectedEOF
	}
	t.at += int(n)
	return nil
}

func (t *thriftScan) structure(depth int) error {
	if depth > maxThriftDepth {
		return fault.New(fault.Limit, "seriesparquet", "metadata: more than %d levels", maxThriftDepth)
	}
	if t.structures++; t.structures > maxStructures {
		return fault.New(fault.Limit, "seriesparquet", "metadata: more than %d structures", maxStructures)
	}
	for {
		head, err := t.byte()
		if err != nil || head == thriftStop {
			return err
		}
		if head>>4 == 0 { // the number of the field follows
			if _, err := t.uvarint(); err != nil {
				return err
			}
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse { // whose value is their type
			if err := t.value(kind, depth); err != nil {
				return err
			}
		}
	}
}

func (t *thriftScan) value(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftI8:
		return t.pass(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := t.uvarint()
		return err
	case thriftDouble:
		return t.pass(8)
	case thriftUUID:
		return t.pass(16)
	case thriftBinary:
		n, err := t.uvarint()
		if err != nil {
			return err
		}
		return t.pass(n)
	case thriftStruct:
		return t.structure(depth + 1)
	case thriftList, thriftSet:
		head, err := t.byte()
		if err != nil {
			return err
		}
		n := uint64(head >> 4)
		if n == 15 {
			if n, err = t.uvarint(); err != nil {
				return err
			}
		}
		return t.values(n, depth, head&15)
	case thriftMap:
		n, err := t.uvarint()
		if err != nil || n == 0 {
			return err
		}
		kinds, err := t.byte()
		if err != nil {
			return err
		}
		return t.values(n, depth, kinds>>4, kinds&15)
	}
	return fault.New(fault.Corrupt, "seriesparquet", "metadata: a value of the unknown type %d", kind)
}

// values passes over n times some values. Each has a byte at least.
func (t *thriftScan) values(n uint64, depth int, kinds ...byte) error {
	if n > uint64(len(t.b)-t.at) {
		return io.ErrUnexpectedEOF
	}
	if depth > maxThriftDepth {
		return fault.New(fault.Limit, "seriesparquet", "metadata: more than %d levels", maxThriftDepth)
	}
	for range n {
		for _, kind := range kinds {
			if err := t.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
