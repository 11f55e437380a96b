package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// vault is a store of one object. What it answers could come by any protocol.
type vault struct {
	data    []byte
	version string
	busy    int // requests that it refuses first
}

func (v *vault) Name() string { return "vault:words" }

func (v *vault) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	size := int64(len(v.data))
	answer := &remote.Response{Status: 206, Start: -1, End: -1, Size: size, Length: -1, Version: v.version, Body: io.NopCloser(bytes.NewReader(nil))}
	switch {
	case v.busy > 0:
		v.busy--
		answer.Status, answer.RetryAfter, answer.Message = 503, time.Millisecond, "busy"
		return answer, nil
	case r.Version != "" && r.Version != v.version:
		answer.Status, answer.Message = 412, "another version"
		return answer, nil
	}
	answer.Start, answer.End = r.Start, min(r.Start+r.Len, size)
	if r.Suffix {
		answer.Start, answer.End = max(0, size-r.Len), size
	}
	answer.Body = io.NopCloser(bytes.NewReader(v.data[answer.Start:answer.End]))
	return answer, nil
}

// A store becomes an object by a Getter. A refusal in passing costs a request more.
func ExampleOpen() {
	ctx := context.Background()
	store := &vault{data: []byte("peg, cask, tap"), version: "1", busy: 1}
	var meter source.Meter
	obj, err := remote.Open(ctx, store, &remote.Options{Head: 3, Meter: &meter})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer obj.Close()
	word := make([]byte, 4)
	if err := obj.ReadAt(ctx, word, 5); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s of %d bytes, version %s, by %d requests\n", word, obj.Size(), obj.Version(), meter.Receipt().Requests)

	// When the store has something else by then, no byte of it is given out.
	store.data, store.version = []byte("something new."), "2"
	err = obj.ReadAt(ctx, word, 10)
	fmt.Println(errors.Is(err, fault.Changed), err)
	// Output:
	// cask of 14 bytes, version 1, by 3 requests
	// true remote: vault:words: is no longer the version that was opened, 1
}

// A directory at the end of an object comes together with its first bytes.
func ExampleOptions() {
	ctx := context.Background()
	store := &vault{data: []byte("head....payload....tail"), version: "1"}
	var meter source.Meter
	obj, err := remote.Open(ctx, store, &remote.Options{Head: 4, Tail: 4, Retries: 2, Timeout: 10 * time.Second, ReadAhead: -1, Meter: &meter})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer obj.Close()
	tail := make([]byte, 4)
	if err := obj.ReadAt(ctx, tail, obj.Size()-4); err != nil {
		fmt.Println(err)
		return
	}
	r := meter.Receipt()
	fmt.Printf("%s, %d requests of %d bytes, %d hit\n", tail, r.Requests, r.Bytes, r.CacheHits)
	// Output: tail, 2 requests of 8 bytes, 1 hit
}

// A Getter is asked for one range at a time, and passes on what the store says.
func ExampleGetter() {
	var g remote.Getter = &vault{data: []byte("peg, cask, tap"), version: "1"}
	for _, r := range []remote.Request{{Start: 5, Len: 4}, {Len: 3, Suffix: true}, {Len: 3, Version: "0"}} {
		answer, err := g.Get(context.Background(), r)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.Status, answer.Start, answer.End, answer.Size, string(body)+answer.Message)
	}
	// Output:
	// 206 5 9 14 cask
	// 206 11 14 14 tap
	// 412 -1 -1 14 another version
}

// album is an object on its way into a store: it says what a Writer asks of it.
type album struct{}

func (album) Name() string { return "album:page" }
func (album) Limits() remote.UploadLimits {
	return remote.UploadLimits{MinPart: 4, MaxCopy: 8, Parallel: 2}
}
func (album) Put(_ context.Context, p []byte) error {
	fmt.Printf("put %q\n", p)
	return nil
}
func (album) Begin(context.Context) error                       { return nil }
func (album) Part(context.Context, remote.Part) error           { return nil }
func (album) CopyPart(context.Context, remote.CopiedPart) error { return nil }
func (album) Complete(_ context.Context, parts int) error {
	fmt.Printf("complete %d parts\n", parts)
	return nil
}
func (album) Discard(context.Context) error {
	fmt.Println("discard")
	return nil
}
func (album) Remove(context.Context) error {
	fmt.Println("remove")
	return nil
}

// A Writer cuts what is written into parts. What is shorter than one is put at once.
func ExampleNewWriter() {
	ctx := context.Background()
	for _, text := range []string{"peg", "peg, cask, tap"} {
		w, err := remote.NewWriter(ctx, album{}, &remote.WriteOptions{PartSize: 4})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer w.Abort(ctx) // does nothing behind Commit
		if _, err := io.WriteString(w, text); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(w.Name(), w.Len(), "bytes")
		if err := w.Commit(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// album:page 3 bytes
	// put "peg"
	// album:page 14 bytes
	// complete 4 parts
}

// The first bytes can be written anew until the end, such as a header that says where the directory is.
func ExampleWriter_WriteAt() {
	ctx := context.Background()
	w, err := remote.NewWriter(ctx, album{}, &remote.WriteOptions{Hold: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Abort(ctx)
	if _, err := io.WriteString(w, "????payload"); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := w.WriteAt([]byte("0011"), 0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Commit(ctx))
	// Output:
	// put "0011payload"
	// <nil>
}

// What is abandoned leaves nothing.
func ExampleWriter_Abort() {
	ctx := context.Background()
	w, err := remote.NewWriter(ctx, album{}, &remote.WriteOptions{PartSize: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := io.WriteString(w, "peg, cask"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Abort(ctx))
	// Output:
	// discard
	// <nil>
}

// Bytes of an object that the store has are copied by the store, as far as it takes them in parts; here the object is in
// memory, and they are read and written.
func ExampleWriter_Copy() {
	ctx := context.Background()
	w, err := remote.NewWriter(ctx, album{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Abort(ctx)
	copied, err := w.Copy(ctx, source.Memory("words", []byte("peg, cask, tap")), 5, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(copied, "copied", w.Len(), "written")
	fmt.Println(w.Commit(ctx))
	// Output:
	// 0 copied 4 written
	// put "cask"
	// <nil>
}
