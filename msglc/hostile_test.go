package msglc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// withTOC makes a msgpack archive of a payload and a table of contents given as a value.
func withTOC(t testing.TB, payload []byte, toc any) []byte {
	t.Helper()
	table := appendTyped(nil, value.Msgpack, toc)
	magic, err := padMagic(nil)
	if err != nil {
		t.Fatal(err)
	}
	file := appendPrefix(nil, magic, header{codec: value.Msgpack, tocStart: int64(len(payload)), tocSize: int64(len(table))})
	return append(append(file, payload...), table...)
}

type obj = value.OrderedMap

func ints(n ...int64) []any {
	list := make([]any, len(n))
	for i := range n {
		list[i] = n[i]
	}
	return list
}

func p(start, end int64) value.Pair { return value.Pair{Key: "p", Value: ints(start, end)} }
func t(v any) value.Pair            { return value.Pair{Key: "t", Value: v} }
func kv(k, v any) value.Pair        { return value.Pair{Key: k, Value: v} }

// payload10 is [1, [2, 3], {"a": 4}], with the child ranges 1..2, 2..5 and 5..9.
var payload10 = []byte{0x93, 0x01, 0x92, 0x02, 0x03, 0x81, 0xa1, 'a', 0x04}

func TestWrongTables(test *testing.T) {
	leaf := func(s, e int64) obj { return obj{p(s, e)} }
	for name, c := range map[string]struct {
		toc  any
		want string
	}{
		"root is a list":           {[]any{}, "list where a node is due"},
		"root is an offset":        {int64(0), "child archive at 0"},
		"no p and no t":            {obj{}, "neither p nor t"},
		"t is null alone":          {obj{t(nil)}, "neither p nor t"},
		"p is a string":            {obj{{Key: "p", Value: "x"}}, "p is of kind string"},
		"p of one":                 {obj{{Key: "p", Value: ints(1)}}, "p has 1 numbers"},
		"p of three":               {obj{{Key: "p", Value: ints(0, 1, 9)}}, "p has 3 numbers"},
		"p empty":                  {obj{{Key: "p", Value: []any{}}}, "p is an empty list"},
		"p negative":               {leaf(-1, 9), "at least 0"},
		"p of floats":              {obj{{Key: "p", Value: []any{0.0, 9.0}}}, "where a position is due"},
		"start behind end":         {leaf(5, 4), "node [5, 4)"},
		"empty leaf":               {leaf(4, 4), "node [4, 4)"},
		"beyond the payload":       {leaf(0, 10), "node [0, 10)"},
		"huge position":            {obj{{Key: "p", Value: []any{int64(0), ^uint64(0)}}}, "position"},
		"child outside its parent": {obj{p(0, 9), t([]any{leaf(1, 2), obj{p(2, 5), t([]any{leaf(3, 4), leaf(5, 6)})}, leaf(5, 9)})}, "node [5, 6), which needs to lie in [2, 5)"},
		"blocks with a gap":        {obj{{Key: "p", Value: []any{ints(1, 1, 2), ints(1, 3, 5)}}}, "block starts at 3, the one before ends at 2"},
		"blocks overlap":           {obj{{Key: "p", Value: []any{ints(1, 1, 3), ints(1, 2, 5)}}}, "block starts at 2, the one before ends at 3"},
		"block without items":      {obj{{Key: "p", Value: []any{ints(0, 1, 3)}}}, "block of 0 items"},
		"block of too many":        {obj{{Key: "p", Value: []any{ints(3, 1, 3)}}}, "block of 3 items in 2 bytes"},
		"block of two numbers":     {obj{{Key: "p", Value: []any{ints(1, 3)}}}, "where a block of 3 numbers is due"},
		"t is a number":            {obj{p(0, 9), t(int64(4))}, "t is of kind int"},
		"child is a string":        {obj{p(0, 9), t([]any{"x"})}, "string where a node is due"},
		"combined without any":     {obj{t([]any{})}, "combined node without children"},
		"offset of no archive":     {obj{t(ints(0))}, "child archive at 0"},
	} {
		test.Run(name, func(test *testing.T) {
			for _, order := range []string{"p first", "t first"} {
				toc := c.toc
				if m, ok := toc.(obj); ok && order == "t first" && len(m) == 2 {
					toc = obj{m[1], m[0]}
				}
				_, err := Open(test.Context(), source.Memory("bad.msg", withTOC(test, payload10, toc)), nil)
				if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bad.msg: ") {
					test.Errorf("%s: error %v, want one with %q", order, err, c.want)
				}
			}
		})
	}
}

