package seriesparquet

import (
	"fmt"

	"github.com/spilehq/spile/fault"
)

// guard runs a call of the library, and makes an error of its panic. The library decodes with indexes that it takes from the
// file, and relies on the bounds checks of Go where they lie outside: a broken file then panics, which for a program that
// reads files of others is an error like any. No state of ours is held across the call, and what the library holds is
// dropped after it.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Corrupt, "seriesparquet", "the file is broken: %s", fault.OneLine(fmt.Sprint(p)))
		}
	}()
	return call()
}
