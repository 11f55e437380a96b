package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// TestIndex indexes payloads that the original wrote. The result is what the original makes of the same value, and a
// sidecar leads to the same values.
func TestIndex(t *testing.T) {
	p := needOriginal(t)
	for _, c := range cases() {
		for _, codec := range []string{"msgpack", "cbor"} {
			if c.codec != "" && c.codec != codec {
				continue
			}
			t.Run(c.name+"/"+codec, func(t *testing.T) {
				f := format{codec: codec, backend: "python", threshold: 64, trivial: 16}
				path := filepath.Join(t.TempDir(), "doc.msg")
				theirs, err := p.dump(path, typed(c.doc), f)
				if err != nil {
					t.Fatal(err)
				}
				payload, err := p.raw(path, f, "", true)
				if err != nil {
					t.Fatal(err)
				}
				obj := source.Memory("payload", payload)
				ours := toFile(t, path, func(dst *source.AtomicFile) error { return msglc.Index(ctx, dst, obj, f.write()) })
				sameBytes(t, "indexed", ours, theirs)

				side := toFile(t, path+".toc", func(dst *source.AtomicFile) error {
					return msglc.WriteSidecar(ctx, dst, obj, f.write())
				})
				r, err := msglc.OpenSidecar(ctx, obj, source.Memory("sidecar", side), nil)
				if err != nil {
					t.Fatal(err)
				}
				readByUs(t, r, text(typed(c.doc)), c.doc)
			})
		}
	}
}

// TestJSON packs JSON text; the original packs what Python's json module makes of it.
func TestJSON(t *testing.T) {
	p := needOriginal(t)
	texts := []string{
		`null`, ` [ ] `, `{}`, `"\u00e4\ud83d\ude00\n\/\\"`,
		`[0, -1, 127, 128, 255, 256, 65535, 65536, 4294967296, 9007199254740993, 18446744073709551615, -9223372036854775808]`,
		`[0.0, -0.0, 1.0, 1e3, 1E+2, 0.1, 2.5e-8, 123456789.123456789, 5e-324, 1.7976931348623157e308]`,
		`{"b": {"z": 1, "a": [true, false, null]}, "": [], "a": {"": {}}, "日本": "\u0000"}`,
	}
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, `%s{"id": %d, "x": [%d.5, %d, "%d"]}`, strings.Repeat(",", min(i, 1)), i, i, i*i*i, i)
	}
	texts = append(texts, "["+long.String()+"]")
	for _, text := range texts {
		for _, codec := range []string{"msgpack", "cbor"} {
			f := format{codec: codec, backend: "python", threshold: 300, trivial: 20}
			path := filepath.Join(t.TempDir(), "doc.msg")
			theirs, err := p.dumpJSON(path, text, f)
			if err != nil {
				t.Fatal(err)
			}
			ours := toFile(t, path, func(dst *source.AtomicFile) error {
				w, err := msglc.NewWriter(t.Context(), dst, f.write())
				if err != nil {
					return err
				}
				defer w.Close()
				if err := value.ReadJSON(w, strings.NewReader(text), int64(len(text)), codecOf(codec), nil, nil); err != nil {
					return err
				}
				return w.Close()
			})
			sameBytes(t, fmt.Sprintf("%s of %.40s", codec, text), ours, theirs)
		}
	}
}

