// Package seriesparquet reads and writes the series of columnar-series artifacts as Apache Parquet files
// (github.com/parquet-go/parquet-go), a row for each series.
//
//	__table_id           INT32, INT(32, unsigned)
//	__tsid               INT64, INT(64, unsigned): every bit
//	__series_row_count   INT64, INT(64, unsigned)
//	one for each label   BYTE_ARRAY, STRING, OPTIONAL: null is null, and an empty string is one
//
// [Write] needs the memory of a row group. Labels have dictionaries, pages are compressed by Zstandard. The same records and
// options give the same bytes.
//
// [Records] reads such files whoever wrote them: columns in any order, integers of any width and sign that hold no negative
// number, any encoding, any compression but LZ4. The older Parquet index of series has other columns beside
// these: times, and some whose names begin with two underscores. They are left out with a note, and where there is no column of
// row counts, each row counts one. Any other column that is no label is an error.
//
// A file is not trusted. What it claims is held against the bytes that are there before the library decodes it: see pages.go
// and footer.go. The library panics on some files that are broken in ways which these checks do not see; guard.go makes
// errors of these panics, and is the one place that does so.
//
// Functions are safe for concurrent use, an iterator is not.
package seriesparquet
