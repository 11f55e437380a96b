package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

func TestTranscode(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to Codec
		in, want string
	}{
		{"integers", Msgpack, Msgpack, "98d07fcd0001d3ffffffffffffffffd1ff80ce0000ffffcf0000000100000000d200000000d0e0", "987f01ffd080cdffffcf000000010000000000e0"},
		{"lengths", Msgpack, Msgpack, "96d90161da000161c500017fc60000000101dc0000de0000", "96a161a161c4017fc401019080"},
		{"ext", Msgpack, Msgpack, "94c70105aac8000205aabbc90000000305aabbccd6ff00000000", "94d405aad505aabbc70305aabbccd6ff00000000"},
		{"a long timestamp stays", Msgpack, Msgpack, "c70cff000000000000000000000001", "c70cff000000000000000000000001"},
		{"floats", Msgpack, Msgpack, "93ca7fa00001cb7ff0000000000001ca3f800000", "93ca7fa00001cb7ff0000000000001ca3f800000"},
		{"order", Msgpack, Msgpack, "83a162c2a161c3c0c0", "83a162c2a161c3c0c0"},

		{"integers", CBOR, CBOR, "881800190017391fff1a000000ff1b00000000ffffffff3800390000f5", "880017391fff18ff1affffffff2020f5"},
		{"lengths", CBOR, CBOR, "867801615900017f5a000000009800b800d80101", "866161417f4080a0c101"},
		{"indefinite list", CBOR, CBOR, "9fff", "80"},
		{"indefinite map", CBOR, CBOR, "bf616101616202ff", "a2616101616202"},
		{"indefinite lists in one another", CBOR, CBOR, "9f01829f02ff9f9f03ff04ffbf9f05ff9f06ffffff", "830182810282810304a181058106"},
		{"chunks", CBOR, CBOR, "825f4101420203ff7f61616162ff", "8243010203626162"},
		{"floats", CBOR, CBOR, "86f97e01fa7fa00001fb7ff0000000000001f93c00fa3f800000fb3ff0000000000000", "86f97e01fa7fa00001fb7ff0000000000001f93c00fa3f800000fb3ff0000000000000"},
		{"big numbers", CBOR, CBOR, "86c240c24101c2490001020304050607ffc249010000000000000000c34100c34a00010000000000000000", "8600011b01020304050607ffc24901000000000000000020c349010000000000000000"},
		{"big number in chunks", CBOR, CBOR, "c25f41004102ff", "02"},
		{"tags", CBOR, CBOR, "83c201c36161d9d9f7c0c100", "83c201c36161d9d9f7c0c100"},
		{"tags before big numbers", CBOR, CBOR, "c2c24101", "c201"},
		{"simple", CBOR, CBOR, "83f7e0f8ff", "83f7e0f8ff"},

		{"all", Msgpack, CBOR, "9ac0c2c37fe0d080ca3fc00000cb3ff8000000000000a161c40161", "8af6f4f5187f381f387ffa3fc00000fb3ff80000000000006161" + "4161"},
		{"map", Msgpack, CBOR, "82a16190018101c0", "a2616180" + "01a101f6"},
		{"not a number", Msgpack, CBOR, "92ca7fc00001cbfff8000000000001", "82fa7fc00001fbfff8000000000001"},
		{"uint64, int64", Msgpack, CBOR, "92cfffffffffffffffffd38000000000000000", "821bffffffffffffffff3b7fffffffffffffff"},
		{"timestamp", Msgpack, CBOR, "d6ff00000000", "c074" + text("1970-01-01T00:00:00Z")},
		{"timestamp, us", Msgpack, CBOR, "d7ff" + stamp64(1500000, 1), "c0781b" + text("1970-01-01T00:00:01.001500Z")},
		{"timestamp, ns", Msgpack, CBOR, "d7ff" + stamp64(1, 1), "c0781e" + text("1970-01-01T00:00:01.000000001Z")},
		{"timestamp before 1970", Msgpack, CBOR, "c70cff00000000ffffffffffffffff", "c074" + text("1969-12-31T23:59:59Z")},
		{"timestamp in the year 10000", Msgpack, CBOR, "c70cff000000000000003afff44180", "c11b0000003afff44180"},

		{"timestamp in the year 10000, half a second", Msgpack, CBOR, "c70cff1dcd65000000003afff44180", "c1fb424d7ffa20c04000"},

		{"all", CBOR, Msgpack, "8bf6f4f518803863f93c00fa3fc00000fb3ff8000000000000616141619fff", "9bc0c2c3cc80d09cca3f800000ca3fc00000cb3ff8000000000000a161c4016190"},
		{"half floats", CBOR, Msgpack, "87f90000f98000f90001f97bfff97c00f9fc00f97e01", "97ca00000000ca80000000ca33800000ca477fe000ca7f800000caff800000ca7fc02000"},
		{"indefinite", CBOR, Msgpack, "bf61619f0102ff7f6162ff5f4101ffff", "82a161920102a162c40101"},
		{"uint64, int64", CBOR, Msgpack, "821bffffffffffffffff3b7fffffffffffffff", "92cfffffffffffffffffd38000000000000000"},
		{"big numbers", CBOR, Msgpack, "84c240c248ffffffffffffffffc3487fffffffffffffffc349000000000000000001", "9400cfffffffffffffffffd38000000000000000fe"},
		{"this is CBOR", CBOR, Msgpack, "d9d9f782d9d9f70102", "920102"},
		{"time", CBOR, Msgpack, "c074" + text("1970-01-01T00:00:01Z"), "d6ff00000001"},
		{"time, fraction", CBOR, Msgpack, "c0781a" + text("1970-01-01T00:00:01.50000Z"), "d7ff" + stamp64(500_000_000, 1)},
		{"time, many zeros", CBOR, Msgpack, "c07821" + text("1970-01-01t00:00:01.000000001000z"), "d7ff" + stamp64(1, 1)},
		{"time, offset zero", CBOR, Msgpack, "c07819" + text("1970-01-01T00:00:01+00:00"), "d6ff00000001"},
		{"time before 1970", CBOR, Msgpack, "c074" + text("1969-12-31T23:59:59Z"), "c70cff00000000ffffffffffffffff"},
		{"epoch", CBOR, Msgpack, "85c100c120c11b0000000100000000c1f93e00c1fb3fe0100000000000", "95d6ff00000000c70cff00000000ffffffffffffffffd7ff0000000100000000d7ff" +
			stamp64(500_000_000, 1) + "d7ff" + stamp64(500_000_000+1_953_125, 0)},
	} {
		p := unhex(t, tc.in)
		got, err := Transcode([]byte("x"), tc.to, tc.from, p, Limits{})
		if err != nil || hex.EncodeToString(got) != "78"+tc.want {
			t.Errorf("%s to %s, %s: %x, %v, want 78%s", tc.from, tc.to, tc.name, got, err, tc.want)
		}
		var w bytes.Buffer
		if err := TranscodeAt(&w, tc.to, tc.from, bytes.NewReader(p), int64(len(p)), Limits{}); err != nil || hex.EncodeToString(w.Bytes()) != tc.want {
			t.Errorf("%s to %s, %s: written %x, %v", tc.from, tc.to, tc.name, w.Bytes(), err)
		}
		if again, err := Transcode(nil, tc.to, tc.to, w.Bytes(), Limits{}); err != nil || !bytes.Equal(again, w.Bytes()) {
			t.Errorf("%s to %s, %s: not stable: %x, %v", tc.from, tc.to, tc.name, again, err)
		}
	}
}

