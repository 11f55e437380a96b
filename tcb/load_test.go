package tcb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/box"
	"github.com/spilehq/spile/source"
)

// openFile opens a file in memory.
func openFile(t testing.TB, file []byte) *Table {
	t.Helper()
	table, err := Open(context.Background(), source.Memory("t.tcb", file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// tableOf writes columns and opens the file.
func tableOf(t testing.TB, rows int, columns ...*Column) *Table {
	t.Helper()
	file, err := Append(nil, rows, columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	return openFile(t, file)
}

// openVector opens a conformance file.
func openVector(t testing.TB, name string) *Table {
	t.Helper()
	for _, v := range vectors(t, "*.json") {
		if v.Name == name {
			return openFile(t, v.file)
		}
	}
	t.Fatal("no vector ", name)
	return nil
}

// mustLoad loads a table, by Load and by Iter.
func mustLoad[T any](t testing.TB, table *Table) []T {
	t.Helper()
	rows, err := Load[T](context.Background(), table)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for row, err := range Iter[T](context.Background(), table) {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows[i], *row, cmpOptions); diff != "" {
			t.Fatalf("Iter, row %d: %s", i, diff)
		}
		i++
	}
	if i != len(rows) {
		t.Fatalf("Iter has %d rows, Load %d", i, len(rows))
	}
	return rows
}

// cmpOptions compare floats by their bits.
var cmpOptions = cmp.Options{
	cmp.Exporter(func(t reflect.Type) bool { return t != reflect.TypeFor[time.Time]() }),
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
	cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }),
}

func sameValues(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpOptions); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// mustGUID reads a uuid.
func mustGUID(s string) GUID {
	g, err := ParseGUID(s)
	if err != nil {
		panic(err)
	}
	return g
}

type grade int32

func TestLoadFieldTypes(t *testing.T) {
	type row struct {
		ID     int32
		Key    int64         `tcb:"1"`
		Name   string        `tcb:"2"`
		On     bool          `tcb:"3"`
		N      int32         `tcb:"4"`
		Big    int64         `tcb:"5"`
		Single float32       `tcb:"6"`
		Double float64       `tcb:"7"`
		At     time.Time     `tcb:"8"`
		Took   time.Duration `tcb:"9"`
		Who    GUID          `tcb:"10"`
		Grade  grade         `tcb:"11,enum"`
		Later  []string      `tcb:"99"`
		Never  Opt[int32]    `tcb:"98"`
		left   int32         //lint:ignore U1000 an unexported field is passed over
	}
	sameValues(t, mustLoad[row](t, openVector(t, "TestFieldTypes")), []row{
		{Key: 1, Name: "first", On: true, N: 1024, Big: 9007199254740993, Single: 1.5, Double: 2.25,
			At: time.Date(2022, 1, 24, 10, 30, 0, 0, time.UTC), Took: 26*time.Hour + 3*time.Minute + 4*time.Second,
			Who: mustGUID("7b7d9f6a-1e2c-4c1a-9a5f-2b6d0c3e4f51"), Grade: 1, Later: []string{}},
		{Key: 2, Name: "second", N: -20, Big: -9007199254740993, Single: -0.5, Double: 1e-8,
			At: time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC), Took: time.Second,
			Who: mustGUID("0f8fad5b-d9cb-469f-a165-70867728950e"), Grade: 3, Later: []string{}},
		{Key: 3, At: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Later: []string{}},
	})
}

func TestLoadDrop(t *testing.T) {
	type row struct {
		ID    int32              `tcb:"1"`
		N     Opt[int64]         `tcb:"3"` // from i32
		D     *float64           `tcb:"4"`
		S     Opt[float32]       `tcb:"5"`
		Big   int64              `tcb:"6,optional"`
		At    *time.Time         `tcb:"7"`
		Took  Opt[time.Duration] `tcb:"8"`
		Who   *GUID              `tcb:"9"`
		Grade *grade             `tcb:"10,enum"`
		Loot  Opt[[]int32]       `tcb:"11"`
		Name  *string            `tcb:"12"`
		On    Opt[bool]          `tcb:"13"`
	}
	d, at, who, g, name := 1.5, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), mustGUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301"), grade(2), "first"
	sameValues(t, mustLoad[row](t, openVector(t, "Drop")), []row{
		{ID: 1, N: Some(int64(5)), D: &d, S: Some(float32(0.25)), Big: 9000000000, At: &at,
			Took: Some(time.Hour + 2*time.Minute + 3*time.Second), Who: &who, Grade: &g, Loot: Some([]int32{10, 20}), Name: &name, On: Some(true)},
		{ID: 2, Loot: Opt[[]int32]{Value: []int32{}}},
		{ID: 3, Loot: Opt[[]int32]{Value: []int32{}}},
	})
}

