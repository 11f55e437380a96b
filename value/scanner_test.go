package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

// trace reads all tokens of s: one line a token with all that the scanner says of it, and what ended it.
func trace(s *Scanner) (lines []string, err error) {
	for {
		if err := s.Next(); err != nil {
			return lines, err
		}
		line := fmt.Sprintf("%d-%d depth %d key %t: %s", s.Start(), s.Offset(), s.Depth(), s.InKey(), s.Kind)
		switch s.Kind {
		case Array, Map:
			line += fmt.Sprint(" ", s.Len)
		case Ext:
			line += fmt.Sprintf(" %d %x", s.Ext, s.Data)
		case String, Bytes:
			line += fmt.Sprintf(" %x", s.Data)
		case End, Null, Undefined:
		default:
			line += fmt.Sprintf(" %d %d", s.Kind, s.Bits)
		}
		lines = append(lines, line)
	}
}

// walk returns the length of the first value of p, found token by token.
func walk(c Codec, p []byte, lim Limits) (int, error) {
	s := NewScanner(c, p, lim)
	for {
		if err := s.Next(); err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
		if s.Depth() == 0 && s.Kind != Tag {
			return int(s.Offset()), nil
		}
	}
}

// short is a token with its fields as a table shows it.
func short(s *Scanner) string {
	switch s.Kind {
	case Array, Map:
		return fmt.Sprintf("%s(%d)", s.Kind, s.Len)
	case Ext:
		return fmt.Sprintf("ext(%d,%x)", s.Ext, s.Data)
	case String:
		return fmt.Sprintf("%q", s.Data)
	case Bytes:
		return fmt.Sprintf("h'%x'", s.Data)
	case Uint:
		return fmt.Sprint(s.Bits)
	case Nint:
		if s.Bits == math.MaxUint64 {
			return "-18446744073709551616"
		}
		return fmt.Sprintf("-%d", s.Bits+1)
	case Float16, Float32, Float64:
		return fmt.Sprintf("f%d(%#x)", 16<<(s.Kind-Float16), s.Bits)
	case Bool, Tag, Simple:
		return fmt.Sprintf("%s(%d)", s.Kind, s.Bits)
	}
	return s.Kind.String()
}

