package msglc

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// deepTable is a table of nodes nested depth deep over a payload of depth+width bytes, in the older order of keys or the
// newer one, with a long list in the innermost: of width leaves. In front of each nested node is a leaf.
func deepTable(c value.Codec, depth, width int, older bool) []byte {
	position := func(p []byte, start, end int) []byte {
		p = value.AppendArrayHeader(value.AppendString(p, c, "p"), c, 2)
		return value.AppendUint(value.AppendUint(p, c, uint64(start)), c, uint64(end))
	}
	leaf := func(p []byte, at int) []byte { return position(value.AppendMapHeader(p, c, 1), at, at+1) }
	var table []byte
	for i := range depth {
		table = value.AppendMapHeader(table, c, 2)
		if !older {
			table = position(table, i, depth+width)
		}
		table = value.AppendArrayHeader(value.AppendString(table, c, "t"), c, 2)
		table = leaf(table, i)
	}
	table = value.AppendMapHeader(table, c, 2)
	if !older {
		table = position(table, depth, depth+width)
	}
	table = value.AppendArrayHeader(value.AppendString(table, c, "t"), c, width)
	for i := range width {
		table = leaf(table, depth+i)
	}
	for i := depth; i >= 0 && older; i-- {
		table = position(table, i, depth+width)
	}
	return table
}

// TestDeepTables counts the bytes of the table that are read, of one that is longer than the pages that stay in memory:
// a pass that goes over it again reads it again.
func TestDeepTables(t *testing.T) {
	const depth, width = 300, 600_000
	for _, older := range []bool{true, false} {
		for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
			table := deepTable(c, depth, width, older)
			magic, _ := padMagic(nil)
			file := appendPrefix(nil, magic, header{codec: c, tocStart: depth + width, tocSize: int64(len(table))})
			file = append(append(file, make([]byte, depth+width)...), table...)
			o := &Options{CacheBytes: 1 << 20}
			r := open(t, file, o)
			r.Verify(t.Context(), nil, func(f Finding) { t.Errorf("%v", f.Err) })
			if passes := float64(r.Stats().Bytes) / float64(len(table)); passes > 10 {
				t.Errorf("%v, older %v: verify passed over the table %.1f times", c, older, passes)
			}
			r = open(t, file, o)
			path := make(Path, depth+1)
			for i := range path {
				path[i] = IndexStep(1)
			}
			if _, err := r.Find(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			if passes := float64(r.Stats().Bytes) / float64(len(table)); passes > 10 {
				t.Errorf("%v, older %v: a path passed over the table %.1f times", c, older, passes)
			}
			r = open(t, file, o)
			if err := walkAll(t.Context(), r.Root()); err != nil {
				t.Fatal(err)
			}
			if passes := float64(r.Stats().Bytes) / float64(len(table)); passes > 12 {
				t.Errorf("%v, older %v: a walk passed over the table %.1f times", c, older, passes)
			}
		}
	}
}

