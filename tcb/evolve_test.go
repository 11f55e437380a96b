package tcb

import (
	"fmt"
	"strings"
	"testing"
)

// The table of promotions of the format document, and nothing else.
func TestPromotes(t *testing.T) {
	members := []struct {
		member  Element
		logical Logical
		takes   []Element
	}{
		{I32, Number, []Element{I32, Enum}},
		{I64, Number, []Element{I64, I32, Enum}},
		{F64, Number, []Element{F64, F32, I32}},
		{F32, Number, []Element{F32}},
		{Enum, Number, []Element{Enum}},
		{Bool, Number, []Element{Bool}},
		{String, Number, []Element{String}},
		{UUID, Number, []Element{UUID}},
		{I64, DateTime, []Element{I64}},
		{I64, TimeSpan, []Element{I64}},
	}
	for _, m := range members {
		want := make(map[Element]bool)
		for _, e := range m.takes {
			want[e] = true
		}
		for file := Enum; file <= UUID; file++ {
			if got := promotes(file, m.member, m.logical); got != want[file] {
				t.Errorf("a member of %s (logical type %d) takes %s: %t, want %t", m.member, m.logical, file, got, want[file])
			}
		}
	}
}

func TestCompare(t *testing.T) {
	const none = ""
	for _, c := range []struct {
		old, cur              string // the columns
		oldReadsNew, newReads string
		warning               string
	}{
		// What is in one schema alone.
		{none, `{"tag":1,"type":"i32"}`, "skips (unknown tag)", "empty (not in the file)", ""},
		{`{"tag":1,"type":"i32"}`, none, "empty (not in the file)", "skips (unknown tag)", ""},
		// The type.
		{`{"tag":1,"type":"i32"}`, `{"tag":1,"type":"i32"}`, "reads", "reads", ""},
		{`{"tag":1,"type":"i32"}`, `{"tag":1,"type":"i64"}`, "refuses (type)", "widens (i32 -> i64)", ""},
		{`{"tag":1,"type":"i64"}`, `{"tag":1,"type":"enum"}`, "widens (enum -> i64)", "refuses (type)", ""},
		{`{"tag":1,"type":"f32[]"}`, `{"tag":1,"type":"f64[]"}`, "refuses (type)", "widens (f32 -> f64)", ""},
		{`{"tag":1,"type":"i32"}`, `{"tag":1,"type":"datetime"}`, "refuses (type)", "refuses (type)", ""},
		{`{"tag":1,"type":"enum"}`, `{"tag":1,"type":"f64"}`, "refuses (type)", "refuses (type)", ""},
		{`{"tag":1,"type":"string"}`, `{"tag":1,"type":"uuid"}`, "refuses (type)", "refuses (type)", ""},
		// Kind and bits: no promotion helps.
		{`{"tag":1,"type":"i32"}`, `{"tag":1,"type":"i32[]"}`, "refuses (kind)", "refuses (kind)", ""},
		{`{"tag":1,"type":"i32"}`, `{"tag":1,"type":"i64","optional":true}`, "refuses (type, optional)", "refuses (optional)", ""},
		{`{"tag":1,"type":"i32[]"}`, `{"tag":1,"type":"i32[]","elementOptional":true}`, "refuses (elementOptional)", "refuses (elementOptional)", ""},
		{
			`{"tag":1,"type":"i32"}`, `{"tag":1,"type":"string[]","optional":true,"elementOptional":true}`,
			"refuses (type, kind, optional, elementOptional)", "refuses (type, kind, optional, elementOptional)", "",
		},
		// Names.
		{`{"tag":1,"name":"a","type":"i32"}`, `{"tag":1,"name":"b","type":"i32"}`, "reads", "reads", "was a, is b"},
		{`{"tag":1,"type":"i32"}`, `{"tag":1,"name":"b","type":"i32"}`, "reads", "reads", ""},
		// Logical types. A schema without names may be that of a file, which does not tell.
		{`{"tag":1,"name":"a","type":"datetime"}`, `{"tag":1,"name":"a","type":"timespan"}`, "misreads (datetime is now timespan)", "misreads (datetime is now timespan)", ""},
		{`{"tag":1,"name":"a","type":"i64[]"}`, `{"tag":1,"name":"a","type":"datetime[]"}`, "reads", "reads", "i64 is now datetime"},
		{`{"tag":1,"type":"i64"}`, `{"tag":1,"name":"a","type":"datetime"}`, "reads", "reads", ""},
		// Labels.
		{
			`{"tag":1,"type":"enum","enum":{"A":1,"B":2}}`, `{"tag":1,"type":"enum","enum":{"A":1,"B":3,"C":2}}`,
			"misreads (B was 2, is 3)", "misreads (B was 2, is 3)", "",
		},
		{
			`{"tag":1,"type":"enum","enum":{"A":1,"B":2}}`, `{"tag":1,"type":"enum","enum":{"A":2,"B":1}}`,
			"misreads (A was 1, is 2, B was 2, is 1)", "misreads (A was 1, is 2, B was 2, is 1)", "",
		},
		{`{"tag":1,"type":"enum","enum":{"A":1}}`, `{"tag":1,"type":"enum","enum":{"A":1,"B":2}}`, "reads", "reads", ""},
		{`{"tag":1,"type":"enum","enum":{"A":1}}`, `{"tag":1,"type":"enum","enum":{"B":1}}`, "reads", "reads", "1 was A, is B"},
		{`{"tag":1,"type":"enum","enum":{"A":1}}`, `{"tag":1,"type":"enum"}`, "reads", "reads", ""},
		{`{"tag":1,"type":"enum","enum":{"A":1}}`, `{"tag":1,"type":"enum[]","enum":{"A":2}}`, "refuses (kind)", "refuses (kind)", ""},
	} {
		t.Run(c.old+" "+c.cur, func(t *testing.T) {
			got := Compare(mustSchema(t, "", `"columns":[`+c.old+`]`), mustSchema(t, "", `"columns":[`+c.cur+`]`))
			if len(got) != 1 {
				t.Fatalf("%d columns", len(got))
			}
			if g := got[0].OldReadsNew.String(); g != c.oldReadsNew {
				t.Errorf("an old reader %q, want %q", g, c.oldReadsNew)
			}
			if g := got[0].NewReadsOld.String(); g != c.newReads {
				t.Errorf("a new reader %q, want %q", g, c.newReads)
			}
			if g := strings.Join(got[0].Warnings, "; "); !strings.HasPrefix(g, c.warning) || (g == "") != (c.warning == "") {
				t.Errorf("warning %q, want %q", g, c.warning)
			}
		})
	}
}

