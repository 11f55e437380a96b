package value

import (
	"iter"
)

// The Go types of the values that Go has no type of its own for. [Decode] gives, and [Append] takes:
//
//	null, booleans      nil, bool
//	integers            int64; uint64 above 2^63-1; *big.Int beyond 64 bits
//	floats              float64
//	strings, binary     string, []byte
//	arrays              []any
//	maps                map[string]any; map[any]any when a key is not a string
//	timestamps          time.Time in UTC (msgpack ext -1; CBOR tags 0 and 1)
//	ext (msgpack)       ExtValue
//	tags (CBOR)         TagValue
//	undefined, simple   UndefinedValue, SimpleValue (CBOR)

// ExtValue is a msgpack ext value.
type ExtValue struct {
	Type int8
	Data []byte
}

// TagValue is a CBOR value under a tag.
type TagValue struct {
	Number  uint64
	Content any
}

// UndefinedValue is the CBOR value undefined.
type UndefinedValue struct{}

// SimpleValue is a CBOR simple value other than false, true, null and undefined (20 to 23). 24 to 31 do not exist.
type SimpleValue uint8

// Number is a number as text, with all its digits. Without a point and an exponent it is an integer of any size, else
// the nearest float64. It is written by [Append] like the number it names and filled by [Unmarshal] with the text of
// the number it reads.
type Number string

// OrderedMap is a map that keeps the order of its pairs. Two pairs with the same key are refused when it is written.
type OrderedMap []Pair

// Pair is a pair of an [OrderedMap].
type Pair struct {
	Key, Value any
}

// EncodedKey stands for a map key that Go cannot hash or compare: binary, an array, a map, an ext, a tag, a NaN, an
// integer beyond 64 bits. It holds the key's encoding, in the shortest form, and is written as that.
type EncodedKey struct {
	Codec Codec
	Data  string
}

// Seq is an array whose items are made while it is written. With Len >= 0 that many items must come, and Items is run
// once. With Len < 0 it is run twice, first to count, and must give the same number of items.
type Seq struct {
	Len   int
	Items iter.Seq[any]
}

// MapSeq is a map whose pairs are made while it is written; Len is as in [Seq]. Two pairs with the same key are
// refused. To find them the encoded keys are kept in memory up to 96 MiB, some two million short ones. Those of a
// longer map go to a temporary file, which is gone afterwards.
type MapSeq struct {
	Len   int
	Pairs iter.Seq2[any, any]
}