func walkAll(ctx context.Context, n Node) error {
	for child, err := range n.Children(ctx) {
		if err != nil {
			return err
		}
		if child.Node.Form() == List {
			if err := walkAll(ctx, child.Node); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestDeepTablesOfAnyShape holds the walk of a table in the older order to the one in the newer.
func TestDeepTablesOfAnyShape(t *testing.T) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		var visits [2][][2]int64
		for i, older := range []bool{true, false} {
			table := deepTable(c, 200, 3000, older)
			cur := tableOf(c, table)
			cur.payload = 3200
			err := cur.walkTOC(3200, 1000, func(e *entry, _ []byte) error {
				visits[i] = append(visits[i], [2]int64{e.start, e.end})
				return nil
			})
			if err != nil || cur.at() != int64(len(table)) {
				t.Fatal(err)
			}
		}
		if len(visits[0]) != len(visits[1]) || len(visits[0]) != 3401 {
			t.Fatalf("%d and %d nodes", len(visits[0]), len(visits[1]))
		}
		for i := range visits[0] {
			if visits[0][i] != visits[1][i] {
				t.Fatalf("node %d: %v and %v", i, visits[0][i], visits[1][i])
			}
		}
	}
}

// indefinite encodes a value in CBOR with every container, and some strings, of indefinite length.
func indefinite(dst []byte, v any) []byte {
	switch v := v.(type) {
	case obj:
		dst = append(dst, 0xbf)
		for _, pair := range v {
			if s, ok := pair.Key.(string); ok {
				dst = append(value.AppendString(append(dst, 0x7f), value.CBOR, s), 0xff)
			} else {
				dst = appendTyped(dst, value.CBOR, pair.Key)
			}
			dst = indefinite(dst, pair.Value)
		}
		return append(dst, 0xff)
	case []any:
		dst = append(dst, 0x9f)
		for _, item := range v {
			dst = indefinite(dst, item)
		}
		return append(dst, 0xff)
	}
	return appendTyped(dst, value.CBOR, v)
}

// TestIndefiniteTables reads tables whose containers have no length: in CBOR any encoding is taken.
func TestIndefiniteTables(test *testing.T) {
	payload := []byte{0x83, 0x01, 0x82, 0x02, 0x03, 0xa1, 0x7f, 0x61, 'a', 0xff, 0x04} // [1, [2, 3], {"a": 4}]
	leaf := func(s, e int64) obj { return obj{p(s, e)} }
	blocks := obj{kv("p", []any{ints(1, 3, 4), ints(1, 4, 5)})}
	inner := obj{t(obj{kv("a", leaf(10, 11))}), p(5, 11)}
	for name, toc := range map[string]any{
		"p first":      obj{p(0, 11), t([]any{leaf(1, 2), blocks, inner})},
		"t first":      obj{t([]any{leaf(1, 2), blocks, inner}), p(0, 11)},
		"unknown keys": obj{kv("x", obj{}), p(0, 11), t([]any{leaf(1, 2), blocks, inner}), kv("y", ints(1, 2))},
		"leaf":         leaf(0, 11),
	} {
		test.Run(name, func(test *testing.T) {
			file := archiveWithTOC(value.CBOR, payload, indefinite(nil, toc))
			for _, eager := range []bool{true, false} {
				r := open(test, file, &Options{NoFastLoading: true})
				r.eager = eager
				v, err := r.Root().Value(test.Context())
				want := []any{int64(1), []any{int64(2), int64(3)}, map[string]any{"a": int64(4)}}
				if err != nil || !sameValue(v, want) {
					test.Errorf("value %v, error %v", v, err)
				}
				for path, want := range map[string]any{"1/1": int64(3), "2/a": int64(4), "0": int64(1)} {
					n, err := r.Find(test.Context(), SplitPath(path))
					if err != nil {
						test.Fatalf("%s: %v", path, err)
					}
					if v, err := n.Value(test.Context()); err != nil || v != want {
						test.Errorf("%s: %v, %v", path, v, err)
					}
				}
				if err := r.Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) { test.Errorf("%v", f.Err) }); err != nil {
					test.Error(err)
				}
			}
			// A break that is missing, or one that stands in another place.
			whole := indefinite(nil, toc)
			for i, b := range whole {
				if b != 0xff {
					continue
				}
				cut := append(append([]byte{}, whole[:i]...), whole[i+1:]...)
				_, err := Open(test.Context(), source.Memory("bad.msg", archiveWithTOC(value.CBOR, payload, cut)), nil)
				if !errors.Is(err, fault.Corrupt) {
					test.Errorf("without the break at %d: %v", i, err)
				}
			}
		})
	}
}

