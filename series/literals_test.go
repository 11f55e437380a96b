package series

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// testZip is an encoder as writers have it.
func testZip(t testing.TB) *zstd.Encoder {
	t.Helper()
	w, err := NewWriter(t.Context(), kept{}, &Manifest{}, &WriteOptions{Zstd: true})
	if err != nil {
		t.Fatal(err)
	}
	return w.zip
}

// numberShapes are kinds of TSIDs.
var numberShapes = map[string]func(r *rand.Rand, n int) []uint64{
	"random":     func(r *rand.Rand, n int) []uint64 { return numbers(n, func(int) uint64 { return r.Uint64() }) },
	"of 40 bits": func(r *rand.Rand, n int) []uint64 { return numbers(n, func(int) uint64 { return r.Uint64() >> 24 }) },
	"hashes above": func(r *rand.Rand, n int) []uint64 {
		return numbers(n, func(int) uint64 { return r.Uint64() >> 32 << 32 })
	},
	"sequential": func(r *rand.Rand, n int) []uint64 { return numbers(n, func(i int) uint64 { return uint64(i) }) },
	"one step": func(r *rand.Rand, n int) []uint64 {
		return numbers(n, func(i int) uint64 { return uint64(i) * 0x123456789abc })
	},
	"three steps": func(r *rand.Rand, n int) []uint64 {
		return numbers(n, func(i int) uint64 { return uint64(i/3)<<41 + uint64(i%3)*7e9 })
	},
	"small steps": func(r *rand.Rand, n int) []uint64 {
		x := uint64(0)
		return numbers(n, func(int) uint64 { x += r.Uint64N(1000); return x })
	},
	"clusters": func(r *rand.Rand, n int) []uint64 {
		x := uint64(0)
		return numbers(n, func(i int) uint64 {
			if x++; i%100 == 0 {
				x = r.Uint64()
			}
			return x
		})
	},
	"random and sequential": func(r *rand.Rand, n int) []uint64 {
		return numbers(n, func(i int) uint64 {
			if i < n/2 {
				return r.Uint64() >> 1
			}
			return 1<<63 + uint64(i)
		})
	},
}

func numbers(n int, of func(i int) uint64) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = of(i)
	}
	slices.Sort(v)
	return v
}

// codeShapes are kinds of labels: the number of the value of each series.
var codeShapes = map[string]func(r *rand.Rand, i int) int{
	"constant":          func(r *rand.Rand, i int) int { return 7 },
	"two":               func(r *rand.Rand, i int) int { return r.IntN(2) },
	"six":               func(r *rand.Rand, i int) int { return r.IntN(6) },
	"hundred":           func(r *rand.Rand, i int) int { return r.IntN(100) },
	"thousands":         func(r *rand.Rand, i int) int { return r.IntN(5000) },
	"seldom":            func(r *rand.Rand, i int) int { return max(0, r.IntN(100)-96) },
	"few are frequent":  func(r *rand.Rand, i int) int { x := r.Float64(); return int(40 * x * x * x) },
	"all differ":        func(r *rand.Rand, i int) int { return i },
	"in turn":           func(r *rand.Rand, i int) int { return i % 5 },
	"in turn, many":     func(r *rand.Rand, i int) int { return i % 1000 },
	"in long turns":     func(r *rand.Rand, i int) int { return int(uint32(i%700)*2654435761>>16) % 50 },
	"runs":              func(r *rand.Rand, i int) int { return int(uint32(i/20)*2654435761>>16) % 50 },
	"short runs":        func(r *rand.Rand, i int) int { return int(uint32(i/4)*2654435761>>16) % 50 },
	"random, then runs": func(r *rand.Rand, i int) int { return []int{r.IntN(30), i / 100 % 30}[i/1000%2] },
	"phrases of ten":    func(r *rand.Rand, i int) int { return int(uint32(i/10*i%7)*2654435761>>16) % 50 },
}

// valueTexts are kinds of values: most of one length, with more or less that is the same and that differs.
var valueTexts = []func(v int) string{
	func(v int) string { return fmt.Sprintf("value-%05d", v) },
	func(v int) string { return fmt.Sprintf("%04d", v) },
	func(v int) string { return fmt.Sprintf("host-%d.example.org", v) },
	func(v int) string { return fmt.Sprintf("%-18s-%06x", "a", uint32(v)*2654435761>>8) },
	func(v int) string { return fmt.Sprintf("%-70s%016x", "b", uint64(v)*0x9E3779B185EBCA87) },
	func(v int) string { return fmt.Sprintf("%-200s%05d", "c", v) },
	func(v int) string { return fmt.Sprintf("%020d", v*7) },
	func(v int) string { return fmt.Sprintf("%08x-zone-%d", uint32(v)*2654435761, v%4) },
	func(v int) string { return fmt.Sprintf("%-300d", v) },
}

// shapedChunks gives chunks of all shapes and several sizes, with the number of bytes in front of the numbers.
func shapedChunks(most int) iter.Seq2[string, func() (p []byte, front int)] {
	return func(yield func(string, func() ([]byte, int)) bool) {
		for _, n := range []int{1, 2, 3, 10, 33, 100, 300, 1000, 3000, DefaultBlockSeries, 20_000, 150_000} {
			if n > most {
				return
			}
			for name, shape := range numberShapes {
				if !yield(fmt.Sprintf("%d numbers, %s", n, name), func() ([]byte, int) {
					return appendDeltas(nil, shape(rand.New(rand.NewPCG(1, uint64(n))), n)), 0
				}) {
					return
				}
			}
			for name, shape := range codeShapes {
				for i, text := range valueTexts {
					if i > 0 && name != "thousands" && name != "few are frequent" {
						continue
					}
					if !yield(fmt.Sprintf("%d codes, %s, value %d", n, name, i), func() ([]byte, int) {
						r := rand.New(rand.NewPCG(2, uint64(n)))
						b := newBlockBuilder([]Tag{{1, "x"}})
						for i := range n {
							b.add(&record{count: 1, has: []bool{true}, values: []string{text(shape(r, i))}})
						}
						c := &b.cols[0]
						p := appendDict(nil, c.values, c.codes)
						return p, len(p) - c.size
					}) {
						return
					}
				}
			}
		}
	}
}

