// Package jsonrows reads JSON Lines into columns of a TCB table and writes them back, each value exactly or not at all.
//
// Words: a row is an object on a line of its own, a member of it is the value of a column. Lines of blanks are passed.
//
// The key of a member is the name of the column, or the decimal tag where the column has no name. null is absent, and so
// is a member of an optional column that is not there; any other column must have its member. Arrays are arrays. Numbers
// are taken digit by digit. A datetime is RFC 3339 without a zone, a timespan is [-][d.]hh:mm:ss[.fffffff], an enumeration
// is its number, or its label where the schema has labels, and NaN and the infinities are the strings "NaN", "Infinity"
// and "-Infinity". A key that occurs twice, text that is no UTF-8, and a member that is no column are errors.
//
// Functions are safe for concurrent use.
package jsonrows
