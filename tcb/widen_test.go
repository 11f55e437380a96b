package tcb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// Every pair of elements, as scalars and as arrays: what the table of promotions takes is widened, all else refused.
func TestReadAsPromotions(t *testing.T) {
	ctx := context.Background()
	values := func(c *Column) {
		c.setLen(2)
		switch c.Type.Element {
		case Enum, I32:
			c.Int32s[1] = -7
		case Bool:
			c.Bools[1] = true
		case I64:
			c.Int64s[1] = -7
		case F32:
			c.Float32s[1] = -7
		case F64:
			c.Float64s[1] = -7
		case String:
			c.Strings[1] = "-7"
		case UUID:
			c.UUIDs[1] = GUID{7}
		}
	}
	for from := range Element(8) {
		for to := range Element(8) {
			for _, kind := range []Kind{Scalar, Array} {
				c := &Column{Tag: 1, Type: Type{Element: from, Kind: kind}, Rows: 2}
				want := &Column{Tag: 1, Type: Type{Element: to, Kind: kind}, Rows: 2}
				for _, c := range []*Column{c, want} {
					values(c)
					if kind == Array {
						c.Offsets = []int32{0, 2, 2}
					}
				}
				p, err := Append(nil, 2, []*Column{c}, nil)
				if err != nil {
					t.Fatal(err)
				}
				table, err := Open(ctx, source.Memory("t", p), nil)
				if err != nil {
					t.Fatal(err)
				}
				s := &Schema{Columns: []Field{{Tag: 1, Type: want.Type}}}
				got, err := table.ReadAs(ctx, s)
				if !promotes(from, to, Number) {
					if !errors.Is(err, fault.Conflict) {
						t.Errorf("%s as %s: %v", from, to, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s as %s: %v", from, to, err)
					continue
				}
				a, _ := NewRows(got, s, nil).Append(nil, 0)
				b, _ := NewRows([]*Column{want}, s, nil).Append(nil, 0)
				if string(a) != string(b) || got[0].Check() != nil || got[0].Type != want.Type {
					t.Errorf("%s as %s: %s, want %s", from, to, a, b)
				}
			}
		}
	}
}

// Columns that the file does not have are empty, or absent where they can be.
func TestReadAsMissing(t *testing.T) {
	ctx := context.Background()
	p, err := Append(nil, 2, []*Column{{Tag: 7, Type: Type{Element: I32}, Rows: 2, Int32s: []int32{1, 2}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(ctx, source.Memory("t", p), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ column, want string }{
		{`"type":"i32"`, `0`}, {`"type":"i64"`, `0`}, {`"type":"f32"`, `0.0`}, {`"type":"bool"`, `false`}, {`"type":"string"`, `""`},
		{`"type":"enum"`, `0`}, {`"type":"uuid"`, `"00000000-0000-0000-0000-000000000000"`}, {`"type":"datetime"`, `"0001-01-01T00:00:00"`},
		{`"type":"i32[]","elementOptional":true`, `[]`}, {`"type":"f64[]","optional":true`, `null`}, {`"type":"f64","optional":true`, `null`},
	} {
		s, err := ParseSchema([]byte(`{"columns":[{"tag":1,` + test.column + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		all, err := table.As(s)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := table.ReadAs(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := NewRows(columns, all, nil).Append(nil, 1)
		if want := `{"7":2,"1":` + test.want + `}`; string(got) != want || err != nil {
			t.Errorf("%s: %s %v, want %s", test.column, got, err, want)
		}
		if columns, err = table.ReadAs(ctx, all, 1); err != nil || len(columns) != 1 || columns[0].Check() != nil {
			t.Errorf("%s alone: %v", test.column, err)
		}
	}
	if _, err := table.ReadAs(ctx, &Schema{}, 9); !errors.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// What a schema does not have is passed over, whatever it is; what it has is refused.
func TestNamedPassesOver(t *testing.T) {
	ctx := context.Background()
	file := fileOf(2, 5, []Descriptor{
		{Tag: 1, Type: Type{Element: I32}, Encoding: Varint}, {Tag: 2, Type: Type{Element: 15}, Encoding: 200},
		{Tag: 3, Type: Type{Element: String, Kind: 2}, Encoding: 99}, {Tag: 4, Type: Type{Element: String, ElementOptional: true}, Encoding: Dict},
		{Tag: 5, Type: Type{Element: Bool}, Encoding: 14},
	}, []byte{10, 12}, []byte("xyz"), nil, []byte{1}, nil)
	table := openFile(t, file)
	s, err := table.As(&Schema{Columns: []Field{{Tag: 1, Name: "id", Type: Type{Element: I64}}}})
	if err != nil || len(s.Columns) != 1 {
		t.Fatal(s, err)
	}
	columns, err := table.ReadAs(ctx, s)
	if err != nil || len(columns) != 1 || !slices.Equal(columns[0].Int64s, []int64{5, 6}) {
		t.Fatal(columns, err)
	}
	type row struct {
		ID int64 `tcb:"1"`
	}
	if rows := mustLoad[row](t, table); !slices.Equal(rows, []row{{5}, {6}}) {
		t.Error(rows)
	}
	for _, tag := range []int32{2, 3, 4, 5} {
		s, err := table.As(&Schema{Columns: []Field{{Tag: tag, Type: Type{Element: Bool}}}})
		if err == nil {
			_, err = table.ReadAs(ctx, s)
		}
		if err == nil {
			t.Errorf("column %d was read", tag)
		}
	}
}

// Messages about a schema name the place and the column, and no types of Go.
func TestSchemaMessages(t *testing.T) {
	for text, want := range map[string]string{
		"{\"columns\":[\n  {\"tag\":\"1\",\"name\":\"id\",\"type\":\"i32\"}]}": `column 1 of the schema: "tag" is "1", want a whole number from 1 to 2147483647 (line 2, character 10)`,
		`{"columns":[{"tag":1.5,"type":"i32"}]}`:                               `"tag" is 1.5, want a whole number`,
		`{"columns":[{"tag":3,"name":"hp","type":"int"}]}`:                     `column 3 (hp): the type "int", want bool, i32`,
		`{"columns":[{"tag":3,"name":"hp"}]}`:                                  `column 3 (hp): the type ""`,
		`{"columns":[{"tag":3,"name":7,"type":"i32"}]}`:                        `column 3: "name" is 7, want text`,
		`{"columns":[{"tag":3,"name":"hp","type":"i32","optional":"yes"}]}`:    `column 3 (hp): "optional" is "yes", want true or false (line 1, character 58)`,
		`{"columns":[{"tag":3,"name":"hp","type":"i32","default":0}]}`:         `column 3 (hp): a column has no member "default"; tag, name, type`,
		`{"columns":[{"tag":3,"name":"hp","type":"enum","enum":["A"]}]}`:       `column 3 (hp): "enum" is an array, want an object`,
		`{"columns":[{"tag":3,"name":"hp","type":"enum","enum":{"A":"1"}}]}`:   `column 3 (hp): "A" is "1", want a whole number of 32 bits`,
		`{"columns":[{"tag":3,"tag":4,"type":"i32"}]}`:                         `"tag" is there twice`,
		`{"columns":[{"name":"hp","type":"i32"}]}`:                             `column 1 of the schema: the tag 0, or none; tags start at 1`,
		`{"columns":{}}`:  `"columns" is an object, want an array`,
		`{"columns":[7]}`: `column 1 of the schema: a column is 7, want an object`,
		`[]`:              `the schema is an array, want an object`,
		`{"columns":[],"reserved":[{"tag":1,"type":"i32"}]}`: `reserved column 1: a column has no member "type"; tag, name are known`,
		`{}`:                   `the schema is not readable: it has no "columns"`,
		``:                     `the schema is not readable: it ends too early (line 1, character 1)`,
		"{\"columns\":[\n":     `the schema is not readable: it ends too early (line 2, character 1)`,
		"{\"columns\":[\n é]}": `the schema is not readable: invalid character`,
		`{"columns":[]} x`:     `there is more behind it (line 1, character 16)`,
	} {
		_, err := ParseSchema([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s:\n got  %v\n want %s", text, err, want)
		}
	}
}

// All fields that are wrong are named at once.
func TestPlanErrors(t *testing.T) {
	type row struct {
		ID   int    `tcb:"1"`
		Name []byte `tcb:"x"`
		Sub  struct {
			C complex64 `tcb:"3"`
		}
	}
	_, err := SchemaOf[row]()
	for _, want := range []string{"field ID of ", "field Name of ", "field Sub.C of "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	type other struct {
		A string  `tcb:"1"`
		B float32 `tcb:"2"`
	}
	p, err := Append(nil, 0, []*Column{{Tag: 1, Type: Type{Element: I32}}, {Tag: 2, Type: Type{Element: F64}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(context.Background(), source.Memory("t", p), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load[other](context.Background(), table)
	if err == nil || !strings.Contains(err.Error(), "field A of") || !strings.Contains(err.Error(), "field B of") || !errors.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

// An encoding that is not defined is named once.
func TestUnknownEncodingMessage(t *testing.T) {
	err := checkType(Descriptor{Tag: 1, Type: Type{Element: I32}, Encoding: 14})
	if want := "C4: is stored in encoding 14, which this version does not define"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
