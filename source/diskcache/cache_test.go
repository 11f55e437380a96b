package diskcache

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// remoteObject is an object that counts its reads and has a version.
type remoteObject struct {
	data    []byte
	version string
	reads   atomic.Int64
	bytes   atomic.Int64
	fail    atomic.Int64 // so many reads fail
	enter   func()
}

func (o *remoteObject) ReadAt(ctx context.Context, p []byte, off int64) error {
	o.reads.Add(1)
	o.bytes.Add(int64(len(p)))
	if o.enter != nil {
		o.enter()
	}
	if o.fail.Add(-1) >= 0 {
		return fault.New(nil, "test", "the connection broke").In(o.Name())
	}
	return source.Memory(o.Name(), o.data).ReadAt(ctx, p, off)
}

func (o *remoteObject) Size() int64       { return int64(len(o.data)) }
func (o *remoteObject) Version() string   { return o.version }
func (o *remoteObject) Name() string      { return "https://example.com/a" }
func (o *remoteObject) Cost() source.Cost { return source.Cost{Gap: 1 << 20, Parallel: 16} }
func (o *remoteObject) Close() error      { return nil }

const key = "https://example.com/a?token=secret"

func random(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func open(t *testing.T, dir string, size int64) *Cache {
	t.Helper()
	c, err := Open(dir, size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, ctx context.Context, obj source.Object, off, n int64) []byte {
	t.Helper()
	p := make([]byte, n)
	if err := obj.ReadAt(ctx, p, off); err != nil {
		t.Fatal(err)
	}
	return p
}

// Any reads, in any order, warm and cold, give the bytes of the object, and none is asked for twice.
func TestReads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		data := random(rapid.IntRange(0, 5*BlockSize).Draw(rt, "size"), 1)
		dir := t.TempDir()
		remote := &remoteObject{data: data, version: `"v1"`}
		var m source.Meter
		obj := open(t, dir, 0).Object(key, remote, &m)
		for range rapid.IntRange(1, 12).Draw(rt, "reads") {
			off := rapid.IntRange(0, len(data)).Draw(rt, "off")
			n := rapid.IntRange(0, len(data)-off).Draw(rt, "n")
			ctx := context.Background()
			if rapid.Bool().Draw(rt, "directory") {
				ctx = source.ForDirectory(ctx)
			}
			before := remote.reads.Load()
			hits := m.Receipt().CacheHits
			if got := read(t, ctx, obj, int64(off), int64(n)); !bytes.Equal(got, data[off:off+n]) {
				rt.Fatalf("wrong bytes at %d", off)
			}
			hit := m.Receipt().CacheHits - hits
			if asked := remote.reads.Load() > before; n > 0 && (hit == 1) == asked {
				rt.Fatalf("asked %v, %d hits", asked, hit)
			}
			if rapid.IntRange(0, 3).Draw(rt, "again") == 0 { // another process
				obj = open(t, dir, 0).Object(key, remote, &m)
			}
		}
		if remote.bytes.Load() > int64(len(data)) {
			rt.Fatalf("%d bytes asked for, of an object of %d", remote.bytes.Load(), len(data))
		}
	})
}

func TestMissingBlocksSideBySideAreOneRequest(t *testing.T) {
	data := random(10*BlockSize, 2)
	remote := &remoteObject{data: data, version: "1"}
	obj := open(t, t.TempDir(), 0).Object(key, remote, nil)
	ctx := context.Background()
	read(t, ctx, obj, 4*BlockSize+7, 1) // block 4
	if got := read(t, ctx, obj, 1, 8*BlockSize); !bytes.Equal(got, data[1:8*BlockSize+1]) {
		t.Fatal("wrong bytes")
	}
	if n := remote.reads.Load(); n != 3 { // block 4; 0 to 3; 5 to 8
		t.Errorf("%d requests, want 3", n)
	}
	if n := remote.bytes.Load(); n != 9*BlockSize {
		t.Errorf("%d bytes, want %d", n, 9*BlockSize)
	}
}

func TestAnotherVersionIsFetchedAnew(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	for i, version := range []string{"1", "2", "1"} {
		data := random(100, uint64(len(version))+uint64(version[0]))
		remote := &remoteObject{data: data, version: version}
		obj := open(t, dir, 0).Object(key, remote, nil)
		if got := read(t, ctx, obj, 0, 100); !bytes.Equal(got, data) {
			t.Errorf("version %s: wrong bytes", version)
		}
		if got, want := remote.reads.Load(), int64(1-i/2); got != want {
			t.Errorf("version %s: %d requests, want %d", version, got, want)
		}
		if known, ok := open(t, dir, 0).Known(key); !ok || known != (Known{version, 100}) {
			t.Errorf("known is %v", known)
		}
	}
}

