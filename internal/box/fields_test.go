package box

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
)

type name string

type part struct {
	Small byte
	Name  name
	Wide  float64
}

type whole struct {
	part
	List  []int32
	Parts []part
	Next  *part
	Last  bool
}

// place is that of a field by its name.
func place[T any](t *testing.T, field string) Place {
	t.Helper()
	f, ok := reflect.TypeFor[T]().FieldByName(field)
	if !ok {
		t.Fatal("no field ", field)
	}
	p := Place{}
	typ := reflect.TypeFor[T]()
	for _, i := range f.Index { // the offset of f is that in the struct which it is declared in
		p = p.Field(typ.Field(i))
		typ = typ.Field(i).Type
	}
	return p
}

// What is stored is what assignments make, behind collections.
func TestFields(t *testing.T) {
	const n = 1000
	rows := make([]whole, n)
	r := RowsOf(reflect.ValueOf(rows))
	names, last, wide, ints := make([]string, n), make([]bool, n), make([]float32, n), make([]int32, 3*n)
	offsets := make([]int32, n+1)
	for i := range n {
		names[i], last[i], wide[i], offsets[i+1] = fmt.Sprint("n", i), i%3 == 0, float32(i), offsets[i]+int32(i%4)
	}
	for i := range ints {
		ints[i] = int32(i)
	}
	parts := reflect.ValueOf(make([]part, len(ints)))
	Widen[float64](RowsOf(parts), place[part](t, "Wide"), ints)
	nexts := RowsOf(reflect.MakeSlice(reflect.TypeFor[[]part](), n, n))
	Store(nexts, place[part](t, "Name"), names)
	for at := 0; at < n; at += 300 {
		end := min(at+300, n)
		part := r.Slice(at, end)
		Store(part, place[whole](t, "Name"), names[at:])
		Store(part, place[whole](t, "Last"), last[at:])
		Widen[float64](part, place[whole](t, "Wide"), wide[at:])
		StoreSlices(part, place[whole](t, "List"), offsets[at:], View(reflect.TypeFor[int32](), ints))
		StoreSlices(part, place[whole](t, "Parts"), offsets[at:], RowsOf(parts))
		k := StorePointers(part, place[whole](t, "Next"), last[at:], nexts)
		nexts = nexts.Slice(k, nexts.Len())
		runtime.GC()
	}
	names, nexts, parts = nil, Rows{}, reflect.Value{}
	runtime.GC()
	k := 0
	for i, w := range rows {
		from, to := offsets[i], offsets[i+1]
		if w.Name != name(fmt.Sprint("n", i)) || w.Last != (i%3 == 0) || w.Wide != float64(i) || w.Small != 0 {
			t.Fatalf("row %d: %+v", i, w)
		}
		if !slices.Equal(w.List, ints[from:to]) || w.List == nil || cap(w.List) != len(w.List) {
			t.Fatalf("row %d: %v, capacity %d", i, w.List, cap(w.List))
		}
		if len(w.Parts) != int(to-from) || len(w.Parts) > 0 && w.Parts[0].Wide != float64(from) {
			t.Fatalf("row %d: %v", i, w.Parts)
		}
		if (w.Next != nil) != w.Last || w.Last && w.Next.Name != name(fmt.Sprint("n", k)) {
			t.Fatalf("row %d: %v", i, w.Next)
		}
		if w.Last {
			k++
		}
	}
	back := make([]float64, 10)
	Fetch(r.Slice(990, n), place[whole](t, "Wide"), back)
	if back[9] != n-1 {
		t.Error(back)
	}
	if r.Slice(n, n).Len() != 0 || r.Len() != n {
		t.Error("the lengths are wrong")
	}
	for _, bad := range [][2]int{{-1, 0}, {2, 1}, {n, n + 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("rows %v are there", bad)
				}
			}()
			r.Slice(bad[0], bad[1])
		}()
	}
}
