package msglc

import (
	"bytes"
	"context"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// A value without a table of its own, a leaf or a value inside one, is walked by scanning it. Up to maxInMemory it is
// read whole, and remembered when the reader has a cache; a longer one, mostly the root of a raw file, streams by.
const maxInMemory = 4 << 20

// scan returns a scanner of the value, which lies at payload position n.e.start.
func (n Node) scan(ctx context.Context) (*value.Scanner, error) {
	size := n.e.end - n.e.start
	if n.data == nil && size > maxInMemory {
		r := source.NewReader(ctx, n.r.s.obj, n.r.payload+n.e.start, size, copyBuffer)
		return value.NewStream(n.r.h.codec, r, size, n.r.s.limits), nil
	}
	p, err := n.bytes(ctx)
	if err != nil {
		return nil, err
	}
	return value.NewScanner(n.r.h.codec, p, n.r.s.limits), nil
}

// bytes returns the bytes of a value with a range. They must not be changed.
func (n Node) bytes(ctx context.Context) ([]byte, error) {
	if n.data != nil {
		return n.data, nil
	}
	p, err := n.r.read(ctx, n.e.start, n.e.end)
	return p, n.r.locate(err)
}

// open reads the head of the value's container, behind its tags.
func (n Node) open(ctx context.Context, kind value.Kind) (*value.Scanner, error) {
	s, err := n.scan(ctx)
	if err != nil {
		return nil, err
	}
	for s.Kind = value.Tag; s.Kind == value.Tag; {
		if err := s.Next(); err != nil {
			return nil, n.scanFault(err)
		}
	}
	if s.Kind != kind {
		return nil, n.invalid("%s where a %s is due", s.Kind, kind)
	}
	return s, nil
}

func (n Node) scanFault(err error) error {
	if err == io.EOF {
		err = fault.New(fault.Corrupt, "msglc", "leaf without a value").At(0)
	}
	return n.fault(err)
}

// at makes the node of the value between two offsets of a scan of n.
func (n Node) at(from, to int64) Node {
	if n.data != nil {
		return n.inside(n.e.start+from, n.data[from:to])
	}
	return Node{r: n.r, e: entry{form: Inside, hasRange: true, whole: true, at: -1, start: n.e.start + from, end: n.e.start + to}}
}

// loaded returns n with its bytes in memory, when it is short enough for that.
func (n Node) loaded(ctx context.Context) (Node, error) {
	if n.data == nil && n.e.end-n.e.start <= maxInMemory {
		p, err := n.bytes(ctx)
		if err != nil {
			return n, err
		}
		n.data = p
	}
	return n, nil
}

// single checks that a leaf holds one value and nothing behind it. Values inside a leaf were delimited by a scan.
func (n Node) single() error {
	if n.data == nil || n.e.form != Leaf {
		return nil
	}
	used, err := value.Skip(n.r.h.codec, n.data, 1, n.r.s.limits)
	if err == io.ErrUnexpectedEOF {
		err = fault.New(fault.Corrupt, "msglc", "leaf of %d bytes ends within its value", len(n.data)).At(0)
	} else if err == nil && used != len(n.data) {
		err = n.surplus(int64(used))
	}
	return n.fault(err)
}

func (n Node) surplus(used int64) error {
	return fault.New(fault.Corrupt, "msglc", "leaf of %d bytes holds a value of %d", n.e.end-n.e.start, used).At(used)
}

// indexInside finds item i of a list by scanning; a negative i was made positive before.
func (n Node) indexInside(ctx context.Context, i int64, text string) (Node, error) {
	n, err := n.loaded(ctx)
	if err != nil {
		return n, err
	}
	if err := n.single(); err != nil {
		return n, err
	}
	s, err := n.open(ctx, value.Array)
	if err != nil {
		return n, err
	}
	if s.Len >= 0 && i >= int64(s.Len) {
		return n, n.noIndex(i, text, int64(s.Len))
	}
	for k := int64(0); ; k++ {
		from := s.Offset()
		if err := s.Skip(); err != nil {
			return n, n.scanFault(err)
		}
		if s.Kind == value.End {
			return n, n.noIndex(i, text, k)
		}
		if k == i {
			return n.at(from, s.Offset()), nil
		}
	}
}

// lookupInside finds the value of a key by scanning the whole map: of equal keys the last counts.
func (n Node) lookupInside(ctx context.Context, want []byte, key value.Raw) (Node, error) {
	n, err := n.loaded(ctx)
	if err != nil {
		return n, err
	}
	if err := n.single(); err != nil {
		return n, err
	}
	s, err := n.open(ctx, value.Map)
	if err != nil {
		return n, err
	}
	var canonical []byte
	from, to := int64(-1), int64(-1)
	for {
		raw, err := s.Raw()
		if err != nil {
			return n, n.scanFault(err)
		}
		if s.Kind == value.End {
			break
		}
		canonical = canonicalKey(canonical[:0], n.r.h.codec, raw)
		at := s.Offset()
		if err := s.Skip(); err != nil {
			return n, n.scanFault(err)
		}
		if bytes.Equal(canonical, want) {
			from, to = at, s.Offset()
		}
	}
	if from < 0 {
		return n, n.noKey(key)
	}
	return n.at(from, to), nil
}

// eachInside yields the items or pairs of a container, from the first on, by scanning it.
func (n Node) eachInside(ctx context.Context, first int64, yield func(Child, error) bool) error {
	kind, err := n.Kind(ctx)
	if err != nil {
		return err
	}
	if kind != value.Array && kind != value.Map {
		return n.invalid("%s has no children", kind)
	}
	if n, err = n.loaded(ctx); err != nil {
		return err
	}
	if err := n.single(); err != nil {
		return err
	}
	s, err := n.open(ctx, kind)
	if err != nil {
		return err
	}
	for i := int64(0); ; i++ {
		child := Child{Index: i}
		if kind == value.Map {
			raw, err := s.Raw()
			if err != nil {
				return n.scanFault(err)
			}
			if s.Kind == value.End {
				return nil
			}
			child.Key = value.Raw{Codec: n.r.h.codec, Data: bytes.Clone(raw)}
		}
		from := s.Offset()
		if err := s.Skip(); err != nil {
			return n.scanFault(err)
		}
		if s.Kind == value.End {
			return nil
		}
		if i < first {
			continue
		}
		child.Node = n.at(from, s.Offset())
		if !yield(child, nil) {
			return errStop
		}
	}
}
