package source_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// tree lists a folder: names, and content of files or aim of links.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, e := range must(os.ReadDir(dir)) {
		switch path := filepath.Join(dir, e.Name()); {
		case e.Type()&fs.ModeSymlink != 0:
			got[e.Name()] = "-> " + must(os.Readlink(path))
		case e.Type().IsRegular():
			got[e.Name()] = string(must(os.ReadFile(path)))
		default:
			got[e.Name()] = e.Type().String()
		}
	}
	return got
}

func TestAtomicFile(t *testing.T) {
	type files = map[string]string
	for _, tt := range []struct {
		name   string
		before files // "-> x" makes a link
		path   string
		after  files // a Commit; Abort leaves what was before
	}{
		{name: "new", path: "out", after: files{"out": "new"}},
		{name: "replaces", before: files{"out": "old"}, path: "out", after: files{"out": "new"}},
		{name: "through a link", before: files{"real": "old", "out": "-> real"}, path: "out",
			after: files{"real": "new", "out": "-> real"}},
		{name: "through a link to nothing yet", before: files{"out": "-> real"}, path: "out",
			after: files{"real": "new", "out": "-> real"}},
		{name: "through two links", before: files{"out": "-> mid", "mid": "-> ./real"}, path: "out",
			after: files{"real": "new", "out": "-> mid", "mid": "-> ./real"}},
		{name: "long name", path: strings.Repeat("é", 125), after: files{strings.Repeat("é", 125): "new"}},
	} {
		for _, commit := range []bool{true, false} {
			t.Run(tt.name+map[bool]string{true: "/commit", false: "/abort"}[commit], func(t *testing.T) {
				dir := t.TempDir()
				for name, body := range tt.before {
					path := filepath.Join(dir, name)
					var err error
					if link, ok := strings.CutPrefix(body, "-> "); ok {
						err = os.Symlink(link, path)
					} else {
						err = os.WriteFile(path, []byte(body), 0o644)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				before := tree(t, dir)
				a, err := source.CreateAtomic(filepath.Join(dir, tt.path))
				if err != nil {
					t.Fatal(err)
				}
				defer a.Abort()
				if _, err := a.Write([]byte("new")); err != nil {
					t.Fatal(err)
				}
				// One more file than before, hidden, and all others as they were.
				during := tree(t, dir)
				for name := range during {
					if _, ok := before[name]; !ok && strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp") {
						delete(during, name)
						break
					}
				}
				if diff := cmp.Diff(before, during); diff != "" {
					t.Errorf("before the end:\n%s", diff)
				}
				want := before
				if commit {
					want = tt.after
					if err := a.Commit(); err != nil {
						t.Fatal(err)
					}
				}
				a.Abort()
				a.Abort()
				if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
					t.Error(diff)
				}
				// The end is the end.
				_, errWrite := a.Write(nil)
				_, errWriteAt := a.WriteAt(nil, 0)
				_, errReadAt := a.ReadAt(nil, 0)
				for _, err := range []error{errWrite, errWriteAt, errReadAt, a.Commit()} {
					wantFault(t, err, fault.Invalid, tt.path, "committed or aborted")
				}
			})
		}
	}
}

func TestAtomicFileReadWriteAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	a := must(source.CreateAtomic(path))
	defer a.Abort()
	for _, step := range []func() (int, error){
		func() (int, error) { return a.Write([]byte("....")) },
		func() (int, error) { return a.WriteAt([]byte("head"), 0) },
		func() (int, error) { return a.Write([]byte(" body")) },
	} {
		if _, err := step(); err != nil {
			t.Fatal(err)
		}
	}
	p := make([]byte, 20)
	if n, err := a.ReadAt(p, 5); string(p[:n]) != "body" || err != io.EOF {
		t.Errorf("%q, %v", p[:n], err)
	}
	_, err := a.ReadAt(p, -1)
	wantFault(t, err, err, path, "negative offset")
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := must(os.ReadFile(path)); string(got) != "head body" {
		t.Errorf("%q", got)
	}
}

func TestAtomicFileMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has other permissions")
	}
	mode := func(path string) fs.FileMode { return must(os.Stat(path)).Mode() }
	path := filepath.Join(t.TempDir(), "out")
	write := func() {
		a := must(source.CreateAtomic(path))
		if err := a.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	plain := filepath.Join(t.TempDir(), "plain")
	must(os.Create(plain)).Close()
	write()
	if mode(path) != mode(plain) {
		t.Errorf("new file has mode %v, os.Create gives %v", mode(path), mode(plain))
	}
	for _, want := range []fs.FileMode{0o600, 0o444, 0o666, 0o755} {
		if err := os.Chmod(path, want); err != nil {
			t.Fatal(err)
		}
		if write(); mode(path) != want {
			t.Errorf("mode %v, the file replaced had %v", mode(path), want)
		}
	}
}

