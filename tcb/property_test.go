package tcb

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/source"
)

// drawValues draws n values for a column, in shapes that each encoding is good for.
func drawValues(t *rapid.T, c *Column, n int) {
	shape := rapid.IntRange(0, 5).Draw(t, "shape")
	step := rapid.Int32Range(1, 300).Draw(t, "step")
	small := rapid.Int32Range(-3, 70)
	wide := rapid.Int64()
	last := int64(0)
	next := func(i int) int64 {
		switch shape {
		case 0: // anything
			return wide.Draw(t, "value")
		case 1: // few
			return int64(small.Draw(t, "value"))
		case 2: // runs
			if i%5 == 0 {
				last = int64(small.Draw(t, "value"))
			}
			return last
		case 3: // steps
			last += int64(small.Draw(t, "value"))
			return last
		case 4: // one step
			return int64(i) * int64(step)
		}
		return 0
	}
	c.setLen(n)
	for i := range n {
		v := next(i)
		switch c.Type.Element {
		case Enum, I32:
			c.Int32s[i] = int32(v)
		case Bool:
			c.Bools[i] = v&1 != 0
		case I64:
			c.Int64s[i] = v
		case F32:
			c.Float32s[i] = float32(v)
			if shape == 0 {
				c.Float32s[i] = math.Float32frombits(uint32(v))
			}
		case F64:
			c.Float64s[i] = float64(v)
			if shape == 0 {
				c.Float64s[i] = math.Float64frombits(uint64(v))
			}
		case String:
			c.Strings[i] = strings.Repeat("Art/Fx_", int(v&3)) + fmt.Sprint(v)
			if shape == 4 {
				c.Strings[i] = fmt.Sprintf("%s_%s_%d", []string{"iron", "gold", "silver"}[i/12%3], []string{"sword", "shield", "helmet"}[i/4%3], i/2%2)
			}
			if v == 0 {
				c.Strings[i] = ""
			}
		case UUID:
			c.UUIDs[i] = GUID{0: byte(v), 15: byte(v >> 8)}
		}
	}
}

// drawColumn draws a column of any type.
func drawColumn(t *rapid.T, tag int32, rows int) *Column {
	c := &Column{Tag: tag, Rows: rows, Type: Type{
		Element:  Element(rapid.IntRange(0, int(UUID)).Draw(t, "element")),
		Kind:     Kind(rapid.IntRange(0, 1).Draw(t, "kind")),
		Optional: rapid.Bool().Draw(t, "optional"),
	}}
	n := rows
	if c.Type.Kind == Array {
		c.Type.ElementOptional = rapid.Bool().Draw(t, "elementOptional")
		c.Offsets = []int32{0}
		n = 0
		same := rapid.Bool().Draw(t, "same lengths")
		for range rows {
			k := 3
			if !same {
				k = rapid.IntRange(0, 4).Draw(t, "length")
			}
			n += k
			c.Offsets = append(c.Offsets, int32(n))
		}
	}
	drawValues(t, c, n)
	bits := func(n int) Bitmap {
		b := NewBitmap(n)
		many := rapid.IntRange(0, 3).Draw(t, "present")
		for i := range n {
			if many == 3 || many > 0 && rapid.IntRange(0, many).Draw(t, "bit") > 0 {
				b.Set(i)
			}
		}
		return b
	}
	if c.Type.ElementOptional {
		c.ElementPresent = bits(n)
	}
	if c.Type.Optional {
		c.Present = bits(rows)
	}
	return c
}

// bitsOf makes floats comparable by their bits.
func bitsOf(c *Column) *Column {
	d := *c
	for _, f := range c.Float32s {
		d.Int32s = append(d.Int32s, int32(math.Float32bits(f)))
	}
	for _, f := range c.Float64s {
		d.Int64s = append(d.Int64s, int64(math.Float64bits(f)))
	}
	d.Float32s, d.Float64s = nil, nil
	return &d
}

// same compares two columns to the bit. Slices without values are the same as none.
func same(a, b *Column) bool {
	x, y := reflect.ValueOf(*bitsOf(a)), reflect.ValueOf(*bitsOf(b))
	for i := range x.NumField() {
		f, g := x.Field(i), y.Field(i)
		if f.Kind() == reflect.Slice && f.Len() == 0 && g.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(f.Interface(), g.Interface()) {
			return false
		}
	}
	return true
}

