package value

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

// TestSkipsAgree: the kernel, the scanner's Skip and Raw in memory and over readers, and the token walk find the same
// length of every value, and of every value inside it.
func TestSkipsAgree(t *testing.T) {
	check := func(t rapid.TB, c Codec, p []byte) {
		n, err := Skip(c, p, 1, Limits{})
		if m, walkErr := walk(c, p, Limits{}); n != m || n != len(p) || err != nil || walkErr != nil {
			t.Fatalf("%s %x: Skip %d, %v; walk %d, %v", c, p, n, err, m, walkErr)
		}
		all := countValues(t, c, p)
		for i := range all {
			for name, s := range scannersOf(c, p, int64(len(p))) {
				skipAt(t, name, c, p, s, i, s.Skip)
			}
			for name, s := range scannersOf(c, p, -1) {
				skipAt(t, name, c, p, s, i, func() error {
					raw, err := s.Raw()
					if err == nil && s.Kind != End && !bytes.Equal(raw, p[s.Start():s.Offset()]) {
						t.Fatalf("%s %x: Raw %x at %d", name, p, raw, s.Start())
					}
					return err
				})
			}
		}
	}
	wellformed(t, func(c Codec, p []byte) { check(t, c, p) })
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Codec{Msgpack, CBOR}).Draw(t, "codec")
		p := drawValue(t, nil, c, 2)
		if len(p) < 200 {
			check(t, c, p)
		}
	})
}

// countValues returns the number of tokens of p that a value can be skipped in front of.
func countValues(t rapid.TB, c Codec, p []byte) int {
	s := NewScanner(c, p, Limits{})
	n := 0
	for {
		if err := s.Next(); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatalf("%x: %v", p, err)
		}
		n++
	}
}

// skipAt reads i tokens of s, skips, and reads the others: the skip must end where a walk over the value does.
func skipAt(t rapid.TB, name string, c Codec, p []byte, s *Scanner, i int, skip func() error) {
	for range i {
		if err := s.Next(); err != nil {
			t.Fatalf("%s %x: %v", name, p, err)
		}
	}
	at, depth := s.Offset(), s.Depth()
	ahead := NewScanner(c, p, Limits{})
	for range i + 1 {
		ahead.Next()
	}
	for ahead.Kind == Tag || ahead.Depth() > depth {
		ahead.Next()
	}
	if err := skip(); err != nil {
		t.Fatalf("%s %x: skip at %d: %v", name, p, at, err)
	}
	if s.Kind != Invalid && s.Kind != End {
		t.Fatalf("%s %x: skip at %d leaves a %s", name, p, at, s.Kind)
	}
	if s.Start() != at || s.Offset() != ahead.Offset() || s.Depth() != ahead.Depth() || s.InKey() != ahead.InKey() {
		t.Fatalf("%s %x: skip at %d: to %d, walk to %d", name, p, at, s.Offset(), ahead.Offset())
	}
	for {
		err, want := s.Next(), ahead.Next()
		if err != want || s.Offset() != ahead.Offset() || err == nil && s.Kind != ahead.Kind {
			t.Fatalf("%s %x: behind a skip at %d: %v at %d, want %v at %d", name, p, at, err, s.Offset(), want, ahead.Offset())
		}
		if err != nil {
			return
		}
	}
}

func TestSkipMany(t *testing.T) {
	p := unhex(t, "01a16192c0c38101c40100cb000000000000000005")
	for n, want := range []int{0, 1, 3, 6, 11, 20, 21} {
		if got, err := Skip(Msgpack, p, n, Limits{}); got != want || err != nil {
			t.Errorf("%d values: %d, %v, want %d", n, got, err, want)
		}
	}
	if got, err := Skip(Msgpack, p, 7, Limits{}); got != 0 || err != io.ErrUnexpectedEOF {
		t.Errorf("7 values: %d, %v", got, err)
	}
	if got, err := Skip(Msgpack, p, -1, Limits{}); got != 0 || err != nil {
		t.Errorf("-1 values: %d, %v", got, err)
	}
	p = unhex(t, "9f01ff7f6161ffbf0102ffc1c200")
	for n, want := range []int{0, 3, 7, 11, 14} {
		if got, err := Skip(CBOR, p, n, Limits{}); got != want || err != nil {
			t.Errorf("%d values: %d, %v, want %d", n, got, err, want)
		}
	}
}

