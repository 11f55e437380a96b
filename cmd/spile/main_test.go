package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The tests of the verbs are scripts, testdata/script/VERB.txtar, which read as documentation. In them, spile is the
// command itself, run as a process of its own.
func TestMain(m *testing.M) {
	os.Setenv("GOTRACEBACK", "all") // a panic is no error here
	testscript.Main(m, map[string]func(){"spile": main})
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
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
			return os.MkdirAll(filepath.Join(env.WorkDir, "tmp"), 0o777)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status,
			"names":  names,
			"hex":    hexFile,
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
