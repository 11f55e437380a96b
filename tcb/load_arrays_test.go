package tcb

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
)

func TestLoadOptArrays(t *testing.T) {
	type row struct {
		Enum []grade       `tcb:"1,enum,optional"`
		I32  *[]int64      `tcb:"3"`
		I64  Opt[[]int64]  `tcb:"4"`
		F32  []float64     `tcb:"5,optional"`
		Text Opt[[]string] `tcb:"7"`
		ID   *[]GUID       `tcb:"8"`
		Bits Opt[names]    `tcb:"2,name=bits"`
	}
	got := mustLoad[row](t, openVector(t, "opt-arrays"))
	a, b := mustGUID("d95bafc8-f2a4-d27b-dcf4-bb99f4bea973"), mustGUID("5c6e4337-15ba-2bdd-1772-19d30e7a269f")
	f := float64(float32(0.1))
	want := []row{
		{[]grade{}, &[]int64{305419896}, Some([]int64{1099511627776, -1}), []float64{}, Some([]string{"alpha"}), &[]GUID{a, b}, Some(names{})},
		{[]grade{}, &[]int64{305419896, math.MinInt32}, Opt[[]int64]{Value: []int64{}}, []float64{}, Some([]string{"alpha", ""}), nil, Some(names{true})},
		{[]grade{1}, nil, Some([]int64{}), []float64{f}, Opt[[]string]{Value: []string{}}, &[]GUID{}, Some(names{true, false})},
		{[]grade{1, -7}, &[]int64{}, Some([]int64{1099511627776}), []float64{f, math.Copysign(0, -1)}, Some([]string{}), &[]GUID{a}, Opt[names]{Value: names{}}},
	}
	sameValues(t, got, append(want, want...))
	for _, r := range got {
		if c := cap(r.I64.Value); c != len(r.I64.Value) {
			t.Errorf("capacity %d, length %d", c, len(r.I64.Value))
		}
	}

	type elements struct {
		Enum []Opt[grade] `tcb:"1,enum"`
		I32  []*int32     `tcb:"3"`
		I64  []int64      `tcb:"4,elementoptional"`
		Text []*string    `tcb:"7"`
	}
	n, m, empty := int32(305419896), int32(math.MinInt32), ""
	some := mustLoad[elements](t, openVector(t, "elem-opt-arrays"))
	sameValues(t, some[0], elements{[]Opt[grade]{}, []*int32{&n, nil}, []int64{0, -1, 7}, []*string{nil, &empty}})
	sameValues(t, some[4].I32, []*int32{nil, &m})
	sameValues(t, some[7].Enum, []Opt[grade]{Some(grade(1)), Some(grade(-7)), {}})
}

type names []bool

func TestLoadArrays(t *testing.T) {
	type row struct {
		Text []string    `tcb:"2"`
		N    []int32     `tcb:"3"`
		F    []float32   `tcb:"4"`
		E    []int64     `tcb:"5"` // from enum
		Pair []float64   `tcb:"6"` // from i32
		ID   int32       `tcb:"1"`
		Gone []GUID      `tcb:"70"`
		Opt  Opt[[]bool] `tcb:"71"`
		Ptr  *[]bool     `tcb:"72"`
	}
	gone, none := []GUID{}, Opt[[]bool]{Value: []bool{}}
	sameValues(t, mustLoad[row](t, openVector(t, "ArrayTypes")), []row{
		{[]string{"red", "green", "blue"}, []int32{10, 20, 30}, []float32{.5, .25}, []int64{1, 2}, []float64{1, 2}, 1, gone, none, nil},
		{[]string{"solo"}, []int32{5}, []float32{1, 2, 3, 4}, []int64{3}, []float64{3, 4}, 2, gone, none, nil},
		{[]string{}, []int32{}, []float32{}, []int64{}, []float64{5, 6}, 3, gone, none, nil},
		{[]string{"a", "b", "c"}, []int32{1, 2}, []float32{0.1}, []int64{1, 3}, []float64{7, 8}, 4, gone, none, nil},
	})
}

// stats is embedded, which adds nothing to the names.
type stats struct {
	HP int32      `tcb:"2"`
	MP Opt[int32] `tcb:"3"`
}

type drop struct {
	Item  int32    `tcb:"5"`
	Rate  *float64 `tcb:"6"`
	Where struct {
		Name string `tcb:"7,name=Place"`
	}
	When time.Time `tcb:"8,optional"`
}

type hero struct {
	ID int32 `tcb:"1"`
	stats
	Home struct {
		X, Y float32
		Z    float32 `tcb:"4"`
	} `tcb:",group"`
	Drops []drop `tcb:",group,name=Loot"`
	Title string `tcb:"9"`
	Self  *hero  `tcb:"-"`
}

func heroes() []hero {
	rate := 0.5
	h := []hero{{ID: 1, Title: "a", Drops: []drop{}}, {ID: 2, Drops: []drop{{Item: 7, Rate: &rate}, {Item: 8}}}, {ID: 3, Drops: []drop{{}}}}
	h[0].HP, h[1].MP, h[2].Home.Z = 5, Some(int32(6)), 0.25
	h[1].Drops[1].Where.Name, h[2].Drops[0].When = "cave", time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	return h
}

func TestRecords(t *testing.T) {
	want := heroes()
	file, err := Marshal([]byte("x"), want, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := mustLoad[hero](t, openFile(t, file[1:]))
	sameValues(t, got, want)
	s, err := SchemaOf[hero]()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := s.MarshalJSON()
	if want := `{"table":"hero","columns":[{"tag":1,"name":"ID","type":"i32"},{"tag":2,"name":"HP","type":"i32"},{"tag":3,"name":"MP","type":"i32","optional":true},` +
		`{"tag":4,"name":"Home.Z","type":"f32"},{"tag":5,"name":"Loot.Item","type":"i32[]"},{"tag":6,"name":"Loot.Rate","type":"f64[]","elementOptional":true},` +
		`{"tag":7,"name":"Loot.Where.Place","type":"string[]"},{"tag":8,"name":"Loot.When","type":"datetime[]","optional":true},{"tag":9,"name":"Title","type":"string"}]}`; string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	// A member that is not in the file keeps its empty value, also the first; without any there are no records.
	columns, _ := ColumnsOf(want)
	part := mustLoad[hero](t, tableOf(t, 3, columns[5]))
	if d := part[1].Drops; len(d) != 2 || d[0].Item != 0 || *d[0].Rate != 0.5 || d[1].Rate != nil {
		t.Errorf("%+v", d)
	}
	for _, h := range mustLoad[hero](t, tableOf(t, 3, columns[0])) {
		if h.Drops == nil || len(h.Drops) > 0 {
			t.Errorf("%+v", h)
		}
	}
	columns[6].Offsets = []int32{0, 1, 2, 3}
	_, err = Load[hero](context.Background(), tableOf(t, 3, columns...))
	if want := "tcb: t.tcb: column 7 (Loot.Where.Place): row 0 has 1 elements, and 0 in column 5 (Loot.Item); both belong to the records of field Drops"; !errors.Is(err, fault.Conflict) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
