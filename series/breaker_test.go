package series

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// questions are what can be asked of an artifact. Each gives a text of what it has found.
func questions(t testing.TB) map[string]func(ctx context.Context, a *Artifact) (string, error) {
	t.Helper()
	matcher := func(op Op, name, value string) *Matcher {
		m, err := NewMatcher(op, name, value)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	host := matcher(Regexp, "host", ".*[0-5]")
	zone := matcher(NotEqual, "zone", "a")
	collect := func(ctx context.Context, a *Artifact, q *Query) (string, error) {
		var b strings.Builder
		for r, err := range a.Select(ctx, q) {
			if err != nil {
				return b.String(), err
			}
			fmt.Fprintln(&b, r)
		}
		return b.String(), nil
	}
	return map[string]func(ctx context.Context, a *Artifact) (string, error){
		"all": func(ctx context.Context, a *Artifact) (string, error) { return collect(ctx, a, &Query{Mode: Native}) },
		"select": func(ctx context.Context, a *Artifact) (string, error) {
			return collect(ctx, a, &Query{Matchers: []*Matcher{host, zone}, Columns: []string{"zone"}})
		},
		"labels": func(ctx context.Context, a *Artifact) (string, error) {
			names, err := a.LabelNames(ctx, &Query{Matchers: []*Matcher{host}})
			return fmt.Sprint(names), err
		},
		"values": func(ctx context.Context, a *Artifact) (string, error) {
			names, err := a.LabelValues(ctx, "host", &Query{Matchers: []*Matcher{zone}})
			return fmt.Sprint(names), err
		},
		"count": func(ctx context.Context, a *Artifact) (string, error) {
			n, err := a.Count(ctx, &Query{Matchers: []*Matcher{host}})
			return fmt.Sprint(n), err
		},
		"sum": func(ctx context.Context, a *Artifact) (string, error) {
			n, err := a.SumRows(ctx, &Query{})
			return fmt.Sprint(n), err
		},
		"tables": func(ctx context.Context, a *Artifact) (string, error) {
			n, err := a.Tables(ctx, &Query{Matchers: []*Matcher{host}})
			return fmt.Sprint(n), err
		},
		"lookup": func(ctx context.Context, a *Artifact) (string, error) {
			r, err := a.Lookup(ctx, ID{1, 10})
			if errors.Is(err, fault.NotFound) {
				return "none", nil
			}
			return fmt.Sprint(r), err
		},
		"scan": func(ctx context.Context, a *Artifact) (string, error) {
			var b strings.Builder
			for r, err := range a.Records(ctx, Range{ID{1, 5}, ID{2, 1 << 40}}) {
				if err != nil {
					return "", err
				}
				fmt.Fprintln(&b, r)
			}
			return b.String(), nil
		},
		"merge": func(ctx context.Context, a *Artifact) (string, error) {
			m, err := NewMerger([]*Artifact{a, a}, false)
			if err != nil {
				return "", err
			}
			var b strings.Builder
			for r, err := range m.Select(ctx, &Query{Matchers: []*Matcher{host}}) {
				if err != nil {
					return "", err
				}
				fmt.Fprintln(&b, r)
			}
			return b.String(), nil
		},
		"compare": func(ctx context.Context, a *Artifact) (string, error) {
			c, err := Compare(ctx, a, a, func(Difference) error { return nil })
			return fmt.Sprint(c), err
		},
		"export": func(ctx context.Context, a *Artifact) (string, error) {
			s := NewSorter(ctx, 4<<10)
			defer s.Close()
			for r, err := range a.Select(ctx, &Query{Mode: Native}) {
				if err == nil {
					err = s.Add(r)
				}
				if err != nil {
					return "", err
				}
			}
			n := 0
			for _, err := range s.Sorted() {
				if err != nil {
					return "", err
				}
				n++
			}
			return fmt.Sprint(n), nil
		},
	}
}

// Whichever read fails, or ends with its context, every question ends with that error, and leaves no goroutine.
func TestBrokenQuestions(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := wide(t, 600, &WriteOptions{BlockSeries: 30, PageBytes: 3000, PartBytes: 20 << 10})
	for name, ask := range questions(t) {
		for _, cancels := range []bool{false, true} {
			for n := int64(0); ; n++ {
				ctx, cancel := context.WithCancel(context.Background())
				var left atomic.Int64
				left.Store(n)
				a, err := Open(ctx, func(ctx context.Context, name string) (source.Object, error) {
					obj, err := Folder(dir)(ctx, name)
					if err != nil {
						return nil, err
					}
					b := &breaking{Object: obj, left: &left}
					if cancels {
						b.cancel = cancel
					}
					return b, nil
				}, &Options{CacheBytes: -1})
				if err == nil {
					_, err = ask(ctx, a)
					a.Close()
				}
				cancel()
				if err == nil {
					if n < 2 {
						t.Errorf("%s: %d reads", name, n)
					}
					break
				}
				want := error(errDisk)
				if cancels {
					want = context.Canceled
				}
				if !errors.Is(err, want) {
					t.Fatalf("%s, read %d: %v, want %v", name, n, err, want)
				}
			}
		}
	}
}

// Many goroutines ask one artifact at once, and each gets what one alone gets.
func TestManyGoroutines(t *testing.T) {
	dir := wide(t, 600, &WriteOptions{BlockSeries: 30, PageBytes: 3000, PartBytes: 20 << 10, Zstd: true})
	asks := questions(t)
	for _, cache := range []int64{-1, 30 << 10, 0} {
		a, err := Open(context.Background(), Folder(dir), &Options{CacheBytes: cache})
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]string)
		alone, err := Open(context.Background(), Folder(dir), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, ask := range asks {
			if want[name], err = ask(context.Background(), alone); err != nil {
				t.Fatal(err)
			}
		}
		alone.Close()
		var work sync.WaitGroup
		for range 64 {
			work.Go(func() {
				for name, ask := range asks { // in any order
					if got, err := ask(context.Background(), a); err != nil || got != want[name] {
						t.Errorf("%s: %v, %d bytes, want %d", name, err, len(got), len(want[name]))
					}
				}
			})
		}
		work.Wait()
		a.Close()
	}
}

