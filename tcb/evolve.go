package tcb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Verdict says what a reader of one schema makes of a column written by another.
type Verdict uint8

// The verdicts. Refuses and Misreads are those that no deployed reader survives.
const (
	Reads    Verdict = iota // the values as they are
	Widens                  // the values, each of which the reader's type holds
	Skips                   // the reader does not know the tag
	Empty                   // the file does not have the tag: the reader keeps empty values
	Refuses                 // the reader stops
	Misreads                // the reader goes on with values that mean something else
)

var verdictNames = [...]string{"reads", "widens", "skips", "empty", "refuses", "misreads"}

// String is the verdict in lower case, "reads".
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// Outcome is a verdict and its reasons.
type Outcome struct {
	Verdict Verdict
	// Why is "FILE -> READER" of a type that is widened; of a column that is refused, each of "type", "kind", "optional"
	// and "elementOptional" that differs; of one that is misread, what changed its meaning.
	Why []string
}

// OK reports whether a reader survives: it neither refuses nor misreads.
func (o Outcome) OK() bool { return o.Verdict < Refuses }

// String is the verdict with the reasons behind it: "refuses (type, kind)".
func (o Outcome) String() string {
	if len(o.Why) == 0 {
		return o.Verdict.String()
	}
	return o.Verdict.String() + " (" + strings.Join(o.Why, ", ") + ")"
}

// ColumnCompat is what the readers of two schemas make of the column with one tag.
type ColumnCompat struct {
	Tag         int32
	Old, New    *Field   // nil where the schema does not have the tag
	OldReadsNew Outcome  // a reader of the old schema, and a file of the new one
	NewReadsOld Outcome  // a reader of the new schema, and a file of the old one
	Warnings    []string // what may be a change of meaning, and may be none: a tag that has another name
}

// Compare says of each tag of two schemas what their readers make of one another's files, in the order of the tags. Both
// schemas have passed [Schema.Check]. Names, logical types and labels are compared where both schemas have them; that
// of a file, from [Table.Schema], has none.
func Compare(old, cur *Schema) []ColumnCompat {
	before, after := fieldsByTag(old.Columns), fieldsByTag(cur.Columns)
	reserved := fieldsByTag(old.Reserved)
	names := &columnNames{tagsByName(cur.Columns), tagsByName(old.Columns)}
	tags := make(map[int32]bool, len(after))
	for tag := range before {
		tags[tag] = true
	}
	for tag := range after {
		tags[tag] = true
	}
	out := make([]ColumnCompat, 0, len(tags))
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		o, n := before[tag], after[tag]
		c := ColumnCompat{Tag: tag, Old: o, New: n, OldReadsNew: outcome(n, o), NewReadsOld: outcome(o, n)}
		if o != nil && n != nil {
			c.meaning(names)
		}
		if r := reserved[tag]; r != nil && n != nil {
			c.Warnings = append(c.Warnings, "the old schema reserves the tag, for "+r.label()+": what once had it is read as this column")
		}
		out = append(out, c)
	}
	return out
}

func fieldsByTag(fields []Field) map[int32]*Field {
	m := make(map[int32]*Field, len(fields))
	for i := range fields {
		m[fields[i].Tag] = &fields[i]
	}
	return m
}

func tagsByName(fields []Field) map[string]int32 {
	m := make(map[string]int32, len(fields))
	for i := range fields {
		if f := &fields[i]; f.Name != "" {
			m[f.Name] = f.Tag
		}
	}
	return m
}

// outcome is what a reader's member makes of a column of a file, by what the file itself says. Nil is one that is not
// there.
func outcome(file, member *Field) Outcome {
	switch {
	case member == nil:
		return Outcome{Skips, []string{"unknown tag"}}
	case file == nil:
		return Outcome{Empty, []string{"not in the file"}}
	}
	var why []string
	f, m := file.Type, member.Type
	if !promotes(f.Element, m.Element, member.Logical) {
		why = append(why, "type")
	}
	if f.Kind != m.Kind {
		why = append(why, "kind")
	}
	if f.Optional != m.Optional {
		why = append(why, "optional")
	}
	if f.ElementOptional != m.ElementOptional {
		why = append(why, "elementOptional")
	}
	switch {
	case why != nil:
		return Outcome{Refuses, why}
	case f.Element != m.Element:
		return Outcome{Widens, []string{f.Element.String() + " -> " + m.Element.String()}}
	}
	return Outcome{Verdict: Reads}
}

// meaning looks at what no file says: names, logical types, labels.
func (c *ColumnCompat) meaning(names *columnNames) {
	o, n := c.Old, c.New
	var wrong []string
	if o.Type.Element == I64 && n.Type.Element == I64 && o.Logical != n.Logical {
		what := o.logicalName() + " is now " + n.logicalName()
		switch {
		case o.Logical != Number && n.Logical != Number:
			wrong = append(wrong, what)
		case o.Name != "" && n.Name != "": // without names it may be that of a file, which does not tell
			c.Warnings = append(c.Warnings, what+": the numbers are the same, what they count may not be")
		}
	}
	if o.Type.Element == Enum && n.Type.Element == Enum {
		changes := compareLabels(o.Labels, n.Labels)
		wrong = append(wrong, changes.renumbered...)
		for _, r := range changes.renamed {
			c.Warnings = append(c.Warnings, r+": a new name of the label, or a number that is used again")
		}
	}
	if wrong != nil {
		for _, out := range []*Outcome{&c.OldReadsNew, &c.NewReadsOld} {
			if out.OK() {
				*out = Outcome{Misreads, wrong}
			}
		}
	}
	if o.Name != "" && n.Name != "" && o.Name != n.Name {
		_, text := names.renamed(o.Name, n.Name)
		c.Warnings = append(c.Warnings, text)
	}
}

// logicalName is the type of a value: "i64", "datetime".
func (f *Field) logicalName() string { return strings.TrimSuffix(f.TypeName(), "[]") }

// labelChanges is how the labels of an enumeration differ, in words.
type labelChanges struct {
	renumbered []string // labels that have another number
	renamed    []string // numbers that have another label, where the old label is gone and the new one is new
}

// compareLabels compares labels by name. Labels that are not known on one side, and labels that were added or removed,
// are no change.
func compareLabels(old, cur map[string]int32) labelChanges {
	var c labelChanges
	if len(old) == 0 || len(cur) == 0 {
		return c
	}
	at := labelAt(cur)
	for _, label := range labelsByNumber(old) {
		was := old[label]
		is, stays := cur[label]
		now, taken := at[was]
		_, known := old[now]
		switch {
		case stays && is != was:
			c.renumbered = append(c.renumbered, fmt.Sprintf("%s was %d, is %d", label, was, is))
		case !stays && taken && !known:
			c.renamed = append(c.renamed, strconv.Itoa(int(was))+" was "+label+", is "+now)
		}
	}
	return c
}

// labelAt returns the labels by their numbers.
func labelAt(labels map[string]int32) map[int32]string {
	at := make(map[int32]string, len(labels))
	for label, number := range labels {
		at[number] = label
	}
	return at
}

// labelsByNumber returns the labels in the order of their numbers.
func labelsByNumber(labels map[string]int32) []string {
	return slices.SortedFunc(maps.Keys(labels), func(a, b string) int {
		if labels[a] != labels[b] {
			if labels[a] < labels[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}
