package value

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

// tinySplits split whatever has two items.
var tinySplits = []splitting{
	{least: 1, run: 1, workers: 2},
	{least: 1, run: 7, workers: 3},
	{least: 24, run: 16, pair: 4, workers: 4},
}

// decodeSplit is Decode with a splitting of its own.
func decodeSplit(c Codec, data []byte, lim Limits, p splitting) (any, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.split = p
	return d.document(c, data, lim)
}

// sameFault compares errors with all that they say.
func sameFault(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	var x, y *fault.Error
	if !errors.As(a, &x) || !errors.As(b, &y) || a.Error() != b.Error() || IsTruncated(a) != IsTruncated(b) {
		return false
	}
	return x.Class == y.Class && x.Offset == y.Offset && x.Where == y.Where
}

// checkSplit compares decoding in runs with decoding at one go.
func checkSplit(t interface {
	Helper()
	Fatalf(string, ...any)
}, c Codec, in []byte, lim Limits) {
	t.Helper()
	want, wantErr := decodeSplit(c, in, lim, splitting{off: true, least: 1})
	for _, p := range tinySplits {
		got, err := decodeSplit(c, in, lim, p)
		if !sameFault(err, wantErr) {
			t.Fatalf("%+v: error\n%v\nat one go\n%v\nfor %x", p, err, wantErr, in)
		}
		if !same(got, want) {
			t.Fatalf("%+v: got\n%#v\nat one go\n%#v\nfor %x", p, got, want, in)
		}
	}
	// In the middle of a container, the scanner must stand where it stood.
	a, b := NewScanner(c, in, lim), NewScanner(c, in, lim)
	d := decoders.Get().(*decoder)
	defer d.release()
	d.split = tinySplits[0]
	if a.Next() != nil || b.Next() != nil {
		return
	}
	e := &decoder{split: splitting{off: true, least: 1}}
	for range 4 {
		v, err := d.next(a)
		w, errW := e.next(b)
		if err != errW && !sameFault(err, errW) || !same(v, w) || a.Offset() != b.Offset() || a.Depth() != b.Depth() || a.InKey() != b.InKey() {
			t.Fatalf("behind the first token: %#v, %v at %d, at one go %#v, %v at %d", v, err, a.Offset(), w, errW, b.Offset())
		}
		if err != nil {
			return
		}
	}
}

func TestSplitIsSerial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "codec")
		in := drawValue(t, nil, c, 4)
		lim := Limits{Depth: rapid.IntRange(0, 6).Draw(t, "depth")}
		checkSplit(t, c, in, lim)
		bad := bytes.Clone(in)
		for range rapid.IntRange(1, 2).Draw(t, "faults") {
			bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		checkSplit(t, c, bad, lim)
		checkSplit(t, c, in[:rapid.IntRange(0, len(in)).Draw(t, "end")], lim)
	})
}

func FuzzSplit(f *testing.F) {
	addSeeds(f)
	f.Add(false, []byte("\x95\x01\xa1\xff\x92\x01\xc1\x02\x03"))
	f.Add(false, []byte("\x92\x93\x01\x02\xdc\x00\x09\x01\x02"))
	f.Add(false, []byte("\x83\xa1a\x01\xa1b\x92\x01\x02\x03\x04"))
	f.Add(true, []byte("\x83\x61a\x9f\x01\xff\xc1\x01\x02\x61a\x82\x01\x02"))
	f.Fuzz(func(t *testing.T, isCBOR bool, in []byte) {
		checkSplit(t, codecOf(isCBOR), in, Limits{})
		checkSplit(t, codecOf(isCBOR), in, Limits{Depth: 3})
	})
}

// A document of more than half a MiB is split by default. Faults stand at its start, its middle and its end, and two
// at once.
func TestSplitLarge(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	records := makeRecords(5_000)
	named := map[string]any{}
	for i, r := range records[:2_000] {
		named[fmt.Sprint("record ", i)] = []any{r.Name, r.Score, strings.Repeat("long ", 60)}
	}
	for c := Msgpack; c <= CBOR; c++ {
		for name, v := range map[string]any{
			"list": records, "under a key": map[string]any{"n": 1, "rows": records}, "map": named,
		} {
			in, err := Append(nil, c, v)
			if err != nil {
				t.Fatal(err)
			}
			check := func(in []byte, lim Limits) {
				t.Helper()
				want, wantErr := decodeSplit(c, in, lim, splitting{off: true, least: 1})
				before := runtime.NumGoroutine()
				got, err := Decode(c, in, lim)
				for runtime.NumGoroutine() > before { // what has said that it is done needs a moment to end
					runtime.Gosched()
				}
				if !sameFault(err, wantErr) || !same(got, want) {
					t.Errorf("%s in %s: error %v, at one go %v", name, c, err, wantErr)
				}
			}
			check(in, Limits{})
			check(in, Limits{Depth: 2})
			check(in[:len(in)-1], Limits{})
			check(append(bytes.Clone(in), 0), Limits{})
			text := bytes.LastIndexByte(in[:len(in)/2], 'u')
			for _, at := range [][]int{{5}, {text}, {len(in) - 30}, {len(in) / 3, len(in) / 2}} {
				bad := bytes.Clone(in)
				for _, i := range at {
					bad[i] = 0xff
				}
				check(bad, Limits{})
			}
		}
	}
}

// The two ways must be told apart, else the tests above compare one with itself.
func TestSplitHappens(t *testing.T) {
	for _, tt := range []struct {
		in   string
		runs bool
	}{
		{"93 9101 9102 9103", true},
		{"83 a161 01 a162 02 a163 03", true},
		{"91 01", false},
		{"92 01 a8 6161616161616161", false}, // one item is most of it
		{"92 01", false},
	} {
		d := &decoder{split: splitting{least: 1, run: 1, workers: 2}}
		s := NewScanner(Msgpack, fromHex(t, tt.in), Limits{})
		if err := s.Next(); err != nil {
			if tt.runs {
				t.Error(err)
			}
			continue
		}
		top := frame{kind: s.Kind, list: make([]any, 0, s.Len), named: map[string]any{}}
		items := s.Len
		d.splitOpen(s, &top, 1)
		if got := len(top.list) + len(top.named); got != items && got != 0 || (got > 0) != tt.runs {
			t.Errorf("%s: %d items of %d came from runs", tt.in, got, items)
		}
	}
}

func BenchmarkDecodeSplit(b *testing.B) {
	encoded, _ := benchDocument(b, 60_000)
	for _, p := range []splitting{{off: true, least: 1}, usualSplit} {
		b.Run(fmt.Sprintf("off=%t", p.off), func(b *testing.B) {
			b.SetBytes(int64(len(encoded[Msgpack])))
			for b.Loop() {
				if _, err := decodeSplit(Msgpack, encoded[Msgpack], Limits{}, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
