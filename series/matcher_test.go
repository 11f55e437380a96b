package series

import (
	"context"
	"errors"
	"strconv"
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

// A pattern that takes long ends with its context, on one long value as on many.
func TestMatchEnds(t *testing.T) {
	m, err := NewMatcher(Regexp, "host", "(?:[ab]*c?){300}(?:[ab]*d?){300}x")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ab", 2<<20)
	if m.cost(long) < costly || m.values(long, long) != matchSome {
		t.Fatalf("it costs %d", m.cost(long))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.matchesWithin(ctx, long) // which returns
	values := make([]string, 1<<20)
	for i := range values {
		values[i] = long[:100] + strconv.Itoa(i)
	}
	d, err := decodeDict(appendDict(nil, values, []uint32{1}), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.match(ctx, m, false, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("many values: %v", err)
	}
	// With time, a long value gives what a short one does.
	short, err := NewMatcher(NotRegexp, "host", "(?:[ab]*c?){200}x")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("ab", 50_000)
	if short.cost(text) < costly {
		t.Fatalf("it costs %d", short.cost(text))
	}
	for _, end := range []string{"x"} {
		if got, want := short.matchesWithin(context.Background(), text+end), end == ""; got != want {
			t.Errorf("%q behind it: %t", end, got)
		}
	}
	if _, err := NewMatcher(Regexp, "host", "(?:"+strings.Repeat("abcdefghij", 200)+"){600}"); !errors.Is(err, fault.Invalid) {
		t.Errorf("too long: %v", err)
	}
}

// An operator that there is not is refused, and does not wait to be run.
func TestUnknownOperator(t *testing.T) {
	if m, err := NewMatcher(IsNotNull+1, "host", ""); m != nil || !errors.Is(err, fault.Invalid) {
		t.Errorf("%v, %v", m, err)
	}
}
