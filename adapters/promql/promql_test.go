package promql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// Every selector of the conformance files gives the matchers that stand beside it.
func TestVectors(t *testing.T) {
	names, err := filepath.Glob("../../testdata/series/*.json")
	if err != nil || len(names) < 40 {
		t.Fatal(err, len(names))
	}
	n := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Path    string
			Selects []struct {
				Selector, Mode string
				Matchers       [][3]string
				Table          *uint32
				Count          uint64
				Error          string
			}
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		a, err := series.Open(context.Background(), series.Folder(filepath.Join(name[:len(name)-len(".json")], v.Path)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range v.Selects {
			if s.Mode == "native" && s.Selector == "" {
				continue // is null has no selector
			}
			n++
			got, err := ParseSelector(s.Selector)
			if err != nil {
				t.Errorf("%s: %v", s.Selector, err)
				continue
			}
			if len(got) != len(s.Matchers) {
				t.Errorf("%s gives %v, want %q", s.Selector, got, s.Matchers)
				continue
			}
			for i, m := range got {
				if w := s.Matchers[i]; m.Name != w[0] || m.Op.String() != w[1] || m.Value != w[2] {
					t.Errorf("%s gives %v, want %q", s.Selector, got, s.Matchers)
				}
			}
			q := &series.Query{Matchers: got}
			if s.Mode == "native" {
				q.Mode = series.Native
			}
			if s.Table != nil {
				q.Tables = []uint32{*s.Table}
			}
			if count, err := a.Count(context.Background(), q); s.Error == "" && (err != nil || count != s.Count) {
				t.Errorf("%s: %d series, %v, want %d", s.Selector, count, err, s.Count)
			}
		}
		a.Close()
	}
	if n < 100 {
		t.Errorf("%d selectors", n)
	}
}

// Patterns are counted before they are compiled, wherever they stand in a selector.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		text        string
		least, most int64
	}{
		{`up`, 0, 0},
		{`{a="x{1000}"}`, 0, 0},
		{`{a=~"x{1000}"}`, 1000, 3000},
		{`{a=~"(?:abcdefghij){900}"}`, 9000, 12000},
		{"{a!~ # a comment \" \n\t`(?:abcdefghij){900}`}", 9000, 12000},
		{`{a="\"",b=~'(?:abcdefgh\'j){900}'}`, 9000, 12000},
		{`{a=~"x{900}",a="y",b!~"x{900}"}`, 1800, 5000},
		{`{"=~"="x{1000}"}`, 0, 0},
	} {
		if got := Steps(tt.text); got < tt.least || got > tt.most {
			t.Errorf("%s: %d, want %d to %d", tt.text, got, tt.least, tt.most)
		}
	}
	bomb := `{a=~"(?:` + strings.Repeat("abcdefghij", 200) + `){600}"}` // 1,200,000
	_, err := ParseSelector(bomb)
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "steps") || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
	_, err = ParseSelector(`{a=~"` + strings.Repeat("(", 5000) + `"}`)
	if !errors.Is(err, fault.Invalid) || len(err.Error()) > 1000 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("host-%d", i)
	}
	if _, err := ParseSelector(`{a=~"` + strings.Join(many, "|") + `"}`); err != nil {
		t.Errorf("many names: %v", err)
	}
}

func TestParseSelector(t *testing.T) {
	got, err := ParseSelector(`up{"http.status"="200",job!~"a|b"}`)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, m := range got {
		text += m.String() + ";"
	}
	if text != `http.status="200";job!~"a|b";__name__="up";` {
		t.Errorf("%s", text)
	}
	for _, bad := range []string{``, `{`, `{a}`, `{a="b"`, `sum(a)`, `{a=~"("}`, `a[5m]`} {
		if _, err := ParseSelector(bad); !errors.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
