package value

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/tinylib/msgp/msgp"
)

// mixedDoc is a list of 50,000 records with short keys, strings, integers, floats and small lists, about 8 MB.
var mixedDoc = [...]func() []byte{
	Msgpack: sync.OnceValue(func() []byte { return makeMixed(Msgpack, 50_000) }),
	CBOR:    sync.OnceValue(func() []byte { return makeMixed(CBOR, 50_000) }),
}

// makeMixed encodes records; the few heads it needs are written here by hand so that it depends on no encoder.
func makeMixed(c Codec, records int) []byte {
	var b []byte
	str := func(s string) {
		switch {
		case c == CBOR && len(s) < 24:
			b = append(b, 0x60|byte(len(s)))
		case c == CBOR:
			b = append(b, 0x78, byte(len(s)))
		case len(s) < 32:
			b = append(b, 0xa0|byte(len(s)))
		default:
			b = append(b, 0xd9, byte(len(s)))
		}
		b = append(b, s...)
	}
	num := func(n int) {
		neg := n < 0
		if neg {
			n = -1 - n
		}
		switch {
		case c == CBOR && neg && n < 24:
			b = append(b, 0x20|byte(n))
		case c == CBOR && neg:
			b = binary.BigEndian.AppendUint16(append(b, 0x39), uint16(n))
		case c == CBOR && n < 24:
			b = append(b, byte(n))
		case c == CBOR && n < 1<<8:
			b = append(b, 0x18, byte(n))
		case c == CBOR && n < 1<<16:
			b = binary.BigEndian.AppendUint16(append(b, 0x19), uint16(n))
		case c == CBOR:
			b = binary.BigEndian.AppendUint32(append(b, 0x1a), uint32(n))
		case neg && n < 32:
			b = append(b, ^byte(n))
		case neg:
			b = binary.BigEndian.AppendUint16(append(b, 0xd1), ^uint16(n))
		case n < 1<<7:
			b = append(b, byte(n))
		case n < 1<<8:
			b = append(b, 0xcc, byte(n))
		case n < 1<<16:
			b = binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
		default:
			b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
		}
	}
	f64 := func(f float64) {
		b = binary.BigEndian.AppendUint64(append(b, map[Codec]byte{Msgpack: 0xcb, CBOR: 0xfb}[c]), math.Float64bits(f))
	}
	small := func(msgpack, cbor byte, n int) {
		if c == CBOR {
			msgpack = cbor
		}
		b = append(b, msgpack|byte(n))
	}
	x := uint32(1)
	rnd := func(n int) int {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		return int(x>>8) % n
	}
	if c == CBOR {
		b = append(b, 0x9a)
	} else {
		b = append(b, 0xdd)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(records))
	for i := range records {
		small(0x80, 0xa0, 10)
		str("id")
		num(i)
		str("name")
		str(fmt.Sprintf("player-%d", rnd(1_000_000)))
		str("note")
		str("the quick brown fox jumps over the lazy dog"[:10+rnd(34)])
		str("level")
		num(rnd(120))
		str("gold")
		num(rnd(100_000) - 500)
		str("ratio")
		f64(float64(rnd(1000)) / 7)
		str("active")
		small(0xc2, 0xf4, rnd(2))
		str("guild")
		small(0xc0, 0xf6, 0)
		str("slots")
		n := rnd(8)
		small(0x90, 0x80, n)
		for range n {
			num(rnd(300))
		}
		str("pos")
		small(0x90, 0x80, 3)
		for range 3 {
			f64(float64(rnd(10_000)) / 3)
		}
	}
	return b
}

func BenchmarkSkip(b *testing.B) {
	for _, c := range []Codec{Msgpack, CBOR} {
		b.Run(c.String(), func(b *testing.B) {
			p := mixedDoc[c]()
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := Skip(c, p, 1, Limits{}); err != nil || n != len(p) {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkSkipPeers is what the oracles need for the same documents.
func BenchmarkSkipPeers(b *testing.B) {
	b.Run("msgp", func(b *testing.B) {
		p := mixedDoc[Msgpack]()
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			if _, err := msgp.Skip(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fxamacker", func(b *testing.B) {
		p := mixedDoc[CBOR]()
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			if err := cbor.Wellformed(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkScannerNext(b *testing.B) {
	for _, c := range []Codec{Msgpack, CBOR} {
		for _, stream := range []bool{false, true} {
			name := c.String() + map[bool]string{false: "/memory", true: "/stream"}[stream]
			b.Run(name, func(b *testing.B) {
				p := mixedDoc[c]()
				b.SetBytes(int64(len(p)))
				b.ReportAllocs()
				for b.Loop() {
					s := NewScanner(c, p, Limits{})
					if stream {
						s = NewStream(c, bytes.NewReader(p), int64(len(p)), Limits{})
					}
					for {
						err := s.Next()
						if err == io.EOF {
							break
						} else if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
