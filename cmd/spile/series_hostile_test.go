package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seriesVerbs are command lines that read the artifact DIR.
var seriesVerbs = []string{
	"info DIR", "ls DIR", "ls DIR part-0", "ls DIR part-0/0", "ls DIR part-0/0/0", "du --levels 3 DIR", "get DIR 1026/7", "get DIR */host",
	"cat DIR", "verify DIR", "verify --deep DIR", "info DIR/part-0.series", "cat DIR/part-0.series", "verify --deep DIR/part-0.series",
	"info DIR/manifest.json", "verify --deep DIR/manifest.json", "du --format series DIR/part-0.series",
}

// TestDamagedArtifacts gives the verbs artifacts with some bytes changed, cut off or put in: each fails as a command should,
// or ends with a result. What verify --deep finds nothing in, cat prints as it was.
func TestDamagedArtifacts(t *testing.T) {
	rounds := 36
	if testing.Short() {
		rounds = 10
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, vector := range []string{"example-b1", "example-b2", "zstd-one-block"} {
		v := readSeriesVector(t, filepath.Join(seriesFolder, vector+".json"))
		files := make(map[string][]byte)
		for _, name := range []string{"manifest.json", "part-0.series"} {
			b, err := os.ReadFile(filepath.Join(v.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = b
		}
		whole, _, _ := command(t, "cat", v.dir)
		dir := t.TempDir()
		for round := range rounds {
			damaged := []string{"part-0.series", "part-0.series", "manifest.json"}[round%3]
			for name, content := range files {
				b := append([]byte(nil), content...)
				for range 1 + r.IntN(2) {
					if name != damaged {
						break
					}
					i := r.IntN(len(b))
					switch r.IntN(4) {
					case 0:
						b[i] ^= 1 << r.IntN(8)
					case 1:
						b[i] = byte(r.Uint32())
					case 2:
						b = append(b[:i:i], append([]byte{byte(r.Uint32())}, b[i:]...)...)
					case 3:
						b = b[:i+1]
					}
				}
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for _, line := range seriesVerbs {
				args := strings.Fields(strings.ReplaceAll(line, "DIR", dir))
				out, errs, status := command(t, args...)
				switch {
				case status != statusDone && status != statusFailed && status != statusPartial:
					t.Errorf("%s: status %d, %s", line, status, errs)
				case args[0] == "verify" && status == statusFailed && out == "":
					t.Errorf("%s: no finding, %s", line, errs)
				case args[0] != "verify" && status == statusFailed && (!strings.HasPrefix(errs, "spile: "+dir) || strings.Count(errs, "\n") != 1):
					t.Errorf("%s: standard error %q", line, errs)
				}
			}
			if _, _, status := command(t, "verify", "--deep", dir); status == 0 && damaged != "manifest.json" {
				if out, errs, _ := command(t, "cat", dir); out != whole {
					t.Errorf("cat: %s%s", out, errs)
				}
			}
			if t.Failed() {
				t.Fatalf("%s, round %d, %s is damaged", vector, round, damaged)
			}
		}
	}
}
