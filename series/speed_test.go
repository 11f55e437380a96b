package series

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// kept is an artifact in memory.
type kept map[string]*bytes.Buffer

func (k kept) Create(_ context.Context, name string) (Output, error) {
	k[name] = &bytes.Buffer{}
	return keptOutput{k[name]}, nil
}

func (k kept) Discard() error { clear(k); return nil }

type keptOutput struct{ io.Writer }

func (keptOutput) Commit() error { return nil }
func (keptOutput) Abort()        {}

func (k kept) open(t testing.TB, o *Options) *Artifact {
	t.Helper()
	a, err := Open(context.Background(), func(_ context.Context, name string) (source.Object, error) {
		b, ok := k[name]
		if !ok {
			return nil, fault.New(fault.NotFound, "series", "").In(name)
		}
		return source.Memory(name, b.Bytes()), nil
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// many makes n series in their order: three tables, random TSIDs, a label of many values, one of 50, some of few, one that is
// often null.
func many(n int) (*Manifest, []Record) {
	m := &Manifest{Tags: []Tag{{1, "instance"}, {2, "job"}, {3, "method"}, {4, "region"}, {5, "status"}, {6, "version"}}}
	r := rand.New(rand.NewPCG(1, 2))
	records := make([]Record, n)
	for i := range records {
		instance := r.IntN(1 + n/10)
		records[i] = Record{ID: ID{1 + 2*uint32(min(r.IntN(10)/4, 2)), r.Uint64()}, RowCount: 240, Labels: []Label{
			{"instance", fmt.Sprintf("host-%05d", instance)}, {"job", fmt.Sprintf("job-%02d", instance%50)},
			{"method", fmt.Sprintf("method-%d", r.IntN(6))}, {"region", fmt.Sprintf("region-%d", instance%8)},
			{"status", fmt.Sprintf("status-%d", r.IntN(12))},
		}}
		if r.IntN(3) == 0 {
			records[i].RowCount = r.Uint64N(240) + 1
			records[i].Labels = append(records[i].Labels, Label{"version", fmt.Sprintf("v%d", r.IntN(5))})
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return a.ID.Compare(b.ID) })
	return m, records
}

func build(t testing.TB, m *Manifest, records []Record, o *WriteOptions) kept {
	t.Helper()
	k := kept{}
	w, err := NewWriter(context.Background(), k, m, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Add(records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return k
}

// manySeries are the series of the benchmarks.
var manySeries = sync.OnceValues(func() (*Manifest, []Record) { return many(200_000) })

func BenchmarkWriter(b *testing.B) {
	m, records := manySeries()
	for _, zstd := range []bool{false, true} {
		b.Run(fmt.Sprintf("zstd=%t", zstd), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				build(b, m, records, &WriteOptions{Zstd: zstd})
			}
			b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "series/s")
		})
	}
}

func BenchmarkDecodeDeltas(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]uint64, 8192)
	for i := range ids {
		ids[i] = r.Uint64()
	}
	slices.Sort(ids)
	p := appendDeltas(nil, ids)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeDeltas(p, len(ids)); err != nil {
			b.Fatal(err)
		}
	}
}

// dictOf is a chunk of 8,192 rows with distinct values.
func dictOf(distinct int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	values, codes := make([]string, distinct), make([]uint32, 8192)
	for i := range values {
		values[i] = fmt.Sprintf("host-%05d", i*7)
	}
	for i := range codes {
		codes[i] = uint32(min(i+1, 1+r.IntN(distinct)))
	}
	return appendDict(nil, values, codes)
}

func BenchmarkDecodeDict(b *testing.B) {
	for _, distinct := range []int{12, 5000} {
		p := dictOf(distinct)
		b.Run(fmt.Sprint(distinct), func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeDict(p, 8192, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMatcher(b *testing.B) {
	d, err := decodeDict(dictOf(5000), 8192, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, of := range []struct {
		op    Op
		value string
	}{{Equal, "host-00700"}, {Regexp, "host-007.*"}, {Regexp, ".*77.*"}, {NotRegexp, "host-00007|host-00014"}, {Regexp, "host-0[0-3]+7"}} {
		m, err := NewMatcher(of.op, "host", of.value)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(m.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := d.match(context.Background(), m, false, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkQueries(b *testing.B) {
	m, records := manySeries()
	k := build(b, m, records, &WriteOptions{Zstd: true})
	ctx := context.Background()
	matcher := func(op Op, name, value string) *Matcher {
		m, err := NewMatcher(op, name, value)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	for _, cached := range []bool{true, false} {
		o := &Options{CacheBytes: -1}
		if cached {
			o = nil
		}
		a := k.open(b, o)
		for name, q := range map[string]*Query{
			"equal":    {Matchers: []*Matcher{matcher(Equal, "job", "job-17")}},
			"rare":     {Matchers: []*Matcher{matcher(Equal, "instance", "host-00017")}},
			"prefix":   {Matchers: []*Matcher{matcher(Regexp, "instance", "host-017.*")}},
			"contains": {Matchers: []*Matcher{matcher(Regexp, "instance", ".*177.*")}},
			"two":      {Matchers: []*Matcher{matcher(Equal, "region", "region-3"), matcher(NotRegexp, "status", "status-0|status-1")}},
			"all":      {},
		} {
			b.Run(fmt.Sprintf("select %s/cached=%t", name, cached), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for _, err := range a.Select(ctx, q) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
		for _, name := range []string{"job", "instance"} {
			b.Run(fmt.Sprintf("values of %s/cached=%t", name, cached), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := a.LabelValues(ctx, name, &Query{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("labels/cached=%t", cached), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.LabelNames(ctx, &Query{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	m, records := manySeries()
	for _, zstd := range []bool{false, true} {
		k := build(b, m, records, &WriteOptions{Zstd: zstd})
		for name, o := range map[string]*Options{"warm": nil, "cold": {CacheBytes: -1}} {
			a := k.open(b, o)
			b.Run(fmt.Sprintf("%s/zstd=%t", name, zstd), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i += 137
					if _, err := a.Lookup(context.Background(), records[i%8000].ID); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
