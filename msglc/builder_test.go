package msglc

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// payloadGen draws encoded values of all kinds and forms of a codec.
type payloadGen struct {
	t    *rapid.T
	c    value.Codec
	left int // values that may still be made
}

// width draws a form for a length or count: 0 is the shortest.
func (g *payloadGen) width() int {
	return rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2, 4, 8}).Draw(g.t, "width")
}

func bigEndian(n uint64, width int) []byte {
	p := make([]byte, width)
	for i := range p {
		p[len(p)-1-i] = byte(n >> (8 * i))
	}
	return p
}

// head appends a head of CBOR in a form of at least width bytes of argument.
func cborHead(dst []byte, major byte, n uint64, width int) []byte {
	switch {
	case n < 24 && width == 0:
		return append(dst, major<<5|byte(n))
	case n <= math.MaxUint8 && width <= 1:
		return append(append(dst, major<<5|24), bigEndian(n, 1)...)
	case n <= math.MaxUint16 && width <= 2:
		return append(append(dst, major<<5|25), bigEndian(n, 2)...)
	case n <= math.MaxUint32 && width <= 4:
		return append(append(dst, major<<5|26), bigEndian(n, 4)...)
	}
	return append(append(dst, major<<5|27), bigEndian(n, 8)...)
}

// container appends the head of an array or map.
func (g *payloadGen) container(dst []byte, isMap bool, n int) []byte {
	w := g.width()
	if g.c == value.CBOR {
		return cborHead(dst, 4+bit(isMap), uint64(n), w)
	}
	fix, wide := byte(0x90), byte(0xdc)
	if isMap {
		fix, wide = 0x80, 0xde
	}
	switch {
	case n < 16 && w == 0:
		return append(dst, fix|byte(n))
	case w <= 2:
		return append(append(dst, wide), bigEndian(uint64(n), 2)...)
	}
	return append(append(dst, wide+1), bigEndian(uint64(n), 4)...)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (g *payloadGen) str(dst []byte, n int) []byte {
	w := g.width()
	s := bytes.Repeat([]byte{'s'}, n)
	if g.c == value.CBOR {
		return append(cborHead(dst, 2+bit(rapid.Bool().Draw(g.t, "text")), uint64(n), w), s...)
	}
	switch {
	case n < 32 && w == 0:
		dst = append(dst, 0xa0|byte(n))
	case n < 256 && w <= 1:
		dst = append(append(dst, rapid.SampledFrom([]byte{0xd9, 0xc4}).Draw(g.t, "str8")), bigEndian(uint64(n), 1)...)
	case w <= 2:
		dst = append(append(dst, rapid.SampledFrom([]byte{0xda, 0xc5}).Draw(g.t, "str16")), bigEndian(uint64(n), 2)...)
	default:
		dst = append(append(dst, rapid.SampledFrom([]byte{0xdb, 0xc6}).Draw(g.t, "str32")), bigEndian(uint64(n), 4)...)
	}
	return append(dst, s...)
}

func (g *payloadGen) scalar(dst []byte) []byte {
	switch rapid.IntRange(0, 9).Draw(g.t, "scalar") {
	case 0:
		return value.AppendNull(dst, g.c)
	case 1:
		return value.AppendBool(dst, g.c, true)
	case 2, 3, 4:
		return value.AppendInt(dst, g.c, rapid.Int64().Draw(g.t, "int")>>rapid.IntRange(0, 63).Draw(g.t, "shift"))
	case 5:
		return value.AppendFloat64(dst, g.c, rapid.SampledFrom([]float64{1.5, math.Inf(1)}).Draw(g.t, "float"))
	case 6:
		return value.AppendFloat32(dst, g.c, 1.5)
	case 7:
		if g.c == value.CBOR {
			return append(dst, 0x5f, 0x41, 'x', 0x58, 2, 'y', 'z', 0xff)
		}
		return value.AppendExt(dst, g.c, 5, make([]byte, rapid.IntRange(0, 20).Draw(g.t, "ext")))
	}
	return g.str(dst, rapid.SampledFrom([]int{0, 1, 5, 23, 24, 31, 32, 60, 255, 256, 300}).Draw(g.t, "len"))
}

func (g *payloadGen) value(dst []byte, depth int) []byte {
	g.left--
	if g.c == value.CBOR && rapid.IntRange(0, 9).Draw(g.t, "tagged") == 0 {
		dst = value.AppendTag(dst, g.c, rapid.Uint64Range(0, 300).Draw(g.t, "tag"))
	}
	kind := rapid.IntRange(0, 9).Draw(g.t, "kind")
	if depth == 0 || g.left <= 0 || kind > 5 {
		return g.scalar(dst)
	}
	n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 16, 17, 70, 130, 300}).Draw(g.t, "n")
	isMap := kind < 2
	indefinite := g.c == value.CBOR && rapid.IntRange(0, 3).Draw(g.t, "indefinite") == 0
	if indefinite {
		dst = append(dst, 0x9f+0x20*bit(isMap))
	} else {
		dst = g.container(dst, isMap, n)
	}
	uniform := rapid.IntRange(0, 2).Draw(g.t, "uniform") == 0
	var same []byte
	if uniform {
		same = g.scalar(nil)
	}
	for i := range n {
		if isMap {
			if rapid.IntRange(0, 9).Draw(g.t, "key") == 0 {
				dst = g.value(dst, min(depth-1, 2))
			} else {
				dst = value.AppendString(dst, g.c, string(bigEndian(uint64(i), rapid.IntRange(1, 40).Draw(g.t, "klen"))))
			}
		}
		switch {
		case uniform:
			dst = append(dst, same...)
		case g.left > 0:
			dst = g.value(dst, depth-1)
		default:
			dst = value.AppendUint(dst, g.c, uint64(i))
		}
	}
	if indefinite {
		dst = append(dst, 0xff)
	}
	return dst
}

