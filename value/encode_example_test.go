package value_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

func ExampleAppend() {
	type run struct {
		Name  string    `spile:"name"`
		Steps []float64 `spile:"steps,omitempty"`
		Note  string    `spile:"-"`
	}
	b, err := value.Append(nil, value.Msgpack, []run{{Name: "a", Steps: []float64{0.5}}, {Name: "b", Note: "kept here"}})
	fmt.Printf("%x %v\n", b, err)

	_, err = value.Append(nil, value.Msgpack, map[string]any{"runs": []any{"good", "b\xffd"}})
	fmt.Println(err)
	// Output:
	// 9282a46e616d65a161a5737465707391cb3fe000000000000081a46e616d65a162 <nil>
	// value: runs/1: string of 3 bytes is not UTF-8
}

// An array of a million items and a map are written without being in memory.
func ExampleWrite() {
	squares := value.Seq{Len: 1_000_000, Items: func(yield func(any) bool) {
		for i := range int64(1_000_000) {
			if !yield(i * i) {
				return
			}
		}
	}}
	names := value.MapSeq{Len: -1, Pairs: func(yield func(k, v any) bool) { // run twice: once to count
		_ = yield("first", 1) && yield("second", 2)
	}}
	var size counter
	err := value.Write(&size, value.CBOR, []any{squares, names})
	fmt.Println(size, "bytes", err)
	// Output: 8737345 bytes <nil>
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func ExampleDecode() {
	v, err := value.Decode(value.Msgpack, []byte("\x82\xa1a\x01\xa1b\x92\xc3\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00"), value.Limits{})
	fmt.Println(v, err)

	_, err = value.Decode(value.Msgpack, []byte("\x81\xa4runs\x92\x01\xc1"), value.Limits{})
	fmt.Println(err, errors.Is(err, fault.Corrupt))
	// Output:
	// map[a:1 b:[true 0.5]] <nil>
	// value: runs/1: byte 0xc1 starts no msgpack value (offset 0x8) true
}

func ExampleDecodeNext() {
	s := value.NewStream(value.CBOR, bytes.NewReader([]byte("\x01\x61a\x82\x02\x03")), -1, value.Limits{})
	for {
		v, err := value.DecodeNext(s)
		if err == io.EOF {
			break
		} else if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(v)
	}
	// Output:
	// 1
	// a
	// [2 3]
}

func ExampleUnmarshal() {
	var config struct {
		Name  string         `spile:"name"`
		Port  uint16         `spile:"port"`
		Total value.Number   `spile:"total"`
		Rest  value.Raw      `spile:"rest"`
		Extra map[string]int `spile:"extra"`
	}
	b, _ := value.Append(nil, value.CBOR, map[string]any{
		"name": "x", "port": 8080, "total": uint64(1<<64 - 1), "rest": []any{1, 2}, "unknown": nil,
	})
	err := value.Unmarshal(value.CBOR, b, value.Limits{}, &config)
	fmt.Printf("%s %d %s %x %v %v\n", config.Name, config.Port, config.Total, config.Rest.Data, config.Extra, err)

	b, _ = value.Append(nil, value.CBOR, map[string]any{"port": 80800})
	fmt.Println(value.Unmarshal(value.CBOR, b, value.Limits{}, &config))
	// Output:
	// x 8080 18446744073709551615 820102 map[] <nil>
	// value: port: integer 80800 into uint16 (offset 0x6)
}

func ExampleOrderedMap() {
	b, _ := value.Append(nil, value.Msgpack, value.OrderedMap{{Key: "z", Value: 1}, {Key: 2, Value: "a"}})
	fmt.Printf("%x\n", b)
	var m value.OrderedMap
	err := value.Unmarshal(value.Msgpack, b, value.Limits{}, &m)
	for _, p := range m {
		pair := value.Pair(p)
		fmt.Println(pair.Key, pair.Value)
	}
	fmt.Println(err)

	_, err = value.Append(nil, value.Msgpack, value.OrderedMap{{Key: "a"}, {Key: "a"}})
	fmt.Println(err, errors.Is(err, fault.Conflict))
	// Output:
	// 82a17a0102a161
	// z 1
	// 2 a
	// <nil>
	// value: key "a" comes twice true
}

func ExampleRaw() {
	raw := value.Raw{Codec: value.Msgpack, Data: []byte{0x92, 1, 2}}
	b, _ := value.Append(nil, value.Msgpack, map[string]any{"copied": raw})
	fmt.Println(raw.Kind())
	fmt.Println(value.Raw{Codec: value.Msgpack, Data: b}.Decode(value.Limits{}))
	// Output:
	// list
	// map[copied:[1 2]] <nil>
}

// The values that Go has no type of its own for.
func ExampleTagValue() {
	for _, v := range []any{
		value.TagValue{Number: 32, Content: "http://example.com"},
		value.UndefinedValue{},
		value.SimpleValue(16),
		time.Unix(0, 0).UTC(),
		new(big.Int).Lsh(big.NewInt(1), 64),
		map[any]any{value.EncodedKey{Codec: value.CBOR, Data: "\x81\x01"}: "a list as a key"},
	} {
		b, _ := value.Append(nil, value.CBOR, v)
		v, _ := value.Decode(value.CBOR, b, value.Limits{})
		fmt.Printf("%T %x\n", v, b)
	}
	b, _ := value.Append(nil, value.Msgpack, value.ExtValue{Type: 5, Data: []byte{1}})
	fmt.Printf("%x\n", b)
	// Output:
	// value.TagValue d82072687474703a2f2f6578616d706c652e636f6d
	// value.UndefinedValue f7
	// value.SimpleValue f0
	// time.Time c074313937302d30312d30315430303a30303a30305a
	// *big.Int c249010000000000000000
	// map[interface {}]interface {} a181016f61206c6973742061732061206b6579
	// d40501
}

func ExampleNumber() {
	for _, n := range []value.Number{"18446744073709551615", "1.0", "1e400"} {
		b, err := value.Append(nil, value.Msgpack, n)
		fmt.Printf("%x %v\n", b, err)
	}
	// Output:
	// cfffffffffffffffff <nil>
	// cb3ff0000000000000 <nil>
	//  value: number "1e400" is beyond a float64
}

// A document written head by head.
func ExampleAppendMapHeader() {
	c := value.CBOR
	b := value.AppendMapHeader(nil, c, 2)
	b = value.AppendString(b, c, "numbers")
	b = value.AppendArrayHeader(b, c, 6)
	b = value.AppendUint(b, c, 300)
	b = value.AppendInt(b, c, -1)
	b = value.AppendFloat64(b, c, 0.5)
	b = value.AppendFloat32(b, c, 0.5)
	b, _ = value.AppendBigInt(b, c, new(big.Int).Lsh(big.NewInt(1), 64))
	b, _ = value.AppendTimestamp(b, c, time.Unix(0, 0).UTC())
	b = value.AppendString(b, c, "others")
	b = value.AppendArrayHeader(b, c, 6)
	b = value.AppendNull(b, c)
	b = value.AppendBool(b, c, true)
	b = value.AppendBytes(b, c, []byte{1})
	b = value.AppendTag(b, c, 32)
	b = value.AppendString(b, c, "tagged")
	b = value.AppendUndefined(b, c)
	b = value.AppendSimple(b, c, 16)
	fmt.Println(value.Decode(c, b, value.Limits{}))
	fmt.Printf("%x\n", value.AppendExt(nil, value.Msgpack, 5, []byte{1}))
	// Output:
	// map[numbers:[300 -1 0.5 0.5 18446744073709551616 1970-01-01 00:00:00 +0000 UTC] others:[<nil> true [1] {32 tagged} {} 16]] <nil>
	// d40501
}

func ExampleToken_Float() {
	s := value.NewScanner(value.CBOR, []byte{0xf9, 0x3e, 0x00}, value.Limits{})
	if err := s.Next(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println(s.Kind, s.Float())
	// Output: float 1.5
}
