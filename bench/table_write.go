package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// writeVariable makes this program one that writes the long table: it is the number of its rows. The arguments are the
// file to write, and the one to report to. A process of its own has a peak of memory of its own.
const writeVariable = "SPILE_BENCH_WRITE_ROWS"

// tableWriting is the report of that process.
type tableWriting struct {
	Seconds float64
	Decoded int64 // bytes of the columns
	File    int64
}

func wroteTable() bool {
	text := os.Getenv(writeVariable)
	if text == "" {
		return false
	}
	n, err := strconv.Atoi(text)
	if err == nil {
		err = writeTable(n, os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func writeTable(n int, file, report string) error {
	columns := saleColumns(n)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := tcb.Write(f, n, columns, nil); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	r := tableWriting{Seconds: time.Since(start).Seconds(), Decoded: decodedSize(columns)}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	r.File = info.Size()
	p, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(report, p, 0o666)
}

// saleColumns makes the columns of the long table, without its rows.
func saleColumns(n int) []*tcb.Column {
	column := func(tag int32, e tcb.Element) *tcb.Column {
		return &tcb.Column{Tag: tag, Type: tcb.Type{Element: e}, Rows: n}
	}
	id, at, player, item := column(1, tcb.I32), column(2, tcb.I64), column(3, tcb.I64), column(4, tcb.String)
	amount, price, rating, weight := column(5, tcb.I32), column(6, tcb.F64), column(7, tcb.F32), column(8, tcb.F64)
	refunded := column(9, tcb.Bool)
	id.Int32s, at.Int64s, player.Int64s, item.Strings = make([]int32, n), make([]int64, n), make([]int64, n), make([]string, n)
	amount.Int32s, price.Float64s, rating.Float32s, weight.Float64s = make([]int32, n), make([]float64, n), make([]float32, n), make([]float64, n)
	refunded.Bools = make([]bool, n)
	s := newSales()
	for i := range n {
		r := s.next()
		id.Int32s[i], at.Int64s[i], player.Int64s[i], item.Strings[i] = r.ID, r.Time, r.Player, r.Item
		amount.Int32s[i], price.Float64s[i], rating.Float32s[i], weight.Float64s[i] = r.Amount, r.Price, r.Rating, r.Weight
		refunded.Bools[i] = r.Refunded
	}
	return []*tcb.Column{id, at, player, item, amount, price, rating, weight, refunded}
}

// measureTableWrite writes the long table in a process of its own, and takes its time and the peak of its memory.
func (s *setup) measureTableWrite() ([]row, error) {
	progress("  writing %s rows", count(float64(s.rows)))
	file, report := filepath.Join(s.dir, "sales.tcb"), filepath.Join(s.dir, "sales.json")
	defer remove(file)
	defer remove(report)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(writeVariable, strconv.Itoa(s.rows)); err != nil {
		return nil, err
	}
	defer os.Unsetenv(writeVariable)
	peak, err := peakMemory(self, file, report)
	if err != nil {
		return nil, err
	}
	p, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var w tableWriting
	if err := json.Unmarshal(p, &w); err != nil {
		return nil, err
	}
	if err := holdsSales(file, s.rows); err != nil {
		return nil, err
	}
	name := "write a table of " + count(float64(s.rows)) + " rows"
	took := row{
		Section: "tables", Job: name,
		Ours: figure{Value: w.Seconds, Unit: seconds, Throughput: float64(w.Decoded) / w.Seconds},
		Note: fmt.Sprintf("from %s of columns a file of %s", bytesText(float64(w.Decoded)), bytesText(float64(w.File))),
	}
	memoryOf := row{
		Section: "tables", Job: name + ", peak memory", Ours: figure{Value: float64(peak), Unit: memory},
		Note: fmt.Sprintf("the columns %s among it, %s x", figure{Value: float64(w.Decoded), Unit: memory}, significant(float64(peak)/float64(w.Decoded))),
	}
	memoryOf.atMost(float64(peak), 4*float64(w.Decoded), "4 x the columns")
	return []row{took, memoryOf}, nil
}

// holdsSales makes sure that a file has the rows of the long table.
func holdsSales(path string, n int) error {
	obj, err := source.OpenFile(path)
	if err != nil {
		return err
	}
	rows, err := loadSales(obj)
	if err != nil {
		return err
	}
	if len(rows) != n {
		return fmt.Errorf("%s has %d rows, not %d", path, len(rows), n)
	}
	s := newSales()
	for i := range rows {
		if want := s.next(); rows[i] != want {
			return fmt.Errorf("row %d of %s is %v, want %v", i, path, rows[i], want)
		}
	}
	return nil
}

func loadSales(obj source.Object) ([]sale, error) {
	t, err := tcb.Open(context.Background(), obj, nil)
	if err != nil {
		obj.Close()
		return nil, err
	}
	defer t.Close()
	return tcb.Load[sale](context.Background(), t)
}
