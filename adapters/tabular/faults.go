package tabular

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spilehq/spile/fault"
)

// Faults collects what is wrong with the input of one run, and what is odd about it.
type Faults struct {
	pkg, object string
	max         int
	list        []error
	count       int
	warnings    []Warning
}

// NewFaults returns an empty list. pkg and the name of the options stand in front of each message.
func NewFaults(pkg string, o *Options) *Faults {
	max := o.MaxErrors
	if max <= 0 {
		max = 100
	}
	return &Faults{pkg: pkg, object: o.Name, max: max}
}

// Add notes a fault at a place of the input. A fault of a package below gets the name of this one.
func (f *Faults) Add(err error, where string) {
	f.count++
	if len(f.list) >= f.max {
		return
	}
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f.list = append(f.list, fault.New(nil, f.pkg, "").In(f.object).On(where).Because(err))
		return
	}
	c := *e
	c.Package, c.Object = f.pkg, f.object
	switch {
	case c.Where == "":
		c.Where = where
	case where != "":
		c.Where = where + ", " + c.Where
	}
	f.list = append(f.list, &c)
}

// Full reports whether further faults are counted only, so that their text need not be made.
func (f *Faults) Full() bool { return len(f.list) >= f.max }

// Count notes a fault without its text.
func (f *Faults) Count() { f.count++ }

// Warn notes something odd that is no error.
func (f *Faults) Warn(where string, count int, format string, args ...any) {
	f.warnings = append(f.warnings, Warning{Where: where, Count: count, Msg: fmt.Sprintf(format, args...)})
}

// Warnings are those noted so far.
func (f *Faults) Warnings() []Warning { return f.warnings }

// Err is nil when nothing is wrong, else an [*Errors].
func (f *Faults) Err() error {
	if f.count == 0 {
		return nil
	}
	return &Errors{List: f.list, Count: f.count}
}

// Errors is everything that is wrong with an input.
type Errors struct {
	List  []error // the first of them
	Count int     // of all
}

// Error has a line for each error in the list, and one for those that are not in it.
func (e *Errors) Error() string {
	var b strings.Builder
	for i, err := range e.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	if n := e.Count - len(e.List); n > 0 {
		fmt.Fprintf(&b, "\nand %d more", n)
	}
	return b.String()
}

// Unwrap gives the errors in the list.
func (e *Errors) Unwrap() []error { return e.List }

// Warning is something that was read, or left out, in a way that the user may not expect.
type Warning struct {
	Where string // the first place
	Count int    // how often
	Msg   string // with the count in it
}

// String is the place and the message.
func (w Warning) String() string {
	if w.Where == "" {
		return w.Msg
	}
	return w.Where + ": " + w.Msg
}
