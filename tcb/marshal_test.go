package tcb

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// inner and outer have every shape of a member there is.
type inner struct {
	I  int32          `tcb:"20"`
	E  Opt[grade]     `tcb:"21,enum"`
	L  *int64         `tcb:"22"`
	S  string         `tcb:"23"`
	At Opt[time.Time] `tcb:"24"`
	In struct {
		D *time.Duration `tcb:"25"`
		G GUID           `tcb:"26"`
		B bool           `tcb:"27"`
	}
}

type outer struct {
	I    int32                 `tcb:"1"`
	E    grade                 `tcb:"2,enum"`
	L    *int64                `tcb:"3"`
	F    Opt[float32]          `tcb:"4"`
	D    *float64              `tcb:"5"`
	S    Opt[string]           `tcb:"6"`
	G    *GUID                 `tcb:"7"`
	At   time.Time             `tcb:"8"`
	Took Opt[time.Duration]    `tcb:"9"`
	B    *bool                 `tcb:"10"`
	Is   []int32               `tcb:"11"`
	Es   []Opt[grade]          `tcb:"12,enum"`
	Ls   Opt[[]int64]          `tcb:"13"`
	Fs   *[]float32            `tcb:"14"`
	Ds   []*float64            `tcb:"15"`
	Ss   Opt[[]Opt[string]]    `tcb:"16"`
	Gs   *[]*GUID              `tcb:"17"`
	Ats  []time.Time           `tcb:"18"`
	Tks  Opt[[]*time.Duration] `tcb:"19"`
	R    []inner
	Bs   []bool `tcb:"28"`
}

// draw makes a value of a type.
func draw(t *rapid.T, v reflect.Value) {
	if _, _, ok := optOf(v.Type()); ok {
		if rapid.Bool().Draw(t, "present") {
			draw(t, v.Field(0))
			v.Field(1).SetBool(true)
		} else if v.Field(0).Kind() == reflect.Slice {
			v.Field(0).Set(reflect.MakeSlice(v.Field(0).Type(), 0, 0))
		}
		return
	}
	switch v.Type() {
	case timeType:
		ticks := rapid.Int64Range(0, MaxDateTime).Draw(t, "ticks")
		at, _ := TimeOf(ticks)
		v.Set(reflect.ValueOf(at))
		return
	case durationType:
		v.SetInt(rapid.Int64Range(math.MinInt64/100, math.MaxInt64/100).Draw(t, "ticks") * 100)
		return
	case guidType:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(rapid.Byte().Draw(t, "b")))
		}
		return
	}
	switch v.Kind() {
	case reflect.Int32:
		v.SetInt(int64(rapid.Int32().Draw(t, "i")))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "l"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "f")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "d"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "b"))
	case reflect.String:
		v.SetString(rapid.StringN(0, 5, 20).Draw(t, "s"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem())
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 4).Draw(t, "n")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			draw(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Field(i))
		}
	}
}

func TestMarshalLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]outer, rapid.IntRange(0, 12).Draw(t, "rows"))
		for i := range rows {
			draw(t, reflect.ValueOf(&rows[i]).Elem())
		}
		file, err := Marshal(nil, rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Open(context.Background(), source.Memory("t", file), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load[outer](context.Background(), table)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows, got, cmpOptions); diff != "" {
			t.Fatal(diff)
		}
		again, err := Marshal(nil, got, nil)
		if err != nil || !bytes.Equal(file, again) {
			t.Fatal("written anew, the file is another: ", err)
		}
	})
}

func TestMarshalRefused(t *testing.T) {
	type row struct {
		At   time.Time        `tcb:"1"`
		Took time.Duration    `tcb:"2"`
		Log  []Opt[time.Time] `tcb:"3"`
		Name string           `tcb:"4"`
	}
	zone := time.FixedZone("", 3600)
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "row 1, column 1 (At): 10000-01-01 00:00:00 +0000 UTC is not a whole number of ticks of 100 ns in the years 1 to 9999"},
		{row{At: time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC)}, "row 1, column 1 (At)"},
		{row{Took: 150}, "row 1, column 2 (Took): 150ns is not"},
		{row{Log: []Opt[time.Time]{{}, Some(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))}}, "row 1, column 3 (Log)"},
		{row{Name: "\xff"}, "column 4 (Name): value 1 is no UTF-8"},
		{row{At: time.Date(2026, 1, 1, 2, 0, 0, 0, zone), Log: []Opt[time.Time]{{Value: time.Unix(0, 1)}}}, ""},
	} {
		file, err := Marshal(nil, []row{{}, c.row}, nil)
		if c.want != "" {
			if !errors.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "tcb: "+c.want) || file != nil {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := mustLoad[row](t, openFile(t, file))
		sameValues(t, got[1], row{At: time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC), Log: []Opt[time.Time]{{}}})
	}
	if _, err := Marshal[int](nil, nil, nil); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if _, err := SchemaOf[int](); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
