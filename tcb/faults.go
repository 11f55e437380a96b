package tcb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spilehq/spile/fault"
)

// Check is the number of the check that a fault of a file failed, such as "H7"; "" for another error. The numbers are
// those of docs/format/tcb.md, "Checks"; two of them are words: "sec2" is a number that is wider than its type, "text" a
// string that is no UTF-8.
func Check(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Package != "tcb" {
		return ""
	}
	id, _, ok := strings.Cut(f.Msg, ": ")
	if !ok || id != "sec2" && id != "text" && (len(id) < 2 || len(id) > 3 || strings.IndexByte("OHCD", id[0]) < 0 || strings.Trim(id[1:], "0123456789") != "") {
		return ""
	}
	return id
}

// failed is a fault of a file: the check, and both sides of the mismatch.
func failed(check, format string, args ...any) *fault.Error {
	return fault.New(checkClass(check), "tcb", check+": "+format, args...)
}

// checkClass is the class of a check; most say that the file is damaged.
func checkClass(check string) error {
	switch check {
	case "H1", "H3":
		return fault.UnsupportedVersion
	case "C4", "O6":
		return fault.UnsupportedCodec
	case "C1", "C2", "C3", "C5":
		return fault.Conflict
	case "O3", "O7", "O8":
		return fault.Invalid
	}
	return fault.Corrupt
}

// label names a column in messages.
func label(tag int32, name string) string {
	if name == "" {
		return fmt.Sprintf("column %d", tag)
	}
	return fmt.Sprintf("column %d (%s)", tag, name)
}
