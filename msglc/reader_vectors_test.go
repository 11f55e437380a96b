package msglc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// expected decodes what typed JSON stands for, through its encoding in the codec.
func expected(t *testing.T, c value.Codec, typed any) any {
	t.Helper()
	v, err := value.Decode(c, appendTyped(nil, c, typedValue(typed)), value.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// vectorPath makes the path of a vector: a string is split, a list has its steps.
func vectorPath(p any) Path {
	if s, ok := p.(string); ok {
		return SplitPath(s)
	}
	var path Path
	for _, step := range p.([]any) {
		if n, ok := step.(json.Number); ok && strings.Contains(string(n), ".") { // a float key stands as a plain number
			f, err := n.Float64()
			if err != nil {
				panic(err)
			}
			path = append(path, KeyStep(value.Raw{Codec: value.CBOR, Data: value.AppendFloat64(nil, value.CBOR, f)}))
			continue
		}
		switch v := typedValue(step).(type) {
		case string:
			if v != "" { // an empty step is skipped in this form too
				path = append(path, TextStep(v))
			}
		default:
			path = append(path, KeyStep(value.Raw{Codec: value.CBOR, Data: appendTyped(nil, value.CBOR, v)}))
		}
	}
	return path
}

func TestVectorsRead(t *testing.T) {
	for _, v := range loadVectors(t) {
		if v.File == nil || v.OpenError != "" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			file := v.bytes(t)
			if hash(file) != v.SHA256 {
				t.Fatal("the file is not that of the vector")
			}
			for _, o := range []*Options{{}, {CacheBytes: -1}, {NoFastLoading: true}} {
				o.Offset = v.Offset
				if v.Options.Magic != nil {
					o.Magic = typedValue(v.Options.Magic).([]byte)
				}
				testVector(t, &v, file, o)
			}
		})
	}
}

func testVector(t *testing.T, v *vector, file []byte, o *Options) {
	c := codecOf(t, v.Codec)
	meter := &source.Meter{}
	r, err := Open(t.Context(), meter.Object(source.Memory(v.Name, file)), o)
	if err != nil {
		t.Fatal(err)
	}
	in := r.Info()
	if in.Codec != c || in.Start != v.Offset || in.PayloadSize != v.Header.TOCStart || in.TOCSize != v.Header.TOCSize {
		t.Errorf("layout %+v, want %+v", in, v.Header)
	}
	whole := expected(t, c, v.Value)
	for _, read := range append(v.Reads, [2]any{"", map[string]any{"$value": true}}) {
		want := whole
		if m, ok := read[1].(map[string]any); !ok || m["$value"] == nil {
			want = expected(t, c, read[1])
		}
		n, err := r.Find(t.Context(), vectorPath(read[0]))
		if err != nil {
			t.Errorf("path %v: %v", read[0], err)
			continue
		}
		got, err := n.Value(t.Context())
		if err != nil {
			t.Errorf("path %v: %v", read[0], err)
			continue
		}
		if !sameValue(want, got) {
			t.Errorf("path %v: %v, want %v", read[0], got, want)
		}
	}
	for _, e := range v.Errors {
		class := map[string]error{"key": fault.NotFound, "index": fault.NotFound, "type": fault.Invalid}[e[1].(string)]
		if _, err := r.Find(t.Context(), vectorPath(e[0])); !errors.Is(err, class) {
			t.Errorf("path %v: error %v, want class %v", e[0], err, class)
		}
	}
	if v.TOC != nil {
		testVectorTOC(t, r, v.TOC)
	}
	for i, child := range v.Children {
		steps := []any{child.Name}
		if child.Name == nil {
			steps = []any{json.Number(fmt.Sprint(i))}
		}
		var path Path
		switch s := steps[0].(type) {
		case string:
			path = Path{TextStep(s)}
		default:
			path = vectorPath(steps)
		}
		n, err := r.Find(t.Context(), path)
		if err != nil {
			t.Errorf("child %v: %v", child.Name, err)
			continue
		}
		sub, err := n.Archive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(sub.RawData(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(raw)) > child.Size || child.SHA256 != "" && int64(len(raw)) == child.Size && hash(raw) != child.SHA256 {
			t.Errorf("child %v: raw data of %d bytes differs", child.Name, len(raw))
		}
	}
	if err := r.Verify(t.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
		if !f.Note && v.Name != "stream_duplicate_keys" {
			t.Errorf("verify: %v", f.Err)
		}
	}); err != nil {
		t.Error(err)
	}
}

// testVectorTOC compares the table of contents as `spile toc` prints it with that of the vector.
func testVectorTOC(t *testing.T, r *Reader, want any) {
	var out bytes.Buffer
	if err := r.Root().WriteTOC(t.Context(), &out, &value.JSONOptions{Keys: value.KeysPairs, NonFinite: value.NonFiniteString}, nil); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := unmarshalNumbers(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if node, ok := want.(map[string]any); ok && (node["p_len"] != nil || hasTypedKey(want)) {
		return
	}
	if !reflect.DeepEqual(plainTOC(want), got) {
		t.Errorf("table of contents %s, want %v", &out, plainTOC(want))
	}
}

// plainTOC turns the node form of the vectors into that of the table: t for both lists and maps.
func plainTOC(x any) any {
	node, ok := x.(map[string]any)
	if !ok {
		return x
	}
	out := map[string]any{}
	if p, ok := node["p"]; ok {
		out["p"] = p
	}
	if list, ok := node["t"].([]any); ok {
		children := make([]any, len(list))
		for i := range list {
			children[i] = plainTOC(list[i])
		}
		out["t"] = children
	}
	if pairs, ok := node["tm"].([]any); ok {
		children := map[string]any{}
		for _, pair := range pairs {
			children[pair.([]any)[0].(string)] = plainTOC(pair.([]any)[1])
		}
		out["t"] = children
	}
	return out
}

// hasTypedKey reports whether a map of the table has a key that is no string.
func hasTypedKey(x any) bool {
	node, _ := x.(map[string]any)
	pairs, _ := node["tm"].([]any)
	for _, pair := range pairs {
		if _, ok := pair.([]any)[0].(string); !ok || hasTypedKey(pair.([]any)[1]) {
			return true
		}
	}
	list, _ := node["t"].([]any)
	for _, child := range list {
		if hasTypedKey(child) {
			return true
		}
	}
	return false
}

func TestVectorsRefused(t *testing.T) {
	for _, v := range loadVectors(t) {
		if v.OpenError == "" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			r, err := Open(t.Context(), source.Memory(v.Name, v.bytes(t)), nil)
			if v.OpenError == "data" && err == nil {
				_, err = r.Root().Value(t.Context())
				findings := 0
				r.Verify(t.Context(), &VerifyOptions{Deep: true}, func(f Finding) { findings++ })
				if findings == 0 {
					t.Error("verify finds nothing")
				}
			}
			if !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.UnsupportedVersion) {
				t.Errorf("error %v, want one of class %v", err, fault.Corrupt)
			}
		})
	}
}
