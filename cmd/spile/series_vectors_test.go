package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const seriesFolder = "../../testdata/series"

// seriesVector is the part of a conformance artifact (testdata/series/README.md) that the command line can show.
type seriesVector struct {
	Path         string
	Meta         json.RawMessage
	Options      map[string]any
	Input        []json.RawMessage
	InputFile    string
	Records      []json.RawMessage
	RecordsFile  string
	Build        bool
	Identical    bool
	Warnings     []int
	UnknownCodec []string
	Lookups      []struct {
		Table       uint32 `json:"table_id"`
		TSID        uint64
		Record      json.RawMessage
		RecordIndex *int
	}
	Check      int
	Class      string
	AlsoAccept []string

	dir            string
	input, records string // JSON Lines
	tags           []string
}

func readSeriesVector(t *testing.T, file string) *seriesVector {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := &seriesVector{}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(file, ": ", err)
	}
	v.dir = filepath.Join(strings.TrimSuffix(file, ".json"), v.Path)
	v.records, v.input = lines(t, v.Records), lines(t, v.Input)
	for name, to := range map[string]*string{v.RecordsFile: &v.records, v.InputFile: &v.input} {
		if name == "" {
			continue
		}
		f, err := os.Open(filepath.Join(filepath.Dir(file), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		*to = string(all)
	}
	if v.input == "" {
		v.input = v.records
	}
	var m struct{ Tags []struct{ Name string } }
	if err := json.Unmarshal(v.Meta, &m); err != nil && v.Meta != nil {
		t.Fatal(file, ": ", err)
	}
	for _, tag := range m.Tags {
		v.tags = append(v.tags, tag.Name)
	}
	return v
}

func seriesVectors(t *testing.T, pattern string, least int) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(seriesFolder, pattern))
	if err != nil || len(names) < least {
		t.Fatal(err, len(names))
	}
	return names
}

// printed is a record as the command prints it: labels in the order of the tags, without those that are null.
func (v *seriesVector) printed(t *testing.T, record string) string {
	t.Helper()
	var r struct {
		Table  uint32 `json:"table_id"`
		TSID   uint64 `json:"tsid"`
		Count  uint64 `json:"row_count"`
		Labels map[string]*string
	}
	if err := json.Unmarshal([]byte(record), &r); err != nil {
		t.Fatal(err)
	}
	text := func(s string) string {
		b, err := marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var labels []string
	for _, name := range v.tags {
		if l := r.Labels[name]; l != nil {
			labels = append(labels, text(name)+":"+text(*l))
		}
	}
	return fmt.Sprintf(`{"table_id":%d,"tsid":%d,"row_count":%d,"labels":{%s}}`, r.Table, r.TSID, r.Count, strings.Join(labels, ","))
}

// sameValue compares lines of JSON as values: a string has more than one spelling.
func sameValue(t *testing.T, got, want string) bool {
	t.Helper()
	if got == want {
		return true
	}
	canonical := func(s string) string {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		b, _ := marshal(v)
		return string(b)
	}
	return canonical(got) == canonical(want)
}

// TestSeriesVectors reads the conformance artifacts through the command line, verifies them, and builds them again.
func TestSeriesVectors(t *testing.T) {
	for _, name := range seriesVectors(t, "*.json", 40) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			v := readSeriesVector(t, name)
			out, errs, status := command(t, "verify", "--deep", v.dir)
			wantStatus, lines := 0, 0
			if len(v.UnknownCodec) > 0 {
				wantStatus, lines = statusPartial, 1
			}
			if status != wantStatus || strings.Count(out, "\n") < lines || lines == 0 && out != "" {
				t.Errorf("verify: status %d, %s%s", status, out, errs)
			}
			for _, check := range v.Warnings {
				if want := fmt.Sprintf("check %d: ", check); !strings.Contains(errs+out, want) {
					t.Errorf("verify: %s%s, want %s", out, errs, want)
				}
			}
			out, errs, status = command(t, "cat", v.dir)
			if len(v.UnknownCodec) > 0 {
				if status != 1 || out != "" || !strings.Contains(errs, "check 40") {
					t.Errorf("cat: status %d, %s%s", status, out, errs)
				}
			} else if status != 0 {
				t.Fatalf("cat: status %d: %s", status, errs)
			} else {
				v.compare(t, out)
			}
			for _, l := range v.Lookups {
				record := string(l.Record)
				if l.RecordIndex != nil {
					record = strings.Split(v.records, "\n")[*l.RecordIndex]
				}
				out, errs, status := command(t, "get", v.dir, fmt.Sprintf("%d/%d", l.Table, l.TSID))
				switch {
				case len(v.UnknownCodec) > 0 && record != "":
				case record == "null" || record == "":
					if status != 1 || out != "" || !strings.Contains(errs, "no such series") {
						t.Errorf("get %d/%d: status %d, %s%s", l.Table, l.TSID, status, out, errs)
					}
				case status != 0 || !sameValue(t, out, v.printed(t, record)):
					t.Errorf("get %d/%d: status %d, %s%s, want %s", l.Table, l.TSID, status, out, errs, v.printed(t, record))
				}
			}
			if v.Build {
				v.build(t)
			}
		})
	}
}

