package value

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
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

// openList begins a list of n items, unless it is null.
func (e *encoder) openList(null bool, n int) (open bool, err error) {
	if null {
		e.dst = AppendNull(e.dst, e.c)
		return false, nil
	}
	if err := e.enter(); err != nil {
		return false, err
	}
	return true, e.listHead(n)
}

// list encodes a slice of anything. It has a loop of its own, since numbers are a third faster without a call.
func (e *encoder) list(v []any) error {
	if open, err := e.openList(v == nil, len(v)); !open || err != nil {
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
	if open, err := e.openList(v == nil, len(v)); !open || err != nil {
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

func doubleKey(c Codec, key []byte) *fault.Error {
	return fault.New(fault.Conflict, "value", "key %q comes twice", cutText(keyText(c, key)))
}

// orderedMap encodes the pairs in their order.
func (e *encoder) orderedMap(m OrderedMap) error {
	if m == nil {
		e.dst = AppendNull(e.dst, e.c)
		return nil
	}
	var seen keyset.Map
	if err := e.openPairs(&seen, len(m)); err != nil {
		return err
	}
	for i := range m {
		if err := e.pair(&seen, m[i].Key, m[i].Value); err != nil {
			return err
		}
	}
	return e.closePairs(&seen)
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
	return e.stream(n, pairs)
}

// stream encodes n pairs.
func (e *encoder) stream(n int, pairs iter.Seq2[any, any]) error {
	var seen keyset.Map
	if err := e.openPairs(&seen, n); err != nil {
		return err
	}
	came := 0
	for k, v := range pairs {
		if came++; came > n {
			break
		}
		if err := e.pair(&seen, k, v); err != nil {
			return err
		}
	}
	if came != n {
		return badCount("pairs", n, came)
	}
	return e.closePairs(&seen)
}

// openPairs begins a map of n pairs, which are refused where their keys are equal.
func (e *encoder) openPairs(seen *keyset.Map, n int) error {
	if err := e.enter(); err != nil {
		return err
	}
	e.maps++
	e.seen.Begin(seen, e.maps)
	return e.mapHead(n)
}

func (e *encoder) closePairs(seen *keyset.Map) error {
	e.leave()
	return e.twice(e.seen.End(seen))
}

func (e *encoder) pair(seen *keyset.Map, k, v any) error {
	if err := e.item(); err != nil {
		return err
	}
	if err := e.newKey(seen, k); err != nil {
		return err
	}
	if err := e.value(v); err != nil {
		return e.underKey(err, k)
	}
	return nil
}

// newKey encodes a key, which must be new in its map. It stays in dst until it is compared.
func (e *encoder) newKey(seen *keyset.Map, k any) error {
	start, flushAt, w := len(e.dst), e.flushAt, e.w
	e.flushAt, e.w = math.MaxInt, nil
	var err error
	if name, ok := k.(string); ok {
		err = e.string(name)
	} else {
		err = e.value(k)
	}
	e.flushAt, e.w = flushAt, w
	if err != nil {
		return e.underKey(err, k)
	}
	key := e.dst[start:]
	twin, err := e.seen.Add(seen, key, fault.NoOffset)
	if twin != nil {
		return doubleKey(e.c, key)
	}
	return e.twice(err)
}

// twice is the error of a key that was found to occur twice later than it was written.
func (e *encoder) twice(err error) error {
	if t, ok := err.(*keyset.Twice); ok {
		return doubleKey(e.c, t.Key)
	}
	return err
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
