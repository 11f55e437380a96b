// Package toxic is a network that misbehaves, for tests: a proxy in front of a server of byte ranges that answers late, cuts
// bodies short, breaks connections, refuses in bursts, and lets bytes drip. What it does follows from a seed and the number of the
// request. It never changes a byte that it passes on.
package toxic

import (
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Faults say how often something goes wrong, each as a share of the requests, 0 to 1, and how late answers are.
type Faults struct {
	Seed       uint64
	MinLatency time.Duration // each answer is this late at least,
	MaxLatency time.Duration // and this late at most
	Cut        float64       // the body ends too early, with the connection
	Reset      float64       // the connection breaks before the answer
	Refuse     float64       // a burst of 503 begins
	Burst      int           // how many requests a burst refuses; less than 1 means 1
	Drip       float64       // the body comes in small pieces
	DripPiece  int           // the bytes of a piece; less than 1 means 4096
	DripPause  time.Duration // between two pieces
}

// Proxy passes requests to a server, with faults. It is safe for concurrent use.
type Proxy struct {
	faults  Faults
	proxy   httputil.ReverseProxy
	count   atomic.Uint64
	refused atomic.Int64 // requests that the burst still refuses

	// What went wrong so far.
	Cuts, Resets, Refusals, Drips atomic.Int64
}

// New returns a proxy in front of the server at upstream.
func New(upstream *url.URL, f Faults) *Proxy {
	p := &Proxy{faults: f}
	p.proxy = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Host = r.In.Host // which signatures hold
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return p
}

// Transport has the requests to the server sent by t, in place of the default one. It is set before the first request.
func (p *Proxy) Transport(t http.RoundTripper) { p.proxy.Transport = t }

// Requests is the number of requests so far.
func (p *Proxy) Requests() uint64 { return p.count.Load() }

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := &p.faults
	dice := rand.New(rand.NewPCG(f.Seed, p.count.Add(1)))
	if wait := f.MinLatency + time.Duration(dice.Float64()*float64(f.MaxLatency-f.MinLatency)); wait > 0 {
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
	}
	if dice.Float64() < f.Refuse {
		p.refused.Store(int64(max(1, f.Burst)))
	}
	if p.refused.Add(-1) >= 0 {
		p.Refusals.Add(1)
		w.Header().Set("Retry-After", "0")
		http.Error(w, "slow down", http.StatusServiceUnavailable)
		return
	}
	if dice.Float64() < f.Reset {
		p.Resets.Add(1)
		panic(http.ErrAbortHandler)
	}
	out := &body{ResponseWriter: w, proxy: p, r: r, cut: -1}
	if dice.Float64() < f.Cut {
		out.cut = dice.Float64()
	}
	if dice.Float64() < f.Drip {
		p.Drips.Add(1)
		out.drip = true
	}
	p.proxy.ServeHTTP(out, r)
}

// body is an answer that may be cut or drip.
type body struct {
	http.ResponseWriter
	proxy *Proxy
	r     *http.Request
	cut   float64 // where, as a share of the length; below 0 nowhere
	left  int64   // bytes before the cut
	drip  bool
}

func (b *body) WriteHeader(status int) {
	if b.cut >= 0 {
		length, err := strconv.ParseInt(b.Header().Get("Content-Length"), 10, 64)
		if err != nil { // as of an answer without a body
			length = 0
		}
		b.left = int64(b.cut * float64(length))
	}
	b.ResponseWriter.WriteHeader(status)
}

func (b *body) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		piece := p
		if b.drip {
			piece = p[:min(len(p), pieceOf(b.proxy.faults.DripPiece))]
		}
		if b.cut >= 0 && int64(len(piece)) > b.left {
			b.ResponseWriter.Write(piece[:b.left])
			http.NewResponseController(b.ResponseWriter).Flush()
			b.proxy.Cuts.Add(1)
			panic(http.ErrAbortHandler) // the server breaks the connection
		}
		var m int
		m, err = b.ResponseWriter.Write(piece)
		n += m
		b.left -= int64(m)
		p = p[len(piece):]
		if b.drip {
			http.NewResponseController(b.ResponseWriter).Flush()
			select {
			case <-time.After(b.proxy.faults.DripPause):
			case <-b.r.Context().Done():
				return n, b.r.Context().Err()
			}
		}
	}
	return n, err
}

func pieceOf(n int) int {
	if n < 1 {
		return 4096
	}
	return n
}

// Unwrap gives the answer below.
func (b *body) Unwrap() http.ResponseWriter { return b.ResponseWriter }