// TestAcceptedTables reads tables that the writer never makes, and that must be read.
func TestAcceptedTables(test *testing.T) {
	leaf := func(s, e int64) obj { return obj{p(s, e)} }
	full := []any{leaf(1, 2), leaf(2, 5), leaf(5, 9)}
	for name, toc := range map[string]any{
		"usual":               obj{p(0, 9), t(full)},
		"t before p":          obj{t(full), p(0, 9)},
		"unknown keys":        obj{kv("x", ints(1)), p(0, 9), kv(int64(7), nil), t(full), kv("y", obj{p(7, 3)})},
		"t is null":           obj{p(0, 9), t(nil)},
		"a block of one item": obj{p(0, 9), t([]any{leaf(1, 2), obj{kv("p", []any{ints(2, 3, 5)})}, leaf(5, 9)})},
		"t beside blocks":     obj{kv("p", []any{ints(1, 1, 2), ints(2, 2, 9)}), t(full)},
		"blocks of any size":  obj{kv("p", []any{ints(1, 1, 2), ints(2, 2, 9)})},
		"no p":                obj{t(full)},
		"nested t first":      obj{t([]any{leaf(1, 2), obj{t([]any{leaf(3, 4), leaf(4, 5)}), p(2, 5)}, leaf(5, 9)}), p(0, 9)},
	} {
		test.Run(name, func(test *testing.T) {
			for _, o := range []*Options{nil, {CacheBytes: -1}, {NoFastLoading: true}} {
				r := open(test, withTOC(test, payload10, toc), o)
				v, err := r.Root().Value(test.Context())
				want := []any{int64(1), []any{int64(2), int64(3)}, map[string]any{"a": int64(4)}}
				if err != nil || !sameValue(v, want) {
					test.Errorf("value %v, error %v", v, err)
				}
				for path, want := range map[string]any{"1/1": int64(3), "2/a": int64(4), "-1/a": int64(4), "0": int64(1)} {
					n, err := r.Find(test.Context(), SplitPath(path))
					if err != nil {
						test.Fatalf("%s: %v", path, err)
					}
					if v, err := n.Value(test.Context()); err != nil || v != want {
						test.Errorf("%s: %v, error %v", path, v, err)
					}
				}
				var out bytes.Buffer
				if err := r.Root().WriteJSON(test.Context(), &out, nil, nil); err != nil || out.String() != `[1,[2,3],{"a":4}]` {
					test.Errorf("JSON %s, error %v", &out, err)
				}
			}
		})
	}
}

