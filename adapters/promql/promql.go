// Package promql reads selectors as Prometheus writes them into matchers of package series.
package promql

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

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
// {"http.status"="200"}. A metric in front of it, or alone, becomes a matcher on [MetricName]. What is no selector is
// [fault.Invalid].
func ParseSelector(text string) ([]*series.Matcher, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseMetricSelector(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "promql", "the selector %q", text).Because(err)
	}
	matchers := make([]*series.Matcher, len(parsed))
	for i, m := range parsed {
		if matchers[i], err = series.NewMatcher(ops[m.Type], m.Name, m.Value); err != nil {
			return nil, err
		}
	}
	return matchers, nil
}