func TestScannerTokens(t *testing.T) {
	for _, tc := range []struct {
		codec     Codec
		hex, want string
	}{
		{Msgpack, "00", "0"},
		{Msgpack, "7f", "127"},
		{Msgpack, "e0", "-32"},
		{Msgpack, "ff", "-1"},
		{Msgpack, "ccff", "255"},
		{Msgpack, "cdffff", "65535"},
		{Msgpack, "ceffffffff", "4294967295"},
		{Msgpack, "cfffffffffffffffff", "18446744073709551615"},
		{Msgpack, "d07f d080", "127 -128"},
		{Msgpack, "d17fff d18000", "32767 -32768"},
		{Msgpack, "d27fffffff d280000000", "2147483647 -2147483648"},
		{Msgpack, "d37fffffffffffffff d38000000000000000", "9223372036854775807 -9223372036854775808"},
		{Msgpack, "d0ff d1ffff d2ffffffff d3ffffffffffffffff d300000000ffffffff", "-1 -1 -1 -1 4294967295"},
		{Msgpack, "c0 c2 c3", "null bool(0) bool(1)"},
		{Msgpack, "ca3fc00000 cb3ff8000000000000", "f32(0x3fc00000) f64(0x3ff8000000000000)"},
		{Msgpack, "a0 a161 d90162 da000163 db0000000164", `"" "a" "b" "c" "d"`},
		{Msgpack, "c400 c40101 c5000102 c60000000103", "h'' h'01' h'02' h'03'"},
		{Msgpack, "d401aa d5fe0102 d680aabbccdd", "ext(1,aa) ext(-2,0102) ext(-128,aabbccdd)"},
		{Msgpack, "d7ff0102030405060708", "ext(-1,0102030405060708)"},
		{Msgpack, "d80100112233445566778899aabbccddeeff", "ext(1,00112233445566778899aabbccddeeff)"},
		{Msgpack, "c70005 c8000105aa c90000000005", "ext(5,) ext(5,aa) ext(5,)"},
		{Msgpack, "90 9101 dc000102 dd0000000103", "list(0) end list(1) 1 end list(1) 2 end list(1) 3 end"},
		{Msgpack, "80 810102 de00010102 df000000010102", "map(0) end map(1) 1 2 end map(1) 1 2 end map(1) 1 2 end"},
		{Msgpack, "8191c081a1610192a0c0", `map(1) list(1) null end map(1) "a" 1 end end list(2) "" null end`},
		{CBOR, "00 17 1818 1903e8 1a000f4240 1bffffffffffffffff", "0 23 24 1000 1000000 18446744073709551615"},
		{CBOR, "20 37 3818 3903e7 3bffffffffffffffff", "-1 -24 -25 -1000 -18446744073709551616"},
		{CBOR, "f90001 fa7f800000 fb7ff8000000000000", "f16(0x1) f32(0x7f800000) f64(0x7ff8000000000000)"},
		{CBOR, "f4 f5 f6 f7 e0 f3 f820 f8ff", "bool(0) bool(1) null undefined simple(0) simple(19) simple(32) simple(255)"},
		{CBOR, "40 4101 60 6161 62c3bc", `h'' h'01' "" "a" "ü"`},
		{CBOR, "5f42010243030405ff 7f657374726561646d696e67ff", `h'0102030405' "streaming"`},
		{CBOR, "5fff 7f60ff", `h'' ""`},
		{CBOR, "80 a0 8101 a10102", "list(0) end map(0) end list(1) 1 end map(1) 1 2 end"},
		{CBOR, "9fff bfff 9f01bf0203ffff", "list(-1) end map(-1) end list(-1) 1 map(-1) 2 3 end end"},
		{CBOR, "c1c200 d9d9f7 81c100", "tag(1) tag(2) 0 tag(55799) list(1) tag(1) 0 end"},
	} {
		s := NewScanner(tc.codec, unhex(t, strings.ReplaceAll(tc.hex, " ", "")), Limits{})
		var got []string
		var err error
		for err = s.Next(); err == nil; err = s.Next() {
			got = append(got, short(s))
		}
		if text := strings.Join(got, " "); text != tc.want || err != io.EOF {
			t.Errorf("%s %s: %s, %v, want %s", tc.codec, tc.hex, text, err, tc.want)
		}
	}
}

func TestScannerPlaces(t *testing.T) {
	// {1: [2], "a": {}} and an indefinite {1: tag 5 "x", 2: [_ ]}: where each token is, and which stand in a key.
	for _, tc := range []struct {
		codec Codec
		hex   string
		want  []string
	}{
		{Msgpack, "82019102a16180", []string{
			"0-1 depth 1 key true: map 2", "1-2 depth 1 key false: int 3 1", "2-3 depth 2 key false: list 1",
			"3-4 depth 2 key false: int 3 2", "4-4 depth 1 key true: end", "4-6 depth 1 key false: string 61",
			"6-7 depth 2 key true: map 0", "7-7 depth 1 key true: end", "7-7 depth 0 key false: end"}},
		{CBOR, "bf01c5617802 9fffff", []string{
			"0-1 depth 1 key true: map -1", "1-2 depth 1 key false: int 3 1", "2-3 depth 1 key false: tag 13 5",
			"3-5 depth 1 key true: string 78", "5-6 depth 1 key false: int 3 2", "6-7 depth 2 key false: list -1",
			"7-8 depth 1 key true: end", "8-9 depth 0 key false: end"}},
	} {
		got, err := trace(NewScanner(tc.codec, unhex(t, strings.ReplaceAll(tc.hex, " ", "")), Limits{}))
		if err != io.EOF {
			t.Error(err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.hex, d)
		}
	}
}

