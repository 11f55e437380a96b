package value

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

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
			if !errors.As(err, &e) || e.Offset != int64(tc.at) && !tooLong32(err) {
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
			if _, err := trace(s); !IsTruncated(err) && !tooLong32(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, s := range scannersOf(CBOR, p, -1) {
			if err := s.Skip(); !IsTruncated(err) && !tooLong32(err) {
				t.Errorf("%s: Skip %v", name, err)
			}
		}
	}
	if n, err := Skip(CBOR, make([]byte, 10), math.MaxInt, Limits{}); err != io.ErrUnexpectedEOF {
		t.Errorf("%d, %v", n, err)
	}
}

// tooLong32 reports whether err is that of a length that only an int of 64 bits holds, in a build for 32 bits.
func tooLong32(err error) bool { return strconv.IntSize == 32 && errors.Is(err, fault.Limit) }

func TestLengthBeyondInt(t *testing.T) {
	if strconv.IntSize != 32 {
		t.Skip("an int holds all lengths")
	}
	for _, p := range [][]byte{unhex(t, "5a3000000000"), unhex(t, "9b000000010000000000")} {
		s := NewScanner(CBOR, p, Limits{})
		if err := s.Next(); !IsTruncated(err) {
			t.Errorf("%x: %v, where the input is known to be shorter", p, err)
		}
		s = NewStream(CBOR, bytes.NewReader(p), -1, Limits{})
		if err := s.Next(); !errors.Is(err, fault.Limit) {
			t.Errorf("%x: %v", p, err)
		}
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
			if !IsTruncated(err) && !tooLong32(err) || grown > 2*minWindow {
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
