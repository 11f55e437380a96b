package series

import (
	"context"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// Op is what a matcher does.
type Op uint8

// The operators.
const (
	Equal     Op = iota // the value is
	NotEqual            // the value is not
	Regexp              // the whole value matches
	NotRegexp           // the whole value does not match
	IsNull              // there is no value; mode Native alone
	IsNotNull           // there is one; mode Native alone
)

var opTexts = [...]string{"=", "!=", "=~", "!~", "is null", "is not null"}

// String is the operator as selectors write it.
func (o Op) String() string { return opTexts[o] }

// Mode says what a label that is null is to a matcher (docs/format/series.md, "Matching").
type Mode uint8

// The modes.
const (
	// Prom is the way of Prometheus: null and the empty string are the same.
	Prom Mode = iota
	// Native is the way of SQL: no operator but IsNull selects a null.
	Native
)

// Matcher is a condition on a label. It is safe for concurrent use.
type Matcher struct {
	Op    Op
	Name  string
	Value string

	pattern *pattern // of the two operators with a regular expression
}

// NewMatcher returns a matcher. A value of Regexp and NotRegexp is an RE2 pattern that must match the whole label; a dot
// matches every character. One that does not compile, or has more than MaxPatternSteps, is [fault.Invalid].
func NewMatcher(op Op, name, value string) (*Matcher, error) {
	if name == "" {
		return nil, fault.New(fault.Invalid, "series", "a matcher without a name")
	}
	if op > IsNotNull {
		return nil, fault.New(fault.Invalid, "series", "an operator of the number %d, at most %d", op, IsNotNull)
	}
	m := &Matcher{Op: op, Name: name, Value: value}
	if op == Regexp || op == NotRegexp {
		if n := PatternSteps(value); n > MaxPatternSteps {
			return nil, fault.New(fault.Invalid, "series", "the pattern of the label %q takes about %d steps, at most %d", short(name), n, MaxPatternSteps)
		}
		var err error
		if m.pattern, err = newPattern(value); err != nil {
			return nil, fault.New(fault.Invalid, "series", "the pattern %q of the label %q", short(value), short(name)).Because(errors.New(short(err.Error())))
		}
	}
	return m, nil
}

// MaxPatternSteps bounds the program of a pattern, see [PatternSteps]. It has room for an alternative of 20,000 names.
const MaxPatternSteps = 1 << 20

// PatternSteps is about how many instructions the program has that a pattern compiles to, which its text may not show:
// repetitions multiply what they repeat. It compiles nothing; a pattern that does not compile has the length of its text.
func PatternSteps(text string) int64 {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return int64(len(text))
	}
	return steps(tree)
}

func steps(re *syntax.Regexp) int64 {
	n := int64(1)
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return n + int64(len(re.Rune))
	case syntax.OpCharClass:
		return n + int64(len(re.Rune)/2)
	case syntax.OpRepeat:
		return min(1<<40, 1+(n-1)*int64(max(re.Max, re.Min+1)))
	}
	return min(1<<40, n)
}

// costly is how many steps a match may take that nobody waits for the end of; it takes a second or less.
const costly = 1 << 26

// matchesWithin is Matches that ends with a context, if that may take long. What it returns counts unless the context has ended.
func (m *Matcher) matchesWithin(ctx context.Context, value string) bool {
	if m.cost(value) < costly {
		return m.Matches(value)
	}
	return m.pattern.re.MatchReader(&contextReader{ctx, value}) == (m.Op == Regexp)
}

// cost is how many steps a match takes at most.
func (m *Matcher) cost(value string) int64 {
	if m.pattern == nil || m.pattern.kind != patternRegexp {
		return 1
	}
	return min(1<<40, (int64(len(value))+1)*min(1<<20, m.pattern.steps))
}

// contextReader gives the characters of a text, until a context ends.
type contextReader struct {
	ctx  context.Context
	text string
}

func (r *contextReader) ReadRune() (rune, int, error) {
	if r.text == "" || r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(r.text)
	r.text = r.text[n:]
	return c, n, nil
}

