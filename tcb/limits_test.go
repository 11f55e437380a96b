package tcb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
	"github.com/spilehq/spile/source"
)

// fileOf makes a file of descriptors and the blocks behind them, whatever they say.
func fileOf(rows, columns int32, descs []Descriptor, blocks ...[]byte) []byte {
	p := wire.AppendVarint32(wire.AppendVarint32(appendHeader(nil), rows), columns)
	for i, d := range descs {
		if i < len(blocks) {
			d.Size = int64(len(blocks[i]))
		}
		p = appendDescriptor(p, d)
	}
	return append(p, bytes.Join(blocks, nil)...)
}

func runOf(n, v int32) []byte { return wire.AppendVarint32(wire.AppendVarint32(nil, n), v) }

// Rows above the limit are refused before anything is allocated or fetched for them, and a number of rows that cannot be is
// found all the same.
func TestRowsLimit(t *testing.T) {
	const rows = 1 << 20
	i32, text := Type{Element: I32}, Type{Element: String}
	runs, short := runOf(rows, 7), []byte{2, 4, 6}
	for _, test := range []struct {
		what  string
		descs []Descriptor
		block []byte
		check string
		floor bool // found without the blocks
	}{
		{"runs", []Descriptor{{Tag: 1, Type: i32, Encoding: RLE}}, runs, "", false},
		{"numbers", []Descriptor{{Tag: 1, Type: i32, Encoding: Varint}}, short, "D1", true},
		{"steps", []Descriptor{{Tag: 1, Type: i32, Encoding: Delta}}, short, "D1", true},
		{"indexes", []Descriptor{{Tag: 1, Type: text, Encoding: Dict}}, short, "D1", true},
		{"indexes, front", []Descriptor{{Tag: 1, Type: text, Encoding: DictFront}}, short, "D1", true},
		{"indexes, pieces", []Descriptor{{Tag: 1, Type: text, Encoding: DictSeg}}, short, "D1", true},
		{"a type that is none", []Descriptor{{Tag: 1, Type: Type{Element: 9}, Encoding: RLE}}, runs, "C4", true},
	} {
		var meter source.Meter
		table, err := Open(t.Context(), meter.Object(source.Memory("big.tcb", fileOf(rows, 1, test.descs, test.block))), &Options{Limits: Limits{Rows: 1000}})
		if err != nil {
			t.Fatal(test.what, ": ", err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = table.Read(t.Context())
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes were allocated", test.what, n)
		}
		if Check(err) != test.check || test.check == "" && !errors.Is(err, fault.Limit) {
			t.Errorf("%s: %v, want %s", test.what, err, test.check)
		}
		for _, deep := range []bool{false, true} {
			var found []string
			err := table.Verify(t.Context(), &VerifyOptions{Deep: deep}, func(f Finding) {
				if f.Note {
					return
				}
				if errors.Is(f.Err, fault.Limit) {
					found = append(found, "limit")
				} else {
					found = append(found, Check(f.Err))
				}
			})
			var want []string
			if test.floor {
				want = append(want, test.check)
			}
			if deep && !test.floor {
				want = append(want, "limit")
			}
			if err != nil || !slices.Equal(found, want) {
				t.Errorf("%s: Verify, deep %t: %v and %q, want %q", test.what, deep, err, found, want)
			}
		}
	}
}

// Blocks are not fetched for a table of too many rows.
func TestRowsLimitFetchesNothing(t *testing.T) {
	block := bytes.Repeat(runOf(1, 7), 1<<17)
	file := fileOf(1<<17, 1, []Descriptor{{Tag: 1, Type: Type{Element: I32}, Encoding: RLE}}, block)
	var meter source.Meter
	table, err := Open(t.Context(), meter.Object(source.Memory("big.tcb", file)), &Options{Limits: Limits{Rows: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	opened := meter.Receipt().Bytes
	if _, err := table.Read(t.Context()); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
	if n := meter.Receipt().Bytes - opened; n > 0 {
		t.Errorf("%d bytes were read", n)
	}
}

// A number of columns costs nothing by itself, and descriptors are read as far as they are right.
func TestColumnsThatAreNotThere(t *testing.T) {
	const size = 8 << 20
	zeros := func(columns int32, good int) []byte {
		var descs []Descriptor
		for tag := range int32(good) {
			descs = append(descs, Descriptor{Tag: tag + 1, Encoding: RLE})
		}
		p := fileOf(0, columns, descs)
		return append(p, make([]byte, size-len(p))...)
	}
	for _, test := range []struct {
		file  []byte
		check string
		bytes int64 // read, at most
	}{
		{zeros(size/7+1, 0), "H5", minFirstRead},
		{zeros(math.MaxInt32, 0), "H5", minFirstRead},
		{zeros(1_000_000, 0), "H6", minFirstRead},
		{zeros(1_000_000, 5_000), "H6", maxFirstRead},
		{zeros(1_000_000, 30_000), "H6", 4 * maxFirstRead},
	} {
		var meter source.Meter
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Open(t.Context(), meter.Object(source.Memory("t.tcb", test.file)), nil)
		runtime.ReadMemStats(&after)
		if Check(err) != test.check {
			t.Errorf("%v, want %s", err, test.check)
		}
		if n := meter.Receipt().Bytes; n > test.bytes {
			t.Errorf("%s: %d bytes were read, want %d at most", test.check, n, test.bytes)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 256*uint64(test.bytes) {
			t.Errorf("%s: %d bytes were allocated", test.check, n)
		}
	}
}

// A table of many columns is read whole, however many reads the descriptors take, in both forms.
func TestManyColumns(t *testing.T) {
	const n = 30_000
	p := wire.AppendVarint32(wire.AppendVarint32(appendHeader(nil), 1), n)
	counted := bytes.Clone(p)
	for tag := range int32(n) {
		d := appendDescriptor(nil, Descriptor{Tag: tag + 1, Type: Type{Element: Bool}, Size: 1})
		p = append(p, d...)
		counted = append(append(append(counted, d[:len(d)-4]...), 0x80, 1), d[len(d)-4:]...)
	}
	for i, file := range [][]byte{p, counted} {
		file = append(file, bytes.Repeat([]byte{1}, n)...)
		table := openFile(t, file)
		columns, err := table.Read(t.Context(), n, 1)
		if err != nil || !columns[0].Bools[0] || !columns[1].Bools[0] || table.HasCounts() != (i == 1) {
			t.Fatal(err, table.HasCounts())
		}
		if _, err := Open(t.Context(), source.Memory("t", file[:len(file)-n-20]), nil); err == nil {
			t.Error("a file that ends inside the descriptors was opened")
		}
	}
}

// A fault of a table without rows, or of a block, does not pass as counts in the descriptors.
func TestNoCounts(t *testing.T) {
	i32 := Type{Element: I32}
	empty := fileOf(0, 1, []Descriptor{{Tag: 1, Type: i32}})
	size := fileOf(0, 1, []Descriptor{{Tag: 1, Type: i32, Size: 2}})
	row := fileOf(1, 1, []Descriptor{{Tag: 1, Type: i32, Encoding: Varint, Size: 9}})
	for name, file := range map[string][]byte{
		"a zero behind an empty block":   append(empty, 0),
		"a size of 2 with one zero left": append(size, 0),
		"a size of 9 with one zero left": append(row, 0),
	} {
		if _, err := Open(t.Context(), source.Memory("t", file), nil); Check(err) != "H7" {
			t.Errorf("%s: %v, want H7", name, err)
		}
	}
}

// A block of 2 GiB and more is refused where the file is long enough to hold it.
func TestHugeBlock(t *testing.T) {
	p := wire.AppendVarint32(wire.AppendVarint32(appendHeader(nil), 0), 1)
	p = append(p, 2, Type{Element: I32}.wire(), byte(RLE))
	p = binary.LittleEndian.AppendUint32(p, 1<<31)
	_, err := plainForm.parse(p, int64(len(p))+1<<31)
	if Check(err) != "H7" {
		t.Error(err)
	}
}

// Which column is beyond the limit on bytes does not depend on which was decoded first; a fault in front of it is told.
func TestBytesLimitIsTheSame(t *testing.T) {
	const rows = 1 << 14
	var descs []Descriptor
	var blocks [][]byte
	for tag := range int32(12) {
		descs = append(descs, Descriptor{Tag: tag + 1, Type: Type{Element: I32}, Encoding: RLE})
		blocks = append(blocks, runOf(rows, tag))
	}
	long := append(bytes.Repeat(runOf(1, 3), rows/2), runOf(rows/2, 3)...)
	read := func(blocks ...[]byte) error {
		o := &Options{Limits: Limits{Bytes: 4 * rows * 5}}
		table, err := Open(t.Context(), source.Memory("t.tcb", fileOf(rows, int32(len(descs)), descs, blocks...)), o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = table.Read(t.Context())
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for range 40 {
		slow := slices.Clone(blocks)
		slow[0], slow[1] = long, long
		if err := read(slow...); !errors.Is(err, fault.Limit) || !strings.Contains(err.Error(), "t.tcb: column 6: ") {
			t.Fatal(err)
		}
		slow[4] = runOf(rows+1, 3)
		if err := read(slow...); Check(err) != "D2" || !strings.Contains(err.Error(), "column 5: ") {
			t.Fatal(err)
		}
	}
}

// Verify names each column that is beyond the limit, and looks at the others.
func TestVerifyBeyondLimit(t *testing.T) {
	const rows = 1000
	d := func(tag int32, e Element) Descriptor {
		return Descriptor{Tag: tag, Type: Type{Element: e}, Encoding: RLE}
	}
	descs := []Descriptor{d(1, I32), d(2, Bool), d(3, I32), d(4, Bool)}
	file := fileOf(rows, 4, descs, runOf(rows, 1), runOf(rows, 1), runOf(rows, 1), runOf(rows+1, 1))
	table, err := Open(t.Context(), source.Memory("t.tcb", file), &Options{Limits: Limits{Bytes: 2 * rows}})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = table.Verify(t.Context(), &VerifyOptions{Deep: true}, func(f Finding) {
		if !f.Note {
			found = append(found, fmt.Sprint(f.Err.Where, " ", f.Err.Class, " ", f.Err.Object, " ", f.Err.Offset >= 0))
		}
	})
	want := []string{"column 1 limit exceeded t.tcb true", "column 3 limit exceeded t.tcb true", "column 4 corrupt t.tcb true"}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %q, want %q", err, found, want)
	}
}

// What 32 bits do not count is refused, not counted wrong.
func TestSmallInt(t *testing.T) {
	huge := newBudget(math.MaxInt64)
	err := huge.take(math.MaxInt32, 16)
	if (bits.UintSize == 32) != errors.Is(err, fault.Limit) {
		t.Error(err)
	}
	if bits.UintSize == 64 {
		t.Skip("integers have 64 bits")
	}
	// 2^29 packed bytes have 2^32 bits.
	b := &block{p: append([]byte{2, 0, byte(RLE)}, runOf(1<<29, 0)...), budget: newBudget(math.MaxInt64)}
	if _, err := b.bitpack(math.MaxInt32); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
}

// A string that is no UTF-8 has its own word, in every encoding of strings.
func TestTextCheck(t *testing.T) {
	c := &Column{Tag: 1, Type: Type{Element: String}, Rows: 2, Strings: []string{"a_\xff", "a_\xff"}}
	choice := chooseColumn(c)
	for i, cand := range choice.tried {
		d := Descriptor{Tag: 1, Type: c.Type, Encoding: cand.Encoding}
		table, err := Open(context.Background(), source.Memory("t", fileOf(2, 1, []Descriptor{d}, choice.writers[i](nil))), &Options{StrictUTF8: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Read(context.Background()); Check(err) != "text" || !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", cand.Encoding, err)
		}
	}
}
