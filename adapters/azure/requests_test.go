package azure_test

import (
	"net/http"
	"testing"

	"github.com/spilehq/spile/adapters/azure"
	"github.com/spilehq/spile/adapters/internal/storesuite"
	"github.com/spilehq/spile/source/remote"
)

// TestRequests: lists and uploads keep to the limits of the options, and are counted.
func TestRequests(t *testing.T) {
	clean(t)
	t.Setenv("AZURE_STORAGE_KEY", key)
	l := &storesuite.Limited{
		Prefix: "azblob://container/",
		Page: "<EnumerationResults><Blobs><Blob><Name>a</Name><Properties><Content-Length>1</Content-Length></Properties></Blob></Blobs>" +
			"</EnumerationResults>",
		Made: func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusCreated) },
		Open: func(endpoint string, o remote.Requests) storesuite.Store {
			return open(t, &azure.Options{Account: account, Endpoint: endpoint, Requests: o})
		},
	}
	l.Run(t)
}