func TestNoVersionIsNotKept(t *testing.T) {
	remote := &remoteObject{data: random(100, 3)}
	if obj := open(t, t.TempDir(), 0).Object(key, remote, nil); obj != source.Object(remote) {
		t.Error("an object without a version is kept")
	}
}

// blocks lists the block files below dir.
func blocks(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A damaged block is fetched again, whatever the damage is, and is good afterwards.
func TestDamagedBlock(t *testing.T) {
	data := random(2*BlockSize+100, 4)
	for name, damage := range map[string]func([]byte) []byte{
		"bit":      func(b []byte) []byte { b[100] ^= 4; return b },
		"checksum": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"cut":      func(b []byte) []byte { return b[:len(b)-1] },
		"longer":   func(b []byte) []byte { return append(b, 0) },
		"empty":    func(b []byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx := context.Background()
			remote := &remoteObject{data: data, version: "1"}
			obj := open(t, dir, 0).Object(key, remote, nil)
			read(t, ctx, obj, 0, obj.Size())
			for _, path := range blocks(t, dir) {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, damage(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if got := read(t, ctx, obj, 0, obj.Size()); !bytes.Equal(got, data) {
					t.Fatal("wrong bytes")
				}
			}
			if n := remote.bytes.Load(); n != 2*int64(len(data)) {
				t.Errorf("%d bytes asked for, want the object twice", n)
			}
		})
	}
}

// A block under the name of another one is not taken for it.
func TestBlockUnderAnotherName(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	data := random(2*BlockSize, 5)
	obj := open(t, dir, 0).Object(key, &remoteObject{data: data, version: "1"}, nil)
	read(t, ctx, obj, 0, BlockSize)
	list := blocks(t, dir)
	if len(list) != 1 {
		t.Fatal(list)
	}
	if err := os.Rename(list[0], filepath.Join(filepath.Dir(list[0]), "1.payload")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, ctx, obj, 0, 2*BlockSize); !bytes.Equal(got, data) {
		t.Error("wrong bytes")
	}
}

func TestErrorsPassAndAreNotKept(t *testing.T) {
	data := random(100, 6)
	remote := &remoteObject{data: data, version: "1"}
	remote.fail.Store(1)
	obj := open(t, t.TempDir(), 0).Object(key, remote, nil)
	if err := obj.ReadAt(context.Background(), make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(), "broke") {
		t.Errorf("error %v", err)
	}
	if got := read(t, context.Background(), obj, 10, 10); !bytes.Equal(got, data[10:20]) {
		t.Error("wrong bytes")
	}
	for _, bad := range [][2]int64{{-1, 1}, {0, 101}, {101, 0}, {1 << 62, 1 << 10}} {
		if err := obj.ReadAt(context.Background(), make([]byte, bad[1]), bad[0]); !errors.Is(err, fault.Invalid) {
			t.Errorf("%d bytes at %d: %v", bad[1], bad[0], err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := obj.ReadAt(ctx, make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Goroutines that want the same blocks at the same time fetch them once.
func TestTogether(t *testing.T) {
	data := random(8*BlockSize, 7)
	remote := &remoteObject{data: data, version: "1"}
	var once sync.Once
	gate := make(chan struct{})
	remote.enter = func() { once.Do(func() { <-gate }) }
	obj := open(t, t.TempDir(), 0).Object(key, remote, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			off := int64(i%7) * BlockSize
			p := make([]byte, 2*BlockSize)
			if err := obj.ReadAt(context.Background(), p, off); err != nil || !bytes.Equal(p, data[off:off+2*BlockSize]) {
				t.Errorf("at %d: %v", off, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n := remote.bytes.Load(); n != int64(len(data)) {
		t.Errorf("%d bytes asked for, the object has %d", n, len(data))
	}
}

// One that waits for another's fetch ends with its own context.
func TestWaitEndsWithContext(t *testing.T) {
	remote := &remoteObject{data: random(100, 8), version: "1"}
	in, out := make(chan struct{}), make(chan struct{})
	remote.enter = func() { close(in); <-out }
	obj := open(t, t.TempDir(), 0).Object(key, remote, nil)
	first := make(chan error, 1)
	go func() { first <- obj.ReadAt(context.Background(), make([]byte, 1), 0) }()
	<-in
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan error, 1)
	go func() { second <- obj.ReadAt(ctx, make([]byte, 1), 0) }()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(out)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestEviction(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	c := open(t, dir, 8*BlockSize)
	data := random(40*BlockSize, 9)
	remote := &remoteObject{data: data, version: "1"}
	obj := c.Object(key, remote, nil)
	read(t, source.ForDirectory(ctx), obj, 39*BlockSize, BlockSize)
	past := time.Now().Add(-time.Hour)
	for _, path := range blocks(t, dir) { // the oldest of all, and it is kept
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(30) {
		read(t, ctx, obj, i*BlockSize, BlockSize)
	}
	var total int64
	for _, path := range blocks(t, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 9*BlockSize {
		t.Errorf("%d bytes are kept, the bound is %d", total, 8*BlockSize)
	}
	before := remote.reads.Load()
	read(t, ctx, obj, 39*BlockSize, BlockSize)
	if remote.reads.Load() != before {
		t.Error("the directory was evicted before payload")
	}
	for i := range int64(20) { // directories alone: not more than the bound
		read(t, source.ForDirectory(ctx), obj, i*BlockSize, BlockSize)
	}
	if n := len(blocks(t, dir)); n > 9 {
		t.Errorf("%d blocks of directories are kept", n)
	}
	if got := read(t, ctx, obj, 0, obj.Size()); !bytes.Equal(got, data) {
		t.Error("wrong bytes")
	}
}

// A block that was read as payload and is read as a directory later is kept as one from then on.
func TestPayloadBecomesDirectory(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	data := random(3*BlockSize, 11)
	remote := &remoteObject{data: data, version: "1"}
	c := open(t, dir, 0)
	obj := c.Object(key, remote, nil)
	read(t, ctx, obj, 0, 3*BlockSize)
	kinds := func() (kinds []string) {
		for _, path := range blocks(t, dir) {
			kinds = append(kinds, filepath.Base(path))
		}
		return kinds
	}
	if got := read(t, source.ForDirectory(ctx), obj, BlockSize+5, 10); !bytes.Equal(got, data[BlockSize+5:][:10]) {
		t.Error("wrong bytes")
	}
	if got, want := strings.Join(kinds(), " "), "0.payload 1.directory 2.payload"; got != want {
		t.Errorf("blocks %s, want %s", got, want)
	}
	if got := read(t, ctx, open(t, dir, 0).Object(key, remote, nil), 0, 3*BlockSize); !bytes.Equal(got, data) {
		t.Error("wrong bytes")
	}
	if got, want := strings.Join(kinds(), " "), "0.payload 1.directory 2.payload"; got != want {
		t.Errorf("blocks %s after a read as payload, want %s", got, want)
	}
	if n := remote.reads.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// What is missing is believed for a while, beside the version that it was looked for, and until it is made.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, 0)
	if c.Missing(key, "1") {
		t.Error("missing before it was noted")
	}
	c.SetMissing(key, "1")
	for _, c := range []*Cache{c, open(t, dir, 0)} {
		if !c.Missing(key, "1") || c.Missing(key, "2") || c.Missing(key+"x", "1") {
			t.Errorf("missing %v, beside another version %v, another object %v", c.Missing(key, "1"), c.Missing(key, "2"), c.Missing(key+"x", "1"))
		}
	}
	c.Made(key)
	if c.Missing(key, "1") {
		t.Error("missing after it was made")
	}
	c.SetMissing(key, "1")
	past := time.Now().Add(-MissingAge - time.Minute)
	if err := os.Chtimes(filepath.Join(dir, hash(key), missingName), past, past); err != nil {
		t.Fatal(err)
	}
	if c.Missing(key, "1") {
		t.Error("missing after the time for which it is believed")
	}
	open(t, dir, 0)
	if _, err := os.Stat(filepath.Join(dir, hash(key))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is no longer believed is kept: %v", err)
	}
}

// Only files of the cache are removed, and only a cache is taken for one.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, 1); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, 4*BlockSize)
	obj := c.Object(key, &remoteObject{data: random(10*BlockSize, 10), version: "1"}, nil)
	read(t, context.Background(), obj, 0, BlockSize)
	for _, path := range []string{foreign, filepath.Join(filepath.Dir(blocks(t, dir)[0]), "notes")} {
		if err := os.WriteFile(path, make([]byte, 4*BlockSize), 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}()
	}
	read(t, context.Background(), obj, 0, 10*BlockSize)
	c.evict()
}

func TestOffline(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	c := open(t, dir, 0)
	if _, err := c.Offline(key, "https://example.com/a", nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("error %v", err)
	}
	data := random(3*BlockSize, 11)
	read(t, ctx, c.Object(key, &remoteObject{data: data, version: "1"}, nil), 10, 20)
	obj, err := c.Offline(key, "https://example.com/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, ctx, obj, 0, 100); !bytes.Equal(got, data[:100]) || obj.Size() != int64(len(data)) {
		t.Error("wrong bytes")
	}
	if err := obj.ReadAt(ctx, make([]byte, 1), 2*BlockSize); !errors.Is(err, fault.NotFound) {
		t.Errorf("error %v", err)
	}
}

// No name of an object, and nothing of its URL, stands in the folder.
func TestSecretsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	obj := open(t, dir, 0).Object(key, &remoteObject{data: random(10, 12), version: "1"}, nil)
	read(t, context.Background(), obj, 0, 10)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && (bytes.Contains(text, []byte("secret")) || strings.Contains(path, "example")) {
			t.Errorf("%s tells about the URL", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A folder that nothing can be written to is no cache, and no error.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, 0)
	if err := os.WriteFile(filepath.Join(dir, hash(key)), nil, 0o600); err != nil { // where a folder would be
		t.Fatal(err)
	}
	data := random(100, 13)
	if got := read(t, context.Background(), c.Object(key, &remoteObject{data: data, version: "1"}, nil), 0, 100); !bytes.Equal(got, data) {
		t.Error("wrong bytes")
	}
}

// Many users of a folder that is too small for what they read get right bytes.
func TestManyUsers(t *testing.T) {
	dir := t.TempDir()
	data := random(20*BlockSize, 14)
	var wg sync.WaitGroup
	for user := range uint64(8) {
		c := open(t, dir, 5*BlockSize)
		obj := c.Object(key, &remoteObject{data: data, version: "1"}, nil)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(user, 1))
			for range 100 {
				off := r.Int64N(obj.Size())
				p := make([]byte, 1+r.Int64N(min(obj.Size()-off, 3*BlockSize)))
				if err := obj.ReadAt(context.Background(), p, off); err != nil || !bytes.Equal(p, data[off:off+int64(len(p))]) {
					t.Errorf("%d bytes at %d: %v", len(p), off, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// endless is an object that claims to have as many bytes as can be said. They are zeros.
type endless struct{ remoteObject }

func (e *endless) Size() int64 { return math.MaxInt64 }
func (e *endless) ReadAt(_ context.Context, p []byte, off int64) error {
	clear(p)
	return nil
}

// The last block of the longest object has an end.
func TestLongestObject(t *testing.T) {
	obj := open(t, t.TempDir(), 0).Object(key, &endless{remoteObject{version: "1"}}, nil)
	for range 2 {
		if got := read(t, context.Background(), obj, math.MaxInt64-100, 100); !bytes.Equal(got, make([]byte, 100)) {
			t.Error("wrong bytes")
		}
	}
}

// A version that is the time of the last change holds for a second, in which an object may grow.
func TestSameVersionOfAnotherSize(t *testing.T) {
	c := open(t, t.TempDir(), 0)
	const version = "Mon, 30 Nov 2026 12:00:00 GMT"
	for seed, size := range []int{2 * BlockSize, 3 * BlockSize} {
		data := random(size, uint64(seed))
		if got := read(t, context.Background(), c.Object(key, &remoteObject{data: data, version: version}, nil), 0, int64(size)); !bytes.Equal(got, data) {
			t.Errorf("wrong bytes of %d", size)
		}
	}
}

// A version may hold bytes that are no UTF-8, as a header may.
func TestVersionIsNoText(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	data := random(BlockSize, 15)
	first := &remoteObject{data: data, version: "\"\xe9\""}
	read(t, ctx, open(t, dir, 0).Object(key, first, nil), 0, BlockSize)
	obj, err := open(t, dir, 0).Offline(key, first.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, ctx, obj, 0, BlockSize); !bytes.Equal(got, data) {
		t.Error("wrong bytes")
	}
	other := random(BlockSize, 16)
	if got := read(t, ctx, open(t, dir, 0).Object(key, &remoteObject{data: other, version: "\"\xe8\""}, nil), 0, BlockSize); !bytes.Equal(got, other) {
		t.Error("bytes of another version")
	}
}

// What processes have left behind that were killed is removed, wherever in the folder it is.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	obj := open(t, dir, 0).Object(key, &remoteObject{data: random(10, 17), version: "1"}, nil)
	read(t, context.Background(), obj, 0, 10)
	version := filepath.Dir(blocks(t, dir)[0])
	old := time.Now().Add(-2 * staleAge)
	var left []string
	for i, place := range []string{dir, filepath.Dir(version), version} {
		for _, name := range []string{"new-1.tmp", "new-2.tmp"} {
			path := filepath.Join(place, name)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "new-1.tmp" {
				if err := os.Chtimes(path, old, old); err != nil {
					t.Fatal(i, err)
				}
				left = append(left, path)
			}
		}
	}
	open(t, dir, 0)
	for _, path := range left {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Stat(strings.Replace(path, "new-1", "new-2", 1)); err != nil { // of a process that may be writing
			t.Error(err)
		}
	}
}
