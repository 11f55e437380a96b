package columnar

import (
	"math"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Unit is the unit that times are exported in.
type Unit uint8

// The units.
const (
	Ticks  Unit = iota // 100 ns, as the table has them: plain numbers
	Micros             // since 1970 in a datetime
	Nanos
)

const (
	ticksPerMicro = 10
	nanosPerTick  = 100
	// maxNanoTicks is how many ticks 64 bits hold as nanoseconds: 292 years.
	maxNanoTicks = math.MaxInt64 / nanosPerTick
)

// ChooseDateTimeUnit sets the unit in which the datetimes of the column are exported without loss: microseconds when each
// of them is a whole number of those, for they reach from the year 1 to 9999; else nanoseconds, when they reach all. option
// names what the caller can set, for the message when neither is the case.
func (c *Column) ChooseDateTimeUnit(pkg, option string) error {
	part, far := [2]int{-1}, [2]int{-1}
	for row, j := range c.present() {
		v := c.Int64s[j]
		if v < 0 || v > tcb.MaxDateTime {
			return fault.New(fault.Invalid, pkg, "%d ticks are no datetime, 0 to %d are; %s exports ticks", v, int64(tcb.MaxDateTime), option).On(c.Place(row, j))
		}
		if part[0] < 0 && (v-tcb.UnixEpoch)%ticksPerMicro != 0 {
			part = [2]int{row, j}
		}
		if far[0] < 0 && !(-maxNanoTicks <= v-tcb.UnixEpoch && v-tcb.UnixEpoch <= maxNanoTicks) {
			far = [2]int{row, j}
		}
	}
	return c.choose(pkg, option, part, far, "the years 1678 to 2261")
}

// ChooseTimeSpanUnit is the same for timespans: nanoseconds when they reach all, else microseconds.
func (c *Column) ChooseTimeSpanUnit(pkg, option string) error {
	part, far := [2]int{-1}, [2]int{-1}
	for row, j := range c.present() {
		v := c.Int64s[j]
		if part[0] < 0 && v%ticksPerMicro != 0 {
			part = [2]int{row, j}
		}
		if far[0] < 0 && !(-maxNanoTicks <= v && v <= maxNanoTicks) {
			far = [2]int{row, j}
		}
	}
	if far[0] < 0 {
		c.Unit = Nanos
		return nil
	}
	return c.choose(pkg, option, part, far, "292 years")
}

func (c *Column) choose(pkg, option string, part, far [2]int, reach string) error {
	switch {
	case part[0] < 0:
		c.Unit = Micros
	case far[0] < 0:
		c.Unit = Nanos
	default:
		other := ""
		if part != far {
			other = c.Place(part[0], part[1]) + ", " + c.text(part[1]) + ", "
		}
		return fault.New(fault.Invalid, pkg, "%s is beyond %s, which nanoseconds reach, and %shas parts of a microsecond: no unit holds both, %s exports ticks",
			c.text(far[1]), reach, other, option).On(c.Place(far[0], far[1]))
	}
	return nil
}

func (c *Column) text(j int) string {
	if c.Field.Logical == tcb.TimeSpan {
		return string(tcb.AppendTimeSpan(nil, c.Int64s[j]))
	}
	text, _ := tcb.AppendDateTime(nil, c.Int64s[j]) // the range was checked
	return string(text)
}

// Time is value j in the unit of the column.
func (c *Column) Time(j int) int64 {
	v := c.Int64s[j]
	if c.Unit != Ticks && c.Field.Logical == tcb.DateTime {
		v -= tcb.UnixEpoch
	}
	switch c.Unit {
	case Micros:
		return v / ticksPerMicro
	case Nanos:
		return v * nanosPerTick
	}
	return v
}
