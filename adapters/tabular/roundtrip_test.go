package tabular_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/adapters/csvtable"
	"github.com/spilehq/spile/adapters/jsonrows"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/adapters/xlsx"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// form is a form of tables, with some options.
type form struct {
	name  string
	write func(w io.Writer, rows int, c []*tcb.Column, s *tcb.Schema) error
	read  func(p []byte, s *tcb.Schema) ([]*tcb.Column, int, []tabular.Warning, error)
}

func forms() []form {
	ctx := context.Background()
	csvForm := func(name string, o csvtable.Options) form {
		return form{name, func(w io.Writer, rows int, c []*tcb.Column, s *tcb.Schema) error {
			return csvtable.Write(ctx, w, rows, c, s, &o)
		}, func(p []byte, s *tcb.Schema) ([]*tcb.Column, int, []tabular.Warning, error) {
			return csvtable.Read(ctx, bytes.NewReader(p), s, &o)
		}}
	}
	xlsxForm := func(name string, o xlsx.Options) form {
		return form{name, func(w io.Writer, rows int, c []*tcb.Column, s *tcb.Schema) error {
			return xlsx.Write(ctx, w, rows, c, s, &o)
		}, func(p []byte, s *tcb.Schema) ([]*tcb.Column, int, []tabular.Warning, error) {
			return xlsx.Read(ctx, bytes.NewReader(p), int64(len(p)), s, &o)
		}}
	}
	return []form{
		{"jsonl", func(w io.Writer, rows int, c []*tcb.Column, s *tcb.Schema) error {
			return jsonrows.Write(ctx, w, rows, c, s, nil)
		}, func(p []byte, s *tcb.Schema) ([]*tcb.Column, int, []tabular.Warning, error) {
			return jsonrows.Read(ctx, bytes.NewReader(p), s, nil)
		}},
		csvForm("csv", csvtable.Options{}),
		csvForm("csv, semicolons, decimal commas, tags", csvtable.Options{Delimiter: ';', Options: tabular.Options{DecimalComma: true, Tags: true}}),
		csvForm("csv, NULL", csvtable.Options{Options: tabular.Options{Null: "NULL", EmptyText: true, Separator: '|'}}),
		xlsxForm("xlsx", xlsx.Options{}),
		xlsxForm("xlsx, NULL, decimal commas, tags", xlsx.Options{Options: tabular.Options{Null: "NULL", EmptyText: true, DecimalComma: true, Tags: true}}),
	}
}

// TestRoundTripVectors writes each conformance file in each form, and reads the same columns back: they give the same
// bytes of a file again, which tells NaN, -0 and absent values apart.
func TestRoundTripVectors(t *testing.T) {
	names, err := filepath.Glob("../../testdata/tcb/*.json")
	if err != nil || len(names) < 30 {
		t.Fatal(err, len(names))
	}
	n := 0
	for _, name := range names {
		var v struct {
			Write       bool
			NonFinite   bool
			Key, MACKey string
			Schema      *tcb.Schema
			Logical     *struct{ Schema *tcb.Schema }
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if !v.Write && (!v.NonFinite || strings.Contains(name, "payloads")) {
			continue
		}
		n++
		file, err := os.ReadFile(strings.TrimSuffix(name, ".json") + ".tcb")
		if err != nil {
			t.Fatal(err)
		}
		key, _ := hex.DecodeString(v.Key)
		mac, _ := hex.DecodeString(v.MACKey)
		table, err := tcb.Open(t.Context(), source.Memory(name, file), &tcb.Options{Keys: tcb.Keys{Encryption: key, MAC: mac}})
		if err != nil {
			t.Fatal(err)
		}
		columns, err := table.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want, err := tcb.Append(nil, table.Rows(), columns, nil)
		if err != nil {
			t.Fatal(err)
		}
		schemas := map[string]*tcb.Schema{"plain": v.Schema}
		if v.Logical != nil {
			schemas["named"] = v.Logical.Schema
		}
		for kind, s := range schemas {
			for _, f := range forms() {
				t.Run(filepath.Base(name)+"/"+kind+"/"+f.name, func(t *testing.T) {
					var out, again bytes.Buffer
					if err := f.write(&out, table.Rows(), columns, s); err != nil {
						t.Fatal(err)
					}
					if err := f.write(&again, table.Rows(), columns, s); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
						t.Error("the same table gave other bytes", err)
					}
					back, rows, warnings, err := f.read(out.Bytes(), s)
					if err != nil {
						t.Fatal(err)
					}
					if len(warnings) > 0 {
						t.Error(warnings)
					}
					got, err := tcb.Append(nil, rows, back, nil)
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%.2000q\nwas read as %x\nwant        %x", out.Bytes(), got, want)
					}
				})
			}
		}
	}
	if n < 45 {
		t.Errorf("%d files", n)
	}
}
