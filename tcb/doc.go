// Package tcb reads, writes, verifies and evolves TCB files, version 107: tables of game data, one block of bytes a
// column.
//
//	+--------+------+-----+---------------------------+---------+---------+-----+
//	| header | rows | col | descriptors               | block 1 | block 2 | …   |
//	| 42     | c32  | c32 | tag wire encoding length  |         |         |     |
//	+--------+------+-----+---------------------------+---------+---------+-----+
//
// Words: a table has rows and columns. A column has a tag, a number that never changes its meaning, and a wire type: an
// element (i32, string, …), a kind (one value a row, or an array of them) and two bits, whether rows and whether
// elements of arrays can be absent. Its bytes are a block, stored in one of 14 encodings; the writer tries each and
// keeps the shortest. A row or an element that is absent holds the empty value of its element.
//
// [Open] reads the header and the descriptors; [Table.Read] fetches the blocks of the columns that are asked for, in few
// requests, and decodes them, each as a whole, into typed slices (a [Column]). A file that is sealed, or whose MAC is
// checked, is read whole first. [Load] makes Go structs of the rows. [Write] and [Append] are the way back.
//
// A [Table] is safe for concurrent use. Columns are plain data.
//
// A fault of a file is a [fault.Error] whose message starts with the number of the check, H7 for example, that
// docs/format/tcb.md lists; [Check] takes it out.
package tcb
