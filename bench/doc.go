// Bench measures Spile side by side with what its users would take instead, and prints the tables of
// docs/performance.md.
//
//	go run ./bench                         every section, as a table
//	go run ./bench -only decode,write      some sections
//	go run ./bench -update docs/performance.md
//
// A job is something to be done to an input; its contenders are the ways to do it, ours first. Before a job is timed,
// every contender must give the same answer. Times mean nothing across machines, so the tables are about ratios of
// two contenders in the same run: their batches alternate, forwards and backwards, and medians are compared.
//
// The jobs are Go benchmarks as well (go test -bench .), and a test runs each of them once on a small input.
//
// In reading order: document.go and archive.go make the inputs, job.go and measure.go hold and time contenders, the
// jobs stand in decode.go, write.go, open.go, process.go, concurrency.go, memory.go and costs.go, python.go talks to the
// original, report.go prints. For tables, table_set.go makes the input of the rows in table_rows.go, table_shape.go and
// table_flat.go encode it for every contender, the jobs stand in table_load.go, table_column.go, table_size.go and
// table_write.go. For series, series_set.go makes the input and series_files.go the files, series_prometheus.go, series_duckdb.go
// and series_lookup.go talk to the peers, the jobs stand in series_build.go, series_query.go and series_memory.go. remote.go has
// the server and the jobs over a network, remote_duckdb.go talks to DuckDB there.
package main
