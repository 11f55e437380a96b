package tcb

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
)

// Every element in the file for every type of a member: what the table of promotions does not have is refused.
func TestPromotions(t *testing.T) {
	type (
		i32 struct {
			V int32 `tcb:"1"`
		}
		i64 struct {
			V int64 `tcb:"1"`
		}
		f32 struct {
			V float32 `tcb:"1"`
		}
		f64 struct {
			V float64 `tcb:"1"`
		}
		enum struct {
			V grade `tcb:"1,enum"`
		}
		boo struct {
			V bool `tcb:"1"`
		}
		str struct {
			V string `tcb:"1"`
		}
		uid struct {
			V GUID `tcb:"1"`
		}
		at struct {
			V time.Time `tcb:"1"`
		}
		span struct {
			V time.Duration `tcb:"1"`
		}
		tick struct {
			V int64 `tcb:"1,datetime"`
		}

		i32s struct {
			V []int32 `tcb:"1"`
		}
		i64s struct {
			V []int64 `tcb:"1"`
		}
		f32s struct {
			V []float32 `tcb:"1"`
		}
		f64s struct {
			V []float64 `tcb:"1"`
		}
		enums struct {
			V []grade `tcb:"1,enum"`
		}
		boos struct {
			V []bool `tcb:"1"`
		}
		strs struct {
			V []string `tcb:"1"`
		}
		uids struct {
			V []GUID `tcb:"1"`
		}
		ats struct {
			V []time.Time `tcb:"1"`
		}
		spans struct {
			V []time.Duration `tcb:"1"`
		}
		ticks struct {
			V []int64 `tcb:"1,timespan"`
		}
	)
	scalars := []func(*Table) (any, error){load1[i32], load1[i64], load1[f32], load1[f64], load1[enum], load1[boo], load1[str], load1[uid], load1[at], load1[span], load1[tick]}
	arrays := []func(*Table) (any, error){load1[i32s], load1[i64s], load1[f32s], load1[f64s], load1[enums], load1[boos], load1[strs], load1[uids], load1[ats], load1[spans], load1[ticks]}
	members := []string{"i32", "i64", "f32", "f64", "enum", "bool", "string", "uuid", "datetime", "timespan", "datetime"}
	// What a member of each type makes of the column, "" where it is refused.
	want := map[Element][]any{
		Enum:   {int32(7), int64(7), nil, nil, grade(7)},
		Bool:   {nil, nil, nil, nil, nil, true},
		I32:    {int32(-7), int64(-7), nil, float64(-7)},
		I64:    {nil, int64(1 << 40), nil, nil, nil, nil, nil, nil, time.Date(1, 1, 2, 6, 32, 31, 162777600, time.UTC), 109951162777600 * time.Nanosecond, int64(1 << 40)},
		F32:    {nil, nil, float32(0.1), float64(float32(0.1))},
		F64:    {nil, nil, nil, 0.1},
		String: {nil, nil, nil, nil, nil, nil, "x"},
		UUID:   {nil, nil, nil, nil, nil, nil, nil, GUID{1}},
	}
	for e, values := range want {
		c := &Column{Tag: 1, Type: Type{Element: e}, Rows: 40}
		for range c.Rows { // enough of them to be stored in runs
			switch e {
			case Enum:
				c.Int32s = append(c.Int32s, 7)
			case I32:
				c.Int32s = append(c.Int32s, -7)
			case Bool:
				c.Bools = append(c.Bools, true)
			case I64:
				c.Int64s = append(c.Int64s, 1<<40)
			case F32:
				c.Float32s = append(c.Float32s, 0.1)
			case F64:
				c.Float64s = append(c.Float64s, 0.1)
			case String:
				c.Strings = append(c.Strings, "x")
			case UUID:
				c.UUIDs = append(c.UUIDs, GUID{1})
			}
		}
		a := *c
		a.Type.Kind, a.Offsets = Array, make([]int32, 41)
		for i := range a.Offsets {
			a.Offsets[i] = int32(i)
		}
		for i, name := range members {
			var value any
			if i < len(values) {
				value = values[i]
			}
			for kind, load := range []func(*Table) (any, error){scalars[i], arrays[i]} {
				column := []*Column{c, &a}[kind]
				got, err := load(tableOf(t, 40, column))
				if value == nil {
					if Check(err) != "C5" || !errors.Is(err, fault.Conflict) || !strings.HasPrefix(err.Error(), "tcb: t.tcb: column 1 (V): C5: the file has "+e.String()+", which field V") {
						t.Errorf("%s in %s: %v, %v", column.Type, name, got, err)
					}
					continue
				}
				if kind == 1 && err == nil {
					got = reflect.ValueOf(got).Index(0).Interface()
				}
				if err != nil || got != value {
					t.Errorf("%s in %s is %v, %v, want %v", column.Type, name, got, err, value)
				}
				// The other kind is refused.
				if _, err = []func(*Table) (any, error){arrays[i], scalars[i]}[kind](tableOf(t, 40, column)); Check(err) != "C3" {
					t.Errorf("%s in the other kind: %v", column.Type, err)
				}
			}
		}
	}
}