func drawSettings(t *rapid.T) *writeSettings {
	s := &writeSettings{
		codec:   rapid.SampledFrom([]value.Codec{value.Msgpack, value.CBOR}).Draw(t, "codec"),
		numeric: NumericRule(rapid.IntRange(0, 2).Draw(t, "numeric")),
	}
	s.threshold = rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 10000)).Draw(t, "T")
	s.trivial = rapid.Int64Range(1, 40).Draw(t, "R") // above T it is unusual, and still works
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		s.limits.Depth = rapid.IntRange(1, 8).Draw(t, "depth")
	}
	return s
}

// sameAsTwin compares the builder, in one chunk and in many, with the plain twin.
func sameAsTwin(t interface{ Fatalf(string, ...any) }, payload []byte, s *writeSettings, bound int, next func() int) {
	want, wantErr := twinTOC(payload, s)
	whole := func() int { return len(payload) }
	for i, chunks := range []func() int{whole, next, next} {
		b := tapeBound
		if i == 2 {
			b = bound
		}
		got, err := buildTOC(payload, s, b, chunks)
		if wantErr != nil {
			if !errors.Is(err, wantErr) {
				t.Fatalf("%d: error %v, expected %v", i, err, wantErr)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d: table of contents\n% x\nexpected\n% x", i, got, want)
		}
	}
}

func TestBuilderIsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		g := payloadGen{t: t, c: s.codec, left: 200}
		payload := g.value(nil, 6)
		if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
			payload = payload[:rapid.IntRange(0, len(payload)).Draw(t, "length")]
		}
		most := rapid.SampledFrom([]int{1, 2, 10, 100, 1000, 100000}).Draw(t, "chunk")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		sameAsTwin(t, payload, s, rapid.IntRange(0, 300).Draw(t, "bound"), func() int { return 1 + r.IntN(most) })
	})
}

