// Package seriesjson reads and writes the series of columnar-series artifacts as JSON Lines, an object a line:
//
//	{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}
//
// A label that is null is one that is missing. Numbers are taken digit by digit. A member or a label that occurs twice, text
// that is no UTF-8, and a member of another name are errors, which name the line.
//
// Functions are safe for concurrent use, an iterator is not.
package seriesjson
