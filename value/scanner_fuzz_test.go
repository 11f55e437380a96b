package value

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fxamacker/cbor/v2"
	"github.com/tinylib/msgp/msgp"

	"github.com/spilehq/spile/fault"
)

// fuzzDepth is above what fuzzing makes, so that no side refuses for depth alone.
const fuzzDepth = 1 << 20

// addCorpus adds the values of one codec, good and bad.
func addCorpus(f *testing.F, only Codec) {
	add := func(c Codec, p []byte) {
		if c == only {
			f.Add(p)
		}
	}
	wellformed(f, add)
	illformed(f, add)
	switch only {
	case Msgpack:
		f.Add(makeMixed(Msgpack, 2))
		f.Add(unhex(f, "ddffffffff"))
	case CBOR:
		f.Add(makeMixed(CBOR, 2))
		f.Add(unhex(f, "9bffffffffffffffff"))
		f.Add(unhex(f, "7f61c361bcff"))
	}
}

// FuzzScannerMsgpack compares what is accepted, and its length, with tinylib/msgp.
func FuzzScannerMsgpack(f *testing.F) {
	addCorpus(f, Msgpack)
	f.Fuzz(func(t *testing.T, p []byte) {
		rest, wantErr := msgp.Skip(p)
		n, err := walk(Msgpack, p, Limits{Depth: fuzzDepth})
		if (err == nil) != (wantErr == nil) || err == nil && n != len(p)-len(rest) {
			t.Fatalf("%x: %d, %v; msgp: %d, %v", p, n, err, len(p)-len(rest), wantErr)
		}
		if m, err := Skip(Msgpack, p, 1, Limits{}); (err == nil) != (wantErr == nil) || m != n {
			t.Fatalf("%x: Skip %d, %v; msgp: %d, %v", p, m, err, n, wantErr)
		}
	})
}

// FuzzScannerCBOR compares what is accepted, and its length, with fxamacker/cbor.
func FuzzScannerCBOR(f *testing.F) {
	addCorpus(f, CBOR)
	mode, err := cbor.DecOptions{
		MaxNestedLevels: math.MaxUint16, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
	}.DecMode()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > math.MaxUint16 {
			return
		}
		n, err := Skip(CBOR, p, 1, Limits{Depth: fuzzDepth})
		wantErr := mode.Wellformed(p)
		if more := (*cbor.ExtraneousDataError)(nil); errors.As(wantErr, &more) {
			wantErr = mode.Wellformed(p[:n]) // the first value only
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%x: Skip %d, %v; fxamacker: %v", p, n, err, wantErr)
		}
		m, err := walk(CBOR, p, Limits{Depth: fuzzDepth})
		if err != nil && strings.Contains(err.Error(), "not UTF-8") {
			return // well-formed, not valid: a chunk of a string that is no text
		}
		if (err == nil) != (wantErr == nil) || m != n {
			t.Fatalf("%x: walk %d, %v; Skip %d; fxamacker: %v", p, m, err, n, wantErr)
		}
	})
}

// FuzzSkip compares the kernel with the plain walk over tokens, and both with what readers in small pieces give.
func FuzzSkip(f *testing.F) {
	wellformed(f, func(c Codec, p []byte) { f.Add(c == CBOR, p) })
	illformed(f, func(c Codec, p []byte) { f.Add(c == CBOR, p) })
	f.Fuzz(func(t *testing.T, isCBOR bool, p []byte) {
		c := Msgpack
		if isCBOR {
			c = CBOR
		}
		lim := Limits{Depth: fuzzDepth}
		n, err := Skip(c, p, 1, lim)
		m, walkErr := walk(c, p, lim)
		if walkErr != nil && strings.Contains(walkErr.Error(), "not UTF-8") {
			return
		}
		if n != m || (err == nil) != (walkErr == nil) {
			t.Fatalf("%s %x: Skip %d, %v; walk %d, %v", c, p, n, err, m, walkErr)
		}
		if err == nil {
			for i := range min(n, 64) {
				if _, err := Skip(c, p[:i], 1, lim); err != io.ErrUnexpectedEOF {
					t.Fatalf("%s %x cut at %d: %v", c, p, i, err)
				}
			}
		} else if err != io.ErrUnexpectedEOF && !errors.Is(err, fault.Corrupt) {
			t.Fatalf("%s %x: %v", c, p, err)
		}
		want, wantErr := trace(NewScanner(c, p, lim))
		got, gotErr := trace(NewStream(c, iotest.OneByteReader(bytes.NewReader(p)), int64(len(p)), lim))
		if strings.Join(got, "\n") != strings.Join(want, "\n") || wantErr.Error() != gotErr.Error() {
			t.Fatalf("%s %x: in memory\n%s\n%v\nstreamed\n%s\n%v", c, p, strings.Join(want, "\n"), wantErr, strings.Join(got, "\n"), gotErr)
		}
		if len(p) == 0 {
			return
		}
		for _, size := range []int64{-1, int64(len(p))} {
			s := NewStream(c, iotest.OneByteReader(bytes.NewReader(p)), size, lim)
			if skipErr := s.Skip(); (skipErr == nil) != (err == nil) || err == nil && s.Offset() != int64(n) {
				t.Fatalf("%s %x: Skip %d, %v; streamed %d, %v", c, p, n, err, s.Offset(), skipErr)
			}
			s = NewStream(c, iotest.OneByteReader(bytes.NewReader(p)), size, lim)
			if raw, rawErr := s.Raw(); (rawErr == nil) != (err == nil) || err == nil && !bytes.Equal(raw, p[:n]) {
				t.Fatalf("%s %x: Skip %d, %v; Raw %x, %v", c, p, n, err, raw, rawErr)
			}
		}
	})
}
