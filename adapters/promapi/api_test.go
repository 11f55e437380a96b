package promapi

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// store is three artifacts of two regions, two of them of buckets that follow one another.
func store() []*spec {
	return []*spec{
		{region: 1, generation: 2, start: 2000, end: 3000, tags: hostZone, records: []series.Record{
			record(10, 1, "host=a", "zone=eu"), record(10, 3, "host=c"),
		}},
		{region: 1, generation: 1, start: 1000, end: 2000, tags: hostZone, records: []series.Record{
			record(10, 1, "host=a", "zone=eu"), record(10, 2, "host=b", "zone="), record(11, 1, "host=a", "zone=eu"), record(12, 9),
		}},
		{region: 2, generation: 3, tags: []series.Tag{{ColumnID: 1, Name: "http.status"}, {ColumnID: 7, Name: "host"}}, records: []series.Record{
			record(20, 1, "http.status=200", "host=a"), record(20, 2, "host=\"<é>\n"),
		}},
	}
}

var names = map[uint32]string{10: "up", 11: "down", 20: "http_requests"}

func TestAnswers(t *testing.T) {
	plain, named := handler(t, nil, store()...), handler(t, &Options{Names: names}, store()...)
	const (
		a, b, c = `{"host":"a","zone":"eu"}`, `{"host":"b"}`, `{"host":"c"}`
		s, u    = `{"host":"a","http.status":"200"}`, `{"host":"\"<é>\n"}`
		series  = "/api/v1/series"
		labels  = "/api/v1/labels"
	)
	list := func(elements ...string) string {
		return `{"status":"success","data":[` + strings.Join(elements, ",") + `]}`
	}
	with := func(answer, name, text string) string {
		return strings.TrimSuffix(answer, "}") + `,"` + name + `":["` + text + `"]}`
	}
	refused := func(kind, text string) string {
		return `{"error":"` + text + `","errorType":"` + kind + `","status":"error"}`
	}
	for _, c := range []struct {
		named      bool
		path, form string
		code       int
		want       string
	}{
		{false, series, `match[]={host=~".%2B"}`, 200, list(a, b, c, s, u)},
		{false, series, `match[]={host="a"}`, 200, list(a, s)}, // one set of labels of three series
		{false, series, `match[]={host="a"}&match[]={host=~"b|a"}`, 200, list(a, b, s)},
		{false, series, `match[]={host!="",zone=""}`, 200, list(b, c, s, u)},
		{false, series, `match[]={"http.status"="200"}`, 200, list(s)},
		{false, series, `match[]={host="nobody"}`, 200, list()},
		{false, series, `match[]={host=~".%2B"}&limit=2`, 200, with(list(a, b), "warnings", truncated)},
		{false, series, `match[]={host=~".%2B"}&limit=5`, 200, list(a, b, c, s, u)},
		{false, series, `match[]={host=~".%2B"}&limit=0`, 200, list(a, b, c, s, u)},
		// The bucket's end is not in it; the artifact of region 2 does not say its times.
		{false, series, `match[]={host=~".%2B"}&start=1970-01-01T00:33:20Z`, 200, list(a, c, s, u)},
		{false, series, `match[]={host=~".%2B"}&start=1999.999`, 200, list(a, b, c, s, u)},
		{false, series, `match[]={host=~".%2B"}&end=1999.999`, 200, list(a, b, s, u)},
		{false, series, `match[]={host=~".%2B"}&end=2000`, 200, list(a, b, c, s, u)},
		{false, series, `match[]={host=~".%2B"}&start=3e3&end=1970-01-01T01:00:00.5Z`, 200, list(s, u)},
		{false, series, `match[]={host=~".%2B"}&end=999`, 200, list(s, u)},
		{false, series, `match[]={host=~".%2B"}&start=` + minTime + `&end=` + maxTime, 200, list(a, b, c, s, u)},
		{false, series, `match[]={host=~".%2B"}&start=-1e300&end=1e300`, 200, list(a, b, c, s, u)},

		{true, series, `match[]=up`, 200, list(`{"__name__":"up","host":"a","zone":"eu"}`, `{"__name__":"up","host":"b"}`, `{"__name__":"up","host":"c"}`)},
		{true, series, `match[]={__name__=~"up|down",host="a"}`, 200, list(`{"__name__":"up","host":"a","zone":"eu"}`, `{"__name__":"down","host":"a","zone":"eu"}`)},
		{true, series, `match[]={__name__!="up",host=~".*",zone!=""}`, 200, list(`{"__name__":"down","host":"a","zone":"eu"}`)},
		{true, series, `match[]={__name__!~"up|down|x"}`, 400, refused(badData, `invalid parameter \"match[]\": match[] must contain at least one non-empty matcher`)},
		{true, series, `match[]={__name__="none"}`, 200, list()},
		{true, "/api/v1/label/__name__/values", ``, 200, list(`"down"`, `"http_requests"`, `"up"`)},
		{true, "/api/v1/label/__name__/values", `match[]={zone="eu"}`, 200, list(`"down"`, `"up"`)},
		{true, "/api/v1/label/__name__/values", `limit=1`, 200, with(list(`"down"`), "warnings", truncated)},
		{true, labels, ``, 200, list(`"__name__"`, `"host"`, `"http.status"`, `"zone"`)},
		{true, labels, `match[]={host="c"}`, 200, list(`"__name__"`, `"host"`)},
		{true, labels, `match[]=up{zone="eu"}&match[]=http_requests`, 200, list(`"__name__"`, `"host"`, `"http.status"`, `"zone"`)},

		{false, labels, ``, 200, list(`"host"`, `"http.status"`, `"zone"`)},
		{false, labels, `match[]={host="b"}`, 200, list(`"host"`)},
		{false, labels, `start=2000&end=2500&match[]={host="b"}`, 200, list()},
		{false, labels, `limit=1`, 200, with(list(`"host"`), "warnings", truncated)},
		{false, "/api/v1/label/host/values", ``, 200, list(`"\"<é>\n"`, `"a"`, `"b"`, `"c"`)},
		{false, "/api/v1/label/host/values", `limit=3`, 200, with(list(`"\"<é>\n"`, `"a"`, `"b"`), "warnings", truncated)},
		{false, "/api/v1/label/zone/values", ``, 200, list(`"eu"`)},
		{false, "/api/v1/label/zone/values", `match[]={host="b"}`, 200, list()},
		{false, "/api/v1/label/U__http_2e_status/values", ``, 200, list(`"200"`)},
		{false, "/api/v1/label/http.status/values", ``, 200, list(`"200"`)},
		{false, "/api/v1/label/U__http_2e/values", ``, 200, list()}, // an escape that does not end is no escape
		{false, "/api/v1/label/a%2Fb/values", ``, 200, list()},
		{false, "/api/v1/label/%FF/values", ``, 400, refused(badData, `invalid label name: \"\\xff\"`)},
		{false, "/api/v1/label/__name__/values", ``, 200, with(list(), "infos", "metrics are tables, whose names stand in no artifact, and no list of them was given (--tables)")},

		{false, series, ``, 400, refused(badData, `no match[] parameter provided`)},
		{false, series, `match[]={}`, 400, refused(badData, `invalid parameter \"match[]\": match[] must contain at least one non-empty matcher`)},
		{false, labels, `match[]={host=~".*"}`, 400, refused(badData, `invalid parameter \"match[]\": match[] must contain at least one non-empty matcher`)},
		{false, series, `match[]=up`, 400, refused(badData, `invalid parameter \"match[]\": __name__=\"up\": metrics are tables, whose names stand in no artifact, and no list of them was given (--tables)`)},
		{false, series, `match[]={host="a"}&limit=-1`, 400, refused(badData, `invalid parameter \"limit\": limit must be non-negative`)},
		{false, labels, `limit=x`, 400, refused(badData, `invalid parameter \"limit\": strconv.Atoi: parsing \"x\": invalid syntax`)},
		{false, labels, `start=x`, 400, refused(badData, `invalid parameter \"start\": cannot parse \"x\" to a valid timestamp`)},
		{false, labels, `end=NaN`, 400, refused(badData, `invalid parameter \"end\": cannot parse \"NaN\" to a valid timestamp`)},
		{false, "/api/v1/query", `query=1%2B1`, 422, refused(execution, `series, label names and label values are answered here; queries of samples are not`)},
		{false, "/api/v1/targets", ``, 404, refused(notFound, `/api/v1/targets is not answered here`)},
	} {
		h := plain
		if c.named {
			h = named
		}
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"GET", "POST"} {
			if method == "POST" && strings.HasSuffix(c.path, "/values") {
				continue
			}
			// Twice: the second time from what is remembered.
			for range 2 {
				if code, body := ask(h, method, c.path, form); code != c.code || body != c.want {
					t.Errorf("%s %s %s: %d\n%s, want %d\n%s", method, c.path, c.form, code, body, c.code, c.want)
				}
			}
		}
	}
}