// TestNodeWithTwoPositions: p or t twice in one node is refused in any order, in tables that are checked when they are
// opened, and by Verify in longer ones.
func TestNodeWithTwoPositions(test *testing.T) {
	items := make([]any, 30_000)
	for i := range items {
		items[i] = obj{p(1, 2)}
	}
	null, unknown := kv("t", nil), kv("x", ints(1, 2))
	for _, long := range []bool{false, true} {
		table, one := t([]any{obj{p(1, 2)}}), t([]any{obj{p(1, 2)}})
		if long {
			table = t(items)
		}
		for _, toc := range []obj{
			{p(0, 9), p(0, 9), table}, {p(0, 9), table, p(0, 9)}, {table, p(0, 9), p(0, 9)},
			{p(0, 9), one, table}, {p(0, 9), table, one}, {table, one, p(0, 9)}, {table, p(0, 9), one},
			{p(0, 9), table, unknown, one}, {p(0, 9), null, table}, {p(0, 9), table, null}, {null, null, p(0, 9), table},
		} {
			for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
				encoded := appendTyped(nil, c, toc)
				if c == value.CBOR {
					encoded = indefinite(nil, toc)
				}
				file := archiveWithTOC(c, payload10, encoded)
				r, err := Open(test.Context(), source.Memory("bad.msg", file), nil)
				if err == nil {
					if len(encoded) <= eagerTOC {
						test.Errorf("%v, long %v: opened", c, long)
					}
					if err2 := r.Verify(test.Context(), nil, func(f Finding) { err = f.Err }); err2 != nil {
						test.Fatal(err2)
					}
				}
				if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "two values of") {
					test.Errorf("%v, long %v: %.100v: %v", c, long, toc, err)
				}
			}
		}
	}
}

// TestSpanTable: what was noted is found, in bounded memory, also by many at a time; another place is not.
func TestSpanTable(test *testing.T) {
	for _, size := range []int64{1 << 10, 1 << 20, 1 << 32} {
		var t spanTable
		n := int(min(max(256, 2*size/spanWorth), 2*maxSpans)) / 2
		var wait sync.WaitGroup
		for g := range 4 {
			wait.Go(func() {
				for k := range n {
					if at := int64(k) * 523; k%4 == g || k%8 == 0 {
						t.note(at, span{end: at + 600, count: int64(k)}, size)
					}
				}
			})
		}
		wait.Wait()
		lost := 0
		for k := range n {
			at := int64(k) * 523
			if s, ok := t.of(at); !ok {
				lost++
			} else if s.end != at+600 || s.count != int64(k) {
				test.Fatalf("%d: %+v", at, s)
			}
			if _, ok := t.of(at + 1); ok {
				test.Fatalf("%d was not noted", at+1)
			}
		}
		if lost > n/100 {
			test.Errorf("%d of %d are lost", lost, n)
		}
		for k := range 4 * n {
			t.note(int64(k)*1021+7, span{}, size)
		}
		if slots := len(*t.slots.Load()); slots > 4*n {
			test.Errorf("%d slots for %d", slots, n)
		}
		if took := t.note(7, span{}, size); took > 32 {
			test.Errorf("a span that is known, or makes room, took %d bytes", took)
		}
	}
}

// TestSpansGoWithTheirTable: what a reader remembers of child archives holds none that it has forgotten.
func TestSpansGoWithTheirTable(test *testing.T) {
	var parts []Part
	child := dumps(test, manyRows(400), &WriteOptions{Threshold: 20})
	for range 30 {
		parts = append(parts, Part{Object: source.Memory("child", child)})
	}
	var file buffer
	if err := Combine(test.Context(), &file, parts, nil); err != nil {
		test.Fatal(err)
	}
	r := open(test, file, &Options{CacheBytes: 64 << 10})
	gone := make(chan bool, 100)
	opened := 0
	for i := range parts {
		n, err := r.Find(test.Context(), Path{IndexStep(int64(i))})
		if err != nil {
			test.Fatal(err)
		}
		if err := walkAll(test.Context(), n); err != nil {
			test.Fatal(err)
		}
		if n.r.toc.spans.slots.Load() == nil {
			test.Fatal("nothing is remembered")
		}
		opened++
		runtime.AddCleanup(n.r.toc, func(bool) { gone <- true }, true)
	}
	for range 20 {
		if runtime.GC(); len(gone) > opened/2 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	test.Errorf("%d of %d tables were freed", len(gone), opened)
}

// manyRows is lists that have a table each.
func manyRows(n int) []any {
	rows := make([]any, n)
	for i := range rows {
		rows[i] = []any{strings.Repeat("x", 30), strings.Repeat("y", 30)}
	}
	return rows
}
