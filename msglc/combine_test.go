package msglc

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// archiveObject is a small archive of its own.
func archiveObject(t testing.TB, v any, o *WriteOptions) source.Object {
	t.Helper()
	c := value.Msgpack
	if o != nil && o.Codec != 0 {
		c = o.Codec
	}
	return source.Memory("part.msg", archiveOf(t, appendTyped(nil, c, v), o))
}

// checked opens an archive, verifies all of it and returns its reader.
func checked(t testing.TB, p []byte, o *Options) *Reader {
	t.Helper()
	r, err := Open(context.Background(), source.Memory("out.msg", p), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	err = r.Verify(context.Background(), &VerifyOptions{Deep: true}, func(f Finding) {
		if !f.Note {
			t.Errorf("verify: %v", f.Err)
		}
	})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	return r
}

func TestCombineCopiesTheArchiveOnly(t *testing.T) {
	one := archiveOf(t, appendTyped(nil, value.CBOR, "one"), &WriteOptions{Codec: value.CBOR})
	two := archiveOf(t, appendTyped(nil, value.Msgpack, int64(2)), nil)
	r, err := Open(t.Context(), source.Memory("two.msg", two), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := int64(0)
	o := &WriteOptions{Progress: func(n int64) { done = n }}
	var got buffer
	err = Combine(t.Context(), &got, []Part{
		{Name: "", Object: source.Memory("one.msg", append(bytes.Clone(one), "trailing"...))},
		{Name: "two", Reader: r},
		{Name: "three", Value: value.OrderedMap{{Key: "x", Value: int64(3)}}},
		{Name: "null"},
	}, &CombineOptions{Named: true, WriteOptions: *o})
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(got)) < done || done < int64(len(one)+len(two)) {
		t.Errorf("progress ends at %d, the archive has %d bytes", done, len(got))
	}
	c := checked(t, got, nil)
	if !bytes.HasPrefix(got[PrefixSize:], append(bytes.Clone(one), two...)) {
		t.Error("the archives are not copied as they are")
	}
	for path, want := range map[string]string{"two": "2", "three/x": "3", "null": "<nil>"} {
		n, err := c.Find(t.Context(), SplitPath(path))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := n.Value(t.Context()); err != nil || text(v) != want {
			t.Errorf("%s is %v, %v", path, v, err)
		}
	}
}

func text(v any) string {
	if v == nil {
		return "<nil>"
	}
	p, err := value.Append(nil, value.Msgpack, v)
	if err != nil {
		return err.Error()
	}
	p, err = value.AppendJSON(nil, value.Msgpack, p, value.Limits{}, nil, nil)
	if err != nil {
		return err.Error()
	}
	return string(p)
}

func TestCombineRefuses(t *testing.T) {
	ok := archiveObject(t, int64(1), nil)
	okBytes := archiveOf(t, appendTyped(nil, value.Msgpack, int64(1)), nil)
	short := source.Memory("short.msg", okBytes[:len(okBytes)-1])
	raw, err := OpenRaw(t.Context(), source.Memory("raw", []byte{1}), value.Msgpack, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), archiveObject(t, int64(1), &WriteOptions{Magic: []byte("other")}), &Options{Magic: []byte("other")})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		named bool
		parts []Part
		class error
	}{
		"no parts":             {false, nil, fault.Invalid},
		"a name in a list":     {false, []Part{{Object: ok}, {Name: "x", Object: ok}}, fault.Invalid},
		"a name twice":         {true, []Part{{Name: "x", Object: ok}, {Name: "y", Object: ok}, {Name: "x", Object: ok}}, fault.Conflict},
		"a name of bytes":      {true, []Part{{Name: "n\xff", Object: ok}}, fault.Invalid},
		"the empty name twice": {true, []Part{{Object: ok}, {Object: ok}}, fault.Conflict},
		"two sources":          {false, []Part{{Object: ok, Value: 1}}, fault.Invalid},
		"short":                {false, []Part{{Object: ok}, {Object: short}}, fault.Corrupt},
		"no archive":           {false, []Part{{Object: source.Memory("x", bytes.Repeat([]byte{7}, 100))}}, fault.Corrupt},
		"empty":                {false, []Part{{Object: source.Memory("x", nil)}}, fault.Corrupt},
		"old":                  {false, []Part{{Object: source.Memory("x", []byte(DefaultMagic+strings.Repeat("x", 90)))}}, fault.UnsupportedVersion},
		"another magic":        {false, []Part{{Object: archiveObject(t, int64(1), &WriteOptions{Magic: []byte("other")})}}, fault.Corrupt},
		"reader, other magic":  {false, []Part{{Reader: other}}, fault.Corrupt},
		"reader, raw":          {false, []Part{{Reader: raw}}, fault.Invalid},
	} {
		var b buffer
		if err := Combine(t.Context(), &b, c.parts, &CombineOptions{Named: c.named}); !errors.Is(err, c.class) {
			t.Errorf("%s: %v", name, err)
		}
		if len(b) > 0 {
			t.Errorf("%s: %d bytes written before the parts were looked at", name, len(b))
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	part := func(v any) source.Object { return archiveObject(t, v, nil) }
	write := func(named bool, name string) []byte {
		var b buffer
		if err := Combine(t.Context(), &b, []Part{{Name: name, Object: part("old")}}, &CombineOptions{Named: named}); err != nil {
			t.Fatal(err)
		}
		return b
	}
	list, dict := write(false, ""), write(true, "old")
	mixed := archiveWithTOC(value.Msgpack, bytes.Repeat([]byte{0}, 100), []byte{0x81, 0xa1, 't', 0x92, 0, 0x81, 0xa1, 'p', 0x92, 0, 1})
	outside := archiveWithTOC(value.Msgpack, bytes.Repeat([]byte{0}, 100), []byte{0x81, 0xa1, 't', 0x91, 60})
	for name, c := range map[string]struct {
		file  []byte
		named bool
		part  Part
		o     WriteOptions
		class error
	}{
		"a name in list mode":    {list, true, Part{Name: "x", Object: part("new")}, WriteOptions{}, fault.Invalid},
		"list mode with a name":  {list, false, Part{Name: "x", Object: part("new")}, WriteOptions{}, fault.Invalid},
		"no name in dict mode":   {dict, false, Part{Object: part("new")}, WriteOptions{}, fault.Invalid},
		"a name of bytes":        {dict, true, Part{Name: "n\xff", Object: part("new")}, WriteOptions{}, fault.Invalid},
		"a name that is there":   {dict, true, Part{Name: "old", Object: part("new")}, WriteOptions{}, fault.Conflict},
		"another codec":          {list, false, Part{Object: part("new")}, WriteOptions{Codec: value.CBOR}, fault.UnsupportedCodec},
		"another magic":          {list, false, Part{Object: part("new")}, WriteOptions{Magic: []byte("x")}, fault.Corrupt},
		"not combined":           {archiveOf(t, []byte{1}, nil), false, Part{Object: part("new")}, WriteOptions{}, fault.Invalid},
		"not combined, a table":  {archiveOf(t, []byte{0x91, 0xa1, 'x'}, &WriteOptions{Threshold: 1}), false, Part{Object: part("new")}, WriteOptions{}, fault.Invalid},
		"a node among offsets":   {mixed, false, Part{Object: part("new")}, WriteOptions{}, fault.Invalid},
		"a child in the table":   {outside, false, Part{Object: part("new")}, WriteOptions{}, fault.Corrupt},
		"a broken part":          {list, false, Part{Object: source.Memory("x", make([]byte, 200))}, WriteOptions{}, fault.Corrupt},
		"a file that was cut":    {list[:len(list)-1], false, Part{Object: part("new")}, WriteOptions{}, fault.Corrupt},
		"an empty file":          {nil, false, Part{Object: part("new")}, WriteOptions{}, fault.Corrupt},
		"a value with no coding": {list, false, Part{Value: func() {}}, WriteOptions{}, fault.Invalid},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "combined.msg")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Append(t.Context(), path, []Part{c.part}, &CombineOptions{Named: c.named, WriteOptions: c.o}); !errors.Is(err, c.class) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, c.file) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
		if all, _ := os.ReadDir(dir); len(all) != 1 {
			t.Errorf("%s: left beside it: %v", name, all)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if err := Append(t.Context(), missing, []Part{{Object: part(int64(1))}}, nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Error("a missing file was made")
	}
}

// archiveWithTOC is an archive of any payload and table.
func archiveWithTOC(c value.Codec, payload, toc []byte) []byte {
	magic, _ := padMagic(nil)
	p := appendPrefix(nil, magic, header{codec: c, tocStart: int64(len(payload)), tocSize: int64(len(toc))})
	return append(append(p, payload...), toc...)
}

func TestAppendThroughLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.msg"), filepath.Join(dir, "link.msg")
	var b buffer
	// Bytes behind the archive are not part of it, and are gone afterwards.
	if err := Combine(t.Context(), &b, []Part{{Value: "first"}}, &CombineOptions{WriteOptions: WriteOptions{Codec: value.CBOR}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, "stale"...), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file.msg", link); err != nil {
		t.Skip(err)
	}
	if err := Append(t.Context(), link, []Part{{Value: "second"}, {Value: "third"}}, nil); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != "file.msg" {
		t.Errorf("the link is %q, %v", target, err)
	}
	p, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := checked(t, p, &Options{Codec: value.CBOR})
	v, err := r.Root().Value(t.Context())
	if err != nil || text(v) != `["first","second","third"]` {
		t.Errorf("%v, %v", v, err)
	}
	if in := r.Info(); in.TOCStart+in.TOCSize != int64(len(p)) {
		t.Error("bytes behind the archive")
	}
}