// TestVerifyDeep changes right files so that the table still parses but tells something else than the payload.
func TestVerifyDeep(test *testing.T) {
	leaf := func(s, e int64) obj { return obj{p(s, e)} }
	for name, c := range map[string]struct {
		payload []byte
		toc     any
		want    string
	}{
		"right":               {payload10, obj{p(0, 9), t([]any{leaf(1, 2), leaf(2, 5), leaf(5, 9)})}, ""},
		"leaf too long":       {payload10, obj{p(0, 9), t([]any{leaf(1, 3), leaf(3, 5), leaf(5, 9)})}, "0: value ends at 2, its node at 3"},
		"leaf too short":      {payload10, obj{p(0, 9), t([]any{leaf(1, 2), leaf(2, 4), leaf(5, 9)})}, "1: input ends"},
		"a child too few":     {payload10, obj{p(0, 9), t([]any{leaf(1, 2), leaf(2, 5)})}, "list of 3 in the payload, of 2 in the table"},
		"a map for a list":    {payload10, obj{p(0, 9), t(obj{kv("a", leaf(1, 2))})}, "list in the payload, map in the table"},
		"a gap":               {payload10, obj{p(0, 9), t([]any{leaf(1, 2), leaf(3, 4), leaf(5, 9)})}, "1: node starts at 3, its value at 2"},
		"another key":         {payload10, obj{p(0, 9), t([]any{leaf(1, 2), leaf(2, 5), obj{p(5, 9), t(obj{kv("b", leaf(8, 9))})}})}, `key a1 61 in the payload, a1 62 ("b") in the table`},
		"root too short":      {payload10, obj{p(0, 8), t([]any{leaf(1, 2), leaf(2, 5)})}, "root node [0, 8) of a payload of 9"},
		"block counts":        {payload10, obj{kv("p", []any{ints(1, 1, 2), ints(1, 2, 9)})}, "list of 3 in the payload, blocks of 2"},
		"block border inside": {payload10, obj{kv("p", []any{ints(1, 1, 3), ints(2, 3, 9)})}, "value ends at 2, its node at 3"},
		"a key twice":         {[]byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}, leaf(0, 7), `"a"`},
		"a key twice, table":  {[]byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}, obj{p(0, 7), t(obj{kv("a", leaf(3, 4)), kv("a", leaf(6, 7))})}, `key "a" occurs twice in the table`},
		"no p, two swapped":   {payload10, obj{t([]any{leaf(2, 5), leaf(1, 2), leaf(5, 9)})}, "node starts at 2, its value at 1"},
		"no p, one missing":   {payload10, obj{t([]any{leaf(1, 2), leaf(2, 5)})}, "list of 3 in the payload, of 2 in the table"},
		"no p, right":         {payload10, obj{t([]any{leaf(1, 2), leaf(2, 5), leaf(5, 9)})}, ""},
		"no UTF-8":            {[]byte{0x91, 0xa1, 0xff}, leaf(0, 3), "UTF-8"},
		"no value":            {[]byte{0x91, 0xc1}, leaf(0, 2), "0xc1"},
	} {
		test.Run(name, func(test *testing.T) {
			r := open(test, withTOC(test, c.payload, c.toc), nil)
			var found []string
			if err := r.Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) { found = append(found, f.Err.Error()) }); err != nil {
				test.Fatal(err)
			}
			all := strings.Join(found, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				test.Errorf("findings %q, want %q", all, c.want)
			}
			if c.want != "" && !strings.Contains(all, "offset 0x") {
				test.Errorf("findings %q have no offset", all)
			}
		})
	}
}

func TestVerifySaysPickle(test *testing.T) {
	file := dumps(test, []any{append([]byte("\x80\x04\x95cnumpy.core.multiarray\n_reconstruct"), 0)}, nil)
	notes := 0
	err := open(test, file, nil).Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
		if !f.Note {
			test.Error(f.Err)
		}
		notes++
	})
	if err != nil || notes != 1 {
		test.Errorf("%d notes, error %v", notes, err)
	}
}

// TestOverlap reads a small combined file whose archives are listed over and over, in archives of archives: the values
// would take terabytes.
func TestOverlap(test *testing.T) {
	file := dumps(test, strings.Repeat("x", 1000), nil)
	for range 6 {
		offsets := make([]any, 200)
		for i := range offsets {
			offsets[i] = int64(0)
		}
		file = withTOC(test, file, obj{t(offsets)})
	}
	r := open(test, file, nil)
	for _, deep := range []bool{false, true} {
		findings := 0
		if err := r.Verify(test.Context(), &VerifyOptions{Deep: deep}, func(f Finding) { findings++ }); err != nil || findings != 1 {
			test.Errorf("verify, deep %v: %d findings, error %v", deep, findings, err)
		}
	}
	if _, err := r.Root().Value(test.Context()); !errors.Is(err, fault.Corrupt) {
		test.Errorf("error %v", err)
	}
	if err := r.Root().WriteJSON(test.Context(), io.Discard, nil, nil); !errors.Is(err, fault.Corrupt) {
		test.Errorf("error %v", err)
	}
}