func TestBadRequests(t *testing.T) {
	h := handler(t, nil, store()...)
	code, body := ask(h, "POST", "/api/v1/label/host/values", nil)
	if e := decode(t, body); code != 405 || e.ErrorType != badData || !strings.Contains(e.Error, "want GET") {
		t.Errorf("POST of values: %d %s", code, body)
	}
	code, body = ask(h, "POST", "/api/v1/series", url.Values{"match[]": {"{a=\"" + strings.Repeat("x", maxForm) + "\"}"}})
	if e := decode(t, body); code != 400 || e.ErrorType != badData || !strings.Contains(e.Error, "too large") {
		t.Errorf("a long form: %d %.200s", code, body)
	}
	code, body = ask(h, "POST", "/api/v1/series", url.Values{"match[]": {strings.Repeat("{", 100_000)}})
	if e := decode(t, body); code != 400 || e.ErrorType != badData || len(body) > 10_000 {
		t.Errorf("a long selector: %d %.200s", code, body)
	}
	for path, want := range map[string]string{"/-/healthy": "Spile is healthy.\n", "/-/ready": "Spile is ready.\n"} {
		if code, body := ask(h, "GET", path, nil); code != 200 || body != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := ask(h, "GET", "/", nil); code != 404 {
		t.Errorf("/: %d", code)
	}
	if code, body := ask(h, "GET", "/api/v1/status/buildinfo", nil); code != 200 || !strings.Contains(body, `"version":""`) {
		t.Errorf("buildinfo: %d %s", code, body)
	}
}

// Artifacts that list different tags: a name is that of the latest bucket, a tag that one does not list comes from others.
func TestMergedTags(t *testing.T) {
	h := handler(t, nil,
		&spec{region: 1, generation: 1, start: 1000, end: 2000, tags: []series.Tag{{ColumnID: 1, Name: "server"}}, records: []series.Record{record(1, 1, "server=a"), record(1, 2, "server=b")}},
		&spec{region: 1, generation: 2, start: 2000, end: 3000, tags: []series.Tag{{ColumnID: 1, Name: "host"}, {ColumnID: 2, Name: "zone"}}, records: []series.Record{record(1, 1, "host=a", "zone=eu"), record(1, 3, "zone=us")}},
	)
	for _, c := range []struct{ path, selector, want string }{
		{"series", `{zone!~"x"}`, ""},
		{"series", `{nothing="",host!="b",server!="z"}`, ""},
		{"series", `{zone=~".+"}`, `[{"host":"a","zone":"eu"},{"zone":"us"}]`},
		{"series", `{server=~".+"}`, `[{"host":"a"},{"host":"b"}]`}, // matchers see an artifact as it is
		{"labels", `{server="b"}`, `["host"]`},
		{"label/host/values", `{server=~".+"}`, `["a","b"]`},
		{"label/server/values", `{server=~".+"}`, `[]`},
	} {
		code, body := ask(h, "GET", "/api/v1/"+c.path, match(c.selector))
		if c.want == "" {
			if code != 400 {
				t.Errorf("%s %s: %d %s", c.path, c.selector, code, body)
			}
		} else if e := decode(t, body); code != 200 || string(e.Data) != c.want {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.selector, code, body, c.want)
		}
	}
	if code, body := ask(h, "GET", "/api/v1/labels", nil); code != 200 || body != `{"status":"success","data":["host","zone"]}` {
		t.Errorf("labels: %d %s", code, body)
	}
}

