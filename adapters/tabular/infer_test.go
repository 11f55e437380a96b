package tabular

import (
	"testing"

	"github.com/spilehq/spile/tcb"
)

// A column is named once when its values do not go together, and a decimal comma is noted.
func TestGuessOnce(t *testing.T) {
	var g Guess
	errs := 0
	for _, v := range []tcb.Cell{{Kind: tcb.CellNumber, Text: "1"}, {Kind: tcb.CellText, Text: "x"}, {Kind: tcb.CellText, Text: "y"}, {Kind: tcb.CellBool, Text: "true"}} {
		if g.Value(v, false, false) != nil {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("%d errors, want 1", errs)
	}
	var notes []Warning
	o := &Options{Note: func(w Warning) { notes = append(notes, w) }}
	if err := o.Check("t"); err != nil {
		t.Fatal(err)
	}
	faults := NewFaults("t", o)
	h := ParseHeader([]string{"price", "list", "count"}, func(i int) string { return "cell" }, faults)
	guesses := make([]Guess, 3)
	for _, row := range [][]string{{"1,5", "1,x", "1"}, {"-2", "1,5", "2"}, {"", "", ""}} {
		for i, text := range row {
			if err := guesses[i].Cell(Cell{Cell: tcb.Cell{Kind: tcb.CellText, Text: text}}, o, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Propose(h, guesses, o); err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || notes[0].Where != "cell, column 1 (price)" {
		t.Error(notes)
	}
	h = ParseHeader([]string{"7", "3"}, func(i int) string { return "cell" }, faults)
	s, err := Propose(h, make([]Guess, 2), o)
	if err != nil || s.Columns[0].Tag != 7 || s.Columns[0].Name != "" || s.Columns[1].Tag != 3 {
		t.Error(s, err)
	}
}
