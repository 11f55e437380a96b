// Package series reads, writes and verifies columnar-series artifacts, version 1: the series index of a metric
// database, (table, tsid) -> labels, for one bucket of time of one region.
//
//	manifest.json    region, generation, tags, coverage, the parts
//	part-0.series    +--------+-----------------+-------------+------+---------+
//	                 | header | chunks of       | leaf pages  | root | trailer |
//	                 | 16     | block 0, 1, …   |             |      | 96      |
//	                 +--------+-----------------+-------------+------+---------+
//	                          16                payload_end
//
// Words: an artifact has parts. An identifier is the pair of a table and a TSID, and names one series. A block holds the
// series of one table that follow one another; each of its columns is a chunk: the TSIDs, the numbers of rows, and the
// values of each tag, which is a label, as a dictionary and codes. A leaf page describes blocks: where their chunks are,
// and the least and greatest value of each tag. Pages form a tree of one level or two, whose root the trailer points to.
// Every chunk and every page has a checksum, and is compressed alone or not at all.
//
// [Open] reads the manifest; parts, pages and chunks are read when a query comes to them. An [Artifact] is safe for
// concurrent use, an iterator is not.
//
// A fault of a file is a [fault.Error] whose message starts with the number of the check, "check 42: …", that
// docs/format/series.md lists; [Check] takes it out. Its class is [fault.Corrupt], [fault.UnsupportedVersion],
// [fault.UnsupportedCodec] or [fault.Limit].
package series
