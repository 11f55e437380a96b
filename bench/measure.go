package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// effort says how long a measurement may take.
type effort struct {
	rounds int           // batches of each contender; odd, so that the median is one of them
	batch  time.Duration // at least this long is a batch, so that the clock and a collection do not decide
	cpu    bool          // count the time of the processor that this process was given, not the time of day
}

// now is a point in the time that is counted. Where other programs want the processor, its time says more of work on
// one core; it says nothing of waiting. The time of a child process counts once that has ended.
func (e effort) now() time.Duration {
	if !e.cpu {
		return time.Since(began)
	}
	var total int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			panic(err) // there are no other arguments that it could take
		}
		total += used.Utime.Nano() + used.Stime.Nano()
	}
	return time.Duration(total)
}

var began = time.Now()

// measurement is what a contender needed for one run.
type measurement struct {
	Seconds   float64 `json:"seconds"` // the median of the batches
	Spread    float64 `json:"spread"`  // the distance of the quartiles as a share of the median
	Allocs    float64 `json:"allocs"`
	Allocated float64 `json:"allocated"` // bytes
	BytesRead float64 `json:"bytes_read"`
	Requests  float64 `json:"requests"`
}

// measure checks a job and times its contenders.
func (j *job) measure(e effort) ([]measurement, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	if j.oneCore {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	if j.rounds > 0 {
		e.rounds = min(e.rounds, j.rounds)
	}
	return measureEach(e, j.contenders())
}

// measureEach times contenders with alternating batches: A B C, C B A, and so on, so that what the machine does
// besides hits all of them.
func measureEach(e effort, list []contender) ([]measurement, error) {
	timers := make([]batchTimer, len(list))
	for i, c := range list {
		timers[i].contender, timers[i].effort = c, e
		if err := timers[i].calibrate(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for round := range e.rounds {
		for k := range timers {
			i := k
			if round%2 == 1 {
				i = len(timers) - 1 - k
			}
			if err := timers[i].runBatch(); err != nil {
				return nil, fmt.Errorf("%s: %w", list[i].name, err)
			}
		}
	}
	results := make([]measurement, len(timers))
	for i := range timers {
		results[i] = timers[i].result()
	}
	return results, nil
}

type batchTimer struct {
	contender
	effort
	runs    int // in a batch
	seconds []float64
	last    measurement
}

// calibrate finds how many runs fill a batch. It warms up caches and pools on the way.
func (t *batchTimer) calibrate() error {
	for t.runs = 1; ; {
		start := time.Now()
		for range t.runs {
			if err := t.run(); err != nil {
				return err
			}
		}
		took := time.Since(start)
		if took >= t.batch {
			return nil
		}
		grow := 1.2 * float64(t.batch) / float64(max(took, time.Microsecond))
		t.runs = int(math.Ceil(float64(t.runs) * min(grow, 100)))
	}
}

func (t *batchTimer) runBatch() error {
	var before, after runtime.MemStats
	var read, asked int64
	var spent time.Duration
	if t.spent != nil {
		spent = t.spent()
	}
	if t.bytesRead != nil {
		read = t.bytesRead()
	}
	if t.requests != nil {
		asked = t.requests()
	}
	runtime.GC() // nobody pays for what another has left; what a contender leaves within its batch, it pays for
	runtime.ReadMemStats(&before)
	start := t.now()
	for range t.runs {
		if err := t.run(); err != nil {
			return err
		}
	}
	took := (t.now() - start).Seconds()
	if t.spent != nil {
		took = (t.spent() - spent).Seconds()
	}
	runtime.ReadMemStats(&after)
	n := float64(t.runs)
	t.seconds = append(t.seconds, took/n)
	t.last.Allocs = float64(after.Mallocs-before.Mallocs) / n
	t.last.Allocated = float64(after.TotalAlloc-before.TotalAlloc) / n
	if t.bytesRead != nil {
		t.last.BytesRead = float64(t.bytesRead()-read) / n
	}
	if t.requests != nil {
		t.last.Requests = float64(t.requests()-asked) / n
	}
	return nil
}

func (t *batchTimer) result() measurement {
	m := t.last
	m.Seconds, m.Spread = median(t.seconds)
	return m
}

// median returns the median and the distance of the quartiles as a share of it.
func median(values []float64) (m, spread float64) {
	if len(values) == 0 {
		return math.NaN(), 0
	}
	v := slices.Sorted(slices.Values(values))
	m = v[len(v)/2]
	if len(v)%2 == 0 {
		m = (v[len(v)/2-1] + m) / 2
	}
	return m, (v[len(v)*3/4] - v[len(v)/4]) / m
}

// progress says on standard error what is being done; tables go to standard output.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
