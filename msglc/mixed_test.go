package msglc

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// mixedFiles are archives whose root lists nodes and archives under one "t".
func mixedFiles(test testing.TB) map[string][]byte {
	child := dumps(test, ints(1, 2), nil)
	// [7, <archive>] as the payload of a list: its head, an item, and the archive in the place of the other.
	payload := append([]byte{0x92, 0x07}, child...)
	end := int64(len(payload))
	leaf := obj{p(1, 2)}
	return map[string][]byte{
		"list with p":             withTOC(test, payload, obj{p(0, end), t([]any{leaf, int64(2)})}),
		"list without p":          withTOC(test, payload, obj{t([]any{leaf, int64(2)})}),
		"offset first":            withTOC(test, payload, obj{t([]any{int64(2), leaf})}),
		"offset first, with p":    withTOC(test, payload, obj{p(0, end), t([]any{int64(2), leaf})}),
		"t first, with p":         withTOC(test, payload, obj{t([]any{int64(2), leaf}), p(0, end)}),
		"map":                     withTOC(test, payload, obj{p(0, end), t(obj{kv("a", leaf), kv("b", int64(2))})}),
		"map without p":           withTOC(test, payload, obj{t(obj{kv("a", leaf), kv("b", int64(2))})}),
		"list of offsets, with p": withTOC(test, payload, obj{p(0, end), t([]any{int64(2), int64(2)})}),
	}
}

// TestMixed reads such archives, and refuses to make others of them, whose payload is no value.
func TestMixed(test *testing.T) {
	for name, file := range mixedFiles(test) {
		test.Run(name, func(test *testing.T) {
			pure := strings.HasPrefix(name, "list of offsets")
			for _, o := range []*Options{nil, {CacheBytes: -1}, {NoFastLoading: true}} {
				r := open(test, file, o)
				for child, err := range r.Root().Children(test.Context()) {
					if err != nil {
						test.Fatal(err)
					}
					v, err := child.Node.Value(test.Context())
					if err != nil || !sameValue(v, int64(7)) && !sameValue(v, ints(1, 2)) {
						test.Errorf("%v, %v", v, err)
					}
				}
				v, err := r.Root().Value(test.Context())
				var text strings.Builder
				err2 := r.Root().WriteJSON(test.Context(), &text, nil, nil)
				list, _ := v.([]any)
				named := strings.HasPrefix(name, "map")
				switch {
				case pure && err == nil && text.String() == "[[1,2],[1,2]]":
				case err != nil || err2 != nil || !named && len(list) != 2:
					test.Errorf("%v, %v; %v", v, err, err2)
				case named && text.String() != `{"a":7,"b":[1,2]}` || !named && text.String() != `[7,[1,2]]` && text.String() != `[[1,2],7]`:
					test.Errorf("%s", text.String())
				}
				_, err = r.Root().Raw(test.Context())
				if f, ok := errors.AsType[*fault.Error](err); !ok || f.Class != fault.Invalid || f.Offset != 0 {
					test.Errorf("raw: %v", err)
				}
				if _, whole := r.Root().Range(); whole {
					test.Error("the payload passes for one value")
				}
			}
			obj := source.Memory("mixed.msg", file)
			for verb, mend := range map[string]func(dst Target) error{
				"repair":  func(dst Target) error { return Repair(test.Context(), dst, obj, nil) },
				"salvage": func(dst Target) error { _, err := Salvage(test.Context(), dst, obj, nil); return err },
			} {
				want := fault.Invalid
				if pure { // one part, which is listed twice: salvage leaves it out once
					want = map[string]error{"repair": fault.Corrupt}[verb]
				}
				if err := mend(&buffer{}); !errors.Is(err, want) {
					test.Errorf("%s: %v", verb, err)
				}
			}
			out := extracted(test, open(test, file, nil).Root(), nil)
			if !bytes.Equal(out, file) {
				test.Error("the root was not copied as it is")
			}
		})
	}
}

// TestExtractBelowMixed takes a node out that lists an archive: within its range the archive comes along, outside it
// the copy would lead nowhere.
func TestExtractBelowMixed(test *testing.T) {
	child := dumps(test, ints(1, 2), nil)
	inner := append([]byte{0x92, 0x07}, child...)
	payload := append([]byte{0x92}, inner...)
	payload = append(payload, child...)
	a, b, end := int64(1), int64(1+len(inner)), int64(len(payload))
	table := func(archive int64) obj {
		return obj{p(0, end), t([]any{obj{p(a, b), t([]any{obj{p(2, 3)}, archive})}, b})}
	}
	n, err := open(test, withTOC(test, payload, table(3)), nil).Find(test.Context(), SplitPath("0"))
	if err != nil {
		test.Fatal(err)
	}
	v, err := open(test, extracted(test, n, nil), nil).Root().Value(test.Context())
	if err != nil || !sameValue(v, []any{int64(7), ints(1, 2)}) {
		test.Errorf("%v, %v", v, err)
	}
	n, err = open(test, withTOC(test, payload, table(b)), nil).Find(test.Context(), SplitPath("0"))
	if err != nil {
		test.Fatal(err)
	}
	if err := Extract(test.Context(), &buffer{}, n, nil); !errors.Is(err, fault.Corrupt) {
		test.Errorf("an archive outside: %v", err)
	}
}

// TestSalvageDamagedFirstPart: the table says that an archive is combined, also when the magic of its first part is
// damaged.
func TestSalvageDamagedFirstPart(test *testing.T) {
	var out buffer
	parts := []Part{{Name: "a", Value: ints(1, 2)}, {Name: "b", Value: "x"}}
	if err := Combine(test.Context(), &out, parts, &CombineOptions{Named: true}); err != nil {
		test.Fatal(err)
	}
	out[PrefixSize+25] ^= 0x20
	r, report := salvaged(test, out, nil)
	v, err := r.Root().Value(test.Context())
	if err != nil || !sameValue(v, map[string]any{"b": "x"}) || len(report.Breaks) != 1 || report.Breaks[0].Path.String() != "a" {
		test.Errorf("%v, %v, %+v", v, err, report)
	}
	if err := Repair(test.Context(), &buffer{}, source.Memory("c.msg", out), nil); !errors.Is(err, fault.Corrupt) {
		test.Errorf("repair: %v", err)
	}
}
