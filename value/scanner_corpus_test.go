package value

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The values of RFC 8949, appendix A.
var cborWellformed = strings.Fields(`
00 01 0a 17 1818 1819 1864 1903e8 1a000f4240 1b000000e8d4a51000 1bffffffffffffffff c249010000000000000000
3bffffffffffffffff c349010000000000000000 20 29 3863 3903e7 f90000 f98000 f93c00 fb3ff199999999999a f93e00 f97bff
fa47c35000 fa7f7fffff fb7e37e43c8800759c f90001 f90400 f9c400 fbc010666666666666 f97c00 f97e00 f9fc00 fa7f800000
fa7fc00000 faff800000 fb7ff0000000000000 fb7ff8000000000000 fbfff0000000000000 f4 f5 f6 f7 f0 f8ff
c074323031332d30332d32315432303a30343a30305a c11a514b67b0 c1fb41d452d9e8200000 d74401020304 d818456449455446
d82076687474703a2f2f7777772e6578616d706c652e636f6d 40 4401020304 60 6161 6449455446 62225c 62c3bc 63e6b0b4
64f0908591 80 83010203 8301820203820405 98190102030405060708090a0b0c0d0e0f101112131415161718181819 a0 a201020304
a26161016162820203 826161a161626163 a56161614161626142616361436164614461656145 5f42010243030405ff
7f657374726561646d696e67ff 9fff 9f018202039f0405ffff 9f01820203820405ff 83018202039f0405ff 83019f0203ff820405
9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff bf61610161629f0203ffff 826161bf61626163ff
bf6346756ef563416d7421ff
`)

// More well-formed CBOR: long forms of small numbers, empty chunks, keys of every kind, tags in odd places.
var cborWellformedMore = strings.Fields(`
1800 190000 1a00000000 1b0000000000000000 3800 390000 5800 590000 5a00000000 5b0000000000000000 780161 9800 990000
9a00000000 9b0000000000000000 b800 b90000 ba00000000 bb0000000000000000 d80000 d9000000 da0000000000
db000000000000000000 5fff 7fff 5f40ff 7f60ff 5f4040ff 7f780161790001617a00000001617b000000000000000161ff
5f580161590001615a00000001615b000000000000000161ff bfff a18000 a1a000 a19fff00 a1bfff00 bf8000ff bf9fff00ff
bfc000c000ff c19fff 9fc05fffff 829f00ff9f00ff c6c6c600 9f7fff5fff80a0ff f820 e0 f3
`)

// The items of RFC 8949, appendix F: not well-formed.
var cborIllformed = map[string][]string{
	"end of input in a head": strings.Fields(
		"18 19 1a 1b 1901 1a0102 1b01020304050607 38 58 78 98 9a01ff00 b8 d8 f8 f900 fa0000 fb000000"),
	"short strings": strings.Fields(
		"41 61 5affffffff00 5bffffffffffffffff010203 7affffffff00 7b7fffffffffffffff010203"),
	"definite containers not filled":     strings.Fields("81 818181818181818181 8200 a1 a20102 a100 a2000000"),
	"tag without content":                strings.Fields("c0"),
	"indefinite strings not closed":      strings.Fields("5f4100 7f6100"),
	"indefinite containers not closed":   strings.Fields("9f 9f0102 bf bf01020102 819f 9f8000 9f9f9f9f9fffffffff 9f819f819f9fffffff"),
	"reserved additional information":    strings.Fields("1c 1d 1e 3c 3d 3e 5c 5d 5e 7c 7d 7e 9c 9d 9e bc bd be dc dd de fc fd fe"),
	"reserved simple values":             strings.Fields("f800 f801 f818 f81f"),
	"chunks of the wrong type":           strings.Fields("5f00ff 5f21ff 5f6100ff 5f80ff 5fa0ff 5fc000ff 5fe0ff 7f4100ff"),
	"chunks of indefinite length":        strings.Fields("5f5f4100ffff 7f7f6100ffff"),
	"break alone":                        strings.Fields("ff"),
	"break in a definite item or a tag":  strings.Fields("81ff 8200ff a1ff a1ff00 a100ff a20000ff 9f81ff 9f829f819f9fffffffff c0ff 9fc0ff"),
	"odd items in an indefinite map":     strings.Fields("bf00ff bf000000ff bf00bfffc000ff"),
	"information 31 in types 0, 1 and 6": strings.Fields("1f 3f df"),
}

