package main

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSARIF holds what compat prints against what SARIF 2.1.0 demands of a log.
func TestSARIF(t *testing.T) {
	t.Chdir(t.TempDir())
	files := map[string]string{
		"a b/Old.json": `{"columns":[{"tag":1,"name":"id","type":"i32"},{"tag":2,"type":"datetime"},{"tag":3,"name":"x","type":"i32"}]}`,
		"a b/New.json": `{"columns":[{"tag":1,"name":"id","type":"string"},{"tag":2,"type":"timespan"},{"tag":3,"name":"y","type":"i32"}]}`,
		"base.json": `{"BaselineVersion":2,"Tables":{"New":{"1":{"Name":"id","Element":2,"Kind":0,"Retired":true},
			"2":{"Name":"when","Element":2,"Kind":0},"4":{"Name":"gone","Element":2,"Kind":0}}}}`,
	}
	if err := os.Mkdir("a b", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := filepath.Abs("a b/New.json")
	if err != nil {
		t.Fatal(err)
	}
	absolute := (&url.URL{Scheme: "file", Path: filepath.ToSlash(whole)}).String()
	for _, c := range []struct {
		args  []string
		rules []string
		uri   string
	}{
		{
			[]string{"a b/Old.json", "a b/New.json"},
			[]string{"old-reader-refuses", "new-reader-refuses", "old-reader-misreads", "new-reader-misreads", "meaning"}, "a%20b/New.json",
		},
		{[]string{"--direction", "new-reads-old", "a b/Old.json", whole}, []string{"new-reader-refuses", "new-reader-misreads", "meaning"}, absolute},
		{[]string{"--baseline", "base.json", "a b/New.json"}, []string{"tag-reused", "type-changed", "column-deleted"}, "a%20b/New.json"},
	} {
		out, errs, status := command(t, append([]string{"table", "compat", "--output-format", "sarif", "--pretty"}, c.args...)...)
		if status != statusFailed || errs != "" {
			t.Errorf("%q: status %d, %s", c.args, status, errs)
		}
		var log struct {
			Schema  string `json:"$schema"`
			Version string
			Runs    []struct {
				Tool struct {
					Driver struct {
						Name  string
						Rules []struct {
							ID               string
							ShortDescription struct{ Text string }
						}
					}
				}
				Results []struct {
					RuleID    string
					RuleIndex *int
					Level     string
					Message   struct{ Text string }
					Locations []struct {
						PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
						LogicalLocations []struct{ FullyQualifiedName string }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &log); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 || log.Runs[0].Tool.Driver.Name != "spile" {
			t.Fatalf("%s", out)
		}
		run := log.Runs[0]
		var rules []string
		for _, r := range run.Results {
			rules = append(rules, r.RuleID)
			if r.RuleIndex == nil || *r.RuleIndex < 0 || run.Tool.Driver.Rules[*r.RuleIndex].ID != r.RuleID || run.Tool.Driver.Rules[*r.RuleIndex].ShortDescription.Text == "" {
				t.Errorf("%s is not among the rules", r.RuleID)
			}
			if !slices.Contains([]string{"warning", "error"}, r.Level) || r.Message.Text == "" || len(r.Locations) != 1 ||
				r.Locations[0].PhysicalLocation.ArtifactLocation.URI != c.uri || len(r.Locations[0].LogicalLocations) != 1 {
				t.Errorf("%+v", r)
			}
		}
		if !slices.Equal(rules, c.rules) {
			t.Errorf("%q: rules %q, want %q", c.args, rules, c.rules)
		}
	}
}

// TestTagLines: the line of a column is that of its brace, however the schema is laid out.
func TestTagLines(t *testing.T) {
	for text, want := range map[string]map[int32]int{
		`{"columns":[{"tag":1,"type":"i32"},{"tag":7,"type":"i32"}]}`: {1: 1, 7: 1},
		"\xef\xbb\xbf\n{\"table\":\"T\",\r\n\"reserved\":[{\"tag\":3}],\r\n\"Columns\" : [\r\n{\n\"type\":\"i32\",\"tag\":1}\n\n,\n{\"tag\":2,\"name\":\"{\",\"type\":\"enum\",\"enum\":{\"a\":1,\n\"b\":2}}, {\"tag\":5,\"type\":\"i32\"}]\n}\n": {1: 5, 2: 9, 5: 10},
		`{"columns":[]}`:                      {},
		"{\"c\\u006flumns\":[\n{\"tag\":4}]}": {4: 2},
		"{\"columns\":[\n{\"tag\":4},":        {4: 2},
		``:                                    {},
	} {
		if got := tagLines([]byte(text)); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
