package tabular

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// Field is a cell of the header.
type Field struct {
	Name     string
	Tag      int32 // 0 where the header has none
	Reserved bool  // a column that is left out; its tag, if any, is reserved
}

// Header is a header that was read: a field for each cell, those without text among them.
type Header struct {
	Fields []Field
	Tagged bool
	place  func(cell int) string
}

// ParseHeader reads the cells of a header. place names a cell; what is wrong is added to faults.
func ParseHeader(cells []string, place func(cell int) string, faults *Faults) *Header {
	h := &Header{Fields: make([]Field, len(cells)), place: place}
	names := make(map[string]int)
	tags := make(map[int32]int)
	tagged, untagged := -1, -1
	for i, text := range cells {
		bad := func(format string, args ...any) {
			faults.Add(fault.New(fault.Invalid, "", format, args...), place(i))
		}
		if text == "" {
			continue
		}
		f := &h.Fields[i]
		name, reserved := strings.CutPrefix(text, "#")
		f.Name, f.Reserved = name, reserved
		at := strings.LastIndexByte(name, '@')
		if at >= 0 && isDigits(strings.TrimPrefix(name[at+1:], "-")) {
			n, err := strconv.ParseInt(name[at+1:], 10, 32)
			if err != nil || n < 1 {
				bad("the tag in %q, want 1 to 2147483647", text)
				tagged = i
				continue
			}
			f.Name, f.Tag = name[:at], int32(n)
			if other, ok := tags[f.Tag]; ok {
				bad("the tag in %q is that of %s too", text, place(other))
			}
			tags[f.Tag] = i
			tagged = i
		} else if untagged < 0 {
			untagged = i
		}
		if reserved {
			continue
		}
		if other, ok := names[f.Name]; ok && f.Name != "" {
			bad("the name %q is that of %s too", f.Name, place(other))
		}
		names[f.Name] = i
	}
	if tagged >= 0 && untagged >= 0 {
		faults.Add(fault.New(fault.Invalid, "", "%q carries no tag, and %q does: all names carry one, or none", cells[untagged], cells[tagged]), place(untagged))
	}
	h.Tagged = tagged >= 0
	return h
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// What stands for the column of a cell that has none.
const (
	Left    = -1 // the column is left out
	Unnamed = -2 // the header has no name for it: a value there is an error
)

// Bind finds the column of the schema for each cell, or Left or Unnamed. missing are the columns without a cell, which
// are optional. What is wrong is added to faults.
func (h *Header) Bind(s *tcb.Schema, ignoreUnknown bool, faults *Faults) (columns, missing []int) {
	if w, ok := h.left(); ok {
		faults.Warn(w.Where, w.Count, "%s", w.Msg)
	}
	columns = make([]int, len(h.Fields))
	byName := make(map[string]int, len(s.Columns))
	byTag := make(map[int32]int, len(s.Columns))
	for k := range s.Columns {
		byName[Name(&s.Columns[k])] = k
		byTag[s.Columns[k].Tag] = k
	}
	found := make([]bool, len(s.Columns))
	for i := range h.Fields {
		f := &h.Fields[i]
		columns[i] = Left
		bad := func(format string, args ...any) {
			faults.Add(fault.New(fault.Conflict, "", format, args...), h.place(i))
		}
		k, ok := byName[f.Name]
		tag, isTag := Tag(f.Name)
		switch {
		case f.Tag != 0:
			k, ok = byTag[f.Tag]
		case !ok && isTag: // as in what was written without a schema
			k, ok = byTag[tag]
		}
		switch {
		case f.Name == "" && f.Tag == 0 && !f.Reserved:
			if !ignoreUnknown {
				columns[i] = Unnamed
			}
		case f.Reserved && f.Tag != 0 && ok:
			bad("the header reserves the tag %d, which is that of %s in the schema", f.Tag, Label(&s.Columns[k]))
		case f.Reserved:
		case !ok && slices.ContainsFunc(s.Reserved, func(r tcb.Field) bool { return f.Tag != 0 && r.Tag == f.Tag }):
			bad("the tag of %q is reserved in the schema", f.Name)
		case !ok && ignoreUnknown:
		case !ok:
			bad("the schema has no column %q", h.text(f))
		case f.Tag != 0 && f.Name != "" && tag != f.Tag && s.Columns[k].Name != "" && f.Name != s.Columns[k].Name:
			bad("the header calls the tag %d %q, the schema %q", f.Tag, f.Name, s.Columns[k].Name)
		case found[k]:
			bad("%q is %s, which the header has already", h.text(f), Label(&s.Columns[k]))
		default:
			columns[i], found[k] = k, true
		}
	}
	for k := range s.Columns {
		if found[k] {
			continue
		}
		if !s.Columns[k].Type.Optional {
			faults.Add(fault.New(fault.NotFound, "", "the header has no %s, which is not optional", Label(&s.Columns[k])), "")
		}
		missing = append(missing, k)
	}
	return columns, missing
}

// left says which columns are left out since their names begin with "#" and have no tag that this reserves.
func (h *Header) left() (w Warning, ok bool) {
	var names []string
	for i := range h.Fields {
		f := &h.Fields[i]
		if !f.Reserved || f.Tag != 0 {
			continue
		}
		if w.Count++; w.Count == 1 {
			w.Where = h.place(i)
		}
		if w.Count <= 10 {
			names = append(names, strconv.Quote("#"+f.Name))
		}
	}
	text := strings.Join(names, ", ")
	if n := w.Count - len(names); n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	w.Msg = "1 column is left out: its name begins with # (" + text + ")"
	if w.Count > 1 {
		w.Msg = strconv.Itoa(w.Count) + " columns are left out: their names begin with # (" + text + ")"
	}
	return w, w.Count > 0
}

func (h *Header) text(f *Field) string {
	if f.Tag == 0 {
		return f.Name
	}
	return f.Name + "@" + strconv.Itoa(int(f.Tag))
}

// Name is what a header and a row of JSON call a column: its name, or the decimal tag.
func Name(f *tcb.Field) string {
	if f.Name != "" {
		return f.Name
	}
	return strconv.Itoa(int(f.Tag))
}

// Tag is the tag that stands in place of the name of a column.
func Tag(name string) (tag int32, ok bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	return int32(n), err == nil && n > 0 && name == strconv.FormatInt(n, 10)
}

// Label is what messages call a column.
func Label(f *tcb.Field) string {
	if f.Name == "" {
		return "column " + strconv.Itoa(int(f.Tag))
	}
	return "column " + strconv.Itoa(int(f.Tag)) + " (" + f.Name + ")"
}

// AppendHeader returns the cells of a header that reads as these fields.
func AppendHeader(fields []tcb.Field, o *Options, pkg string) ([]string, error) {
	tags := o.Tags
	cells := make([]string, len(fields))
	for i := range fields {
		cells[i] = Name(&fields[i])
		if strings.HasPrefix(cells[i], "#") {
			return nil, fault.New(fault.Invalid, pkg, "the name starts with #, which in a header leaves a column out").In(o.Name).On(Label(&fields[i]))
		}
		if at := strings.LastIndexByte(cells[i], '@'); at >= 0 && isDigits(strings.TrimPrefix(cells[i][at+1:], "-")) {
			tags = true
		}
	}
	if tags {
		for i := range fields {
			cells[i] += "@" + strconv.Itoa(int(fields[i].Tag))
		}
	}
	return cells, nil
}
