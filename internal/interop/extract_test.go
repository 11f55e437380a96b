package interop

import (
	"path/filepath"
	"testing"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
)

// TestExtract copies sub-trees out of documents of the original; the original reads them, and its own writer makes the
// same bytes of the same value.
func TestExtract(t *testing.T) {
	p := needOriginal(t)
	for _, c := range cases() {
		for _, codec := range []string{"msgpack", "cbor"} {
			if c.codec != "" && c.codec != codec || c.lostInBlocks {
				continue
			}
			t.Run(c.name+"/"+codec, func(t *testing.T) {
				dir := t.TempDir()
				f := format{codec: codec, backend: "python", threshold: 64, trivial: 16}
				whole := filepath.Join(dir, "whole.msg")
				if _, err := p.dump(whole, typed(c.doc), f); err != nil {
					t.Fatal(err)
				}
				r := openFile(t, whole)
				left := 12
				sample(c.doc, nil, func(path []any, v any) {
					if left--; left < 0 {
						return
					}
					var steps msglc.Path
					for _, step := range path {
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
					out := filepath.Join(dir, "extracted.msg")
					got := toFile(t, out, func(dst *source.AtomicFile) error { return msglc.Extract(ctx, dst, n, f.write()) })
					readByThem(t, p, out, f, v)
					want, err := p.dump(filepath.Join(dir, "anew.msg"), typed(v), f)
					if err != nil {
						t.Fatal(err)
					}
					sameBytes(t, "extracted "+steps.String(), got, want)
				})
			})
		}
	}
}
