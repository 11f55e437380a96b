package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
)

// bigOf reads a big integer in decimal.
func bigOf(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic("no integer: " + s)
	}
	return n
}

// encodings holds Go values with the bytes that docs/format/msglc.md, "Payload encoding", asks for; "" where the codec
// has no such value.
var encodings = []struct {
	name          string
	v             any
	msgpack, cbor string
}{
	{"null", nil, "c0", "f6"},
	{"false", false, "c2", "f4"},
	{"true", true, "c3", "f5"},
	{"0", int64(0), "00", "00"},
	{"23", int64(23), "17", "17"},
	{"24", int64(24), "18", "1818"},
	{"127", int64(127), "7f", "187f"},
	{"128", int64(128), "cc80", "1880"},
	{"255", int64(255), "ccff", "18ff"},
	{"256", int64(256), "cd0100", "190100"},
	{"65535", int64(65535), "cdffff", "19ffff"},
	{"65536", int64(65536), "ce00010000", "1a00010000"},
	{"2^32-1", int64(math.MaxUint32), "ceffffffff", "1affffffff"},
	{"2^32", int64(1 << 32), "cf0000000100000000", "1b0000000100000000"},
	{"2^63-1", int64(math.MaxInt64), "cf7fffffffffffffff", "1b7fffffffffffffff"},
	{"2^63", uint64(1 << 63), "cf8000000000000000", "1b8000000000000000"},
	{"2^64-1", uint64(math.MaxUint64), "cfffffffffffffffff", "1bffffffffffffffff"},
	{"2^64", bigOf("18446744073709551616"), "", "c249010000000000000000"},
	{"-1", int64(-1), "ff", "20"},
	{"-24", int64(-24), "e8", "37"},
	{"-25", int64(-25), "e7", "3818"},
	{"-32", int64(-32), "e0", "381f"},
	{"-33", int64(-33), "d0df", "3820"},
	{"-128", int64(-128), "d080", "387f"},
	{"-129", int64(-129), "d1ff7f", "3880"},
	{"-256", int64(-256), "d1ff00", "38ff"},
	{"-257", int64(-257), "d1feff", "390100"},
	{"-32768", int64(-32768), "d18000", "397fff"},
	{"-32769", int64(-32769), "d2ffff7fff", "398000"},
	{"-2^31", int64(math.MinInt32), "d280000000", "3a7fffffff"},
	{"-2^31-1", int64(math.MinInt32) - 1, "d3ffffffff7fffffff", "3a80000000"},
	{"-2^63", int64(math.MinInt64), "d38000000000000000", "3b7fffffffffffffff"},
	{"-2^63-1", bigOf("-9223372036854775809"), "", "3b8000000000000000"},
	{"-2^64", bigOf("-18446744073709551616"), "", "3bffffffffffffffff"},
	{"-2^64-1", bigOf("-18446744073709551617"), "", "c349010000000000000000"},
	{"1.0", 1.0, "cb3ff0000000000000", "fb3ff0000000000000"},
	{"-0.0", math.Copysign(0, -1), "cb8000000000000000", "fb8000000000000000"},
	{"0.1", 0.1, "cb3fb999999999999a", "fb3fb999999999999a"},
	{"inf", math.Inf(1), "cb7ff0000000000000", "f97c00"},
	{"-inf", math.Inf(-1), "cbfff0000000000000", "f9fc00"},
	{"nan", math.Float64frombits(0x7ff8000000000000), "cb7ff8000000000000", "f97e00"},
	{"-nan with payload", math.Float64frombits(0xfff8000000000123), "cbfff8000000000123", "f97e00"},
	{"empty string", "", "a0", "60"},
	{"string", "a string", "a86120737472696e67", "686120737472696e67"},
	{"ü水", "ü水", "a5c3bce6b0b4", "65c3bce6b0b4"},
	{"empty binary", []byte{}, "c400", "40"},
	{"binary", []byte{1, 2, 3}, "c403010203", "43010203"},
	{"empty list", []any{}, "90", "80"},
	{"list", []any{int64(1), "a", nil}, "9301a161c0", "83016161f6"},
	{"empty map", map[string]any{}, "80", "a0"},
	{"map", map[string]any{"a": []any{int64(1), int64(2), int64(3)}}, "81a16193010203", "a1616183010203"},
	{"map with keys of two types", map[any]any{int64(1): "a", "b": int64(2)}, "8201a161a16202", "a2016161616202"},
	{"ext 1", ExtValue{5, []byte{9}}, "d40509", ""},
	{"ext 3", ExtValue{5, []byte{9, 8, 7}}, "c70305090807", ""},
	{"ext 16", ExtValue{-2, make([]byte, 16)}, "d8fe00000000000000000000000000000000", ""},
	{"ext 0", ExtValue{127, []byte{}}, "c7007f", ""},
	{"tag", TagValue{1004, "2024-02-29"}, "", "d903ec6a323032342d30322d3239"},
	{"undefined", UndefinedValue{}, "", "f7"},
	{"simple 16", SimpleValue(16), "", "f0"},
	{"simple 255", SimpleValue(255), "", "f8ff"},
	{"time, 32 bits", time.Unix(1, 0).UTC(), "d6ff00000001", "c074313937302d30312d30315430303a30303a30315a"},
	{"time, 34 bits", time.Unix(1<<32, 0).UTC(), "d7ff0000000100000000", "c074323130362d30322d30375430363a32383a31365a"},
	{"time, nanoseconds", time.Unix(1, 5000).UTC(), "d7ff00004e2000000001",
		"c0781b313937302d30312d30315430303a30303a30312e3030303030355a"},
	{"time, nine digits", time.Unix(1, 5).UTC(), "d7ff0000001400000001",
		"c0781e313937302d30312d30315430303a30303a30312e3030303030303030355a"},
	{"time before 1970", time.Unix(-1, 0).UTC(), "c70cff00000000ffffffffffffffff",
		"c074313936392d31322d33315432333a35393a35395a"},
	{"time, 2^34", time.Unix(1<<34, 0).UTC(), "c70cff000000000000000400000000",
		"c074323531342d30352d33305430313a35333a30345a"},
}

