package value

import (
	"fmt"
	"iter"

	"github.com/spilehq/spile/fault"
)

// LossKind is a kind of thing that a conversion from or to JSON did not keep.
type LossKind uint8

// The kinds of loss.
const (
	LossUndefined     LossKind = iota // CBOR undefined was written as null
	LossSimple                        // a CBOR simple value was written as null
	LossTag                           // the number of a CBOR tag was dropped, its content was written
	LossNonFinite                     // NaN or an infinity was written as null
	LossNonFiniteText                 // NaN or an infinity was written as a string
	LossUTF8                          // bytes of a string that are not UTF-8 were replaced
	LossKey                           // a key that is not a string was written as one
	LossPair                          // a pair was dropped, its key occurs twice
	LossDigits                        // a number in JSON text has digits that its float64 does not keep
	LossSign                          // -0 in JSON text was read as the integer 0
	lossKinds
)

var lossTexts = [lossKinds]string{
	LossUndefined:     "undefined written as null",
	LossSimple:        "CBOR simple value written as null",
	LossTag:           "CBOR tag dropped, its content kept",
	LossNonFinite:     "NaN or infinity written as null",
	LossNonFiniteText: "NaN or infinity written as a string",
	LossUTF8:          "invalid UTF-8 replaced by U+FFFD",
	LossKey:           "key that is not a string written as a string",
	LossPair:          "pair dropped, its key occurs twice",
	LossDigits:        "digits of a number lost, a float64 does not hold them",
	LossSign:          "integer -0 read as 0",
}

// String says what was lost.
func (k LossKind) String() string {
	if k < lossKinds {
		return lossTexts[k]
	}
	return fmt.Sprintf("loss(%d)", uint8(k))
}

// Loss is one kind of loss with how often it was and where the first one is.
type Loss struct {
	Kind   LossKind
	Count  int64
	Where  string // the place that was set by [JSONWriter.At], "" when none was
	Offset int64  // of the first one, negative when it has none
}

// String gives one line: what, how often, where first.
func (l Loss) String() string {
	times := "once"
	if l.Count != 1 {
		times = fmt.Sprintf("%d times", l.Count)
	}
	where := l.Where
	if l.Offset >= 0 {
		if where != "" {
			where += ", "
		}
		where += fmt.Sprintf("offset %#x", l.Offset)
	}
	if l.Count != 1 {
		where = "first at " + where
	} else {
		where = "at " + where
	}
	return fmt.Sprintf("%s: %s, %s", l.Kind, times, where)
}

// Losses collects what one or more conversions could not keep. The zero value is ready; it is not safe for concurrent
// use.
type Losses struct {
	kinds [lossKinds]Loss
}

// All gives the kinds of loss that occurred, in the order of their constants.
func (l *Losses) All() iter.Seq[Loss] {
	return func(yield func(Loss) bool) {
		for _, loss := range l.kinds {
			if loss.Count > 0 && !yield(loss) {
				return
			}
		}
	}
}

// Count is the number of losses of all kinds.
func (l *Losses) Count() int64 {
	var n int64
	for _, loss := range l.kinds {
		n += loss.Count
	}
	return n
}

// Add notes a loss. where and offset are its place; a negative offset stands for none.
func (l *Losses) Add(kind LossKind, where string, offset int64) {
	loss := &l.kinds[kind]
	if loss.Count == 0 {
		loss.Kind, loss.Where, loss.Offset = kind, where, offset
	}
	loss.Count++
}

// lossFault is the error that a loss is in a conversion that must have none.
func lossFault(kind LossKind, where string, offset int64) *fault.Error {
	return fault.New(fault.Invalid, "value", "%s, and nothing may be lost", kind).On(where).At(offset).Because(PermitLossless)
}
