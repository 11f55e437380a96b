package tcb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
)

// BaselineVersion is the version of baselines that are compared. Another one holds the numbers of another version of
// the format.
const BaselineVersion = 2

// defaultComment is that of a baseline that is written for the first time.
const defaultComment = "The columns that deployed readers know. Written by the check of the schemas; keep it under version control."

// Baseline is the record of the columns that deployed readers know. The file is JSON, and is that of the
// original (docs/format/tcb.md, "Baseline"). It also records, in properties that the original passes over, the optional
// bits, the logical types and the labels of enumerations; what an existing file does not have of these is not compared.
// Properties that others have added are kept.
//
// The zero Baseline is that of a first run, against which every schema passes.
type Baseline struct {
	Comment string
	Version int // as the file states it, 0 when it does not; only BaselineVersion is compared

	tables map[string]map[int32]*record
	extra  []property
}

// record is what a baseline knows of a tag.
type record struct {
	name          string
	element       Element
	kind          Kind
	retired       bool
	explicitTag   bool
	optional      *bool // nil when it is not recorded, and below
	elemOptional  *bool
	logical       *Logical // of an I64 column
	labels        map[string]int32
	retiredLabels map[string]int32 // that were labels once, or had this number once, which no other may have
	extra         []property
}

// property is a member of a JSON object.
type property struct {
	name  string
	value json.RawMessage
}

// ParseBaseline reads a baseline. Of one whose Version is not [BaselineVersion] no more than the comment is read. A file
// that is no baseline is [fault.Corrupt], and must not be overwritten.
func ParseBaseline(text []byte) (*Baseline, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		f := unreadable(err)
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			f.At(s.Offset)
		}
		return nil, f
	}
	top, err := properties(whole)
	if err != nil {
		return nil, unreadable(err)
	}
	b := &Baseline{}
	var tables json.RawMessage
	known := len(top) == 0
	for _, p := range top {
		switch p.name {
		case "Comment":
			err = json.Unmarshal(p.value, &b.Comment)
		case "BaselineVersion":
			err = readNumber(p.value, &b.Version)
		case "Tables":
			tables = p.value
		default:
			b.extra = append(b.extra, p)
			continue
		}
		known = true
		if err != nil {
			return nil, unreadable(err).On(p.name)
		}
	}
	switch {
	case !known: // a schema, say, that was named by mistake
		return nil, unreadable(errors.New(`it has no "BaselineVersion" and no "Tables"`))
	case b.Version != BaselineVersion:
		return &Baseline{Comment: b.Comment, Version: b.Version}, nil
	case tables == nil:
		return nil, unreadable(errors.New(`it has no "Tables"`))
	}
	if err := b.parseTables(tables); err != nil {
		return nil, err
	}
	return b, nil
}

func unreadable(err error) *fault.Error {
	return fault.New(fault.Corrupt, "tcb", "the baseline is not readable").Because(err)
}

func (b *Baseline) parseTables(text json.RawMessage) error {
	tables, err := properties(text)
	if err != nil {
		return unreadable(err).On("Tables")
	}
	b.tables = make(map[string]map[int32]*record, len(tables))
	for _, t := range tables {
		tags, err := properties(t.value)
		if err != nil {
			return unreadable(err).On(t.name)
		}
		records := make(map[int32]*record, len(tags))
		for _, c := range tags {
			tag, err := strconv.ParseInt(c.name, 10, 32)
			if err != nil || tag < 1 || strconv.FormatInt(tag, 10) != c.name {
				return unreadable(fmt.Errorf("the key %q, want a tag in decimal", c.name)).On(t.name)
			}
			r, err := parseRecord(c.value)
			if err != nil {
				return unreadable(err).On(t.name + ": column " + c.name)
			}
			records[int32(tag)] = r
		}
		b.tables[t.name] = records
	}
	return nil
}