func TestScannerFaults(t *testing.T) {
	for _, tc := range []struct {
		codec     Codec
		hex, want string
	}{
		{Msgpack, "92c0c1", "value: byte 0xc1 starts no msgpack value (offset 0x2)"},
		{Msgpack, "92c0", "value: input ends within a list: unexpected EOF (offset 0x0)"},
		{Msgpack, "92c0a461", "value: input ends within a string: unexpected EOF (offset 0x2)"},
		{Msgpack, "92c0cd61", "value: input ends within the head of a value: unexpected EOF (offset 0x2)"},
		{Msgpack, "92a161", "value: input ends within a container: unexpected EOF (offset 0x3)"},
		{CBOR, "821c", "value: input ends within a list: unexpected EOF (offset 0x0)"},
		{CBOR, "811c", "value: byte 0x1c starts no cbor value (offset 0x1)"},
		{CBOR, "81f818", "value: simple value 24 in two bytes, which needs 32 or more (offset 0x1)"},
		{CBOR, "9f8201ffff", "value: break outside a container of indefinite length (offset 0x3)"},
		{CBOR, "9fc1ffff", "value: break outside a container of indefinite length (offset 0x2)"},
		{CBOR, "9fbf00ffff", "value: map of indefinite length ends after a key (offset 0x3)"},
		{CBOR, "9f7f61614101ffff", "value: binary as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61617f6101ffffff", "value: string of indefinite length as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61c361bcff", "value: chunk of a string is not UTF-8 (offset 0x2)"},
		{CBOR, "9f7f6161", "value: input ends within a string of indefinite length: unexpected EOF (offset 0x1)"},
		{CBOR, "9f", "value: input ends within a container: unexpected EOF (offset 0x1)"},
		{CBOR, "9f5bffffffffffffffff00", "value: binary of length 18446744073709551615 (offset 0x1)"},
		{CBOR, "9f9bffffffffffffffff00", "value: list of length 18446744073709551615 (offset 0x1)"},
		{CBOR, "9fbb7fffffffffffffff00", "value: map of length 9223372036854775807 (offset 0x1)"},
	} {
		want := strings.ReplaceAll(tc.want, "binary", Bytes.String())
		p := unhex(t, tc.hex)
		for name, s := range scannersOf(tc.codec, p, int64(len(p))) {
			_, err := trace(s)
			if !errors.Is(err, fault.Corrupt) || err.Error() != want {
				t.Errorf("%s %s: %v, want %s", name, tc.hex, err, want)
			}
			if got := IsTruncated(err); got != strings.Contains(want, "EOF") {
				t.Errorf("%s %s: truncated %t", name, tc.hex, got)
			}
			for range 3 {
				if again := s.Next(); again != err || s.Kind != Invalid {
					t.Errorf("%s %s: then %v", name, tc.hex, again)
				}
				if again := s.Skip(); again != err {
					t.Errorf("%s %s: then Skip %v", name, tc.hex, again)
				}
			}
		}
	}
}

// scannersOf returns a scanner over memory and some over readers that give p in pieces.
func scannersOf(c Codec, p []byte, size int64) map[string]*Scanner {
	r := func() io.Reader { return bytes.NewReader(p) }
	return map[string]*Scanner{
		"memory":   NewScanner(c, p, Limits{}),
		"whole":    NewStream(c, r(), size, Limits{}),
		"one byte": NewStream(c, iotest.OneByteReader(r()), size, Limits{}),
		"half":     NewStream(c, iotest.HalfReader(r()), size, Limits{}),
		"data err": NewStream(c, iotest.DataErrReader(r()), size, Limits{}),
		"stutter":  NewStream(c, &stutter{r: iotest.OneByteReader(r())}, size, Limits{}),
	}
}

// stutter reads nothing every second time.
type stutter struct {
	r   io.Reader
	odd bool
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.odd = !s.odd; s.odd {
		return 0, nil
	}
	return s.r.Read(p)
}

