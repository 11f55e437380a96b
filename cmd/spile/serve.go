package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/adapters/promapi"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// serveFlags say how artifacts are served.
type serveFlags struct {
	listen      string
	allowRemote bool
	tableNames  string
	strict      bool
	timeout     time.Duration
	maxBytes    size
	memory      size
	concurrent  int
	cacheBytes  size
	ending      time.Duration
	accessLog   bool
}

// defaultListen is loopback; the port is SPIL on a telephone, and free on most machines.
const defaultListen = "127.0.0.1:7745"

func (f *serveFlags) add(flags *pflag.FlagSet) {
	f.maxBytes, f.memory, f.cacheBytes = promapi.DefaultMaxBytes, promapi.DefaultMemory, 256<<20
	flags.StringVar(&f.listen, "listen", defaultListen, "the `ADDRESS` and port to listen on; port 0 is any that is free")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "let --listen be an address that others can reach: there is no password and no TLS")
	flags.StringVar(&f.tableNames, "tables", "", "the `FILE` with the names of tables for __name__, CSV: table id, name")
	flags.BoolVar(&f.strict, "strict", false, "do not start with a bad artifact, and fail requests that meet one, instead of answering without it")
	flags.DurationVar(&f.timeout, "request-timeout", promapi.DefaultTimeout, "how long a request may take, as 500ms, 30s or 2m")
	flags.Var(&f.maxBytes, "request-max-bytes", "the bytes that a request may read")
	flags.Var(&f.memory, "request-memory", "the memory that a request may take, beside the cache")
	flags.IntVar(&f.concurrent, "max-concurrent", promapi.DefaultConcurrent, "answer `N` requests at a time; others wait")
	flags.Var(&f.cacheBytes, "cache-bytes", "the bytes of decoded pages and columns that are remembered, of all artifacts")
	flags.DurationVar(&f.ending, "shutdown-timeout", 10*time.Second, "how long running requests may go on after a signal to end")
	flags.BoolVar(&f.accessLog, "access-log", false, "say on standard error what was answered, a line for each request, without its parameters")
}

func (f *serveFlags) check() error {
	for _, d := range []struct {
		name  string
		value int64
	}{
		{"request-timeout", int64(f.timeout)}, {"request-max-bytes", int64(f.maxBytes)}, {"request-memory", int64(f.memory)},
		{"max-concurrent", int64(f.concurrent)}, {"cache-bytes", int64(f.cacheBytes)}, {"shutdown-timeout", int64(f.ending)},
	} {
		if d.value < 1 {
			return usagef("--%s must be above 0", d.name)
		}
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return usagef("--listen %q, want an address and a port, as %s", f.listen, defaultListen)
	}
	if !f.allowRemote && !isLoopback(host) {
		return usagef("--listen %s can be reached by others, and there is no password; --allow-remote permits it", f.listen)
	}
	return nil
}

// isLoopback reports whether a host is this machine for itself alone.
func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func newServe(e *env) *cobra.Command {
	var in sourceFlags
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve DIR... [flags]",
		Short: "Answer the HTTP API of Prometheus from artifacts",
		Long: `Serve answers the part of the HTTP API of Prometheus that is about series from artifacts: /api/v1/series,
/api/v1/labels and /api/v1/label/NAME/values, with match[], start, end and limit. A folder stands for all artifacts below it;
which there are is found out once, at the start.

An artifact answers for its bucket of time. The metric is no label here but the table, unless --tables names them. A bad
artifact is named on standard error and in the warnings of answers, and the others are served.

/-/healthy and /-/ready say that it runs, /metrics what it has done. Only this machine can reach it, unless --listen and
--allow-remote say otherwise. An interrupt ends it when the running requests are done; the exit status is 3 then if
artifacts were left out.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile serve --listen 127.0.0.1:0 out & sleep 1; kill $!; wait $!`,
		Args:              arguments(1, -1),
		ValidArgsFunction: completeFiles(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return e.serve(cmd.Context(), args, &in, &f)
		},
	}
	in.add(cmd.Flags())
	in.addArtifacts()
	for _, name := range []string{"format", "magic", "offset", "depth", "no-sidecar"} { // of files that are no artifacts
		if flag := cmd.Flags().Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	f.add(cmd.Flags())
	return cmd
}

// serving is what a server has open.
type serving struct {
	e         *env
	artifacts []*series.Artifact
	warnings  []string
	mu        sync.Mutex // over standard error, which requests write to
}