// String is the matcher as a selector writes it.
func (m *Matcher) String() string {
	if m.Op >= IsNull {
		return m.Name + " " + m.Op.String()
	}
	return m.Name + m.Op.String() + `"` + m.Value + `"`
}

// Matches reports whether the matcher selects a value.
func (m *Matcher) Matches(value string) bool {
	switch m.Op {
	case Equal:
		return value == m.Value
	case NotEqual:
		return value != m.Value
	case Regexp:
		return m.pattern.matches(value)
	case NotRegexp:
		return !m.pattern.matches(value)
	}
	return m.Op == IsNotNull
}

// matchesNull reports whether the matcher selects a label that is null.
func (m *Matcher) matchesNull(mode Mode) bool {
	switch {
	case m.Op == IsNull:
		return true
	case m.Op == IsNotNull || mode == Native:
		return false
	}
	return m.Matches("")
}

// some says which of the values of a column match.
type some uint8

const (
	matchSome some = iota // not known
	matchNone
	matchAll
)

// values says which of the values from min to max, both of which are there, match (docs/format/series.md, "Deciding by statistics").
func (m *Matcher) values(min, max string) some {
	if m.Op >= IsNull {
		return matchAll // of what is not null; the caller treats the rest
	}
	if min == max && m.cost(min) >= costly {
		return matchSome // it is run where it can be ended
	}
	if min == max {
		if m.Matches(min) {
			return matchAll
		}
		return matchNone
	}
	switch m.Op {
	case Equal:
		if m.Value < min || m.Value > max {
			return matchNone
		}
	case NotEqual:
		if m.Value < min || m.Value > max {
			return matchAll
		}
	case Regexp:
		return m.pattern.values(min, max)
	case NotRegexp:
		switch m.pattern.values(min, max) {
		case matchNone:
			return matchAll
		case matchAll:
			return matchNone
		}
	}
	return matchSome
}

// decision is what statistics say of a matcher and a block.
type decision uint8

const (
	decideRead decision = iota
	decideNone
	decideAll
)

// decide is the table of docs/format/series.md, "Deciding by statistics". c is nil for a tag that the block does not store.
func (m *Matcher) decide(c *column, mode Mode) decision {
	yes := func(all bool) decision {
		if all {
			return decideAll
		}
		return decideNone
	}
	if c == nil || !c.hasStats {
		return yes(m.matchesNull(mode))
	}
	switch {
	case m.Op == IsNull && c.nulls == 0:
		return decideNone
	case m.Op == IsNull:
		return decideRead
	case m.Op == IsNotNull && c.nulls == 0:
		return decideAll
	case m.Op == IsNotNull:
		return decideRead
	}
	u, null := m.values(c.min, c.max), m.matchesNull(mode)
	switch {
	case u == matchNone && (c.nulls == 0 || !null):
		return decideNone
	case u == matchAll && (c.nulls == 0 || null):
		return decideAll
	}
	return decideRead
}

// pattern is a regular expression with what is known of it without running it.
type pattern struct {
	re   *regexp.Regexp
	kind patternKind
	set  []string // of a finite set, in order
	text string   // of prefix, suffix, contains
	// prefix is what every match starts with.
	prefix string
	steps  int64 // of the program, about
}

type patternKind uint8

const (
	patternAny      patternKind = iota // .*
	patternNonEmpty                    // .+
	patternSet                         // a|b|c
	patternPrefix                      // text.*
	patternSuffix                      // .*text
	patternContains                    // .*text.*
	patternRegexp                      // anything else
)

// maxSet bounds the set of texts that a pattern is taken for: beyond it the pattern is run.
const maxSet = 256

func newPattern(text string) (*pattern, error) {
	// By itself, since "a)(b" is no pattern, and becomes two of them between the brackets. What is wrong is said better, too.
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return nil, err
	}
	re, err := regexp.Compile("^(?s:" + text + ")$")
	if err != nil {
		return nil, err
	}
	p := &pattern{re: re, kind: patternRegexp, steps: PatternSteps(text)}
	tree, err := syntax.Parse("(?s:"+text+")", syntax.Perl)
	if err != nil {
		return p, nil // runs all the same
	}
	p.analyse(tree.Simplify())
	return p, nil
}

