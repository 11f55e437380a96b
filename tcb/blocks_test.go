package tcb

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/crypto/chacha20"
)

func hexBytes(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// repeated is a JSON list of n times the items.
func repeated(n int, items string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(items+",", n), ",") + "]"
}

// blockExamples are columns with the block that the writer makes of them (docs/format/tcb.md, "Examples").
var blockExamples = []struct {
	typ      string
	optional bool
	rows     string // JSON
	enc      Encoding
	block    string
}{
	{"i32", false, `[305419896,-305419896,2147483647,-2147483648]`, Raw, "78563412 88a9cbed ffffff7f 00000080"},
	{"string", false, `["gamma","","가"]`, Raw, "0a67616d6d61 00 06eab080"},
	{"i32", false, `[5,-3,300]`, Varint, "0a05d804"},
	{"i32", false, `[1000,1003,1001,1010,1012,1011]`, Delta, "d00f0603120401"},
	{"i32", false, `[2147483647,-2147483648,2147483646]`, Delta, "feffffff0f 02 03"},
	{"i32", false, `[7,7,7,7,900,900,900]`, RLE, "080e06880e"},
	{"enum", false, repeated(20, "3"), RLE, "2806"},
	{"bool", false, repeated(40, "true"), RLE, "5002"},
	{"i32", false, `[1,2,3,4]`, DeltaRLE, "020602"},
	{"i32", false, `[1000,1001,1002,1003,1003,1003]`, DeltaRLE, "d00f 0602 0400"},
	{"string", false, `["fire","ice","fire","ice","fire","ice","ice"]`, Dict, "04 0866697265 06696365 00020002000202"},
	{"f32", false, `[1.5,0.25,1.5,0.25,1.5,1.5]`, Dict, "04 0000c03f 0000803e 000200020000"},
	{"f64", false, `[0.0,-0.0,0.0,-0.0,0.0,-0.0]`, Dict, "04 0000000000000000 0000000000000080 000200020002"},
	{"string", false, `["north","north","north","north","south","south","south","south","north","north","north"]`, DictRLE,
		"04 0a6e6f727468 0a736f757468 0800 0802 0600"},
	{"i64", false, `[9000000000000,9000000000000,9000000000000,9000000000000,9000000000000,9000000000000,-1,-1,-1,-1,-1,
		123456789012345678,123456789012345678,123456789012345678,123456789012345678,123456789012345678,123456789012345678]`, DictRLE,
		"06 0090cd792f080000 ffffffffffffffff 4ef330a64b9bb601 0c00 0a02 0c04"},
	{"string", false, `["skill_fire","skill_ice","skill_fireball","skill_wind"]`, DictFront,
		"08 0014736b696c6c5f66697265 140862616c6c 0c06696365 0c0877696e64 00040206"},
	{"string", false, `["skillfire","skillfire","skillfire","skillice","skillice","skillice","skillfireball","skillfireball","skillfireball",
		"skillwind","skillwind","skillwind"]`, DictFrontRLE,
		"08 0012736b696c6c66697265 120862616c6c 0a06696365 0a0877696e64 0600060406020606"},
	{"string", false, segmented(1), DictSeg, segmentTable + "00020406080a0c0e"},
	{"string", false, segmented(3), DictSegRLE, segmentTable + "06000602060406060608060a060c060e"},
	{"f64", false, `[1,2,3,4,5]`, Whole, "04 020802"},
	{"f32", false, `[10,-4,16777216,7]`, Whole, "01 1407808080100e"},
	{"bool", false, `[true,false,true,true,false,false,true,false,true,true]`, BitPack, "010000 4d03"},
	{"enum", false, `[0,1,2,1,0,2,2,1,0,1,2,0]`, BitPack, "020000 646824"},
	{"i32", false, `[500,507,503,501,506,500,502,505,504]`, BitPack, "03e80700 f862a804"},
	{"i32", false, `[-5,0,2,-1,-3,1,-4,2,-2]`, BitPack, "030900 e829e703"},
	{"i64", false, `[42,42,42,42]`, BitPack, "01540000"},
	{"i64", false, `[1000000000000,1000000000003,1000000000001,1000000000002,1000000000000]`, BitPack, "0280c0a8ca9a3a009c00"},
	{"i64", false, `[-9223372036854775808,9223372036854775807,0]`, BitPack, "40ffffffffffffffffff0103 1000 10fe03 0e00 028002"},
	{"bool", false, repeated(160, "false")[:160*6] + `,true,false,true,false,true,false,true,false]`, BitPack, "010003 2800 02aa01"},
	{"i32", false, repeated(32, "500,501"), BitPack, "01e80703 10d402"},
	{"enum", false, repeated(8, "0,1,2,3,4,5,6,7"), BitPack, "030000" + strings.Repeat("88c6fa", 8)},
	{"i32[]", false, repeated(5, "[1,2,3]"), ArrayOf, "0d03 0a06 020200 24499224"},
	{"i32[]", false, `[[10,20,30],[5],[],[1,2]]`, ArrayOf, "0100 06020004 14283c0a0204"},
	{"uuid[]", false, `[["00112233-4455-6677-8899-aabbccddeeff"],[]]`, Raw, "02 33221100554477668899aabbccddeeff 00"},
	{"i32", true, `[5,null,null]`, Varint, "0001 0a0000"},
	{"string", true, `["x",` + repeated(99, "null")[1:], DictRLE, "03 02021800 04 0278 00 0200 c60102"},
	{"i32[]", true, `[[10,20],null,null]`, ArrayOf, "0001 0100 040000 1428"},
	{"i32", false, `[]`, Raw, ""},
	{"i32", true, `[]`, Raw, "00"},
}

