package interop

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// piece is one document that goes into a combined one.
type piece struct {
	name  string
	codec string
	doc   any
}

func pieces() []piece {
	return []piece{
		{"one", "msgpack", m("x", 1, "long", list(60, func(i int) any { return i }))},
		{"two", "cbor", []any{true, "zwei", list(40, func(i int) any { return float64(i) })}},
		{"", "msgpack", "a scalar"}, // the empty name
		{"a/b", "cbor", wide(50)},
	}
}

// TestCombine lets each side combine the same parts, as a list and as a map, in both codecs, and each side read both.
// The parts are written by the two sides in turn. The bytes must be equal.
func TestCombine(t *testing.T) {
	p := needOriginal(t)
	for _, codec := range []string{"msgpack", "cbor"} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/named %v", codec, named), func(t *testing.T) {
				dir := t.TempDir()
				outer := format{codec: codec, backend: "python", threshold: 32, trivial: 16}
				doc, theirParts := writePieces(t, p, dir, outer, named)
				theirPath, ourPath := filepath.Join(dir, "theirs.msg"), filepath.Join(dir, "ours.msg")

				theirs, err := p.combine(theirPath, outer, false, theirParts[:3]...)
				if err != nil {
					t.Fatal(err)
				}
				ours := toFile(t, ourPath, func(f *source.AtomicFile) error {
					return msglc.Combine(ctx, f, ourParts(t, theirParts[:3]), &msglc.CombineOptions{Named: named, WriteOptions: *outer.write()})
				})
				sameBytes(t, "combined", ours, theirs)

				// Each side appends to what the other made.
				if err := msglc.Append(ctx, theirPath, ourParts(t, theirParts[3:]), &msglc.CombineOptions{Named: named, WriteOptions: *outer.write()}); err != nil {
					t.Fatal(err)
				}
				if ours, err = p.combine(ourPath, outer, true, theirParts[3:]...); err != nil {
					t.Fatal(err)
				}
				if theirs, err = os.ReadFile(theirPath); err != nil {
					t.Fatal(err)
				}
				sameBytes(t, "appended", theirs, ours)

				checkCombined(t, p, ourPath, outer, doc)

				// One level more, and the copying out of a child.
				deepPath := filepath.Join(dir, "deep.msg")
				name := "inner"
				inner := part{Path: ourPath, Name: &name}
				deep := toFile(t, deepPath, func(f *source.AtomicFile) error {
					return msglc.Combine(ctx, f, ourParts(t, []part{inner}), &msglc.CombineOptions{Named: true, WriteOptions: *outer.write()})
				})
				theirDeep, err := p.combine(filepath.Join(dir, "deeper.msg"), outer, false, inner)
				if err != nil {
					t.Fatal(err)
				}
				sameBytes(t, "combined twice", deep, theirDeep)
				checkCombined(t, p, deepPath, outer, m("inner", doc))

				for of, payload := range map[string]bool{"inner": false, "inner/1": true, "inner/one": true} {
					if named != (of != "inner/1") && of != "inner" {
						continue
					}
					want, err := p.raw(deepPath, outer, of, payload)
					if err != nil {
						t.Fatal(err)
					}
					n, err := openFile(t, deepPath).Find(ctx, msglc.SplitPath(of))
					if err != nil {
						t.Fatal(err)
					}
					child, err := n.Archive(ctx)
					if err != nil {
						t.Fatal(err)
					}
					from := child.RawData(ctx)
					if payload {
						from = child.ProtocolRawData(ctx)
					}
					got, err := io.ReadAll(from)
					if err != nil {
						t.Fatal(err)
					}
					sameBytes(t, "bytes of "+of, got, want)
				}
			})
		}
	}
}

