package tcb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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

// A table in memory is read where it lies: neither reading, with keys or without, nor a change of what was read touches it.
func TestMemoryIsLeftAlone(t *testing.T) {
	const rows = 3000
	number := &Column{Tag: 1, Type: Type{Element: F64}, Rows: rows}
	some := &Column{Tag: 2, Type: Type{Element: I32, Optional: true}, Rows: rows, Present: NewBitmap(rows)}
	text := &Column{Tag: 3, Type: Type{Element: String}, Rows: rows}
	for _, c := range []*Column{number, some, text} {
		c.setLen(rows)
	}
	for i := range rows {
		number.Float64s[i] = 1 / float64(i+1)
		if i%3 > 0 {
			some.Int32s[i] = int32(i * i)
			some.Present.Set(i)
		}
		text.Strings[i] = fmt.Sprint("text ", i%50)
	}
	ctx := context.Background()
	plain, err := Append(nil, rows, []*Column{number, some, text}, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := Keys{Encryption: testKey(0), MAC: testKey(1)}
	sealed, err := Seal(plain, keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file []byte
		keys Keys
	}{{plain, Keys{}}, {sealed, keys}} {
		before := bytes.Clone(c.file)
		for range 2 {
			table, err := Open(ctx, source.Memory("table", c.file), &Options{Keys: c.keys})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // of one table, and of one that is opened anew
				got, err := table.Read(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got[0].Float64s, number.Float64s) || !slices.Equal(got[1].Int32s, some.Int32s) ||
					!bytes.Equal(got[1].Present, some.Present) || !slices.Equal(got[2].Strings, text.Strings) {
					t.Fatal("other values than were written")
				}
				clear(got[0].Float64s)
				clear(got[1].Int32s)
				clear(got[1].Present)
			}
		}
		if !bytes.Equal(c.file, before) {
			t.Error("the file in memory has changed")
		}
	}
}
