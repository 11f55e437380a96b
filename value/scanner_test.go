package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

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
		{Msgpack, "92c0", "value: input ends within a list (offset 0x0)"},
		{Msgpack, "92c0a461", "value: input ends within a string (offset 0x2)"},
		{Msgpack, "92c0cd61", "value: input ends within the head of a value (offset 0x2)"},
		{Msgpack, "92a161", "value: input ends within a container (offset 0x3)"},
		{CBOR, "821c", "value: input ends within a list (offset 0x0)"},
		{CBOR, "811c", "value: byte 0x1c starts no cbor value (offset 0x1)"},
		{CBOR, "81f818", "value: simple value 24 in two bytes, which needs 32 or more (offset 0x1)"},
		{CBOR, "9f8201ffff", "value: break outside a container of indefinite length (offset 0x3)"},
		{CBOR, "9fc1ffff", "value: break outside a container of indefinite length (offset 0x2)"},
		{CBOR, "9fbf00ffff", "value: map of indefinite length ends after a key (offset 0x3)"},
		{CBOR, "9f7f61614101ffff", "value: binary as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61617f6101ffffff", "value: string of indefinite length as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61c361bcff", "value: chunk of a string is not UTF-8 (offset 0x2)"},
		{CBOR, "9f7f6161", "value: input ends within a string of indefinite length (offset 0x1)"},
		{CBOR, "9f", "value: input ends within a container (offset 0x1)"},
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
			if got := IsTruncated(err); got != strings.HasPrefix(want, "value: input ends within") {
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
		4: "EOF", 3: "value: input ends within a list (offset 0x0)",
		100: "value: input ends within a container (offset 0x6)",
		6:   "value: input ends within a list (offset 0x4)",
	} {
		if _, err := trace(NewStream(Msgpack, bytes.NewReader(p), size, Limits{})); err == nil || err.Error() != want {
			t.Errorf("size %d: %v, want %s", size, err, want)
		}
	}
}
