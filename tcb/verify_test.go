package tcb

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/source"
)

func findings(t *testing.T, table *Table, deep bool) (faults, notes []string) {
	t.Helper()
	err := table.Verify(context.Background(), &VerifyOptions{Deep: deep}, func(f Finding) {
		if f.Note {
			notes = append(notes, f.Err.Error())
		} else {
			faults = append(faults, f.Err.Error())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return faults, notes
}

// A right file has no fault; a canonical one gives no note but that of the order of its tags.
func TestVerifyVectors(t *testing.T) {
	for _, v := range vectors(t, "*.json") {
		table, _, err := v.read()
		if err != nil {
			t.Fatal(err)
		}
		faults, notes := findings(t, table, true)
		if len(faults) > 0 {
			t.Errorf("%s: %q", v.Name, faults)
		}
		canonical := v.Canonical == nil || *v.Canonical
		for _, n := range notes {
			if canonical && !strings.Contains(n, "do not ascend") && v.InvalidUTF8 == 0 {
				t.Errorf("%s is canonical: %s", v.Name, n)
			}
		}
		if !canonical && len(notes) == 0 && v.Name != "loose-wrong-mac-no-key" && v.Name != "floats-nan-payloads" {
			t.Errorf("%s is not canonical, and there is no note", v.Name)
		}
	}
}

// Every column with a fault is named, not the first alone.
func TestVerifyGoesOn(t *testing.T) {
	columns := []*Column{
		{Tag: 1, Type: Type{Element: I32}, Rows: 4, Int32s: []int32{1, 2, 3, 4}},
		{Tag: 2, Type: Type{Element: String}, Rows: 4, Strings: []string{"a", "b", "c", "d"}},
		{Tag: 3, Type: Type{Element: I32}, Rows: 4, Int32s: []int32{70, 70, 70, 70}},
	}
	file, err := Append(nil, 4, columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	file[len(file)-3] = 10 // the run of column 3: 5 of 4
	at := strings.Index(string(file), "\x02\x06\x02")
	file[at+1] = 8 // the run of column 1: 4 of 3
	table, err := Open(context.Background(), source.Memory("bad.tcb", file), nil)
	if err != nil {
		t.Fatal(err)
	}
	faults, _ := findings(t, table, true)
	if len(faults) != 2 || !strings.Contains(faults[0], "column 1: D2: a run of 4, and 3 values are left") || !strings.Contains(faults[1], "column 3: D2: a run of 5") {
		t.Errorf("%q", faults)
	}
	if faults, _ := findings(t, table, false); len(faults) > 0 {
		t.Errorf("blocks were looked at: %q", faults)
	}
}

// Verify ends between two columns when the context does.
func TestVerifyCanceled(t *testing.T) {
	table := openFile(t, runsFile(1000, 50))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, deep := range []bool{false, true} {
		if err := table.Verify(ctx, &VerifyOptions{Deep: deep}, func(Finding) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("deep %t: %v", deep, err)
		}
	}
}

// runsFile is a table of columns of runs, a few bytes each.
func runsFile(rows, columns int32) []byte {
	var descs []Descriptor
	var blocks [][]byte
	for tag := range columns {
		descs = append(descs, Descriptor{Tag: tag + 1, Type: Type{Element: I32}, Encoding: RLE})
		blocks = append(blocks, runOf(rows, tag))
	}
	return fileOf(rows, columns, descs, blocks...)
}

// What all columns decode to is bounded, and the columns behind are named.
func TestVerifyBytes(t *testing.T) {
	const rows = 1 << 10
	table, err := Open(t.Context(), source.Memory("t.tcb", runsFile(rows, 80)), &Options{Limits: Limits{Bytes: 4 * rows}})
	if err != nil {
		t.Fatal(err)
	}
	faults, notes := findings(t, table, true)
	const want = "tcb: t.tcb: column 17, column 18, column 19, column 20, column 21, column 22, column 23, column 24, column 25, column 26 and 54 more: " +
		"not looked at, the columns in front decode to 65536 bytes; Limits.Bytes allows more"
	if len(faults) != 1 || faults[0] != want || len(notes) > 0 {
		t.Errorf("%q, %q", faults, notes)
	}
	if faults, _ := findings(t, openFile(t, runsFile(rows, 80)), true); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// Names of very many columns are looked up, not searched for.
func TestManyNames(t *testing.T) {
	const n = 20_000
	table := openFile(t, runsFile(1, n))
	s, err := table.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Columns {
		s.Columns[i].Name = "c" + strconv.Itoa(i)
	}
	begun := time.Now()
	s, err = table.As(s)
	if err != nil {
		t.Fatal(err)
	}
	tags := make([]int32, n)
	for i, d := range table.Columns() {
		tags[i] = d.Tag
	}
	columns, err := table.ReadAs(t.Context(), s, tags...)
	if err != nil {
		t.Fatal(err)
	}
	row, err := NewRows(columns, s, nil).Append(nil, 0)
	if err != nil || !strings.HasSuffix(string(row), `"c19999":19999}`) {
		t.Errorf("%.80s, %v", row, err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("%v for %d columns", took, n)
	}
}
