package msglc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// salvageTwin is the plain twin of Salvage: it returns what is left of the value at the start of p, encoded, the bytes
// it takes when it is whole, else 0. Nothing left is nil.
func salvageTwin(c value.Codec, p []byte) (kept []byte, size int) {
	if n, err := value.Skip(c, p, 1, value.Limits{}); err == nil {
		return p[:n], n
	}
	h, err := value.ReadHead(c, p)
	if err != nil || h.Kind != value.Array && h.Kind != value.Map {
		return nil, 0
	}
	p = p[h.Size:]
	var body []byte
	n := 0
	for h.Indefinite || n < int(h.Arg) {
		key := 0
		if h.Kind == value.Map {
			if key, err = value.Skip(c, p, 1, value.Limits{}); err != nil {
				break
			}
		}
		item, size := salvageTwin(c, p[key:])
		if item != nil {
			body = append(append(body, p[:key]...), item...)
			n++
		}
		if size == 0 {
			break
		}
		p = p[key+size:]
	}
	if h.Kind == value.Map {
		return append(value.AppendMapHeader(nil, c, n), body...), 0
	}
	return append(value.AppendArrayHeader(nil, c, n), body...), 0
}

// salvageIsTwin salvages a damaged payload as an archive without a table and compares with the twin.
func salvageIsTwin(t interface{ Fatalf(string, ...any) }, payload []byte, c value.Codec, o *WriteOptions) {
	magic, _ := padMagic(nil)
	if bytes.HasPrefix(payload, magic[:]) {
		return // a combined archive
	}
	file := append(appendPrefix(nil, magic, header{codec: c, tocStart: 1 << 40, tocSize: 1}), payload...)
	want, size := salvageTwin(c, payload)
	var b buffer
	report, err := Salvage(context.Background(), &b, source.Memory("in.msg", file), o)
	if errors.Is(err, fault.Conflict) || errors.Is(err, fault.Limit) {
		return
	}
	if want == nil {
		if !errors.Is(err, fault.Corrupt) {
			t.Fatalf("nothing to keep: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("salvage: %v", err)
	}
	bent := slices.ContainsFunc(report.Breaks, func(b Break) bool { return strings.Contains(b.Err.Error(), "not UTF-8") })
	if (size > 0) != (len(report.Breaks) == 0) && !bent {
		t.Fatalf("whole %v, breaks %v", size > 0, report.Breaks)
	}
	r, err := Open(context.Background(), source.Memory("out.msg", b), nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if _, err := r.Root().Raw(context.Background()); err != nil {
		t.Fatalf("salvaged % x: %v", b, err)
	}
	if in := r.Info(); !bytes.Equal(b[PrefixSize:PrefixSize+in.PayloadSize], want) || in.Codec != c {
		t.Fatalf("salvaged % x\nexpected % x", b[PrefixSize:], want)
	}
}

func TestSalvageIsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		g := payloadGen{t: t, c: s.codec, left: 100}
		payload := g.value(nil, 5)
		payload = payload[:rapid.IntRange(1, len(payload)).Draw(t, "cut")]
		if rapid.Bool().Draw(t, "flip") {
			payload[rapid.IntRange(0, len(payload)-1).Draw(t, "where")] = rapid.Byte().Draw(t, "byte")
		}
		salvageIsTwin(t, payload, s.codec, &WriteOptions{Threshold: s.threshold, Trivial: s.trivial})
	})
}

