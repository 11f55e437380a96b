// Package itest reads what the exports write with DuckDB, an implementation of Parquet that has nothing in common with
// the one that wrote. DuckDB is C++: the tests need a C compiler, which is why this module stands outside the
// workspace.
//
//	cd internal/itest && GOWORK=off go test ./...
package itest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/spilehq/spile/adapters/parquet"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/tabletest"
	"github.com/spilehq/spile/tcb"
)

func database(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// export writes a table as a file of its own.
func export(t testing.TB, table tabletest.Table, o *parquet.Options) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "table.parquet")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	err = parquet.Write(context.Background(), f, table.Rows(), table.Columns, table.Schema, o)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name, err
}

// value gives what DuckDB says the form of tabletest.Cell.
func value(t testing.TB, v any, f tcb.Field) any {
	switch v := v.(type) {
	case nil, bool, int64, string:
		return v
	case int32:
		return int64(v)
	case float32:
		return tabletest.F32(math.Float32bits(v))
	case float64:
		return tabletest.F64(math.Float64bits(v))
	case []byte: // a UUID
		if len(v) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}
	case duckdb.UUID:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
	case time.Time:
		ticks, ok := tcb.TicksOf(v)
		if !ok || f.Logical != tcb.DateTime {
			t.Fatalf("%s: the time %s", f.Name, v)
		}
		return ticks
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = value(t, x, f)
		}
		return out
	}
	t.Fatalf("%s: %T", f.Name, v)
	return nil
}

// duckType is the type that DuckDB has to see.
func duckType(c *tcb.Column, f tcb.Field, got string) string {
	want := map[tcb.Element]string{
		tcb.Enum: "INTEGER", tcb.I32: "INTEGER", tcb.I64: "BIGINT", tcb.F32: "FLOAT", tcb.F64: "DOUBLE",
		tcb.Bool: "BOOLEAN", tcb.String: "VARCHAR", tcb.UUID: "UUID",
	}[c.Type.Element]
	if f.Logical == tcb.DateTime && strings.HasPrefix(got, "TIMESTAMP") {
		want = "TIMESTAMP"
		if strings.HasPrefix(got, "TIMESTAMP_NS") {
			want = "TIMESTAMP_NS"
		}
	}
	if c.Type.Kind == tcb.Array {
		want += "[]"
	}
	return want
}

func check(t *testing.T, db *sql.DB, table tabletest.Table, file string) {
	t.Helper()
	rows, err := db.Query("SELECT * FROM read_parquet(?)", file)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != len(table.Columns) {
		t.Fatalf("%d columns, want %d", len(types), len(table.Columns))
	}
	for k, c := range table.Columns {
		f := table.Schema.Columns[k]
		name := f.Name
		if name == "" {
			name = fmt.Sprint(f.Tag)
		}
		if got := types[k].DatabaseTypeName(); types[k].Name() != name || got != duckType(c, f, got) {
			t.Errorf("column %d is %s of %s, want %s of %s", k, types[k].Name(), got, name, c.Type)
		}
	}
	row := 0
	for rows.Next() {
		cells, targets := make([]any, len(types)), make([]any, len(types))
		for k := range cells {
			targets[k] = &cells[k]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		for k, c := range table.Columns {
			got, want := value(t, cells[k], table.Schema.Columns[k]), tabletest.Cell(c, row)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("row %d, %s: %#v, want %#v", row, types[k].Name(), got, want)
			}
		}
		row++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if row != table.Columns[0].Rows {
		t.Errorf("%d rows, want %d", row, table.Columns[0].Rows)
	}
	var schema string
	if err := db.QueryRow("SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?", file, parquet.SchemaKey).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	if s, err := tcb.ParseSchema([]byte(schema)); err != nil || len(s.Columns) != len(table.Columns) {
		t.Errorf("the schema in the metadata: %v", err)
	}
}

func TestFiles(t *testing.T) {
	db := database(t)
	for _, table := range tabletest.Files(t, "../../testdata/tcb") {
		t.Run(table.Name, func(t *testing.T) {
			o := &parquet.Options{}
			file, err := export(t, table, o)
			if table.InvalidUTF8 && errors.Is(err, fault.Invalid) {
				return
			}
			if err != nil && strings.Contains(err.Error(), "TimesTicks") {
				o.DateTimes = parquet.TimesTicks
				file, err = export(t, table, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, db, table, file)
		})
	}
}

func TestRandom(t *testing.T) {
	db := database(t)
	for _, rows := range []int{0, 1, 5000} {
		for _, o := range []parquet.Options{{}, {RowGroupRows: 1000, Compression: parquet.Snappy}, {Compression: parquet.Uncompressed}} {
			table := tabletest.Random(uint64(rows), rows)
			file, err := export(t, table, &o)
			if err != nil {
				t.Fatal(err)
			}
			check(t, db, table, file)
		}
	}
}

// A dictionary that is given up, pages and row groups by the dozen.
func TestLarge(t *testing.T) {
	db := database(t)
	table := tabletest.Wide(300_000)
	for i := range table.Columns[1].Strings {
		table.Columns[1].Strings[i] = fmt.Sprintf("%d of a text that fills dictionaries", i*7919%300_000)
	}
	file, err := export(t, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, db, table, file)
}

// DuckDB looks at the statistics to skip row groups: what it finds then is what it finds without them.
func TestStatistics(t *testing.T) {
	db := database(t)
	table := tabletest.Random(11, 4000)
	file, err := export(t, table, &parquet.Options{RowGroupRows: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t AS SELECT * FROM read_parquet(?)", file); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{
		`"i32 0" = -2147483648`, `"i32 0" > 2147482600`, `"i64 1" < -5`, `"f32 0" = '-0'::FLOAT`, `"f64 0" = 0`, `"f64 1" > 1e300`,
		`"f64 0" = 'nan'::DOUBLE`, `"f32 1" >= 'inf'::FLOAT`, `"string 1" = '4'`, `"string 0" >= 'é'`, `"uuid 0" > 'f0000000-0000-0000-0000-000000000000'`,
		`"uuid 0" < '10000000-0000-0000-0000-000000000000'`, `"datetime 0" < '1000-01-01'`, `"nanos 1" > '2262-01-01'`, `"bool 1" IS NULL`, `"bool 0"`,
	} {
		var got, want int
		if err := db.QueryRow("SELECT count(*) FROM read_parquet(?) WHERE "+where, file).Scan(&got); err != nil {
			t.Fatal(where, ": ", err)
		}
		if err := db.QueryRow("SELECT count(*) FROM t WHERE " + where).Scan(&want); err != nil {
			t.Fatal(where, ": ", err)
		}
		if got != want || want == 0 {
			t.Errorf("%s: %d rows in the file, %d in memory", where, got, want)
		}
	}
}
