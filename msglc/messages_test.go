package msglc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func TestPathMessages(test *testing.T) {
	r := open(test, dumps(test, value.OrderedMap{
		{Key: "l", Value: ints(1, 2, 3)}, {Key: int64(7), Value: "seven"}, {Key: "m", Value: value.OrderedMap{{Key: "a", Value: nil}}},
	}, nil), nil)
	for path, want := range map[string]string{
		"l/99999999999999999999999":  "l/99999999999999999999999: index 99999999999999999999999 in a list of 3",
		"l/-99999999999999999999999": "index -99999999999999999999999 in a list of 3",
		"l/9223372036854775807":      "index 9223372036854775807 in a list of 3",
		"l/3":                        "index 3 in a list of 3",
		"7":                          `no key "7"; the key {7} is there`,
		"8":                          `8: no key "8"`,
		"m/7":                        `m/7: no key "7"`,
		"m/b":                        `no key "b"`,
	} {
		_, err := r.Find(test.Context(), SplitPath(path))
		if !errors.Is(err, fault.NotFound) || !strings.HasSuffix(err.Error(), want) {
			test.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestOverlapSaysWhere: the error for children that overlap names the child and its place.
func TestOverlapSaysWhere(test *testing.T) {
	child := dumps(test, []any{strings.Repeat("x", 300)}, nil)
	payload := bytes.Clone(child)
	offsets := make([]int64, 20)
	file := withTOC(test, payload, obj{t(obj{kv("a", int64(0)), kv("list", obj{t(ints(offsets...))})})})
	r := open(test, file, nil)
	_, value := r.Root().Value(test.Context())
	for name, err := range map[string]error{"value": value, "json": r.Root().WriteJSON(test.Context(), io.Discard, nil, nil)} {
		var f *fault.Error
		if !errors.As(err, &f) || !errors.Is(err, fault.Corrupt) || f.Offset <= 0 || !strings.HasPrefix(f.Where, "list/") {
			test.Errorf("%s: %v", name, err)
		}
	}
	// The path counts from the root of the document where that is known, and is left out where it is not.
	n, err := r.Find(test.Context(), SplitPath("list"))
	if err != nil {
		test.Fatal(err)
	}
	again, err := r.Root().Find(test.Context(), nil)
	if err != nil {
		test.Fatal(err)
	}
	if again, err = again.Find(test.Context(), SplitPath("list")); err != nil {
		test.Fatal(err)
	}
	for _, n := range []Node{n, again} {
		_, value := n.Value(test.Context())
		for name, err := range map[string]error{"value": value, "json": n.WriteJSON(test.Context(), io.Discard, nil, nil)} {
			if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.HasPrefix(f.Where, "list/") {
				test.Errorf("%s below the root: %v", name, err)
			}
		}
	}
	for child, err := range r.Root().Children(test.Context()) {
		if err == nil && string(child.Key.Data) == "\xa4list" {
			_, err = child.Node.Value(test.Context())
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Where != "" || f.Offset <= 0 {
				test.Errorf("a child: %v", err)
			}
		}
	}
}

func TestTruncatedText(test *testing.T) {
	err := Index(test.Context(), nowhere{}, source.Memory("cut", []byte{0x92, 0x01}), nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "EOF") {
		test.Errorf("%v", err)
	}
}

// TestAnyMagic repairs and salvages an archive whose magic is damaged, when that is asked for.
func TestAnyMagic(test *testing.T) {
	whole := dumps(test, ints(1, 2, 3), nil)
	for at := range MagicSize {
		bent := bytes.Clone(whole)
		bent[at] ^= 0x55
		obj := source.Memory("bent.msg", bent)
		for name, mend := range map[string]func(Target, *WriteOptions) error{
			"repair":  func(dst Target, o *WriteOptions) error { return Repair(test.Context(), dst, obj, o) },
			"salvage": func(dst Target, o *WriteOptions) error { _, err := Salvage(test.Context(), dst, obj, o); return err },
		} {
			var out buffer
			if err := mend(&out, &WriteOptions{AnyMagic: true}); err != nil || !bytes.Equal(out, whole) {
				test.Errorf("%s, byte %d: %v", name, at, err)
			}
			if err := mend(nowhere{}, nil); name == "repair" && !errors.Is(err, fault.Corrupt) {
				test.Errorf("%s, byte %d, not asked for: %v", name, at, err)
			}
		}
	}
}
