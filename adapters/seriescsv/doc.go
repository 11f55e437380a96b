// Package seriescsv reads and writes the series of columnar-series artifacts as CSV: a header, and a record for each series.
//
//	__table_id,__tsid,__series_row_count,host,zone
//	1025,10,3,,us
//	1025,9223372036854775813,1,"",
//
// A label that is null is an empty field without quotes, one that is the empty string a field of two quotes. Columns may stand
// in any order; a label without a column is null. Numbers are taken digit by digit. Text is UTF-8, or UTF-16 with its mark; the
// delimiter is found in the header, a comma, a semicolon or a tab. Errors name the line, from 1.
//
// Functions are safe for concurrent use, an iterator is not.
package seriescsv