// memoryArtifact opens an artifact whose objects are bytes.
func memoryArtifact(objects map[string][]byte) Opener {
	return func(_ context.Context, name string) (source.Object, error) {
		b, ok := objects[name]
		if !ok {
			return nil, fault.New(fault.NotFound, "test", "").In(name)
		}
		return source.Memory(name, b), nil
	}
}

// judge demands of an artifact, whatever is wrong with it, that all questions end without a fault or with one of a class and a
// check, and that none has a fault when a verifier finds nothing.
func judge(t *testing.T, what string, objects map[string][]byte, asks map[string]func(context.Context, *Artifact) (string, error)) {
	t.Helper()
	ctx := context.Background()
	bad := 0
	err := Verify(ctx, memoryArtifact(objects), &VerifyOptions{Full: true}, func(f Finding) {
		if f.Check == 0 || f.Err.Class == nil {
			t.Errorf("%s: verify: %v", what, f.Err)
		}
		if !f.Warning {
			bad++
		}
	})
	if err != nil {
		t.Fatalf("%s: verify: %v", what, err)
	}
	a, err := Open(ctx, memoryArtifact(objects), &Options{CacheBytes: -1})
	if err != nil {
		typed(t, err)
		if bad == 0 {
			t.Fatalf("%s: a verifier finds nothing: %v", what, err)
		}
		return
	}
	defer a.Close()
	for name, ask := range asks {
		_, err := ask(ctx, a)
		if err == nil {
			continue
		}
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Class == nil || Check(err) == 0 && f.Class != fault.Limit || f.Object == "" && Check(err) != 0 {
			t.Fatalf("%s: %s: an error without a class, a check or an object: %v", what, name, err)
		}
		if bad == 0 && f.Class != fault.Limit { // a sum of rows may be too great
			t.Fatalf("%s: %s: a verifier finds nothing: %v", what, name, err)
		}
	}
}

