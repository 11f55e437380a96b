// Soak reads and writes objects of a real S3 server for a while, over a network that misbehaves: answers are late, bodies end too
// early, connections break, requests are refused in bursts, bytes drip. Every answer is compared with the truth, which is in
// memory. At the end as much memory is in use as in the beginning, and no goroutine, no open file and no part of an upload
// is left; the exit status says whether that was so.
//
//	go run ./adapters/internal/soak -duration 10m -versitygw PATH
//
// .ci/soak installs the server and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/internal/toxic"
)

func main() {
	flags := flag.NewFlagSet("soak", flag.ExitOnError)
	duration := flags.Duration("duration", 10*time.Minute, "how long to read and write")
	program := flags.String("versitygw", os.Getenv("SPILE_VERSITYGW"), "the `program` of the server")
	seed := flags.Uint64("seed", 1, "of the faults and of what is done")
	workers := flags.Int("workers", 8, "how many things are done at once")
	flags.Parse(os.Args[1:])
	if *program == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "soak: -versitygw names the program of the server; there are no arguments")
		os.Exit(2)
	}
	// Whatever hangs, this ends.
	time.AfterFunc(*duration+5*time.Minute, func() {
		fmt.Fprintln(os.Stderr, "soak: has not ended five minutes behind its time; what it does:")
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		os.Exit(1)
	})
	if err := soak(*program, *duration, *seed, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	fmt.Println("all answers were right, and nothing is left")
}

// network is how bad the network is.
func network(seed uint64) toxic.Faults {
	return toxic.Faults{
		Seed: seed, MinLatency: 20 * time.Millisecond, MaxLatency: 400 * time.Millisecond,
		Cut: 0.04, Reset: 0.04, Refuse: 0.01, Burst: 4, Drip: 0.03, DripPiece: 16 << 10, DripPause: 5 * time.Millisecond,
	}
}

func soak(program string, duration time.Duration, seed uint64, workers int) (err error) {
	goroutines, files := runtime.NumGoroutine(), openFiles()
	s, err := begin(program, seed)
	if s != nil {
		defer s.end()
	}
	if err != nil {
		return err
	}
	var heaps []uint64
	steps := []float64{0.1, 0.5, 1} // of the time: warm, in the middle, at the end
	began := time.Now()
	for i, step := range steps {
		s.work(time.Until(began.Add(time.Duration(step*float64(duration)))), workers, uint64(i))
		if s.wrong.Load() > 0 {
			return fmt.Errorf("%d wrong answers", s.wrong.Load())
		}
		heaps = append(heaps, heap())
		fmt.Printf("%v: %d MiB in use, %d goroutines, %d files; %s\n", time.Since(began).Round(time.Second), heaps[i]>>20,
			runtime.NumGoroutine(), openFiles(), s.counts())
	}
	// What is cached varies by some MiB; what leaks with every operation is far more after minutes.
	if most := heaps[0] + heaps[0]/4 + 16<<20; heaps[1] > most || heaps[2] > most {
		return fmt.Errorf("memory has grown: %d, %d, %d bytes in use in the beginning, the middle and at the end, at most %d expected", heaps[0], heaps[1], heaps[2], most)
	}
	if n := s.done.Load(); n == 0 || s.gaveUp.Load() > 2+n/50 {
		return fmt.Errorf("%d of %d operations gave up, a fiftieth at most expected", s.gaveUp.Load(), n)
	}
	left, err := s.left()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("left on the server: %q", left)
	}
	s.end()
	return ended(goroutines, files)
}

// ended checks that goroutines and files are as many as in the beginning, once they had the time to end.
func ended(goroutines, files int) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		g, f := runtime.NumGoroutine(), openFiles()
		if g <= goroutines && f <= files {
			return nil
		}
		if time.Now().After(deadline) {
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return fmt.Errorf("%d goroutines and %d open files, %d and %d in the beginning", g, f, goroutines, files)
		}
	}
}

