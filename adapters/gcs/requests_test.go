package gcs_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"testing"

	"github.com/spilehq/spile/adapters/gcs"
	"github.com/spilehq/spile/adapters/internal/storesuite"
	"github.com/spilehq/spile/source/remote"
)

// TestRequests: lists and uploads keep to the limits of the options, and are counted.
func TestRequests(t *testing.T) {
	clean(t)
	l := &storesuite.Limited{
		Prefix: "gs://bucket/",
		Page:   `{"items":[{"name":"a","size":"1","generation":"1"}]}`,
		Made: func(w http.ResponseWriter, content []byte) {
			sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
			fmt.Fprintf(w, `{"generation":"7","size":"%d","crc32c":%q}`, len(content), base64.StdEncoding.EncodeToString(sum))
		},
		Open: func(endpoint string, o remote.Requests) storesuite.Store {
			return open(t, &gcs.Options{Endpoint: endpoint, Requests: o})
		},
	}
	l.Run(t)
}
