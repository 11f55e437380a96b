package value_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/spilehq/spile/value"
)

func ExampleAppendJSON() {
	data := []byte("\x83\xa2id\xcd\x01\x2c\xa4load\xca\x3e\x4c\xcc\xcd\xa3key\xc4\x02\xfb\xff")
	text, err := value.AppendJSON(nil, value.Msgpack, data, value.Limits{}, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)

	twice := []byte("\x82\xa1a\x01\xa1a\x02")
	_, err = value.AppendJSON(nil, value.Msgpack, twice, value.Limits{}, nil, nil)
	fmt.Println(err)
	// Output:
	// {"id":300,"load":0.2,"key":"-_8"}
	// value: key "a" occurs twice in one map (offset 0x4)
}

func ExampleJSONOptions() {
	data := []byte("\xa3\x07\xf9\x7e\x00\x61a\xf7\xf5\x01") // {7: NaN, "a": undefined, true: 1}
	var loss value.Losses
	o := value.JSONOptions{Keys: value.KeysString, NonFinite: value.NonFiniteString, Pretty: true}
	text, err := value.AppendJSON(nil, value.CBOR, data, value.Limits{}, &o, &loss)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	for l := range loss.All() {
		fmt.Println(l)
	}
	fmt.Println(loss.Count(), "losses")
	// Output:
	// {
	//   "7": "NaN",
	//   "a": null,
	//   "true": 1
	// }
	// undefined written as null: once, at offset 0x7
	// NaN or infinity written as a string: once, at offset 0x2
	// key that is not a string written as a string: 2 times, first at offset 0x1
	// 4 losses
}

func ExampleDupMode() {
	o := value.JSONOptions{Dup: value.DupLast}
	text, _ := value.AppendJSON(nil, value.Msgpack, []byte("\x82\xa1a\x01\xa1a\x02"), value.Limits{}, &o, nil)
	fmt.Printf("%s\n", text)
	// Output: {"a":2}
}

// A document of parts that come from elsewhere, in two codecs.
func ExampleJSONWriter() {
	w := value.NewJSONWriter(os.Stdout, value.Limits{}, &value.JSONOptions{Keys: value.KeysPairs}, nil)
	key := []byte{0x07}
	if w.NeedsPairs(value.CBOR, key) {
		w.BeginPairs()
	} else {
		w.BeginMap()
	}
	w.Key(value.CBOR, key)
	w.WriteValue(value.NewScanner(value.CBOR, []byte("\x82\x01\x02"), value.Limits{}))
	w.Key(value.Msgpack, []byte("\xa4list"))
	w.BeginArray()
	for s := value.NewScanner(value.Msgpack, []byte("\x01\xa1x\xc0"), value.Limits{}); ; {
		if err := w.WriteValue(s); err == io.EOF {
			break
		} else if err != nil {
			log.Fatal(err) // the writer would return it again
		}
	}
	w.EndArray()
	w.EndMap()
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
	// Output: [[7,[1,2]],["list",[1,"x",null]]]
}

func ExampleJSONWriter_WriteSection() {
	file := strings.NewReader("head\x91\xa3abctail")
	w := value.NewJSONWriter(os.Stdout, value.Limits{}, nil, nil)
	w.At("a/b", 4) // where the section is, for errors and losses
	if err := w.WriteSection(value.Msgpack, file, 4, 5); err != nil {
		log.Fatal(err)
	}
	w.Flush()
	// Output: ["abc"]
}

func ExampleReadJSON() {
	text := `{"id": 18446744073709551615, "ratio": 0.5, "tags": ["a", "b"]}`
	var out bytes.Buffer
	err := value.ReadJSON(&out, strings.NewReader(text), int64(len(text)), value.CBOR, nil, nil)
	fmt.Printf("%x %v\n", out.Bytes(), err)

	text = "{\"a\": 1,\n \"b\": [1, 2,]}"
	err = value.ReadJSON(io.Discard, strings.NewReader(text), int64(len(text)), value.CBOR, nil, nil)
	fmt.Println(err)
	// Output:
	// a36269641bffffffffffffffff65726174696ffb3fe000000000000064746167738261616162 <nil>
	// value: line 2, column 13: not JSON: ']' where a value is expected (offset 0x15)
}

func ExampleAppendFromJSON() {
	var loss value.Losses
	data, err := value.AppendFromJSON(nil, value.Msgpack, []byte("[-0, 0.10000000000000001]"), nil, &loss)
	fmt.Printf("%x %v\n", data, err)
	for l := range loss.All() {
		fmt.Println(l)
	}
	_, err = value.AppendFromJSON(nil, value.Msgpack, []byte("[-0]"), &value.JSONReadOptions{Lossless: true}, nil)
	fmt.Println(err)
	// Output:
	// 9200cb3fb999999999999a <nil>
	// digits of a number lost, a float64 does not hold them: once, at offset 0x5
	// integer -0 read as 0: once, at offset 0x1
	// value: line 1, column 2: integer -0 read as 0, and nothing may be lost (offset 0x1)
}
