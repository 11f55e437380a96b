package tcb

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// vector is a conformance file of testdata/tcb; its README says what the members mean.
type vector struct {
	Name          string
	About         string
	Size          int
	MD5           string
	Write         bool
	Canonical     *bool
	Compatibility string
	Key, MACKey   string
	Schema        *Schema
	Rows          []json.RawMessage
	Encodings     map[string]string
	NonFinite     bool
	InvalidUTF8   int
	Logical       *struct {
		Schema *Schema
		Rows   []json.RawMessage
	}
	Why, Check string
	file       []byte
}

func (v *vector) keys() Keys {
	key, _ := hex.DecodeString(v.Key)
	mac, _ := hex.DecodeString(v.MACKey)
	return Keys{key, mac}
}

func vectors(t testing.TB, pattern string) []*vector {
	t.Helper()
	names, err := filepath.Glob("../testdata/tcb/" + pattern)
	if err != nil || len(names) < 30 {
		t.Fatal(err, len(names))
	}
	var out []*vector
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v := &vector{}
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatal(name, ": ", err)
		}
		if v.file, err = os.ReadFile(strings.TrimSuffix(name, ".json") + ".tcb"); err != nil {
			t.Fatal(err)
		}
		if len(v.file) != v.Size {
			t.Fatalf("%s has %d bytes, want %d", name, len(v.file), v.Size)
		}
		out = append(out, v)
	}
	return out
}

// read opens the file, and reads all columns of it.
func (v *vector) read() (*Table, []*Column, error) {
	ctx := context.Background()
	table, err := Open(ctx, source.Memory(v.Name+".tcb", v.file), &Options{Keys: v.keys()})
	if err != nil {
		return nil, nil, err
	}
	columns, err := table.Read(ctx)
	return table, columns, err
}

