package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// plainAnalysis counts the records one by one: it knows nothing of blocks, dictionaries and statistics.
func plainAnalysis(records []Record, tags []Tag, top int) *Analysis {
	out := &Analysis{Series: uint64(len(records)), Tables: []TableAnalysis{}}
	tables := make(map[uint32]uint64)
	for _, r := range records {
		tables[r.Table]++
	}
	for _, id := range slices.Sorted(maps.Keys(tables)) {
		out.Tables = append(out.Tables, TableAnalysis{Table: id, Series: tables[id]})
	}
	for _, t := range tags {
		l := LabelAnalysis{Name: t.Name}
		values := make(map[string]uint64)
		for _, r := range records {
			k := slices.IndexFunc(r.Labels, func(l Label) bool { return l.Name == t.Name })
			if k < 0 {
				l.Nulls++
				continue
			}
			l.Series++
			values[r.Labels[k].Value]++
		}
		for v, n := range values {
			l.Distinct++
			l.ValueBytes += uint64(len(v))
			l.Top = append(l.Top, ValueCount{v, n})
		}
		l.Empty = values[""]
		slices.SortFunc(l.Top, func(a, b ValueCount) int {
			return cmp.Or(cmp.Compare(b.Series, a.Series), strings.Compare(a.Value, b.Value))
		})
		l.Top = l.Top[:min(top, len(l.Top))]
		out.Labels = append(out.Labels, l)
	}
	return out
}

// logical is an analysis without what depends on how the series are stored.
func (z *Analysis) logical() *Analysis {
	out := &Analysis{Series: z.Series, Tables: slices.Clone(z.Tables), Labels: slices.Clone(z.Labels)}
	for i := range out.Tables {
		out.Tables[i].Blocks, out.Tables[i].Stored = 0, 0
	}
	for i := range out.Labels {
		out.Labels[i].Stored, out.Labels[i].Decoded = 0, 0
		if len(out.Labels[i].Top) == 0 {
			out.Labels[i].Top = nil
		}
	}
	return out
}

func sameAnalysis(t *testing.T, name string, got, want *Analysis) {
	t.Helper()
	if g, w := got.logical(), want.logical(); !reflect.DeepEqual(g, w) {
		t.Errorf("%s: \n%+v, want \n%+v", name, g, w)
	}
}

// What is computed of dictionaries and statistics is what the records say, in much memory and in little.
func TestAnalyze(t *testing.T) {
	ctx := context.Background()
	tags := []Tag{{1, "host"}, {2, "zone"}, {3, "job"}, {4, "never"}}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 11))
		records := randomSeries(r, tags[:3], r.IntN(1500))
		files := buildIn(t, &Manifest{Tags: tags}, records, &WriteOptions{BlockSeries: 1 + r.IntN(200), PageBytes: 400, PartBytes: 20_000, Zstd: seed%2 == 0})
		a := openIn(t, files)
		for _, o := range []AnalyzeOptions{{}, {Memory: 500, Top: 3}, {Memory: 2000, Top: 1000}, {Top: -1}} {
			got, err := Analyze(ctx, a, &o)
			if err != nil {
				t.Fatal(err)
			}
			top := o.Top
			if top == 0 {
				top = DefaultTop
			}
			sameAnalysis(t, fmt.Sprintf("seed %d, %+v", seed, o), got, plainAnalysis(records, tags, max(0, top)))
			got.sums(t, files)
		}
	}
}

// sums demands that the bytes of an analysis add up to those of the files.
func (z *Analysis) sums(t *testing.T, files memoryTarget) {
	t.Helper()
	var tables, parts, labels uint64
	for _, table := range z.Tables {
		tables += table.Stored
	}
	for _, l := range z.Labels {
		labels += l.Stored
	}
	for i, p := range z.Parts {
		if got := uint64(len(files[PartName(uint32(i))])); got != p.Size || p.Size != p.Chunks+p.Pages+headerSize+trailerSize {
			t.Errorf("part %d: %+v, the file has %d bytes", i, p, got)
		}
		parts += p.Chunks
	}
	if tables != parts || labels > tables {
		t.Errorf("the chunks have %d bytes by tables and %d by parts, those of labels %d", tables, parts, labels)
	}
}