func TestSkipFaults(t *testing.T) {
	for _, tc := range []struct {
		codec     Codec
		hex, want string
	}{
		{Msgpack, "92c0c1", "value: byte 0xc1 starts no msgpack value (offset 0x2)"},
		{CBOR, "81f818", "value: simple value 24 in two bytes, which needs 32 or more (offset 0x1)"},
		{CBOR, "9f8201ffff", "value: break outside a container of indefinite length (offset 0x3)"},
		{CBOR, "9fc1ffff", "value: break outside a container of indefinite length (offset 0x2)"},
		{CBOR, "9fbf00ffff", "value: map of indefinite length ends after a key (offset 0x3)"},
		{CBOR, "9f7f61614101ffff", "value: bytes as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61617f6101ffffff", "value: string of indefinite length as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61619f", "value: list of indefinite length as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61615a", "value: bytes as a chunk of a string (offset 0x4)"},
		{CBOR, "9f7f61611c", "value: byte 0x1c starts no cbor value (offset 0x4)"},
		{0, "00", "value: byte 0x00 starts no codec(0) value (offset 0x0)"},
	} {
		p := unhex(t, tc.hex)
		want := strings.ReplaceAll(tc.want, "bytes as", Bytes.String()+" as")
		if n, err := Skip(tc.codec, p, 1, Limits{}); n != 0 || !errors.Is(err, fault.Corrupt) || err.Error() != want {
			t.Errorf("%s: %d, %v, want %s", tc.hex, n, err, want)
		}
		for name, s := range scannersOf(tc.codec, p, -1) {
			if err := s.Skip(); err == nil || err.Error() != want {
				t.Errorf("%s %s: %v, want %s", name, tc.hex, err, want)
			}
		}
	}
}

// TestSkipStreamsInConstantMemory passes over a document and a string much longer than the window.
func TestSkipStreamsInConstantMemory(t *testing.T) {
	for _, c := range []Codec{Msgpack, CBOR} {
		p := makeMixed(c, 5_000)
		s := NewStream(c, bytes.NewReader(p), int64(len(p)), Limits{})
		if grown := allocated(func() {
			if err := s.Skip(); err != nil {
				t.Error(err)
			}
		}); grown > 2*minWindow || s.Offset() != int64(len(p)) {
			t.Errorf("%s: %d bytes allocated, at %d", c, grown, s.Offset())
		}
		if err := s.Skip(); err != io.EOF {
			t.Error(err)
		}
	}
	const long = min(0x30000000, maxLength)
	head := appendStringHead([]byte{0x92}, Msgpack, long)
	r := io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, long), bytes.NewReader([]byte{7}))
	s := NewStream(Msgpack, r, -1, Limits{})
	if grown := allocated(func() {
		if err := s.Skip(); err != nil {
			t.Error(err)
		}
	}); grown > 2*minWindow || s.Offset() != int64(len(head))+long+1 {
		t.Errorf("%d bytes allocated, at %d", grown, s.Offset())
	}
}

// zeros reads zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestSkipAllocatesNothing(t *testing.T) {
	for _, c := range []Codec{Msgpack, CBOR} {
		p := makeMixed(c, 5_000)
		if n := testing.AllocsPerRun(3, func() { Skip(c, p, 1, Limits{}) }); n != 0 {
			t.Errorf("Skip: %v allocations", n)
		}
		s := NewScanner(c, p, Limits{})
		if n := testing.AllocsPerRun(3, func() {
			s.Reset(c, p, Limits{})
			for s.Next() == nil {
			}
		}); n != 0 {
			t.Errorf("Next: %v allocations", n)
		}
	}
}
