package msglc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// combined is an archive of archives.
func combined(t testing.TB, o *CombineOptions, parts ...Part) []byte {
	t.Helper()
	var b buffer
	if err := Combine(t.Context(), &b, parts, o); err != nil {
		t.Fatal(err)
	}
	return b
}

func partOf(name string, file []byte) Part {
	return Part{Name: name, Object: source.Memory("part", file)}
}

// findings are what a deep check says.
func findings(t testing.TB, file []byte) []string {
	t.Helper()
	r, err := Open(t.Context(), source.Memory("out.msg", file), nil)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	if err := r.Verify(t.Context(), &VerifyOptions{Deep: true}, func(f Finding) { all = append(all, f.Err.Error()) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// valueOf is the value of a document as text.
func valueOf(t testing.TB, file []byte) string {
	t.Helper()
	v, err := open(t, file, nil).Root().Value(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text(v)
}

// TestMendParts changes every byte of a combined archive that is not in the payload of one of its plain archives. What
// salvage makes of it always passes a deep check, and is what it was, or a break says that it is not; what repair makes
// of it is what it was.
func TestMendParts(t *testing.T) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		o := &WriteOptions{Codec: c, Threshold: 8, Trivial: 2}
		co := &CombineOptions{WriteOptions: *o}
		type leaf struct{ payload, file []byte }
		leafOf := func(v any) leaf {
			p := appendTyped(nil, c, v)
			return leaf{p, archiveOf(t, p, o)}
		}
		table := leafOf(value.OrderedMap{{Key: "list", Value: []any{int64(7), int64(8), int64(900)}}, {Key: "k", Value: "some text"}})
		list, word := leafOf([]any{int64(1), int64(2), int64(3)}), leafOf("x")
		nested := combined(t, co, partOf("", list.file), partOf("", word.file))
		good := combined(t, co, partOf("", table.file), partOf("", nested))
		want := valueOf(t, good)

		payload := make([]bool, len(good))
		for start, l := range map[int]leaf{
			PrefixSize:                     table,
			2*PrefixSize + len(table.file): list,
			2*PrefixSize + len(table.file) + len(list.file): word,
		} {
			if at := start + PrefixSize; !bytes.HasPrefix(good[at:], l.payload) {
				t.Fatalf("no payload at %#x", at)
			}
			for i := range l.payload {
				payload[start+PrefixSize+i] = true
			}
		}
		whole, repaired, tried := 0, 0, 0
		for at := range good {
			if payload[at] || at < MagicSize { // with another magic it is a plain value, or refused
				continue
			}
			changes := []byte{good[at] - 1, 0, 0xc0, 0xc1, 0xff}
			for bit := range 8 {
				changes = append(changes, good[at]^1<<bit)
			}
			for _, x := range changes {
				if x == good[at] {
					continue
				}
				tried++
				file := bytes.Clone(good)
				file[at] = x
				var out buffer
				report, err := Salvage(t.Context(), &out, source.Memory("in.msg", file), nil)
				switch {
				case errors.Is(err, fault.Corrupt), errors.Is(err, fault.UnsupportedVersion):
					if at >= PrefixSize {
						t.Errorf("%s, %02x at %#x: salvage: %v", c, x, at, err)
					}
				case err != nil:
					t.Errorf("%s, %02x at %#x: salvage: %v", c, x, at, err)
				default:
					if f := findings(t, out); len(f) > 0 {
						t.Errorf("%s, %02x at %#x: salvage: %v", c, x, at, f)
					} else if got := valueOf(t, out); got == want {
						whole++
					} else if len(report.Breaks) == 0 {
						t.Errorf("%s, %02x at %#x: salvage says nothing of %s", c, x, at, got)
					}
				}
				out = nil
				if err := Repair(t.Context(), &out, source.Memory("in.msg", file), nil); err != nil {
					if !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.UnsupportedVersion) && !errors.Is(err, fault.Invalid) {
						t.Errorf("%s, %02x at %#x: repair: %v", c, x, at, err)
					}
				} else if f := findings(t, out); len(f) > 0 {
					t.Errorf("%s, %02x at %#x: repair: %v", c, x, at, f)
				} else if got := valueOf(t, out); got != want {
					t.Errorf("%s, %02x at %#x: repair made %s", c, x, at, got)
				} else {
					repaired++
				}
				if t.Failed() && tried > 200 {
					t.FailNow()
				}
			}
		}
		t.Logf("%s: %d of %d whole, %d repaired", c, whole, tried, repaired)
	}
}

// mended is the value of what salvage makes of a file, with the paths of the breaks.
func mended(t *testing.T, file []byte) (doc string, breaks []string) {
	t.Helper()
	var out buffer
	r, err := Salvage(t.Context(), &out, source.Memory("in.msg", file), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Breaks {
		breaks = append(breaks, b.Path.String())
	}
	if f := findings(t, out); len(f) > 0 {
		t.Errorf("salvaged: %v", f)
	}
	return valueOf(t, out), breaks
}

func repairOf(ctx context.Context, file []byte) ([]byte, error) {
	var out buffer
	err := Repair(ctx, &out, source.Memory("in.msg", file), nil)
	return out, err
}

// TestMendOffsets has tables of combined archives with wrong offsets and names.
func TestMendOffsets(t *testing.T) {
	var offsets []int64
	var payload []byte
	for i := range 3 {
		offsets = append(offsets, int64(len(payload)))
		payload = append(payload, dumps(t, int64(i), nil)...)
	}
	file := func(children any) []byte { return withTOC(t, payload, value.OrderedMap{{Key: "t", Value: children}}) }
	named := func(a, b, c string) []byte {
		return file(value.OrderedMap{{Key: a, Value: offsets[0]}, {Key: b, Value: offsets[1]}, {Key: c, Value: offsets[2]}})
	}
	for name, c := range map[string]struct {
		file   []byte
		doc    string
		breaks []string
		repair error
	}{
		"good":               {named("a", "b", "c"), `{"a":0,"b":1,"c":2}`, nil, nil},
		"wrong offset":       {file(ints(0, offsets[1]+1, offsets[2])), `[0,1,2]`, []string{"1"}, nil},
		"wrong first offset": {file(ints(offsets[1]+1, offsets[1], offsets[2])), `[0,1,2]`, []string{"0"}, nil},
		"wrong named offset": {file(value.OrderedMap{{Key: "a", Value: int64(1)}, {Key: "b", Value: offsets[1]}, {Key: "c", Value: offsets[2]}}), `{"a":0,"b":1,"c":2}`, []string{"a"}, nil},
		"one left out":       {file(ints(0, offsets[2])), `[0,2]`, []string{""}, fault.Corrupt},
		"one twice":          {file(ints(0, offsets[2], offsets[2])), `[0,2]`, []string{"", "2"}, fault.Corrupt},
		"only one, twice":    {withTOC(t, append(dumps(t, int64(7), nil), make([]byte, 200)...), value.OrderedMap{{Key: "t", Value: ints(0, 0)}}), `[7]`, []string{"1"}, fault.Corrupt},
		"another order":      {file(ints(offsets[2], offsets[0], offsets[1])), `[2,0,1]`, nil, nil},
		"a name twice":       {named("a", "a", "a~2"), `{"a":0,"a~2":1,"a~2~2":2}`, []string{"a", "a~2"}, fault.Conflict},
		"a name not UTF-8":   {named("a", "b\xff", "c"), `{"a":0,"b\ufffd":1,"c":2}`, []string{`{"b\udcff"}`}, fault.Corrupt},
	} {
		doc, breaks := mended(t, c.file)
		if doc != strings.ReplaceAll(c.doc, `\ufffd`, "\ufffd") || !slices.Equal(breaks, c.breaks) {
			t.Errorf("%s: salvage: %s, breaks at %q", name, doc, breaks)
		}
		out, err := repairOf(t.Context(), c.file)
		if !errors.Is(err, c.repair) {
			t.Errorf("%s: repair: %v, want %v", name, err, c.repair)
		} else if err == nil {
			if f, doc := findings(t, out), valueOf(t, out); len(f) > 0 || doc != c.doc {
				t.Errorf("%s: repair: %v, %s", name, f, doc)
			}
		}
	}
}

// TestRepairParts says of which part the payload is damaged.
func TestRepairParts(t *testing.T) {
	inner := combined(t, nil, partOf("", dumps(t, "text", nil)), partOf("", dumps(t, []any{int64(1), "word"}, nil)))
	good := combined(t, &CombineOptions{Named: true}, partOf("a", dumps(t, int64(1), nil)), partOf("b", inner))
	broken := bytes.Clone(good)
	at := bytes.Index(broken, []byte("\xa4word"))
	broken[at] = 0xc1
	_, err := repairOf(t.Context(), broken)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(err, fault.Corrupt) || f.Where != "b/1" || f.Offset != int64(at) {
		t.Errorf("repair: %v", err)
	}
	doc, breaks := mended(t, broken)
	if doc != `{"a":1,"b":["text",[1]]}` || !slices.Equal(breaks, []string{"b/1/1"}) {
		t.Errorf("salvage: %s, breaks at %q", doc, breaks)
	}
	// A table that differs from one of a combined archive by a letter.
	plain := dumps(t, strings.Repeat("x", 100), nil)
	plain[bytes.LastIndexByte(plain, 'p')] = 't'
	if out, err := repairOf(t.Context(), plain); err != nil || len(findings(t, out)) > 0 {
		t.Errorf("repair: %v", err)
	}
	if doc, breaks := mended(t, combined(t, nil, partOf("", plain))); doc != `["`+strings.Repeat("x", 100)+`"]` || len(breaks) > 0 {
		t.Errorf("salvage: %s, breaks at %q", doc, breaks)
	}
}

// TestNotUTF8 has keys and names that are not UTF-8, in a leaf and in a table.
func TestNotUTF8(t *testing.T) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		for _, threshold := range []int64{0, 1} {
			payload := value.AppendMapHeader(nil, c, 2)
			for _, key := range []string{"a", "k\xff"} {
				payload = value.AppendString(payload, c, key)
				payload = appendTyped(payload, c, []any{int64(1), int64(2)})
			}
			file := archiveOf(t, payload, &WriteOptions{Codec: c, Threshold: threshold, Trivial: 1})
			if f := findings(t, file); len(f) != 1 || !strings.Contains(f[0], "UTF-8") {
				t.Errorf("%s, threshold %d: verify: %v", c, threshold, f)
			}
			if _, err := repairOf(t.Context(), file); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "UTF-8") {
				t.Errorf("%s, threshold %d: repair: %v", c, threshold, err)
			}
		}
	}
	file := withTOC(t, dumps(t, int64(1), nil), obj{kv("t", obj{kv("n\xff", int64(0))})})
	if f := findings(t, file); len(f) != 1 || !strings.Contains(f[0], "UTF-8") {
		t.Errorf("verify of a name: %v", f)
	}
}