// TestMagic: a magic of one's own is read by both sides, and refused by both where it is not expected.
func TestMagic(t *testing.T) {
	p := needOriginal(t)
	for _, magic := range []string{"x", "my-format-1", "exactly thirty bytes of magic!"} {
		f := format{codec: "msgpack", backend: "python", threshold: 64, trivial: 16, magic: []byte(magic)}
		document(t, p, testCase{doc: wide(30)}, f)
		path := filepath.Join(t.TempDir(), "doc.msg")
		if err := msglc.Dump(ctx, path, wide(30), f.write()); err != nil {
			t.Fatal(err)
		}
		plain := format{codec: "msgpack", backend: "python", threshold: 64, trivial: 16}
		if _, err := p.read(path, plain, true, nil); err == nil {
			t.Errorf("magic %q: the original takes it for its own", magic)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := msglc.Open(ctx, source.Memory("archive", b), nil); err == nil {
			t.Errorf("magic %q: opened without it", magic)
		}
	}
}

// TestPaths holds the paths of the format (docs/format/msglc.md, "Paths") against the original, where that has no fault
// of its own.
func TestPaths(t *testing.T) {
	p := needOriginal(t)
	doc := m("b", m("c", 4, "a/b", 6), "l", list(200, func(i int) any { return i }), "e", []any{list(3, func(i int) any { return i })})
	for _, size := range [][2]int64{{8192, 20}, {16, 8}} {
		f := format{codec: "msgpack", backend: "python", threshold: size[0], trivial: size[1]}
		path := filepath.Join(t.TempDir(), "doc.msg")
		if _, err := p.dump(path, typed(doc), f); err != nil {
			t.Fatal(err)
		}
		r := openFile(t, path)
		texts := []any{
			"", "/", "//", "b", "b/c", "/b//c/", "l/0", "l/199", "l/+7", "l/1:3", "l/0:2:10", "l/198:", "l/:2", "l/:", "l/:50:",
			"l/24:2:30", "l/-3:", "l/:-195", "l/10:-1:5", "l/1:3/1", "e/0/2", "e/0:1/0/1",
		}
		answers, err := p.read(path, f, true, texts...)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			var want any
			if err := a.store(&want); err != nil {
				t.Errorf("%q: %v", texts[i], err)
				continue
			}
			n, err := r.Find(ctx, msglc.SplitPath(texts[i].(string)))
			if err != nil {
				t.Errorf("%q: %v", texts[i], err)
				continue
			}
			v, err := n.Value(ctx)
			if err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("path %q at %v", texts[i], size), sortedText(typed(v)), sortedText(want))
		}
		for _, bad := range []string{"b/a/b", "zz", "b/c/d", "l/x", "l/1.0", "l/1:2:3:4", "e/0/zz"} {
			answers, err := p.read(path, f, true, bad)
			if err != nil {
				t.Fatal(err)
			}
			if answers[0].Error == "" {
				t.Errorf("%q: found by the original", bad)
			}
			if _, err := r.Find(ctx, msglc.SplitPath(bad)); err == nil {
				t.Errorf("%q: found", bad)
			}
		}
	}
}

// TestNumericArrays compares the blocks of arrays of numbers with those that the original makes of numpy arrays.
func TestNumericArrays(t *testing.T) {
	p := needOriginal(t)
	if !p.Numpy {
		t.Skip("no numpy")
	}
	floats := func(n int) []any { return list(n, func(i int) any { return float64(i) + 0.5 }) }
	for name, c := range map[string]struct {
		dtype string
		doc   any
		rule  msglc.NumericRule
	}{
		"floats":         {"float64", floats(1000), msglc.FloatBlocks},
		"few floats":     {"float64", floats(3), msglc.FloatBlocks},
		"rows of floats": {"float64", list(30, func(int) any { return floats(40) }), msglc.FloatBlocks},
		"integers":       {"int64", list(900, func(i int) any { return 1000 + i }), msglc.FloatAndIntBlocks},
		"plain integers": {"int64", list(900, func(i int) any { return i }), msglc.FloatBlocks},
	} {
		for _, codec := range []string{"msgpack", "cbor"} {
			for _, threshold := range []int64{20, 27, 90, 300, 8192} {
				f := format{codec: codec, backend: "python", threshold: threshold, trivial: 20, intPack: c.rule == msglc.FloatAndIntBlocks}
				t.Run(fmt.Sprintf("%s/%s/%d", name, codec, threshold), func(t *testing.T) {
					theirs, err := p.dump(filepath.Join(t.TempDir(), "doc.msg"), form("$ndarray", []any{c.dtype, typed(c.doc)}), f)
					if err != nil {
						t.Fatal(err)
					}
					o := f.write()
					o.NumericArrays = c.rule
					ours, err := msglc.Dumps(c.doc, o)
					if err != nil {
						t.Fatal(err)
					}
					sameBytes(t, "archive", ours, theirs)
					readByUs(t, f.open(t, theirs), text(typed(c.doc)), c.doc)
				})
			}
		}
	}
}