func TestLoadTimes(t *testing.T) {
	type row struct {
		At   time.Time                 `tcb:"1"`
		Took int64                     `tcb:"2,timespan"`
		Log  []time.Time               `tcb:"3"`
		Gaps Opt[[]Opt[time.Duration]] `tcb:"4"`
		End  *time.Time                `tcb:"5"`
	}
	end := time.Date(1969, 12, 31, 23, 59, 59, 500_000_000, time.UTC)
	end2 := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	none := []Opt[time.Duration]{}
	got := mustLoad[row](t, openVector(t, "times"))
	sameValues(t, got, []row{
		{Log: []time.Time{}, Gaps: Opt[[]Opt[time.Duration]]{Value: none}},
		{At: time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC), Took: math.MinInt64,
			Log:  []time.Time{time.Date(1970, 1, 1, 0, 0, 0, 100, time.UTC)},
			Gaps: Some([]Opt[time.Duration]{Some(time.Second), {}}), End: &end},
		{At: time.Date(1600, 2, 29, 12, 34, 56, 789_000_000, time.UTC), Took: math.MaxInt64,
			Log:  []time.Time{time.Unix(0, math.MaxInt64/100*100).UTC(), time.Unix(math.MaxInt64/1_000_000_000, 854775900).UTC()},
			Gaps: Some(none), End: &end2},
		{At: time.Date(2026, 11, 30, 23, 59, 59, 250_000_000, time.UTC), Took: -1, Log: []time.Time{},
			Gaps: Some([]Opt[time.Duration]{Some(-24 * time.Hour), Some(86399900 * time.Millisecond)})},
	})
	if got[0].At != (time.Time{}) {
		t.Error("tick 0 is not the zero time")
	}

	// A duration ends at 292 years: the second row has the first that is beyond it.
	type spans struct {
		Took time.Duration `tcb:"2"`
	}
	rows, err := Load[spans](context.Background(), openVector(t, "times"))
	want := "tcb: t.tcb: row 1, column 2 (Took): the timespan -10675199.02:48:05.4775808, and a time.Duration ends at 292 years; an int64 with the option timespan holds it"
	if rows != nil || !errors.Is(err, fault.Limit) || err.Error() != want {
		t.Errorf("%v, %v", rows, err)
	}
	for row, err := range Iter[spans](context.Background(), openVector(t, "times")) {
		if row != nil || !errors.Is(err, fault.Limit) {
			t.Errorf("Iter: %v, %v", row, err)
		}
	}
}