func TestScannerStreams(t *testing.T) {
	check := func(c Codec, p []byte) {
		t.Helper()
		want, wantErr := trace(NewScanner(c, p, Limits{}))
		for name, s := range scannersOf(c, p, int64(len(p))) {
			got, err := trace(s)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %x: %s", name, p, d)
			}
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%s %x: %v, want %v", name, p, err, wantErr)
			}
		}
		// Of unknown size: what is accepted is the same; a claim beyond the end is found out when the end comes.
		for name, s := range scannersOf(c, p, -1) {
			got, err := trace(s)
			if (err == io.EOF) != (wantErr == io.EOF) {
				t.Errorf("%s %x: %v, want %v", name, p, err, wantErr)
			}
			if n := min(len(got), len(want)); wantErr == io.EOF || len(got) < n {
				if d := cmp.Diff(want, got); name != "memory" && d != "" {
					t.Errorf("%s %x: %s", name, p, d)
				}
			}
		}
	}
	wellformed(t, check)
	illformed(t, check)
	wellformed(t, func(c Codec, p []byte) {
		for i := range p {
			check(c, p[:i])
		}
	})
}

// TestScannerReaderFails cuts the reader at every byte: the tokens before the cut come, then the reader's error itself.
func TestScannerReaderFails(t *testing.T) {
	broken := errors.New("the line is dead")
	wellformed(t, func(c Codec, p []byte) {
		all, err := trace(NewScanner(c, p, Limits{}))
		if err != io.EOF {
			t.Fatal(err)
		}
		for cut := range len(p) {
			for _, piece := range []int{1, 3, 1 << 20} {
				r := io.MultiReader(&pieces{p[:cut], piece}, iotest.ErrReader(broken))
				s := NewStream(c, r, int64(len(p)), Limits{})
				got, err := trace(s)
				if err != broken {
					t.Fatalf("%x cut at %d: %v", p, cut, err)
				}
				if d := cmp.Diff(all[:len(got)], append([]string{}, got...)); d != "" {
					t.Errorf("%x cut at %d: %s", p, cut, d)
				}
				if s.Next() != broken || s.Skip() != broken {
					t.Errorf("%x cut at %d: another error at the next call", p, cut)
				}
				if len(got) < len(all) {
					var from, to int
					if fmt.Sscanf(all[len(got)], "%d-%d", &from, &to); to <= cut {
						t.Errorf("%x cut at %d: token %s was not read", p, cut, all[len(got)])
					}
				}
			}
		}
	})
	if err := NewStream(CBOR, &stutter{r: iotest.ErrReader(nil)}, -1, Limits{}).Next(); err != io.ErrNoProgress {
		t.Errorf("a reader without progress: %v", err)
	}
}

// pieces reads p in pieces of n bytes.
type pieces struct {
	p []byte
	n int
}

func (r *pieces) Read(p []byte) (int, error) {
	if len(r.p) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.p[:min(r.n, len(r.p))])
	r.p = r.p[n:]
	return n, nil
}

// TestScannerWaitsForNoMore reads values from a pipe whose writer waits for each to be read.
func TestScannerWaitsForNoMore(t *testing.T) {
	wellformed(t, func(c Codec, p []byte) {
		r, w := io.Pipe()
		gate := make(chan bool)
		go func() {
			for range 3 {
				w.Write(p)
				<-gate
			}
			w.Close()
		}()
		s := NewStream(c, r, -1, Limits{})
		for i := range 3 {
			if i == 1 {
				if err := s.Skip(); err != nil {
					t.Fatal(err)
				}
			} else {
				for {
					if err := s.Next(); err != nil {
						t.Fatal(err)
					}
					if s.Depth() == 0 && s.Kind != Tag {
						break
					}
				}
			}
			gate <- true
		}
		if err := s.Next(); err != io.EOF {
			t.Error(err)
		}
	})
}

