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

// values draws n values of an element, in shapes that each encoding is good for.
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

// Every encoding that a type allows holds every value of the type, chosen or not, at the size that was stated.
func TestEveryEncoding(t *testing.T) {
	seen := map[Encoding]bool{}
	inner := map[string]bool{}
	check := func(t *rapid.T) {
		rows := rapid.IntRange(0, 60).Draw(t, "rows")
		c := drawColumn(t, 1, rows).clean()
		choice := chooseColumn(c)
		smallest := choice.tried[0].Size
		for i, cand := range choice.tried {
			smallest = min(smallest, cand.Size)
			seen[cand.Encoding] = true
			for _, part := range cand.Inside {
				inner[part.Name+" "+part.Encoding.String()] = true
			}
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
			d := Descriptor{Tag: 1, Type: c.Type, Encoding: cand.Encoding, Size: int64(len(p))}
			got, err := decodeBlock(p, d, rows, newBudget(1<<20), true)
			if err != nil {
				t.Fatalf("%s: %v", cand.Encoding, err)
			}
			if !same(got, c) {
				t.Fatalf("%s came back as\n%+v\nwant\n%+v", cand.Encoding, got, c)
			}
			// Without its last byte, and with one more, it is refused.
			if len(p) > head {
				if _, err := decodeBlock(p[:len(p)-1], d, rows, newBudget(1<<20), true); err == nil {
					t.Fatalf("%s without its last byte was read", cand.Encoding)
				}
			}
			if _, err := decodeBlock(append(p, 0), d, rows, newBudget(1<<20), true); Check(err) != "D10" {
				t.Fatalf("%s with a byte more: %v", cand.Encoding, err)
			}
		}
		if taken := choice.taken(); taken.Size != smallest {
			t.Fatalf("%s of %d bytes was taken, %d can be had", taken.Encoding, taken.Size, smallest)
		}
	}
	for range 20 { // so often that each kind of candidate occurs
		rapid.Check(t, check)
	}
	if len(seen) != len(encodingNames) {
		t.Errorf("tried: %v", seen)
	}
	for _, part := range []string{
		"bytes RAW", "bytes RLE", "bytes DELTA_RLE", "numbers VARINT", "numbers DELTA", "numbers RLE", "numbers DELTA_RLE",
		"lengths RAW", "lengths RLE", "elements DICT", "elements BITPACK", "elements WHOLE",
	} {
		if !inner[part] {
			t.Errorf("no candidate had %s", part)
		}
	}
}