// number is a number of JSON text.
var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?`)

// sameJSON compares the texts of two values of an element: floats by the bits that they stand for in its size, since their
// texts in the vectors are not those of this package, all else byte by byte.
func sameJSON(e Element, a, b []byte) bool {
	size := 0
	switch e {
	case F32:
		size = 32
	case F64:
		size = 64
	default:
		return bytes.Equal(a, b)
	}
	bits := func(n []byte) []byte {
		x, err := strconv.ParseFloat(string(n), size)
		if err != nil {
			return n
		}
		return strconv.AppendUint([]byte("#"), math.Float64bits(x), 16)
	}
	return bytes.Equal(number.ReplaceAllFunc(a, bits), number.ReplaceAllFunc(b, bits))
}

func TestSameJSON(t *testing.T) {
	for _, test := range []struct {
		e    Element
		a, b string
		want bool
	}{
		{F32, "0.1", "0.10000000149011612", true},
		{F64, "0.1", "0.10000000149011612", false},
		{F64, "[1e3,null]", "[1000,null]", true},
		{F64, "0", "-0", false},
		{I64, "1000", "1e3", false},
		{String, `"0.1"`, `"0.10"`, false},
	} {
		if got := sameJSON(test.e, []byte(test.a), []byte(test.b)); got != test.want {
			t.Errorf("%s: %s and %s: %t", test.e, test.a, test.b, got)
		}
	}
}

// members are the members of a JSON object, in their order.
func members(t *testing.T, object []byte) (keys []string, values [][]byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		keys, values = append(keys, key.(string)), append(values, v)
	}
	return keys, values
}

// sameRows compares rows as JSON.
func sameRows(t *testing.T, columns []*Column, s *Schema, o *RowOptions, rows []json.RawMessage) {
	t.Helper()
	if len(columns) > 0 && columns[0].Rows != len(rows) {
		t.Fatalf("%d rows, want %d", columns[0].Rows, len(rows))
	}
	p := NewRows(columns, s, o)
	for i, row := range rows {
		got, err := p.Append(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Compact(&want, row); err != nil {
			t.Fatal(err)
		}
		keys, values := members(t, got)
		wantKeys, wantValues := members(t, want.Bytes())
		if !slices.Equal(keys, wantKeys) || len(keys) != len(columns) {
			t.Fatalf("row %d has %q, want %q", i, keys, wantKeys)
		}
		for k, c := range columns {
			if !sameJSON(c.Type.Element, values[k], wantValues[k]) {
				t.Errorf("row %d, %s is %s, want %s", i, keys[k], values[k], wantValues[k])
			}
		}
	}
}

func TestReadVectors(t *testing.T) {
	for _, v := range vectors(t, "*.json") {
		t.Run(v.Name, func(t *testing.T) {
			if sum := md5.Sum(v.file); v.MD5 != hex.EncodeToString(sum[:]) {
				t.Fatalf("the file has the MD5 sum %x, want %s", sum, v.MD5)
			}
			table, columns, err := v.read()
			if err != nil {
				t.Fatal(err)
			}
			if table.HasCounts() != (v.Compatibility != "") {
				t.Errorf("counts in the descriptors: %t", table.HasCounts())
			}
			s, err := table.Schema()
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(s)
			if want, _ := json.Marshal(v.Schema); !bytes.Equal(got, want) {
				t.Errorf("the schema is %s\nwant %s", got, want)
			}
			for _, c := range table.Columns() {
				if want := v.Encodings[fmt.Sprint(c.Tag)]; c.Encoding.String() != want {
					t.Errorf("column %d is stored in %s, want %s", c.Tag, c.Encoding, want)
				}
			}
			var losses value.Losses
			o := &RowOptions{JSON: value.JSONOptions{NonFinite: value.NonFiniteString, InvalidUTF8: value.UTF8Replace}, Losses: &losses}
			if len(v.Schema.Columns) == 0 {
				if table.Rows() != len(v.Rows) {
					t.Errorf("%d rows, want %d", table.Rows(), len(v.Rows))
				}
			}
			sameRows(t, columns, nil, o, v.Rows)
			for loss := range losses.All() {
				if loss.Kind == value.LossUTF8 && loss.Count != int64(v.InvalidUTF8) || loss.Kind != value.LossUTF8 && !v.NonFinite {
					t.Errorf("%s, want %d strings that are no UTF-8, and NaN: %t", loss, v.InvalidUTF8, v.NonFinite)
				}
			}
			if (losses.Count() > 0) != (v.NonFinite || v.InvalidUTF8 > 0) {
				t.Errorf("%d losses", losses.Count())
			}
			if v.NonFinite || v.InvalidUTF8 > 0 {
				p := NewRows(columns, nil, nil)
				var err error
				for i := range v.Rows {
					if _, err = p.Append(nil, i); err != nil {
						break
					}
				}
				if err == nil {
					t.Error("printed without an option for what has no JSON form")
				}
			}
			if v.Logical != nil {
				named, err := table.Named(v.Logical.Schema)
				if err != nil {
					t.Fatal(err)
				}
				sameRows(t, columns, named, o, v.Logical.Rows)
			}
		})
	}
}

func TestBadVectors(t *testing.T) {
	for _, v := range vectors(t, "bad/*.json") {
		t.Run(v.Name, func(t *testing.T) {
			_, _, err := v.read()
			if err == nil {
				t.Fatalf("was read, want %s: %s", v.Check, v.Why)
			}
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Class == nil || f.Object != v.Name+".tcb" {
				t.Errorf("the error has no class or no name: %v", err)
			}
			if got := Check(err); got != v.Check {
				t.Errorf("check %s: %v, want %s (%s)", got, err, v.Check, v.Why)
			}
		})
	}
}

// build makes columns of rows that are JSON objects.
func build(t testing.TB, s *Schema, rows []json.RawMessage) []*Column {
	t.Helper()
	b := NewBuilder(s)
	for i, row := range rows {
		d := json.NewDecoder(bytes.NewReader(row))
		d.UseNumber()
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		for k := range s.Columns {
			f := &s.Columns[k]
			v, ok := m[f.label()]
			if !ok {
				t.Fatalf("row %d has no %s", i, f.label())
			}
			var err error
			if f.Type.Kind == Scalar {
				err = b.Scalar(k, cell(v))
			} else {
				var cells []Cell
				if list, ok := v.([]any); ok {
					cells = []Cell{}
					for _, e := range list {
						cells = append(cells, cell(e))
					}
				}
				err = b.Array(k, cells)
			}
			if err != nil {
				t.Fatalf("row %d, %s: %v", i, f.label(), err)
			}
		}
		b.EndRow()
	}
	return b.Columns()
}

func cell(v any) Cell {
	switch v := v.(type) {
	case string:
		return Cell{CellText, v}
	case json.Number:
		return Cell{CellNumber, string(v)}
	case bool:
		return Cell{CellBool, fmt.Sprint(v)}
	}
	return Cell{}
}

func TestWriteVectors(t *testing.T) {
	n := 0
	for _, v := range vectors(t, "*.json") {
		if !v.Write {
			continue
		}
		n++
		t.Run(v.Name, func(t *testing.T) {
			write := func(s *Schema, rows []json.RawMessage) {
				t.Helper()
				columns := build(t, s, rows)
				got, err := Append(nil, len(rows), columns, &WriteOptions{Keys: v.keys()})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, v.file) {
					t.Errorf("wrote % x\nwant  % x", got, v.file)
				}
			}
			write(v.Schema, v.Rows)
			if v.Logical != nil {
				write(v.Logical.Schema, v.Logical.Rows)
			}
		})
	}
	if n < 30 {
		t.Errorf("%d files to write", n)
	}
}

// What was read from a canonical file is written as it was.
func TestRewriteVectors(t *testing.T) {
	for _, v := range vectors(t, "*.json") {
		if v.Canonical != nil && !*v.Canonical || v.InvalidUTF8 > 0 {
			continue
		}
		table, columns, err := v.read()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Append([]byte("x"), table.Rows(), columns, &WriteOptions{Keys: v.keys()})
		if err != nil {
			t.Fatal(v.Name, ": ", err)
		}
		if !bytes.Equal(got[1:], v.file) {
			t.Errorf("%s: wrote % x\nwant  % x", v.Name, got[1:], v.file)
		}
	}
}
