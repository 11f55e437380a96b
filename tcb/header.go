package tcb

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/spilehq/spile/internal/wire"
)

// Version is the version of the format that is read and written.
const Version = 107

// The header (docs/format/tcb.md, "Header").
const (
	HeaderSize = 42

	versionAt  = 4
	flagsAt    = 8
	cipherAt   = 9
	nonceAt    = 10
	macAt      = 22
	keyCheckAt = 38

	magic         = "TCB\x00"
	flagEncrypted = 1
	chaCha20      = 1 // the one cipher
)

// Descriptor says of a column what it holds and where its block lies.
type Descriptor struct {
	Tag      int32
	Type     Type
	Encoding Encoding
	Offset   int64 // of the block in the file
	Size     int64 // of the block in bytes
}

// form is the layout of descriptors.
type form uint8

const (
	plainForm form = iota
	// countForm has a count, which means nothing, in front of the size: the form that an old description of version 107
	// shows. It is read, never written, and only where each column has a value: between empty blocks a zero behind the
	// last one, or a wrong size, would pass as counts.
	countForm
)

// The least and the most that a descriptor takes.
func (f form) sizes() (least, most int64) {
	if f == countForm {
		return 8, 16
	}
	return 7, 11
}

// directory is what stands in front of the blocks.
type directory struct {
	form    form
	rows    int
	columns []Descriptor
}

// checkHeader checks what the header of an opened file says, in the order of the checks.
func checkHeader(head []byte) error {
	if string(head[:4]) != magic {
		return failed("O2", "begins with % x, a TCB file with % x", head[:4], magic).At(0)
	}
	if v := binary.LittleEndian.Uint32(head[versionAt:]); v != Version {
		return failed("H1", "is of version %d, %d is read", v, Version).At(versionAt)
	}
	switch flags := head[flagsAt]; {
	case flags&flagEncrypted != 0:
		return failed("H2", "is encrypted and was not opened").At(flagsAt)
	case flags != 0:
		return failed("H3", "flags %#02x, a feature that is not supported", flags).At(flagsAt)
	}
	return nil
}

// counts reads the two counts behind the header. p is the file from its start on, or as much of it as was read.
func counts(p []byte, size int64) (rows, columns int64, pos int, err error) {
	pos = HeaderSize
	for _, c := range []struct {
		what string
		to   *int64
	}{{"row count", &rows}, {"column count", &columns}} {
		v, n := wire.Varint32(p[pos:])
		switch {
		case n == 0:
			return 0, 0, 0, failed("D1", "ends inside the %s", c.what).At(size)
		case n < 0:
			return 0, 0, 0, failed("sec2", "a %s wider than 32 bits", c.what).At(int64(pos))
		case v < 0:
			return 0, 0, 0, failed("H4", "the %s is %d", c.what, v).At(int64(pos))
		}
		*c.to = int64(v)
		pos += n
	}
	return rows, columns, pos, nil
}

// more is how much of a file of size bytes is read next for its descriptors, when those in its start p are right: what
// all of them can take, in either form, but no more than twice as much as there is, so that a number of columns costs
// nothing that is not there. p has HeaderSize bytes and ten more at least, or is all of the file.
func more(p []byte, size int64) (int64, error) {
	_, columns, pos, err := counts(p, size)
	if err != nil {
		return 0, err
	}
	_, most := countForm.sizes()
	return min(size, int64(pos)+columns*most, max(maxFirstRead, 2*int64(len(p)))), nil
}

// errMore says that the descriptors go on behind what was read of the file.
var errMore = errors.New("the descriptors go on")

// parseDirectory reads the descriptors of a file of size bytes from its start p and makes the structural checks. The
// plain form comes first; the other is taken only when it passes every check that the plain form does not. The error is
// errMore when p has to be longer to tell.
func parseDirectory(p []byte, size int64) (*directory, error) {
	d, err := plainForm.parse(p, size)
	if err == nil || err == errMore {
		return d, err
	}
	if d, otherErr := countForm.parse(p, size); otherErr == nil || otherErr == errMore {
		return d, otherErr
	}
	return nil, err
}

