package gcs_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/spilehq/spile/adapters/gcs"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source/remote"
)

// TestListCircles: a list that leads back to a page that was there before ends, with an error.
func TestListCircles(t *testing.T) {
	clean(t)
	for name, next := range map[string]func(token string) string{
		"the same page":   func(string) string { return "t" },
		"a longer circle": func(token string) string { return map[string]string{"": "1", "1": "2", "2": "3", "3": "1"}[token] },
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests > 100 {
				w.WriteHeader(404)
				return
			}
			fmt.Fprintf(w, `{"items":[{"name":"a","size":"1","generation":"1"}],"nextPageToken":%q}`, next(r.URL.Query().Get("pageToken")))
		}))
		var last error
		for _, last = range open(t, &gcs.Options{Endpoint: server.URL}).List(t.Context(), "gs://bucket/") {
		}
		if server.Close(); !errors.Is(last, fault.Corrupt) || requests > 20 {
			t.Errorf("%s: %v after %d requests", name, last, requests)
		}
	}
}

// TestListedNames: what a list gives is read as what was listed, also when a name looks like one with a generation.
func TestListedNames(t *testing.T) {
	clean(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("alt") == "media" {
			asked = append(asked, r.URL.EscapedPath()+" "+r.URL.Query().Get("generation"))
			w.WriteHeader(404)
			return
		}
		fmt.Fprint(w, `{"items":[{"name":"report","size":"1","generation":"5"},{"name":"report#2024","size":"1","generation":"6"}]}`)
	}))
	defer server.Close()
	s := open(t, &gcs.Options{Endpoint: server.URL})
	for e, err := range s.List(t.Context(), "gs://bucket/") {
		storetest.Must(t, err)
		g, err := s.Getter(e.Name)
		storetest.Must(t, err)
		_, err = g.Get(t.Context(), remote.Request{Len: 10})
		storetest.Must(t, err)
	}
	if want := []string{"/storage/v1/b/bucket/o/report ", "/storage/v1/b/bucket/o/report%232024 6"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, expected %q", asked, want)
	}
}
