package msglc

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// TestVectors writes every vector that a writer must give byte for byte.
func TestVectorsWritten(t *testing.T) {
	written := 0
	for _, v := range loadVectors(t) {
		if v.Writer == nil || !v.Writer.Exact {
			continue
		}
		written++
		t.Run(v.Name, func(t *testing.T) {
			got := v.Writer.make(t, &v)
			if int64(len(got)) != v.Size || hash(got) != v.SHA256 {
				if v.File != nil {
					diff(t, got, v.bytes(t))
				}
				t.Fatalf("%d bytes of hash %s, expected %d of %s", len(got), hash(got), v.Size, v.SHA256)
			}
			if v.File == nil && hex.EncodeToString(got[:64]) != v.First64 {
				t.Errorf("begins with %x, expected %s", got[:64], v.First64)
			}
		})
	}
	if written < 70 {
		t.Errorf("%d vectors to write", written)
	}
}

// make follows the recipe.
func (w *vectorWriter) make(t *testing.T, v *vector) []byte {
	c := codecOf(t, w.Codec)
	var parts []Part
	named := false
	for _, p := range w.Parts {
		part := Part{Object: source.Memory("part", p.Archive.make(t, v))}
		if p.Name != nil {
			part.Name, named = *p.Name, true
		}
		parts = append(parts, part)
	}
	switch w.Op {
	case "combine":
		var b buffer
		if err := Combine(t.Context(), &b, parts, &CombineOptions{Named: named, WriteOptions: *w.Options.write(c)}); err != nil {
			t.Fatal(err)
		}
		return b
	case "append":
		path := filepath.Join(t.TempDir(), "combined.msg")
		if err := os.WriteFile(path, w.Base.make(t, v), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Append(t.Context(), path, parts, &CombineOptions{Named: named, WriteOptions: WriteOptions{Codec: c}}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	case "dump":
		x := v.Value
		if w.hasValue {
			x = w.Value
		}
		o := w.Options
		if o == nil {
			o = &v.Options
		}
		return archiveOf(t, appendTyped(nil, c, typedValue(x)), o.write(c))
	}
	t.Fatalf("unknown op %q", w.Op)
	return nil
}

func diff(t *testing.T, got, want []byte) {
	t.Helper()
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	t.Errorf("differs at %#x:\ngot  % x\nwant % x", i, got[i:min(i+40, len(got))], want[i:min(i+40, len(want))])
}

// TestNumericVectors writes the arrays of the original's numeric rule.
func TestNumericVectors(t *testing.T) {
	for _, v := range loadVectors(t) {
		if v.Name != "numpy_1d_blocks" && v.Name != "numpy_1d_single_block" && v.Name != "numpy_2d" {
			continue
		}
		o := v.Options.write(value.Msgpack)
		o.NumericArrays = FloatBlocks
		got := archiveOf(t, appendTyped(nil, value.Msgpack, typedValue(v.Value)), o)
		if !bytes.Equal(got, v.bytes(t)) {
			diff(t, got, v.bytes(t))
		}
	}
}
