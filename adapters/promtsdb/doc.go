// Package promtsdb reads the series of a block of the time series database of Prometheus (github.com/prometheus/prometheus/tsdb)
// as those of a columnar-series artifact.
//
//	table       the number that a mapping gives to the value of __name__
//	TSID        XXH64, seed 0, of the labels sorted by name, __name__ among them: for each its name, a byte 0xff, its
//	            value, a byte 0xff
//	row count   the samples of its chunks, as their headers say; 1 for a block without the files of chunks
//	labels      all but __name__
//
// The hash is defined here and not that of the library, which is another one with each version; it is the one that Prometheus
// calls stable. Two series of one table with one TSID are an error that shows both, see [Distinct].
//
// A block is read from its objects, each byte once but for the headers of chunks that lie far apart, and is not mapped. Of it
// the symbols are in memory: every name and value once. Deletions (tombstones) are not applied: [Block.Tombstones] tells that
// there are some. Index files of version 1, of the first releases of Prometheus 2, are not read.
//
// Functions are safe for concurrent use, an iterator is not.
package promtsdb
