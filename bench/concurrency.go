package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
)

const manyReaders = 64

// leafReader reads random leaves of one document, from any number of goroutines.
type leafReader struct {
	reader *msglc.Reader
	runs   int
}

func newLeafReader(file string, runs int, o *msglc.Options) (*leafReader, error) {
	obj, err := source.OpenFile(file)
	if err != nil {
		return nil, err
	}
	r, err := msglc.Open(context.Background(), obj, o)
	if err != nil {
		obj.Close()
		return nil, err
	}
	return &leafReader{r, runs}, nil
}

// read reads the leaf that the random source says.
func (l *leafReader) read(random *rand.Rand) error {
	v, err := l.leaf(random.IntN(l.runs), random.IntN(stepsOfRun))
	if err != nil {
		return err
	}
	if _, ok := v.(float64); !ok {
		return fmt.Errorf("an energy is %T", v)
	}
	return nil
}

func (l *leafReader) leaf(run, step int) (any, error) {
	ctx := context.Background()
	n, err := l.reader.Find(ctx, msglc.Path{
		msglc.TextStep("runs"), msglc.IndexStep(int64(run)), msglc.TextStep("steps"), msglc.IndexStep(int64(step)), msglc.TextStep("energy"),
	})
	if err != nil {
		return nil, err
	}
	return n.Value(ctx)
}

// rate is how many leaves a second so many goroutines read together, measured for a while. In processor time it is what
// they would read if they had cores for themselves: what they wait for one another does not show, what they spin does.
func (l *leafReader) rate(goroutines int, during time.Duration, e effort) (float64, error) {
	var reads atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	start, used := time.Now(), e.now()
	for g := range goroutines {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 5))
			done := int64(0)
			for time.Since(start) < during {
				for range 16 { // the clock costs as much as a part of a read
					if err := l.read(random); err != nil {
						failed.Store(err)
						return
					}
					done++
				}
			}
			reads.Add(done)
		})
	}
	all.Wait()
	if err, ok := failed.Load().(error); ok {
		return 0, err
	}
	took := (e.now() - used).Seconds()
	if e.cpu {
		took /= float64(min(goroutines, runtime.GOMAXPROCS(0)))
	}
	return float64(reads.Load()) / took, nil
}

func measureConcurrency(s *setup) ([]row, error) {
	if runtime.NumCPU() < 2 {
		s.notes = append(s.notes, "one core: nothing to say about concurrency")
		return nil, nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	file, err := s.documentFile(int64(s.archive))
	if err != nil {
		return nil, err
	}
	if err := warm(file); err != nil {
		return nil, err
	}
	var rows []row
	for _, c := range []struct {
		name    string
		options *msglc.Options
	}{
		{"random leaves, default cache", nil},
		{"random leaves, no cache", &msglc.Options{CacheBytes: -1}},
	} {
		progress("  %s", c.name)
		r, err := s.concurrent(file, c.options)
		if err != nil {
			return nil, err
		}
		r.Job = c.name
		rows = append(rows, r)
	}
	return rows, nil
}

func (s *setup) concurrent(file string, o *msglc.Options) (row, error) {
	l, err := newLeafReader(file, runsOf(int64(s.archive)), o)
	if err != nil {
		return row{}, err
	}
	defer l.reader.Close()
	during := max(s.batch, 200*time.Millisecond)
	if _, err := l.rate(1, 2*during, s.effort); err != nil { // the places of nodes are learnt on the way
		return row{}, err
	}
	var one, many []float64
	for round := range s.rounds {
		for k := range 2 {
			n, list := 1, &one
			if (k+round)%2 == 1 {
				n, list = manyReaders, &many
			}
			x, err := l.rate(n, during, s.effort)
			if err != nil {
				return row{}, err
			}
			*list = append(*list, x)
		}
	}
	alone, spread1 := median(one)
	together, spread2 := median(many)
	r := row{
		Section: "concurrency",
		Ours:    figure{Value: together, Unit: perSecond, Spread: spread2},
		Peer:    "one goroutine", Theirs: &figure{Value: alone, Unit: perSecond, Spread: spread1},
		Ratio: together / alone,
		Note:  fmt.Sprintf("%d goroutines on 2 cores", manyReaders),
	}
	r.atLeast(r.Ratio, 1.7, "1.7 x")
	return r, nil
}
