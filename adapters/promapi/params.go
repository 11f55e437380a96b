package promapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/spilehq/spile/adapters/promql"
	"github.com/spilehq/spile/series"
)

const (
	// maxForm bounds the parameters of a request.
	maxForm = 1 << 20
	// maxSelectors bounds the match[] of a request: each is a query.
	maxSelectors = 1000
	// maxSteps bounds the patterns of a request together, whose programs take up to 100 bytes a step: the names of 10,000
	// hosts are half of it.
	maxSteps = 1 << 18
)

// query is a question: its parameters, and what does not take part in the answer.
type query struct {
	h         *Handler
	ctx       context.Context
	start     *series.Timestamp
	end       *series.Timestamp
	limit     int // 0: none
	selectors []*selector
	label     string // of label values

	excluded map[*served]bool
	left     []string // warnings of what was left out
	attempt
}

// attempt is what is found out on the way to one answer. It begins anew when an artifact turns out to be bad.
type attempt struct {
	warnings []string
	infos    []string
	held     int64 // bytes of what is remembered for the answer
}

// selector is one match[].
type selector struct {
	matchers []*series.Matcher // but those of __name__
	names    []*series.Matcher // those
}

func invalid(parameter string, err error) error {
	return failed(badData, "invalid parameter %q: %s", parameter, err)
}

// parse reads the parameters as Prometheus does.
func (h *Handler) parse(w http.ResponseWriter, r *http.Request) (*query, error) {
	q := &query{h: h, excluded: make(map[*served]bool), left: slices.Clone(h.o.Warnings)}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	if err := r.ParseForm(); err != nil {
		return nil, failed(badData, "error parsing form values: %s", err)
	}
	if name := r.PathValue("name"); name != "" {
		if strings.HasPrefix(name, "U__") {
			name = model.UnescapeName(name, model.ValueEncodingEscaping)
		}
		if !model.UTF8Validation.IsValidLabelName(name) {
			return nil, failed(badData, "invalid label name: %q", name)
		}
		q.label = name
	}
	var err error
	if text := r.Form.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err == nil && q.limit < 0 {
			err = errors.New("limit must be non-negative")
		}
		if err != nil {
			return nil, invalid("limit", err)
		}
	}
	for _, t := range []struct {
		name string
		time **series.Timestamp
	}{{"start", &q.start}, {"end", &q.end}} {
		if text := r.Form.Get(t.name); text != "" {
			if *t.time, err = parseTime(text); err != nil {
				return nil, invalid(t.name, err)
			}
		}
	}
	for _, a := range h.artifacts {
		if text := a.fault.Load(); text != nil {
			q.excluded[a] = true
			if q.meets(a) {
				q.left = append(q.left, *text)
			}
		}
	}
	return q, nil
}

// parseSelectors reads the match[] of a request.
func (q *query) parseSelectors(texts []string) error {
	if len(texts) > maxSelectors {
		return invalid("match[]", fmt.Errorf("%d selectors, at most %d", len(texts), maxSelectors))
	}
	steps := int64(0)
	for _, text := range texts {
		if err := q.ctx.Err(); err != nil {
			return err
		}
		if steps += promql.Steps(text); steps > maxSteps {
			return invalid("match[]", fmt.Errorf("patterns of more than %d steps", maxSteps))
		}
		s, err := q.h.selector(text)
		if err != nil {
			return invalid("match[]", err)
		}
		q.selectors = append(q.selectors, s)
	}
	return nil
}

// The limits of times that the API knows, which stand for none.
var (
	minTime = time.Unix(math.MinInt64/1000+62135596801, 0).UTC().Format(time.RFC3339Nano)
	maxTime = time.Unix(math.MaxInt64/1000-62135596801, 999999999).UTC().Format(time.RFC3339Nano)
)

// parseTime reads a time, RFC 3339 or seconds with a fraction, which counts to the millisecond. Nil is no bound.
func parseTime(text string) (*series.Timestamp, error) {
	if text == minTime || text == maxTime {
		return nil, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
		if math.Abs(f) >= 1<<62/1000 {
			if math.Signbit(f) {
				return &series.Timestamp{Value: math.MinInt64, Unit: "Second"}, nil
			}
			return &series.Timestamp{Value: math.MaxInt64, Unit: "Second"}, nil
		}
		whole, fraction := math.Modf(f)
		return &series.Timestamp{Value: int64(whole)*1000 + int64(math.Round(fraction*1000)), Unit: "Millisecond"}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %q to a valid timestamp", text)
	}
	if y := t.Year(); y > 1678 && y < 2262 {
		return &series.Timestamp{Value: t.UnixNano(), Unit: "Nanosecond"}, nil
	}
	return &series.Timestamp{Value: t.UnixMicro(), Unit: "Microsecond"}, nil // of years of four digits
}

func (h *Handler) selector(text string) (*selector, error) {
	matchers, err := promql.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(matchers, func(m *series.Matcher) bool { return !m.Matches("") }) {
		return nil, errors.New("match[] must contain at least one non-empty matcher")
	}
	s := &selector{}
	for _, m := range matchers {
		switch {
		case m.Name != promql.MetricName:
			s.matchers = append(s.matchers, m)
		case h.o.Names == nil:
			return nil, fmt.Errorf("%s: metrics are tables, whose names stand in no artifact, and no list of them was given (--tables)", m)
		default:
			s.names = append(s.names, m)
		}
	}
	return s, nil
}

// takes reports whether the matchers of __name__ select a name, "" for none.
func (s *selector) takes(name string) bool {
	return !slices.ContainsFunc(s.names, func(m *series.Matcher) bool { return !m.Matches(name) })
}

// meets reports whether the bucket of an artifact and the times of a question have an instant in common. A bound that is
// not known is none; and a bucket without an instant is one of a writer that knew no times, and wrote zeros.
func (q *query) meets(a *served) bool {
	c := &a.manifest.Coverage
	if c.BucketStart != nil && c.BucketEnd != nil && !c.BucketStart.Before(*c.BucketEnd) {
		return true
	}
	return !(c.BucketEnd != nil && q.start != nil && !q.start.Before(*c.BucketEnd)) &&
		!(c.BucketStart != nil && q.end != nil && q.end.Before(*c.BucketStart))
}
