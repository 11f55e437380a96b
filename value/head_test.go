package value

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spilehq/spile/fault"
)

func TestReadHead(t *testing.T) {
	for _, tc := range []struct {
		codec Codec
		hex   string
		want  Head
	}{
		{Msgpack, "05", Head{Kind: Uint, Size: 1, Arg: 5}},
		{Msgpack, "e1", Head{Kind: Nint, Size: 1, Arg: 30}},
		{Msgpack, "d180000000", Head{Kind: Nint, Size: 3, Arg: 32767}},
		{Msgpack, "d3ffffffff00000000", Head{Kind: Nint, Size: 9, Arg: 0xffffffff}},
		{Msgpack, "c70cff00", Head{Kind: Ext, Ext: -1, Size: 3, Arg: 12}},
		{Msgpack, "c90000000c05", Head{Kind: Ext, Ext: 5, Size: 6, Arg: 12}},
		{Msgpack, "d805", Head{Kind: Ext, Ext: 5, Size: 2, Arg: 16}},
		{Msgpack, "db0000000161", Head{Kind: String, Size: 5, Arg: 1}},
		{Msgpack, "de0102", Head{Kind: Map, Size: 3, Arg: 0x102}},
		{CBOR, "3bffffffffffffffff", Head{Kind: Nint, Size: 9, Arg: 1<<64 - 1}},
		{CBOR, "5f", Head{Kind: Bytes, Size: 1, Indefinite: true}},
		{CBOR, "bf", Head{Kind: Map, Size: 1, Indefinite: true}},
		{CBOR, "d9d9f7", Head{Kind: Tag, Size: 3, Arg: 55799}},
		{CBOR, "ff", Head{Kind: End, Size: 1}},
		{CBOR, "f820", Head{Kind: Simple, Size: 2, Arg: 32}},
		{CBOR, "f93c00", Head{Kind: Float16, Size: 3, Arg: 0x3c00}},
	} {
		p := unhex(t, tc.hex)
		got, err := ReadHead(tc.codec, p)
		if d := cmp.Diff(tc.want, got); d != "" || err != nil {
			t.Errorf("%s %s: %v %s", tc.codec, tc.hex, err, d)
		}
		for i := range tc.want.Size {
			if h, err := ReadHead(tc.codec, p[:i]); h != (Head{}) || err != io.ErrUnexpectedEOF {
				t.Errorf("%s %s cut at %d: %+v, %v", tc.codec, tc.hex, i, h, err)
			}
		}
	}
	for _, tc := range []struct {
		codec     Codec
		hex, want string
	}{
		{Msgpack, "c1", "value: byte 0xc1 starts no msgpack value (offset 0x0)"},
		{CBOR, "1c", "value: byte 0x1c starts no cbor value (offset 0x0)"},
		{CBOR, "f81f", "value: simple value 31 in two bytes, which needs 32 or more (offset 0x0)"},
		{CBOR, "9bffffffffffffffff", "value: list of length 18446744073709551615 (offset 0x0)"},
		{0, "00", "value: byte 0x00 starts no codec(0) value (offset 0x0)"},
	} {
		h, err := ReadHead(tc.codec, unhex(t, tc.hex))
		if h != (Head{}) || !errors.Is(err, fault.Corrupt) || err.Error() != tc.want {
			t.Errorf("%s: %+v, %v", tc.hex, h, err)
		}
	}
}

// TestHeadOfEveryByte: for each first byte, the head reader, the scanner and the skip kernel agree on what it is and
// how long it is.
func TestHeadOfEveryByte(t *testing.T) {
	for _, c := range []Codec{Msgpack, CBOR} {
		for b := range 256 {
			p := make([]byte, 300)
			p[0] = byte(b)
			if c == CBOR && b == 0xf8 {
				p[1] = 99
			}
			h, err := ReadHead(c, p)
			s := NewScanner(c, p, Limits{})
			next := s.Next()
			if err != nil || h.Kind == End {
				if n, skip := Skip(c, p, 1, Limits{}); next == nil || skip == nil || n != 0 {
					t.Errorf("%s %#x: %v, but the scanner %v, Skip %v", c, b, err, next, skip)
				}
				continue
			}
			if h.Size > MaxHead {
				t.Errorf("%s %#x: a head of %d bytes", c, b, h.Size)
			}
			if h.Indefinite && !(h.Kind == Array || h.Kind == Map) {
				if !errors.Is(next, fault.Corrupt) { // a chunk that is an integer
					t.Errorf("%s %#x: %v", c, b, next)
				}
				continue
			}
			size := h.Size
			if h.HasContent() {
				size += int(h.Arg)
			}
			if next != nil || s.Kind != h.Kind || s.Offset() != int64(size) || h.Kind != Array && h.Kind != Map && s.Bits != h.Arg {
				t.Errorf("%s %#x: head %+v, token %+v to %d, %v", c, b, h, s.Token, s.Offset(), next)
			}
		}
	}
}
