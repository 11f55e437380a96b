// Package fault holds the error classes of Spile and the error type that names the place of a fault.
//
// Every error that leaves the library about data, a source or an argument is an [*Error]. Its class is one of the
// sentinels below, so that callers decide with [errors.Is]:
//
//	if errors.Is(err, fault.Corrupt) { … }
//
// and its text is one line, the package once in front, both sides of a mismatch in the message:
//
//	msglc: run.msg: runs/3: leaf ends at 0x1f3, payload at 0x1f0 (offset 0x5123)
package fault

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The classes of a fault.
var (
	// Corrupt: bytes break a rule of their format.
	Corrupt = errors.New("corrupt")
	// UnsupportedVersion: the bytes are of a version of the format that is not read.
	UnsupportedVersion = errors.New("unsupported version")
	// UnsupportedCodec: the bytes use a codec, encoding or compression that is not read, or not the one demanded.
	UnsupportedCodec = errors.New("unsupported codec")
	// Limit: a limit of the reader (depth, bytes, requests, entries) would be passed.
	Limit = errors.New("limit exceeded")
	// Changed: the source is no longer the object that was opened.
	Changed = errors.New("source changed")
	// Conflict: two inputs cannot both hold (a double key, a name taken twice, an output that exists).
	Conflict = errors.New("conflict")
	// Invalid: the caller's argument or input cannot be used as asked.
	Invalid = errors.New("invalid")
	// NotFound: the key, index, row, column or file does not exist.
	NotFound = errors.New("not found")
)

// NoOffset is the value of [Error.Offset] when no byte offset is known.
const NoOffset = -1

// Error is a fault with its class and its place.
type Error struct {
	Class   error  // one of the classes above; nil for the system: a disk, a permission, a context that ended
	Package string // the package that reports it, without a colon
	Object  string // the file or URL, "" when unknown
	Where   string // the place inside it: a document path, a column, a block; "" when there is none
	Offset  int64  // the byte offset in the object, NoOffset when unknown
	Msg     string // what is wrong, both sides of a mismatch
	Err     error  // the cause, nil when there is none; one without text is for programs, and not shown
}

// New returns an error of the class, without a place. The message is made as by [fmt.Sprintf]; it starts in lower
// case and holds no package prefix.
func New(class error, pkg, format string, args ...any) *Error {
	return &Error{Class: class, Package: pkg, Offset: NoOffset, Msg: fmt.Sprintf(format, args...)}
}

// At sets the byte offset and returns e.
func (e *Error) At(offset int64) *Error { e.Offset = offset; return e }

// On sets the place inside the object and returns e.
func (e *Error) On(where string) *Error { e.Where = where; return e }

// In sets the object and returns e.
func (e *Error) In(object string) *Error { e.Object = object; return e }

// Because sets the cause and returns e.
func (e *Error) Because(err error) *Error { e.Err = err; return e }

// Error returns the one-line text.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Package != "" {
		b.WriteString(e.Package)
		b.WriteString(": ")
	}
	for _, s := range []string{e.Object, e.Where} {
		if s != "" {
			b.WriteString(OneLine(s))
			b.WriteString(": ")
		}
	}
	b.WriteString(OneLine(e.Msg))
	if e.Err != nil && (e.Msg == "" || e.Err != io.ErrUnexpectedEOF) { // that input ended is said in the message
		text := cause(e.Err)
		if e.Msg != "" && text != "" {
			b.WriteString(": ")
		}
		b.WriteString(text)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " (offset %#x)", e.Offset)
	}
	return b.String()
}

// Short is the cause of a fault of bytes that end too early: so many more are expected at least, 0 where that is not
// known; then it has no text. [errors.Is] takes it for [io.ErrUnexpectedEOF].
type Short int64

// Error says how many bytes are expected.
func (s Short) Error() string {
	switch s {
	case 0:
		return ""
	case 1:
		return "at least 1 more byte expected"
	}
	return fmt.Sprintf("at least %d more bytes expected", int64(s))
}

// Is reports whether target is [io.ErrUnexpectedEOF].
func (s Short) Is(target error) bool { return target == io.ErrUnexpectedEOF }

// Unwrap gives the class and the cause, so that [errors.Is] finds both.
func (e *Error) Unwrap() []error {
	var tree []error
	if e.Class != nil {
		tree = append(tree, e.Class)
	}
	if e.Err != nil {
		tree = append(tree, e.Err)
	}
	return tree
}

// Locate fills the object, and the place where it is empty, of the outermost [*Error] in err's tree and moves its
// offset by base, when the object is not named yet. Another error is returned as it is. It is how a package that reads
// bytes out of a larger object gives the faults of the packages below a place in that object.
func Locate(err error, object, where string, base int64) error {
	var e *Error
	if err == nil || !errors.As(err, &e) || e.Object != "" {
		return err
	}
	c := *e
	c.Object = object
	if c.Where == "" {
		c.Where = where
	}
	if c.Offset >= 0 {
		c.Offset += base
	}
	return &c
}

// Shift moves the byte offset of an [*Error] by base; another error, and one without an offset, is returned as it is.
// A reader of the bytes behind base uses it on what a reader of bytes from 0 reports.
func Shift(err error, base int64) error {
	e, ok := err.(*Error)
	if !ok || e.Offset < 0 || base == 0 {
		return err
	}
	c := *e
	c.Offset += base
	return &c
}

// cause is the text of the error below. A reader's own word for input that ended is none to show.
func cause(err error) string {
	if err == io.ErrUnexpectedEOF {
		return "input ends early"
	}
	return OneLine(err.Error())
}

// OneLine is s on one line, for messages and tables: line breaks and other control characters, which a name or a key
// may hold and which a terminal would obey, stand as \uXXXX, and bytes that are not UTF-8 as U+FFFD.
func OneLine(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }
