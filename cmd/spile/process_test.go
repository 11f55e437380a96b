package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spilehq/spile/internal/rangetest"
)

// A process is spile as a process of its own, for tests of what happens while it runs.
type process struct {
	*exec.Cmd
	errs bytes.Buffer
	temp string // where it makes temporary files
}

func start(t *testing.T, setup func(*process), args ...string) *process {
	t.Helper()
	path, err := exec.LookPath("spile") // put there by TestMain
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(path, args...), temp: t.TempDir()}
	p.Env = append(os.Environ(), "TMPDIR="+p.temp)
	p.Stderr = &p.errs
	if setup != nil {
		setup(p)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() })
	return p
}

func (p *process) end(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { p.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// bigJSON is a list of numbers of some 14 MB.
func bigJSON() []byte {
	return []byte("[" + strings.Repeat("1234567,", 1<<20*7/4) + "0]")
}

func bigDocument(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.json"), bigJSON(), 0o666); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "big.msg")
	if _, errs, status := command(t, "pack", filepath.Join(dir, "big.json"), "-o", path); status != 0 {
		t.Fatal(errs)
	}
	return path
}

// TestChanged replaces, cuts and removes a file while a slow consumer of standard output keeps cat from reading on.
func TestChanged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be replaced")
	}
	for name, change := range map[string]func(path string) error{
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", []byte("something else"), 0o666); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"truncated": func(path string) error { return os.Truncate(path, 100) },
		"removed":   os.Remove,
	} {
		for _, flag := range []string{"--mmap=false", "--mmap"} {
			t.Run(name+flag, func(t *testing.T) {
				path := bigDocument(t)
				var out io.ReadCloser
				p := start(t, func(p *process) { out, _ = p.StdoutPipe() }, "cat", flag, path)
				first := make([]byte, 1000)
				if _, err := io.ReadFull(out, first); err != nil {
					t.Fatal(err)
				}
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				rest, err := io.ReadAll(out)
				if err != nil {
					t.Fatal(err)
				}
				status := p.end(t)
				if errs := p.errs.String(); status != statusChanged || !strings.HasPrefix(errs, "spile: "+path+": ") {
					t.Errorf("status %d, %s", status, errs)
				}
				if !bytes.HasPrefix(bigJSON(), append(first, rest...)) {
					t.Errorf("%d bytes that are no prefix of the result", len(first)+len(rest))
				}
			})
		}
	}
}

// TestInterrupted sends signals to processes that wait for standard input, or for the reader of standard output.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	document := bigDocument(t)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !ossignal.Ignored(syscall.SIGHUP) { // where it is, as under nohup, the command ignores it too
		signals = append(signals, syscall.SIGHUP)
	}
	for _, signal := range signals {
		t.Run("stdin "+signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			var in io.WriteCloser
			p := start(t, func(p *process) { in, _ = p.StdinPipe() }, "pack", "--stats", "-", "-o", filepath.Join(dir, "out.msg"))
			defer in.Close()
			if _, err := in.Write(bytes.Repeat([]byte("[1,"), 1<<18)); err != nil { // more than a pipe holds: it reads
				t.Fatal(err)
			}
			p.interrupt(t, signal, dir)
		})
		t.Run("stdout "+signal.String(), func(t *testing.T) {
			var out io.ReadCloser
			p := start(t, func(p *process) { out, _ = p.StdoutPipe() }, "cat", "--stats", document)
			if _, err := io.ReadFull(out, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // until the pipe is full
			p.interrupt(t, signal, t.TempDir())
		})
	}
}

// TestInterruptedReading interrupts a process that waits for an answer: of a server that is silent, of one that says that it
// is to be left alone, and between the bytes of one.
func TestInterruptedReading(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	data, err := os.ReadFile(bigDocument(t))
	if err != nil {
		t.Fatal(err)
	}
	server := rangetest.New(t)
	url := server.Put("/big.msg", data)
	for name, bend := range map[string]func(*rangetest.Answer){
		"silent": rangetest.Hang, "busy": rangetest.Status(503, "50"), "slow": rangetest.Drip(time.Second),
	} {
		server.Reset()
		server.Bend(rangetest.From(2, bend))
		p := start(t, nil, "get", "--stats", url, "1700000")
		for tries := 0; len(server.Requests()) < 2; tries++ {
			if time.Sleep(10 * time.Millisecond); tries == 3000 {
				t.Fatalf("%s: %q", name, server.Requests())
			}
		}
		p.interrupt(t, os.Interrupt, t.TempDir())
		if n := len(server.Requests()); n != 2 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// interrupt ends a process by a signal, which must clean up its temporary files and leave dir empty.
func (p *process) interrupt(t *testing.T, signal os.Signal, dir string) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	status := p.end(t)
	lines := strings.Split(strings.TrimSpace(p.errs.String()), "\n")
	if status != statusInterrupted || len(lines) != 2 || !strings.HasPrefix(lines[0], "spile: ") || !strings.HasPrefix(lines[1], `{"size":`) {
		t.Errorf("status %d, %q", status, lines)
	}
	for _, d := range []string{p.temp, dir} {
		left, err := os.ReadDir(d)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

// TestExamples runs the examples of all verbs, each in an empty folder.
func TestExamples(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for _, verb := range verbs(newRoot(new(env)))[1:] {
		t.Run(strings.ReplaceAll(verb.CommandPath(), " ", "-"), func(t *testing.T) {
			if verb.Example == "" || verb.Long == "" {
				t.Fatal("no example, or no explanation")
			}
			if verb.Name() == "completion" {
				t.Skip("a line for one's profile")
			}
			cmd := exec.Command(shell, "-euc", verb.Example)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
	}
}
