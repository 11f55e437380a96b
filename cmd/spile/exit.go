package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
)

// The exit statuses.
const (
	statusDone        = 0
	statusFailed      = 1
	statusUsage       = 2
	statusPartial     = 3
	statusChanged     = 4
	statusInterrupted = 130 // as a shell reports an interrupt
	statusReaderLeft  = 141 // as a shell reports a tool that was ended by SIGPIPE
)

// errReaderLeft is a write to a pipe that nobody reads any more, as of | head. It may have what it wanted, so nothing is
// said; but the result is not complete, so the status is not that of success.
var errReaderLeft = errors.New("standard output is closed")

// silent is an error of which the verb has said why already.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// usageError is an error of the command line.
type usageError struct{ error }

func usage(err error) error { return usageError{err} }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// finish brings out the result, the message and the receipt, and returns the exit status.
func (e *env) finish(ctx context.Context, err error) int {
	if err == nil {
		err = e.out.Flush()
	}
	if err == nil {
		err = e.stdout.err // of a write that nobody checked, such as a help text
	}
	status := e.status(ctx, err)
	var said silent
	switch {
	case status == statusInterrupted:
		e.say("interrupted")
	case err != nil && status != statusReaderLeft && !errors.As(err, &said):
		for _, one := range apart(err) {
			e.say("%s", e.hinted(one))
		}
	}
	e.printReceipt()
	return status
}

func (e *env) status(ctx context.Context, err error) int {
	var wrong usageError
	switch {
	case err == nil && e.partial:
		return statusPartial
	case err == nil:
		return statusDone
	case errors.Is(err, errReaderLeft):
		return statusReaderLeft
	case errors.As(err, &wrong), !e.started:
		return statusUsage
	case ctx.Err() != nil:
		return statusInterrupted
	case errors.Is(err, fault.Changed):
		return statusChanged
	}
	return statusFailed
}

// say prints one line on standard error, whatever the names in it hold.
func (e *env) say(format string, args ...any) {
	e.stderr.Write([]byte("spile: " + clipped(fault.OneLine(fmt.Sprintf(format, args...))) + "\n"))
}

// clipped is a message without its middle where it is longer than any that is read: names and programs may be.
func clipped(text string) string {
	const most, ends = 4096, 2000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:ends], "") + " … " + strings.ToValidUTF8(text[len(text)-ends:], "")
}

// message is the text of an error, without the package in front, which is of no use here.
func message(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err.Error()
	}
	text := err.Error()
	if whole := f.Error(); strings.HasSuffix(text, whole) {
		short := *f
		short.Package = ""
		return strings.TrimSuffix(text, whole) + short.Error()
	}
	return text
}

// named gives an error that names no file the name of one.
func named(err error, name string) error {
	list := apart(err)
	if len(list) < 2 {
		return fault.Locate(err, name, "", 0)
	}
	for i := range list {
		list[i] = named(list[i], name)
	}
	return errors.Join(list...)
}

// apart gives the errors that [errors.Join] has put side by side, and any other as it is.
func apart(err error) []error {
	switch many := err.(type) {
	case *fault.Error, *tabular.Errors:
	case interface{ Unwrap() []error }:
		var list []error
		for _, one := range many.Unwrap() {
			list = append(list, apart(one)...)
		}
		return list
	}
	return []error{err}
}

// bare is an error of the system without the path that the os package puts in front.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
