package fault_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/spilehq/spile/fault"
)

func Example() {
	err := error(fault.New(fault.Corrupt, "msglc", "leaf ends at %#x, payload at %#x", 0x1f3, 0x1f0).In("run.msg").On("runs/3").At(0x5123))
	fmt.Println(err)
	fmt.Println(errors.Is(err, fault.Corrupt), errors.Is(err, fault.Limit))

	var f *fault.Error
	if errors.As(err, &f) && f.Offset != fault.NoOffset {
		fmt.Println(f.Object, f.Where, f.Offset)
	}
	// Output:
	// msglc: run.msg: runs/3: leaf ends at 0x1f3, payload at 0x1f0 (offset 0x5123)
	// true false
	// run.msg runs/3 20771
}

// The fault of a part says where it is in the whole.
func ExampleLocate() {
	err := error(fault.New(fault.Corrupt, "value", "no such head").At(3))
	fmt.Println(fault.Locate(err, "run.msg", "runs/3", 0x100))
	fmt.Println(fault.Shift(err, 0x10))
	// Output:
	// value: run.msg: runs/3: no such head (offset 0x103)
	// value: no such head (offset 0x13)
}

// Bytes that end too early.
func ExampleShort() {
	err := error(fault.New(fault.Corrupt, "value", "input ends within a string").At(3).Because(fault.Short(4)))
	fmt.Println(err)
	fmt.Println(errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// value: input ends within a string: at least 4 more bytes expected (offset 0x3)
	// true
}

func ExampleOneLine() {
	fmt.Println(fault.OneLine("two\nlines"))
	// Output: two\u000alines
}
