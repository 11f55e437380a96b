package promapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/adapters/promql"
	"github.com/spilehq/spile/series"
)

var (
	someTags   = []series.Tag{{ColumnID: 1, Name: "a"}, {ColumnID: 2, Name: "b"}, {ColumnID: 3, Name: "c.d"}}
	someValues = []string{"", "x", "y", "xy", "xx", "z\n\"<"}
	someNames  = map[uint32]string{1: "up", 2: "down"}
)

// valueOf is the value of a tag of a series: the same in all artifacts, as long as nothing conflicts. "" is null or empty.
func valueOf(region uint64, id series.ID, tag int) (value string, has bool) {
	n := (int(region)*7 + int(id.Table)*31 + int(id.TSID)*13 + tag*5) % (len(someValues) + 2)
	if n >= len(someValues) {
		return "", false
	}
	return someValues[n], true
}

func someSpec(t *rapid.T, i int) *spec {
	s := &spec{region: rapid.Uint64Range(1, 2).Draw(t, "region"), generation: byte(i + 1), block: rapid.IntRange(1, 4).Draw(t, "block")}
	s.start = rapid.Int64Range(1, 5).Draw(t, "start") * 1000
	s.end = s.start + rapid.Int64Range(1, 2).Draw(t, "length")*1000
	kind := rapid.IntRange(0, 3).Draw(t, "tags")
	for _, tag := range someTags {
		if kind == 3 && rapid.Bool().Draw(t, "drop") {
			continue // most artifacts list all of them
		}
		s.tags = append(s.tags, tag)
	}
	for table := uint32(1); table <= 3; table++ {
		for tsid := uint64(1); tsid <= 4; tsid++ {
			if !rapid.Bool().Draw(t, "there") {
				continue
			}
			id := series.ID{Table: table, TSID: tsid}
			r := series.Record{ID: id, RowCount: 1}
			for _, tag := range s.tags {
				if v, has := valueOf(s.region, id, int(tag.ColumnID)); has {
					r.Labels = append(r.Labels, series.Label{Name: tag.Name, Value: v})
				}
			}
			s.records = append(s.records, r)
		}
	}
	return s
}

func someSelector(t *rapid.T) (text string, matchers []*labels.Matcher) {
	var parts []string
	for range rapid.IntRange(1, 3).Draw(t, "matchers") {
		op := rapid.SampledFrom([]labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp}).Draw(t, "op")
		name := rapid.SampledFrom([]string{"a", "b", "c.d", "none", "__name__"}).Draw(t, "name")
		value := rapid.SampledFrom(append([]string{"up", "down"}, someValues...)).Draw(t, "value")
		if op >= labels.MatchRegexp {
			value = rapid.SampledFrom([]string{"", ".*", ".+", "x|y", "x.*", ".*x", "up|.*n", "[^x]*", "(?i)X", "."}).Draw(t, "pattern")
		}
		matchers = append(matchers, labels.MustNewMatcher(op, name, value))
		parts = append(parts, fmt.Sprintf("%q%s%q", name, op, value))
	}
	return "{" + strings.Join(parts, ",") + "}", matchers
}

// expected answers as the format document says, record by record, with the matchers of Prometheus: each artifact for itself,
// what a selector selects is merged by the identifiers of the region, and selectors are put together.
func expected(specs []*spec, named map[uint32]string, selectors [][]*labels.Matcher, start, end int64) []labels.Labels {
	type key struct {
		selector int
		region   uint64
		id       series.ID
	}
	if len(selectors) == 0 {
		selectors = [][]*labels.Matcher{nil}
	}
	merged := make(map[key]map[string]string)
	for _, s := range specs {
		if start >= s.end || end < s.start {
			continue
		}
		for _, r := range s.records {
			m := make(map[string]string)
			for _, l := range r.Labels {
				if l.Value != "" {
					m[l.Name] = l.Value
				}
			}
			if name := named[r.Table]; name != "" {
				m[promql.MetricName] = name
			}
			set := labels.FromMap(m)
			for i, matchers := range selectors {
				if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(set.Get(m.Name)) }) {
					continue
				}
				k := key{i, s.region, r.ID}
				if merged[k] == nil {
					merged[k] = make(map[string]string)
				}
				maps.Copy(merged[k], m)
			}
		}
	}
	var out []labels.Labels
	for _, m := range merged {
		out = append(out, labels.FromMap(m))
	}
	slices.SortFunc(out, labels.Compare)
	return slices.CompactFunc(out, labels.Equal)
}