const segmentTable = "0c 000a626c756e74 000a676f6c645f 000a69726f6e5f 000a7368617270 040a69656c645f 020a776f72645f 10" +
	"06040a06 06020a06 06040806 06020806 06040a00 06020a00 06040800 06020800"

func segmented(times int) string {
	var out []string
	for _, s := range []string{
		"iron_sword_sharp", "gold_sword_sharp", "iron_shield_sharp", "gold_shield_sharp",
		"iron_sword_blunt", "gold_sword_blunt", "iron_shield_blunt", "gold_shield_blunt",
	} {
		for range times {
			out = append(out, s)
		}
	}
	text, _ := json.Marshal(out)
	return string(text)
}

func TestBlockExamples(t *testing.T) {
	for _, e := range blockExamples {
		f := Field{Tag: 1}
		if err := f.setType(e.typ); err != nil {
			t.Fatal(err)
		}
		f.Type.Optional = e.optional
		var values []json.RawMessage
		if err := json.Unmarshal([]byte(e.rows), &values); err != nil {
			t.Fatal(e.rows, err)
		}
		rows := make([]json.RawMessage, len(values))
		for i, v := range values {
			rows[i] = json.RawMessage(`{"1":` + string(v) + `}`)
		}
		c := build(t, &Schema{Columns: []Field{f}}, rows)[0]
		got := encodeColumn(c)
		want := hexBytes(t, e.block)
		if got.enc != e.enc || !bytes.Equal(got.bytes, want) {
			t.Errorf("%s %.60s: %s % x\nwant %s % x", e.typ, e.rows, got.enc, got.bytes, e.enc, want)
			continue
		}
		back, err := decodeBlock(want, Descriptor{Tag: 1, Type: f.Type, Encoding: e.enc, Size: int64(len(want))}, len(rows), newBudget(1<<20), true)
		if err != nil {
			t.Errorf("%s %.60s: %v", e.typ, e.rows, err)
			continue
		}
		back.Name = c.Name
		if !same(back, c) {
			t.Errorf("%s %.60s came back as %+v", e.typ, e.rows, back)
		}
	}
	for _, typ := range []string{"i32[]", "string[]", "uuid[]"} {
		f := Field{Tag: 1}
		if err := f.setType(typ); err != nil {
			t.Fatal(err)
		}
		f.Type.ElementOptional = true
		c := build(t, &Schema{Columns: []Field{f}}, nil)[0]
		if e := encodeColumn(c); e.enc != Raw || !bytes.Equal(e.bytes, []byte{0, 0}) {
			t.Errorf("%s without rows is %s % x, want RAW 00 00", typ, e.enc, e.bytes)
		}
	}
}

// badBlocks are blocks of three rows that are refused.
var badBlocks = []struct {
	typ   string
	wire  byte // the bits of what can be absent
	enc   Encoding
	block string
	check string
}{
	{"i32", 0, RLE, "0402", "D1"},
	{"i32", 0, RLE, "0802", "D2"},
	{"i32", 0, RLE, "00020602", "D2"},
	{"i32", 0, RLE, "01020602", "D2"},
	{"i32", 0, Varint, "02040608", "D10"},
	{"i32", 0, DeltaRLE, "020602", "D2"},
	{"string", 0, Dict, "02026100 0002", "D3"},
	{"string", 0, Dict, "020261 0000 01", "D3"},
	{"string", 0, Dict, "010261 000000", "D4"},
	{"string", 0, DictFront, "02020261000000", "D4"},
	{"string", 0, DictFront, "02010261000000", "D4"},
	{"string", 0, DictFront, "020001 000000", "D4"},
	{"string", 0, Raw, "01 0261 0261", "D8"},
	{"i32", 0, BitPack, "000000", "D7"},
	{"i32", 0, BitPack, "410000" + strings.Repeat("00", 25), "D7"},
	{"i32", 0, BitPack, "01000500", "D5"},
	{"i32", 0, BitPack, "01 feffffffffffffffff01 00 07", "D7"},
	{"bool", 0, BitPack, "0100018004", "D6"},
	{"bool", 0, BitPack, "0100010100", "D6"},
	{"f64", 0, Whole, "00020406", "D5"},
	{"f64", 0, Whole, "0d020406", "D5"},
	{"string", 0, Delta, "020202", "C4"},
	{"i32", 0, 14, "020202", "C4"},
	{"i32[]", 0, ArrayOf, "09000202020202", "D5"},
	{"i32[]", 0, ArrayOf, "0101020202020406", "D5"},
	{"i32[]", 0, ArrayOf, "0100010202", "D8"},
	{"i32[]", 0, ArrayOf, "0d03 04feffffff0f 02feffffff0f", "D7"},
	{"uuid[]", 0, ArrayOf, "0000000000", "C4"},
	{"i32", wireOptional, Varint, "0507020406", "D5"},
	{"i32[]", wireElementOptional, ArrayOf, "040003 0100 020202 020406", "D9"},
	{"i32[]", wireElementOptional, Raw, "010003 0202 0204 0206", "D9"},
	{"i32", wireElementOptional, Varint, "020406", "C1"},
	{"i32", 0, Varint, "ffffffff10 0204", "sec2"},
	{"string", 0, DictSeg, "02 000261 02 0202 00 0000", "D3"},
	{"string", 0, DictSeg, "02 000261 02 01 00 0000", "D4"},
}

