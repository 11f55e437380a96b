package s3_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// drawer is a store of one object, which an example can do with.
func drawer() *httptest.Server {
	var object string
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		switch {
		case r.Method == http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			object = string(body)
		case r.URL.Query().Has("list-type"):
			fmt.Fprintf(w, `<ListBucketResult><Contents><Key>hello.txt</Key><Size>%d</Size><ETag>"v1"</ETag></Contents></ListBucketResult>`, len(object))
		default:
			http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(object))
		}
	}))
}

func ExampleStore() {
	server := drawer()
	defer server.Close()
	os.Setenv("AWS_NO_SIGN_REQUEST", "YES") // programs leave both variables to their users
	os.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	defer os.Unsetenv("AWS_NO_SIGN_REQUEST")
	defer os.Unsetenv("AWS_ENDPOINT_URL_S3")

	ctx := context.Background()
	var meter source.Meter
	store, err := s3.New(ctx, &s3.Options{Requests: remote.Requests{Retries: 2, Timeout: 10 * time.Second, Meter: &meter}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	// Write an object whose beginning is known last.
	w, err := store.Create(ctx, "s3://bucket/hello.txt", &remote.WriteOptions{Hold: 5})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort(ctx)
	io.WriteString(w, "..... world")
	w.WriteAt([]byte("hello"), 0)
	if err := w.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	for entry, err := range store.List(ctx, "s3://bucket/") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Name, entry.Size, entry.Version)
	}

	fmt.Println(meter.Receipt().Requests, "requests, sent", meter.Receipt().Sent)

	// Read some bytes of it by one request.
	g, err := store.Getter("s3://bucket/hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	resp, err := g.Get(ctx, remote.Request{Start: 6, Len: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status, resp.Start, resp.End, resp.Size, string(body))
	// Output:
	// s3://bucket/hello.txt 11 "v1"
	// 2 requests, sent 11
	// 206 6 9 11 wor
}
