package main

import (
	"math"
	"testing"

	"github.com/spilehq/spile/series"
)

func TestSeriesFloor(t *testing.T) {
	if got := setBits(1); got != 64 {
		t.Errorf("a set of one number of 64 bits has %v bits", got)
	}
	if got := setBits(2); math.Abs(got-127) > 1e-9 { // 2^64 (2^64 - 1) / 2
		t.Errorf("a set of two numbers of 64 bits has %v bits", got)
	}
	s := &seriesSet{labels: []string{"a", "b"}}
	for i := range 8 { // two tables of four: 2 bits of a, 1 of b, none of the count
		s.rows = append(s.rows, seriesRow{ID: series.ID{Table: uint32(i / 4), TSID: uint64(i)}, count: 9, codes: [10]uint32{uint32(i), uint32(i % 2)}})
	}
	if got, want := first(s.floor()), (2*setBits(4)+8*3)/8/8; math.Abs(got-want) > 1e-9 {
		t.Errorf("the floor is %v bytes a series, want %v", got, want)
	}
	big := newSeriesSet(5000, false)
	files, err := big.files(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := big.floorRows(files)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := rows[0].Theirs.Value, rows[1].Theirs.Value; a < 6 || b < a || rows[1].Ours.Value < b {
		t.Errorf("floors of %v and %v, and a size of %v", a, b, rows[1].Ours.Value)
	}
	least, inBytes := big.floor()
	for range 3 {
		if a, b := newSeriesSet(5000, false).floor(); a != least || b != inBytes {
			t.Errorf("other floors the next time: %v and %v, were %v and %v", a, b, least, inBytes)
		}
	}
}

func first(a, _ float64) float64 { return a }
