package tcb

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// WriteText writes the changes for people: columns, a line with the numbers, then a line or more for each row, at most
// maxRows rows; all of them when that is 0.
func (c *TableDiff) WriteText(w io.Writer, maxRows int) error {
	out := bufio.NewWriter(w)
	for _, x := range c.Columns {
		switch {
		case x.Old == "":
			fmt.Fprintf(out, "+ column %s %s\n", printable(x.Name), x.New)
		case x.New == "":
			fmt.Fprintf(out, "- column %s %s\n", printable(x.Name), x.Old)
		default:
			fmt.Fprintf(out, "~ column %s: %s\n", printable(x.Name), x.what())
		}
	}
	n := c.Count()
	fmt.Fprintln(out, c.summary(n))
	left := c.bounded(n, maxRows, func(r RowDiff) {
		name := c.rowName(r)
		switch r.Kind {
		case RowAdded:
			fmt.Fprintf(out, "+ %s: %s\n", name, printable(r.object()))
		case RowRemoved:
			fmt.Fprintf(out, "- %s: %s\n", name, printable(r.object()))
		default:
			fmt.Fprintf(out, "~ %s\n", name)
			for _, x := range r.Cells {
				fmt.Fprintf(out, "    %s: %s -> %s%s\n", printable(x.Column), printable(x.Old), printable(x.New), x.hidden())
			}
		}
	})
	if left > 0 {
		fmt.Fprintf(out, "… and %s\n", plural(left, "more row"))
	}
	return flushDiff(out)
}

// what says how a column that both tables have differs.
func (x *ColumnDiff) what() string {
	var parts []string
	if x.OldName != "" {
		parts = append(parts, "was "+printable(x.OldName))
	}
	if x.Old != x.New {
		parts = append(parts, x.Old+" -> "+x.New)
	}
	if !x.Compared {
		parts = append(parts, "values are not compared")
	}
	return strings.Join(parts, ", ")
}

func (x *CellDiff) hidden() string {
	if x.Hidden {
		return " (in what is not shown)"
	}
	return ""
}

// summary says how much differs.
func (c *TableDiff) summary(n DiffCount) string {
	if n == (DiffCount{}) {
		if len(c.Columns) == 0 {
			return "no differences"
		}
		return "no rows differ"
	}
	return fmt.Sprintf("%s, %d removed, %d changed (%s)", plural(n.Added, "row")+" added", n.Removed, n.Changed, plural(n.Cells, "cell"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// bounded calls f for maxRows rows, and returns how many are left.
func (c *TableDiff) bounded(n DiffCount, maxRows int, f func(RowDiff)) int {
	total := n.Added + n.Removed + n.Changed
	if maxRows <= 0 {
		maxRows = total
	}
	done := 0
	for r := range c.Rows() {
		if done == maxRows {
			break
		}
		f(r)
		done++
	}
	return total - done
}

// rowName is what the text calls a row.
func (c *TableDiff) rowName(r RowDiff) string {
	if c.key < 0 {
		return "row " + strconv.Itoa(max(r.Old, r.New))
	}
	return printable(c.Key) + " " + printable(r.Key)
}

// object is a row that was added or removed, as a JSON object.
func (r *RowDiff) object() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, x := range r.Cells {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonString(x.Column) + ":" + x.Old + x.New)
	}
	b.WriteByte('}')
	return b.String()
}

// jsonString is a string as JSON.
func jsonString(s string) string {
	text, _, _ := value.AppendJSONString(nil, s, &value.JSONOptions{InvalidUTF8: value.UTF8Replace}) // no error then
	return string(text)
}

// printable escapes what a terminal would not print but obey, or hide, as JSON does.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func flushDiff(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fault.New(nil, "tcb", "").Because(err)
	}
	return nil
}