// TestAppendChild is not a test: TestAppendKilled runs it in a process of its own, which it kills.
func TestAppendChild(t *testing.T) {
	path := os.Getenv("MSGLC_APPEND_TO")
	if path == "" {
		t.Skip("run by TestAppendKilled")
	}
	for {
		if err := Append(t.Context(), path, []Part{{Value: strings.Repeat("x", 100_000)}}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAppendKilled kills a process while it appends. The file must always be an archive with all that it had before.
func TestAppendKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	path := filepath.Join(t.TempDir(), "combined.msg")
	var b buffer
	if err := Combine(t.Context(), &b, []Part{{Value: "first"}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	before := int64(1)
	for range 25 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAppendChild$")
		cmd.Env = append(os.Environ(), "MSGLC_APPEND_TO="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(5+rand.IntN(60)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := checked(t, p, nil).Root().Len(t.Context())
		if err != nil || n < before {
			t.Fatalf("%d children, %d before; %v", n, before, err)
		}
		before = n
		if n > 200 { // keeps the copies short
			os.WriteFile(path, b, 0o600)
			before = 1
		}
	}
}

// TestLongMagic uses a magic without padding that begins as old archives do.
func TestLongMagic(t *testing.T) {
	o := &WriteOptions{Magic: []byte("msglc-2024-and-30-bytes-in-all")}
	part := source.Memory("part.msg", dumps(t, "x", o))
	var whole, mended buffer
	if err := Combine(t.Context(), &whole, []Part{{Object: part}}, &CombineOptions{WriteOptions: *o}); err != nil {
		t.Error(err)
	}
	if err := Repair(t.Context(), &mended, part, o); err != nil {
		t.Error(err)
	}
	if err := Combine(t.Context(), &whole, []Part{{Object: part}}, nil); !errors.Is(err, fault.UnsupportedVersion) {
		t.Errorf("error %v", err)
	}
}

// TestAppendsAtOnce: no part is lost.
func TestAppendsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "combined.msg")
	var b buffer
	if err := Combine(t.Context(), &b, []Part{{Value: "first"}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := lockFile(t.Context(), path); err != nil || f == nil {
		t.Skip("no locks here: ", err)
	} else {
		ctx, cancel := context.WithTimeout(t.Context(), 3*lockPause)
		defer cancel()
		if err := Append(ctx, path, []Part{{Value: "late"}}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a file that is locked: %v", err)
		}
		f.Close()
	}
	const writers, each = 4, 8
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for i := range each {
				if err := Append(t.Context(), path, []Part{{Value: int64(w*each + i)}}, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := checked(t, p, nil).Root().Value(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[any]bool)
	for _, x := range v.([]any) {
		seen[x] = true
	}
	if len(v.([]any)) != 1+writers*each || len(seen) != 1+writers*each {
		t.Errorf("%d parts, %d of them different", len(v.([]any)), len(seen))
	}
}

func TestNewWriterStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := NewWriter(ctx, new(buffer), nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	w.Write([]byte{0xc0})
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// copier is a target that copies objects by itself, and notes what.
type copier struct {
	buffer
	copied []source.Range
}

func (c *copier) Copy(ctx context.Context, obj source.Object, start, n int64) error {
	c.copied = append(c.copied, source.Range{Start: start, End: start + n})
	p := make([]byte, n)
	if err := obj.ReadAt(ctx, p, start); err != nil {
		return err
	}
	_, err := c.Write(p)
	return err
}

// A target that copies is asked to, for the archives alone, and the result is the same.
func TestCombineByCopier(t *testing.T) {
	one, two := archiveObject(t, []any{"one"}, nil), archiveObject(t, "two", nil)
	parts := []Part{{Name: "a", Object: one}, {Name: "b", Value: 7}, {Name: "c", Object: two}}
	var plain buffer
	if err := Combine(t.Context(), &plain, parts, &CombineOptions{Named: true}); err != nil {
		t.Fatal(err)
	}
	var got copier
	if err := Combine(t.Context(), &got, parts, &CombineOptions{Named: true}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.buffer, plain) {
		t.Error("the archive is another one")
	}
	want := []source.Range{{Start: 0, End: one.Size()}, {Start: 0, End: two.Size()}}
	if diff := cmp.Diff(want, got.copied); diff != "" {
		t.Error(diff)
	}
}
