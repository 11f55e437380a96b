package msglc

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// extracted returns the archive of a node.
func extracted(t testing.TB, n Node, o *WriteOptions) []byte {
	t.Helper()
	var b buffer
	if err := Extract(context.Background(), &b, n, o); err != nil {
		t.Fatalf("extract: %v", err)
	}
	return b
}

// TestExtractEverything takes every node of documents out, and what is inside leaves, and compares it with the
// original.
func TestExtractEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		s.limits = value.Limits{}
		g := payloadGen{t: t, c: s.codec, left: 60}
		payload := g.value(nil, 4)
		o := &WriteOptions{Codec: s.codec, Threshold: s.threshold, Trivial: s.trivial, NumericArrays: s.numeric}
		file, err := archive(payload, o)
		if errors.Is(err, fault.Conflict) {
			t.Skip("a key twice")
		} else if err != nil {
			t.Fatal(err)
		}
		r, err := Open(context.Background(), source.Memory("in.msg", file), nil)
		if err != nil {
			t.Fatal(err)
		}
		left := 60
		extractBelow(t, r.Root(), &left)
	})
}

func archive(payload []byte, o *WriteOptions) ([]byte, error) {
	var b buffer
	w, err := NewWriter(context.Background(), &b, o)
	if err != nil {
		return nil, err
	}
	w.Write(payload)
	err = w.Close()
	return b, err
}

func extractBelow(t *rapid.T, n Node, left *int) {
	ctx := context.Background()
	if *left--; *left < 0 {
		return
	}
	want, err := n.Raw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var b buffer
	if err := Extract(ctx, &b, n, nil); err != nil {
		t.Fatalf("extract: %v", err)
	}
	r, err := Open(ctx, source.Memory("out.msg", b), nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	r.Verify(ctx, &VerifyOptions{Deep: true}, func(f Finding) {
		if !f.Note && !errors.Is(f.Err, fault.Conflict) && !errors.Is(f.Err, fault.Corrupt) {
			t.Fatalf("verify: %v", f.Err)
		}
	})
	if got, err := r.Root().Raw(ctx); err != nil || !bytes.Equal(got.Data, want.Data) || got.Codec != want.Codec {
		t.Fatalf("extracted % x, %v\nexpected % x", got.Data, err, want.Data)
	}
	if form := n.Form(); form != Inside && r.Root().Form() != form {
		t.Fatalf("a %s became a %s", form, r.Root().Form())
	}
	if kind, err := n.Kind(ctx); err != nil || kind != value.Array && kind != value.Map {
		return
	}
	for child, err := range n.Children(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		extractBelow(t, child.Node, left)
	}
}

func TestExtractKeepsTheTable(t *testing.T) {
	// The part of the table below a node is the table of the node's value, with the options it was made with.
	for _, v := range loadVectors(t) {
		if v.OpenError != "" || v.File == nil || v.Writer == nil || v.Writer.Op != "dump" || !v.Writer.Exact || v.Options.Magic != nil {
			continue
		}
		o := v.Options.write(codecOf(t, v.Codec))
		r, err := Open(t.Context(), source.Memory(v.Name, v.bytes(t)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if kind, err := r.Root().Kind(t.Context()); err != nil || kind != value.Array && kind != value.Map {
			continue
		}
		for child, err := range r.Root().Children(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if child.Node.Form() == Inside {
				continue
			}
			raw, err := child.Node.Raw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := archiveOf(t, raw.Data, o); !bytes.Equal(extracted(t, child.Node, nil), want) {
				t.Errorf("%s: child %d differs from the archive of its value", v.Name, child.Index)
			}
		}
	}
}

func TestExtractPartsAndSlices(t *testing.T) {
	ctx := t.Context()
	one := archiveOf(t, appendTyped(nil, value.CBOR, []any{int64(1), "x", int64(3)}), &WriteOptions{Codec: value.CBOR})
	var b buffer
	err := Combine(ctx, &b, []Part{{Object: source.Memory("one", one)}, {Value: "two"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := checked(t, b, nil)
	find := func(path string) Node {
		n, err := r.Find(ctx, SplitPath(path))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := extracted(t, find("0"), nil); !bytes.Equal(got, one) {
		t.Error("a part is not its own bytes")
	}
	if got := extracted(t, r.Root(), nil); !bytes.Equal(got, b) {
		t.Error("the root is not the archive")
	}
	slice := checked(t, extracted(t, find("0/0:2:3"), nil), &Options{Codec: value.CBOR})
	if v, err := slice.Root().Value(ctx); err != nil || text(v) != "[1,3]" {
		t.Errorf("slice %v, %v", v, err)
	}
	inside := checked(t, extracted(t, find("0/1"), &WriteOptions{Codec: value.CBOR}), nil)
	if v, err := inside.Root().Value(ctx); err != nil || v != "x" {
		t.Errorf("inside %v, %v", v, err)
	}
	for name, c := range map[string]struct {
		n     Node
		o     *WriteOptions
		class error
	}{
		"codec":               {find("0/1"), &WriteOptions{Codec: value.Msgpack}, fault.UnsupportedCodec},
		"slice over archives": {find("0:2"), nil, fault.Invalid},
	} {
		if err := Extract(ctx, new(buffer), c.n, c.o); !errors.Is(err, c.class) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExtractChecksLeaves(t *testing.T) {
	// A table that lies: leaves that hold two values, and a part of one.
	file := archiveWithTOC(value.Msgpack, []byte{0x92, 1, 0xa3, 'a', 'b', 'c'},
		[]byte{0x82, 0xa1, 'p', 0x92, 0, 6, 0xa1, 't', 0x92, 0x81, 0xa1, 'p', 0x92, 1, 6, 0x81, 0xa1, 'p', 0x92, 2, 5})
	r, err := Open(t.Context(), source.Memory("lie.msg", file), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, offset := range []int64{PrefixSize + 2, PrefixSize + 5} {
		n, err := r.Root().Index(t.Context(), int64(i))
		if err != nil {
			t.Fatal(err)
		}
		err = Extract(t.Context(), new(buffer), n, nil)
		e, _ := errors.AsType[*fault.Error](err)
		if !errors.Is(err, fault.Corrupt) || e.Offset != offset || e.Object != "lie.msg" {
			t.Errorf("leaf %d: %v", i, err)
		}
	}
}
