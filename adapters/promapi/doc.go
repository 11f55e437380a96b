// Package promapi answers the part of the HTTP API of Prometheus that is about series, label names and label values, from
// series artifacts:
//
//	GET, POST /api/v1/series                 match[] start end limit
//	GET, POST /api/v1/labels                 match[] start end limit
//	GET       /api/v1/label/<name>/values    match[] start end limit
//	GET       /api/v1/status/buildinfo
//	GET       /-/healthy, /-/ready, /metrics
//
// An artifact answers for its bucket of time: one whose bucket does not meet start and end is left out. A label that is
// null or empty is no label, as in Prometheus. Metrics are tables here; where their names are given, they are the label
// __name__, and where not, series have none.
//
// Series of artifacts of one region are merged by their identifiers; of several regions, the sets of labels are put
// together. Several match[] give what each of them gives. No set of labels is given twice. The order is that of the regions,
// of the selectors, then of the buckets, or, where the artifacts of a region list different tags, of the identifiers.
//
// A [Handler] is safe for concurrent use. It bounds what a request may read, hold and take in time ([Options]); what passes
// a bound is an error of the API. A long answer is sent while it is made; an error behind its first bytes ends the
// connection, so that it cannot be taken for a complete answer.
package promapi
