package httprange_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/spilehq/spile/internal/rangetest"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// A redirect keeps the range, costs a request once, and takes no credentials to another host.
func TestRedirects(t *testing.T) {
	data := rangetest.Content(300_000)
	there, here := rangetest.New(t), rangetest.New(t)
	there.Put("/moved", data)
	seen := map[string][]string{}
	look := func(who string) func(*rangetest.Answer) {
		return func(a *rangetest.Answer) {
			seen[who] = append(seen[who], a.Request.Header.Get("Authorization")+a.Request.Header.Get("Cookie")+a.Request.Header.Get("X-Key"))
		}
	}
	there.Bend(look("there"))
	here.Bend(func(a *rangetest.Answer) {
		look("here")(a)
		rangetest.Redirect(302, strings.Replace(there.URL, "http://", "http://x:y@", 1)+"/moved?signature=abc")(a)
	})
	url := strings.Replace(here.URL, "http://", "http://me:secret@", 1) + "/object"
	r := mustOpen(t, here, url, &httprange.Options{Header: http.Header{"Cookie": {"c=1"}, "X-Key": {"k"}}})
	r.want(data, 100_000, 1000)
	r.want(data, 200_000, 1000)
	if got := there.Requests(); len(got) != 3 || got[1] != "GET /moved 100000-100999" || len(here.Requests()) != 1 {
		t.Errorf("%q, then %q", here.Requests(), got)
	}
	if got := seen["here"][0]; !strings.HasPrefix(got, "Basic ") || !strings.HasSuffix(got, "c=1k") {
		t.Errorf("the host itself got %q", got)
	}
	for _, got := range seen["there"] {
		if got != "" {
			t.Errorf("another host got %q", got)
		}
	}
	if strings.Contains(r.Name(), "secret") || r.Name() != here.URL+"/object" {
		t.Errorf("name %s", r.Name())
	}
	receipt := r.meter.Receipt()
	if receipt.Requests != 4 || receipt.Bytes != here.Bytes()+there.Bytes() {
		t.Errorf("%+v, the servers have sent %d and %d", receipt, here.Bytes(), there.Bytes())
	}
	// When the place is good no longer, the URL leads to the next one.
	there.Bend(rangetest.Only(4, rangetest.Status(403, "")))
	r.want(data, 100_000, 1000)
	if got := r.meter.Receipt().Requests; got != 7 || len(here.Requests()) != 2 || len(there.Requests()) != 5 {
		t.Errorf("%d requests, %q, %q", got, here.Requests(), there.Requests())
	}
	r.Close()
}

func TestRedirectLoops(t *testing.T) {
	s := rangetest.New(t)
	s.Bend(rangetest.Redirect(307, "/object"))
	r, err := open(t, s, s.URL+"/object?token=abc", nil)
	wantFault(t, err, err, "more than 10 redirects", "/object?token=...")
	r.done(11)
}

// A redirect is held to the budget before it is followed.
func TestRedirectBudget(t *testing.T) {
	s := rangetest.New(t)
	s.Put("/moved", rangetest.Content(10))
	s.Bend(rangetest.Only(1, rangetest.Redirect(302, "/moved")))
	o := &httprange.Options{}
	r := &reading{t: t, server: s}
	r.meter.MaxRequests = 1
	o.Meter = &r.meter
	_, err := httprange.OpenURL(t.Context(), s.URL+"/object", o)
	wantFault(t, err, err, "budget of 1 requests")
	r.done(1)
}

// Nothing that is secret in a URL is in a name or a message.
func TestSecrets(t *testing.T) {
	for url, name := range map[string]string{
		"http://me:hunter2@127.0.0.1:1/a/b?X-Sig=geheim&exp=1&geheim#geheim": "http://127.0.0.1:1/a/b?X-Sig=...&exp=...&...",
		"http://127.0.0.1:1/%zzgeheim":                                       "a URL that cannot be read",
		"ftp://me:hunter2@127.0.0.1/geheim?geheim":                           "ftp://127.0.0.1/geheim?...",
		"http://me:hunter2@/x":                                               "http:///x",
	} {
		_, err := httprange.OpenURL(context.Background(), url, &httprange.Options{Options: remote.Options{Retries: -1}})
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") || strings.Contains(strings.ReplaceAll(err.Error(), "127.0.0.1/geheim", ""), "geheim") {
			t.Errorf("%v, want %s", err, name)
		}
		if got := httprange.Name(url); got != name {
			t.Errorf("%s, want %s", got, name)
		}
	}
}

// A connection that is closed under a request is not a request for free: the transport sends it again, and it is counted.
func TestTransportRetries(t *testing.T) {
	data := rangetest.Content(300_000)
	s := rangetest.New(t)
	r := mustOpen(t, s, s.Put("/object", data), nil)
	s.Bend(func(a *rangetest.Answer) {
		if a.N == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	r.want(data, 100_000, 1000)
	r.done(3)
}

// What cannot be read of an answer may be a place with a signature, and is not shown.
func TestSecretPlaces(t *testing.T) {
	for _, place := range []string{"http://a.example:geheim/x?sig=geheim", "http://a.example/%zz?sig=geheim", "//[geheim/"} {
		s := rangetest.New(t)
		s.Bend(rangetest.Redirect(302, place))
		_, err := open(t, s, s.URL+"/object", &httprange.Options{Options: remote.Options{Retries: -1}})
		if err == nil || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "leads to no URL") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// An ETag without its quotes is no time: it is compared with that of each answer, and no condition.
func TestBareETag(t *testing.T) {
	var conditions []string
	s := rangetest.New(t)
	s.Bend(func(a *rangetest.Answer) {
		conditions = append(conditions, a.Request.Header.Get("If-Match")+a.Request.Header.Get("If-Unmodified-Since"))
		a.Header.Set("ETag", "abc")
	})
	data := rangetest.Content(300_000)
	r := mustOpen(t, s, s.Put("/object", data), nil)
	r.want(data, 200_000, 1000)
	r.done(2)
	if conditions[0]+conditions[1] != "" {
		t.Errorf("conditions %q", conditions)
	}
}
