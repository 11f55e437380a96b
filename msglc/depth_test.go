package msglc

import (
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// nestedArchives is a combined archive in a combined archive …, depth deep.
func nestedArchives(t testing.TB, depth int) []byte {
	// From the inside out the file grows in front and behind: made by its lengths first.
	magic, _ := padMagic(nil)
	core := dumps(t, int64(7), nil)
	toc := []byte{0x81, 0xa1, 't', 0x91, 0x00}
	var front []byte
	size := int64(len(core))
	prefixes := make([][]byte, depth)
	for i := range depth {
		prefixes[i] = appendPrefix(nil, magic, header{codec: value.Msgpack, tocStart: size, tocSize: int64(len(toc))})
		size += PrefixSize + int64(len(toc))
	}
	for i := depth - 1; i >= 0; i-- {
		front = append(front, prefixes[i]...)
	}
	file := append(front, core...)
	for range depth {
		file = append(file, toc...)
	}
	return file
}

// nestedTable is an archive of one byte whose table has lists nested depth deep, none of which has a range.
func nestedTable(depth int) []byte {
	var toc []byte
	for range depth {
		toc = append(toc, 0x81, 0xa1, 't', 0x91)
	}
	toc = append(toc, 0x81, 0xa1, 'p', 0x92, 0, 1)
	return archiveWithTOC(value.Msgpack, []byte{0x07}, toc)
}

// TestDeepest runs everything that recurses over small files nested as deep as the greatest limit allows, and measures
// the stack and heap that it takes.
func TestDeepest(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(64 << 20))
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	deepest(t, value.DefaultDepth-2, 12<<20)
	deepest(t, value.MaxDepth-2, 80<<20)
}

func deepest(t *testing.T, depth int, most uint64) {
	limits := value.Limits{Depth: depth + 2}
	for name, file := range map[string][]byte{"archives": nestedArchives(t, depth), "tables": nestedTable(depth)} {
		for verb, run := range map[string]func() error{
			"value": func() error {
				r := open(t, file, &Options{Limits: limits})
				_, err := r.Root().Value(t.Context())
				return err
			},
			"json": func() error {
				r := open(t, file, &Options{Limits: limits})
				return r.Root().WriteJSON(t.Context(), io.Discard, nil, nil)
			},
			"verify": func() error {
				r := open(t, file, &Options{Limits: limits})
				return r.Verify(t.Context(), &VerifyOptions{Deep: true}, func(Finding) {})
			},
			"salvage": func() error {
				_, err := Salvage(t.Context(), &buffer{}, source.Memory("deep.msg", file), &WriteOptions{Limits: limits})
				return err
			},
		} {
			debug.FreeOSMemory()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			done, peak := make(chan error), uint64(0)
			go func() { done <- run() }()
			for running := true; running; {
				select {
				case err := <-done:
					running = false
					if err != nil {
						t.Errorf("%s of %s: %v", verb, name, err)
					}
				case <-time.After(2 * time.Millisecond):
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapInuse+now.StackInuse)
				}
			}
			t.Logf("%s of %s, %d bytes: at most %d KiB beside the %d before", verb, name, len(file), (peak-min(peak, before.HeapInuse+before.StackInuse))>>10, before.HeapInuse>>10)
			if peak > before.HeapInuse+before.StackInuse+most {
				t.Errorf("%s of %s, %d bytes, takes %d bytes", verb, name, len(file), peak-before.HeapInuse-before.StackInuse)
			}
		}
	}
}
