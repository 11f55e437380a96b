package store

import "github.com/spilehq/spile/fault"

// Circle finds a list that goes in a circle, and would never end: one with a page that was there before. It keeps the name of one
// page, and keeps another one after twice as many pages each time (Brent's algorithm), so that a circle of any length is found.
type Circle struct {
	kept        string
	since, span int
}

// Closed takes the name of the next page, "" for the first one, and reports whether it is known.
func (c *Circle) Closed(page string) bool {
	if c.span > 0 && page == c.kept {
		return true
	}
	if c.since++; c.since > c.span {
		c.kept, c.since, c.span = page, 0, 2*c.span+1
	}
	return false
}

// Circles is the error of a list that does not end.
func Circles(pkg, prefix string) error {
	return fault.New(fault.Corrupt, pkg, "the list of the store does not end: it leads back to a page that was there before").In(prefix)
}