func TestCreateAtomicRefused(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.Symlink("loop", loop), os.WriteFile(file, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	for _, tt := range []struct {
		path  string
		class error // nil: that of the system
		text  string
	}{
		{dir, fault.Invalid, dir + ": is a folder, not a file"},
		{dir + "/new/", fault.Invalid, "names no file"},
		{"", fault.Invalid, "source: names no file"},
		{dir + "/missing/out", fault.NotFound, "folder of the output"},
		{file + "/out", nil, ""},
		{loop, nil, ""},
	} {
		a, err := source.CreateAtomic(tt.path)
		if tt.class == nil {
			tt.class = err
		}
		wantFault(t, err, tt.class, tt.path, tt.text)
		if a != nil {
			t.Errorf("%s: a file beside the error", tt.path)
		}
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// Whatever fails on the way to Commit, what was there before stays, with nothing beside it.
func TestAtomicFileCommitFails(t *testing.T) {
	t.Run("overlooked write", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		a := must(source.CreateAtomic(path))
		a.Write([]byte("new"))
		a.WriteAt([]byte("x"), -1) // fails
		err := a.Commit()
		wantFault(t, err, err, path, "negative offset")
		if diff := cmp.Diff(map[string]string{"out": "old"}, tree(t, dir)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("rename", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		a := must(source.CreateAtomic(path))
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		err := a.Commit()
		wantFault(t, err, err, path+": ")
		if strings.Contains(err.Error(), ".tmp") {
			t.Errorf("text %q names the temporary file", err)
		}
		if diff := cmp.Diff(map[string]string{"out": "d---------"}, tree(t, dir)); diff != "" {
			t.Error(diff)
		}
	})
}

// swapStdout makes f the standard output of the test.
func swapStdout(t *testing.T, f *os.File) {
	t.Helper()
	old := os.Stdout
	os.Stdout = f
	t.Cleanup(func() { os.Stdout = old })
}

// Standard output in a file, as after > or >>: what stands there is kept, nothing is renamed over it.
func TestAtomicFileStdout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f := must(os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644))
	defer f.Close()
	swapStdout(t, f)
	f.WriteString("before ")
	a := must(source.CreateAtomic(path))
	defer a.Abort()
	if _, err := a.Write([]byte("result")); err != nil {
		t.Fatal(err)
	}
	_, err := a.WriteAt([]byte("x"), 0)
	wantFault(t, err, fault.Invalid, "standard output")
	_, err = a.ReadAt(make([]byte, 1), 0)
	wantFault(t, err, fault.Invalid, "standard output")
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	a.Abort()
	f.WriteString(" after") // it is open still
	if diff := cmp.Diff(map[string]string{"out": "before result after"}, tree(t, filepath.Dir(path))); diff != "" {
		t.Error(diff)
	}
}

func TestAtomicFileDevice(t *testing.T) {
	a := must(source.CreateAtomic(os.DevNull))
	defer a.Abort()
	_, errWrite := io.Copy(a, bytes.NewReader(content(1000)))
	_, errWriteAt := a.WriteAt([]byte("head"), 0)
	if err := errors.Join(errWrite, errWriteAt, a.Commit()); err != nil {
		t.Error(err)
	}
	if must(os.Stat(os.DevNull)).Mode().IsRegular() {
		t.Error("the device is gone")
	}
}

// TestCreateNew: a file that is there stays, whether it was there before or comes while the new one is written.
func TestCreateNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	write := func(path string) *source.AtomicFile {
		t.Helper()
		f := must(source.CreateNew(path))
		must(f.Write([]byte("new")))
		return f
	}
	late := write(path)
	if err := write(path).Commit(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"out": "new"}
	if err := os.WriteFile(path, []byte("first"), 0o666); err != nil {
		t.Fatal(err)
	}
	want["out"] = "first"
	if err := late.Commit(); !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that came later: %v", err)
	}
	if _, err := source.CreateNew(path); !errors.Is(err, fault.Conflict) {
		t.Errorf("a file that is there: %v", err)
	}
	if _, err := source.CreateNew(dir); !errors.Is(err, fault.Invalid) {
		t.Errorf("a folder: %v", err)
	}
	aborted := write(filepath.Join(dir, "other"))
	aborted.Abort()
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if runtime.GOOS == "windows" {
		return // makes links for few
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if err := write(link).Commit(); err != nil {
		t.Fatal(err)
	}
	want["link"], want["real"] = "-> real", "new"
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := source.CreateNew(link); !errors.Is(err, fault.Conflict) {
		t.Errorf("a link to a file that is there: %v", err)
	}
}

// TestCreateNewRace: of many that write one name at the same time, one succeeds.
func TestCreateNewRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	files := make([]*source.AtomicFile, 20)
	for i := range files {
		files[i] = must(source.CreateNew(path))
		must(files[i].Write([]byte{byte(i)}))
	}
	var won atomic.Int64
	var work sync.WaitGroup
	for i, f := range files {
		work.Go(func() {
			switch err := f.Commit(); {
			case err == nil:
				won.Add(1)
				if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte{byte(i)}) {
					t.Errorf("%x, %v; expected %x", got, err, i)
				}
			case !errors.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	work.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of %d have succeeded", won.Load(), len(files))
	}
}
