// Package keyset finds keys that occur twice in the maps of one document, in bounded memory and exactly: bytes of keys
// are compared, never hashes alone.
//
// Keys are kept on one stack for all maps that are open. When that is longer than the budget, the keys of the
// innermost map go to a filter of bits instead, which knows a key that it has seen, and now and then takes another for
// it. What the filter may have seen is a suspect, and a second look at the bytes of the keys decides. Where they come
// from is the [Mode]: the owner reads its input again, or the set has put the keys into a temporary file.
//
// A Set is not safe for concurrent use.
package keyset