func parseRecord(text json.RawMessage) (*record, error) {
	all, err := properties(text)
	if err != nil {
		return nil, err
	}
	r := &record{}
	typed := 0
	for _, p := range all {
		switch p.name {
		case "Name":
			err = json.Unmarshal(p.value, &r.name)
		case "Element":
			typed++
			err = readNumber(p.value, &r.element)
		case "Kind":
			typed++
			err = readNumber(p.value, &r.kind)
		case "Retired":
			err = json.Unmarshal(p.value, &r.retired)
		case "ExplicitTag":
			err = json.Unmarshal(p.value, &r.explicitTag)
		case "Optional":
			err = json.Unmarshal(p.value, &r.optional)
		case "ElementOptional":
			err = json.Unmarshal(p.value, &r.elemOptional)
		case "Logical":
			r.logical, err = parseLogical(p.value)
		case "Enum":
			r.labels, err = parseLabels(p.value)
		case "EnumRetired":
			r.retiredLabels, err = parseLabels(p.value)
		default:
			r.extra = append(r.extra, p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if typed < 2 {
		return nil, errors.New(`"Element" or "Kind" is missing`)
	}
	return r, nil
}

// parseLogical reads the name of a logical type, or null.
func parseLogical(text json.RawMessage) (*Logical, error) {
	var name *string
	if err := json.Unmarshal(text, &name); err != nil || name == nil {
		return nil, err
	}
	i := slices.Index(logicalNames[:], *name)
	if i < 0 {
		return nil, fmt.Errorf("%q, want i64, datetime or timespan", *name)
	}
	return new(Logical(i)), nil
}

func parseLabels(text json.RawMessage) (map[string]int32, error) {
	all, err := properties(text)
	if err != nil {
		return nil, err
	}
	labels := make(map[string]int32, len(all))
	for _, p := range all {
		var n int32
		if err := readNumber(p.value, &n); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		labels[p.name] = n
	}
	return labels, nil
}

// readNumber reads a number, for which null is none.
func readNumber(text json.RawMessage, to any) error {
	if string(text) == "null" {
		return errors.New("null, want a number")
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%.40s, want a whole number, digits alone", text)
	}
	return nil
}

// properties returns the members of an object in their order. A name that occurs twice, which is how a bad merge looks,
// is an error: taking either could drop a tag.
func properties(text json.RawMessage) ([]property, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, fmt.Errorf("%.20s, want an object", text)
	}
	var out []property
	seen := make(map[string]bool)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		p := property{name: name.(string)}
		if err := d.Decode(&p.value); err != nil {
			return nil, err
		}
		if seen[p.name] {
			return nil, fmt.Errorf("%q occurs twice", p.name)
		}
		seen[p.name] = true
		out = append(out, p)
	}
	return out, nil
}

// AppendJSON appends the file: two blanks for each level, a line for each column, tables by name and columns by tag. The
// version it states is [BaselineVersion].
func (b *Baseline) AppendJSON(dst []byte) []byte {
	dst = append(dst, "{\n  \"Comment\": "...)
	dst = appendText(dst, b.Comment)
	dst = append(dst, ",\n  \"BaselineVersion\": "...)
	dst = strconv.AppendInt(dst, BaselineVersion, 10)
	dst = append(dst, ",\n  \"Tables\": {"...)
	for i, name := range slices.Sorted(maps.Keys(b.tables)) {
		dst = appendSeparator(dst, i, "\n    ")
		dst = append(appendText(dst, name), ": {"...)
		records := b.tables[name]
		for i, tag := range slices.Sorted(maps.Keys(records)) {
			dst = appendSeparator(dst, i, "\n      ")
			dst = append(dst, '"')
			dst = strconv.AppendInt(dst, int64(tag), 10)
			dst = append(dst, "\": "...)
			dst = records[tag].append(dst)
		}
		if len(records) > 0 {
			dst = append(dst, "\n    "...)
		}
		dst = append(dst, '}')
	}
	if len(b.tables) > 0 {
		dst = append(dst, "\n  "...)
	}
	dst = append(dst, '}')
	for _, p := range b.extra {
		dst = append(dst, ",\n  "...)
		dst = p.append(dst)
	}
	return append(dst, "\n}\n"...)
}

func (r *record) append(dst []byte) []byte {
	dst = append(dst, `{ "Name": `...)
	dst = appendText(dst, r.name)
	dst = fmt.Appendf(dst, `, "Element": %d, "Kind": %d, "Retired": %t, "ExplicitTag": %t`, uint8(r.element), uint8(r.kind), r.retired, r.explicitTag)
	if r.optional != nil {
		dst = fmt.Appendf(dst, `, "Optional": %t`, *r.optional)
	}
	if r.elemOptional != nil {
		dst = fmt.Appendf(dst, `, "ElementOptional": %t`, *r.elemOptional)
	}
	if r.logical != nil {
		dst = fmt.Appendf(dst, `, "Logical": "%s"`, logicalNames[*r.logical])
	}
	dst = appendLabels(dst, "Enum", r.labels)
	dst = appendLabels(dst, "EnumRetired", r.retiredLabels)
	for _, p := range r.extra {
		dst = append(dst, ", "...)
		dst = p.append(dst)
	}
	return append(dst, " }"...)
}

func appendLabels(dst []byte, name string, labels map[string]int32) []byte {
	if len(labels) == 0 {
		return dst
	}
	dst = fmt.Appendf(dst, `, "%s": {`, name)
	for i, label := range labelsByNumber(labels) {
		dst = appendSeparator(dst, i, " ")
		dst = fmt.Appendf(appendText(dst, label), ": %d", labels[label])
	}
	return append(dst, " }"...)
}

func (p property) append(dst []byte) []byte {
	var compact bytes.Buffer
	json.Compact(&compact, p.value) // it was parsed
	dst = append(appendText(dst, p.name), ": "...)
	return append(dst, compact.Bytes()...)
}

func appendSeparator(dst []byte, i int, blank string) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return append(dst, blank...)
}

