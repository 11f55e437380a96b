package value

import (
	"math"
	"slices"

	"github.com/spilehq/spile/fault"
)

// counts holds the number of items, or pairs, of the containers of indefinite length of a value, in the order of their
// heads. Most are small: a byte each. The others stand beside it, and have more bytes of input than they take here.
type counts struct {
	small     []uint8
	big       []bigCount // in the order of their heads
	next      int        // in small
	nextInBig int
}

type bigCount struct{ head, items int }

const isBig = math.MaxUint8

// take returns the count of the next container.
func (c *counts) take() int {
	n := int(c.small[c.next])
	c.next++
	if n == isBig {
		n = c.big[c.nextInBig].items
		c.nextInBig++
	}
	return n
}

// countItems reads one value of s and counts in its containers of indefinite length, with memory bytes at most.
func countItems(s *Scanner, memory int) (*counts, error) {
	type openCount struct {
		head  int // in small, -1 when the length is definite
		items int
		isMap bool
	}
	c := new(counts)
	var open []openCount
	for {
		if err := s.Next(); err != nil {
			return nil, notEmpty(err)
		}
		switch s.Kind {
		case Tag:
			continue
		case Array, Map:
			in := openCount{head: -1, isMap: s.Kind == Map}
			if s.Len < 0 {
				in.head = len(c.small)
				c.small = append(c.small, 0)
				if cap(c.small)+16*cap(c.big) > memory {
					return nil, fault.New(fault.Limit, "value", "counts of containers of indefinite length take more than %d bytes",
						memory).At(s.Start())
				}
			}
			open = append(open, in)
			continue
		case End:
			in := open[len(open)-1]
			open = open[:len(open)-1]
			if in.isMap {
				in.items /= 2
			}
			if in.head >= 0 && in.items < isBig {
				c.small[in.head] = uint8(in.items)
			} else if in.head >= 0 {
				c.small[in.head] = isBig
				c.big = append(c.big, bigCount{in.head, in.items})
			}
		}
		if len(open) == 0 {
			break
		}
		open[len(open)-1].items++
	}
	slices.SortFunc(c.big, func(a, b bigCount) int { return a.head - b.head })
	return c, nil
}
