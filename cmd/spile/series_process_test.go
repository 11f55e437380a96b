package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A build that is interrupted while it writes leaves no file and no folder, in the output or where it sorts.
func TestBuildInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	in, dir := t.TempDir(), t.TempDir()
	meta := `{"format":"columnar-series","version":1,"region_id":1,"generation":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f","tags":[{"column_id":5,"name":"host"}],
		"coverage":{"file_size":0,"index_uuid":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f"}}`
	if err := os.WriteFile(filepath.Join(in, "meta.json"), []byte(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(in, "records"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range 100_000 {
		fmt.Fprintf(w, `{"table_id":1,"tsid":%d,"row_count":1,"labels":{"host":"web-%d"}}`+"\n", i*7919%100_003, i)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	p := start(t, nil, "series", "build", "--stats", "--meta", filepath.Join(in, "meta.json"), "--memory", "1MiB", "--block-series", "8", "--part-bytes", "1KiB", f.Name(), "-o", filepath.Join(dir, "out"))
	until(t, "it writes parts", func() bool {
		n := 0
		filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return nil
		})
		return n > 2
	})
	p.interrupt(t, os.Interrupt, dir)
}

// until waits for what a process does, up to a minute.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in a minute not reached: %s", what)
		}
	}
}

// hasEntries reports whether something is in a folder.
func hasEntries(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return len(entries) > 0
}

// An export that is interrupted while it writes leaves no file.
func TestExportInterrupted(t *testing.T) {
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
	for i := range 400_000 {
		text = fmt.Appendf(text, "1,%d,1,web-%d\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(in, "records.csv"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, errs, status := command(t, "series", "build", "--meta", filepath.Join(in, "meta.json"), filepath.Join(in, "records.csv"), "-o", in); status != 0 {
		t.Fatal(out, errs)
	}
	for _, format := range []string{"parquet", "arrow"} { // the slow ones
		dir := t.TempDir()
		p := start(t, nil, "series", "export", "--stats", filepath.Join(in, "1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f"), "-o", filepath.Join(dir, "out."+format))
		until(t, "it has begun to write", func() bool { return hasEntries(dir) })
		p.interrupt(t, os.Interrupt, dir)
	}
}
