package toxic

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whatever goes wrong, bytes that arrive are those of the server, in order, and each fault is seen by the client.
func TestProxy(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer server.Close()
	upstream, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := New(upstream, Faults{Seed: 7, Cut: 0.2, Reset: 0.2, Refuse: 0.1, Burst: 3, Drip: 0.2, DripPiece: 32 << 10})
	front := httptest.NewUnstartedServer(proxy)
	front.Config.ErrorLog = nil
	front.Start()
	defer front.Close()

	var whole, cuts, resets, refusals int64
	for range 200 {
		req, err := http.NewRequestWithContext(t.Context(), "GET", front.URL, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", "bytes=16-65551")
		req.GetBody = nil // the transport would try again by itself
		resp, err := front.Client().Do(req)
		if err != nil {
			resets++
			continue
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusServiceUnavailable:
			refusals++
			continue
		case err != nil:
			cuts++
		case len(got) == 64<<10:
			whole++
		default:
			t.Errorf("%d bytes without an error", len(got))
		}
		if !bytes.Equal(got, data[16:16+len(got)]) {
			t.Fatal("wrong bytes")
		}
	}
	if whole == 0 || cuts != proxy.Cuts.Load() || refusals != proxy.Refusals.Load() || resets > proxy.Resets.Load() {
		t.Errorf("%d whole, %d of %d cuts, %d of %d refusals, %d of %d resets", whole, cuts, proxy.Cuts.Load(), refusals, proxy.Refusals.Load(), resets, proxy.Resets.Load())
	}
	if proxy.Cuts.Load() == 0 || proxy.Resets.Load() == 0 || proxy.Refusals.Load() < 3 || proxy.Drips.Load() == 0 {
		t.Error("a fault did not happen in 200 requests")
	}
}