// compare demands that the output of cat is the records.
func (v *seriesVector) compare(t *testing.T, out string) {
	t.Helper()
	got, want := strings.SplitAfter(out, "\n"), strings.SplitAfter(v.records, "\n")
	if want[len(want)-1] != "" {
		want = append(want, "")
	}
	if len(got) != len(want) {
		t.Errorf("cat: %d lines, want %d", len(got), len(want))
		return
	}
	for i := range len(got) - 1 {
		if w := v.printed(t, want[i]); !sameValue(t, got[i], w) {
			t.Fatalf("cat: line %d is %s, want %s", i+1, got[i], w)
		}
	}
}

// args writes meta.json and the input, and returns the command line that builds of them.
func (v *seriesVector) args(t *testing.T, dir, input string) []string {
	t.Helper()
	meta, in := filepath.Join(dir, "meta.json"), filepath.Join(dir, "in")
	for path, text := range map[string]string{meta: string(v.Meta), in: input} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"series", "build", "--meta", meta, in, "-o", filepath.Join(dir, "out")}
	for name, value := range v.Options {
		args = append(args, fmt.Sprintf("--%s=%v", name, value))
	}
	return args
}

// build makes the artifact of a vector from its input, in order and the other way round, with much memory and with little.
func (v *seriesVector) build(t *testing.T) {
	for _, more := range [][]string{nil, {"--memory=1MiB"}} {
		dir := t.TempDir()
		if out, errs, status := command(t, append(v.args(t, dir, v.input), more...)...); status != 0 || out != "" {
			t.Fatalf("build: status %d, %s%s", status, out, errs)
		}
		made := filepath.Join(dir, "out", v.Path)
		if v.Identical {
			names, err := os.ReadDir(v.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if filepath.Ext(name.Name()) != ".series" {
					continue
				}
				want, _ := os.ReadFile(filepath.Join(v.dir, name.Name()))
				got, err := os.ReadFile(filepath.Join(made, name.Name()))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s is not the same: %v", name.Name(), err)
				}
			}
		}
		out, errs, status := command(t, "cat", made)
		if status != 0 {
			t.Fatalf("cat what was built: status %d: %s", status, errs)
		}
		v.compare(t, out)
		if out, errs, status := command(t, "verify", "--deep", made); status != 0 || out != "" {
			t.Errorf("verify what was built: status %d, %s%s", status, out, errs)
		}
	}
}

func TestBadSeriesVectors(t *testing.T) {
	for _, name := range seriesVectors(t, "bad/*.json", 50) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			v := readSeriesVector(t, name)
			out, errs, status := command(t, "verify", "--deep", v.dir)
			if status != 1 {
				t.Errorf("verify: status %d, %s%s", status, out, errs)
			}
			ok := false
			for _, class := range append(v.AlsoAccept, v.Class) {
				ok = ok || strings.Contains(out, fmt.Sprintf(": %s, check %d: ", class, v.Check))
			}
			if !ok {
				t.Errorf("verify: %s%s, want %s, check %d", out, errs, v.Class, v.Check)
			}
			_, errs, status = command(t, "cat", v.dir)
			onlyVerifier := v.Check >= 78 && v.Check <= 81
			if want := map[bool]int{false: 1, true: 0}[onlyVerifier]; status != want || want == 1 && (!strings.HasPrefix(errs, "spile: ") || strings.Count(errs, "\n") != 1) {
				t.Errorf("cat: status %d: %s", status, errs)
			}
		})
	}
}

// What no build may accept leaves nothing behind.
func TestRefusedSeriesVectors(t *testing.T) {
	for _, name := range seriesVectors(t, "refuse/*.json", 5) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			v := readSeriesVector(t, name)
			dir := t.TempDir()
			out, errs, status := command(t, v.args(t, dir, v.input)...)
			if status != 1 || out != "" || strings.Count(errs, "\n") != 1 {
				t.Errorf("build: status %d, %s%s", status, out, errs)
			}
			if _, err := os.Stat(filepath.Join(dir, "out")); err == nil || !os.IsNotExist(err) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

// A folder of many artifacts is answered from the good ones.
func TestManyArtifacts(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"example-b1", "depth-2", "bad/chunk-checksum"} {
		v := readSeriesVector(t, filepath.Join(seriesFolder, name+".json"))
		if err := os.CopyFS(filepath.Join(root, v.Path), os.DirFS(v.dir)); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, status := command(t, "cat", root)
	if status != statusPartial || strings.Count(out, "\n") < 123 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "check 42") {
		t.Errorf("cat: status %d, %d lines, %s", status, strings.Count(out, "\n"), errs)
	}
	if _, _, status := command(t, "cat", "--strict", root); status != 1 {
		t.Errorf("cat --strict: status %d", status)
	}
	out, errs, status = command(t, "verify", "--deep", root)
	if status != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "corrupt, check 42") {
		t.Errorf("verify: status %d, %s%s", status, out, errs)
	}
	out, _, _ = command(t, "verify", "--deep", "--json", root)
	var reports []verifyReport
	if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports) != 3 {
		t.Errorf("verify --json: %v, %s", err, out)
	}
	if n := slices.IndexFunc(reports, func(r verifyReport) bool { return len(r.Findings) == 1 && r.Findings[0].Check == 42 }); n < 0 {
		t.Errorf("verify --json: %s", out)
	}
}
