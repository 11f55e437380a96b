package gcs_test

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

	"github.com/spilehq/spile/adapters/gcs"
	"github.com/spilehq/spile/source/remote"
)

// drawer is a store of one object, which an example can do with.
func drawer() *httptest.Server {
	var object string
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			object = string(body)
			fmt.Fprintf(w, `{"generation":"1","size":"%d","crc32c":"yZRlqg=="}`, len(object))
		case strings.HasSuffix(r.URL.Path, "/o"):
			fmt.Fprintf(w, `{"items":[{"name":"hello.txt","size":"%d","generation":"1"}]}`, len(object))
		default:
			w.Header().Set("X-Goog-Generation", "1")
			http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(object))
		}
	}))
}

func ExampleStore() {
	server := drawer()
	defer server.Close()
	os.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	defer os.Unsetenv("STORAGE_EMULATOR_HOST")

	ctx := context.Background()
	store, err := gcs.New(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	w, err := store.Create(ctx, "gs://bucket/hello.txt", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort(ctx)
	io.WriteString(w, "hello world")
	if err := w.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	for entry, err := range store.List(ctx, "gs://bucket/") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Name, entry.Size, entry.Version)
	}

	// Read some bytes of it by one request.
	g, err := store.Getter("gs://bucket/hello.txt")
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
	// gs://bucket/hello.txt 11 1
	// 206 6 9 11 wor
}
