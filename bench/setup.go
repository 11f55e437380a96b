package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// size is a number of bytes as a flag: 1GB, 100MB, 5000.
type size int64

func (s *size) String() string { return bytesText(float64(*s)) }

func (s *size) Set(text string) error {
	scale := 1.0
	for suffix, n := range map[string]float64{"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, scale = strings.TrimSpace(rest), n
			break
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x*scale < 1 || x*scale > 1e15 {
		return fmt.Errorf("want a number of bytes, as 100MB or 1GB")
	}
	*s = size(x * scale)
	return nil
}

// prepare finds a place for files, and settles how large a document it takes.
func (s *setup) prepare(huge bool) error {
	if s.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		s.dir = filepath.Join(cache, "spile-bench")
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &disk); err != nil {
		return err
	}
	free := float64(disk.Bavail) * float64(disk.Bsize)
	if huge && free < 30e9 {
		return fmt.Errorf("-huge needs 30 GB in %s, %s are free", s.dir, bytesText(free))
	}
	switch {
	case s.archive > 0:
	case huge:
		s.archive = 10e9
	case s.quick:
		s.archive = 20e6
	case free < 5e9: // two documents, one while it is made, and room for others
		s.archive = 100e6
		s.notes = append(s.notes, fmt.Sprintf("%s are free in %s: the document has 100 MB, not 1 GB", bytesText(free), s.dir))
	default:
		s.archive = 1e9
	}
	return nil
}

// spile builds the command line.
func (s *setup) spile() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/spilehq/spile").Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository (run this inside it): %w", err)
	}
	program := filepath.Join(s.dir, "spile")
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "cmd", "spile")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}

// emptyProgram builds a Go program that does nothing: what every Go program costs.
func (s *setup) emptyProgram() (string, error) {
	folder := filepath.Join(s.dir, "empty-source")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	files := map[string]string{"go.mod": "module empty\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			return "", err
		}
	}
	program := filepath.Join(s.dir, "empty")
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}
