package promapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/spilehq/spile/adapters/promapi"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// A handler of one artifact, asked without a connection.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "promapi")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	meta := &series.Manifest{RegionID: 1, Tags: []series.Tag{{ColumnID: 5, Name: "host"}}}
	target := series.NewFolderTarget(dir, meta.RegionID, meta.Generation)
	w, err := series.NewWriter(ctx, target, meta, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Abort()
	for tsid, host := range []string{"web-1", "web-2", "db"} {
		r := series.Record{ID: series.ID{Table: 1025, TSID: uint64(tsid)}, RowCount: 1, Labels: []series.Label{{Name: "host", Value: host}}}
		if err := w.Add(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	var reads promapi.Reads
	cache := series.NewCache(64 << 20)
	a, err := series.Open(ctx, func(_ context.Context, name string) (source.Object, error) {
		obj, err := source.OpenFile(filepath.Join(target.Dir(), name))
		if err != nil {
			return nil, err
		}
		return reads.Object(obj), nil
	}, &series.Options{Cache: cache})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	h, err := promapi.New([]*series.Artifact{a}, &promapi.Options{Names: map[uint32]string{1025: "up"}, Reads: &reads, Cache: cache})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/api/v1/series?match[]=up{host=~%22web.*%22}", "/api/v1/label/host/values", "/api/v1/series"} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(answer.Code, answer.Body)
	}
	// Output:
	// 200 {"status":"success","data":[{"__name__":"up","host":"web-1"},{"__name__":"up","host":"web-2"}]}
	// 200 {"status":"success","data":["db","web-1","web-2"]}
	// 400 {"error":"no match[] parameter provided","errorType":"bad_data","status":"error"}
}
