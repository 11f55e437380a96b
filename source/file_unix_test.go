//go:build unix

package source_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

func TestOpenSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	defer must(net.Listen("unix", socket)).Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for kind, open := range openers {
		for path, what := range map[string]string{pipe: "pipe", link: "pipe", socket: "socket", os.DevNull: "device"} {
			t.Run(kind+"/"+what, func(t *testing.T) {
				_, err := open(path)
				wantFault(t, err, fault.Invalid, path+": is a "+what+", not a regular file")
			})
		}
	}
}

// The path decides, not the file: a link that is led elsewhere is another source.
func TestFileLinkMoved(t *testing.T) {
	first, second := writeFile(t, content(100)), writeFile(t, content(100))
	for kind, open := range openers {
		t.Run(kind, func(t *testing.T) {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(first, link); err != nil {
				t.Fatal(err)
			}
			obj := must(open(link))
			defer obj.Close()
			if err := obj.ReadAt(t.Context(), make([]byte, 1), 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(second, link+".new"); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(link+".new", link); err != nil {
				t.Fatal(err)
			}
			wantFault(t, obj.ReadAt(t.Context(), make([]byte, 1), 0), fault.Changed, "replaced")
		})
	}
}

func TestAtomicFilePipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() { got <- string(must(os.ReadFile(pipe))) }()
	a := must(source.CreateAtomic(pipe)) // waits for the reader
	defer a.Abort()
	if _, err := a.Write([]byte("result")); err != nil {
		t.Fatal(err)
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "result" {
		t.Errorf("%q came through", s)
	}
	if names := must(os.ReadDir(dir)); len(names) != 1 || names[0].Type() != os.ModeNamedPipe {
		t.Errorf("in the folder: %v", names)
	}
}
