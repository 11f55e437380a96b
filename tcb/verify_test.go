package tcb

import (
	"context"
	"strings"
	"testing"

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
