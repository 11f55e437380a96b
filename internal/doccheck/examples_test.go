package doccheck

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

var update = flag.Bool("update", false, "rewrite the examples of the format pages")

var ctx = context.Background()

// example is a document that docs/format/msglc.md shows as bytes.
type example struct {
	name string
	text string // how the page writes it
	doc  any
	o    msglc.WriteOptions
	from part // the first part that is shown
}

// part is a part of an archive.
type part int

const (
	magic part = iota
	header
	toc
)

func examples() []example {
	small := value.OrderedMap{{Key: "id", Value: 7}, {Key: "grid", Value: []any{true, false}}}
	table := value.OrderedMap{
		{Key: "name", Value: "spile"}, {Key: "xs", Value: ints(24)},
		{Key: "at", Value: value.OrderedMap{{Key: "x", Value: 1}, {Key: "y", Value: 2}}},
	}
	tableText := `{"name": "spile", "xs": [0, 1, … 23], "at": {"x": 1, "y": 2}}`
	keys := value.OrderedMap{{Key: 7, Value: ints(20)}, {Key: "7", Value: ints(20)}, {Key: nil, Value: 1}}
	floats := make([]any, 12)
	for i := range floats {
		floats[i] = float64(i)
	}
	floatsText := "[0.0, 1.0, … 11.0]"
	return []example{
		{"small", `{"id": 7, "grid": [true, false]}`, small, msglc.WriteOptions{}, magic},
		{"small cbor", `{"id": 7, "grid": [true, false]}`, small, msglc.WriteOptions{Codec: value.CBOR}, magic},
		{"table", tableText, table, msglc.WriteOptions{Threshold: 16, Trivial: 8}, header},
		{"one block", tableText, table, msglc.WriteOptions{Threshold: 24, Trivial: 8}, toc},
		{"integers", "[0, 1, … 299]", ints(300), msglc.WriteOptions{Threshold: 100}, toc},
		{"keys", "{7: [0, … 19], \"7\": [0, … 19], null: 1}", keys, msglc.WriteOptions{Threshold: 16, Trivial: 8}, header},
		{"floats", floatsText, floats, msglc.WriteOptions{Threshold: 36}, toc},
		{"floats by the numeric rule", floatsText, floats, msglc.WriteOptions{Threshold: 36, NumericArrays: msglc.FloatBlocks}, toc},
	}
}

func ints(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = i
	}
	return out
}

var exampleBlock = regexp.MustCompile("(?m)^<!-- example: ([^>]*) -->\n(?:\n```text\n(?s:.*?)\n```\n)?")

// TestExamples holds the examples of the format page against what the code makes; -update rewrites them.
func TestExamples(t *testing.T) {
	const path = root + "/docs/format/msglc.md"
	made := map[string]string{"combined": combined(t)}
	for _, e := range examples() {
		archive, err := msglc.Dumps(e.doc, &e.o)
		if err != nil {
			t.Fatal(err)
		}
		made[e.name] = e.text + "\n" + dump(t, archive, 0, e.from)
	}
	page := read(t, path)
	want := exampleBlock.ReplaceAllStringFunc(page, func(block string) string {
		name := exampleBlock.FindStringSubmatch(block)[1]
		text, ok := made[name]
		if !ok {
			t.Errorf("no example %q", name)
		}
		delete(made, name)
		return fmt.Sprintf("<!-- example: %s -->\n\n```text\n%s```\n", name, text)
	})
	for name := range made {
		t.Errorf("example %q is not on the page", name)
	}
	if page == want {
		return
	}
	if !*update {
		t.Fatalf("%s: the examples differ from what the code makes; go test ./internal/doccheck -update rewrites them", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

// dump shows an archive as rows of hex with the meaning of each, beginning with a part. base is where it starts.
func dump(t *testing.T, archive []byte, base int, from part) string {
	t.Helper()
	r, err := msglc.Open(ctx, source.Memory("example", archive), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := r.Info()
	var table bytes.Buffer
	if err := r.Root().WriteTOC(ctx, &table, &value.JSONOptions{Keys: value.KeysPairs}, nil); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	row := func(p part, start, end int64, meaning string) {
		if p < from {
			return
		}
		for ; start < end; start += 16 {
			fmt.Fprintf(&b, "%04x  %-47s  %s\n", int64(base)+start, fmt.Sprintf("% x", archive[start:min(start+16, end)]), meaning)
			meaning = ""
		}
	}
	row(magic, 0, 20, "magic: padding")
	row(magic, 20, 30, fmt.Sprintf("magic: %q", in.Magic))
	row(header, 30, 40, fmt.Sprintf("toc start %d", in.PayloadSize))
	row(header, 40, 50, fmt.Sprintf("toc size %d", in.TOCSize))
	payload := "payload"
	if in.Form == msglc.Combined {
		payload = "payload: the archives"
	}
	row(header, in.PayloadStart, in.TOCStart, payload)
	row(toc, in.TOCStart, in.TOCStart+in.TOCSize, table.String())
	text := strings.ReplaceAll(b.String(), " \n", "\n")
	for strings.Contains(text, " \n") {
		text = strings.ReplaceAll(text, " \n", "\n")
	}
	return text
}

// combined is the example of a combined archive.
func combined(t *testing.T) string {
	t.Helper()
	one, err := msglc.Dumps([]any{1, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := msglc.Dumps("x", &msglc.WriteOptions{Codec: value.CBOR})
	if err != nil {
		t.Fatal(err)
	}
	var b target
	err = msglc.Combine(ctx, &b, []msglc.Part{
		{Name: "one", Object: source.Memory("one", one)}, {Name: "two", Object: source.Memory("two", two)},
	}, &msglc.CombineOptions{Named: true})
	if err != nil {
		t.Fatal(err)
	}
	return `{"one": [1, 2], "two": "x"}` + "\n" + dump(t, b, 0, header)
}

// target is an archive in memory.
type target []byte

func (b *target) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *target) WriteAt(p []byte, off int64) (int, error) { return copy((*b)[off:], p), nil }
