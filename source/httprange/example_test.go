package httprange_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// serve is a server of one file, as most servers of files are.
func serve(content string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}))
}

// A value of a document that a server has: this one is short, and comes whole with the first request.
func ExampleOpenURL() {
	doc, err := msglc.Dumps(map[string]any{"label": "run 0", "energy": []float64{-1.5, -2.25}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := serve(string(doc))
	defer server.Close()

	ctx := context.Background()
	var meter source.Meter
	obj, err := httprange.OpenURL(ctx, server.URL+"/run.msg", &httprange.Options{Options: remote.Options{Meter: &meter}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := msglc.Open(ctx, obj, nil)
	if err != nil {
		obj.Close()
		fmt.Println(err)
		return
	}
	defer r.Close()
	n, err := r.Find(ctx, msglc.SplitPath("energy/-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n.Value(ctx))
	fmt.Println(meter.Receipt().Requests, "request")
	// Output:
	// -2.25 <nil>
	// 1 request
}

// Objects that share a client share its connections. A header goes to the host of the URL, and to no other.
func ExampleNewClient() {
	server := serve("peg, cask, tap")
	defer server.Close()
	client := httprange.NewClient()
	defer client.CloseIdleConnections()
	ctx := context.Background()
	for _, path := range []string{"/a", "/b"} {
		obj, err := httprange.OpenURL(ctx, server.URL+path, &httprange.Options{
			Client: client, Header: http.Header{"Authorization": {"Bearer of the token"}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(path, obj.Size(), obj.Version())
		obj.Close()
	}
	// Output:
	// /a 14 "1"
	// /b 14 "1"
}

// Options hold what is asked for to a budget.
func ExampleOptions() {
	server := serve(strings.Repeat("x", 1_000_000))
	defer server.Close()
	ctx := context.Background()
	meter := source.Meter{MaxBytes: 100_000}
	obj, err := httprange.OpenURL(ctx, server.URL+"/x", &httprange.Options{Options: remote.Options{Head: 1000, Meter: &meter}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer obj.Close()
	err = obj.ReadAt(ctx, make([]byte, 500_000), 1000)
	fmt.Println(strings.ReplaceAll(err.Error(), server.URL, "http://server"))
	fmt.Println(meter.Receipt().Bytes, "bytes came")
	// Output:
	// source: http://server/x: budget of 100000 bytes: 1000 used, the read adds 500000
	// 1000 bytes came
}

// A URL is shown without what may be secret in it.
func ExampleName() {
	fmt.Println(httprange.Name("https://me:secret@example.com/runs.msg?X-Signature=0123&expires=60"))
	// Output: https://example.com/runs.msg?X-Signature=...&expires=...
}