func TestAppendBytes(t *testing.T) {
	for _, tt := range encodings {
		for c, want := range map[Codec]string{Msgpack: tt.msgpack, CBOR: tt.cbor} {
			got, err := Append(nil, c, tt.v)
			if want == "" {
				if !errors.Is(err, fault.Invalid) {
					t.Errorf("%s in %s: %x, %v, want an invalid value", tt.name, c, got, err)
				}
				continue
			}
			if err != nil || hex.EncodeToString(got) != want {
				t.Errorf("%s in %s: %x, %v, want %s", tt.name, c, got, err, want)
			}
			if n, err := Skip(c, got, 1, Limits{}); n != len(got) || err != nil {
				t.Errorf("%s in %s: skipped %d of %d, %v", tt.name, c, n, len(got), err)
			}
		}
	}
}

func TestAppendLengths(t *testing.T) {
	for _, tt := range []struct {
		n                   int
		str, bin, list, dic [2]string // msgpack, CBOR
		ext                 string
	}{
		{15, [2]string{"af", "6f"}, [2]string{"c40f", "4f"}, [2]string{"9f", "8f"}, [2]string{"8f", "af"}, "c70f07"},
		{16, [2]string{"b0", "70"}, [2]string{"c410", "50"}, [2]string{"dc0010", "90"}, [2]string{"de0010", "b0"}, "d807"},
		{23, [2]string{"b7", "77"}, [2]string{"c417", "57"}, [2]string{"dc0017", "97"}, [2]string{"de0017", "b7"}, "c71707"},
		{24, [2]string{"b8", "7818"}, [2]string{"c418", "5818"}, [2]string{"dc0018", "9818"}, [2]string{"de0018", "b818"}, "c71807"},
		{31, [2]string{"bf", "781f"}, [2]string{"c41f", "581f"}, [2]string{"dc001f", "981f"}, [2]string{"de001f", "b81f"}, "c71f07"},
		{32, [2]string{"d920", "7820"}, [2]string{"c420", "5820"}, [2]string{"dc0020", "9820"}, [2]string{"de0020", "b820"}, "c72007"},
		{255, [2]string{"d9ff", "78ff"}, [2]string{"c4ff", "58ff"}, [2]string{"dc00ff", "98ff"}, [2]string{"de00ff", "b8ff"}, "c7ff07"},
		{256, [2]string{"da0100", "790100"}, [2]string{"c50100", "590100"}, [2]string{"dc0100", "990100"}, [2]string{"de0100", "b90100"}, "c8010007"},
		{65535, [2]string{"daffff", "79ffff"}, [2]string{"c5ffff", "59ffff"}, [2]string{"dcffff", "99ffff"}, [2]string{"deffff", "b9ffff"}, "c8ffff07"},
		{65536, [2]string{"db00010000", "7a00010000"}, [2]string{"c600010000", "5a00010000"}, [2]string{"dd00010000", "9a00010000"}, [2]string{"df00010000", "ba00010000"}, "c90001000007"},
	} {
		data := make([]byte, tt.n)
		for i, c := range []Codec{Msgpack, CBOR} {
			for _, p := range []struct {
				what string
				got  []byte
				want string
				tail int
			}{
				{"string", AppendString(nil, c, string(data)), tt.str[i], tt.n},
				{"binary", AppendBytes(nil, c, data), tt.bin[i], tt.n},
				{"array", AppendArrayHeader(nil, c, tt.n), tt.list[i], 0},
				{"map", AppendMapHeader(nil, c, tt.n), tt.dic[i], 0},
			} {
				if head := hex.EncodeToString(p.got[:len(p.got)-p.tail]); head != p.want {
					t.Errorf("%s of %d in %s: %s, want %s", p.what, tt.n, c, head, p.want)
				}
			}
		}
		if got := AppendExt(nil, Msgpack, 7, data); hex.EncodeToString(got[:len(got)-tt.n]) != tt.ext {
			t.Errorf("ext of %d: %x, want %s", tt.n, got[:len(got)-tt.n], tt.ext)
		}
	}
}

