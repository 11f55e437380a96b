package promtsdb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/spilehq/spile/adapters/promtsdb"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/seriestest"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// folder opens the files of a block.
func folder(dir string) promtsdb.Opener {
	return func(_ context.Context, name string) (source.Object, error) {
		return source.OpenFile(filepath.Join(dir, filepath.FromSlash(name)))
	}
}

func Example() {
	ctx := context.Background()
	b, err := promtsdb.Open(ctx, folder("testdata/block"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	names, metrics, err := b.Names(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n%q\n", names, metrics)
	fmt.Println(b.Tombstones(ctx))
	m := b.Meta()
	fmt.Println(m.ULID, m.MinTime, m.MaxTime, m.Series, len(m.Text) > 0)
	o := &promtsdb.Options{Tables: make(map[string]uint32), Note: func(string) {}}
	for i, metric := range metrics {
		o.Tables[metric] = uint32(i + 1)
	}
	for i, name := range names {
		o.Tags = append(o.Tags, series.Tag{ColumnID: uint32(i + 1), Name: name})
	}
	for r, err := range b.Records(ctx, o) {
		fmt.Println(r.ID, r.RowCount, r.Labels, err)
		break
	}
	// Output:
	// ["host" "job" "sensor.name" "日本"]
	// ["" "http_requests_total" "latency_seconds" "node.temperature" "up"]
	// false <nil>
	// 01M8PX1FZMM0JAV5059N92EBJM 1767225600000 1767230445001 45 true
	// 2/3074232669371199193 1 [{host web-0} {job api}] <nil>
}

// files are those of a block in memory.
type files map[string][]byte

func (f files) open(_ context.Context, name string) (source.Object, error) {
	b, ok := f[name]
	if !ok {
		return nil, fault.New(nil, "test", "").In(name).Because(fs.ErrNotExist)
	}
	return source.Memory(name, b), nil
}

func block(t testing.TB) files {
	t.Helper()
	f := make(files)
	for _, name := range []string{promtsdb.MetaName, promtsdb.IndexName, promtsdb.ChunksName + "/000001", promtsdb.TombstonesName} {
		b, err := os.ReadFile(filepath.Join("testdata/block", name))
		if err != nil {
			t.Fatal(err)
		}
		f[name] = b
	}
	return f
}

// records reads all series of a block, whose metrics get tables from 1 on in their order.
func records(ctx context.Context, f files) (list []series.Record, metrics []string, notes []string, err error) {
	b, err := promtsdb.Open(ctx, f.open)
	if err != nil {
		return nil, nil, nil, err
	}
	defer b.Close()
	names, metrics, err := b.Names(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	o := &promtsdb.Options{Tables: make(map[string]uint32), Note: func(s string) { notes = append(notes, s) }}
	for i, m := range metrics {
		o.Tables[m] = uint32(i + 1)
	}
	for i, name := range names {
		o.Tags = append(o.Tags, series.Tag{ColumnID: uint32(i), Name: name})
	}
	for r, err := range b.Records(ctx, o) {
		if err != nil {
			return list, metrics, notes, err
		}
		var own []series.Label
		for _, l := range r.Labels {
			own = append(own, series.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)})
		}
		r.Labels = own
		list = append(list, r)
	}
	return list, metrics, notes, nil
}

// The series of a block are those that the querier of Prometheus finds, with its hash, and as many samples.
func TestBlock(t *testing.T) {
	text, err := os.ReadFile("testdata/block.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type want struct {
		Labels  map[string]string
		Samples uint64
		Hash    uint64
	}
	wanted := make(map[uint64]want)
	for line := range bytes.Lines(text) {
		var w want
		if err := json.Unmarshal(line, &w); err != nil {
			t.Fatal(err)
		}
		wanted[w.Hash] = w
	}
	got, metrics, notes, err := records(t.Context(), block(t))
	if err != nil || len(got) != len(wanted) || len(got) != 45 || len(notes) > 0 {
		t.Fatal(len(got), len(wanted), notes, err)
	}
	for _, r := range got {
		w := wanted[r.TSID]
		set := map[string]string{}
		if m := metrics[r.Table-1]; m != "" {
			set[promtsdb.MetricName] = m
		}
		for _, l := range r.Labels {
			set[l.Name] = l.Value
		}
		if !maps.Equal(set, w.Labels) || r.RowCount != w.Samples {
			t.Errorf("%v, want %v", r, w)
		}
	}
	// Without the files of chunks each series counts one.
	f := block(t)
	delete(f, promtsdb.ChunksName+"/000001")
	got, _, notes, err = records(t.Context(), f)
	if err != nil || len(got) != 45 || len(notes) != 1 || slices.ContainsFunc(got, func(r series.Record) bool { return r.RowCount != 1 }) {
		t.Fatal(len(got), notes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := records(ctx, block(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// write makes a block of series by the writers of Prometheus. They have no chunks.
func write(t testing.TB, sets ...labels.Labels) files {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	w, err := index.NewWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(sets, labels.Compare)
	symbols := make(map[string]bool)
	for _, set := range sets {
		set.Range(func(l labels.Label) { symbols[l.Name], symbols[l.Value] = true, true })
	}
	for _, s := range slices.Sorted(maps.Keys(symbols)) {
		if err := w.AddSymbol(s); err != nil {
			t.Fatal(err)
		}
	}
	for i, set := range sets {
		if err := w.AddSeries(storage.SeriesRef(i), set, chunks.Meta{MinTime: 1, MaxTime: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return files{promtsdb.IndexName: b, promtsdb.MetaName: []byte(`{"version":1}`)}
}

// Random sets of labels have the hash that Prometheus calls stable.
func TestHash(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var sets []labels.Labels
	seen := make(map[string]bool)
	for range 5000 {
		m := map[string]string{"__name__": fmt.Sprint("m", r.IntN(4))}
		for range r.IntN(12) {
			m[fmt.Sprint("label", r.IntN(20))] = strings.Repeat("ü", r.IntN(40)) + fmt.Sprint(r.IntN(1000))
		}
		if set := labels.FromMap(m); !seen[set.String()] {
			seen[set.String()] = true
			sets = append(sets, set)
		}
	}
	got, _, _, err := records(t.Context(), write(t, sets...))
	if err != nil || len(got) != len(sets) {
		t.Fatal(len(got), len(sets), err)
	}
	for i, r := range got { // the index is sorted, as sets is now
		if want := labels.StableHash(sets[i]); r.TSID != want {
			t.Fatalf("%s: %d, want %d", sets[i], r.TSID, want)
		}
	}
}

// collision finds two values of a label of one hash: of XXH64, what eight bytes change in a lane the bytes of the next
// stripe of that lane can change back.
func collision(t testing.TB, metric, label string) (a, b string) {
	const (
		p1 = 0x9E3779B185EBCA87
		p2 = 0xC2B2AE3D27D4EB4F
	)
	inverse := uint64(1) // of p2, by Newton
	for range 6 {
		inverse *= 2 - p2*inverse
	}
	prefix := "__name__\xff" + metric + "\xff" + label + "\xff"
	pad := strings.Repeat("p", (32-len(prefix)%32)%32) // the value goes on at a stripe, of which its lane 0 is changed
	r := rand.New(rand.NewPCG(8, 9))
	letters := func() uint64 {
		var p [8]byte
		for i := range p {
			p[i] = 'a' + byte(r.IntN(26))
		}
		return binary.LittleEndian.Uint64(p[:])
	}
	seed := uint64(0)
	lane := seed
	lane += p1
	lane += p2
	round := func(acc, x uint64) uint64 {
		acc += x * p2
		return (acc<<31 | acc>>33) * p1
	}
	for i := 0; i+32 <= len(prefix+pad); i += 32 {
		lane = round(lane, binary.LittleEndian.Uint64([]byte(prefix + pad)[i:]))
	}
	for range 1 << 20 {
		x, y, z := letters(), letters(), letters()
		// round(lane, x) + z*p2 == round(lane, y) + other*p2
		other := z + (round(lane, x)-round(lane, y))*inverse
		var p [8]byte
		binary.LittleEndian.PutUint64(p[:], other)
		if x == y || slices.ContainsFunc(p[:], func(c byte) bool { return c < ' ' || c > '~' }) {
			continue
		}
		value := func(first, second uint64) string {
			s := []byte(pad)
			s = binary.LittleEndian.AppendUint64(s, first)
			s = append(s, strings.Repeat("q", 24)...)
			s = binary.LittleEndian.AppendUint64(s, second)
			return string(append(s, strings.Repeat("r", 24)...))
		}
		a, b = value(x, z), value(y, other)
		if xxhash.Sum64String(prefix+a+"\xff") != xxhash.Sum64String(prefix+b+"\xff") {
			t.Fatal("no collision")
		}
		return a, b
	}
	t.Fatal("no collision found")
	return "", ""
}

// Two series with one hash are found, and shown.
func TestCollision(t *testing.T) {
	a, b := collision(t, "m", "host")
	got, _, _, err := records(t.Context(), write(t, labels.FromStrings("__name__", "m", "host", a), labels.FromStrings("__name__", "m", "host", b), labels.FromStrings("__name__", "m", "host", "c")))
	if err != nil || len(got) != 3 || got[1].ID != got[0].ID && got[1].ID != got[2].ID && got[0].ID != got[2].ID {
		t.Fatal(got, err)
	}
	slices.SortFunc(got, func(a, b series.Record) int { return a.ID.Compare(b.ID) })
	var failed error
	for _, err := range promtsdb.Distinct(seriestest.Seq(got)) {
		failed = err
	}
	if !errors.Is(failed, fault.Conflict) || !strings.Contains(failed.Error(), fmt.Sprintf("{host=%q}", a)) || !strings.Contains(failed.Error(), fmt.Sprintf("{host=%q}", b)) {
		t.Error(failed)
	}
	n := 0
	for range promtsdb.Distinct(seriestest.Seq(slices.Collect(firstOf(got)))) {
		n++
	}
	if n != 2 {
		t.Errorf("%d of 2 series that differ", n)
	}
}

// firstOf gives one record of each identifier.
func firstOf(list []series.Record) iter.Seq[series.Record] {
	return func(yield func(series.Record) bool) {
		for i, r := range list {
			if (i == 0 || list[i-1].ID != r.ID) && !yield(r) {
				return
			}
		}
	}
}

func TestRefused(t *testing.T) {
	ctx := t.Context()
	b, err := promtsdb.Open(ctx, folder("testdata/block"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, test := range []struct {
		o    promtsdb.Options
		want string
	}{
		{promtsdb.Options{Tables: map[string]uint32{"": 1}}, `{__name__="http_requests_total", host="web-0", job="api"}: the label "host" is no tag of the artifact`},
		{promtsdb.Options{Tables: map[string]uint32{"": 1}, Tags: []series.Tag{{Name: "host"}, {Name: "job"}, {Name: "sensor.name"}, {Name: "日本"}}},
			`{__name__="http_requests_total", host="web-0", job="api"}: the metric "http_requests_total" has no table`},
	} {
		var failed error
		for _, err := range b.Records(ctx, &test.o) {
			failed = err
		}
		if !errors.Is(failed, fault.Invalid) || !strings.Contains(failed.Error(), "block/index: "+test.want) {
			t.Errorf("%v, want %s", failed, test.want)
		}
	}
	change := func(name string, f func([]byte) []byte) files {
		files := block(t)
		files[name] = f(bytes.Clone(files[name]))
		return files
	}
	for want, f := range map[string]files{
		`meta.json: is no JSON of a block`:           change(promtsdb.MetaName, func(b []byte) []byte { return b[:20] }),
		`meta.json: a block of version 2, 1 is read`: change(promtsdb.MetaName, func(b []byte) []byte { return bytes.Replace(b, []byte(`"version": 1`), []byte(`"version": 2`), 1) }),
		`index: the index has 45 series, meta.json says 46`: change(promtsdb.MetaName, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"numSeries": 45`), []byte(`"numSeries": 46`), 1)
		}),
		`index: begins with 0x0, an index of Prometheus with 0xbaaad700`: change(promtsdb.IndexName, func(b []byte) []byte { copy(b, "\x00\x00\x00\x00"); return b }),
		`index: the index has version 1, 2 and 3 are read`:               change(promtsdb.IndexName, func(b []byte) []byte { b[4] = 1; return b }),
		`index: has 20 bytes, the least is 57`:                           change(promtsdb.IndexName, func(b []byte) []byte { return b[:20] }),
		`index: the table of contents: read TOC: invalid checksum`:       change(promtsdb.IndexName, func(b []byte) []byte { return b[:len(b)-1] }),
		`index: symbols: the checksum is`:                                change(promtsdb.IndexName, func(b []byte) []byte { b[20] ^= 1; return b }),
		`chunks/000001: is no file of chunks`:                            change(promtsdb.ChunksName+"/000001", func(b []byte) []byte { return b[:4] }),
		`chunks/000001: a chunk of`:                                      change(promtsdb.ChunksName+"/000001", func(b []byte) []byte { return b[:len(b)/2] }),
		`chunks/000001: a chunk of the encoding 99, which is not known`:  change(promtsdb.ChunksName+"/000001", func(b []byte) []byte { b[9] = 99; return b }),
	} {
		_, _, _, err := records(ctx, f)
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Class == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f := block(t)
	f[promtsdb.TombstonesName] = make([]byte, 40)
	tb, err := promtsdb.Open(ctx, f.open)
	if err != nil {
		t.Fatal(err)
	}
	if yes, err := tb.Tombstones(ctx); !yes || err != nil {
		t.Error(yes, err)
	}
}

// closing counts the objects that are open.
type closing struct {
	source.Object
	open *int
}

func (c closing) Close() error {
	*c.open--
	return c.Object.Close()
}

// Every file is closed, also one that turns out to be none of chunks.
func TestClosed(t *testing.T) {
	for _, whole := range []bool{true, false} {
		f, open := block(t), 0
		if !whole {
			f[promtsdb.ChunksName+"/000001"] = []byte("none")
		}
		b, err := promtsdb.Open(t.Context(), func(ctx context.Context, name string) (source.Object, error) {
			obj, err := f.open(ctx, name)
			if err != nil {
				return nil, err
			}
			open++
			return closing{obj, &open}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		o := promtsdb.Options{Tables: make(map[string]uint32)}
		names, metrics, err := b.Names(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, metric := range metrics {
			o.Tables[metric] = uint32(i)
		}
		for _, name := range names {
			o.Tags = append(o.Tags, series.Tag{Name: name})
		}
		for _, err = range b.Records(t.Context(), &o) {
			if err != nil {
				break
			}
		}
		if whole != (err == nil) {
			t.Errorf("whole %t: %v", whole, err)
		}
		if b.Close(); open != 0 {
			t.Errorf("whole %t: %d files are open", whole, open)
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sign puts the checksums of symbols, series and table of contents right, so that a change gets past them.
func sign(b []byte) {
	toc := b[len(b)-52:]
	put := func(body []byte, at int) {
		if at >= 0 && at+4 <= len(b) {
			binary.BigEndian.PutUint32(b[at:], crc32.Checksum(body, castagnoli))
		}
	}
	put(toc[:48], len(b)-4)
	symbols, first, end := binary.BigEndian.Uint64(toc), binary.BigEndian.Uint64(toc[8:]), binary.BigEndian.Uint64(toc[16:])
	size := uint64(len(b))
	if symbols < size-4 {
		if n := uint64(binary.BigEndian.Uint32(b[symbols:])); symbols+4+n+4 <= size {
			put(b[symbols+4:symbols+4+n], int(symbols+4+n))
		}
	}
	for at := (first + 15) / 16 * 16; at < end && end <= size; {
		n, k := binary.Uvarint(b[at:])
		if k <= 0 || n > size || at+uint64(k)+n+4 > size {
			break
		}
		put(b[at+uint64(k):at+uint64(k)+n], int(at+uint64(k)+n))
		at = (at + uint64(k) + n + 4 + 15) / 16 * 16
	}
}

func damaged(t testing.TB, f files) {
	t.Helper()
	_, _, _, err := records(context.Background(), f)
	if e, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || e.Class == nil && !errors.Is(err, fs.ErrNotExist)) {
		t.Fatalf("%v has no class", err)
	}
}

// A damaged block is an error with a class or gives records, also where its checksums are right.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rounds := 20000
	if testing.Short() {
		rounds = 2000
	}
	whole := block(t)
	names := []string{promtsdb.IndexName, promtsdb.IndexName, promtsdb.ChunksName + "/000001", promtsdb.MetaName}
	for range rounds {
		f := maps.Clone(whole)
		name := names[r.IntN(len(names))]
		b := bytes.Clone(f[name])
		for range 1 + r.IntN(3) {
			i := r.IntN(len(b))
			if name == promtsdb.IndexName && r.IntN(4) == 0 {
				i = len(b) - 52 + r.IntN(24)
			}
			switch r.IntN(4) {
			case 0:
				b[i] ^= 1 << r.IntN(8)
			case 1:
				b[i] = byte(r.Uint32())
			case 2:
				b[i] = 0xff
			case 3:
				if r.IntN(10) == 0 {
					b = b[:max(60, i)]
				}
			}
		}
		if name == promtsdb.IndexName && len(b) > 60 {
			sign(b)
		}
		f[name] = b
		damaged(t, f)
	}
}

func FuzzIndex(f *testing.F) {
	whole := block(f)
	f.Add(whole[promtsdb.IndexName])
	f.Add(write(f, labels.FromStrings("__name__", "m", "host", "a"))[promtsdb.IndexName])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		if len(b) > 60 {
			sign(b)
		}
		damaged(t, files{promtsdb.MetaName: []byte(`{"version":1}`), promtsdb.IndexName: b, promtsdb.ChunksName + "/000001": whole[promtsdb.ChunksName+"/000001"]})
	})
}