func text(s string) string { return hex.EncodeToString([]byte(s)) }

// stamp64 is the content of the timestamp of eight bytes.
func stamp64(nsec, sec uint64) string { return fmt.Sprintf("%016x", nsec<<34|sec) }

func TestTranscodeRefuses(t *testing.T) {
	for _, tc := range []struct {
		from, to Codec
		in       string
		class    error
		want     string
	}{
		{Msgpack, CBOR, "92c0d405aa", fault.Invalid, "value: ext 5 has no form in cbor (offset 0x2)"},
		{Msgpack, CBOR, "d5ff0000", fault.Invalid, "value: a timestamp of wrong form has no form in cbor (offset 0x0)"},
		{Msgpack, CBOR, "d7ffffffffff00000000", fault.Invalid, "value: a timestamp of wrong form has no form in cbor (offset 0x0)"},
		{Msgpack, CBOR, "c70cff000000010000003afff44180", fault.Invalid, "value: a timestamp in the year 10000 with that fraction has no form in cbor (offset 0x0)"},
		{CBOR, Msgpack, "8201f7", fault.Invalid, "value: undefined has no form in msgpack (offset 0x2)"},
		{CBOR, Msgpack, "8201f8ff", fault.Invalid, "value: a simple value has no form in msgpack (offset 0x2)"},
		{CBOR, Msgpack, "3b8000000000000000", fault.Invalid, "value: an integer below -2^63 has no form in msgpack (offset 0x0)"},
		{CBOR, Msgpack, "81c3488000000000000000", fault.Invalid, "value: an integer below -2^63 has no form in msgpack (offset 0x1)"},
		{CBOR, Msgpack, "81c249010000000000000000", fault.Invalid, "value: an integer of 72 bits has no form in msgpack (offset 0x1)"},
		{CBOR, Msgpack, "81d8206161", fault.Invalid, "value: tag 32 has no form in msgpack (offset 0x1)"},
		{CBOR, Msgpack, "81c201", fault.Invalid, "value: tag 2 with a int has no form in msgpack (offset 0x1)"},
		{CBOR, Msgpack, "81c001", fault.Invalid, "value: tag 0 with a int has no form in msgpack (offset 0x1)"},
		{CBOR, Msgpack, "c0c100", fault.Invalid, "value: tag 0 with a tag has no form in msgpack (offset 0x0)"},
		{CBOR, Msgpack, "c16161", fault.Invalid, "value: tag 1 with a string, not a time of whole nanoseconds, has no form in msgpack (offset 0x0)"},
		{CBOR, Msgpack, "c1fb3fb999999999999a", fault.Invalid, "value: tag 1 with a float, not a time of whole nanoseconds, has no form in msgpack (offset 0x0)"},
		{CBOR, Msgpack, "c1f97e00", fault.Invalid, ""},
		{CBOR, Msgpack, "c1fb43e0000000000000", fault.Invalid, ""},
		{CBOR, Msgpack, "c1fb8000000000000001", fault.Invalid, ""},
		{CBOR, Msgpack, "c11b8000000000000000", fault.Invalid, ""},
		{CBOR, Msgpack, "c07819" + text("1970-01-01T00:00:01+01:00"), fault.Invalid,
			`value: tag 0 with "1970-01-01T00:00:01+01:00", not a time in UTC up to nanoseconds, has no form in msgpack (offset 0x0)`},
		{CBOR, Msgpack, "c0781e" + text("1970-01-01T00:00:01.0000000001Z")[:60], fault.Invalid, ""},
		{CBOR, Msgpack, "c06a" + text("1970-01-01"), fault.Invalid, ""},
		{CBOR, Msgpack, "c075" + text("1970-01-01T00:00:01.Z"), fault.Invalid, ""},
		{CBOR, Msgpack, "c074" + text("1970-01-01T00:00:60Z"), fault.Invalid, ""},
		{CBOR, Msgpack, "c074" + text("1970-02-30T00:00:00Z"), fault.Invalid, ""},
		{CBOR, CBOR, "826161" + "61ff", fault.Corrupt, "value: string of 1 bytes is not UTF-8 (offset 0x3)"},
		{Msgpack, Msgpack, "81a1ff00", fault.Corrupt, "value: string of 1 bytes is not UTF-8 (offset 0x1)"},
		{CBOR, CBOR, "", fault.Corrupt, "value: input ends within a value (offset 0x0)"},
		{CBOR, CBOR, "0000", fault.Corrupt, "value: more bytes behind the value (offset 0x1)"},
		{CBOR, CBOR, "9fffff", fault.Corrupt, "value: more bytes behind the value (offset 0x2)"},
		{CBOR, CBOR, "8201", fault.Corrupt, ""},
		{CBOR, CBOR, "82019f01", fault.Corrupt, ""},
		{CBOR, CBOR, "9f01c1ff", fault.Corrupt, "value: break outside a container of indefinite length (offset 0x3)"},
		{Msgpack, CBOR, strings.Repeat("91", 1001) + "c0", fault.Limit, "value: nested deeper than 1000 (offset 0x3e8)"},
		{CBOR, CBOR, "81" + strings.Repeat("9f", 1000), fault.Limit, "value: nested deeper than 1000 (offset 0x3e8)"},
		{0, CBOR, "00", fault.Invalid, "value: codec(0), known are msgpack and cbor"},
		{CBOR, 0, "00", fault.Invalid, "value: codec(0), known are msgpack and cbor"},

		{Msgpack, Msgpack, "82a161c0a161c0", fault.Conflict, `value: key "a" comes twice (offset 0x4)`},
		{Msgpack, CBOR, "8201c0d001c0", fault.Conflict, `value: key "1" comes twice (offset 0x3)`},
		{CBOR, CBOR, "bf61610061620" + "07f6161ff00ff", fault.Conflict, `value: key "a" comes twice (offset 0x7)`},
		{CBOR, CBOR, "81a2c241010001" + "00", fault.Conflict, `value: key "1" comes twice (offset 0x6)`},
		{CBOR, CBOR, "a2a101020" + "0bf0102ff00", fault.Conflict, `value: key "(key of 3 bytes)" comes twice (offset 0x5)`},
		{CBOR, CBOR, "a1a2010201020" + "0", fault.Conflict, `value: key "1" comes twice (offset 0x4)`},
		{CBOR, CBOR, "a201a1010201" + "00", fault.Conflict, `value: key "1" comes twice (offset 0x5)`},
	} {
		p := unhex(t, tc.in)
		got, err := Transcode(nil, tc.to, tc.from, p, Limits{})
		if len(got) != 0 || !errors.Is(err, tc.class) || tc.want != "" && err.Error() != tc.want {
			t.Errorf("%s to %s, %s: %x, %v, want %s", tc.from, tc.to, tc.in, got, err, tc.want)
		}
		if at := TranscodeAt(io.Discard, tc.to, tc.from, bytes.NewReader(p), int64(len(p)), Limits{}); fmt.Sprint(at) != fmt.Sprint(err) {
			t.Errorf("%s to %s, %s: streamed %v, in memory %v", tc.from, tc.to, tc.in, at, err)
		}
	}
	// Not double keys: other types, widths and signs, keys of another map, the same key one level down.
	for _, tc := range []string{
		"a7" + "0100" + "f93c0000" + "fa3f80000000" + "fb3ff000000000000000" + "613100" + "413100" + "c10100",
		"a2f9000000f9800000", "82a10100a10100", "a201a10100" + "0200", "a2a1010001" + "a2010081a101000000",
	} {
		p := unhex(t, tc)
		if got, err := Transcode(nil, CBOR, CBOR, p, Limits{}); err != nil || !bytes.Equal(got, p) {
			t.Errorf("%s: %x, %v", tc, got, err)
		}
	}
}

