package series

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/spilehq/spile/fault"
)

// Each structure is given to its parser as it is behind its checksum, so that a mutation gets past that.

// typed fails when err is no fault with a class and a check.
func typed(t *testing.T, err error) {
	t.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Class == nil || Check(err) == 0 {
		t.Fatalf("an error without a class or a check: %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	for _, pattern := range []string{"*.json", "bad/manifest-*.json"} {
		for _, v := range vectors(f, pattern, 10) {
			if text, err := os.ReadFile(filepath.Join(v.folder, ManifestName)); err == nil {
				f.Add(text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if !json.Valid(text) && Check(err) != 2 {
			t.Fatalf("no JSON: %v", err)
		}
		if err != nil {
			typed(t, err)
			if json.Valid(text) && Check(err) == 2 && utf8.Valid(text) && bytes.HasPrefix(text, []byte("{")) &&
				!strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "half of") && !errors.Is(err, fault.Limit) {
				t.Fatalf("JSON: %v", err)
			}
			return
		}
		out, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseManifest(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if twice, err := again.AppendJSON(nil); err != nil || !bytes.Equal(out, twice) {
			t.Fatalf("%s\nwas\n%s", twice, out)
		}
	})
}

// parts are the parts of the conformance artifacts.
func seedParts(f *testing.F, use func(p []byte, tags []Tag)) {
	for _, v := range vectors(f, "*.json", 40) {
		names, _ := filepath.Glob(filepath.Join(v.folder, "part-*.series"))
		text, err := os.ReadFile(filepath.Join(v.folder, ManifestName))
		if err != nil {
			f.Fatal(err)
		}
		m, err := ParseManifest(text)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			p, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			if len(p) >= minPartSize && len(p) < 64<<10 && string(p[:8]) == magic {
				use(p, m.Tags)
			}
		}
	}
}

func FuzzFrame(f *testing.F) {
	seedParts(f, func(p []byte, _ []Tag) { f.Add(p[:headerSize], p[len(p)-trailerSize:], uint64(len(p))) })
	f.Fuzz(func(t *testing.T, header, trailer []byte, size uint64) {
		if len(header) != headerSize || len(trailer) != trailerSize || size < minPartSize || size > 1<<62 {
			return
		}
		trailer = bytes.Clone(trailer)
		binary.LittleEndian.PutUint64(trailer[88:], xxhash.Sum64(trailer[:88]))
		fr, err := parseFrame(header, trailer, size, nil)
		if err != nil {
			typed(t, err)
			return
		}
		if out := fr.appendTrailer(nil); !bytes.Equal(out, trailer) {
			t.Fatalf("% x\nis written % x", trailer, out)
		}
	})
}

func FuzzPages(f *testing.F) {
	seedParts(f, func(p []byte, _ []Tag) {
		fr, err := parseFrame(p[:headerSize], p[len(p)-trailerSize:], uint64(len(p)), nil)
		if err != nil {
			f.Fatal(err)
		}
		page, err := fr.root.decode(p[fr.root.Offset:fr.root.end()])
		if err != nil {
			f.Fatal(err)
		}
		if len(page) < 4<<10 { // longer ones make the fuzzer slow
			f.Add(page, fr.depth == 2)
		}
		if fr.depth == 1 {
			return
		}
		children, err := parseInternal(page, fr)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range children[:min(3, len(children))] {
			leaf, err := c.decode(p[c.Offset:c.end()])
			if err != nil {
				f.Fatal(err)
			}
			if len(leaf) < 4<<10 {
				f.Add(leaf, false)
			}
		}
	})
	tags := []Tag{{1, "host"}, {2, "zone"}, {3, "job"}, {4, "env"}}
	f.Fuzz(func(t *testing.T, page []byte, inner bool) {
		fr := &frame{depth: 2, payloadEnd: 1 << 20, size: 1 << 21, root: pageRef{payloadRef: payloadRef{Offset: 1<<21 - trailerSize}}}
		if inner {
			// The bounds that the reference to the page states are those of the page, so that the other checks are come to.
			if len(page) >= pagePrefix+pageRefSize {
				fr.root.First, fr.root.Last = parseID(page[pagePrefix:]), parseID(page[len(page)-pageRefSize+12:])
			}
			children, err := parseInternal(page, fr)
			if err != nil {
				typed(t, err)
				return
			}
			if out := appendInternal(nil, children); !bytes.Equal(out, page) {
				t.Fatalf("% x\nis written % x", page, out)
			}
			return
		}
		var ref pageRef
		if len(page) >= pagePrefix+28 {
			ref.First = parseID(page[pagePrefix:])
		}
		for _, index := range []*tagIndex{newTagIndex(tags), nil, {byName: make(map[string]int), grows: true}} {
			blocks, err := parseLeaf(page, fr, ref, index)
			if Check(err) == 60 { // the last block is not known before the page is read
				continue
			}
			if err != nil {
				typed(t, err)
				continue
			}
			if out := appendLeaf(nil, blocks); !bytes.Equal(out, page) {
				t.Fatalf("% x\nis written % x", page, out)
			}
		}
	})
}

func FuzzDeltas(f *testing.F) {
	for _, p := range [][]byte{{0x14, 0x14, 2}, {0x0a, 0, 1, 7, 1, 2}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {0x80, 0}, {0x80}} {
		f.Add(p, uint16(len(p)))
	}
	f.Fuzz(func(t *testing.T, p []byte, n uint16) {
		if int(n) > len(p) || n == 0 {
			return // check 68
		}
		v, err := decodeDeltas(p, int(n))
		if err != nil {
			typed(t, err)
			return
		}
		again, err := decodeDeltas(appendDeltas(nil, v), int(n))
		if err != nil {
			t.Fatal(err)
		}
		for i := range v {
			if v[i] != again[i] {
				t.Fatalf("%d is %d, and %d again", i, v[i], again[i])
			}
		}
	})
}

func FuzzDict(f *testing.F) {
	f.Add(appendDict(nil, []string{"eu", "us", ""}, []uint32{1, 0, 2, 1, 3}), uint16(5), uint16(1))
	f.Add([]byte{9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint16(2), uint16(2))
	f.Fuzz(func(t *testing.T, p []byte, n, nulls uint16) {
		if int(n)+10 > len(p) || n == 0 {
			return // check 68
		}
		d, err := decodeDict(p, int(n), uint32(nulls))
		if err != nil {
			typed(t, err)
			return
		}
		rows := int(n)
		values, codes := d.span(0, rows)
		again, err := decodeDict(appendDict(nil, values[1:], codes), rows, uint32(nulls))
		if err != nil {
			t.Fatal(err)
		}
		for k, code := range codes {
			if values[code] != again.value(again.codes.at(k)) || (code == 0) != (again.codes.at(k) == 0) {
				t.Fatalf("row %d is %q, and %q again", k, values[code], again.value(again.codes.at(k)))
			}
		}
		// What is selected and picked is what the rows say.
		m, err := NewMatcher(Regexp, "x", ".*a.*")
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := d.match(context.Background(), m, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, code := range codes {
			if in := code != 0 && m.Matches(values[code]); in != (got[k>>6]>>(k&63)&1 == 1) {
				t.Fatalf("row %d, %q: selected %v", k, values[code], !in)
			}
		}
		of := slices.Compact([]int{0, rows / 2, rows - 1})
		pickedValues, picked := d.pick(of)
		for i, k := range of {
			if a, b := codes[k], picked[i]; (a == 0) != (b == 0) || values[a] != pickedValues[b] {
				t.Fatalf("row %d is %q, picked %q", k, values[a], pickedValues[b])
			}
		}
	})
}
