package tcb

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// builderCells are cells and what columns make of them: the JSON text of the value, or an error.
var builderCells = []struct {
	column string // the type
	cell   Cell
	want   string
	err    string
}{
	{"i32", Cell{CellNumber, "3"}, "3", ""},
	{"i32", Cell{CellNumber, "3.0"}, "3", ""},
	{"i32", Cell{CellNumber, "1e3"}, "1000", ""},
	{"i32", Cell{CellText, "-2147483648"}, "-2147483648", ""},
	{"i32", Cell{CellNumber, "3.5"}, "", `a number "3.5", want a whole number of 32 bits`},
	{"i32", Cell{CellNumber, "2147483648"}, "", "want a whole number of 32 bits"},
	{"i32", Cell{CellBool, "true"}, "", `a truth value "true", want a whole number`},
	{"i32", Cell{CellText, " 3"}, "", `text " 3", want a whole number`},
	{"i32", Cell{CellDate, "2026-01-02T00:00:00"}, "", `a date "2026-01-02T00:00:00", want a whole number`},
	{"enum", Cell{CellDate, "1"}, "", "a date"},
	{"bool", Cell{CellDate, "1"}, "", "a date"},
	{"f32", Cell{CellDate, "1"}, "", "a date"},
	{"string", Cell{CellDate, "1"}, "", "a date"},
	{"uuid", Cell{CellDate, "00112233-4455-6677-8899-aabbccddeeff"}, "", "a date"},
	{"i64", Cell{CellDate, "1"}, "", `a date "1", want a whole number of 64 bits`},
	{"i64", Cell{CellText, "9223372036854775807"}, "9223372036854775807", ""},
	{"datetime", Cell{CellDate, "2026-01-02T03:04:05"}, `"2026-01-02T03:04:05"`, ""},
	{"datetime", Cell{CellText, "2026-01-02"}, `"2026-01-02T00:00:00"`, ""},
	{"datetime", Cell{CellNumber, "46024"}, "", `a number "46024", want a datetime`},
	{"timespan", Cell{CellDate, "1.00:00:00"}, `"1.00:00:00"`, ""},
	{"timespan", Cell{CellDate, "2026-01-02T00:00:00"}, "", "want a timespan"},
	{"f32", Cell{CellNumber, "0.1"}, "0.1", ""},
	{"f32", Cell{CellNumber, "1e39"}, "", "want a number in the range of 32-bit floats"},
	{"f64", Cell{CellText, "3,5"}, "", `text "3,5", want a number`},
	{"f64", Cell{CellText, "0x1p4"}, "", "want a number"},
	{"f64", Cell{CellText, "-Infinity"}, `"-Infinity"`, ""},
	{"string", Cell{CellNumber, "3"}, "", `a number "3", want text`},
	{"string", Cell{CellText, "\xff"}, "", "want text"},
	{"string", Cell{}, "", "no value, and the column is not optional"},
	{"bool", Cell{CellNumber, "1"}, "true", ""},
	{"bool", Cell{CellNumber, "2"}, "", `a number "2", want true or false`},
}

func TestBuilder(t *testing.T) {
	for _, c := range builderCells {
		s, err := ParseSchema([]byte(`{"columns":[{"tag":1,"name":"x","type":"` + c.column + `"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		b := NewBuilder(s)
		err = b.Scalar(0, c.cell)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !errors.Is(err, fault.Invalid) {
				t.Errorf("%s of %v: error %v, want %s", c.column, c.cell, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s of %v: %v", c.column, c.cell, err)
			continue
		}
		b.EndRow()
		o := &RowOptions{}
		o.JSON.NonFinite = value.NonFiniteString
		got, err := NewRows(b.Columns(), s, o).AppendCell(nil, 0, 0)
		if err != nil || string(got) != c.want {
			t.Errorf("%s of %v is %s, %v, want %s", c.column, c.cell, got, err, c.want)
		}
	}
}

// A NaN has no payload, unlike the one of package math.
func TestBuilderNaN(t *testing.T) {
	b := NewBuilder(&Schema{Columns: []Field{{Tag: 1, Type: Type{Element: F64}}, {Tag: 2, Type: Type{Element: F32}}}})
	for k := range 2 {
		if err := b.Scalar(k, Cell{CellText, "NaN"}); err != nil {
			t.Fatal(err)
		}
	}
	b.EndRow()
	c := b.Columns()
	if x := math.Float64bits(c[0].Float64s[0]); x != 0x7ff8<<48 {
		t.Errorf("NaN of 64 bits is %#x", x)
	}
	if x := math.Float32bits(c[1].Float32s[0]); x != 0x7fc0<<16 {
		t.Errorf("NaN of 32 bits is %#x", x)
	}
}
