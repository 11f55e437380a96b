package value

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/spilehq/spile/fault"
)

func (e *encoder) listHead(n int) error {
	if err := e.fits("list", n); err != nil {
		return err
	}
	e.dst = AppendArrayHeader(e.dst, e.c, n)
	return nil
}

func (e *encoder) mapHead(n int) error {
	if err := e.fits("map", n); err != nil {
		return err
	}
	e.dst = AppendMapHeader(e.dst, e.c, n)
	return nil
}

func (e *encoder) list(v []any) error {
	if v == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.listHead(len(v)); err != nil {
		return err
	}
	for i, x := range v {
		if err := e.item(); err != nil {
			return err
		}
		switch x := x.(type) {
		case int64:
			e.dst = AppendInt(e.dst, e.c, x)
		case float64:
			e.dst = AppendFloat64(e.dst, e.c, x)
		default:
			if err := e.value(x); err != nil {
				return e.underIndex(err, i)
			}
		}
	}
	e.leave()
	return nil
}

// encodeSlice encodes a slice whose items are encoded by item.
func encodeSlice[T any](e *encoder, v []T, item func(*encoder, T) error) error {
	if v == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.listHead(len(v)); err != nil {
		return err
	}
	for i, x := range v {
		if err := e.item(); err != nil {
			return err
		}
		if err := item(e, x); err != nil {
			return e.underIndex(err, i)
		}
	}
	e.leave()
	return nil
}

// encodedPair is a pair whose key is encoded in e.keys.
type encodedPair[V any] struct {
	start, end int
	value      V
}

// key appends the encoding of a key to e.keys.
func (e *encoder) key(encode func() error) (start, end int, err error) {
	dst, flushAt, w := e.dst, e.flushAt, e.w
	start = len(e.keys)
	e.dst, e.flushAt, e.w = e.keys, math.MaxInt, nil
	e.keys = nil // a key may hold a map, whose keys then go elsewhere
	err = encode()
	e.keys = e.dst
	e.dst, e.flushAt, e.w = dst, flushAt, w
	return start, len(e.keys), err
}

// mixedMap encodes a map of keys of any type, sorted by their encodings.
func (e *encoder) mixedMap(m map[any]any) error {
	if m == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	base := len(e.keys)
	pairs := make([]encodedPair[any], 0, len(m))
	for k, v := range m {
		start, end, err := e.key(func() error { return e.value(k) })
		if err != nil {
			return e.underKey(err, k)
		}
		pairs = append(pairs, encodedPair[any]{start, end, v})
	}
	if err := writePairs(e, base, pairs, (*encoder).value); err != nil {
		return err
	}
	e.leave()
	return nil
}

// writePairs encodes a map whose keys are encoded from base on, in the order of their bytes.
func writePairs[V any](e *encoder, base int, pairs []encodedPair[V], value func(*encoder, V) error) error {
	slices.SortFunc(pairs, func(a, b encodedPair[V]) int {
		return bytes.Compare(e.keys[a.start:a.end], e.keys[b.start:b.end])
	})
	if err := e.mapHead(len(pairs)); err != nil {
		return err
	}
	for i, p := range pairs {
		key := e.keys[p.start:p.end]
		if i > 0 && bytes.Equal(key, e.keys[pairs[i-1].start:pairs[i-1].end]) {
			return doubleKey(e.c, key)
		}
		if err := e.item(); err != nil {
			return err
		}
		if err := e.content(key); err != nil {
			return err
		}
		if err := value(e, p.value); err != nil {
			return e.under(err, keyText(e.c, e.keys[p.start:p.end]))
		}
	}
	e.keys = e.keys[:base]
	return nil
}

// underKey is under for a key of any type.
func (e *encoder) underKey(err error, k any) error {
	switch k := k.(type) {
	case string:
		return e.under(err, k)
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float64:
		return e.under(err, fmt.Sprint(k))
	}
	return e.under(err, fmt.Sprintf("(key of type %T)", k))
}

