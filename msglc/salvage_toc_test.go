package msglc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// salvaged salvages a file and opens the result, which must be clean but for text that is not UTF-8.
func salvaged(t *testing.T, file []byte, o *WriteOptions) (*Reader, SalvageReport) {
	t.Helper()
	var out buffer
	report, err := Salvage(t.Context(), &out, source.Memory("broken.msg", file), o)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, out, nil)
	if err := r.Verify(t.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
		if !strings.Contains(f.Err.Error(), "UTF-8") {
			t.Errorf("the result: %v", f.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return r, report
}

// TestSalvageByTable breaks every byte of a payload in turn: no more is lost than the value that holds it, and its loss
// is said.
func TestSalvageByTable(t *testing.T) {
	const rows = 12
	var list []any
	for i := range rows {
		list = append(list, value.OrderedMap{{Key: "id", Value: int64(i + 1000)}, {Key: "text", Value: strings.Repeat("x", 30)}})
	}
	var numbers []any
	for i := range 200 {
		numbers = append(numbers, int64(i+300))
	}
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		doc := value.OrderedMap{{Key: "rows", Value: list}, {Key: "numbers", Value: numbers}, {Key: "end", Value: "here"}}
		whole := dumps(t, doc, &WriteOptions{Codec: c, Threshold: 32})
		r := open(t, whole, nil)
		from, to := PrefixSize, PrefixSize+int(r.h.tocStart)
		for at := from; at < to; at++ {
			for _, with := range []byte{0xc1, 0xff, 0x00} {
				if whole[at] == with || with == 0 && inKey(whole, at) {
					continue // a payload with another key is as whole as this one
				}
				file := bytes.Clone(whole)
				file[at] = with
				saved, report := salvaged(t, file, nil)
				same := 0
				for i := range rows {
					n, err := saved.Find(t.Context(), SplitPath(fmt.Sprintf("rows/%d", i)))
					if err != nil {
						break
					}
					if id, err := n.Find(t.Context(), SplitPath("id")); err == nil {
						v, _ := id.Value(t.Context())
						if v, ok := v.(int64); ok && v >= 1000 && v < 1000+rows {
							same++
						}
					}
				}
				n, err := saved.Find(t.Context(), SplitPath("numbers"))
				if err != nil {
					t.Fatalf("byte %d of %v is %02x: %v", at, c, with, err)
				}
				left, err := n.Len(t.Context())
				if err != nil || same < rows-1 || left < 200-16 {
					t.Errorf("byte %d of %v is %02x: %d rows, %d numbers, error %v", at, c, with, same, left, err)
				}
				if (same < rows || left < 200) && len(report.Breaks) == 0 && left < 200 {
					t.Errorf("byte %d of %v is %02x: nothing is said of what is lost", at, c, with)
				}
			}
		}
	}
}

// inKey reports whether a byte is of the text of one of the keys of the root.
func inKey(file []byte, at int) bool {
	for _, key := range []string{"rows", "numbers", "end"} {
		if i := bytes.Index(file, []byte(key)); at >= i && at < i+len(key) {
			return true
		}
	}
	return false
}

// TestSalvageByTableKeepsInside keeps what comes before the break inside a broken leaf, and says how much it is.
func TestSalvageByTableKeepsInside(t *testing.T) {
	var list []any
	for i := range 5 {
		list = append(list, ints(int64(i), 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210))
	}
	whole := dumps(t, list, &WriteOptions{Threshold: 30})
	r := open(t, whole, nil)
	n, err := r.Find(t.Context(), SplitPath("2"))
	if err != nil {
		t.Fatal(err)
	}
	file := bytes.Clone(whole)
	at, _ := n.Range()
	file[at.Start+4] = 0xc1 // the third number
	saved, report := salvaged(t, file, nil)
	v, err := saved.Root().Value(t.Context())
	want := []any{list[0], list[1], ints(2, 200), list[3], list[4]}
	if err != nil || !sameValue(v, any(want)) {
		t.Errorf("%v, %v", v, err)
	}
	if len(report.Breaks) != 1 || report.Breaks[0].Path.String() != "2/2" || report.Breaks[0].Offset != at.Start+4 ||
		len(report.Breaks[0].Cut) != 1 || report.Breaks[0].Cut[0].Kept != 2 || report.Breaks[0].Cut[0].Claimed != 12 {
		t.Errorf("%+v", report)
	}
	// A long leaf that is a scalar is lost as a whole.
	long := dumps(t, []any{strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)}, &WriteOptions{Threshold: 30})
	long[PrefixSize+1+42] = 0xc1
	saved, report = salvaged(t, long, nil)
	v, err = saved.Root().Value(t.Context())
	if err != nil || !sameValue(v, []any{strings.Repeat("a", 40), strings.Repeat("c", 40)}) || len(report.Breaks) != 1 ||
		report.Breaks[0].Path.String() != "1" || report.Breaks[0].Cut[0].Kept != 2 || report.Breaks[0].Cut[0].Claimed != 3 {
		t.Errorf("%v, %v, %+v", v, err, report)
	}
}

