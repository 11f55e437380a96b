package series

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// distant is an object over a network of 30 ms.
type distant struct {
	source.Object
	reads *atomic.Int64
}

func (d distant) Cost() source.Cost {
	return source.Cost{Gap: 1 << 20, Parallel: 16, MaxRequest: 16 << 20}
}

func (d distant) ReadAt(ctx context.Context, p []byte, off int64) error {
	d.reads.Add(1)
	time.Sleep(30 * time.Millisecond)
	return d.Object.ReadAt(ctx, p, off)
}

// A thousand series at random of an artifact of several parts take as many round trips as one: the manifest, the ends of the
// parts, the leaves, the columns.
func TestLookupAllRoundTrips(t *testing.T) {
	tags := []Tag{{1, "host"}, {2, "zone"}}
	var records []Record
	for i := range uint64(200_000) {
		records = append(records, Record{ID{1, 3 * i}, i + 1, []Label{{"host", fmt.Sprintf("host-%d", i*7919)}, {"zone", fmt.Sprintf("zone-%d", i%100)}}})
	}
	files := buildIn(t, &Manifest{RegionID: 1, Tags: tags}, records, &WriteOptions{BlockSeries: 100, PartBytes: 1 << 20})
	if len(files) < 4 {
		t.Fatalf("%d files", len(files))
	}
	var ids []ID
	var want []Record
	dice := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		r := records[dice.IntN(len(records))]
		ids, want = append(ids, r.ID), append(want, r)
	}
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		open := func(ctx context.Context, name string) (source.Object, error) {
			return distant{source.Memory(name, files[name]), &reads}, nil
		}
		before := time.Now()
		a, err := Open(t.Context(), open, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		got, err := collect(a.LookupAll(t.Context(), ids))
		if err != nil || !same(got, want) {
			t.Errorf("%d series, %v", len(got), err)
		}
		if trips := time.Since(before) / (30 * time.Millisecond); trips > 4 || reads.Load() > int64(4*len(files)) {
			t.Errorf("%d round trips, %d requests for %d parts", trips, reads.Load(), len(files)-1)
		}
	})
}

// A long value that many series have takes memory once, and not for each of those that are looked up.
func TestLookupAllLongValue(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	var records []Record
	var ids []ID
	for i := range uint64(3000) {
		v := long
		if i >= 1000 {
			v = fmt.Sprint(i)
		} else {
			ids = append(ids, ID{1, i})
		}
		records = append(records, Record{ID{1, i}, 1, []Label{{"host", v}}})
	}
	a := build(t, &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}}}, records, nil).open(t, &Options{CacheBytes: -1})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := collect(a.LookupAll(t.Context(), ids))
	runtime.ReadMemStats(&after)
	if err != nil || !same(got, records[:len(ids)]) {
		t.Errorf("%d series, %v", len(got), err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 10<<20 {
		t.Errorf("%d bytes for %d series of one value of %d", n, len(ids), len(long))
	}
}

// Many lookups give what one after the other does, up to the same error: in artifacts that are damaged, of codecs that are not
// known, in little memory, and of objects that cannot be read.
func TestLookupAllAgrees(t *testing.T) {
	tags := []Tag{{1, "host"}, {2, "zone"}}
	dice := rand.New(rand.NewPCG(5, 6))
	var records []Record
	for i := range uint64(2000) {
		records = append(records, Record{ID{uint32(1 + i/700), 3 * i}, i + 1, []Label{{"host", fmt.Sprint(i * 7919)}, {"zone", fmt.Sprint(i % 9)}}})
	}
	good := buildIn(t, &Manifest{RegionID: 1, Tags: tags}, records, &WriteOptions{BlockSeries: 60, PageBytes: 600, PartBytes: 10_000})
	agrees := func(what string, open Opener, cost source.Cost, o *Options, ids []ID) (failed bool) {
		t.Helper()
		priced := func(ctx context.Context, name string) (source.Object, error) {
			obj, err := open(ctx, name)
			if err != nil {
				return nil, err
			}
			return priced{obj, cost}, nil
		}
		a, err := Open(t.Context(), priced, o)
		if err != nil {
			return true
		}
		defer a.Close()
		var want []Record
		var wantErr error
		for _, id := range ids {
			r, err := a.Lookup(t.Context(), id)
			if wantErr = err; err != nil {
				break
			}
			want = append(want, r)
		}
		b, err := Open(t.Context(), priced, o)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		got, err := collect(b.LookupAll(t.Context(), ids))
		if !same(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: %d series, %v; one after the other %d, %v", what, len(got), err, len(want), wantErr)
		}
		return err != nil
	}
	far := source.Cost{Gap: 1 << 20, Parallel: 4}
	some := func(n int) (ids []ID) {
		for range n {
			r := records[dice.IntN(len(records))]
			ids = append(ids, r.ID)
		}
		return ids
	}
	failures := 0
	for round := range 300 {
		bad := memoryTarget{}
		for name, b := range good {
			bad[name] = b
		}
		name := PartName(uint32(dice.IntN(len(good) - 1)))
		if round%10 == 0 {
			delete(bad, name)
		} else {
			bad[name] = bytes.Clone(good[name])
			bad[name][dice.IntN(len(bad[name]))] ^= 1 << dice.IntN(8)
		}
		o := &Options{CacheBytes: int64(-(round % 2)), MaxDecoded: []int64{0, 20_000, 6_000}[round%3]}
		if agrees(fmt.Sprint("round ", round), bad.opener(), []source.Cost{{}, far}[round/2%2], o, some(1+dice.IntN(200))) {
			failures++
		}
	}
	if failures < 50 {
		t.Errorf("%d failures", failures)
	}
	for _, name := range []string{"unknown-encoding", "unknown-compression"} {
		v := readVector(t, filepath.Join(vectorFolder, name+".json"))
		var ids []ID
		for _, r := range v.Records {
			ids = append(ids, ID{r.Table, r.TSID})
		}
		for range 20 {
			dice.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			agrees(name, Folder(v.folder), far, &Options{}, ids)
		}
	}
}

// When the source fails, what was found in front of that is given, and then the failure, without a further request.
func TestLookupAllFails(t *testing.T) {
	tags := []Tag{{1, "host"}}
	var records []Record
	for i := range uint64(2000) {
		records = append(records, Record{ID{1, i}, i + 1, []Label{{"host", fmt.Sprint(i * 7919)}}})
	}
	files := buildIn(t, &Manifest{RegionID: 1, Tags: tags}, records, &WriteOptions{BlockSeries: 60, PartBytes: 10_000})
	var meter source.Meter
	budget := &meter
	a, err := Open(t.Context(), func(ctx context.Context, name string) (source.Object, error) {
		return budget.Object(source.Memory(name, files[name])), nil
	}, &Options{CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	budget.MaxRequests = meter.Receipt().Requests + 1
	got, err := collect(a.LookupAll(t.Context(), []ID{records[0].ID, records[1999].ID, records[1000].ID}))
	if !errors.Is(err, fault.Limit) || len(got) > 1 {
		t.Errorf("%d series, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := collect(a.LookupAll(ctx, []ID{records[0].ID, records[1999].ID})); !errors.Is(err, context.Canceled) || len(got) > 0 {
		t.Errorf("%d series, %v", len(got), err)
	}
}
