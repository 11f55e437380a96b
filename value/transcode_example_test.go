package value_test

import (
	"bytes"
	"fmt"

	"github.com/spilehq/spile/value"
)

func ExampleTranscode() {
	msgpack, err := value.Transcode(nil, value.Msgpack, value.CBOR, []byte("\xbf\x61a\xf9\x3e\x00\xff"), value.Limits{})
	fmt.Printf("%x %v\n", msgpack, err)
	_, err = value.Transcode(nil, value.Msgpack, value.CBOR, []byte("\x82\x01\xf7"), value.Limits{})
	fmt.Println(err)
	// Output:
	// 81a161ca3fc00000 <nil>
	// value: undefined has no form in msgpack (offset 0x2)
}

func ExampleTranscodeAt() {
	src := bytes.NewReader([]byte("\x9f\x18\x01\x7f\x61a\x61b\xff\xff"))
	var out bytes.Buffer
	err := value.TranscodeAt(&out, value.CBOR, value.CBOR, src, src.Size(), value.Limits{})
	fmt.Printf("%x %v\n", out.Bytes(), err)
	// Output: 8201626162 <nil>
}
