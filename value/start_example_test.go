package value_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spilehq/spile/value"
)

// What an error says that an option would let pass.
func ExamplePermit() {
	data := []byte("\x81\xf9\x7e\x00") // [NaN]
	_, err := value.AppendJSON(nil, value.CBOR, data, value.Limits{}, nil, nil)
	fmt.Println(err)
	var p value.Permit
	if errors.As(err, &p) && p == value.PermitNonFinite {
		text, err := value.AppendJSON(nil, value.CBOR, data, value.Limits{}, &value.JSONOptions{NonFinite: value.NonFiniteNull}, nil)
		fmt.Printf("%s %v\n", text, err)
	}
	// Output:
	// value: NaN has no JSON form (offset 0x1)
	// [null] <nil>
}

func ExampleJSONReadOptions() {
	var loss value.Losses
	o := &value.JSONReadOptions{InvalidUTF8: value.UTF8Replace}
	data, err := value.AppendFromJSON(nil, value.Msgpack, []byte("\"caf\xe9\""), o, &loss)
	fmt.Printf("%q %v\n", data, err)
	fmt.Println(loss.Count(), "loss")
	// Output:
	// "\xa6caf�" <nil>
	// 1 loss
}

// Losses of several conversions.
func ExampleLosses() {
	var loss value.Losses
	for _, text := range []string{"-0", "1e23", "-0"} {
		value.AppendFromJSON(nil, value.CBOR, []byte(text), nil, &loss)
	}
	for l := range loss.All() {
		fmt.Println(l.Kind, "-", l.Count)
	}
	// Output:
	// integer -0 read as 0 - 2
}

// A list that is made while it is written.
func ExampleSeq() {
	letters := value.Seq{Len: 3, Items: func(yield func(any) bool) {
		_ = yield("a") && yield("b") && yield("c")
	}}
	data, err := value.Append(nil, value.Msgpack, letters)
	fmt.Printf("%q %v\n", data, err)
	letters.Len = 4
	_, err = value.Append(nil, value.Msgpack, letters)
	fmt.Println(err)
	// Output:
	// "\x93\xa1a\xa1b\xa1c" <nil>
	// value: sequence says 4 items, 3 come
}

// A map that is made while it is written.
func ExampleMapSeq() {
	squares := value.MapSeq{Len: 3, Pairs: func(yield func(k, v any) bool) {
		for i := range 3 {
			if !yield(i, i*i) {
				return
			}
		}
	}}
	data, err := value.Append(nil, value.CBOR, squares)
	fmt.Printf("%x %v\n", data, err)
	// Output: a3000001010204 <nil>
}

func ExampleExtValue() {
	v, err := value.Decode(value.Msgpack, []byte("\xd4\x05\xaa"), value.Limits{})
	fmt.Printf("%v %v\n", v, err)
	data, err := value.Append(nil, value.Msgpack, value.ExtValue{Type: 5, Data: []byte{0xaa}})
	fmt.Printf("%x %v\n", data, err)
	// Output:
	// {5 [170]} <nil>
	// d405aa <nil>
}

// The values of a stream, each of which is whole before the next one arrives.
func ExampleNewStream() {
	s := value.NewStream(value.Msgpack, strings.NewReader("\xa3one\x92\x01\x02\xa5thr"), -1, value.Limits{})
	w := value.NewJSONWriter(os.Stdout, value.Limits{}, nil, nil)
	var err error
	for err == nil {
		if err = w.WriteValue(s); err == nil {
			err = w.Flush()
		}
	}
	if err != io.EOF {
		fmt.Println()
		fmt.Println(err, value.IsTruncated(err))
	}
	// Output:
	// "one"
	// [1,2]
	// value: input ends within a string: at least 2 more bytes expected (offset 0x7) true
}

// The bytes of one value, without a look at what is in it.
func ExampleScanner_Raw() {
	s := value.NewScanner(value.CBOR, []byte("\x82\x83\x01\x02\x03\x61a"), value.Limits{})
	s.Next() // into the list
	for {
		raw, err := s.Raw()
		if err != nil || raw == nil {
			break
		}
		fmt.Printf("% x\n", raw)
	}
	// Output:
	// 83 01 02 03
	// 61 61
}

func ExampleIsTruncated() {
	whole := []byte("\x92\xa3one\xa3two")
	var have bytes.Buffer
	for _, b := range whole {
		have.WriteByte(b)
		if v, err := value.Decode(value.Msgpack, have.Bytes(), value.Limits{}); err == nil {
			fmt.Println(have.Len(), v)
		} else if !value.IsTruncated(err) {
			fmt.Println(err)
		}
	}
	// Output: 9 [one two]
}
