package wire

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
)

var numbers32 = []struct {
	v     int32
	bytes string
}{
	{0, "00"}, {1, "02"}, {-1, "01"}, {63, "7e"}, {-64, "7f"}, {64, "8001"}, {300, "d804"}, {-305419896, "efd9a2a302"},
	{math.MaxInt32, "feffffff0f"}, {math.MinInt32, "ffffffff0f"},
}

var numbers64 = []struct {
	v     int64
	bytes string
}{
	{42, "54"}, {1e12, "80c0a8ca9a3a"}, {math.MinInt64, "ffffffffffffffffff01"}, {math.MaxInt64, "feffffffffffffffff01"},
}

func raw(t *testing.T, s string) []byte {
	p, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNumbers(t *testing.T) {
	for _, c := range numbers32 {
		p := raw(t, c.bytes)
		if got := AppendVarint32(nil, c.v); !bytes.Equal(got, p) {
			t.Errorf("%d is written % x, want % x", c.v, got, p)
		}
		if n := Varint32Size(c.v); n != len(p) {
			t.Errorf("%d has size %d, want %d", c.v, n, len(p))
		}
		if v, n := Varint32(append(p, 0xff)); v != c.v || n != len(p) {
			t.Errorf("% x is read as %d of %d bytes, want %d of %d", p, v, n, c.v, len(p))
		}
		for cut := range p {
			if _, n := Varint32(p[:cut]); n != 0 {
				t.Errorf("% x takes %d bytes, want the end", p[:cut], n)
			}
		}
	}
	for _, c := range numbers64 {
		p := raw(t, c.bytes)
		if got := AppendVarint64(nil, c.v); !bytes.Equal(got, p) {
			t.Errorf("%d is written % x, want % x", c.v, got, p)
		}
		if n := Varint64Size(c.v); n != len(p) {
			t.Errorf("%d has size %d, want %d", c.v, n, len(p))
		}
		if v, n := Varint64(append(p, 0xff)); v != c.v || n != len(p) {
			t.Errorf("% x is read as %d of %d bytes, want %d of %d", p, v, n, c.v, len(p))
		}
	}
}

// Groups that are zero are taken up to the longest form; bits and groups beyond it are not.
func TestLongForms(t *testing.T) {
	for _, c := range []struct {
		bytes string
		v     uint64
		n, n5 int
	}{
		{"80808080 00", 0, 5, 5},
		{"83808080 00", 3, 5, 5},
		{"ffffffff 0f", math.MaxUint32, 5, 5},
		{"ffffffff 10", 0x1_0fff_ffff, 5, Wide},
		{"80808080 80", 0, 0, Wide},
		{"80808080 8000", 0, 6, Wide},
		{"ffffffffffffffffff 01", math.MaxUint64, 10, Wide},
		{"ffffffffffffffffff 02", 0, Wide, Wide},
		{"80808080808080808080 00", 0, Wide, Wide},
	} {
		if v, n := Uvarint64(raw(t, c.bytes)); n != c.n || n > 0 && v != c.v {
			t.Errorf("%s is %d of %d bytes, want %d of %d", c.bytes, v, n, c.v, c.n)
		}
		if v, n := Uvarint32(raw(t, c.bytes)); n != c.n5 || n > 0 && uint64(v) != c.v {
			t.Errorf("%s is %d of %d bytes, want %d of %d in 32 bits", c.bytes, v, n, c.v, c.n5)
		}
	}
}

// Sizes at every number of bits, on both sides of 0.
func TestSizes(t *testing.T) {
	for n := range 64 {
		for _, v := range []int64{1<<n - 1, 1 << n, -1 << n, -1<<n - 1, -1<<n + 1} {
			if got, want := Varint64Size(v), len(AppendVarint64(nil, v)); got != want {
				t.Errorf("%d has size %d, want %d", v, got, want)
			}
			if got, want := Varint32Size(int32(v)), len(AppendVarint32(nil, int32(v))); got != want {
				t.Errorf("%d has size %d, want %d", int32(v), got, want)
			}
		}
	}
}