// What is written is read back, with the empty value in what is absent, sealed or not.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 40).Draw(t, "rows")
		var columns []*Column
		for i := range rapid.IntRange(0, 5).Draw(t, "columns") {
			columns = append(columns, drawColumn(t, int32(1+i*i*40), rows))
		}
		var keys Keys
		if rapid.Bool().Draw(t, "sealed") {
			keys.Encryption = bytes.Repeat([]byte{1}, KeySize)
		}
		if rapid.Bool().Draw(t, "signed") {
			keys.MAC = bytes.Repeat([]byte{2}, KeySize)
		}
		file, err := Append(nil, rows, columns, &WriteOptions{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Append(nil, rows, columns, &WriteOptions{Keys: keys}); !bytes.Equal(file, again) {
			t.Fatal("the same columns gave other bytes")
		}
		table, err := Open(context.Background(), source.Memory("t.tcb", file), &Options{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if table.Rows() != rows || len(got) != len(columns) {
			t.Fatalf("%d rows and %d columns, want %d and %d", table.Rows(), len(got), rows, len(columns))
		}
		for i, c := range columns {
			want := c.clean()
			if !same(got[i], want) {
				t.Fatalf("column %d of %s came back as\n%+v\nwant\n%+v", c.Tag, c.Type, got[i], want)
			}
		}
		if len(keys.MAC) == 0 {
			return
		}
		// A changed byte anywhere is found.
		k := rapid.IntRange(0, len(file)-1).Draw(t, "changed byte")
		file[k] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := Open(context.Background(), source.Memory("t.tcb", file), &Options{Keys: keys}); err == nil {
			t.Fatalf("byte %d was changed, and the file opened", k)
		}
	})
}

// tb is what checks of columns need of a test, or of a draw of one.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkChoice checks that every encoding that the type of a column allows holds its values, chosen or not, at the size that
// was stated, and that the shortest is taken. It returns what was tried.
func checkChoice(t tb, c *Column) *choice {
	t.Helper()
	choice := chooseColumn(c)
	smallest := choice.tried[0].Size
	for i, cand := range choice.tried {
		smallest = min(smallest, cand.Size)
		var p []byte
		if c.Type.Optional {
			p = appendBitmap(p, c.Present)
		}
		if c.Type.ElementOptional {
			p = append(p, appendInts(nil, Varint, []int32{int32(c.Len())})...)
			p = appendBitmap(p, c.ElementPresent)
		}
		head := len(p)
		p = choice.writers[i](p)
		if len(p)-head != cand.Size {
			t.Fatalf("%s takes %d bytes, %d were stated", cand.Encoding, len(p)-head, cand.Size)
		}
		d := Descriptor{Tag: c.Tag, Type: c.Type, Encoding: cand.Encoding, Size: int64(len(p))}
		got, err := decodeBlock(p, d, c.Rows, newBudget(1<<20), true)
		if err != nil {
			t.Fatalf("%s: %v", cand.Encoding, err)
		}
		if !same(got, c) {
			t.Fatalf("%s came back as\n%+v\nwant\n%+v", cand.Encoding, got, c)
		}
		// Without its last byte, and with one more, it is refused.
		if len(p) > head {
			if _, err := decodeBlock(p[:len(p)-1], d, c.Rows, newBudget(1<<20), true); err == nil {
				t.Fatalf("%s without its last byte was read", cand.Encoding)
			}
		}
		if _, err := decodeBlock(append(p, 0), d, c.Rows, newBudget(1<<20), true); Check(err) != "D10" {
			t.Fatalf("%s with a byte more: %v", cand.Encoding, err)
		}
	}
	if taken := choice.taken(); taken.Size != smallest {
		t.Fatalf("%s of %d bytes was taken, %d can be had", taken.Encoding, taken.Size, smallest)
	}
	return &choice
}

func TestEveryChoice(t *testing.T) {
	for range 20 { // shapes of columns come together rarely
		rapid.Check(t, func(t *rapid.T) {
			checkChoice(t, drawColumn(t, 1, rapid.IntRange(0, 60).Draw(t, "rows")).clean())
		})
	}
}

// Each encoding is the best of some column, by itself, inside WHOLE and BITPACK, as elements and as lengths in ARRAY, and in
// bitmaps.
func TestEveryEncoding(t *testing.T) {
	i32 := func(v ...int32) *Column { return &Column{Type: Type{Element: I32}, Int32s: v} }
	f64 := func(v ...float64) *Column { return &Column{Type: Type{Element: F64}, Float64s: v} }
	text := func(times int, v ...string) *Column {
		c := &Column{Type: Type{Element: String}}
		for _, s := range v {
			for range times {
				c.Strings = append(c.Strings, s)
			}
		}
		return c
	}
	alternating := i32()
	for i := range int32(256) {
		alternating.Int32s = append(alternating.Int32s, 500+i&1)
	}
	sums := &Column{Type: Type{Element: Enum}} // an enumeration has no steps of its own
	for i := range int32(256) {
		sums.Int32s = append(sums.Int32s, i)
	}
	front := []string{"skill_fire", "skill_ice", "skill_fireball", "skill_wind"}
	var parts []string
	for _, shape := range []string{"sword", "shield"} {
		for _, edge := range []string{"sharp", "blunt"} {
			for _, metal := range []string{"iron", "gold"} {
				parts = append(parts, metal+"_"+shape+"_"+edge)
			}
		}
	}
	inner := map[string]bool{}
	for _, e := range []struct {
		what string // the encoding, and what is inside
		c    *Column
	}{
		{"RAW", i32(305419896, -305419896, math.MaxInt32, math.MinInt32)},
		{"VARINT", i32(5, -3, 300)},
		{"DELTA", i32(1000, 1003, 1001, 1010, 1012, 1011)},
		{"RLE", i32(7, 7, 7, 7, 900, 900, 900)},
		{"DELTA_RLE", i32(1, 2, 3, 4)},
		{"BITPACK bytes RAW", i32(500, 507, 503, 501, 506, 500, 502, 505, 504)},
		{"BITPACK bytes RLE", alternating},
		{"BITPACK bytes DELTA_RLE", sums},
		{"DICT", text(1, "fire", "ice", "fire", "ice", "fire", "ice", "ice")},
		{"DICT_RLE", text(4, "north", "south", "north")},
		{"DICT_FRONT", text(1, front...)},
		{"DICT_FRONT_RLE", text(3, "skillfire", "skillice", "skillfireball", "skillwind")},
		{"DICT_SEG", text(1, parts...)},
		{"DICT_SEG_RLE", text(3, parts...)},
		{"WHOLE numbers VARINT", f64(10, -4, 16777216, 7)},
		{"WHOLE numbers DELTA", f64(1000, 1003, 1001, 1010, 1012, 1011)},
		{"WHOLE numbers RLE", f64(7, 7, 7, 7, 900, 900, 900)},
		{"WHOLE numbers DELTA_RLE", f64(1, 2, 3, 4, 5)},
	} {
		e.c.Rows = e.c.Len()
		describe := func(c Candidate) string {
			out := c.Encoding.String()
			for _, p := range c.Inside {
				out += " " + p.Name + " " + p.Encoding.String()
				inner[p.Name+" "+p.Encoding.String()] = true
			}
			return out
		}
		if got := describe(checkChoice(t, e.c).taken()); got != e.what {
			t.Errorf("%v is stored as %s, want %s", e.c, got, e.what)
		}
		// The same as elements, in rows of one each, and in rows of other lengths.
		n := e.c.Len()
		for _, lengths := range []string{"RAW", "RLE"} {
			a := *e.c
			a.Type.Kind = Array
			a.Offsets = []int32{0}
			if lengths == "RLE" {
				for i := range n {
					a.Offsets = append(a.Offsets, int32(i+1))
				}
			} else {
				a.Offsets = append(a.Offsets, 1, int32(n))
			}
			a.Rows = len(a.Offsets) - 1
			tried := checkChoice(t, &a).tried
			scalar, rest, _ := strings.Cut(e.what, " ")
			want := strings.TrimSpace("ARRAY elements " + scalar + " lengths " + lengths + " " + rest)
			if got := describe(tried[len(tried)-1]); got != want {
				t.Errorf("%v in an array is stored as %s, want %s", e.c, got, want)
			}
		}
	}
	// Every encoding that there is was in the list above, as what is taken or inside.
	for i := range encodingNames {
		switch e := Encoding(i); e {
		case ArrayOf:
		default:
			if !inner["elements "+e.String()] {
				t.Errorf("no column is stored best in %s", e)
			}
		}
	}
	for _, b := range []struct {
		enc Encoding
		p   Bitmap
	}{
		{Raw, Bitmap{1, 70, 3}},
		{RLE, Bitmap{255, 255, 255, 255, 255, 255}},
		{DeltaRLE, Bitmap{1, 2, 3, 4, 5, 6, 7}},
	} {
		if got := Encoding(appendBitmap(nil, b.p)[0]); got != b.enc {
			t.Errorf("the bitmap % x is stored in %s, want %s", b.p, got, b.enc)
		}
		c := &Column{Rows: 8 * len(b.p), Type: Type{Element: Bool, Optional: true}, Bools: make([]bool, 8*len(b.p)), Present: b.p}
		checkChoice(t, c)
	}
}
