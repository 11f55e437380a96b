package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"

	"github.com/spilehq/spile/tcb"
)

// columnRows is how long the columns are that are decoded by themselves: longer than the caches of most processors.
func (s *setup) columnRows() int {
	if s.quick {
		return 1 << 17
	}
	return 1 << 20
}

// columnJobs are the jobs of decoding one column of n rows, in one encoding.
func columnJobs(n int) ([]job, error) {
	random := rand.New(rand.NewPCG(13, 14))
	column := func(e tcb.Element) *tcb.Column { return &tcb.Column{Tag: 1, Type: tcb.Type{Element: e}, Rows: n} }
	raw := column(tcb.F64)
	raw.Float64s = makeRows(n, func(int) float64 { return random.Float64() })
	small, wide, long := column(tcb.I32), column(tcb.I32), column(tcb.I64)
	small.Int32s = makeRows(n, func(int) int32 { return random.Int32N(1000) })
	wide.Int32s = makeRows(n, func(int) int32 { return random.Int32N(1 << 27) })
	long.Int64s = makeRows(n, func(int) int64 { return 1e12 + random.Int64N(1<<40) })
	up := column(tcb.I32)
	at := int32(0)
	up.Int32s = makeRows(n, func(int) int32 { at += random.Int32N(50); return at })
	words := column(tcb.String)
	dictionary := makeRows(500, func(i int) string { return fmt.Sprintf("Item_Name_%03d", i) })
	words.Strings = makeRows(n, func(int) string { return dictionary[random.IntN(len(dictionary))] })

	var jobs []job
	for _, of := range []struct {
		name   string
		column *tcb.Column
		enc    tcb.Encoding
		value  int // bytes
		bound  bool
	}{
		{"RAW f64", raw, tcb.Raw, 8, false},
		{"BITPACK i32, 10 bits", small, tcb.BitPack, 4, true},
		{"BITPACK i32, 27 bits", wide, tcb.BitPack, 4, true},
		{"BITPACK i64, 40 bits", long, tcb.BitPack, 8, true},
		{"DELTA i32", up, tcb.Delta, 4, true},
		{dictionaryJob, words, tcb.DictFront, 16, false},
	} {
		c, err := decodingColumn(of.column, of.enc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		j := job{section: "tables", name: "a column of " + count(float64(n)) + " values, " + of.name, bytes: int64(n * of.value), oneCore: true, ours: c}
		if of.bound {
			j.throughput = 1e9
		}
		if of.column == raw {
			bits := make([]byte, 0, 8*n)
			for _, x := range raw.Float64s {
				bits = binary.LittleEndian.AppendUint64(bits, math.Float64bits(x))
			}
			into := make([]byte, len(bits))
			j.peers = []contender{
				copying("copy into new memory", func() []byte { return bytes.Clone(bits) }).atLeast(1 / 1.3),
				copying("copy into memory that is there", func() []byte { copy(into, bits); return into }),
			}
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

const dictionaryJob = "strings of a dictionary"

// judgeAllocs judges the row of the dictionary: an allocation for each value is what it must not have.
func (r *row) judgeAllocs(values int) {
	if strings.HasSuffix(r.Job, dictionaryJob) && r.Ours.Allocs != nil {
		r.atMost(*r.Ours.Allocs/float64(values), 0.001, "0.001 allocations a value")
	}
}

// decodingColumn is a contender that opens a table of one column and reads it. That what it reads is right is checked
// against the column itself, since there may be no peer.
func decodingColumn(c *tcb.Column, want tcb.Encoding) (contender, error) {
	file, err := tcb.Append(nil, c.Rows, []*tcb.Column{c}, nil)
	if err != nil {
		return contender{}, err
	}
	decode := func() (*tcb.Column, error) {
		t, err := openTable(file)
		if err != nil {
			return nil, err
		}
		if got := t.Columns()[0].Encoding; got != want {
			return nil, fmt.Errorf("the writer took %s, not %s", got, want)
		}
		columns, err := t.Read(context.Background())
		if err != nil {
			return nil, err
		}
		return columns[0], nil
	}
	return contender{
		name: "Spile",
		run:  func() error { _, err := decode(); return err },
		answer: func() (any, error) {
			got, err := decode()
			if err != nil {
				return nil, err
			}
			if !reflect.DeepEqual(valuesOf(got).Interface(), valuesOf(c).Interface()) {
				return nil, fmt.Errorf("what is read is not what was written")
			}
			return got.Float64s, nil
		},
	}, nil
}

// copying is a contender that copies the bytes of a column of f64.
func copying(name string, run func() []byte) contender {
	return contender{
		name: name,
		run:  func() error { run(); return nil },
		answer: func() (any, error) {
			p := run()
			v := make([]float64, len(p)/8)
			for i := range v {
				v[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
			}
			return v, nil
		},
	}
}
