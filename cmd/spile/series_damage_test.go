package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// answer is what a run of the command gave.
type answer struct {
	line      string
	out, errs string
	status    int
}

func (a answer) String() string {
	return fmt.Sprintf("%s: status %d, %s%s", a.line, a.status, a.out, a.errs)
}

func asked(t *testing.T, args ...string) answer {
	t.Helper()
	out, errs, status := command(t, args...)
	return answer{strings.Join(args, " "), out, errs, status}
}

// failed demands that a run has failed as a command should: a line that names the check, and no result.
func (a answer) failed(t *testing.T, check int) {
	t.Helper()
	if a.status != statusFailed || !strings.HasPrefix(a.errs, "spile: ") || strings.Count(a.errs, "\n") != 1 || check > 0 && !strings.Contains(a.errs, fmt.Sprintf("check %d: ", check)) {
		t.Errorf("%s; want a failure of check %d", a, check)
	}
}

// What compares, counts and redacts meets every bad artifact: alone, where it fails with the check that reading it fails with,
// and in a folder beside a good one, which gives the answer then.
func TestBadVectorsComparedCountedRedacted(t *testing.T) {
	good := readSeriesVector(t, filepath.Join(seriesFolder, "example-b1.json"))
	goodSelect, goodAnalysis := asked(t, "series", "select", "--mode", "native", good.dir, "{}"), asked(t, "series", "analyze", "--csv", good.dir)
	for _, name := range seriesVectors(t, "bad/*.json", 50) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			v := readSeriesVector(t, name)
			cat := asked(t, "cat", v.dir)
			check := 0
			if i := strings.Index(cat.errs, "check "); i >= 0 {
				fmt.Sscanf(cat.errs[i:], "check %d:", &check)
			}
			redacted := filepath.Join(t.TempDir(), "out")
			redact := asked(t, "series", "redact", v.dir, "-o", redacted)
			ab, ba := asked(t, "series", "compare", v.dir, good.dir), asked(t, "series", "compare", "--json", good.dir, v.dir)
			if cat.status == statusDone { // what only a verifier finds
				if redact.status != statusDone || ab.errs+ba.errs != "" {
					t.Error(redact, ab, ba)
				}
			} else {
				redact.failed(t, check)
				ab.failed(t, check)
				ba.failed(t, check)
				if _, err := os.Stat(redacted); !os.IsNotExist(err) {
					t.Errorf("something is left: %v", err)
				}
			}
			analyze := asked(t, "series", "analyze", v.dir)
			if analyze.status != statusDone { // a chunk that is not needed is not read
				analyze.failed(t, check)
			}
			store := t.TempDir()
			for _, from := range []*seriesVector{good, v} {
				if err := os.CopyFS(filepath.Join(store, filepath.Base(from.dir)), os.DirFS(from.dir)); err != nil {
					t.Fatal(err)
				}
			}
			all := asked(t, "series", "select", "--mode", "native", store, "{}")
			switch {
			case filepath.Base(good.dir) == filepath.Base(v.dir):
				t.Skip("has the name of the good one")
			case cat.status == statusDone:
				if all.status == statusPartial {
					t.Error(all)
				}
			case all.status != statusPartial || all.out != goodSelect.out || !strings.Contains(all.errs, "1 of 2 artifacts could not be read"):
				t.Errorf("%s, want %s", all, goodSelect.out)
			}
			strict := asked(t, "series", "select", "--strict", "--mode", "native", store, "{}")
			if cat.status != statusDone {
				strict.failed(t, check)
				if strict.out != "" {
					t.Error(strict)
				}
			}
			counted := asked(t, "series", "analyze", "--csv", store)
			switch {
			case analyze.status == statusDone:
				if counted.status != statusDone {
					t.Error(counted)
				}
			case counted.status != statusPartial || strings.ReplaceAll(counted.out, store, filepath.Dir(good.dir)) != goodAnalysis.out:
				t.Errorf("%s, want %s", counted, goodAnalysis.out)
			}
			for _, line := range []string{"info --json STORE", "ls STORE", "du STORE", "get STORE */host", "series labels STORE", "series values STORE host"} {
				a := asked(t, strings.Fields(strings.ReplaceAll(line, "STORE", store))...)
				conflict := cat.status == statusDone && strings.Contains(a.errs, " in one artifact and ") // the two have one series
				if a.status != statusDone && a.status != statusPartial && !conflict {
					t.Error(a)
				}
			}
		})
	}
}

// Artifacts that were cut off anywhere fail, and leave nothing.
func TestCutArtifacts(t *testing.T) {
	v := readSeriesVector(t, filepath.Join(seriesFolder, "example-b2.json"))
	for _, cut := range []string{"manifest.json", "part-0.series"} {
		whole, err := os.ReadFile(filepath.Join(v.dir, cut))
		if err != nil {
			t.Fatal(err)
		}
		whole = bytes.TrimRight(whole, " \n")
		dir, out := filepath.Join(t.TempDir(), "cut"), filepath.Join(t.TempDir(), "out")
		if err := os.CopyFS(dir, os.DirFS(v.dir)); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 1 + len(whole)/60 {
			if err := os.WriteFile(filepath.Join(dir, cut), whole[:n], 0o666); err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{"series compare DIR GOOD", "series compare GOOD DIR", "series analyze DIR", "series redact DIR -o OUT", "series analyze --csv DIR/" + cut} {
				line = strings.NewReplacer("DIR", dir, "GOOD", v.dir, "OUT", out).Replace(line)
				asked(t, strings.Fields(line)...).failed(t, 0)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Fatalf("something is left: %v", err)
			}
			if t.Failed() {
				t.Fatalf("%s, cut behind %d bytes", cut, n)
			}
		}
	}
}

// Redacting that is interrupted while it writes leaves nothing, and so does counting that waits for its input.
func TestRedactInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	in := t.TempDir()
	meta := `{"format":"columnar-series","version":1,"region_id":1,"generation":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f","tags":[{"column_id":5,"name":"host"}],
		"coverage":{"file_size":0,"index_uuid":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f"}}`
	if err := os.WriteFile(filepath.Join(in, "meta.json"), []byte(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	text := []byte("__table_id,__tsid,__series_row_count,host\n")
	for i := range 100_000 {
		text = fmt.Appendf(text, "1,%d,1,web-%d\n", i, i/50)
	}
	if err := os.WriteFile(filepath.Join(in, "records.csv"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	if a := asked(t, "series", "build", "--block-series", "4", "--meta", filepath.Join(in, "meta.json"), filepath.Join(in, "records.csv"), "-o", in); a.status != 0 {
		t.Fatal(a)
	}
	dir := t.TempDir()
	p := start(t, nil, "series", "redact", "--stats", filepath.Join(in, "1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f"), "-o", filepath.Join(dir, "out"))
	until(t, "it has begun to write", func() bool { return hasEntries(dir) })
	p.interrupt(t, os.Interrupt, dir)

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p = start(t, func(p *process) { p.Stdin = r }, "series", "analyze", "--stats", "-")
	if _, err := w.Write(make([]byte, 200_000)); err != nil { // more than a pipe holds: it reads
		t.Fatal(err)
	}
	p.interrupt(t, os.Interrupt, t.TempDir())
}
