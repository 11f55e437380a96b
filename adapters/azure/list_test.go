package azure_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spilehq/spile/adapters/azure"
	"github.com/spilehq/spile/fault"
)

// TestListCircles: a list that leads back to a page that was there before ends, with an error, also when its pages are empty.
func TestListCircles(t *testing.T) {
	clean(t)
	t.Setenv("AZURE_NO_SIGN_REQUEST", "yes")
	const blob = `<Blob><Name>a</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>`
	for name, test := range map[string]struct {
		next  func(marker string) string
		blobs string
	}{
		"the same page":   {func(string) string { return "t" }, blob},
		"empty pages":     {func(string) string { return "t" }, ""},
		"a longer circle": {func(marker string) string { return map[string]string{"": "1", "1": "2", "2": "3", "3": "1"}[marker] }, blob},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests > 100 {
				w.WriteHeader(404)
				return
			}
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w, `<EnumerationResults><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>`, test.blobs, test.next(r.URL.Query().Get("marker")))
		}))
		var last error
		for _, last = range open(t, &azure.Options{Account: account, Endpoint: server.URL}).List(t.Context(), "azblob://container/") {
		}
		if server.Close(); !errors.Is(last, fault.Corrupt) || requests > 20 {
			t.Errorf("%s: %v after %d requests", name, last, requests)
		}
	}
}