// keyText names an encoded key in a message.
func keyText(c Codec, key []byte) string {
	v, err := Decode(c, key, Limits{})
	if err != nil {
		return fmt.Sprintf("(key of %d bytes)", len(key))
	}
	switch v.(type) {
	case nil, bool, int64, uint64, float64, string:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("(key of %d bytes)", len(key))
}

func doubleKey(c Codec, key []byte) error {
	return fault.New(fault.Conflict, "value", "key %q comes twice", cutText(keyText(c, key)))
}

// keySet finds double keys.
type keySet struct {
	list   [][]byte // the first few
	table  map[string]struct{}
	memory int
}

// smallSet is the number of keys up to which comparing each with all is faster than hashing.
const smallSet = 8

// maxKeyMemory bounds the memory that the keys of a MapSeq take: about two million short ones.
const maxKeyMemory = 256 << 20

// keyOverhead is what a key takes in a set besides its bytes, by measurement.
const keyOverhead = 64

// add reports whether the key is new, and keeps it.
func (s *keySet) add(key []byte) bool {
	s.memory += len(key) + keyOverhead
	if s.table == nil {
		for _, k := range s.list {
			if bytes.Equal(k, key) {
				return false
			}
		}
		if len(s.list) < smallSet {
			s.list = append(s.list, bytes.Clone(key))
			return true
		}
		s.table = make(map[string]struct{})
		for _, k := range s.list {
			s.table[string(k)] = struct{}{}
		}
	}
	if _, double := s.table[string(key)]; double {
		return false
	}
	s.table[string(key)] = struct{}{}
	return true
}

// orderedMap encodes the pairs in their order.
func (e *encoder) orderedMap(m OrderedMap) error {
	if m == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	names, double := namesOf(m)
	switch {
	case double != "":
		return fault.New(fault.Conflict, "value", "key %q comes twice", cutText(double))
	case !names:
		return e.stream(len(m), func(yield func(k, v any) bool) {
			for _, p := range m {
				if !yield(p.Key, p.Value) {
					return
				}
			}
		}, math.MaxInt)
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.mapHead(len(m)); err != nil {
		return err
	}
	for _, p := range m {
		if err := e.item(); err != nil {
			return err
		}
		if err := e.string(p.Key.(string)); err != nil {
			return e.underKey(err, p.Key)
		}
		if err := e.value(p.Value); err != nil {
			return e.underKey(err, p.Key)
		}
	}
	e.leave()
	return nil
}

// namesOf reports whether all keys are strings, and then, in double, one that comes twice. The empty key is left to
// the general way.
func namesOf(m OrderedMap) (names bool, double string) {
	var seen map[string]struct{}
	if len(m) > smallSet {
		seen = make(map[string]struct{}, len(m))
	}
	for i, p := range m {
		name, ok := p.Key.(string)
		if !ok || name == "" {
			return false, ""
		}
		if seen != nil {
			if _, ok := seen[name]; ok {
				return false, name
			}
			seen[name] = struct{}{}
			continue
		}
		for _, q := range m[:i] {
			if q.Key == p.Key {
				return false, name
			}
		}
	}
	return true, ""
}

// mapSeq encodes a map that is made as it goes.
func (e *encoder) mapSeq(m MapSeq) error {
	pairs := m.Pairs
	if pairs == nil {
		pairs = func(func(k, v any) bool) {}
	}
	n := m.Len
	if n < 0 {
		n = 0
		for range pairs {
			n++
		}
	}
	return e.stream(n, pairs, maxKeyMemory)
}

// stream encodes n pairs and refuses double keys.
func (e *encoder) stream(n int, pairs iter.Seq2[any, any], keyMemory int) error {
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.mapHead(n); err != nil {
		return err
	}
	base := len(e.keys)
	var seen keySet
	came := 0
	for k, v := range pairs {
		if came++; came > n {
			break
		}
		if err := e.pair(&seen, k, v); err != nil {
			return err
		}
		if seen.memory > keyMemory {
			return fault.New(fault.Limit, "value", "keys of a map made as it goes take more than %d MiB", keyMemory>>20)
		}
		e.keys = e.keys[:base]
	}
	if came != n {
		return badCount("pairs", n, came)
	}
	e.leave()
	return nil
}

func (e *encoder) pair(seen *keySet, k, v any) error {
	start, end, err := e.key(func() error { return e.value(k) })
	if err != nil {
		return e.underKey(err, k)
	}
	key := e.keys[start:end]
	if !seen.add(key) {
		return doubleKey(e.c, key)
	}
	if err := e.item(); err != nil {
		return err
	}
	if err := e.content(key); err != nil {
		return err
	}
	if err := e.value(v); err != nil {
		return e.underKey(err, k)
	}
	return nil
}

// seq encodes an array that is made as it goes.
func (e *encoder) seq(s Seq) error {
	items := s.Items
	if items == nil {
		items = func(func(any) bool) {}
	}
	n := s.Len
	if n < 0 {
		n = 0
		for range items {
			n++
		}
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.listHead(n); err != nil {
		return err
	}
	came := 0
	for v := range items {
		if came++; came > n {
			break
		}
		if err := e.item(); err != nil {
			return err
		}
		if err := e.value(v); err != nil {
			return e.underIndex(err, came-1)
		}
	}
	if came != n {
		return badCount("items", n, came)
	}
	e.leave()
	return nil
}

func badCount(what string, said, came int) error {
	if came > said {
		return invalid("sequence says %d %s, more come", said, what)
	}
	return invalid("sequence says %d %s, %d come", said, what, came)
}