// TestTranscodeManyKeys: maps of many sizes, a double key at each place, found among few and many.
func TestTranscodeManyKeys(t *testing.T) {
	for _, n := range []int{2, 3, 8, 23, 24, 25, 26, 100, 5000} {
		for _, double := range []int{-1, 0, (n - 1) / 2, n - 2} {
			p := AppendMapHeader(nil, CBOR, n)
			at := 0
			for i := range n {
				at = len(p)
				if i == n-1 && double >= 0 {
					i = double
				}
				p = AppendString(p, CBOR, fmt.Sprint("key", i))
				p = AppendMapHeader(p, CBOR, 30) // a map of many keys inside
				for j := range 30 {
					p = AppendNull(AppendInt(p, CBOR, int64(j)), CBOR)
				}
			}
			out, err := Transcode(nil, CBOR, CBOR, p, Limits{})
			if double < 0 && (err != nil || !bytes.Equal(out, p)) {
				t.Errorf("%d keys: %v", n, err)
			}
			want := fmt.Sprintf("value: key \"key%d\" comes twice (offset %#x)", double, at)
			if double >= 0 && (err == nil || err.Error() != want) {
				t.Errorf("%d keys, %d twice: %v, want %s", n, double, err, want)
			}
		}
	}
}

// TestTranscodeCounts: counts of one byte and of more, in one another.
func TestTranscodeCounts(t *testing.T) {
	for _, n := range []int{0, 1, 254, 255, 256, 70_000} {
		var in, want []byte
		in = append(in, 0x9f)
		want = AppendArrayHeader(want, CBOR, n+1)
		for range n {
			in = append(in, 0x9f, 0xff)
			want = append(want, 0x80)
		}
		in = append(in, 0xbf)
		want = AppendMapHeader(want, CBOR, n)
		for i := range n {
			in = AppendInt(in, CBOR, int64(i))
			in = append(in, 0x9f, 1, 0xff)
			want = AppendInt(want, CBOR, int64(i))
			want = append(want, 0x81, 1)
		}
		in = append(in, 0xff, 0xff)
		if got, err := Transcode(nil, CBOR, CBOR, in, Limits{}); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestTranscodeMemory: what keys and counts take is bounded, and found out in time.
func TestTranscodeMemory(t *testing.T) {
	const memory = 1 << 16
	keys := AppendMapHeader(nil, Msgpack, 100_000)
	for i := range 100_000 {
		keys = AppendNull(AppendInt(keys, Msgpack, int64(i)), Msgpack)
	}
	nested := bytes.Repeat([]byte{0x82, 0x01, 0xc0, 0x02}, 800) // many maps, two keys each
	nested = append(nested, 0xc0)
	for _, tc := range []struct {
		name  string
		codec Codec
		p     []byte
		want  string
	}{
		{"keys", Msgpack, keys, "value: keys of open maps take more than 65536 bytes"},
		{"counts", CBOR, bytes.Repeat([]byte{0x9f, 0xff}, 100_000), "value: counts of containers of indefinite length take more than 65536 bytes"},
		{"nested", Msgpack, nested, ""},
	} {
		p := tc.p
		if tc.codec == CBOR {
			p = append(append([]byte{0x9f}, p...), breakByte)
		}
		var err error
		grown := allocated(func() {
			x := transcoder{to: Msgpack, from: tc.codec, w: io.Discard, memory: memory, open: func() *Scanner {
				return NewScanner(tc.codec, p, Limits{})
			}}
			err = x.run()
		})
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, fault.Limit) || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if grown > 20*memory {
			t.Errorf("%s: %d bytes allocated", tc.name, grown)
		}
	}
}

// countedReader counts the bytes that are read.
type countedReader struct {
	io.ReaderAt
	read int64
}

func (r *countedReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.read += int64(n)
	return n, err
}

// TestTranscodeAtCosts: definite lengths take one pass, others two, and memory does not grow with the document.
func TestTranscodeAtCosts(t *testing.T) {
	doc, err := Transcode(nil, CBOR, CBOR, makeMixed(CBOR, 5_000), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	lists := append([]byte{0x9f}, doc[3:]...) // 5,000 is a head of three bytes
	lists = append(lists, breakByte)
	for _, tc := range []struct {
		name   string
		p      []byte
		passes int64
	}{{"definite", doc, 1}, {"indefinite", lists, 2}} {
		r := &countedReader{ReaderAt: bytes.NewReader(tc.p)}
		var w bytes.Buffer
		w.Grow(2 * len(doc))
		grown := allocated(func() {
			if err := TranscodeAt(&w, CBOR, CBOR, r, int64(len(tc.p)), Limits{}); err != nil {
				t.Error(err)
			}
		})
		if !bytes.Equal(w.Bytes(), doc) {
			t.Errorf("%s: %d bytes written, want %d", tc.name, w.Len(), len(doc))
		}
		if r.read != tc.passes*int64(len(tc.p)) || grown > 1<<19 {
			t.Errorf("%s: %d bytes read of %d, %d allocated", tc.name, r.read, len(tc.p), grown)
		}
	}
}

func TestTranscodeAtErrors(t *testing.T) {
	p := makeMixed(Msgpack, 5_000)
	dead := errors.New("dead")
	if err := TranscodeAt(&fullDisk{n: 100_000, err: dead}, CBOR, Msgpack, bytes.NewReader(p), int64(len(p)), Limits{}); err != dead {
		t.Errorf("writer: %v", err)
	}
	long := append([]byte{0x92, 0xc0, 0xc6, 0, 0x10, 0, 0}, make([]byte, 1<<20)...)
	for n := range []int{0, 1, 2, 1000} {
		if err := TranscodeAt(&fullDisk{n: n, err: dead}, CBOR, Msgpack, bytes.NewReader(long), int64(len(long)), Limits{}); err != dead {
			t.Errorf("writer: %v", err)
		}
	}
	changed := fault.New(fault.Changed, "source", "another version")
	for _, at := range []int64{0, 70_000, 500_000, int64(len(p)) - 1, int64(len(p))} {
		r := &brokenAt{ReaderAt: bytes.NewReader(p), at: at, err: changed}
		if err := TranscodeAt(io.Discard, CBOR, Msgpack, r, int64(len(p))+1, Limits{}); err != error(changed) {
			t.Errorf("reader, at %d: %v", at, err)
		}
	}
	if err := TranscodeAt(io.Discard, CBOR, Msgpack, bytes.NewReader(p[:1000]), int64(len(p)), Limits{}); !IsTruncated(err) {
		t.Errorf("shorter than said: %v", err)
	}
}

type fullDisk struct {
	n   int
	err error
}

func (w *fullDisk) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// brokenAt fails where bytes from at on are read.
type brokenAt struct {
	io.ReaderAt
	at  int64
	err error
}

func (r *brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.at {
		n, _ := r.ReaderAt.ReadAt(p[:max(0, r.at-off)], off)
		return n, r.err
	}
	return r.ReaderAt.ReadAt(p, off)
}

// meaning gives the tokens of a value as text that is the same for whatever means the same in either codec.
func meaning(t rapid.TB, c Codec, p []byte) string {
	var b strings.Builder
	s := NewScanner(c, p, Limits{})
	next := func() bool {
		err := s.Next()
		if err != nil && err != io.EOF {
			t.Fatalf("%s %x: %v", c, p, err)
		}
		return err == nil
	}
	for next() {
		var tags []uint64
		for s.Kind == Tag {
			tags = append(tags, s.Bits)
			next()
		}
		if n := len(tags); n > 0 {
			last := tags[n-1]
			if (last == 2 || last == 3) && s.Kind == Bytes {
				n := new(big.Int).SetBytes(s.Data)
				if last == 3 {
					n.Not(n)
				}
				if len(tags) > 1 {
					fmt.Fprint(&b, tags[:len(tags)-1])
				}
				fmt.Fprintf(&b, "int %s\n", n)
				continue
			}
			fmt.Fprint(&b, tags)
		}
		switch s.Kind {
		case Uint:
			fmt.Fprintf(&b, "int %d\n", s.Bits)
		case Nint:
			n := new(big.Int).SetUint64(s.Bits)
			fmt.Fprintf(&b, "int %s\n", n.Not(n))
		case Float16, Float32, Float64:
			if f := s.Float(); f == f {
				fmt.Fprintf(&b, "float %x\n", math.Float64bits(f))
			} else {
				// What a NaN carries stands at the same place in any width, from the left.
				sign, frac := s.Bits>>(uint(16)<<(s.Kind-Float16)-1), s.Bits<<[]uint{54, 41, 12}[s.Kind-Float16]
				fmt.Fprintf(&b, "nan %d %x\n", sign, frac)
			}
			fmt.Fprintf(&b, "wide %t\n", s.Kind == Float64)
		case Ext:
			fmt.Fprintf(&b, "ext %d %x\n", s.Ext, s.Data)
		case String, Bytes:
			fmt.Fprintf(&b, "%s %x\n", s.Kind, s.Data)
		case Array, Map, End:
			fmt.Fprintf(&b, "%s\n", s.Kind)
		default:
			fmt.Fprintf(&b, "%s %d\n", s.Kind, s.Bits)
		}
	}
	return b.String()
}

// checkTranscoded checks what must hold of every input, and reports whether it was accepted.
func checkTranscoded(t rapid.TB, to, from Codec, p []byte) bool {
	out, err := Transcode(nil, to, from, p, Limits{})
	var w bytes.Buffer
	atErr := TranscodeAt(&w, to, from, bytes.NewReader(p), int64(len(p)), Limits{})
	if fmt.Sprint(err) != fmt.Sprint(atErr) || err == nil && !bytes.Equal(out, w.Bytes()) {
		t.Fatalf("%s to %s, %x: %x, %v; streamed %x, %v", from, to, p, out, err, w.Bytes(), atErr)
	}
	if err != nil {
		var e *fault.Error
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(p)) {
			t.Fatalf("%s to %s, %x: %v", from, to, p, err)
		}
		if errors.Is(err, fault.Invalid) && to == from {
			t.Fatalf("%s to itself, %x: %v", from, p, err)
		}
		return false
	}
	switch to {
	case Msgpack:
		if rest, err := msgp.Skip(out); err != nil || len(rest) != 0 {
			t.Fatalf("%s to %s, %x: %x is no msgpack: %v", from, to, p, out, err)
		}
	case CBOR:
		mode, _ := cbor.DecOptions{IndefLength: cbor.IndefLengthForbidden, MaxNestedLevels: math.MaxUint16}.DecMode()
		if err := mode.Wellformed(out); err != nil {
			t.Fatalf("%s to %s, %x: %x is no CBOR: %v", from, to, p, out, err)
		}
	}
	if again, err := Transcode(nil, to, to, out, Limits{}); err != nil || !bytes.Equal(again, out) {
		t.Fatalf("%s to %s, %x: %x, then %x, %v", from, to, p, out, again, err)
	}
	if got, want := meaning(t, to, out), meaning(t, from, p); got != want && !translated(to, from, p) {
		t.Fatalf("%s to %s, %x: %x\n%s\nwant\n%s", from, to, p, out, got, want)
	}
	back, err := Transcode(nil, from, to, out, Limits{})
	if err != nil {
		t.Fatalf("%s to %s and back, %x: %x: %v", from, to, p, out, err)
	}
	if translated(to, from, p) {
		return true
	}
	if got, want := meaning(t, from, back), meaning(t, from, p); got != want {
		t.Fatalf("%s to %s and back, %x: %x, %x\n%s\nwant\n%s", from, to, p, out, back, got, want)
	}
	return true
}

// translated reports whether something in p means the same in the other codec under another kind.
func translated(to, from Codec, p []byte) bool {
	s := NewScanner(from, p, Limits{})
	for s.Next() == nil {
		if to != from && (s.Kind == Tag && (s.Bits < 2 || s.Bits == tagSelfDescribed) || s.Kind == Ext) {
			return true
		}
	}
	return false
}

func TestTranscodeRandom(t *testing.T) {
	accepted := 0
	wellformed(t, func(c Codec, p []byte) {
		checkTranscoded(t, Msgpack, c, p)
		checkTranscoded(t, CBOR, c, p)
	})
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "from")
		to := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "to")
		if checkTranscoded(t, to, from, drawValue(t, nil, from, 2)) {
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("all refused")
	}
}

func FuzzTranscode(f *testing.F) {
	wellformed(f, func(c Codec, p []byte) {
		f.Add(false, c == CBOR, p)
		f.Add(true, c == CBOR, p)
	})
	for _, s := range []string{"1970-01-01T00:00:01.5Z", "1970-01-01T00:00:01+00:00", "0000-01-01t00:00:00z"} {
		f.Add(false, true, append([]byte{0xc0, 0x60 | byte(len(s))}, s...))
	}
	codecs := map[bool]Codec{false: Msgpack, true: CBOR}
	f.Fuzz(func(t *testing.T, to, from bool, p []byte) { checkTranscoded(t, codecs[to], codecs[from], p) })
}

func BenchmarkTranscode(b *testing.B) {
	for _, from := range []Codec{Msgpack, CBOR} {
		for _, to := range []Codec{Msgpack, CBOR} {
			b.Run(fmt.Sprintf("%s to %s", from, to), func(b *testing.B) {
				p := mixedDoc[from]()
				var out []byte
				b.SetBytes(int64(len(p)))
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if out, err = Transcode(out[:0], to, from, p, Limits{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
