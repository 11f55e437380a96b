package tabular_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spilehq/spile/tcb"
)

// pieces are what texts of random tables are made of: all that has a meaning in one of the forms.
var pieces = []string{"", "a", ";", "|", ",", "\t", "\\", `\0`, `\e`, `\;`, "0", "N", "\"", "\n", "\r\n", "\r", " ", "_x0041_", "\x00", "\x1f", "😀", "=", "#", "@7", "é", "\ufeff", "\ufffe", "true", "1,5", "U+2028\u2028"}

// randomTable makes a table of a column for each type, with and without each of the bits.
func randomTable(r *rand.Rand) (*tcb.Schema, []*tcb.Column, int) {
	rows := r.IntN(6)
	s := &tcb.Schema{}
	var columns []*tcb.Column
	for e := tcb.Enum; e <= tcb.UUID; e++ {
		for bits := range 6 {
			if r.IntN(3) > 0 {
				continue
			}
			f := tcb.Field{Tag: int32(len(columns)*3 + 1), Type: tcb.Type{Element: e, Optional: bits&1 != 0}}
			if bits > 1 {
				f.Type.Kind, f.Type.ElementOptional = tcb.Array, bits > 3
			}
			if e == tcb.I64 {
				f.Logical = tcb.Logical(r.IntN(3))
			}
			if r.IntN(2) == 0 {
				f.Name = "c" + strings.Repeat(pieces[1+r.IntN(len(pieces)-1)], 1+r.IntN(2)) + string(rune('A'+len(columns)))
			}
			s.Columns = append(s.Columns, f)
			columns = append(columns, randomColumn(r, &f, rows))
		}
	}
	if len(columns) == 0 {
		rows = 0
	}
	return s, columns, rows
}

func randomColumn(r *rand.Rand, f *tcb.Field, rows int) *tcb.Column {
	c := &tcb.Column{Tag: f.Tag, Type: f.Type, Rows: rows, Present: tcb.NewBitmap(rows)}
	n := rows
	if f.Type.Kind == tcb.Array {
		c.Offsets = []int32{0}
		n = 0
	}
	for i := range rows {
		present := !f.Type.Optional || r.IntN(2) == 0
		if present {
			c.Present.Set(i)
		}
		if f.Type.Kind == tcb.Array {
			if present {
				n += r.IntN(4)
			}
			c.Offsets = append(c.Offsets, int32(n))
		}
	}
	c.ElementPresent = tcb.NewBitmap(n)
	for i := range n {
		if !f.Type.ElementOptional || r.IntN(2) == 0 {
			c.ElementPresent.Set(i)
		}
		text := ""
		for range r.IntN(4) {
			text += pieces[r.IntN(len(pieces))]
		}
		wide := int64(r.Uint64() >> r.IntN(64))
		if r.IntN(2) == 0 {
			wide = -wide
		}
		if f.Logical == tcb.DateTime {
			wide = int64(uint64(wide) % tcb.MaxDateTime)
		}
		x := []float64{0, math.Copysign(0, -1), 1.5, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.Float64frombits(0x7ff8 << 48), r.NormFloat64(), float64(wide)}[r.IntN(10)]
		switch f.Type.Element {
		case tcb.Enum, tcb.I32:
			c.Int32s = append(c.Int32s, int32(wide))
		case tcb.Bool:
			c.Bools = append(c.Bools, wide&1 != 0)
		case tcb.I64:
			c.Int64s = append(c.Int64s, wide)
		case tcb.F32:
			c.Float32s = append(c.Float32s, float32(x))
		case tcb.F64:
			c.Float64s = append(c.Float64s, x)
		case tcb.String:
			c.Strings = append(c.Strings, text)
		case tcb.UUID:
			g := tcb.GUID{}
			for k := range g {
				g[k] = byte(r.Uint32())
			}
			c.UUIDs = append(c.UUIDs, g)
		}
	}
	return c
}

// TestRoundTripRandom is TestRoundTripVectors with tables that nobody thought of.
func TestRoundTripRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 1000
	if testing.Short() {
		n = 100
	}
	for i := range n {
		s, columns, rows := randomTable(r)
		if s.Check() != nil { // a name twice
			continue
		}
		want, err := tcb.Append(nil, rows, columns, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range forms() {
			var out bytes.Buffer
			if err := f.write(&out, rows, columns, s); err != nil {
				t.Fatalf("table %d, %s: %v", i, f.name, err)
			}
			back, backRows, _, err := f.read(out.Bytes(), s)
			if err != nil {
				t.Fatalf("table %d, %s: %v\n%.3000q", i, f.name, err, out.Bytes())
			}
			if got, err := tcb.Append(nil, backRows, back, nil); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("table %d, %s: came back as another table, %v\n%.3000q", i, f.name, err, out.Bytes())
			}
		}
	}
}
