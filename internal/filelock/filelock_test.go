package filelock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spilehq/spile/fault"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("FILELOCK_HOLD"); path != "" { // the other process
		if _, err := Take(path); err != nil {
			os.Stdout.WriteString("no: " + err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0) // without Release
	}
	os.Exit(m.Run())
}

func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(path); !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second holder: %v", err)
	}
	l.Release()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Release: %v", err)
	}
	if l, err = Take(path); err != nil {
		t.Fatal(err)
	}
	l.Release()
	if _, err := Take(filepath.Join(path, "none", "lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

// However many take it and let it go, removing the file each time, there is never more than one holder.
func TestManyTakers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders, taken atomic.Int64
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 500 {
				l, err := Take(path)
				if errors.Is(err, fault.Conflict) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				taken.Add(1)
				holders.Add(-1)
				l.Release()
			}
		})
	}
	work.Wait()
	if taken.Load() == 0 {
		t.Error("nobody got it")
	}
}

// Another process is kept out, and a process that is killed holds nothing any more.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := func() (*exec.Cmd, string) {
		c := exec.Command(self)
		c.Env = append(os.Environ(), "FILELOCK_HOLD="+path)
		if _, err := c.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 1000)
		n, _ := out.Read(line)
		return c, string(line[:n])
	}
	first, said := other()
	defer first.Process.Kill()
	if said != "held\n" {
		t.Fatal(said)
	}
	if _, err := Take(path); !errors.Is(err, fault.Conflict) {
		t.Errorf("held by a process: %v", err)
	}
	second, said := other()
	second.Wait()
	if !strings.HasPrefix(said, "no: ") {
		t.Errorf("a second process: %s", said)
	}
	first.Process.Kill()
	first.Wait()
	l, err := Take(path)
	if err != nil {
		t.Fatalf("after the process was killed: %v", err)
	}
	l.Release()
}