// WriteJSON writes the changes as one JSON object, with at most maxRows rows; all of them when that is 0. "more" is how
// many rows are missing then.
func (c *TableDiff) WriteJSON(w io.Writer, maxRows int) error {
	out := bufio.NewWriter(w)
	n := c.Count()
	out.WriteByte('{')
	if c.key >= 0 {
		fmt.Fprintf(out, `"key":%s,`, jsonString(c.Key))
	}
	fmt.Fprintf(out, `"oldRows":%d,"newRows":%d,"added":%d,"removed":%d,"changed":%d,"cells":%d,"columns":[`, c.OldRows, c.NewRows, n.Added, n.Removed, n.Changed, n.Cells)
	for i, x := range c.Columns {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('{')
		if x.Tag > 0 {
			fmt.Fprintf(out, `"tag":%d,`, x.Tag)
		}
		fmt.Fprintf(out, `"name":%s`, jsonString(x.Name))
		if x.OldName != "" {
			fmt.Fprintf(out, `,"oldName":%s`, jsonString(x.OldName))
		}
		if x.Old != "" {
			fmt.Fprintf(out, `,"old":%s`, jsonString(x.Old))
		}
		if x.New != "" {
			fmt.Fprintf(out, `,"new":%s`, jsonString(x.New))
		}
		if x.Old != "" && x.New != "" {
			fmt.Fprintf(out, `,"compared":%t`, x.Compared)
		}
		out.WriteByte('}')
	}
	out.WriteString(`],"rows":[`)
	first := true
	left := c.bounded(n, maxRows, func(r RowDiff) {
		if !first {
			out.WriteByte(',')
		}
		first = false
		fmt.Fprintf(out, `{"change":"%s"`, r.Kind)
		if r.Key != "" {
			fmt.Fprintf(out, `,"key":%s`, r.Key)
		}
		if r.Old >= 0 {
			fmt.Fprintf(out, `,"oldRow":%d`, r.Old)
		}
		if r.New >= 0 {
			fmt.Fprintf(out, `,"newRow":%d`, r.New)
		}
		out.WriteString(`,"cells":[`)
		for i, x := range r.Cells {
			if i > 0 {
				out.WriteByte(',')
			}
			fmt.Fprintf(out, `{"column":%s`, jsonString(x.Column))
			if x.Old != "" {
				fmt.Fprintf(out, `,"old":%s`, x.Old)
			}
			if x.New != "" {
				fmt.Fprintf(out, `,"new":%s`, x.New)
			}
			if x.Hidden {
				out.WriteString(`,"hidden":true`)
			}
			out.WriteByte('}')
		}
		out.WriteString(`]}`)
	})
	out.WriteByte(']')
	if left > 0 {
		fmt.Fprintf(out, `,"more":%d`, left)
	}
	out.WriteString("}\n")
	return flushDiff(out)
}

// WriteMarkdown writes the changes as tables of GitHub's Markdown, with at most maxRows rows; all of them when that is 0.
func (c *TableDiff) WriteMarkdown(w io.Writer, maxRows int) error {
	out := bufio.NewWriter(w)
	n := c.Count()
	fmt.Fprintf(out, "**%s**\n", c.summary(n))
	if len(c.Columns) > 0 {
		out.WriteString("\n| | Column | Old | New |\n|---|---|---|---|\n")
		for _, x := range c.Columns {
			name, mark := markdownCode(x.Name), "~"
			switch {
			case x.Old == "":
				mark = "+"
			case x.New == "":
				mark = "−"
			case !x.Compared:
				name += ", values are not compared"
			}
			if x.OldName != "" {
				name += ", was " + markdownCode(x.OldName)
			}
			fmt.Fprintf(out, "| %s | %s | %s | %s |\n", mark, name, markdownCode(x.Old), markdownCode(x.New))
		}
	}
	if n == (DiffCount{}) {
		return flushDiff(out)
	}
	head := "Row"
	if c.key >= 0 {
		head = markdownCode(c.Key)
	}
	fmt.Fprintf(out, "\n| | %s | Column | Old | New |\n|---|---|---|---|---|\n", head)
	left := c.bounded(n, maxRows, func(r RowDiff) {
		name := markdownCode(r.Key)
		if c.key < 0 {
			name = strconv.Itoa(max(r.Old, r.New))
		}
		switch r.Kind {
		case RowAdded:
			fmt.Fprintf(out, "| + | %s | | | %s |\n", name, markdownCode(r.object()))
		case RowRemoved:
			fmt.Fprintf(out, "| − | %s | | %s | |\n", name, markdownCode(r.object()))
		default:
			mark := "~"
			for _, x := range r.Cells {
				fmt.Fprintf(out, "| %s | %s | %s | %s | %s%s |\n", mark, name, markdownCode(x.Column), markdownCode(x.Old), markdownCode(x.New), x.hidden())
				mark, name = "", ""
			}
		}
	})
	if left > 0 {
		fmt.Fprintf(out, "\n… and %s\n", plural(left, "more row"))
	}
	return flushDiff(out)
}

// markdownCode is text that Markdown shows as it is, in a cell of a table.
func markdownCode(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ReplaceAll(printable(s), "|", `\|`)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}
