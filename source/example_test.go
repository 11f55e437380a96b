package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// demoFile writes a small file and returns its path.
func demoFile() string {
	dir := must(os.MkdirTemp("", "example-*"))
	path := filepath.Join(dir, "demo.txt")
	if err := os.WriteFile(path, []byte("head....payload....tail"), 0o644); err != nil {
		panic(err)
	}
	return path
}

func Example() {
	path := demoFile()
	defer os.RemoveAll(filepath.Dir(path))

	ctx := context.Background()
	file, err := source.OpenFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()

	var meter source.Meter
	parts, err := source.Fetch(ctx, meter.Object(file), []source.Range{{Start: 8, End: 15}, {Start: 0, End: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, %s\n", parts[0], parts[1])
	fmt.Printf("%+v\n", meter.Receipt())
	// Output:
	// payload, head
	// {Size:23 Requests:1 Bytes:15 CacheHits:0 Sent:0}
}

// A file that is replaced while it is open is found out by the next read.
func ExampleOpenFile() {
	path := demoFile()
	defer os.RemoveAll(filepath.Dir(path))
	file := must(source.OpenFile(path))
	defer file.Close()

	if err := errors.Join(os.WriteFile(path+".new", nil, 0o644), os.Rename(path+".new", path)); err != nil {
		fmt.Println(err)
	}
	err := file.ReadAt(context.Background(), make([]byte, 4), 0)
	fmt.Println(errors.Is(err, fault.Changed))
	// Output: true
}

func ExampleOpenMmap() {
	path := demoFile()
	defer os.RemoveAll(filepath.Dir(path))
	file := must(source.OpenMmap(path))
	defer file.Close()

	p := make([]byte, 4)
	fmt.Println(file.ReadAt(context.Background(), p, 19), string(p))
	// Output: <nil> tail
}

// A read is whole or an error.
func ExampleMemory() {
	obj := source.Memory("greeting", []byte("hello"))
	fmt.Println(obj.ReadAt(context.Background(), make([]byte, 3), 4))
	// Output: source: greeting: 3 bytes wanted at 4, the size is 5
}

// Who decodes a format need not copy what is in memory already. What counts its reads hides that.
func ExampleBytes() {
	obj := source.Memory("greeting", []byte("hello"))
	content, ok := source.Bytes(obj)
	fmt.Printf("%s, %v\n", content, ok)
	var meter source.Meter
	content, ok = source.Bytes(meter.Object(obj))
	fmt.Printf("%s, %v\n", content, ok)
	// Output:
	// hello, true
	// , false
}

func ExampleReaderAt() {
	obj := source.ReaderAt("part", strings.NewReader("only this"), 100)
	fmt.Println(obj.ReadAt(context.Background(), make([]byte, 10), 0))
	// Output: source: part: 9 of 10 bytes are there (offset 0x0)
}

// A source that can say which version it holds now is pinned to the version it held when it was opened.
func ExamplePinned() {
	version := 1
	obj := source.Pinned(source.Memory("row", []byte("hello")), func(context.Context) error {
		if version != 1 {
			return fault.New(fault.Changed, "source", "the version was 1 when opened, is %d", version).In("row")
		}
		return nil
	})
	p := make([]byte, 5)
	fmt.Println(obj.ReadAt(context.Background(), p, 0))
	version = 2
	fmt.Println(obj.ReadAt(context.Background(), p, 0))
	// Output:
	// <nil>
	// source: row: the version was 1 when opened, is 2
}

func ExampleSection() {
	obj := must(source.Section(source.Memory("text", []byte("head....payload....tail")), 8, 7))
	p := make([]byte, 3)
	err := obj.ReadAt(context.Background(), p, 4)
	fmt.Println(obj.Size(), string(p), err)
	// Output: 7 oad <nil>
}

func ExampleMeter() {
	meter := &source.Meter{MaxBytes: 12}
	obj := meter.Object(source.Memory("text", []byte("head....payload....tail")))
	p := make([]byte, 8)
	fmt.Println(obj.ReadAt(context.Background(), p, 0))
	fmt.Println(obj.ReadAt(context.Background(), p, 8))
	fmt.Printf("%+v\n", meter.Receipt())
	// Output:
	// <nil>
	// source: text: budget of 12 bytes: 8 used, the read adds 8
	// {Size:23 Requests:1 Bytes:8 CacheHits:0 Sent:0}
}

// The cost decides what is read together.
func ExamplePlan() {
	wanted := []source.Range{{Start: 5000, End: 5100}, {Start: 0, End: 100}, {Start: 200, End: 300}}
	for _, gap := range []int64{0, 1000} {
		for _, req := range source.Plan(wanted, source.Cost{Gap: gap}) {
			fmt.Printf("gap %d: %d to %d for %v\n", gap, req.Start, req.End, req.Serves)
		}
	}
	// Output:
	// gap 0: 0 to 100 for [1]
	// gap 0: 200 to 300 for [2]
	// gap 0: 5000 to 5100 for [0]
	// gap 1000: 0 to 300 for [1 2]
	// gap 1000: 5000 to 5100 for [0]
}

func ExampleFetch() {
	obj := source.Memory("text", []byte("head....payload....tail"))
	parts, err := source.Fetch(context.Background(), obj, []source.Range{{Start: 19, End: 23}, {Start: 0, End: 4}})
	fmt.Printf("%s %v\n", parts, err)
	// Output: [tail head] <nil>
}

func ExampleNewReader() {
	obj := source.Memory("text", []byte("head....payload....tail"))
	text, err := io.ReadAll(source.NewReader(context.Background(), obj, 8, 7, 0))
	fmt.Println(string(text), err)
	// Output: payload <nil>
}

func ExampleAsReaderAt() {
	obj := source.Memory("text", []byte("head....payload....tail"))
	p := make([]byte, 10)
	n, err := source.AsReaderAt(context.Background(), obj).ReadAt(p, 19)
	fmt.Println(string(p[:n]), err)
	// Output: tail EOF
}

func ExampleSpool() {
	obj, err := source.Spool(context.Background(), strings.NewReader("from a pipe"), "standard input")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer obj.Close()
	fmt.Println(obj.Name(), obj.Size())
	// Output: standard input 11
}

func ExampleAtomicFile() {
	path := demoFile()
	defer os.RemoveAll(filepath.Dir(path))
	write := func(body string, finish bool) error {
		f, err := source.CreateAtomic(path)
		if err != nil {
			return err
		}
		defer f.Abort()
		if _, err := io.WriteString(f, body); err != nil || !finish {
			return err
		}
		return f.Commit()
	}
	for _, finish := range []bool{false, true} {
		err := write("new", finish)
		text := must(os.ReadFile(path))
		fmt.Println(string(text), err)
	}
	// Output:
	// head....payload....tail <nil>
	// new <nil>
}

// CreateNew leaves a file alone that is there.
func ExampleCreateNew() {
	path := demoFile()
	defer os.RemoveAll(filepath.Dir(path))
	_, err := source.CreateNew(path)
	fmt.Println(errors.Is(err, fault.Conflict))
	// Output: true
}

func ExampleCreateTemporary() {
	t, err := source.CreateTemporary("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close() // it is gone then
	if _, err := t.Write([]byte("scratch")); err != nil {
		fmt.Println(err)
		return
	}
	p := make([]byte, 7)
	_, err = t.ReadAt(p, 0)
	fmt.Printf("%s %v\n", p, err)
	// Output: scratch <nil>
}

// An object over a network charges the meter itself: before each request, and again when more or less has come.
func ExampleMeter_Charge() {
	meter := source.Meter{MaxRequests: 2}
	meter.Opened(1000)
	for range 3 {
		if err := meter.Charge(1, 100); err != nil {
			fmt.Println(err)
			break
		}
		meter.Correct(-40) // the connection broke
	}
	meter.Hit()
	fmt.Printf("%+v\n", meter.Receipt())
	// Output:
	// source: budget of 2 requests: 2 used, the read adds 1
	// {Size:1000 Requests:2 Bytes:120 CacheHits:1 Sent:0}
}

// What is written is counted as well, and no budget refuses it.
func ExampleMeter_Count() {
	meter := source.Meter{MaxRequests: 2}
	for range 3 {
		meter.Count(source.Receipt{Requests: 1, Sent: 1000})
	}
	fmt.Printf("%+v\n", meter.Receipt())
	fmt.Println(meter.Charge(1, 10))
	// Output:
	// {Size:0 Requests:3 Bytes:0 CacheHits:0 Sent:3000}
	// source: budget of 2 requests: 3 used, the read adds 1
}

// Reads in a row are asked for before they are wanted. UpTo says where nothing more will be wanted.
func ExampleReadAhead() {
	words := source.ReadAhead(source.Memory("words", []byte("peg, cask, tap, and no more")), 1<<20)
	defer words.Close()
	ctx := source.UpTo(context.Background(), 14)
	fmt.Println(string(must(io.ReadAll(source.NewReader(ctx, words, 0, 14, 4)))))
	// Output: peg, cask, tap
}

// A read of what a file says of itself is told apart from one of its payload, for a cache that keeps it longer.
func ExampleForDirectory() {
	ctx := context.Background()
	fmt.Println(source.IsDirectory(ctx), source.IsDirectory(source.ForDirectory(ctx)))
	// Output: false true
}
