package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func TestDetect(t *testing.T) {
	padded := strings.Repeat("\x00", 20)
	long := strings.Repeat("\xa4text", 1<<19)
	for _, c := range []struct {
		name, content string
		want          format
		err           string
	}{
		{"document", padded + "msglc-2024" + strings.Repeat("\x00", 9) + "\x01" + strings.Repeat("\x00", 9) + "\x06\x01\x81\xa1p\x92\x00\x01", formatMsglc, ""},
		{"document cut in its magic", padded + "msgl", formatMsglc, ""},
		{"document cut before its magic", padded, formatMsglc, ""},
		{"msgpack zero", "\x00", formatMsgpack, ""},
		{"old release", "msglc-2024\x00\x00\x00\x00", formatMsglc, ""},
		{"other magic", strings.Repeat("\x00", 25) + "other" + strings.Repeat("\x00", 9) + "\x01" + strings.Repeat("\x00", 9) + "\x06\x01\x81\xa1p\x92\x00\x01", 0, `whose magic is "other"`},
		{"other magic, cbor", strings.Repeat("\x00", 25) + "other\x01" + strings.Repeat("\x00", 9) + "\x06" + strings.Repeat("\x00", 9) + "\x01\xa1\x61p\x82\x00\x01", 0, `whose magic is "other"`},
		{"tcb", "TCB\x00\x01\x00", formatTCB, ""},
		{"series", "GTSERIES\x01", formatSeries, ""},
		{"nothing", "", 0, "nothing there"},
		{"text", "Hello, world\n", 0, `text that is no JSON, it begins with "Hello, world"`},
		{"zeros", strings.Repeat("\x00", 100), 0, "begins with 00 00"},

		{"gzip", "\x1f\x8b\x08\x00", 0, "unknown format: compressed by gzip; gzip -dc FILE"},
		{"zstd", "\x28\xb5\x2f\xfd\x00", 0, "compressed by zstd"},
		{"zip", "PK\x03\x04", 0, "a zip archive"},
		{"long text", strings.Repeat("é", 1<<16), 0, `it begins with "éééééééééééé…"`},
		{"text behind a mark", "\xef\xbb\xbfa,b\r\n1,2\r\n", 0, "text that is no JSON"},
		{"no text", "Hello, \x00", 0, "no document, table or JSON; it begins with 48 65 6c 6c"},

		{"json object", `{"a": 1}`, formatJSON, ""},
		{"json behind blanks", " \r\n\t[1, 2]\n", formatJSON, ""},
		{"json behind a mark", "\xef\xbb\xbf{}", formatJSON, ""},
		{"json words", "null\n", formatJSON, ""},
		{"json number", "-1.5e3", formatJSON, ""},
		{"broken json", `{"a": 1, "b": ]}`, formatJSON, ""},
		{"cut json", `{"a": [1, 2`, formatJSON, ""},
		{"long json", `["` + strings.Repeat("text", 1<<17) + `"]`, formatJSON, ""},

		{"msgpack map", "\x81\xa1a\x01", formatMsgpack, ""},
		{"msgpack list", "\x93\x01\x02\x03", formatMsgpack, ""},
		{"msgpack int", "\x07", formatMsgpack, ""},
		{"cut msgpack", "\x93\x01\x02", 0, "as msgpack: "},
		{"cbor map", "\xa1\x61a\x01", formatCBOR, ""},
		{"cbor list", "\x83\x01\x02\x03", formatCBOR, ""},
		{"cbor of no length", "\x9f\x01\xff", formatCBOR, ""},
		{"cbor that says so", "\xd9\xd9\xf7\x83\x01\x02\x03", formatCBOR, ""},
		{"both", "\x80", formatMsgpack, ""},
		{"both, text in cbor alone", string(unhex("83bf6161810161639fffffbf6161810161639fffff7061616161616161616161616161616161")), formatCBOR, ""},
		{"msgpack that is no text", "\xa2n\xff", formatMsgpack, ""},
		{"cbor that is no text", "\x62\xff\xfe", formatCBOR, ""},
		{"one blank", " ", 0, "unknown format: blanks and nothing else"},
		{"a line", "\n", 0, "unknown format: blanks and nothing else"},
		{"blanks", " \t\r\n", 0, "blanks and nothing else"},
		{"long msgpack", "\xdd\x00\x08\x00\x00" + long, formatMsgpack, ""},
		{"long msgpack, wrong count", "\xdd\x7f\xff\xff\xff" + long, 0, "as msgpack: "},
		{"long cbor", "\x9a\x00\x04\x00\x00" + strings.Repeat("\x67longish\x01", 1<<17), formatCBOR, ""},
		{"long string", "\xdb\x00\x30\x00\x00" + strings.Repeat("\xff", 0x300000), formatMsgpack, ""},
	} {
		for _, at := range []int64{0, 7} {
			obj := source.Memory("x", append(bytes.Repeat([]byte{'?'}, int(at)), c.content...))
			got, err := detect(context.Background(), obj, at, nil)
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%s at %d: %v, %v, want an error with %q", c.name, at, got, err, c.err)
			case c.err == "" && (err != nil || got != c.want):
				t.Errorf("%s at %d: %v, %v, want %v", c.name, at, got, err, c.want)
			}
		}
	}
}

// TestScansWithinHead cuts values where detect stops to look, at any byte.
func TestScansWithinHead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		data := value.AppendArrayHeader(nil, c, 40)
		for range 40 {
			data = value.AppendString(data, c, strings.Repeat("x", r.IntN(300)))
		}
		for n := range data {
			if _, err := scans(c, data[:n], int64(len(data))); err != nil {
				t.Fatalf("%s: the first %d of %d bytes: %v", c, n, len(data), err)
			}
			if _, err := scans(c, data[:n], int64(n)); n > 0 && err == nil {
				t.Fatalf("%s: %d of %d bytes pass for the whole", c, n, len(data))
			}
		}
		if _, err := scans(c, data, int64(len(data))); err != nil {
			t.Fatal(err)
		}
		if _, err := scans(c, append(data, 0), int64(len(data)+1)); err == nil {
			t.Fatal("a byte behind the value passes")
		}
	}
}
