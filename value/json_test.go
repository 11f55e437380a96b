package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spilehq/spile/fault"
)

// jsonCase is a value, given as bytes in hexadecimal with blanks and # comments, and its JSON text.
type jsonCase struct {
	name  string
	codec Codec
	hex   string
	opts  JSONOptions
	want  string
	loss  string // kinds and counts
	class error  // instead of want
	says  string // a part of the error's text
}

func jsonHex(s string) []byte {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		b.WriteString(strings.Join(strings.Fields(line), ""))
	}
	data, err := hex.DecodeString(b.String())
	if err != nil {
		panic(err)
	}
	return data
}

var jsonCases = []jsonCase{
	{name: "null", codec: Msgpack, hex: "c0", want: "null"},
	{name: "true", codec: Msgpack, hex: "c3", want: "true"},
	{name: "false", codec: CBOR, hex: "f4", want: "false"},
	{name: "zero", codec: Msgpack, hex: "00", want: "0"},
	{name: "int64 min", codec: Msgpack, hex: "d3 80000000 00000000", want: "-9223372036854775808"},
	{name: "uint64 max", codec: Msgpack, hex: "cf ffffffff ffffffff", want: "18446744073709551615"},
	{name: "int8 that is positive", codec: Msgpack, hex: "d0 05", want: "5"},
	{name: "-2^64", codec: CBOR, hex: "3b ffffffff ffffffff", want: "-18446744073709551616"},
	{name: "-2^63-1", codec: CBOR, hex: "3b 80000000 00000000", want: "-9223372036854775809"},
	{name: "bignum 2^64", codec: CBOR, hex: "c2 49 010000000000000000", want: "18446744073709551616"},
	{name: "bignum -2^64-1", codec: CBOR, hex: "c3 49 010000000000000000", want: "-18446744073709551617"},
	{name: "bignum small", codec: CBOR, hex: "c2 42 0100", want: "256"},
	{name: "bignum empty", codec: CBOR, hex: "c3 40", want: "-1"},
	{name: "bignum in pieces", codec: CBOR, hex: "c2 5f 41 01 48 0000000000000000 ff", want: "18446744073709551616"},
	{name: "bignum of text", codec: CBOR, hex: "c2 61 31", want: `"1"`, loss: "tag 1"},
	{name: "bignum under base64", codec: CBOR, hex: "d6 c2 41 05", want: "5"},
	{name: "base64 under bignum", codec: CBOR, hex: "c2 d6 41 05", want: `"BQ=="`, loss: "tag 1"},
	{name: "bignum too long", codec: CBOR, hex: "c2 5a 00040001" + strings.Repeat("01", 256<<10+1), class: fault.Limit, says: "262145"},

	{name: "one", codec: Msgpack, hex: "cb 3ff0000000000000", want: "1.0"},
	{name: "minus zero", codec: Msgpack, hex: "cb 8000000000000000", want: "-0.0"},
	{name: "1e30", codec: Msgpack, hex: "cb 46293e5939a08cea", want: "1e+30"},
	{name: "float32", codec: Msgpack, hex: "ca 3dcccccd", want: "0.1"},
	{name: "float32 large", codec: Msgpack, hex: "ca 7f7fffff", want: "3.4028235e+38"},
	{name: "float32 tiny", codec: Msgpack, hex: "ca 00000001", want: "1e-45"},
	{name: "float16", codec: CBOR, hex: "f9 2e66", want: "0.099975586"},
	{name: "float16 minus zero", codec: CBOR, hex: "f9 8000", want: "-0.0"},
	{name: "float16 largest", codec: CBOR, hex: "f9 7bff", want: "65504.0"},
	{name: "float16 least", codec: CBOR, hex: "f9 0001", want: "5.9604645e-8"},
	{name: "float64 least", codec: CBOR, hex: "fb 0000000000000001", want: "5e-324"},
	{name: "NaN", codec: Msgpack, hex: "91 cb 7ff8000000000000", class: fault.Invalid, says: "NaN has no JSON form (offset 0x1)"},
	{name: "NaN null", codec: CBOR, hex: "83 f9 7e00 fa 7f800000 fb fff0000000000000", opts: JSONOptions{NonFinite: NonFiniteNull},
		want: "[null,null,null]", loss: "NaN 3"},
	{name: "NaN string", codec: CBOR, hex: "83 f9 7e00 fa 7f800000 fb fff0000000000000", opts: JSONOptions{NonFinite: NonFiniteString},
		want: `["NaN","Infinity","-Infinity"]`, loss: "NaN-text 3"},

	{name: "empty string", codec: Msgpack, hex: "a0", want: `""`},
	{name: "escapes", codec: Msgpack, hex: "af 22 5c 2f 08 0c 0a 0d 09 00 1f 7f 3c 26 27 3e", want: `"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f" + `<&'>"`},
	{name: "line separator", codec: Msgpack, hex: "a3 e280a8", want: "\"\u2028\""},
	{name: "umlauts", codec: CBOR, hex: "6c 68c3a96c6cc3b620f09f9982", want: `"héllö 🙂"`},
	{name: "invalid UTF-8", codec: Msgpack, hex: "92 01 a3 61 80 62", class: fault.Corrupt, says: "string is not valid UTF-8 (byte 1 of 3) (offset 0x2)"},
	{name: "invalid UTF-8 behind valid", codec: Msgpack, hex: "a5 c3a9 61 e282", class: fault.Corrupt, says: "byte 3 of 5"},
	{name: "replace", codec: Msgpack, hex: "92 a3 61 80 62 a4 e282 22 ff", opts: JSONOptions{InvalidUTF8: UTF8Replace},
		want: "[\"a\ufffdb\",\"\ufffd\ufffd\\\"\ufffd\"]", loss: "invalid 2"},
	{name: "replace in key", codec: Msgpack, hex: "81 a1 ff 01", opts: JSONOptions{InvalidUTF8: UTF8Replace}, want: "{\"\ufffd\":1}", loss: "invalid 1"},
	{name: "invalid key", codec: Msgpack, hex: "81 a1 ff 01", class: fault.Corrupt, says: "offset 0x1"},
	{name: "surrogate", codec: Msgpack, hex: "a3 eda080", class: fault.Corrupt},
	{name: "string in pieces", codec: CBOR, hex: "7f 62 6162 61 63 ff", want: `"abc"`},
	{name: "string cut within a character", codec: CBOR, hex: "7f 61 c3 61 a9 ff", class: fault.Corrupt},

	{name: "bytes", codec: Msgpack, hex: "c4 05 fbeffe0001", want: `"--_-AAE"`},
	{name: "no bytes", codec: CBOR, hex: "40", want: `""`},
	{name: "tag 21", codec: CBOR, hex: "d5 42 fbff", want: `"-_8"`},
	{name: "tag 22", codec: CBOR, hex: "d6 42 fbff", want: `"+/8="`},
	{name: "tag 23", codec: CBOR, hex: "d7 42 fbff", want: `"FBFF"`},
	{name: "tags nested", codec: CBOR, hex: "d7 83 41 ab d6 82 41 ab d5 41 ab a1 61 6b 41 cd",
		want: `["AB",["qw==","qw"],{"k":"CD"}]`},
	{name: "tag over tag", codec: CBOR, hex: "d6 d7 41 ab", want: `"AB"`},
	{name: "long bytes", codec: Msgpack, hex: "c5 7530" + strings.Repeat("00", 30000), want: `"` + strings.Repeat("A", 40000) + `"`},

	{name: "timestamp 4", codec: Msgpack, hex: "d6 ff 00000000", want: `"1970-01-01T00:00:00.000000000Z"`},
	{name: "timestamp 8", codec: Msgpack, hex: "d7 ff 00000004 00000001", want: `"1970-01-01T00:00:01.000000001Z"`},
	{name: "timestamp 8 late", codec: Msgpack, hex: "d7 ff ee6b27ff ffffffff", want: `"2514-05-30T01:53:03.999999999Z"`},
	{name: "timestamp 12", codec: Msgpack, hex: "c7 0c ff 00000000 ffffffffffffffff", want: `"1969-12-31T23:59:59.000000000Z"`},
	{name: "timestamp year 0", codec: Msgpack, hex: "c7 0c ff 3b9ac9ff fffffff1868b8400", want: `"0000-01-01T00:00:00.999999999Z"`},
	{name: "timestamp year -1", codec: Msgpack, hex: "c7 0c ff 00000000 fffffff1868b83ff", want: `{"$ext":-1,"$data":"AAAAAP____GGi4P_"}`},
	{name: "timestamp 9999", codec: Msgpack, hex: "c7 0c ff 00000000 0000003afff4417f", want: `"9999-12-31T23:59:59.000000000Z"`},
	{name: "timestamp 10000", codec: Msgpack, hex: "c7 0c ff 00000000 0000003afff44180", want: `{"$ext":-1,"$data":"AAAAAAAAADr_9EGA"}`},
	{name: "timestamp with 10^9 ns", codec: Msgpack, hex: "c7 0c ff 3b9aca00 0000000000000000", want: `{"$ext":-1,"$data":"O5rKAAAAAAAAAAAA"}`},
	{name: "timestamp of 3 bytes", codec: Msgpack, hex: "c7 03 ff 000000", want: `{"$ext":-1,"$data":"AAAA"}`},
	{name: "ext", codec: Msgpack, hex: "d4 05 ff", want: `{"$ext":5,"$data":"_w"}`},
	{name: "ext -128", codec: Msgpack, hex: "c7 00 80", want: `{"$ext":-128,"$data":""}`},

	{name: "undefined", codec: CBOR, hex: "82 f7 f7", want: "[null,null]", loss: "undefined 2"},
	{name: "simple", codec: CBOR, hex: "82 e0 f8 ff", want: "[null,null]", loss: "simple 2"},
	{name: "date-time", codec: CBOR, hex: "c0 6a 323032342d30312d3031", want: `"2024-01-01"`, loss: "tag 1"},
	{name: "two tags", codec: CBOR, hex: "d9 d9f7 c1 01", want: "1", loss: "tag 2"},
	{name: "lossless", codec: CBOR, hex: "82 01 f7", opts: JSONOptions{Lossless: true}, class: fault.Invalid,
		says: "undefined written as null, and nothing may be lost (offset 0x2)"},
	{name: "lossless tag", codec: CBOR, hex: "c1 01", opts: JSONOptions{Lossless: true}, class: fault.Invalid},

	{name: "empty array", codec: Msgpack, hex: "90", want: "[]"},
	{name: "empty map", codec: Msgpack, hex: "80", want: "{}"},
	{name: "nested", codec: Msgpack, hex: "93 01 92 02 90 82 a1 61 80 a1 62 91 c0", want: `[1,[2,[]],{"a":{},"b":[null]}]`},
	{name: "indefinite", codec: CBOR, hex: "9f 01 bf 61 61 9f ff ff ff", want: `[1,{"a":[]}]`},
	{name: "key order", codec: Msgpack, hex: "83 a1 62 01 a1 61 02 a1 63 03", want: `{"b":1,"a":2,"c":3}`},

	{name: "key int", codec: Msgpack, hex: "82 a1 61 01 07 02", class: fault.Invalid, says: "key is of kind int, JSON has string keys only (offset 0x4)"},
	{name: "key tagged int", codec: CBOR, hex: "a1 c1 07 02", class: fault.Invalid, says: "offset 0x1"},
	{name: "key tagged string", codec: CBOR, hex: "a1 c0 61 61 02", want: `{"a":2}`, loss: "tag 1"},
	{name: "keys as strings", codec: Msgpack, hex: `
		8b
		07 01          # 7
		c0 02          # null
		c3 03          # true
		cb 3ff8000000000000 04
		c4 01 ff 05    # binary
		d6 ff 00000000 06
		92 01 a1 22 07 # [1,"\""]
		81 a1 6b 01 08 # {"k":1}
		d4 05 ff 09    # ext
		ff 0a          # -1
		a1 73 0b`,
		opts: JSONOptions{Keys: KeysString},
		want: `{"7":1,"null":2,"true":3,"1.5":4,"_w":5,"1970-01-01T00:00:00.000000000Z":6,"[1,\"\\\"\"]":7,"{\"k\":1}":8,` +
			`"{\"$ext\":5,\"$data\":\"_w\"}":9,"-1":10,"s":11}`,
		loss: "key 10"},
	{name: "key NaN", codec: Msgpack, hex: "81 cb 7ff8000000000000 01", opts: JSONOptions{Keys: KeysString, NonFinite: NonFiniteString}, want: `{"NaN":1}`, loss: "NaN-text 1 key 1"},
	{name: "key bignum", codec: CBOR, hex: "a1 c2 49 010000000000000000 01", opts: JSONOptions{Keys: KeysString}, want: `{"18446744073709551616":1}`, loss: "key 1"},
	{name: "key undefined", codec: CBOR, hex: "a1 f7 01", opts: JSONOptions{Keys: KeysString}, want: `{"null":1}`, loss: "undefined 1 key 1"},
	{name: "key in key", codec: Msgpack, hex: "81 81 07 01 02", opts: JSONOptions{Keys: KeysString}, want: `{"{\"7\":1}":2}`, loss: "key 2"},
	{name: "list in key in key", codec: Msgpack, hex: "81 81 90 01 02", opts: JSONOptions{Keys: KeysString}, class: fault.Invalid, says: "inside a key"},
	{name: "7 and \"7\"", codec: Msgpack, hex: "82 07 01 a1 37 02", opts: JSONOptions{Keys: KeysString}, class: fault.Conflict, says: `key "7" occurs twice in one map (offset 0x3)`},
	{name: "pairs", codec: Msgpack, hex: "92 82 a1 61 01 07 82 a1 62 90 08 80 81 a1 63 01", opts: JSONOptions{Keys: KeysPairs},
		want: `[[["a",1],[7,[["b",[]],[8,{}]]]],{"c":1}]`},
	{name: "pairs 7 and \"7\"", codec: Msgpack, hex: "82 07 01 a1 37 02", opts: JSONOptions{Keys: KeysPairs}, want: `[[7,1],["7",2]]`},
	{name: "pairs of containers", codec: Msgpack, hex: "82 82 a1 61 01 07 02 03 90 04", opts: JSONOptions{Keys: KeysPairs}, want: `[[[["a",1],[7,2]],3],[[],4]]`},
	{name: "pairs double", codec: Msgpack, hex: "82 90 01 90 02", opts: JSONOptions{Keys: KeysPairs}, class: fault.Conflict, says: "key [] occurs twice in one map (offset 0x3)"},
	{name: "pairs double container", codec: Msgpack, hex: "82 81 07 00 01 81 07 00 02", opts: JSONOptions{Keys: KeysPairs, Dup: DupFirst}, want: `[[[[7,0]],1]]`, loss: "pair 1"},
	{name: "pairs of text and bytes", codec: CBOR, hex: "a4 62 5151 01 41 41 02 83 62 5151 f6 01 03 83 41 41 f7 01 04", opts: JSONOptions{Keys: KeysPairs},
		want: `[["QQ",1],["QQ",2],[["QQ",null,1],3],[["QQ",null,1],4]]`, loss: "undefined 1"},
	{name: "pairs of text and bytes, last", codec: CBOR, hex: "a3 62 5151 01 41 41 02 62 5151 03", opts: JSONOptions{Keys: KeysPairs, Dup: DupLast},
		want: `[["QQ",2],["QQ",3]]`, loss: "pair 1"},
	{name: "pairs of bytes twice", codec: CBOR, hex: "a2 41 41 01 5f 41 41 ff 02", opts: JSONOptions{Keys: KeysPairs}, class: fault.Conflict,
		says: `key "QQ" occurs twice in one map (offset 0x4)`},
	{name: "pairs of a number in two forms", codec: CBOR, hex: "a2 01 01 c2 41 01 02", opts: JSONOptions{Keys: KeysPairs}, class: fault.Conflict,
		says: "key 1 occurs twice in one map (offset 0x3)"},
	{name: "pairs of tags", codec: CBOR, hex: "a4 c1 01 01 01 02 c5 01 03 c5 c1 01 04", opts: JSONOptions{Keys: KeysPairs},
		want: "[[1,1],[1,2],[1,3],[1,4]]", loss: "tag 4"},
	{name: "tag before a string in a map", codec: CBOR, hex: "a2 c5 61 61 01 61 61 02", opts: JSONOptions{Keys: KeysPairs}, class: fault.Conflict,
		says: `key "a" occurs twice in one map (offset 0x5)`},
	{name: "pairs and last", codec: Msgpack, hex: "83 a1 61 81 01 02 07 02 a1 61 81 a1 62 03", opts: JSONOptions{Keys: KeysPairs, Dup: DupLast},
		want: `[[7,2],["a",{"b":3}]]`, loss: "pair 1"},
	{name: "pairs and first", codec: Msgpack, hex: "83 a1 61 80 a1 61 81 a1 62 03 a1 63 81 05 06", opts: JSONOptions{Keys: KeysPairs, Dup: DupFirst},
		want: `{"a":{},"c":[[5,6]]}`, loss: "pair 1"},

	{name: "double key", codec: Msgpack, hex: "82 a1 61 01 a1 61 02", class: fault.Conflict, says: `key "a" occurs twice in one map (offset 0x4)`},
	{name: "double key deep", codec: CBOR, hex: "81 a1 61 78 bf 61 61 01 61 61 02 ff", class: fault.Conflict, says: `key "a" occurs twice in one map (offset 0x8)`},
	{name: "double key of other width", codec: Msgpack, hex: "82 a1 61 01 d9 01 61 02", class: fault.Conflict},
	{name: "the same key in other maps", codec: Msgpack, hex: "82 a1 61 81 a1 61 01 a1 62 81 a1 61 02", want: `{"a":{"a":1},"b":{"a":2}}`},
	{name: "double key around a map", codec: Msgpack, hex: "82 a1 61 81 a1 61 01 a1 61 02", class: fault.Conflict},
	{name: "first", codec: Msgpack, hex: "83 a1 61 01 a1 61 81 a1 62 02 a1 63 03", opts: JSONOptions{Dup: DupFirst}, want: `{"a":1,"c":3}`, loss: "pair 1"},
	{name: "first, tagged value", codec: CBOR, hex: "a2 61 61 01 61 61 c1 82 01 02", opts: JSONOptions{Dup: DupFirst}, want: `{"a":1}`, loss: "pair 1"},
	{name: "last", codec: Msgpack, hex: "84 a1 61 01 a1 61 81 a1 62 02 a1 63 03 a1 61 04", opts: JSONOptions{Dup: DupLast}, want: `{"c":3,"a":4}`, loss: "pair 2"},
	{name: "last, nested", codec: Msgpack, hex: "82 a1 61 82 a1 62 01 a1 62 02 a1 61 82 a1 62 03 a1 62 04", opts: JSONOptions{Dup: DupLast}, want: `{"a":{"b":4}}`, loss: "pair 2"},
	{name: "last, empty map before", codec: Msgpack, hex: "83 a1 61 80 a1 62 01 a1 62 02", opts: JSONOptions{Dup: DupLast}, want: `{"a":{},"b":2}`, loss: "pair 1"},
	{name: "last, tagged key", codec: CBOR, hex: "a2 c1 61 61 01 61 61 02", opts: JSONOptions{Dup: DupLast}, want: `{"a":2}`, loss: "pair 1"},
	{name: "all", codec: Msgpack, hex: "92 82 a1 61 01 a1 61 02 82 a1 61 01 a1 61 02", opts: JSONOptions{Dup: DupAll}, want: `[{"a":1,"a":2},{"a":1,"a":2}]`},

	{name: "pretty", codec: Msgpack, hex: "84 a1 61 92 01 80 a1 62 90 a1 63 81 a1 64 c0 a1 65 d4 01 00", opts: JSONOptions{Pretty: true}, want: `{
  "a": [
    1,
    {}
  ],
  "b": [],
  "c": {
    "d": null
  },
  "e": {
    "$ext": 1,
    "$data": "AA"
  }
}`},
	{name: "pretty pairs", codec: Msgpack, hex: "81 07 92 01 02", opts: JSONOptions{Pretty: true, Keys: KeysPairs}, want: `[
  [
    7,
    [
      1,
      2
    ]
  ]
]`},
	{name: "pretty key", codec: Msgpack, hex: "82 92 01 02 03 d4 01 00 04", opts: JSONOptions{Pretty: true, Keys: KeysString}, want: `{
  "[1,2]": 3,
  "{\"$ext\":1,\"$data\":\"AA\"}": 4
}`, loss: "key 2"},

	{name: "nothing", codec: Msgpack, hex: "", class: fault.Corrupt, says: "ends"},
	{name: "more", codec: Msgpack, hex: "01 02", class: fault.Corrupt, says: "more bytes after the value (offset 0x1)"},
	{name: "truncated", codec: Msgpack, hex: "92 01", class: fault.Corrupt},
	{name: "bad opcode", codec: Msgpack, hex: "91 c1", class: fault.Corrupt, says: "offset 0x1"},
	{name: "too deep", codec: Msgpack, hex: strings.Repeat("91", 1000) + "90", class: fault.Limit, says: "1000"},
	{name: "as deep as can be", codec: Msgpack, hex: strings.Repeat("91", 999) + "90", want: strings.Repeat("[", 1000) + strings.Repeat("]", 1000)},
}

// lossWords gives the first word of each kind of loss, with its count.
func lossWords(l *Losses) string {
	var words []string
	for loss := range l.All() {
		word := map[LossKind]string{LossUndefined: "undefined", LossSimple: "simple", LossTag: "tag", LossNonFinite: "NaN", LossNonFiniteText: "NaN-text",
			LossUTF8: "invalid", LossKey: "key", LossPair: "pair", LossDigits: "digits", LossSign: "sign"}[loss.Kind]
		words = append(words, word, strconv.FormatInt(loss.Count, 10))
	}
	return strings.Join(words, " ")
}

func (c *jsonCase) check(t *testing.T, got string, loss *Losses, err error) {
	t.Helper()
	if c.class != nil {
		if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want %v with %q", err, c.class, c.says)
		}
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.loss, lossWords(loss)); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

func TestAppendJSON(t *testing.T) {
	for _, c := range jsonCases {
		t.Run(c.name, func(t *testing.T) {
			data := jsonHex(c.hex)
			for range 2 { // the second time with what was learned
				var loss Losses
				got, err := AppendJSON([]byte("x"), c.codec, data, Limits{}, &c.opts, &loss)
				if err != nil && string(got) != "x" {
					t.Errorf("dst is %q after an error", got)
				}
				c.check(t, strings.TrimPrefix(string(got), "x"), &loss, err)
			}
		})
	}
}

func TestJSONWriterStreams(t *testing.T) {
	for _, c := range jsonCases {
		data := jsonHex(c.hex)
		t.Run(c.name+"/section", func(t *testing.T) {
			var loss Losses
			var out bytes.Buffer
			w := NewJSONWriter(&out, Limits{}, &c.opts, &loss)
			src := bytes.NewReader(append([]byte{0xc1, 0xc1}, data...))
			err := w.WriteSection(c.codec, src, 2, int64(len(data)))
			if err == nil {
				err = w.Flush()
			}
			c.check(t, out.String(), &loss, err)
		})
		t.Run(c.name+"/stream", func(t *testing.T) {
			if c.name == "more" {
				t.Skip("WriteValue takes one value")
			}
			var loss Losses
			var out bytes.Buffer
			w := NewJSONWriter(&out, Limits{}, &c.opts, &loss)
			err := w.WriteValue(NewStream(c.codec, iotest1(data), -1, Limits{}))
			if err == nil {
				err = w.Flush()
			} else if err == io.EOF {
				err = errTruncated(0, "a value", 1)
			}
			c.check(t, out.String(), &loss, err)
		})
	}
}

// iotest1 gives data a few bytes at a time.
func iotest1(data []byte) io.Reader { return &shortReader{bytes.NewReader(data)} }

type shortReader struct{ r io.Reader }

func (r *shortReader) Read(p []byte) (int, error) { return r.r.Read(p[:min(len(p), 3)]) }

func TestAppendFloat(t *testing.T) {
	floats := []float64{0, 1, 0.5, 0.1, 0.001, 0.0001, 1e-6, 9.999999e-7, 1e-7, 123.456, 99.999, 1e20, 1e21, 123456789012345680, 1e9, 999999999.999,
		999999999999.999, 1e12, 0.000001, 0.0000015, 0.3, 0.1 + 0.2, 2.5e-7, 1.7976931348623157e308, 5e-324, 1e23, 4.35, 8.41e21, 1 << 53, 1<<53 + 2,
		1e15, 1e16, 123456.123456, 1.000001, 1.0000001, 0.999999, 4503599627370496.5}
	check := func(f float64, size int) {
		t.Helper()
		got := string(appendFloat(nil, f, size))
		back, err := strconv.ParseFloat(got, size)
		if err != nil || back != f || math.Signbit(back) != math.Signbit(f) {
			t.Fatalf("%v: %s reads back as %v", f, got, back)
		}
		if !strings.ContainsAny(got, ".e") {
			t.Fatalf("%v: %s has no fraction", f, got)
		}
		// As encoding/json writes it, but for the fraction.
		abs, format := math.Abs(f), byte('f')
		if abs != 0 && (size == 64 && (abs < 1e-6 || abs >= 1e21) || size == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21)) {
			format = 'e'
		}
		want := strconv.FormatFloat(f, format, -1, size)
		if format == 'e' {
			want = strings.Replace(want, "e-0", "e-", 1)
		} else if !strings.Contains(want, ".") {
			want += ".0"
		}
		if got != want {
			t.Fatalf("%x: %s, want %s", math.Float64bits(f), got, want)
		}
	}
	for _, f := range floats {
		for _, f := range []float64{f, -f, math.Nextafter(f, math.Inf(1)), f * 3, f / 7} {
			if !math.IsInf(f, 0) {
				check(f, 64)
			}
			if f := float64(float32(f)); !math.IsInf(f, 0) {
				check(f, 32)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range 200000 {
		if f := math.Float64frombits(r.Uint64()); f-f == 0 {
			check(f, 64)
		}
		if f := math.Float32frombits(r.Uint32()); f-f == 0 {
			check(float64(f), 32)
		}
		n := float64(r.Int64N(1 << r.IntN(50)))
		check(n/[]float64{10, 100, 1e3, 1e4, 1e5, 1e6, 1e7}[r.IntN(7)], 64)
		f := float32(r.IntN(10000000)) / []float32{1, 10, 100, 1e3, 1e4}[r.IntN(5)]
		check(float64(f), 32)
	}
	for h := range 1 << 16 {
		if f := widenHalf(uint16(h)); f-f == 0 {
			check(f, 32)
		}
	}
}

func TestWidenHalf(t *testing.T) {
	for h, want := range map[uint16]float64{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 0x1p-24, 0x3ff: 0x1.ff8p-15, 0x400: 0x1p-14,
		0x3555: 0.333251953125, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1)} {
		if got := widenHalf(h); got != want {
			t.Errorf("%#04x: %v, want %v", h, got, want)
		}
	}
	if f := widenHalf(0x7e01); f == f {
		t.Error("0x7e01 is no NaN")
	}
}

func TestAppendUint(t *testing.T) {
	check := func(n uint64) {
		if got, want := string(appendUint(nil, n)), strconv.FormatUint(n, 10); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	for p := uint64(1); p < 1e19; p *= 10 {
		for _, n := range []uint64{p - 1, p, p + 1, 9 * p} {
			check(n)
		}
	}
	check(math.MaxUint64)
	for n := range uint64(100000) {
		check(n)
		check(n * 1000003 % 1e8)
	}
	for bits, want := range map[uint64]string{0: "-1", 99: "-100", math.MaxInt64: "-9223372036854775808", math.MaxUint64: "-18446744073709551616"} {
		if got := string(appendNegative(nil, bits)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestTimestampText(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for range 20000 {
		when := time.Unix(r.Int64N(253402300800+62167219200)-62167219200, r.Int64N(1e9)).UTC()
		data := appendMsgpackTime(nil, when.Unix(), uint32(when.Nanosecond()))
		got, err := AppendJSON(nil, Msgpack, data, Limits{}, nil, nil)
		if want := when.Format(`"2006-01-02T15:04:05.000000000Z"`); err != nil || string(got) != want {
			t.Fatalf("%s %v, want %s", got, err, want)
		}
	}
}

func TestBigDecimal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for _, n := range []int{1, 19, 20, 100, decimalPiece - 1, decimalPiece, decimalPiece + 1, 2*decimalPiece + 1, 4 * decimalPiece, 5*decimalPiece + 77, 40000} {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte('0' + r.IntN(10))
		}
		want, _ := new(big.Int).SetString(string(p), 10)
		if bigDecimal(p).Cmp(want) != 0 {
			t.Errorf("%d digits are wrong", n)
		}
	}
}

func TestLosses(t *testing.T) {
	var loss Losses
	var out bytes.Buffer
	w := NewJSONWriter(&out, Limits{}, &JSONOptions{NonFinite: NonFiniteNull}, &loss)
	w.At("a/b", 0x100)
	if err := w.WriteValue(NewScanner(CBOR, jsonHex("83 01 f7 f7"), Limits{})); err != nil {
		t.Fatal(err)
	}
	w.At("", 0)
	if err := w.WriteValue(NewScanner(CBOR, jsonHex("82 f7 f97e00"), Limits{})); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range loss.All() {
		lines = append(lines, l.String())
	}
	want := []string{"undefined written as null: 3 times, first at a/b, offset 0x102", "NaN or infinity written as null: once, at offset 0x2"}
	if diff := cmp.Diff(want, lines); diff != "" || loss.Count() != 4 {
		t.Errorf("%d losses (-want +got):\n%s", loss.Count(), diff)
	}
}
