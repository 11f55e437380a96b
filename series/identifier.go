package series

import (
	"cmp"
	"fmt"
	"math"
)

// ID identifies a series.
type ID struct {
	Table uint32
	TSID  uint64
}

// Compare orders identifiers as numbers: by table, then by TSID.
func (a ID) Compare(b ID) int {
	if a.Table != b.Table {
		return cmp.Compare(a.Table, b.Table)
	}
	return cmp.Compare(a.TSID, b.TSID)
}

// Less reports whether a is before b.
func (a ID) Less(b ID) bool { return a.Compare(b) < 0 }

// String is "TABLE/TSID".
func (a ID) String() string { return fmt.Sprintf("%d/%d", a.Table, a.TSID) }

// Range is a range of identifiers, both ends inclusive. One that ends in front of where it begins has none in it.
type Range struct{ First, Last ID }

// everything is the range of every identifier.
var everything = Range{Last: ID{math.MaxUint32, math.MaxUint64}}

// TableRange is the range of all series of a table.
func TableRange(table uint32) Range { return Range{ID{table, 0}, ID{table, math.MaxUint64}} }

// contains reports whether the range has the identifier in it.
func (r Range) contains(id ID) bool { return !id.Less(r.First) && !r.Last.Less(id) }

// meets reports whether the two ranges have an identifier in common.
func (r Range) meets(s Range) bool {
	return !r.Last.Less(s.First) && !s.Last.Less(r.First) && !r.empty() && !s.empty()
}

func (r Range) empty() bool { return r.Last.Less(r.First) }

// covers reports whether all of s lies in r.
func (r Range) covers(s Range) bool { return r.contains(s.First) && r.contains(s.Last) }