// msgpackWellformed has every opcode of msgpack.
var msgpackWellformed = func() []string {
	list := strings.Fields(`
00 7f 80 8101c0 82a1610102c3 90 9101 93c0c2c3 a0 a161 c0 c2 c3 c400 c401ff c40261ff c50000 c50001ff c600000000
c600000001ff c70005 c701050a c80000ff c8000105aa c90000000080 c90000000105aa ca3fc00000 cb3ff8000000000000 cc00 ccff
cd0100 cdffff ce00010000 ceffffffff cf0000000100000000 cfffffffffffffffff d000 d080 d0ff d10000 d18000 d200000000
d280000000 d30000000000000000 d38000000000000000 d3ffffffffffffffff d405aa d505aabb d6ff00000001 d7ff0000000000000001
d80500112233445566778899aabbccddeeff d900 d90161 da0000 da000161 db00000000 db0000000161 dc0000 dc000101 dd00000000
dd000000029001 de0000 de00010102 df00000000 df00000002010280dd00000001c0 e0 ff c70cff000000010000000000000001
9f0102030405060708090a0b0c0d0e0f 8193010203c3 818080 81c4026162a1ff
`)
	long := func(head string, n int) { list = append(list, head+strings.Repeat("61", n)) }
	long("bf", 31)
	long("d920", 32)
	long("d9ff", 255)
	long("da0100", 256)
	long("c4ff", 255)
	long("c50100", 256)
	long("c7ff01", 255)
	long("9f", 15)
	long("dc0010", 16)
	long("8f", 30)
	long("de0010", 32)
	return list
}()

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wellformed calls f with every well-formed value of the corpus.
func wellformed(t testing.TB, f func(c Codec, p []byte)) {
	for _, s := range msgpackWellformed {
		f(Msgpack, unhex(t, s))
	}
	for _, s := range append(cborWellformed, cborWellformedMore...) {
		f(CBOR, unhex(t, s))
	}
}

// illformed calls f with every value of the corpus that is not well-formed.
func illformed(t testing.TB, f func(c Codec, p []byte)) {
	for _, s := range []string{"c1", "91c1", "81c1c0", "8101c1", "dc0001c1"} {
		f(Msgpack, unhex(t, s))
	}
	for _, list := range cborIllformed {
		for _, s := range list {
			f(CBOR, unhex(t, s))
		}
	}
}

// drawValue appends a value of up to depth levels in any valid form: lengths and integers not only in the shortest.
func drawValue(t *rapid.T, dst []byte, c Codec, depth int) []byte {
	var first []byte // the first bytes to choose from, by what they are
	for b := range 256 {
		f := forms[c][b]
		container := f.kind == Array || f.kind == Map || f.kind == Tag
		if f.kind == Invalid || f.kind == End || container && depth == 0 {
			continue
		}
		first = append(first, byte(b))
	}
	b := rapid.SampledFrom(first).Draw(t, "first")
	f := forms[c][b]
	n := int(f.arg)
	count := func(label string) int {
		if f.width != 0 || f.flags == indefinite {
			n = rapid.IntRange(0, 5).Draw(t, label)
		}
		return n
	}
	head := func(n uint64) []byte {
		dst = append(dst, b)
		for i := int(f.width) - 1; i >= 0; i-- {
			dst = append(dst, byte(n>>(8*i)))
		}
		return dst
	}
	switch f.kind {
	case String, Bytes, Ext:
		if f.flags == indefinite {
			dst = append(dst, b)
			for range count("chunks") {
				dst = appendDrawn(t, append(dst, b&0xe0|3), f.kind, 3)
			}
			return append(dst, breakByte)
		}
		n := count("length")
		dst = head(uint64(n))
		if f.flags == extType {
			dst = append(dst, rapid.SampledFrom([]byte{0, 5, 0x7f, 0x80, 0xfe}).Draw(t, "ext type"))
		}
		return appendDrawn(t, dst, f.kind, n)
	case Array, Map:
		values := count("count")
		dst = head(uint64(values))
		if f.kind == Map {
			values *= 2
		}
		for range values {
			dst = drawValue(t, dst, c, depth-1)
		}
		if f.flags == indefinite {
			dst = append(dst, breakByte)
		}
		return dst
	case Tag:
		return drawValue(t, head(rapid.Uint64().Draw(t, "tag")), c, depth-1)
	case Simple:
		if f.flags == simple8 {
			return head(rapid.Uint64Range(32, 255).Draw(t, "simple"))
		}
	}
	return head(rapid.Uint64().Draw(t, "argument"))
}

// appendDrawn appends n bytes, which are UTF-8 in a string.
func appendDrawn(t *rapid.T, dst []byte, kind Kind, n int) []byte {
	limit := byte(0xff)
	if kind == String {
		limit = 0x7f
	}
	return append(dst, rapid.SliceOfN(rapid.ByteRange(0, limit), n, n).Draw(t, "content")...)
}