// appendText appends a string in JSON.
func appendText(dst []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string and a buffer: there is no error
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// Rule names what a problem breaks.
type Rule string

// The rules of a baseline. The last two only warn.
const (
	TagReused      Rule = "tag-reused"      // the tag of a column that was deleted is back
	ColumnsShifted Rule = "columns-shifted" // of a table without tags of its own: a column stands where another stood
	TypeChanged    Rule = "type-changed"    // element, kind, an optional bit or the logical type; a wider type, too
	EnumRenumbered Rule = "enum-renumbered" // a label has another number, or a number another label
	ColumnDeleted  Rule = "column-deleted"  // without a tombstone
	ColumnMoved    Rule = "column-moved"    // the name of a tag is another, and one of the two has or had another tag
	ColumnRenamed  Rule = "column-renamed"  // the name of a tag is another
)

// Problem is a change that deployed readers do not survive, or, as a warning, one that they may not survive.
type Problem struct {
	Rule   Rule
	Table  string
	Column string // its name, the decimal tag where it has none
	Tag    int32
	Msg    string
	Accept string // the acknowledgement that lets it pass, "" where none does
}

// String is one line: the place and the message.
func (p *Problem) String() string {
	return p.Table + ": " + label(p.Tag, p.Column) + ": " + p.Msg
}

// BaselineOptions are the options of [Baseline.Check]. Nil and the zero value mean the defaults.
type BaselineOptions struct {
	// Accepted acknowledges, for this check alone, changes of columns, each by "Table.Column": by the name that the
	// schema gives it, or the baseline where the schema has it no more.
	Accepted []string
	// Untagged names the tables whose tags are the positions of their columns, 1 to N, and are not spelled out.
	Untagged []string
}

// BaselineReport is what a check has found.
type BaselineReport struct {
	Problems []Problem // in the order of the schemas and their columns, deleted columns last
	Warnings []Problem // in the same order; they refuse nothing, and nothing acknowledges them
	Next     *Baseline // the new state, which replaces the baseline; nil when there are problems
	Vanished []string  // tables that were not among the schemas for the first time; their tags are retired
	Unused   []string  // acknowledgements that nothing needed
}

// Check compares the schemas of all tables, each with its Table name, with the baseline, and reports all problems
// together. The baseline stays as it is.
//
// An error is of the schemas: one that does not pass [Schema.Check], has no name or that of another.
func (b *Baseline) Check(schemas []*Schema, o *BaselineOptions) (*BaselineReport, error) {
	if o == nil {
		o = &BaselineOptions{}
	}
	c := &baselineCheck{
		report: &BaselineReport{}, accepted: make(map[string]bool),
		next: &Baseline{Comment: b.Comment, Version: BaselineVersion, extra: b.extra, tables: make(map[string]map[int32]*record)},
	}
	if b.Version == 0 && b.Comment == "" {
		c.next.Comment = defaultComment
	}
	for _, name := range o.Accepted {
		c.accepted[name] = false
	}
	for _, s := range schemas {
		if err := s.Check(); err != nil {
			return nil, fault.Locate(err, "", s.Table, 0)
		}
		if s.Table == "" {
			return nil, fault.New(fault.Invalid, "tcb", "a schema names no table: the baseline cannot tell whose it is")
		}
		if _, ok := c.next.tables[s.Table]; ok {
			return nil, fault.New(fault.Invalid, "tcb", "two schemas are of the table %q", s.Table)
		}
		c.table(s, b.tables[s.Table], !slices.Contains(o.Untagged, s.Table))
	}
	for _, name := range slices.Sorted(maps.Keys(b.tables)) {
		if _, ok := c.next.tables[name]; !ok {
			c.vanished(name, b.tables[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.accepted)) {
		if !c.accepted[name] {
			c.report.Unused = append(c.report.Unused, name)
		}
	}
	if len(c.report.Problems) == 0 {
		c.report.Next = c.next
	}
	return c.report, nil
}

// baselineCheck is a check under way.
type baselineCheck struct {
	report   *BaselineReport
	next     *Baseline
	accepted map[string]bool // whether something needed the acknowledgement
}

// problem reports a change, unless it is acknowledged, and says whether it did.
func (c *baselineCheck) problem(p Problem) bool {
	if p.Rule != TagReused {
		p.Accept = p.Table + "." + p.Column
		if _, ok := c.accepted[p.Accept]; ok {
			c.accepted[p.Accept] = true
			return false
		}
	}
	c.report.Problems = append(c.report.Problems, p)
	return true
}

// table compares a schema with the records of its table.
func (c *baselineCheck) table(s *Schema, old map[int32]*record, explicit bool) {
	next := make(map[int32]*record, max(len(old), len(s.Columns)))
	c.next.tables[s.Table] = next
	gone := allRetired(old)
	names := namesOf(s, old)
	for i := range s.Columns {
		f := &s.Columns[i]
		was := old[f.Tag]
		p := Problem{Table: s.Table, Column: f.label(), Tag: f.Tag}
		if was != nil {
			if f.Name == "" && was.name != "" {
				p.Column = was.name
			}
			c.column(f, was, names, gone, explicit, p)
		}
		next[f.Tag] = newRecord(f, was, explicit)
	}
	reserved := fieldsByTag(s.Reserved)
	for _, tag := range slices.Sorted(maps.Keys(old)) {
		if next[tag] != nil {
			continue
		}
		was := old[tag]
		next[tag] = was.retire()
		if was.retired || reserved[tag] != nil {
			continue
		}
		name := was.name
		if name == "" {
			name = strconv.Itoa(int(tag))
		}
		c.problem(Problem{
			Rule: ColumnDeleted, Table: s.Table, Column: name, Tag: tag,
			Msg: fmt.Sprintf(`was deleted without a tombstone: {"tag":%d} among the "reserved" of the schema keeps the tag from being used again`, tag),
		})
	}
}

// column compares a column with the record of its tag, by the rows of docs/format/tcb.md, "Baseline", from top to
// bottom. p is the problem that it would be.
func (c *baselineCheck) column(f *Field, was *record, names *columnNames, gone, explicit bool, p Problem) {
	if was.retired {
		p.Rule = TagReused
		p.Msg = fmt.Sprintf("the tag was that of %s, which was deleted: no other column may have it; give this one a new tag", was.label(f.Tag))
		if gone {
			p.Msg = fmt.Sprintf("the table had vanished, and the tag, of %s then, is retired like all its tags: coming back it needs new ones", was.label(f.Tag))
		}
		c.problem(p)
		return
	}
	if !explicit && !was.explicitTag && f.Name != "" && f.Name != was.name {
		p.Rule = ColumnsShifted
		p.Msg = fmt.Sprintf("stands where %s stood: without tags that are spelled out, columns can only be added behind the last", was.label(f.Tag))
		if c.problem(p) {
			return
		}
	} else if old := was.givenName(f.Tag); old != "" && f.Name != "" && old != f.Name {
		w := p
		w.Rule, w.Msg = names.renamed(old, f.Name)
		c.report.Warnings = append(c.report.Warnings, w)
	}
	c.columnType(f, was, p)
	if f.Type.Element != Enum || was.element != Enum || len(f.Labels) == 0 {
		return
	}
	changes := compareLabels(was.labels, f.Labels)
	wrong := slices.Concat(changes.renumbered, changes.renamed, retiredChanges(was, f.Labels))
	if wrong != nil {
		p.Rule = EnumRenumbered
		p.Msg = strings.Join(wrong, ", ") + ": deployed readers take one for the other"
		c.problem(p)
	}
}

// columnType compares the type, and the logical type where both sides know it.
func (c *baselineCheck) columnType(f *Field, was *record, p Problem) {
	before := was.typeLike(f.Type)
	then, now := f.Logical, f.Logical
	if was.logical != nil && (f.Type.Element != I64 || f.knowsLogical()) {
		then = *was.logical
	}
	p.Rule = TypeChanged
	switch {
	case before != f.Type:
		p.Msg = fmt.Sprintf("was %s, is %s: deployed readers refuse the column", typeText(before, then), typeText(f.Type, now))
	case f.Type.Element == I64 && then != now:
		p.Msg = fmt.Sprintf("was %s, is %s: the file does not tell, so deployed readers take one for the other", typeText(before, then), typeText(f.Type, now))
	default:
		return
	}
	p.Msg += "; a new column with a new tag is safe"
	c.problem(p)
}

// knowsLogical reports whether the logical type is known: a column without a name may be that of a file, which does not
// tell it.
func (f *Field) knowsLogical() bool {
	return f.Type.Element == I64 && (f.Name != "" || f.Logical != Number)
}

// typeText is a type as messages show it, with the logical type: "datetime?[]".
func typeText(t Type, l Logical) string {
	if t.Element != I64 {
		return t.String()
	}
	return logicalNames[l] + strings.TrimPrefix(t.String(), t.Element.String())
}

// retiredChanges compares labels with those that were retired, in words. What the last schema had already, since it was
// accepted, is no change, and what compareLabels finds is not told twice.
func retiredChanges(was *record, cur map[string]int32) (wrong []string) {
	at, before := labelAt(cur), labelAt(was.labels)
	for _, name := range labelsByNumber(was.retiredLabels) {
		number := was.retiredLabels[name]
		_, known := was.labels[name]
		if is, ok := cur[name]; ok && is != number && !known {
			wrong = append(wrong, fmt.Sprintf("%s was %d, is %d", name, number, is))
		}
		_, known = before[number]
		if is, ok := at[number]; ok && is != name && !known {
			wrong = append(wrong, fmt.Sprintf("%d was %s once, is %s", number, name, is))
		}
	}
	return wrong
}

// columnNames are the tags that names have now, and had.
type columnNames struct {
	now, before map[string]int32
}

func namesOf(s *Schema, old map[int32]*record) *columnNames {
	n := &columnNames{tagsByName(s.Columns), make(map[string]int32)}
	for _, tag := range slices.Sorted(maps.Keys(old)) {
		name := old[tag].givenName(tag)
		if other, ok := n.before[name]; name != "" && (!ok || old[other].retired) { // rather that of a column than of a tombstone
			n.before[name] = tag
		}
	}
	return n
}

// renamed says what it may mean that a tag has another name.
func (n *columnNames) renamed(was, is string) (Rule, string) {
	text := "was " + was + ", is " + is
	from, moved := n.before[is]
	to, left := n.now[was]
	switch {
	case !moved && !left:
		return ColumnRenamed, text + ": a new name of the column, or a tag that is used again"
	case moved:
		text += fmt.Sprintf(", which was column %d", from)
	}
	if left {
		text += fmt.Sprintf("; %s is column %d now", was, to)
	}
	return ColumnMoved, text + ": deployed readers take the values of one for those of the other, unless names alone have changed"
}

func (c *baselineCheck) vanished(name string, old map[int32]*record) {
	next := make(map[int32]*record, len(old))
	for tag, r := range old {
		next[tag] = r.retire()
	}
	c.next.tables[name] = next
	if len(old) > 0 && !allRetired(old) {
		c.report.Vanished = append(c.report.Vanished, name)
	}
}

func allRetired(records map[int32]*record) bool {
	for _, r := range records {
		if !r.retired {
			return false
		}
	}
	return true
}

// retire returns the record with its tag retired.
func (r *record) retire() *record {
	next := *r
	next.retired = true
	return &next
}

// givenName is the name, "" where the tag stands in for it.
func (r *record) givenName(tag int32) string {
	if r.name == strconv.Itoa(int(tag)) {
		return ""
	}
	return r.name
}

// label is what messages call the column.
func (r *record) label(tag int32) string {
	if r.name != "" {
		return r.name
	}
	return "column " + strconv.Itoa(int(tag))
}

// typeLike is the type of the record, with the bits that it does not have as they are in t.
func (r *record) typeLike(t Type) Type {
	t.Element, t.Kind = r.element, r.kind
	if r.optional != nil {
		t.Optional = *r.optional
	}
	if r.elemOptional != nil {
		t.ElementOptional = *r.elemOptional
	}
	return t
}

// newRecord is the record of a column, behind the one that the tag had. What the schema does not know stays.
func newRecord(f *Field, was *record, explicit bool) *record {
	r := &record{
		name: f.label(), element: f.Type.Element, kind: f.Type.Kind, explicitTag: explicit,
		optional: new(f.Type.Optional), elemOptional: new(f.Type.ElementOptional),
	}
	if r.element == Enum {
		r.labels = maps.Clone(f.Labels)
	}
	if f.knowsLogical() {
		r.logical = new(f.Logical)
	}
	if was == nil {
		return r
	}
	r.extra = was.extra
	if r.logical == nil && r.element == I64 && was.element == I64 {
		r.logical = was.logical
	}
	if f.Name == "" && was.name != "" {
		r.name = was.name
	}
	if r.element != Enum || was.element != Enum {
		return r
	}
	if len(f.Labels) == 0 {
		r.labels, r.retiredLabels = was.labels, was.retiredLabels
		return r
	}
	r.retiredLabels = make(map[string]int32)
	for _, labels := range []map[string]int32{was.retiredLabels, was.labels} { // of two numbers the last one
		for name, n := range labels {
			if is, ok := r.labels[name]; !ok || is != n {
				r.retiredLabels[name] = n
			}
		}
	}
	return r
}
