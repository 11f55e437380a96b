package interop

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

var ctx = context.Background()

func codecOf(name string) value.Codec {
	if name == "cbor" {
		return value.CBOR
	}
	return value.Msgpack
}

func (f format) write() *msglc.WriteOptions {
	return &msglc.WriteOptions{Codec: codecOf(f.codec), Threshold: f.threshold, Trivial: f.trivial, Magic: f.magic}
}

func (f format) open(t *testing.T, archive []byte) *msglc.Reader {
	t.Helper()
	r, err := msglc.Open(ctx, source.Memory("archive", archive), &msglc.Options{Magic: f.magic})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// toFile runs a writing function on a new file and returns the bytes.
func toFile(t *testing.T, path string, write func(f *source.AtomicFile) error) []byte {
	t.Helper()
	f, err := source.CreateAtomic(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openFile(t *testing.T, path string) *msglc.Reader {
	t.Helper()
	obj, err := source.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := msglc.Open(ctx, obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// document checks everything about one document in one format: each side writes it, each side reads what the other
// wrote.
func document(t *testing.T, p *original, c testCase, f format) {
	t.Helper()
	want := text(typed(c.doc))
	path := filepath.Join(t.TempDir(), "doc.msg")
	theirs, err := p.dump(path, typed(c.doc), f)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := msglc.Dumps(c.doc, f.write())
	if err != nil {
		t.Fatal(err)
	}
	if f.backend == "python" {
		sameBytes(t, "archive", ours, theirs)
	} else {
		// The second writer draws the edges of nodes elsewhere; the payload is the same.
		a, b := f.open(t, ours).Info(), f.open(t, theirs).Info()
		sameBytes(t, "payload", ours[a.PayloadStart:a.TOCStart], theirs[b.PayloadStart:b.TOCStart])
	}
	readByUs(t, f.open(t, theirs), want, c.doc)

	if err := os.WriteFile(path, ours, 0o600); err != nil {
		t.Fatal(err)
	}
	if !c.lostInBlocks || !hasBlocks(t, f.open(t, ours).Root()) {
		readByThem(t, p, path, f, c.doc)
	}
}

// readByUs checks the whole document in every way of reading, and that a path through the table of contents leads to
// the same bytes as the path through the plain payload.
func readByUs(t *testing.T, r *msglc.Reader, want string, doc any) {
	t.Helper()
	var findings []string
	if err := r.Verify(ctx, &msglc.VerifyOptions{Deep: true}, func(f msglc.Finding) {
		if !f.Note {
			findings = append(findings, f.Err.Error())
		}
	}); err != nil || findings != nil {
		t.Errorf("verify: %v, %q", err, findings)
	}
	raw, err := r.Root().Raw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err := typedRaw(raw)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "encoded value", text(got), want)
	v, err := r.Root().Value(ctx)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Go value", sortedText(typed(v)), sortedText(typed(doc)))
	plain, err := msglc.OpenRaw(ctx, source.Memory("payload", raw.Data), raw.Codec, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := 400 // nodes to visit; the large documents have many alike
	samePaths(t, r.Root(), plain, nil, &left)
}

// samePaths compares all nodes below n with what their paths lead to in plain.
func samePaths(t *testing.T, n msglc.Node, plain *msglc.Reader, path msglc.Path, left *int) {
	t.Helper()
	if *left--; *left < 0 {
		return
	}
	b, err := plain.Find(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Raw(ctx)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	want, err := b.Raw(ctx)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if !bytes.Equal(got.Data, want.Data) {
		t.Errorf("%s: % .40x, plain % .40x", path, got.Data, want.Data)
	}
	kind, err := n.Kind(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if kind != value.Array && kind != value.Map {
		return
	}
	for child, err := range n.Children(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		below := append(path[:len(path):len(path)], child.Step())
		found, err := n.Step(ctx, child.Step())
		if err != nil {
			t.Fatal(err)
		}
		samePaths(t, found, plain, below, left)
		if *left < 0 {
			return
		}
	}
}

func hasBlocks(t *testing.T, n msglc.Node) bool {
	t.Helper()
	switch n.Form() {
	case msglc.Blocks:
		return true
	case msglc.List, msglc.Map:
		for child, err := range n.Children(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if hasBlocks(t, child.Node) {
				return true
			}
		}
	}
	return false
}

// readByThem has the original read the whole document and a sample of paths, with and without its cache.
func readByThem(t *testing.T, p *original, path string, f format, doc any) {
	t.Helper()
	for _, cached := range []bool{true, false} {
		asked, want := []any{nil}, []any{doc}
		sample(doc, []any{}, func(path []any, v any) {
			if len(asked) < 30 {
				asked, want = append(asked, path), append(want, v)
			}
		})
		// The whole last, so that the paths are not answered from it. It then holds its pairs in the order in which they were
		// read, where there is a cache.
		compare := text
		if cached {
			compare = sortedText
		}
		asked, want = append(asked[1:], asked[0]), append(want[1:], want[0])
		answers, err := p.read(path, f, cached, asked...)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			var got any
			if err := a.store(&got); err != nil {
				t.Errorf("path %s: %v", text(asked[i]), err)
				continue
			}
			same(t, fmt.Sprintf("path %s, cached %v", text(asked[i]), cached), compare(got), compare(typed(want[i])))
		}
	}
}

// sample calls visit for children at the start, the middle and the end of every container. The steps are typed JSON.
func sample(v any, path []any, visit func(path []any, v any)) {
	step := func(key, item any) {
		below := append(path[:len(path):len(path)], key)
		visit(below, item)
		sample(item, below, visit)
	}
	pick := func(i, n int) bool { return i < 2 || i == n/2 || i == n-1 }
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if pick(i, len(v)) {
				step(i, item)
			}
		}
	case value.OrderedMap:
		for i, pair := range v {
			if pick(i, len(v)) && pair.Key != "" { // which the original skips in a path
				step(typed(pair.Key), pair.Value)
			}
		}
	}
}

func TestDocuments(t *testing.T) {
	p := needOriginal(t)
	for _, c := range cases() {
		for _, codec := range []string{"msgpack", "cbor"} {
			if c.codec != "" && c.codec != codec {
				continue
			}
			for _, backend := range []string{"python", "rust"} {
				if backend == "rust" && (c.onlyPython || !p.Rust) {
					continue
				}
				for i, size := range sizes {
					if c.large && i%3 != 0 {
						continue
					}
					f := format{codec: codec, backend: backend, threshold: size[0], trivial: size[1]}
					t.Run(fmt.Sprintf("%s/%s/%s/%d-%d", c.name, codec, backend, size[0], size[1]), func(t *testing.T) {
						document(t, p, c, f)
					})
				}
			}
		}
	}
}

func TestRandomDocuments(t *testing.T) {
	p := needOriginal(t)
	n := 150
	if testing.Short() {
		n = 30
	}
	for i := range n {
		r := rand.New(rand.NewPCG(2026, uint64(i)))
		c := testCase{doc: randomDoc(r, 4)}
		f := format{codec: []string{"msgpack", "cbor"}[r.IntN(2)], backend: "python", threshold: 1 + r.Int64N(1<<r.IntN(12))}
		f.trivial = 1 + r.Int64N(min(f.threshold, 64))
		if p.Rust && r.IntN(3) == 0 {
			f.backend = "rust"
		}
		t.Run(fmt.Sprintf("%d/%s/%s/%d-%d", i, f.codec, f.backend, f.threshold, f.trivial), func(t *testing.T) {
			document(t, p, c, f)
		})
	}
}

// The second writer of the original closes blocks behind the threshold, not at it. Readers take both; this holds the
// difference fast, so that a change of it is seen.
func TestSecondWriterEdges(t *testing.T) {
	p := needOriginal(t)
	if !p.Rust {
		t.Skip("no second writer")
	}
	doc := typed(list(500, func(i int) any { return i }))
	for backend, want := range map[string]int64{"python": 20, "rust": 21} {
		f := format{codec: "msgpack", backend: backend, threshold: 20, trivial: 20}
		archive, err := p.dump(filepath.Join(t.TempDir(), "doc.msg"), doc, f)
		if err != nil {
			t.Fatal(err)
		}
		var toc bytes.Buffer
		if err := f.open(t, archive).Root().WriteTOC(ctx, &toc, nil, nil); err != nil {
			t.Fatal(err)
		}
		if prefix := fmt.Sprintf(`{"p":[[%d,3,%d],`, want, want+3); !bytes.HasPrefix(toc.Bytes(), []byte(prefix)) {
			t.Errorf("%s: %.40s…, want %s…", backend, toc.Bytes(), prefix)
		}
	}
}
