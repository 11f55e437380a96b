package tcb

import (
	"context"
	"testing"

	"github.com/spilehq/spile/source"
)

// A column costs the descriptors and its own block; columns that lie together are one request; a sealed file is read whole.
func TestPartialRead(t *testing.T) {
	const rows = 50_000
	var columns []*Column
	for tag := range int32(6) {
		c := &Column{Tag: tag + 1, Type: Type{Element: F64}, Rows: rows}
		c.setLen(rows)
		for i := range c.Float64s {
			c.Float64s[i] = float64(i) / float64(tag+3)
		}
		columns = append(columns, c)
	}
	ctx := context.Background()
	file, err := Append(nil, rows, columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := Seal(file, Keys{Encryption: testKey(0)})
	if err != nil {
		t.Fatal(err)
	}
	const block = 8 * rows
	for _, c := range []struct {
		what            string
		file            []byte
		tags            []int32
		requests, bytes int64 // at most
	}{
		{"the descriptors", file, nil, 1, minFirstRead},
		{"one column", file, []int32{4}, 2, block + minFirstRead},
		{"two neighbours", file, []int32{4, 5}, 2, 2*block + minFirstRead},
		{"two that are apart", file, []int32{2, 6}, 3, 2*block + minFirstRead},
		{"a sealed file", sealed, []int32{4}, 2, int64(len(file))},
	} {
		var meter source.Meter
		table, err := Open(ctx, meter.Object(source.Memory("t.tcb", c.file)), &Options{Keys: Keys{Encryption: testKey(0)}})
		if err != nil {
			t.Fatal(err)
		}
		if c.tags != nil {
			got, err := table.Read(ctx, c.tags...)
			if err != nil {
				t.Fatal(err)
			}
			for i, tag := range c.tags {
				if !same(got[i], columns[tag-1]) {
					t.Errorf("%s: column %d is wrong", c.what, tag)
				}
			}
		}
		if r := meter.Receipt(); r.Requests > c.requests || r.Bytes > c.bytes {
			t.Errorf("%s took %d requests and %d bytes, want %d and %d", c.what, r.Requests, r.Bytes, c.requests, c.bytes)
		}
	}
}