// Several artifacts, added side by side, are counted together, and one that fails not at all.
func TestAnalyzeMany(t *testing.T) {
	ctx := context.Background()
	var all []Record
	z := NewAnalyzer(ctx, &AnalyzeOptions{Memory: 10_000, Parallel: 4, Top: 5})
	defer z.Close()
	for _, i := range []int{5, 0, 3, 1, 4, 2} { // labels come in the order of the artifacts all the same
		r := rand.New(rand.NewPCG(uint64(i), 5))
		mine := []Tag{{1, fmt.Sprint("label", i/2)}, {2, "zone"}}
		records := randomSeries(r, mine, 400)
		files := buildIn(t, &Manifest{Tags: mine}, records, &WriteOptions{BlockSeries: 50})
		if i == 3 { // the last chunk is damaged, when the others have been read
			part := files[PartName(0)]
			a := openIn(t, files)
			p, err := a.Part(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := a.Blocks(ctx, 0, len(p.Leaves)-1)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range slices.Backward(blocks) {
				c := b.Columns[len(b.Columns)-1]
				if c.HasRange && c.Min != c.Max { // it has to be read
					part[c.Offset] ^= 1
					break
				}
			}
			if err := z.Add(ctx, openIn(t, files), i); !errors.Is(err, fault.Corrupt) {
				t.Fatalf("a damaged artifact: %v", err)
			}
			continue
		}
		if err := z.Add(ctx, openIn(t, files), i); err != nil {
			t.Fatal(err)
		}
		all = append(all, records...)
	}
	got, err := z.Result()
	if err != nil {
		t.Fatal(err)
	}
	tags := []Tag{{1, "label0"}, {2, "zone"}, {1, "label1"}, {1, "label2"}}
	sameAnalysis(t, "many", got, plainAnalysis(all, tags, 5))
}

// The good vectors are analyzed as their records say; of a column in an unknown encoding the pages still tell the nulls; and
// the bad ones fail as reading them does, unless what is wrong lies in a chunk that is not needed.
func TestAnalyzeVectors(t *testing.T) {
	ctx := context.Background()
	for _, v := range vectors(t, "*.json", 40) {
		a, err := Open(ctx, Folder(v.folder), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Analyze(ctx, a, &AnalyzeOptions{Top: 1 << 30})
		if err != nil {
			t.Fatal(v.Name, ": ", err)
		}
		var records []Record
		for _, r := range v.Records {
			records = append(records, r.record(a.Tags()))
		}
		want := plainAnalysis(records, a.Tags(), 1<<30)
		for i, name := range want.Labels {
			if l := &got.Labels[i]; slices.Contains(v.UnknownCodec, name.Name) && l.Unknown > 0 {
				if l.Series+l.Nulls != got.Series || l.Unknown > l.Series {
					t.Errorf("%s: %+v, want %+v", v.Name, l, want.Labels[i])
				}
				*l = want.Labels[i]
			}
		}
		sameAnalysis(t, v.Name, got, want)
		a.Close()
	}
	failed := 0
	for _, v := range vectors(t, "bad/*.json", 50) {
		whole := readAll(ctx, v.folder)
		a, err := Open(ctx, Folder(v.folder), nil)
		if err == nil {
			_, err = Analyze(ctx, a, nil)
			a.Close()
		}
		switch {
		case err == nil && (v.Check < 70 || v.Check == 82) && v.Check != 42 && v.Check != 43:
			t.Errorf("%s: no error, want check %d", v.Name, v.Check)
		case err != nil && Check(err) != Check(whole):
			t.Errorf("%s: %v, reading all: %v", v.Name, err, whole)
		case err != nil:
			failed++
		}
	}
	if failed < 40 {
		t.Errorf("%d of the bad artifacts fail", failed)
	}
}

// A column that takes more than an artifact may hold is an error, of analyzing and of redacting.
func TestAnalyzeBound(t *testing.T) {
	ctx := context.Background()
	var records []Record
	for i := range 2000 {
		records = append(records, Record{ID: ID{1, uint64(i)}, RowCount: 1, Labels: []Label{{"host", fmt.Sprint("host-", i)}}})
	}
	files := buildIn(t, &Manifest{Tags: []Tag{{1, "host"}}}, records, nil)
	for most, want := range map[int64]error{50_000: fault.Limit, 10 << 20: nil, -1: nil} {
		a, err := Open(ctx, files.opener(), &Options{MaxDecoded: most})
		if err != nil {
			t.Fatal(err)
		}
		_, analyzed := Analyze(ctx, a, nil)
		_, redacted := NewRedactor(ctx, a, &RedactOptions{Key: redactKey})
		if !errors.Is(analyzed, want) || !errors.Is(redacted, want) {
			t.Errorf("at most %d: %v, %v, want %v", most, analyzed, redacted, want)
		}
		a.Close()
	}
}

// Of columns that pages describe wholly no chunk is read, and no temporary file stays open.
func TestAnalyzeReads(t *testing.T) {
	ctx := context.Background()
	var records []Record
	for i := range 5000 {
		records = append(records, Record{ID: ID{1, uint64(i)}, RowCount: 1, Labels: []Label{{"zone", fmt.Sprint(i / 64)}, {"pad", strings.Repeat("p", 100)}}})
	}
	files := buildIn(t, &Manifest{Tags: []Tag{{1, "zone"}, {2, "pad"}}}, records, &WriteOptions{BlockSeries: 64})
	meter := &source.Meter{}
	a, err := Open(ctx, func(ctx context.Context, name string) (source.Object, error) {
		obj, err := files.opener()(ctx, name)
		if err == nil {
			obj = meter.Object(obj)
		}
		return obj, err
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got, err := Analyze(ctx, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameAnalysis(t, "constant in blocks", got, plainAnalysis(records, a.Tags(), DefaultTop))
	most := int64(len(files[ManifestName])) + int64(got.Parts[0].Pages) + tailSize + headerSize
	if r := meter.Receipt(); r.Bytes > most {
		t.Errorf("%d bytes were read, at most %d are pages", r.Bytes, most)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no list of open files")
	}
	before := openFiles(t)
	if _, err := Analyze(ctx, openIn(t, buildIn(t, &Manifest{Tags: a.Tags()}, records, nil)), &AnalyzeOptions{Memory: 4000}); err != nil {
		t.Fatal(err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
