package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spilehq/spile/series"
)

// errNoDuckDB says why DuckDB is not compared with.
var errNoDuckDB = errors.New("DuckDB is left out: it needs a C compiler to be built")

// duckDB is a process that answers queries over a Parquet file.
type duckDB struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// duckProgram builds the program, which is C++ for the most part and therefore no part of the workspace.
func (s *setup) duckProgram() (string, error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		return "", errNoDuckDB
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/spilehq/spile").Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository (run this inside it): %w", err)
	}
	program := filepath.Join(s.dir, "duckquery")
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./duckquery")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "internal", "itest")
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %v: %.200s", errNoDuckDB, err, text)
	}
	return program, nil
}

func openDuckDB(program, parquet string) (*duckDB, error) {
	d := &duckDB{cmd: exec.Command(program, parquet)}
	d.cmd.Stderr = os.Stderr
	in, err := d.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.in, d.out = in, bufio.NewReader(out)
	return d, d.cmd.Start()
}

func (d *duckDB) Close() error {
	d.in.Close()
	return d.cmd.Wait()
}

// query returns the values of the one row that a query gives.
func (d *duckDB) query(sql string) ([]string, error) {
	if _, err := io.WriteString(d.in, sql+"\n"); err != nil {
		return nil, err
	}
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var values []string
	return values, json.Unmarshal(line, &values)
}

// condition is a matcher in SQL. No label is null in a way that matters: the matchers of the comparison do not select nulls.
func condition(m *series.Matcher) string {
	value := "'" + strings.ReplaceAll(m.Value, "'", "''") + "'"
	name := `"` + m.Name + `"`
	switch m.Op {
	case series.Equal:
		return name + " = " + value
	case series.NotEqual:
		return name + " <> " + value
	case series.Regexp:
		return "regexp_full_match(" + name + ", " + value + ")"
	}
	return "NOT regexp_full_match(" + name + ", " + value + ")"
}

// duckTotal is the query whose answer is that of selected: it reads the identifiers, the numbers of rows and all labels of the
// series that match, as a record has them.
func duckTotal(labels []string, matchers []*series.Matcher, from string) string {
	var text, where []string
	for _, name := range labels {
		text = append(text, `coalesce(strlen("`+name+`"), 0)`)
	}
	for _, m := range matchers {
		where = append(where, condition(m))
	}
	return "SELECT count(*), coalesce(bit_xor(__tsid), 0), coalesce(sum(__series_row_count), 0), coalesce(sum(" + strings.Join(text, " + ") + "), 0) FROM " + from + " WHERE " + strings.Join(where, " AND ")
}

func (d *duckDB) total(sql string) (selected, error) {
	v, err := d.query(sql)
	if err != nil {
		return selected{}, err
	}
	return totalFrom(v)
}

// totalFrom is the answer to duckTotal.
func totalFrom(v []string) (selected, error) {
	n, err1 := strconv.ParseInt(v[0], 10, 64)
	tsids, err2 := strconv.ParseUint(v[1], 10, 64)
	rows, err3 := strconv.ParseUint(v[2], 10, 64)
	text, err4 := strconv.ParseInt(v[3], 10, 64)
	return selected{n, tsids, rows, text}, errors.Join(err1, err2, err3, err4)
}
