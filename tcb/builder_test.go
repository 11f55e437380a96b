package tcb

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
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
	{"f32", Cell{CellNumber, "16777216"}, "16777216.0", ""},
	{"f32", Cell{CellNumber, "16777217"}, "", `a number "16777217", want a whole number that 32-bit floats hold`},
	{"f32", Cell{CellText, "-16777217"}, "", `text "-16777217", want a whole number that 32-bit floats hold`},
	{"f32", Cell{CellText, "16777217.0"}, "16777216.0", ""},
	{"f32", Cell{CellNumber, "16777218"}, "16777218.0", ""},
	{"f32", Cell{CellNumber, "0016777218"}, "16777218.0", ""},
	{"f32", Cell{CellNumber, "1e-45"}, "1e-45", ""},
	{"f32", Cell{CellNumber, "1e-50"}, "", `a number "1e-50", want a number that is not too small for 32-bit floats, which make it 0`},
	{"f32", Cell{CellNumber, "0e-50"}, "0.0", ""},
	{"f32", Cell{CellNumber, "-0"}, "-0.0", ""},
	{"f64", Cell{CellNumber, "9007199254740992"}, "9007199254740992.0", ""},
	{"f64", Cell{CellNumber, "9007199254740993"}, "", "want a whole number that 64-bit floats hold"},
	{"f64", Cell{CellNumber, "9007199254740993.0"}, "9007199254740992.0", ""},
	{"f64", Cell{CellNumber, "1152921504606846976"}, "1152921504606847000.0", ""},
	{"f64", Cell{CellNumber, "1152921504606847000"}, "1152921504606847000.0", ""},
	{"f64", Cell{CellNumber, "1152921504606847001"}, "", "want a whole number that 64-bit floats hold"},
	{"f64", Cell{CellNumber, "100000000000000000000"}, "100000000000000000000.0", ""},
	{"f64", Cell{CellNumber, "1e-400"}, "", "which make it 0"},
	{"f64", Cell{CellText, "-0.0000e9"}, "-0.0", ""},
	{"f64", Cell{CellText, "1e400"}, "", "want a number in the range of 64-bit floats"},
	{"f64", Cell{CellText, ""}, "", "want a number in the range of 64-bit floats"},
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

// A float is taken again in the form in which JSON has it.
func TestParseFloatReadsWhatIsWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 {
			x = math.Ldexp(float64(random.Int64()), random.IntN(20))
		}
		for _, bits := range []int{32, 64} {
			if bits == 32 {
				x = float64(float32(x))
			}
			text, _, err := value.AppendJSONFloat(nil, x, bits, nil)
			if err != nil {
				continue // no finite number
			}
			if got, ok := ParseFloat(string(text), bits); !ok || math.Float64bits(got) != math.Float64bits(x) {
				t.Errorf("%s of %d bits is %v, %t, want %v", text, bits, got, ok, x)
			}
			text = strconv.AppendFloat(nil, x, 'f', -1, bits)
			if got, ok := ParseFloat(string(text), bits); !ok || got != x {
				t.Errorf("%s of %d bits is %v, %t, want %v", text, bits, got, ok, x)
			}
		}
	}
}

// A label that reads as a number would be another value in CSV.
func TestLabelsAreNoNumbers(t *testing.T) {
	for label, bad := range map[string]bool{"3": true, "-1": true, "1e3": true, "2.0": true, "+7": true, "007": true, "3.5": false, "x3": false, "": false, "3 ": false, "99999999999999999999": false} {
		_, err := ParseSchema([]byte(`{"columns":[{"tag":1,"name":"x","type":"enum","enum":{"` + label + `":9}}]}`))
		if (err != nil) != bad || bad && (!errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "column 1 (x): the label "+strconv.Quote(label)+" reads as a number")) {
			t.Errorf("%q: %v", label, err)
		}
	}
}