// resign corrects the checksums of a part of one level without compression.
func resign(p []byte) {
	trailer := p[len(p)-trailerSize:]
	offset, stored := binary.LittleEndian.Uint64(trailer[24:]), uint64(binary.LittleEndian.Uint32(trailer[32:]))
	if end := offset + stored; end >= offset && end <= uint64(len(p)) {
		binary.LittleEndian.PutUint64(trailer[40:], xxhash.Sum64(p[offset:end]))
	}
	binary.LittleEndian.PutUint64(trailer[88:], xxhash.Sum64(trailer[:88]))
}

// resignChunk corrects the checksum of a chunk as well.
func resignChunk(p []byte, f *frame, c *column) {
	sum := bytes.Index(p[f.root.Offset:], binary.LittleEndian.AppendUint64(nil, c.Checksum))
	binary.LittleEndian.PutUint64(p[int(f.root.Offset)+sum:], xxhash.Sum64(p[c.Offset:c.end()]))
	resign(p)
}

// Every byte of a part is changed, and the checksums are corrected, so that all the other checks have to stand.
func TestMutations(t *testing.T) {
	asks := questions(t)
	for _, name := range []string{"example-b1", "nulls"} {
		v := readVector(t, filepath.Join(vectorFolder, name+".json"))
		manifest, err := os.ReadFile(filepath.Join(v.folder, ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		part, err := os.ReadFile(filepath.Join(v.folder, PartName(0)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseFrame(part[:headerSize], part[len(part)-trailerSize:], uint64(len(part)), nil)
		if err != nil || f.depth != 1 || f.root.Compression != compressionNone {
			t.Fatal(name, err)
		}
		blocks, err := parseLeaf(part[f.root.Offset:f.root.end()], f, f.root, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Where in the page the checksum of each chunk stands.
		type chunkAt struct {
			payloadRef
			sum int
		}
		var chunks []chunkAt
		for _, b := range blocks {
			for _, c := range b.columns {
				sum := bytes.Index(part[f.root.Offset:], binary.LittleEndian.AppendUint64(nil, c.Checksum))
				chunks = append(chunks, chunkAt{c.payloadRef, int(f.root.Offset) + sum})
			}
		}
		for i := headerSize; i < len(part); i++ {
			for _, x := range []byte{1, 0x80, 0xff, part[i], part[i] ^ 2} {
				p := bytes.Clone(part)
				p[i] ^= x
				for _, c := range chunks {
					if uint64(i) >= c.Offset && uint64(i) < c.end() {
						binary.LittleEndian.PutUint64(p[c.sum:], xxhash.Sum64(p[c.Offset:c.end()]))
					}
				}
				resign(p)
				judge(t, fmt.Sprintf("%s, byte %#x ^ %#x", name, i, x), map[string][]byte{ManifestName: manifest, PartName(0): p}, asks)
			}
		}
	}
}

// A part that is cut anywhere is no part of the artifact, and no part by itself.
func TestCutParts(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"example-b1", "depth-2"} {
		v := readVector(t, filepath.Join(vectorFolder, name+".json"))
		manifest, err := os.ReadFile(filepath.Join(v.folder, ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		part, err := os.ReadFile(filepath.Join(v.folder, PartName(0)))
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(part); n += 1 + len(part)/500 {
			a, err := Open(ctx, memoryArtifact(map[string][]byte{ManifestName: manifest, PartName(0): part[:n]}), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Count(ctx, &Query{}); Check(err) != 16 || !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s cut to %d bytes: %v, want check 16", name, n, err)
			}
			a.Close()
			if _, err := OpenPart(ctx, source.Memory("part", part[:n]), nil); !errors.Is(err, fault.Corrupt) || Check(err) < 16 {
				t.Errorf("%s cut to %d bytes: %v", name, n, err)
			}
			for _, grown := range []string{"\x00", string(part)} {
				if _, err := OpenPart(ctx, source.Memory("part", slices.Concat(part, []byte(grown))), nil); !errors.Is(err, fault.Corrupt) {
					t.Errorf("%s with %d bytes more: %v", name, len(grown), err)
				}
			}
		}
	}
}

// A part of another generation in place of the own one, and a part that changes while it is open, are seen.
func TestSwappedPart(t *testing.T) {
	ctx := context.Background()
	one, other := wide(t, 600, &WriteOptions{BlockSeries: 30, PartBytes: 10 << 10}), wide(t, 500, &WriteOptions{BlockSeries: 30, PartBytes: 10 << 10})
	a, err := Open(ctx, Folder(one), &Options{CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	swapped := false
	n := 0
	last := PartName(uint32(a.NumParts() - 1)) // the second one is opened already when the first series is given
	if a.NumParts() < 3 {
		t.Fatal(a.NumParts())
	}
	for r, err := range a.Select(ctx, &Query{}) {
		if err != nil {
			if !errors.Is(err, fault.Corrupt) || Check(err) != 16 && Check(err) != 27 {
				t.Errorf("behind series %d: %v", n, err)
			}
			n = -1
			break
		}
		if n++; !swapped {
			swapped = true
			if err := os.Rename(filepath.Join(other, PartName(1)), filepath.Join(one, last)); err != nil {
				t.Fatal(err)
			}
		}
		if want := fmt.Sprintf("/%d/%d", r.TSID, r.TSID*r.TSID); r.Labels[3].Value != want {
			t.Fatalf("series %d has the path %s", r.TSID, r.Labels[3].Value)
		}
	}
	if n >= 0 {
		t.Errorf("all %d series", n)
	}
	// In place.
	dir := wide(t, 5000, &WriteOptions{BlockSeries: 30})
	b, err := Open(ctx, Folder(dir), &Options{CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	n = 0
	for _, err := range b.Select(ctx, &Query{}) {
		if err != nil {
			if !errors.Is(err, fault.Changed) {
				t.Errorf("behind series %d: %v", n, err)
			}
			return
		}
		if n++; n == 1 {
			f, err := os.OpenFile(filepath.Join(dir, PartName(0)), os.O_RDWR|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, "more")
			f.Close()
		}
	}
	t.Errorf("all %d series of a part that has changed", n)
}

// filling is a target whose disk is full behind a number of bytes, or whose n-th commit fails.
type filling struct {
	*FolderTarget
	bytes, commits int
}

var errFull = errors.New("no space left on device")

func (f *filling) Create(ctx context.Context, name string) (Output, error) {
	out, err := f.FolderTarget.Create(ctx, name)
	return &fillingOutput{out, f}, err
}

type fillingOutput struct {
	Output
	f *filling
}

func (o *fillingOutput) Write(p []byte) (int, error) {
	if o.f.bytes -= len(p); o.f.bytes < 0 {
		n, _ := o.Output.Write(p[:len(p)/2])
		return n, errFull
	}
	return o.Output.Write(p)
}

func (o *fillingOutput) Commit() error {
	if o.f.commits--; o.f.commits < 0 {
		return errFull
	}
	return o.Output.Commit()
}

// A disk that is full at any place leaves nothing, and the error is told.
func TestFullDisk(t *testing.T) {
	try := func(bytes, commits int) bool {
		root := t.TempDir()
		err := writeHosts(&filling{NewFolderTarget(root, 1, UUID{}), bytes, commits}, "run", 100)
		if err == nil {
			return true
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("%d bytes, %d commits: %v", bytes, commits, err)
		}
		if left, _ := os.ReadDir(root); len(left) > 0 {
			t.Fatalf("%d bytes, %d commits: left behind: %v", bytes, commits, left)
		}
		return false
	}
	n := 0
	for ; !try(n*61, 1<<20); n++ {
	}
	k := 0
	for ; !try(1<<30, k); k++ {
	}
	if n < 20 || k < 3 {
		t.Errorf("%d steps, %d commits", n, k)
	}
}