func FuzzBuilder(f *testing.F) {
	for _, v := range loadVectors(f) {
		if v.File == nil || v.Header.TOCStart == 0 {
			continue
		}
		p := v.bytes(f)
		start := v.Offset + PrefixSize
		if start+v.Header.TOCStart <= int64(len(p)) {
			payload := p[start : start+v.Header.TOCStart]
			f.Add(payload, v.Codec == "cbor", uint16(v.Options.Threshold), uint8(v.Options.Trivial), uint8(0), uint8(0), uint64(7))
		}
	}
	for _, payload := range []string{
		"\x82\x01\x7f\x80",              // an array as a chunk of a string
		"\xc1\xc2\x7f\xc3\x60",          // a tag as one
		"\x9f\xc1\xff",                  // a break behind a tag
		"\xbf\x7f\x61x\xff\xbf\xff\xff", // a key of indefinite length, a map without pairs
		"\xa1\x9f\xa1\x01\x02\xff\x80",  // an array as a key
	} {
		f.Add([]byte(payload), true, uint16(1), uint8(1), uint8(0), uint8(0), uint64(1))
		f.Add([]byte(payload), true, uint16(100), uint8(1), uint8(0), uint8(3), uint64(2))
	}
	f.Fuzz(func(t *testing.T, payload []byte, cbor bool, threshold uint16, trivial, rule, depth uint8, seed uint64) {
		s := &writeSettings{codec: value.Msgpack, threshold: max(1, int64(threshold)), numeric: NumericRule(rule % 3)}
		if cbor {
			s.codec = value.CBOR
		}
		s.trivial = max(1, int64(trivial))
		s.limits.Depth = int(depth)
		r := rand.New(rand.NewPCG(seed, 1))
		most := 1 << r.IntN(12)
		sameAsTwin(t, payload, s, r.IntN(100), func() int { return 1 + r.IntN(most) })
	})
}

// TestManyKeys looks for a key that occurs twice among more than fit the set at once.
func TestManyKeys(t *testing.T) {
	n := groupKeys + 100_000
	payload := value.AppendMapHeader(nil, value.Msgpack, n)
	last := 0
	for i := range n {
		last = len(payload)
		payload = value.AppendUint(payload, value.Msgpack, uint64(i))
		payload = append(payload, 0xc0)
		if i == 5 { // not trivial: the map gets a table
			payload = value.AppendString(payload[:len(payload)-1], value.Msgpack, strings.Repeat("x", 50))
		}
	}
	s, err := (&WriteOptions{}).settings()
	if err != nil {
		t.Fatal(err)
	}
	whole := func() int { return len(payload) }
	if _, err := buildTOC(payload, &s, tapeBound, whole); err != nil {
		t.Fatal(err)
	}
	copy(payload[last:], value.AppendUint(nil, value.Msgpack, 70_000)) // as long as the key that it replaces
	for _, bound := range []int{tapeBound, 1 << 20} {
		_, err = buildTOC(payload, &s, bound, whole)
		if e, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, fault.Conflict) || e.Offset != int64(last) {
			t.Errorf("a key twice: %v", err)
		}
	}
}

// TestSuspects takes keys for equal that are not, as happens when their hashes are.
func TestSuspects(t *testing.T) {
	s, err := (&WriteOptions{Threshold: 1, Trivial: 1}).settings()
	if err != nil {
		t.Fatal(err)
	}
	b := newTOCBuilder(&s)
	defer b.close()
	if err := b.write([]byte{0x83, 1, 0xa1, 'x', 2, 0xa1, 'y'}); err != nil {
		t.Fatal(err)
	}
	f := &b.frames[0]
	p := suspects{b: b, f: f}
	b.keys.reset(4)
	for range 3 {
		err := b.eachKey(f, func(k *mapKey) error { return p.add(k.hash) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(p.hashes) != 2 {
		t.Errorf("%d suspects", len(p.hashes))
	}
	if err := p.compare(); err != nil || len(p.hashes) > 0 {
		t.Errorf("acquitted: %v", err)
	}
}
