package series

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spilehq/spile/fault"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SERIES_WRITE"); dir != "" { // the process that ends in the middle
		step, err := strconv.Atoi(os.Getenv("SERIES_STEP"))
		if err != nil {
			panic(err)
		}
		if err := writeHosts(&dying{FolderTarget: NewFolderTarget(dir, 1, UUID{}), left: step}, "child", 100); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeHosts writes n series whose host begins with name, in several parts.
func writeHosts(target Target, name string, n int) error {
	meta := &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}}}
	meta.Coverage.BucketEnd = &Timestamp{3600, "Second"}
	w, err := NewWriter(context.Background(), target, meta, &WriteOptions{BlockSeries: 32, PartBytes: 1 << 10})
	if err != nil {
		return err
	}
	defer w.Abort()
	for i := range n {
		if err := w.Add(Record{ID: ID{1, uint64(i)}, RowCount: 1, Labels: []Label{{"host", fmt.Sprintf("%s-%d", name, i)}}}); err != nil {
			return err
		}
	}
	return w.Close()
}

// readHosts demands an artifact that is whole: n series with the hosts of one run.
func readHosts(t *testing.T, dir, name string, n int) {
	t.Helper()
	ctx := context.Background()
	list := func(context.Context) (names []string, err error) {
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}
	err := Verify(ctx, Folder(dir), &VerifyOptions{Full: true, List: list}, func(f Finding) { t.Errorf("%v", f.Err) })
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(ctx, Folder(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if len(a.Manifest().Files) < 2 {
		t.Error("one part alone tells too little")
	}
	i := 0
	for r, err := range a.Select(ctx, &Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s-%d", name, i); r.Labels[0].Value != want {
			t.Fatalf("host %s, want %s", r.Labels[0].Value, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d series, want %d", i, n)
	}
}

// files lists all that is below a folder, without folders.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Of several runs that write one generation at once, one gets the folder, and its artifact is whole.
func TestWritersAtOnce(t *testing.T) {
	root := t.TempDir()
	var mu sync.Mutex
	var won []string
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			name := fmt.Sprintf("run%d", i)
			err := writeHosts(NewFolderTarget(root, 1, UUID{}), name, 100)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, name)
			} else if !errors.Is(err, fault.Conflict) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	work.Wait()
	if len(won) != 1 {
		t.Fatalf("won: %v", won)
	}
	dir := NewFolderTarget(root, 1, UUID{}).Dir()
	readHosts(t, dir, won[0], 100)
	if other, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); len(other) > 0 {
		t.Errorf("left behind: %v", other)
	}
}

// While one run writes, another is refused, and its failure takes nothing from the first.
func TestWriterBesideAnother(t *testing.T) {
	root := t.TempDir()
	first := NewFolderTarget(root, 1, UUID{})
	if err := first.Begin(); err != nil {
		t.Fatal(err)
	}
	second := NewFolderTarget(root, 1, UUID{})
	err := second.Begin()
	if !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), first.Dir()) {
		t.Errorf("a second run: %v", err)
	}
	second.Discard()
	if err := writeHosts(first, "first", 100); err != nil {
		t.Fatal(err)
	}
	if err := writeHosts(NewFolderTarget(root, 1, UUID{}), "late", 10); !errors.Is(err, fault.Conflict) {
		t.Errorf("a late run: %v", err)
	}
	readHosts(t, first.Dir(), "first", 100)
}

