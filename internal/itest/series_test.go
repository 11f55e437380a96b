package itest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/adapters/seriesparquet"
	"github.com/spilehq/spile/internal/seriestest"
	"github.com/spilehq/spile/series"
)

// DuckDB reads the series of a file as they are, and what it writes of them builds the same artifact.
func TestSeries(t *testing.T) {
	db := database(t)
	for seed := range uint64(12) {
		a := seriestest.Random(t, seed, []int{0, 1, 300, 6000}[seed%4])
		var out bytes.Buffer
		if err := seriesparquet.Write(context.Background(), &out, a.Labels(), a.Records(t), &seriesparquet.WriteOptions{RowGroupRows: 3000}); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "series.parquet")
		if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		rows, err := db.Query("SELECT * FROM read_parquet(?)", file)
		if err != nil {
			t.Fatal(err)
		}
		types, err := rows.ColumnTypes()
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range types {
			want := "VARCHAR"
			if k < 3 {
				want = []string{"UINTEGER", "UBIGINT", "UBIGINT"}[k]
			}
			if c.DatabaseTypeName() != want {
				t.Errorf("%s: column %s is %s, want %s", a.Name, c.Name(), c.DatabaseTypeName(), want)
			}
		}
		a.Same(t, func(yield func(series.Record, error) bool) {
			for rows.Next() {
				cells, targets := make([]any, len(types)), make([]any, len(types))
				for k := range cells {
					targets[k] = &cells[k]
				}
				if err := rows.Scan(targets...); err != nil {
					t.Fatal(err)
				}
				r := series.Record{ID: series.ID{Table: cells[0].(uint32), TSID: cells[1].(uint64)}, RowCount: cells[2].(uint64)}
				for k, name := range a.Labels() {
					if v := cells[3+k]; v != nil {
						r.Labels = append(r.Labels, series.Label{Name: name, Value: v.(string)})
					}
				}
				if !yield(r, nil) {
					return
				}
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
		})
		rows.Close()
		// Its own files: of the names, DuckDB tells no two apart that differ in case, so that it gets others.
		columns := []string{`a::BIGINT AS "__table_id"`, `b AS "__tsid"`, `c AS "__series_row_count"`}
		names := []string{"a", "b", "c"}
		for k, tag := range a.Meta.Tags {
			names = append(names, fmt.Sprint("l", k))
			if !strings.EqualFold(tag.Name, "host") {
				columns = append(columns, fmt.Sprintf(`l%d AS "%s"`, k, strings.ReplaceAll(tag.Name, `"`, `""`)))
			}
		}
		tags := make([]series.Tag, 0)
		for _, tag := range a.Meta.Tags {
			if !strings.EqualFold(tag.Name, "host") {
				tags = append(tags, tag)
			}
		}
		for _, options := range []string{"COMPRESSION zstd", "COMPRESSION snappy", "COMPRESSION uncompressed", "COMPRESSION gzip, ROW_GROUP_SIZE 2048", "COMPRESSION zstd, PARQUET_VERSION v2", "COMPRESSION brotli"} {
			own := filepath.Join(dir, "own.parquet")
			if _, err := db.Exec(fmt.Sprintf("COPY (SELECT %s FROM read_parquet('%s') AS t(%s) ORDER BY random()) TO '%s' (FORMAT parquet, %s)",
				strings.Join(columns, ", "), file, strings.Join(names, ", "), own, options)); err != nil {
				t.Fatal(options, ": ", err)
			}
			b, err := os.ReadFile(own)
			if err != nil {
				t.Fatal(err)
			}
			meta := *a.Meta
			meta.Tags = tags
			got, err := seriestest.Build(&meta, seriesparquet.Records(context.Background(), bytes.NewReader(b), int64(len(b)), own, tags, nil), nil)
			if err != nil {
				t.Fatal(options, ": ", err)
			}
			want, err := seriestest.Build(&meta, func(yield func(series.Record, error) bool) {
				for r, err := range a.Records(t) {
					var kept []series.Label
					for _, l := range r.Labels {
						if !strings.EqualFold(l.Name, "host") {
							kept = append(kept, l)
						}
					}
					r.Labels = kept
					if !yield(r, err) {
						return
					}
				}
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name := range want.Files {
				if !bytes.Equal(want.Files[name], got.Files[name]) {
					t.Errorf("%s, %s: %s is another", a.Name, options, name)
				}
			}
		}
	}
}
