package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
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

// manyColumns writes a table of n columns, and its schema.
func manyColumns(t *testing.T, n int) (file, schema string) {
	t.Helper()
	var columns []*tcb.Column
	s := &tcb.Schema{}
	for tag := range int32(n) {
		columns = append(columns, &tcb.Column{Tag: tag + 1, Type: tcb.Type{Element: tcb.I32}, Rows: 1, Int32s: []int32{tag}})
		s.Columns = append(s.Columns, tcb.Field{Tag: tag + 1, Name: "c" + strings.Repeat("x", int(tag%3)) + string(rune('a'+tag%26)) + "_" + time.Duration(tag).String(), Type: tcb.Type{Element: tcb.I32}})
	}
	dir := t.TempDir()
	file, schema = filepath.Join(dir, "t.tcb"), filepath.Join(dir, "t.schema")
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
	return file, schema
}

// What is done with a table of 12,000 columns is four times what is done with one of 3,000, as far as allocations and reads
// show it, and a run that is to end does so between two columns.
func TestVeryManyColumns(t *testing.T) {
	const n = 12_000
	file, schema := manyColumns(t, n)
	fewFile, fewSchema := manyColumns(t, n/4)
	work := func(line, schema, file string) (allocations, bytes, requests uint64) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, errs, status := command(t, append(strings.Fields(line), "--stats", "--schema", schema, file)...)
		runtime.ReadMemStats(&after)
		var receipt source.Receipt
		if err := json.Unmarshal([]byte(errs), &receipt); err != nil || status != statusDone {
			t.Errorf("%s: status %d, %s", line, status, errs)
		}
		return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, uint64(receipt.Requests)
	}
	for _, line := range []string{"ls", "du", "cat", "verify --deep", "table schema"} {
		work(line, fewSchema, fewFile) // what is made once
		few, fewBytes, fewRequests := work(line, fewSchema, fewFile)
		many, manyBytes, manyRequests := work(line, schema, file)
		if many > 5*few || manyBytes > 5*fewBytes+1<<20 || manyRequests > 5*fewRequests {
			t.Errorf("%s: %d allocations of %d bytes and %d requests, for a quarter of the columns %d, %d and %d",
				line, many, manyBytes, manyRequests, few, fewBytes, fewRequests)
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
