package httprange_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/rangetest"
	"github.com/spilehq/spile/internal/toxic"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// behind puts a network that misbehaves in front of an object.
func behind(t *testing.T, data []byte, f toxic.Faults) (*toxic.Proxy, string) {
	t.Helper()
	s := rangetest.New(t)
	upstream, err := url.Parse(s.Put("/object", data))
	if err != nil {
		t.Fatal(err)
	}
	upstream.Path = ""
	proxy := toxic.New(upstream, f)
	// The way to the server belongs to the test, so that nothing of it is left.
	way := &http.Transport{}
	proxy.Transport(way)
	front := httptest.NewServer(proxy)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		way.CloseIdleConnections()
	})
	return proxy, front.URL + "/object"
}

// TestBadNetwork reads at random places, and all from front to back, over networks that misbehave: what comes is right, or it
// is an error that says what has happened, after no more requests than are allowed, all of which are in the receipt.
func TestBadNetwork(t *testing.T) {
	data := rangetest.Content(3 << 20)
	for name, f := range map[string]toxic.Faults{
		"late":    {MaxLatency: 5 * time.Millisecond},
		"cut":     {Cut: 0.4},
		"reset":   {Reset: 0.4},
		"refused": {Refuse: 0.2, Burst: 3},
		"drip":    {Drip: 0.5, DripPiece: 16 << 10, DripPause: 100 * time.Microsecond},
		"all":     {MaxLatency: time.Millisecond, Cut: 0.15, Reset: 0.15, Refuse: 0.05, Burst: 2, Drip: 0.2, DripPiece: 64 << 10, DripPause: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			f.Seed = uint64(len(name))
			proxy, at := behind(t, data, f)
			var meter source.Meter
			const retries = 3
			o := &httprange.Options{Options: remote.Options{Meter: &meter, Retries: retries, ReadAhead: -1}}
			var obj source.Object
			err := errors.New("not tried")
			for tries := 0; err != nil && tries < 20; tries++ {
				obj, err = httprange.OpenURL(t.Context(), at, o)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer obj.Close()
			good, bad := 0, 0
			judge := func(off int64, got []byte, err error) {
				t.Helper()
				if err == nil {
					if good++; !bytes.Equal(got, data[off:off+int64(len(got))]) {
						t.Errorf("%d bytes at %d are others", len(got), off)
					}
					return
				}
				if _, ok := errors.AsType[*fault.Error](err); !ok {
					t.Errorf("an error without a type: %v", err)
				}
				bad++
			}
			dice := rand.New(rand.NewPCG(1, f.Seed))
			for range 30 {
				p := make([]byte, 1+dice.IntN(200_000))
				off := dice.Int64N(int64(len(data) - len(p)))
				before := proxy.Requests()
				err := obj.ReadAt(t.Context(), p, off)
				judge(off, p, err)
				// The transport may send one more for each, on a connection that was used before.
				if n := proxy.Requests() - before; n > 2*(retries+1) {
					t.Errorf("%d requests for one read", n)
				}
			}
			all, err := io.ReadAll(source.NewReader(t.Context(), obj, 0, obj.Size(), 0))
			judge(0, all, err)
			if good < 20 {
				t.Errorf("%d reads were right, %d failed", good, bad)
			}
			if seen, got := proxy.Requests(), meter.Receipt().Requests; got != int64(seen) {
				t.Errorf("receipt of %d requests, the network has seen %d", got, seen)
			}
		})
	}
}

// TestDeadNetwork pins how often is tried what never succeeds, and what is said then.
func TestDeadNetwork(t *testing.T) {
	data := rangetest.Content(1 << 20)
	for name, tt := range map[string]struct {
		faults toxic.Faults
		class  error
	}{
		"reset":   {toxic.Faults{Reset: 1}, nil},
		"refused": {toxic.Faults{Refuse: 1}, nil},
		"slow":    {toxic.Faults{MinLatency: time.Hour, MaxLatency: time.Hour}, context.DeadlineExceeded},
		"drip":    {toxic.Faults{Drip: 1, DripPiece: 1, DripPause: time.Hour}, context.DeadlineExceeded},
	} {
		proxy, at := behind(t, data, tt.faults)
		var meter source.Meter
		_, err := httprange.OpenURL(t.Context(), at, &httprange.Options{Options: remote.Options{Meter: &meter, Retries: 1, Timeout: 50 * time.Millisecond}})
		if _, ok := errors.AsType[*fault.Error](err); !ok || tt.class != nil && !errors.Is(err, tt.class) {
			t.Errorf("%s: %v", name, err)
		}
		if seen, got := proxy.Requests(), meter.Receipt().Requests; seen != 2 || got != 2 {
			t.Errorf("%s: %d requests, %d in the receipt, want 2", name, seen, got)
		}
	}
}

// TestBadNetworkCancel ends reads while the answer drips: they return the end of the context, and nothing goes on.
func TestBadNetworkCancel(t *testing.T) {
	data := rangetest.Content(1 << 20)
	proxy, at := behind(t, data, toxic.Faults{Drip: 1, DripPiece: 64 << 10, DripPause: 10 * time.Millisecond})
	obj, err := httprange.OpenURL(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer obj.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- obj.ReadAt(ctx, make([]byte, 900_000), 100_000) }()
	for proxy.Drips.Load() < 2 { // of opening, and of the read
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := proxy.Requests(); n != 2 {
		t.Errorf("%d requests", n)
	}
}
