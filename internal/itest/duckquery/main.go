// Duckquery answers queries over a Parquet file with DuckDB, for the comparisons of bench: a line of SQL on standard input,
// whose view "series" is the file, is answered with a line of JSON, an array of the values of the one row. DuckDB is C++, and
// a program of its own keeps it out of the workspace.
//
//	cd internal/itest && GOWORK=off go run ./duckquery FILE
package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "duckquery:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("want one argument, a Parquet file")
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	view := "CREATE VIEW series AS SELECT * FROM read_parquet('" + strings.ReplaceAll(os.Args[1], "'", "''") + "')"
	for _, setting := range []string{"SET parquet_metadata_cache = true", view} {
		if _, err := db.Exec(setting); err != nil {
			return err
		}
	}
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		values, err := row(db, in.Text())
		if err != nil {
			return err
		}
		if err := out.Encode(values); err != nil {
			return err
		}
	}
	return in.Err()
}

// row runs a query, and returns its only row as texts.
func row(db *sql.DB, query string) ([]string, error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	got, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range got {
		targets[i] = &got[i]
	}
	if !rows.Next() {
		return nil, fmt.Errorf("no row: %w", rows.Err())
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	values := make([]string, len(columns))
	for i, v := range got {
		values[i] = fmt.Sprint(v)
	}
	return values, rows.Err()
}
