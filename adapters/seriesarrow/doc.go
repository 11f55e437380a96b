// Package seriesarrow writes the series of columnar-series artifacts as Apache Arrow IPC files
// (github.com/apache/arrow-go), a row for each series.
//
//	__table_id           Uint32
//	__tsid               Uint64
//	__series_row_count   Uint64
//	one for each label   Dictionary(Uint32, Utf8), nullable: null is null, and an empty string is one
//
// An Arrow file has one dictionary for each column, which stands in front of its first batch. So the records are gone through
// twice, for the dictionaries and for the rows. Of a label with more than [MaxValues] values, or whose values are longer than
// [MaxText] together, the column is Utf8 without a dictionary; so memory is bounded whatever the labels are.
//
// The same records and options give the same bytes. Functions are safe for concurrent use.
package seriesarrow
