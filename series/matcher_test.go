package series

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

// The fast paths of patterns give what the expression itself gives, and what is said of a range of values holds for each.
func TestPatternsAgree(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"a", "b", "web", "-", "1", ".*", ".+", ".", "(a|b)", "(web|db)", "[ab]", "a?", "(x)?", "(?i:a)", "a*", "é", "\\.", "^", "$", "", "(a|bc|)", "\\d", "a{2}",
		"web-1|web-2", "(?:)", "\n",
	})
	value := rapid.SampledFrom([]string{
		"", "a", "b", "ab", "aa", "A", "web", "web-1", "web-2", "web-10", "db", "db1", "xweb", "webx", "é", ".", "bc", "a\nb", "web\n", "\n", "\xff", "a\xffb", "\uFFFD",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "")
		p, err := newPattern(text)
		if err != nil {
			return
		}
		vs := rapid.SliceOfN(value, 1, 6).Draw(t, "values")
		lo, hi := vs[0], vs[0]
		all, none := true, true
		for _, v := range vs {
			want := p.plain(v)
			if got := p.matches(v); got != want {
				t.Fatalf("%q on %q is %t, the expression says %t (kind %d, set %q, text %q, prefix %q)", text, v, got, want, p.kind, p.set, p.text, p.prefix)
			}
			lo, hi = min(lo, v), max(hi, v)
			all, none = all && want, none && !want
		}
		for _, op := range []Op{Regexp, NotRegexp, Equal, NotEqual} {
			m := &Matcher{Op: op, Name: "l", Value: text, pattern: p}
			all, none := true, true
			for _, v := range vs {
				all, none = all && m.Matches(v), none && !m.Matches(v)
			}
			switch m.values(lo, hi) {
			case matchAll:
				if !all {
					t.Fatalf("%s: all of %q to %q match, and %q do not", m, lo, hi, vs)
				}
			case matchNone:
				if !none {
					t.Fatalf("%s: none of %q to %q match, and some of %q do", m, lo, hi, vs)
				}
			}
		}
	})
}

func TestPatternKinds(t *testing.T) {
	for text, want := range map[string]patternKind{
		".*": patternAny, "(.*)": patternAny, ".+": patternNonEmpty, "web-1": patternSet, "a|b|c": patternSet, "": patternSet, "web-[123]": patternSet,
		"(web|db)-1": patternSet, "web.*": patternPrefix, ".*web": patternSuffix, ".*web.*": patternContains, "(?i:web)": patternRegexp, "we.+": patternRegexp,
		"w.b": patternRegexp, "a.*b": patternRegexp,
	} {
		p, err := newPattern(text)
		if err != nil || p.kind != want {
			t.Errorf("%q is of the kind %d, want %d, %v", text, p.kind, want, err)
		}
	}
	if _, err := NewMatcher(Regexp, "l", "a)"); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if _, err := NewMatcher(Regexp, "l", "(?s:a)|(b"); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
