package tcb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// ParseSchema reads the JSON form of a schema and checks it. A message about it names the column, and the line and the
// character in the text.
func ParseSchema(text []byte) (*Schema, error) {
	p := &schemaText{bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))}
	d := json.NewDecoder(bytes.NewReader(p.text))
	var all json.RawMessage
	if err := d.Decode(&all); err != nil {
		at := d.InputOffset()
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = s.Offset - 1
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			at, err = int64(len(p.text)), errors.New("it ends too early")
		}
		return nil, p.unreadable(at, "%v", err)
	}
	end := d.InputOffset()
	if rest := bytes.TrimLeft(p.text[end:], " \t\r\n"); len(rest) > 0 {
		return nil, p.unreadable(int64(len(p.text)-len(rest)), "there is more behind it")
	}
	s, err := p.schema(part{all, end - int64(len(all))})
	if err != nil {
		return nil, err
	}
	return s, s.Check()
}

// schemaText is the text of a schema.
type schemaText struct{ text []byte }

// part is a value in the text, and where it begins.
type part struct {
	raw json.RawMessage
	at  int64
}

// bad is an error about what begins at an offset.
func (p *schemaText) bad(at int64, format string, args ...any) *fault.Error {
	before := p.text[:min(max(at, 0), int64(len(p.text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	character := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fault.New(fault.Invalid, "tcb", "%s (line %d, character %d)", fmt.Sprintf(format, args...), line, character)
}

func (p *schemaText) unreadable(at int64, format string, args ...any) *fault.Error {
	return p.bad(at, "the schema is not readable: %s", fmt.Sprintf(format, args...))
}

// The members of the objects in a schema.
var (
	schemaMembers   = []string{"table", "columns", "reserved"}
	columnMembers   = []string{"tag", "name", "type", "optional", "elementOptional", "enum"}
	reservedMembers = []string{"tag", "name"}
)

func (p *schemaText) schema(v part) (*Schema, error) {
	members, err := p.members(v, "the schema", schemaMembers)
	if err != nil {
		return nil, err
	}
	s := &Schema{}
	if err := p.value(members, "table", &s.Table, "text"); err != nil {
		return nil, err
	}
	columns, ok := members["columns"]
	if !ok {
		return nil, p.unreadable(v.at, `it has no "columns"`)
	}
	list, err := p.list(columns, "columns")
	if err != nil {
		return nil, err
	}
	for i, c := range list {
		f := Field{}
		if err := p.column(c, columnMembers, &f); err != nil {
			return nil, fault.Locate(err, "", place(i, &f), 0)
		}
		s.Columns = append(s.Columns, f)
	}
	if reserved, ok := members["reserved"]; ok {
		if list, err = p.list(reserved, "reserved"); err != nil {
			return nil, err
		}
	} else {
		list = nil
	}
	for i, c := range list {
		f := Field{}
		if err := p.column(c, reservedMembers, &f); err != nil {
			return nil, fault.Locate(err, "", "reserved column "+strconv.Itoa(i+1), 0)
		}
		s.Reserved = append(s.Reserved, f)
	}
	return s, nil
}

// column reads a column, or one that is reserved. After an error, tag and name are set as far as they are there.
func (p *schemaText) column(v part, known []string, f *Field) error {
	members, err := p.members(v, "a column", known)
	for name, to := range map[string]any{"tag": &f.Tag, "name": &f.Name} {
		if m, ok := members[name]; ok {
			_ = json.Unmarshal(m.raw, to) // what is wrong is found below
		}
	}
	if err != nil {
		return err
	}
	if err := p.value(members, "tag", &f.Tag, "a whole number from 1 to 2147483647"); err != nil {
		return err
	}
	if err := p.value(members, "name", &f.Name, "text"); err != nil {
		return err
	}
	if len(known) < len(columnMembers) {
		return nil
	}
	at, name := v.at, ""
	if m, ok := members["type"]; ok {
		at = m.at
	}
	if err := p.value(members, "type", &name, "text"); err != nil {
		return err
	}
	if err := f.setType(name); err != nil {
		return p.bad(at, "%s", fault.OneLine(withoutPackage(err)))
	}
	if err := p.value(members, "optional", &f.Type.Optional, "true or false"); err != nil {
		return err
	}
	if err := p.value(members, "elementOptional", &f.Type.ElementOptional, "true or false"); err != nil {
		return err
	}
	labels, ok := members["enum"]
	if !ok {
		return nil
	}
	numbers, err := p.members(labels, `"enum"`, nil)
	if err != nil {
		return err
	}
	f.Labels = make(map[string]int32, len(numbers))
	for _, l := range sortedByPlace(numbers) {
		var n int32
		if err := p.value(numbers, l, &n, "a whole number of 32 bits"); err != nil {
			return err
		}
		f.Labels[l] = n
	}
	return nil
}

func withoutPackage(err error) string {
	f, _ := errors.AsType[*fault.Error](err)
	return f.Msg
}

func sortedByPlace(m map[string]part) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return int(m[a].at - m[b].at) })
	return names
}

// members takes an object apart, whose members are among those known, any where none is. Null is as if it was not there.
func (p *schemaText) members(v part, what string, known []string) (map[string]part, error) {
	if v.raw[0] != '{' {
		return nil, p.bad(v.at, "%s is %s, want an object", what, v.what())
	}
	d := json.NewDecoder(bytes.NewReader(v.raw))
	d.Token() // the text was read once, so that there are no errors
	out, seen := make(map[string]part), make(map[string]bool)
	var first error
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		m := part{}
		if err := d.Decode(&m.raw); err != nil {
			return out, p.bad(v.at, "%v", err)
		}
		m.at = v.at + d.InputOffset() - int64(len(m.raw))
		switch {
		case first != nil:
		case seen[name]:
			first = p.bad(m.at, "%q is there twice", name)
		case known != nil && !slices.Contains(known, name):
			first = p.bad(m.at, "%s has no member %q; %s are known", what, name, strings.Join(known, ", "))
		}
		seen[name] = true
		if string(m.raw) != "null" {
			out[name] = m
		}
	}
	return out, first
}

// list takes an array apart.
func (p *schemaText) list(v part, name string) ([]part, error) {
	if v.raw[0] != '[' {
		return nil, p.bad(v.at, "%q is %s, want an array", name, v.what())
	}
	d := json.NewDecoder(bytes.NewReader(v.raw))
	d.Token()
	out := []part{}
	for d.More() {
		m := part{}
		if err := d.Decode(&m.raw); err != nil {
			return out, p.bad(v.at, "%v", err)
		}
		m.at = v.at + d.InputOffset() - int64(len(m.raw))
		out = append(out, m)
	}
	return out, nil
}

// value reads a member, if it is there.
func (p *schemaText) value(members map[string]part, name string, to any, want string) error {
	m, ok := members[name]
	if !ok || json.Unmarshal(m.raw, to) == nil {
		return nil
	}
	return p.bad(m.at, "%q is %s, want %s", name, m.what(), want)
}

// what names a value in messages.
func (v part) what() string {
	switch v.raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	}
	text := string(v.raw)
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}
