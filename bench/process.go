package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// originalGet is what a user of the original would run for spile get.
const originalGet = `import sys, json
from msglc.reader import LazyReader, to_obj
with LazyReader(sys.argv[1]) as reader:
    print(json.dumps(to_obj(reader.read(sys.argv[2]))))`

func measureProcess(s *setup) ([]row, error) {
	spile, err := s.spile()
	if err != nil {
		return nil, err
	}
	empty, err := s.emptyProgram()
	if err != nil {
		return nil, err
	}
	file, err := s.documentFile(int64(s.archive))
	if err != nil {
		return nil, err
	}
	if err := warm(file); err != nil {
		return nil, err
	}
	rows, err := s.getBesideOriginal(spile, file)
	if err != nil {
		return nil, err
	}
	start, err := s.startUp(spile, empty)
	if err != nil {
		return nil, err
	}
	rows = append(rows, start...)
	memory, err := s.peakOfGet(spile, file)
	return append(rows, memory...), err
}

// getBesideOriginal measures spile get against Python doing the same.
func (s *setup) getBesideOriginal(spile, file string) ([]row, error) {
	python, err := s.pythonProgram()
	if errors.Is(err, errNoPython) {
		s.notes = append(s.notes, err.Error())
	} else if err != nil {
		return nil, err
	}
	runs, size := runsOf(int64(s.archive)), bytesText(float64(s.archive))
	var jobs []job
	for _, p := range positions {
		path := deepPath(runs, p.at)
		j := job{section: "process", name: fmt.Sprintf("spile get, %s, %s", size, p.name), ours: process("Spile", spile, "get", file, path)}
		if python != "" {
			j.peers = append(j.peers, process("python -c, msglc", python, "-c", originalGet, file, path).atLeast(30))
		}
		jobs = append(jobs, j)
	}
	rows, err := s.measureJobs(jobs)
	for i := range rows { // what this process allocates is not what they need
		rows[i].Ours.Allocs = nil
		if rows[i].Theirs != nil {
			rows[i].Theirs.Allocs = nil
		}
	}
	return rows, err
}

// process is a contender that is a program; what it prints is JSON.
func process(name, program string, args ...string) contender {
	return contender{
		name: name,
		run:  func() error { return exec.Command(program, args...).Run() },
		answer: func() (any, error) {
			cmd := exec.Command(program, args...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("%w: %s", err, &errs)
			}
			var v any
			err = json.Unmarshal(out, &v)
			return v, err
		},
	}
}

// startUp measures spile get on a tiny document against a Go program that does nothing.
func (s *setup) startUp(spile, empty string) ([]row, error) {
	tiny := filepath.Join(s.dir, "tiny.msg")
	if err := writeArchive(tiny, 1); err != nil {
		return nil, err
	}
	args := []string{"get", tiny, "config/nodes"}
	want, err := process("Spile", spile, args...).answer()
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(want, 64.0) {
		return nil, fmt.Errorf("config/nodes is %v", want)
	}
	progress("  start-up")
	m, err := measureEach(s.effort, []contender{process("Spile", spile, args...), process("an empty Go program", empty)})
	if err != nil {
		return nil, err
	}
	difference := m[0].Seconds - m[1].Seconds
	r := row{
		Section: "process", Job: "spile get, a tiny document",
		Ours: figure{Value: m[0].Seconds, Unit: seconds, Spread: m[0].Spread},
		Peer: "an empty Go program", Theirs: &figure{Value: m[1].Seconds, Unit: seconds, Spread: m[1].Spread},
		Note: "difference " + duration(difference),
	}
	r.atMost(difference, 15e-3, "15 ms more")
	rows := []row{r}
	inits, err := packageInits(spile, args)
	if err != nil {
		return nil, err
	}
	total := 0.0
	for _, p := range inits {
		total += p.seconds
	}
	var dear []string
	for _, p := range inits[:min(6, len(inits))] {
		dear = append(dear, fmt.Sprintf("%s %s", p.name, duration(p.seconds)))
	}
	rows = append(rows, row{
		Section: "process", Job: "initialisation of packages, of that",
		Ours: figure{Value: total, Unit: seconds}, Note: strings.Join(dear, ", "),
	})
	return rows, nil
}

type packageInit struct {
	name    string
	seconds float64
}

// packageInits asks the runtime what the initialisation of each package cost, dearest first.
func packageInits(program string, args []string) ([]packageInit, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	var inits []packageInit
	for line := range strings.Lines(trace.String()) {
		// init internal/bytealg @0.008 ms, 0.001 ms clock, 0 bytes, 0 allocs
		f := strings.Fields(line)
		if len(f) < 6 || f[0] != "init" {
			continue
		}
		if ms, err := strconv.ParseFloat(f[4], 64); err == nil {
			inits = append(inits, packageInit{f[1], ms / 1e3})
		}
	}
	slices.SortStableFunc(inits, func(a, b packageInit) int { return cmp.Compare(b.seconds, a.seconds) })
	return inits, nil
}

// peakOfGet measures the memory of spile get.
func (s *setup) peakOfGet(spile, file string) ([]row, error) {
	runs := runsOf(int64(s.archive))
	var rows []row
	for _, p := range positions {
		peak, err := peakMemory(spile, "get", file, deepPath(runs, p.at))
		if err != nil {
			return nil, err
		}
		r := row{
			Section: "process", Job: fmt.Sprintf("peak memory of spile get, %s, %s", bytesText(float64(s.archive)), p.name),
			Ours: figure{Value: float64(peak), Unit: memory},
		}
		r.atMost(float64(peak), 64<<20, "64 MiB")
		rows = append(rows, r)
	}
	return rows, nil
}

// launchVariable makes this program a launcher: it runs its arguments and reports the peak of their memory on file 3.
// On Linux the peak of a child begins with that of its parent at the time of the call, so the parent must be small; a
// process that has measured decoders is not.
const launchVariable = "SPILE_BENCH_LAUNCH"

func peakMemory(program string, args ...string) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	cmd := exec.Command(self, append([]string{program}, args...)...)
	cmd.Env = append(os.Environ(), launchVariable+"=1")
	cmd.ExtraFiles = []*os.File{out}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err = cmd.Run()
	out.Close()
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, &errs)
	}
	var peak int64
	_, err = fmt.Fscan(in, &peak)
	return peak, err
}

// launched does the work of a launcher, when this process is one.
func launched() bool {
	if os.Getenv(launchVariable) == "" {
		return false
	}
	os.Unsetenv(launchVariable)
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS != "darwin" { // there it counts bytes, elsewhere KiB
		peak *= 1024
	}
	fmt.Fprintln(os.NewFile(3, "report"), peak)
	return true
}