// TestScannerPrefixes: a proper prefix of a value is truncated, never anything else and never accepted.
func TestScannerPrefixes(t *testing.T) {
	check := func(t rapid.TB, c Codec, p []byte) {
		if n, err := walk(c, p, Limits{}); err != nil || n != len(p) {
			t.Fatalf("%s %x: %d, %v", c, p, n, err)
		}
		for i := range p {
			q := p[:i:i]
			if _, err := walk(c, q, Limits{}); !IsTruncated(err) {
				t.Fatalf("%s %x of %x: %v", c, q, p, err)
			}
			if n, err := Skip(c, q, 1, Limits{}); n != 0 || err != io.ErrUnexpectedEOF {
				t.Fatalf("%s %x of %x: Skip %d, %v", c, q, p, n, err)
			}
			s := NewScanner(c, q, Limits{})
			if err := s.Skip(); i == 0 && err != io.EOF || i > 0 && (!IsTruncated(err) || !errors.Is(err, fault.Corrupt)) {
				t.Fatalf("%s %x of %x: Scanner.Skip %v", c, q, p, err)
			}
		}
	}
	wellformed(t, func(c Codec, p []byte) { check(t, c, p) })
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "codec")
		check(t, c, drawValue(t, nil, c, 2))
	})
}

func TestIllformedRefused(t *testing.T) {
	illformed(t, func(c Codec, p []byte) {
		if n, err := walk(c, p, Limits{}); err == nil {
			t.Errorf("%s %x: accepted, %d bytes", c, p, n)
		}
		if n, err := Skip(c, p, 1, Limits{}); err == nil {
			t.Errorf("%s %x: accepted by Skip, %d bytes", c, p, n)
		}
		if err := NewScanner(c, p, Limits{}).Skip(); err == nil {
			t.Errorf("%s %x: accepted by Scanner.Skip", c, p)
		}
		if raw, err := NewScanner(c, p, Limits{}).Raw(); err == nil {
			t.Errorf("%s %x: accepted by Raw, %x", c, p, raw)
		}
	})
}

