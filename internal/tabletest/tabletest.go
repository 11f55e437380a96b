// Package tabletest has tables for the tests of exports: those of testdata/tcb, and random ones of every type.
package tabletest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// Table is a table to export.
type Table struct {
	Name        string
	Columns     []*tcb.Column
	Schema      *tcb.Schema
	InvalidUTF8 bool
}

// Rows is the number of rows.
func (t *Table) Rows() int { return t.Columns[0].Rows }

// Files reads the tables of dir, which is testdata/tcb, that have columns.
func Files(t testing.TB, dir string) []Table {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) < 30 {
		t.Fatal(err, len(names))
	}
	ctx := context.Background()
	var out []Table
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Key, MACKey string
			InvalidUTF8 int
			Logical     *struct{ Schema *tcb.Schema }
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(name, ": ", err)
		}
		obj, err := source.OpenFile(strings.TrimSuffix(name, ".json") + ".tcb")
		if err != nil {
			t.Fatal(err)
		}
		key, _ := hex.DecodeString(v.Key)
		mac, _ := hex.DecodeString(v.MACKey)
		table, err := tcb.Open(ctx, obj, &tcb.Options{Keys: tcb.Keys{Encryption: key, MAC: mac}})
		if err != nil {
			t.Fatal(name, ": ", err)
		}
		columns, err := table.Read(ctx)
		if err != nil {
			t.Fatal(name, ": ", err)
		}
		schema, err := table.Schema()
		if v.Logical != nil {
			schema, err = table.Named(v.Logical.Schema)
		}
		if err != nil {
			t.Fatal(name, ": ", err)
		}
		table.Close()
		if len(columns) > 0 {
			out = append(out, Table{strings.TrimSuffix(filepath.Base(name), ".json"), columns, schema, v.InvalidUTF8 > 0})
		}
	}
	return out
}

// Random makes a table with a column of every type, in every form.
func Random(seed uint64, rows int) Table {
	r := rand.New(rand.NewPCG(seed, seed))
	table := Table{Name: fmt.Sprintf("random-%d-%d", seed, rows), Schema: &tcb.Schema{Table: "random"}}
	types := []string{"enum", "bool", "i32", "i64", "f32", "f64", "string", "uuid", "datetime", "timespan", "nanos", "spans"}
	for _, name := range types {
		for form := range 6 {
			array, optional, elementOptional := form >= 2, form&1 != 0, form >= 4
			f := tcb.Field{Tag: int32(len(table.Columns) + 1), Name: fmt.Sprintf("%s %d", name, form)}
			f.Type = tcb.Type{Element: tcb.I64, Optional: optional, ElementOptional: elementOptional}
			if array {
				f.Type.Kind = tcb.Array
			}
			switch name {
			case "datetime", "nanos":
				f.Logical = tcb.DateTime
			case "timespan", "spans":
				f.Logical = tcb.TimeSpan
			default:
				for e := tcb.Enum; e <= tcb.UUID; e++ {
					if e.String() == name {
						f.Type.Element = e
					}
				}
			}
			table.Schema.Columns = append(table.Schema.Columns, f)
			table.Columns = append(table.Columns, random(r, &f, name, rows))
		}
	}
	return table
}

func random(r *rand.Rand, f *tcb.Field, name string, rows int) *tcb.Column {
	c := &tcb.Column{Tag: f.Tag, Name: f.Name, Type: f.Type, Rows: rows}
	if f.Type.Optional {
		c.Present = tcb.NewBitmap(rows)
	}
	if f.Type.Kind == tcb.Array {
		c.Offsets = []int32{0}
	}
	var element []bool
	for i := range rows {
		there := true
		if f.Type.Optional {
			if there = r.IntN(3) > 0; there {
				c.Present.Set(i)
			}
		}
		n := 1
		if f.Type.Kind == tcb.Array {
			if n = r.IntN(4); !there {
				n = 0
			}
		}
		for range n {
			has := there && (!f.Type.ElementOptional || r.IntN(3) > 0)
			element = append(element, has)
			add(r, c, name, has)
		}
		if f.Type.Kind == tcb.Array {
			c.Offsets = append(c.Offsets, int32(c.Len()))
		}
	}
	if f.Type.ElementOptional {
		c.ElementPresent = tcb.NewBitmap(len(element))
		for i, has := range element {
			if has {
				c.ElementPresent.Set(i)
			}
		}
	}
	return c
}

var texts = []string{"", "a", "ein längerer Text", "é한Ａ", "\x00\t\"'\\", "a", "a", strings.Repeat("x", 300)}

