package tcb

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// fuzzLimits keep the memory of a run small.
var fuzzLimits = Limits{Rows: 1 << 16, Bytes: 4 << 20}

// typed fails when err is no fault with a class.
func typed(t *testing.T, err error) {
	t.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Class == nil {
		t.Fatalf("an error without a class: %v", err)
	}
}

// A file is refused, or what was read of it is written, read and printed again as the same.
func FuzzTable(f *testing.F) {
	for _, pattern := range []string{"*.json", "bad/*.json"} {
		for _, v := range vectors(f, pattern) {
			f.Add(v.file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		ctx := context.Background()
		table, err := Open(ctx, source.Memory("f.tcb", file), &Options{Limits: fuzzLimits})
		if err != nil {
			typed(t, err)
			return
		}
		faults := 0
		verified := table.Verify(ctx, &VerifyOptions{Deep: true}, func(f Finding) {
			if !f.Note {
				faults++
			}
		})
		columns, err := table.Read(ctx)
		if err != nil {
			typed(t, err)
			if faults == 0 && verified == nil && !errors.Is(err, fault.Limit) {
				t.Fatalf("verify found nothing, reading: %v", err)
			}
			return
		}
		if faults > 0 {
			t.Fatalf("verify found %d faults in a file that is read", faults)
		}
		rows := NewRows(columns, nil, &RowOptions{JSON: value.JSONOptions{NonFinite: value.NonFiniteString, InvalidUTF8: value.UTF8Replace}})
		for i := range min(table.Rows(), 100) {
			if _, err := rows.Append(nil, i); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Append(nil, table.Rows(), columns, nil)
		if err != nil {
			typed(t, err) // strings that are no UTF-8
			return
		}
		second, err := Open(ctx, source.Memory("g.tcb", again), &Options{Limits: fuzzLimits})
		if err != nil {
			t.Fatal(err)
		}
		back, err := second.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range columns {
			if !same(columns[i], back[i]) {
				t.Fatalf("column %d is\n%+v\nand came back as\n%+v", columns[i].Tag, columns[i], back[i])
			}
		}
		// One column alone is the same as one of all.
		for i, c := range columns {
			one, err := table.Read(ctx, c.Tag)
			if err != nil || !same(one[0], columns[i]) {
				t.Fatalf("column %d alone is %+v, %v", c.Tag, one, err)
			}
		}
	})
}

// A block of any type and encoding is refused, or holds what every encoding of the same values gives back.
func FuzzBlock(f *testing.F) {
	for _, e := range blockExamples {
		field := Field{}
		if err := field.setType(e.typ); err != nil {
			f.Fatal(err)
		}
		field.Type.Optional = e.optional
		f.Add(field.Type.wire(), byte(e.enc), uint16(4), hexBytes(f, e.block))
	}
	for _, e := range badBlocks {
		field := Field{}
		if err := field.setType(e.typ); err != nil {
			f.Fatal(err)
		}
		f.Add(field.Type.wire()|e.wire, byte(e.enc), uint16(3), hexBytes(f, e.block))
	}
	f.Fuzz(func(t *testing.T, wire, enc byte, rows uint16, p []byte) {
		d := Descriptor{Tag: 1, Type: typeOf(wire), Encoding: Encoding(enc), Size: int64(len(p))}
		c, err := decodeBlock(bytes.Clone(p), d, int(rows), newBudget(1<<20), false)
		if err != nil {
			typed(t, err)
			return
		}
		if !c.isClean() {
			t.Fatalf("what is absent has values: %+v", c)
		}
		choice := chooseColumn(c)
		for i, cand := range choice.tried {
			var q []byte
			if c.Type.Optional {
				q = appendBitmap(q, c.Present)
			}
			if c.Type.ElementOptional {
				q = appendInts(q, Varint, []int32{int32(c.Len())})
				q = appendBitmap(q, c.ElementPresent)
			}
			d.Encoding = cand.Encoding
			back, err := decodeBlock(choice.writers[i](q), d, int(rows), newBudget(64<<20), false)
			if err != nil {
				t.Fatalf("%s: %v", cand.Encoding, err)
			}
			if !same(c, back) {
				t.Fatalf("%s gives\n%+v\nwant\n%+v", cand.Encoding, back, c)
			}
		}
	})
}
