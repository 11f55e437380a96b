package value_test

import (
	"fmt"
	"io"

	"github.com/spilehq/spile/value"
)

func ExampleScanner() {
	s := value.NewScanner(value.Msgpack, []byte("\x81\xa4runs\x92\x01\xa3two"), value.Limits{})
	for {
		err := s.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			fmt.Println(err)
			break
		}
		if s.Kind == value.String {
			fmt.Printf("%d: %s %q\n", s.Start(), s.Kind, s.Data)
		} else {
			fmt.Printf("%d: %s\n", s.Start(), s.Kind)
		}
	}
	// Output:
	// 0: map
	// 1: string "runs"
	// 6: list
	// 7: int
	// 8: string "two"
	// 12: end
	// 12: end
}

func ExampleSkip() {
	data := []byte("\x83\x01\x02\x03\x9f\x18\x2a\xff") // [1, 2, 3] and [_ 42]
	n, err := value.Skip(value.CBOR, data, 1, value.Limits{})
	fmt.Println(n, err)
	_, err = value.Skip(value.CBOR, data[:7], 2, value.Limits{})
	fmt.Println(err, value.IsTruncated(err))
	// Output:
	// 4 <nil>
	// unexpected EOF true
}

// A value that stands deep in another one keeps to the limit of the whole.
func ExampleLimits_Within() {
	lim := value.Limits{Depth: 3}
	data := []byte("\x81\x81\x01") // [[1]]
	_, err := value.Decode(value.CBOR, data, lim.Within(1))
	fmt.Println(err)
	_, err = value.Decode(value.CBOR, data, lim.Within(2))
	fmt.Println(err)
	// Output:
	// <nil>
	// value: 0: nested deeper than 3 (offset 0x1)
}

func ExampleReadHead() {
	h, err := value.ReadHead(value.CBOR, []byte("\x98\x64"))
	fmt.Println(h.Kind, h.Arg, h.Size, err)
	// Output: list 100 2 <nil>
}