// add adds a random value, often one at the edge of its type, or the empty value.
func add(r *rand.Rand, c *tcb.Column, name string, has bool) {
	pick := func(v ...int64) int64 {
		if i := r.IntN(len(v) + 2); i < len(v) {
			return v[i]
		}
		return v[0] + r.Int64N(1000)
	}
	switch name {
	case "enum", "i32":
		c.Int32s = append(c.Int32s, int32(pick(0, math.MaxInt32-1000, math.MinInt32, -1)))
	case "bool":
		c.Bools = append(c.Bools, r.IntN(2) == 0)
	case "i64":
		c.Int64s = append(c.Int64s, pick(0, math.MaxInt64, math.MinInt64, -1))
	case "f32":
		c.Float32s = append(c.Float32s, math.Float32frombits(uint32(pick(0, 1<<31, 0x7f800000, 0x7f800001, 0x7fc01234, 0xffc00000, int64(r.Uint32())))))
	case "f64":
		c.Float64s = append(c.Float64s, math.Float64frombits(uint64(pick(0, math.MinInt64, 0x7ff0000000000000, 0x7ff0000000000001, 0x7ff8000000001234, int64(r.Uint64())))))
	case "string":
		c.Strings = append(c.Strings, texts[r.IntN(len(texts))]+fmt.Sprint(r.IntN(5)))
	case "uuid":
		var g tcb.GUID
		for i := range g {
			g[i] = byte(r.Uint32())
		}
		c.UUIDs = append(c.UUIDs, g)
	case "datetime": // whole microseconds, the years 1 to 9999
		c.Int64s = append(c.Int64s, pick(0, tcb.MaxDateTime-9, 621355968000000000, r.Int64N(tcb.MaxDateTime))/10*10)
	case "nanos": // the reach of nanoseconds
		c.Int64s = append(c.Int64s, 621355968000000000+pick(1, 0, 92233720368547000, -92233720368547000, r.Int64N(1<<56)))
	case "timespan": // nanoseconds hold it
		c.Int64s = append(c.Int64s, pick(0, 92233720368547758, -92233720368547758, r.Int64N(1<<56)))
	case "spans": // microseconds
		c.Int64s = append(c.Int64s, pick(0, math.MaxInt64, math.MinInt64, r.Int64())/10*10)
	}
	if has {
		return
	}
	switch c.Type.Element {
	case tcb.Enum, tcb.I32:
		c.Int32s[len(c.Int32s)-1] = 0
	case tcb.Bool:
		c.Bools[len(c.Bools)-1] = false
	case tcb.I64:
		c.Int64s[len(c.Int64s)-1] = 0
	case tcb.F32:
		c.Float32s[len(c.Float32s)-1] = 0
	case tcb.F64:
		c.Float64s[len(c.Float64s)-1] = 0
	case tcb.String:
		c.Strings[len(c.Strings)-1] = ""
	case tcb.UUID:
		c.UUIDs[len(c.UUIDs)-1] = tcb.GUID{}
	}
}

// Wide makes a table as games have them: rows rows of 10 columns, of which 2 are arrays.
func Wide(rows int) Table {
	b := Table{Name: "wide", Schema: &tcb.Schema{Table: "wide"}}
	r := rand.New(rand.NewPCG(1, 2))
	for i, text := range []string{"i32", "string", "i32", "f32", "f64", "bool", "uuid", "datetime", "i32[]", "string"} {
		f := tcb.Field{Tag: int32(i + 1), Name: fmt.Sprintf("c%d", i+1)}
		element, isArray := strings.CutSuffix(text, "[]")
		c := &tcb.Column{Tag: f.Tag, Name: f.Name, Rows: rows}
		if isArray {
			f.Type.Kind = tcb.Array
			c.Offsets = []int32{0}
		}
		if i%3 == 2 {
			f.Type.Optional = true
			c.Present = tcb.NewBitmap(rows)
		}
		for j := range rows {
			has := true
			if f.Type.Optional {
				if has = j%5 != 0; has {
					c.Present.Set(j)
				}
			}
			n := 1
			if isArray {
				n = j % 4
				if !has {
					n = 0
				}
				c.Offsets = append(c.Offsets, c.Offsets[j]+int32(n))
			}
			for range n {
				switch element {
				case "i32":
					f.Type.Element = tcb.I32
					c.Int32s = append(c.Int32s, int32(j)+r.Int32N(20))
				case "string":
					f.Type.Element = tcb.String
					if i == 1 {
						c.Strings = append(c.Strings, fmt.Sprintf("Item_Sword_%06d", j))
					} else {
						c.Strings = append(c.Strings, texts[r.IntN(4)])
					}
				case "f32":
					f.Type.Element = tcb.F32
					c.Float32s = append(c.Float32s, float32(r.IntN(1000))/8)
				case "f64":
					f.Type.Element = tcb.F64
					c.Float64s = append(c.Float64s, r.Float64())
				case "bool":
					f.Type.Element = tcb.Bool
					c.Bools = append(c.Bools, has && r.IntN(2) == 0)
				case "uuid":
					f.Type.Element = tcb.UUID
					var g tcb.GUID
					for k := range g {
						g[k] = byte(r.Uint32())
					}
					c.UUIDs = append(c.UUIDs, g)
				case "datetime":
					f.Type.Element, f.Logical = tcb.I64, tcb.DateTime
					c.Int64s = append(c.Int64s, 639000000000000000+int64(j)*tcb.TicksPerSecond)
				}
			}
		}
		c.Type = f.Type
		b.Columns = append(b.Columns, c)
		b.Schema.Columns = append(b.Schema.Columns, f)
	}
	return b
}

// F32 and F64 are floats by their bits, so that they compare exactly.
type (
	F32 uint32
	F64 uint64
)

// Cell is the value of row i in a form that compares: nil, bool, int64 (numbers, ticks), F32, F64, string (text, and
// UUIDs as text), and []any of these.
func Cell(c *tcb.Column, i int) any {
	if !c.Has(i) {
		return nil
	}
	start, end := c.Span(i)
	if c.Type.Kind == tcb.Scalar {
		return cell(c, start)
	}
	out := []any{}
	for j := start; j < end; j++ {
		if c.HasElement(j) {
			out = append(out, cell(c, j))
		} else {
			out = append(out, nil)
		}
	}
	return out
}

func cell(c *tcb.Column, j int) any {
	switch c.Type.Element {
	case tcb.Enum, tcb.I32:
		return int64(c.Int32s[j])
	case tcb.Bool:
		return c.Bools[j]
	case tcb.I64:
		return c.Int64s[j]
	case tcb.F32:
		return F32(math.Float32bits(c.Float32s[j]))
	case tcb.F64:
		return F64(math.Float64bits(c.Float64s[j]))
	case tcb.String:
		return c.Strings[j]
	}
	return c.UUIDs[j].String()
}
