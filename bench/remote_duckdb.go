package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"time"
)

//go:embed remote_duckdb.py
var farDuckScript string

// farDuckVersion is that of DuckDB and of its extension for HTTP, which must be the same.
const farDuckVersion = "1.5.5"

// farDuck is DuckDB over HTTP, in a Python that times the queries.
type farDuck struct {
	*pythonProcess
	spent time.Duration // in queries so far, by its clock
}

// startFarDuck starts DuckDB with its extension for HTTP, installed beside the original where it is missing.
func (s *setup) startFarDuck() (*farDuck, error) {
	python, err := s.pythonProgram()
	if err != nil {
		return nil, err
	}
	if exec.Command(python, "-c", "import duckdb, duckdb_extension_httpfs; assert duckdb.__version__ == '"+farDuckVersion+"'").Run() != nil {
		if os.Getenv("SPILE_PYTHON") != "" {
			return nil, fmt.Errorf("%w (%s has no duckdb and duckdb-extension-httpfs, %s)", errNoPython, python, farDuckVersion)
		}
		progress("installing DuckDB and its extension for HTTP beside it")
		install := exec.Command(python, "-m", "pip", "install", "--quiet", "--no-deps", "duckdb=="+farDuckVersion, "duckdb-extension-httpfs=="+farDuckVersion)
		if text, err := install.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w (DuckDB: %v: %.200s)", errNoPython, err, text)
		}
	}
	p, err := startPython(python, farDuckScript)
	if err != nil {
		return nil, err
	}
	return &farDuck{pythonProcess: p}, nil
}

// query returns the rows that a query gives, as texts; nil is null.
func (d *farDuck) query(sql string) ([][]*string, error) {
	var answer struct {
		Seconds float64     `json:"seconds"`
		Rows    [][]*string `json:"rows"`
	}
	err := d.ask(map[string]any{"op": "query", "sql": sql}, &answer)
	d.spent += time.Duration(answer.Seconds * float64(time.Second))
	return answer.Rows, err
}