// load1 loads a table and returns the field of its last row.
func load1[T any](table *Table) (any, error) {
	rows, err := Load[T](context.Background(), table)
	if err != nil {
		return nil, err
	}
	return reflect.ValueOf(rows[len(rows)-1]).Field(0).Interface(), nil
}

// Whether rows and elements can be absent is the same in the file and in the struct.
func TestOptionalMismatch(t *testing.T) {
	type (
		has struct {
			V Opt[int32] `tcb:"1"`
		}
		ptr struct {
			V *int32 `tcb:"1"`
		}
		bare struct {
			V int32 `tcb:"1,optional"`
		}
		not struct {
			V int32 `tcb:"1"`
		}
		list struct {
			V []int32 `tcb:"1"`
		}
		olist struct {
			V Opt[[]int32] `tcb:"1"`
		}
		plist struct {
			V *[]int32 `tcb:"1"`
		}
		blist struct {
			V []int32 `tcb:"1,optional"`
		}
		elem struct {
			V []Opt[int32] `tcb:"1"`
		}
		pelem struct {
			V []*int32 `tcb:"1"`
		}
		belem struct {
			V []int32 `tcb:"1,elementoptional"`
		}
		both struct {
			V Opt[[]*int32] `tcb:"1"`
		}
		bboth struct {
			V []int32 `tcb:"1,optional,elementoptional"`
		}
		recs  struct{ R []not }
		rboth struct {
			R []struct {
				V *int32 `tcb:"1,optional"`
			}
		}
	)
	loads := map[string][]func(*Table) (any, error){
		"i32?": {load1[has], load1[ptr], load1[bare]}, "i32": {load1[not]}, "i32[]": {load1[list], load1[recs]},
		"i32[]?": {load1[olist], load1[plist], load1[blist]}, "i32?[]": {load1[elem], load1[pelem], load1[belem]},
		"i32?[]?": {load1[both], load1[bboth], load1[rboth]},
	}
	for _, typ := range []Type{
		{I32, Scalar, false, false}, {I32, Scalar, true, false}, {I32, Array, false, false}, {I32, Array, true, false},
		{I32, Array, false, true}, {I32, Array, true, true},
	} {
		c := &Column{Tag: 1, Type: typ, Rows: 1, Present: Bitmap{1}, ElementPresent: Bitmap{1}, Offsets: []int32{0, 1}, Int32s: []int32{5}}
		table := tableOf(t, 1, c)
		for name, list := range loads {
			check := ""
			switch {
			case strings.Contains(name, "?[") != typ.ElementOptional:
				check = "C1"
			case strings.HasSuffix(name, "?") != typ.Optional:
				check = "C2"
			case strings.Contains(name, "[") != (typ.Kind == Array):
				check = "C3"
			}
			for _, load := range list {
				v, err := load(table)
				if Check(err) != check || check == "" && err != nil {
					t.Errorf("%s in %s: %v %v, want %s", typ, name, v, err, check)
				}
				if err != nil && !strings.Contains(err.Error(), "t.tcb: column 1 (") {
					t.Error(err)
				}
			}
		}
	}
	_, err := load1[not](tableOf(t, 1, &Column{Tag: 1, Type: Type{Element: I32, Optional: true}, Rows: 1, Present: Bitmap{0}, Int32s: []int32{0}}))
	if want := "tcb: t.tcb: column 1 (V): C2: rows of the file can be absent, those of field V cannot be absent"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestStructRefused(t *testing.T) {
	type self struct {
		ID   int32 `tcb:"1"`
		Kids []self
	}
	type rec struct {
		V int32 `tcb:"1"`
	}
	type emb struct{ Opt[int32] }
	type myInt int32
	table := openVector(t, "OffsetTable")
	for _, c := range []struct {
		load func(*Table) (any, error)
		want string
	}{
		{load1[int], "rows are structs, int is none"},
		{load1[*rec], "rows are structs, *tcb.rec is none"},
		{load1[struct{ V int32 }], `no field of struct { V int32 } has a tag as`},
		{load1[struct {
			V int `tcb:"1"`
		}], "field V of struct { V int \"tcb:\\\"1\\\"\" }: no column holds int;"},
		{load1[struct {
			V [16]byte `tcb:"1"`
		}], "no column holds [16]uint8"},
		{load1[struct {
			V []byte `tcb:"1"`
		}], "no column holds uint8"},
		{load1[struct {
			V [][]int32 `tcb:"1"`
		}], "no column holds []int32"},
		{load1[struct {
			V **int32 `tcb:"1"`
		}], "no column holds *int32"},
		{load1[struct {
			V Opt[Opt[int32]] `tcb:"1"`
		}], "no column holds tcb.Opt[int32]"},
		{load1[struct {
			V emb `tcb:"1"`
		}], "no column holds tcb.emb"},
		{load1[struct {
			V rec `tcb:"1"`
		}], "no column holds tcb.rec"},
		{load1[struct {
			V int32 `tcb:"0"`
		}], `the tag "0", want a number from 1 on`},
		{load1[struct {
			V int32 `tcb:"V"`
		}], `the tag "V", want`},
		{load1[struct {
			V int32 `tcb:"4294967297"`
		}], `the tag "4294967297", want`},
		{load1[struct {
			V int32 `tcb:""`
		}], `no number in front`},
		{load1[struct {
			V int32 `tcb:",enum"`
		}], `no number in front`},
		{load1[struct {
			V int32 `tcb:"1,Enum"`
		}], `the option "Enum", want enum,`},
		{load1[struct {
			V int32 `tcb:"1,name="`
		}], `the option "name=", want`},
		{load1[struct {
			V int64 `tcb:"1,enum"`
		}], "an enumeration is held by int32, not by int64"},
		{load1[struct {
			V time.Duration `tcb:"1,datetime"`
		}], "a datetime is held by time.Time, or by int64 as ticks, not by time.Duration"},
		{load1[struct {
			V int32 `tcb:"1,timespan"`
		}], "a timespan is held by time.Duration, or by int64 as ticks, not by int32"},
		{load1[struct {
			V int64 `tcb:"1,timespan,datetime"`
		}], "a datetime is held"},
		{load1[struct {
			V int32 `tcb:"1,elementoptional"`
		}], "optional elements, and int32 is no slice"},
		{load1[struct {
			v int32 `tcb:"1"`
		}], "it is not exported"},
		{load1[struct {
			myInt `tcb:"1"`
		}], "it is not exported"},
		{load1[struct {
			V rec `tcb:",group,enum"`
		}], "a group has no tag and no options but a name"},
		{load1[struct {
			V rec `tcb:"2,group"`
		}], "a group has no tag"},
		{load1[struct {
			V int32 `tcb:",group"`
		}], "a group, and int32 is no struct"},
		{load1[struct{ V *rec }], "field V of struct { V *tcb.rec }: *tcb.rec holds columns; a struct does"},
		{load1[struct{ V Opt[[]rec] }], "] holds columns; a struct does"},
		{load1[struct{ V []*rec }], "[]*tcb.rec holds columns"},
		{load1[struct{ A, B rec }], "column 1 (B.V): the tag is that of column 1 (A.V) too"},
		{load1[struct {
			A rec
			V int32 `tcb:"2,name=A.V"`
		}], "the name is that of column 1 (A.V) too"},
		{load1[self], "field Kids of tcb.self: tcb.self lies in itself"},
		{load1[struct{ R []struct{ R []rec } }], "an array of records in R, which is one"},
		{load1[struct {
			R []struct {
				V []int32 `tcb:"1"`
			}
		}], "field R.V of struct"},
	} {
		_, err := c.load(table)
		if err == nil || !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
