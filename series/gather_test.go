package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/spilehq/spile/fault"
)

func collect(records func(func(Record, error) bool)) ([]Record, error) {
	var out []Record
	for r, err := range records {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

// What is gathered of artifacts in any order is what a merger gives of them.
func TestGatherVectors(t *testing.T) {
	ctx := context.Background()
	names, err := filepath.Glob(filepath.Join(vectorFolder, "merges", "*.json"))
	if err != nil || len(names) < 3 {
		t.Fatal(err, names)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ Inputs []string }
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		var inputs []*Artifact
		for _, in := range v.Inputs {
			a, err := Open(ctx, Folder(readVector(t, filepath.Join(vectorFolder, in+".json")).folder), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			inputs = append(inputs, a)
		}
		for _, q := range []*Query{{Mode: Native}, {Mode: Prom}, {Mode: Native, Limit: 2}, {Mode: Native, Columns: []string{}}} {
			for _, keepFirst := range []bool{false, true} {
				m, err := NewMerger(inputs, keepFirst)
				if err != nil {
					t.Fatal(err)
				}
				want, wantErr := collect(m.Select(ctx, q))
				g := NewGatherer(ctx, q, &GatherOptions{KeepFirst: keepFirst})
				for _, i := range rand.Perm(len(inputs)) {
					if err := g.Add(ctx, inputs[i], i, nil); err != nil {
						t.Fatal(err)
					}
				}
				got, err := collect(g.Records())
				if Check(err) != Check(wantErr) || errors.Is(err, fault.Conflict) != errors.Is(wantErr, fault.Conflict) || (err == nil) != (wantErr == nil) {
					t.Errorf("%s: %v, merged: %v", name, err, wantErr)
				}
				if !slices.EqualFunc(got, want, sameRecord) {
					t.Errorf("%s, %+v: \n%v, want \n%v", name, q, got, want)
				}
				if err == nil && (g.Conflicts() != m.Conflicts() || len(g.Tags()) != len(m.Tags())) {
					t.Errorf("%s: %d conflicts, want %d; tags %v", name, g.Conflicts(), m.Conflicts(), g.Tags())
				}
				g.Close()
			}
		}
	}
}

// Artifacts of two regions, added side by side in little memory; one of them is damaged and has no part in the result.
func TestGather(t *testing.T) {
	ctx := context.Background()
	q := &Query{Mode: Native}
	g := NewGatherer(ctx, q, &GatherOptions{Memory: 100_000, Parallel: 8})
	defer g.Close()
	rows := make(map[[3]uint64]uint64)
	var work sync.WaitGroup
	errs := make([]error, 12)
	for i := range 12 {
		tags := []Tag{{1, "host"}, {2, fmt.Sprint("of", i%2)}}
		var records []Record
		for k := range 700 {
			id := ID{1 + uint32(k%3), uint64(k/3*(1+i%3)) + 1}
			records = append(records, Record{ID: id, RowCount: uint64(i + 1), Labels: []Label{{"host", fmt.Sprint(id)}}})
		}
		slices.SortFunc(records, func(a, b Record) int { return a.ID.Compare(b.ID) })
		meta := &Manifest{RegionID: uint64(i % 2), Tags: tags, Generation: UUID{byte(i)}}
		files := buildIn(t, meta, records, &WriteOptions{BlockSeries: 100})
		if i == 5 {
			part := files[PartName(0)]
			part[len(part)*2/5] ^= 1 // in the column area
		} else {
			for _, r := range records {
				rows[[3]uint64{uint64(r.Table), r.TSID, meta.RegionID}] += r.RowCount
			}
		}
		a := openIn(t, files)
		work.Go(func() { errs[i] = g.Add(ctx, a, i, nil) })
	}
	work.Wait()
	for i, err := range errs {
		if (i == 5) != errors.Is(err, fault.Corrupt) || i != 5 && err != nil {
			t.Errorf("artifact %d: %v", i, err)
		}
	}
	got, err := collect(g.Records())
	if err != nil || len(got) != len(rows) {
		t.Fatalf("%d series, want %d: %v", len(got), len(rows), err)
	}
	for i, r := range got {
		region := uint64(0)
		if i > 0 && got[i-1].ID == r.ID {
			region = 1
		} else if _, ok := rows[[3]uint64{uint64(r.Table), r.TSID, 0}]; !ok {
			region = 1
		}
		if want := rows[[3]uint64{uint64(r.Table), r.TSID, region}]; r.RowCount != want {
			t.Errorf("%s of region %d: %d rows, want %d", r.ID, region, r.RowCount, want)
		}
		if len(r.Labels) != 1 || r.Labels[0] != (Label{"host", r.ID.String()}) {
			t.Errorf("%s: %v", r.ID, r.Labels)
		}
		if i > 0 && r.ID.Less(got[i-1].ID) {
			t.Errorf("%s comes behind %s", r.ID, got[i-1].ID)
		}
	}
}
