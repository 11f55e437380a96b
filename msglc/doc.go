// Package msglc reads and writes msglc archives: a MessagePack or CBOR document with a table of contents behind it,
// read lazily by path. The format is described in docs/format/msglc.md.
//
//	+--------------+---------------------------+-------------------+
//	| prefix, 50 B | payload: one value        | table of contents |
//	+--------------+---------------------------+-------------------+
//	               ^ position 0                ^ toc start
//
// Words of the format. The payload is one encoded value. The table of contents (TOC) is a tree of nodes; a node gives
// the byte range of one value of the payload and has one of five forms: a leaf is decoded as a whole, blocks give runs
// of items of an array, a list and a map have a node for every child, and a combined node has whole archives as
// children. Positions count from the start of the payload. The threshold (T) and the trivial size (R) are the two
// numbers by which a writer decides which values get a node.
//
// Words of this package. A [Reader] is one opened archive. A [Node] is a place in the document: a small value, made
// on demand, that may also lie inside a leaf. A [Path] leads to one. A [Writer] takes the payload as bytes and makes
// the table of contents beside it.
//
// Readers and nodes are safe for concurrent use; iterators and writers are not.
package msglc
