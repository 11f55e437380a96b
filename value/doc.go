// Package value reads and writes encoded values: MessagePack and CBOR as tokens, as JSON text and as Go values.
//
// Words: a value is one encoded item with all that is in it. Its head is the first bytes, which hold its kind and an
// argument: a number, a length or a count. A token is a head with the content of a string; an array or a map gives one
// token where it starts and one where it ends. The lossless form of a value in memory is its bytes, see [Raw]: Go maps
// lose the order and the types of keys.
//
// One scanner of each codec finds the tokens ([Scanner]; [Skip] is its fast twin for values that are passed over); the
// JSON writer, the decoder into Go values and all else consume tokens. Nothing that reads is recursive, only the
// encoder of Go values is: nesting is limited on every path, by [Limits.Depth] or, of Go values, by [DefaultDepth].
// Memory follows the bytes that are there, never a length they claim.
//
// Functions are safe for concurrent use, a Scanner is not.
package value