// TestDepthAcrossNodes nests lists as deep as allowed and one deeper, the outer ones with nodes, the inner ones in a leaf
// or a block: the limit is for all of them together, whichever way they are read.
func TestDepthAcrossNodes(test *testing.T) {
	const limit = 50
	nested := func(v any, n int) any {
		for range n {
			v = []any{v}
		}
		return v
	}
	long := strings.Repeat("x", 3000)
	for name, inner := range map[string]any{
		"leaf":   []any{nested(1, limit-31), long},
		"blocks": []any{[]any{nested(1, limit-32), nested(2, limit-32)}, long},
		"node":   nested([]any{1, long, long}, limit-31),
	} {
		for _, more := range []int{0, 1} {
			file := dumps(test, nested(inner, 30+more), &WriteOptions{Threshold: 1024})
			for _, o := range []Options{{}, {NoFastLoading: true}, {CacheBytes: -1, NoFastLoading: true}} {
				o.Limits.Depth = limit
				r, err := Open(test.Context(), source.Memory("test.msg", file), &o)
				if err == nil {
					findings := 0
					err = r.Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
						if findings++; !errors.Is(f.Err, fault.Limit) {
							test.Errorf("%s, %d more: finding %v", name, more, f.Err)
						}
					})
					if err != nil || (more == 0) != (findings == 0) {
						test.Errorf("%s, %d more: %d findings, error %v", name, more, findings, err)
					}
					_, err = r.Root().Value(test.Context())
				}
				if (more == 0) != (err == nil) || more > 0 && !errors.Is(err, fault.Limit) {
					test.Errorf("%s, %d more, options %+v: error %v", name, more, o, err)
				}
			}
		}
	}
}

// TestDepthOfKeys nests maps whose keys are lists as deep as allowed and one deeper, and one with a key that is no text: a
// verifier looks into the keys of nodes, as everything does that reads the map.
func TestDepthOfKeys(test *testing.T) {
	const limit = 9
	long := value.AppendString(nil, value.Msgpack, strings.Repeat("x", 300))
	for name, c := range map[string]struct {
		around, in int
		innermost  []byte
		want       error
	}{
		"as deep":   {limit - 4, 3, []byte{1}, nil},
		"deeper":    {limit - 4, 4, []byte{1}, fault.Limit},
		"a key":     {0, limit - 1, []byte{1}, nil},
		"deep key":  {0, limit, []byte{1}, fault.Limit},
		"not UTF-8": {2, 1, []byte{0xa1, 0xff}, fault.Corrupt},
	} {
		payload := bytes.Repeat([]byte{0x91}, c.around)
		payload = append(payload, 0x81)
		payload = append(append(payload, bytes.Repeat([]byte{0x91}, c.in)...), c.innermost...)
		payload = append(payload, long...)
		var out buffer
		if err := Index(test.Context(), &out, source.Memory("in.msgpack", payload), &WriteOptions{Threshold: 1}); err != nil {
			test.Fatal(name, err)
		}
		for _, o := range []Options{{}, {NoFastLoading: true}, {CacheBytes: -1}} {
			o.Limits.Depth = limit
			r, err := Open(test.Context(), source.Memory("test.msg", out), &o)
			if err != nil {
				test.Fatal(name, err)
			}
			var found error
			if err := r.Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) { found = f.Err }); err != nil {
				test.Error(name, err)
			}
			if c.want == nil && found != nil || !errors.Is(found, c.want) {
				test.Errorf("%s: finding %v, want %v", name, found, c.want)
			}
			if c.want == fault.Limit || c.want == nil { // a list in a key has no Go value that is a key
				if _, err := r.Root().Value(test.Context()); c.want == nil && err != nil || !errors.Is(err, c.want) {
					test.Errorf("%s: value: error %v", name, err)
				}
			}
			if err := r.Root().WriteJSON(test.Context(), io.Discard, anyKeys, nil); (err == nil) != (c.want == nil) {
				test.Errorf("%s: JSON: error %v", name, err)
			}
		}
	}
}

