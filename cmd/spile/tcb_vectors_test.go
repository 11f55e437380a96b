package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tableFolder = "../../testdata/tcb"

// tableVector is the part of a conformance file (testdata/tcb/README.md) that the command line can show.
type tableVector struct {
	Key, MACKey string
	Write       bool
	Schema      json.RawMessage
	Rows        []json.RawMessage
	NonFinite   bool
	InvalidUTF8 int
	Logical     *struct {
		Schema json.RawMessage
		Rows   []json.RawMessage
	}
	Check string
}

// readTableVector reads a vector, and writes its keys where the flags that it returns find them.
func readTableVector(t *testing.T, name string) (v tableVector, keys []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(name, ": ", err)
	}
	dir := t.TempDir()
	for flag, key := range map[string]string{"--key-file": v.Key, "--mac-key-file": v.MACKey} {
		if key == "" {
			continue
		}
		file := filepath.Join(dir, flag[2:])
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, flag, file)
	}
	return v, keys
}

// lines are rows as JSON Lines.
func lines(t *testing.T, rows []json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	for _, row := range rows {
		if err := json.Compact(&b, row); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestTableVectors reads the conformance tables through the command line, builds them from their rows, and takes their
// schema and their layers apart and together.
func TestTableVectors(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(tableFolder, "*.json"))
	if err != nil || len(names) < 30 {
		t.Fatal(err, len(names))
	}
	for _, name := range names {
		file := strings.TrimSuffix(name, ".json") + ".tcb"
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			v, keys := readTableVector(t, name)
			ok := func(args ...string) string {
				t.Helper()
				out, errs, status := command(t, append(args, keys...)...)
				if status != 0 {
					t.Fatalf("%q: status %d: %s", args, status, errs)
				}
				return out
			}
			rows := ok("cat", "--non-finite=string", "--invalid-utf8=replace", file)
			if len(v.Rows) != strings.Count(rows, "\n") {
				t.Errorf("%d rows, want %d", strings.Count(rows, "\n"), len(v.Rows))
			}
			if v.NonFinite || v.InvalidUTF8 > 0 {
				if _, _, status := command(t, append([]string{"cat", file}, keys...)...); status != 1 {
					t.Errorf("cat without flags: status %d", status)
				}
			}
			if out := ok("verify", "--deep", file); out != "" {
				t.Errorf("verify: %s", out)
			}
			dir := t.TempDir()
			build := func(schema []byte, rows []json.RawMessage) {
				t.Helper()
				s, in, out := filepath.Join(dir, "schema"), filepath.Join(dir, "in"), filepath.Join(dir, "out.tcb")
				for path, text := range map[string]string{s: string(schema), in: lines(t, rows)} {
					if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				ok("table", "build", "--from", "jsonl", "--schema", s, in, "-o", out)
				got, _ := os.ReadFile(out)
				if want, _ := os.ReadFile(file); !bytes.Equal(got, want) {
					t.Errorf("built % x\nwant  % x", got, want)
				}
			}
			if v.Write {
				build(v.Schema, v.Rows)
				if v.Logical != nil {
					build(v.Logical.Schema, v.Logical.Rows)
				}
				var want, got bytes.Buffer
				if err := json.Compact(&want, v.Schema); err != nil {
					t.Fatal(err)
				}
				if err := json.Compact(&got, []byte(ok("table", "schema", file))); err != nil {
					t.Fatal(err)
				}
				if got.String() != want.String() {
					t.Errorf("schema %s\nwant   %s", got.String(), want.String())
				}
			}
		})
	}
}

func TestBadTableVectors(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(tableFolder, "bad", "*.json"))
	if err != nil || len(names) < 30 {
		t.Fatal(err, len(names))
	}
	for _, name := range names {
		file := strings.TrimSuffix(name, ".json") + ".tcb"
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			v, keys := readTableVector(t, name)
			for _, args := range [][]string{{"cat", file}, {"get", file, ""}, {"table", "export", file, "-o", filepath.Join(t.TempDir(), "x.jsonl")}} {
				out, errs, status := command(t, append(args, keys...)...)
				if status != 1 || out != "" || !strings.HasPrefix(errs, "spile: ") || strings.Count(errs, "\n") != 1 {
					t.Errorf("%q: status %d, standard output %q, standard error %q", args, status, out, errs)
				}
				if !strings.Contains(errs, " "+v.Check+": ") && v.Check != "O2" {
					t.Errorf("%q: %s, want %s", args, errs, v.Check)
				}
			}
			if out, errs, status := command(t, append([]string{"verify", "--deep", file}, keys...)...); status != 1 || !strings.Contains(out+errs, v.Check) && v.Check != "O2" {
				t.Errorf("verify: status %d, %s%s", status, out, errs)
			}
		})
	}
}
