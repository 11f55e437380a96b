package tcb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
)

// printed is the baseline that the format document shows.
const printed = `{
  "Comment": "free text",
  "BaselineVersion": 2,
  "Tables": {
    "Item": {
      "1": { "Name": "Id", "Element": 2, "Kind": 0, "Retired": false, "ExplicitTag": true },
      "4": { "Name": "OldColor", "Element": 6, "Kind": 0, "Retired": true, "ExplicitTag": true }
    }
  }
}
`

func mustBaseline(t testing.TB, text string) *Baseline {
	t.Helper()
	b, err := ParseBaseline([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustSchema(t testing.TB, table, columns string) *Schema {
	t.Helper()
	s, err := ParseSchema([]byte(fmt.Sprintf(`{"table":%q,%s}`, table, columns)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checked checks one schema of the table Item.
func checked(t testing.TB, b *Baseline, columns string, o *BaselineOptions) *BaselineReport {
	t.Helper()
	r, err := b.Check([]*Schema{mustSchema(t, "Item", columns)}, o)
	if err != nil {
		t.Fatal(err)
	}
	if (r.Next == nil) != (len(r.Problems) > 0) {
		t.Fatalf("%d problems, next baseline %v", len(r.Problems), r.Next)
	}
	return r
}

// The shape of the file: what the format document prints is read, and written again to the byte.
func TestBaselineShape(t *testing.T) {
	if got := string(mustBaseline(t, printed).AppendJSON(nil)); got != printed {
		t.Errorf("got\n%s", got)
	}
	const empty = "{\n  \"Comment\": \"\",\n  \"BaselineVersion\": 2,\n  \"Tables\": {}\n}\n"
	if got := string(new(Baseline).AppendJSON(nil)); got != empty {
		t.Errorf("got\n%s", got)
	}
	mustBaseline(t, empty)

	// Everything that a record can hold, in the order of tables and tags, whatever the order of the file.
	first, err := new(Baseline).Check([]*Schema{
		mustSchema(t, "Ünit <b>", `"columns":[]`),
		mustSchema(t, "Item", `"columns":[{"tag":10,"name":"drops","type":"i32[]","optional":true,"elementOptional":true},
			{"tag":2,"name":"grade","type":"enum","enum":{"Rare":2,"Common":1}},{"tag":3,"type":"datetime"}]`),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const golden = `{
  "Comment": "` + defaultComment + `",
  "BaselineVersion": 2,
  "Tables": {
    "Item": {
      "2": { "Name": "grade", "Element": 0, "Kind": 0, "Retired": false, "ExplicitTag": true, "Optional": false, "ElementOptional": false, "Enum": { "Common": 1, "Rare": 2 } },
      "3": { "Name": "3", "Element": 3, "Kind": 0, "Retired": false, "ExplicitTag": true, "Optional": false, "ElementOptional": false, "Logical": "datetime" },
      "10": { "Name": "drops", "Element": 2, "Kind": 1, "Retired": false, "ExplicitTag": true, "Optional": true, "ElementOptional": true }
    },
    "Ünit <b>": {}
  }
}
`
	got := string(first.Next.AppendJSON(nil))
	if got != golden {
		t.Errorf("got\n%s", got)
	}
	if again := string(mustBaseline(t, "\xef\xbb\xbf"+got).AppendJSON(nil)); again != got {
		t.Errorf("read and written again:\n%s", again)
	}
}

// The rows of the table of verdicts, from top to bottom.
func TestBaselineVerdicts(t *testing.T) {
	const item = `{"Comment":"","BaselineVersion":2,"Tables":{"Item":{
		"1":{"Name":"Id","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true},
		"2":{"Name":"Price","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true},
		"4":{"Name":"OldColor","Element":6,"Kind":0,"Retired":true,"ExplicitTag":true}}}}`
	untagged := strings.ReplaceAll(item, `"ExplicitTag":true`, `"ExplicitTag":false`)
	const id = `{"tag":1,"name":"Id","type":"i32"}`
	const price = `{"tag":2,"name":"Price","type":"i32"}`
	positions := []string{"Item"}
	for _, c := range []struct {
		name     string
		baseline string
		columns  string
		options  BaselineOptions
		want     string // RULE TAG of each problem
	}{
		{"nothing changed", item, `"columns":[` + id + `,` + price + `]`, BaselineOptions{}, ""},
		// Columns of the schema.
		{"new column", item, `"columns":[` + id + `,` + price + `,{"tag":5,"name":"New","type":"string"}]`, BaselineOptions{}, ""},
		{"tag retired", item, `"columns":[` + id + `,` + price + `,{"tag":4,"name":"Color","type":"string"}]`, BaselineOptions{}, "tag-reused 4"},
		{
			"tag retired, the same column, accepted", item, `"columns":[` + id + `,` + price + `,{"tag":4,"name":"OldColor","type":"string"}]`,
			BaselineOptions{Accepted: []string{"Item.OldColor"}}, "tag-reused 4",
		},
		{
			"untagged, name differs", untagged, `"columns":[` + id + `,{"tag":2,"name":"Weight","type":"i32"}]`,
			BaselineOptions{Untagged: positions}, "columns-shifted 2",
		},
		{
			"untagged, name and type differ: the first row that fits", untagged, `"columns":[` + id + `,{"tag":2,"name":"Weight","type":"f32"}]`,
			BaselineOptions{Untagged: positions}, "columns-shifted 2",
		},
		{
			"untagged, accepted", untagged, `"columns":[` + id + `,{"tag":2,"name":"Weight","type":"f32"}]`,
			BaselineOptions{Untagged: positions, Accepted: []string{"Item.Weight"}}, "",
		},
		{"untagged before only", untagged, `"columns":[` + id + `,{"tag":2,"name":"Weight","type":"i32"}]`, BaselineOptions{}, ""},
		{"untagged now only", item, `"columns":[` + id + `,{"tag":2,"name":"Weight","type":"i32"}]`, BaselineOptions{Untagged: positions}, ""},
		{"renamed", item, `"columns":[` + id + `,{"tag":2,"name":"Cost","type":"i32"}]`, BaselineOptions{}, ""},
		{"reordered", item, `"columns":[` + price + `,` + id + `]`, BaselineOptions{}, ""},
		{"other element", item, `"columns":[` + id + `,{"tag":2,"name":"Price","type":"string"}]`, BaselineOptions{}, "type-changed 2"},
		{"wider element", item, `"columns":[` + id + `,{"tag":2,"name":"Price","type":"i64"}]`, BaselineOptions{}, "type-changed 2"},
		{"other kind", item, `"columns":[` + id + `,{"tag":2,"name":"Price","type":"i32[]"}]`, BaselineOptions{}, "type-changed 2"},
		{
			"other element, accepted by the name of today", item, `"columns":[` + id + `,{"tag":2,"name":"Cost","type":"i64"}]`,
			BaselineOptions{Accepted: []string{"Item.Cost"}}, "",
		},
		{
			"other element, accepted for another", item, `"columns":[` + id + `,{"tag":2,"name":"Price","type":"i64"}]`,
			BaselineOptions{Accepted: []string{"Item.Id", "Price", "Other.Price"}}, "type-changed 2",
		},
		// Tags of the baseline that the schema does not have.
		{"deleted", item, `"columns":[` + id + `]`, BaselineOptions{}, "column-deleted 2"},
		{"deleted with a tombstone", item, `"columns":[` + id + `],"reserved":[{"tag":2}]`, BaselineOptions{}, ""},
		{"deleted, accepted", item, `"columns":[` + id + `]`, BaselineOptions{Accepted: []string{"Item.Price"}}, ""},
		{"retired, and a tombstone", item, `"columns":[` + id + `,` + price + `],"reserved":[{"tag":4}]`, BaselineOptions{}, ""},
		{"all problems", item, `"columns":[{"tag":4,"name":"X","type":"i32"},{"tag":1,"name":"Id","type":"f32"}]`, BaselineOptions{}, "tag-reused 4, type-changed 1, column-deleted 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mustBaseline(t, c.baseline)
			before := string(b.AppendJSON(nil))
			r := checked(t, b, c.columns, &c.options)
			if got := rules(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if after := string(b.AppendJSON(nil)); after != before {
				t.Errorf("the check changed the baseline:\n%s", after)
			}
		})
	}
}

func rules(r *BaselineReport) string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, fmt.Sprintf("%s %d", p.Rule, p.Tag))
	}
	return strings.Join(out, ", ")
}

// B9: an acknowledged deletion without a tombstone is not asked for again; the tag stays retired.
func TestBaselineAcknowledgedOnce(t *testing.T) {
	const two = `"columns":[{"tag":1,"name":"Id","type":"i32"},{"tag":2,"name":"Price","type":"i32"}]`
	const one = `"columns":[{"tag":1,"name":"Id","type":"i32"}]`
	b := checked(t, new(Baseline), two, nil).Next
	if got := rules(checked(t, b, one, nil)); got != "column-deleted 2" {
		t.Fatal(got)
	}
	b = checked(t, b, one, &BaselineOptions{Accepted: []string{"Item.Price"}}).Next
	r := checked(t, b, one, &BaselineOptions{Accepted: []string{"Item.Price"}})
	if len(r.Problems) > 0 || !slices.Equal(r.Unused, []string{"Item.Price"}) {
		t.Errorf("the second run: %q, unused %q", rules(r), r.Unused)
	}
	if got := rules(checked(t, r.Next, two, nil)); got != "tag-reused 2" {
		t.Error(got)
	}

	// A type that was accepted is the one of the baseline from then on.
	const wide = `"columns":[{"tag":1,"name":"Id","type":"i64"}]`
	b = checked(t, r.Next, wide, &BaselineOptions{Accepted: []string{"Item.Id"}}).Next
	if got := rules(checked(t, b, wide, nil)) + rules(checked(t, b, one, nil)); got != "type-changed 1" {
		t.Error(got)
	}
}

// B10: the optional bits are compared when the baseline has them.
func TestBaselineOptional(t *testing.T) {
	const plain = `{"BaselineVersion":2,"Tables":{"Item":{"1":{"Name":"Id","Element":2,"Kind":1,"Retired":false,"ExplicitTag":true%s}}}}`
	for _, c := range []struct{ recorded, schema, want string }{
		{``, `"optional":true,"elementOptional":true`, ""},
		{`,"Optional":false`, `"optional":true,"elementOptional":true`, "type-changed 1"},
		{`,"Optional":true`, `"optional":true,"elementOptional":true`, ""},
		{`,"Optional":true`, `"optional":false`, "type-changed 1"},
		{`,"ElementOptional":false`, `"optional":true,"elementOptional":true`, "type-changed 1"},
		{`,"ElementOptional":false`, `"optional":true`, ""},
		{`,"ElementOptional":null,"Optional":null`, `"optional":true`, ""},
	} {
		b := mustBaseline(t, fmt.Sprintf(plain, c.recorded))
		r := checked(t, b, `"columns":[{"tag":1,"name":"Id","type":"i32[]",`+c.schema+`}]`, nil)
		if got := rules(r); got != c.want {
			t.Errorf("%s, then %s: %q, want %q", c.recorded, c.schema, got, c.want)
		}
		if r.Next != nil && !strings.Contains(string(r.Next.AppendJSON(nil)), `"Optional": true, "ElementOptional": `) {
			t.Errorf("%s, then %s: the bits are not recorded", c.recorded, c.schema)
		}
	}
}

// What a file does not tell of a 64-bit integer is compared when both sides know it.
func TestBaselineLogical(t *testing.T) {
	const plain = `{"BaselineVersion":2,"Tables":{"Item":{"1":{"Name":"at","Element":%d,"Kind":0,"Retired":false,"ExplicitTag":true%s}}}}`
	for _, c := range []struct {
		element  Element
		recorded string
		schema   string
		want     string // of the message
		next     string
	}{
		{I64, `,"Logical":"datetime"`, `"name":"at","type":"timespan"`, "was datetime, is timespan: the file does not tell, so deployed readers take one for the other; ", "timespan"},
		{I64, `,"Logical":"i64"`, `"name":"at","type":"datetime"`, "was i64, is datetime: the file does not tell", "datetime"},
		{I64, `,"Logical":"timespan"`, `"name":"at","type":"i64"`, "was timespan, is i64: the file does not tell", "i64"},
		{I64, `,"Logical":"datetime"`, `"name":"at","type":"datetime"`, "", "datetime"},
		{I64, `,"Logical":"datetime","Optional":true`, `"name":"at","type":"timespan","optional":true`, "was datetime?, is timespan?: the file does not tell", "timespan"},
		{I64, `,"Logical":"datetime","Optional":false`, `"name":"at","type":"timespan","optional":true`, "was datetime, is timespan?: deployed readers refuse", "timespan"},
		{I64, `,"Logical":"datetime"`, `"name":"at","type":"i32"`, "was datetime, is i32: deployed readers refuse", ""},
		{I32, ``, `"name":"at","type":"datetime"`, "was i32, is datetime: deployed readers refuse", "datetime"},
		{I32, `,"Logical":"datetime"`, `"name":"at","type":"i32"`, "", ""}, // of no 64-bit integer it says nothing
		// What one side does not know is not compared. A column without a name may be that of a file.
		{I64, ``, `"name":"at","type":"datetime"`, "", "datetime"},
		{I64, `,"Logical":null`, `"name":"at","type":"timespan"`, "", "timespan"},
		{I64, `,"Logical":"datetime"`, `"type":"i64"`, "", "datetime"},
		{I64, ``, `"type":"i64"`, "", ""},
		{I64, `,"Logical":"datetime"`, `"type":"timespan"`, "was datetime, is timespan: the file", "timespan"},
	} {
		columns := `"columns":[{"tag":1,` + c.schema + `}]`
		b := mustBaseline(t, fmt.Sprintf(plain, c.element, c.recorded))
		r := checked(t, b, columns, nil)
		got := ""
		if len(r.Problems) > 0 {
			got = r.Problems[0].Msg
		}
		if len(r.Problems) > 1 || !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || got != "" && (r.Problems[0].Rule != TypeChanged || r.Problems[0].Accept != "Item.at") {
			t.Errorf("%s %s, then %s: %+v, want %q", c.element, c.recorded, c.schema, r.Problems, c.want)
		}
		// Accepted, it is the type of the baseline from then on.
		text := string(checked(t, b, columns, &BaselineOptions{Accepted: []string{"Item.at"}}).Next.AppendJSON(nil))
		if has := strings.Contains(text, `, "Logical": "`+c.next+`" }`); has != (c.next != "") || c.next == "" && strings.Contains(text, "Logical") {
			t.Errorf("%s %s, then %s: next\n%s", c.element, c.recorded, c.schema, text)
		}
		if r := checked(t, mustBaseline(t, text), columns, nil); len(r.Problems) > 0 {
			t.Errorf("%s %s, then %s twice: %+v", c.element, c.recorded, c.schema, r.Problems)
		}
	}
}

// Names: a tag that has another one is a warning, and a stronger one where a name is, or was, that of another tag.
func TestBaselineNames(t *testing.T) {
	start := mustBaseline(t, `{"BaselineVersion":2,"Tables":{"Item":{
		"1":{"Name":"hp","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true},
		"2":{"Name":"mp","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true},
		"3":{"Name":"3","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true},
		"4":{"Name":"old","Element":2,"Kind":0,"Retired":true,"ExplicitTag":true},
		"5":{"Name":"mp","Element":2,"Kind":0,"Retired":true,"ExplicitTag":true}}}}`)
	const maybe = ": a new name of the column, or a tag that is used again"
	const surely = ": deployed readers take the values of one for those of the other, unless names alone have changed"
	for _, c := range []struct {
		names string // of the columns 1, 2, 3 and 6
		want  []string
	}{
		{"hp mp - -", nil},
		{"- - - -", nil},
		{"hp mp armor -", nil}, // it had none
		{"hp mp - new", nil},
		{"life mp - -", []string{"column-renamed column 1 (life): was hp, is life" + maybe}},
		{"mp hp - -", []string{
			"column-moved column 1 (mp): was hp, is mp, which was column 2; hp is column 2 now" + surely,
			"column-moved column 2 (hp): was mp, is hp, which was column 1; mp is column 1 now" + surely,
		}},
		{"mp armor - -", []string{
			"column-moved column 1 (mp): was hp, is mp, which was column 2" + surely,
			"column-moved column 2 (armor): was mp, is armor; mp is column 1 now" + surely,
		}},
		{"armor mp - hp", []string{"column-moved column 1 (armor): was hp, is armor; hp is column 6 now" + surely}},
		{"old mp - -", []string{"column-moved column 1 (old): was hp, is old, which was column 4" + surely}},
	} {
		columns, tags := "", []int{1, 2, 3, 6}
		for i, name := range strings.Fields(c.names) {
			if i > 0 {
				columns += ","
			}
			if name == "-" {
				name = ""
			}
			columns += fmt.Sprintf(`{"tag":%d,"name":%q,"type":"i32"}`, tags[i], name)
		}
		r := checked(t, start, `"columns":[`+columns+`]`, &BaselineOptions{Accepted: []string{"Item.mp"}})
		if len(r.Problems) > 0 || len(r.Unused) != 1 {
			t.Errorf("%s: %+v, unused %q", c.names, r.Problems, r.Unused)
		}
		var got []string
		for _, w := range r.Warnings {
			if w.Accept != "" || w.Table != "Item" {
				t.Errorf("%s: %+v", c.names, w)
			}
			got = append(got, string(w.Rule)+" "+strings.TrimPrefix(w.String(), "Item: "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.names, got, c.want)
		}
	}
	// The name that was warned of is that of the baseline from then on. A warning stands beside problems, too.
	const life = `"columns":[{"tag":1,"name":"life","type":"i32"},{"tag":2,"name":"mp","type":"i32"},{"tag":3,"type":"i32"}]`
	if r := checked(t, checked(t, start, life, nil).Next, life, nil); len(r.Warnings) > 0 {
		t.Error(r.Warnings)
	}
	r := checked(t, start, `"columns":[{"tag":1,"name":"life","type":"i64"}],"reserved":[{"tag":2},{"tag":3}]`, nil)
	if rules(r) != "type-changed 1" || len(r.Warnings) != 1 {
		t.Errorf("%s, %q", rules(r), r.Warnings)
	}
	// What is a problem is no warning as well: a tag that was retired, columns that have shifted.
	r = checked(t, start, `"columns":[{"tag":4,"name":"x","type":"i32"}],"reserved":[{"tag":1},{"tag":2},{"tag":3}]`, nil)
	if rules(r) != "tag-reused 4" || len(r.Warnings) > 0 {
		t.Errorf("%s, %q", rules(r), r.Warnings)
	}
	shifted := mustBaseline(t, `{"BaselineVersion":2,"Tables":{"Item":{"1":{"Name":"hp","Element":2,"Kind":0}}}}`)
	r = checked(t, shifted, `"columns":[{"tag":1,"name":"mp","type":"i32"}]`, &BaselineOptions{Untagged: []string{"Item"}})
	if rules(r) != "columns-shifted 1" || len(r.Warnings) > 0 {
		t.Errorf("%s, %q", rules(r), r.Warnings)
	}
}

// B11: a baseline of another version, or without one, is replaced and not compared.
func TestBaselineVersion(t *testing.T) {
	const item = `"columns":[{"tag":1,"name":"Id","type":"i32"}]`
	for text, version := range map[string]int{
		`{"Comment":"ours","Tables":{"Item":{"1":{"Name":"Id","Element":6,"Kind":0,"Retired":true}}}}`: 0,
		`{"Comment":"ours","BaselineVersion":1,"Tables":["of another shape"]}`:                         1,
		`{"Comment":"ours","BaselineVersion":3}`:                                                       3,
		`{}`:                                                                                           0,
	} {
		b := mustBaseline(t, text)
		if b.Version != version {
			t.Errorf("%s: version %d, want %d", text, b.Version, version)
		}
		r := checked(t, b, item, nil)
		if len(r.Problems) > 0 {
			t.Errorf("%s: %s", text, rules(r))
			continue
		}
		if next := string(r.Next.AppendJSON(nil)); r.Next.Version != BaselineVersion || text != `{}` && !strings.HasPrefix(next, "{\n  \"Comment\": \"ours\",\n  \"BaselineVersion\": 2,") {
			t.Errorf("%s: next\n%s", text, next)
		}
	}
}

// B12: a table that vanished keeps its tags, and comes back with new ones only.
func TestBaselineVanished(t *testing.T) {
	item := mustSchema(t, "Item", `"columns":[{"tag":1,"name":"Id","type":"i32"}]`)
	shop := mustSchema(t, "Shop", `"columns":[{"tag":1,"name":"Id","type":"i32"}]`)
	check := func(b *Baseline, schemas ...*Schema) *BaselineReport {
		r, err := b.Check(schemas, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	b := check(new(Baseline), item, shop).Next
	r := check(b, shop)
	if len(r.Problems) > 0 || !slices.Equal(r.Vanished, []string{"Item"}) {
		t.Fatalf("%q, vanished %q", rules(r), r.Vanished)
	}
	if !strings.Contains(string(r.Next.AppendJSON(nil)), `"Item": {
      "1": { "Name": "Id", "Element": 2, "Kind": 0, "Retired": true,`) {
		t.Errorf("the record of the table:\n%s", r.Next.AppendJSON(nil))
	}
	if r = check(r.Next, shop); len(r.Vanished) > 0 {
		t.Errorf("it vanished again: %q", r.Vanished)
	}
	back := check(r.Next, shop, item)
	if rules(back) != "tag-reused 1" || !strings.Contains(back.Problems[0].String(), "Item: column 1 (Id): the table had vanished") {
		t.Errorf("%q", back.Problems)
	}
	if r = check(r.Next, shop, mustSchema(t, "Item", `"columns":[{"tag":2,"name":"Id","type":"i32"}]`)); len(r.Problems) > 0 {
		t.Errorf("with a new tag: %s", rules(r))
	}
}

// Labels: what is renumbered or has another name is found, what is added or removed is not; and the number of a label
// that was removed is not given to another.
func TestBaselineLabels(t *testing.T) {
	grade := func(labels string) string {
		return `"columns":[{"tag":1,"name":"grade","type":"enum"` + labels + `}]`
	}
	accept := &BaselineOptions{Accepted: []string{"Item.grade"}}
	start := checked(t, new(Baseline), grade(`,"enum":{"Common":1,"Rare":2,"Epic":3}`), nil).Next
	for _, c := range []struct{ labels, want string }{
		{`,"enum":{"Common":1,"Rare":2,"Epic":3}`, ""},
		{`,"enum":{"Common":1,"Rare":2,"Epic":3,"Mythic":4}`, ""},
		{`,"enum":{"Common":1,"Epic":3}`, ""},
		{``, ""},
		{`,"enum":{"Common":1,"Rare":2,"Odd":3}`, "3 was Epic, is Odd: deployed readers take one for the other"},
		{`,"enum":{"Usual":1,"Rare":2}`, "1 was Common, is Usual: deployed readers take one for the other"},
		{`,"enum":{"Common":1,"Rare":3}`, "Rare was 2, is 3: deployed readers take one for the other"},
		{`,"enum":{"Common":2,"Rare":1,"Epic":3}`, "Common was 1, is 2, Rare was 2, is 1: deployed readers take one for the other"},
		{`,"enum":{"None":1,"Common":2,"Rare":3,"Epic":4}`, "Common was 1, is 2, Rare was 2, is 3, Epic was 3, is 4: deployed readers take one for the other"},
	} {
		r := checked(t, start, grade(c.labels), nil)
		got := ""
		if len(r.Problems) > 0 {
			got = r.Problems[0].Msg
			if r.Problems[0].Rule != EnumRenumbered || len(checked(t, start, grade(c.labels), accept).Problems) > 0 {
				t.Errorf("%s: %+v", c.labels, r.Problems)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.labels, got, c.want)
		}
	}

	// A schema without labels leaves those of the baseline as they are.
	if r := checked(t, checked(t, start, grade(""), nil).Next, grade(`,"enum":{"Rare":1}`), nil); rules(r) != "enum-renumbered 1" {
		t.Error(rules(r))
	}
	// Rare goes, and something else takes its number later.
	gone := checked(t, start, grade(`,"enum":{"Common":1,"Epic":3}`), nil).Next
	if text := string(gone.AppendJSON(nil)); !strings.Contains(text, `"Enum": { "Common": 1, "Epic": 3 }, "EnumRetired": { "Rare": 2 } }`) {
		t.Errorf("next:\n%s", text)
	}
	gone = mustBaseline(t, string(gone.AppendJSON(nil)))
	for labels, want := range map[string]string{
		`,"enum":{"Common":1,"Odd":2,"Epic":3}`:  "enum-renumbered 1",
		`,"enum":{"Common":1,"Rare":4,"Epic":3}`: "enum-renumbered 1",
		`,"enum":{"Common":1,"Rare":2,"Epic":3}`: "",
		`,"enum":{"Common":1,"Epic":3,"Odd":4}`:  "",
	} {
		if got := rules(checked(t, gone, grade(labels), nil)); got != want {
			t.Errorf("%s: %q, want %q", labels, got, want)
		}
	}
	// Once accepted, the number is the new label's, and the old one is remembered, whether the change took one step or two.
	for name, from := range map[string]*Baseline{"two steps": gone, "one step": start} {
		taken := checked(t, from, grade(`,"enum":{"Common":1,"Odd":2,"Epic":3}`), accept).Next
		r := checked(t, taken, grade(`,"enum":{"Common":1,"Odd":2,"Epic":3}`), accept)
		if len(r.Problems) > 0 || len(r.Unused) == 0 || !strings.Contains(string(r.Next.AppendJSON(nil)), `"Enum": { "Common": 1, "Odd": 2, "Epic": 3 }, "EnumRetired": { "Rare": 2 } }`) {
			t.Fatalf("%s: %s\n%s", name, rules(r), r.Next.AppendJSON(nil))
		}
		for labels, want := range map[string]string{
			`,"enum":{"Common":1,"Odd":2,"Epic":3,"Rare":4}`: "Rare was 2, is 4",
			`,"enum":{"Common":1,"Rare":2,"Epic":3}`:         "2 was Odd, is Rare",
			`,"enum":{"Common":1,"Even":2,"Epic":3}`:         "2 was Odd, is Even",
			`,"enum":{"Common":1,"Rare":2,"Odd":4}`:          "Odd was 2, is 4",
			`,"enum":{"Common":1,"Epic":3}`:                  "",
		} {
			r := checked(t, r.Next, grade(labels), nil)
			got := ""
			if len(r.Problems) > 0 {
				got = strings.TrimSuffix(r.Problems[0].Msg, ": deployed readers take one for the other")
			}
			if got != want {
				t.Errorf("%s, %s: %q, want %q", name, labels, got, want)
			}
		}
	}
	// A number that a label left by an accepted change is not given to another either.
	left := checked(t, start, grade(`,"enum":{"Common":1,"Rare":4,"Epic":3}`), accept).Next
	if r := checked(t, left, grade(`,"enum":{"Common":1,"Rare":4,"Epic":3,"Odd":2}`), nil); rules(r) != "enum-renumbered 1" || !strings.HasPrefix(r.Problems[0].Msg, "2 was Rare once, is Odd: ") {
		t.Errorf("%+v", r.Problems)
	}
	if r := checked(t, left, grade(`,"enum":{"Common":1,"Rare":4,"Epic":3}`), nil); len(r.Problems) > 0 {
		t.Errorf("%+v", r.Problems)
	}
	// A column that is no enumeration any more has no labels.
	number := checked(t, gone, `"columns":[{"tag":1,"name":"grade","type":"i32"}]`, accept).Next
	if strings.Contains(string(number.AppendJSON(nil)), "Enum") {
		t.Errorf("%s", number.AppendJSON(nil))
	}
}

// What others have added to the file stays, also with a column that was deleted.
func TestBaselineExtra(t *testing.T) {
	const text = `{"$schema":"x.json","Comment":"","BaselineVersion":2,"Tables":{"Item":{
		"1":{"Owner":{"team": "a b"},"Name":"Id","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true},
		"2":{"Name":"Price","Element":2,"Kind":0,"Retired":false,"ExplicitTag":true,"Since":[1, 2]}}}}`
	r := checked(t, mustBaseline(t, text), `"columns":[{"tag":1,"name":"Id","type":"i32"}],"reserved":[{"tag":2,"name":"Price"}]`, nil)
	const want = `{
  "Comment": "",
  "BaselineVersion": 2,
  "Tables": {
    "Item": {
      "1": { "Name": "Id", "Element": 2, "Kind": 0, "Retired": false, "ExplicitTag": true, "Optional": false, "ElementOptional": false, "Owner": {"team":"a b"} },
      "2": { "Name": "Price", "Element": 2, "Kind": 0, "Retired": true, "ExplicitTag": true, "Since": [1,2] }
    }
  },
  "$schema": "x.json"
}
`
	if got := string(r.Next.AppendJSON(nil)); got != want {
		t.Errorf("got\n%s", got)
	}
}

// A file that is no baseline stops the check.
func TestBaselineUnreadable(t *testing.T) {
	column := func(c string) string { return `{"BaselineVersion":2,"Tables":{"Item":{"1":` + c + `}}}` }
	for text, want := range map[string]string{
		``:                                     "the baseline is not readable",
		`{"BaselineVersion":2,"Tables":{`:      "unexpected end of JSON input (offset 0x1f)",
		"<<<<<<< HEAD\n{}":                     "invalid character '<'",
		`{"BaselineVersion":2,"Tables":{}} x`:  "after top-level value",
		`[]`:                                   "want an object",
		`null`:                                 "want an object",
		`{"columns":[]}`:                       `no "BaselineVersion"`,
		`{"BaselineVersion":2}`:                `no "Tables"`,
		`{"BaselineVersion":"2","Tables":{}}`:  "BaselineVersion",
		`{"BaselineVersion":null,"Tables":{}}`: "null, want a number",
		`{"BaselineVersion":2,"BaselineVersion":1,"Tables":{}}`:                                           `"BaselineVersion" occurs twice`,
		`{"Comment":1,"BaselineVersion":2,"Tables":{}}`:                                                   "Comment",
		`{"BaselineVersion":2,"Tables":[]}`:                                                               "Tables",
		`{"BaselineVersion":2,"Tables":{"Item":7}}`:                                                       "Item: ",
		`{"BaselineVersion":2,"Tables":{"Item":{},"Item":{}}}`:                                            `"Item" occurs twice`,
		`{"BaselineVersion":2,"Tables":{"Item":{"01":{"Element":2,"Kind":0}}}}`:                           "tag in decimal",
		`{"BaselineVersion":2,"Tables":{"Item":{"0":{"Element":2,"Kind":0}}}}`:                            "tag in decimal",
		`{"BaselineVersion":2,"Tables":{"Item":{"Id":{"Element":2,"Kind":0}}}}`:                           "tag in decimal",
		`{"BaselineVersion":2,"Tables":{"Item":{"1":{"Element":2,"Kind":0},"1":{"Element":2,"Kind":0}}}}`: `"1" occurs twice`,
		column(`{"Name":"Id","Kind":0}`):                                                                  `"Element" or "Kind" is missing`,
		column(`{"Name":"Id","Element":null,"Kind":0}`):                                                   "Item: column 1: the baseline is not readable: Element: null",
		column(`{"Name":"Id","Element":300,"Kind":0}`):                                                    "Element",
		column(`{"Name":"Id","Element":2,"Kind":0,"Retired":1}`):                                          "Retired",
		column(`{"Name":"Id","Element":2,"Kind":0,"Enum":{"a":1,"a":2}}`):                                 `Enum: "a" occurs twice`,
		column(`{"Name":"Id","Element":2,"Kind":0,"Enum":["a","b"]}`):                                     "Enum",
		column(`{"Name":"Id","Element":3,"Kind":0,"Logical":"date"}`):                                     `Logical: "date", want i64, datetime or timespan`,
		column(`{"Name":"Id","Element":3,"Kind":0,"Logical":1}`):                                          "Logical",
	} {
		b, err := ParseBaseline([]byte(text))
		if b != nil && err != nil {
			t.Errorf("%s: a baseline beside the error", text)
		}
		if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Schemas that cannot be compared are an error.
func TestBaselineSchemas(t *testing.T) {
	item := mustSchema(t, "Item", `"columns":[]`)
	for want, schemas := range map[string][]*Schema{
		"names no table":      {mustSchema(t, "", `"columns":[]`)},
		"two schemas":         {item, item},
		"the tag 0":           {{Table: "Item", Columns: []Field{{Name: "x"}}}},
		"the logical type 3":  {{Table: "Item", Columns: []Field{{Tag: 1, Name: "x", Type: Type{Element: I64}, Logical: 3}}}},
		"labels of an enumer": {item, {Table: "Shop", Columns: []Field{{Tag: 1, Labels: map[string]int32{"a": 1}, Type: Type{Element: I32}}}}},
	} {
		if _, err := new(Baseline).Check(schemas, nil); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzBaseline(f *testing.F) {
	f.Add([]byte(printed))
	f.Add([]byte(`{"BaselineVersion":2,"Tables":{"I":{"1":{"Name":"\ud800","Element":0,"Kind":1,"Enum":{"a":1,"b":-1},"x":[{}]}}}}`))
	f.Add([]byte(`{"BaselineVersion":2,"Tables":{"I":{"1":{"Element":3,"Kind":0,"Logical":"timespan"},"2":{"Element":3,"Kind":0,"Logical":null}}}}`))
	f.Add([]byte(`{"BaselineVersion":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := ParseBaseline(text)
		if err != nil {
			return
		}
		written := b.AppendJSON(nil)
		again, err := ParseBaseline(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if got := again.AppendJSON(nil); string(got) != string(written) {
			t.Fatalf("written\n%s\nand again\n%s", written, got)
		}
	})
}

// What is no whole number is told in the words of JSON, not of Go.
func TestBaselineNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`{"BaselineVersion":2.0,"Tables":{}}`:  "tcb: BaselineVersion: the baseline is not readable: 2.0, want a whole number, digits alone",
		`{"BaselineVersion":"2","Tables":{}}`:  `tcb: BaselineVersion: the baseline is not readable: "2", want a whole number, digits alone`,
		`{"BaselineVersion":null,"Tables":{}}`: "tcb: BaselineVersion: the baseline is not readable: null, want a number",
	} {
		if _, err := ParseBaseline([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
