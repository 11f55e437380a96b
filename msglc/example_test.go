package msglc_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// sample is a small archive with a table of contents that reaches down to the runs.
func sample() source.Object {
	file, err := msglc.Dumps(value.OrderedMap{
		{Key: "title", Value: "survey"},
		{Key: "runs", Value: []any{
			value.OrderedMap{{Key: "name", Value: "first"}, {Key: "energy", Value: []any{-1.5, -1.25}}},
			value.OrderedMap{{Key: "name", Value: "second"}, {Key: "energy", Value: []any{-2.0, -1.75, -1.0}}},
		}},
	}, &msglc.WriteOptions{Threshold: 32, Trivial: 8})
	if err != nil {
		log.Fatal(err)
	}
	return source.Memory("survey.msg", file)
}

func openSample(ctx context.Context) *msglc.Reader {
	r, err := msglc.Open(ctx, sample(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return r
}

// One value out of a document, found through the table of contents.
func ExampleOpen() {
	ctx := context.Background()
	r, err := msglc.Open(ctx, sample(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	path, err := msglc.ParsePath("runs/1/energy/-1")
	if err != nil {
		log.Fatal(err)
	}
	n, err := r.Find(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	v, err := n.Value(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v)
	// Output: -1
}

// A sub-tree decoded into a struct.
func ExampleNode_Decode() {
	ctx := context.Background()
	r := openSample(ctx)
	defer r.Close()
	n, err := r.Find(ctx, msglc.SplitPath("runs/0"))
	if err != nil {
		log.Fatal(err)
	}
	var run struct {
		Name   string    `spile:"name"`
		Energy []float64 `spile:"energy"`
	}
	if err := n.Decode(ctx, &run); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Name, run.Energy)
	// Output: first [-1.5 -1.25]
}

// Keys, children and slices, without reading what is not asked for.
func ExampleNode_Children() {
	ctx := context.Background()
	r := openSample(ctx)
	defer r.Close()
	for key, err := range r.Root().Keys(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		name, err := key.Decode(value.Limits{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("key", name)
	}
	runs, err := r.Root().Step(ctx, msglc.TextStep("runs"))
	if err != nil {
		log.Fatal(err)
	}
	last, err := runs.Slice(ctx, -1, 2, 1)
	if err != nil {
		log.Fatal(err)
	}
	for child, err := range last.Children(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		size, err := child.Node.Size(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("the last run has", size, "bytes")
	}
	// Output:
	// key title
	// key runs
	// the last run has 48 bytes
}

// JSON text of a part, and the payload of an archive as a plain msgpack file.
func ExampleNode_WriteJSON() {
	ctx := context.Background()
	r := openSample(ctx)
	defer r.Close()
	n, err := r.Find(ctx, msglc.Path{msglc.TextStep("runs"), msglc.IndexStep(1)})
	if err != nil {
		log.Fatal(err)
	}
	if err := n.WriteJSON(ctx, os.Stdout, nil, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	var plain bytes.Buffer
	if _, err := io.Copy(&plain, r.ProtocolRawData(ctx)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(plain.Len(), "bytes of payload")
	// Output:
	// {"name":"second","energy":[-2.0,-1.75,-1.0]}
	// 106 bytes of payload
}

// A check of a whole file, payload against table of contents.
func ExampleReader_Verify() {
	ctx := context.Background()
	r := openSample(ctx)
	defer r.Close()
	findings := 0
	err := r.Verify(ctx, &msglc.VerifyOptions{Deep: true}, func(f msglc.Finding) {
		fmt.Println(f.Err)
		findings++
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(findings, "findings;", r.Info().Codec, "payload of", r.Info().PayloadSize, "bytes")
	// Output: 0 findings; msgpack payload of 106 bytes
}

// A plain msgpack or CBOR file, read by scanning it.
func ExampleOpenRaw() {
	ctx := context.Background()
	plain, err := value.Append(nil, value.CBOR, map[string]any{"a": []int{1, 2, 3}})
	if err != nil {
		log.Fatal(err)
	}
	r, err := msglc.OpenRaw(ctx, source.Memory("plain.cbor", plain), value.CBOR, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	n, err := r.Find(ctx, msglc.SplitPath("a/2"))
	if err != nil {
		log.Fatal(err)
	}
	v, err := n.Value(ctx)
	fmt.Println(v, err)
	// Output: 3 <nil>
}

// Many values are read together, with few requests.
func ExampleReader_FindAll() {
	ctx := context.Background()
	file, err := msglc.Dumps(map[string]any{"runs": []any{"first", "second", "third"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := msglc.Open(ctx, source.Memory("runs.msg", file), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	paths := []msglc.Path{msglc.SplitPath("runs/2"), msglc.SplitPath("runs/7"), msglc.SplitPath("runs/0")}
	for n, err := range r.FindAll(ctx, paths) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(n.Value(ctx))
	}
	// Output:
	// third <nil>
	// msglc: runs.msg: runs/7: index 7 in a list of 3
	// first <nil>
}