// writePieces writes the pieces, in turn by each side, and returns the document that they make.
func writePieces(t *testing.T, p *original, dir string, f format, named bool) (doc any, parts []part) {
	t.Helper()
	asMap, asList := value.OrderedMap{}, []any{}
	for i, c := range pieces() {
		path := filepath.Join(dir, fmt.Sprintf("part%d.msg", i))
		f.codec = c.codec
		if i%2 == 0 {
			if _, err := p.dump(path, typed(c.doc), f); err != nil {
				t.Fatal(err)
			}
		} else if err := msglc.Dump(ctx, path, c.doc, f.write()); err != nil {
			t.Fatal(err)
		}
		out := part{Path: path}
		if named {
			out.Name = &c.name
		}
		parts = append(parts, out)
		asMap = append(asMap, value.Pair{Key: c.name, Value: c.doc})
		asList = append(asList, c.doc)
	}
	if named {
		return asMap, parts
	}
	return asList, parts
}

func ourParts(t *testing.T, parts []part) []msglc.Part {
	t.Helper()
	var out []msglc.Part
	for _, p := range parts {
		obj, err := source.OpenFile(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { obj.Close() })
		one := msglc.Part{Object: obj}
		if p.Name != nil {
			one.Name = *p.Name
		}
		out = append(out, one)
	}
	return out
}

// checkCombined has both sides read a combined document whole and by paths.
func checkCombined(t *testing.T, p *original, path string, f format, doc any) {
	t.Helper()
	r := openFile(t, path)
	v, err := r.Root().Value(ctx)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Go value", sortedText(typed(v)), sortedText(typed(doc)))
	if err := r.Verify(ctx, &msglc.VerifyOptions{Deep: true}, func(f msglc.Finding) { t.Errorf("finding: %v", f.Err) }); err != nil {
		t.Fatal(err)
	}
	// The original splits a step of a list that leads into a child archive at "/" again, and skips the empty key. Both
	// are left out of the sample, as is the whole without a cache, of which it keeps the last item only.
	var paths, want []any
	sample(doc, nil, func(path []any, v any) {
		for _, step := range path {
			if step == "a/b" || step == "" {
				return
			}
		}
		paths, want = append(paths, path), append(want, v)
	})
	paths, want = append(paths, nil), append(want, doc)
	answers, err := p.read(path, f, true, paths...)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		var got any
		if err := a.store(&got); err != nil {
			t.Errorf("original, path %s: %v", text(paths[i]), err)
			continue
		}
		same(t, "original, path "+text(paths[i]), text(got), text(typed(want[i])))
		if paths[i] == nil {
			continue
		}
		var steps msglc.Path
		for _, step := range paths[i].([]any) {
			if n, ok := step.(int); ok {
				steps = append(steps, msglc.IndexStep(int64(n)))
			} else {
				steps = append(steps, msglc.TextStep(step.(string)))
			}
		}
		n, err := r.Find(ctx, steps)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = n.Value(ctx); err != nil {
			t.Fatal(err)
		}
		same(t, "path "+steps.String(), sortedText(typed(v)), sortedText(typed(want[i])))
	}
}

// TestAppendRefused: what cannot be appended is refused by both sides, and the file stays as it was.
func TestAppendRefused(t *testing.T) {
	p := needOriginal(t)
	dir := t.TempDir()
	f := format{codec: "msgpack", backend: "python", threshold: 32, trivial: 16}
	one, two := filepath.Join(dir, "one.msg"), filepath.Join(dir, "two.msg")
	for _, path := range []string{one, two} {
		if _, err := p.dump(path, typed(m("x", 1)), f); err != nil {
			t.Fatal(err)
		}
	}
	a, b := "a", "b"
	named := filepath.Join(dir, "named.msg")
	before, err := p.combine(named, f, false, part{one, &a})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		path string
		part part
	}{
		"a name that is there":          {named, part{two, &a}},
		"no name in a map":              {named, part{two, nil}},
		"a document that is no archive": {one, part{two, &b}},
	} {
		if _, err := p.combine(c.path, f, true, c.part); err == nil {
			t.Errorf("%s: taken by the original", what)
		}
		if c.path == named { // the original may leave its own mark on a file that it refuses
			if err := os.WriteFile(named, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := msglc.Append(ctx, c.path, ourParts(t, []part{c.part}), &msglc.CombineOptions{Named: c.part.Name != nil, WriteOptions: *f.write()})
		if !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", what, err)
		}
		if after, err := os.ReadFile(named); err != nil {
			t.Fatal(err)
		} else {
			sameBytes(t, what, after, before)
		}
	}
}