// openFiles counts the open files, sockets among them; 0 where the system does not tell.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// state is a run.
type state struct {
	dir    string
	proxy  *toxic.Proxy
	front  *httptest.Server
	store  *s3.Store // over the bad network
	direct *s3.Store // over a good one, for the truth
	client *minio.Client
	good   *http.Transport // of the client
	stop   func()          // of the server
	truth

	done, gaveUp, wrong, kept atomic.Int64
	kinds                     []atomic.Int64 // by operation
	once                      sync.Once
}

// begin starts the server and writes what is read.
func begin(program string, seed uint64) (s *state, err error) {
	dir, err := os.MkdirTemp("", "spile-soak-*")
	if err != nil {
		return nil, err
	}
	s = &state{dir: dir, kinds: make([]atomic.Int64, len(operations))}
	address, stop, err := storetest.LaunchVersityGW(program, dir, bucket)
	if err != nil {
		return s, err
	}
	s.stop = stop
	upstream := &url.URL{Scheme: "http", Host: address}
	s.proxy = toxic.New(upstream, network(seed))
	s.front = httptest.NewUnstartedServer(s.proxy)
	s.front.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are broken on purpose
	s.front.Start()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": storetest.S3AccessKey, "AWS_SECRET_ACCESS_KEY": storetest.S3SecretKey, "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		os.Setenv(name, value)
	}
	ctx := context.Background()
	if s.store, err = s3.New(ctx, &s3.Options{Endpoint: s.front.URL, Region: "us-east-1"}); err != nil {
		return s, err
	}
	if s.direct, err = s3.New(ctx, &s3.Options{Endpoint: upstream.String(), Region: "us-east-1"}); err != nil {
		return s, err
	}
	s.good = &http.Transport{}
	s.client, err = minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(storetest.S3AccessKey, storetest.S3SecretKey, ""), Region: "us-east-1", Transport: s.good,
	})
	if err != nil {
		return s, err
	}
	return s, s.truth.make(ctx, s.direct)
}

// end stops everything that begin has started.
func (s *state) end() {
	s.once.Do(func() {
		for _, store := range []*s3.Store{s.store, s.direct} {
			if store != nil {
				store.Close()
			}
		}
		if s.good != nil {
			s.good.CloseIdleConnections()
		}
		if s.front != nil {
			s.front.Close()
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() // of the proxy
		if s.stop != nil {
			s.stop()
		}
		os.RemoveAll(s.dir)
	})
}

// heap is the memory in use while nothing is done.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what has a finalizer, or lies in a pool, goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// left lists what is on the server beside what is meant to be there: uploads that were not completed, and objects.
func (s *state) left() (left []string, err error) {
	ctx := context.Background()
	for u := range s.client.ListIncompleteUploads(ctx, bucket, "", true) {
		if u.Err != nil {
			return nil, u.Err
		}
		left = append(left, "an upload of "+u.Key)
	}
	for o := range s.client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: writtenPrefix, Recursive: true}) {
		if o.Err != nil {
			return nil, o.Err
		}
		left = append(left, o.Key)
	}
	// A request to clean up can fail as any other; the writer says so then, and that is not nothing, but no leak either.
	if int64(len(left)) <= s.kept.Load() {
		left = nil
	}
	return left, nil
}

func (s *state) counts() string {
	var b strings.Builder
	for i, op := range operations {
		fmt.Fprintf(&b, "%d %s, ", s.kinds[i].Load(), op.name)
	}
	fmt.Fprintf(&b, "%d gave up; %d requests, of which %d were cut, %d broken, %d refused, %d dripped", s.gaveUp.Load(), s.proxy.Requests(),
		s.proxy.Cuts.Load(), s.proxy.Resets.Load(), s.proxy.Refusals.Load(), s.proxy.Drips.Load())
	return b.String()
}

// errWrong is an answer that is not the truth.
var errWrong = errors.New("wrong answer")

func wrongf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errWrong}, args...)...)
}
