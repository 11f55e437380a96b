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
	once        map[string]*repeated
	warnings    []Warning
}

// repeated is a fault that is listed once.
type repeated struct {
	e     *fault.Error // in the list
	again int
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

// Once notes a fault that one row after another can have, such as a column that the schema does not have: it is listed
// where it is first, and the others are told in the same message. The key says which are the same; [Faults.Again] comes
// before.
func (f *Faults) Once(key string, err error, where string) {
	n := len(f.list)
	f.Add(err, where)
	if len(f.list) == n {
		return // it is counted only, and so are the others
	}
	r := &repeated{}
	r.e, _ = f.list[n].(*fault.Error)
	if f.once == nil {
		f.once = make(map[string]*repeated)
	}
	f.once[key] = r
}

// Again reports whether a fault with the key was noted, and counts that it is there again.
func (f *Faults) Again(key string) bool {
	r := f.once[key]
	if r != nil {
		r.again++
	}
	return r != nil
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
	for _, r := range f.once {
		if r.e != nil && r.again > 0 {
			r.e.Msg += fmt.Sprintf("; so in %d more", r.again)
		}
		r.again = 0
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
