package msglc

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/spilehq/spile/value"
)

// plainBadText is the plain twin of textScan: token by token.
func plainBadText(c value.Codec, p []byte) int64 {
	s := value.NewScanner(c, p, value.Limits{})
	for {
		switch err := s.Next(); {
		case errors.Is(err, io.EOF):
			return -1
		case err != nil:
			return -2
		case s.Kind == value.String && !utf8.Valid(s.Data):
			return s.Start()
		}
	}
}

// TestTextScan cuts values at random into pieces and compares what is found with the plain twin.
func TestTextScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) []byte {
		var p []byte
		for len(p) < n {
			p = utf8.AppendRune(p, []rune{'a', 'é', '€', '𝄞'}[r.IntN(4)])
		}
		if r.IntN(12) == 0 && len(p) > 0 {
			p[r.IntN(len(p))] = byte(r.IntN(256))
		}
		return p
	}
	bad := 0
	for round := range 20_000 {
		c := value.Msgpack
		if round%2 == 1 {
			c = value.CBOR
		}
		n := r.IntN(12)
		p := value.AppendArrayHeader(nil, c, n)
		for range n {
			switch r.IntN(8) {
			case 0:
				p = value.AppendUint(p, c, r.Uint64()>>r.IntN(64))
			case 1:
				p = value.AppendFloat64(p, c, r.Float64())
			case 2:
				p = value.AppendBytes(p, c, []byte("\xff\xfe\xa1\xc3")[:r.IntN(5)])
			case 3:
				p = value.AppendNull(value.AppendString(value.AppendMapHeader(p, c, 1), c, string(text(r.IntN(6)))), c)
			case 4:
				if c == value.CBOR { // chunks that may end within a character
					whole := text(r.IntN(20))
					p = append(p, 0x7f)
					for len(whole) > 0 {
						k := 1 + r.IntN(len(whole))
						p = value.AppendString(p, c, string(whole[:k]))
						whole = whole[k:]
					}
					p = append(p, 0xff)
				} else {
					p = value.AppendNull(p, c)
				}
			case 5:
				p = value.AppendString(p, c, string(text(r.IntN(400))))
			default:
				p = value.AppendString(p, c, string(text(r.IntN(40))))
			}
		}
		want := plainBadText(c, p)
		if want == -2 {
			continue // chunks that the scanner refuses
		}
		if want >= 0 {
			bad++
		}
		s := newTextScan(c, 0)
		for rest := p; len(rest) > 0 && s.bad < 0; {
			k := 1 + r.IntN(len(rest))
			s.take(rest[:k])
			rest = rest[k:]
		}
		if s.bad != want {
			t.Fatalf("%v % x: text at %d, want %d", c, p, s.bad, want)
		}
	}
	if bad < 1000 {
		t.Errorf("only %d with bad text", bad)
	}
}