// TestCountBombs: a few bytes that claim much are refused where they stand, and cost nothing.
func TestCountBombs(t *testing.T) {
	for _, tc := range []struct {
		codec Codec
		hex   string
		at    int // the offset that the fault names
	}{
		{Msgpack, "ddffffffff", 0}, {Msgpack, "dfffffffff", 0}, {Msgpack, "dbffffffff", 0}, {Msgpack, "c6ffffffff", 0},
		{Msgpack, "c9ffffffff01", 0}, {Msgpack, "dcffff", 0}, {Msgpack, "deffff", 0}, {Msgpack, "9f", 0},
		{Msgpack, "8f", 0}, {Msgpack, "bf", 0}, {Msgpack, "92ddffffffff", 1},
		// Each claim fits what is left, all together do not.
		{Msgpack, strings.Repeat("dc0020", 32) + strings.Repeat("c0", 100), 15},
		{Msgpack, "dd00000010" + strings.Repeat("dc0010", 16) + strings.Repeat("c0", 16), 11},
		{CBOR, "9bffffffffffffffff", 0}, {CBOR, "bbffffffffffffffff", 0}, {CBOR, "9b7fffffffffffffff", 0},
		{CBOR, "bb7fffffffffffffff", 0}, {CBOR, "9b0fffffffffffffff", 0}, {CBOR, "9affffffff", 0},
		{CBOR, "baffffffff", 0}, {CBOR, "5bffffffffffffffff", 0}, {CBOR, "7affffffff", 0}, {CBOR, "9f9affffffff", 1},
		{CBOR, "9f5f5affffffff", 1}, {CBOR, "9f5f5bffffffffffffffff", 2}, {CBOR, "c19affffffff", 1},
		{CBOR, "a1" + strings.Repeat("9b0fffffffffffffff", 9), 1},
	} {
		p := unhex(t, tc.hex)
		for name, s := range scannersOf(tc.codec, p, int64(len(p))) {
			var err error
			grown := allocated(func() {
				for err == nil {
					err = s.Next()
				}
			})
			var e *fault.Error
			if !errors.As(err, &e) || e.Offset != int64(tc.at) {
				t.Errorf("%s %s: %v, want offset %#x", name, tc.hex, err, tc.at)
			}
			if grown > 2*minWindow {
				t.Errorf("%s %s: %d bytes allocated", name, tc.hex, grown)
			}
			if err := NewScanner(tc.codec, p, Limits{}).Skip(); err == nil {
				t.Errorf("%s: accepted by Skip", tc.hex)
			}
		}
		if allocs := testing.AllocsPerRun(10, func() {
			if _, err := Skip(tc.codec, p, 1, Limits{}); err == nil {
				t.Errorf("%s: accepted", tc.hex)
			}
		}); allocs > 8 {
			t.Errorf("%s: %v allocations", tc.hex, allocs)
		}
	}
	// Nothing is known of the size: claims of 2^59 pairs in one another must not overflow, nor be believed.
	for _, first := range []string{"9b0fffffffffffffff", "bb0fffffffffffffff", "9b0800000000000000"} {
		p := unhex(t, strings.Repeat(first, 100)+strings.Repeat("00", 300))
		for name, s := range scannersOf(CBOR, p, -1) {
			if _, err := trace(s); !IsTruncated(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, s := range scannersOf(CBOR, p, -1) {
			if err := s.Skip(); !IsTruncated(err) {
				t.Errorf("%s: Skip %v", name, err)
			}
		}
	}
	if n, err := Skip(CBOR, make([]byte, 10), math.MaxInt, Limits{}); err != io.ErrUnexpectedEOF {
		t.Errorf("%d, %v", n, err)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestStreamedClaimCostsLittle(t *testing.T) {
	for _, p := range [][]byte{
		append(unhex(t, "dbffffffff"), "0123456789"...),
		append(unhex(t, "c9ffffffff05"), "0123456789"...),
	} {
		for _, skip := range []bool{false, true} {
			s := NewStream(Msgpack, bytes.NewReader(p), -1, Limits{})
			var err error
			grown := allocated(func() {
				if skip {
					err = s.Skip()
				} else {
					err = s.Next()
				}
			})
			if !IsTruncated(err) || grown > 2*minWindow {
				t.Errorf("%x: %v, %d bytes allocated", p, err, grown)
			}
		}
	}
}

func TestScannerDepth(t *testing.T) {
	nest := func(open string, n int, core, shut string) string {
		return strings.Repeat(open, n) + core + strings.Repeat(shut, n)
	}
	for _, tc := range []struct {
		name             string
		codec            Codec
		open, core, shut string
		levels           int // that one open makes
		skipLimits       bool
	}{
		{"arrays", Msgpack, "91", "c0", "", 1, false},
		{"arrays of two", Msgpack, "92", "c0", "c0", 1, false},
		{"map values", Msgpack, "8101", "c0", "", 1, false},
		{"map keys", Msgpack, "81", "c0", "c0", 1, false},
		{"arrays", CBOR, "81", "00", "", 1, false},
		{"map values", CBOR, "a101", "00", "", 1, false},
		{"map keys", CBOR, "a1", "00", "00", 1, false},
		{"tags", CBOR, "c1", "00", "", 1, false},
		{"tags and arrays", CBOR, "c181", "00", "", 2, false},
		{"indefinite arrays", CBOR, "9f", "00", "ff", 1, true},
		{"indefinite map values", CBOR, "bf01", "00", "ff", 1, true},
		{"indefinite map keys", CBOR, "bf", "00", "00ff", 1, true},
		{"a tag and an indefinite array", CBOR, "c19f", "00", "ff", 2, false},
		{"indefinite strings", CBOR, "9f", "5f4101ff", "ff", 1, true},
	} {
		for _, limit := range []int{6, 30, DefaultDepth} {
			lim := Limits{Depth: limit}
			if limit == DefaultDepth {
				lim = Limits{}
			}
			n := limit / tc.levels
			p := unhex(t, nest(tc.open, n, tc.core, tc.shut))
			if m, err := walk(tc.codec, p, lim); err != nil || m != len(p) {
				t.Errorf("%s %s: %d levels: %d, %v", tc.codec, tc.name, limit, m, err)
			}
			if m, err := Skip(tc.codec, p, 1, lim); err != nil || m != len(p) {
				t.Errorf("%s %s: %d levels: Skip %d, %v", tc.codec, tc.name, limit, m, err)
			}
			deeper := unhex(t, nest(tc.open, n+1, tc.core, tc.shut))
			if m, err := walk(tc.codec, deeper, lim); !errors.Is(err, fault.Limit) {
				t.Errorf("%s %s: %d levels and more: %d, %v", tc.codec, tc.name, limit, m, err)
			}
			m, err := Skip(tc.codec, deeper, 1, lim)
			if tc.skipLimits && !errors.Is(err, fault.Limit) || !tc.skipLimits && (err != nil || m != len(deeper)) {
				t.Errorf("%s %s: %d levels and more: Skip %d, %v", tc.codec, tc.name, limit, m, err)
			}
		}
	}
	// Levels are given back: siblings do not add up.
	p := unhex(t, "8a"+strings.Repeat("c1c181c181c100", 10))
	if m, err := walk(CBOR, p, Limits{Depth: 7}); err != nil || m != len(p) {
		t.Error(m, err)
	}
	if _, err := walk(CBOR, p, Limits{Depth: 6}); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
	// The fault names the place of the head that is too deep, in memory and streamed, and a million levels are no matter.
	deep := unhex(t, strings.Repeat("91", 1<<20))
	for name, s := range scannersOf(Msgpack, deep, -1) {
		if _, err := trace(s); err == nil || err.Error() != "value: nested deeper than 1000 (offset 0x3e8)" {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep = unhex(t, strings.Repeat("9f", 1<<20))
	for name, s := range scannersOf(CBOR, deep, -1) {
		if err := s.Skip(); err == nil || err.Error() != "value: nested deeper than 1000 (offset 0x3e8)" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScannerLongStrings: strings of more than a window, whole, in chunks, nested, read and passed over.
func TestScannerLongStrings(t *testing.T) {
	for _, n := range []int{minWindow - 7, minWindow, minWindow + 1, 5*minWindow + 3} {
		text := bytes.Repeat([]byte("x"), n)
		long := append([]byte{0x7a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, text...)
		p := append([]byte{0x84, 0x01}, long...)
		p = append(append(append(append(p, 0x7f, 0x61, 'y'), long...), long...), 0xff)
		p = append(append(p, 0xbf, 0x61, 'k'), long...)
		p = append(p, 0xff, 0x02)
		for name, s := range scannersOf(CBOR, p, -1) {
			if n > 2*minWindow && strings.Contains("one byte stutter", name) {
				continue // slow
			}
			var got []int
			for s.Next() == nil {
				if s.Kind == String {
					got = append(got, len(s.Data))
					if len(bytes.Trim(s.Data, "xyk")) != 0 {
						t.Errorf("%s: other bytes", name)
					}
				}
			}
			if d := cmp.Diff([]int{n, 2*n + 1, 1, n}, got); d != "" || s.Offset() != int64(len(p)) {
				t.Errorf("%s: %s, offset %d", name, d, s.Offset())
			}
		}
	}
}

func TestScannerReset(t *testing.T) {
	s := NewStream(CBOR, iotest.ErrReader(io.ErrClosedPipe), -1, Limits{Depth: 3})
	if err := s.Next(); err != io.ErrClosedPipe {
		t.Fatal(err)
	}
	p := unhex(t, "93010203")
	if allocs := testing.AllocsPerRun(100, func() {
		s.Reset(Msgpack, p, Limits{})
		for s.Next() == nil {
		}
		if s.Offset() != 4 || s.Codec() != Msgpack {
			t.Fatal(s.Offset())
		}
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestStreamSize(t *testing.T) {
	p := unhex(t, "930102039304")
	for size, want := range map[int64]string{
		4: "EOF", 3: "value: input ends within a list: unexpected EOF (offset 0x0)",
		100: "value: input ends within a container: unexpected EOF (offset 0x6)",
		6:   "value: input ends within a list: unexpected EOF (offset 0x4)",
	} {
		if _, err := trace(NewStream(Msgpack, bytes.NewReader(p), size, Limits{})); err == nil || err.Error() != want {
			t.Errorf("size %d: %v, want %s", size, err, want)
		}
	}
}