func TestLoadTimesRefused(t *testing.T) {
	i64 := func(tag int32, t Type, present Bitmap, offsets []int32, v ...int64) *Column {
		t.Element = I64
		return &Column{Tag: tag, Type: t, Rows: 3, Present: present, Offsets: offsets, Int64s: v, ElementPresent: present}
	}
	const last = math.MaxInt64 / 100
	table := tableOf(t, 3,
		i64(1, Type{}, nil, nil, 0, MaxDateTime, MaxDateTime+1), i64(2, Type{}, nil, nil, last, -last, last+1),
		i64(3, Type{Kind: Array}, nil, []int32{0, 1, 1, 3}, 5, 6, -1),
		i64(4, Type{Optional: true}, Bitmap{5}, nil, last, 0, -last-1),
		i64(5, Type{Kind: Array, ElementOptional: true}, Bitmap{5}, []int32{0, 2, 2, 3}, 5, 0, -2))
	type (
		at struct {
			V time.Time `tcb:"1"`
		}
		took struct {
			V time.Duration `tcb:"2"`
		}
		log struct {
			V []time.Time `tcb:"3"`
		}
		gap struct {
			V *time.Duration `tcb:"4"`
		}
		list struct {
			V []*time.Time `tcb:"5"`
		}
	)
	ctx := context.Background()
	for _, c := range []struct {
		load  func() error
		class error
		want  string
	}{
		{func() error { _, err := Load[at](ctx, table); return err }, fault.Invalid, "row 2, column 1 (V): 3155378976000000000 ticks are no datetime, 0 to 3155378975999999999 are"},
		{func() error { _, err := Load[took](ctx, table); return err }, fault.Limit, "row 2, column 2 (V): the timespan 106751.23:47:16.8547759, and"},
		{func() error { _, err := Load[log](ctx, table); return err }, fault.Invalid, "row 2, column 3 (V): -1 ticks"},
		{func() error { _, err := Load[gap](ctx, table); return err }, fault.Limit, "row 2, column 4 (V): the timespan -106751"},
		{func() error { _, err := Load[list](ctx, table); return err }, fault.Invalid, "row 2, column 5 (V): -2 ticks"},
	} {
		if err := c.load(); !errors.Is(err, c.class) || !strings.HasPrefix(err.Error(), "tcb: t.tcb: "+c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

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

// What is no member is not looked at.
func TestLeftAlone(t *testing.T) {
	type node struct {
		Next *node
		Kids []node
		m    map[string]int //lint:ignore U1000 as above
	}
	type row struct {
		ID   int32 `tcb:"1"`
		Tree node
		Any  any
		F    func()
		Opt  Opt[node]
		Skip struct {
			V chan int `tcb:"2"`
		} `tcb:"-"`
	}
	r := mustLoad[row](t, openVector(t, "OffsetTable"))
	if len(r) != 2 || r[1].ID != 2 || r[0].Tree.Kids != nil {
		t.Errorf("%+v", r)
	}
}

// Only the columns that the struct has are read.
func TestLoadReadsLittle(t *testing.T) {
	columns := []*Column{{Tag: 1, Rows: 20000, Type: Type{Element: UUID}}, {Tag: 2, Rows: 20000, Type: Type{Element: I32}}}
	for i := range 20000 {
		columns[0].UUIDs = append(columns[0].UUIDs, GUID{byte(i), byte(i >> 8)})
		columns[1].Int32s = append(columns[1].Int32s, int32(i))
	}
	file, err := Append(nil, 20000, columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	meter := &source.Meter{}
	table, err := Open(context.Background(), meter.Object(source.Memory("t", file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	before := meter.Receipt()
	type row struct {
		N int64 `tcb:"2"`
	}
	rows := mustLoad[row](t, table)
	if n := meter.Receipt().Bytes - before.Bytes; rows[19999].N != 19999 || n > 100 {
		t.Errorf("%d bytes were read", n)
	}
}

func TestLoadLimits(t *testing.T) {
	// A run of three bytes stands for a million rows.
	c := &Column{Tag: 1, Type: Type{Element: I32}, Rows: 1 << 20, Int32s: make([]int32, 1<<20)}
	file, err := Append(nil, c.Rows, []*Column{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	open := func(l Limits) *Table {
		table, err := Open(ctx, source.Memory("t", file), &Options{Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	type wide struct {
		N    int32 `tcb:"1"`
		Much [1 << 12]byte
	}
	type none struct {
		N int32 `tcb:"7"`
	}
	if _, err := Load[wide](ctx, open(Limits{})); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
	if _, err := Load[none](ctx, open(Limits{Rows: 1000})); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
	n := 0
	for _, err := range Iter[wide](ctx, open(Limits{})) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1000 {
			break
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n = 0
	for row, err := range Iter[none](ctx, open(Limits{})) {
		if n++; n == 10 {
			cancel()
		}
		if err != nil && (row != nil || !errors.Is(err, context.Canceled)) {
			t.Error(err)
		}
	}
	if n > 1000 {
		t.Errorf("%d rows after the context has ended", n)
	}
}

func TestEmptyTables(t *testing.T) {
	type row struct {
		A int32       `tcb:"1"`
		B []*string   `tcb:"2"`
		C Opt[[]GUID] `tcb:"3"`
		R []struct {
			X *time.Time `tcb:"4"`
		}
	}
	file, err := Marshal[row](nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if rows := mustLoad[row](t, openFile(t, file)); rows == nil || len(rows) > 0 {
		t.Errorf("%v", rows)
	}
	file, err = Marshal(nil, []row{{}, {}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := mustLoad[row](t, openFile(t, file))
	if len(rows) != 2 || rows[1].B == nil || rows[1].C.Value == nil || rows[1].R == nil {
		t.Errorf("%#v", rows)
	}
}

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

// Rows of more than one chunk, in every shape.
func TestLoadManyRows(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) outer {
		var o outer
		draw(t, reflect.ValueOf(&o).Elem())
		return o
	})
	var some []outer
	for i := range 50 {
		some = append(some, gen.Example(i))
	}
	var rows []outer
	for i := range 3000 {
		rows = append(rows, some[i*i%50])
	}
	file, err := Marshal(nil, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameValues(t, mustLoad[outer](t, openFile(t, file)), rows)
}

// structOf makes the struct type of a schema.
func structOf(s *Schema) reflect.Type {
	types := map[Element]reflect.Type{
		Enum: reflect.TypeFor[grade](), Bool: reflect.TypeFor[bool](), I32: reflect.TypeFor[int32](), I64: reflect.TypeFor[int64](),
		F32: reflect.TypeFor[float32](), F64: reflect.TypeFor[float64](), String: reflect.TypeFor[string](), UUID: guidType,
	}
	var fields []reflect.StructField
	for i, f := range s.Columns {
		t := types[f.Type.Element]
		if f.Type.ElementOptional {
			t = reflect.PointerTo(t)
		}
		if f.Type.Kind == Array {
			t = reflect.SliceOf(t)
		}
		if f.Type.Optional {
			t = reflect.PointerTo(t)
		}
		tag := fmt.Sprintf(`tcb:"%d"`, f.Tag)
		if f.Type.Element == Enum {
			tag = fmt.Sprintf(`tcb:"%d,enum"`, f.Tag)
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: t, Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(fields)
}

// Every conformance file goes through structs and comes out as it was.
func TestLoadVectors(t *testing.T) {
	n := 0
	for _, v := range vectors(t, "*.json") {
		if len(v.Schema.Columns) == 0 || v.Canonical != nil && !*v.Canonical || v.InvalidUTF8 > 0 {
			continue
		}
		n++
		table, err := Open(context.Background(), source.Memory(v.Name, v.file), &Options{Keys: v.keys()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLoader(context.Background(), structOf(v.Schema), table)
		if err != nil {
			t.Fatal(err)
		}
		rows := reflect.MakeSlice(reflect.SliceOf(l.plan.typ), table.Rows(), table.Rows())
		if err := l.fill(box.RowsOf(rows), 0); err != nil {
			t.Fatal(err)
		}
		columns, err := columnsOf(rows)
		if err != nil {
			t.Fatal(err)
		}
		file, err := Append(nil, table.Rows(), columns, &WriteOptions{Keys: v.keys()})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, v.file) {
			t.Errorf("%s: wrote % x\nwant % x", v.Name, file, v.file)
		}
	}
	if n < 30 {
		t.Errorf("%d files", n)
	}
}

// A file that is damaged is refused, whatever the struct.
func TestLoadBadVectors(t *testing.T) {
	for _, v := range vectors(t, "bad/*.json") {
		table, err := Open(context.Background(), source.Memory(v.Name, v.file), &Options{Keys: v.keys()})
		if err != nil {
			continue
		}
		s, err := table.Schema()
		if err != nil || len(s.Columns) == 0 {
			continue
		}
		for i := range s.Columns { // a bit that a column of scalars cannot have
			f := &s.Columns[i].Type
			f.ElementOptional = f.ElementOptional && f.Kind == Array
		}
		l, err := newLoader(context.Background(), structOf(s), table)
		if l != nil || Check(err) != v.Check {
			t.Errorf("%s: %v, want %s", v.Name, err, v.Check)
		}
	}
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

// bench has the columns of a table of a game.
type benchRow struct {
	ID     int32       `tcb:"1"`
	Name   string      `tcb:"2"`
	Grade  grade       `tcb:"3,enum"`
	HP     int32       `tcb:"4"`
	Attack float32     `tcb:"5"`
	Price  int64       `tcb:"6"`
	Hidden bool        `tcb:"7"`
	Since  time.Time   `tcb:"8"`
	Note   Opt[string] `tcb:"9"`
	Loot   []int32     `tcb:"10"`
}

func benchRows(n int) []benchRow {
	rows := make([]benchRow, n)
	for i := range rows {
		rows[i] = benchRow{
			ID: int32(1000 + i), Name: fmt.Sprintf("Hero_of_%d", i/3), Grade: grade(i % 5), HP: int32(i * 7919 % 9000), Attack: float32(i%400) / 4,
			Price: int64(i*104729) % 1e9, Hidden: i%9 == 0, Since: time.Date(2020+i%5, 1, 1+i%300, 0, 0, 0, 0, time.UTC), Loot: make([]int32, i%4),
		}
		for k := range rows[i].Loot {
			rows[i].Loot[k] = int32(i*31+k) % 1000
		}
		if i%6 == 0 {
			rows[i].Note = Some("seasonal")
		}
	}
	return rows
}

func BenchmarkLoad(b *testing.B) {
	const n = 20000
	file, err := Marshal(nil, benchRows(n), nil)
	if err != nil {
		b.Fatal(err)
	}
	table := openFile(b, file)
	ctx := context.Background()
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
	}
	b.Run("columns", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := table.Read(ctx); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("structs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Load[benchRow](ctx, table); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("iter", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range Iter[benchRow](ctx, table) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
}