func (s *serving) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.e.say(format, args...)
}

// bad names an artifact that is left out.
func (s *serving) bad(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.e.partial = true
	s.e.say("left out: %s", s.e.hinted(err))
}

// Write is where the HTTP server says what went wrong.
func (s *serving) Write(p []byte) (int, error) {
	s.say("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

func (e *env) serve(ctx context.Context, args []string, in *sourceFlags, f *serveFlags) error {
	var names map[uint32]string
	if f.tableNames != "" {
		var err error
		if names, err = readTableNames(f.tableNames); err != nil {
			return err
		}
	}
	var reads promapi.Reads
	cache := series.NewCache(int64(f.cacheBytes))
	e.wrap, in.artifacts.cache = reads.Object, cache
	s := &serving{e: e}
	defer func() {
		for _, a := range s.artifacts {
			a.Close()
		}
	}()
	args, err := e.verified(ctx, args)
	if err != nil {
		return err
	}
	if err := s.open(ctx, args, in, f.strict); err != nil {
		return err
	}
	o := &promapi.Options{
		Names: names, Timeout: f.timeout, MaxBytes: int64(f.maxBytes), Memory: int64(f.memory), Concurrent: f.concurrent,
		Strict: f.strict, Warnings: s.warnings, Failed: s.bad, Reads: &reads, Cache: cache, Version: strings.Fields(version())[0],
	}
	if f.accessLog {
		o.Served = func(r *promapi.Request) {
			why := ""
			if r.Err != nil {
				why = ": " + r.Err.Error()
			}
			s.say("%s %s %s %d bytes %v%s", r.Method, r.Path, r.Code, r.Bytes, r.Elapsed.Round(time.Microsecond), why)
		}
	}
	h, err := promapi.New(s.artifacts, o)
	if err != nil {
		return err
	}
	return s.run(ctx, h, f)
}

// open opens artifacts. A bad one is named and passed, unless strict.
func (s *serving) open(ctx context.Context, files []string, in *sourceFlags, strict bool) error {
	for _, file := range files {
		a, err := s.openOne(ctx, file, in)
		switch {
		case err == nil:
			s.artifacts = append(s.artifacts, a)
		case strict || ctx.Err() != nil:
			return err
		default:
			s.bad(err)
			s.warnings = append(s.warnings, "left out: "+message(err))
		}
	}
	if len(s.artifacts) == 0 {
		return fault.New(fault.Invalid, "", "no artifact is left to be served")
	}
	return nil
}

func (s *serving) openOne(ctx context.Context, file string, in *sourceFlags) (*series.Artifact, error) {
	d, err := s.e.open(ctx, file, in)
	if err != nil {
		return nil, named(err, file)
	}
	if d.artifact == nil || d.artifact.Manifest() == nil {
		d.Close()
		return nil, fault.New(fault.Invalid, "", "is no series artifact with its manifest, and this verb takes those").In(d.name)
	}
	return d.artifact.Artifact, nil
}

// run serves until the context ends, and then until the running requests have.
func (s *serving) run(ctx context.Context, h http.Handler, f *serveFlags) error {
	if !f.allowRemote {
		h = ownHost(h)
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fault.New(nil, "", "").In(f.listen).Because(syscallError(err))
	}
	// Requests outlive the signal to end, for a while.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: log.New(s, "", 0),
		// A client that is slow to ask, or to take its answer, does not hold a connection for long.
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: f.timeout + 10*time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	s.say("serving %s at http://%s", things(len(s.artifacts), "artifact"), listener.Addr())
	select {
	case err := <-ended:
		return fault.New(nil, "", "").In(f.listen).Because(err)
	case <-ctx.Done():
	}
	defer server.Close()
	if err := shutdown(server, f.ending); errors.Is(err, context.DeadlineExceeded) {
		s.say("requests that ran longer than %v were ended", f.ending)
		cancel()
		_ = shutdown(server, time.Second) // for their errors; Close ends what is left
	}
	return nil
}

func shutdown(server *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return server.Shutdown(ctx)
}

// ownHost refuses requests for another host than this machine: a page in a browser here may make them, by a name of its
// own that leads to this machine.
func ownHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !isLoopback(cmp.Or(host, "localhost")) {
			http.Error(w, "requests for other hosts than this machine need --allow-remote", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// syscallError is an error of the net package without the address in front.
func syscallError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

// things is a number of things.
func things(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
