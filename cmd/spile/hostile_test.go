package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// everyVerb are command lines that read FILE and, some of them, write OUT.
var everyVerb = []string{
	"info FILE", "ls FILE", "get FILE a", "cat FILE", "du --levels 5 FILE", "toc FILE", "verify FILE", "verify --deep FILE",
	"unpack FILE -o OUT", "extract FILE a -o OUT", "pack FILE -o OUT", "index FILE -o OUT", "index --sidecar FILE -o TOC",
	"combine FILE FILE -o OUT", "repair FILE -o OUT", "salvage FILE -o OUT", "query FILE .a",
}

// tryEveryVerb demands of each verb that it fails as a command should, or ends with a result.
func tryEveryVerb(t *testing.T, file string) {
	t.Helper()
	dir := t.TempDir()
	for _, line := range everyVerb {
		args := strings.Fields(line)
		writes := false
		for i, arg := range args {
			switch arg {
			case "FILE":
				args[i] = file
			case "OUT":
				args[i], writes = filepath.Join(dir, "out"), true
			case "TOC":
				args[i], writes = filepath.Join(dir, filepath.Base(file)+".toc"), true
			}
		}
		begun := time.Now()
		out, errs, status := command(t, args...)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: %v", line, took)
		}
		failed := status == statusFailed
		switch {
		case status != statusDone && status != statusPartial && !failed:
			t.Errorf("%s: status %d, %s", line, status, errs)
		case args[0] == "verify" && failed:
			if out == "" || errs != "" {
				t.Errorf("%s: no finding, %s", line, errs)
			}
		case failed && (out != "" || !strings.HasPrefix(errs, "spile: "+file+": ") || strings.Count(errs, "\n") != 1):
			t.Errorf("%s: standard output %q, standard error %q", line, out, errs)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if wrote := len(left) > 0; wrote != (writes && !failed) {
			t.Errorf("%s: status %d, and the folder holds %v", line, status, left)
		}
		for _, f := range left {
			os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}

// TestHostile gives every verb the hostile files of the conformance vectors.
func TestHostile(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectorFolder, "bad_*.msg"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files in %s, %v", len(files), vectorFolder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { tryEveryVerb(t, file) })
	}
}

// TestDamaged gives every verb files of all formats with some bytes changed, cut off or put in.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "document")
	text := `{"a":[1,2.5,"text",{"b":null,"c":[true,false]}],"d":{"e":"` + strings.Repeat("long ", 30) + `","f":[[],{}]}}`
	sources := []string{text}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"msgpack", "cbor"} {
		for _, line := range []string{
			"pack --threshold 16 --trivial 4 --codec " + codec + " DIR/text -o DIR/document",
			"unpack DIR/document -o DIR/plain",
			"combine --codec " + codec + " x=DIR/document a=DIR/document -o DIR/combined",
		} {
			if _, errs, status := command(t, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...); status != 0 {
				t.Fatal(errs)
			}
		}
		for _, name := range []string{"document", "plain", "combined"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, string(content))
		}
	}
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		for _, source := range sources {
			b := []byte(source)
			for range 1 + r.IntN(3) {
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
			if err := os.WriteFile(document, b, 0o666); err != nil {
				t.Fatal(err)
			}
			tryEveryVerb(t, document)
			if t.Failed() {
				t.Fatalf("with the bytes %q", b)
			}
		}
	}
}

// overlapping writes a combined file of which each level lists the one below ten times: as values they would be 10^13.
func overlapping(t *testing.T) string {
	t.Helper()
	file, err := msglc.Dumps(int64(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 13 {
		const c = value.Msgpack
		toc := value.AppendArrayHeader(value.AppendString(value.AppendMapHeader(nil, c, 1), c, "t"), c, 10)
		for range 10 {
			toc = value.AppendUint(toc, c, 0)
		}
		prefix := paddedMagic(nil)
		for _, n := range []int{len(file), len(toc)} {
			number := value.AppendUint(nil, c, uint64(n))
			prefix = append(append(prefix, make([]byte, 10-len(number))...), number...)
		}
		file = append(append(prefix, file...), toc...)
	}
	name := filepath.Join(t.TempDir(), "overlap.msg")
	if err := os.WriteFile(name, file, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// overlapAt is what is said of children that overlap: with file, path and offset.
var overlapAt = regexp.MustCompile(`^spile: \S*overlap.msg: [0-9][0-9/]*: children overlap: [^\n]* \(offset 0x[0-9a-f]+\)\n$`)

// TestOverlap demands an error, soon, of what enters archives that overlap.
func TestOverlap(t *testing.T) {
	file := overlapping(t)
	tryEveryVerb(t, file)
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{
		{"pack", file, "-o", out}, {"du", "--levels", "13", file}, {"cat", file}, {"query", file, "[.]|length"},
		{"query", file, "[.[]]|.[0]"}, {"query", file, ".[1:3]|tojson|length"},
	} {
		begun := time.Now()
		stdout, errs, status := command(t, args...)
		if status != statusFailed || !overlapAt.MatchString(errs) {
			t.Errorf("%q: status %d, %.200s%s", args, status, stdout, errs)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%q: %v", args, took)
		}
	}
	// What is kept of it is the first part of each level.
	if _, errs, status := command(t, "salvage", file, "-o", out); status != statusPartial || !strings.Contains(errs, "children overlap") {
		t.Errorf("salvage: status %d, %s", status, errs)
	}
	if stdout, errs, _ := command(t, "cat", out); strings.Trim(stdout, "[]\n") != "1" {
		t.Errorf("%s%s", stdout, errs)
	}
}
