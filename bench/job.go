package main

import (
	"fmt"
	"reflect"
	"time"
)

// job is something to be done to an input.
type job struct {
	section string
	name    string
	bytes   int64       // of the input, for throughput; 0 where throughput says nothing
	ours    contender   // Spile
	peers   []contender // what else does it; none where the only target is a throughput

	throughput float64 // bytes a second that ours is to reach; 0: none
	seconds    float64 // that ours is to need at most; 0: none
	oneCore    bool    // is measured with GOMAXPROCS=1
	allocated  bool    // a row for each peer compares the bytes that are allocated; ours are to be fewer where there is a target for the time
	rounds     int     // at most so many batches, where one run takes seconds; 0: as many as are asked for
}

// contender is one way to do a job.
type contender struct {
	name string
	run  func() error // does the job once

	// answer does the job once and returns the result, in a form that the contenders of the job share.
	answer func() (any, error)

	// bytesRead returns how many bytes all runs so far have read of the source; nil where the input is in memory.
	bytesRead func() int64

	// requests does the same for requests to a server; nil where there is none.
	requests func() int64

	// spent returns how long all runs so far took by a clock of the contender's own; nil where that of this process counts.
	spent func() time.Duration

	// Of a peer: how many times faster than it ours is to be. Below 1 ours may be slower. 0: no target.
	target float64
}

func (j *job) contenders() []contender { return append([]contender{j.ours}, j.peers...) }

// check makes sure that the contenders do the same job.
func (j *job) check() error {
	want, err := j.ours.answer()
	if err != nil {
		return fmt.Errorf("%s: %s: %w", j.name, j.ours.name, err)
	}
	for _, p := range j.peers {
		got, err := p.answer()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", j.name, p.name, err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s: %s and %s give different answers: %s", j.name, j.ours.name, p.name, difference(want, got, ""))
		}
	}
	return nil
}

// difference names the first place where two answers differ.
func difference(a, b any, at string) string {
	switch x := a.(type) {
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				if !reflect.DeepEqual(x[i], y[i]) {
					return difference(x[i], y[i], fmt.Sprintf("%s/%d", at, i))
				}
			}
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok && len(x) == len(y) {
			for k := range x {
				if !reflect.DeepEqual(x[k], y[k]) {
					return difference(x[k], y[k], at+"/"+k)
				}
			}
		}
	}
	return fmt.Sprintf("at %q: %.80v (%T) against %.80v (%T)", at, a, a, b, b)
}
