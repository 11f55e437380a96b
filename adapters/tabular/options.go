package tabular

import (
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// Options are those that all text tables have. The zero value means the defaults.
type Options struct {
	Name      string // of the input or output, in messages
	MaxErrors int    // how many errors of a run are kept, the others are counted; 0: 100

	// Separator stands between the elements of an array in a cell; 0: ";".
	Separator byte
	// Null is the text that stands for an absent value in optional columns, besides an empty cell; "": `\N`.
	Null string
	// EmptyText: an empty cell of an optional column of strings or arrays is an empty one of them, not absent. Then Null
	// alone is absent.
	EmptyText bool
	// DecimalComma: numbers in text have a comma where others have a point, and no point.
	DecimalComma bool

	// IgnoreUnknown: columns that the schema does not have are left out; else they are an error.
	IgnoreUnknown bool
	// Labels: enumerations are written as labels, where the schema has one for the number.
	Labels bool
	// Tags: the header that is written carries tags, "hp@7". It does too where a name would be taken for one with a tag.
	Tags bool

	// Note, when set, is told by Infer what is odd about its input.
	Note func(Warning)
	// Progress, when set, is told now and then how many rows and how many bytes of the input or output are done.
	Progress func(rows int, bytes int64)
}

// every is how many rows pass between two looks at the context and two calls of Progress.
const every = 1 << 12

// Every reports whether it is time, at a row, to look at the context and to call Progress.
func Every(row int) bool { return row&(every-1) == 0 }

// Check refuses options that contradict one another and fills the defaults in.
func (o *Options) Check(pkg string) error {
	if o.Separator == 0 {
		o.Separator = ';'
	}
	if o.Null == "" {
		o.Null = `\N`
	}
	switch c := o.Separator; {
	case c < ' ' && c != '\t', c >= 0x7f, c == '\\', c == '"', c == '-', c == '+', c == '.', c == ':', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return fault.New(fault.Invalid, pkg, "the separator of elements is %q, want a character that stands in no number, date or uuid", c)
	case strings.ContainsAny(o.Null, "\"\r\n"), !utf8.ValidString(o.Null):
		return fault.New(fault.Invalid, pkg, "the text for absent values is %q, want UTF-8 without quotes and line breaks", o.Null)
	case c == ',' && o.DecimalComma:
		return fault.New(fault.Invalid, pkg, "the comma separates elements and stands in numbers")
	}
	return nil
}