func TestBadBlocks(t *testing.T) {
	for _, e := range badBlocks {
		f := Field{Tag: 1}
		if err := f.setType(e.typ); err != nil {
			t.Fatal(err)
		}
		d := Descriptor{Tag: 1, Type: typeOf(f.Type.wire() | e.wire), Encoding: e.enc}
		_, err := decodeBlock(hexBytes(t, e.block), d, 3, newBudget(1<<20), false)
		if Check(err) != e.check {
			t.Errorf("%s %s %s: %v, want %s", e.typ, e.enc, e.block, err, e.check)
		}
	}
}

func TestPieces(t *testing.T) {
	for s, want := range map[string]string{
		"Art/Fx_01b": "Art/|Fx_|01|b", "a1-": "a|1|-", "": "", "_": "_", "12": "12", "a b:c\\d|e.f": "a |b:|c\\|d\x00|e.|f", "é1": "é|1",
	} {
		var got []string
		for rest := s; rest != ""; {
			n := nextPiece(rest)
			got = append(got, strings.ReplaceAll(rest[:n], "|", "\x00"))
			rest = rest[n:]
		}
		if g := strings.Join(got, "|"); g != want {
			t.Errorf("%q is cut into %q, want %q", s, g, want)
		}
	}
}

// The stream cipher of RFC 8439, 2.4.2: its counter starts at 1 there, at 0 in a table.
func TestChaCha20(t *testing.T) {
	key := hexBytes(t, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	c, err := chacha20.NewUnauthenticatedCipher(key, hexBytes(t, "000000000000004a00000000"))
	if err != nil {
		t.Fatal(err)
	}
	c.SetCounter(1)
	p := []byte("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.")
	c.XORKeyStream(p, p)
	want := hexBytes(t, `6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8
		07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab77937365af90bbf74a35be6b40b8eedf2785e42874d`)
	if !bytes.Equal(p, want) {
		t.Errorf("% x\nwant % x", p, want)
	}
}

func TestMAC(t *testing.T) {
	file := append(appendHeader(nil), make([]byte, 200)...)
	file[versionAt] = 105
	for i := range file[HeaderSize:] {
		file[HeaderSize+i] = byte(i * 31 % 253)
	}
	key := make([]byte, KeySize)
	for i := range key {
		key[i] = byte(0x40 + i)
	}
	if got := hex.EncodeToString(tag(file, key)); got != "2d8298b1e59598105580e9a61d685a3f" {
		t.Errorf("the tag is %s", got)
	}
}

// The text order of a GUID, and that of the file.
func TestGUIDBytes(t *testing.T) {
	g, err := ParseGUID("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.Bytes(), [16]byte(hexBytes(t, "00112233445566778899aabbccddeeff")); got != want {
		t.Errorf("% x", got)
	}
	if want := GUID(hexBytes(t, "33221100554477668899aabbccddeeff")); g != want {
		t.Errorf("% x in the file, want % x", g, want)
	}
}

func TestTypeText(t *testing.T) {
	for want, f := range map[string]Field{
		"i32":             {Type: Type{Element: I32}},
		"datetime":        {Type: Type{Element: I64}, Logical: DateTime},
		"timespan?":       {Type: Type{Element: I64, Optional: true}, Logical: TimeSpan},
		"datetime?[]":     {Type: Type{Element: I64, Kind: Array, ElementOptional: true}, Logical: DateTime},
		"string?[]?":      {Type: Type{Element: String, Kind: Array, ElementOptional: true, Optional: true}},
		"enum[]?":         {Type: Type{Element: Enum, Kind: Array, Optional: true}},
		"element 9":       {Type: Type{Element: 9}},
		"i32? of kind 2?": {Type: Type{Element: I32, Kind: 2, ElementOptional: true, Optional: true}},
	} {
		if got := f.TypeText(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
