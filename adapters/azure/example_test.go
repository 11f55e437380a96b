package azure_test

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

	"github.com/spilehq/spile/adapters/azure"
	"github.com/spilehq/spile/source/remote"
)

// drawer is a store of one blob, which an example can do with.
func drawer() *httptest.Server {
	var object string
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		switch {
		case r.Method == http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			object = string(body)
			w.WriteHeader(http.StatusCreated)
		case r.URL.Query().Get("comp") == "list":
			fmt.Fprintf(w, `<EnumerationResults><Blobs><Blob><Name>hello.txt</Name><Properties><Content-Length>%d</Content-Length><Etag>v1</Etag>
				</Properties></Blob></Blobs><NextMarker/></EnumerationResults>`, len(object))
		default:
			r.Header.Set("Range", r.Header.Get("x-ms-range"))
			http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(object))
		}
	}))
}

func ExampleStore() {
	server := drawer()
	defer server.Close()
	os.Setenv("AZURE_NO_SIGN_REQUEST", "YES") // programs leave both variables to their users
	os.Setenv("AZURE_STORAGE_SERVICE_ENDPOINT", server.URL)
	defer os.Unsetenv("AZURE_NO_SIGN_REQUEST")
	defer os.Unsetenv("AZURE_STORAGE_SERVICE_ENDPOINT")

	ctx := context.Background()
	store, err := azure.New(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	w, err := store.Create(ctx, "azblob://container/hello.txt", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort(ctx)
	io.WriteString(w, "hello world")
	if err := w.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	for entry, err := range store.List(ctx, "azblob://container/") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Name, entry.Size, entry.Version)
	}

	// Read some bytes of it by one request.
	g, err := store.Getter("azblob://container/hello.txt")
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
	// azblob://container/hello.txt 11 "v1"
	// 206 6 9 11 wor
}
