package main

import (
	"reflect"
	"testing"
)

func TestTableSet(t *testing.T) {
	set := tableSet(growthRows)
	rows := 0
	for _, of := range set {
		n := reflect.ValueOf(of.rows).Len()
		if n < 5 {
			t.Errorf("%s has %d rows", of.name, n)
		}
		rows += n
	}
	if len(set) != 71 || rows != 109_000 {
		t.Errorf("%d tables, %d rows", len(set), rows)
	}
	if !reflect.DeepEqual(set, tableSet(growthRows)) {
		t.Error("the set is not the same each time")
	}
}

func TestTableJobs(t *testing.T) {
	for name, tables := range map[string][]gameTable{"set": tableSet(500), "long": {longTable(3000)}} {
		jobs, err := tableLoads(name, tables)
		if err != nil {
			t.Fatal(err)
		}
		runOnce(t, jobs)
		rows, err := sizeRows(name, tables)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2*(len(tableFormats)-1) {
			t.Errorf("%d rows of sizes", len(rows))
		}
	}
	jobs, err := columnJobs(20_000)
	if err != nil {
		t.Fatal(err)
	}
	runOnce(t, jobs)
}

func TestTableWrite(t *testing.T) {
	s := &setup{dir: t.TempDir(), rows: 5000}
	rows, err := s.measureTableWrite()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Log(r.cells())
		if r.Ours.Value <= 0 {
			t.Errorf("no figure: %+v", r)
		}
	}
}
