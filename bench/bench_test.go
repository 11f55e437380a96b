package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spilehq/spile/msglc"
)

// TestMain lets the test binary be the launcher that measures the memory of a child, the child that writes a table, and the one that opens artifacts.
func TestMain(m *testing.M) {
	if launched() || wroteTable() || openedArtifacts() {
		return
	}
	os.Exit(m.Run())
}

// benchmarkJobs runs every contender of some jobs as a benchmark.
func benchmarkJobs(b *testing.B, jobs []job) {
	for _, j := range jobs {
		for _, c := range j.contenders() {
			b.Run(strings.ReplaceAll(j.name, " ", "_")+"/"+strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
				if j.oneCore {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
				}
				b.SetBytes(j.bytes)
				b.ReportAllocs()
				var read int64
				if c.bytesRead != nil {
					read = c.bytesRead()
				}
				for b.Loop() {
					if err := c.run(); err != nil {
						b.Fatal(err)
					}
				}
				if c.bytesRead != nil {
					b.ReportMetric(float64(c.bytesRead()-read)/float64(b.N), "readB/op")
				}
			})
		}
	}
}

func testDocument(tb testing.TB, size int) *document {
	d, err := newDocument(size)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func testArchive(tb testing.TB, runs int) string {
	path := filepath.Join(tb.TempDir(), "archive.msg")
	if err := writeArchive(path, runs); err != nil {
		tb.Fatal(err)
	}
	return path
}

func BenchmarkDecode(b *testing.B) {
	benchmarkJobs(b, decodings(testDocument(b, 8_000_000)))
}

func BenchmarkPass(b *testing.B) {
	benchmarkJobs(b, passings(testDocument(b, 64_000_000)))
}

func BenchmarkWrite(b *testing.B) {
	benchmarkJobs(b, writings(testDocument(b, 8_000_000)))
}

func BenchmarkIndex(b *testing.B) {
	benchmarkJobs(b, []job{indexing(testDocument(b, 64_000_000))})
}

func BenchmarkOpen(b *testing.B) {
	const runs = 400
	benchmarkJobs(b, openings(testArchive(b, runs), runs))
}

func BenchmarkCosts(b *testing.B) {
	jobs, _, err := costs(b.TempDir(), testDocument(b, 8_000_000))
	if err != nil {
		b.Fatal(err)
	}
	benchmarkJobs(b, jobs)
}

func BenchmarkLeaves(b *testing.B) {
	const runs = 400
	file := testArchive(b, runs)
	for _, c := range []struct {
		name    string
		options *msglc.Options
	}{{"default_cache", nil}, {"no_cache", &msglc.Options{CacheBytes: -1}}} {
		b.Run(c.name, func(b *testing.B) {
			l, err := newLeafReader(file, runs, c.options)
			if err != nil {
				b.Fatal(err)
			}
			defer l.reader.Close()
			b.ReportAllocs()
			b.SetParallelism((manyReaders + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				random := rand.New(rand.NewPCG(10, 11))
				for pb.Next() {
					if err := l.read(random); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkTables(b *testing.B) {
	for _, of := range []struct {
		name   string
		tables []gameTable
	}{{"set", tableSet(growthRows)}, {"long table", []gameTable{longTable(100_000)}}} {
		jobs, err := tableLoads(of.name, of.tables)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkJobs(b, jobs)
	}
	jobs, err := columnJobs(1 << 20)
	if err != nil {
		b.Fatal(err)
	}
	benchmarkJobs(b, jobs)
}