// TestSalvageText keeps and reports text that is not UTF-8, with a table of contents and without.
func TestSalvageText(t *testing.T) {
	whole := dumps(t, []any{"good", "bent", strings.Repeat("long", 20)}, &WriteOptions{Threshold: 10, Trivial: 2})
	whole[bytes.Index(whole, []byte("bent"))] = 0xff
	for _, file := range [][]byte{whole, whole[:len(whole)-3], whole[PrefixSize:][:3+4+5+1+81-4]} {
		_, report := salvaged(t, file, nil)
		found := false
		for _, b := range report.Breaks {
			found = found || strings.Contains(b.Err.Error(), "not UTF-8")
		}
		if !found {
			t.Errorf("%d bytes: %+v", len(file), report)
		}
	}
}

// TestSalvageLists the breaks up to a bound.
func TestSalvageLists(t *testing.T) {
	var list []any
	for range 3000 {
		list = append(list, strings.Repeat("x", 25))
	}
	file := dumps(t, list, &WriteOptions{Threshold: 24})
	r := open(t, file, nil)
	i := 0
	for child, err := range r.Root().Children(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if at, _ := child.Node.Range(); i%2 == 0 {
			file[at.Start] = 0xc1
		}
		i++
	}
	saved, report := salvaged(t, file, nil)
	n, err := saved.Root().Len(t.Context())
	if err != nil || n != 1500 || len(report.Breaks) != maxBreaks || report.Unlisted != 500 {
		t.Errorf("%d, %v; %d breaks and %d more", n, err, len(report.Breaks), report.Unlisted)
	}
}

// TestSalvageOverlappingTable takes no table whose leaves and blocks share bytes, in either order.
func TestSalvageOverlappingTable(test *testing.T) {
	payload := []byte{0x93, 0x93, 1, 2, 3, 0x92, 4, 5, 0xc1} // [[1, 2, 3], [4, 5], …
	blocks := obj{kv("p", []any{ints(2, 2, 4)})}
	for name, children := range map[string][]any{
		"leaf, blocks":   {obj{p(1, 5)}, blocks, obj{p(8, 9)}},
		"blocks, leaf":   {blocks, obj{p(3, 5)}, obj{p(8, 9)}},
		"blocks, blocks": {blocks, obj{kv("p", []any{ints(1, 3, 4)})}, obj{p(8, 9)}},
	} {
		r, _ := salvaged(test, withTOC(test, payload, obj{p(0, 9), t(children)}), nil)
		v, err := r.Root().Value(test.Context())
		if err != nil || !sameValue(v, []any{ints(1, 2, 3), ints(4, 5)}) {
			test.Errorf("%s: %v, %v", name, v, err)
		}
	}
}