// plain runs the expression itself.
func (p *pattern) plain(value string) bool { return p.re.MatchString(value) }

func (p *pattern) matches(value string) bool {
	switch p.kind {
	case patternAny:
		return true
	case patternNonEmpty:
		return value != ""
	case patternSet:
		if len(p.set) <= 8 {
			return slices.Contains(p.set, value)
		}
		_, ok := slices.BinarySearch(p.set, value)
		return ok
	case patternPrefix:
		return strings.HasPrefix(value, p.text)
	case patternSuffix:
		return strings.HasSuffix(value, p.text)
	case patternContains:
		return strings.Contains(value, p.text)
	}
	if p.prefix != "" && !strings.HasPrefix(value, p.prefix) {
		return false
	}
	return p.plain(value)
}

// values is Matcher.values of a pattern.
func (p *pattern) values(min, max string) some {
	switch p.kind {
	case patternAny:
		return matchAll
	case patternNonEmpty:
		if min != "" {
			return matchAll
		}
		return matchSome
	case patternSet:
		i, _ := slices.BinarySearch(p.set, min)
		if i == len(p.set) || p.set[i] > max {
			return matchNone
		}
		return matchSome
	}
	if q := p.prefix; q != "" && (max < q || min > q && !strings.HasPrefix(min, q)) {
		return matchNone
	}
	return matchSome
}

// analyse finds out what a pattern matches without being run. What it does not know stays a pattern.
func (p *pattern) analyse(tree *syntax.Regexp) {
	if set, ok := finite(tree, maxSet); ok {
		slices.Sort(set)
		p.kind, p.set = patternSet, slices.Compact(set)
		return
	}
	parts := []*syntax.Regexp{strip(tree)}
	if parts[0].Op == syntax.OpConcat {
		parts = parts[0].Sub
	}
	anything := func(i int) bool {
		re := strip(parts[i])
		return re.Op == syntax.OpStar && strip(re.Sub[0]).Op == syntax.OpAnyChar
	}
	text := func(i int) (string, bool) { return literal(parts[i]) }
	p.prefix, _ = text(0)
	switch len(parts) {
	case 1:
		re := strip(parts[0])
		switch {
		case anything(0):
			p.kind = patternAny
		case re.Op == syntax.OpPlus && strip(re.Sub[0]).Op == syntax.OpAnyChar:
			p.kind = patternNonEmpty
		}
	case 2:
		if t, ok := text(0); ok && anything(1) {
			p.kind, p.text = patternPrefix, t
		} else if t, ok := text(1); ok && anything(0) {
			p.kind, p.text = patternSuffix, t
		}
	case 3:
		if t, ok := text(1); ok && anything(0) && anything(2) {
			p.kind, p.text = patternContains, t
		}
	}
}

// strip takes groups off.
func strip(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	return re
}

// literal returns the text that a part matches alone. Text with a byte that is no character is left to the engine, which
// reads such a byte as U+FFFD.
func literal(re *syntax.Regexp) (string, bool) {
	re = strip(re)
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 || slices.Contains(re.Rune, '\uFFFD') {
		return "", false
	}
	return string(re.Rune), true
}

// finite lists the texts that a pattern matches, when they are at most most.
func finite(re *syntax.Regexp, most int) ([]string, bool) {
	re = strip(re)
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		t, ok := literal(re)
		return []string{t}, ok
	case syntax.OpCharClass:
		var out []string
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if len(out) >= most || r == '\uFFFD' || r >= 0xd800 && r < 0xe000 {
					return nil, false
				}
				out = append(out, string(r))
			}
		}
		return out, len(out) > 0
	case syntax.OpQuest:
		set, ok := finite(re.Sub[0], most-1)
		return append(set, ""), ok
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			set, ok := finite(sub, most-len(out))
			if !ok {
				return nil, false
			}
			out = append(out, set...)
		}
		return out, true
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			set, ok := finite(sub, most)
			if !ok || len(out)*len(set) > most {
				return nil, false
			}
			var next []string
			for _, a := range out {
				for _, b := range set {
					next = append(next, a+b)
				}
			}
			out = next
		}
		return out, true
	}
	return nil, false
}