func TestAppendTimestampZone(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 0, 0, 123456000, time.FixedZone("", 2*3600))
	got, err := AppendTimestamp(nil, CBOR, at)
	if err != nil || !bytes.HasSuffix(got, []byte("2024-02-29T12:00:00.123456+02:00")) {
		t.Errorf("%q, %v", got, err)
	}
	odd := at.In(time.FixedZone("", 3601))
	if got, err := AppendTimestamp(nil, CBOR, odd); err != nil || !bytes.HasSuffix(got, []byte("T10:00:00.123456Z")) {
		t.Errorf("a zone of odd seconds: %q, %v", got, err)
	}
	for _, year := range []int{-1, 10000} {
		late := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, err := AppendTimestamp(nil, CBOR, late); !errors.Is(err, fault.Invalid) {
			t.Errorf("year %d: %v", year, err)
		}
		b, err := AppendTimestamp(nil, Msgpack, late)
		if v, err2 := Decode(Msgpack, b, Limits{}); err != nil || err2 != nil || !v.(time.Time).Equal(late) {
			t.Errorf("year %d: %v, %v, %v", year, v, err, err2)
		}
	}
}

func TestAppendFloat32(t *testing.T) {
	if got := AppendFloat32(nil, Msgpack, 1.5); hex.EncodeToString(got) != "ca3fc00000" {
		t.Errorf("%x", got)
	}
	if got := AppendFloat32(nil, CBOR, 1.5); hex.EncodeToString(got) != "fa3fc00000" {
		t.Errorf("%x", got)
	}
}

func TestAppendPanics(t *testing.T) {
	tooLong := int64(1 << 32)
	for name, f := range map[string]func(){
		"ext in cbor":          func() { AppendExt(nil, CBOR, 1, nil) },
		"tag in msgpack":       func() { AppendTag(nil, Msgpack, 1) },
		"undefined in msgpack": func() { AppendUndefined(nil, Msgpack) },
		"simple in msgpack":    func() { AppendSimple(nil, Msgpack, 1) },
		"simple 24":            func() { AppendSimple(nil, CBOR, 24) },
		"length 2^32":          func() { AppendArrayHeader(nil, Msgpack, int(tooLong)) },
	} {
		if name == "length 2^32" && strconv.IntSize == 32 {
			continue // there is no such int
		}
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(r.(string), "value: ") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			f()
		}()
	}
}
