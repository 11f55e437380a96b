package series

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
)

// failed is a fault of a file: the number of the check, and both sides of the mismatch.
func failed(class error, check int, format string, args ...any) *fault.Error {
	return fault.New(class, "series", "check "+strconv.Itoa(check)+": "+format, args...)
}

// corrupt is failed for the class of most checks.
func corrupt(check int, format string, args ...any) *fault.Error {
	return failed(fault.Corrupt, check, format, args...)
}

// Check is the number of the check that a fault of a file failed (docs/format/series.md, "Checks"), 0 for another error.
func Check(err error) int {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Package != "series" {
		return 0
	}
	text, ok := strings.CutPrefix(f.Msg, "check ")
	if !ok {
		return 0
	}
	text, _, _ = strings.Cut(text, ":")
	n, _ := strconv.Atoi(text)
	return n
}
