package msglc

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// tableOf returns a cursor over the bytes of a table.
func tableOf(c value.Codec, table []byte) *tocCursor {
	obj := source.Memory("table", table)
	read := func(ctx context.Context, p []byte, off int64) error { return obj.ReadAt(ctx, p, off) }
	return &tocCursor{
		ctx: context.Background(), codec: c, maxKey: DefaultMaxValue,
		t: newTOCBytes(obj, 0, int64(len(table)), &pagePool{bound: 1 << 20}, read),
	}
}

// skipPlain passes n values head by head.
func (c *tocCursor) skipPlain(n int64) (err error) {
	for n > 0 && err == nil {
		n, err = c.skipHead(n)
	}
	return err
}

// FuzzSkipRun compares the pass over a table by whole units with the pass head by head.
func FuzzSkipRun(f *testing.F) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		for _, v := range []any{
			obj{p(0, 9), t([]any{obj{p(1, 2)}, obj{p(2, 300)}, obj{kv("p", []any{ints(2, 300, 70000), ints(1, 70000, 1<<33)})}})},
			obj{p(0, 1<<40), t(obj{kv("a", obj{p(1, 2)}), kv("a longer key that does not fit into one byte", obj{p(2, 3)}), kv(int64(7), int64(5))})},
			obj{t(ints(0, 60, 118))}, obj{t([]any{obj{p(1, 2)}, ints(1, 2, 3)}), p(0, 4)}, ints(7, 1<<20), []any{int64(7), "x"},
			obj{t(obj{kv("a", obj{t([]any{obj{p(1<<17, 1<<18)}}), p(1<<17, 1<<18)})}), p(0, 1<<19)}, obj{t(nil), p(0, 4)}, []any{obj{}, "x", nil, 1.5},
		} {
			table := appendTyped(nil, c, []any{v, v, v, v, v, v})
			f.Add(uint8(c), table)
			f.Add(uint8(c), bytes.Repeat(table, 600)) // beyond a page
		}
	}
	f.Fuzz(func(t *testing.T, codec uint8, table []byte) {
		c := value.Codec(codec%2 + 1)
		if len(table) == 0 {
			return
		}
		for _, n := range []int64{1, 3, 1000} {
			fast, plain := tableOf(c, table), tableOf(c, table)
			errFast, errPlain := fast.skip(n), plain.skipPlain(n)
			if (errFast == nil) != (errPlain == nil) || errFast == nil && fast.at() != plain.at() {
				t.Fatalf("%d values of %v: at %d (%v) by units, %d (%v) by heads", n, c, fast.at(), errFast, plain.at(), errPlain)
			}
		}
	})
}

// BenchmarkSkipOlderTable passes over lists of leaves in the order of keys of files before 2026-04-12.
func BenchmarkSkipOlderTable(b *testing.B) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		var runs []any
		for i := range int64(5000) {
			at := i * 27108
			runs = append(runs, obj{t(obj{kv("name", obj{p(at+6, at+11)}), kv("meta", obj{p(at+27043, at+27108)})}), p(at, at+27108)})
		}
		table := appendTyped(nil, c, runs)
		b.Run(c.String(), func(b *testing.B) {
			b.SetBytes(int64(len(table)))
			cur := tableOf(c, table)
			for b.Loop() {
				cur.seek(0)
				if err := cur.skip(1); err != nil || cur.at() != int64(len(table)) {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSkipTable(b *testing.B) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		var runs []any
		for i := range int64(5000) {
			at := i * 27108
			runs = append(runs, obj{p(at, at+27108), t(obj{
				kv("name", obj{p(at+6, at+11)}), kv("energy", obj{kv("p", []any{ints(911, at+38, at+8237), ints(911, at+8237, at+16436)})}),
				kv("meta", obj{p(at+27043, at+27108)}),
			})})
		}
		table := appendTyped(nil, c, runs)
		for _, plain := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v/plain=%v", c, plain), func(b *testing.B) {
				b.SetBytes(int64(len(table)))
				b.ReportAllocs()
				cur := tableOf(c, table)
				for b.Loop() {
					cur.seek(0)
					var err error
					if plain {
						err = cur.skipPlain(1)
					} else {
						err = cur.skip(1)
					}
					if err != nil || cur.at() != int64(len(table)) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