// What is in the folder already, or comes there while a run writes, is never replaced, and never removed.
func TestWriterReplacesNothing(t *testing.T) {
	for _, name := range []string{PartName(0), PartName(3), ManifestName, "notes.txt"} {
		for _, late := range []bool{false, true} {
			root := t.TempDir()
			target := NewFolderTarget(root, 1, UUID{})
			plant := func() {
				if err := os.MkdirAll(target.Dir(), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(target.Dir(), name), []byte("mine"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if late {
				if err := target.Begin(); err != nil {
					t.Fatal(err)
				}
			}
			plant()
			if err := writeHosts(target, "run", 100); !errors.Is(err, fault.Conflict) {
				t.Errorf("%s: %v", name, err)
			}
			path := filepath.Join(target.Dir(), name)
			if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			if got := files(t, root); len(got) != 1 {
				t.Errorf("%s: left behind: %v", name, got)
			}
		}
	}
	// An empty folder is as good as none.
	target := NewFolderTarget(t.TempDir(), 1, UUID{})
	if err := os.MkdirAll(target.Dir(), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := writeHosts(target, "run", 100); err != nil {
		t.Fatal(err)
	}
	readHosts(t, target.Dir(), "run", 100)
}

// A file beside the folder is not replaced either; one with the same bytes will do.
func TestCreateBeside(t *testing.T) {
	root := t.TempDir()
	target := NewFolderTarget(root, 1, UUID{})
	path := target.Dir() + ".tables.csv"
	write := func(text string) error {
		out, err := target.CreateBeside(context.Background(), ".tables.csv")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Abort()
		if _, err := out.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return out.Commit()
	}
	if err := write("1,up"); err != nil {
		t.Fatal(err)
	}
	target.Discard()
	if got := files(t, root); len(got) != 0 {
		t.Errorf("after Discard: %v", got)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("1,up"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := write("2,down"); !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), path) {
		t.Errorf("other bytes: %v", err)
	}
	if err := write("1,up"); err != nil {
		t.Errorf("the same bytes: %v", err)
	}
	target.Discard()
	if text, err := os.ReadFile(path); err != nil || string(text) != "1,up" {
		t.Errorf("%q, %v", text, err)
	}
}

// dying is a target whose process is killed at a step.
type dying struct {
	*FolderTarget
	left int
}

func (d *dying) step() {
	if d.left--; d.left < 0 {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
}

func (d *dying) Create(ctx context.Context, name string) (Output, error) {
	d.step()
	out, err := d.FolderTarget.Create(ctx, name)
	d.step()
	return &dyingOutput{out, d}, err
}

type dyingOutput struct {
	Output
	d *dying
}

func (o *dyingOutput) Write(p []byte) (int, error) {
	n, err := o.Output.Write(p)
	o.d.step()
	return n, err
}

func (o *dyingOutput) Commit() error {
	o.d.step()
	err := o.Output.Commit()
	o.d.step()
	return err
}

// Wherever a run is killed, there is no artifact or a whole one, and the next run makes its own and leaves nothing else.
func TestWriterKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed, left := 0, 0
	for step := 0; ; step++ {
		root := t.TempDir()
		c := exec.Command(self)
		c.Env = append(os.Environ(), "SERIES_WRITE="+root, "SERIES_STEP="+strconv.Itoa(step))
		out, err := c.CombinedOutput()
		if len(out) > 0 {
			t.Fatalf("%s", out)
		}
		dir := NewFolderTarget(root, 1, UUID{}).Dir()
		if err == nil {
			readHosts(t, dir, "child", 100)
			break
		}
		killed++
		left += len(files(t, root))
		whole := slices.Contains(files(t, dir2(dir)), ManifestName)
		err = writeHosts(NewFolderTarget(root, 1, UUID{}), "next", 100)
		switch {
		case whole && errors.Is(err, fault.Conflict):
			readHosts(t, dir, "child", 100)
		case whole || err != nil:
			t.Fatalf("step %d: whole %t, the next run: %v", step, whole, err)
		default:
			readHosts(t, dir, "next", 100)
		}
		want := len(files(t, dir))
		if got := files(t, root); len(got) != want {
			t.Errorf("step %d: left behind: %v", step, got)
		}
	}
	if killed < 20 || left == 0 {
		t.Errorf("%d killed, %d files left for the next", killed, left)
	}
}

// dir2 is a folder, or one without files where it is not there.
func dir2(dir string) string {
	if _, err := os.Stat(dir); err != nil {
		os.MkdirAll(dir, 0o777)
	}
	return dir
}
