package msglc_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// printFile prints the document in a file and removes its folder.
func printFile(path string) {
	defer os.RemoveAll(filepath.Dir(path))
	obj, err := source.OpenFile(path)
	if err != nil {
		log.Fatal(err)
	}
	printDocument(obj)
}

func printDocument(obj source.Object) {
	ctx := context.Background()
	r, err := msglc.Open(ctx, obj, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	v, err := r.Root().Value(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v)
}

// folder makes a folder for the files of an example.
func folder() string {
	dir, err := os.MkdirTemp("", "msglc-example-*")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func ExampleDump() {
	path := filepath.Join(folder(), "survey.msg")
	if err := msglc.Dump(context.Background(), path, map[string]any{"runs": []int{1, 2, 3}}, nil); err != nil {
		log.Fatal(err)
	}
	printFile(path)
	// Output: map[runs:[1 2 3]]
}

// A payload of any length, made piece by piece.
func ExampleNewWriter() {
	path := filepath.Join(folder(), "squares.msg")
	f, err := source.CreateAtomic(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Abort()
	w, err := msglc.NewWriter(context.Background(), f, &msglc.WriteOptions{Codec: value.CBOR})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	w.Write(value.AppendArrayHeader(nil, value.CBOR, 4))
	for i := range 4 {
		if err := w.WriteValue(i * i); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		log.Fatal(err)
	}
	printFile(path)
	// Output: [0 1 4 9]
}

// A file that exists becomes an archive; its bytes are kept.
func ExampleIndex() {
	payload := source.Memory("list.msgpack", []byte{0x93, 1, 2, 3})
	path := filepath.Join(folder(), "list.msg")
	f, err := source.CreateAtomic(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Abort()
	if err := msglc.Index(context.Background(), f, payload, nil); err != nil {
		log.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		log.Fatal(err)
	}
	printFile(path)
	// Output: [1 2 3]
}

func ExampleAppend() {
	ctx := context.Background()
	path := filepath.Join(folder(), "all.msg")
	f, err := source.CreateAtomic(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Abort()
	if err := msglc.Combine(ctx, f, []msglc.Part{{Name: "survey", Object: sample()}}, &msglc.CombineOptions{Named: true}); err != nil {
		log.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		log.Fatal(err)
	}
	if err := msglc.Append(ctx, path, []msglc.Part{{Name: "note", Value: "added"}}, &msglc.CombineOptions{Named: true}); err != nil {
		log.Fatal(err)
	}
	printFile(path)
	// Output: map[note:added survey:map[runs:[map[energy:[-1.5 -1.25] name:first] map[energy:[-2 -1.75 -1] name:second]] title:survey]]
}

// What stands before the place where a file was cut.
func ExampleSalvage() {
	whole := []byte{0x93, 1, 0xa3, 'a', 'b', 'c', 0x92, 2, 3}
	path := filepath.Join(folder(), "saved.msg")
	f, err := source.CreateAtomic(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Abort()
	report, err := msglc.Salvage(context.Background(), f, source.Memory("cut.msgpack", whole[:8]), nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		log.Fatal(err)
	}
	for _, b := range report.Breaks {
		fmt.Println("broken at", b.Path, "offset", b.Offset)
	}
	printFile(path)
	// Output:
	// broken at 2/1 offset 8
	// [1 abc [2]]
}
