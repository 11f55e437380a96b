package promapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what a handler counts, in a registry of its own.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
	page     http.Handler
}

func newMetrics(h *Handler) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "spile_http_requests_total", Help: "Requests that were answered, by path and code; aborted are those whose answer broke off.",
		}, []string{"handler", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "spile_http_request_duration_seconds", Help: "How long requests took, by path.",
			Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 30},
		}, []string{"handler"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "spile_http_requests_running", Help: "Requests that are being answered, or wait."}),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m.requests, m.seconds, m.running, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
	}
	left := func() (n float64) {
		for _, a := range h.artifacts {
			if a.fault.Load() != nil {
				n++
			}
		}
		return n
	}
	gauge("spile_open_artifacts", "Artifacts that are answered from.", func() float64 { return float64(len(h.artifacts)) - left() })
	gauge("spile_bad_artifacts", "Artifacts that were left out since something was found wrong in them while they were served.", left)
	if reads := h.o.Reads; reads != nil {
		counter("spile_source_reads_total", "Reads that were asked of sources.", func() float64 { return float64(reads.requests.Load()) })
		counter("spile_source_read_bytes_total", "Bytes that were asked of sources.", func() float64 { return float64(reads.bytes.Load()) })
	}
	if cache := h.o.Cache; cache != nil {
		gauge("spile_cache_bytes", "Bytes of decoded pages and columns that are remembered.", func() float64 { return float64(cache.Bytes()) })
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "spile_build_info", Help: "The version of the program."}, []string{"version"})
	info.WithLabelValues(h.o.Version).Set(1)
	r.MustRegister(info)
	m.page = promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return m
}

// begin counts a request; the function that it returns tells how it ended.
func (m *metrics) begin(path string) func(code string, elapsed time.Duration) {
	m.running.Inc()
	return func(code string, elapsed time.Duration) {
		m.running.Dec()
		m.requests.WithLabelValues(path, code).Inc()
		m.seconds.WithLabelValues(path).Observe(elapsed.Seconds())
	}
}
