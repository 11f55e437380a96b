package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed original.py
var originalScript string

// original is the Python library that the format comes from, in a process of its own that opens documents and times
// itself.
type original struct{ *pythonProcess }

// pythonProcess is a script that answers a line of JSON with one.
type pythonProcess struct {
	python string
	about  string // versions
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
}

// errNoPython means that the original cannot be run here.
var errNoPython = errors.New("no Python that could have msglc: rows beside the original are left out")

// pythonProgram finds a Python that has the original: the one that SPILE_PYTHON names, or one of a virtual environment
// that is made once.
func (s *setup) pythonProgram() (string, error) {
	if python := os.Getenv("SPILE_PYTHON"); python != "" {
		return python, nil
	}
	folder := filepath.Join(s.dir, "venv")
	python := filepath.Join(folder, "bin", "python")
	if exec.Command(python, "-c", "import msglc, msgspec").Run() == nil {
		return python, nil
	}
	base, err := exec.LookPath("python3")
	if err != nil {
		return "", errNoPython
	}
	progress("making a virtual environment with msglc in %s", folder)
	// msgspec is optional there; with it the original is at its fastest.
	for _, args := range [][]string{{base, "-m", "venv", folder}, {python, "-m", "pip", "install", "--quiet", "msglc", "msgspec"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%w (%s: %v)", errNoPython, strings.Join(args, " "), err)
		}
	}
	return python, nil
}

func (s *setup) startOriginal() (*original, error) {
	python, err := s.pythonProgram()
	if err != nil {
		return nil, err
	}
	return startOriginalWith(python)
}

func startOriginalWith(python string) (*original, error) {
	p, err := startPython(python, originalScript)
	if err != nil {
		return nil, err
	}
	return &original{p}, nil
}

// startFarOriginal starts the original with s3fs, by which it reads objects of S3.
func (s *setup) startFarOriginal() (*original, error) {
	python, err := s.pythonProgram()
	if err != nil {
		return nil, err
	}
	if exec.Command(python, "-c", "import s3fs").Run() != nil {
		if os.Getenv("SPILE_PYTHON") != "" {
			return nil, fmt.Errorf("%w (%s has no s3fs)", errNoPython, python)
		}
		progress("installing s3fs beside it")
		if text, err := exec.Command(python, "-m", "pip", "install", "--quiet", "s3fs").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w (s3fs: %v: %.200s)", errNoPython, err, text)
		}
	}
	return startOriginalWith(python)
}

func startPython(python, script string) (*pythonProcess, error) {
	var err error
	o := &pythonProcess{python: python, cmd: exec.Command(python, "-c", script)}
	o.cmd.Stderr = os.Stderr
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.out = bufio.NewScanner(out)
	o.out.Buffer(nil, 64<<20)
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoPython, err)
	}
	if err := o.ask(map[string]any{"op": "about"}, &o.about); err != nil {
		o.close()
		return nil, fmt.Errorf("%w (%v)", errNoPython, err)
	}
	return o, nil
}

func (o *pythonProcess) close() {
	o.in.Close()
	o.cmd.Wait()
}

func (o *pythonProcess) ask(request, answer any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := o.in.Write(append(line, '\n')); err != nil {
		return err
	}
	if !o.out.Scan() {
		return fmt.Errorf("the Python process has ended: %v", o.out.Err())
	}
	return json.Unmarshal(o.out.Bytes(), answer)
}

// opened is what the original says of opening a document and reading one value, n times.
type opened struct {
	Seconds []float64 `json:"seconds"`
	Value   any       `json:"value"`
	Bytes   float64   `json:"bytes"` // read by one opening
}

func (o *original) open(path, at string, n int, cpu bool) (opened, error) {
	var answer opened
	err := o.ask(map[string]any{"op": "open", "path": path, "at": at, "n": n, "cpu": cpu}, &answer)
	return answer, err
}