// TestBlocksBehindTheirEnd verifies a list whose blocks end in front of the place where its value would begin, behind a leaf that
// is too long.
func TestBlocksBehindTheirEnd(test *testing.T) {
	payload := []byte{0x92, 0x01, 0x93, 1, 2, 3, 0xc0}
	toc := []byte{0x82, 0xa1, 'p', 0x92, 0, 7, 0xa1, 't', 0x92,
		0x81, 0xa1, 'p', 0x92, 1, 7,
		0x81, 0xa1, 'p', 0x92, 0x93, 2, 3, 5, 0x93, 1, 5, 6}
	r, err := Open(test.Context(), source.Memory("test.msg", archiveWithTOC(value.Msgpack, payload, toc)), nil)
	if err != nil {
		test.Fatal(err)
	}
	found := 0
	if err := r.Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
		if found++; !errors.Is(f.Err, fault.Corrupt) {
			test.Error(f.Err)
		}
	}); err != nil || found == 0 {
		test.Errorf("%d findings, %v", found, err)
	}
}

// touchAll reads a document in all ways; errors are fine, panics and endless work are not.
func touchAll(ctx context.Context, n Node, depth int) {
	n.Kind(ctx)
	n.Len(ctx)
	n.Size(ctx)
	n.Value(ctx)
	n.Raw(ctx)
	n.WriteJSON(ctx, io.Discard, keyJSON, nil)
	n.WriteTOC(ctx, io.Discard, keyJSON, nil)
	n.Index(ctx, -1)
	if depth == 0 {
		return
	}
	count := 0
	for c, err := range n.Children(ctx) {
		if count++; err != nil || count > 20 {
			return
		}
		touchAll(ctx, c.Node, depth-1)
		if _, err := n.Step(ctx, c.Step()); err != nil {
			return
		}
	}
}

func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(vectorDir, "*.msg"))
	if err != nil || len(files) == 0 {
		f.Fatal("no vectors", err)
	}
	for _, name := range files {
		if file, err := os.ReadFile(name); err == nil && len(file) < 4096 {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, o := range []*Options{{Compatible: func([]byte) bool { return true }}, {CacheBytes: -1, NoFastLoading: true}} {
			o.Limits.Depth = 50
			r, err := Open(t.Context(), source.Memory("fuzz", file), o)
			if err != nil {
				var e *fault.Error
				if !errors.As(err, &e) || e.Object != "fuzz" {
					t.Fatalf("error %v does not name the file", err)
				}
				continue
			}
			touchAll(t.Context(), r.Root(), 3)
			findings := 0
			r.Verify(t.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
				if !f.Note {
					findings++
				}
			})
			if findings > 0 {
				continue
			}
			// A verified file is one document: its table and its payload must tell the same.
			v, err := r.Root().Value(t.Context())
			if err != nil {
				t.Fatalf("verified, but: %v", err)
			}
			if r.Root().Form() == Combined || hasArchives(t, r) {
				continue
			}
			payload, err := io.ReadAll(r.ProtocolRawData(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := value.Decode(r.h.codec, payload, o.Limits)
			if err != nil || !sameValue(v, plain) {
				t.Fatalf("verified, but %v by the table and %v (%v) without", v, plain, err)
			}
		}
	})
}

func hasArchives(t *testing.T, r *Reader) bool {
	found := false
	r.cursor(t.Context(), 0).walkTOC(r.h.tocStart, r.s.depth, func(e *entry, _ []byte) error {
		found = found || e.isArchive()
		return nil
	})
	return found
}

// FuzzHeader reads any 20 bytes as the two fields; what is read is written back to the same bytes, or to shorter ones
// that read the same.
func FuzzHeader(f *testing.F) {
	for _, h := range []header{{value.Msgpack, 7, 6}, {value.CBOR, 300, 1 << 40}, {value.Msgpack, maxPosition, 255}} {
		f.Add(appendPrefix(nil, [MagicSize]byte{}, h)[MagicSize:])
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) != 2*fieldSize {
			return
		}
		h, err := parseHeader(p)
		if err != nil {
			return
		}
		again, err := parseHeader(appendPrefix(nil, [MagicSize]byte{}, h)[MagicSize:])
		if err != nil || again != h || h.tocStart < 1 || h.tocSize < 1 {
			t.Fatalf("% x gives %+v, written and read %+v, %v", p, h, again, err)
		}
	})
}

