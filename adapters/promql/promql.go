// Package promql reads selectors as Prometheus writes them into matchers of package series.
package promql

import (
	"errors"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// MetricName is the label that names a metric. It is no tag of an artifact: the caller translates it to tables.
const MetricName = "__name__"

var ops = map[labels.MatchType]series.Op{
	labels.MatchEqual: series.Equal, labels.MatchNotEqual: series.NotEqual,
	labels.MatchRegexp: series.Regexp, labels.MatchNotRegexp: series.NotRegexp,
}

// ParseSelector reads a selector such as {host="web-1",zone=~"eu.*"}; names that are no identifiers are quoted, as in
// {"http.status"="200"}. A metric in front of it, or alone, becomes a matcher on [MetricName]. What is no selector, and one
// of more than [series.MaxPatternSteps], is [fault.Invalid].
func ParseSelector(text string) ([]*series.Matcher, error) {
	if n := Steps(text); n > series.MaxPatternSteps { // before they are compiled
		return nil, fault.New(fault.Invalid, "promql", "the selector %q has patterns of about %d steps, at most %d", short(text), n, series.MaxPatternSteps)
	}
	parsed, err := parser.NewParser(parser.Options{}).ParseMetricSelector(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "promql", "the selector %q", short(text)).Because(errors.New(short(err.Error())))
	}
	matchers := make([]*series.Matcher, len(parsed))
	for i, m := range parsed {
		if matchers[i], err = series.NewMatcher(ops[m.Type], m.Name, m.Value); err != nil {
			return nil, err
		}
	}
	return matchers, nil
}

// Steps is about how many instructions the patterns of a selector have, as [series.PatternSteps] counts them. It compiles none.
func Steps(text string) int64 {
	n := int64(0)
	isPattern := false // what comes next
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"', '\'', '`':
			end := i + 1
			for end < len(text) && text[end] != c {
				if text[end] == '\\' && c != '`' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			if isPattern {
				if pattern, err := strutil.Unquote(text[i:end]); err == nil {
					n += series.PatternSteps(pattern)
				}
			}
			i, isPattern = end, false
		case '#': // a comment
			line := strings.IndexAny(text[i:], "\r\n")
			if line < 0 {
				return n
			}
			i += line
		case '~':
			isPattern = true
			i++
		case ' ', '\t', '\r', '\n':
			i++
		default:
			isPattern = false
			i++
		}
	}
	return n
}

// short is a text as messages show it.
func short(text string) string {
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}