func (f form) parse(p []byte, size int64) (*directory, error) {
	rows, columns, pos, err := counts(p, size)
	if err != nil {
		return nil, err
	}
	least, _ := f.sizes()
	if left := size - int64(pos); columns > left/least {
		return nil, failed("H5", "%d columns, whose descriptors take %d bytes at least, and %d bytes are left", columns, columns*least, left).At(HeaderSize)
	}
	known := min(columns, int64(len(p)-pos)/least) // what is behind p may not be there
	d := &directory{form: f, rows: int(rows), columns: make([]Descriptor, 0, known)}
	seen := make(map[int32]int, known)
	ends := func(i int) error {
		if int64(len(p)) < size {
			return errMore
		}
		return failed("D1", "ends inside descriptor %d", i+1).At(size)
	}
	var sum int64
	for i := range int(columns) {
		at := int64(pos)
		tag, n := wire.Varint32(p[pos:])
		switch {
		case n == 0:
			return nil, ends(i)
		case n < 0:
			return nil, failed("sec2", "descriptor %d has a tag wider than 32 bits", i+1).At(at)
		case tag < 1:
			return nil, failed("H6", "descriptor %d has the tag %d, tags start at 1", i+1, tag).At(at)
		}
		if first, ok := seen[tag]; ok {
			return nil, failed("H6", "descriptors %d and %d have the tag %d", first, i+1, tag).At(at)
		}
		seen[tag] = i + 1
		pos += n
		if len(p)-pos < 2 {
			return nil, ends(i)
		}
		c := Descriptor{Tag: tag, Type: typeOf(p[pos]), Encoding: Encoding(p[pos+1])}
		pos += 2
		if f == countForm {
			switch _, n = wire.Varint32(p[pos:]); {
			case n == 0:
				return nil, ends(i)
			case n < 0:
				return nil, failed("sec2", "descriptor %d has a count wider than 32 bits", i+1).At(int64(pos))
			}
			pos += n
		}
		if len(p)-pos < 4 {
			return nil, ends(i)
		}
		c.Size = int64(binary.LittleEndian.Uint32(p[pos:]))
		pos += 4
		if c.Size > math.MaxInt32 {
			return nil, failed("H7", "column %d has %d bytes, at most %d", tag, c.Size, math.MaxInt32).At(int64(pos - 4))
		}
		if left := size - int64(pos); c.Size > left {
			return nil, failed("H7", "column %d has %d bytes, %d are left", tag, c.Size, left).At(int64(pos - 4))
		}
		if f == countForm && (rows == 0 || c.Size == 0) {
			return nil, failed("H7", "column %d has a count and no values", tag).At(at)
		}
		if c.Encoding == Raw && rows > c.Size {
			return nil, failed("H8", "column %d stores %d rows RAW in %d bytes, a row takes one at least", tag, rows, c.Size).At(at)
		}
		sum += c.Size
		d.columns = append(d.columns, c)
	}
	if left := size - int64(pos); sum != left {
		return nil, failed("H7", "the blocks of all columns have %d bytes, behind the descriptors are %d", sum, left).At(int64(pos))
	}
	off := int64(pos)
	for i := range d.columns {
		d.columns[i].Offset = off
		off += d.columns[i].Size
	}
	return d, nil
}

// appendHeader appends the header of a plain file.
func appendHeader(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, Version)
	dst = append(dst, make([]byte, keyCheckAt-flagsAt)...)
	return append(dst, magic...)
}

// appendDescriptor appends a descriptor; Offset is not stored.
func appendDescriptor(dst []byte, d Descriptor) []byte {
	dst = wire.AppendVarint32(dst, d.Tag)
	dst = append(dst, d.Type.wire(), byte(d.Encoding))
	return binary.LittleEndian.AppendUint32(dst, uint32(d.Size))
}