// Labels that differ although the identifier is one: the earliest count, with a warning, or it is an error.
func TestConflict(t *testing.T) {
	specs := []*spec{
		{region: 1, generation: 1, start: 1000, end: 2000, tags: hostZone[:1], records: []series.Record{record(1, 1, "host=a")}},
		{region: 1, generation: 2, start: 2000, end: 3000, tags: hostZone, records: []series.Record{record(1, 1, "host=b", "zone=eu")}},
	}
	code, body := ask(handler(t, nil, specs...), "GET", "/api/v1/series", match(`{host=~".+"}`))
	if e := decode(t, body); code != 200 || string(e.Data) != `[{"host":"a","zone":"eu"}]` || len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "earliest") {
		t.Errorf("%d %s", code, body)
	}
	code, body = ask(handler(t, &Options{Strict: true}, specs...), "GET", "/api/v1/series", match(`{host=~".+"}`))
	if e := decode(t, body); code != 422 || e.ErrorType != execution || !strings.Contains(e.Error, `"a" in one artifact and "b" in another`) {
		t.Errorf("strict: %d %s", code, body)
	}
}

func TestNew(t *testing.T) {
	a := open(t, (&spec{region: 1, tags: []series.Tag{{ColumnID: 1, Name: "__name__"}}}).folder(t), nil, nil)
	if _, err := New([]*series.Artifact{a}, &Options{Strict: true}); !errors.Is(err, fault.Invalid) {
		t.Errorf("a tag __name__: %v", err)
	}
	told := 0
	h, err := New([]*series.Artifact{a}, &Options{Failed: func(error) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	_, body := ask(h, "GET", "/api/v1/labels", nil)
	if e := decode(t, body); told != 1 || string(e.Data) != `[]` || len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "has a tag __name__") {
		t.Errorf("told %d times, %s", told, body)
	}
	if _, err := New(nil, &Options{Timeout: -1}); !errors.Is(err, fault.Invalid) {
		t.Errorf("a timeout below 0: %v", err)
	}
}
