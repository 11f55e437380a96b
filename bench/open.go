package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spilehq/spile/source"
)

// positions are the places that are read: the table of contents is passed over as far as the path leads, so a late run
// costs more than an early one.
var positions = []struct {
	name string
	at   float64
}{{"early", 0.01}, {"middle", 0.5}, {"late", 0.99}}

// openings are the jobs of opening a document and reading one deep value, at each position.
func openings(file string, runs int) []job {
	var jobs []job
	for _, p := range positions {
		jobs = append(jobs, job{
			section: "open",
			name:    p.name + ": " + deepPath(runs, p.at),
			ours:    opening(file, deepPath(runs, p.at)),
			oneCore: true,
		})
	}
	return jobs
}

func opening(file, path string) contender {
	var meter source.Meter
	read := func() (any, error) { return readDeep(context.Background(), file, path, &meter) }
	return contender{
		name:      "Spile",
		run:       func() error { _, err := read(); return err },
		answer:    read,
		bytesRead: func() int64 { return meter.Receipt().Bytes },
	}
}

func measureOpen(s *setup) ([]row, error) {
	big, small := int64(s.archive), int64(s.archive/10)
	bigFile, err := s.documentFile(big)
	if err != nil {
		return nil, err
	}
	smallFile, err := s.documentFile(small)
	if err != nil {
		return nil, err
	}
	for _, file := range []string{smallFile, bigFile} {
		if err := warm(file); err != nil {
			return nil, err
		}
	}
	rows, err := s.besideOriginal(bigFile, bytesText(float64(big)), openings(bigFile, runsOf(big)))
	if err != nil {
		return nil, err
	}
	longer, err := s.besideShorter(bigFile, smallFile, big, small)
	return append(rows, longer...), err
}

// besideOriginal measures openings of a document, each beside the original doing the same.
func (s *setup) besideOriginal(file, size string, jobs []job) ([]row, error) {
	o, err := s.startOriginal()
	if errors.Is(err, errNoPython) {
		s.notes = append(s.notes, err.Error())
		for i := range jobs {
			jobs[i].name = size + ", " + jobs[i].name
		}
		return s.measureJobs(jobs)
	}
	if err != nil {
		return nil, err
	}
	defer o.close()
	s.notes = append(s.notes, "the original: "+o.about)
	var rows []row
	for i, p := range positions {
		j := &jobs[i]
		if s.jobs != nil && !s.jobs.MatchString(j.name) {
			continue
		}
		progress("  %s, %s", size, j.name)
		ours, theirs, err := s.alternate(j, o, file, deepPath(runsOf(int64(s.archive)), p.at))
		if err != nil {
			return nil, err
		}
		r := j.rows([]measurement{ours})[0]
		r.Job = size + ", " + j.name
		r.Peer, r.Ratio = "msglc (Python)", theirs.Seconds/ours.Seconds
		r.Theirs = &figure{Value: theirs.Seconds, Unit: seconds, Spread: theirs.Spread, BytesRead: theirs.BytesRead}
		r.atLeast(r.Ratio, 300, "300 x")
		rows = append(rows, r)
	}
	return rows, nil
}

// alternate measures one opening and the same by the original, in turns.
func (s *setup) alternate(j *job, o *original, file, path string) (ours, theirs measurement, err error) {
	first, err := o.open(file, path, 1, s.cpu)
	if err != nil {
		return ours, theirs, err
	}
	value, err := j.ours.answer()
	if err != nil {
		return ours, theirs, err
	}
	if !reflect.DeepEqual(numbers(value), first.Value) {
		return ours, theirs, fmt.Errorf("%s: %v, and %v by the original", path, value, first.Value)
	}
	n := max(1, int(s.batch.Seconds()/first.Seconds[0]))
	t := batchTimer{contender: j.ours, effort: s.effort}
	if err := t.calibrate(); err != nil {
		return ours, theirs, err
	}
	var times []float64
	original := func() error {
		time.Sleep(time.Millisecond) // the collector of this process may still be at work
		answer, err := o.open(file, path, n, s.cpu)
		m, _ := median(answer.Seconds)
		times = append(times, m)
		return err
	}
	for round := range s.rounds {
		steps := []func() error{t.runBatch, original}
		for k := range steps {
			if err := steps[(k+round)%2](); err != nil {
				return ours, theirs, err
			}
		}
	}
	theirs.Seconds, theirs.Spread = median(times)
	theirs.BytesRead = first.Bytes
	return t.result(), theirs, nil
}

// besideShorter measures the same openings in a document and in one a tenth as long.
func (s *setup) besideShorter(bigFile, smallFile string, big, small int64) ([]row, error) {
	name := func(size int64) string { return "Spile, " + bytesText(float64(size)) }
	same := deepPath(runsOf(small), 0.5)
	jobs := []job{
		{name: "same path: " + same, ours: opening(bigFile, same), peers: []contender{opening(smallFile, same)}},
		{name: "late in each", ours: opening(bigFile, deepPath(runsOf(big), 0.99)), peers: []contender{opening(smallFile, deepPath(runsOf(small), 0.99))}},
	}
	// A document ten times as long is to cost the same; a fifth is left for noise.
	jobs[0].peers[0].target = 0.8
	for i := range jobs {
		j := &jobs[i]
		j.section, j.oneCore = "open", true
		j.name = bytesText(float64(big)) + ", " + j.name
		j.peers[0].name = name(small)
		// The two documents are made alike and differ in length, so only the kind of the answer can be compared.
		for _, c := range []*contender{&j.ours, &j.peers[0]} {
			read := c.answer
			c.answer = func() (any, error) {
				v, err := read()
				return reflect.TypeOf(v), err
			}
		}
	}
	return s.measureJobs(jobs)
}
