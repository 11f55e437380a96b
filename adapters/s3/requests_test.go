package s3_test

import (
	"net/http"
	"testing"

	"github.com/spilehq/spile/adapters/internal/storesuite"
	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/source/remote"
)

// TestRequests: lists and uploads keep to the limits of the options, and are counted.
func TestRequests(t *testing.T) {
	clean(t)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	l := &storesuite.Limited{
		Prefix: "s3://bucket/",
		Page:   "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
		Made:   func(w http.ResponseWriter, _ []byte) { w.Header().Set("ETag", `"0"`) },
		Open: func(endpoint string, o remote.Requests) storesuite.Store {
			return open(t, endpoint, s3.Options{Requests: o})
		},
	}
	l.Run(t)
}
