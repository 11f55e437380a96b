package jq

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

const (
	costRuns   = 64
	costEnergy = 5000
)

// costDocument has runs with an id, 45,000 bytes of energy and a note of 20,000 bytes: 4.2 MB in all.
func costDocument(t testing.TB) []byte {
	const c = value.Msgpack
	note := string(bytes.Repeat([]byte("x"), 20000))
	p := value.AppendString(value.AppendMapHeader(nil, c, 2), c, "runs")
	p = value.AppendArrayHeader(p, c, costRuns)
	for i := range costRuns {
		p = value.AppendString(value.AppendMapHeader(p, c, 3), c, "id")
		p = value.AppendInt(p, c, int64(i))
		p = value.AppendArrayHeader(value.AppendString(p, c, "energy"), c, costEnergy)
		for k := range costEnergy {
			p = value.AppendFloat64(p, c, float64(i)+float64(k)/8)
		}
		p = value.AppendString(value.AppendString(p, c, "note"), c, note)
	}
	p = value.AppendInt(value.AppendString(p, c, "seed"), c, 42)
	return document(t, c, p, msglc.WriteOptions{})
}

// TestCost pins what programs read and decode. Both are counts, the same on every machine.
func TestCost(t *testing.T) {
	const (
		energy = 9 * costEnergy
		small  = 64 << 10 // what the table of contents and the prefix may cost, and the margins of small reads
	)
	data := costDocument(t)
	for _, test := range []struct {
		program string
		result  string // the first
		results int
		decoded int64 // exactly
		bytes   int64 // at most
	}{
		{`.runs[3].energy | add`, "1577187.5", 1, energy, energy + small},
		{`.runs[-1].energy[7]`, "63.875", 1, 9, small},
		{`.runs[3].energy[:2] | add`, "6.125", 1, 18, small},
		{`.runs[3].energy | length`, "5000", 1, 0, small},
		{`.runs[].id`, "0", costRuns, 64, 2 * small},
		{`.runs[] | .id`, "0", costRuns, 64, 2 * small},
		{`[.runs[].id] | add`, "2016", 1, 64, 2 * small},
		{`.runs | map(.id) | add`, "2016", 1, 64, 2 * small},
		{`.runs[] | select(.id == 7) | .energy[0]`, "7.0", 1, 64 + 9, 2 * small},
		{`first(.runs[]) | .id`, "0", 1, 1, small},
		{`limit(2; .runs[] | .id)`, "0", 2, 2, small},
		{`{seed, n: (.runs | length)}`, `{"n":64,"seed":42}`, 1, 1, small},
		{`.runs[2:4][] | {id, first: .energy[0]}`, `{"first":2.0,"id":2}`, 2, 20, small},
		{`reduce .runs[] as {$id} (0; . + $id)`, "2016", 1, int64(len(data)) * 9 / 10, int64(len(data)) + small},
		{`reduce .runs[].id as $id (0; . + $id)`, "2016", 1, 64, 2 * small},
		{`keys`, `["runs","seed"]`, 1, 0, small},
		{`.runs[0] | keys`, `["energy","id","note"]`, 1, 0, small},
		{`.nope`, "null", 1, 0, small},
		{`.runs[64]`, "null", 1, 0, small},
		{`[.runs[] | .energy | length] | add`, "320000", 1, 0, 2 * small},
		{`if .seed > 1 then .runs[5].id else . end`, "5", 1, 2, small},
		{`"seed \(.seed)"`, `"seed 42"`, 1, 1, small},
		{`.runs as $all | range(3) | $all[.].id`, "0", 3, int64(len(data)) * 9 / 10, int64(len(data)) + small},
		{`range(3) as $i | .runs[$i].id`, "0", 3, 3, small},
		{`any(.runs[]; .id == 3)`, "true", 1, 4, small},
		{`.runs[0:0]`, "[]", 1, 0, small},
		{`.seed`, "42", 1, 1, small},
	} {
		t.Run(test.program, func(t *testing.T) {
			ctx := t.Context()
			var meter source.Meter
			r, err := msglc.Open(ctx, meter.Object(source.Memory("run.msg", data)), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			q, err := Compile(test.program, nil)
			if err != nil {
				t.Fatal(err)
			}
			results := 0
			for result, err := range q.Run(ctx, r.Root(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				var text bytes.Buffer
				if err := result.WriteJSON(&text); err != nil {
					t.Fatal(err)
				}
				if results++; results == 1 && text.String() != test.result {
					t.Errorf("got %.100s, want %s", &text, test.result)
				}
			}
			if results != test.results {
				t.Errorf("%d results, want %d", results, test.results)
			}
			decoded := r.Stats().Decoded
			if exact := test.decoded < int64(len(data))/2; exact && decoded != test.decoded || !exact && decoded < test.decoded {
				t.Errorf("%d bytes decoded, want %d", decoded, test.decoded)
			}
			if n := meter.Receipt().Bytes; n > test.bytes {
				t.Errorf("%d bytes read, at most %d are due", n, test.bytes)
			}
		})
	}
}

// TestManySmall pins the reads that a walk over short records takes: they are read together.
func TestManySmall(t *testing.T) {
	const c, records = value.Msgpack, 20000
	p := value.AppendString(value.AppendMapHeader(nil, c, 2), c, "meta")
	p = value.AppendArrayHeader(value.AppendString(value.AppendString(p, c, "text"), c, "records"), c, records)
	for i := range records {
		p = value.AppendInt(value.AppendString(value.AppendMapHeader(p, c, 2), c, "id"), c, int64(i))
		p = value.AppendString(value.AppendString(p, c, "label"), c, "a record of some forty bytes")
	}
	path := filepath.Join(t.TempDir(), "records.msg")
	if err := os.WriteFile(path, document(t, c, p, msglc.WriteOptions{}), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		program  string
		requests int64 // at most; the table of contents is 6 of them
		bytes    int64 // at most
	}{
		{`[.records[].id] | add`, 100, 1400 << 10},
		{`.records | map(.id) | length`, 100, 1400 << 10},
		{`[.records[] | select(.id == 19999)] | length`, 100, 1400 << 10},
		{`.records[100:10000] | map(.id) | add`, 55, 800 << 10},
		{`[.records[100:10000] | .[] | .id] | add`, 55, 800 << 10},
		{`.records[100:10000] | sort_by(.id) | .[0].id`, 55, 800 << 10},
		{`first(.records[]) | .id`, 4, 90 << 10},
		{`first(.records[] | select(.id == 100)) | .id`, 12, 120 << 10},
		{`isempty(.records[])`, 3, 90 << 10},
		{`.meta`, 4, 90 << 10},
	} {
		t.Run(test.program, func(t *testing.T) {
			r, got := openMetered(t, path, 0)
			query(t, r, test.program)
			if n := got(); n.Requests > test.requests || n.Bytes > test.bytes {
				t.Errorf("%d requests of %d bytes, at most %d of %d are due", n.Requests, n.Bytes, test.requests, test.bytes)
			}
		})
	}
}

// TestAheadOfBudget has a budget end a walk where it ends one that reads nothing ahead, or before a read of more.
func TestAheadOfBudget(t *testing.T) {
	const c, records = value.Msgpack, 5000
	p := value.AppendArrayHeader(nil, c, records)
	for range records {
		p = value.AppendString(p, c, "a record of some forty bytes or not quite")
	}
	path := filepath.Join(t.TempDir(), "records.msg")
	if err := os.WriteFile(path, document(t, c, p, msglc.WriteOptions{}), 0o666); err != nil {
		t.Fatal(err)
	}
	whole, spent := openMetered(t, path, 0)
	if n, err := results(t, whole, `.[]`); n != records || err != nil {
		t.Fatalf("%d results, %v", n, err)
	}
	short, _ := openMetered(t, path, spent().Bytes/2)
	n, err := results(t, short, `.[]`)
	if !errors.Is(err, fault.Limit) || n < 100 || n >= records {
		t.Errorf("%d results, then %v", n, err)
	}
}

func openMetered(t *testing.T, path string, maxBytes int64) (*msglc.Reader, func() source.Receipt) {
	obj, err := source.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	meter := &source.Meter{MaxBytes: maxBytes}
	r, err := msglc.Open(t.Context(), meter.Object(obj), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, meter.Receipt
}

func query(t *testing.T, r *msglc.Reader, program string) {
	if _, err := results(t, r, program); err != nil {
		t.Fatal(err)
	}
}

// results runs a program to its end, or to its error, and counts what it gives.
func results(t *testing.T, r *msglc.Reader, program string) (n int, err error) {
	q, err := Compile(program, nil)
	if err != nil {
		t.Fatal(err)
	}
	for result, err := range q.Run(t.Context(), r.Root(), nil) {
		if err == nil {
			err = result.WriteJSON(new(bytes.Buffer))
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestMaxDecode(t *testing.T) {
	r := open(t, costDocument(t), nil)
	for program, fits := range map[string]bool{
		`.seed`: true, `.runs[].id`: true, `.runs[0].energy | length`: true, `.runs[0].energy | add`: false, `.`: false,
		`.runs[0]`: false, `try .runs[0].energy catch 1`: false, `(.runs[0].energy | add)?`: false, `.runs[0].energy[:100]`: true,
	} {
		q, err := Compile(program, &Options{MaxDecode: 10000})
		if err != nil {
			t.Fatal(err)
		}
		before := r.Stats().Decoded
		var failed error
		for result, err := range q.Run(t.Context(), r.Root(), nil) {
			if err == nil {
				err = result.WriteJSON(new(bytes.Buffer))
			}
			failed = errors.Join(failed, err)
		}
		if fits != (failed == nil) || !fits && !errors.Is(failed, fault.Limit) {
			t.Errorf("%s: error %v", program, failed)
		}
		if n := r.Stats().Decoded - before; n > 10000 {
			t.Errorf("%s: %d bytes decoded", program, n)
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	data := costDocument(b)
	for _, bench := range []struct{ name, program string }{
		{"prefix", `.runs[3].energy | add`},
		{"whole", `. as $d | $d.runs[3].energy | add`},
		{"each id", `[.runs[].id] | add`},
		{"deep value", `.runs[3].energy[7]`},
		{"select", `.runs[] | select(.id == 7) | .energy[0]`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			q, err := Compile(bench.program, nil)
			if err != nil {
				b.Fatal(err)
			}
			var decoded int64
			b.ReportAllocs()
			for b.Loop() {
				r, err := msglc.Open(context.Background(), source.Memory("run.msg", data), nil)
				if err != nil {
					b.Fatal(err)
				}
				for result, err := range q.Run(context.Background(), r.Root(), nil) {
					if err == nil {
						_, err = result.Value()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				decoded = r.Stats().Decoded
				r.Close()
			}
			b.ReportMetric(float64(decoded), "decodedB/op")
		})
	}
}

// BenchmarkCompile is what a query costs before it reads.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(`.runs[] | select(.id == 7) | .energy[0]`, nil); err != nil {
			b.Fatal(err)
		}
	}
}
