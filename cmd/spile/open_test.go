package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source"
)

// closing is an object that notes that it was closed.
type closing struct {
	source.Object
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return c.Object.Close()
}

// TestClosed: what lies in the middle of an object closes it, whatever it is.
func TestClosed(t *testing.T) {
	dir := sampleFiles(t, map[string]string{
		"a.json": `{"a":1}`, "meta.json": metaJSON(1), "series.jsonl": seriesLines(3), "rows.jsonl": `{"n":1}`,
		"schema.json": `{"columns":[{"tag":1,"name":"n","type":"i32"}]}`,
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	good(t, "pack", file("a.json"), "-o", file("a.msg"))
	good(t, "unpack", file("a.msg"), "-o", file("a.msgpack"))
	good(t, "table", "build", "--schema", file("schema.json"), file("rows.jsonl"), "-o", file("a.tcb"))
	good(t, "series", "build", "--meta", file("meta.json"), file("series.jsonl"), "-o", file("out"))
	storetest.Must(t, os.Rename(file("out/"+folderOf(1)+"/part-0.series"), file("part-0.series")))
	for _, name := range []string{"a.json", "a.msg", "a.msgpack", "a.tcb", "part-0.series"} {
		content, err := os.ReadFile(file(name))
		storetest.Must(t, err)
		for _, offset := range []int{0, 7} {
			obj := &closing{Object: source.Memory(name, append(bytes.Repeat([]byte{' '}, offset), content...))}
			var in sourceFlags
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			in.add(flags)
			in.addTables(flags)
			in.addArtifacts()
			in.offset = size(offset)
			e := &env{shared: &shared{}, stderr: &bytes.Buffer{}}
			e.limits.maxBytes, e.limits.maxRequests = unlimited, unlimited
			d, err := openDocument(t.Context(), obj, e, &in)
			storetest.Must(t, err)
			storetest.Must(t, d.Close())
			if !obj.closed {
				t.Errorf("%s from byte %d on is closed, and its object is not", name, offset)
			}
		}
	}
	plain, err := os.ReadFile(file("a.msgpack"))
	storetest.Must(t, err)
	storetest.Must(t, os.WriteFile(file("behind"), append([]byte("       "), plain...), 0o666))
	sameText(t, "get --offset of a plain file", good(t, "get", "--offset", "7", file("behind"), "a"), "1\n")
	bad(t, statusFailed, "nothing there, the size is 11 (offset 0x64)", "pack", "--format", "json", "--offset", "100", file("behind"), "-o", file("x.msg"))

	obj := &closing{Object: source.Memory("short", []byte("123"))}
	if rest, err := from(obj, 4); err == nil || rest != obj || obj.closed {
		t.Errorf("%v, %v, closed %v", rest, err, obj.closed)
	}
}