// FuzzPath checks that a path printed is a path read.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"", "/", "a/b/3", "//x", "/a~1b/~0", "{7}", `{"7"}`, `/{"a~1b"}/{null}`, "{1.5}/{-3}", "{x}", "a:b/1:2:3", "{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			return
		}
		text := p.String()
		again, err := ParsePath(text)
		if err != nil || again.String() != text || len(again) != len(p) {
			t.Fatalf("%q is printed %q and read as %q, error %v", s, text, again, err)
		}
	})
}

// TestVerifySidecar changes a byte of the table in a sidecar so that it still parses.
func TestVerifySidecar(test *testing.T) {
	raw := appendTyped(nil, value.Msgpack, []any{strings.Repeat("a", 40), strings.Repeat("b", 40)})
	payload := source.Memory("plain", raw)
	var side bytes.Buffer
	if err := WriteSidecar(test.Context(), &side, payload, &WriteOptions{Threshold: 30}); err != nil {
		test.Fatal(err)
	}
	for name, change := range map[string]bool{"right": false, "changed": true} {
		table := bytes.Clone(side.Bytes())
		if change {
			at := bytes.LastIndex(table, []byte{0x81, 0xa1, 'p', 0x92}) + 4
			if table[at] != 43 {
				test.Fatalf("position %d where 43 was expected", table[at])
			}
			table[at] = 44 // one byte late: a string of two bytes less
		}
		r, err := OpenSidecar(test.Context(), payload, source.Memory("plain.toc", table), nil)
		if err != nil {
			test.Fatal(err)
		}
		var found []string
		if err := r.Verify(test.Context(), nil, func(f Finding) { found = append(found, f.Err.Error()) }); err != nil {
			test.Fatal(err)
		}
		if all := strings.Join(found, "\n"); change != strings.Contains(all, "plain.toc: table of contents has the hash") {
			test.Errorf("%s: findings %q", name, all)
		}
	}
}

// TestVerifyIndefinite checks blocks over CBOR lists of indefinite length, at the root and inside a list.
func TestVerifyIndefinite(test *testing.T) {
	list := append(append([]byte{0x9f}, bytes.Repeat([]byte{0x18, 0x64}, 200)...), 0xff)
	for name, payload := range map[string][]byte{
		"root": list, "inside": append(append([]byte{0x82}, list...), list...), "inside indefinite": append(append([]byte{0x9f}, list...), 0xff),
		"map": append(append([]byte{0xbf, 0x61, 'a'}, list...), 0xff),
	} {
		r := open(test, archiveOf(test, payload, &WriteOptions{Codec: value.CBOR, Threshold: 40}), nil)
		if err := r.Verify(test.Context(), &VerifyOptions{Deep: true}, func(f Finding) { test.Errorf("%s: %v", name, f.Err) }); err != nil {
			test.Error(err)
		}
	}
}

// TestKeysWithOneText reaches a binary key and a string key whose JSON texts are the same.
func TestKeysWithOneText(test *testing.T) {
	file := dumps(test, obj{kv([]byte("A"), obj{kv("x", int64(1))}), kv("QQ", obj{kv("x", int64(2))}), kv("{7}", int64(3)), kv(int64(7), int64(4)), kv("-1", int64(5))}, nil)
	r := open(test, file, nil)
	for i, want := range []int64{1, 2, 3, 4, 5} {
		var path Path
		for c, err := range r.Root().Children(test.Context()) {
			if err != nil {
				test.Fatal(err)
			}
			if c.Index == int64(i) {
				path = Path{c.Step()}
			}
		}
		if i < 2 {
			path = append(path, TextStep("x"))
		}
		again, err := ParsePath(path.String())
		if err != nil || strings.HasPrefix(path.String(), "-") || again.String() != path.String() {
			test.Fatalf("%q, printed again %q, %v", path.String(), again.String(), err)
		}
		n, err := r.Find(test.Context(), again)
		if err != nil {
			test.Fatalf("%q: %v", path.String(), err)
		}
		if v, err := n.Value(test.Context()); err != nil || v != want {
			test.Errorf("%q: %v, want %d, error %v", path.String(), v, want, err)
		}
	}
}
