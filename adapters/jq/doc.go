// Package jq runs jq programs (github.com/itchyny/gojq) over documents and reads of a document what the program uses.
//
// Words: a place is a value of the document that the program has come to but that was not read. A path is a chain of
// steps with constant keys, indices and slices, and of [], as in .runs[3].energy or .runs[].id. To decode a place is to
// make the Go value of it that gojq computes with.
//
// gojq computes with whole values. So [Compile] rewrites the program: where the input of an expression is a place, a
// path in it becomes a step through the table of contents that yields places again, and everything else decodes its
// input first. The result of
//
//	.runs[] | select(.id == 7) | .energy
//
// costs the id of each run and the energy of one. Places go through |, the comma, select, if, first(f), last(f),
// limit(n; f), label, try, as, reduce and foreach, {…}, […], map(f), any, all, isempty, string interpolation and
// operators; length, keys, type and has(k) of a place look at the table alone where they can. What needs its input
// decoded: every other function, functions that the program defines, "..", assignments and path(f). [] yields one place
// after another, so memory is that of one child, unless the program collects them. Short children are read together,
// 1 MiB at most and no more than twice what is used.
//
// The result is that of jq on the JSON text of the document, with the options that the text was made with: bytes are
// base64url strings, timestamps are RFC 3339 strings, and a float of 32 bits is the number that its shortest text says.
// What is not used is not looked at, so what would be an error in the text elsewhere (a NaN, a key that occurs twice) is
// none here. Integers of any size are exact.
//
// A result that is a place is written as it stands in the document: key order, digits, float widths. A result that was
// computed is written by the same rules, with its keys sorted; a float that jq has computed keeps a fraction (3.0). floor,
// ceil, round, trunc, rint, nearbyint, abs and fabs of an integer are exact integers; other functions of mathematics work on
// floats.
// [] yields the values of an object in the order of its keys, sorted, as gojq does everywhere.
//
// A program may come to a value more than once. What the document could not keep of it is counted once, unless the
// value around it is decoded later. How often bytes are decoded is up to the program alone: the children that [] yields
// never have more bytes than the value around them, so that ranges in a hostile table of contents that overlap are an
// error of class [fault.Corrupt] before they multiply. [Options.MaxDecode] bounds a program that is not trusted.
//
// A program sees the document and the variables it is given: no environment, no files, no modules, no further input.
//
// A [Query] is safe for concurrent use; a run and its results are not.
package jq
