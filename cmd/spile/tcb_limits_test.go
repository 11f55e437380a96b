package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// A table that readers refuse by default is told when it is built, and one that they take is not.
func TestBeyondLimits(t *testing.T) {
	const rows = 1 << 20
	values := make([]int64, rows)
	for _, n := range []int{7, 9} {
		var columns []*tcb.Column
		for tag := range n {
			columns = append(columns, &tcb.Column{Tag: int32(tag + 1), Type: tcb.Type{Element: tcb.I64}, Rows: rows, Int64s: values})
		}
		var file bytes.Buffer
		if err := tcb.Write(&file, rows, columns, nil); err != nil {
			t.Fatal(err)
		}
		table, err := tcb.Open(t.Context(), source.Memory("t.tcb", file.Bytes()), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = table.Read(t.Context())
		text := beyondLimits(rows, columns, int64(file.Len()))
		if errors.Is(err, fault.Limit) != (text != "") || (text != "") != (n == 9) {
			t.Errorf("%d columns: %v, %q", n, err, text)
		}
	}
	if text := beyondLimits(tcb.DefaultMaxRows+1, nil, 100); !strings.Contains(text, "--max-rows") {
		t.Error(text)
	}
}

// A table of 20,000 columns takes no time to list, and a run that is to end does so between two columns.
func TestVeryManyColumns(t *testing.T) {
	const n = 20_000
	var columns []*tcb.Column
	s := &tcb.Schema{}
	for tag := range int32(n) {
		columns = append(columns, &tcb.Column{Tag: tag + 1, Type: tcb.Type{Element: tcb.I32}, Rows: 1, Int32s: []int32{tag}})
		s.Columns = append(s.Columns, tcb.Field{Tag: tag + 1, Name: "c" + strings.Repeat("x", int(tag%3)) + string(rune('a'+tag%26)) + "_" + time.Duration(tag).String(), Type: tcb.Type{Element: tcb.I32}})
	}
	dir := t.TempDir()
	file, schema := filepath.Join(dir, "t.tcb"), filepath.Join(dir, "t.schema")
	var out bytes.Buffer
	if err := tcb.Write(&out, 1, columns, nil); err != nil {
		t.Fatal(err)
	}
	text, err := s.MarshalJSON()
	if err == nil {
		err = errors.Join(os.WriteFile(file, out.Bytes(), 0o666), os.WriteFile(schema, text, 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ls", "du", "cat", "verify --deep", "table schema"} {
		begun := time.Now()
		if _, errs, status := command(t, append(strings.Fields(line), "--schema", schema, file)...); status != statusDone {
			t.Errorf("%s: status %d, %s", line, status, errs)
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("%s: %v", line, took)
		}
	}
	e := &env{out: bufio.NewWriter(io.Discard)}
	obj, err := source.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table, err := e.openTable(t.Context(), obj, &tableInFlags{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"ls": e.tableLs(ctx, table, "", &tableFlags{}), "du": e.tableDu(ctx, table, "", &tableFlags{}),
		"verify": e.tableVerify(ctx, table, true, func(*fault.Error) {}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
