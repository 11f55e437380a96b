package tcb

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
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