// A few million values inside one another, and other inputs that a pass could choke on.
func FuzzSalvage(f *testing.F) {
	for _, v := range loadVectors(f) {
		if v.File == nil {
			continue
		}
		p := v.bytes(f)
		f.Add(p, v.Codec == "cbor", uint16(v.Options.Threshold))
		f.Add(p[:len(p)*2/3], v.Codec == "cbor", uint16(v.Options.Threshold))
		if len(p) > PrefixSize {
			f.Add(p[PrefixSize:max(PrefixSize, len(p)*4/5)], v.Codec == "cbor", uint16(v.Options.Threshold))
		}
	}
	f.Fuzz(func(t *testing.T, p []byte, cbor bool, threshold uint16) {
		c := value.Msgpack
		if cbor {
			c = value.CBOR
		}
		o := &WriteOptions{Threshold: int64(threshold)}
		if len(p) > 0 {
			salvageIsTwin(t, p, c, o)
		}
		// As it stands: what comes out can be opened and decoded.
		for name, f := range map[string]func(dst Target) error{
			"repair": func(dst Target) error {
				return Repair(t.Context(), dst, source.Memory("in", p), o)
			},
			"salvage": func(dst Target) error {
				_, err := Salvage(t.Context(), dst, source.Memory("in", p), o)
				return err
			},
		} {
			var b buffer
			if f(&b) != nil {
				continue
			}
			r, err := Open(t.Context(), source.Memory("out", b), nil)
			if err != nil {
				t.Fatalf("%s: open: %v", name, err)
			}
			if r.Root().Form() == Combined {
				continue
			}
			if _, err := r.Root().Raw(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

func TestSalvageReport(t *testing.T) {
	doc := value.OrderedMap{
		{Key: "title", Value: "survey"},
		{Key: "runs", Value: []any{
			value.OrderedMap{{Key: "name", Value: "first"}, {Key: "x", Value: int64(1)}},
			value.OrderedMap{{Key: "name", Value: "second"}, {Key: "x", Value: int64(2)}, {Key: "y", Value: int64(3)}},
			"third",
		}},
		{Key: "end", Value: true},
	}
	payload := appendTyped(nil, value.Msgpack, doc)
	file := archiveOf(t, payload, nil)
	cut := PrefixSize + bytes.Index(payload, []byte("second")) + 3 // within the text
	var b buffer
	report, err := Salvage(t.Context(), &b, source.Memory("in.msg", file[:cut]), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := checked(t, b, nil).Root().Value(t.Context())
	if want := `{"runs":[{"name":"first","x":1},{}],"title":"survey"}`; err != nil || text(v) != want {
		t.Errorf("%s, %v, expected %s", text(v), err, want)
	}
	if len(report.Breaks) != 1 || report.Breaks[0].Offset != int64(cut) {
		t.Fatalf("breaks %v, expected one at %d", report.Breaks, cut)
	}
	br := report.Breaks[0]
	if br.Path.String() != "runs/1/name" || !errors.Is(br.Err, fault.Corrupt) || !strings.HasPrefix(br.Err.Error(), "msglc: in.msg: payload ends within a value") {
		t.Errorf("break at %s: %v", br.Path, br.Err)
	}
	cuts := []string{}
	for _, c := range br.Cut {
		cuts = append(cuts, fmt.Sprint(c.Path, " ", c.Kind, " ", c.Kept, "/", c.Claimed))
	}
	if got, want := strings.Join(cuts, ", "), " map 2/3, runs list 2/3, runs/1 map 0/3"; got != want {
		t.Errorf("cut %s, expected %s", got, want)
	}

	// A byte that no value starts with, in a file that is whole otherwise.
	broken := bytes.Clone(file)
	broken[PrefixSize+bytes.Index(payload, []byte("\xa1y\x03"))+2] = 0xc1
	b = nil
	if report, err = Salvage(t.Context(), &b, source.Memory("in.msg", broken), nil); err != nil {
		t.Fatal(err)
	}
	v, err = checked(t, b, nil).Root().Value(t.Context())
	if want := `{"runs":[{"name":"first","x":1},{"name":"second","x":2}],"title":"survey"}`; err != nil || text(v) != want {
		t.Errorf("%s, %v, expected %s", text(v), err, want)
	}
	if len(report.Breaks) != 1 || report.Breaks[0].Path.String() != "runs/1/y" {
		t.Errorf("breaks %v", report.Breaks)
	}

	// A value that ends too early, while header and table say where it should.
	early := bytes.Clone(file)
	early[PrefixSize] = 0x82 // two pairs, not three
	b = nil
	if report, err = Salvage(t.Context(), &b, source.Memory("in.msg", early), nil); err != nil || len(report.Breaks) != 1 {
		t.Errorf("breaks %v, %v", report.Breaks, err)
	}
	if err := Repair(t.Context(), new(buffer), source.Memory("in.msg", early), nil); !errors.Is(err, fault.Corrupt) {
		t.Errorf("repair of a damaged payload: %v", err)
	}
}

func TestRepair(t *testing.T) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		doc := []any{"some text", []any{int64(1), int64(2), int64(300)}, value.OrderedMap{{Key: "k", Value: 1.5}}}
		payload := appendTyped(nil, c, doc)
		o := &WriteOptions{Codec: c, Threshold: 8, Trivial: 2}
		good := archiveOf(t, payload, o)
		toc := PrefixSize + len(payload)
		change := func(f func(p []byte) []byte) []byte { return f(bytes.Clone(good)) }
		for name, p := range map[string][]byte{
			"good":                 good,
			"raw":                  payload,
			"header of zeros":      change(func(p []byte) []byte { clear(p[MagicSize:PrefixSize]); return p }),
			"header of ones":       change(func(p []byte) []byte { copy(p[MagicSize:], bytes.Repeat([]byte{0xff}, 20)); return p }),
			"toc start too large":  change(func(p []byte) []byte { copy(p[MagicSize:], appendField(nil, c, 1<<30)); return p }),
			"toc start too small":  change(func(p []byte) []byte { copy(p[MagicSize:], appendField(nil, c, 3)); return p }),
			"table cut":            good[:toc+5],
			"table missing":        good[:toc],
			"table damaged":        change(func(p []byte) []byte { copy(p[toc:], "xxxxxxxxxxxx"); return p }),
			"table and header bad": change(func(p []byte) []byte { clear(p[MagicSize:PrefixSize]); return p[:toc] }),
			"bytes behind":         append(bytes.Clone(good), "stale"...),
		} {
			for _, demanded := range []value.Codec{0, c} {
				var b buffer
				err := Repair(t.Context(), &b, source.Memory("in.msg", p), &WriteOptions{Codec: demanded, Threshold: 8, Trivial: 2})
				if err != nil || !bytes.Equal(b, good) {
					t.Errorf("%s %s: %v\n% x\nexpected\n% x", c, name, err, b, good)
				}
				b = nil
				if r, err := Salvage(t.Context(), &b, source.Memory("in.msg", p), &WriteOptions{Codec: demanded, Threshold: 8, Trivial: 2}); err != nil || !bytes.Equal(b, good) || len(r.Breaks) > 0 {
					t.Errorf("salvage %s %s: %v %v", c, name, r.Breaks, err)
				}
			}
		}
		for name, p := range map[string][]byte{
			"empty":               nil,
			"magic alone":         good[:MagicSize],
			"prefix alone":        good[:PrefixSize],
			"another magic":       archiveOf(t, payload, &WriteOptions{Codec: c, Magic: []byte("other")}),
			"cut":                 good[:PrefixSize+len(payload)-1],
			"raw, cut":            payload[:len(payload)-1],
			"raw, bytes behind":   append(bytes.Clone(payload), 1, 2, 3),
			"another codec, text": []byte("hello world"),
		} {
			if err := Repair(t.Context(), new(buffer), source.Memory("in.msg", p), o); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s %s: %v", c, name, err)
			}
		}
	}
}

func TestRepairCombined(t *testing.T) {
	for _, named := range []bool{false, true} {
		var parts []Part
		for i := range 3 {
			p := Part{Value: []any{strings.Repeat("x", 10*i), int64(i)}}
			if named {
				p.Name = fmt.Sprint("part ", i)
			}
			parts = append(parts, p)
		}
		var b buffer
		if err := Combine(t.Context(), &b, parts, &CombineOptions{Named: named}); err != nil {
			t.Fatal(err)
		}
		good := []byte(b)
		h, err := parseHeader(good[MagicSize:])
		if err != nil {
			t.Fatal(err)
		}
		zeros := bytes.Clone(good)
		clear(zeros[MagicSize:PrefixSize])
		for name, p := range map[string][]byte{"good": good, "header of zeros": zeros} {
			b = nil
			if err := Repair(t.Context(), &b, source.Memory("in.msg", p), nil); err != nil || !bytes.Equal(b, good) {
				t.Errorf("named %v, %s: %v", named, name, err)
			}
			b = nil
			if r, err := Salvage(t.Context(), &b, source.Memory("in.msg", p), nil); err != nil || !bytes.Equal(b, good) || len(r.Breaks) > 0 {
				t.Errorf("salvage, named %v, %s: %v, %v", named, name, r.Breaks, err)
			}
		}
		lost := good[:PrefixSize+h.tocStart]
		if err := Repair(t.Context(), new(buffer), source.Memory("in.msg", lost), nil); !errors.Is(err, fault.Corrupt) {
			t.Errorf("named %v, no table: %v", named, err)
		}
		// Cut within the last part: two are whole, of the third there is what stands before the cut.
		for missing, third := range map[int64]string{10: `[]`, 7: `["xxxxxxxxxxxxxxxxxxxx"]`, 6: `["xxxxxxxxxxxxxxxxxxxx",2]`, 3: `["xxxxxxxxxxxxxxxxxxxx",2]`} {
			b = nil
			r, err := Salvage(t.Context(), &b, source.Memory("in.msg", good[:PrefixSize+h.tocStart-missing]), nil)
			if err != nil {
				t.Fatal(err)
			}
			v, err := checked(t, b, nil).Root().Value(t.Context())
			if want := `[["",0],["xxxxxxxxxx",1],` + third + `]`; err != nil || text(v) != want || len(r.Breaks) == 0 {
				t.Errorf("%s, %v, breaks %v, expected %s", text(v), err, r.Breaks, want)
			}
		}
		// A part in the middle is damaged.
		middle := bytes.Clone(good)
		at := bytes.Index(middle, []byte("xxxxxxxxxx"))
		middle[at+10] = 0xc1
		b = nil
		r, err := Salvage(t.Context(), &b, source.Memory("in.msg", middle), nil)
		if err != nil || len(r.Breaks) != 1 {
			t.Fatalf("breaks %v, %v", r.Breaks, err)
		}
		root, err := checked(t, b, nil).Root().Value(t.Context())
		want := `[["",0],["xxxxxxxxxx"],["xxxxxxxxxxxxxxxxxxxx",2]]`
		if named {
			want = `{"part 0":["",0],"part 1":["xxxxxxxxxx"],"part 2":["xxxxxxxxxxxxxxxxxxxx",2]}`
		}
		if err != nil || text(root) != want || r.Breaks[0].Offset != int64(at+10) {
			t.Errorf("%s, %v, breaks %v", text(root), err, r.Breaks)
		}
	}
}

// TestSalvageOverlap salvages archives of archives that are listed ten times each.
// TestSalvageGuess has plain values that break off. One is MessagePack that nests too deep when it is read as CBOR, where
// each 91 is an array of 17; the other nests too deep as it is.
func TestSalvageGuess(t *testing.T) {
	records := bytes.Repeat([]byte{0x91, 1}, 15)
	for range 3 {
		records = append([]byte{0x9f}, bytes.Repeat(records, 15)...)
	}
	for _, c := range []struct {
		payload []byte
		codec   value.Codec
		want    error
	}{
		{records[:len(records)-1], 0, nil},
		{records[:len(records)-1], value.CBOR, fault.Limit},
		{bytes.Repeat([]byte{0x91}, 2000), 0, fault.Limit},
	} {
		report, err := Salvage(t.Context(), new(buffer), source.Memory("x", c.payload), &WriteOptions{Codec: c.codec})
		if !errors.Is(err, c.want) || err == nil && (report.Codec != value.Msgpack || len(report.Breaks) != 1) {
			t.Errorf("% x…: %v, %v, want %v", c.payload[:4], report, err, c.want)
		}
	}
}

func TestSalvageOverlap(test *testing.T) {
	file := dumps(test, int64(1), nil)
	for range 13 {
		file = withTOC(test, file, obj{t(ints(make([]int64, 10)...))})
	}
	var out buffer
	report, err := Salvage(test.Context(), &out, source.Memory("overlap.msg", file), nil)
	if err != nil || len(report.Breaks) != 13*9 {
		test.Fatalf("%d breaks, error %v", len(report.Breaks), err)
	}
	if err := report.Breaks[0].Err; !errors.Is(err, fault.Corrupt) {
		test.Errorf("error %v", err)
	}
	n, err := open(test, out, nil).Find(test.Context(), SplitPath(strings.Repeat("0/", 13)))
	if err != nil {
		test.Fatal(err)
	}
	if v, err := n.Value(test.Context()); err != nil || v != int64(1) {
		test.Errorf("%v, error %v", v, err)
	}
}