// Columns come by tag, whatever the order of the schemas, and a tag that the old schema reserves is told.
func TestCompareTags(t *testing.T) {
	got := Compare(
		mustSchema(t, "", `"columns":[{"tag":70,"type":"i32"},{"tag":2,"type":"i32"}],"reserved":[{"tag":9,"name":"color"},{"tag":10}]`),
		mustSchema(t, "", `"columns":[{"tag":9,"type":"i32"},{"tag":70,"type":"i32"}],"reserved":[{"tag":2}]`))
	var all []string
	for _, c := range got {
		all = append(all, fmt.Sprintf("%d %t %t %d", c.Tag, c.Old != nil, c.New != nil, len(c.Warnings)))
	}
	if text := strings.Join(all, ", "); text != "2 true false 0, 9 false true 1, 70 true true 0" {
		t.Error(text)
	}
	if !strings.Contains(got[1].Warnings[0], "for color") {
		t.Error(got[1].Warnings)
	}

	// Names that were exchanged are told apart from a new name.
	got = Compare(
		mustSchema(t, "", `"columns":[{"tag":1,"name":"hp","type":"i32"},{"tag":2,"name":"mp","type":"i32"}]`),
		mustSchema(t, "", `"columns":[{"tag":1,"name":"mp","type":"i32"},{"tag":2,"name":"hp","type":"i32"}]`))
	if len(got[0].Warnings) != 1 || !strings.HasPrefix(got[0].Warnings[0], "was hp, is mp, which was column 2; hp is column 2 now: deployed readers take ") || !got[0].OldReadsNew.OK() {
		t.Error(got[0])
	}
}
