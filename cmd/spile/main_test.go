package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spilehq/spile/internal/rangetest"
)

// The tests of the verbs are scripts, testdata/script/VERB.txtar, which read as documentation. In them, spile is the
// command itself, run as a process of its own.
func TestMain(m *testing.M) {
	os.Setenv("GOTRACEBACK", "all") // a panic is no error here
	testscript.Main(m, map[string]func(){"spile": main})
}

// TestHelpLines: help texts are put together of parts, and their lines have one width.
func TestHelpLines(t *testing.T) {
	for _, cmd := range verbs(newRoot(new(env))) {
		if strings.Contains(cmd.UsageString(), "(default [])") {
			t.Errorf("%s: a default that says nothing", cmd.CommandPath())
		}
		for _, p := range strings.Split(cmd.Long, "\n\n") {
			lines := strings.Split(p, "\n")
			if strings.Contains(p, "  ") { // columns
				continue
			}
			for i, line := range lines[:len(lines)-1] {
				next, _, _ := strings.Cut(lines[i+1], " ")
				if n, more := utf8.RuneCountInString(line), utf8.RuneCountInString(next); n > helpWidth || n+1+more <= helpWidth {
					t.Errorf("%s: a line of %d characters, in front of a word of %d: %s", cmd.CommandPath(), n, more, line)
				}
			}
		}
	}
	if got := filled("a b\nc\n\na  b\n c"); got != "a b c\n\na  b\n c" {
		t.Errorf("%q", got)
	}
}

func TestScripts(t *testing.T) {
	vectors, err := filepath.Abs("../../testdata/msglc")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("VECTORS", vectors)
			env.Setenv("TABLES", filepath.Join(vectors, "../tcb"))
			env.Setenv("SERIES", filepath.Join(vectors, "../series"))
			env.Setenv("BLOCK", filepath.Join(vectors, "../../adapters/promtsdb/testdata/block"))
			env.Setenv("GOTRACEBACK", "all")
			server := rangetest.Start()
			env.Defer(server.Close)
			server.Serve(env.WorkDir)
			server.Bend(bendByQuery)
			env.Setenv("URL", server.URL)
			env.Values["server"] = server
			secure, certificate := rangetest.StartTLS()
			env.Defer(secure.Close)
			secure.Serve(env.WorkDir)
			env.Setenv("SECURE", secure.URL)
			if err := os.WriteFile(filepath.Join(env.WorkDir, "ca.pem"), certificate, 0o666); err != nil {
				return err
			}
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
			return os.MkdirAll(filepath.Join(env.WorkDir, "tmp"), 0o777)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status,
			"names":  names,
			"hex":    hexFile,
			"served": served,
			"prefix": prefix,
			"runs":   runsFile,
			"recount": func(ts *testscript.TestScript, _ bool, _ []string) { // forgets the requests that served would count
				ts.Value("server").(*rangetest.Server).Reset()
			},
		},
	})
}

// status N COMMAND… runs a command that must end with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// bendByQuery makes the server of the scripts answer as the parameter mode of a URL says.
func bendByQuery(a *rangetest.Answer) {
	modes := map[string]func(*rangetest.Answer){
		"whole": rangetest.Whole, "gzip": rangetest.Gzip, "shifted": rangetest.Shifted, "weak": rangetest.ETag(`W/"1"`), "unversioned": rangetest.ETag(""),
		"changed": rangetest.From(2, rangetest.ETag(`"other"`)), "busy": rangetest.Only(1, rangetest.Status(503, "0")), "down": rangetest.Status(500, ""),
		"replaced": rangetest.From(2, rangetest.Status(412, "")), "removed": rangetest.From(2, rangetest.Status(404, "")),
		"later":     rangetest.From(5, rangetest.ETag(`"other"`)),
		"forbidden": rangetest.Status(403, ""), "broken": rangetest.Only(1, rangetest.Cut(10)),
	}
	if bend := modes[a.Request.URL.Query().Get("mode")]; bend != nil {
		bend(a)
	}
}

// served [N] compares the receipt of the last command, which had --stats, with the counts of the server, and demands N
// requests, or, as <N, at most N. The counts start anew then.
func served(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: served [N]")
	}
	server := ts.Value("server").(*rangetest.Server)
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stderr")), "\n")
	var receipt struct{ Requests, Bytes int64 }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &receipt); err != nil {
		ts.Fatalf("no receipt: %v", err)
	}
	requests, bytes := server.Requests(), server.Bytes()
	server.Reset()
	if receipt.Requests != int64(len(requests)) || receipt.Bytes != bytes {
		ts.Fatalf("the receipt says %d requests and %d bytes, the server %q and %d", receipt.Requests, receipt.Bytes, requests, bytes)
	}
	if len(args) == 0 {
		return
	}
	most, upTo := strings.CutPrefix(args[0], "<")
	want, err := strconv.Atoi(most)
	ts.Check(err)
	if len(requests) > want || !upTo && len(requests) != want {
		ts.Fatalf("%q: %d requests, want %s", requests, len(requests), args[0])
	}
}

// runs N FILE writes JSON text of some 100 bytes for each of N runs.
func runsFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: runs N file")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	out := []byte(`{"runs":[`)
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"id":%d,"text":"%s"}`, i, strings.Repeat(string(rune('a'+i%26)), 80))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), append(out, "]}\n"...), 0o666))
}

// prefix FILE FILE demands that the first one is some of the beginning of the other one.
func prefix(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: prefix file file")
	}
	part, all := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if part == "" || part == all || !strings.HasPrefix(all, part) {
		ts.Fatalf("%s, of %d bytes, is no beginning of %s, of %d", args[0], len(part), args[1], len(all))
	}
}

// names FOLDER NAME… demands that the folder holds these names and no other.
func names(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: names folder name…")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if g, w := strings.Join(got, " "), strings.Join(args[1:], " "); g != w {
		ts.Fatalf("%s holds %q, want %q", args[0], g, w)
	}
}

// hex FILE HEX… writes a file of bytes.
func hexFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hex file digits…")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), unhex(strings.Join(args[1:], "")), 0o666))
}

func unhex(digits string) []byte {
	var b []byte
	for i := 0; i+1 < len(digits); i += 2 {
		n, err := strconv.ParseUint(digits[i:i+2], 16, 8)
		if err != nil {
			panic(err)
		}
		b = append(b, byte(n))
	}
	return b
}

// command runs a command line inside the test.
func command(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}