// What the API answers is what Prometheus' matchers select, in any number of artifacts.
func TestDifferential(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var specs []*spec
		for i := range rapid.IntRange(0, 4).Draw(rt, "artifacts") {
			specs = append(specs, someSpec(rt, i))
		}
		h := handler(t, &Options{Names: someNames}, specs...)
		for range 4 {
			form := url.Values{}
			var selectors [][]*labels.Matcher
			for range rapid.IntRange(1, 3).Draw(rt, "selectors") {
				text, matchers := someSelector(rt)
				if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches("") }) {
					continue
				}
				selectors = append(selectors, matchers)
				form.Add("match[]", text)
			}
			start, end := rapid.Int64Range(0, 8000).Draw(rt, "start"), rapid.Int64Range(0, 8000).Draw(rt, "end")
			if rapid.Bool().Draw(rt, "round") {
				start, end = start/1000*1000, end/1000*1000
			}
			form.Set("start", strconv.FormatInt(start, 10))
			form.Set("end", strconv.FormatInt(end, 10))
			want := expected(specs, someNames, selectors, start, end)
			if len(selectors) > 0 {
				checkSeries(rt, h, form, want)
			}
			names, values := make(map[string]bool), make(map[string]map[string]bool)
			for _, set := range want {
				set.Range(func(l labels.Label) {
					names[l.Name] = true
					if values[l.Name] == nil {
						values[l.Name] = make(map[string]bool)
					}
					values[l.Name][l.Value] = true
				})
			}
			checkList(rt, h, "/api/v1/labels", form, names)
			for _, name := range []string{"a", "b", "c.d", "none", "__name__"} {
				checkList(rt, h, "/api/v1/label/"+name+"/values", form, values[name])
			}
		}
	})
}

func checkSeries(t *rapid.T, h *Handler, form url.Values, want []labels.Labels) {
	get := func(form url.Values) (envelope, []labels.Labels) {
		code, body := ask(h, "POST", "/api/v1/series", form)
		var e envelope
		var list []map[string]string
		if err := json.Unmarshal([]byte(body), &e); err != nil || code != 200 {
			t.Fatalf("%v: %d %v %s", form, code, err, body)
		}
		if err := json.Unmarshal(e.Data, &list); err != nil {
			t.Fatal(err)
		}
		var sets []labels.Labels
		for _, m := range list {
			sets = append(sets, labels.FromMap(m))
		}
		return e, sets
	}
	e, got := get(form)
	given := slices.Clone(got)
	slices.SortFunc(got, labels.Compare)
	if !slices.EqualFunc(got, want, labels.Equal) || e.Warnings != nil {
		t.Fatalf("%v:\n%v, want\n%v, warnings %q", form, got, want, e.Warnings)
	}
	limit := rapid.IntRange(1, 6).Draw(t, "limit")
	form.Set("limit", strconv.Itoa(limit))
	defer form.Del("limit")
	e, got = get(form)
	if !slices.EqualFunc(got, given[:min(limit, len(given))], labels.Equal) || (len(e.Warnings) == 1 && e.Warnings[0] == truncated) != (len(given) > limit) {
		t.Fatalf("%v: %v of %v, warnings %q", form, got, given, e.Warnings)
	}
}

func checkList(t *rapid.T, h *Handler, path string, form url.Values, want map[string]bool) {
	code, body := ask(h, "GET", path, form)
	var e envelope
	var got []string
	if err := json.Unmarshal([]byte(body), &e); err != nil || code != 200 {
		t.Fatalf("%s %v: %d %v %s", path, form, code, err, body)
	}
	if err := json.Unmarshal(e.Data, &got); err != nil {
		t.Fatal(err)
	}
	same := len(got) == len(want) && slices.IsSorted(got)
	for _, v := range got {
		same = same && want[v]
	}
	if !same {
		t.Fatalf("%s %v: %q, want %v", path, form, got, want)
	}
}