func TestLiterals(t *testing.T) {
	zip := testZip(t)
	used := &literals{}
	for name, make := range shapedChunks(150_000) {
		p, front := make()
		packed := used.pack(p, front, zip)
		if !bytes.Equal(packed, (&literals{}).pack(p, front, zip)) {
			t.Errorf("%s: the bytes depend on what was compressed before", name)
		}
		shape, err := shapeOf(packed)
		if err != nil || shape.frames != 1 || shape.skippable != 0 || shape.most < uint64(len(p)) {
			t.Errorf("%s: %+v, %v", name, shape, err)
		}
		ref, b := stored(p, packed, encodingDict)
		if got, err := ref.decode(b); err != nil || !bytes.Equal(got, p) {
			t.Errorf("%s: decoded to %d bytes, want %d: %v", name, len(got), len(p), err)
		}
		plain := zip.EncodeAll(p, nil)
		if most := len(plain) + max(8, len(plain)/200); min(len(packed), len(p)) > min(most, len(p)) {
			t.Errorf("%s: %d bytes of %d, the ordinary encoder makes %d", name, len(packed), len(p), len(plain))
		}
	}
}

// TestLiteralsZstd has the original read the frames.
func TestLiteralsZstd(t *testing.T) {
	program := os.Getenv("SPILE_ZSTD")
	if program == "" {
		var err error
		if program, err = exec.LookPath("zstd"); err != nil {
			t.Skip("no program zstd; SPILE_ZSTD can name one")
		}
	}
	zip, l := testZip(t), &literals{}
	var frames, want []byte // the program reads frames in a row
	for _, make := range shapedChunks(150_000) {
		p, front := make()
		frames, want = append(frames, l.pack(p, front, zip)...), append(want, p...)
	}
	path := filepath.Join(t.TempDir(), "frames.zst")
	if err := os.WriteFile(path, frames, 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-d", "-c", path)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if got, err := c.Output(); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, want %d: %v %s", len(got), len(want), err, &stderr)
	}
}

// Above 8 MiB the head has a window in place of a single segment.
func TestLiteralsLong(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := make([]byte, 8<<20+1)
	for i := range p {
		p[i] = byte(r.IntN(100))
	}
	for _, n := range []int{8 << 20, 8<<20 + 1} {
		for _, front := range []int{0, 1 << 20} {
			packed := (&literals{}).pack(p[:n], front, testZip(t))
			ref, b := stored(p[:n], packed, encodingDict)
			if got, err := ref.decode(b); err != nil || !bytes.Equal(got, p[:n]) {
				t.Errorf("%d bytes, %d in front: %v", n, front, err)
			}
			d, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(8<<20))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.DecodeAll(packed, nil); err != nil {
				t.Errorf("%d bytes, %d in front: a window above 8 MiB: %v", n, front, err)
			}
			d.Close()
		}
	}
}

func FuzzLiterals(f *testing.F) {
	for _, make := range shapedChunks(300) {
		p, front := make()
		f.Add(p, front)
	}
	zip, used := testZip(f), &literals{}
	f.Fuzz(func(t *testing.T, p []byte, front int) {
		if len(p) == 0 {
			return
		}
		front = int(uint(front) % uint(len(p)))
		packed := used.pack(p, front, zip)
		ref, b := stored(p, packed, encodingDict)
		if got, err := ref.decode(b); err != nil || !bytes.Equal(got, p) {
			t.Fatalf("decoded to %d bytes, want %d: %v", len(got), len(p), err)
		}
		if !bytes.Equal(packed, (&literals{}).pack(p, front, zip)) {
			t.Fatal("the bytes depend on what was compressed before")
		}
	})
}

func BenchmarkLiterals(b *testing.B) {
	zip, l := testZip(b), &literals{}
	r := rand.New(rand.NewPCG(1, 2))
	tsids := appendDeltas(nil, numbers(DefaultBlockSeries, func(int) uint64 { return r.Uint64() }))
	codes := make([]uint32, DefaultBlockSeries)
	for i := range codes {
		codes[i] = 1 + r.Uint32N(3)
	}
	label := appendDict(nil, []string{"one", "two", "three"}, codes)
	for _, c := range []struct {
		name  string
		p     []byte
		front int
	}{{"tsids", tsids, 0}, {"label", label, len(label) - len(codes)}} {
		for _, as := range []struct {
			name string
			pack func([]byte) []byte
		}{
			{"literals", func(p []byte) []byte { return l.pack(p, c.front, zip) }},
			{"ordinary", func(p []byte) []byte { return zip.EncodeAll(p, make([]byte, 0, len(p))) }},
		} {
			b.Run(c.name+"/"+as.name, func(b *testing.B) {
				b.SetBytes(int64(len(c.p)))
				size := 0
				for b.Loop() {
					size = len(as.pack(c.p))
				}
				b.ReportMetric(float64(size)/DefaultBlockSeries, "B/series")
			})
		}
	}
}
