package promapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spec is an artifact to be made.
type spec struct {
	region     uint64
	generation byte
	start, end int64 // seconds; both 0: not known
	tags       []series.Tag
	records    []series.Record // sorted
	block      int
}

var hostZone = []series.Tag{{ColumnID: 1, Name: "host"}, {ColumnID: 2, Name: "zone"}}

// record is a series with labels "name=value".
func record(table uint32, tsid uint64, labels ...string) series.Record {
	r := series.Record{ID: series.ID{Table: table, TSID: tsid}, RowCount: 1}
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		r.Labels = append(r.Labels, series.Label{Name: name, Value: value})
	}
	return r
}

// folder makes an artifact.
func (s *spec) folder(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	meta := &series.Manifest{RegionID: s.region, Generation: series.UUID{s.generation}, Tags: s.tags}
	meta.Coverage.IndexUUID = meta.Generation
	if s.start != 0 || s.end != 0 {
		meta.Coverage.BucketStart = &series.Timestamp{Value: s.start, Unit: "Second"}
		meta.Coverage.BucketEnd = &series.Timestamp{Value: s.end * 1000, Unit: "Millisecond"}
	}
	target := series.NewFolderTarget(t.TempDir(), s.region, meta.Generation)
	w, err := series.NewWriter(ctx, target, meta, &series.WriteOptions{BlockSeries: s.block})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.records {
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return target.Dir()
}

// open opens an artifact whose objects wrap has wrapped.
func open(t testing.TB, dir string, cache *series.Cache, wrap func(source.Object) source.Object) *series.Artifact {
	t.Helper()
	a, err := series.Open(context.Background(), func(_ context.Context, name string) (source.Object, error) {
		obj, err := source.OpenFile(filepath.Join(dir, name))
		if err == nil && wrap != nil {
			obj = wrap(obj)
		}
		return obj, err
	}, &series.Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func handler(t testing.TB, o *Options, specs ...*spec) *Handler {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	if o.Reads == nil {
		o.Reads = &Reads{}
	}
	var artifacts []*series.Artifact
	for _, s := range specs {
		artifacts = append(artifacts, open(t, s.folder(t), o.Cache, o.Reads.Object))
	}
	h, err := New(artifacts, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask asks a handler without a connection.
func ask(h http.Handler, method, path string, form url.Values) (int, string) {
	r := httptest.NewRequest(method, path+"?"+form.Encode(), nil)
	if method == http.MethodPost {
		r = httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// serve serves a handler on a connection, until the test ends.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.Client().CloseIdleConnections()
		s.Close()
	})
	return s
}

// get gets a page, its length and whether it has come whole.
func get(t testing.TB, s *httptest.Server, path string, form url.Values) (code int, body string, err error) {
	t.Helper()
	res, err := s.Client().Get(s.URL + path + "?" + form.Encode())
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// envelope is an answer.
type envelope struct {
	Status    string
	Data      json.RawMessage
	ErrorType string
	Error     string
	Warnings  []string
	Infos     []string
}

func decode(t testing.TB, body string) (e envelope) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return e
}

func match(selectors ...string) url.Values { return url.Values{"match[]": selectors} }
