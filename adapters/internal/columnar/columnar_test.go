package columnar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spilehq/spile/tcb"
)

func TestBatches(t *testing.T) {
	texts := func(lengths ...int) *tcb.Column {
		c := &tcb.Column{Tag: 1, Rows: len(lengths), Type: tcb.Type{Element: tcb.String}}
		for _, n := range lengths {
			c.Strings = append(c.Strings, strings.Repeat("x", n))
		}
		return c
	}
	list := &tcb.Column{Tag: 2, Rows: 4, Type: tcb.Type{Element: tcb.I32, Kind: tcb.Array}, Offsets: []int32{0, 0, 100, 100, 101}, Int32s: make([]int32, 101)}
	tests := []struct {
		columns []*tcb.Column
		rows    int
		bytes   int64
		want    [][2]int
	}{
		{[]*tcb.Column{texts()}, 10, 1000, nil},
		{[]*tcb.Column{texts(1, 1, 1, 1, 1)}, 2, 1000, [][2]int{{0, 2}, {2, 4}, {4, 5}}},
		{[]*tcb.Column{texts(1, 1, 1, 1, 1)}, 10, 1000, [][2]int{{0, 5}}},
		{[]*tcb.Column{texts(600, 600, 1, 5000, 1, 1)}, 10, 1000, [][2]int{{0, 1}, {1, 3}, {3, 4}, {4, 6}}},
		{[]*tcb.Column{texts(1, 1, 1, 1), list}, 10, 500, [][2]int{{0, 1}, {1, 2}, {2, 4}}},
	}
	for i, test := range tests {
		columns, _, err := Columns("test", test.columns[0].Rows, test.columns, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got [][2]int
		for start, end := range Batches(columns, test.rows, test.bytes) {
			got = append(got, [2]int{start, end})
		}
		if text := cmp.Diff(test.want, got); text != "" {
			t.Errorf("%d: %s", i, text)
		}
	}
}

// The reserved columns and the name of the table stay in the schema of columns that are some of its own.
func TestSchema(t *testing.T) {
	s, err := tcb.ParseSchema([]byte(`{"table":"T","columns":[{"tag":1,"type":"i32"},{"tag":2,"name":"kind","type":"enum","enum":{"a":0}}],"reserved":[{"tag":9,"name":"old"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := &tcb.Column{Tag: 2, Type: s.Columns[1].Type, Rows: 1, Int32s: []int32{0}}
	_, got, err := Columns("test", 1, []*tcb.Column{c}, s)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := got.MarshalJSON()
	if want := `{"table":"T","columns":[{"tag":2,"name":"kind","type":"enum","enum":{"a":0}}],"reserved":[{"tag":9,"name":"old"}]}`; string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}
